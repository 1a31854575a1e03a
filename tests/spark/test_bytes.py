"""Odd bytes on Spark itself: the same answers, counts and rejects as by definition, and no end of the run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import kelda
from kelda.rdf.event import Reject
from tests.engine.test_batching import bag
from tests.io.odd_bytes import BOM, JSON_MAPPING, MAPPING
from tests.spark.scene import MASTER, PATIENCE

TIME = b"<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = b"x" * 300
STREAMS: dict[str, bytes] = {
    "tsnt": BOM
    + b'1\t<http://ex/a> <http://ex/p> "x" .\r\n 2\t<http://ex/a> <http://ex/p> "y" .\n5000\t\n'
    + b'3\t<http://ex/a> <http://ex/p> "z" .\r4\t<http://ex/a> <http://ex/p> "u" .\n\r\r\n# \xff\n'
    + b'1\t<http://ex/a> <http://ex/p> "late" .\n9\t<http://ex/a> <http://ex/p> "%s" .\n' % LONG
    + b'007\t<http://ex/a> <http://ex/p> "v" .',
    "nquads": b'<http://ex/a> <http://ex/p> "x" .\n<http://ex/a> %s "2" .\n5000\t\n' % TIME
    + b'7\t<http://ex/b> <http://ex/p> "y" .\n<http://ex/c> <http://ex/p> "\\ud800" .\n'
    + b'<http://ex/d> <http://ex/p> "%s" .\n' % LONG,
    "messages": BOM
    + b'<http://ex/a> <http://ex/p> 1 ; %s "3" .\nMESSAGE\nMESSAGE\n' % TIME
    + b'<http://ex/a> <http://ex/p> "%s" .\nMESSAGE\nbroken\nMESSAGE' % LONG,
    "ndjsonld": b'{"@context": {"@vocab": "http://ex/"}}\n{"@context": 5}\n'
    + b'{"p": 1, "%s": "4"}\n{"p": "\\ud800"}\n' % TIME.strip(b"<>"),
    "csv": BOM + b't,v,w\r\n1,"a\nb",c\n2,x\n99999999999999999,x,y\n3,%s,y\n4,z,"\n' % LONG,
    "json": b'{"t": 1, "v": ["a", "b"], "w": "\\ud800"}\n{"t": 2, "v": ["a", "b"], "w": 1}\n'
    + b'{"t": null}\n\x00\n{"t": 3, "v": "%s"}\n' % LONG,
}


def shown(rejects: list[Reject]) -> list[tuple[str, int, str, str]]:
    return sorted((Path(r.source).name, r.line, r.reason, r.record) for r in rejects)


def read(folder: Path, master: str | None, **how: int | bool) -> tuple[kelda.Engine, list[kelda.Answer]]:
    """An engine that has read all of it, and its answers."""
    with kelda.connect(master, batch_events=3, **how) as engine:  # type: ignore[arg-type]
        for format in STREAMS:
            iri, mapping = f"http://ex/{format}", folder / f"{format}.mapping.json"
            kept = str(mapping) if mapping.exists() else None
            engine.stream(iri, str(folder / f"odd.{format}"), format=format, mapping=kept, max_record=250)
            engine.register(f"SELECT * {{ STREAM <{iri}> [RANGE 2ms] {{ ?s ?p ?o }} }}", name=format)
        engine.start()
        assert engine.wait(PATIENCE)
        return engine, [answer for query in engine.queries for answer in query.results()]


@pytest.mark.spark
def test_the_same_bytes_on_spark(tmp_path: Path) -> None:
    for format, data in STREAMS.items():
        (tmp_path / f"odd.{format}").write_bytes(data)
    for format, mapping in (("csv", MAPPING), ("json", JSON_MAPPING)):
        (tmp_path / f"{format}.mapping.json").write_text(json.dumps(mapping))
    expected, wanted = read(tmp_path, None, reference=True)
    found, answers = read(tmp_path, MASTER, shards=2)
    assert bag(answers) == bag(wanted)
    assert shown(found.rejects) == shown(expected.rejects) and len(found.rejects) >= 15
    assert found.figures.events == expected.figures.events
    assert found.figures.rejected == len(found.rejects)
    assert found.late == expected.late and sum(found.late.values()) == 1


@pytest.mark.spark
def test_an_event_without_a_time_arrives_on_spark(tmp_path: Path) -> None:
    path = tmp_path / "s.messages"
    path.write_bytes(b"<http://ex/a> <http://ex/p> 1 .\nMESSAGE\n<http://ex/b> <http://ex/p> 2 .\n")
    begun = time.time() * 1000
    with kelda.connect(MASTER) as engine:
        engine.stream("http://ex/s", str(path))
        pushed = engine.stream("http://ex/pushed")
        query = engine.register("SELECT ?x { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }")
        other = engine.register("SELECT ?x { STREAM <http://ex/pushed> [NOW] { ?x <http://ex/p> ?y } }")
        engine.start()
        assert pushed.push("<http://ex/c> <http://ex/p> 3 .") == 1
    answers = [*query.results(), *other.results()]
    assert [a.bindings and a.bindings["x"].value[-1] for a in answers] == ["a", "b", "c"]
    assert all(begun - 1000 <= answer.time <= time.time() * 1000 + 1000 for answer in answers)
