"""CSV read by columns is CSV as the framing reads it."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from kelda.rdf import ids
from kelda.rdf.columnar import READERS
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framing import prepare_mapping
from kelda.rdf.framings.base import Reading
from kelda.rdf.keyset import KeySet
from kelda.rdf.skim import Asked, Rule
from tests.rdf.by_columns import EVERYTHING, check, chunks_of

CASES = int(os.environ.get("KELDA_CASES", "300"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

MAPPING: dict[str, Any] = {
    "prefixes": {"ex": "http://ex/"},
    "time": {"column": "time", "format": "epoch-ms"},
    "triples": [
        ["ex:obs/{id}", "sosa:madeBySensor", "ex:sensor/{sensor}"],
        ["ex:obs/{id}", "sosa:hasSimpleResult", {"column": "value", "datatype": "xsd:double"}],
        ["ex:obs/{id}", "ex:note", {"column": "note"}],
        ["ex:obs/{id}", "ex:in", "_:place"],
    ],
    "missing": ["n/a"],
}
HEAD = b"id,sensor,value,time,note\n"
ROWS = [
    b"o1,s1,21.5,1700000000123,\n",
    b"o2,s1,22,1700000000124,fine\n",
    b'o3,"s,1",7.40,1700000000125,"said ""so"""\n',
    b'"o4",s2,-1e3,1700000000126,"two\nlines"\r\n',
    b"o5,s2,n/a,1700000000127,\xc3\xb8\xe2\x82\xac\n",
]


def test_usual_rows():
    assert check("csv", HEAD + b"".join(ROWS), mapping=MAPPING) == 18


@pytest.mark.parametrize(
    "row",
    [
        b"o1,s1,21.5,1700000000123\n",
        b"o1,s1,21.5,1700000000123,,\n",
        b"o1,s1,warm,1700000000123,\n",
        b"o1,s1,21.5,soon,\n",
        b"o1,s1,21.5,,\n",
        b'o1,"s1,21.5,1700000000123,\n',
        b'o1,"s1"x,21.5,1700000000123,\n',
        b'o1,s"1",21.5,1700000000123,\n',
        b'o1,"s1"\r,21.5,1700000000123,\n',
        b"o1,s\r1,21.5,1700000000123,\n",
        b"o1,s1,21.5,1700000000123,a\r\r\n",
        b'o1,s1,21.5,1700000000123,"a"\r\r\n',
        b'o1,s1,21.5,1700000000123,"a\x00"\n',
        b"o1,s1,21.5,1700000000123,\xff\n",
        b'o1,s1,21.5,1700000000123,"\xc3""\xb8"\n',
        b'o1,s1,21.5,1700000000123,"\xc3\xb8""\xc3\xb8\xc3\xb8"\n',
        b",,,,\n",
        b"\n",
        b" \t\r\n",
        b'"",,,,\n',
        b'o1,s1,21.5,1700000000123,""""\n',
        b'o1,s1,21.5,1700000000123,"""\n',
        b'"\n',
        b"\xc2\xa0,s1,21.5,1700000000123,\n",
    ],
)
def test_odd_rows(row: bytes):
    check("csv", HEAD + ROWS[0] + row + ROWS[1] + row + row + ROWS[3] + row.rstrip(b"\n"), mapping=MAPPING)


def test_a_row_that_is_too_long_is_left_to_the_framing():
    row = b"o1,s1,21.5,1700000000123," + b"x" * 3000 + b"\n"
    how = Reading("s", lambda _: None, None, prepare_mapping("csv", MAPPING).mapping, 1000)
    (chunk,) = chunks_of("csv", HEAD + row, (), MAPPING)
    assert READERS["csv"](chunk, how, Asked.of(EVERYTHING), Dictionary()) is None


def test_usual_rows_are_not_left_to_the_framing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kelda.rdf.columnar.csv._odd", None)
    how = Reading("s", lambda _: None, None, prepare_mapping("csv", MAPPING).mapping)
    (chunk,) = chunks_of("csv", HEAD + b"".join(ROWS), (), MAPPING)
    found = READERS["csv"](chunk, how, Asked.of(EVERYTHING), Dictionary())
    assert found is not None and found.size == 18


def _table(draw: random.Random) -> bytes:
    mutated = b"".join(draw.choice(ROWS) for _ in range(draw.randrange(12)))
    for _ in range(draw.choice([0, 0, 1, 1, 2, 5])):
        at = draw.randrange(len(mutated) + 1)
        what = draw.choice(
            [b'"', b",", b"\n", b"\r", b"\r\n", b"", b"\x00", b"\xff", b"\xc2\xa0", b" ", b"9", b'""']
        )
        mutated = mutated[:at] + what + mutated[at + draw.randrange(3) :]
    if draw.random() < 0.2:
        mutated = bytes(draw.choice(b'",\n\ra1 \t\xc3\xb8') for _ in range(draw.randrange(80)))
    head = draw.choice(
        [HEAD, HEAD, b"\xef\xbb\xbf" + HEAD, b"\n" + HEAD, b"sensor, id ,note,time,value,id\r\n"]
    )
    return head + mutated


@pytest.mark.parametrize("seed", SEEDS)
def test_as_the_framing(seed: int):
    draw = random.Random(seed)
    data, mapping = _table(draw), dict(MAPPING)
    if draw.random() < 0.2:
        del mapping["time"]
    if draw.random() < 0.2:
        mapping |= {"columns": ["id", "sensor", "value", "time", "note"]}
    if draw.random() < 0.2:
        mapping, data = mapping | {"delimiter": "\t"}, data.replace(b",", b"\t")
    rules: list[Rule] = list(EVERYTHING)
    if draw.random() < 0.5:
        some = KeySet()
        some.add(np.array([ids.encode(ids.from_text("<http://ex/sensor/s1>"))], np.int64))
        p = ids.encode(ids.from_text("<http://www.w3.org/ns/sosa/hasSimpleResult>"))
        rules = draw.choice([[], [(p, None, None)], [(None, None, some)]])
    check(
        "csv",
        data,
        mapping=mapping,
        needs_time=draw.random() < 0.2,
        rules=rules,
        cuts=sorted(draw.sample(range(len(data) + 1), draw.randrange(min(4, len(data))))),
        max_records=draw.choice([1, 2, 5, 4096]),
    )
