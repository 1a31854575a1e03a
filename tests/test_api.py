"""The Python interface, as a user meets it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Triple

import kelda
from kelda.errors import InputError, UsageError
from kelda.io.payload import quads_of

S = "http://ex/s"
LAST_3S = "SELECT ?x WHERE { STREAM <http://ex/s> [RANGE 3s] { ?x <http://ex/p> ?y } }"


def names(query: kelda.Query) -> list[tuple[int, str, str]]:
    return [(a.time, a.sign, a.bindings["x"].value.rsplit("/")[-1]) for a in query.results()]  # type: ignore[index]


def test_push_text_triples_and_events() -> None:
    with kelda.connect() as engine:
        stream = engine.stream(S)
        query = engine.register(LAST_3S)
        stream.push("<http://ex/a> <http://ex/p> 1 .", time=1000)
        stream.push(
            Triple(NamedNode("http://ex/b"), NamedNode("http://ex/p"), Literal("1")),
            time=datetime(1970, 1, 1, 0, 0, 2),
        )
        stream.push([Triple(NamedNode("http://ex/c"), NamedNode("http://ex/p"), Literal("1"))], time=3000)
    assert names(query) == [(1000, "+", "a"), (2000, "+", "b"), (3000, "+", "c")]


def test_an_instant_is_answered_when_it_is_complete() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(LAST_3S)
    stream.push("<http://ex/a> <http://ex/p> 1 .", time=1000)
    assert names(query) == []  # more may come at 1000
    stream.heartbeat(1000)
    assert names(query) == [(1000, "+", "a")]
    stream.push("<http://ex/b> <http://ex/p> 1 .", time=1000)
    assert engine.late == {S: 1}


def test_arrival_time_answers_at_once() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(LAST_3S)
    stream.push("<http://ex/a> <http://ex/p> 1 .")
    assert [x for _, _, x in names(query)] == ["a"]


def test_subscribe_pause_resume_stop() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(LAST_3S, name="q")
    got: list[kelda.Answer] = []
    query.subscribe(got.append)
    stream.push("<http://ex/a> <http://ex/p> 1 .", time=1000)
    stream.heartbeat(1000)
    query.pause()
    stream.push("<http://ex/b> <http://ex/p> 1 .", time=2000)
    stream.heartbeat(2000)
    assert [a.time for a in got] == [1000]
    query.resume()
    stream.push("<http://ex/c> <http://ex/p> 1 .", time=2500)
    stream.heartbeat(2500)
    assert sorted((a.time, a.bindings["x"].value[-1]) for a in got) == [(1000, "a"), (2500, "b"), (2500, "c")]  # type: ignore[index]
    query.stop()
    assert engine.queries == []
    stream.push("<http://ex/d> <http://ex/p> 1 .", time=3000)
    stream.heartbeat(3000)
    assert len(got) == 3


def test_a_query_sees_the_stream_from_its_registration_on() -> None:
    engine = kelda.connect()
    stream = engine.stream(S)
    stream.push("<http://ex/a> <http://ex/p> 1 .", time=1000)
    stream.heartbeat(1000)
    query = engine.register(LAST_3S)
    stream.push("<http://ex/b> <http://ex/p> 1 .", time=2000)
    engine.advance(2000)
    assert names(query) == [(2000, "+", "b")]


def test_stored_graphs_and_parameters(tmp_path: Path) -> None:
    (tmp_path / "g.ttl").write_text(
        '<http://ex/a> <http://ex/name> "Ann" . <http://ex/b> <http://ex/name> "Bob" .'
    )
    with kelda.connect() as engine:
        engine.load(tmp_path / "g.ttl", graph="http://ex/g")
        query = engine.register(
            """SELECT ?x WHERE { STREAM <http://ex/s> [RANGE $w] { ?x ?p ?y }
               GRAPH <http://ex/g> { ?x <http://ex/name> $name } }""",
            params={"name": "Ann", "w": 5000},
        )
        for i, who in enumerate("abc"):
            engine.stream(S).push(f"<http://ex/{who}> <http://ex/p> 1 .", time=1000 + i)
    assert names(query) == [(1000, "+", "a")]
    table = engine.query("SELECT ?n { GRAPH ?g { ?s <http://ex/name> ?n } } ORDER BY ?n")
    assert [row["n"].value for row in table.rows] == ["Ann", "Bob"]  # type: ignore[union-attr]


