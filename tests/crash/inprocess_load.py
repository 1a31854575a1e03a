"""The load of an engine in this process: a folder that is read, a stream that the program pushes and that is
absorbed, queries that join, count, describe, feed each other and a stored graph, live ones, updates, and a
query that comes and goes while the others run."""

from __future__ import annotations

import csv
import json
import random
import re
import time
from collections import Counter
from pathlib import Path

import kelda
from tests.crash import load
from tests.crash.load import PREFIX, Bags

HEAT, PEOPLE, ALARMS = "http://ex/heat", "http://ex/people", "http://ex/alarms"
VISITS, BURNING = "http://ex/visits", "http://ex/burning"  # graphs: what is absorbed, what a query feeds

QUERIES = {
    "joined": load.QUERIES["joined"],
    "counted": load.QUERIES["counted"],
    "last": load.QUERIES["last"],
    "alone": load.QUERIES["alone"],
    # By definition.
    "path": load.QUERIES["path"],
    "asked": "ASK { STREAM :people [RANGE 2s] { :p3 :in ?room } }",
    "described": "DESCRIBE ?s { STREAM :heat [NOW] { ?s :value ?v FILTER (?v > 55) } }",
    # What it says is a stream, which the next one reads.
    "hot": "CONSTRUCT { ?s :hot ?v } { STREAM :heat [NOW] { ?s :value ?v FILTER (?v > 40) } }",
    "alarmed": """SELECT ?room (COUNT(*) AS ?n) {
        STREAM :alarms [RANGE 5s] { ?s :hot ?v } STREAM :people [RANGE 4s] { ?who :in ?room } ?s :room ?room
        } GROUP BY ?room""",
    # A stored graph that is kept current.
    "burning": "CONSTRUCT { ?s :burns ?v } { STREAM :heat [RANGE 2s] { ?s :value ?v FILTER (?v > 45) } }",
    "risk": """SELECT ?s ?v ?who { STREAM :people [RANGE 1s] { ?who :in ?room } ?s :room ?room
        GRAPH :burning { ?s :burns ?v } }""",
    "visited": """SELECT ?s ?who { STREAM :heat [NOW] { ?s :value ?v FILTER (?v > 50) } ?s :room ?room
        GRAPH :visits { ?who :in ?room } }""",
    # Live ones.
    "visits": "SELECT ?room (COUNT(*) AS ?n) { GRAPH :visits { ?who :in ?room } } GROUP BY ?room",
    "fire": "SELECT ?room ?s { GRAPH :burning { ?s :burns ?v } ?s :room ?room }",
    "noted": "SELECT ?note ?n { GRAPH :notes { ?note :count ?n } }",
}
NOTED = "noted"
EVERY = 20  # events that are pushed from one update to the next
STORED = "stored"  # the file that tells what is stored at the end
CONTENTS = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
PASSING = "passing"
COMES_AND_GOES = "SELECT ?who ?room { STREAM :people [NOW] { ?who :in ?room } }"
SINKS = {
    "counted": "csv:{}.csv",
    "alarmed": "csv:{}/",
    "joined": "ndjson:{}/",
    "hot": "nquads:{}.nq",
    "visits": "ndjson:{}/",
    "burning": f"graph:{BURNING}",
}


_TIME = re.compile(r'"time": -?\d+, ')


def write(folder: Path, seconds: int) -> None:
    """The streams and the graph; heat lies in a folder, in files that cut instants apart."""
    load.write(folder, seconds)
    lines = (folder / "heat.tsnt").read_text().splitlines(keepends=True)
    (folder / "heat").mkdir(exist_ok=True)
    third = len(lines) // 3
    for i in range(3):
        part = lines[i * third : (i + 1) * third if i < 2 else None]
        (folder / "heat" / f"{i}.tsnt").write_text("".join(part))


def equip(engine: kelda.Engine, folder: Path, out: Path) -> None:
    """Streams, graph and queries, with answers in `out`; what an earlier run has done stays as it is."""
    engine.stream(HEAT, f"folder:{folder / 'heat'}")
    engine.stream(PEOPLE, format="tsnt", absorb=VISITS)
    engine.stream(ALARMS, "query:hot")
    known = {query.name for query in engine.queries}
    if not known:
        engine.load(folder / "building.ttl")
    for name, text in QUERIES.items():
        if name not in known:
            output = "changes" if name == "burning" else None
            engine.register(PREFIX + text, name, output=output, sink=_sink(name, out))


