"""A small load with all that a checkpoint keeps: a file, a pushed stream, a graph, a query that feeds one."""

from __future__ import annotations

import os
import random
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
SINKS = {"pairs": "pairs.ndjson", "counted": "counted.csv", "said": "said.nq", "heard": "ndjson:{}/heard/"}


def write(folder: Path) -> None:
    """The file and the graph."""
    lines = (f"{500 * i}\t<x:n{i % 4}> <x:p> <x:v{i * i % 3}> .\n" for i in range(1, EVENTS + 1))
    (folder / "a.tsnt").write_text("".join(lines))
    (folder / "kinds.ttl").write_text("".join(f"<x:n{i}> <x:kind> <x:k{i % 2}> .\n" for i in range(4)))


def go_on(folder: Path, out: Path, *, checkpoint: bool = True) -> None:
    """From where it was to the end."""
    pushed = [f"{700 * i}\t<x:m{i % 3}> <x:q> <x:v{i % 3}> .\n" for i in range(1, 16)]
    with kelda.connect(checkpoint=out / "checkpoint" if checkpoint else None, batch_events=6) as engine:
        engine.stream("x:a", str(folder / "a.tsnt"))
        b = engine.stream("x:b", format="tsnt")
        engine.stream("x:said", "query:said")
        known = {query.name for query in engine.queries}
        if not known:
            engine.load(folder / "kinds.ttl")
        for name, text in {"pairs": PAIRS, "counted": COUNTED, "said": SAID, "heard": HEARD}.items():
            if name not in known:
                engine.register(text, name, sink=_sink(name, out))
        engine.start()
        for i in range(b.pushed, len(pushed)):
            b.push(pushed[i])
        b.end()
        assert engine.wait(60)


def _sink(name: str, out: Path) -> str:
    sink = SINKS[name]
    return sink.format(out) if "{}" in sink else str(out / sink)


def answers(out: Path) -> dict[str, list[str]]:
    """What lies in the sinks, in no order."""
    found = {}
    for name in SINKS:
        path = Path(_sink(name, out).removeprefix("ndjson:"))
        files = sorted(path.glob("[0-9]*")) if path.is_dir() else [path] if path.exists() else []
        found[name] = sorted(line for file in files for line in file.read_text().splitlines())
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
