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
from kelda.lang.scope import visible
from kelda.lang.timestamps import TIMESTAMP
from kelda.lang.walk import nodes
from kelda.rdf.exact import DATATYPE_OF, VALUE_OF, to_store

WINDOW_PREFIX = "urn:kelda:window:"
ROW_S, ROW_P, ROW_O = ("<urn:kelda:s>", "<urn:kelda:p>", "<urn:kelda:o>")

# SPARQL 1.1 cannot write an empty projection: a constant that no one reads stands in for it.
NOTHING = "_kelda_nothing"  # the start of its name: each has its own

INFIX = frozenset(["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/"])

# Built-ins that look at terms, not at their values, and those that hand on one of their arguments.
PASSES_TERMS = frozenset(["IF", "COALESCE"])
TAKES_TERMS = frozenset(
    ["BOUND", "SAMETERM", "STR", "LANG", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "DATATYPE", "COALESCE"]
)


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
class _Writer:
    windows: Mapping[str, tuple[WindowGraph, ...]]
    stream_vars: Mapping[str, A.Var]
    now: Literal | None
    named_graphs: tuple[NamedNode, ...] | None = None
    exact: bool = False
    must_be_exact: bool = False  # the query itself has a constant whose spelling must be kept
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
            stored = to_store(term)
            self.must_be_exact |= stored is not term
            return str(stored)
        if isinstance(term, Triple):
            return f"<<( {self.term(term.subject)} {self.term(term.predicate)} {self.term(term.object)} )>>"
        raise TypeError(f"not a term: {term!r}")

    def expr(self, expr: A.Expr) -> str:
        match expr:
            case A.Const(term):
                return self.term(term)
            case A.VarRef(var):
                return self.term(var)
            case A.Exists(pattern):
                return f"EXISTS {self.nested(pattern)}"
            case A.FunctionCall(function, args) if function == TIMESTAMP:  # of terms, not of their values
                return f"{function}({', '.join(self.expr(arg) for arg in args)})"
            case A.FunctionCall(function, args, distinct):
                word = "DISTINCT " if distinct else ""
                return f"{function}({word}{self.values_of(args)})"
            case A.Call("NOW", _) if self.now is not None:
                return str(self.now)
            case A.Call("!", (arg,)):
                return f"(! {self.value(arg)})"
            case A.Call("U+" | "U-" as op, (arg,)):
                return f"({op[1]} {self.value(arg)})"
            case A.Call("IN" | "NOT IN" as op, args):
                return f"({self.value(args[0])} {op} ({self.values_of(args[1:])}))"
            case A.Call("IF", (condition, *branches)):
                return f"IF({self.value(condition)}, {', '.join(self.expr(b) for b in branches)})"
            case A.Call("DATATYPE", (arg,)) if self.exact:
                return f"{DATATYPE_OF}({self.expr(arg)})"
            case A.Call("&&" | "||" as op, args):
                return _balanced(op, [self.value(arg) for arg in args])
            case A.Call(op, args) if op in INFIX:
                return "(" + f" {op} ".join(self.value(arg) for arg in args) + ")"
            case A.Call(op, args) if op in TAKES_TERMS:
                return f"{op}({', '.join(self.expr(arg) for arg in args)})"
            case A.Call(op, args):
                return f"{op}({self.values_of(args)})"
        raise TypeError(f"not an expression: {expr!r}")

    def value(self, expr: A.Expr) -> str:
        """The expression where its value counts, not its spelling."""
        if isinstance(expr, A.Const) and isinstance(expr.term, Literal):
            return str(expr.term)
        text = self.expr(expr)
        is_term = isinstance(expr, A.VarRef) or (isinstance(expr, A.Call) and expr.op in PASSES_TERMS)
        return f"{VALUE_OF}({text})" if self.exact and is_term else text

    def values_of(self, args: tuple[A.Expr, ...]) -> str:
        return ", ".join(self.value(arg) for arg in args)

    def aggregate(self, aggregate: A.Aggregate) -> str:
        word = "DISTINCT " if aggregate.distinct else ""
        if aggregate.arg is None:
            arg = "*"
        elif aggregate.op in ("SUM", "AVG", "MIN", "MAX"):
            arg = self.value(aggregate.arg)
        elif aggregate.op == "GROUP_CONCAT":
            # Of the texts of its members, whatever they are; pyoxigraph takes strings only.
            arg = f"STR({self.expr(aggregate.arg)})"
        else:
            arg = self.expr(aggregate.arg)
        tail = "" if aggregate.separator is None else f" ; SEPARATOR = {Literal(aggregate.separator)}"
        return f"{aggregate.op}({word}{arg}{tail})"

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
                where = "" if condition is None else f" FILTER({self.value(condition)})"
                # A filter in the very group of OPTIONAL sees the left side: only the condition may.
                return f"{self.before(left)} OPTIONAL {{ {self.nested(right)}{where} }}"
            case A.Union(left, right):
                return f"{self.nested(left)} UNION {self.nested(right)}"
            case A.Minus(left, right):
                return f"{self.before(left)} MINUS {self.nested(right)}"
            case A.Filter(condition, inner):
                return f"{self.before(inner)} FILTER({self.value(condition)})"
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
        if isinstance(name, A.Var) and self.windows:
            var = self.term(name)
            text += f' FILTER(!(isIRI({var}) && STRSTARTS(STR({var}), "{WINDOW_PREFIX}")))'
        return text

    def in_window(self, window: str, inner: A.Pattern) -> str:
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
            keys = " ".join(f"{'DESC' if down else 'ASC'}({self.value(e)})" for e, down in pattern.keys)
            tail = f" ORDER BY {keys}{tail}"
            pattern = pattern.pattern
        if isinstance(pattern, A.Group) and head is None and not word and not tail:
            return self.select_group(pattern)
        return f"SELECT {word}{'*' if head is None else head} WHERE {self.nested(pattern)}{tail}"

    def nothing(self) -> str:
        return f"?{NOTHING}{next(self.fresh)}"

    def select_group(self, group: A.Group) -> str:
        keys = [self.term(k) for k in group.keys]
        parts = keys + [f"({self.aggregate(a)} AS {self.term(v)})" for v, a in group.aggregates]
        if not parts:  # one group, nothing asked of it
            parts = [f"(COUNT(*) AS {self.nothing()})"]
        by = f" GROUP BY {' '.join(keys)}" if keys else ""
        return f"SELECT {' '.join(parts)} WHERE {self.nested(group.pattern)}{by}"


