"""Whether two answers are the same, as far as SPARQL says which answer is right.

Bags of solutions up to the names of blank nodes. Terms are compared as terms, after what SPARQL leaves open
has been made one: how a computed number is spelt, how many digits of a quotient are kept, the case of
language tags, the order in which GROUP_CONCAT joins. Order is checked where SPARQL defines it, pair by pair.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kelda.engine.oneshot import Result as KeldaResult
from tests.conformance.results import INTEGERS, Row, Rows, Triples, normal, row

from .queries import SEPARATOR
from .terms import XSD

Term = NamedNode | BlankNode | Literal | Triple
Result = Rows | Triples | bool

NO_IRI = NamedNode("urn:oracle:no-iri")
WHOLE, NUMBER = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    **{
        f"unsigned{name}": (0, 2**bits - 1)
        for name, bits in (("Long", 64), ("Int", 32), ("Short", 16), ("Byte", 8))
    },
    **{
        name: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for name, bits in (("long", 64), ("int", 32), ("short", 16), ("byte", 8))
    },
}
DIGITS = 12  # of a fraction that are compared: implementations choose how many a quotient has


def from_jena(reply: dict[str, Any]) -> Result:
    """A reply of Oracle.java."""
    if "boolean" in reply:
        return bool(reply["boolean"])
    if "triples" in reply:
        return Triples(frozenset(Triple(*(one(term(t)) for t in triple)) for triple in reply["triples"]))
    rows = tuple(row((name, one(term(t))) for name, t in r.items()) for r in reply["rows"])
    return Rows(rows, frozenset(reply["vars"]))


def term(parts: list[str]) -> Term:
    """A term of Oracle.java."""
    kind, text, *more = parts
    if kind == "u":
        try:
            return NamedNode(text)
        except ValueError:  # Jena makes IRIs of any text
            return Literal(text, datatype=NO_IRI)
    if kind == "b":
        return BlankNode(text if text.isalnum() else "j" + text.encode().hex())
    if len(more) == 2:
        return Literal(text, language=more[1].lower())
    return Literal(text, datatype=NamedNode(more[0]))


def from_kelda(found: KeldaResult) -> Result:
    """A result of Kelda's one-shot evaluation."""
    if isinstance(found, bool):
        return found
    if isinstance(found, list):
        return Triples(frozenset(Triple(*map(one, t)) for t in found))
    return Rows(tuple(solution(r) for r in found.rows), frozenset(found.variables))


def solution(bindings: dict[str, Any]) -> Row:
    """One solution of Kelda."""
    return row((name, one(value)) for name, value in bindings.items())


def one(term: Term) -> Term:
    """The one spelling of what may be spelt in several ways."""
    if not isinstance(term, Literal):
        return term
    if term.language:
        return Literal(pieces(term.value), language=term.language.lower())
    kind = term.datatype.value.removeprefix(XSD)
    if kind == "string":
        return Literal(pieces(term.value))
    if kind in INTEGERS | {"decimal"} and _number(term) is None:
        return term
    spelt = normal(term)
    assert isinstance(spelt, Literal)
    if kind == "decimal":
        return Literal(_short(spelt.value), datatype=term.datatype)
    if kind == "float":
        return Literal(_single(spelt.value), datatype=term.datatype)
    if kind == "dateTime":
        return Literal(_moment(spelt.value), datatype=term.datatype)
    return spelt


def pieces(text: str) -> str:
    return SEPARATOR.join(sorted(text.split(SEPARATOR))) if SEPARATOR in text else text


def _single(text: str) -> str:
    """The float that a text means: it has fewer digits than the text may have."""
    try:
        with np.errstate(over="ignore"):
            return repr(float(np.float32(text)))
    except ValueError:
        return text


def _moment(text: str) -> str:
    """Zulu as Z, no zeros at the end of seconds, and 24:00:00 as 00:00:00 of the next day."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T24:00:00(\D.*)?", text)
    if found:
        text = f"{date.fromisoformat(found[1]) + timedelta(days=1)}T00:00:00{found[2] or ''}"
    text = re.sub(r"(:\d\d)(\.\d*?)0+(?!\d)", lambda m: m[1] + m[2].rstrip("."), text)  # 07.250 is 07.25
    return re.sub(r"[+-]00:00$", "Z", text)


def _short(text: str) -> str:
    value = Decimal(text)
    if len(text.partition(".")[2]) > DIGITS:
        value = round(value, DIGITS)
    return format(value.normalize() + 0, "f")  # + 0: there is no -0


# ---------------------------------------------------------------------------- order


def less(a: Term | None, b: Term | None) -> bool | None:
    """Whether a comes before b by ORDER BY; None: SPARQL does not say."""
    if _class(a) != _class(b):
        return _class(a) < _class(b)
    if isinstance(a, NamedNode) and isinstance(b, NamedNode):
        return None if a == b else a.value < b.value
    if isinstance(a, Literal) and isinstance(b, Literal):
        x, y = _number(a), _number(b)
        if x is not None and y is not None:
            return None if x == y else x < y
        if {a.datatype.value, b.datatype.value} == {XSD + "string"}:
            return None if a.value == b.value else a.value < b.value
    return None


def _class(term: Term | None) -> int:
    return (
        0 if term is None else 1 if isinstance(term, BlankNode) else 2 if isinstance(term, NamedNode) else 3
    )


def _number(literal: Literal) -> Decimal | None:
    kind = literal.datatype.value.removeprefix(XSD)
    if kind == "decimal" and NUMBER.fullmatch(literal.value):
        return Decimal(literal.value)
    if kind not in INTEGERS or not WHOLE.fullmatch(literal.value):
        return None
    least, most = BOUNDS.get(kind, (None, None))
    value = Decimal(literal.value)
    return None if (least is not None and value < least) or (most is not None and value > most) else value


def in_order(rows: Sequence[Row], keys: Sequence[tuple[str, bool]]) -> bool:
    """Whether no solution stands before one that ORDER BY puts before it. `keys`: variable, descending."""
    found = [dict(r) for r in rows]
    for j, later in enumerate(found):
        for earlier in found[:j]:
            for name, descending in keys:
                a, b = earlier.get(name), later.get(name)
                if a == b:
                    continue
                wrong = less(b, a)
                if wrong is not None and wrong != descending:
                    return False
                break
    return True
