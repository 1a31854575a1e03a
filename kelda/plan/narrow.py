"""Which stored data a window's triples must fit: what does not fit need not be sent to any shard.

In `?user :account_of :me . STREAM … { ?user :creator_of ?post }` only posts of the users that the stored
pattern finds can be part of an answer. So the pattern over the window is *narrowed*, at its variable ?user,
by the stored patterns that every solution with it is joined with.

The law here is that of routing: a pattern may be narrowed less than possible, never more. Stored parts narrow
what they are joined with, and the right side of an OPTIONAL whose left side they are in; not the right side
from outside (it may stay unbound), not what a sub-select, a group or a MINUS looks at by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyoxigraph import NamedNode

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.walk import children, exists_in, has, mentioned, nodes
from kelda.plan.partition import WindowPattern

MOST = 10_000  # values that a pattern is narrowed to

Around = tuple[A.Pattern, ...]


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The values that a pattern can have at a place are among those of `stored`, a query over stored graphs
    for one variable. If these are more than MOST, they say nothing."""

    place: str  # "s" or "o"
    stored: A.Query


@roomy()
def narrowings(query: A.Query) -> dict[WindowPattern, list[tuple[Narrowing, ...]]]:
    """For each pattern over a window: for each of its places in the query, by what it is narrowed there. A
    triple is to be sent if it fits at one of them."""
    streams = {w.name: w.stream.value for w in query.windows if isinstance(w.stream, NamedNode)}
    found: dict[WindowPattern, list[tuple[Narrowing, ...]]] = {}

    def visit(node: A.Pattern, around: Around, windows: tuple[str, ...]) -> None:
        match node:
            case A.InWindow(name, inner):
                visit(inner, around, (name,))
            case A.InGraph():
                pass  # stored
            case A.Triples(patterns):
                for name in windows:
                    for t in patterns:
                        if name in streams:
                            by = _narrowed(query, t, around)
                            found.setdefault(WindowPattern(streams[name], t), []).append(by)
            case A.Join(left, right):
                visit(left, (*around, *_stored(right, windows)), windows)
                visit(right, (*around, *_stored(left, windows)), windows)
            case A.LeftJoin(left, right):
                visit(left, around, windows)
                visit(right, _stored(left, windows), windows)
                _inside(node.condition, windows)
            case A.Union(left, right):
                visit(left, around, windows)
                visit(right, around, windows)
            case A.Filter(condition, inner):
                visit(inner, around, windows)
                _inside(condition, windows)
            case _:
                for child in children(node):
                    visit(child, (), windows)

    def _inside(expression: object, windows: tuple[str, ...]) -> None:
        """Patterns of EXISTS are looked at by themselves."""
        for looked_up in exists_in(expression):
            visit(looked_up, (), windows)

    visit(query.pattern, (), query.dataset.windows)
    return found


def _stored(node: A.Pattern, windows: tuple[str, ...]) -> Around:
    """The parts of a pattern that are stored triples or inline data, and that every solution of it fits."""
    match node:
        case A.Join(left, right):
            return _stored(left, windows) + _stored(right, windows)
        case A.LeftJoin(left, _) | A.Minus(left, _):
            return _stored(left, windows)
        case A.Filter(_, inner):
            return _stored(inner, windows)
        case A.Triples(patterns):
            says = bool(patterns) and not windows
        case A.InGraph(NamedNode(), A.Triples(patterns)):
            says = bool(patterns)
        case A.Values(_, rows):
            says = all(None not in row for row in rows)
        case _:
            says = False
    # What has a parameter is another pattern for each query.
    return (node,) if says and not has(node, A.Param) else ()


def _narrowed(query: A.Query, pattern: A.TriplePattern, around: Around) -> tuple[Narrowing, ...]:
    found = []
    for place in ("s", "o"):
        variable = getattr(pattern, place)
        parts = _connected(variable, around) if isinstance(variable, A.Var) else ()
        if any(map(_is_selective, parts)):
            together = parts[0]
            for part in parts[1:]:
                together = A.Join(together, part)
            asked = A.Slice(A.Distinct(A.Project(together, (variable,))), 0, MOST + 1)
            dataset = replace(query.dataset, windows=())
            found.append(Narrowing(place, A.Query(A.Form.SELECT, asked, dataset=dataset)))
    return tuple(found)


def _connected(variable: A.Var, around: Around) -> Around:
    """The parts that have the variable, or a variable in common with such a part, and so on."""
    reached, chosen, left = {variable}, [], list(around)
    while near := [part for part in left if reached & mentioned(part)]:
        chosen += near
        left = [part for part in left if part not in near]
        reached |= mentioned(tuple(near))
    return tuple(chosen)


def _is_selective(part: A.Pattern) -> bool:
    """Whether it has a constant beside its predicates: without one it lets about everything through, and
    takes long to evaluate."""
    return isinstance(part, A.Values) or any(
        not isinstance(term, A.Var)
        for n in nodes(part)
        if isinstance(n, A.TriplePattern)
        for term in (n.s, n.o)
    )
