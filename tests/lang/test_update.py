"""Updates: what the operations say, and what a person reads when one is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from kelda.errors import QueryError
from kelda.lang import parse, parse_update
from kelda.lang.algebra import Dataset, InGraph, Join, QuadPattern, TriplePattern, Triples, Var
from kelda.lang.update import (
    Clear,
    Create,
    DeleteData,
    Graphs,
    How,
    InsertData,
    Load,
    Modify,
    Operation,
    Transfer,
)

E = "http://e/"
PREFIX = f"PREFIX : <{E}> "


def iri(name: str) -> NamedNode:
    return NamedNode(E + name)


def operations(text: str) -> tuple[Operation, ...]:
    return parse_update(PREFIX + text).operations


def modify(text: str) -> Modify:
    (only,) = operations(text)
    assert isinstance(only, Modify)
    return only


# ---------------------------------------------------------------------------- meaning


def test_nothing_at_all_is_an_update() -> None:
    assert parse_update("").operations == ()
    assert parse_update("PREFIX : <http://e/>").operations == ()


def test_data() -> None:
    insert, delete = operations("INSERT DATA { :a :p 1 GRAPH :g { :a :p :b } } ; DELETE DATA { :a :p 2 } ;")
    assert insert == InsertData(
        (
            TriplePattern(iri("a"), iri("p"), Literal(1)),
            QuadPattern(iri("a"), iri("p"), iri("b"), iri("g")),
        )
    )
    assert delete == DeleteData((TriplePattern(iri("a"), iri("p"), Literal(2)),))


def test_a_label_is_one_blank_node_in_one_operation() -> None:
    (insert,) = operations("INSERT DATA { _:b :p 1 . _:b :p 2 GRAPH :g { _:b :p 3 } }")
    assert isinstance(insert, InsertData)
    assert len({triple.s for triple in insert.quads}) == 1


def test_a_label_is_another_blank_node_in_another_operation() -> None:
    found = operations("INSERT { _:b :p ?x } WHERE { ?x :q _:b } ; INSERT { _:b :p ?x } WHERE { ?x :q _:b }")
    first, second = found
    assert isinstance(first, Modify) and isinstance(second, Modify)
    assert first.insert[0].s != second.insert[0].s


def test_whole_graphs() -> None:
    assert operations(
        "LOAD :f ; LOAD SILENT :f INTO GRAPH :g ; CLEAR GRAPH :g ; DROP SILENT DEFAULT ; CLEAR NAMED ; "
        "DROP ALL ; CREATE GRAPH :g ; CREATE SILENT GRAPH :g ; ADD :g TO DEFAULT ; "
        "MOVE SILENT DEFAULT TO GRAPH :g ; COPY GRAPH :g TO :h"
    ) == (
        Load(iri("f")),
        Load(iri("f"), iri("g"), silent=True),
        Clear(iri("g")),
        Clear(Graphs.DEFAULT, silent=True),
        Clear(Graphs.NAMED),
        Clear(Graphs.ALL),
        Create(iri("g")),
        Create(iri("g"), silent=True),
        Transfer(How.ADD, iri("g"), None),
        Transfer(How.MOVE, None, iri("g"), silent=True),
        Transfer(How.COPY, iri("g"), iri("h")),
    )


def test_with_is_the_graph_of_what_names_none() -> None:
    found = modify("WITH :g DELETE { ?s :p ?o } INSERT { GRAPH ?h { ?s :p 1 } ?s :q 2 } WHERE { ?s :p ?o }")
    assert found.delete == (QuadPattern(Var("s"), iri("p"), Var("o"), iri("g")),)
    assert found.insert == (
        QuadPattern(Var("s"), iri("p"), Literal(1), Var("h")),
        QuadPattern(Var("s"), iri("q"), Literal(2), iri("g")),
    )
    assert found.where.dataset == Dataset(default=(iri("g"),))


def test_using_is_the_dataset_of_the_pattern_alone() -> None:
    found = modify("WITH :g INSERT { ?s :p 1 } USING :a USING NAMED :b WHERE { ?s :p ?o }")
    assert found.insert == (QuadPattern(Var("s"), iri("p"), Literal(1), iri("g")),)
    assert found.where.dataset == Dataset(default=(iri("a"),), named=(iri("b"),))


def test_delete_where_is_pattern_and_template() -> None:
    found = modify("DELETE WHERE { ?s :p ?o . ?s :q 1 GRAPH ?g { ?s :r ?x } }")
    plain = (TriplePattern(Var("s"), iri("p"), Var("o")), TriplePattern(Var("s"), iri("q"), Literal(1)))
    assert found.delete == (*plain, QuadPattern(Var("s"), iri("r"), Var("x"), Var("g")))
    inner = Triples((TriplePattern(Var("s"), iri("r"), Var("x")),))
    assert found.where.pattern == Join(Triples(plain), InGraph(Var("g"), inner))


def test_prefixes_and_base_go_on() -> None:
    text = (
        "BASE <http://a/> PREFIX : <b#> CLEAR GRAPH <x> ; PREFIX : <c#> CLEAR GRAPH :y ; "
        "BASE <http://b/> CLEAR GRAPH <z>"
    )
    graphs = [op.graphs for op in parse_update(text).operations if isinstance(op, Clear)]
    assert graphs == [NamedNode("http://a/x"), NamedNode("http://a/c#y"), NamedNode("http://b/z")]


def test_parameters() -> None:
    text = "INSERT DATA { GRAPH $g { :a :p $v } } ; DELETE { ?s :p $v } WHERE { ?s :p ?o FILTER(?o > $v) }"
    given = {"g": "http://e/g", "v": 5}
    written = text.replace("$g", ":g").replace("$v", "5")
    assert parse_update(PREFIX + text, params=given) == parse_update(PREFIX + written)
    with pytest.raises(QueryError, match=r"no such parameter: \$w \(the query has \$g, \$v\)"):
        parse_update(PREFIX + text, params={**given, "w": 1})


def test_a_request_that_nests_deeply() -> None:
    many = " ".join(f"GRAPH <http://e/{i}> {{ ?s ?p {i} }}" for i in range(500))
    found = parse_update(f"DELETE WHERE {{ {many} }}")
    assert found.depth >= 500
    with pytest.raises(QueryError, match="nested too deeply"):
        parse_update("INSERT { <a:a> <a:a> 1 } WHERE " + "{" * 6000 + "}" * 6000)


# ---------------------------------------------------------------------------- mistakes

MESSAGES = [
    """
