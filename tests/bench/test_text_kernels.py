"""The writer of lines gives what Python's own formatting gives."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.families.draws import Choice, bursts, disturbed, generator, instants, rounds, spread
from bench.families.text_kernels import TextWriter

WORDS = (b"red", b"", b"a longer word \xc3\xa9")
WRITER = TextWriter(
    {
        "whole": "{a} {a:0000}|{b:.2}\n",
        "time": "<{t:iso}> {t:isoms} {u:isous}\n",
        "word": "{w:words}{item}{item:words}é\n",
    },
    {"words": WORDS},
)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
ms = st.integers(-62_135_596_800_000, 253_402_300_799_999)  # years 1 to 9999


def plain(kind: int, a: int, b: int, t: int, w: int, item: int) -> bytes:
    """The line, made the slow way."""
    if kind == 0:
        padded = f"{'-' if a < 0 else ''}{abs(a):04}"
        return f"{a} {padded}|{'-' if b < 0 else ''}{abs(b) // 100}.{abs(b) % 100:02}\n".encode()
    if kind == 1:
        when = EPOCH + timedelta(milliseconds=t)
        second = (
            f"{when.year:04}-{when.month:02}-{when.day:02}T{when.hour:02}:{when.minute:02}:{when.second:02}"
        )
        return f"<{second}Z> {second}.{t % 1000:03}Z {second}.{t % 1000:03}007Z\n".encode()
    return WORDS[w] + str(item).encode() + WORDS[item] + "é\n".encode()


rows = st.tuples(
    st.integers(0, 2),
    st.integers(-(10**18), 10**18),
    st.integers(-(10**15), 10**15),
    ms,
    st.integers(0, 2),
    st.integers(0, 2),
)


@given(st.lists(rows, min_size=1, max_size=20))
def test_lines(lines: list[tuple[int, int, int, int, int, int]]) -> None:
    kinds, a, b, t, w, items = (np.array(column, np.int64) for column in zip(*lines, strict=True))
    columns = {"a": a, "b": b, "t": t, "u": 1000 * t + 7, "w": w}
    text = WRITER.write(columns, kinds.astype(np.uint8), items=items)
    assert text == b"".join(plain(*line) for line in lines)
    # The same from records in another order.
    back = np.arange(len(lines))[::-1]
    reversed_columns = {name: column[back] for name, column in columns.items()}
    assert WRITER.write(reversed_columns, kinds.astype(np.uint8), back, items) == text


def test_one_template_and_no_kinds() -> None:
    writer = TextWriter({"line": "{n}\n"})
    assert writer.write({"n": np.arange(3)}) == b"0\n1\n2\n"
    assert writer.write({"n": np.zeros(0, np.int64)}) == b""


def test_unknown_form() -> None:
    with pytest.raises(ValueError, match=r"\{n:wrds\} is no form"):
        TextWriter({"line": "{n:wrds}\n"}, {"words": WORDS})


def test_power_law() -> None:
    drawn = np.bincount(Choice.power_law(100, 1.0).draw(generator(1), 100_000), minlength=100)
    assert len(drawn) == 100 and 1.8 < drawn[0] / drawn[1] < 2.2 and 8 < drawn[0] / drawn[9] < 12


@given(st.integers(1, 5000))
def test_spread_is_one_to_one(many: int) -> None:
    assert sorted(spread(np.arange(many), many).tolist()) == list(range(many))


def test_bursts_keep_order_and_number() -> None:
    times = np.arange(0, 60_000, 7)
    moved = bursts(times, 0.5)
    assert (np.diff(moved) >= 0).all()
    assert (np.bincount(times // 10_000) == np.bincount(moved // 10_000)).all()
    assert 0.5 < (moved % 10_000 < 1_000).mean() < 0.6
    assert bursts(times, 0.0) is times


@given(
    st.integers(1, 10**6), st.floats(1, 10**7), st.integers(1, 10**5), st.floats(0.01, 50), st.floats(0, 0.9)
)
@settings(max_examples=30)
def test_no_instant_is_in_two_rounds(
    triples: int, rate: float, block: int, every: float, burst: float
) -> None:
    newest = -1
    for span in islice(rounds(triples, rate, block), 20):
        times, end = instants(generator(1), span, max(every, (span[1] - span[0]) / 1000), burst)
        if len(times):
            assert newest < times[0] and times[-1] <= max(times[0], end - 1)
            assert (np.diff(times) >= 0).all()
            newest = times[-1]


def test_disturbed() -> None:
    times = np.arange(10_000)
    order = disturbed(generator(1), times, 0.1, 50, 0.02)
    assert order is not None
    assert set(order.tolist()) == set(range(10_000)) and 10_100 < len(order) < 10_300
    assert 0.02 < (np.diff(times[order]) < 0).mean() < 0.2
    assert (np.maximum.accumulate(times[order]) - times[order]).max() <= 51
    assert disturbed(generator(1), times, 0.0, 50, 0.0) is None
