"""Measurements with streams that are absorbed: LSBench's, where GPS alone is gone with its windows.

A step is 100 ms of all streams. It is given to the evaluator as ids; reading the text is counted apart, as
Wukong+S counts injection apart from queries.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import kelda
from bench import streaming
from bench.harness import data
from bench.harness.families import load
from bench.harness.stores import store_of
from kelda.ask.prepared import prepare as prepare_ask
from kelda.engine.absorb import Absorb
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import parse
from kelda.lang import prepare as prepare_many
from kelda.lang.params import term_from_text
from kelda.rdf import ntriples
from kelda.store.store import Store
from kelda.store.tables_kernels import BY_OBJECT, BY_PAIR, BY_SUBJECT, RECORD, SLOTS

STEP = 100  # ms
WARM = 12  # steps: the windows of 1 s are full
TIMELESS = ("post", "postlike", "photo", "photolike")
ONE_SHOT = ("S1", "S2", "S3", "S4", "S5", "S6")
DEFAULT = Absorb()
# What differs between the queries of a class: a user or a person.
VARIES = {"L1": ("user:u0", "user"), "L2": ("person:p0", "person"), "L3": ("person:p0", "person")}


def name_of(stream: str) -> str:
    return stream.rpartition("/")[2]


def iri_of(name: str) -> str:
    return next(iri for iri in load("lsbench").streams if name_of(iri) == name)


def evaluator(store: Store, streams: Sequence[str], absorbs: bool) -> IncrementalEvaluator:
    """One with these streams; all but GPS are absorbed into the default graph, if any are."""
    engine = IncrementalEvaluator(store=store)
    for iri in streams:
        timeless = absorbs and name_of(iri) in TIMELESS
        engine.add_stream(iri, from_start=True, absorb=DEFAULT if timeless else None)
    return engine


def steps_of(streams: Sequence[str], rate: int, steps: int, users: int) -> list[data.Step]:
    """Text of some streams, whose rates are together `rate`, 100 ms at a time."""
    names = [name_of(iri) for iri in streams]
    blocks = load("lsbench").stream(triples=rate * steps // 10, rate=rate, scale=users, streams=names)
    return data.by_time(blocks, streams, STEP)[:steps]


class Taken:
    """What steps took, in CPU milliseconds: text to ids, and ids to answers."""

    def __init__(self) -> None:
        self.reading: list[float] = []
        self.answering: list[float] = []
        self.answers = 0
        self.triples = 0

    def take(self, engine: IncrementalEvaluator, step: data.Step, until: int) -> None:
        """A step, which ends with a heart-beat of all streams."""
        begin = time.process_time()
        columns = [(p.stream, ntriples.read(p.text, engine.dictionary, timed=True)) for p in step]
        middle = time.process_time()
        for stream, c in columns:
            assert c.t is not None
            engine.input.take(stream, c.s, c.p, c.o, c.t)
        for stream in engine.clock.streams:
            engine.input.promise(stream, until)
        self.answers += sum(map(len, engine.advance()))
        self.reading.append((middle - begin) * 1000)
        self.answering.append((time.process_time() - middle) * 1000)
        self.triples += sum(piece.triples for piece in step)


def ends(steps: list[data.Step]) -> list[int]:
    """The instant that each step ends with."""
    first = -(-min(piece.until for piece in steps[0]) // STEP) * STEP
    return [first + i * STEP for i in range(len(steps))]


def step_latency(query: str, absorbs: bool, rate: int, steps: int, users: int) -> dict[str, Any]:
    """A query beside all five streams: what a step takes from ids to answers, absorbing among it."""
    family = load("lsbench")
    store = store_of(family.stored(scale=users))
    made = steps_of(family.streams, rate, WARM + steps, users)
    found = Taken()
    for some in (made[: WARM + 3], made):  # the first run compiles
        engine = evaluator(store if some is made else store_of([]), family.streams, absorbs)
        engine.register("q", parse(family.query(query).texts["rspql"], dialect="rspql"))
        found = Taken()
        for step, until in zip(some, ends(some), strict=True):
            found.take(engine, step, until)
    spent = np.array(found.answering[WARM:])
    return {
        "cpu_ms": float(np.median(spent)),
        "p50_ms": float(np.median(spent)),
        "p99_ms": float(np.percentile(spent, 99)),
        "injection_ms": float(np.median(found.reading[WARM:])),
        "answers": found.answers / len(made),
        "stored_triples": len(store.view()),
    }


def over_time(query: str, rate: int, minutes: int, users: int) -> dict[str, Any]:
    """The same while a stream goes on: what a step takes in the first minute, and in the last."""
    family = load("lsbench")
    store = store_of(family.stored(scale=users))
    engine = evaluator(store, family.streams, True)
    engine.register("q", parse(family.query(query).texts["rspql"], dialect="rspql"))
    found = Taken()
    blocks = family.stream(triples=rate * 60 * minutes, rate=rate, scale=users)
    each = 600  # steps of a minute
    done = 0
    for minute in _by_minute(blocks, family.streams):
        for step, until in minute:
            found.take(engine, step, until)
        done += 1
    first, last = np.array(found.answering[WARM:each]), np.array(found.answering[-each:])
    return {
        "minutes": done,
        "first_ms": float(np.mean(first)),
        "last_ms": float(np.mean(last)),
        "ratio": float(np.mean(last) / np.mean(first)),
        "first_p50_ms": float(np.median(first)),
        "last_p50_ms": float(np.median(last)),
        "stored_triples": len(store.view()),
        "cpu_ms": float(np.mean(last)),
    }


def _by_minute(blocks: Any, streams: Sequence[str]) -> Iterator[list[tuple[data.Step, int]]]:
    """Steps with their ends, made as they are needed; what is cut at a block's edge goes with the next."""
    waiting: dict[int, dict[str, list[data.Piece]]] = {}
    seen = dict.fromkeys(streams, 0)
    minute: list[tuple[data.Step, int]] = []
    for block in blocks:
        for step in data.by_time([block], streams, STEP):
            for piece in step:
                number = -(-piece.until // STEP)
                waiting.setdefault(number, {}).setdefault(piece.stream, []).append(piece)
        seen[block.stream] = block.until
        complete = -(-min(seen.values()) // STEP)
        for number in sorted(n for n in waiting if n < complete):
            pieces = [piece for some in waiting.pop(number).values() for piece in some]
            minute.append((pieces, number * STEP))
            if len(minute) == 600:
                yield minute
                minute = []
    if minute:
        yield minute


def injection(stream: str, rate: int, steps: int) -> dict[str, Any]:
    """100 ms of one stream: text to ids; ids to facts, if it is timeless; ids into a window with an index."""
    iri = iri_of(stream)
    made = steps_of([iri], rate, WARM + steps, 10_000)
    text = f"""SELECT * {{ STREAM <{iri}> [RANGE 1s] {{ ?a ?p ?b }}
               STREAM <{iri}> [RANGE 1s] {{ ?b <urn:never> ?c }} }}"""
    spent: dict[bool, Taken] = {}
    for absorbs in (False, True):
        engine = evaluator(Store(), [iri], absorbs)
        engine.register("q", parse(text))
        spent[absorbs] = Taken()
        for step, until in zip(made, ends(made), strict=True):
            spent[absorbs].take(engine, step, until)
    read = float(np.median(spent[True].reading[WARM:]))
    window = float(np.median(spent[False].answering[WARM:]))
    both = float(np.median(spent[True].answering[WARM:]))
    return {
        "injection_ms": read,
        "absorb_ms": max(both - window, 0.0) if stream in TIMELESS else None,
        "indexing_ms": window,
        "cpu_ms": read + both,
        "triples": spent[True].triples / len(made),
    }


def memory(stream: str, rate: int, seconds: int) -> dict[str, Any]:
    """What a minute of a stream takes as facts, with the indexes that S1 to S6 ask for."""
    iri = iri_of(stream)
    family = load("lsbench")
    store = Store()
    dictionary = store.dictionary
    engine = IncrementalEvaluator(store=store)
    engine.add_stream(iri, from_start=True, absorb=DEFAULT)
    made = steps_of([iri], rate, 10 * seconds, 10_000)
    found, asked = Taken(), False
    for step, until in zip(made, ends(made), strict=True):
        found.take(engine, step, until)
        if not asked:  # from the first facts on, the indexes are kept
            for name in ONE_SHOT:
                prepare_ask(family.query(name).texts["sparql"], dictionary).answer(store.view())
            asked = True
    cells = store.heap.cells
    rows = sum(store.tables.rows(table) for table in store.tables.all())
    blocks = [int(cells[t + at]) for t in store.tables.all() for at in (BY_PAIR, BY_SUBJECT, BY_OBJECT)]
    indexes = sum(4 * int(cells[block + SLOTS]) for block in blocks if block)
    text = sum(len(piece.text) for step in made for piece in step)
    minutes = seconds / 60
    return {
        "triples": found.triples,
        "facts": rows,
        "text_mb": text / 1e6 / minutes,
        "data_mb": rows * RECORD * 8 / 1e6 / minutes,
        "index_mb": indexes / 1e6 / minutes,
        "terms_mb": dictionary.nbytes / 1e6 / minutes,
        "index_share": indexes / (rows * RECORD * 8),
    }


def one_shot(query: str, users: int, triples: int, rate: int, seconds: float) -> dict[str, Any]:
    """A query asked again and again, with streams off and on."""
    found = streaming.measure([query], users, triples, rate, seconds)
    (row,) = found["queries"]
    return {
        "off_ms": row["off_ms"],
        "on_ms": row["on_ms"],
        "cpu_ms": row["on_ms"],
        "ratio": row["ratio"],
        "answers": row["answers"],
        "stored_triples": found["stored_triples"],
        "offered_per_s": found["rate"],
    }


# ------------------------------------------------------------------------------ many queries


def shares(classes: Sequence[str], queries: int) -> dict[str, int]:
    """How many queries there are of each class: as 1 to the latency of its kind in the paper."""
    latency = {"L1": 0.13, "L2": 0.10, "L3": 0.13, "L4": 1.19, "L5": 2.89, "L6": 2.14}
    weights = {name: 1 / latency[name] for name in classes}
    return {name: max(1, round(queries * w / sum(weights.values()))) for name, w in weights.items()}


def texts_of(classes: Sequence[str], queries: int, users: int) -> Iterator[tuple[str, str, dict[str, list]]]:
    """Of each class: its name, its text with parameters, and their values."""
    family, rng = load("lsbench"), np.random.default_rng(5)
    for name, many in shares(classes, queries).items():
        text = family.query(name).texts["rspql"]
        if name not in VARIES:
            yield name, text, {"": [None] * many}
            continue
        constant, kind = VARIES[name]
        initial = {"user": "u", "person": "p"}[kind]
        some = rng.integers(0, users, many).tolist()
        values = [term_from_text(f"<http://www.ins.cwi.nl/sib/{kind}/{initial}{i}>") for i in some]
        yield name, text.replace(constant, "$who"), {"who": values}


def mixed(
    classes: list[str], queries: int, rate: int, steps: int, users: int, one_shots: int
) -> dict[str, Any]:
    """Many queries of several classes, each answered every 100 ms, beside all streams, absorbed, and so many
    one-shot queries a step. How many answers to queries (executions) a second of CPU gives."""
    family = load("lsbench")
    store = store_of(family.stored(scale=users))
    engine = evaluator(store, family.streams, True)
    begin = time.process_time()
    registered = 0
    for name, text, values in texts_of(classes, queries, users):
        many = len(next(iter(values.values())))
        registered += many
        if "who" in values:
            names = [f"{name}-{i}" for i in range(many)]
            engine.register_many(prepare_many(text, "rspql"), names, values)
        else:
            for i in range(many):
                engine.register(f"{name}-{i}", parse(text, dialect="rspql"))
    registering = time.process_time() - begin
    asked = [prepare_ask(family.query(name).texts["sparql"], store.dictionary) for name in ONE_SHOT]
    for prepared in asked:
        prepared.answer(store.view())
    made = steps_of(family.streams, rate, WARM + steps, users)
    found, asking = Taken(), []
    for i, (step, until) in enumerate(zip(made, ends(made), strict=True)):
        found.take(engine, step, until)
        view = store.view()
        begin = time.process_time()
        for j in range(one_shots):
            asked[(i + j) % len(asked)].answer(view)
        asking.append(time.process_time() - begin)
    spent = np.array(found.answering[WARM:])
    reading = np.array(found.reading[WARM:])
    busy = float(spent.sum() + reading.sum()) / 1000 + sum(asking[WARM:])
    return {
        "queries": registered,
        "executions_per_cpu_s": registered * steps / (float(spent.sum()) / 1000),
        "kept_up": bool(busy < steps * STEP / 1000),
        "p50_ms": float(np.median(spent)),
        "p99_ms": float(np.percentile(spent, 99)),
        "cpu_ms": float(np.median(spent)),
        "one_shots_per_cpu_s": one_shots * steps / sum(asking[WARM:]) if one_shots else None,
        "register_s": registering,
        "answers": found.answers / len(made),
        "stored_triples": len(store.view()),
    }


def made_to_last(
    classes: list[str], queries: int, rate: int, seconds: int, users: int, checkpoint: bool, batch: int
) -> dict[str, Any]:
    """Many queries over files of all streams, absorbed, by the engine as users have it, with a checkpoint or
    without."""
    family = load("lsbench")
    with _files(rate, seconds, users) as folder, tempfile.TemporaryDirectory() as state:
        kept = Path(state) / "state" if checkpoint else None
        with kelda.connect(checkpoint=kept, batch_events=batch) as engine:
            engine.load(folder / "stored.nt")
            for iri in family.streams:
                absorb = "default" if name_of(iri) in TIMELESS else None
                engine.stream(iri, str(folder / f"{name_of(iri)}.tsnt"), absorb=absorb)
            registered = 0
            for name, text, values in texts_of(classes, queries, users):
                many = len(next(iter(values.values())))
                registered += many
                if "who" in values:
                    engine.register_many(engine.prepare(text, dialect="rspql"), values)
                else:
                    for i in range(many):
                        engine.register(text, f"{name}-{i}", dialect="rspql")
            begin, wall = time.process_time(), time.perf_counter()
            engine.start()
            engine.wait()
            cpu, wall = time.process_time() - begin, time.perf_counter() - wall
            events, answers, batches = engine.figures.events, engine.figures.answers, engine.figures.batches
    return {
        "queries": registered,
        "triples": events,
        "answers": answers,
        "batches": batches,
        "cpu_us": cpu / events * 1e6,
        "cpu_s": cpu,
        "triples_per_cpu_s": events / cpu,
        "triples_per_s": events / wall,
        "executions_per_cpu_s": registered * seconds * 10 / cpu,
        "batch_ms": cpu / max(batches, 1) * 1000,
    }


@contextmanager
def _files(rate: int, seconds: int, users: int) -> Iterator[Path]:
    family = load("lsbench")
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        (folder / "stored.nt").write_bytes(b"".join(family.stored(scale=users)))
        parts: dict[str, list[bytes]] = {iri: [] for iri in family.streams}
        for block in family.stream(triples=rate * seconds, rate=rate, scale=users):
            parts[block.stream].append(block.text)
        for iri, some in parts.items():
            (folder / f"{name_of(iri)}.tsnt").write_bytes(b"".join(some))
        yield folder


def registration(triples: int, query: str) -> dict[str, Any]:
    """A query over so many stored triples: what registering takes, and what it holds."""
    from bench.harness.workload import resident_here

    family = load("lsbench")
    users = triples // 100

    def texts() -> Iterator[bytes]:
        yield from family.stored(scale=users)
        made = family.stream(triples=triples, scale=users, streams=TIMELESS, post_like_copies=1)
        for block in made:
            yield b"".join(line.partition(b"\t")[2] for line in block.text.splitlines(keepends=True))

    begin = time.process_time()
    store = store_of(texts())
    loading = time.process_time() - begin
    engine = evaluator(store, family.streams, True)
    asked = parse(family.query(query).texts["rspql"], dialect="rspql")
    before, begin = resident_here(), time.process_time()
    engine.register("q", asked)
    made = steps_of(family.streams, 10_000, 3, users)
    found = Taken()
    registering = time.process_time() - begin
    for step, until in zip(made, ends(made), strict=True):  # indexes are built when they are first needed
        found.take(engine, step, until)
    spent = time.process_time() - begin
    return {
        "stored_triples": len(store.view()),
        "load_s": loading,
        "register_s": registering,
        "first_steps_s": spent,
        "grew_mb": (resident_here() - before) / 1e6,
        "state_mb": sum(engine.nbytes.values()) / 1e6,
        "cpu_ms": spent * 1000,
    }
