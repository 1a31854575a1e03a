"""What a person reads when a query is wrong: the whole message, for the usual mistakes."""

from __future__ import annotations

import pytest

from kelda.errors import QueryError
from kelda.lang import parse, prepare

MESSAGES = [
    # -------------------------------------------------------------- syntax
    """
SELEC ?x WHERE { ?x ?p ?o }
---
line 1, column 1: unexpected 'SELEC'; did you mean SELECT?
  SELEC ?x WHERE { ?x ?p ?o }
  ^
""",
    """
SELECT ?x WHERE { ?x ?p ?o
---
line 1, column 27: the query ends too early
  SELECT ?x WHERE { ?x ?p ?o
                            ^
expected: ',', '.', ';', '}', a pattern (OPTIONAL, FILTER, …)
""",
    """
SELECT ?x { ?x ?p ?o } }
---
line 1, column 24: unexpected '}'
  SELECT ?x { ?x ?p ?o } }
                         ^
expected: ORDER BY, LIMIT, …, the end of the query
""",
    """
SELECT * { ?x ?p ?o . FLITER(?o > 3) }
---
line 1, column 23: unexpected 'FLITER'; did you mean FILTER?
  SELECT * { ?x ?p ?o . FLITER(?o > 3) }
                        ^
""",
    """
SELECT ?x { ?x ?p ?o ?z }
---
line 1, column 22: unexpected '?z'
  SELECT ?x { ?x ?p ?o ?z }
                       ^
expected: ',', '.', ';', '}', a pattern (OPTIONAL, FILTER, …)
""",
    """
SELECT ?x { ?x ?p "abc }
---
line 1, column 19: this string does not end
  SELECT ?x { ?x ?p "abc }
                    ^
""",
    """
SELECT ?x { FILTER(STRLENGTH(?x) > 3) }
---
line 1, column 20: unexpected 'STRLENGTH'; did you mean STRLEN?
  SELECT ?x { FILTER(STRLENGTH(?x) > 3) }
                     ^
""",
    """
SELECT ?x { ?x ?p ?o } LIMIT ten
---
line 1, column 30: unexpected 'ten'
  SELECT ?x { ?x ?p ?o } LIMIT ten
                               ^
expected: a whole number
""",
    """
SELECT * { ?x ?p ?y FILTER(?x<?a&&?b>?y) }
---
line 1, column 30: this reads as an IRI; put a space after '<' to compare
  SELECT * { ?x ?p ?y FILTER(?x<?a&&?b>?y) }
                               ^
""",
    # -------------------------------------------------------------- terms
    """
SELECT ?x { ?x foaf:name ?o }
---
line 1, column 16: prefix 'foaf:' is not declared; add PREFIX foaf: <http://xmlns.com/foaf/0.1/>
  SELECT ?x { ?x foaf:name ?o }
                 ^
""",
    """
SELECT ?x { ?x po ?o }
---
line 1, column 16: 'po' is not a term; write <po> or a prefixed name such as ex:po
  SELECT ?x { ?x po ?o }
                 ^
""",
    # -------------------------------------------------------------- scope and grouping
    """
SELECT ?x ?y
WHERE { ?x ?p ?y }
GROUP BY ?x
---
line 1, column 11: ?y is neither grouped nor aggregated; add it to GROUP BY or write SAMPLE(?y)
  SELECT ?x ?y
            ^
""",
    """
SELECT (COUNT(?x) AS ?n) { ?x ?p ?y } HAVING (?n > 3)
---
line 1, column 47: ?n gets its value after HAVING; repeat its expression here
  SELECT (COUNT(?x) AS ?n) { ?x ?p ?y } HAVING (?n > 3)
                                                ^
""",
    """
SELECT * { ?x ?p ?y
  BIND(1 AS ?y) }
---
line 2, column 13: ?y has a value already in this group; choose another name after AS
    BIND(1 AS ?y) }
              ^
""",
    """
SELECT * { _:a ?p ?o OPTIONAL { _:a ?q ?r } }
---
line 1, column 33: _:a is used in another group of triples already; use a variable to join the two
  SELECT * { _:a ?p ?o OPTIONAL { _:a ?q ?r } }
                                  ^
""",
    """
SELECT * { ?x ?p ?y FILTER(REGEX(?y)) }
---
line 1, column 28: REGEX takes 2 or 3 arguments, not 1
  SELECT * { ?x ?p ?y FILTER(REGEX(?y)) }
                             ^
""",
    """
SELECT * { SERVICE <http://e/> { ?x ?p ?y } }
---
line 1, column 12: SERVICE asks another server; load its data as a stored graph, and ask that with GRAPH
  SELECT * { SERVICE <http://e/> { ?x ?p ?y } }
             ^
""",
    # -------------------------------------------------------------- windows and dialects
    """
SELECT * { STREAM <http://e/s> [RANGE 10 parsecs] { ?x ?p ?o } }
---
line 1, column 39: unknown time unit 'parsecs'; use ms, s, m, h or d
  SELECT * { STREAM <http://e/s> [RANGE 10 parsecs] { ?x ?p ?o } }
                                        ^
""",
    """
SELECT * { STREAM <http://e/s> [10s] { ?x ?p ?o } }
---
line 1, column 33: RANGE is missing; write for example [RANGE 10s SLIDE 1s]
  SELECT * { STREAM <http://e/s> [10s] { ?x ?p ?o } }
                                  ^
""",
    """
SELECT * { STREAM <http://e/s> { ?x ?p ?o } }
---
line 1, column 19: this stream has no window; write one, for example STREAM <http://e/s> [RANGE 10s] { … }
  SELECT * { STREAM <http://e/s> { ?x ?p ?o } }
                    ^
""",
    """
SELECT * { STREAM <http://e/s> [RANGE 10s { ?x ?p ?o } }
---
line 1, column 32: this window does not end: ']' is missing
  SELECT * { STREAM <http://e/s> [RANGE 10s { ?x ?p ?o } }
                                 ^
""",
    """
SELECT * FROM STREAM <http://e/s> [RANGE 10] { ?x ?p ?o }
---
line 1, column 42: 10 of what? Add a unit: 10ms, 10s, 10m, 10h or 10d
  SELECT * FROM STREAM <http://e/s> [RANGE 10] { ?x ?p ?o }
                                           ^
""",
    """
SELECT * FROM STREAM <http://e/s> [NOW] { ?x ?p ?o }
---
line 1, column 36: NOW alone is a window of CQELS-QL; say how far it goes back, as in [NOW - 10s]
  SELECT * FROM STREAM <http://e/s> [NOW] { ?x ?p ?o }
                                     ^
""",
    """
PREFIX : <http://e/>
SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S
  STEP P1M] { WINDOW :w { ?x ?p ?o } }
---
line 3, column 8: P1M has years or months, whose length varies; say it in days, for example P30D
    STEP P1M] { WINDOW :w { ?x ?p ?o } }
         ^
""",
    """
PREFIX : <http://e/>
SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S] { WINDOW :v { ?x ?p ?o } }
---
line 2, column 60: window :v is not declared; add FROM NAMED WINDOW :v ON <stream> [RANGE PT10S]
  SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT10S] { WINDOW :v { ?x ?p ?o } }
                                                             ^
""",
    """
SELECT *
FROM STREAM <http://e/s> [RANGE 10s STEP 1s]
{ STREAM <http://e/s> [NOW] { ?x ?p ?o } }
---
line 3, column 3: 'STREAM … { }' is CQELS-QL, but 'FROM STREAM' in line 2 makes this query C-SPARQL
  { STREAM <http://e/s> [NOW] { ?x ?p ?o } }
    ^
""",
]