def test_read_a_file(tmp_path: Path) -> None:
    path = tmp_path / "s.tsnt"
    path.write_text(
        "1000\t<http://ex/a> <http://ex/p> <http://ex/o> .\n"
        "rubbish\n"
        "2000\t<http://ex/b> <http://ex/p> <http://ex/o> .\n"
    )
    with kelda.connect() as engine:
        engine.stream(S, str(path))
        query = engine.register(LAST_3S)
        with pytest.raises(UsageError, match=r"start\(\) it first"):
            engine.wait()
        engine.start()
        assert engine.wait(60)
        assert names(query) == [(1000, "+", "a"), (2000, "+", "b")]
        assert [(reject.line, reject.record) for reject in engine.rejects] == [(2, "rubbish")]
        assert (engine.figures.events, engine.figures.rejected) == (2, 1)


def test_errors_say_what_to_do() -> None:
    engine = kelda.connect()
    engine.register(LAST_3S, name="q")
    with pytest.raises(UsageError, match="choose another name"):
        engine.register(LAST_3S, name="q")
    with pytest.raises(UsageError, match="register"):
        engine.query(LAST_3S)
    with pytest.raises(InputError, match="Turtle"):
        engine.stream(S).push("not turtle", time=1)
    with pytest.raises(kelda.QueryError, match="line 1"):
        engine.register("SELECT ?x WHERE { STREAM <s> [RANGE] { ?x ?p ?y } }")
    with pytest.raises(kelda.QueryError, match=r"of GeoSPARQL there are geof:.*\bgeof:sfWithin\b"):
        engine.query("SELECT (<http://www.opengis.net/def/function/geosparql/bake>(1) AS ?x) { }")
    with pytest.raises(kelda.QueryError, match="#double> cannot be called with 2 arguments"):
        engine.query("SELECT (<http://www.w3.org/2001/XMLSchema#double>(1, 2) AS ?x) { }")
    with pytest.raises(kelda.QueryError, match="unknown function <http://ex/f>"):
        engine.register(
            "SELECT ?x WHERE { STREAM <http://ex/s> [NOW] { ?x ?p ?y } FILTER(<http://ex/f>(?y)) }"
        )
    engine.stop()
    with pytest.raises(UsageError, match="closed"):
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1)


def test_output_override() -> None:
    with kelda.connect() as engine:
        query = engine.register(LAST_3S, output="changes")
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1000)
        engine.stream(S).push("<http://ex/b> <http://ex/p> 1 .", time=9000)
    assert names(query) == [(1000, "+", "a"), (4000, "-", "a"), (9000, "+", "b")]


def test_report_override() -> None:
    with kelda.connect() as engine:
        every_second = kelda.Report(kelda.When.PERIODIC, non_empty=True, every=1000)
        query = engine.register(LAST_3S, output="rstream", report=every_second)
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1500)
        engine.stream(S).push("<http://ex/b> <http://ex/p> 1 .", time=9000)
    assert names(query) == [(2000, "+", "a"), (3000, "+", "a"), (4000, "+", "a"), (9000, "+", "b")]


def test_explain_names_the_windows() -> None:
    engine = kelda.connect()
    text = engine.register(LAST_3S).explain()
    assert "the last 3000 ms" in text and "from the changes alone" in text
    text = engine.register(LAST_3S.replace("?y }", "?y . ?x <http://ex/q>* ?z }")).explain()
    assert "by the reference evaluator" in text and "path" in text


