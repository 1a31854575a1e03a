"""What hashed ids mean, where they are numbers."""

from __future__ import annotations

from pyoxigraph import Literal

from kelda.engine.deltas import Ids
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.values import Meaning, Sort, meaning

EXACT, INEXACT = frozenset([Sort.INTEGER, Sort.DECIMAL]), frozenset([Sort.FLOAT, Sort.DOUBLE])

_MANY = 1 << 16


class HashedNumbers:
    """What hashed ids mean; those asked about lately are remembered."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._known: dict[int, Meaning] = {}

    def of(self, ids: Ids) -> list[Meaning]:
        """The sort and value of each."""
        wanted = ids.tolist()
        new = [id for id in wanted if id not in self._known]
        if new:
            if len(self._known) > _MANY:
                self._known = {id: self._known[id] for id in wanted if id in self._known}
            for id, term in zip(new, self._dictionary.terms(new), strict=True):
                self._known[id] = meaning(term) if isinstance(term, Literal) else (Sort.UNKNOWN, None)
        return [self._known[id] for id in wanted]