def _sink(name: str, out: Path) -> str:
    return SINKS.get(name, "ndjson:{}.ndjson").format(out / name)


def push(engine: kelda.Engine, folder: Path, out: Path, draw: random.Random, pause: float = 0.0) -> None:
    """Push what was not pushed yet, a few events at a time; then the stream ends."""
    lines = (folder / "people.tsnt").read_text().splitlines(keepends=True)
    stream = engine.stream(PEOPLE)
    engine.flush()  # until queries see all that an earlier run has updated
    while (at := stream.pushed) < len(lines):
        _come_and_go(engine, at / len(lines), out)
        for number in range(at // EVERY + 1):
            note(engine, number)
        stream.push("".join(lines[at : at + draw.randint(1, 4)]))
        time.sleep(pause)
    stream.end()


def note(engine: kelda.Engine, number: int) -> None:
    """An update that says how many there were; one that was carried out before is not asked for again."""
    if not engine.query(f"{PREFIX} ASK {{ GRAPH :notes {{ :note{number} :count ?n }} }}"):
        counted = "SELECT (COUNT(*) AS ?n) { GRAPH :notes { ?note :count ?m } }"
        told = f"INSERT {{ GRAPH :notes {{ :note{number} :count ?n }} }} WHERE {{ {counted} }}"
        engine.update(f"{PREFIX} {told}")


def tell_stored(engine: kelda.Engine, out: Path) -> None:
    """Write what is stored."""
    rows = engine.query(CONTENTS).rows  # type: ignore[union-attr]
    (out / STORED).write_text("".join(f"{sorted(row.items())}\n" for row in rows))


def _come_and_go(engine: kelda.Engine, part: float, out: Path) -> None:
    """The query that is there from a fifth of the stream to four fifths of it."""
    there = {query.name: query for query in engine.queries}.get(PASSING)
    if there is None and 0.2 <= part < 0.8:
        engine.register(PREFIX + COMES_AND_GOES, PASSING, sink=_sink(PASSING, out))
    elif there is not None and part >= 0.8:
        there.stop()


def expected(folder: Path, out: Path) -> Bags:
    """The answers, by definition, of an engine that nobody disturbs; those of the query that comes and goes
    as if it were always there."""
    with kelda.connect(reference=True) as engine:
        equip(engine, folder, out)
        stream = engine.stream(PEOPLE)
        engine.register(PREFIX + COMES_AND_GOES, PASSING, sink=_sink(PASSING, out))
        engine.start()
        lines = (folder / "people.tsnt").read_text().splitlines(keepends=True)
        for number in range((len(lines) - 1) // EVERY + 1):
            note(engine, number)
        stream.push("".join(lines))
        stream.end()
        engine.wait()
        tell_stored(engine, out)
    bags = answers(out)
    assert all(bags.values()), f"no answers: {[name for name, bag in bags.items() if not bag]}"
    return bags


def answers(out: Path) -> Bags:
    """What lies in the sinks, and what is stored. When an update was seen depends on when it came."""
    bags = {name: Counter(_lines(name, out)) for name in (*QUERIES, PASSING) if name != "burning"}
    bags[NOTED] = Counter(_TIME.sub("", line) for line in bags[NOTED].elements())
    return bags | {STORED: Counter((out / STORED).read_text().splitlines())}


def _lines(name: str, out: Path) -> list[str]:
    path = Path(_sink(name, out).partition(":")[2])
    files = sorted(path.glob("[0-9]*")) if path.is_dir() else [path] if path.exists() else []
    found: list[str] = []
    for file in files:
        lines = file.read_text().splitlines()
        if file.suffix == ".csv":
            found += [json.dumps(row) for row in csv.DictReader(lines)]
        else:
            found += lines
    return found


def difference(wanted: Bags, found: Bags) -> list[str]:
    """What is wrong. The query that comes and goes must have all answers from its first instant to its
    last."""
    seen = [_time(line) for line in found[PASSING]]
    while_there = Counter(
        {line: n for line, n in wanted[PASSING].items() if seen and min(seen) <= _time(line) <= max(seen)}
    )
    return load.difference(wanted | {PASSING: while_there}, found)


def _time(line: str) -> int:
    return int(json.loads(line)["time"])
