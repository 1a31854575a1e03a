"""A small load with all that a checkpoint keeps: a file, a pushed stream, graphs that are loaded, absorbed,
updated and fed, queries over all of these."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import kelda
from kelda.errors import KeldaError
from tests.crash.last_step import die_at

EVENTS = 24
PAIRS = """SELECT ?x ?y ?k { STREAM <x:a> [RANGE 3s] { ?x <x:p> ?v }
    STREAM <x:b> [RANGE 4s SLIDE 2s] { ?y <x:q> ?v } ?x <x:kind> ?k }"""
COUNTED = "SELECT ?v (COUNT(*) AS ?n) { STREAM <x:a> [TRIPLES 5] { ?x <x:p> ?v } } GROUP BY ?v"
SAID = "CONSTRUCT { ?x <x:said> ?v } { STREAM <x:a> [NOW] { ?x <x:p> ?v } }"
HEARD = (
    "SELECT ?x ?y { STREAM <x:said> [RANGE 2s] { ?x <x:said> ?v } STREAM <x:b> [RANGE 9s] { ?y <x:q> ?v } }"
)
BOTH = """SELECT ?x ?v ?before { STREAM <x:b> [RANGE 1s] { ?x <x:q> ?v }
    GRAPH <x:absorbed> { ?before <x:p> ?v } GRAPH <x:made> { ?before <x:last> ?v } }"""
LIVE = (
    "SELECT ?x ?n { GRAPH <x:absorbed> { ?x <x:p> <x:v1> } ?x <x:kind> ?k GRAPH <x:made> { ?x <x:last> ?n } }"
)
MADE = "CONSTRUCT { ?x <x:last> ?v } { STREAM <x:a> [TRIPLES 3] { ?x <x:p> ?v } }"
UPDATED = "SELECT ?i ?n { GRAPH <x:log> { ?i <x:count> ?n } }"
SINKS = {
    "pairs": "pairs.ndjson",
    "counted": "counted.csv",
    "said": "said.nq",
    "heard": "ndjson:{}/heard/",
    "made": "graph:x:made",
    "both": "both.ndjson",
    "live": "live.csv",
    "updated": "updated.ndjson",
}
QUERIES = {
    "pairs": PAIRS,
    "counted": COUNTED,
    "said": SAID,
    "heard": HEARD,
    "made": MADE,
    "both": BOTH,
    "live": LIVE,
    "updated": UPDATED,
}
TIME = re.compile(r'"time": \d+, ')
STORED = "stored"  # the file that tells what is stored at the end
CONTENTS = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"


def write(folder: Path) -> None:
    """The file and the graph."""
    lines = (f"{500 * i}\t<x:n{i % 4}> <x:p> <x:v{i * i % 3}> .\n" for i in range(1, EVENTS + 1))
    (folder / "a.tsnt").write_text("".join(lines))
    (folder / "kinds.ttl").write_text("".join(f"<x:n{i}> <x:kind> <x:k{i % 2}> .\n" for i in range(4)))


def go_on(folder: Path, out: Path, *, checkpoint: bool = True) -> None:
    """From where it was to the end."""
    pushed = [f"{700 * i}\t<x:m{i % 3}> <x:q> <x:v{i % 3}> .\n" for i in range(1, 16)]
    with kelda.connect(checkpoint=out / "checkpoint" if checkpoint else None, batch_events=6) as engine:
        engine.stream("x:a", str(folder / "a.tsnt"), absorb="x:absorbed", predicates=["x:p"])
        b = engine.stream("x:b", format="tsnt")
        engine.stream("x:said", "query:said")
        known = {query.name for query in engine.queries}
        if not known:
            engine.load(folder / "kinds.ttl")
        for name, text in QUERIES.items():
            if name not in known:
                output = "changes" if name == "made" else None
                engine.register(text, name, output=output, sink=_sink(name, out))
        engine.start()
        assert engine.flush(60)  # until queries see all that an earlier run has updated
        for i in range(b.pushed, len(pushed)):
            if i % 3 == 0:
                count_up(engine, i)
            b.push(pushed[i])
        b.end()
        assert engine.wait(60)
        rows = engine.query(CONTENTS).rows  # type: ignore[union-attr]
        (out / STORED).write_text("".join(sorted(f"{sorted(row.items())}\n" for row in rows)))


def count_up(engine: kelda.Engine, i: int) -> None:
    """An update that says how many there were; one that was carried out before is not asked for again."""
    if not engine.query(f"ASK {{ GRAPH <x:log> {{ <x:u{i}> ?p ?n }} }}"):
        counted = "SELECT (COUNT(*) AS ?n) { GRAPH <x:log> { ?u <x:count> ?m } }"
        engine.update(f"INSERT {{ GRAPH <x:log> {{ <x:u{i}> <x:count> ?n }} }} WHERE {{ {counted} }}")


def _sink(name: str, out: Path) -> str:
    sink = SINKS[name]
    if sink.startswith("graph:"):
        return sink
    return sink.format(out) if "{}" in sink else str(out / sink)


def answers(out: Path) -> dict[str, list[str]]:
    """What lies in the sinks, in no order, and what is stored. When an update was seen depends on when the
    process came to it."""
    found = {STORED: (out / STORED).read_text().splitlines()}
    for name in SINKS.keys() - {"made"}:
        path = Path(_sink(name, out).removeprefix("ndjson:"))
        files = sorted(path.glob("[0-9]*")) if path.is_dir() else [path] if path.exists() else []
        lines = (line for file in files for line in file.read_text().splitlines())
        found[name] = sorted(TIME.sub("", line) if name == "updated" else line for line in lines)
    return found


def until_step(folder: Path, out: Path, step: int, seed: int = 0) -> bool:
    """Go on, in a process of its own that dies at its `step`-th step on the disk; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            die_at(step, random.Random(seed))
            go_on(folder, out)
            os._exit(0)
        except BaseException:  # noqa: BLE001 - told by the code, below
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the process failed"
    return os.WIFSIGNALED(status)


def said_by(folder: Path, out: Path) -> str | None:
    """Go on; what is said if that is refused."""
    try:
        go_on(folder, out)
    except KeldaError as problem:
        return str(problem)
    return None
