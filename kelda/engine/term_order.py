"""Places of terms, given by their ids, in the order of SPARQL's ORDER BY (`kelda.rdf.sort_text`).

What breaks ties in a slice are aspects of terms: their text, datatype and language, which need no terms of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np
from pyoxigraph import DefaultGraph, Literal, NamedNode

from kelda.engine.deltas import Ids
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import Value
from kelda.rdf.sort_text import sort_text

_MOST_REMEMBERED = 1 << 16

Place = str
"""Where a term stands in the order; places are compared, and equal ones are ties."""


class Aspect(IntEnum):
    """What of a term is compared: the term, STR(term), STR(DATATYPE(term)), LANG(term)."""

    TERM, TEXT, DATATYPE, LANGUAGE = range(4)


class TermOrder:
    """Places of the ids of one dictionary."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._places: dict[tuple[int, Aspect], Place] = {}

    def place(self, id: int, aspect: Aspect = Aspect.TERM) -> Place:
        """The place of a term, or of no term."""
        found = self._places.get((id, aspect))
        if found is None:
            self.learn([id], aspect)
            found = self._places[id, aspect]
        return found

    def learn(self, ids: Iterable[int], aspect: Aspect) -> None:
        """Find places at once that are about to be asked for one by one."""
        new = [id for id in dict.fromkeys(ids) if (id, aspect) not in self._places]
        if len(self._places) + len(new) > _MOST_REMEMBERED:
            self._places.clear()
        for id, place in zip(new, self.places(np.array(new, np.int64), aspect), strict=True):
            self._places[id, aspect] = place

    def places(self, ids: Ids, aspect: Aspect) -> list[Place]:
        """The places of terms, which are not remembered."""
        known = (None if isinstance(t, DefaultGraph) else t for t in self._dictionary.terms(ids))
        return [sort_text(_aspect(term, aspect)) for term in known]


def _aspect(term: Value | None, aspect: Aspect) -> Value | None:
    if aspect is Aspect.TERM:
        return term
    if isinstance(term, NamedNode):
        return Literal(term.value) if aspect is Aspect.TEXT else None
    if not isinstance(term, Literal):
        return None  # an error, as of what is unbound
    if aspect is Aspect.TEXT:
        return Literal(term.value)
    return Literal(term.datatype.value if aspect is Aspect.DATATYPE else term.language or "")
