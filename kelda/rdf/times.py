"""Times in RDF: literals to milliseconds since 1970 and back."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

from pyoxigraph import Literal, NamedNode

XSD = "http://www.w3.org/2001/XMLSchema#"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DATE_TIMES = frozenset([XSD + "dateTime", XSD + "dateTimeStamp"])
INTEGERS = frozenset(
    [XSD + "integer", XSD + "long", XSD + "int", XSD + "unsignedLong", XSD + "nonNegativeInteger"]
)


def literal_to_ms(literal: Literal) -> int | None:
    """An xsd:dateTime (no zone means UTC), an xsd:date, or an integer of milliseconds; None if neither.

    >>> literal_to_ms(Literal("1970-01-01T00:00:01.5Z", datatype=NamedNode(XSD + "dateTime")))
    1500
    """
    kind, text = literal.datatype.value, literal.value
    if kind in INTEGERS:
        try:
            return int(text)
        except ValueError:
            return None
    if kind in DATE_TIMES or kind == XSD + "date":
        return iso_to_ms(text)
    return None


def iso_to_ms(text: str) -> int | None:
    """ISO 8601 date and time (no zone means UTC), fractions of any length cut to milliseconds."""
    head, dot, tail = text.strip().replace("Z", "+00:00").partition(".")
    fraction = ""
    if dot:
        digits = len(tail) - len(tail.lstrip("0123456789"))
        fraction, zone = tail[:digits], tail[digits:]
        head += zone
    try:
        moment = datetime.fromisoformat(head)
        ms = int(Decimal("0." + (fraction or "0")) * 1000)
    except (ValueError, InvalidOperation):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=timezone.utc)
    return (moment - EPOCH) // timedelta(milliseconds=1) + ms


def ms_to_literal(ms: int) -> Literal:
    """The xsd:dateTime in UTC.

    >>> ms_to_literal(1500).value
    '1970-01-01T00:00:01.5Z'
    """
    return Literal(ms_to_iso(ms), datatype=NamedNode(XSD + "dateTime"))


def ms_to_iso(ms: int) -> str:
    """ISO 8601 in UTC, the fraction as short as it can be."""
    moment = EPOCH + timedelta(milliseconds=ms - ms % 1000)
    fraction = f".{ms % 1000:03d}".rstrip("0").rstrip(".")
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + fraction + "Z"
