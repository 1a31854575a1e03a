"""Tables of other libraries and texts that are pushed: by columns they say what they say one by one."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import kelda
from kelda.errors import InputError
from kelda.io import pushed
from kelda.io.elements import Pushed, columns_of
from kelda.io.payload import events_of
from kelda.io.sources.arriving import arrivals
from kelda.rdf.columnar.found import NO_TIME, Found
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from tests.rdf.by_columns import EVERYTHING, check_found

CASES = int(os.environ.get("KELDA_CASES", "60"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

MAPPING: dict[str, Any] = {
    "time": {"column": "t", "format": "epoch-ms"},
    "triples": [["urn:{a}", "urn:p", {"column": "v", "datatype": "xsd:double"}]],
}

NOW = datetime(2024, 1, 5, 10, 0, 0, tzinfo=timezone.utc)
FIRST = datetime(1, 1, 1)
COLUMNS: dict[str, list[Any]] = {
    "text": ["a", "b c", "", " ", "n/a", "ø€", 'say "so"', "two\nlines", "long enough to be hashed"],
    "number": [0.0, -0.0, 1.0, 21.5, 7.4, 1e16, 1e15, 123456789012.25, 1e-5, 0.0001, 1e22, 5e-324, 1 / 3],
    "odd_number": [float("nan"), float("inf"), float("-inf"), 2.5, 1e300],
    "whole": [0, 1, -5, 2**40, -(2**63), 2**63 - 1],
    "small": [0, 1, 255],
    "truth": [True, False],
    "money": [Decimal("1.50"), Decimal("-3.00"), Decimal("0.00000001"), Decimal("12345678.9")],
    "day": [date(2024, 1, 5), date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31)],
    "moment": [
        datetime(2024, 1, 5, 10),
        datetime(2024, 1, 5, 10, 0, 0, 5000),
        datetime(1, 1, 1),
        datetime(1969, 1, 1),
    ],
    "zoned": [NOW, NOW + timedelta(microseconds=1), NOW + timedelta(milliseconds=250)],
    "kind": ["red", "green"],
    "blob": [b"x"],
    "many": [["a", "b"], ["c"], []],
    "place": [{"x": 1, "y": "q"}, {"x": None, "y": "r"}],
}
TYPES: dict[str, pa.DataType] = {
    "small": pa.uint8(),
    "money": pa.decimal128(20, 8),
    "moment": pa.timestamp("us"),
    "zoned": pa.timestamp("us", tz="UTC"),
    "kind": pa.dictionary(pa.int32(), pa.string()),
}
OBJECTS: list[Any] = [
    {"column": "text"},
    {"column": "number", "datatype": "xsd:double"},
    {"column": "number", "datatype": "xsd:decimal"},
    {"column": "odd_number", "datatype": "xsd:double"},
    {"column": "odd_number"},
    {"column": "whole", "datatype": "xsd:integer"},
    {"column": "small", "datatype": "xsd:byte"},
    {"column": "truth", "datatype": "xsd:boolean"},
    {"column": "money", "datatype": "xsd:decimal"},
    {"column": "day", "datatype": "xsd:date"},
    {"column": "moment", "datatype": "xsd:dateTime"},
    {"column": "zoned", "datatype": "xsd:dateTime"},
    {"column": "zoned"},
    {"column": "many"},
    {"column": "place.x", "datatype": "xsd:integer"},
    {"column": "place.y"},
    {"column": "nowhere"},
    {"column": "blob"},
    "ex:{kind}",
    "_:n",
    "_:n{text}",
]


def _table(draw: random.Random, size: int) -> pa.Table:
    nulls = draw.choice([0, 0.3])
    return pa.table(
        {
            name: pa.array(
                [None if draw.random() < nulls else draw.choice(values) for _ in range(size)], TYPES.get(name)
            )
            for name, values in COLUMNS.items()
        }
    )


def _objects(table: pa.Table) -> pd.DataFrame:
    return pd.DataFrame(
        {name: pd.Series(table[name].to_pylist(), dtype=object) for name in table.column_names}
    )


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "slices": lambda table: pa.concat_tables([table.slice(3), table.slice(0, 7)]),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "pandas": lambda table: table.to_pandas(),
    "objects": _objects,
    "polars": lambda table: pl.from_arrow(table),
}


def both(frame: Any, mapping: Any, at: int | None = None, time_predicate: str | None = None) -> None:
    """That the two ways say the same, or refuse it with the same words."""
    how: Any = {"format": None, "mapping": mapping, "time_predicate": time_predicate, "name": "http://ex/s#1"}
    slow: list[Event] | str
    fast: Pushed | str | None
    try:
        slow = events_of(frame, at, **how)
    except InputError as error:
        slow = str(error)
    try:
        fast = pushed.pushed_of(frame, at, **how)
    except InputError as error:
        fast = str(error)
    if isinstance(slow, str) or isinstance(fast, str):
        assert fast == slow
        return
    assert fast is not None
    assert len(fast) == len(slow)
    s, p, o, g, times, event = fast.columns
    check_found(Found(len(s), times, event, None, s, p, o, g), fast.dictionary, slow, EVERYTHING)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed, "LEAST", 1)
    monkeypatch.setattr(pushed, "ROWS", 13)


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_frames(kind: str, seed: int):
    draw = random.Random(seed)
    triples = [
        ["ex:r/{whole}/{kind}", f"ex:p{n}", object]
        for n, object in enumerate(draw.sample(OBJECTS, draw.randrange(1, 4)))
    ]
    mapping: dict[str, Any] = {"prefixes": {"ex": "http://ex/"}, "triples": triples}
    if draw.random() < 0.5:
        mapping["time"] = {"column": draw.choice(["zoned", "moment", "day"])}
    if draw.random() < 0.3:
        mapping["missing"] = ["n/a", "1.0", "red"]
    frame = FRAMES[kind](_table(draw, draw.choice([8, 40])))
    both(frame, mapping, at=draw.choice([None, 5000]))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 1_000_000_000, 1_500_000_001], pa.timestamp("ns")),
        pa.array([1_000_000_000, None], pa.timestamp("ns", tz="UTC")),
        pa.array([0, 1_700_000_000], pa.timestamp("s", tz="Europe/Copenhagen")),
        pa.array([0, 1_700_000_000_123], pa.timestamp("ms", tz="+05:30")),
        pa.array([0, 1_700_000_000_000], pa.date64()),
        pa.array([0, 5], pa.duration("ms")),
        pa.array([0, 5], pa.time32("s")),
        pa.array([1.5, 0.1], pa.float32()),
        pa.array(["a", None, "b"], pa.string_view()),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array([None, None], pa.null()),
        pa.array(["a", "b"]).slice(1),
    ],
    ids=lambda values: str(values.type),
)
def test_types(values: pa.Array):
    table = pa.table({"v": values})
    mapping = {"triples": [["urn:s", "urn:p", {"column": "v"}], ["urn:s", "urn:q", "urn:{v}"]], "time": "v"}
    frames = [table, table.to_pandas()]
    if values.type != pa.timestamp("ms", tz="+05:30"):
        frames.append(pl.from_arrow(table))
    for frame in frames:
        both(frame, mapping)
        both(frame, {"triples": [["urn:s", "urn:p", {"template": "v {v}"}], ["urn:s", "urn:p", "urn:o"]]})


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(pd.Categorical([1, "a", 2.5])),
        pd.Series([1, 2.0, "3", True, None, Decimal("4.50")], dtype=object),
        pd.Series(["a", "\ud800"], dtype=object),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series(["a", None], dtype="string"),
        pd.Series([1, 2], dtype="int8[pyarrow]"),
        pd.Series(pd.period_range("2024-01", periods=2, freq="M")),
        pd.Series(pd.to_timedelta([1, 2], unit="s")),
        pd.Series([np.float32(0.1), np.int64(5)], dtype=object),
        pd.Series([1.5, 2.25], dtype="float32"),
        pd.Series(pd.to_datetime(["2024-01-05T10:00:00.000000001", None])),
        pd.Series(pd.to_datetime(["2024-01-05T10:00:00"])).dt.tz_localize("Europe/Copenhagen"),
    ],
    ids=lambda series: str(series.dtype),
)
def test_pandas(series: pd.Series):
    frame = pd.DataFrame({"v": series})
    for object in ({"column": "v"}, {"template": "v {v}"}):
        try:
            both(frame, {"triples": [["urn:s", "urn:p", object], ["urn:s", "urn:q", "urn:o"]]})
        except UnicodeEncodeError:  # half of a surrogate pair: no text, either way
            with pytest.raises(UnicodeEncodeError):
                events_of(frame, mapping={"triples": [["urn:s", "urn:p", object]]})


def test_polars_cuts_times_to_microseconds():
    frame = pl.DataFrame({"v": [1, 1_000_000_001]}).select(pl.col("v").cast(pl.Datetime("ns")))
    both(frame, {"triples": [["urn:s", "urn:p", {"column": "v", "datatype": "xsd:dateTime"}]]})


def test_columns_that_arrow_says_as_python_does_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pushed, "_odd", None)
    monkeypatch.setattr("kelda.io.frame_cells._each", None)
    monkeypatch.setattr(pushed, "woven", lambda found, *_: found)
    table = pa.table(
        {
            "id": ["a", "b"],
            "v": [1.0, 2.5],
            "n": [1, 2],
            "t": pa.array([NOW, NOW], pa.timestamp("ms", tz="UTC")),
        }
    )
    mapping = {
        "time": {"column": "t"},
        "triples": [
            ["urn:{id}", "urn:v", {"column": "v", "datatype": "xsd:double"}],
            ["urn:{id}", "urn:n", {"column": "n", "datatype": "xsd:integer"}],
        ],
    }
    for frame in (table, table.to_pandas(), pl.from_arrow(table)):
        monkeypatch.setattr(pushed, "_odd", lambda *a: pytest.fail("odd") if a[2].any() else [])
        both(frame, mapping)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_texts(format: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pushed, "LEAST_TEXT", 1)
    mapping = {
        "time": {"column": "t", "format": "epoch-ms"},
        "triples": [["urn:{a}", "urn:p", {"column": "b"}]],
    }
    text = (
        "a,b,t\n" + "1,x,5\n2,y,6\n" if format == "csv" else '{"a":1,"b":"x","t":5}\n{"a":2,"b":"y","t":6}\n'
    )
    how: Any = {"format": format, "mapping": mapping, "time_predicate": None, "name": "n"}
    found = pushed.pushed_of(text, None, **how)
    assert found is not None and found.times.tolist() == [5, 6]
    wrong = text.replace("5", "five")
    with pytest.raises(InputError) as slow:
        events_of(wrong, None, **how)
    with pytest.raises(InputError) as fast:
        pushed.pushed_of(wrong, None, **how)
    assert str(fast.value) == str(slow.value)


TEXTS = {
    "messages": """PREFIX : <http://ex/>
