"""Sinks: what they hold depends on the batches they were given, not on crashes and repeats."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

import kelda
from kelda.engine.answer import Answer
from kelda.errors import CheckpointError, EnvironmentProblem, UsageError
from kelda.io.formats import TIME_PREDICATE, Messages, NQuads, Shape, shape_of
from kelda.io.sinks import (
    CallbackSink,
    ConsoleSink,
    Sink,
    StreamSink,
    heartbeat,
    open_sink,
    read_stream,
)
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.framing import read_events

EX = "http://ex/"
XSD = "http://www.w3.org/2001/XMLSchema#"
SHAPE = Shape(("who", "where"))


# A kill leaves to the system what the system has, so memory serves these tests as well as a disk, and
# does not make them wait for one.
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="kelda-sinks-", dir=MEMORY) as folder:
        yield Path(folder)


def iri(name: str) -> NamedNode:
    return NamedNode(EX + name)


def row(time: int, who: str, sign: str = "+", **more: str) -> Answer:
    bindings = {"who": iri(who), **{name: Literal(value) for name, value in more.items()}}
    return Answer("q", time, sign, bindings=bindings)


def graph(time: int, *names: str, sign: str = "+") -> Answer:
    return Answer("q", time, sign, triples=tuple(Triple(iri(n), iri("in"), Literal(n)) for n in names))


ROWS = {
    0: [row(1000, "ann"), row(1000, "bob", where='the "lab",\nupstairs')],
    1: [],
    2: [row(2000, "ann", sign="-", where="hall")],
    5: [row(3000, f"p{n}") for n in range(40)],
}
GRAPHS = {
    0: [graph(1000, "a", "b"), graph(1500, "c")],
    1: [],
    2: [graph(2000, "d")],
    5: [graph(2500, "e", "é")],
}

SPECS = {
    "answers.ndjson": ROWS,
    "csv:answers": ROWS,
    "out.nq": GRAPHS,
    "messages:out.trigs": GRAPHS,
    "parquet:table": ROWS,
    "ndjson:lines/": ROWS,
    "csv:rows/": ROWS,
    "stream:said": GRAPHS,
}


def opened(folder: Path, spec: str, **more: object) -> Sink:
    kind, colon, path = spec.partition(":")
    at = f"{kind}:{folder}/{path}" if colon else f"{folder}/{spec}"
    shape = {"shape": SHAPE} if SPECS.get(spec) is ROWS else {}
    return open_sink(at, query="q", **{**shape, **more})  # type: ignore[arg-type]


def held(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, whatever it is called."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def undisturbed(folder: Path, spec: str) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    sink = opened(folder, spec)
    for batch, answers in SPECS[spec].items():
        sink.write(batch, answers)
    sink.close()
    return held(folder)


# -------------------------------------------------------------------------------- what is written


def test_ndjson(tmp_path: Path) -> None:
    undisturbed(tmp_path, "answers.ndjson")
    lines = (tmp_path / "answers.ndjson").read_text().splitlines()
    assert lines == [answer.to_json() for batch in ROWS.values() for answer in batch]
    assert json.loads((tmp_path / "answers.ndjson.kelda-batches").read_text())["batch"] == 5


def test_csv_has_its_header_once(tmp_path: Path) -> None:
    undisturbed(tmp_path, "csv:answers")
    rows = list(csv.reader(io.StringIO((tmp_path / "answers").read_text())))
    assert rows[:4] == [
        ["query", "time", "sign", "who", "where"],
        ["q", "1000", "+", EX + "ann", ""],
        ["q", "1000", "+", EX + "bob", 'the "lab",\nupstairs'],
        ["q", "2000", "-", EX + "ann", "hall"],
    ]
    assert len(rows) == 44


def test_nquads_are_a_graph_an_answer_and_an_event_when_read_back(tmp_path: Path) -> None:
    undisturbed(tmp_path, "out.nq")
    events = list(read_events(tmp_path / "out.nq", on_reject=pytest.fail))
    assert [event.time for event in events] == [1000, 1500, 2000, 2500]
    name = NamedNode("urn:kelda:answer:q:1000")
    assert events[0].quads[1:] == tuple(Quad(iri(n), iri("in"), Literal(n), name) for n in "ab")


def test_messages_are_an_event_an_answer(tmp_path: Path) -> None:
    undisturbed(tmp_path, "messages:out.trigs")
    events = list(read_events(tmp_path / "out.trigs", format="messages", on_reject=pytest.fail))
    assert [(event.time, len(event.quads)) for event in events] == [
        (1000, 3),
        (1500, 2),
        (2000, 2),
        (2500, 3),
    ]


def test_parquet_has_a_file_a_batch_and_keeps_unbound_columns(tmp_path: Path) -> None:
    undisturbed(tmp_path, "parquet:table")
    files = sorted(p.name for p in (tmp_path / "table").iterdir() if not p.name.startswith("."))
    assert files == ["000000000000.parquet", "000000000002.parquet", "000000000005.parquet"]
    table = pq.read_table(tmp_path / "table" / files[2])
    assert [(f.name, str(f.type)) for f in table.schema] == [
        ("time", "int64"),
        ("sign", "string"),
        ("who", "string"),
        ("where", "string"),
    ]
    everything = pq.read_table(tmp_path / "table")  # the journal is not in the way
    assert everything.num_rows == 43
    assert everything.slice(1, 1).to_pylist() == [
        {"time": 1000, "sign": "+", "who": "<http://ex/bob>", "where": r'"the \"lab\",\nupstairs"'}
    ]


def test_parquet_of_other_forms_and_names_that_clash(tmp_path: Path) -> None:
    inner = Triple(iri("a"), iri("b"), iri("c"))
    ask, construct, select = (tmp_path / n for n in ("ask", "construct", "select"))
    for folder, answer in (
        (ask, Answer("q", 1, "+", boolean=False)),
        (construct, Answer("q", 1, "+", triples=(inner,))),
        (select, Answer("q", 1, "+", bindings={"time": Literal("7"), "x": inner, "b": BlankNode("n")})),
    ):
        sink = open_sink(f"parquet:{folder}", query="q")
        sink.write(0, [answer])
        sink.close()
    assert pq.read_table(ask).to_pylist() == [{"time": 1, "sign": "+", "boolean": False}]
    assert (
        pq.read_table(construct).to_pylist()[0]["triples"] == "<http://ex/a> <http://ex/b> <http://ex/c> .\n"
    )
    assert pq.read_table(select).to_pylist() == [
        {
            "time": 1,
            "sign": "+",
            "?time": '"7"',
            "x": "<<( <http://ex/a> <http://ex/b> <http://ex/c> )>>",
            "b": "_:n",
        }
    ]


def test_columns_that_nobody_told_are_learnt_and_remembered(tmp_path: Path) -> None:
    for spec in ("csv:a.csv", "parquet:b"):
        sink = opened(tmp_path, spec)
        sink.write(0, [row(1, "ann", where="hall")])
        sink.close()
        sink = opened(tmp_path, spec)
        sink.write(1, [row(2, "ann")])
        with pytest.raises(UsageError, match=r"no column for \?floor"):
            sink.write(2, [row(2, "ann", floor="3")])
        sink.write(2, [row(2, "bob")])
        sink.close()
    assert (tmp_path / "a.csv").read_text().splitlines()[2:] == [f"q,2,+,{EX}ann,", f"q,2,+,{EX}bob,"]
    assert pq.read_table(tmp_path / "b").column_names == ["time", "sign", "who", "where"]


def test_shape_of_a_query() -> None:
    select = parse("PREFIX : <http://ex/> SELECT ?a ?b { STREAM :s [NOW] { ?a :p ?b } }")
    assert shape_of(select).columns == ("a", "b")
    assert shape_of(select).output is Output.ISTREAM
    assert shape_of(select, Output.CHANGES).output is Output.CHANGES


# ------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize("spec", ["out.nq", "messages:x", "stream:x"])
def test_rdf_sinks_take_triples_of_one_sign(tmp_path: Path, spec: str) -> None:
    select = parse("PREFIX : <http://ex/> SELECT ?a { STREAM :s [NOW] { ?a :p ?b } }")
    construct = parse("PREFIX : <http://ex/> CONSTRUCT { ?a :q ?b } { STREAM :s [NOW] { ?a :p ?b } }")
    with pytest.raises(UsageError, match="write a CONSTRUCT query"):
        opened(tmp_path, spec, shape=shape_of(select))
    with pytest.raises(UsageError, match="cannot tell them apart"):
        opened(tmp_path, spec, shape=shape_of(construct, Output.CHANGES))
    sink = opened(tmp_path, spec, shape=shape_of(construct))
    with pytest.raises(UsageError, match="write a CONSTRUCT query"):
        sink.write(0, [row(1, "ann")])
    with pytest.raises(UsageError, match="cannot tell them apart"):
        sink.write(0, [graph(1, "a", sign="-")])
    sink.write(0, [graph(1, "a")])  # nothing of what was refused is in the way
    sink.close()
    gone = opened(tmp_path, spec + "2", shape=shape_of(construct, Output.DSTREAM)) if ":" in spec else None
    if gone is not None:
        gone.write(0, [graph(1, "a", sign="-")])
        gone.close()


def test_a_time_that_readers_would_take_for_the_events_is_refused(tmp_path: Path) -> None:
    prov = NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
    for value, fits in (("1000", True), ("1001", False), ("soon", False)):
        answer = Answer("q", 1000, "+", triples=(Triple(iri("a"), prov, Literal(value)),))
        sink = StreamSink(tmp_path / value, query="q")
        if fits:
            sink.write(0, [answer])
            assert [event.time for _, event in read_stream(tmp_path / value)] == [1000]
        else:
            with pytest.raises(UsageError, match="name another time_predicate"):
                sink.write(0, [answer])
        sink.close()
        other = StreamSink(tmp_path / (value + "x"), query="q", time_predicate=EX + "at")
        other.write(0, [answer])
        other.close()
        (_, event), *_ = read_stream(tmp_path / (value + "x"), time_predicate=EX + "at")
        assert event.time == 1000


@pytest.mark.parametrize("spec", ["kafka:topic", "answers", "ndjson:", "console:html", "parquet:"])
def test_specs_that_mean_nothing(spec: str) -> None:
    with pytest.raises(UsageError):
        open_sink(spec, query="q")


def test_what_is_there_is_refused_unless_told(tmp_path: Path) -> None:
    file = tmp_path / "answers.ndjson"
    file.write_text("mine\n")
    with pytest.raises(UsageError, match="existing='append'"):
        opened(tmp_path, "answers.ndjson")
    assert file.read_text() == "mine\n"
    sink = opened(tmp_path, "answers.ndjson", existing="append")
    sink.write(0, [row(1, "ann")])
    sink.close()
    assert file.read_text().splitlines() == ["mine", row(1, "ann").to_json()]
    with pytest.raises(UsageError, match="holds the answers of query 'q'"):
        open_sink(str(file), query="another")
    sink = open_sink(str(file), query="another", existing="overwrite")
    assert file.read_text() == ""
    sink.close()


def test_another_run_is_not_taken_for_this_one(tmp_path: Path) -> None:
    """Its batches begin at 0 again: skipping them as repeats would lose them."""
    for spec in ("answers.ndjson", "ndjson:lines/"):
        sink = opened(tmp_path, spec, run="one")
        sink.write(7, [row(1, "ann")])
        sink.close()
        with pytest.raises(UsageError, match="run one"):
            opened(tmp_path, spec, run="two")
        sink = opened(tmp_path, spec, run="two", existing="overwrite")
        sink.write(0, [row(2, "bob")])
        sink.close()
        sink = opened(tmp_path, spec, run="two", existing="overwrite")  # the same command after a crash
        sink.write(1, [row(3, "cyd")])
        sink.close()
    two = [row(2, "bob").to_json(), row(3, "cyd").to_json()]
    assert (tmp_path / "answers.ndjson").read_text().splitlines() == two
    files = sorted((tmp_path / "lines").glob("*.ndjson"))
    assert [file.read_text().strip() for file in files] == two
    sink = opened(tmp_path, "answers.ndjson", run="three", existing="append")
    sink.write(0, [row(4, "dan")])
    sink.close()
    assert (tmp_path / "answers.ndjson").read_text().splitlines() == [*two, row(4, "dan").to_json()]
    with pytest.raises(UsageError, match="whose numbers come again"):
        opened(tmp_path, "ndjson:lines/", run="three", existing="append")


def test_append_looks_at_header_and_end(tmp_path: Path) -> None:
    for text in ("query,time,sign,other\n", "query,time,sign,who,where\nq,1,+,x,y"):
        (tmp_path / "a.csv").write_text(text)
        with pytest.raises(UsageError, match="cannot append"):
            opened(tmp_path, "a.csv", existing="append", shape=SHAPE)
        with pytest.raises(UsageError, match="cannot append"):
            opened(tmp_path, "a.csv", existing="append")
        assert (tmp_path / "a.csv").read_text() == text
    (tmp_path / "a.csv").write_text("query,time,sign,who,where\n")
    sink = opened(tmp_path, "a.csv", existing="append", shape=SHAPE)
    sink.write(0, [row(1, "ann")])
    sink.close()
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 2


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    for spec in ("answers.ndjson", "parquet:table"):
        first = opened(tmp_path, spec)
        with pytest.raises(UsageError, match="being written already"):
            opened(tmp_path, spec)
        first.close()
        opened(tmp_path, spec).close()


def test_a_file_that_lost_bytes_is_refused(tmp_path: Path) -> None:
    undisturbed(tmp_path, "answers.ndjson")
    os.truncate(tmp_path / "answers.ndjson", 10)
    with pytest.raises(UsageError, match="has 10 bytes"):
        opened(tmp_path, "answers.ndjson")
    (tmp_path / "answers.ndjson").unlink()
    with pytest.raises(UsageError, match="has 0 bytes"):
        opened(tmp_path, "answers.ndjson")


def test_what_is_no_file_or_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a plain file"):
        open_sink("ndjson:/dev/null", query="q")
    (tmp_path / "answers.ndjson.kelda-batches").write_text("[1]")
    with pytest.raises(CheckpointError, match="not a journal"):
        opened(tmp_path, "answers.ndjson")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot"):
        opened(tmp_path, "parquet:file")


def test_a_full_disk_is_told_and_the_batch_can_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(tmp_path, "answers.ndjson")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(EnvironmentProblem, match=r"batch 0 .* No space left"):
            sink.write(0, ROWS[0])
    sink.write(0, ROWS[0])
    sink.close()
    assert len((tmp_path / "answers.ndjson").read_text().splitlines()) == 2


# -------------------------------------------------------------------------- streams for queries


names = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
values = st.one_of(
    names.map(Literal),
    st.sampled_from([iri("a"), iri("é"), Literal("x", language="en"), Triple(iri("a"), iri("b"), iri("c"))]),
    st.integers(-5, 5).map(lambda n: Literal(str(n), datatype=NamedNode(XSD + "integer"))),
)
triples = st.builds(Triple, st.sampled_from([iri("a"), iri("b")]), st.just(iri("p")), values)
answers = st.builds(
    lambda time, triples: Answer("q", time, "+", triples=tuple(triples)),
    st.one_of(st.integers(-(10**12), 4 * 10**12), st.just(10**17)),
    st.lists(triples, max_size=4),
)


@given(st.lists(st.lists(answers, max_size=3), max_size=4))
def test_a_stream_is_read_back_as_it_was_said(batches: list[list[Answer]]) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        sink = StreamSink(folder, query="q")
        for batch, said in enumerate(batches):
            sink.write(batch, said)
        sink.close()
        read = [(batch, event.time, event.quads) for batch, event in read_stream(folder)]
        beat = heartbeat(folder)
    assert read == [
        (batch, answer.time, tuple(Quad(t.subject, t.predicate, t.object) for t in answer.triples or ()))
        for batch, said in enumerate(batches)
        for answer in said
    ]
    assert beat == max((answer.time for said in batches for answer in said), default=None)


def test_a_stream_tells_how_far_it_is(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a stream"):
        heartbeat(tmp_path)
    sink = StreamSink(tmp_path, query="q")
    assert heartbeat(tmp_path) is None
    sink.write(0, [graph(1000, "a")])
    assert heartbeat(tmp_path) == 1000
    sink.write(1, [], reported=5000)
    assert heartbeat(tmp_path) == 5000
    sink.write(1, [], reported=6000)  # a repeat says nothing new
    sink.write(2, [graph(5500, "b")], reported=5400)
    assert heartbeat(tmp_path) == 5500
    sink.close()
    assert [event.time for _, event in read_stream(tmp_path, after=0)] == [5500]
    events = [e for f in sorted(tmp_path.glob("*.messages")) for e in read_events(f, on_reject=pytest.fail)]
    assert [event.time for event in events] == [1000, 5500]  # as any stream, without a word about times


def test_a_query_feeds_another(tmp_path: Path) -> None:
    """Who is seen twice within 5 s is busy; how many are, at each instant."""
    seen = kelda.connect()
    busy = seen.register(
        "PREFIX : <http://ex/> CONSTRUCT { ?who :busy ?b } "
        "{ STREAM :seen [RANGE 5s] { ?who :in ?a } STREAM :seen [NOW] { ?who :in ?b } FILTER (?a != ?b) }",
        name="busy",
    )
    for at, who, where in (
        (1000, "ann", "lab"),
        (2000, "ann", "hall"),
        (3000, "bob", "hall"),
        (9000, "x", "y"),
    ):
        seen.stream(EX + "seen").push([Triple(iri(who), iri("in"), iri(where))], time=at)
    sink = StreamSink(tmp_path, query="busy")
    sink.write(0, list(busy.results()), reported=8999)
    sink.close()

    counted = kelda.connect()
    stream = counted.stream(EX + "busy")
    count = counted.register(
        "PREFIX : <http://ex/> SELECT (COUNT(*) AS ?n) { STREAM :busy [RANGE 5s] { ?who :busy ?b } }"
    )
    for _, event in read_stream(tmp_path):
        stream.push(event)
    stream.heartbeat(heartbeat(tmp_path) or 0)
    assert [(a.time, a.bindings["n"].value) for a in count.results() if a.bindings] == [
        (2000, "1"),
        (7000, "0"),
    ]


# ----------------------------------------------------------------------- console and callbacks


def test_console_goes_on_behind_what_it_has_shown(tmp_path: Path) -> None:
    shown = io.StringIO()
    for _ in range(2):
        sink = ConsoleSink(query="q", shape=SHAPE, out=shown, ledger=tmp_path / "ledger")
        for batch, said in ROWS.items():
            sink.write(batch, said)
        sink.close()
    text = shown.getvalue()
    assert text.count("<http://ex/ann>") == 2
    assert text.count("<http://ex/p39>") == 1
    assert "1970-01-01T00:00:03Z" in text


def test_console_lines(capsys: pytest.CaptureFixture[str]) -> None:
    sink = open_sink("console:ndjson", query="q")
    sink.write(0, ROWS[0])
    sink.write(0, ROWS[0])
    sink.close()
    assert capsys.readouterr().out.splitlines() == [answer.to_json() for answer in ROWS[0]]


def test_null(tmp_path: Path) -> None:
    sink = open_sink("null", query="q")
    sink.write(0, ROWS[0])
    sink.write(0, ROWS[0])
    sink.close()


def test_callback_goes_on_at_the_call_that_failed(tmp_path: Path) -> None:
    heard: list[int] = []

    def call(answer: Answer) -> None:
        heard.append(answer.time)
        if answer.time == 3 and heard.count(3) == 1:
            raise ValueError("not now")

    batch = [row(time, "ann") for time in range(6)]
    sink = CallbackSink(call, tmp_path / "ledger")
    with pytest.raises(ValueError, match="not now"):
        sink.write(4, batch)
    sink.close()
    sink = CallbackSink(call, tmp_path / "ledger")
    for again in (3, 4, 4):
        sink.write(again, batch)
    sink.close()
    assert heard == [0, 1, 2, 3, 3, 4, 5]
    with pytest.raises(UsageError, match="another run"):
        CallbackSink(call, tmp_path / "ledger", run="two")
    (tmp_path / "ledger").write_text("what?")
    with pytest.raises(CheckpointError, match="not a ledger"):
        CallbackSink(call, tmp_path / "ledger")


def test_callback_without_ledger_is_once_in_a_process() -> None:
    heard: list[Answer] = []
    sink = CallbackSink(heard.append, None)
    for batch in (0, 0, 1, 0):
        sink.write(batch, ROWS[0])
    sink.close()
    assert heard == ROWS[0] * 2


# -------------------------------------------------------------------------------------- crashes


@pytest.mark.parametrize("spec", SPECS)
def test_batches_that_come_again_change_nothing(tmp_path: Path, spec: str) -> None:
    expected = undisturbed(tmp_path / "undisturbed", spec)
    (tmp_path / "again").mkdir()
    batches = SPECS[spec]
    for last in batches:
        sink = opened(tmp_path / "again", spec)
        for batch in batches:
            if batch <= last:
                sink.write(batch, batches[batch])
        sink.write(last, batches[last])
        sink.close()
    assert held(tmp_path / "again") == expected


class Crash(BaseException):
    """The process ends here."""


STEPS = ("pwrite", "fsync", "ftruncate", "replace", "unlink")


def crashing(patch: pytest.MonkeyPatch, at: int, done: bool) -> None:
    """Let the `at`-th call that changes the disk be the last: not done (a write: half done), or done."""
    left = iter(range(at, -1, -1))

    def step(real: object, name: str) -> object:
        def call(*args: object) -> object:
            if next(left) > 0:
                return real(*args)  # type: ignore[operator]
            if done:
                real(*args)  # type: ignore[operator]
            elif name == "pwrite":
                file, data, offset = args
                real(file, data[: len(data) // 2], offset)  # type: ignore[operator, index, arg-type]
            raise Crash

        return call

    for name in STEPS:
        patch.setattr(os, name, step(getattr(os, name), name))


def deliver(folder: Path, spec: str, acknowledged: list[int]) -> None:
    """As a pipeline does: what was not acknowledged comes again."""
    sink = None
    try:
        sink = opened(folder, spec)
        for batch, said in SPECS[spec].items():
            if not acknowledged or batch > acknowledged[-1]:
                sink.write(batch, said)
                acknowledged.append(batch)
    finally:
        if sink is not None:
            sink.close()  # only gives files and locks back, as the end of a process does


@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("spec", SPECS)
def test_a_crash_at_any_step_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, done: bool
) -> None:
    expected = undisturbed(tmp_path / "undisturbed", spec)
    crashes = 0
    while True:
        folder = tmp_path / str(crashes)
        folder.mkdir()
        acknowledged: list[int] = []
        try:
            with monkeypatch.context() as patch:
                crashing(patch, crashes, done)
                deliver(folder, spec, acknowledged)
        except Crash:
            crashes += 1
        else:
            break
        for name, data in held(folder).items():  # what a reader may see meanwhile
            if Path(name).parent != Path() and not Path(name).name.startswith("."):
                assert data == expected[name]
        deliver(folder, spec, acknowledged)
        assert held(folder) == expected
    assert crashes > 15


ROUNDS = 20
PARENT = (  # a process of its own: it forks, and pytest may have threads
    "import sys; from pathlib import Path; from tests.io.test_sinks import kill_children;"
    "kill_children(Path(sys.argv[1]), int(sys.argv[2]))"
)


def batch_of(number: int, spec: str) -> Sequence[Answer]:
    draw = random.Random(number)
    size = draw.choice([0, 1, 3, 60])
    if SPECS[spec] is ROWS:
        return [row(number, f"w{n}", where="x" * draw.randrange(50)) for n in range(size)]
    return [graph(number, *(f"n{n}" for n in range(size)))] if size else []


def write_everything(folder: Path, start: int, stop: int) -> Iterator[int]:
    sinks = [(opened(folder, spec), spec) for spec in SPECS]
    calls = os.open(folder.parent / f"{folder.name}.calls", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    callback = CallbackSink(lambda a: os.write(calls, f"{a.to_json()}\n".encode()), folder / "ledger")
    for number in range(start, stop):
        for sink, spec in sinks:
            sink.write(number, batch_of(number, spec))
        callback.write(number, batch_of(number, "answers.ndjson"))
        yield number


def kill_children(folder: Path, seed: int) -> None:
    """Children that write to all sinks, one after the other, each killed at some moment; the next begins
    behind the last batch that was acknowledged, or with it."""
    pa.array(["warm"])  # loads what the children would each load anew
    draw = random.Random(seed)
    log = folder.parent / "acknowledged"
    log.write_text("-1\n")
    for _ in range(ROUNDS):
        start = max(0, int(log.read_text().split()[-1]) + draw.choice([0, 1]))
        child = os.fork()
        if child == 0:
            with log.open("a") as acknowledged:
                for number in write_everything(folder, start, sys.maxsize):
                    acknowledged.write(f"{number}\n")
                    acknowledged.flush()
            os._exit(0)
        wanted = len(log.read_text().split()) + draw.randrange(7)
        while len(log.read_text().split()) < wanted:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the child failed by itself"
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "the child failed by itself"


def test_killed_at_random_moments(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    folder = tmp_path / "killed"
    folder.mkdir()
    command = [sys.executable, "-c", PARENT, str(folder), str(random.randrange(10**6))]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    last = int((tmp_path / "acknowledged").read_text().split()[-1])
    assert last > ROUNDS
    for _ in write_everything(folder, last, last + 5):
        pass
    plain = tmp_path / "undisturbed"
    plain.mkdir()
    for _ in write_everything(plain, 0, last + 5):
        pass
    assert held(folder) == held(plain), command
    # A call cannot be taken back: the one that a kill cut short is made again, no other is.
    calls = (tmp_path / "killed.calls").read_text().splitlines()
    wanted = (tmp_path / "undisturbed.calls").read_text().splitlines()
    assert list(dict.fromkeys(calls)) == list(dict.fromkeys(wanted))
    assert len(wanted) <= len(calls) <= len(wanted) + ROUNDS


def test_quads_keep_their_graphs() -> None:
    """In N-Quads what the query puts into a graph stands there; RDF Messages keep the time beside it."""
    triple = Triple(NamedNode("e:a"), NamedNode("e:b"), NamedNode("e:c"))
    quad = Quad(triple.subject, triple.predicate, triple.object, NamedNode("e:g"))
    answer = Answer("q", 1000, "+", triples=(triple, quad))
    lines = NQuads().body([answer]).decode().splitlines()
    assert lines[1:] == ["<e:a> <e:b> <e:c> <urn:kelda:answer:q:1000> .", "<e:a> <e:b> <e:c> <e:g> ."]
    messages = Messages().head() + Messages().body([answer])
    (event,) = read_events(
        io.BytesIO(messages), format="messages", time_predicate=TIME_PREDICATE, on_reject=pytest.fail
    )
    assert event.time == 1000
    assert quad in event.quads
    assert json.loads(answer.to_json())["triples"].splitlines() == [f"{triple} .", f"{quad} ."]
