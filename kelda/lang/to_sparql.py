"""Algebra -> SPARQL 1.1 text, as pyoxigraph understands it.

Windows become named graphs: `InWindow(w, P)` is written as `GRAPH <graph of w> { P }`. A window
whose content is a *bag of elements* is written against its *row graph*, in which each element is
a node of its own:

    ?row <urn:kelda:s> s ; <urn:kelda:p> p ; <urn:kelda:o> o .

so that an element that came twice matches twice, which no graph of plain triples could do.

Every operator is written in braces of its own and every sub-select spells out its variables, so
the text means exactly the tree and nothing is left to scoping rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from math import prod

from pyoxigraph import Literal, NamedNode, Triple

from kelda.errors import KeldaError
from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.expression_text import ExpressionText
from kelda.lang.scope import visible_vars
from kelda.lang.walk import has, nodes
from kelda.rdf.aggregates import aggregate_name
from kelda.rdf.exact import Needs, to_store_with_needs
from kelda.rdf.operators import ERROR, name_of

WINDOW_PREFIX = "urn:kelda:window:"
ROW_S, ROW_P, ROW_O = ("<urn:kelda:s>", "<urn:kelda:p>", "<urn:kelda:o>")

# SPARQL 1.1 cannot write an empty projection: a constant that no one reads stands in for it.
NOTHING = "_kelda_nothing"  # the start of its name: each has its own


@dataclass(frozen=True, slots=True)
class WindowGraph:
    """Where a window's content lies: the stream it reads, its graph, and whether that graph
    holds rows (a bag of elements) beside `<graph>:rows` or only triples (a set)."""

    stream: NamedNode
    graph: str
    as_rows: bool = False

    @property
    def rows(self) -> str:
        """The name of the row graph."""
        return self.graph + ":rows"


@dataclass
class _Writer(ExpressionText):
    windows: Mapping[str, tuple[WindowGraph, ...]] | None
    stream_vars: Mapping[str, A.Var]
    now: Literal | None
    named_graphs: tuple[NamedNode, ...] | None = None
    needs: Needs = Needs.NOTHING
    plain: bool = False
    rows: bool = False  # inside a window that is a bag of elements
    graph: str | None = None  # the graph clause we stand in, for what must be repeated inside
    fresh: count[int] = field(default_factory=count)

    # -------------------------------------------------------------- terms and expressions

    def term(self, term: object) -> str:
        if isinstance(term, A.Var):
            return "?" + variable_name(term)
        if isinstance(term, A.Param):
            raise KeldaError(f"parameter ${term.name} has no value: bind it before the query runs")
        if isinstance(term, NamedNode | Literal):
            stored, needs = to_store_with_needs(term)
            self.needs |= needs
            return str(stored)
        if isinstance(term, Triple):
            return f"<<( {self.term(term.subject)} {self.term(term.predicate)} {self.term(term.object)} )>>"
        raise TypeError(f"not a term: {term!r}")

    def aggregate(self, aggregate: A.Aggregate, over: A.Pattern) -> str:
        op, arg = aggregate.op, aggregate.arg
        word = "DISTINCT " if aggregate.distinct else ""
        tail = "" if aggregate.separator is None else f" ; SEPARATOR = {Literal(aggregate.separator)}"
        if arg is None:
            return f"{op}({word}*)"
        if op in ("SUM", "AVG", "MIN", "MAX") and not self.plain and not self.adds_up(op, arg, over):
            return f"{aggregate_name(op, aggregate.distinct)}({self.expr(arg)})"
        if op in ("SUM", "AVG", "MIN", "MAX"):
            text = self.value(arg, self.native)
        elif op == "COUNT" and not isinstance(arg, A.VarRef) and not self.plain:
            # Errors do not count; pyoxigraph makes an error of the whole.
            if aggregate.distinct:
                return f"{aggregate_name(op, True)}(COALESCE({self.expr(arg)}, {ERROR}))"
            return f"SUM(COALESCE(IF(ISLITERAL({self.expr(arg)}), 1, 1), 0))"
        elif op == "GROUP_CONCAT" and aggregate.distinct and not self.plain:
            separator = Literal(" " if aggregate.separator is None else aggregate.separator)
            return f"{aggregate_name(op, True)}({name_of('MEMBER')}({self.expr(arg)}, {separator}))"
        elif op == "GROUP_CONCAT":
            # Of the texts of its members, whatever they are; pyoxigraph takes strings only.
            text = f"STR({self.expr(arg)})"
        else:
            text = self.expr(arg)
        return f"{op}({word}{text}{tail})"

    def adds_up(self, op: str, arg: A.Expr, over: A.Pattern) -> bool:
        """Whether Oxigraph's own aggregate is exact: a sum of small numbers that are in the data as such."""
        if op not in ("SUM", "AVG") or self.needs & (Needs.SUMS | Needs.SPELLING):
            return False
        makers = (A.Extend, A.Values, A.Group, A.Service)
        return isinstance(arg, A.VarRef) and not has(over, makers)

    def path(self, path: A.Path) -> str:
        match path:
            case A.Link(iri):
                return str(iri)
            case A.Inverse(inner):
                return f"^({self.path(inner)})"
            case A.Sequence(parts):
                return "(" + " / ".join(self.path(p) for p in parts) + ")"
            case A.Alternative(parts):
                return "(" + " | ".join(self.path(p) for p in parts) + ")"
            case A.Repeat(inner, at_least, unbounded):
                sign = "?" if not unbounded else "*" if at_least == 0 else "+"
                return f"({self.path(inner)}){sign}"
            case A.NegatedSet(forward, inverse):
                return "!(" + " | ".join([str(i) for i in forward] + [f"^{i}" for i in inverse]) + ")"
        raise TypeError(f"not a path: {path!r}")

    # -------------------------------------------------------------- patterns

    def nested(self, pattern: A.Pattern) -> str:
        return "{ " + self.group(pattern) + " }"

    def group(self, pattern: A.Pattern) -> str:
        """The inside of a group that means `pattern`."""
        match pattern:
            case A.Triples(patterns):
                return " ".join(self.triple(t) for t in patterns)
            case A.PathPattern(s, path, o):
                return self.on_triples(self.path_pattern(s, path, o))
            case A.Join(left, right):
                return f"{self.before(left)} {self.nested(right)}"
            case A.LeftJoin(left, right, condition):
                where = "" if condition is None else f" FILTER({self.condition(condition)})"
                # A filter in the very group of OPTIONAL sees the left side: only the condition may.
                return f"{self.before(left)} OPTIONAL {{ {self.nested(right)}{where} }}"
            case A.Union(left, right):
                return f"{self.nested(left)} UNION {self.nested(right)}"
            case A.Minus(left, right):
                return f"{self.before(left)} MINUS {self.nested(right)}"
            case A.Filter(condition, inner):
                return f"{self.before(inner)} FILTER({self.condition(condition)})"
            case A.Extend(inner, var, expr):
                return f"{self.before(inner)} BIND({self.expr(expr)} AS {self.term(var)})"
            case A.Values(variables, rows):
                return self.values(variables, rows)
            case A.InGraph(name, inner):
                return self.in_graph(name, inner)
            case A.InWindow(window, inner):
                return self.in_window(window, inner)
            case A.Service(name, inner, silent):
                word = "SILENT " if silent else ""
                return f"SERVICE {word}{self.term(name)} {self.nested(inner)}"
        return "{ " + self.select(pattern) + " }"

    def before(self, pattern: A.Pattern) -> str:
        """What stands before the last element of a group. An element applies to all before it in its group,
        so a row of them needs no braces around its beginning."""
        in_a_row = isinstance(pattern, A.Join | A.LeftJoin | A.Minus | A.Extend)
        return self.group(pattern) if in_a_row else self.nested(pattern)

    def triple(self, t: A.TriplePattern) -> str:
        s, p, o = self.term(t.s), self.term(t.p), self.term(t.o)
        if not self.rows:
            return f"{s} {p} {o} ."
        # A blank node is a variable that no SELECT can see: the row's identity multiplies the
        # solution without showing.
        row = f"_:row{next(self.fresh)}"
        return f"{row} {ROW_S} {s} . {row} {ROW_P} {p} . {row} {ROW_O} {o} ."

    def on_triples(self, text: str) -> str:
        """Text that needs plain triples, also where the active graph is a row graph."""
        return f"GRAPH <{self.graph}> {{ {text} }}" if self.rows else text

    def path_pattern(self, s: A.TermOrVar, path: A.Path, o: A.TermOrVar) -> str:
        """A path, and what pyoxigraph leaves out: a term in no triple has a path of length zero to itself."""
        text = f"{self.term(s)} {self.path(path)} {self.term(o)} ."
        empties = ways_to_stay(path)
        if not empties or (isinstance(s, A.Var) and isinstance(o, A.Var)):
            return text
        if not isinstance(s, A.Var) and not isinstance(o, A.Var) and s != o:
            return text
        term = self.term(o if isinstance(s, A.Var) else s)
        head = " ".join(self.term(v) for v in (s, o) if isinstance(v, A.Var))
        rows = f"({term}) " * empties if head else "() " * empties
        known = f"{term} {self.path(path)} {term} ."
        return f"{{ {text} }} UNION {{ VALUES ({head}) {{ {rows}}} FILTER NOT EXISTS {{ {known} }} }}"

    def values(
        self, variables: tuple[A.Var, ...], rows: tuple[tuple[A.Term | A.Param | None, ...], ...]
    ) -> str:
        head = " ".join(self.term(v) for v in variables)
        cells = (" ".join("UNDEF" if c is None else self.term(c) for c in row) for row in rows)
        return f"VALUES ({head}) {{ " + " ".join(f"({row})" for row in cells) + " }"

    def in_graph(self, name: NamedNode | A.Var | A.Param, inner: A.Pattern) -> str:
        was, self.rows = self.rows, False
        body = self.nested(inner)
        self.rows = was
        if isinstance(name, A.Var) and self.named_graphs is not None and is_graph_by_graph(name, inner):
            each = (f"{{ GRAPH {g} {body} VALUES {self.term(name)} {{ {g} }} }}" for g in self.named_graphs)
            return " UNION ".join(each) or f"VALUES {self.term(name)} {{ }}"
        text = f"GRAPH {self.term(name)} {body}"
        if isinstance(name, A.Var) and self.windows is not None:
            var = self.term(name)
            text += f' FILTER(!(isIRI({var}) && STRSTARTS(STR({var}), "{WINDOW_PREFIX}")))'
        return text

    def in_window(self, window: str, inner: A.Pattern) -> str:
        assert self.windows is not None
        alternatives = [self.in_window_graph(w, inner) for w in self.windows[window]]
        var = self.stream_vars.get(window)
        if var is None:
            (only,) = alternatives
            return only
        if not alternatives:  # no stream known yet: no solution
            return f"VALUES {self.term(var)} {{ }}"
        return " UNION ".join(
            f"{{ {{ {text} }} VALUES {self.term(var)} {{ {w.stream} }} }}"
            for w, text in zip(self.windows[window], alternatives, strict=True)
        )

    def in_window_graph(self, window: WindowGraph, inner: A.Pattern) -> str:
        was = (self.rows, self.graph)
        self.rows, self.graph = window.as_rows, window.graph
        body = self.nested(inner)
        self.rows, self.graph = was
        return f"GRAPH <{window.rows if window.as_rows else window.graph}> {body}"

    # -------------------------------------------------------------- selects

    def select(self, pattern: A.Pattern) -> str:
        """`pattern` as a SELECT query; modifiers are peeled from the outside in, as SPARQL nests them."""
        tail = ""
        if isinstance(pattern, A.Slice):
            tail = f" OFFSET {pattern.offset}" if pattern.offset else ""
            tail += "" if pattern.limit is None else f" LIMIT {pattern.limit}"
            pattern = pattern.pattern
        word = ""
        if isinstance(pattern, A.Distinct | A.Reduced):
            word = "DISTINCT " if isinstance(pattern, A.Distinct) else "REDUCED "
            pattern = pattern.pattern
        head: str | None = None
        if isinstance(pattern, A.Project):
            head = " ".join(self.term(v) for v in pattern.vars) or f"(1 AS {self.nothing()})"
            pattern = pattern.pattern
        if isinstance(pattern, A.OrderBy):
            keys = " ".join(f"{'DESC' if down else 'ASC'}({self.sort_key(e)})" for e, down in pattern.keys)
            tail = f" ORDER BY {keys}{tail}"
            pattern = pattern.pattern
        if isinstance(pattern, A.Group) and head is None and not word and not tail:
            return self.select_group(pattern)
        return f"SELECT {word}{'*' if head is None else head} WHERE {self.nested(pattern)}{tail}"

    def nothing(self) -> str:
        return f"?{NOTHING}{next(self.fresh)}"

    def select_group(self, group: A.Group) -> str:
        keys = [self.term(k) for k in group.keys]
        parts = keys + [
            f"({self.aggregate(a, group.pattern)} AS {self.term(v)})" for v, a in group.aggregates
        ]
        if not parts:  # one group, nothing asked of it
            parts = [f"(COUNT(*) AS {self.nothing()})"]
        by = f" GROUP BY {' '.join(keys)}" if keys else ""
        return f"SELECT {' '.join(parts)} WHERE {self.nested(group.pattern)}{by}"


