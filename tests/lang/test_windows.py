"""Durations and window texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from kelda.errors import QueryError
from kelda.lang import parse
from kelda.lang.algebra import (
    AllWindow,
    CountUnit,
    CountWindow,
    NowWindow,
    SessionWindow,
    TimeWindow,
    Window,
)
from kelda.lang.windows import duration

S, M, H, D = 1000, 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("3s", 3 * S),
        ("500ms", 500),
        ("1m30s", 90 * S),
        ("2h", 2 * H),
        ("1d", D),
        ("10 s", 10 * S),
        ("10 sec", 10 * S),
        ("5 min", 5 * M),
        ("1h 30 min", 90 * M),
        ("1.5s", 1500),
        ("2000000ns", 2),
        ("2 HOURS", 2 * H),
        ("250", 250),
        ("PT10S", 10 * S),
        ("PT0.25S", 250),
        ("P1DT2H3M4S", D + 2 * H + 3 * M + 4 * S),
        ("P2W", 14 * D),
    ],
)
def test_duration(text: str, ms: int) -> None:
    assert duration(text) == ms


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1ns", "whole number of milliseconds"),
        ("PT0.0001S", "whole number of milliseconds"),
        ("0s", "longer than zero"),
        ("0", "longer than zero"),
        ("P1M", "years or months"),
        ("P1Y", "years or months"),
        ("P", "not a duration"),
        ("PT", "not a duration"),
        ("P1DT", "not a duration"),
        ("PT5", "not a duration"),
        ("soon", "not a duration"),
        ("5 weeks", "unknown time unit"),
        ("5s 6", "not a duration"),
    ],
)
def test_not_a_duration(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        duration(text)


@given(st.integers(1, 400), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999))
def test_both_ways_of_writing_agree(d: int, h: int, m: int, s: int, ms: int) -> None:
    expected = d * D + h * H + m * M + s * S + ms
    assert duration(f"{d}d{h}h{m}m{s}s{ms}ms") == expected
    assert duration(f"P{d}DT{h}H{m}M{s}.{ms:03}S") == expected


def cqels(window: str) -> Window:
    return parse(f"SELECT * {{ STREAM <urn:s> [{window}] {{ ?x ?p ?o }} }}").windows[0].window


def csparql(window: str) -> Window:
    return parse(f"SELECT * FROM STREAM <urn:s> [{window}] {{ ?x ?p ?o }}").windows[0].window


def rspql(window: str) -> Window:
    text = f"PREFIX : <urn:> SELECT * FROM NAMED WINDOW :w ON :s [{window}] {{ }}"
    return parse(text).windows[0].window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("NOW", NowWindow()),
        ("ALL", AllWindow()),
        ("RANGE 3s", TimeWindow(3 * S)),
        ("range 3s slide 1s", TimeWindow(3 * S, S)),
        ("RANGE 1m30s TUMBLING", TimeWindow(90 * S, 90 * S)),
        ("TRIPLES 5", CountWindow(5)),
        ("TRIPLES 5 SLIDE 2", CountWindow(5, 2)),
        ("SESSION GAP 5m", SessionWindow(5 * M)),
        ("RANGE 3s # a comment\n", TimeWindow(3 * S)),
    ],
)
def test_cqels(text: str, window: Window) -> None:
    assert cqels(text) == window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("RANGE 10s STEP 1s", TimeWindow(10 * S, S)),
        ("RANGE 10 s STEP 500 ms", TimeWindow(10 * S, 500)),
        ("RANGE 1h STEP 5 min", TimeWindow(H, 5 * M)),
        ("RANGE 10s SLIDE 1s", TimeWindow(10 * S, S)),
        ("RANGE 10s EVERY 1s", TimeWindow(10 * S, S)),
        ("RANGE 10s TUMBLING", TimeWindow(10 * S, 10 * S)),
        ("RANGE TRIPLES 100", CountWindow(100)),
        ("RANGE TRIPLES 100 STEP 10", CountWindow(100, 10)),
        ("TRIPLES 100 TUMBLING", CountWindow(100, 100)),
    ],
)
def test_csparql(text: str, window: Window) -> None:
    assert csparql(text) == window


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("RANGE PT10S STEP PT5S", TimeWindow(10 * S, 5 * S)),
        ("RANGE PT10S SLIDE PT5S", TimeWindow(10 * S, 5 * S)),
        ("RANGE 10000 STEP 5000", TimeWindow(10 * S, 5 * S)),
        ("RANGE 10s STEP 5s", TimeWindow(10 * S, 5 * S)),
        ("RANGE PT10S", TimeWindow(10 * S)),
        ("PT10S", TimeWindow(10 * S)),
        ("RANGE PT10S TUMBLING", TimeWindow(10 * S, 10 * S)),
        ("ELEMENTS 10 STEP 3", CountWindow(10, 3, CountUnit.EVENTS)),
        ("COUNT 1000", CountWindow(1000, 1, CountUnit.EVENTS)),
        ("TRIPLES 10 STEP 3", CountWindow(10, 3, CountUnit.TRIPLES)),
        ("RANGE PT2H @:at", TimeWindow(2 * H, None, 0, NamedNode("urn:at"))),
        ("RANGE PT2H STEP PT5M @<urn:at>", TimeWindow(2 * H, 5 * M, 0, NamedNode("urn:at"))),
        ("FROM NOW-PT35M TO NOW-PT5M", TimeWindow(30 * M, None, 5 * M)),
        ("FROM NOW - PT35M TO NOW STEP PT1M", TimeWindow(35 * M, M, 0)),
        ("SESSION PT5M", SessionWindow(5 * M)),
        ("SESSION GAP PT5M", SessionWindow(5 * M)),
    ],
)
def test_rspql(text: str, window: Window) -> None:
    assert rspql(text) == window


@pytest.mark.parametrize(
    "text",
    [
        "",
        "RANGE",
        "RANGE 10",
        "RANGE x",
        "TRIPLES",
        "TRIPLES 0",
        "NOW 5",
        "RANGE 1s SLIDE",
        "PT1S",
        "RANGE 1s @:x",
    ],
)
def test_refused_in_cqels(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        cqels(text)
    assert caught.value.line == 1 and (caught.value.column or 0) >= len("SELECT * { STREAM <urn:s> [")


CQELS = "SELECT ?x {{ STREAM <http://e/s> [{}] {{ ?x ?p ?o }} }}"
RSPQL = "SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [{}] {{ WINDOW <e:w> {{ ?x ?p ?o }} }}"
CSPARQL = "REGISTER QUERY q COMPUTED EVERY {} AS SELECT ?x FROM STREAM <http://e/s> [RANGE 1s] {{ ?x ?p ?o }}"
NINES = "9" * 5000


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        (CQELS.format("RANGE 9223372036854775808ms"), "9223372036854775808", "100 years"),
        (CQELS.format("RANGE 36526d"), "36526", "100 years"),
        (CQELS.format("RANGE 1s SLIDE 36526d"), "36526", "100 years"),
        (CQELS.format(f"RANGE {NINES}s"), NINES, "not a duration"),
        (CQELS.format("SESSION GAP 9999999999h"), "9999999999", "100 years"),
        (CQELS.format("TRIPLES 9999999999999999999999"), "9999999999999999999999", "at most 2,147,483,647"),
        (CQELS.format("TRIPLES 2147483648"), "2147483648", "at most 2,147,483,647"),
        (CQELS.format(f"TRIPLES {NINES}"), NINES, "at most 2,147,483,647"),
        (CQELS.format("TRIPLES 5 SLIDE 2147483648"), "2147483648", "at most 2,147,483,647"),
        (RSPQL.format("ELEMENTS 2147483648 STEP 1"), "2147483648", "at most 2,147,483,647"),
        (RSPQL.format("RANGE P36526D"), "P36526D", "100 years"),
        (RSPQL.format("FROM NOW-P36526D TO NOW"), "P36526D", "100 years"),
        (CSPARQL.format("36526d"), "36526d", "100 years"),
        (CQELS.format("RANGE 1s") + " LIMIT 99999999999999999999", "99999999999999999999", "LIMIT can be at"),
        ("SELECT * { ?s ?p ?o } LIMIT " + NINES, NINES, "LIMIT can be at most"),
        ("SELECT * { ?s ?p ?o } OFFSET 1000000000000000001", "1000000000000000001", "OFFSET can be at most"),
        ("SELECT * { { SELECT * { ?s ?p ?o } LIMIT 1000000000000000001 } }", "1000000000000", "LIMIT can be"),
    ],
)
def test_limits(text: str, at: str, why: str) -> None:
    """What cannot be reckoned with is refused where it stands, not at the first push."""
    with pytest.raises(QueryError, match=why) as caught:
        parse(text)
    assert caught.value.column == text.index(at) + 1


def test_the_largest_there_are() -> None:
    assert parse(CQELS.format("RANGE 36525d")).windows[0].window == TimeWindow(36525 * D)
    assert parse(CQELS.format("TRIPLES 2147483647")).windows[0].window == CountWindow(2**31 - 1)
    parse("SELECT * { ?s ?p ?o } LIMIT 1000000000000000000 OFFSET 1000000000000000000")