def test_stored_graphs_may_change_while_queries_run(tmp_path: Path) -> None:
    (tmp_path / "one.ttl").write_text("<http://ex/a> <http://ex/k> 1 .")
    (tmp_path / "two.ttl").write_text("<http://ex/b> <http://ex/k> 2 .")
    engine = kelda.connect()
    engine.load(tmp_path / "one.ttl")
    query = engine.register(
        "SELECT ?x ?k { STREAM <http://ex/s> [RANGE 9s] { ?x ?p ?y } ?x <http://ex/k> ?k }"
    )
    for t, who in ((1000, "a"), (1000, "b")):
        engine.stream(S).push(f"<http://ex/{who}> <http://ex/p> 1 .", time=t)
    engine.advance(1000)
    assert names(query) == [(1000, "+", "a")]
    engine.load(tmp_path / "two.ttl")
    engine.stream(S).push("<http://ex/c> <http://ex/p> 1 .", time=2000)
    engine.advance(2000)
    assert names(query) == [(2000, "+", "b")]


def test_memory_limit_and_unread_answers() -> None:
    engine = kelda.connect(memory_limit=1000)
    engine.register(LAST_3S)
    with pytest.raises(kelda.KeldaError, match="more than the limit of 1,000"):
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .")
    engine = kelda.connect(max_unread=2)
    query = engine.register(LAST_3S)
    for _ in range(3):
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .")
    with pytest.raises(UsageError, match="wait to be read"):
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .")
    assert len(list(query.results())) == 3
    engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .")
    assert sum(engine.memory.values()) > 0


def test_terms_come_out_as_they_went_in() -> None:
    data = '<http://ex/a> <http://ex/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .'
    with kelda.connect() as engine:
        query = engine.register(
            "SELECT ?y (?y + 1 AS ?z) WHERE { STREAM <http://ex/s> [NOW] { ?x ?p ?y FILTER(?y = 1) } }"
        )
        engine.stream(S).push(data, time=1000)
    (answer,) = query.results()
    assert {k: v.value for k, v in answer.bindings.items()} == {"y": "01", "z": "2"}  # type: ignore[union-attr]


@pytest.mark.parametrize("said", [1763458000.5, True, "5", 1.5, 2**63 - 1])
def test_a_time_that_is_no_time_is_refused_everywhere(said) -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(LAST_3S)
    triple = "<http://ex/a> <http://ex/p> 1 ."
    event = kelda.Event(said, quads_of(triple))
    for say in (
        lambda: stream.push(triple, time=said),
        lambda: stream.push(event),
        lambda: stream.heartbeat(said),
        lambda: engine.advance(said),
        lambda: kelda.connect(t0=said),
    ):
        with pytest.raises(UsageError, match="datetime, or whole milliseconds since 1970"):
            say()
    stream.push(event, time=1000)  # the time that is said goes before
    engine.stop()
    assert names(query) == [(1000, "+", "a")]


def test_events_with_datetimes() -> None:
    engine = kelda.connect(t0=datetime(1970, 1, 1))
    stream, query = engine.stream(S), engine.register(LAST_3S)
    stream.push(kelda.Event(datetime(1970, 1, 1, 0, 0, 1), quads_of("<http://ex/a> <http://ex/p> 1 .")))  # type: ignore[arg-type]
    engine.advance(datetime(1970, 1, 1, 0, 0, 2))
    assert names(query) == [(1000, "+", "a")]


def test_seconds_of_today_get_a_hint_once_a_stream() -> None:
    engine = kelda.connect()
    stream = engine.stream(S)
    with pytest.warns(UserWarning, match="in seconds it would be 2025-11-18T09:26:40Z") as told:
        stream.push("<http://ex/a> <http://ex/p> 1 .", time=1763458000)
        stream.push("<http://ex/a> <http://ex/p> 1 .", time=1763458001)
    assert len(told) == 1
    assert told[0].filename == __file__


@pytest.mark.filterwarnings("error")
def test_a_story_that_begins_in_1970_gets_no_hint() -> None:
    engine = kelda.connect()
    engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1000)
    engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1763458000)


