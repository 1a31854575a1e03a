"""How a query is spread over shards: by the values of some variables, or whole on one shard.

The shards of a query form a grid with one axis per chosen variable (a HyperCube). A triple that matches
a pattern goes to the shards whose coordinates are the hashes of its values; along the axis of a variable
that the pattern does not have it is copied. A solution binds all these variables, so it arises on exactly
one shard, whatever the shares: with one variable in all patterns nothing is copied, with one pattern
without it that pattern's window is copied, and a single axis of length one is the query on one shard.

A variable can be an axis if every solution binds it by a triple of a window, and if no part of the query
looks at solutions with other values of it: not what a sub-select hides, not a group without it as a key.
Shares are chosen for the least load: of the patterns' triples, the part that the fullest shard gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

from pyoxigraph import NamedNode

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.walk import children, exists_in, mentioned
from kelda.rdf import wire

MOST_AXES = 3


@wire.plain
@dataclass(frozen=True, slots=True)
class Spread:
    """`axes` are (variable, share); shard = sum of coordinate times stride, the first axis fastest.

    `merged`: equal answers may come from different shards, so differences are netted where they meet."""

    axes: tuple[tuple[str, int], ...]
    merged: bool = False

    @property
    def shards(self) -> int:
        """How many shards take part."""
        return prod(share for _, share in self.axes)

    def strides(self) -> dict[str, tuple[int, int]]:
        """The (share, stride) of each variable."""
        found, stride = {}, 1
        for name, share in self.axes:
            found[name] = (share, stride)
            stride *= share
        return found

    def copies(self, variables: frozenset[str]) -> int:
        """How many shards get a triple that binds these variables."""
        return prod(share for name, share in self.axes if name not in variables)


@dataclass(frozen=True, slots=True)
class WindowPattern:
    """A triple pattern over a window, and the stream it reads."""

    stream: str
    pattern: A.TriplePattern

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(v.name for v in mentioned(self.pattern))


_ANY = A.TriplePattern(A.Var(".s"), A.Var(".p"), A.Var(".o"))


@dataclass(frozen=True, slots=True)
class Partitioning:
    """What was decided, and why."""

    spread: Spread | None  # None: whole, on one shard
    why: str
    patterns: tuple[WindowPattern, ...] = ()

    def say(self) -> str:
        """For `explain`."""
        if self.spread is None:
            return f"whole on one shard: {self.why}"
        by = " x ".join(f"?{name} ({share})" for name, share in self.spread.axes)
        lines = [f"over {self.spread.shards} shards by {by}" + (", netted at the sink" * self.spread.merged)]
        copies: dict[str, list[int]] = {}
        for p in self.patterns:
            copies.setdefault(p.stream, []).append(self.spread.copies(p.variables))
        for stream, each in copies.items():
            lines.append(
                f"<{stream}>: {len(each)} pattern(s), a matching triple goes to "
                f"{sum(each) / len(each):.3g} shard(s)"
            )
        return "\n".join(lines)


class _Whole(Exception):
    """The query has to stay on one shard; the text is the reason."""


@roomy()
def partition(query: A.Query, shards: int, *, stored_default: bool = False) -> Partitioning:
    """How to spread an incrementally evaluated query over at most `shards` shards.

    `stored_default`: the default graph holds stored triples (which C-SPARQL merges with its windows)."""
    try:
        patterns = window_patterns(query)
        if shards < 2:
            raise _Whole("there is one shard")
        return Partitioning(_best(query, patterns, shards, stored_default), "", patterns)
    except _Whole as reason:
        return Partitioning(None, str(reason), window_patterns(query))


@roomy()
def window_patterns(query: A.Query) -> tuple[WindowPattern, ...]:
    """Every triple pattern that reads a window; a pattern over several windows, once for each. A property
    path may stay where it is, at any term of the window: it reads every triple."""
    streams = {w.name: w.stream.value for w in query.windows if isinstance(w.stream, NamedNode)}
    found: dict[WindowPattern, None] = {}

    def visit(node: A.Pattern, windows: tuple[str, ...]) -> None:
        if isinstance(node, A.InWindow):
            visit(node.pattern, (node.window,))
        elif isinstance(node, A.InGraph):
            visit(node.pattern, ())
        elif isinstance(node, A.Triples | A.PathPattern):
            for name in windows:
                for t in node.patterns if isinstance(node, A.Triples) else (_ANY,):
                    if name in streams:
                        found[WindowPattern(streams[name], t)] = None
        else:
            for child in children(node):
                visit(child, windows)

    visit(query.pattern, query.dataset.windows)
    return tuple(found)


def _best(query: A.Query, patterns: tuple[WindowPattern, ...], shards: int, stored_default: bool) -> Spread:
    if query.form not in (A.Form.SELECT, A.Form.CONSTRUCT):
        raise _Whole(f"{query.form.name} looks at all solutions at once")
    if query.dataset.windows and stored_default:
        raise _Whole("its windows are merged with stored triples into one graph")
    if any(isinstance(w.window, A.TimeWindow) and w.window.time_predicate is not None for w in query.windows):
        raise _Whole("a window goes by times that events state")
    if any(not isinstance(w.stream, NamedNode) for w in query.windows):
        raise _Whole("it reads every stream")
    found = _axes(query.pattern, query.dataset.windows)
    if isinstance(found, _Stored):
        raise _Whole("it reads no window")
    hidden: frozenset[A.Var] = frozenset()
    candidates = found.axes
    top = query.pattern
    if isinstance(top, A.Project):  # what the top hides can be an axis: answers are netted at the sink
        below = _axes(top.pattern, query.dataset.windows)
        assert not isinstance(below, _Stored)
        hidden = below.axes - frozenset(top.vars)
        candidates = below.axes
    if not candidates:
        raise _Whole("no variable of its windows decides where a solution belongs")
    if query.form is A.Form.CONSTRUCT:  # a template does not show blank nodes of the pattern
        hidden = frozenset(v for v in candidates if v.name.startswith("."))
    loads = [
        (_load(patterns, axes), _copies(patterns, axes), any(A.Var(n) in hidden for n, _ in axes), axes)
        for axes in _grids(sorted(v.name for v in candidates), shards)
    ]
    load, _, merged, axes = min(loads)
    if load >= len(patterns):
        raise _Whole("every window would be copied to every shard")
    return Spread(axes, merged)


Axes = tuple[tuple[str, int], ...]


def _grids(names: list[str], shards: int) -> list[Axes]:
    """All grids of at most `shards` shards."""
    grids: list[Axes] = []
    for size in range(1, min(MOST_AXES, len(names)) + 1):
        for chosen in combinations(names, size):
            grids += [tuple(zip(chosen, shares, strict=True)) for shares in _shares(size, shards)]
    return grids


def _shares(axes: int, shards: int) -> list[tuple[int, ...]]:
    """Shares of at least two each whose product is at most `shards`, none of which could grow."""
    if axes == 0:
        return [()]
    found = []
    for share in range(2, shards + 1):
        found += [(share, *rest) for rest in _shares(axes - 1, shards // share)]
    return found


def _load(patterns: tuple[WindowPattern, ...], axes: Axes) -> float:
    """The part of the patterns' triples that a shard gets, each pattern counting one."""
    return sum(1 / prod(share for name, share in axes if name in p.variables) for p in patterns)


