"""Terms as numbers: every RDF term is one signed 64-bit id, the same on every machine.

Two terms have one id exactly when they are the same term (up to a collision of hashes, which the
dictionary notices). An id is one of

    0           the default graph, which is no term
    positive    63 bits of a hash of the term's canonical N-Triples text (`text`)
    negative    the value itself: 1 | 5 bits of kind | 58 bits of value

What is inside a negative id is the *lexical form*, taken apart; a form that would not come back exactly
("01"^^xsd:integer, "-0.0"^^xsd:double, "2020-02-30T00:00:00"^^xsd:dateTime) is hashed instead.

    INTEGER   58 value                                       -2^57 < value < 2^57
    BOOLEAN   58 value                                       true, false; not 1, 0
    DECIMAL    4 scale | 54 mantissa                         "12.50" is 1250, scale 2; up to 15 digits
    DOUBLE     4 scale | 54 mantissa                         up to 2^53
    FLOAT      4 scale | 54 mantissa                         up to 2^24, scale up to 10
    DOUBLE_E   6 exponent | 4 scale | 48 mantissa            "1.25E-3"
    FLOAT_E    6 exponent | 4 scale | 48 mantissa
    DATETIME  49 milliseconds of the local time since 0001 | 2 decimals of the seconds | 7 zone
              zone: 0 none, 1 'Z', 58 + quarters of an hour for ±hh:mm
    STRING    56 up to 7 bytes of UTF-8, first byte highest  no NUL

The limits on mantissa, scale and exponent make the float64 in `numeric_values` the exactly rounded value.
"""

from __future__ import annotations

import re
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyoxigraph import (
    BaseDirection,
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    RdfFormat,
    Triple,
    parse,
)

from kelda.errors import UsageError
from kelda.rdf import ntriples_kernels as kernels
from kelda.rdf.few_terms import term_id
from kelda.rdf.hash_kernels import PADDING, hash_array

Term = NamedNode | BlankNode | Literal | Triple

DEFAULT_GRAPH = 0


class Kind(IntEnum):
    """What an inline id holds."""

    INTEGER = kernels.INTEGER
    BOOLEAN = kernels.BOOLEAN
    DECIMAL = kernels.DECIMAL
    DATETIME = kernels.DATETIME
    STRING = kernels.STRING
    DOUBLE = kernels.DOUBLE
    DOUBLE_E = kernels.DOUBLE_E
    FLOAT = kernels.FLOAT
    FLOAT_E = kernels.FLOAT_E


_XSD = "http://www.w3.org/2001/XMLSchema#"
_STRING = NamedNode(_XSD + "string")
DATATYPES = {
    Kind.INTEGER: NamedNode(_XSD + "integer"),
    Kind.BOOLEAN: NamedNode(_XSD + "boolean"),
    Kind.DECIMAL: NamedNode(_XSD + "decimal"),
    Kind.DATETIME: NamedNode(_XSD + "dateTime"),
    Kind.DOUBLE: NamedNode(_XSD + "double"),
    Kind.DOUBLE_E: NamedNode(_XSD + "double"),
    Kind.FLOAT: NamedNode(_XSD + "float"),
    Kind.FLOAT_E: NamedNode(_XSD + "float"),
}
_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r"})
_UNESCAPES = {"n": "\n", "r": "\r"}
_TAIL = bytes(PADDING)


# ---------------------------------------------------------------------------- text


def text(term: Term) -> str:
    """The canonical N-Triples text of a term: no escapes but those of quote, backslash, LF and CR."""
    if isinstance(term, NamedNode):
        return f"<{term.value}>"
    if isinstance(term, BlankNode):
        return f"_:{term.value}"
    if isinstance(term, Literal):
        quoted = f'"{term.value.translate(_ESCAPES)}"'
        if term.language is not None:
            return f"{quoted}@{term.language}" + (f"--{term.direction.value}" if term.direction else "")
        return quoted if term.datatype == _STRING else f"{quoted}^^<{term.datatype.value}>"
    if isinstance(term, Triple):
        return f"<<( {text(term.subject)} {text(term.predicate)} {text(term.object)} )>>"
    raise UsageError(
        f"{term!r} is not an RDF term; give a pyoxigraph NamedNode, BlankNode, Literal or Triple"
    )


def from_text(canonical: str) -> Term:
    """The term whose canonical text this is: the inverse of `text`."""
    if canonical.startswith("<<("):
        (quad,) = parse(f"<a:a> <a:a> {canonical} .", RdfFormat.N_TRIPLES, lenient=True)
        return quad.object
    if canonical.startswith("<"):
        return NamedNode(canonical[1:-1])
    if canonical.startswith("_:"):
        return BlankNode(canonical[2:])
    close = canonical.rindex('"')
    value, rest = canonical[1:close], canonical[close + 1 :]
    if "\\" in value:
        value = re.sub(r"\\(.)", lambda found: _UNESCAPES.get(found[1], found[1]), value)
    if rest.startswith("^^"):
        return Literal(value, datatype=NamedNode(rest[3:-1]))
    if rest.startswith("@"):
        language, _, direction = rest[1:].partition("--")
        return Literal(value, language=language, direction=BaseDirection(direction) if direction else None)
    return Literal(value)


# ---------------------------------------------------------------------------- ids