def test_names_of_nameless_queries_are_not_taken() -> None:
    engine = kelda.connect()
    first, second = engine.register(LAST_3S), engine.register(LAST_3S)
    first.stop()
    assert engine.register(LAST_3S).name != second.name


def test_objects_say_what_they_are() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(LAST_3S, name="q")
    assert repr(engine) == "<kelda.Engine in this process: 1 stream, 1 query>"
    assert repr(stream) == "<kelda.Stream http://ex/s>"
    stream.push("<http://ex/a> <http://ex/p> 1 .")
    assert repr(query) == "<kelda.Query 'q': 1 answer unread>"
    (answer,) = query.results()
    assert repr(answer).startswith("<Answer of 'q' at ")
    assert repr(answer).endswith("Z: + ?x = <http://ex/a>>")
    engine.stop()
    assert repr(engine) == "<kelda.Engine in this process: 1 stream, 1 query, stopped>"


def test_a_base_from_outside() -> None:
    engine = kelda.connect()
    query = engine.register("SELECT ?x { STREAM <s> [NOW] { ?x <p> ?y } }", base="http://ex/a/b")
    engine.stream("http://ex/a/s").push("<http://ex/x> <http://ex/a/p> 1 .", time=1000)
    engine.stop()
    assert [a.bindings["x"].value for a in query.results()] == ["http://ex/x"]
    assert engine.query("SELECT (<x> AS ?x) { }", base="http://ex/").rows == [{"x": NamedNode("http://ex/x")}]


def test_quads_are_answers() -> None:
    engine = kelda.connect()
    found = engine.query("CONSTRUCT { GRAPH ?g { <e:a> <e:b> _:n } } { VALUES ?g { <e:g> 5 UNDEF } }")
    assert [str(quad.graph_name) for quad in found] == ["<e:g>"]


def test_a_query_registered_after_a_restart_sees_what_comes_next(tmp_path: Path) -> None:
    with kelda.connect(checkpoint=tmp_path / "state") as engine:
        engine.start()
        engine.stream(S).push("<http://ex/a> <http://ex/p> 1 .", time=1000)
        engine.advance(1000)
        assert engine.flush(60)
    with kelda.connect(checkpoint=tmp_path / "state") as engine:
        query = engine.register(LAST_3S)
        engine.start()
        engine.stream(S).push("<http://ex/b> <http://ex/p> 1 .", time=2000)
        engine.advance(2000)
        assert engine.flush(60)
        assert names(query) == [(2000, "+", "b")]


# ------------------------------------------------------------------------------- answers as people want them

VALUES = "SELECT ?x ?y { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }"


def said(engine: kelda.Engine, *values: object) -> kelda.Query:
    """A query that has answered once for each value, at 1000, 2000, …"""
    stream, query = engine.stream(S), engine.register(VALUES, name="values")
    for i, value in enumerate(values, 1):
        stream.push(("http://ex/a", "http://ex/p", value), time=1000 * i)
    engine.advance(1000 * len(values))
    return query


def test_answers_as_tables() -> None:
    table = said(kelda.connect(), 1, 2, 3).to_arrow()
    assert table.column_names == ["time", "sign", "x", "y"]
    assert table.column("y").to_pylist() == [1, 2, 3]
    assert table.column("x").to_pylist() == ["http://ex/a"] * 3
    query = said(kelda.connect(), 1.5, 2.5)
    next(query.results())  # what was read is not in the table
    assert query.to_pandas()["y"].tolist() == [2.5]
    assert query.unread == 0 and query.to_arrow().num_rows == 0
    assert said(kelda.connect(), True).to_arrow(terms="ntriples").column("x").to_pylist() == ["<http://ex/a>"]


def test_answers_batch_by_batch() -> None:
    query = said(kelda.connect(), 1, 2)
    assert [block.to_arrow().column("y").to_pylist() for block in query.batches()] == [[1], [2]]
    assert list(query.results()) == []


def test_answers_in_polars() -> None:
    pytest.importorskip("polars")
    assert said(kelda.connect(), 1, 2).to_polars()["y"].to_list() == [1, 2]


