"""The text between the brackets of a window, `[RANGE 10s STEP 1s]`, and durations.

One small reader serves the three dialects: a window starts with a word that says its kind, and a
dialect is the set of kinds it has. Every way of writing a duration that is in circulation is read;
all come out as whole milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import ClassVar, NoReturn

from pyoxigraph import NamedNode

from kelda.errors import QueryError
from kelda.lang.algebra import (
    AllWindow,
    CountUnit,
    CountWindow,
    Dialect,
    NowWindow,
    Param,
    Report,
    SessionWindow,
    TimeWindow,
    When,
    Window,
)

SAMPLE = {
    Dialect.CQELS: "[RANGE 10s SLIDE 1s]",
    Dialect.CSPARQL: "[RANGE 10s STEP 1s]",
    Dialect.RSPQL: "[RANGE PT10S STEP PT1S]",
}
KINDS = {
    Dialect.CQELS: ("NOW", "ALL", "RANGE", "TRIPLES", "SESSION"),
    Dialect.CSPARQL: ("RANGE", "TRIPLES", "NOW"),
    Dialect.RSPQL: (
        *("RANGE", "TRIPLES", "ELEMENTS", "COUNT", "SESSION", "FROM"),
        *("SLIDING", "TUMBLING", "NOW"),
    ),
}
TITLE = {
    Dialect.SPARQL: "SPARQL",
    Dialect.CQELS: "CQELS-QL",
    Dialect.CSPARQL: "C-SPARQL",
    Dialect.RSPQL: "RSP-QL",
}
REPORTS = {
    "ON_WINDOW_CLOSE": Report(When.WINDOW_CLOSE, non_empty=True),
    "NON_EMPTY_CONTENT": Report(When.WINDOW_CLOSE, non_empty=True),
    "ON_CONTENT_CHANGE": Report(When.CONTENT_CHANGE),
}
STEP_WORDS = ("STEP", "SLIDE", "EVERY")

# ---------------------------------------------------------------------------- limits

# Everything that is reckoned with windows stays far inside 64 bits: instants of any century plus or minus a
# span, and numbers of elements plus or minus a count.
LONGEST = 36_525 * 86_400_000  # ms in a hundred years
MOST_ELEMENTS = 2**31 - 1
MOST_ROWS = 10**18  # of LIMIT and of OFFSET, whose sum is reckoned with


def whole(text: str) -> int | None:
    """The whole number that the text writes; None if it writes none, or one beyond all limits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 40 else None


def too_many(count: int) -> str | None:
    """What is wrong with a number of elements; None if nothing is."""
    if count < 1:
        return "must be at least 1"
    return f"can be at most {MOST_ELEMENTS:,}" if count > MOST_ELEMENTS else None


# ---------------------------------------------------------------------------- durations

_SECOND = Decimal(1000)
_UNITS: dict[str, Decimal] = {
    name: scale
    for names, scale in [
        ("ns nanosecond nanoseconds", Decimal("0.000001")),
        ("ms msec millisecond milliseconds", Decimal(1)),
        ("s sec secs second seconds", _SECOND),
        ("m min mins minute minutes", 60 * _SECOND),
        ("h hr hour hours", 3600 * _SECOND),
        ("d day days", 86400 * _SECOND),
    ]
    for name in names.split()
}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-zµ]+)\s*")
_ISO = re.compile(
    r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?",
    re.IGNORECASE,
)


def duration(text: str, *, plain_ms: bool = True) -> int:
    """`10s`, `1m30s`, `500 ms`, `2 hours` or `PT10S` as whole milliseconds; a ValueError says why not.

    A number without a unit is milliseconds, where the dialect has that (`plain_ms`)."""
    text = text.strip()
    if len(text) > 100:
        raise ValueError(f"'{text[:20]}…' is not a duration; write for example 10s, 1m30s or PT10S")
    if text.isdigit():
        if not plain_ms:
            raise ValueError(f"{text} of what? Add a unit: {text}ms, {text}s, {text}m, {text}h or {text}d")
        total = Decimal(text)
    elif text[:1] in ("P", "p"):
        total = _iso_duration(text)
    else:
        total, end = Decimal(0), 0
        while end < len(text):
            piece = _PIECE.match(text, end)
            if piece is None:
                raise ValueError(f"{text!r} is not a duration; write for example 10s, 1m30s or PT10S")
            unit = piece[2]
            if unit.lower() not in _UNITS:
                raise ValueError(f"unknown time unit {unit!r}; use ms, s, m, h or d")
            total += Decimal(piece[1]) * _UNITS[unit.lower()]
            end = piece.end()
    if total > LONGEST:
        raise ValueError(f"{text} is too long: a duration is at most 100 years (36525d)")
    if total != total.to_integral_value():
        raise ValueError(f"{text} is not a whole number of milliseconds, the shortest time there is")
    if total <= 0:
        raise ValueError("a duration must be longer than zero")
    return int(total)


