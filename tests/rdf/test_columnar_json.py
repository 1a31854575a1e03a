"""JSON lines with a mapping, read by columns: the same as by the framing.

KELDA_RANDOM=1 KELDA_CASES=20000 for more random ones; the seed of a failure is in the name of its test.
"""

from __future__ import annotations

import json
import os
import random

import pytest

from kelda.rdf.columnar.json_lines import cells_of, tree_of
from kelda.rdf.framings.base import RecordError
from kelda.rdf.framings.tabular import JSON, _object, text_in
from tests.rdf.by_columns import check

CASES = int(os.environ.get("KELDA_CASES", "200"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

MAPPING = {
    "prefixes": {"ex": "http://ex/"},
    "time": {"column": "t", "format": "epoch-ms"},
    "triples": [
        ["ex:{id}", "ex:speed", {"column": "v.speed", "datatype": "xsd:double"}],
        ["ex:{id}", "ex:place", {"column": "v.at.é", "lang": "en"}],
        ["ex:{id}", "ex:in", "_:x{id}"],
    ],
    "missing": ["NA"],
}
UNTIMED = {"triples": [["_:b", "http://www.w3.org/ns/sosa/resultTime", {"column": "a"}]]}

LINES = [
    b'{"id":1,"t":1000,"v":{"speed":7.50,"at":{"\xc3\xa9":"K\xc3\xb8benhavn"}}}',
    b'{"id":"o2","t":"2000","v":{"speed":1e5,"at":{"\xc3\xa9":"x\\u00e9\\n\\"\\ud83d\\ude00"}},"z":[1,[{}],{"a":[]}]}',
    b'{"id":true,"t":1,"v":null,"v.speed":-0.0}',
    b'{"id":"NA","t":1,"v":{"speed":1}}',
    b'{"id":" ","t":1,"v":{"speed":1}}',
    b'{"id":"a b/\xe2\x82\xac","t":1,"v":3}',
    b'{ "v" : { "speed" : "12" , "x" : { } } , "id" : false , "t" : 5 } \r',
    b'{"id":["a","b"],"t":1,"v":{"speed":1}}',
    b'{"id":"a","t":1,"v":[{"speed":1},{"speed":2}]}',
    b'{"id":"a","t":1,"v":{"speed":{}}}',
    b'{"id":"a","t":1,"id":"b"}',
    b'{"x":1,"x":2,"id":"a","t":3}',
    b'{"id":"a"}',
    b'{"id":"a","t":"noon"}',
    b'{"id":"a","t":1,"v":{"speed":"fast"}}',
    b'{"id":"a","t":99999999999999999999}',
    b'{"\\u0069d":"a","t":1}',
    b"{}",
    b"[]",
    b"7",
    b"",
    b" \t\x0b\r",
    b'{"id":"\\ud800","t":1}',
    b'{"id":"\xff","t":1}',
    b'{"id":"\x01","t":1}',
    b'{"id":"\\u0000","t":1}',
    b'{"id":NaN,"t":1}',
    b'{"id":01,"t":1}',
    b'{"id":1.,"t":1}',
    b'{"id":1,"t":1} x',
    b'{"id":1,"t":1,}',
    b'{"id":1,"t":1,"z":[1,]}',
    b'{"id":1,"t":1,"z":"' + b"y" * 200 + b'"}',
    b'{"id":1,"t":1,"z":' + b"[" * 70 + b"]" * 70 + b"}",
    b'{"id":1,"t":1,"z":' + b"[" * 2000,
    b"\xef\xbb\xbf{}",
]
ODD_BYTES = b'{}[]",:\\u0 19.eE-+tfn\t\r\n\x01\x80\xc3\xed\xf4\xf0'


def mutated(line: bytes, draw: random.Random) -> bytes:
    text = bytearray(line)
    for _ in range(draw.choice([0, 0, 1, 1, 2, 5])):
        at = draw.randrange(len(text) + 1)
        kind = draw.random()
        if kind < 0.4:
            text[at : at + 1] = bytes([draw.choice(ODD_BYTES)])
        elif kind < 0.7:
            del text[at : at + draw.choice([1, 1, 3])]
        else:
            text[at:at] = bytes([draw.choice(ODD_BYTES)])
    return bytes(text)


def drawn(draw: random.Random) -> bytes:
    lines = [mutated(draw.choice(LINES), draw) for _ in range(draw.randrange(1, 9))]
    return draw.choice([b"\n", b"\r\n"]).join(lines) + draw.choice([b"", b"\n"])


@pytest.mark.parametrize("mapping", [MAPPING, UNTIMED], ids=["timed", "untimed"])
def test_each_line(mapping):
    for line in LINES:
        check("json", line, mapping=mapping)
        check("json", line + b"\r\n", mapping=mapping, needs_time=True)
    assert check("json", b"\n".join(LINES), mapping=MAPPING) > 9
    assert check("ndjson", b"\xef\xbb\xbf" + b"\n".join(LINES[:3]), mapping=MAPPING) == 8
    assert check("json", b"", mapping=MAPPING) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_random_lines(seed):
    draw = random.Random(seed)
    data = drawn(draw)
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randrange(3)))
    mapping = draw.choice([MAPPING, UNTIMED])
    needs_time, most = draw.random() < 0.3, draw.choice([1, 2, 3, 4096])
    check("json", data, mapping=mapping, cuts=cuts, needs_time=needs_time, max_records=most)


@pytest.mark.parametrize("seed", SEEDS)
def test_cells(seed):
    """What is found in a line is what the framing finds."""
    draw = random.Random(seed)
    columns = ("id", "t", "v.speed", "v.at.é", "v.at", "v")[: draw.randrange(1, 7)]
    data = drawn(draw)
    cells, begins, odd = cells_of(data, tree_of(columns))
    for i, strange in enumerate(odd):
        line = data[begins[i] : begins[i + 1]]
        if not strange:
            found = _object(line)
            for column, (text, start, end) in zip(columns, cells, strict=True):
                value = None if start[i] < 0 else text[start[i] : end[i]].tobytes().decode()
                assert value == text_in(found, column)


def test_usual_lines_are_not_odd():
    columns = ("id", "v.speed", "v.at")
    for line in LINES[:7]:
        assert not cells_of(line, tree_of(columns[: 3 if b"at" not in line else 2]))[2].any(), line
    many = [{"id": i, "v": {"speed": i / 7, "at": f"{i}é"}, "z": [i, {"a": None}]} for i in range(500)]
    text = "\n".join(json.dumps(one, ensure_ascii=i % 2 > 0) for i, one in enumerate(many)).encode()
    assert not cells_of(text, tree_of(columns))[2].any()


def test_what_is_no_object_is_left_to_the_framing():
    for line in LINES[16:]:
        try:
            _object(line)
        except RecordError:
            assert cells_of(line, tree_of(("id",)))[2].all() or not line
    assert JSON.name == "json"
