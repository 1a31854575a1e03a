"""Random queries as wide as SPARQL 1.1: every form, pattern, path, function, operator and aggregate.

A query is text; places where a stream is read are written `@w0@ { … }`, for one dialect or the other to fill
in (`cases.py`). What SPARQL leaves open is written so that the answer is not: blank nodes and random values
only under functions that tell nothing about which, SAMPLE over what is the same in all of a group,
sub-selects with LIMIT ordered by the one IRI they tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from . import terms as T

VARS = ("?x", "?y", "?z", "?v", "?w")
SEPARATOR = "¦"  # pieces between it come in any order (compare.py)

UNARY = ("isIRI", "isBlank", "isLiteral", "isNumeric", "STR", "LANG", "DATATYPE", "BOUND_")
HASHES = ("MD5", "SHA1", "SHA256", "SHA384", "SHA512")
DATE_PARTS = ("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS", "TIMEZONE", "TZ")
CASTS = ("boolean", "double", "float", "decimal", "integer", "dateTime", "string")
COMPARISONS = ("=", "!=", "<", ">", "<=", ">=")
PATTERNS = ('"a"', '"^a"', '"b.*"', '"[a-c]+"', '"A"', '"a.c"', '"^$"', '"\\\\."', '"(a)(b)?"', '"."', '"B$"')
DATATYPES = ("xsd:integer", ":dt", "xsd:string", "xsd:dateTime")
TAGS = ('"en"', '"fr"', '"de-1996"')
RANGES = ('"*"', '"en"', '"EN"', '"fr"', '""')
ABSOLUTE = '"http://ex/z"'
FLAGS = ('"i"', '""', '"s"', '"m"', '"x"', '"im"')  # "q" came after SPARQL 1.1, with F&O 3.0


@dataclass
class Writer:
    """Writes one query. `windows`: how many windows patterns may look into (0: it is asked once)."""

    random: Random
    windows: int = 0
    graphs: bool = True
    blanks: bool = True  # whether subjects may be blank nodes
    fresh: int = 0
    used: list[str] = field(default_factory=list)  # variables that patterns have bound, for expressions

    def pick(self, options: object) -> str:
        return self.random.choice(options)  # type: ignore[arg-type, no-any-return]

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def new(self) -> str:
        self.fresh += 1
        return f"?n{self.fresh}"

    def var(self, most: tuple[str, ...] = VARS) -> str:
        """A variable, mostly one of these: patterns that have nothing in common have no solutions."""
        found = self.pick(most if self.chance(0.9) else VARS)
        self.used.append(found)
        return found

    def known(self) -> str:
        """A variable for an expression: mostly one that is bound somewhere."""
        return self.pick(self.used) if self.used and self.chance(0.95) else self.pick(VARS)

    # ---------------------------------------------------------------- patterns

    def literal(self) -> str:
        return self.pick(T.LITERALS)

    def subject(self) -> str:
        return self.pick(T.NODES) if self.chance(0.08) else self.var(("?x", "?x", "?y"))

    def object(self) -> str:
        if self.chance(0.06):
            return self.pick(T.NODES)
        if self.chance(0.04):
            return self.literal()
        return "[]" if self.chance(0.03) else self.var(("?v", "?v", "?w", "?w", "?z", "?y"))

    def triple(self) -> str:
        if self.chance(0.22):
            return f"{self.subject()} {self.path(2)} {self.object()}"
        predicate = self.var(("?p",)) if self.chance(0.08) else self.pick(T.PREDICATES)
        return f"{self.subject()} {predicate} {self.object()}"

    def path(self, depth: int) -> str:
        if not depth or self.chance(0.15):
            return self.pick(T.PREDICATES)
        inner = self.path(depth - 1)
        match self.random.randrange(8):
            case 0:
                return f"({inner}/{self.path(depth - 1)})"
            case 1:
                return f"({inner}|{self.path(depth - 1)})"
            case 2:
                return f"^({inner})"
            case 3:
                return f"({inner})?"
            case 4:
                return f"({inner})*"
            case 5:
                return f"({inner})+"
            case 6:
                some = [
                    self.pick(("", "", "^")) + self.pick(T.PREDICATES)
                    for _ in range(self.random.randint(1, 3))
                ]
                return f"!({'|'.join(some)})"
            case _:
                return f"(({inner})/{self.pick(T.PREDICATES)})"

    def triples(self) -> str:
        return " . ".join(self.triple() for _ in range(self.pick((1, 1, 1, 1, 2, 2, 3)))) + " ."

    def look(self, inside: Callable[[], str]) -> str:
        """A group that looks somewhere: the default graph, a named one, a window."""
        if self.windows and self.chance(0.6):
            return f"@w{self.random.randrange(self.windows)}@ {{ {inside()} }}"
        if self.graphs and self.chance(0.12):
            graph = self.var(("?g",)) if self.chance(0.5) else self.pick(T.GRAPHS)
            return f"GRAPH {graph} {{ {inside()} }}"
        return inside()

    def values(self) -> str:
        def cell() -> str:
            return self.pick(("UNDEF", self.pick(T.NODES), self.pick(T.NODES), self.literal()))

        if self.chance(0.5):
            return f"VALUES {self.var()} {{ {' '.join(cell() for _ in range(self.random.randint(0, 3)))} }}"
        a, b = self.random.sample(VARS, 2)
        rows = " ".join(f"({cell()} {cell()})" for _ in range(self.random.randint(1, 3)))
        self.used += [a, b]
        return f"VALUES ({a} {b}) {{ {rows} }}"

    def sub_select(self, depth: int) -> str:
        outer, self.used = self.used, []
        body = self.group(depth)
        kind = self.random.randrange(4)
        if kind == 0:
            text, shown = self.grouped(body, sub=True)
        elif kind == 1 and not self.blanks:
            x = self.pick(VARS)
            node = f"{x} {self.pick(T.PREDICATES)} {self.new()}"
            text = f"SELECT {x} {{ {node} }} ORDER BY {x} LIMIT {self.random.randint(0, 3)}"
            shown = [x]
        else:
            shown = sorted(set(self.used))[: self.random.randint(1, 3)] or ["?x"]
            text = f"SELECT {self.pick(('', '', 'DISTINCT '))}{' '.join(shown)} {{ {body} }}"
        self.used = outer + shown
        return f"{{ {text} }}"

    def part(self, depth: int) -> str:
        roll = self.random.random()
        if not depth or roll < 0.5:
            return self.look(self.triples)
        if roll < 0.6:
            return f"{{ {self.group(depth - 1)} }} UNION {{ {self.group(depth - 1)} }}"
        if roll < 0.7:
            return self.sub_select(depth - 1)
        if roll < 0.8:
            return self.values()
        if roll < 0.88:
            return self.look(lambda: self.group(depth - 1))
        return self.look(self.triples)

    def decoration(self, depth: int) -> str:
        roll = self.random.random()
        if roll < 0.35 or not depth:
            return f"FILTER({self.boolean(2)})"
        if roll < 0.6:
            return f"OPTIONAL {{ {self.group(depth - 1)} }}"
        if roll < 0.7:
            return f"MINUS {{ {self.group(depth - 1)} }}"
        if roll < 0.82:
            name = self.new()
            expression = self.any(2)
            self.used.append(name)
            return f"BIND({expression} AS {name})"
        return f"FILTER({self.exists(depth - 1)})"

    def exists(self, depth: int) -> str:
        outer = list(self.used)
        found = f"{self.pick(('', 'NOT '))}EXISTS {{ {self.group(depth)} }}"
        self.used = outer
        return found

    def group(self, depth: int) -> str:
        parts = [self.part(depth)]
        if self.chance(0.3):
            parts.append(self.part(depth))
        while self.chance(0.3):
            parts.append(self.decoration(depth))
        return " ".join(parts)

    # ---------------------------------------------------------------- expressions

    def any(self, depth: int) -> str:
        kinds = (self.number, self.number, self.string, self.boolean, self.time, self.term)
        return self.random.choice(kinds)(depth)

    def leaf(self, pool: list[str]) -> str:
        """A variable, a term as wanted, or an odd one."""
        roll = self.random.random()
        if roll < 0.5:
            return self.known()
        if roll < 0.88:
            return self.pick(pool)
        return self.literal() if roll < 0.96 else self.pick(T.NODES)

    def number(self, depth: int) -> str:
        if not depth or self.chance(0.2):
            return self.leaf(T.NUMBERS)
        n = self.number
        match self.random.randrange(9):
            case 0 | 1 | 2:
                return f"({n(depth - 1)} {self.pick('+-*/')} {n(depth - 1)})"
            case 3:
                return f"{self.pick(('-', '+'))}({n(depth - 1)})"
            case 4:
                return f"{self.pick(('ABS', 'ROUND', 'CEIL', 'FLOOR'))}({n(depth - 1)})"
            case 5:
                return f"STRLEN({self.string(depth - 1)})"
            case 6:
                return f"xsd:{self.pick(('integer', 'decimal', 'double', 'float'))}({self.any(depth - 1)})"
            case 7:
                return f"{self.pick(DATE_PARTS[:6])}({self.time(depth - 1)})"
            case _:
                return self.either(depth, n)

    def string(self, depth: int) -> str:
        if not depth or self.chance(0.2):
            return self.leaf(T.STRINGS + T.LANGUAGE)
        s = self.string
        match self.random.randrange(13):
            case 0:
                return f"STR({self.any(depth - 1)})"
            case 1:
                return f"{self.pick(('UCASE', 'LCASE', 'ENCODE_FOR_URI', 'LANG'))}({s(depth - 1)})"
            case 2:
                return f"{self.pick(('STRBEFORE', 'STRAFTER'))}({s(depth - 1)}, {s(depth - 1)})"
            case 3:
                return f"CONCAT({', '.join(s(depth - 1) for _ in range(self.random.randint(0, 3)))})"
            case 4:
                start = self.number(0) if self.chance(0.3) else self.pick(("1", "2", "0", "-1", "1.5", "3"))
                length = (
                    f", {self.number(0) if self.chance(0.3) else self.pick('0125')}"
                    if self.chance(0.5)
                    else ""
                )
                return f"SUBSTR({s(depth - 1)}, {start}{length})"
            case 5:
                new = self.pick(('"z"', '""', '"[$1]"', '"$0"', '"\\\\$"'))
                flags = f", {self.pick(FLAGS)}" if self.chance(0.4) else ""
                return f"REPLACE({s(depth - 1)}, {self.pick(PATTERNS)}, {new}{flags})"
            case 6:
                return f"{self.pick(HASHES)}({s(depth - 1)})"
            case 7:
                return f"STRLANG({s(depth - 1)}, {self.pick(TAGS)})"
            case 8:
                return f"STRDT({s(depth - 1)}, {self.pick(DATATYPES)})"
            case 9:
                return f"xsd:string({self.any(depth - 1)})"
            case 10:
                return f"TZ({self.time(depth - 1)})"
            case 11:
                return f"STR({self.pick(('STRLEN(STRUUID())', 'isIRI(UUID())', 'DATATYPE(NOW())'))})"
            case _:
                return self.either(depth, s)

    def boolean(self, depth: int) -> str:
        if not depth or self.chance(0.1):
            return self.leaf(T.BOOLEANS)
        b, d = self.boolean, depth - 1
        match self.random.randrange(17):
            case 0 | 1 | 2:
                one = self.random.choice((self.number, self.number, self.string, self.time, self.any))
                return f"({one(d)} {self.pick(COMPARISONS)} {one(d)})"
            case 3:
                return f"({self.any(d)} {self.pick(COMPARISONS)} {self.any(d)})"
            case 4:
                return f"({b(d)} && {b(d)})"
            case 5:
                return f"({b(d)} || {b(d)})"
            case 6:
                return f"!({b(d) if self.chance(0.7) else self.any(d)})"
            case 7:
                return f"BOUND({self.known()})"
            case 8:
                return f"{self.pick(UNARY[:4])}({self.any(d)})"
            case 9:
                return (
                    f"{self.pick(('CONTAINS', 'STRSTARTS', 'STRENDS'))}({self.string(d)}, {self.string(d)})"
                )
            case 10:
                flags = f", {self.pick(FLAGS)}" if self.chance(0.4) else ""
                return f"REGEX({self.string(d)}, {self.pick(PATTERNS)}{flags})"
            case 11:
                some = ", ".join(self.any(0) for _ in range(self.random.randint(0, 3)))
                return f"({self.any(d)} {self.pick(('IN', 'NOT IN'))} ({some}))"
            case 12:
                return f"langMatches({self.string(d)}, {self.pick(RANGES)})"
            case 13:
                return f"sameTerm({self.any(d)}, {self.any(d)})"
            case 14:
                return f"xsd:boolean({self.any(d)})"
            case 15 if self.chance(0.5):
                return self.exists(0)
            case 15:
                return self.pick(("(RAND() < 1)", "isBlank(BNODE())", "(NOW() = NOW())"))
            case _:
                return self.either(depth, b)

    def time(self, depth: int) -> str:
        if not depth or self.chance(0.6):
            return self.leaf(T.TIMES)
        if self.chance(0.4):
            return f"xsd:dateTime({self.any(depth - 1)})"
        if self.chance(0.4):
            return f"TIMEZONE({self.time(depth - 1)})"
        return self.either(depth, self.time)

    def term(self, depth: int) -> str:
        if not depth:
            return self.leaf(T.LITERALS)
        match self.random.randrange(4):
            case 0:
                return f"IRI({self.pick((self.string(0), self.pick(T.NODES), ABSOLUTE))})"
            case 1:
                return f"DATATYPE({self.any(depth - 1)})"
            case 2:
                return f"isBlank(BNODE({self.string(0)}))"
            case _:
                return self.either(depth, self.term)

    def either(self, depth: int, kind: Callable[[int], str]) -> str:
        if self.chance(0.5):
            return f"IF({self.boolean(depth - 1)}, {kind(depth - 1)}, {kind(depth - 1)})"
        return f"COALESCE({', '.join(kind(depth - 1) for _ in range(self.random.randint(1, 3)))})"

    # ---------------------------------------------------------------- queries

    def aggregate(self, keys: list[str]) -> str:
        distinct = "DISTINCT " if self.chance(0.25) else ""
        argument = self.known() if self.chance(0.7) else self.any(1)
        match self.random.randrange(9):
            case 0:
                return f"COUNT({distinct}*)"
            case 1:
                return f"COUNT({distinct}{argument})"
            case 2 | 3:
                return f"SUM({distinct}{argument})"
            case 4:
                return f"AVG({distinct}{argument})"
            case 5:
                return f"MIN({argument})"
            case 6:
                return f"MAX({argument})"
            case 7:
                return f'GROUP_CONCAT({distinct}{argument}; SEPARATOR="{SEPARATOR}")'
            case _:
                return f"SAMPLE({self.pick(keys) if keys else self.literal()})"

    def grouped(self, body: str, sub: bool = False) -> tuple[str, list[str]]:
        """A SELECT with aggregates, and the variables it shows."""
        keys = sorted(set(self.random.choices(self.used or ["?x"], k=self.random.randint(0, 2))))
        written = list(keys)
        if self.chance(0.15):
            name = self.new()
            written.append(f"({self.any(1)} AS {name})")
            keys.append(name)
        head, shown = list(keys), list(keys)
        for _ in range(self.random.randint(1, 2)):
            name, found = self.new(), self.aggregate(keys)
            head.append(f"({found} AS {name})" if self.chance(0.85) else f"(({found} + 1) AS {name})")
            shown.append(name)
        tail = f" GROUP BY {' '.join(written)}" if written else ""
        if self.chance(0.2):
            beside = self.pick(keys + T.NUMBERS)  # keys are what a group has one of
            tail += f" HAVING ({self.aggregate(keys)} {self.pick(COMPARISONS)} {beside})"
        self.used = shown
        place = "" if sub else "@from@ WHERE "
        return f"SELECT {' '.join(head)} {place}{{ {body} }}{tail}", shown

    def order(self, shown: list[str]) -> str:
        """ORDER BY some of what is shown, so that the order can be checked; a slice of it."""
        text = ""
        if shown and self.chance(0.3):
            keys = self.random.sample(shown, self.random.randint(1, min(2, len(shown))))
            text = " ORDER BY " + " ".join(f"{self.pick(('', 'ASC', 'DESC'))}({key})" for key in keys)
            if self.chance(0.4):
                text += f" LIMIT {self.random.randint(0, 4)}"
            if self.chance(0.2):
                text += f" OFFSET {self.random.randint(0, 3)}"
        return text

    def table(self) -> str:
        """A body that binds odd terms, for expressions to work on."""
        if self.windows or self.chance(0.5):
            self.used += ["?x", "?v", "?y", "?w"]
            return (
                self.look(lambda: "?x <http://ex/p> ?v .") + " " + self.look(lambda: "?y <http://ex/q> ?w .")
            )
        self.used += ["?v", "?w"]
        rows = " ".join(f"({self.literal()} {self.leaf_term()})" for _ in range(self.random.randint(2, 5)))
        return f"VALUES (?v ?w) {{ {rows} }}"

    def leaf_term(self) -> str:
        return self.literal() if self.chance(0.85) else self.pick(("UNDEF", *T.NODES))

    def dataset(self) -> str:
        """FROM and FROM NAMED some graphs, one of which is not there."""
        some = [
            f"{self.pick(('FROM', 'FROM', 'FROM NAMED'))} {self.pick((*T.GRAPHS, ':none'))}" for _ in "ab"
        ]
        return " ".join(some[: self.random.randint(1, 2)])

    def query(self, forms: str = "SSSSSSSSGGGAC") -> str:
        body = self.table() if self.chance(0.45) else self.group(2)
        if self.windows and "@w" not in body:
            body = f"@w0@ {{ {self.triples()} }} {body}"
        match self.pick(forms):
            case "G":
                text, shown = self.grouped(body)
                return text + self.order(shown)
            case "A":
                return f"ASK @from@ {{ {body} }}"
            case "C":
                return f"CONSTRUCT {{ {self.template()} }} @from@ WHERE {{ {body} }}"
            case "D":
                return f"DESCRIBE {self.known()} {self.pick(T.NODES)} @from@ WHERE {{ {body} }}"
        shown = sorted(set(self.used))
        head = self.pick(("", "", "", "DISTINCT ", "REDUCED ")) if self.chance(0.5) else ""
        if self.chance(0.3):
            return f"SELECT {head}* @from@ WHERE {{ {body} }}" + ("" if "@w" in body else self.order(shown))
        shown = self.random.sample(shown, self.random.randint(1, min(4, len(shown)))) if shown else ["?x"]
        listed = list(shown)
        for _ in range(self.random.randint(0, 3)):
            name = self.new()
            listed.append(f"({self.any(3)} AS {name})")
            shown.append(name)
        end = self.order(shown) if self.chance(0.9) else " " + self.values()
        return f"SELECT {head}{' '.join(listed)} @from@ WHERE {{ {body} }}{end}"

    def template(self) -> str:
        def end() -> str:
            return self.known() if self.chance(0.8) else self.pick((*T.NODES, "_:t"))

        some = [f"{end()} {self.pick(T.PREDICATES)} {end()}" for _ in range(self.random.randint(1, 2))]
        return " . ".join(some)


def data(random: Random, size: int, blanks: bool = True, graphs: bool = True) -> list[str]:
    """Random N-Quads, a line each."""
    nodes = T.NODES + (T.BLANKS if blanks else [])
    return list(dict.fromkeys(statement(random, nodes, graphs) for _ in range(size)))


def statement(random: Random, nodes: list[str], graphs: bool) -> str:
    place = f" {random.choice(T.GRAPHS)}" if graphs and random.random() < 0.25 else ""
    predicate = random.choice(T.PREDICATES)
    links = 0.25 if predicate in T.PREDICATES[:2] else 0.85  # :p and :q have values, :r and :s lead on
    value = random.choice(nodes) if random.random() < links else random.choice(T.LITERALS)
    return f"{random.choice(nodes)} {predicate} {value}{place} ."