:a :p 1 ; :at "2024-01-05T10:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .
MESSAGE
MESSAGE
[] :p "x"@en .
MESSAGE
:b :p _:b .
""",
    "ndjsonld": """{"@id": "x:a", "x:p": [1, {"@id": "x:o"}]}
{"@id": "x:nothing"}
{"x:p": {"@value": "v", "@language": "en"}}
""",
    "nquads": """<x:a> <x:p> "1" <x:g> .
<x:a> <x:q> "2" <x:g> .
1500\t<x:b> <x:p> _:b .
<x:c> <x:p> <x:o> .
""",
}


@pytest.mark.parametrize("at", [None, 7000])
@pytest.mark.parametrize("time_predicate", [None, "http://ex/at"])
@pytest.mark.parametrize("format", TEXTS)
def test_texts_of_records(
    format: str, time_predicate: str | None, at: int | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pushed, "LEAST_TEXT", 1)
    how: Any = {"format": format, "mapping": None, "time_predicate": time_predicate, "name": "n"}
    try:
        wanted = events_of(TEXTS[format], at, **how)
    except InputError as problem:
        with pytest.raises(InputError) as fast:
            pushed.pushed_of(TEXTS[format], at, **how)
        assert str(fast.value) == str(problem)
        return
    found = pushed.pushed_of(TEXTS[format], at, **how)
    assert found is not None and len(found) == len(wanted)
    given = [Event(NO_TIME if e.time is None else e.time, e.quads) for e in wanted if e.quads]
    known = Dictionary()
    assert [c.tolist() for c in found.columns] == [c.tolist() for c in columns_of(given, known)]
    ids = np.concatenate(found.columns[:4])
    assert found.dictionary.terms(ids) == known.terms(ids)


@pytest.mark.parametrize("seed", range(20))
def test_arrivals(seed: int, monkeypatch: pytest.MonkeyPatch):
    draw = random.Random(seed)
    monkeypatch.setattr(time, "time_ns", lambda: 1000 * 1_000_000)
    events = [
        Event(draw.choice([None, None, 5, 998, 1003, 2000]), events_of("<x:a> <x:b> <x:c>, <x:d> .")[0].quads)
        for _ in range(draw.randrange(1, 9))
    ]
    seen = draw.choice([-(2**63), 7, 999, 1001])
    given = [Event(NO_TIME if event.time is None else event.time, event.quads) for event in events]
    dictionary = Dictionary()
    columns = Pushed(columns_of(given, dictionary), dictionary, len(events))
    slow, last = arrivals(events, seen)
    fast, fast_last = arrivals(columns, seen)
    assert isinstance(fast, Pushed) and fast_last == last
    assert fast.times.tolist() == [event.time for event in slow]  # type: ignore[union-attr]


QUERY = "SELECT ?s ?v WHERE { STREAM <http://ex/s> [NOW] { ?s <urn:p> ?v } }"


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("timed", [False, True])
def test_answers(lasts: bool, timed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    table = pa.table({"a": np.arange(40), "v": np.arange(40) / 4, "t": 1000 + np.arange(40)})
    mapping = MAPPING if timed else {"triples": MAPPING["triples"]}

    def answers(least: int) -> list[tuple[int, str]]:
        monkeypatch.setattr(pushed, "LEAST", least)
        checkpoint = str(tmp_path / str(least)) if lasts else None
        with kelda.connect(checkpoint=checkpoint) as engine:
            stream = engine.stream("http://ex/s", mapping=mapping)
            query = engine.register(QUERY)
            assert stream.push(table) == 40
            assert stream.pushed == 40
            stream.end()
            if lasts:
                engine.start()
                assert engine.wait(60)
            found = [(a.time if timed else 0, str(a.bindings)) for a in query.results()]
            assert len(found) == 40
            return sorted(found)

    assert answers(10**9) == answers(1)
