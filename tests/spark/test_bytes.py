"""Odd bytes on Spark itself: the same answers, counts and rejects as by definition, and no end of the run."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from kelda.inprocess import by_reference
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.rdf.event import Reject
from kelda.spark.run import run
from tests.engine.test_batching import bag
from tests.io.odd_bytes import BOM, JSON_MAPPING, MAPPING
from tests.spark.scene import MASTER, Told

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


@pytest.mark.spark
def test_the_same_bytes_on_spark(tmp_path: Path) -> None:
    streams, queries = [], []
    for format, data in STREAMS.items():
        path, mapping = tmp_path / f"odd.{format}", None
        path.write_bytes(data)
        if format in ("csv", "json"):
            mapping = tmp_path / f"{format}.mapping.json"
            mapping.write_text(json.dumps(MAPPING if format == "csv" else JSON_MAPPING))
        iri = f"http://ex/{format}"
        streams.append(StreamSource(iri, str(path), format, mapping=mapping and str(mapping), max_record=250))
        queries.append(QuerySpec(format, f"SELECT * {{ STREAM <{iri}> [RANGE 2ms] {{ ?s ?p ?o }} }}"))
    job = Job(tuple(queries), tuple(streams), batch_events=3)
    expected, found = Told(), Told()
    answers = bag(list(by_reference.run(job, progress=expected)))
    assert bag(list(run(job, master=MASTER, progress=found, shards=2))) == answers
    assert shown(found.rejects) == shown(expected.rejects) and len(found.rejects) >= 15
    assert found.events == expected.events and found.lates == expected.lates and found.lates.total() == 1


@pytest.mark.spark
def test_an_event_without_a_time_arrives_on_spark(tmp_path: Path) -> None:
    path = tmp_path / "s.messages"
    path.write_bytes(b"<http://ex/a> <http://ex/p> 1 .\nMESSAGE\n<http://ex/b> <http://ex/p> 2 .\n")
    query = QuerySpec("q", "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }")
    begun = time.time() * 1000
    answers = list(run(Job((query,), (StreamSource("http://ex/s", str(path)),)), master=MASTER))
    assert len(answers) == 2
    assert all(begun - 1000 <= answer.time <= time.time() * 1000 + 1000 for answer in answers)
