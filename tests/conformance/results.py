"""Results: read the expected ones, and say whether two are the same.

Two results are the same if there is a one-to-one renaming of blank nodes that makes them equal: as bags
of solutions, as sequences where the order counts, as sets for graphs. Terms are compared as terms;
`by_value` is the second, weaker look that forgives another spelling of the same number.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    QueryBoolean,
    QueryResultsFormat,
    QuerySolutions,
    Triple,
    parse_query_results,
)

from .w3c import RDF, Graph, Node, document, triples

RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
XSD = "http://www.w3.org/2001/XMLSchema#"
FORMATS = {".srx": QueryResultsFormat.XML, ".srj": QueryResultsFormat.JSON, ".tsv": QueryResultsFormat.TSV}

INTEGERS = {"integer", "long", "int", "short", "byte"}
INTEGERS |= {"nonNegativeInteger", "positiveInteger", "nonPositiveInteger", "negativeInteger"}
INTEGERS |= {"unsignedLong", "unsignedInt", "unsignedShort", "unsignedByte"}

Row = tuple[tuple[str, Node], ...]


@dataclass(frozen=True, slots=True)
class Rows:
    """Solutions in order. `variables` None: not known. `ordered`: the source states an order."""

    rows: tuple[Row, ...]
    variables: frozenset[str] | None = None
    ordered: bool = True


@dataclass(frozen=True, slots=True)
class Triples:
    """A graph."""

    triples: frozenset[Triple]


Result = Rows | Triples | bool


def row(bindings: Iterable[tuple[str, Node | None]]) -> Row:
    """A solution in the one form in which equal solutions are equal; what is unbound is absent."""
    return tuple(sorted(((name, term) for name, term in bindings if term is not None), key=lambda b: b[0]))


# ---------------------------------------------------------------------------- reading


def read_expected(iri: str) -> Result:
    """The expected result in any of the formats the suites use."""
    path = document(iri)
    if path.suffix == ".csv":
        return read_csv(path.read_text(encoding="utf-8"))
    if path.suffix in FORMATS:
        return from_query_results(parse_query_results(path.read_bytes(), format=FORMATS[path.suffix]))
    graph = Graph(iri)
    found = graph.subjects.get((RDF + "type", NamedNode(RS + "ResultSet")))
    return read_result_set(graph, found[0]) if found else Triples(frozenset(triples(iri)))


def from_query_results(results: QuerySolutions | QueryBoolean) -> Result:
    """pyoxigraph's results as ours."""
    if isinstance(results, QueryBoolean):
        return bool(results)
    names = [v.value for v in results.variables]
    return Rows(tuple(row(zip(names, solution, strict=True)) for solution in results), frozenset(names))


def read_csv(text: str) -> Rows:
    """CSV results know no types: every value is a plain string, except blank nodes."""
    names, *lines = csv.reader(io.StringIO(text))

    def term(cell: str) -> Node | None:
        return BlankNode(cell[2:]) if cell.startswith("_:") else Literal(cell) if cell else None

    return Rows(tuple(row(zip(names, map(term, line), strict=True)) for line in lines), frozenset(names))


def as_csv(rows: Rows) -> Rows:
    """What is left of a result when it goes through CSV."""

    def plain(term: Node) -> Node | None:
        if isinstance(term, BlankNode | Triple):
            return term
        return Literal(term.value) if term.value else None

    return Rows(tuple(row((n, plain(t)) for n, t in r) for r in rows.rows), rows.variables)


def read_result_set(graph: Graph, result_set: Node) -> Rows | bool:
    """The result-set vocabulary of the early suites: solutions (with an index where order counts)."""
    boolean = graph.text(result_set, RS + "boolean")
    if boolean is not None:
        return boolean == "true"
    found: list[tuple[int, Row]] = []
    for solution in graph.values(result_set, RS + "solution"):
        bindings = []
        for binding in graph.values(solution, RS + "binding"):
            name = graph.text(binding, RS + "variable")
            assert name is not None, "a binding without a variable"
            bindings.append((name, graph.value(binding, RS + "value")))
        found.append((int(graph.text(solution, RS + "index") or -1), row(bindings)))
    variables = frozenset(graph.texts(result_set, RS + "resultVariable"))
    ordered = bool(found) and all(index >= 0 for index, _ in found)
    rows = tuple(r for _, r in (sorted(found, key=lambda f: f[0]) if ordered else found))
    return Rows(rows, variables, ordered)


# ---------------------------------------------------------------------------- comparing


def difference(actual: Result, expected: Result, *, in_order: bool = False, lax: bool = False) -> str | None:
    """What differs, for a person to read; None if nothing does.

    `in_order` asks for the order, if the expected result states one; `lax` (REDUCED) asks only that
    the distinct solutions agree and that none comes more often than expected.
    """
    if isinstance(actual, bool) or isinstance(expected, bool):
        return None if actual is expected else f"expected {expected}, got {actual}"
    if isinstance(expected, Triples):
        if not isinstance(actual, Triples):
            return f"expected a graph, got {actual}"
        left, right = as_rows(actual), as_rows(expected)
        return None if isomorphic(left, right) else show(left, right)
    if not isinstance(actual, Rows):
        return f"expected solutions, got {actual}"
    if None not in (actual.variables, expected.variables) and actual.variables != expected.variables:
        return f"expected the variables {set(expected.variables or ())}, got {set(actual.variables or ())}"
    if lax:
        fewer = not Counter(actual.rows) - Counter(expected.rows)
        same = fewer and set(actual.rows) == set(expected.rows)
    else:
        same = isomorphic(actual.rows, expected.rows, in_order=in_order and expected.ordered)
    return None if same else show(actual.rows, expected.rows)


