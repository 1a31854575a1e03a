"""Times: what users and RDF literals say, as milliseconds since 1970, and back."""

from __future__ import annotations

import numbers
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.errors import UsageError

XSD = "http://www.w3.org/2001/XMLSchema#"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SPAN = 146_097 * 86_400_000  # 400 years, after which the calendar is the same again
_FAR = re.compile(r"(-[0-9]{4,8}|[0-9]{5,8}|0000)(-.+)", re.DOTALL)
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
    >>> literal_to_ms(Literal("9" * 30, datatype=NamedNode(XSD + "integer")))
    """
    kind, text = literal.datatype.value, literal.value
    if kind in INTEGERS:
        try:
            return _reckoned(int(text))
        except ValueError:
            return None
    if kind in DATE_TIMES or kind == XSD + "date":
        return iso_to_ms(text)
    return None


def iso_to_ms(text: str) -> int | None:
    """ISO 8601 date and time (no zone means UTC), fractions of any length cut to milliseconds.

    >>> iso_to_ms("31690708-07-05T01:46:40Z")
    1000000000000000000
    """
    text, later = text.strip(), 0
    if far := _FAR.fullmatch(text):  # a year that Python's calendar does not have
        spans, year = divmod(int(far[1]), 400)
        text, later = f"{2000 + year}{far[2]}", (spans - 5) * _SPAN
    head, dot, tail = text.replace("Z", "+00:00").partition(".")
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
    return _reckoned((moment - EPOCH) // timedelta(milliseconds=1) + ms + later)


def _reckoned(ms: int) -> int | None:
    """A time, if windows can reckon with it in 64 bits."""
    return ms if abs(ms) <= 10**18 else None


def in_calendar(ms: int) -> bool:
    """Whether a time lies in the years 1 to 9999."""
    return FIRST_MS <= ms <= LAST_MS


def ms_to_literal(ms: int) -> Literal:
    """The xsd:dateTime in UTC.

    >>> ms_to_literal(1500).value
    '1970-01-01T00:00:01.5Z'
    """
    return Literal(ms_to_iso(ms), datatype=NamedNode(XSD + "dateTime"))


def ms_to_iso(ms: int) -> str:
    """ISO 8601 in UTC, the fraction as short as it can be."""
    years, within = 0, ms
    if not in_calendar(ms):  # a window may end later than any clock of Python's: count in spans of 400 years
        spans, within = divmod(ms, _SPAN)
        years = 400 * spans
    moment = EPOCH + timedelta(milliseconds=within - within % 1000)
    fraction = f".{within % 1000:03d}".rstrip("0").rstrip(".")
    year = moment.year + years
    return f"{'-' * (year < 0)}{abs(year):04}{moment:-%m-%dT%H:%M:%S}{fraction}Z"
