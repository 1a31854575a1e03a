"""What literals mean: their values, exactly.

    integers, decimals     a Decimal, of any size and with any number of digits
    floats, doubles        a float, as IEEE 754 has it
    booleans, strings      a bool, a str; with a language: (text, language)
    dates and times        `Moment`: seconds on the time line, and whether a time zone says where it lies
    durations              (months, seconds)

A literal of one of these types whose text is none of it ("x"^^xsd:integer, "300"^^xsd:byte) is `ILL`; what is
of any other type is `UNKNOWN`. Literals are taken as they were written or as a store holds them
(`kelda.rdf.exact`).
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from pyoxigraph import Literal, NamedNode

XSD = "http://www.w3.org/2001/XMLSchema#"
EXACT_PREFIX = "urn:kelda:exact:"
"""Before the datatype of a literal whose spelling a store would lose: see `kelda.rdf.exact`."""

PLACES = 18
"""Digits behind the point of a quotient of integers or decimals; the rest is cut off."""

EXACTLY = decimal.Context(
    prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.InvalidOperation]
)
"""Sums and products without rounding. Not for quotients, which may not end: see `quotient`."""


class Sort(IntEnum):
    """Sorts of values; the first four are numbers, in the order of promotion."""

    INTEGER, DECIMAL, FLOAT, DOUBLE = range(4)
    STRING, TAGGED, BOOLEAN, DATETIME, DATE, TIME, CALENDAR, DURATION, ILL, UNKNOWN = range(4, 14)


class Moment(NamedTuple):
    """Seconds since 0000-03-01, in UTC where there is a zone; `field` is the type of a part of a date."""

    seconds: Decimal
    zoned: bool
    field: str = ""


Meaning = tuple[Sort, Any]

NUMERIC = frozenset([Sort.INTEGER, Sort.DECIMAL, Sort.FLOAT, Sort.DOUBLE])
TEMPORAL = frozenset([Sort.DATETIME, Sort.DATE, Sort.TIME, Sort.CALENDAR])

BOUNDS: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
_INTEGER = re.compile(r"[+-]?[0-9]+").fullmatch
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)").fullmatch
_DOUBLE = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?").fullmatch
_SPECIAL = {"INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}

_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,17}|0[0-9]{3}))"
_DATE = _YEAR + r"-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2}(?:\.[0-9]+)?)"
_ZONE = r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})?"
_TEMPORAL: dict[str, tuple[Sort, re.Pattern[str]]] = {
    "dateTime": (Sort.DATETIME, re.compile(f"{_DATE}T{_TIME}{_ZONE}")),
    "dateTimeStamp": (Sort.DATETIME, re.compile(f"{_DATE}T{_TIME}{_ZONE}")),
    "date": (Sort.DATE, re.compile(_DATE + _ZONE)),
    "time": (Sort.TIME, re.compile(_TIME + _ZONE)),
    "gYear": (Sort.CALENDAR, re.compile(_YEAR + _ZONE)),
    "gYearMonth": (Sort.CALENDAR, re.compile(f"{_YEAR}-(?P<month>[0-9]{{2}}){_ZONE}")),
    "gMonth": (Sort.CALENDAR, re.compile(f"--(?P<month>[0-9]{{2}}){_ZONE}")),
    "gMonthDay": (Sort.CALENDAR, re.compile(f"--(?P<month>[0-9]{{2}})-(?P<day>[0-9]{{2}}){_ZONE}")),
    "gDay": (Sort.CALENDAR, re.compile(f"---(?P<day>[0-9]{{2}}){_ZONE}")),
}
_DURATION = re.compile(
    r"(?P<sign>-)?P(?!$)(?:(?P<Y>[0-9]{1,99})Y)?(?:(?P<M>[0-9]{1,99})M)?(?:(?P<D>[0-9]{1,99})D)?"
    r"(?:T(?!$)(?:(?P<h>[0-9]{1,99})H)?(?:(?P<m>[0-9]{1,99})M)?(?:(?P<s>[0-9]+(?:\.[0-9]+)?)S)?)?"
).fullmatch
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_ILL: Meaning = (Sort.ILL, None)
_UNKNOWN: Meaning = (Sort.UNKNOWN, None)


@lru_cache(maxsize=1 << 16)
def meaning(literal: Literal) -> Meaning:
    """The sort and value of a literal.

    >>> meaning(Literal("99999999999999999999", datatype=NamedNode(XSD + "integer")))
    (<Sort.INTEGER: 0>, Decimal('99999999999999999999'))
    """
    datatype = literal.datatype.value.removeprefix(EXACT_PREFIX)
    if literal.language is not None:
        return Sort.TAGGED, (literal.value, literal.language.lower())
    if not datatype.startswith(XSD):
        return _UNKNOWN
    return of_text(literal.value, datatype[len(XSD) :])


def of_text(text: str, name: str) -> Meaning:
    """The sort and value of a text as a literal of the xsd: type of this name."""
    if name == "string":
        return Sort.STRING, text
    if name in BOUNDS:
        return _integer(text, name)
    match name:
        case "decimal":
            return (Sort.DECIMAL, Decimal(text)) if _DECIMAL(text) else _ILL
        case "double":
            value = _float(text)
            return _ILL if value is None else (Sort.DOUBLE, value)
        case "float":
            value = _float(text)
            return _ILL if value is None else (Sort.FLOAT, single(value))
        case "boolean":
            return (Sort.BOOLEAN, _BOOLEANS[text]) if text in _BOOLEANS else _ILL
        case "duration" | "dayTimeDuration" | "yearMonthDuration":
            return _duration(text, name)
    if name in _TEMPORAL:
        return _moment(text, name)
    return _UNKNOWN


def is_numeric_type(datatype: str) -> bool:
    """Whether literals of the type, by its whole name, are numbers, if their text is right."""
    name = datatype.removeprefix(EXACT_PREFIX).removeprefix(XSD)
    return name in BOUNDS or name in ("decimal", "float", "double")


def _integer(text: str, name: str) -> Meaning:
    if not _INTEGER(text):
        return _ILL
    value = Decimal(text)
    low, high = BOUNDS[name]
    if (low is not None and value < low) or (high is not None and value > high):
        return _ILL
    return Sort.INTEGER, value


def _float(text: str) -> float | None:
    if _DOUBLE(text):
        return float(text)
    return _SPECIAL.get(text)


def single(value: float) -> float:
    """The nearest float of 32 bits."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _moment(text: str, name: str) -> Meaning:
    sort, pattern = _TEMPORAL[name]
    found = pattern.fullmatch(text)
    if not found:
        return _ILL
    parts = found.groupdict()
    # Parts that are not there are those of a leap year that begins a cycle, so that 29 February is a day.
    year, month, day = (int(parts.get(k) or d) for k, d in (("year", 2000), ("month", 1), ("day", 1)))
    hour, minute = int(parts.get("hour") or 0), int(parts.get("minute") or 0)
    second = Decimal(parts.get("second") or 0)
    if not 1 <= month <= 12 or not 1 <= day <= _days_in(year, month):
        return _ILL
    if minute > 59 or second >= 60 or hour > 24 or (hour == 24 and (minute or second)):
        return _ILL
    if sort is Sort.TIME:
        hour %= 24
    zone = parts["zone"]
    offset = 0
    if zone is None and name == "dateTimeStamp":
        return _ILL
    if zone not in (None, "Z"):
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        offset = 60 * hours + minutes
        if minutes > 59 or offset > 14 * 60:
            return _ILL
        offset = -offset if zone[0] == "-" else offset
    whole = days(year, month, day) * 86_400 + hour * 3600 + (minute - offset) * 60
    return sort, Moment(EXACTLY.add(Decimal(whole), second), zone is not None, name * (sort is Sort.CALENDAR))