def variable_name(var: A.Var) -> str:
    """The name as SPARQL can write it; hidden variables (dot names) get a name no user writes."""
    return "_kelda_" + var.name[1:] if var.name.startswith(".") else var.name


@roomy()
def to_sparql(
    query: A.Query,
    *,
    windows: Mapping[str, tuple[WindowGraph, ...]] | None = None,
    now: Literal | None = None,
    named_graphs: tuple[NamedNode, ...] | None = None,
    needs: Needs = Needs.NOTHING,
    plain: bool = False,
) -> str:
    """The text of `query` without its dataset clause (pass that to the store beside the text).

    `windows` tells the graphs of each window: one, or for `STREAM ?var` one per known stream; None if there
    are no windows in the store, of other queries neither.
    `now` replaces NOW(): a continuous query's present is its tick, not the wall clock.
    `named_graphs` are the graphs that GRAPH ?g ranges over; see `is_graph_by_graph`.
    `needs`: what the literals that there are ask for; see `kelda.rdf.exact`.
    `plain`: operators as they stand, for readers; see `kelda.lang.expression_text`.
    """
    stream_vars = {w.name: w.stream for w in query.windows if isinstance(w.stream, A.Var)}
    while True:
        writer = _Writer(windows, stream_vars, now, named_graphs, needs, plain)
        text = _write(writer, query)
        if writer.needs == needs:
            return text
        needs = writer.needs  # the query itself has literals, or can make some, that ask for more


