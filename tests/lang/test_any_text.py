"""Whatever the text: an algebra or a `QueryError` with a place, never another exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kelda.errors import QueryError
from kelda.lang import parse, prepare

SAMPLES = [
    "PREFIX : <http://e/> SELECT ?x (COUNT(DISTINCT ?y) AS ?n) { ?x :p/:q* ?y ; a [ :r (1 2.5) ] "
    "OPTIONAL { ?y :s 'v'@en FILTER(?y > 3 && ?x IN (1, -2)) } } "
    "GROUP BY ?x HAVING (MAX(?y) > 1) ORDER BY ?n LIMIT 3",
    "SELECT * { STREAM <urn:s> [RANGE 3s SLIDE 1s] { ?x ?p ?o } "
    "STREAM ?s [NOW] { ?x ?q $v } VALUES ?x { 1 UNDEF } }",
    "REGISTER QUERY q COMPUTED EVERY 5s AS SELECT ?x FROM STREAM <urn:s> [RANGE 10s STEP 1s] "
    "FROM g [RANGE 1s] { GRAPH g { ?x po ?y } MINUS { ?x <urn:p> ?y } }",
    "PREFIX : <http://e/> REGISTER RSTREAM :o AS CONSTRUCT { ?x :p _:b } FROM NAMED WINDOW :w ON :s "
    "[RANGE PT10S STEP PT5S @:t] FROM NAMED WINDOW :v ON :s [FROM NOW-PT5M TO NOW] "
    "{ WINDOW ?w { ?x :p ?y } }",
]
PIECES = [
    *sorted({word for sample in SAMPLES for word in sample.split()}),
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    '"',
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_samples_are_right(sample: str) -> None:
    parse(sample)
    prepare(sample)


def outcome(text: str) -> None:
    try:
        parse(text)
    except QueryError as problem:
        assert problem.line is not None and problem.column is not None, str(problem)
        assert "_" not in "".join(problem.expected), "a grammar's name, not a reader's"


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_query(data: st.DataObject) -> None:
    words = data.draw(st.sampled_from(SAMPLES)).split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from(PIECES), max_size=2)
        )
        words = words or [""]
    outcome(" ".join(words))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(SAMPLES), st.integers(0, 300), st.text(max_size=4))
def test_odd_characters(sample: str, at: int, odd: str) -> None:
    outcome(sample[:at] + odd + sample[at:])


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=30))
def test_any_text(text: str) -> None:
    outcome(text)