def test_notebooks_show_the_first_answers() -> None:
    engine = kelda.connect()
    query = said(engine, "<b>", 2)
    shown = query._repr_html_()
    assert "&lt;b&gt;" in shown and "values: 2 answers" in shown and query.unread == 2
    assert "values (2 answers unread)" in engine._repr_html_()


def test_async() -> None:
    async def answers() -> list[str]:
        async with kelda.connect() as engine:
            stream, query = engine.stream(S), engine.register(VALUES)
            found = []

            async def read() -> None:
                async for answer in query:
                    found.append(answer.bindings["y"].value)

            reading = asyncio.create_task(read())
            for i in range(3):
                assert await stream.push_async(("http://ex/a", "http://ex/p", i), time=1000 * (i + 1)) == 1
                await asyncio.sleep(0.01)
        await asyncio.wait_for(reading, 10)  # it ends with the engine
        return found

    assert asyncio.run(answers()) == ["0", "1", "2"]


# ------------------------------------------------------------------------------- what comes and goes


def test_many_queries_at_once() -> None:
    engine = kelda.connect()
    prepared = engine.prepare("SELECT ?y { STREAM <http://ex/s> [RANGE $w] { $x <http://ex/p> ?y } }")
    users = [NamedNode(f"http://ex/u{i}") for i in range(5)]
    queries = engine.register_many(prepared, {"x": users, "w": [1000] * 5}, [f"of-{i}" for i in range(5)])
    engine.stream(S).push(("http://ex/u3", "http://ex/p", 1))
    assert [query.name for query in queries if query.unread] == ["of-3"]
    with pytest.raises(UsageError, match="'of-3' is registered already"):
        engine.register_many(prepared, {"x": users[:1], "w": [1000]}, ["of-3"])
    with pytest.raises(UsageError, match="as many values"):
        engine.register_many(prepared, {"x": users, "w": [1000]})


def test_streams_and_graphs_come_and_go(tmp_path: Path) -> None:
    file = tmp_path / "g.ttl"
    file.write_text("<http://ex/a> <http://ex/k> 1 .")
    engine = kelda.connect()
    query = engine.register(LAST_3S)
    with pytest.raises(UsageError, match="is read by 'query1': stop these queries first"):
        engine.stream(S).drop()
    query.stop()
    engine.stream(S).drop()
    assert engine.streams == []
    engine.load(file)
    assert engine.graphs == [(None, str(file))] and engine.query("ASK { ?s ?p ?o }") is True
    engine.drop_graph()
    assert engine.graphs == [] and engine.query("ASK { ?s ?p ?o }") is False
    with pytest.raises(kelda.QueryError):
        engine.register(
            "SELECT ?x { STREAM <http://ex/new> [RANGE 1s] { ?x ?p ?o } FILTER(<http://ex/f>(?x)) }"
        )
    assert engine.streams == [], "a query that is refused declares nothing"


def test_what_is_refused_says_what_to_do(tmp_path: Path) -> None:
    engine = kelda.connect(fixed_graphs=True)
    engine.stream(S, lateness=5)
    with pytest.raises(UsageError, match="is declared already, in another way"):
        engine.stream(S, "file.tsnt")
    with pytest.raises(UsageError, match="connect with a master"):
        engine.stream("http://ex/frame", dataframe=object())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="connect with a master"):
        kelda.connect(shards=2)
    with pytest.raises(UsageError, match=r"start\(\) it first"):
        engine.wait()
    engine.register(LAST_3S)
    with pytest.raises(UsageError, match="without fixed_graphs=True"):
        engine.drop_graph()
    with pytest.raises(UsageError, match="these can:\n  Turtle or TriG"):
        engine.stream(S).push(5)
    lasting = kelda.connect(checkpoint=tmp_path / "state")
    with pytest.raises(UsageError, match="is in use"):
        kelda.connect(checkpoint=tmp_path / "state")
    lasting.stop()
    with pytest.raises(UsageError, match="t0 was 0 and is 5"):
        kelda.connect(checkpoint=tmp_path / "state", t0=5)
