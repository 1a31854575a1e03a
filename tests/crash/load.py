"""The load: streams, a stored graph and queries of every kind, whose answers go to files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kelda.inprocess.run import run as run_in_process
from kelda.io.job import Job, QuerySpec, StreamSource
from kelda.spark.pipeline import Batch, Pipeline

SHARDS = 2
PREFIX = "PREFIX : <http://ex/>\n"

QUERIES = {
    # Spread over the shards by ?s; sends what is new.
    "spread": "SELECT ?s ?v ?room { STREAM :heat [RANGE 6s] { ?s :value ?v } ?s :room ?room }",
    # Two streams, joined by ?room and ?s.
    "joined": """SELECT ?s ?who ?room {
        STREAM :heat [RANGE 4s SLIDE 1s] { ?s :value ?v }
        STREAM :people [RANGE 9s] { ?who :in ?room }
        ?s :room ?room }""",
    # Grouped by a key that the shards do not have: whole on one of them.
    "counted": """SELECT ?room (COUNT(*) AS ?n) (MAX(?v) AS ?top) {
        STREAM :heat [RANGE 12s SLIDE 2s] { ?s :value ?v } ?s :room ?room } GROUP BY ?room""",
    "summed": "SELECT (SUM(?v) AS ?all) { STREAM :heat [RANGE 8s SLIDE 4s] { ?s :value ?v } }",
    "last": "SELECT ?who ?room { STREAM :people [TRIPLES 5] { ?who :in ?room } }",
    "all": """REGISTER RSTREAM :all AS SELECT ?who ?room
        FROM NAMED WINDOW :w ON :people [RANGE PT8S STEP PT4S]
        WHERE { WINDOW :w { ?who :in ?room } }""",
    "new": """REGISTER ISTREAM :new AS SELECT ?s ?v
        FROM NAMED WINDOW :w ON :heat [RANGE PT6S STEP PT2S]
        WHERE { WINDOW :w { ?s :value ?v . FILTER (?v > 40) } }""",
    "alone": """SELECT ?who ?room { STREAM :people [RANGE 6s] { ?who :in ?room }
        FILTER NOT EXISTS { STREAM :people [RANGE 6s] { ?other :in ?room } FILTER (?other != ?who) } }""",
    # A path over a window has no incremental form: by the reference evaluator.
    "path": "SELECT ?a ?b { STREAM :people [RANGE 5s SLIDE 2s] { ?a :in/:near* ?b } }",
}


def write(folder: Path, seconds: int = 240) -> None:
    """The streams and the graph, the same for the same length: about 8 events a second of stream time."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seconds)
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    with open(folder / "heat.tsnt", "w") as heat, open(folder / "people.tsnt", "w") as people:
        for second in range(1, seconds + 1):
            for time in np.sort(draw.integers(0, 1000, 6)):
                s, v = draw.integers(0, 24), draw.integers(0, 60)
                heat.write(f'{1000 * second + time}\t<http://ex/s{s}> <http://ex/value> "{v}"^^{integer} .\n')
            for time in np.sort(draw.integers(0, 1000, 2)):
                who, room = draw.integers(0, 9), draw.integers(0, 6)
                people.write(
                    f"{1000 * second + time}\t<http://ex/p{who}> <http://ex/in> <http://ex/r{room}> .\n"
                )
    rooms = "".join(f":s{i} :room :r{i % 6} .\n" for i in range(24))
    (folder / "building.ttl").write_text("@prefix : <http://ex/> .\n" + rooms)


def job(folder: Path) -> Job:
    """The load in a folder."""
    return Job(
        tuple(QuerySpec(name, PREFIX + text) for name, text in QUERIES.items()),
        tuple(StreamSource(f"http://ex/{n}", str(folder / f"{n}.tsnt")) for n in ("heat", "people")),
        ((None, str(folder / "building.ttl")),),
    )


def pipeline(load: Job, out: Path, batch_events: int, take: Callable[[Batch], None]) -> Pipeline:
    """A job as a pipeline with its checkpoint and its answers in `out`, new or taken up again."""
    made = Pipeline(
        load.streams,
        out / "checkpoint",
        graphs=load.graphs,
        shards=SHARDS,
        batch_events=batch_events,
        take=take,
    )
    for spec in load.queries:
        if spec.name not in made.queries:  # else a run before this one had come so far
            made.register(spec, sink=str(out / f"{spec.name}.ndjson"))
    return made


Bags = dict[str, Counter[str]]


def expected(load: Job) -> Bags:
    """The answers of a job, without Spark."""
    bags: Bags = {spec.name: Counter() for spec in load.queries}
    for answer in run_in_process(load):
        bags[answer.query][_line(answer.to_json())] += 1
    assert all(bags.values()), f"no answers: {[name for name, bag in bags.items() if not bag]}"
    return bags


def answers(load: Job, out: Path) -> Bags:
    """The answers that a job's pipeline has written."""
    bags: Bags = {}
    for spec in load.queries:
        path = out / f"{spec.name}.ndjson"
        bags[spec.name] = Counter(map(_line, path.read_text().splitlines() if path.exists() else ()))
    return bags


def _line(text: str) -> str:
    """An answer in one spelling, whatever the order of its members."""
    return json.dumps(json.loads(text), sort_keys=True)


def bags_of(lines: dict[str, list[str]]) -> Bags:
    """Bags of what is in lists."""
    return {name: Counter(some) for name, some in lines.items()}


def difference(wanted: Bags, found: Bags) -> list[str]:
    """What was lost and what is there too often, a line each; empty if all is well."""
    lines = []
    for name, bag in wanted.items():
        lines += [f"lost    {name} {n} x {line}" for line, n in (bag - found[name]).items()]
        lines += [f"doubled {name} {n} x {line}" for line, n in (found[name] - bag).items()]
    return sorted(lines)
