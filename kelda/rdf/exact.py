"""Terms as they were written, kept in a store that keeps only their values.

Oxigraph stores numbers, booleans, dates and durations by value: "01"^^xsd:integer and
"1"^^xsd:int both come back as 1. For Kelda they are three terms. A literal that would not come
back as it was is stored under a datatype of ours, `urn:kelda:exact:` + the real one, which
Oxigraph leaves alone; where a query needs its value, `VALUE_OF` turns it into the real literal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Store, Triple

PREFIX = "urn:kelda:exact:"
VALUE_OF = NamedNode("urn:kelda:value")
DATATYPE_OF = NamedNode("urn:kelda:datatype")
XSD = "http://www.w3.org/2001/XMLSchema#"

Value = NamedNode | BlankNode | Literal | Triple

_A = NamedNode("urn:kelda:a")


@lru_cache(maxsize=1 << 16)
def _stored(literal: Literal) -> Literal:
    scratch = Store()  # a new one each time: what was removed from a store still slows it down
    scratch.add(Quad(_A, _A, literal))
    (back,) = scratch
    if back.object == literal:
        return literal
    return Literal(literal.value, datatype=NamedNode(PREFIX + literal.datatype.value))


def to_store(term: Value) -> Value:
    """The term as it is stored; the same term for nearly all of them.

    >>> to_store(Literal("01", datatype=NamedNode(XSD + "integer")))
    <Literal value=01 datatype=<NamedNode value=urn:kelda:exact:http://www.w3.org/2001/XMLSchema#integer>>
    """
    if (
        isinstance(term, Literal)
        and term.datatype.value.startswith(XSD)
        and term.datatype.value != XSD + "string"
    ):
        stored = _stored(term)
        # The very same object, so that callers can ask `is`: the cache may hold an equal one.
        return term if stored == term else stored
    return term


def from_store(term: Value) -> Value:
    """The term as it was written: the inverse of `to_store`."""
    if isinstance(term, Literal) and term.datatype.value.startswith(PREFIX):
        return Literal(term.value, datatype=NamedNode(term.datatype.value[len(PREFIX) :]))
    return term


def quad_to_store(quad: Quad) -> Quad:
    """A quad with its object as it is stored (a subject or graph name is never a literal)."""
    stored = to_store(quad.object)
    return quad if stored is quad.object else Quad(quad.subject, quad.predicate, stored, quad.graph_name)


def quad_from_store(quad: Quad) -> Quad:
    """A quad with its object as it was written."""
    written = from_store(quad.object)
    return quad if written is quad.object else Quad(quad.subject, quad.predicate, written, quad.graph_name)


def triple_from_store(triple: Triple) -> Triple:
    """A triple of an answer, as it was written."""
    written = from_store(triple.object)
    return triple if written is triple.object else Triple(triple.subject, triple.predicate, written)


def datatype_of(term: Value) -> NamedNode | None:
    """DATATYPE of a stored term; None is an error."""
    written = from_store(term)
    return written.datatype if isinstance(written, Literal) else None


Functions = dict[NamedNode, Callable[..., Value | None]]
FUNCTIONS: Functions = {VALUE_OF: from_store, DATATYPE_OF: datatype_of}
