"""The order of SPARQL's ORDER BY, MIN and MAX: texts that are in the order of the terms.

    unbound  <  blank nodes  <  IRIs  <  literals  <  quoted triples

    literals      NaN  <  numbers  <  strings  <  booleans  <  times, by type  <  durations  <  all others
    numbers       by value, whatever their types; a double or float is the shortest decimal that stands for it
    strings       by code point, then those without a language first, then by language
    times         on one time line for each type; without a zone, as if in UTC
    others        by text, then by type; also literals whose text is not of their type

It is a total order that keeps to `<` wherever `<` decides: rounding, as when a decimal is compared with a
double, makes neighbours equal, but never turns them around.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from math import isinf, isnan

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Triple

from kelda.rdf.values import EXACT_PREFIX, NUMERIC, TEMPORAL, XSD, Sort, meaning

_BLANK, _IRI, _NUMBER, _STRING, _BOOLEAN, _TIME, _DURATION, _OTHER, _TRIPLE = "bcdefghij"
_NAN, _MINUS_INF, _NEGATIVE, _ZERO, _POSITIVE, _INF = "012345"
_POSITIVE_NUMBER = _NUMBER + _POSITIVE
_INTEGER = NamedNode(XSD + "integer")
_TURNED = str.maketrans("0123456789", "9876543210")
_MOST_PLACES = 5 * 10**11  # more digits than any number can have, so that all exponents are as long
_MONTH = 2_629_746  # seconds, on average


def sort_text(term: NamedNode | BlankNode | Literal | Triple | DefaultGraph | None) -> str:
    """The text by which a term is sorted; "" for none."""
    if isinstance(term, Literal):
        text = term.value
        if text.isdigit() and text.isascii() and text[0] != "0" and term.datatype == _INTEGER:
            return f"{_POSITIVE_NUMBER}{len(text) - 1 + _MOST_PLACES}{text.rstrip('0')}"
        return _literal(term)
    if isinstance(term, NamedNode):
        return _IRI + term.value
    if isinstance(term, BlankNode):
        return _BLANK + term.value
    if isinstance(term, Triple):
        return _TRIPLE + "\x01".join(sort_text(part) for part in term)
    return ""


@lru_cache(maxsize=1 << 16)
def _literal(literal: Literal) -> str:
    sort, value = meaning(literal)
    if sort in NUMERIC:
        return _NUMBER + number_text(value)
    if sort is Sort.STRING:
        return f"{_STRING}{value}"
    if sort is Sort.TAGGED:
        return f"{_STRING}{value[0]}\x00{value[1]}{literal.direction.value if literal.direction else ''}"
    if sort is Sort.BOOLEAN:
        return f"{_BOOLEAN}{value:d}"
    if sort in TEMPORAL:
        return f"{_TIME}{sort:02}{value.field}{number_text(value.seconds)}"
    if sort is Sort.DURATION:
        return _DURATION + number_text(value[0] * _MONTH + value[1])
    return f"{_OTHER}{literal.value}\x00{literal.datatype.value.removeprefix(EXACT_PREFIX)}"


def number_text(number: Decimal | float) -> str:
    """The text by which a number is sorted.

    >>> number_text(Decimal("-10")) < number_text(Decimal("-9.5")) < number_text(0.25) < number_text(1e300)
    True
    """
    if isinstance(number, float):
        if isnan(number):
            return _NAN
        if isinf(number):
            return _INF if number > 0 else _MINUS_INF
        number = Decimal(repr(number))
    if not number:
        return _ZERO
    places = number.adjusted() + _MOST_PLACES
    digits = "".join(map(str, number.as_tuple().digits)).rstrip("0")
    if number > 0:
        return f"{_POSITIVE}{places}{digits}"
    # Turned around: where one is the beginning of the other, the longer one is less.
    return _NEGATIVE + f"{places}{digits}".translate(_TURNED) + "~"