@pytest.mark.parametrize("sample", MESSAGES, ids=lambda sample: sample.strip().split("\n")[0])
def test_message(sample: str) -> None:
    text, _, message = sample.strip("\n").partition("\n---\n")
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert str(caught.value) == message


def test_an_announced_dialect_binds() -> None:
    text = "SELECT * {\n  STREAM <http://e/s> [NOW] { ?x ?p ?o } }"
    with pytest.raises(QueryError) as caught:
        parse(text, dialect="rspql")
    assert str(caught.value).splitlines()[0] == (
        "line 2, column 3: 'STREAM … { }' is CQELS-QL, but the query was announced as RSP-QL;"
        " drop the announcement or the clause"
    )


def test_an_unknown_dialect() -> None:
    with pytest.raises(
        QueryError, match="there is no dialect 'sql'; there are sparql, cqels, csparql, rspql"
    ):
        parse("ASK {}", dialect="sql")


def test_an_empty_query() -> None:
    with pytest.raises(QueryError) as caught:
        parse("  # nothing\n")
    assert caught.value.message == "the query is empty"
    assert caught.value.expected == (
        "ASK",
        "BASE",
        "CONSTRUCT",
        "DESCRIBE",
        "PREFIX",
        "REGISTER",
        "SELECT",
    )