def _balanced(op: str, parts: list[str]) -> str:
    """The parts joined two by two, for whoever reads the text makes a tree of it."""
    while len(parts) > 1:
        pairs = [f"({a} {op} {b})" for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]


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
    exact: bool = False,
) -> str:
    """The text of `query` without its dataset clause (pass that to the store beside the text).

    `windows` tells the graphs of each window: one, or for `STREAM ?var` one per known stream.
    `now` replaces NOW(): a continuous query's present is its tick, not the wall clock.
    `named_graphs` are the graphs that GRAPH ?g ranges over; see `is_graph_by_graph`.
    `exact`: the store holds literals in their exact spelling; see `kelda.rdf.exact`.
    """
    stream_vars = {w.name: w.stream for w in query.windows if isinstance(w.stream, A.Var)}
    writer = _Writer(windows or {}, stream_vars, now, named_graphs, exact)
    text = _write(writer, query)
    if writer.must_be_exact and not exact:
        text = _write(_Writer(windows or {}, stream_vars, now, named_graphs, True), query)
    return text


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
            terms = " ".join(writer.term(t) for t in query.describe)
            return f"DESCRIBE {terms} WHERE {writer.nested(query.pattern)}"


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
    part inside. That is the same for plain patterns that do not mention ?g, and for nothing else.
    """
    plain = (A.Triples, A.TriplePattern, A.PathPattern, A.Path, A.Join, A.Union, A.Filter, A.Expr, A.Var)
    return any(
        node == name or isinstance(node, A.Exists) or not isinstance(node, plain) for node in nodes(inner)
    )


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


def visible_vars(pattern: A.Pattern) -> frozenset[A.Var]:
    """The variables that a solution of `pattern` may bind."""
    return frozenset(visible(pattern))
