"""The load: streams, a stored graph and queries of every kind, whose answers go to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import kelda

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


def equip(engine: kelda.Engine, folder: Path, out: Path) -> None:
    """Streams, graph and queries of the load in a folder, with their answers in `out`; what an earlier run
    has done already stays as it is."""
    for name in ("heat", "people"):
        engine.stream(f"http://ex/{name}", str(folder / f"{name}.tsnt"))
    known = {query.name for query in engine.queries}
    if not known:
        engine.load(folder / "building.ttl")
    for name, text in QUERIES.items():
        if name not in known:
            engine.register(PREFIX + text, name, sink=str(out / f"{name}.ndjson"))


Bags = dict[str, Counter[str]]


def expected(folder: Path, out: Path) -> Bags:
    """The answers of the load, by an engine in this process that nobody disturbs."""
    with kelda.connect() as engine:
        equip(engine, folder, out)
        engine.start()
        engine.wait()
    bags = answers(out)
    assert all(bags.values()), f"no answers: {[name for name, bag in bags.items() if not bag]}"
    return bags


def answers(out: Path, queries: Iterable[str] = QUERIES) -> Bags:
    """The answers that an engine has written."""
    bags: Bags = {}
    for name in queries:
        path = out / f"{name}.ndjson"
        bags[name] = Counter(path.read_text().splitlines() if path.exists() else ())
    return bags


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
