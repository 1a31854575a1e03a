"""A format read by columns and by its framing: elements, rejects and terms are the same, byte for byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kelda.rdf.columnar import READERS, Found, found_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import Chunker, checked_length, prepare_mapping, read_chunk
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.skim import Asked, Rule

EVERYTHING: Sequence[Rule] = [(None, None, None)]


def chunks_of(format: str, data: bytes, cuts: Sequence[int], mapping: Any, **how: Any) -> list[Chunk]:
    """The chunks of a text that comes in portions."""
    chunker = Chunker(format, mapping=mapping, **how)
    chunks = []
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        chunks += chunker.feed(data[begin:end])
    return [*chunks, *chunker.finish()]


def check(
    format: str,
    data: bytes,
    *,
    mapping: Any = None,
    time_predicate: str | None = None,
    needs_time: bool = False,
    rules: Sequence[Rule] = EVERYTHING,
    cuts: Sequence[int] = (),
    max_records: int = 4096,
    columnar: bool = True,
) -> int:
    """Compare the two ways; how many triples there are. `rules` are what is asked for; with `columnar`, a
    chunk that the reader of columns leaves to the framing altogether is a failure."""
    ready, triples = prepare_mapping(format, mapping), 0
    for chunk in chunks_of(format, data, cuts, ready, max_records=max_records):
        if chunk.left_out:
            continue
        slow_rejects: list[Reject] = []
        fast_rejects: list[Reject] = []
        events = list(
            read_chunk(
                chunk,
                format,
                time_predicate=time_predicate,
                mapping=ready,
                on_reject=slow_rejects.append,
                name="s",
                needs_time=needs_time,
            )
        )
        longest = checked_length(format, None)
        how = Reading("s", fast_rejects.append, time_predicate, ready.mapping, longest, needs_time)
        dictionary = Dictionary()
        found = READERS[format](chunk, how, Asked.of(rules), dictionary)
        if found is None:
            assert not columnar, f"not by columns: {chunk.data[:200]!r}"
            assert not fast_rejects
            continue
        assert fast_rejects == slow_rejects, chunk.data
        check_found(found, dictionary, events, rules)
        triples += found.size
    return triples


def check_found(found: Found, dictionary: Dictionary, events: Sequence[Event], rules: Sequence[Rule]) -> None:
    """That columns have what these events say, as far as it is asked for, and its terms are known."""
    known = Dictionary()
    wanted = found_of(events, known)
    assert found.size == wanted.size
    assert found.time.tolist() == wanted.time.tolist()
    assert found.event.tolist() == wanted.event.tolist()
    rows = np.arange(found.size) if found.rows is None else found.rows
    assert (np.diff(rows) > 0).all() and len(rows) == len(found.s) == len(found.p) == len(found.o)
    for part in ("s", "p", "o"):
        assert getattr(found, part).tolist() == getattr(wanted, part)[rows].tolist(), part
    graphs = np.zeros(len(rows), np.int64) if found.g is None else found.g
    assert wanted.g is not None and graphs.tolist() == wanted.g[rows].tolist()
    ids = np.unique(np.concatenate([found.s, found.p, found.o, graphs]))
    assert dictionary.terms(ids) == known.terms(ids)
    asked = np.zeros(found.size, np.bool_)
    for p, s, o in rules:
        match = np.full(found.size, True) if p is None else wanted.p == p
        for keys, column in ((s, wanted.s), (o, wanted.o)):
            if keys is not None:
                match &= np.isin(column, keys.ids)
        asked |= match
    assert not asked[np.setdiff1d(np.arange(found.size), rows)].any(), "what is asked for was left out"
