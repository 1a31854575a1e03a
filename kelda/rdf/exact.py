"""Terms as they were written, kept in a store that keeps only their values.

Oxigraph stores numbers, booleans, dates and durations by value: "01"^^xsd:integer and
"1"^^xsd:int both come back as 1. For Kelda they are three terms. A literal that would not come
back as it was is stored under a datatype of ours, `urn:kelda:exact:` + the real one, which
Oxigraph leaves alone; where a query needs its value, `VALUE_OF` turns it into the real literal.
"""

from __future__ import annotations

from enum import IntFlag
from functools import lru_cache

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

from kelda.rdf.values import EXACT_PREFIX, NUMERIC, TEMPORAL, XSD, Sort, meaning

VALUE_OF = NamedNode("urn:kelda:value")
DATATYPE_OF = NamedNode("urn:kelda:datatype")

Value = NamedNode | BlankNode | Literal | Triple


class Needs(IntFlag):
    """What queries must heed because of the literals that there are."""

    NOTHING = 0
    SPELLING = 1  # some are stored under datatypes of ours
    ZONES = 2  # some times have no zone: whether they equal one that has is not known
    SUMS = 4  # some numbers make sums that the store does not add up exactly: large ones, doubles, floats


_A = NamedNode("urn:kelda:a")
_STRING = XSD + "string"
_SMALL, _FEW_PLACES = 2**31, 9  # sums of four thousand million such numbers are exact in the store


@lru_cache(maxsize=1 << 16)
def _stored(literal: Literal) -> tuple[Literal, Needs]:
    scratch = Store()  # a new one each time: what was removed from a store still slows it down
    scratch.add(Quad(_A, _A, literal))
    (back,) = scratch
    needs = _needs(literal)
    if back.object == literal:
        return literal, needs
    exact = Literal(literal.value, datatype=NamedNode(EXACT_PREFIX + literal.datatype.value))
    return exact, needs | Needs.SPELLING


def _needs(literal: Literal) -> Needs:
    sort, value = meaning(literal)
    if sort in TEMPORAL:
        return Needs.NOTHING if value.zoned else Needs.ZONES
    if sort is Sort.INTEGER or sort is Sort.DECIMAL:
        small = abs(value) < _SMALL and value.as_tuple().exponent >= -_FEW_PLACES
        return Needs.NOTHING if small else Needs.SUMS
    return Needs.SUMS if sort in NUMERIC else Needs.NOTHING


def _has_value(term: object) -> bool:
    if not isinstance(term, Literal):
        return False
    datatype = term.datatype.value
    return datatype.startswith(XSD) and datatype != _STRING


def to_store(term: Value) -> Value:
    """The term as it is stored; the same term for nearly all of them.

    >>> to_store(Literal("01", datatype=NamedNode(XSD + "integer")))
    <Literal value=01 datatype=<NamedNode value=urn:kelda:exact:http://www.w3.org/2001/XMLSchema#integer>>
    """
    return to_store_with_needs(term)[0]


def to_store_with_needs(term: Value) -> tuple[Value, Needs]:
    """The term as it is stored, and what it makes queries heed."""
    if not _has_value(term):
        return term, Needs.NOTHING
    assert isinstance(term, Literal)
    stored, needs = _stored(term)
    # The very same object, so that callers can ask `is`: the cache may hold an equal one.
    return term if stored == term else stored, needs


def from_store(term: Value) -> Value:
    """The term as it was written: the inverse of `to_store`."""
    if isinstance(term, Literal) and term.datatype.value.startswith(EXACT_PREFIX):
        return Literal(term.value, datatype=NamedNode(term.datatype.value[len(EXACT_PREFIX) :]))
    return term


def value_of(term: Value) -> Value:
    """A term that has the value of a stored one, for the store's own functions.

    A literal whose text is not of its type has none. Of some the store thinks otherwise ("300"^^xsd:byte), so
    they stay as they are stored."""
    written = from_store(term)
    return term if written is not term and meaning(written)[0] is Sort.ILL else written


def quad_to_store(quad: Quad) -> Quad:
    """A quad with its object as it is stored (a subject or graph name is never a literal)."""
    written = quad.object
    stored = to_store(written)
    return quad if stored is written else Quad(quad.subject, quad.predicate, stored, quad.graph_name)


def quad_from_store(quad: Quad) -> Quad:
    """A quad with its object as it was written."""
    stored = quad.object
    written = from_store(stored)
    return quad if written is stored else Quad(quad.subject, quad.predicate, written, quad.graph_name)


def triple_from_store(triple: Triple) -> Triple:
    """A triple of an answer, as it was written."""
    stored = triple.object
    written = from_store(stored)
    return triple if written is stored else Triple(triple.subject, triple.predicate, written)


def datatype_of(term: Value) -> NamedNode | None:
    """DATATYPE of a stored term; None is an error."""
    written = from_store(term)
    return written.datatype if isinstance(written, Literal) else None
