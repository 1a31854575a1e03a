"""Values that no argument decides: RAND(), UUID(), STRUUID(), BNODE(), and the blank nodes of templates.

They are functions of a seed and of the order in which they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from random import Random
from uuid import UUID

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode

from kelda.ask.table import Ids
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Term
from kelda.rdf.ntriples import ids_of


class Fresh:
    """A source of new terms. Without a seed they are like no others that there ever were."""

    def __init__(self, dictionary: Dictionary, seed: int | str | None = None) -> None:
        self._dictionary = dictionary
        self._seed = seed
        self._by_text: dict[tuple[int, int, str], BlankNode] = {}

    @cached_property
    def _random(self) -> Random:
        return Random(self._seed)

    def values(self, function: str, many: int) -> Ids:
        """The ids of so many values of RAND, UUID, STRUUID or BNODE."""
        make: dict[str, Callable[[], Term]]
        make = {"RAND": self._rand, "UUID": self._uuid, "STRUUID": self._struuid, "BNODE": self.blank}
        return np.array(ids_of([make[function]() for _ in range(many)], self._dictionary), np.int64)

    def blanks(self, scope: int, texts: Ids) -> Ids:
        """BNODE(text) of solutions: the same text is the same blank node within one solution. `scope` tells
        solutions apart that come from different parts of a query."""
        terms = self._dictionary.terms(texts)
        found: list[Term | DefaultGraph] = []
        for i, term in enumerate(terms):
            plain = isinstance(term, Literal) and term.language is None and term.datatype == _STRING
            found.append(self._of_text(scope, i, term.value) if plain else DefaultGraph())  # type: ignore[union-attr]
        return np.array([self._dictionary.encode(term) for term in found], np.int64)

    def _of_text(self, scope: int, place: int, text: str) -> BlankNode:
        key = (scope, place, text)
        if key not in self._by_text:
            self._by_text[key] = self.blank()
        return self._by_text[key]

    def blank(self) -> BlankNode:
        """A new blank node."""
        return BlankNode(f"{self._random.getrandbits(128):032x}")

    def _rand(self) -> Literal:
        return Literal(self._random.random())

    def _uuid(self) -> NamedNode:
        return NamedNode(f"urn:uuid:{self._new()}")

    def _struuid(self) -> Literal:
        return Literal(str(self._new()))

    def _new(self) -> UUID:
        return UUID(int=self._random.getrandbits(128), version=4)


_STRING = NamedNode("http://www.w3.org/2001/XMLSchema#string")
