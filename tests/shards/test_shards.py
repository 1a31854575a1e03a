"""Shards against the reference evaluator: any number of them, any batches, crashes in between."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.io.job import QuerySpec, StreamSource
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.rdf.graphs import load_graph
from kelda.shards.catalog import Drop
from kelda.shards.setup import Setup
from tests.engine.random_queries import STORED, STREAMS, events, queries
from tests.engine.test_batching import bag
from tests.shards.local import LocalShards

CASES = int(os.environ.get("KELDA_CASES", "300")) // 2


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("stored") / "stored.trig"
    path.write_text(STORED)
    return str(path)


def local_shards(stored: str, shards: int) -> LocalShards:
    streams = [StreamSource(iri, "", lateness=1) for iri in STREAMS]
    return LocalShards(Setup(shards=shards, fixed_graphs=True), streams, [(None, stored)])


@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(queries(), st.sampled_from([None, *Output])), min_size=1, max_size=3),
    st.sampled_from([1, 2, 5]),
    events(),
    events(),
    st.data(),
)
def test_same_answers(
    stored: str,
    wanted: list[tuple[str, Output | None]],
    shards: int,
    a: list[Event],
    b: list[Event],
    data: st.DataObject,
) -> None:
    specs = []
    for i, (text, output) in enumerate(wanted):
        note(text)
        try:
            parse(text)
        except QueryError:  # a random query may break a rule of SPARQL
            continue
        copies = data.draw(st.integers(1, 3))
        specs += [QuerySpec(f"q{i}-{j}", text, output=output and output.value) for j in range(copies)]
    reference = ReferenceEvaluator()
    load_graph(reference.store, stored)
    for stream in STREAMS:
        reference.add_stream(stream, lateness=1, from_start=True)
    local = local_shards(stored, shards)
    late: dict[str, int] = {}
    expected: list[Answer] = []
    found: list[Answer] = []

    def register(spec: QuerySpec) -> None:
        reference.register(spec.name, parse(spec.text), output=spec.output and Output(spec.output))
        local.apply([local.planner.plan(spec)])
        note(f"{spec.name}: {local.planner.explain(spec.name)}")

    for spec in specs:
        register(spec)
    left = {s: [e for e in some if e.quads] for s, some in zip(STREAMS, (a, b), strict=True)}
    while left:
        batch, ends = {}, []
        for stream in list(left):
            size = data.draw(st.integers(1, 6))
            batch[stream], left[stream] = left[stream][:size], left[stream][size:]
            expected += reference.push(stream, batch[stream])
            if not left[stream]:
                expected += reference.end(stream)
                ends.append(stream)
                del left[stream]
        found += local.push(batch, ends=ends)
        if data.draw(st.integers(0, 3)) == 0:
            note(f"crash after batch {local.batch - 1}")
            local.crash()
        if specs and data.draw(st.integers(0, 9)) == 0:
            gone = specs.pop(data.draw(st.integers(0, len(specs) - 1)))
            note(f"drop {gone.name} before batch {local.batch}")
            reference.drop(gone.name)
            local.apply([Drop(gone.name)])
        late = local.shards[0].evaluator.late
    assert bag(found) == bag(expected)
    assert late == reference.late
