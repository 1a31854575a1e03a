"""Stored graphs that remember: every change with its moment, so that any past can be asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import NamedNode, Quad

from kelda.lang.to_sparql import WINDOW_PREFIX
from kelda.plan.stored_reads import GraphName
from kelda.rdf.graphstore import GraphStore
from kelda.store.moments import NEVER

Change = tuple[int, int, Quad]  # moment, sign, fact


class Remembered:
    """The stored graphs in a `store` in which there are windows, too."""

    def __init__(self, store: GraphStore) -> None:
        self.store = store
        self._changes: list[Change] = []

    @property
    def latest(self) -> int:
        """The moment of the last change."""
        return self._changes[-1][0] if self._changes else NEVER

    def __iter__(self) -> Iterator[Quad]:
        """All facts that are stored now."""
        return (quad for quad in self.store if not _is_windows(quad))

    def change(self, moment: int, gone: Iterable[Quad], new: Iterable[Quad]) -> set[GraphName]:
        """Take facts out, then put facts in; gives the graphs in which that made a difference."""
        gone, new = list(gone), list(new)
        before = {quad: quad in self.store for quad in [*gone, *new]}
        after = dict.fromkeys(before, False) | dict.fromkeys(new, True)
        changed = [quad for quad in before if before[quad] != after[quad]]
        changed.sort(key=lambda quad: after[quad])  # within a moment removals come first
        for quad in changed:
            self._changes.append((moment, 1 if after[quad] else -1, quad))
            if after[quad]:
                self.store.add(quad)
            else:
                self.store.remove(quad)
        return {quad.graph_name for quad in changed}

    def at(self, moment: int) -> GraphStore:
        """The stored graphs as they were at a moment: what came after it is taken back."""
        facts = set(self)
        for when, sign, quad in reversed(self._changes):
            if when <= moment:
                break
            if sign > 0:
                facts.remove(quad)
            else:
                facts.add(quad)
        return GraphStore(facts)

    def snapshot(self) -> tuple[list[Quad], list[Change]]:
        """What must survive."""
        return list(self), self._changes

    def restore(self, kept: tuple[list[Quad], list[Change]]) -> None:
        """Go on with what was kept, whatever is there."""
        for quad in list(self):
            self.store.remove(quad)
        facts, self._changes = kept
        self.store.extend(facts)


def _is_windows(quad: Quad) -> bool:
    return isinstance(quad.graph_name, NamedNode) and quad.graph_name.value.startswith(WINDOW_PREFIX)