def _iso_duration(text: str) -> Decimal:
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()) or text[-1] in "Tt":
        raise ValueError(f"{text!r} is not a duration; write for example PT10S, PT5M, PT2H or P1D")
    years, months, weeks, days, hours, minutes, seconds = (Decimal(g or 0) for g in match.groups())
    if years or months:
        raise ValueError(f"{text} has years or months, whose length varies; say it in days, for example P30D")
    return ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * _SECOND


# ---------------------------------------------------------------------------- windows

# A past window says NOW-PT35M, so '-' stands alone; a duration may have a space before its unit.
_WORDS = re.compile(
    r"""(?P<space>\s+|\#[^\r\n]*)
      | (?P<iri>@(?:<[^<>\s]*>|[^\s\]<]*:[^\s\]]*))
      | (?P<param>[$]\w+)
      | (?P<iso>P[0-9T][0-9A-Z.]*)
      | (?P<number>\d[\w.]*)
      | (?P<word>[A-Za-zµ]+(?:_[A-Za-z]+)*)
      | (?P<other>.)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


class WindowReader:
    """Reads one window text; `fail(message, offset)` raises with the place in the query,
    `iri` resolves the IRI after '@', `param` turns `$name` into a `Param`."""

    def __init__(
        self,
        text: str,
        dialect: Dialect,
        fail: Callable[[str, int], QueryError],
        iri: Callable[[str, int], NamedNode],
        param: Callable[[str, int], Param],
    ) -> None:
        self._dialect, self._fail, self._iri, self._param = dialect, fail, iri, param
        inside = text[:-1]
        self._words = [
            (str(m.lastgroup), m[0], m.start()) for m in _WORDS.finditer(inside, 1) if m.lastgroup != "space"
        ]
        self._end = len(inside)
        self._at = 0
        self.report: Report | None = None  # if the window says when it reports

    # ------------------------------------------------------------ the words

    def _stop(self, message: str, offset: int | None = None) -> NoReturn:
        raise self._fail(message, self._here() if offset is None else offset)

    def _here(self) -> int:
        return self._words[self._at][2] if self._at < len(self._words) else self._end

    def _peek(self) -> str:
        """The next word in upper case; '' at the end."""
        return self._words[self._at][1].upper() if self._at < len(self._words) else ""

    def _kind(self) -> str:
        return self._words[self._at][0] if self._at < len(self._words) else "end"

    def _next(self) -> str:
        text = self._words[self._at][1]
        self._at += 1
        return text

    def _take(self, *words: str) -> bool:
        if self._peek() in words:
            self._at += 1
            return True
        return False

    # ------------------------------------------------------------ the parts

    def _duration(self, what: str) -> int | Param:
        if self._kind() == "param":
            offset = self._here()
            return self._param(self._next(), offset)
        return self._fixed_duration(what)

    def _fixed_duration(self, what: str) -> int:
        offset = self._here()
        if self._kind() == "iso":
            text = self._next()
        elif self._kind() == "number":
            text = self._next()
            while (self._kind() == "word" and not self._is_clause()) or (
                self._kind() == "number" and not text.isdigit()
            ):
                text += " " + self._next()  # "10 s", "1h 30 min"
        else:
            self._stop(f"{what} needs a duration, for example {what} 10s")
        try:
            return duration(text, plain_ms=self._dialect is Dialect.RSPQL)
        except ValueError as problem:
            self._stop(str(problem), offset)

    def _is_clause(self) -> bool:
        words = ("TUMBLING", "TO", "NOW", "RANGE", "TRIPLES", "ELEMENTS", "GAP", "REPORT", "TICK")
        return self._peek() in (*STEP_WORDS, *words)

    def _count(self, what: str) -> int | Param:
        offset = self._here()
        if self._kind() == "param":
            return self._param(self._next(), offset)
        text = self._peek()
        if not text.isdigit() or not text.strip("0"):
            self._stop(f"{what} needs a number of at least 1, for example {what} 100")
        count = whole(text)
        wrong = too_many(MOST_ELEMENTS + 1 if count is None else count)
        if wrong is not None:
            self._stop(f"{what} {wrong}")
        assert count is not None
        self._at += 1
        return count

    # ------------------------------------------------------------ the kinds

    def read(self) -> Window:
        """The window; whatever is left over is an error."""
        offset, title = self._here(), TITLE[self._dialect]
        kind = self._peek()
        if kind == "":
            self._stop(f"the window is empty; write for example {SAMPLE[self._dialect]}")
        if self._kind() in ("number", "iso", "param"):
            if self._dialect is not Dialect.RSPQL:
                self._stop(f"RANGE is missing; write for example {SAMPLE[self._dialect]}")
            kind = "RANGE"
        elif kind not in KINDS[self._dialect]:
            having = [TITLE[d] for d, kinds in KINDS.items() if kind in kinds]
            if having:
                self._stop(f"{kind} windows are {' and '.join(having)}, not {title}")
            known = ", ".join(KINDS[self._dialect])
            self._stop(f"{self._words[self._at][1]!r} is no kind of window; {title} has {known}")
        else:
            self._at += 1
        window = self._READERS[kind](self, offset)
        if self._dialect is Dialect.RSPQL:
            self._policies()
        if self._at < len(self._words):
            self._stop(f"unexpected {self._words[self._at][1]!r} in the window; ']' should come here")
        return window

    def _policies(self) -> None:
        """REPORT and TICK, as Kolibrie writes them."""
        while self._peek() in ("REPORT", "TICK"):
            what, offset = self._next().upper(), self._here()
            said = self._next().upper() if self._kind() == "word" else ""
            if what == "REPORT":
                if said not in REPORTS:
                    self._stop(f"REPORT is one of {', '.join(REPORTS)}", offset)
                self.report = REPORTS[said]
            elif said != "TIME_DRIVEN":
                self._stop(
                    "TICK can only be TIME_DRIVEN: a query sees all elements of an instant at once",
                    offset,
                )

    def _now(self, offset: int) -> Window:
        if self._peek() == "-":
            return self._back_from_now()
        if self._dialect is not Dialect.CQELS:
            self._stop(
                "NOW alone is a window of CQELS-QL; say how far it goes back, as in [NOW - 10s]",
                offset,
            )
        return NowWindow()

    def _back_from_now(self) -> Window:
        """NOW - a [TO NOW - b] [SLIDE s], as SPARQLStream writes it."""
        self._at -= 1
        start, end = self._past("NOW"), 0
        if self._take("TO"):
            end = self._past("TO")
        return self._between(start, end, self._here())

    def _all(self, offset: int) -> Window:
        return AllWindow()

    def _range(self, offset: int) -> Window:
        if self._dialect is Dialect.CSPARQL and self._take("TRIPLES"):
            return self._triples(offset)
        span = self._duration("RANGE")
        slide: int | Param | None = None
        if self._peek() in STEP_WORDS:
            slide = self._duration(self._next().upper())
        elif self._take("TUMBLING"):
            slide = span
        predicate: NamedNode | None = None
        if self._kind() == "iri" and self._dialect is Dialect.RSPQL:
            at = self._here()
            predicate = self._iri(self._next()[1:], at + 1)
        return TimeWindow(span, slide, 0, predicate)

    def _sliding(self, offset: int) -> Window:
        return self._range(offset)

    def _tumbling(self, offset: int) -> Window:
        span = self._duration("TUMBLING")
        return TimeWindow(span, span)

    def _from(self, offset: int) -> Window:
        start, end = self._past("FROM"), 0
        if not self._take("TO"):
            self._stop("a past window ends with TO, for example [FROM NOW-PT35M TO NOW-PT5M]")
        end = self._past("TO")
        return self._between(start, end, offset)

    def _between(self, start: int, end: int, offset: int) -> Window:
        if start <= end:
            self._stop(
                "a past window must start before it ends, for example [FROM NOW-PT35M TO NOW-PT5M]", offset
            )
        slide: int | Param | None = None
        if self._peek() in STEP_WORDS:
            slide = self._duration(self._next().upper())
        return TimeWindow(start - end, slide, end)

    def _past(self, what: str) -> int:
        """NOW or NOW-d, as the distance from now."""
        if not self._take("NOW"):
            self._stop(f"{what} needs NOW or NOW-duration, for example {what} NOW-PT35M")
        return self._fixed_duration("NOW-") if self._take("-") else 0

    def _triples(self, offset: int) -> Window:
        return self._counted("TRIPLES", CountUnit.TRIPLES)

    def _elements(self, offset: int) -> Window:
        return self._counted("ELEMENTS", CountUnit.EVENTS)

    def _count_of_events(self, offset: int) -> Window:
        return self._counted("COUNT", CountUnit.EVENTS)

    def _counted(self, what: str, unit: CountUnit) -> Window:
        count = self._count(what)
        if self._take("TUMBLING"):
            return CountWindow(count, count, unit)
        if self._peek() in STEP_WORDS:
            return CountWindow(count, self._count(self._next().upper()), unit)
        return CountWindow(count, 1, unit)

    def _session(self, offset: int) -> Window:
        self._take("GAP")
        return SessionWindow(self._duration("SESSION GAP"))

    _READERS: ClassVar[dict[str, Callable[[WindowReader, int], Window]]] = {
        "NOW": _now,
        "SLIDING": _sliding,
        "TUMBLING": _tumbling,
        "ALL": _all,
        "RANGE": _range,
        "FROM": _from,
        "TRIPLES": _triples,
        "ELEMENTS": _elements,
        "COUNT": _count_of_events,
        "SESSION": _session,
    }
