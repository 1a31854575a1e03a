"""What is a time, and what is not."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest

from kelda.errors import UsageError
from kelda.rdf.times import FIRST_MS, LAST_MS, duration_ms, iso_to_ms, to_ms


@pytest.mark.parametrize(
    ("said", "ms"),
    [
        (0, 0),
        (-5, -5),
        (np.int64(7), 7),
        (np.uint16(7), 7),
        (FIRST_MS, FIRST_MS),
        (LAST_MS, LAST_MS),
        (datetime(1970, 1, 1, 0, 0, 1), 1000),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime.min, FIRST_MS),
        (datetime.max, LAST_MS),
        (np.datetime64("1970-01-01T00:00:01.5"), 1500),
    ],
)
def test_datetimes_and_whole_milliseconds_are_times(said, ms) -> None:
    assert to_ms(said) == ms
    assert type(to_ms(said)) is int


def test_a_moment_is_the_same_instant_pushed_and_written() -> None:
    moment = datetime(2026, 5, 1, 12, 0, 0, 999_999)
    assert to_ms(moment) == iso_to_ms(moment.isoformat())


def test_pandas_timestamps_are_datetimes() -> None:
    pandas = pytest.importorskip("pandas")
    assert to_ms(pandas.Timestamp("1970-01-01T00:00:02Z")) == 2000
    with pytest.raises(UsageError, match="not NaT"):
        to_ms(pandas.NaT)


@pytest.mark.parametrize(
    "said", [True, np.True_, "5", 1.5, 5.0, np.float64(5), b"5", [5], np.datetime64("NaT"), object()]
)
def test_what_is_no_time_is_refused_with_what_is_meant(said) -> None:
    with pytest.raises(UsageError, match="a time is a datetime, or whole milliseconds since 1970, not "):
        to_ms(said)


@pytest.mark.parametrize("said", [2**63 - 1, 2**63, -(2**63), LAST_MS + 1, FIRST_MS - 1, 10**30])
def test_times_beyond_the_calendar_are_refused(said) -> None:
    with pytest.raises(UsageError, match="in the years 0001 to 9999"):
        to_ms(said)


def test_seconds_as_floats_get_a_hint() -> None:
    with pytest.raises(UsageError, match=r"write int\(1763458000.25 \* 1000\)"):
        to_ms(1763458000.25)  # type: ignore[arg-type]


@pytest.mark.parametrize("said", [-1, True, 1.5, "5", 2**63])
def test_what_is_no_lateness(said) -> None:
    with pytest.raises(UsageError, match="lateness is whole milliseconds"):
        duration_ms(said, "lateness")
