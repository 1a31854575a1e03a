"""Random continuous queries and streams: small worlds in which many things meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import note
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad

from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.reference import ReferenceEvaluator
from kelda.rdf.event import Event

EX = "http://ex/"
STREAMS = (EX + "a", EX + "b")
XSD_INTEGER = NamedNode("http://www.w3.org/2001/XMLSchema#integer")

STORED = """
@prefix : <http://ex/> .
:n0 :k 1 ; :knows :n1 . :n1 :k 2 ; :knows :n2, :n0 . :n2 :k 1 .
GRAPH :g { :n0 :in :n1 . :n2 :in :n1 . }
"""

CQELS_WINDOWS = (
    "NOW",
    "ALL",
    "RANGE 1ms",
    "RANGE 3ms",
    "RANGE 7ms",
    "RANGE 5ms SLIDE 2ms",
    "RANGE 2ms SLIDE 5ms",
    "RANGE 4ms TUMBLING",
    "TRIPLES 1",
    "TRIPLES 3",
    "SESSION GAP 1ms",
    "SESSION GAP 3ms",
)
RSPQL_WINDOWS = (
    "RANGE 3 STEP 1",
    "RANGE 5 STEP 2",
    "RANGE 4 STEP 4",
    "RANGE 6",
    "ELEMENTS 2",
    "ELEMENTS 3 STEP 2",
    "TRIPLES 2 STEP 3",
    "SESSION 2",
    "RANGE 4 @:at",
    "RANGE 5 STEP 2 @:at",
    "FROM NOW-PT0.005S TO NOW-PT0.002S",
    "FROM NOW-PT0.006S TO NOW-PT0.002S STEP PT0.002S",
)
CSPARQL_WINDOWS = ("RANGE 3ms STEP 1ms", "RANGE 4ms TUMBLING", "RANGE 5ms STEP 2ms", "RANGE TRIPLES 3")
ORDERS = (
    "LIMIT 2",
    "ORDER BY ?x",
    "ORDER BY ?y DESC(?x)",
    "ORDER BY DESC(?y) LIMIT 2",
    "ORDER BY ?z DESC(?x) OFFSET 1",
    "ORDER BY (?y * 2) ?x LIMIT 1 OFFSET 1",
)
NODES = (":n0", ":n1", ":n2")
VARS = ("?x", "?y", "?z")


@dataclass
class Writer:
    """Draws one query; collects the windows that RSP-QL declares up front."""

    draw: st.DrawFn
    dialect: str
    windows: list[str]

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def flip(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def triple(self) -> str:
        s = self.pick(*VARS, *VARS, *NODES)
        p = self.pick(":p", ":p", ":q", "?r", ":p|:q", "!:p")
        o = self.pick(*VARS, *VARS, *NODES, "1", "2")
        return f"{s} {p} {o}"

    def windowed(self, inside: str) -> str:
        stream = self.pick(":a", ":b")
        if self.dialect == "cqels":
            stream = "?s" if self.flip(5) else stream
            return f"STREAM {stream} [{self.pick(*CQELS_WINDOWS)}] {{ {inside} }}"
        if self.dialect == "csparql":
            iri = STREAMS[stream == ":b"]
            if len(self.windows) < 2:
                self.windows.append(f"FROM STREAM <{iri}> [{self.pick(*CSPARQL_WINDOWS)}]")
            return f"{{ {inside} }}"
        name = f":w{len(self.windows)}"
        self.windows.append(f"FROM NAMED WINDOW {name} ON {stream} [{self.pick(*RSPQL_WINDOWS)}]")
        return f"WINDOW {name} {{ {inside} }}"

    def stream_part(self, depth: int) -> str:
        inside = " . ".join(self.triple() for _ in range(self.draw(st.integers(1, 2))))
        if depth and self.flip(6):
            inside += " " + self.decoration(0, inside_window=True)
        return self.windowed(inside)

    def part(self, depth: int) -> str:
        kind = self.draw(st.integers(1, 8))
        if kind == 1:
            return self.pick(
                "?x :k ?y .",
                "?x :knows ?z .",
                "?x :knows+ ?z .",
                "?x :knows :n0 .",
                ":n1 :knows ?z . ?z :k ?y .",
                "?z :k 1 .",
            )
        if kind == 2:
            return self.pick("GRAPH :g { ?x :in ?z }", "GRAPH :g { ?x :in :n1 }", "GRAPH ?g { ?z :in ?y }")
        if kind == 3 and depth:
            return f"{{ {self.group(depth - 1)} }} UNION {{ {self.group(depth - 1)} }}"
        if kind == 4:
            return self.pick(
                "VALUES ?y { 1 2 3 }", "VALUES ?x { :n0 :n2 }", "VALUES (?x ?y) { (:n0 1) (:n1 UNDEF) }"
            )
        return self.stream_part(depth)

    def condition(self) -> str:
        return self.pick(
            "?x != ?z",
            "?y > 1",
            "?x = :n0",
            "?y + 1 < 4",
            "BOUND(?z)",
            "isIRI(?z)",
            "?y IN (1, :n1)",
            "?x < ?y",
        )

    def decoration(self, depth: int, inside_window: bool = False) -> str:
        inner = self.triple() if inside_window else self.group(depth)
        if self.flip(6):  # EXISTS where one seldom sees it
            other = self.triple() if inside_window else self.stream_part(0)
            return self.pick(
                f"OPTIONAL {{ {inner} FILTER {self.pick('', 'NOT ')}EXISTS {{ {other} }} }}",
                f"BIND(EXISTS {{ {other} }} AS ?there)",
                f"FILTER({self.condition()} || EXISTS {{ {other} }})",
            )
        return self.pick(
            f"FILTER({self.condition()})",
            f"OPTIONAL {{ {inner} }}",
            f"OPTIONAL {{ {inner} FILTER({self.condition()}) }}",
            f"MINUS {{ {inner} }}",
            f"FILTER NOT EXISTS {{ {inner} }}",
            f"FILTER EXISTS {{ {inner} }}",
            f"FILTER {self.pick('', 'NOT ')}EXISTS {{ {inner} FILTER({self.condition()}) }}",
            "BIND(?y * 2 AS ?twice)",
        )

    def group(self, depth: int) -> str:
        parts = [self.part(depth) for _ in range(self.draw(st.integers(1, 2)))]
        if depth and self.flip(3):
            parts.append(self.decoration(depth - 1))
        return " ".join(parts)

    def query(self) -> str:
        body = " ".join([self.stream_part(1), self.group(1) if self.flip() else ""])
        if self.flip():
            body += " " + self.decoration(1)
        if self.flip(4):
            aggregate = self.pick(
                "(COUNT(*) AS ?n)",
                "(SUM(?y) AS ?n)",
                "(MIN(?y) AS ?n)",
                "(MAX(?z) AS ?n)",
                "(AVG(?y) AS ?n)",
                "(COUNT(DISTINCT ?z) AS ?n)",
                "(COUNT(DISTINCT *) AS ?n)",
                "(GROUP_CONCAT(?y) AS ?n)",
                "(SAMPLE(?z) AS ?n)",
            )
            tail = self.pick(
                "",
                "GROUP BY ?x",
                "GROUP BY ?x HAVING (COUNT(*) > 1)",
                "GROUP BY ?x ORDER BY DESC(?n) LIMIT 1",
            )
            head = f"SELECT {'?x ' if tail else ''}{aggregate}"
        else:
            head, tail = (
                "SELECT " + self.pick("*", "?x", "DISTINCT ?x ?y", "?x ?y ?z"),
                self.pick("", "", "", *ORDERS),
            )
        if self.flip(8):
            head, tail = "ASK", ""
        prefix = "PREFIX : <http://ex/> "
        if self.dialect == "csparql":
            every = self.pick("", "", "COMPUTED EVERY 3ms ")
            windows = " ".join(self.windows)
            return f"{prefix}REGISTER QUERY q {every}AS {head} {windows} WHERE {{ {body} }} {tail}"
        if self.dialect == "cqels":
            return f"{prefix}{head} WHERE {{ {body} }} {tail}"
        kind = self.pick("RSTREAM", "ISTREAM", "DSTREAM")
        return f"{prefix}REGISTER {kind} :o AS {head} {' '.join(self.windows)} WHERE {{ {body} }} {tail}"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a random query."""
    return Writer(draw, draw(st.sampled_from(["cqels", "cqels", "rspql", "csparql"])), []).query()


