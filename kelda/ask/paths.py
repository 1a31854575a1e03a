"""Property paths: followed from many nodes at once.

    a / b    from each end of a, b           a | b    both
    ^a       the other way round             !(a|b)   through the tables of all other predicates
    a? a+ a* step by step from where the last step led, until nothing is new; each pair of ends once

A path of length zero leads from every subject and object of the graph to itself, and from a term that the
query names, wherever that is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from kelda.ask.bgp import Spot
from kelda.ask.facts import Facts, Graph
from kelda.ask.matching import distinct
from kelda.ask.node import At, Node, narrowed
from kelda.ask.table import Ids, Table, no_rows
from kelda.engine.operators.group_table import GroupTable
from kelda.lang import algebra as A

Ends = tuple[Ids, Ids]  # which of the nodes it starts from, and where it leads

_NONE = np.zeros(0, np.int64)


class PathNode(Node):
    """s path o. Values of the variables in `filled` are terms that the query names: those of EXISTS."""

    def __init__(
        self,
        s: Spot,
        path: A.Path,
        o: Spot,
        encode: Callable[[A.NamedNode], int],
        filled: frozenset[str],
        text: str,
    ) -> None:
        self._s, self._path, self._o, self._encode, self._text = s, path, o, encode, text
        self._filled = filled
        self.columns = tuple(dict.fromkeys(spot.name for spot in (s, o) if spot.name))
        self.bound = frozenset(self.columns)

    def run(self, at: At, only: Table | None = None) -> Ids:
        follow = _Follow(at.graph, self._encode)
        s, o = self._s, self._o
        only = narrowed(only, self.columns)
        given = {} if only is None else {name: np.unique(only.column(name)) for name in only.columns}
        if s.name and o.name:
            back = s.name not in given and o.name in given
            start = o.name if back else s.name
            nodes = given.get(start)
            if nodes is None:
                nodes = at.graph.nodes()
            elif start not in self._filled and follow.may_stay(self._path):
                nodes = nodes[at.graph.has_nodes(nodes)]
            which, ends = follow.ends(self._path, nodes, back)
            pairs = np.stack([ends, nodes[which]] if back else [nodes[which], ends])
            return pairs[:1, pairs[0] == pairs[1]] if s.name == o.name else pairs
        back = bool(s.name)
        start_id, end = (o.id, s) if back else (s.id, o)
        which, ends = follow.ends(self._path, np.array([start_id]), back)
        if end.name:
            return ends[None, :]
        return np.zeros((0, np.count_nonzero(ends == end.id)), np.int64)

    def say(self) -> str:
        return f"follow {self._text}"


class _Follow:
    """Paths through one graph."""

    def __init__(self, graph: Graph, encode: Callable[[A.NamedNode], int]) -> None:
        self._graph, self._encode = graph, encode

    def may_stay(self, path: A.Path) -> bool:
        """Whether the path may have length zero."""
        match path:
            case A.Inverse(inner):
                return self.may_stay(inner)
            case A.Sequence(parts):
                return all(map(self.may_stay, parts))
            case A.Alternative(parts):
                return any(map(self.may_stay, parts))
            case A.Repeat(inner, at_least, _):
                return at_least == 0 or self.may_stay(inner)
        return False

    def ends(self, path: A.Path, nodes: Ids, back: bool) -> Ends:
        """Where the path leads from these nodes, one for each way; `back`: where it comes from."""
        match path:
            case A.Link(iri):
                table = self._graph.table(self._encode(iri))
                return self._through([] if table is None else [table], nodes, back)
            case A.Inverse(inner):
                return self.ends(inner, nodes, not back)
            case A.Sequence(parts):
                which, ends = np.arange(len(nodes)), nodes
                for part in reversed(parts) if back else parts:
                    step, ends = self.ends(part, ends, back)
                    which = which[step]
                return which, ends
            case A.Alternative(parts):
                return _together([self.ends(part, nodes, back) for part in parts])
            case A.NegatedSet(forward, inverse):
                ways = [self._through(self._others(forward), nodes, back)] if forward or not inverse else []
                ways += [self._through(self._others(inverse), nodes, not back)] if inverse else []
                return _together(ways)
            case A.Repeat(inner, at_least, unbounded):
                return self._repeated(inner, at_least, unbounded, nodes, back)
        raise TypeError(f"not a path: {path!r}")

    def _through(self, tables: Iterable[Facts], nodes: Ids, back: bool) -> Ends:
        return _together([table.by_object(nodes) if back else table.by_subject(nodes) for table in tables])

    def _others(self, excluded: tuple[A.NamedNode, ...]) -> list[Facts]:
        ids = {self._encode(iri) for iri in excluded}
        return [table for table in self._graph.tables() if table.predicate not in ids]

    def _repeated(self, path: A.Path, at_least: int, unbounded: bool, nodes: Ids, back: bool) -> Ends:
        met = GroupTable(2)  # pairs of where it began and where it led
        front = np.stack([np.arange(len(nodes)), nodes])
        told = [front] if at_least == 0 else []
        if told:
            met.find(front)
        while front.shape[1]:
            before = len(met)
            which, ends = self.ends(path, front[1], back)
            front = np.stack([front[0][which], ends])
            front = front[:, distinct(front)]
            front = front[:, met.find(front) >= before] if front.shape[1] else front
            told.append(front)
            if not unbounded:
                break
        if not told:
            return _NONE, _NONE
        which, ends = np.concatenate(told, axis=1)
        return which, ends


def _together(parts: list[Ends]) -> Ends:
    if len(parts) == 1:
        return parts[0]
    which, ends = np.concatenate([np.stack(part) for part in parts], axis=1) if parts else no_rows(2)
    return which, ends
