"""The stored graphs as Oxigraph sees them, at one moment: for queries by definition.

Queries take a step one after the other, each through all of its instants. So the mirror can be moved back as
well as on, over the changes that are not settled yet: each query finds it where it has left it.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from pyoxigraph import Quad

from kelda.plan.stored_reads import GraphName
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from kelda.store.changes import Changes, Ids
from kelda.store.moments import FOREVER
from kelda.store.view import View

Change = tuple[int, Quad]  # sign, fact


class Mirror:
    """Keeps the stored graphs in `store`, in which there may be other graphs too.

    A *place* in it is a number of changes, counted from the beginning."""

    def __init__(self, store: GraphStore, dictionary: Dictionary) -> None:
        self.store, self._dictionary = store, dictionary
        self._moments: list[int] = []  # of the changes that are not settled
        self._changes: list[Change] = []
        self._settled = 0  # place of the first of them
        self._done = 0  # how many of them are carried out

    def begin_with(self, view: View) -> None:
        """Put all in that is stored, once."""
        for graph in view.graphs():
            for table in view.tables(graph):
                s, o = table.scan()
                g, p = (np.full(len(s), id, np.int64) for id in (graph, table.predicate))
                self.store.bulk_extend(self._quads(g, s, p, o))

    @property
    def place(self) -> int:
        """Where it stands."""
        return self._settled + self._done

    def take(self, changes: Changes) -> None:
        """Know of changes to come. Each of them made a difference; their moments are not before those of
        others."""
        columns = (changes.graph, changes.s, changes.p, changes.o)
        self._moments += changes.moment.tolist()
        self._changes += zip(changes.sign.tolist(), self._quads(*columns), strict=True)

    def _quads(self, g: Ids, s: Ids, p: Ids, o: Ids) -> list[Quad]:
        terms = iter(self._dictionary.terms(np.concatenate([s, p, o, g])))
        parts = [[next(terms) for _ in range(len(s))] for _ in range(4)]
        return [Quad(*of) for of in zip(*parts, strict=True)]

    def next_moment(self, place: int) -> int:
        """The moment of the change at a place; FOREVER if there is none."""
        i = place - self._settled
        return self._moments[i] if i < len(self._moments) else FOREVER

    def move(self, moment: int) -> set[GraphName]:
        """Carry out what is left of the changes up to a moment, that included; gives the graphs that are
        different."""
        return self._go(max(self._done, bisect_right(self._moments, moment)))

    def stand(self, place: int) -> None:
        """Go to where it stood before, back or on."""
        self._go(place - self._settled)

    def _go(self, to: int) -> set[GraphName]:
        if to < 0:
            raise AssertionError("the mirror cannot go back behind what is settled")
        on = self._changes[self._done : to]
        back = [(-sign, quad) for sign, quad in reversed(self._changes[to : self._done])]
        for sign, quad in on + back:
            if sign > 0:
                self.store.add(quad)
            else:
                self.store.remove(quad)
        self._done = to
        return {quad.graph_name for _, quad in on + back}

    def settle(self, moment: int) -> None:
        """Nobody will ask for it as it was before a moment: that one's changes are carried out for ever."""
        self.move(moment)
        count = bisect_right(self._moments, moment)
        del self._moments[:count], self._changes[:count]
        self._settled += count
        self._done -= count