INSRT DATA { <a> <b> 1 }
---
line 1, column 1: unexpected 'INSRT'; did you mean INSERT?
  INSRT DATA { <a> <b> 1 }
  ^
""",
    """
INSERT { ?s <p> 1 } { ?s <q> 2 }
---
line 1, column 21: unexpected '{'
  INSERT { ?s <p> 1 } { ?s <q> 2 }
                      ^
expected: USING, WHERE
""",
    """
INSERT DATA { <a> <b> 1
---
line 1, column 24: the update ends too early
  INSERT DATA { <a> <b> 1
                         ^
expected: ',', '.', ';', '}', GRAPH
""",
    """
CLEAR <g>
---
line 1, column 7: unexpected '<'
  CLEAR <g>
        ^
expected: ALL, DEFAULT, GRAPH, NAMED, SILENT
""",
    """
CLEAR ALL
CLEAR ALL
---
line 2, column 1: unexpected 'CLEAR'
  CLEAR ALL
  ^
expected: ';', the end of the update
""",
    """
SELECT * { ?s ?p ?o }
---
line 1, column 1: SELECT is a query, not an update: give it to query()
  SELECT * { ?s ?p ?o }
  ^
""",
    """
INSERT DATA { ?s <p> 1 }
---
line 1, column 15: ?s is a variable, and INSERT DATA has none; write INSERT { … } WHERE { … }
  INSERT DATA { ?s <p> 1 }
                ^
""",
    """
DELETE { ?s <p> [ <q> 1 ] } WHERE { ?s <p> 1 }
---
line 1, column 19: [ … ] is made of blank nodes of this text, so no graph has it; \
find what goes by a variable: DELETE { … } WHERE { … }
  DELETE { ?s <p> [ <q> 1 ] } WHERE { ?s <p> 1 }
                    ^
""",
    """
INSERT DATA { _:b <p> 1 } ;
INSERT DATA { _:b <p> 2 }
---
line 2, column 15: _:b is in an INSERT DATA before this one already, and would be another blank \
node; make one operation of the two, or choose another label
  INSERT DATA { _:b <p> 2 }
                ^
""",
    """
INSERT { ?s <p> 1 } WHERE { STREAM <s> [RANGE 5s] { ?s <p> 2 } }
---
line 1, column 29: 'STREAM … { }' is CQELS-QL: an update is SPARQL 1.1 and reads \
stored graphs, no windows; to keep what a stream brings, absorb it, or let a CONSTRUCT query feed a graph
  INSERT { ?s <p> 1 } WHERE { STREAM <s> [RANGE 5s] { ?s <p> 2 } }
                              ^
""",
]


@pytest.mark.parametrize("case", MESSAGES, ids=lambda case: case.strip().splitlines()[0])
def test_the_message(case: str) -> None:
    text, message = case.strip("\n").split("\n---\n")
    with pytest.raises(QueryError) as caught:
        parse_update(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "INSERT DATA { :a :p ?x }",
        "DELETE DATA { GRAPH ?g { :a :p 1 } }",
        "DELETE DATA { _:a :p 1 }",
        "DELETE WHERE { ?x :p [] }",
        "DELETE { ?x :p (1 2) } WHERE { ?x :p 1 }",
        "INSERT DATA { GRAPH :g { GRAPH :h { :a :p 1 } } }",
        "INSERT { :a :p/:q ?x } WHERE { :a :p ?x }",
        "DELETE { :a :p 1 }",
        "WITH :g INSERT DATA { :a :p 1 }",
        "INSERT { :a :p ?x } WHERE { WINDOW :w { :a :p ?x } }",
        "INSERT { :a :p ?x } WHERE { ?x :p ?y FILTER(timestamp(?x) > 1) }",
        "INSERT { :a :p ?x } WHERE { SERVICE :s { ?x :p ?y } }",
        "INSERT { :a po ?x } WHERE { ?x :p ?y }",
        "LOAD ?x",
        "COPY NAMED TO :g",
        "CREATE DEFAULT",
        "; CLEAR ALL",
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_update(PREFIX + text)
    assert caught.value.line is not None and caught.value.column is not None


def test_a_query_that_is_an_update() -> None:
    with pytest.raises(QueryError, match=r"LOAD is an update, not a query: give it to update\(\)"):
        parse("load <a:b>")


SAMPLE = (
    "PREFIX : <http://e/> WITH :g DELETE { ?s :p ?o } INSERT { ?s :q [ :r (1 'v'@en) ] GRAPH ?h { ?s a ?o } "
    "} USING :a USING NAMED :b WHERE { ?s :p ?o FILTER(?o > 3) } ; COPY SILENT DEFAULT TO GRAPH :x ; "
    "LOAD <f> INTO GRAPH :x ; DROP ALL ; CREATE GRAPH :y ; INSERT DATA { _:b :p 1 } ; "
    "DELETE WHERE { ?a ?b ?c }"
)
WORDS = SAMPLE.split()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_whatever_the_text_there_is_an_update_or_a_place(data: st.DataObject) -> None:
    words = list(WORDS)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(words)))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from(WORDS), max_size=2)
        )
    try:
        parse_update(" ".join(words))
    except QueryError as problem:
        assert problem.line is not None and problem.column is not None, str(problem)
        assert "_" not in "".join(problem.expected), "a grammar's name, not a reader's"
