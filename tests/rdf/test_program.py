"""Programs of mappings say what the framing says, row by row."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kelda.rdf import ids
from kelda.rdf.columnar.cells import MISSING, Cells
from kelda.rdf.columnar.moments import steps_of
from kelda.rdf.columnar.program import Program
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.framings.base import Reading, RecordError
from kelda.rdf.framings.mapping import DATATYPES, XSD, compile_mapping
from kelda.rdf.framings.tabular import row_event
from kelda.rdf.keyset import KeySet
from kelda.rdf.skim import Asked, Rule
from tests.rdf.by_columns import EVERYTHING, check_found

CASES = int(os.environ.get("KELDA_CASES", "60"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

Texts = Sequence[str | None]


def cells_of(texts: Texts) -> Cells:
    data = [b"" if text is None else text.encode() for text in texts]
    ends = np.cumsum([len(one) for one in data], dtype=np.int64)
    starts = ends - np.array([len(one) for one in data], np.int64)
    starts[[text is None for text in texts]] = MISSING
    return Cells(np.frombuffer(b"".join(data) + bytes(64), np.uint8), starts, ends)


def compare(
    mapping: dict[str, Any],
    table: dict[str, Texts],
    *,
    time_predicate: str | None = None,
    needs_time: bool = False,
    rules: Sequence[Rule] = EVERYTHING,
    ordinal: int = 7,
    odd: Sequence[int] = (),
) -> np.ndarray:
    """Which rows are odd; all others say what the framing says."""
    compiled = compile_mapping(mapping)
    rejects: list[object] = []
    how = Reading("name", rejects.append, time_predicate, compiled, needs_time=needs_time)
    size = len(next(iter(table.values())))
    program = Program.of(compiled)
    assert program is not None
    marked = np.zeros(size, np.bool_)
    marked[list(odd)] = True
    dictionary = Dictionary()
    cells = [cells_of(table[name]) for name in program.columns]
    found, records = program.run(cells, size, marked, how, Asked.of(rules), dictionary, ordinal)
    events: list[Event] = []
    for i in range(size):
        values = {name: table[name][i] for name in program.columns}
        row = {k: v for k, v in values.items() if v is not None and v.strip() and v not in compiled.missing}
        try:
            event = row_event(row.get, ordinal + i, how)
        except RecordError:
            assert marked[i], f"row {i} is to be rejected: {values}"
            continue
        if not marked[i]:
            assert records[len(events)] == i
            events.append(event)
    assert len(records) == len(events) and not rejects
    check_found(found, dictionary, events, rules)
    return marked


WORDS = [
    None, "", " ", "x", "s17", "Kongens Nytorv", "ø", "日本", "a/b?c#d", "100%", '"q"', "back\\slash", "a\nb",
    "\r", "\x00", "-", "n/a", "long enough to be hashed as it does not fit", "http://ex/a", "urn:x:1", "<>",
    "http://ex/ø", "http://ex/a b", "\u00a0", "\u2003x", "x\u3000", "\x1f7\x1f", "\x85", "€", "🦀", "a" * 70,
]  # fmt: skip
NUMBERS = [
    "0", "-0", "1", "21.5", "7.40", "01", "+5", "-17", "1e5", "1E5", "1.25E-3", ".5", "5.", ".", "+", "",
    "INF", "-INF", "+INF", "NaN", "nan", "1_000", "1,5", " 3 ", "\t4", "5\u00a0", "9" * 17, "9" * 18,
    "9" * 19, "1" * 40, "-1", "127", "128", "-129", "255", "256", "32768", "-32769", "65536", "2147483648",
    "4294967296", "1.0E400", "0.1", "123456789012345.678", "true", "false", "1.7976931348623157e308", "5e",
    "5e+", "5e+07", "١٢", "0x10",
]  # fmt: skip
TIMES = [
    "2024-01-05T10:00:00Z", "2024-01-05T10:00:00", "2024-01-05T10:00:00.5", "2024-01-05T10:00:00.123456Z",
    "2024-01-05 10:00", "2024-01-05", "2024-02-30", "2024-02-29T23:59:59+05:30", "2023-02-29T00:00:00Z",
    "2024-1-5", "05/01/2024 10:11:12", "5/1/2024 1:2:3", "31.12.2023", "1700000000123", "1700000000",
    "1700000000.25", "-5.5", "+7", "1e3", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00",
    "99999-01-01", "2024-03-31T02:30:00", "2024-10-27T02:30:00", "1900-01-01T00:00:00", "20240105101112",
    "2024-01-05T10:00:60Z", "2024-01-05T24:00:00Z", "2024-01-05T10:00:00.Z", "2024-01-05T10:00:00+0530",
    "2024-01-05T10:00:00-00:00", "2024-01-05T10:00:00.1234567890123", "10:00:00", "10:00:00.25Z",
    "2024-01-05Z", "2024-01-05+01:00", "2024", "P1D", "PT1.5S", "P", " 2024-01-05T10:00:00Z ",
    "2024-01-05t10:00:00z", "999999999999999999", "2024-01-05T10Z", "Jan 5 2024",
    "2024-01-05T10:00:00.999999999+01:00", "2024-01-05T10:00:00+23:59", "0000-01-01T00:00:00Z",
    "2024-01-05T10:00:00+14:45", "2024-01-05T10:00:00+24:00", "0.9999999999999999999999999999999",
    "12345678901234567",
]  # fmt: skip
FORMATS = [
    "iso", "epoch-ms", "epoch-s", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%d/%m/%Y %H:%M:%S",
    "%Y%m%d%H%M%S", "%d.%m.%Y", "%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%S%z", "%b %d %Y", "%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f%z", "%Y",
]  # fmt: skip
ZONES = ["UTC", "Europe/Copenhagen", "America/St_Johns", "Asia/Kathmandu"]


def _mutated(draw: random.Random, texts: Sequence[str | None]) -> str | None:
    text = draw.choice(texts)
    if text and draw.random() < 0.3:
        at = draw.randrange(len(text))
        text = (
            text[:at]
            + draw.choice(["", "0", "9", "-", ":", " ", "ø", "Z", "."])
            + text[at + draw.randrange(2) :]
        )
    return text


def _mapping(draw: random.Random) -> dict[str, Any]:
    subjects = [
        "ex:obs/{w}",
        "ex:{n}/{w}",
        "http://{w}/x",
        "{+w}",
        "_:r",
        "_:r{w}",
        "ex:o",
        "urn:{t}",
        "ex:%4{n}",
    ]
    triples: list[Any] = []
    predicates = ["ex:p", "ex:q", "sosa:resultTime", "prov:generatedAtTime", "a"]
    for _ in range(draw.randrange(1, 5)):
        datatype = draw.choice(
            [*(name.replace(XSD, "xsd:") for name in DATATYPES), "xsd:anyURI", "ex:own", "xsd:string"]
        )
        column = draw.choice(["w", "n", "t"])
        time: dict[str, Any] = {
            "column": draw.choice("nt"),
            "datatype": draw.choice(["xsd:dateTime", "xsd:dateTimeStamp"]),
        }
        objects: list[Any] = [
            draw.choice(subjects),
            {"column": column},
            {"column": column, "lang": draw.choice(["en", "EN-gb"])},
            {"column": draw.choice(["n", "t"]), "datatype": datatype},
            {"column": draw.choice(["n", "t"]), "datatype": datatype},
            {"template": "{n}{t}", "datatype": datatype},
            {"template": 'a "{w}"'},
            {"value": "2024-01-05T00:00:00Z"},
            {"iri": "ex:c"},
            time | {"format": draw.choice(FORMATS), "timezone": draw.choice(ZONES)},
        ]
        triples.append([draw.choice(subjects), draw.choice(predicates), draw.choice(objects)])
    mapping: dict[str, Any] = {"prefixes": {"ex": "http://ex/", "own": "x:"}, "triples": triples}
    if draw.random() < 0.5:
        mapping["time"] = {
            "column": draw.choice("nt"),
            "format": draw.choice(FORMATS),
            "timezone": draw.choice(ZONES),
        }
    if draw.random() < 0.3:
        mapping["graph"] = draw.choice([*subjects, "ex:g"])
    if draw.random() < 0.5:
        mapping["missing"] = draw.sample(["-", "n/a", "0", "NaN", "ø"], 2)
    return mapping


@pytest.mark.parametrize("seed", SEEDS)
def test_as_the_framing(seed: int):
    draw = random.Random(seed)
    mapping = _mapping(draw)
    size = draw.choice([0, 1, 3, 40])
    pools = {"w": WORDS, "n": NUMBERS, "t": TIMES}
    if draw.random() < 0.5:  # what one column is about
        pools = {name: draw.sample(pool, 3) for name, pool in pools.items()}
    table = {name: [_mutated(draw, pool) for _ in range(size)] for name, pool in pools.items()}
    rules: Sequence[Rule] = EVERYTHING
    if draw.random() < 0.5:
        some = KeySet()
        some.add(
            np.array(
                [ids.encode(ids.from_text(t)) for t in ("<http://ex/obs/x>", '"x"', "<http://ex/o>")],
                np.int64,
            )
        )
        p = ids.encode(ids.from_text("<http://www.w3.org/ns/sosa/resultTime>"))
        rules = draw.choice(
            [[(p, None, None)], [(None, some, None)], [(p, None, None), (None, None, some)], []]
        )
    compare(
        mapping,
        table,
        time_predicate=draw.choice([None, None, "http://www.w3.org/ns/sosa/resultTime"]),
        needs_time=draw.random() < 0.2,
        rules=rules,
        ordinal=draw.choice([0, 9, 123_456_789]),
        odd=[i for i in range(size) if draw.random() < 0.1],
    )


USUAL: dict[str, Sequence[str]] = {
    "n": ["0", "21.5", "-7", "01", "+5", "1e5", "INF"],
    "i": ["0", "17", "-7", "01", "+5", "123456789012", "-0"],
    "b": ["true", "false", "1", "0"],
    "w": ["Kongens Nytorv", "ø", "100%", 'say "so"', "日本", "あ", "°", "€"],
    "d": ["2024-01-05", "2024-02-29Z", "1999-12-31+01:00"],
    "t": ["2024-01-05T10:00:00Z", "2024-01-05T10:00:00.123456+01:00", "0001-01-01T00:00:00.5"],
    "u": ["2024-01-05T10:00:00", "2024-01-05"],
}


@pytest.mark.parametrize(
    ("column", "object"),
    [
        ("n", {"column": "n", "datatype": "xsd:double"}),
        ("n", {"column": "n", "datatype": "xsd:float"}),
        ("i", {"column": "i", "datatype": "xsd:decimal"}),
        ("i", {"column": "i", "datatype": "xsd:integer"}),
        ("i", {"column": "i", "datatype": "xsd:long"}),
        ("b", {"column": "b", "datatype": "xsd:boolean"}),
        ("d", {"column": "d", "datatype": "xsd:date"}),
        ("t", {"column": "t", "datatype": "xsd:dateTime"}),
        ("u", {"column": "u", "format": "iso", "timezone": "Asia/Kathmandu", "datatype": "xsd:dateTime"}),
        ("w", {"column": "w"}),
        ("w", {"column": "w", "lang": "da"}),
        ("w", {"column": "w", "datatype": "xsd:anyURI"}),
        ("w", {"template": "at {w}"}),
        ("w", "ex:{w}/x"),
        ("w", "_:{w}"),
    ],
)
def test_what_is_usual_is_not_odd(column: str, object: Any):
    mapping = {"prefixes": {"ex": "http://ex/"}, "triples": [["_:s", "ex:p", object]]}
    assert not compare(mapping, {column: USUAL[column]}).any()


@pytest.mark.parametrize(
    ("format", "zone", "texts"),
    [
        ("iso", "UTC", ["2024-01-05", "2024-01-05 10:00", "2024-01-05T10:00:00.123456789-03:30"]),
        ("iso", "Europe/Copenhagen", ["2024-03-31T01:59:59", "2024-03-31T03:00:00", "2024-07-01"]),
        ("epoch-ms", "UTC", ["1700000000123", "-5", "12.75"]),
        ("epoch-s", "UTC", ["1700000000", "1700000000.1239", "-0.5"]),
        ("%d/%m/%Y %H:%M:%S", "America/St_Johns", ["05/01/2024 10:11:12", "5/1/2024 1:2:3"]),
        ("%Y%m%d%H%M%S", "UTC", ["20240105101112"]),
        ("%Y-%m-%dT%H:%M:%S.%f%z", "UTC", ["2024-01-05T10:00:00.5Z", "2024-01-05T10:00:00.000001+0530"]),
        ("%b %d %Y", "UTC", ["Jan 05 2024", "dec 31 1999"]),
    ],
)
def test_usual_times_are_not_odd(format: str, zone: str, texts: Sequence[str]):
    mapping = {
        "time": {"column": "t", "format": format, "timezone": zone},
        "triples": [["urn:{t}", "urn:p", "urn:o"]],
    }
    assert not compare(mapping, {"t": texts}).any()


@pytest.mark.parametrize("format", ["%B", "%Y%j", "%z%Y", "%f%d", "%d  %m", "1%d", "%p"])
def test_patterns_that_are_left_to_python(format: str):
    assert steps_of(format) is None


def test_blank_nodes_of_a_mapping_without_columns():
    assert not compare({"triples": [["_:s", "urn:p", "_:o"]], "columns": ["a"]}, {"a": ["", None]}).any()


def test_a_percent_in_a_template_may_be_half_of_one():
    mapping = {"prefixes": {"ex": "http://ex/"}, "triples": [["ex:%4{n}", "urn:p", "urn:o"]]}
    assert compare(mapping, {"n": ["1", "zz"]}).tolist() == [False, True]
