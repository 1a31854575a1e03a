"""Everything that an application may push."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from kelda.errors import InputError, UsageError
from kelda.io.payload import events_of
from kelda.rdf.event import Event
from kelda.rdf.framing import prepare_mapping

EX = "http://ex/"
ANN, IN, LAB, G = (NamedNode(EX + name) for name in ("ann", "in", "lab", "g"))
QUAD = Quad(ANN, IN, LAB)
XSD = "http://www.w3.org/2001/XMLSchema#"
MAPPING = {
    "prefixes": {"ex": EX},
    "time": {"column": "at"},
    "triples": [
        ["ex:{who}", "ex:in", "ex:{where}"],
        ["ex:{who}", "ex:temp", {"column": "temp", "datatype": "xsd:double"}],
    ],
}
AT = datetime(1970, 1, 1, 0, 0, 5, tzinfo=timezone.utc)
ROWS = [
    {"at": AT, "who": "ann", "where": "lab", "temp": 36.6},
    {"at": AT, "who": "bob", "where": "lab", "temp": None},
]
ROW_EVENTS = [
    Event(
        5000, (QUAD, Quad(ANN, NamedNode(EX + "temp"), Literal("36.6", datatype=NamedNode(XSD + "double"))))
    ),
    Event(5000, (Quad(NamedNode(EX + "bob"), IN, LAB),)),
]


@pytest.mark.parametrize(
    "data",
    [
        "<http://ex/ann> <http://ex/in> <http://ex/lab> .",
        b"PREFIX : <http://ex/> :ann :in :lab .",
        Triple(ANN, IN, LAB),
        QUAD,
        [QUAD],
        (Triple(ANN, IN, LAB),),
        iter([QUAD]),
        (ANN, IN, LAB),
        ("http://ex/ann", "http://ex/in", "<http://ex/lab>"),
        ("<http://ex/ann>", IN, LAB, None),
        [("http://ex/ann", IN, LAB)],
        Event(None, (QUAD,)),
        [Event(None, (QUAD,))],
        {"@id": "http://ex/ann", "http://ex/in": {"@id": "http://ex/lab"}},
    ],
)
def test_one_event(data: Any) -> None:
    assert events_of(data, 7) == [Event(7, (QUAD,))]


def test_the_time_is_that_of_the_push_or_else_its_own() -> None:
    events = [Event(3, (QUAD,)), Event(None, (QUAD,))]
    assert [e.time for e in events_of(events)] == [3, None]
    assert [e.time for e in events_of(events, AT)] == [5000, 5000]
    assert [e.time for e in events_of(QUAD)] == [None]
    with pytest.raises(UsageError, match="milliseconds"):
        events_of(QUAD, 1.5)  # type: ignore[arg-type]


def test_the_time_predicate() -> None:
    said = Quad(ANN, NamedNode(EX + "at"), Literal(AT.isoformat(), datatype=NamedNode(XSD + "dateTime")))
    at = EX + "at"
    assert events_of([QUAD, said], time_predicate=at) == [Event(5000, (QUAD, said))]
    assert events_of([QUAD, said], 7, time_predicate=at)[0].time == 7
    assert events_of(f"<{EX}a> <{at}> 9 .", time_predicate=at)[0].time == 9
    assert events_of(Event(3, (QUAD,)), time_predicate=at)[0].time == 3
    with pytest.raises(InputError, match="no time: no triple of the event has the time predicate"):
        events_of(QUAD, time_predicate=at)


@pytest.mark.parametrize(
    ("value", "term"),
    [
        (5, Literal(5)),
        (2**70, Literal(str(2**70), datatype=NamedNode(XSD + "integer"))),
        (1.5, Literal(1.5)),
        (True, Literal(True)),
        (Decimal("1.50"), Literal("1.50", datatype=NamedNode(XSD + "decimal"))),
        (date(2024, 2, 29), Literal("2024-02-29", datatype=NamedNode(XSD + "date"))),
        (AT, Literal("1970-01-01T00:00:05Z", datatype=NamedNode(XSD + "dateTime"))),
        ("text", Literal("text")),
        ("http://ex/lab", Literal("http://ex/lab")),
        ("<http://ex/lab>", LAB),
        ("<b>", Literal("<b>")),
        ("<a:b> and more", Literal("<a:b> and more")),
        ("_:x1", BlankNode("x1")),
        ("_: no", Literal("_: no")),
        (Literal("chat", language="fr"), Literal("chat", language="fr")),
        (BlankNode("b"), BlankNode("b")),
        (Triple(ANN, IN, LAB), Triple(ANN, IN, LAB)),
        (np.int64(5), Literal(5)),
        (np.float32(1.5), Literal(1.5)),
        (np.bool_(True), Literal(True)),
    ],
)
def test_objects_of_tuples(value: object, term: Any) -> None:
    assert events_of((EX + "ann", IN, value), 1)[0].quads == (Quad(ANN, IN, term),)


def test_subjects_predicates_and_graphs_of_tuples() -> None:
    (event,) = events_of([("_:b", "a", LAB, "http://ex/g"), (BlankNode("b"), "<http://ex/in>", 1, G)])
    rdf_type = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
    b = BlankNode("b")
    assert event.quads == (Quad(b, rdf_type, LAB, G), Quad(b, IN, Literal(1), G))
    assert events_of((ANN, IN, LAB, None))[0].quads[0].graph_name == DefaultGraph()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (("ann", IN, LAB), "the subject 'ann' of a tuple is no absolute IRI"),
        ((5, IN, LAB), "the subject of a statement is an IRI or a blank node, not 5"),
        ((Literal("a"), IN, LAB), "the subject of a statement"),
        ((ANN, "_:b", LAB), "a predicate is an IRI, not _:b"),
        ((ANN, IN), r"a statement is \(s, p, o\) or \(s, p, o, g\)"),
        ((ANN, IN, LAB, G, G), r"a statement is \(s, p, o\)"),
        ((ANN, IN, object()), "the object of a statement is a term, a number"),
        ((ANN, IN, None), "the object of a statement is a term, a number"),
        ((ANN, IN, np.arange(2)), "the object of a statement is a term, a number"),
        ((ANN, IN, LAB, Literal("g")), "the graph of a statement"),
        (5, r"5 \(int\) cannot be pushed; these can:\n  Turtle or TriG"),
        (None, "None .* cannot be pushed"),
        (["text"], r"'text' \(str\) cannot be pushed"),
        ([QUAD, Event(1, (QUAD,))], "cannot be pushed"),
        ([{"a": 1}, QUAD], "cannot be pushed"),
        ("x" * 3, "not Turtle or TriG"),
        ({"a": 1}, "the document says nothing: does its @context define its keys"),
        ({"@id": "x:y", "x:z": object()}, "cannot be written as JSON-LD"),
        ({"@id": "x:y", "x:z": float("nan")}, "cannot be written as JSON-LD"),
        (pa.table({"a": [1]}), "a Table needs a mapping"),
        (pd.DataFrame({"a": [1]}), "a DataFrame needs a mapping"),
    ],
)
def test_what_is_refused(data: Any, says: str) -> None:
    with pytest.raises((UsageError, InputError), match=says):
        events_of(data, 1)


def test_json_ld() -> None:
    context = {"@vocab": EX, "in": {"@type": "@id"}, "at": {"@type": XSD + "dateTime"}}
    document = {"@id": EX + "ann", "in": EX + "lab"}
    for given in (context, {"@context": context}):
        assert events_of(document, 1, context=given) == [Event(1, (QUAD,))]
    assert events_of({"@context": context, **document}) == [Event(None, (QUAD,))]
    assert [e.quads for e in events_of([document, document], context=context)] == [(QUAD,), (QUAD,)]
    mapping = prepare_mapping("ndjsonld", {"@context": context})
    assert events_of(document, mapping=mapping) == [Event(None, (QUAD,))]
    (event,) = events_of({**document, "at": AT, "n": np.int64(3)}, context=context, time_predicate=EX + "at")
    assert event.time == 5000 and len(event.quads) == 3


@pytest.mark.parametrize("prepared", [False, True])
def test_dictionaries_and_tables_by_a_mapping(prepared: bool) -> None:
    mapping = prepare_mapping("csv", MAPPING) if prepared else MAPPING
    assert events_of(ROWS, mapping=mapping) == ROW_EVENTS
    assert events_of(ROWS[0], mapping=mapping) == ROW_EVENTS[:1]
    assert events_of(pa.Table.from_pylist(ROWS), mapping=mapping) == ROW_EVENTS
    assert events_of(pa.RecordBatch.from_pylist(ROWS), mapping=mapping) == ROW_EVENTS
    assert events_of(pd.DataFrame(ROWS), mapping=mapping) == ROW_EVENTS
    assert [e.time for e in events_of(pd.DataFrame(ROWS), 8, mapping=mapping)] == [8, 8]
    with pytest.raises(InputError, match="record 2 of what is pushed: nothing to say: no value in"):
        events_of([ROWS[0], {"at": AT}], mapping=mapping)


def test_values_of_rows() -> None:
    mapping = {"triples": [["http://ex/s", "http://ex/p", {"column": "v"}]]}
    values = [
        1,
        2**70,
        0.1,
        True,
        Decimal("1.50"),
        date(2024, 2, 29),
        np.int64(7),
        np.datetime64("2024-02-29T01:02:03"),
    ]
    said = [str(e.quads[0].object) for e in events_of([{"v": v} for v in values], mapping=mapping)]
    assert said == [
        f'"{v}"' for v in ("1", str(2**70), "0.1", "true", "1.50", "2024-02-29", "7", "2024-02-29T01:02:03")
    ]
    frame = pd.DataFrame({"v": [1.0, np.nan], "w": [pd.NaT, pd.Timestamp("2024-01-01")]})
    mapping["triples"].append(["http://ex/s", "http://ex/q", {"column": "w"}])
    assert [len(e.quads) for e in events_of(frame, mapping=mapping)] == [1, 1]


def test_blank_nodes_of_rows_belong_to_the_push() -> None:
    mapping = {"triples": [["_:row", "http://ex/p", {"column": "v"}]]}
    labels = {
        e.quads[0].subject.value  # type: ignore[union-attr]
        for name in ("push-1", "push-2")
        for e in events_of([{"v": 1}, {"v": 2}], mapping=mapping, name=name)
    }
    assert len(labels) == 4


def test_text_in_the_format_of_the_stream() -> None:
    line = "5000\t<http://ex/ann> <http://ex/in> <http://ex/lab> .\n"
    assert events_of(line * 2, format="tsnt") == [Event(5000, (QUAD,))] * 2
    assert events_of(line.encode(), 7, format="tsnt") == [Event(7, (QUAD,))]
    csv = "at,who,where,temp\n1970-01-01T00:00:05Z,ann,lab,36.6\n"
    assert events_of(csv, format="csv", mapping=MAPPING) == ROW_EVENTS[:1]
    assert events_of(QUAD, 1, format="tsnt") == [Event(1, (QUAD,))]
    with pytest.raises(InputError, match=r"record 1 of what is pushed: .*; it was: nonsense"):
        events_of("nonsense", format="tsnt")


def test_rdflib() -> None:
    rdflib = pytest.importorskip("rdflib")
    graph = rdflib.Graph()
    graph.parse(data="<http://ex/ann> <http://ex/in> <http://ex/lab> .", format="nt")
    assert events_of(graph, 1) == [Event(1, (QUAD,))]
    literals = ['"chat"@fr', '"5"^^<http://www.w3.org/2001/XMLSchema#int>', '"a\\nb"', "_:b"]
    graph.parse(data="".join(f"<http://ex/ann> <http://ex/p> {text} .\n" for text in literals), format="nt")
    found = {str(q.object) for q in events_of(graph)[0].quads}
    assert {'"chat"@fr', '"5"^^<http://www.w3.org/2001/XMLSchema#int>', '"a\\nb"'} < found and len(found) == 5
    dataset = rdflib.Dataset()
    ann, lab = rdflib.URIRef(EX + "ann"), rdflib.URIRef(EX + "lab")
    dataset.add((ann, rdflib.URIRef(EX + "in"), lab))
    dataset.graph(rdflib.URIRef(EX + "g")).add((ann, rdflib.URIRef(EX + "in"), lab))
    assert set(events_of(dataset)[0].quads) == {QUAD, Quad(ANN, IN, LAB, G)}
    assert events_of((ann, rdflib.URIRef(EX + "in"), lab)) == [Event(None, (QUAD,))]
    assert events_of([(ann, IN, rdflib.Literal(5))])[0].quads[0].object == Literal(5)


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    assert events_of(polars.DataFrame(ROWS), mapping=MAPPING) == ROW_EVENTS
    with pytest.raises(UsageError, match="a DataFrame needs a mapping"):
        events_of(polars.DataFrame(ROWS))