@st.composite
def events(draw: st.DrawFn) -> list[Event]:
    """A short stream, nearly in order, with repeated triples."""
    out, time = [], 0
    for _ in range(draw(st.integers(0, 9))):
        time = max(0, time + draw(st.sampled_from([-1, 0, 0, 1, 1, 1, 2, 6])))
        quads = []
        for _ in range(draw(st.integers(1, 2))):
            s = NamedNode(EX + "n" + str(draw(st.integers(0, 2))))
            p = NamedNode(EX + draw(st.sampled_from("pq")))
            number = draw(st.integers(0, 5))
            o = (
                Literal(str(number), datatype=XSD_INTEGER)
                if number < 3
                else NamedNode(EX + "n" + str(number - 3))
            )
            quads.append(Quad(s, p, o))
        if draw(st.integers(1, 4)) == 1:
            stated = Literal(str(time + draw(st.integers(-5, 5))), datatype=XSD_INTEGER)
            quads.insert(draw(st.integers(0, len(quads))), Quad(s, NamedNode(EX + "at"), stated))
        out.append(Event(time, tuple(quads)))
    return out


def change(
    action: str,
    running: list[str],
    evaluators: Iterable[ReferenceEvaluator | IncrementalEvaluator],
    data: st.DataObject,
) -> None:
    """Drop, pause or resume one of the running queries, in all evaluators."""
    name = data.draw(st.sampled_from(running))
    note(f"{action} {name}")
    for evaluator in evaluators:
        if action == "drop":
            evaluator.drop(name)
        else:
            evaluator.pause(name, action == "pause")
    if action == "drop":
        running.remove(name)
