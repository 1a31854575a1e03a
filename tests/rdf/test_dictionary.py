"""The dictionary: gives back what was added, notices collisions, and lets go."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Triple

from kelda.errors import IdCollisionError, UsageError
from kelda.rdf import ids
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ntriples import read

LONG = Literal("a string that is not inlined")
TERMS = [
    NamedNode("http://example.org/a"),
    BlankNode("b"),
    LONG,
    Literal('two\nlines, "quoted" \\ and snø', language="nb"),
    Literal("P1D", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#duration")),
    Triple(NamedNode("a:b"), NamedNode("a:b"), LONG),
    Literal("short"),
    Literal(12),
    DefaultGraph(),
]


def iris(count: int) -> list[NamedNode]:
    return [NamedNode(f"http://example.org/{i}") for i in range(count)]


def spans(texts: list[bytes]) -> tuple[bytes, np.ndarray, np.ndarray]:
    ends = np.cumsum([len(t) for t in texts])
    return b"".join(texts), ends - [len(t) for t in texts], ends


def test_terms_come_back() -> None:
    dictionary = Dictionary()
    encoded = [dictionary.encode(term) for term in TERMS]
    assert encoded == [ids.encode(term) for term in TERMS]
    assert [dictionary.term(id) for id in encoded] == TERMS
    assert dictionary.terms(np.array(encoded * 2)) == TERMS * 2
    assert len(dictionary) == 6  # neither the inline ones nor the default graph
    assert encoded[0] in dictionary and encoded[-1] not in dictionary
    assert dictionary.terms([]) == []


def test_inline_ids_need_no_dictionary() -> None:
    assert Dictionary().term(ids.encode(Literal(True))) == Literal(True)


def test_unknown_id_is_explained() -> None:
    with pytest.raises(UsageError, match="12345 is not in this dictionary"):
        Dictionary().term(12345)


def test_growth_keeps_everything() -> None:
    dictionary = Dictionary()
    terms = iris(5000)
    encoded = [dictionary.encode(term) for term in terms]
    assert len(dictionary) == 5000
    assert dictionary.terms(encoded) == terms


def test_add_is_idempotent() -> None:
    dictionary = Dictionary()
    dictionary.add(ids.hash_text(b"<a:b>"), "<a:b>")
    dictionary.add(ids.hash_text(b"<a:b>"), b"<a:b>")
    assert len(dictionary) == 1
    assert dictionary.term(ids.encode(NamedNode("a:b"))) == NamedNode("a:b")


def test_only_hashed_ids_have_texts() -> None:
    with pytest.raises(UsageError, match="hashed"):
        Dictionary().add(ids.encode(Literal(1)), "x")
    with pytest.raises(UsageError, match="hashed"):
        Dictionary().add_batch([0], b"<a:b>", [0], [5])
    with pytest.raises(UsageError, match="within"):
        Dictionary().add_batch([1], b"<a:b>", [0], [6])


def test_batches_with_known_new_and_repeated_texts() -> None:
    dictionary = Dictionary()
    terms = iris(3000)
    for term in terms[::2]:
        dictionary.encode(term)
    texts = [ids.text(term).encode() for term in terms + terms[:100]]
    given_ids = [ids.hash_text(t) for t in texts]
    dictionary.add_batch(given_ids, *spans(texts))
    assert len(dictionary) == 3000
    assert dictionary.terms(given_ids) == terms + terms[:100]


# ---------------------------------------------------------------------------- collisions


def clashing() -> Dictionary:
    """A dictionary in which the id of <a:b> belongs to <a:other>."""
    dictionary = Dictionary()
    dictionary.add(ids.hash_text(b"<a:b>"), "<a:other>")
    return dictionary


def test_collision_by_term() -> None:
    with pytest.raises(IdCollisionError, match=r"<a:other> and <a:b>.*another seed"):
        clashing().encode(NamedNode("a:b"))


def test_collision_by_text() -> None:
    with pytest.raises(IdCollisionError, match=r"<a:other> and <a:b>"):
        clashing().add(ids.hash_text(b"<a:b>"), "<a:b>")


def test_collision_within_a_batch() -> None:
    texts = [b"<a:c>", b"<a:b>", b"<a:d>"]
    with pytest.raises(IdCollisionError, match=r"<a:c> and <a:b>"):
        Dictionary().add_batch([7, 7, 8], *spans(texts))


def test_collision_in_parsed_text() -> None:
    with pytest.raises(IdCollisionError, match=r"<a:other> and <a:b>"):
        read(b"<a:s> <a:b> <a:o> .\n", clashing())


# ---------------------------------------------------------------------------- parts


def test_new_entries_travel() -> None:
    here, there = Dictionary(), Dictionary()
    terms = iris(100)
    for term in terms[:60]:
        here.encode(term)
    mark = len(here)
    for term in terms[40:]:
        here.encode(term)
    news = here.entries(since=mark)
    assert news.ids.tolist() == [ids.encode(term) for term in terms[60:]]
    there.add_entries(news)
    there.add_entries(here.entries(since=len(here)))
    assert len(there) == 40 and there.terms(news.ids) == terms[60:]


def test_retain_lets_go_of_the_rest() -> None:
    dictionary = Dictionary()
    terms = iris(20_000)
    encoded = np.array([dictionary.encode(term) for term in terms])
    before = dictionary.nbytes
    needed = np.concatenate([encoded[::100], encoded[:1], [ids.encode(Literal(1)), 0, 99]])
    assert dictionary.retain(needed) == 19_800
    assert len(dictionary) == 200 and dictionary.generation == 1
    assert dictionary.nbytes < before / 50
    assert dictionary.terms(encoded[::100]) == terms[::100]
    with pytest.raises(UsageError, match="let go"):
        dictionary.term(int(encoded[1]))
    assert dictionary.encode(terms[1]) == encoded[1]
    assert dictionary.retain([]) == 201 and len(dictionary) == 0


def test_pickled_dictionary_goes_on() -> None:
    dictionary = Dictionary(seed=5)
    id = dictionary.encode(LONG)
    copy = pickle.loads(pickle.dumps(dictionary))
    assert copy.term(id) == LONG and copy.seed == 5
    copy.encode(NamedNode("a:b"))
    assert (len(copy), len(dictionary)) == (2, 1)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 150)))))
def test_as_a_plain_dict_would(steps: list[tuple[bool, set[int]]]) -> None:
    """Any sequence of adds and retains leaves what a dict would hold."""
    dictionary, model = Dictionary(), {}
    for adds, numbers in steps:
        terms = [NamedNode(f"a:{n}") for n in numbers]
        if adds:
            texts = [ids.text(term).encode() for term in terms]
            dictionary.add_batch([ids.hash_text(t) for t in texts], *spans(texts))
            model |= {ids.encode(term): term for term in terms}
        else:
            wanted = [ids.encode(term) for term in terms]
            dictionary.retain(wanted)
            model = {id: model[id] for id in wanted if id in model}
        assert len(dictionary) == len(model)
        assert dictionary.terms(list(model)) == list(model.values())


def test_spans_of_what_has_no_text_say_nothing() -> None:
    """An inline id or the default graph may have any numbers there."""
    terms = [NamedNode(f"http://ex/with/a/rather/long/name/{i}") for i in range(300)]
    texts = [str(term).encode() for term in terms]
    ends = np.cumsum([len(text) for text in texts])
    columns = np.zeros((4, len(terms)), np.int64)
    columns[0] = [ids.encode(term) for term in terms]
    spans = np.full((8, len(terms)), 7, np.int32)
    spans[7] = -(1 << 30)
    spans[0], spans[1] = ends - [len(text) for text in texts], ends
    dictionary = Dictionary()
    rows = np.arange(len(terms))
    dictionary.add_rows(columns, spans, rows, np.frombuffer(b"".join(texts) + bytes(64), np.uint8).copy())
    assert len(dictionary) == len(terms) and dictionary.terms(columns[0]) == terms
    assert dictionary.tables.counts[1] <= dictionary.tables.arena.size
