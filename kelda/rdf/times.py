"""Times: what users and RDF literals say, as milliseconds since 1970, and back."""

from __future__ import annotations

import numbers
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.errors import UsageError

XSD = "http://www.w3.org/2001/XMLSchema#"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
DATE_TIMES = frozenset([XSD + "dateTime", XSD + "dateTimeStamp"])
INTEGERS = frozenset(
    [XSD + "integer", XSD + "long", XSD + "int", XSD + "unsignedLong", XSD + "nonNegativeInteger"]
)

# The years 0001 to 9999: what a datetime and an xsd:dateTime of four digits can say.
FIRST_MS = -62_135_596_800_000
LAST_MS = 253_402_300_799_999
MEANT = "a time is a datetime, or whole milliseconds since 1970"
# Now, and some decades around it, in seconds since 1970; as milliseconds, some days of January 1970.
_SECONDS_FROM, _SECONDS_TO = 631_152_000, 4_102_444_800  # 1990, 2100

Time = int | datetime | np.integer | np.datetime64


def to_ms(time: Time) -> int:
    """Milliseconds since 1970, of a datetime (one without a zone is UTC; finer parts are cut off) or of such
    a number; a UsageError for all else.

    >>> to_ms(1500), to_ms(datetime(1970, 1, 1, 0, 0, 1, 500_999)), to_ms(np.datetime64("1970-01-02"))
    (1500, 1500, 86400000)
    """
    if type(time) is int:
        ms = time
    elif isinstance(time, datetime | np.datetime64):
        ms = _moment(time)
    elif isinstance(time, numbers.Integral) and not isinstance(time, bool):  # of NumPy, for example
        ms = int(time)
    else:
        raise UsageError(f"{MEANT}, not {time!r}{_seconds_hint(time)}")
    if not FIRST_MS <= ms <= LAST_MS:
        raise UsageError(f"{MEANT}, in the years 0001 to 9999, not {time!r}")
    return ms


def _moment(time: datetime | np.datetime64) -> int:
    if time != time:  # pandas' and NumPy's "not a time"
        raise UsageError(f"{MEANT}, not {time!r}")
    if isinstance(time, np.datetime64):
        return int(time.astype("datetime64[ms]").astype(np.int64))
    aware = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // timedelta(milliseconds=1)


def looks_like_seconds(ms: int) -> bool:
    """Whether a time is one of our days if it is taken for seconds."""
    return _SECONDS_FROM <= ms <= _SECONDS_TO


def seconds_taken_for_ms(ms: int) -> str:
    """What to say of such a time."""
    return (
        f"the time {ms} is {ms_to_iso(ms)}, since times are milliseconds; in seconds it would be "
        f"{ms_to_iso(1000 * ms)}: if that was meant, write {1000 * ms}, or give a datetime"
    )


def _seconds_hint(time: object) -> str:
    if isinstance(time, float) and _SECONDS_FROM <= time <= _SECONDS_TO:
        return f"; if it is seconds, as of time.time(), write int({time!r} * 1000)"
    return ""


def duration_ms(ms: int, what: str) -> int:
    """A length of time in whole milliseconds, not below zero."""
    if isinstance(ms, bool) or not isinstance(ms, numbers.Integral) or not 0 <= ms <= LAST_MS:
        raise UsageError(f"{what} is whole milliseconds, from 0 to {LAST_MS:,}, not {ms!r}")
    return int(ms)


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