def _days_in(year: int, month: int) -> int:
    return 29 if month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else _DAYS[month - 1]


def days(year: int, month: int, day: int) -> int:
    """Days since 1 March of the year 0, in the calendar of Gregory at all times."""
    year, month = (year - 1, month + 9) if month < 3 else (year, month - 3)
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1


def _duration(text: str, name: str) -> Meaning:
    found = _DURATION(text)
    if not found:
        return _ILL
    parts = found.groupdict()
    if name == "dayTimeDuration" and (parts["Y"] or parts["M"]):
        return _ILL
    if name == "yearMonthDuration" and any(parts[k] for k in "Dhms"):
        return _ILL
    months = 12 * int(parts["Y"] or 0) + int(parts["M"] or 0)
    whole = 86_400 * int(parts["D"] or 0) + 3600 * int(parts["h"] or 0) + 60 * int(parts["m"] or 0)
    seconds = EXACTLY.add(Decimal(whole), Decimal(parts["s"] or 0))
    if parts["sign"]:
        months, seconds = -months, EXACTLY.minus(seconds)
    return Sort.DURATION, (months, seconds)


# ---------------------------------------------------------------------------- back to literals

_TYPES = {name: NamedNode(XSD + name) for name in ("integer", "decimal", "float", "double", "boolean")}


def written(number: Decimal) -> str:
    """Its digits, without an exponent and without zeros at the end."""
    text = format(number, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def literal_of(sort: Sort, value: Any) -> Literal:
    """A number or boolean as a literal, spelled as the store spells what it has computed itself."""
    match sort:
        case Sort.INTEGER:
            return Literal(written(value), datatype=_TYPES["integer"])
        case Sort.DECIMAL:
            return Literal(written(value), datatype=_TYPES["decimal"])
        case Sort.DOUBLE:
            return Literal(float(value))
        case Sort.FLOAT:
            if np.isfinite(value):
                text = np.format_float_positional(np.float32(value), unique=True, trim="-")
            else:
                text = Literal(float(value)).value
            return Literal(text, datatype=_TYPES["float"])
        case Sort.BOOLEAN:
            return Literal(bool(value))
    raise TypeError(f"no number: {sort!r}")


def quotient(a: Decimal, b: Decimal) -> Decimal:
    """a / b to 18 places, cut off; b is not 0."""
    return EXACTLY.divide_int(a.scaleb(PLACES, EXACTLY), b).scaleb(-PLACES, EXACTLY)


def promoted(number: Decimal | float) -> float:
    """A number as a double; one that is too large is infinite."""
    return float(number)