def padded(data: bytes) -> NDArray[np.uint8]:
    """A writable copy with the padding that the kernels need."""
    return np.frombuffer(bytearray(data + _TAIL), np.uint8)


def hash_text(data: bytes, seed: int = 0) -> int:
    """The 63-bit hash of a text, never 0."""
    return int(hash_array(padded(data), np.uint64(seed))[0])


def encode(term: Term | DefaultGraph, seed: int = 0) -> int:
    """The id of a term. It needs no dictionary, and is not put into one."""
    if isinstance(term, DefaultGraph):
        return DEFAULT_GRAPH
    return int(term_id(padded(text(term).encode()), seed)[0])


def is_inline(id: int) -> bool:
    """Whether the id holds its value, so that `decode_inline` gives the term."""
    return id < 0


def kinds(ids: ArrayLike) -> NDArray[np.int64]:
    """The `Kind` of each inline id, 0 for the others."""
    array = np.asarray(ids, np.int64)
    return np.where(array < 0, (array >> 58) & 31, 0)


def decode_inline(id: int) -> Literal:
    """The literal that an inline id holds."""
    if id >= 0:
        raise UsageError(f"id {id} holds no value; look it up in the dictionary that it was added to")
    kind, value = Kind(id >> 58 & 31), id & (1 << 58) - 1
    if kind is Kind.STRING:
        return Literal(value.to_bytes(7, "big").rstrip(b"\0").decode())
    if kind is Kind.INTEGER:
        lexical = str(_signed(value, 58))
    elif kind is Kind.BOOLEAN:
        lexical = "true" if value else "false"
    elif kind is Kind.DATETIME:
        lexical = _datetime(value)
    elif kind in (Kind.DOUBLE_E, Kind.FLOAT_E):
        lexical = f"{_decimal(_signed(value, 48), value >> 48 & 15)}E{_signed(value >> 52, 6)}"
    else:
        lexical = _decimal(_signed(value, 54), value >> 54)
    return Literal(lexical, datatype=DATATYPES[kind])


def _signed(value: int, bits: int) -> int:
    low = value & (1 << bits) - 1
    return low - (1 << bits) if low >> bits - 1 else low


def _decimal(mantissa: int, scale: int) -> str:
    if scale == 0:
        return str(mantissa)
    digits = str(abs(mantissa)).rjust(scale + 1, "0")
    return f"{'-' if mantissa < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _datetime(value: int) -> str:
    clock, places, zone = value >> 9, value >> 7 & 3, value & 127
    local = np.datetime64(clock + _YEAR_ONE, "ms").item().isoformat(timespec="milliseconds")
    seconds, fraction = local.split(".")
    if places:
        seconds += "." + fraction[:places]
    if zone < 2:
        return seconds + ("Z" if zone else "")
    offset = 15 * (zone - 58)
    return f"{seconds}{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"


# Milliseconds from 1970 back to 0001-01-01T00:00:00.
_YEAR_ONE = int(np.datetime64("0001-01-01", "ms").astype(np.int64))


# ---------------------------------------------------------------------------- values

_POWERS = 10.0 ** np.arange(23)


def numeric_values(ids: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """(values, valid) of the inline integers, decimals, doubles and floats.

    Where `valid`, the value is the literal's value exactly as float64 has it: two valid values are equal
    or ordered exactly as the literals are. Integers beyond ±2^53, hashed ids and all that is no number
    are not valid (and 0); they need the term itself.
    """
    array = np.asarray(ids, np.int64)
    kind = kinds(array)
    values = np.zeros(array.shape)
    whole = kind == Kind.INTEGER
    if whole.any():
        integers = array[whole] << 6 >> 6
        exact = np.abs(integers) <= 2**53
        values[whole] = np.where(exact, integers, 0)
        whole[whole] = exact
    plain = (kind == Kind.DECIMAL) | (kind == Kind.DOUBLE) | (kind == Kind.FLOAT)
    if plain.any():
        some = array[plain]
        values[plain] = (some << 10 >> 10) / _POWERS[some >> 54 & 15]
    scientific = (kind == Kind.DOUBLE_E) | (kind == Kind.FLOAT_E)
    if scientific.any():
        some = array[scientific]
        mantissa, power = some << 16 >> 16, (some << 6 >> 58) - (some >> 48 & 15)
        up, down = _POWERS[np.maximum(power, 0)], _POWERS[np.maximum(-power, 0)]
        values[scientific] = mantissa * up / down
    single = (kind == Kind.FLOAT) | (kind == Kind.FLOAT_E)
    if single.any():
        values[single] = values[single].astype(np.float32)
    return values, whole | plain | scientific


def time_values(ids: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
    """(milliseconds since 1970, valid, zoned) of the inline dateTimes.

    In UTC where `zoned`; a dateTime without a timezone is given as if it were in UTC. Not valid: 0.
    """
    array = np.asarray(ids, np.int64)
    valid = kinds(array) == Kind.DATETIME
    value = np.where(valid, array, 0) & (1 << 58) - 1
    zone = value & 127
    zoned = valid & (zone > 0)
    offset = np.where(zone > 1, (zone - 58) * (15 * 60_000), 0)
    return np.where(valid, (value >> 9) + _YEAR_ONE - offset, 0), valid, zoned
