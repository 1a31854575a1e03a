"""Queries of one shape run as one network, and answer as if each were alone."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.merging import nodes_of
from kelda.engine.nodes import JoinWindows
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import QueryError
from kelda.lang import parse, prepare
from kelda.lang.algebra import Output
from kelda.plan.shape import lift
from kelda.rdf.event import Event
from tests.engine.random_queries import EX, STREAMS, change, events
from tests.engine.stores import over
from tests.engine.test_batching import bag
from tests.engine.test_incremental import equip, store

SHAPES = (
    "SELECT ?y {{ STREAM :a [{0}] {{ {1} :p ?y }} }}",
    "SELECT ?x ?y {{ {{ STREAM :a [{0}] {{ ?x ?p {1} }} }} UNION {{ STREAM :b [{0}] {{ {1} ?p ?y }} }} }}",
    "SELECT ?x ?y ?k {{ STREAM :a [{0}] {{ ?x ?p {1} }} STREAM :b [{0}] {{ ?x ?q ?y }} ?x :k ?k }}",
    "SELECT ?x ?n {{ STREAM :a [{0}] {{ ?x :p ?y }} {1} :knows ?x . ?x :k ?n FILTER(?y != 1) }}",
    "SELECT ?x (COUNT(*) AS ?n) {{ STREAM :a [{0}] {{ ?x ?p ?y . {1} ?q ?y }} }} GROUP BY ?x",
    "SELECT DISTINCT ?x {{ STREAM :a [{0}] {{ ?x :p ?y }} STREAM :b [{0}] {{ {1} :q ?y }} }}",
    "SELECT ?x ?p {{ STREAM :a [{0}] {{ ?x ?p {1} }} }}",
    "SELECT * {{ STREAM :a [{0}] {{ ?x :p ?y }} "
    "{{ STREAM :b [{0}] {{ ?x :q {1} }} }} UNION {{ STREAM :b [{0}] {{ {1} ?p ?x }} }} }}",
    "SELECT * {{ STREAM :a [{0}] {{ ?x ?p {1} {{ ?x :p ?y }} UNION {{ {1} :q ?x }} }} }}",
    "SELECT DISTINCT ?x {{ "
    "{{ STREAM :a [{0}] {{ {1} ?p ?x }} }} UNION {{ STREAM :b [{0}] {{ {1} ?p ?x }} }} }}",
    "SELECT ?x (COUNT(*) AS ?n) {{ {{ STREAM :a [{0}] {{ ?x :p {1} }} }} UNION "
    "{{ STREAM :b [{0}] {{ ?x ?p ?y }} FILTER(?y != 1) }} UNION {{ STREAM :b [{0}] {{ ?x :q ?y }} }} }} "
    "GROUP BY ?x",
    "SELECT * {{ {{ STREAM :a [{0}] {{ ?x :p {1} }} }} UNION {{ STREAM :b [{0}] {{ ?x :q ?y }} }} }}",
    # Constants of stored patterns: below a union, a projection or a group; beside a union or a projection.
    "SELECT * {{ STREAM :a [{0}] {{ ?x ?p ?y }} {{ {1} :knows ?x }} UNION {{ ?x :k 1 }} }}",
    "SELECT * {{ STREAM :a [{0}] {{ ?x ?p ?y }} {{ SELECT ?x {{ {1} :knows ?x }} }} }}",
    "SELECT * {{ STREAM :a [{0}] {{ ?x ?p ?y }} "
    "{{ SELECT ?x (COUNT(*) AS ?n) {{ {1} :knows ?x }} GROUP BY ?x }} }}",
    "SELECT * {{ "
    "{{ STREAM :a [{0}] {{ ?x :p ?y }} }} UNION {{ STREAM :b [{0}] {{ ?x :q ?y }} }} {1} :knows ?x }}",
    "SELECT * {{ {{ SELECT ?x ?y {{ STREAM :a [{0}] {{ ?x ?p ?y }} }} }} {1} :knows ?x }}",
)
# A stored part that leaves ?x unbound is not joined where windows are, so its constant is not compared there.
ALONE = "SELECT * {{ STREAM :a [{0}] {{ ?x ?p ?y }} {1} :knows ?z {{ ?z :k 1 }} UNION {{ ?z :knows ?x }} }}"
WINDOWS = (
    "RANGE 2ms",
    "RANGE 5ms",
    "RANGE 9ms",
    "TRIPLES 1",
    "TRIPLES 2",
    "TRIPLES 4",
    "NOW",
    "RANGE 4ms SLIDE 2ms",
)
TERMS = (":n0", ":n1", ":n2")
CASES = int(os.environ.get("KELDA_CASES", "150"))


@settings(max_examples=CASES, deadline=None)
@given(
    st.lists(st.sampled_from([*SHAPES, ALONE]), min_size=1, max_size=2).flatmap(
        lambda shapes: st.lists(
            st.tuples(
                st.sampled_from(shapes), st.sampled_from(WINDOWS), st.sampled_from(TERMS), st.integers(0, 3)
            ),
            min_size=2,
            max_size=8,
        )
    ),
    st.sampled_from([Output.ISTREAM, Output.CHANGES]),
    events(),
    events(),
    st.data(),
)
def test_same_answers(queries, output: Output, a: list[Event], b: list[Event], data: st.DataObject) -> None:
    reference, engine = ReferenceEvaluator(store=store()), over(store())
    equip(reference)
    equip(engine)
    expected: list[Answer] = []
    found: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    dropped: set[str] = set()
    for i, (shape, window, term, drops) in enumerate(queries):
        text = "PREFIX : <http://ex/> " + shape.format(window, term)
        note(text)
        for evaluator in (reference, engine):
            evaluator.register(f"q{i}", parse(text), output=output)
        stream = data.draw(st.sampled_from(STREAMS))
        pushed, left[stream] = left[stream][:2], left[stream][2:]
        expected += reference.push(stream, pushed)
        found += engine.push(stream, pushed)
        if not drops and f"q{i // 2}" not in dropped:
            dropped.add(f"q{i // 2}")
            reference.drop(f"q{i // 2}")
            engine.drop(f"q{i // 2}")
    for stream, rest in left.items():
        expected += reference.push(stream, rest) + reference.end(stream)
        found += engine.push(stream, rest) + engine.end(stream)
    assert bag(found) == bag(expected)


@pytest.mark.parametrize("shape", [*SHAPES, ALONE])
def test_each_shape(shape: str) -> None:
    triples = [f"n{s} {p} {o}" for s in range(3) for p in "pq" for o in ("n0", "n1", "n2", "1", "2")]
    answers = []
    for evaluator in (ReferenceEvaluator(store=store()), over(store())):
        equip(evaluator)
        for i in range(6):
            text = shape.format(f"RANGE {9 + i % 2}ms", TERMS[i // 2])
            evaluator.register(f"q{i}", parse("PREFIX : <http://ex/> " + text), output=Output.CHANGES)
        found: list[Answer] = []
        for time in range(2 * len(triples)):
            s, p, o = triples[time * 7 % len(triples)].split()
            value = NamedNode(EX + o) if o.startswith("n") else Literal(int(o))
            quad = Quad(NamedNode(EX + s), NamedNode(EX + p), value)
            found += evaluator.push(STREAMS[time % 3 > 0], [Event(time, (quad,))])
        answers.append(bag(found))
    assert answers[0] == answers[1]
    assert answers[0], "something is answered"
    assert isinstance(evaluator, IncrementalEvaluator)
    assert "in one network" in evaluator.say("q1")


class Group:
    """Draws the text of a group of joins and unions, in CQELS-QL or RSP-QL."""

    def __init__(self, draw: st.DrawFn, dialect: str) -> None:
        self.draw, self.dialect = draw, dialect
        self.windows: list[str] = []  # that RSP-QL declares up front

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def triple(self) -> str:
        s, o = self.pick("?x", "?y", ":n0", ":n0"), self.pick("?x", "?y", "?z", ":n0")
        return f"{s} {self.pick(':p', ':q', '?p')} {o}"

    def window(self) -> str:
        inside = self.pick(
            self.triple(),
            self.triple(),
            f"{self.triple()} . {self.triple()}",
            f"{{ {self.triple()} }} UNION {{ {self.triple()} }}",
            f"{self.triple()} {{ {self.triple()} }} UNION {{ {self.triple()} }}",
        )
        if self.dialect == "cqels":
            size = self.pick("RANGE 2ms", "TRIPLES 2", "NOW", "RANGE 4ms SLIDE 2ms")
            return f"STREAM {self.pick(':a', ':b')} [{size}] {{ {inside} }}"
        size = self.pick("RANGE 2", "TRIPLES 2", "ELEMENTS 2", "RANGE 4 STEP 2")
        name = f":w{len(self.windows)}"
        self.windows.append(f"FROM NAMED WINDOW {name} ON {self.pick(':a', ':b')} [{size}]")
        return f"WINDOW {name} {{ {inside} }}"

    def part(self, depth: int) -> str:
        match self.draw(st.integers(0, 10)) if depth else 0:
            case 1 | 2 | 3:
                return f"{{ {self.group(depth - 1)} }} UNION {{ {self.group(depth - 1)} }}"
            case 4:
                return f"{{ SELECT {self.pick('?x', '?x ?y', '?z')} {{ {self.group(depth - 1)} }} }}"
            case 5:
                return f"{{ {self.group(depth - 1)} FILTER({self.pick('?x != ?y', '?y > 1', 'BOUND(?z)')}) }}"
            case 6 | 10:
                return self.pick(
                    ":n0 :knows ?x .",
                    ":n0 :knows ?z .",
                    "?x :k ?y .",
                    "GRAPH :g { ?z :in :n0 }",
                    "{ ?z :k ?y } UNION { ?x :knows :n0 }",
                    "{ :n0 :knows ?z BIND(?z / 2 AS ?y) }",
                    "{ SELECT ?x { ?x :knows :n0 } }",
                )
            case 7 if self.draw(st.booleans()):  # has to stay alone
                return f"{self.pick('OPTIONAL', 'MINUS')} {{ {self.group(0)} }}"
        return self.window()

    def group(self, depth: int) -> str:
        return " ".join(self.part(depth) for _ in range(self.draw(st.integers(1, 2))))

    def query(self) -> str:
        body = self.group(2)
        if "[" not in body and not self.windows:
            body += self.window()
        head, tail = self.draw(
            st.sampled_from(
                [
                    ("SELECT *", ""),
                    ("SELECT ?x ?y", ""),
                    ("SELECT DISTINCT ?x", ""),
                    ("SELECT ?x (COUNT(?y) AS ?n)", "GROUP BY ?x"),
                ]
            )
        )
        kind = self.pick("ISTREAM", "DSTREAM", "RSTREAM")
        register = "" if self.dialect == "cqels" else f"REGISTER {kind} :o AS "
        windows = " ".join(self.windows)
        return f"PREFIX : <http://ex/> {register}{head} {windows} WHERE {{ {body} }} {tail}"


@st.composite
def families(draw: st.DrawFn) -> list[str]:
    """Texts that differ in constants and window sizes."""
    text = Group(draw, draw(st.sampled_from(["cqels", "cqels", "rspql"]))).query()

    def other(_: re.Match[str]) -> str:
        return draw(st.sampled_from(TERMS))

    def resized(match: re.Match[str]) -> str:
        return match[1] + str(draw(st.integers(1, 6)))

    sizes = re.compile(r"((?:RANGE|TRIPLES|ELEMENTS) )2")
    return [sizes.sub(resized, re.sub(":n0", other, text)) for _ in range(4)]


@settings(max_examples=CASES, deadline=None)
@given(families(), st.sampled_from([None, Output.CHANGES]), events(), events(), st.data())
def test_queries_of_any_shape_come_go_and_pause(
    texts: list[str], output: Output | None, a: list[Event], b: list[Event], data: st.DataObject
) -> None:
    try:
        queries = [parse(text) for text in texts]
    except QueryError:  # a random query may break a rule of SPARQL
        return
    reference, engine, slow = (
        ReferenceEvaluator(store=store()),
        over(store()),
        over(store()),  # gets events one by one
    )
    every = (reference, engine, slow)
    for evaluator in every:
        equip(evaluator)
    expected: list[Answer] = []
    found: list[Answer] = []
    one_by_one: list[Answer] = []
    left = dict(zip(STREAMS, (a, b), strict=True))
    running: list[str] = []
    for i in range(data.draw(st.integers(4, 16))):
        actions = ["register", "register", "drop", "pause", "resume", *6 * ["push"]]
        action = data.draw(st.sampled_from(actions)) if len(running) > 2 else "register"
        if action == "register":
            which = data.draw(st.integers(0, len(texts) - 1))
            note(f"register q{i} {texts[which]}")
            for evaluator in every:
                evaluator.register(f"q{i}", queries[which], output=output)
            running.append(f"q{i}")
        elif action == "push":
            stream, size = data.draw(st.sampled_from(STREAMS)), data.draw(st.integers(1, 4))
            pushed, left[stream] = left[stream][:size], left[stream][size:]
            note(f"push {stream} {pushed}")
            expected += reference.push(stream, pushed)
            found += engine.push(stream, pushed)
            for event in pushed:
                one_by_one += slow.push(stream, [event])
        else:
            change(action, running, every, data)
    note(f"shared: {[name for name in running if 'in one network' in engine.say(name)]}")
    for stream, rest in left.items():
        expected += reference.push(stream, rest) + reference.end(stream)
        found += engine.push(stream, rest) + engine.end(stream)
        one_by_one += slow.push(stream, rest) + slow.end(stream)
    assert bag(found) == bag(expected)
    assert bag(one_by_one) == bag(expected)


A, B = "STREAM :a [RANGE 5ms]", "STREAM :b [TRIPLES 3]"


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        (f"{{ {A} {{ :n0 :p ?x }} }} UNION {{ {B} {{ ?x :q :n1 }} }}", 2),
        (f"{{ {A} {{ :n0 :p ?x }} }} UNION {{ {B} {{ ?x :q ?y }} }}", 1),
        (f"{{ {A} {{ :n0 :p ?x }} :n1 :knows ?x }} UNION {{ {B} {{ ?x :q 1 }} }} ?x :k :n2", 3),
        (f"{A} {{ :n0 :p ?x {{ ?x :p 1 }} UNION {{ ?x :q 2 }} }}", 3),
        (f"{A} {{ :n0 :p ?x }} {{ ?x :k 1 }} UNION {{ ?x :k 2 }}", 1),
        (f"{A} {{ :n0 :p ?x }} {{ ?x :k 1 FILTER(?x != 1) }}", 2),
        (f"{A} {{ :n0 :p ?x }} {{ SELECT ?x {{ ?x :k 1 }} }}", 1),
    ],
)
def test_constants_are_lifted_where_they_meet_the_parameters(body: str, constants: int) -> None:
    lifted = lift(parse(f"PREFIX : <http://ex/> SELECT * {{ {body} }}"))
    assert lifted is not None and len(lifted.constants) == constants


@pytest.mark.parametrize(
    "body",
    [
        f"{{ {A} {{ :n0 :p ?x }} }} UNION {{ :n0 :knows ?x }}",
        f"{A} {{ {{ :n0 :p ?x }} UNION {{ }} }}",
        f"{A} {{ :n0 :p ?x }} OPTIONAL {{ {{ {B} {{ ?x :p :n0 }} }} UNION {{ {B} {{ ?x :q :n0 }} }} }}",
        f"{A} {{ :n0 :p ?x }} MINUS {{ {{ {B} {{ ?x :p :n0 }} }} UNION {{ {B} {{ ?x :q :n0 }} }} }}",
    ],
)
def test_what_is_not_shared(body: str) -> None:
    assert lift(parse(f"PREFIX : <http://ex/> SELECT * {{ {body} }}")) is None


def test_a_thousand_queries_are_one_network() -> None:
    prepared = prepare("PREFIX : <http://ex/> SELECT ?y { STREAM :a [RANGE $w] { $who :p ?y } }")
    engine = IncrementalEvaluator()
    equip(engine)
    people = [NamedNode(f"{EX}n{i}") for i in range(1000)]
    engine.register_many(
        prepared, [f"q{i}" for i in range(1000)], {"who": people, "w": [1 + i % 7 for i in range(1000)]}
    )
    assert len(engine.queries) == 1000 and not engine.reasons
    push = ["1", "2"]
    events = [Event(int(t), (Quad(people[7], NamedNode(EX + "p"), Literal(t)),)) for t in push]
    answers = engine.push(STREAMS[0], events) + engine.end(STREAMS[0]) + engine.end(STREAMS[1])
    assert [(a.query, a.time) for a in answers] == [("q7", 1), ("q7", 2)]


WHOLE = (
    "REGISTER QUERY q{0} {1} AS SELECT ?x FROM NAMED STREAM :a [RANGE 6ms STEP 2ms] "
    "WHERE {{ GRAPH :a {{ ?x :p {0} }} }}",
    "REGISTER RSTREAM :o{0} AS SELECT ?x FROM NAMED WINDOW :w ON :a [RANGE 6 STEP 3] "
    "FROM NAMED WINDOW :v ON :b [RANGE 6 STEP 2] "
    "WHERE {{ WINDOW :w {{ ?x :p {0} }} WINDOW :v {{ ?x :q ?y }} }}",
)


@pytest.mark.parametrize(
    ("text", "every"),
    [(WHOLE[0], ""), (WHOLE[0], "COMPUTED EVERY 4ms"), (WHOLE[0], "COMPUTED EVERY 3ms"), (WHOLE[1], "")],
)
def test_queries_that_tell_all_share_a_network(text: str, every: str) -> None:
    """With long gaps, in which windows run empty; some pause, go, or come later."""
    times = [t for start in (3, 40, 1_000_041) for t in range(start, start + 18)]
    answers = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        equip(evaluator)

        def register(name: str, i: int, to=evaluator) -> None:
            to.register(name, parse("PREFIX : <http://ex/> " + text.format(i % 3, every)))

        for i in range(12):
            register(f"q{i}", i)
        found: list[Answer] = []
        for n, time in enumerate(times):
            if n == 9:
                evaluator.pause("q4")
                evaluator.pause("q5")
                evaluator.drop("q7")
                register("later", 1)
            if n == 30:
                evaluator.pause("q4", False)
                evaluator.drop("q8")
            quad = Quad(NamedNode(f"{EX}n{n % 2}"), NamedNode(EX + "pq"[n % 4 == 0]), Literal(n % 3))
            found += evaluator.push(STREAMS[n % 4 == 0], [Event(time, (quad,))])
        found += evaluator.end(STREAMS[0]) + evaluator.end(STREAMS[1])
        answers.append(bag(found))
    assert answers[0] == answers[1] and answers[0].total() > 100
    assert isinstance(evaluator, IncrementalEvaluator)
    assert "in one network with 10 queries" in evaluator.say("q1"), evaluator.say("q1")


def test_of_stored_data_a_network_holds_nothing() -> None:
    knows, rank, p = (NamedNode(EX + name) for name in ("knows", "rank", "p"))
    people = [NamedNode(f"{EX}n{i}") for i in range(50)]
    integer = NamedNode("http://www.w3.org/2001/XMLSchema#integer")
    ranks = [Literal(text, datatype=integer) for text in ("1", "01", "2")]  # the first two differ as terms
    text = (
        "PREFIX : <http://ex/> SELECT ?friend {{ STREAM :a [RANGE 5ms] {{ ?friend :p ?y }}"
        " :n{0} :knows ?friend . ?friend :rank {1} }}"
    )
    asked = [(0, ranks[0]), (0, ranks[2]), (1, ranks[1]), (0, ranks[2])]
    answers = []
    for evaluator in (ReferenceEvaluator(), IncrementalEvaluator()):
        stored = [Quad(a, knows, people[(i + n) % 50]) for i, a in enumerate(people) for n in range(1, 10)]
        stored += [Quad(person, rank, ranks[i % 3]) for i, person in enumerate(people)]
        (evaluator.load if isinstance(evaluator, IncrementalEvaluator) else evaluator.store.extend)(stored)
        equip(evaluator)
        found: list[Answer] = []
        for i, constants in enumerate(asked):  # a query comes, then everybody does something
            evaluator.register(f"q{i}", parse(text.format(*constants)), output=Output.CHANGES)
            done = (Event(10 * i + 1, (Quad(person, p, Literal(i)),)) for person in people)
            found += evaluator.push(STREAMS[0], list(done))
        found += evaluator.end(STREAMS[0]) + evaluator.end(STREAMS[1])
        answers.append(bag(found))
    assert answers[0] == answers[1]
    assert {answer.query for answer in found} == {"q0", "q1", "q2", "q3"}
    assert isinstance(evaluator, IncrementalEvaluator)
    (shared,) = (network.root for network in evaluator.networks() if not network.name)
    joins = [node for node in nodes_of(shared) if isinstance(node, JoinWindows)]
    # The first query runs alone; the others probe facts where they lie.
    assert [[leaf.facts is not None for leaf in node.join.leaves] for node in joins] == [
        [False, True, True, False]
    ]


@pytest.mark.parametrize(
    ("window", "value", "why"),
    [("RANGE $v", 2**63, "100 years"), ("RANGE $v", 0, "longer than zero"), ("TRIPLES $v", 2**31, "at most")],
)
def test_sizes_of_many_are_checked(window: str, value: int, why: str) -> None:
    engine = IncrementalEvaluator()
    equip(engine)
    prepared = prepare(f"SELECT ?x {{ STREAM <http://ex/a> [{window}] {{ ?x ?p $o }} }}")
    with pytest.raises(QueryError, match=why):
        engine.register_many(prepared, ["q", "r"], {"v": [5, value], "o": [1, 2]})
    assert engine.queries == []
    engine.register_many(prepared, ["q", "r"], {"v": [5, Literal(7)], "o": [1, 2]})
    assert engine.queries == ["q", "r"]
