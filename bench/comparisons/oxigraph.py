"""The plain way: the windows lie in an Oxigraph store, and each report asks the SPARQL query anew.

This is what one writes without a stream engine. Done as well as it can be: what comes into a window is added
and what leaves it is removed, nothing is loaded twice, and the text is made once.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from pyoxigraph import NamedNode, Quad, RdfFormat, Store, parse

from bench.families.base import BenchQuery
from bench.harness import data
from bench.harness.stores import store_of
from bench.harness.workload import Load, made
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import algebra as A
from kelda.lang import parse as parse_query
from kelda.lang.to_sparql import WindowGraph, to_sparql
from kelda.rdf import ntriples
from kelda.rdf.exact import quad_to_store
from kelda.rdf.operators import FUNCTIONS


class Window:
    """A window by time that moves in steps, as a graph of the store. Equal triples count once."""

    def __init__(self, definition: A.WindowDef, number: int) -> None:
        window = definition.window
        assert isinstance(window, A.TimeWindow) and isinstance(definition.stream, NamedNode)
        self.name, self.stream = definition.name, definition.stream.value
        self.size, self.step = window.range, window.slide
        self.graph = f"urn:window:{number}"
        self.rows: deque[tuple[int, Quad]] = deque()
        self.count: dict[Quad, int] = {}

    def add(self, time: int, quad: Quad, store: Store) -> None:
        quad = Quad(quad.subject, quad.predicate, quad.object, NamedNode(self.graph))
        self.rows.append((time, quad))
        self.count[quad] = self.count.get(quad, 0) + 1
        if self.count[quad] == 1:
            store.add(quad)

    def move(self, until: int, store: Store) -> None:
        """Forget what is not in (until - size, until]."""
        while self.rows and self.rows[0][0] <= until - self.size:
            _, quad = self.rows.popleft()
            self.count[quad] -= 1
            if not self.count[quad]:
                del self.count[quad]
                store.remove(quad)


def can_say(query: BenchQuery) -> bool:
    """Whether the plain way is written for it: a SELECT over windows by time that all move by one step."""
    if "rspql" not in query.texts:
        return False
    asked = parse_query(query.texts["rspql"], dialect="rspql")
    windows = [w.window for w in asked.windows if isinstance(w.window, A.TimeWindow) and not w.window.until]
    steps = {w.slide for w in windows}
    return (
        asked.form is A.Form.SELECT
        and len(windows) == len(asked.windows)
        and len(steps) == 1
        and None not in steps
    )


def measure(**params: Any) -> dict[str, Any]:
    """CPU time of the plain way and of the engine for the same input; and whether they agree."""
    params["queries"] = tuple(params["queries"])
    ready = made(Load(dialect="rspql", **params))
    ((_, dialect, text),) = ready.texts()
    algebra = parse_query(text, dialect=dialect)
    ours, answers = _ours(ready, algebra)
    theirs, found, reports = _theirs(ready, algebra)
    count = data.count(ready.steps)
    return {
        "triples": count,
        "cpu_us": ours / count * 1e6,
        "theirs_cpu_us": theirs / count * 1e6,
        "ratio": theirs / ours,
        "reports": reports,
        "answers": answers,
        "theirs_answers": found,
        "same_answers": answers == found,
    }


def _ours(ready: Any, query: A.Query) -> tuple[float, int]:
    store = store_of([ready.text])
    spent, answers = 0.0, 0
    for _ in range(2):  # the first run compiles
        engine = IncrementalEvaluator(store=store)
        for stream in ready.streams:
            engine.add_stream(stream, lateness=ready.lateness, from_start=True)
        engine.register("q", query, output=A.Output.RSTREAM)
        begin, answers = time.process_time(), 0
        for step in ready.steps:
            for piece in step:
                c = ntriples.read(piece.text, engine.dictionary, timed=True)
                assert c.t is not None
                answers += sum(map(len, engine.push_batch(piece.stream, c.s, c.p, c.o, c.t)))
        spent = time.process_time() - begin
    return spent, answers


def _theirs(ready: Any, query: A.Query) -> tuple[float, int, int]:
    store = Store()
    # The text compares numbers as they are written, so stored ones are kept as they are written.
    store.bulk_extend(map(quad_to_store, parse(ready.text, RdfFormat.N_TRIPLES)))
    windows = [Window(definition, i) for i, definition in enumerate(query.windows)]
    graphs = {w.name: (WindowGraph(NamedNode(w.stream), w.graph),) for w in windows}
    text = to_sparql(query, windows=graphs, plain=True)
    pieces = [piece for step in ready.steps for piece in step]
    begin = time.process_time()
    events = sorted((event for piece in pieces for event in _events(piece)), key=lambda e: e[0])
    step = windows[0].step
    answers = reports = 0
    report = -(-events[0][0] // step) * step  # a window has its end in it
    newest: dict[str, int] = {}
    for when, stream, _ in events:
        newest[stream] = max(newest.get(stream, 0), when)
    complete = min(newest.values()) - 1
    for when, stream, quad in events:
        while report < when:
            if report <= complete:
                answers += _report(report, windows, store, text)
                reports += 1
            report += step
        for window in windows:
            if window.stream == stream:
                window.add(when, quad, store)
    return time.process_time() - begin, answers, reports


def _report(at: int, windows: list[Window], store: Store, text: str) -> int:
    for window in windows:
        window.move(at, store)
    if not any(window.rows for window in windows):
        return 0
    # A constant that Oxigraph would spell otherwise is compared by a function of ours.
    return sum(1 for _ in store.query(text, custom_functions=FUNCTIONS))


def _events(piece: data.Piece) -> list[tuple[int, str, Quad]]:
    lines = [line.split(b"\t", 1) for line in piece.text.splitlines()]
    quads = parse(b"\n".join(line[1] for line in lines), RdfFormat.N_TRIPLES)
    return [(int(line[0]), piece.stream, quad) for line, quad in zip(lines, quads, strict=True)]