def as_rows(graph: Triples) -> tuple[Row, ...]:
    """Triples as solutions of ?s ?p ?o, so that one matcher serves both."""
    return tuple((("s", t.subject), ("p", t.predicate), ("o", t.object)) for t in graph.triples)


def show(actual: Sequence[Row], expected: Sequence[Row]) -> str:
    """Both results, what they share left out if the rest is not empty."""
    extra, missing = Counter(actual) - Counter(expected), Counter(expected) - Counter(actual)
    if not extra and not missing:
        return "same solutions in another order:\n" + lines("got", actual) + lines("expected", expected)
    got, wanted = list(extra.elements()), list(missing.elements())
    return "different solutions:\n" + lines("got", got) + lines("expected", wanted)


def lines(label: str, rows: Sequence[Row], most: int = 12) -> str:
    """At most `most` solutions, one a line."""
    shown = [f"  {label}: " + " ".join(f"?{name}={term}" for name, term in r) for r in rows[:most]]
    return "\n".join(shown + ([f"  … {len(rows)} in all"] if len(rows) > most else [])) + "\n"


def isomorphic(left: Sequence[Row], right: Sequence[Row], *, in_order: bool = False) -> bool:
    """Whether a one-to-one renaming of blank nodes makes the bags (or the sequences) equal."""
    if len(left) != len(right):
        return False
    left_colours, right_colours = colours(left), colours(right)
    left_keys = [painted(r, left_colours) for r in left]
    right_keys = [painted(r, right_colours) for r in right]
    if left_keys != right_keys if in_order else Counter(left_keys) != Counter(right_keys):
        return False
    if not left_colours:
        return True
    candidates: dict[object, list[int]] = {}
    for i, key in enumerate(right_keys):
        candidates.setdefault(key, []).append(i)
    choices = [[i] if in_order else candidates[key] for i, key in enumerate(left_keys)]
    order = [i for i in sorted(range(len(left)), key=lambda i: len(choices[i])) if blanks(left[i])]
    return match(0, order, choices, left, right, {}, {}, set())


def match(
    depth: int,
    order: list[int],
    choices: list[list[int]],
    left: Sequence[Row],
    right: Sequence[Row],
    forth: dict[BlankNode, BlankNode],
    back: dict[BlankNode, BlankNode],
    used: set[int],
) -> bool:
    """Give every solution on the left one on the right, going back where the renaming does not hold."""
    if depth == len(order):
        return True
    i = order[depth]
    for j in choices[i]:
        pairs = set(zip(blanks(left[i]), blanks(right[j]), strict=True))
        one_to_one = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)
        holds = all(forth.get(a, b) == b and back.get(b, a) == a for a, b in pairs)
        if j in used or not one_to_one or not holds:
            continue
        new = [(a, b) for a, b in pairs if a not in forth]
        forth.update(new)
        back.update((b, a) for a, b in new)
        used.add(j)
        if match(depth + 1, order, choices, left, right, forth, back, used):
            return True
        used.remove(j)
        for a, b in new:
            del forth[a], back[b]
    return False


def blanks(r: Row) -> list[BlankNode]:
    """The blank nodes of a solution, in the order of its variables."""
    return [term for _, term in r if isinstance(term, BlankNode)]


def painted(r: Row, colour: dict[BlankNode, int]) -> tuple[tuple[str, object], ...]:
    """The solution with each blank node replaced by its colour."""
    return tuple((name, colour[term] if isinstance(term, BlankNode) else term) for name, term in r)


def colours(rows: Sequence[Row], rounds: int = 3) -> dict[BlankNode, int]:
    """A number per blank node that depends on what surrounds it and not on its label.

    Blank nodes with different colours can never be each other's image, which leaves the matcher
    almost nothing to try."""
    colour = {blank: 0 for r in rows for blank in blanks(r)}
    for _ in range(rounds if colour else 0):
        seen: dict[BlankNode, list[int]] = {blank: [] for blank in colour}
        for r in rows:
            around = painted(r, colour)
            for place, (_, term) in enumerate(r):
                if isinstance(term, BlankNode):
                    seen[term].append(hash((place, around)))
        colour = {blank: hash((colour[blank], tuple(sorted(found)))) for blank, found in seen.items()}
    return colour


# ---------------------------------------------------------------------------- by value


def by_value(result: Result) -> Result:
    """The result with every numeric and boolean literal in one spelling per value and datatype."""
    if isinstance(result, Rows):
        rows = tuple(tuple((name, normal(term)) for name, term in r) for r in result.rows)
        return Rows(rows, result.variables, result.ordered)
    if isinstance(result, Triples):
        return Triples(frozenset(Triple(t.subject, t.predicate, normal(t.object)) for t in result.triples))
    return result


def normal(term: Node) -> Node:
    """One spelling for all literals of one datatype and value; ill-formed ones stay as they are."""
    if not isinstance(term, Literal) or not term.datatype.value.startswith(XSD):
        return term
    kind, text = term.datatype.value.removeprefix(XSD), term.value.strip()
    try:
        if kind in ("double", "float"):
            return Literal(repr(float(text.replace("INF", "inf"))), datatype=term.datatype)
        if kind == "decimal":
            return Literal(format(Decimal(text).normalize(), "f"), datatype=term.datatype)
        if kind in INTEGERS:
            return Literal(str(int(text)), datatype=term.datatype)
    except (ValueError, InvalidOperation):
        return term
    if kind == "boolean" and text in ("1", "0"):
        return Literal("true" if text == "1" else "false", datatype=term.datatype)
    return term