REFUSED = {
    "an aggregate in a filter": "SELECT * { ?x ?p ?y FILTER(COUNT(?x) > 1) }",
    "an aggregate in an aggregate": "SELECT (SUM(COUNT(?x)) AS ?n) { ?x ?p ?y }",
    "a sum of everything": "SELECT (SUM(*) AS ?n) { ?x ?p ?y }",
    "a separator for COUNT": "SELECT (COUNT(?x ; SEPARATOR=',') AS ?n) { ?x ?p ?y }",
    "two values for one alias": "SELECT (1 AS ?x) (2 AS ?x) { }",
    "an alias that the pattern binds": "SELECT (1 AS ?x) { ?x ?p ?y }",
    "SELECT * with GROUP BY": "SELECT * { ?x ?p ?y } GROUP BY ?x",
    "a path in a template": "CONSTRUCT { ?x <urn:p>* ?y } { ?x ?p ?y }",
    "a path in CONSTRUCT WHERE": "CONSTRUCT WHERE { ?x <urn:p>* ?y }",
    "a row that is too short": "SELECT * { VALUES (?x ?y) { (1) } }",
    "a variable in VALUES": "SELECT * { VALUES ?x { ?y } }",
    "a variable twice in VALUES": "SELECT * { VALUES (?x ?x) { (1 2) } }",
    "a chain of comparisons": "SELECT * { FILTER(1 < 2 < 3) }",
    "IN after a comparison": "SELECT * { FILTER(1 < 2 IN (3)) }",
    "BOUND of a constant": "SELECT * { FILTER(BOUND(1)) }",
    "an unknown escape": r'SELECT * { ?x ?p "a\qb" }',
    "a surrogate": r'SELECT * { ?x ?p "\ud800" }',
    "a character that names cannot have": "SELECT ?a→b { ?x ?p ?y }",
    "a window on a window's name twice": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT1S]"
        " FROM NAMED WINDOW <urn:w> ON <urn:t> [RANGE PT1S] { }"
    ),
    "WINDOW ?w without windows": "SELECT * { WINDOW ?w { ?x ?p ?y } }",
    "a default-graph window by name": (
        "SELECT * FROM WINDOW <urn:w> ON <urn:s> [RANGE PT1S] { WINDOW <urn:w> { ?x ?p ?y } }"
    ),
    "two windows on one STREAM": "SELECT * { STREAM [NOW] <urn:s> [NOW] { ?x ?p ?y } }",
    "FROM with a variable": "SELECT * FROM ?g { ?x ?p ?y }",
    "FROM STREAM with a variable": "SELECT * FROM STREAM ?s [RANGE 1s] { ?x ?p ?y }",
    "a bare aggregate outside CQELS-QL": "SELECT count(?x) AS ?n FROM STREAM <urn:s> [RANGE 1s] { ?x ?p ?y }",
    "a window parameter that nobody gives": "SELECT * { STREAM <urn:s> [RANGE $w] { ?x ?p ?y } }",
    "a past window that ends before it starts": (
        "SELECT * FROM NAMED WINDOW <urn:w> ON <urn:s> [FROM NOW-PT5M TO NOW-PT35M] { }"
    ),
    "two windows for one GRAPH": (
        "SELECT * FROM NAMED STREAM <urn:s> [RANGE 1s] FROM NAMED STREAM <urn:s> [RANGE 2s] { }"
    ),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_a_place(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert caught.value.line is not None and caught.value.column is not None


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    depth = 5000
    with pytest.raises(QueryError, match="nested too deeply"):
        parse("SELECT * " + "{" * depth + "}" * depth)


@pytest.mark.parametrize("where", ["SELECT $x {}", "SELECT (1 AS $x) {}", "SELECT * { BIND(1 AS $x) }"])
def test_a_parameter_cannot_be_bound(where: str) -> None:
    with pytest.raises(QueryError, match=r"\$x is a parameter; write \?x"):
        prepare(where)


def test_of_a_long_line_only_what_is_around() -> None:
    text = (
        "SELECT * { " + "?x <http://e/p> ?y . " * 1000 + "FILTRE(?x) " + "?x <http://e/p> ?y . " * 1000 + "}"
    )
    with pytest.raises(QueryError) as caught:
        parse(text)
    _, line, caret = str(caught.value).splitlines()[:3]
    assert len(line) < 200
    assert line[caret.index("^") :].startswith("FILTRE")