_NAMED = A.Var(".named")


def _write(writer: _Writer, query: A.Query) -> str:
    match query.form:
        case A.Form.SELECT:
            return writer.select(query.pattern)
        case A.Form.ASK:
            return f"ASK {writer.nested(query.pattern)}"
        case A.Form.CONSTRUCT:
            bound = visible_vars(query.pattern)
            template = " ".join(_template_triple(writer, t, bound) for t in query.template)
            return f"CONSTRUCT {{ {template} }} WHERE {writer.nested(query.pattern)}"
        case A.Form.DESCRIBE:
            # What is named by its IRI is described even if the pattern has no solution.
            named = tuple((t,) for t in query.describe if isinstance(t, NamedNode))
            pattern = A.Union(query.pattern, A.Values((_NAMED,), named)) if named else query.pattern
            variables = [t for t in query.describe if isinstance(t, A.Var)] + [_NAMED] * bool(named)
            return f"DESCRIBE {' '.join(map(writer.term, variables))} WHERE {writer.nested(pattern)}"


def ways_to_stay(path: A.Path) -> int:
    """In how many ways the path leads from a term to itself without following any triple."""
    match path:
        case A.Inverse(inner):
            return ways_to_stay(inner)
        case A.Sequence(parts):
            return prod(ways_to_stay(p) for p in parts)
        case A.Alternative(parts):
            return sum(ways_to_stay(p) for p in parts)
        case A.Repeat(inner, at_least, _):
            return 1 if at_least == 0 or ways_to_stay(inner) else 0
    return 0