def _copies(patterns: tuple[WindowPattern, ...], axes: Axes) -> int:
    return sum(prod(share for name, share in axes if name not in p.variables) for p in patterns)


# ------------------------------------------------------------------------------ which variables


class _Stored:
    """A part that reads no window: the same on every shard."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """A part that reads windows: variables that may be axes, and those that may not, whatever is around."""

    axes: frozenset[A.Var]
    banned: frozenset[A.Var] = frozenset()


_NONE: frozenset[A.Var] = frozenset()


def _reads(axes: frozenset[A.Var], *banned: frozenset[A.Var]) -> _Reads:
    refused = frozenset().union(*banned)
    return _Reads(axes - refused, refused)


def _axes(pattern: A.Pattern, windows: tuple[str, ...]) -> _Reads | _Stored:
    """`windows` are those that bare triple patterns read."""
    match pattern:
        case A.InWindow(name, inner):
            return _axes(inner, (name,))
        case A.InGraph():
            return _Stored()
        case A.Triples(patterns):
            if not windows or not patterns:
                return _Stored()
            return _reads(mentioned(patterns))
        case A.Values():
            return _Stored()
        case A.PathPattern():
            if not windows:
                return _Stored()
            raise _Whole("a property path over a window")
        case A.Join(left, right):
            return _joined(_axes(left, windows), _axes(right, windows))
        case A.Filter(condition, inner):
            found = _axes(inner, windows)
            for looked_up in exists_in(condition):
                found = _looks_up(found, looked_up, windows)
            return found
        case A.LeftJoin(left, right, condition):
            found = _looks_up(_axes(left, windows), right, windows)
            if any(not isinstance(_axes(p, windows), _Stored) for p in exists_in(condition)):
                raise _Whole("EXISTS in the filter of an OPTIONAL")
            return found
        case A.Minus(left, right):
            return _looks_up(_axes(left, windows), right, windows)
        case A.Union(left, right):
            one, two = _axes(left, windows), _axes(right, windows)
            if isinstance(one, _Stored) and isinstance(two, _Stored):
                return one
            if isinstance(one, _Stored) or isinstance(two, _Stored):
                raise _Whole("a branch of a UNION reads no window")
            return _reads(one.axes & two.axes, one.banned, two.banned)
        case A.Extend(inner, var, expr):
            found = _axes(inner, windows)
            for looked_up in exists_in(expr):
                found = _looks_up(found, looked_up, windows)
            # A variable bound by an expression is no axis: its value is not that of a triple.
            return found if isinstance(found, _Stored) else _reads(found.axes, found.banned, frozenset([var]))
        case A.Project(inner, variables):
            return _narrowed(_axes(inner, windows), pattern, frozenset(variables))
        case A.Distinct(inner):
            return _axes(inner, windows)
        case A.Group(inner, keys, aggregates):
            found = _axes(inner, windows)
            for looked_up in exists_in(aggregates):
                found = _looks_up(found, looked_up, windows)
            return _narrowed(found, pattern, frozenset(keys))
        case A.OrderBy() | A.Slice() | A.Reduced():
            if all(isinstance(_axes(child, windows), _Stored) for child in children(pattern)):
                return _Stored()
            raise _Whole("an order or a limit looks at all solutions at once")
    raise _Whole(f"{type(pattern).__name__} cannot be spread")


def _joined(one: _Reads | _Stored, two: _Reads | _Stored) -> _Reads | _Stored:
    if isinstance(one, _Stored):
        return two
    if isinstance(two, _Stored):
        return one
    return _reads(one.axes | two.axes, one.banned, two.banned)


def _looks_up(found: _Reads | _Stored, right: A.Pattern, windows: tuple[str, ...]) -> _Reads | _Stored:
    """`right` is looked up for each solution on the left: what it mentions must be bound on the left by a
    window, or be no axis."""
    other = _axes(right, windows)
    if isinstance(other, _Stored):
        return found
    if isinstance(found, _Stored):
        raise _Whole("stored data is compared with a window")
    return _reads(found.axes, found.banned, other.banned, mentioned(right) - found.axes)


def _narrowed(found: _Reads | _Stored, pattern: A.Pattern, kept: frozenset[A.Var]) -> _Reads | _Stored:
    if isinstance(found, _Stored):
        return found
    return _reads(found.axes & kept, found.banned, mentioned(pattern) - kept)


def streams_of(query: A.Query) -> tuple[str, ...]:
    """The streams that a query names."""
    return tuple(dict.fromkeys(w.stream.value for w in query.windows if isinstance(w.stream, NamedNode)))
