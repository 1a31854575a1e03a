"""What goes into a parcel comes out of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from kelda.engine.answer import Answer
from kelda.rdf.event import Event
from kelda.spark.packing import pack_answers, pack_events, unpack_answers, unpack_events

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
iris = st.integers(0, 30).map(lambda i: NamedNode(f"http://ex/é/{i}"))
blanks = st.integers(0, 5).map(lambda i: BlankNode(f"b{i}"))
literals = st.one_of(
    texts.map(Literal),
    st.integers().map(Literal),
    st.floats(allow_nan=False).map(Literal),
    st.booleans().map(Literal),
    st.builds(lambda text: Literal(text, language="de-at"), texts),
    st.builds(lambda text, kind: Literal(text, datatype=kind), texts, iris),
)
triples = st.recursive(
    st.builds(Triple, iris | blanks, iris, iris | blanks | literals),
    lambda inner: st.builds(Triple, iris | blanks, iris, inner),
    max_leaves=3,
)
terms = st.one_of(iris, blanks, literals, triples)
quads = st.builds(Quad, iris | blanks, iris, terms, iris | blanks | st.just(DefaultGraph()))
times = st.none() | st.integers(-(2**62), 2**62)


@given(st.lists(st.builds(Event, times, st.lists(quads, max_size=4).map(tuple)), max_size=6))
def test_events(events: list[Event]) -> None:
    assert list(unpack_events(pack_events(events))) == events


answers = st.builds(
    lambda query, time, sign, one: Answer(query, time, sign, **one),
    texts,
    st.integers(0, 2**50),
    st.sampled_from("+-"),
    st.one_of(
        st.dictionaries(st.sampled_from("xyz"), terms).map(lambda b: {"bindings": b}),
        st.lists(triples, max_size=3).map(lambda t: {"triples": tuple(t)}),
        st.booleans().map(lambda b: {"boolean": b}),
    ),
)


@given(st.lists(answers, max_size=6))
def test_answers(some: list[Answer]) -> None:
    assert unpack_answers(pack_answers(some)) == some
