"""One load on one runner: a part of a family's streams, some of its queries, at a rate or as fast as it goes.

A closed loop gives the next step when the last one is done: throughput. An open loop gives each step when it
is due, at `rate` triples a second, and counts latency from that moment, so that time spent waiting behind
earlier steps counts too.

Every load begins with a prefix that goes through the reference evaluator as well: the answers must be equal.
That also compiles the kernels; what is timed begins anew after it.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import kelda
from bench.families.base import BenchQuery, Family
from bench.harness import check, data
from bench.harness.data import Piece, Step
from bench.harness.families import load
from bench.harness.resources import cpu_seconds, resident
from bench.harness.stores import store_of
from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import UsageError
from kelda.lang import Prepared, prepare, term_from_text
from kelda.lang.algebra import Output
from kelda.rdf import ntriples
from kelda.rdf.framing import read_events
from kelda.rdf.graphs import load_graph
from kelda.rdf.graphstore import GraphStore
from kelda.store.store import Store

PERCENTILES = (50, 95, 99)
STEP_MS = 100  # of an open loop
BY_DEFINITION = 20_000  # triples of a load whose query has no incremental form
WINDOW = re.compile(r"\[\s*(?:RANGE|TRIPLES|ELEMENTS)\b[^\]]*\]", re.IGNORECASE)


@dataclass(frozen=True)
class Load:
    """What is run. `stream` and `stored` are passed on to the family's generators."""

    family: str
    queries: tuple[str, ...] = ()  # all of them
    dialect: str = ""  # the first that the query has
    runner: str = "inprocess"  # or spark
    loop: str = "closed"  # or open
    triples: int = 200_000
    rate: int = 0  # triples per second of stream time; 0: the family's own
    step_ms: int = 0  # cut the streams into steps of stream time …
    step_triples: int = 0  # … or of triples; neither: as they were made
    copies: int = 1
    vary: tuple[str, str] | None = None  # of the copies: this text of the query becomes that, see `_constant`
    window: str = ""  # what all windows are instead: "[TRIPLES 1000]"; {i} differs with the copy
    output: str | None = None
    lateness: int = 0  # ms that elements may come late
    stream: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)
    shards: int = 1
    balance: str = "rotation"
    repeats: int = 3
    prefix: int = 2_000  # triples that are checked, or more until there are answers
    check_seconds: float = 5.0


@dataclass
class Ready:
    """A load with its data made and its queries known."""

    load: Load
    family: Family
    queries: list[BenchQuery]
    streams: list[str]
    lateness: int
    text: bytes  # of the stored data
    steps: list[Step]

    def texts(self) -> Iterator[tuple[str, str, str]]:
        """(name, dialect, text) of each query."""
        for query in self.queries:
            dialect = self.load.dialect or next(iter(query.texts))
            if dialect not in query.texts:
                said = ", ".join(query.texts)
                raise UsageError(f"{self.load.family} {query.name} is not written in {dialect}; in {said}")
            text = query.texts[dialect]
            if self.load.window and "{i}" not in self.load.window:
                text = WINDOW.sub(self.load.window, text)
            yield query.name, dialect, text


def measure(**params: Any) -> dict[str, Any]:
    """The figures of a load, as JSON takes them."""
    wanted = Load(**{k: tuple(v) if isinstance(v, list) else v for k, v in params.items()})
    ready = made(wanted)
    runners: dict[str, Callable[[Ready], dict[str, Any]]] = {"inprocess": in_process, "spark": on_spark}
    figures = runners[wanted.runner](ready)
    return {
        "runner": wanted.runner,
        "loop": wanted.loop,
        "queries": len(ready.queries) * wanted.copies,
        "stored_triples": ready.text.count(b"\n"),
        **figures,
    }


def continuous(family: Family) -> list[BenchQuery]:
    """The queries that have windows; the others are asked once."""
    return [query for query in family.queries if set(query.texts) != {"sparql"}]


