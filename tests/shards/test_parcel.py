"""A parcel tells a shard the time of everything, and what it wants to know in full."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad

from kelda.io.job import StreamSource
from kelda.io.sources import Piece
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.framings.base import Chunk
from kelda.shards.ingest import encoded, ingest
from kelda.shards.parcel import Part, cut, heads_of, pack, unpack
from kelda.shards.routing import Routing, id_of

SHARDS = 4
texts = st.integers(0, 9).map(lambda i: Literal(f"a text too long to be inside an id, {i}"))
names = st.integers(0, 3).map(lambda i: NamedNode(f"http://ex/{i}"))
quads = st.builds(Quad, names, names, texts | names, names) | st.builds(Quad, names, names, texts)
events = st.lists(
    st.builds(Event, st.integers(0, 5), st.lists(quads, min_size=1, max_size=3).map(tuple)), max_size=8
)


@given(events, st.data())
def test_what_was_cut_comes_out(some: list[Event], data: st.DataObject) -> None:
    dictionary = Dictionary()
    all_quads = [quad for event in some for quad in event.quads]
    times = [event.time for event in some for _ in event.quads]
    size = len(times)
    owners = np.array(
        data.draw(st.lists(st.integers(0, 2**SHARDS - 1), min_size=size, max_size=size)), np.int64
    )
    elements = encoded(some, dictionary, lambda s, p, o: owners)
    for shard, part in enumerate(cut(elements, 0, 7, SHARDS)):
        version, (found,), entries = unpack(pack([part], dictionary, 3))
        assert (version, found.stream, found.number, found.size) == (3, 0, 7, size)
        s, p, o, time, _ = found.rows()
        assert time.tolist() == times, "every shard learns every time"
        mine = owners >> shard & 1 == 1
        for column, whole in zip((s, p, o), (elements.s, elements.p, elements.o), strict=True):
            assert (column == np.where(mine, whole, 0)).all()
        other = Dictionary()  # of a process that knows no term yet
        if entries is not None:
            other.add_entries(entries)
        graphs = [DefaultGraph()] * len(found.s) if found.g is None else other.terms(found.g)
        s, p, o = map(other.terms, (found.s, found.p, found.o))
        sent = [Quad(*spog) for spog in zip(s, p, o, graphs, strict=True)]  # type: ignore[arg-type]
        assert sent == [quad for quad, is_mine in zip(all_quads, mine, strict=True) if is_mine]


def test_ingest_tells_one_shard_what_was_read() -> None:
    source = StreamSource("http://ex/a", "a.tsnt")
    text = b"1\t<x:s> <x:p> <x:1> .\nnonsense\n2\t<x:s> <x:p> <x:2> .\n"
    pieces = [
        Piece(0, 0, Chunk(1, 0, b"", text), 3, len(text)),
        Piece(0, 1, None, 0, 0, ends=True, heartbeat=9),
    ]
    routing = Routing()
    routing.everything(source.iri, 1)
    parcels = [unpack(parcel) for parcel in ingest(pieces, [source], routing, 3, 5)]
    assert [version for version, _, _ in parcels] == [5, 5, 5]
    for shard, (_, (first, last), _) in enumerate(parcels):
        assert first.rows().time.tolist() == [1, 2]
        assert len(first.s) == (2 if shard == 1 else 0)
        assert [r.line for r in first.rejects] == ([2] if shard == 0 else [])
        assert first.bytes == (len(text) if shard == 0 else 0)
        assert (last.ends, last.heartbeat, last.size) == (True, 9, 0)


lines = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.booleans()), max_size=40)


@given(lines, st.integers(1, 3))
def test_what_nobody_counts_is_there_by_its_times(some: list[tuple[int, int, bool]], shards: int) -> None:
    """Every time that is told, in its place; what is sent; and rows stand for all elements."""
    text = b"".join(
        b"oops\n" if bad else f'{t}\t<x:s{i}> <x:p{i}> "a text, as long as it must be {i}" .\n'.encode()
        for t, i, bad in some
    )
    good = [(t, i) for t, i, bad in some if not bad]
    source = StreamSource("http://ex/a", "a.tsnt")
    routing = Routing()
    for i in range(2):
        routing.predicate(source.iri, id_of([NamedNode(f"x:p{i}")])[0], i % shards)
    piece = Piece(0, 0, Chunk(1, 0, b"", text), len(some), len(text))
    for shard, parcel in enumerate(ingest([piece], [source], routing, shards, 0)):
        _, (part,), entries = unpack(parcel)
        dictionary = Dictionary()
        if entries is not None:
            dictionary.add_entries(entries)
        mine = [i in range(2) and i % shards == shard for _, i in good]
        rows = part.rows()
        weights = np.ones(len(rows.time), int) if rows.stands_for is None else rows.stands_for
        assert np.repeat(rows.time, weights).tolist() == [t for t, _ in good]
        sent = rows.s != 0
        told = zip(rows.time[sent].tolist(), dictionary.terms(rows.p[sent]), strict=True)
        assert list(told) == [(t, NamedNode(f"x:p{i}")) for (t, i), m in zip(good, mine, strict=True) if m]
        counted = replace(part, counted=True).rows()
        assert counted.time.tolist() == [t for t, _ in good]


def test_a_parcel_read_again_is_the_same() -> None:
    """Byte by byte, also by a worker that has read other things before. Otherwise Spark, which compares
    checksums, takes the source for one that says something else each time; if then a machine is lost between
    two tasks of a batch, it gives up."""
    source = StreamSource("http://ex/a", "a.tsnt")
    routing = Routing()
    routing.everything(source.iri, 0)

    def read(*names: str) -> tuple[bytes, set[str]]:
        text = "".join(f"1\t<x:{name}> <x:p> <x:o> .\n" for name in names).encode()
        (parcel,) = ingest([Piece(0, 0, Chunk(1, 0, b"", text), 2, len(text))], [source], routing, 1, 0)
        _, (part,), entries = unpack(parcel)
        dictionary = Dictionary()
        assert entries is not None
        dictionary.add_entries(entries)
        return parcel, {str(term) for term in dictionary.terms(part.s)}

    with ThreadPoolExecutor(1) as other:  # each thread has a dictionary of its own
        fresh = other.submit(read, "b", "a").result()
    read("a")
    again = read("b", "a")
    assert fresh[1] == again[1] == {"<x:a>", "<x:b>"}
    assert fresh[0] == again[0]


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=30))
def test_rows_that_nobody_counts(some: list[tuple[int, bool]]) -> None:
    """What was sent, and the first of each run of times; each stands for those behind it too."""
    time = np.array([t for t, _ in some], np.int64)
    sent = np.flatnonzero(np.array([wanted for _, wanted in some], np.bool_))
    heads = heads_of(time)
    s, p, o = (place * 100 + sent + 1 for place in (1, 2, 3))
    part = Part(0, 0, len(some), heads, time[heads], None, sent, s, p, o, counted=False)
    kept = sorted({*heads.tolist(), *sent.tolist()})
    rows = part.rows()
    assert rows.time.tolist() == time[kept].tolist()
    assert rows.stands_for is not None
    assert rows.stands_for.tolist() == np.diff([*kept, len(some)]).tolist()
    for column, base in ((rows.s, 100), (rows.p, 200), (rows.o, 300)):
        assert column.tolist() == [base + i + 1 if i in sent else 0 for i in kept]
