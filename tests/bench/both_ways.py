"""Runs a query of a benchmark on made data, from the changes alone and by definition."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

from pyoxigraph import RdfFormat, parse

from bench.families.base import Block, Family
from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse as parse_query
from kelda.rdf import ntriples
from kelda.rdf.event import Reject
from kelda.rdf.framing import read_events
from kelda.rdf.graphstore import GraphStore
from tests.engine.stores import over

BLANK = re.compile(r"_:\w+")


def load(family: Family, **parameters: Any) -> GraphStore:
    """The stored data of a family."""
    return GraphStore(parse(b"".join(family.stored(**parameters)), RdfFormat.N_TRIPLES))


def digest(family: Family, scale: float, stream: dict[str, Any], seed: int) -> str:
    """Of everything that a family makes with this seed."""
    parts = [b.stream.encode() + b.text for b in family.stream(**stream, seed=seed)]
    return hashlib.sha256(b"".join([*parts, *family.stored(scale=scale, seed=seed)])).hexdigest()[:16]


def answers_of(
    text: str, blocks: list[Block], store: GraphStore, *, by_definition: bool = False
) -> list[Answer]:
    """What a query sends on these blocks, each of which promises its stream up to its end."""
    query = parse_query(text)
    if by_definition:
        store = GraphStore(store)  # it puts its windows into the store
    engine = ReferenceEvaluator(store=store) if by_definition else over(store)
    streams = {w.stream.value for w in query.windows}
    for stream in streams:
        engine.add_stream(stream, from_start=True)
    engine.register("q", query)
    if isinstance(engine, IncrementalEvaluator):
        assert not engine.reasons, engine.reasons
    sent: list[Answer] = []
    for block in blocks:
        if block.stream not in streams:
            continue
        if isinstance(engine, IncrementalEvaluator):
            c = ntriples.read(block.text, engine.dictionary, timed=True)
            assert not c.rejects and len(c) == block.triples
            assert c.t is not None
            sent += engine.push_columns(block.stream, c.s, c.p, c.o, c.t)
        else:
            sent += engine.push(block.stream, read_events(block.text, format="tsnt", on_reject=_refuse))
        sent += engine.heartbeat(block.stream, block.until)
    return sent


def told(answers: list[Answer]) -> Counter[Any]:
    """Answers as a bag of what is told and when, to be compared; new blank nodes are all alike."""
    return Counter((a.time, a.sign, _plain(a)) for a in answers)


def _plain(answer: Answer) -> Any:
    if answer.bindings is not None:
        return frozenset((name, str(value)) for name, value in answer.bindings.items())
    if answer.triples is not None:
        return tuple(sorted(BLANK.sub("_:new", str(triple)) for triple in answer.triples))
    return answer.boolean


def _refuse(reject: Reject) -> None:
    raise AssertionError(f"generated text that cannot be read: {reject}")
