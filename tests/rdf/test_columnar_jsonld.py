"""JSON-LD documents read by shapes: the same as by the framing.

KELDA_RANDOM=1 KELDA_CASES=20000 for more random ones; the seed of a failure is in the name of its test.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import numpy as np
import pytest

from kelda.rdf import ids
from kelda.rdf.columnar import jsonld
from kelda.rdf.columnar.jsonld_shapes import canonical
from kelda.rdf.framings.ndjsonld import ContextMapping
from kelda.rdf.keyset import KeySet
from tests.rdf.by_columns import EVERYTHING, check

CASES = int(os.environ.get("KELDA_CASES", "200"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

XSD = "http://www.w3.org/2001/XMLSchema#"
SOSA = "http://www.w3.org/ns/sosa/"
CONTEXT: dict[str, Any] = {
    "ex": "http://ex/",
    "sosa": SOSA,
    "@base": "http://base/dir/file?q#f",
    "@language": "EN-gb",
    "id": "@id",
    "type": "@type",
    "at": {"@id": "sosa:resultTime", "@type": XSD + "dateTime"},
    "ms": {"@id": "ex:ms", "@type": XSD + "integer"},
    "sensor": {"@id": "sosa:madeBySensor", "@type": "@id"},
    "kind": {"@id": "ex:kind", "@type": "@vocab"},
    "value": {"@id": "ex:value", "@language": None},
    "text": "ex:text",
    "double": {"@id": "ex:double", "@type": XSD + "double"},
    "decimal": {"@id": "ex:decimal", "@type": XSD + "decimal"},
    "odd": {"@id": "ex:odd", "@type": "ex:type"},
    "list": {"@id": "ex:list", "@container": "@list"},
    "words": {"@id": "ex:words", "@container": "@language"},
    "byId": {"@id": "ex:byId", "@container": "@id"},
    "indexed": {"@id": "ex:indexed", "@container": "@index"},
    "back": {"@reverse": "ex:back"},
    "raw": {"@id": "ex:raw", "@type": "@json"},
    "none": None,
    "ex:full": {"@id": "ex:full", "@type": "@id"},
    "Scoped": {
        "@id": "ex:Scoped",
        "@context": {"text": "ex:scoped", "value": {"@id": "ex:value", "@type": "@id"}},
    },
    "inner": {"@id": "ex:inner", "@context": {"sensor": {"@id": "ex:innerSensor", "@type": "@vocab"}}},
}
CONTEXTS: list[Any] = [
    CONTEXT,
    {k: v for k, v in CONTEXT.items() if k not in ("@base", "@language")} | {"@vocab": "http://vocab/"},
    {"@vocab": "http://vocab/", "@base": "http://base/"},
    ["http://known/", {"ex": "http://other/"}],
    None,
]
MAPPING = {"contexts": {"http://known/": {"@context": CONTEXT}}}

NAMES = [
    "o1",
    "a/b",
    "a//b",
    "",
    ".",
    "..",
    "a.b",
    "#x",
    "?q",
    "/r",
    "é",
    "sensor",
    "ex",
    "id",
    "type",
    "@id",
    "@x",
]
NAMES += [
    "none",
    "text",
    "Scoped",
    "a b",
    "a:b",
    "x y:z",
    ":c",
    "_:n",
    "_:n1",
    "ex:a",
    "ex:full",
    "ex:",
    "ex://a",
]
NAMES += [
    "ex:é",
    "ex:a b",
    "ex:<",
    "ex:%zz",
    "ex:%20",
    "sosa:x",
    "http://h/p",
    "http://h/a/../b",
    "http://[x",
    "urn:x",
]
NAMES += [
    "http://h:80/p?q#f",
    "mailto:a@b",
    "nope:x",
    "sensor:x",
    "http:a",
    "ex:a#b#c",
    "\\u0065x:a",
    "x-kelda-relative://y",
]
TEXTS = [
    "",
    "a",
    "seven!!",
    "eight!!!",
    "x" * 100,
    "é€😀",
    '\\"',
    "\\\\",
    "\\n\\r\\t\\b\\f\\/",
    "\\u00e9\\u0000",
    "@id",
]
TEXTS += [
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\u000a\\u0022\\u005c",
    "2024-01-01T00:00:00Z",
    "true",
    "1",
    "_:b",
    "\x7f",
]
NUMBERS = [
    "0",
    "-0",
    "1",
    "-1",
    "12",
    "100",
    "1.0",
    "1.5",
    "-0.0",
    "0.0",
    "0.5",
    "0.05",
    "-0.0050",
    "100.50",
    "1e3",
]
NUMBERS += [
    "1E-7",
    "123456789012345",
    "1234567890123456",
    "12345678901234567890123",
    "0.1234567890123456",
    "21.50",
]
NUMBERS += [
    "1700000000123",
    "99999999999999999",
    "10.0",
    "01",
    "1.",
    "+1",
    "NaN",
    ".5",
    "5e",
    "1200",
    "-1200.00",
]
TIMES = [
    "2024-01-01T00:00:00Z",
    "2024-02-30T00:00:00Z",
    "2024-01-01T00:00:00.123+02:00",
    "1700000000123",
    " 5 ",
    "5",
]
TIMES += [
    "-5",
    "+7",
    "2024-01-01",
    "noon",
    "2024-01-01T00:00:00.1234Z",
    "99999999999999999",
    "0001-01-01T00:00:00+14:00",
]


USUAL = {
    "names": ["ex:a", "ex:b2", "ex:full", "sosa:x", "http://h/p", "http://h/a?b#c", "urn:x", "ex:"],
    "texts": ["", "a", "seven!!", "eight!!!", "é€😀", '\\"', "\\n", "x" * 100],
    "numbers": ["0", "1", "12", "1.0", "1.5", "-0.5", "0.05", "100.50", "21.50", "1700000000123"],
    "times": ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.123+02:00", "1700000000123", "5"],
}
STRANGE = {"names": NAMES, "texts": TEXTS, "numbers": NUMBERS, "times": TIMES}


def some(draw: random.Random, kind: str) -> str:
    """Mostly what is usual."""
    return draw.choice(USUAL[kind] if draw.random() < 0.8 else STRANGE[kind])


def quoted(draw: random.Random, kind: str) -> str:
    return f'"{some(draw, kind)}"'


def value(draw: random.Random, depth: int = 0) -> str:
    """A random value, as JSON text."""
    kind = draw.random()
    if kind < 0.25:
        return quoted(draw, "texts")
    if kind < 0.45:
        return some(draw, "numbers")
    if kind < 0.6:
        return quoted(draw, "names")
    if kind < 0.7:
        return draw.choice(["true", "false", "null"])
    if kind < 0.8 and depth < 2:
        return "[" + ",".join(value(draw, depth + 1) for _ in range(draw.randrange(3))) + "]"
    if kind < 0.9:
        members = [f'"@value":{draw.choice([quoted(draw, "texts"), some(draw, "numbers"), "true"])}']
        members += draw.choice(
            [[], ['"@language":"de"'], ['"@type":"ex:t"'], [f'"@type":"{XSD}integer"'], ['"@index":"i"']]
        )
        return "{" + ",".join(members) + "}"
    return document(draw, depth + 1) if depth < 2 else "{}"


def document(draw: random.Random, depth: int = 0) -> str:
    members = []
    if draw.random() < 0.8:
        members.append(f'"{draw.choice(["id", "@id"])}":{quoted(draw, "names")}')
    if draw.random() < 0.3:
        members.append(f'"{draw.choice(["type", "@type"])}":"{draw.choice(["Scoped", "ex:T", "T"])}"')
    usual = {
        "at": lambda: quoted(draw, "times"),
        "ms": lambda: some(draw, "numbers"),
        "sensor": lambda: quoted(draw, "names"),
        "kind": lambda: quoted(draw, "names"),
        "words": lambda: f'{{"en":{quoted(draw, "texts")}}}',
        "byId": lambda: f'{{"ex:i":{document(draw, depth + 1) if depth < 2 else "{}"}}}',
        "indexed": lambda: f'{{"i":{value(draw, depth + 1)}}}',
        "list": lambda: f"[{value(draw, 1)},{quoted(draw, 'texts')}]",
        "inner": lambda: document(draw, depth + 1) if depth < 2 else "{}",
        "back": lambda: f'{{"@id":{quoted(draw, "names")}}}',
        "@graph": lambda: f"[{document(draw, depth + 1) if depth < 2 else '{}'}]",
        "ex:full": lambda: quoted(draw, "names"),
        "@index": lambda: quoted(draw, "texts"),
        "undefined": lambda: value(draw, 1),
    }
    free = [
        "value",
        "text",
        "double",
        "decimal",
        "odd",
        "raw",
        "none",
        "ex:p",
        "http://h/p",
        "kind",
    ]
    for name in draw.sample([*usual, *free], draw.randrange(1, 5)):
        make = usual.get(name)
        members.append(f'"{name}":{value(draw, depth + 1) if make is None else make()}')
    return "{" + draw.choice([",", ", ", " ,"]).join(members) + "}"


def alike(line: str, draw: random.Random) -> str:
    """The document with other values in it: mostly one of the same shape."""
    for kind in ("names", "texts", "times"):
        for old in USUAL[kind]:
            if f'"{old}"' in line and draw.random() < 0.7:
                line = line.replace(f'"{old}"', quoted(draw, kind), 1)
    for old in USUAL["numbers"]:
        if f":{old}" in line and draw.random() < 0.7:
            line = line.replace(f":{old}", f":{some(draw, 'numbers')}", 1)
    return line


def mutated(line: str, draw: random.Random) -> bytes:
    text = bytearray(line.encode())
    if draw.random() < 0.1:
        for _ in range(draw.choice([1, 1, 2])):
            at = draw.randrange(len(text) + 1)
            text[at : at + draw.randrange(2)] = draw.choice(
                [b"", b'"', b"{", b"}", b"\\", b"\xff", b" ", b"\t", b"0", b"x", b","]
            )
    return bytes(text)


@pytest.fixture(autouse=True)
def nothing_known():
    jsonld._contexts.clear()


@pytest.mark.parametrize("seed", SEEDS)
def test_random_documents(seed):
    draw = random.Random(seed)
    context = draw.choice([*CONTEXTS[:4], *CONTEXTS])
    lines = [] if context is None or draw.random() < 0.1 else [json.dumps({"@context": context}).encode()]
    for _ in range(draw.randrange(1, 5)):
        line = document(draw)
        if draw.random() < 0.2:
            own = draw.choice(
                ['{"ex":"http://own/"}', '"http://known/"', '"http://unknown/"', '{"text":"ex:t"}']
            )
            line = f'{{"@context":{own},{line[1:]}'
        lines += [mutated(alike(line, draw) if k else line, draw) for k in range(draw.randrange(1, 9))]
    if draw.random() < 0.1:
        lines.insert(
            draw.randrange(len(lines) + 1), draw.choice([b"", b" \x0b", b"{}", b"[]", b'{"@context":7}'])
        )
    data = draw.choice([b"\n", b"\n", b"\r\n"]).join(lines) + draw.choice([b"", b"\n"])
    cuts = sorted(draw.randrange(len(data) + 1) for _ in range(draw.randrange(3)))
    objects = KeySet()
    objects.add(np.array([ids.encode(ids.Literal("a"))], np.int64))
    rules = draw.choice(
        [
            EVERYTHING,
            EVERYTHING,
            [(ids.encode(ids.NamedNode("http://ex/value")), None, None)],
            [(ids.encode(ids.NamedNode("http://ex/text")), None, objects), (7, None, None)],
            [],
        ]
    )
    check(
        "ndjsonld",
        data,
        mapping=draw.choice([None, MAPPING, MAPPING]) if context != CONTEXTS[3] else MAPPING,
        time_predicate=draw.choice([None] * 6 + [SOSA + "resultTime", "http://ex/ms"]),
        needs_time=draw.random() < 0.1,
        rules=rules,
        cuts=cuts,
        max_records=draw.choice([1, 2, 4096]),
    )


READING = (
    '{"id":"ex:o%d","type":"sosa:Observation","sensor":"ex:s%d","value":%s,"at":"2024-01-01T00:00:%02dZ"}'
)


def shapes() -> int:
    return sum(len(known.shapes) for known in jsonld._contexts.values())


def test_documents_of_one_shape_are_read_by_it(monkeypatch):
    lines = [json.dumps({"@context": CONTEXT})]
    lines += [READING % (i, i % 7, NUMBERS[i % 14], i % 60) for i in range(100)]
    asked: list[int] = []
    read = jsonld.NDJSONLD.read

    def counted(chunk, how):
        if how.name == "s":
            asked.append(len(chunk.data.splitlines()))
        return read(chunk, how)

    monkeypatch.setattr(type(jsonld.NDJSONLD), "read", lambda self, chunk, how: counted(chunk, how))
    assert check("ndjsonld", "\n".join([*lines, ""]).encode()) == 400
    assert shapes() == 1
    # Once for all, to compare with; of the others, -0 and -0.0 are left to the framing.
    assert sorted(asked) == [1] * 15 + [100]


def test_what_a_shape_knows():
    """Values of which the context says more than of others."""
    lines = [json.dumps({"@context": CONTEXT})]
    lines += [json.dumps({"id": name, "kind": name, "sensor": name, "text": "x"}) for name in NAMES]
    check("ndjsonld", "\n".join(lines).encode())
    lines = [json.dumps({"@context": CONTEXTS[1]}), *lines[1:]]
    check("ndjsonld", "\n".join(lines).encode())
    assert shapes() == 2


@pytest.mark.parametrize(
    "name", ["text", "value", "double", "decimal", "ms", "odd", "list", "raw", "none", "words"]
)
def test_values(name):
    for context in CONTEXTS[:2]:
        lines = [json.dumps({"@context": context})]
        lines += [f'{{"id":"ex:a","{name}":{number},"ex:p":1}}' for number in NUMBERS]
        lines += [f'{{"id":"ex:a","{name}":"{text}","ex:p":1}}' for text in [*TEXTS, *NAMES]]
        lines += [f'{{"id":"ex:a","{name}":{{"@value":{number}}},"ex:p":1}}' for number in NUMBERS]
        lines += [f'{{"id":"ex:a","{name}":["{text}",true,{{}}],"ex:p":1}}' for text in TEXTS]
        check("ndjsonld", "\n".join(lines).encode())


def test_times():
    lines = [json.dumps({"@context": CONTEXT})]
    for time in TIMES:
        lines += [
            f'{{"id":"ex:a","at":"{time}"}}',
            f'{{"id":"ex:a","at":["{time}","1970-01-01T00:00:09Z",5]}}',
        ]
    lines += [f'{{"id":"ex:a","ms":{number},"at":{number}}}' for number in NUMBERS]
    for predicate in (None, SOSA + "resultTime", "http://ex/ms", "http://ex/none"):
        for needed in (False, True):
            check("ndjsonld", "\n".join(lines).encode(), time_predicate=predicate, needs_time=needed)


def test_many_shapes_are_not_all_learned():
    lines = [json.dumps({f"http://ex/p{i}": i, "@id": "http://ex/s"}) for i in range(300)]
    assert check("ndjsonld", "\n".join(lines).encode(), max_records=10) == 300
    assert shapes() == jsonld.MOST_SHAPES
    longer = [json.dumps({f"p{i}": i for i in range(n)}) for n in range(80)]
    check("ndjsonld", "\n".join(longer).encode(), mapping={"@context": {"@vocab": "http://v/"}})


def test_a_type_may_have_a_context_of_its_own():
    lines = [json.dumps({"@context": CONTEXT})]
    for kind in ("ex:T", "Scoped", "ex:U", "Scoped"):
        lines += [json.dumps({"id": f"ex:{i}", "type": kind, "text": "a", "value": "ex:v"}) for i in range(3)]
    assert check("ndjsonld", "\n".join(lines).encode()) == 36


def test_canonical_numbers():
    """As the parser writes them."""
    for number in NUMBERS[:16]:
        if "e" not in number.lower() and number not in ("-0", "-0.0"):
            for type, always in ((None, False), (XSD + "double", True)):
                said = {"@value": 0} | ({"@type": type} if type else {})
                text = json.dumps({"http://ex/p": said}).replace(": 0", f": {number}")
                quads = jsonld._quads(text.encode(), b"", ContextMapping())
                assert quads[0].object.value == canonical(number, always)[0]
