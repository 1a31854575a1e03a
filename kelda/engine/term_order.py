"""The order of SPARQL's ORDER BY, as a sort key for each term.

    unbound  <  blank nodes  <  IRIs  <  literals  <  quoted triples

Within a kind: numbers by value, strings, IRIs and labels by code point. Pairs of literals that this does not
decide (dates, languages, a number and a string) are compared as pyoxigraph orders them, each pair asked once.
What breaks ties in a slice are aspects of terms: their text, datatype and language, which need no terms of
their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from math import isnan

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, QuerySolutions, Store, Triple

from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import Value

_XSD = "http://www.w3.org/2001/XMLSchema#"
_MOST_REMEMBERED = 1 << 16


class Place:
    """Where a term stands in the order; places are compared, and equal ones are ties."""

    __slots__ = ("kind", "rank", "term", "value")

    def __init__(self, term: Value | None) -> None:
        self.term = term
        self.rank, self.kind, self.value = _sorted_by(term)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Place) and self.compared(other) == 0

    def __lt__(self, other: Place) -> bool:
        return self.compared(other) < 0

    __hash__ = None  # type: ignore[assignment]

    def compared(self, other: Place) -> int:
        """-1 before, 0 equal, 1 after."""
        if self.rank != other.rank:
            return -1 if self.rank < other.rank else 1
        if self.kind != other.kind or self.value is None or other.value is None:
            if self.term == other.term:
                return 0
            assert self.term is not None and other.term is not None
            return _asked(self.term, other.term)
        mine, others = self.value, other.value
        if self.kind == _NUMBER and (isinstance(mine, float) or isinstance(others, float)):
            mine, others = float(mine), float(others)
        return (mine > others) - (mine < others)  # type: ignore[operator]


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
        for id, term in zip(new, self._dictionary.terms(np.array(new, np.int64)), strict=True):
            known = None if isinstance(term, DefaultGraph) else term
            self._places[id, aspect] = Place(_aspect(known, aspect))


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


_TEXT, _NUMBER, _OTHER = range(3)


def _sorted_by(term: Value | None) -> tuple[int, int, str | float | Decimal | int | None]:
    """(rank, kind, value): within rank and kind, values that are not None decide."""
    if term is None:
        return 0, _TEXT, ""
    if isinstance(term, BlankNode):
        return 1, _TEXT, term.value
    if isinstance(term, NamedNode):
        return 2, _TEXT, term.value
    if isinstance(term, Triple):
        return 4, _OTHER, None
    if term.datatype.value == _XSD + "string":
        return 3, _TEXT, term.value
    return 3, *_number(term)


def _number(literal: Literal) -> tuple[int, float | Decimal | int | None]:
    try:
        match literal.datatype.value.removeprefix(_XSD):
            case "integer":
                return _NUMBER, int(literal.value)
            case "decimal" if "e" not in literal.value.lower():
                return _NUMBER, Decimal(literal.value)
            case "double":
                value = float(literal.value)
                return (_OTHER, None) if isnan(value) else (_NUMBER, value)
    except (ValueError, ArithmeticError):  # not a number after all: pyoxigraph says where it stands
        return _OTHER, None
    return _OTHER, None


@lru_cache(maxsize=_MOST_REMEMBERED)
def _asked(a: Value, b: Value) -> int:
    """The order of two terms by pyoxigraph, whose sort leaves ties as they came."""
    first, second = _first_of(a, b), _first_of(b, a)
    if first == 0 and second == 0:
        return 0
    return -1 if first == 0 else 1


def _first_of(a: Value, b: Value) -> int:
    text = f"SELECT ?i {{ VALUES (?i ?v) {{ (0 {a}) (1 {b}) }} }} ORDER BY ?v"
    found = Store().query(text)
    assert isinstance(found, QuerySolutions)
    first = next(found)["i"]
    assert isinstance(first, Literal)
    return int(first.value)