def made(load_: Load) -> Ready:
    """Make the data."""
    family = load(load_.family)
    queries = [family.query(name) for name in load_.queries] if load_.queries else continuous(family)
    streams = list(dict.fromkeys(iri for query in queries for iri in query.streams))
    options: dict[str, Any] = {"triples": load_.triples, **load_.stream}
    if load_.rate:
        options["rate"] = load_.rate
    if "streams" in inspect.signature(family.stream).parameters:  # it can make those alone that are read
        options["streams"] = [iri.rpartition("/")[2] for iri in streams]
    blocks = family.stream(**options)
    if load_.step_ms or load_.loop == "open":
        steps = data.by_time(blocks, streams, load_.step_ms or STEP_MS)
    elif load_.step_triples:
        steps = data.by_count(blocks, streams, load_.step_triples)
    else:
        steps = data.whole(blocks, streams)
    text = b"".join(family.stored(**load_.stored)) if any(q.stored for q in queries) else b""
    return Ready(load_, family, queries, streams, load_.lateness, text, steps)


# ------------------------------------------------------------------------------ in this process


def in_process(ready: Ready) -> dict[str, Any]:
    """The load on the incremental engine in this process: by the evaluator, to which a step is columns. An
    engine that is pushed text makes an object of each event first, and one that reads files has no steps."""
    load_ = ready.load
    begin = time.process_time()
    store = store_of([ready.text])
    loading = time.process_time() - begin
    checked = _checked(ready, store)
    steps = ready.steps
    engine, _ = _engine(ready, store)
    by_definition = dict(engine.reasons)
    if by_definition:
        steps = [[piece] for piece in data.prefix(steps, BY_DEFINITION)]
    runs = []
    for _ in range(1 if load_.loop == "open" else load_.repeats):
        engine, registering = _engine(ready, store)
        push = _push_events if engine.reasons else _push_columns
        if load_.loop == "open":
            run = _open(engine, steps, push, load_.step_ms or STEP_MS)
        else:
            run = _closed(engine, steps, push)
        runs.append(run | {"register_s": registering, "state_mb": sum(engine.nbytes.values()) / 1e6})
    figures = _best(runs)
    if by_definition:
        figures["note"] = "by definition: " + "; ".join(sorted(set(by_definition.values())))
    return {"load_s": loading, **figures, **checked}


def _engine(ready: Ready, store: Store) -> tuple[IncrementalEvaluator, float]:
    """An engine with the queries registered, and the CPU seconds that took."""
    load_ = ready.load
    engine = IncrementalEvaluator(store=store)
    for stream in ready.streams:
        engine.add_stream(stream, lateness=ready.lateness, from_start=True)
    output = None if load_.output is None else Output(load_.output)
    begin = time.process_time()
    for name, dialect, text in ready.texts():
        if load_.copies == 1:
            engine.register(name, prepare(text, dialect).bind(), output=output)
        else:
            prepared, values = variants(load_, text, dialect)
            names = [f"{name}-{i}" for i in range(load_.copies)]
            engine.register_many(prepared, names, values, output=output)
    return engine, time.process_time() - begin