def is_graph_by_graph(name: A.Var, inner: A.Pattern) -> bool:
    """Whether GRAPH ?g {inner} must be written out as one GRAPH per named graph.

    SPARQL evaluates the group in each graph alone and joins ?g afterwards; pyoxigraph lets ?g take
    part inside. That is the same for plain patterns that do not mention ?g, and for nothing else. A path
    that may stay at a term which the query names is there in every graph, without any triple to say which.
    """
    plain = (A.Triples, A.TriplePattern, A.PathPattern, A.Path, A.Join, A.Union, A.Filter, A.Expr, A.Var)
    return any(
        node == name
        or isinstance(node, A.Exists)
        or not isinstance(node, plain)
        or (isinstance(node, A.PathPattern) and _stays_at_a_name(node))
        for node in nodes(inner)
    )


def _stays_at_a_name(pattern: A.PathPattern) -> bool:
    may_stay = any(isinstance(node, A.Repeat) and node.at_least == 0 for node in nodes(pattern.path))
    return may_stay and not (isinstance(pattern.s, A.Var) and isinstance(pattern.o, A.Var))


def has_graph_by_graph(query: A.Query) -> bool:
    """Whether the text of `query` depends on which named graphs there are."""
    return any(
        isinstance(node, A.InGraph)
        and isinstance(node.name, A.Var)
        and is_graph_by_graph(node.name, node.pattern)
        for node in nodes(query.pattern)
    )


def _template_triple(writer: _Writer, t: A.TriplePattern, bound: frozenset[A.Var]) -> str:
    def part(term: A.TermOrVar) -> str:
        if isinstance(term, A.Var) and term.name.startswith(".") and term not in bound:
            return "_:" + variable_name(term)
        return writer.term(term)

    return f"{part(t.s)} {part(t.p)} {part(t.o)} ."