def variants(load_: Load, text: str, dialect: str) -> tuple[Prepared, dict[str, list[object]]]:
    """The query with parameters, and their values for each copy."""
    values: dict[str, list[object]] = {}
    if load_.vary is not None:
        old, new = load_.vary
        if old not in text:
            raise UsageError(f"the query has no {old!r} that could vary")
        text = text.replace(old, "$constant")
        values["constant"] = [_constant(new, i) for i in range(load_.copies)]
    if "{i}" in load_.window:
        # From a tenth of the size to the whole, so that copies differ and the largest is as asked for.
        size = int(re.sub(r"\D", "", load_.window))
        text = WINDOW.sub("[TRIPLES $size]", text)
        values["size"] = [max(1, size - (i * 9 * size // 10) // load_.copies) for i in range(load_.copies)]
    return prepare(text, dialect), values


def _constant(how: str, i: int) -> object:
    """The i-th constant: a term's text with {i} in it, or a `module:function` of i."""
    if "{i}" in how:
        return term_from_text(how.replace("{i}", str(i)))
    module, _, function = how.partition(":")
    return getattr(importlib.import_module(module), function)(i)


def _push_columns(engine: IncrementalEvaluator, piece: Piece) -> int:
    columns = ntriples.read(piece.text, engine.dictionary, timed=True)
    assert columns.t is not None and not columns.rejects, columns.rejects[:1]
    batches = engine.push_batch(piece.stream, columns.s, columns.p, columns.o, columns.t)
    return sum(map(len, batches))


def _push_events(engine: IncrementalEvaluator, piece: Piece) -> int:
    return len(engine.push(piece.stream, read_events(piece.text, format="tsnt", on_reject=check.refuse)))


Push = Callable[[IncrementalEvaluator, Piece], int]


def _closed(engine: IncrementalEvaluator, steps: list[Step], push: Push) -> dict[str, Any]:
    spent, answers, peak = [], 0, resident_here()
    before = peak
    begin, busy = time.perf_counter(), time.process_time()
    for step in steps:
        at = time.perf_counter()
        for piece in step:
            answers += push(engine, piece)
        spent.append(time.perf_counter() - at)
        peak = max(peak, resident_here())
    wall, cpu = time.perf_counter() - begin, time.process_time() - busy
    return _figures(steps, answers, wall, cpu, spent) | {
        "grew_mb": (peak - before) / 1e6,
        "late": _late(engine),
    }


def _open(engine: IncrementalEvaluator, steps: list[Step], push: Push, step_ms: int) -> dict[str, Any]:
    """Each step when its last instant is due; time of the streams is time of the clock on the wall.

    A heart-beat ends the step: what is due at its last instant is answered in it, not in the next."""
    first = -(-min(piece.until for piece in steps[0]) // step_ms) * step_ms
    spent, answers = [], 0
    begin, busy = time.perf_counter(), time.process_time()
    for number, step in enumerate(steps):
        due = (number + 1) * step_ms / 1000
        early = begin + due - time.perf_counter()
        if early > 0:
            time.sleep(early)
        for piece in step:
            answers += push(engine, piece)
        answers += _beat(engine, first + number * step_ms)
        spent.append(time.perf_counter() - begin - due)
    wall, cpu = time.perf_counter() - begin, time.process_time() - busy
    warm = len(spent) // 5  # the first windows are filling
    figures = _figures(steps, answers, wall, cpu, spent[warm:])
    return figures | {
        "offered_per_s": data.count(steps) / (len(steps) * step_ms / 1000),
        "kept_up": bool(spent[-1] < 1.0 and np.median(spent[warm:]) < 1.0),
        "late": _late(engine),
    }


def _beat(engine: IncrementalEvaluator, until: int) -> int:
    """All streams promise that nothing up to `until` is missing; how many answers that gives."""
    clocks = engine.clock.streams
    if engine.reasons:
        return sum(len(engine.heartbeat(iri, until - clock.lateness)) for iri, clock in clocks.items())
    for clock in clocks.values():
        clock.promised = max(clock.promised, until - clock.lateness)
    return sum(map(len, engine.advance()))


def resident_here() -> int:
    """Bytes of memory of this process alone."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return resident()


def _late(engine: IncrementalEvaluator) -> int:
    return sum(engine.late.values())


def _figures(steps: list[Step], answers: int, wall: float, cpu: float, spent: list[float]) -> dict[str, Any]:
    triples = data.count(steps)
    ms = np.array(spent) * 1000
    return {
        "triples": triples,
        "answers": answers,
        "wall_s": wall,
        "cpu_s": cpu,
        "cpu_us": cpu / max(triples, 1) * 1e6,
        "triples_per_s": triples / max(wall, 1e-9),
        "triples_per_cpu_s": triples / max(cpu, 1e-9),
        "steps": len(steps),
        **{f"p{p}_ms": float(np.percentile(ms, p)) for p in PERCENTILES},
        "max_ms": float(ms.max()),
        "mean_ms": float(ms.mean()),
    }


def _best(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run with the least CPU time, which others on the machine disturbed least; `spread` is how much more
    the worst took."""
    ordered = sorted(runs, key=lambda run: float(run["cpu_s"]))
    best, worst = ordered[0], ordered[-1]
    return best | {"repeats": len(runs), "spread": worst["cpu_s"] / max(best["cpu_s"], 1e-9) - 1}


def _checked(ready: Ready, store: Store) -> dict[str, Any]:
    """A prefix through both evaluators; of many copies, three go through the reference evaluator."""
    load_ = ready.load
    engine, _ = _engine(ready, store)
    stored = GraphStore()
    load_graph(stored, ready.text, format="ntriples")
    reference = ReferenceEvaluator(store=stored)
    for stream in ready.streams:
        reference.add_stream(stream, lateness=ready.lateness, from_start=True)
    output = None if load_.output is None else Output(load_.output)
    names = set()
    for name, dialect, text in ready.texts():
        if load_.copies == 1:
            reference.register(name, prepare(text, dialect).bind(), output=output)
            names.add(name)
            continue
        prepared, values = variants(load_, text, dialect)
        for i in sorted({0, load_.copies // 2, load_.copies - 1}):
            query = prepared.bind(**{k: v[i] for k, v in values.items()})
            reference.register(f"{name}-{i}", query, output=output)
            names.add(f"{name}-{i}")

    def ours(piece: Piece) -> list[Answer]:
        if engine.reasons:
            answers = engine.push(
                piece.stream, read_events(piece.text, format="tsnt", on_reject=check.refuse)
            )
        else:
            columns = ntriples.read(piece.text, engine.dictionary, timed=True)
            assert columns.t is not None
            answers = engine.push_columns(piece.stream, columns.s, columns.p, columns.o, columns.t)
        return [answer for answer in answers if answer.query in names]

    try:
        return check.agree(
            data.prefix(ready.steps, load_.triples),
            ours,
            reference,
            least=load_.prefix,
            seconds=load_.check_seconds,
        )
    finally:
        for name in names:
            reference.drop(name)


# ------------------------------------------------------------------------------ on Spark


def on_spark(ready: Ready) -> dict[str, Any]:
    """The load on the Spark pipeline of this machine, from files, on `shards` shards.

    A run over the prefix warms Spark up, and its answers are compared with those by definition."""
    load_ = ready.load
    if load_.loop != "closed":
        raise UsageError("the Spark pipeline reads files to their end: measure it in a closed loop")
    options: dict[str, Any] = {
        "master": f"local[{max(2, load_.shards)}]",
        "shards": load_.shards,
        "balance": load_.balance,
    }
    with tempfile.TemporaryDirectory(prefix="kelda-bench-spark-") as folder:
        first = [[piece] for piece in data.prefix(ready.steps, load_.prefix)]
        write(ready, some := Path(folder) / "prefix", first)
        expected = check.fingerprint(_answers(ready, some, reference=True))
        found = check.fingerprint(_answers(ready, some, **options))
        checked = check.verdict(found, expected, data.count(first))
        write(ready, whole := Path(folder) / "whole", ready.steps)
        runs = []
        for _ in range(load_.repeats):
            begin, busy = time.perf_counter(), cpu_seconds()
            answers = _count(ready, whole, load_.copies, **options)
            wall, cpu = time.perf_counter() - begin, cpu_seconds() - busy
            runs.append(_figures(ready.steps, answers, wall, cpu, [wall]))
    figures = _best(runs)
    for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms", "mean_ms", "steps"):
        del figures[key]  # of one step, the whole: they would say nothing
    return {"shards": load_.shards, **figures, **checked}


def _count(ready: Ready, folder: Path, copies: int, **options: Any) -> int:
    """How many answers there are. They stay columns: as objects they would be what is measured."""
    with _connected(ready, folder, copies, **options) as engine:
        engine.start()
        engine.wait()
        return engine.figures.answers


def _answers(ready: Ready, folder: Path, **options: Any) -> list[Answer]:
    with _connected(ready, folder, 1, **options) as engine:
        engine.start()
        engine.wait()
        return [answer for query in engine.queries for answer in query.results()]


def _connected(ready: Ready, folder: Path, copies: int, **options: Any) -> kelda.Engine:
    """An engine over the files in a folder, with the queries registered."""
    engine = kelda.connect(options.pop("master", None), fixed_graphs=True, **options)
    for stream, path in files(ready, folder).items():
        engine.stream(stream, str(path), format="tsnt", lateness=ready.lateness)
    if ready.text:
        engine.load(folder / "stored.nt")
    for name, dialect, text in ready.texts():
        for i in range(copies):
            each = f"{name}-{i}" if copies > 1 else name
            engine.register(text, each, dialect=dialect, output=ready.load.output)
    return engine


def write(ready: Ready, folder: Path, steps: list[Step]) -> dict[str, Path]:
    """The load as files, by stream, and `stored.nt`."""
    folder.mkdir()
    found = files(ready, folder)
    for stream, path in found.items():
        path.write_bytes(b"".join(p.text for step in steps for p in step if p.stream == stream))
    (folder / "stored.nt").write_bytes(ready.text)
    return found


def files(ready: Ready, folder: Path) -> dict[str, Path]:
    """Where the streams of a load lie."""
    return {stream: folder / f"{stream.rpartition('/')[2]}.tsnt" for stream in ready.streams}
