"""A worked example as a value: streams, stored graphs and queries in, answers by instant out.

Terms are written short, so that an expected answer reads like the paper's own line: `:m0` is an
IRI below `BASE`, other IRIs stand in angle brackets, numbers are numbers, everything else is text.

Every example is run twice, once with each stream pushed whole and once element by element in the
order of time. Both must agree: answers do not depend on how the input was cut into batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import algebra, term_from_text
from kelda.lang import parse as parse_query
from kelda.rdf.event import Event

BASE = "http://example.org/"
PREFIXES = {
    "": BASE,
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "swrc": "http://swrc.ontoware.org/ontology#",
    "lv": "http://deri.org/floorplan/vocab#",
}
PROLOGUE = "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in PREFIXES.items())

XSD = PREFIXES["xsd"]
Short = str | int | float | Decimal
Solution = frozenset[tuple[str, Short]]
Answers = dict[int, Counter[Any]]
Streams = Mapping[str, list[tuple[int, str]]]
Graphs = Mapping[str, str] | Mapping[str | None, str]


def solution(**bindings: Short) -> Solution:
    """An expected solution: `solution(person=":m0", loc=":r1")`."""
    return frozenset(bindings.items())


def bag(*solutions: Any) -> Counter[Any]:
    """An expected bag of solutions (or of triples written as 3-tuples)."""
    return Counter(solutions)


def iri(name: str) -> str:
    """The full IRI of a short name: `iri("S1")`."""
    return BASE + name


def short(term: NamedNode | BlankNode | Literal | Triple) -> Short:
    """A term as the tests write it; numbers compare by value, whatever their datatype."""
    if isinstance(term, NamedNode):
        return ":" + term.value[len(BASE) :] if term.value.startswith(BASE) else str(term)
    if isinstance(term, Literal):
        datatype = term.datatype.value
        if datatype == XSD + "integer":
            return int(term.value)
        if datatype == XSD + "decimal":
            return Decimal(term.value)
        if datatype in (XSD + "double", XSD + "float"):
            return float(term.value)
        return term.value
    return str(term)


def triples(text: str) -> tuple[Quad, ...]:
    """Turtle with the prefixes of this module; the last dot may be left out."""
    header = "".join(f"@prefix {name}: <{value}> .\n" for name, value in PREFIXES.items())
    body = text if text.rstrip().endswith(".") else text + " ."
    return tuple(parse(header + body, format=RdfFormat.TURTLE))


def answers(
    query_text: str,
    *,
    streams: Streams,
    graphs: Graphs | None = None,
    dialect: str | None = None,
    params: Mapping[str, str] | None = None,
    output: str | None = None,
) -> Answers:
    """The answers of one query, by instant; an instant without answers is absent.

    A solution is a frozenset of (variable, short term), a built triple a 3-tuple of short terms,
    the answer of ASK a bool. What is gone (DSTREAM, changes) counts negatively.
    """
    together = answers_together(
        {"q": query_text}, streams=streams, graphs=graphs, dialect=dialect, params=params, output=output
    )
    return together["q"]


def answers_together(
    queries: Mapping[str, str],
    *,
    streams: Streams,
    graphs: Graphs | None = None,
    dialect: str | None = None,
    params: Mapping[str, str] | None = None,
    output: str | None = None,
) -> dict[str, Answers]:
    """The same for several queries registered side by side, by their names."""
    parsed = {name: parsed_query(text, dialect, params) for name, text in queries.items()}
    events = {
        stream: [Event(time, triples(text)) for time, text in elements]
        for stream, elements in streams.items()
    }
    whole = list(events.items())
    one_by_one = sorted(
        ((stream, [event]) for stream, elements in events.items() for event in elements),
        key=lambda delivery: delivery[1][0].time or 0,
    )
    first, second = (
        by_instant(queries, run(parsed, events, deliveries, graphs or {}, output))
        for deliveries in (whole, one_by_one)
    )
    assert first == second, "the answers depend on how the input was cut into batches"
    return first


def parsed_query(
    text: str, dialect: str | None = None, params: Mapping[str, str] | None = None
) -> algebra.Query:
    """The query with the prefixes of this module in front of its text; parameters are N-Triples terms."""
    values = None if params is None else {name: term_from_text(term) for name, term in params.items()}
    return parse_query(PROLOGUE + text, dialect=dialect, params=values)


def run(
    queries: Mapping[str, algebra.Query],
    streams: Iterable[str],
    deliveries: Iterable[tuple[str, list[Event]]],
    graphs: Graphs,
    output: str | None,
) -> list[Answer]:
    """All answers of one evaluator that gets the deliveries in this order."""
    evaluator = ReferenceEvaluator()
    for name, text in graphs.items():
        graph = NamedNode(name) if name else None
        for quad in triples(text):
            evaluator.store.add(Quad(quad.subject, quad.predicate, quad.object, graph))
    for stream in streams:
        evaluator.add_stream(stream, from_start=True)
    for name, query in queries.items():
        evaluator.register(name, query, output=algebra.Output(output) if output else None)
    out: list[Answer] = []
    for stream, elements in deliveries:
        out += evaluator.push(stream, elements)
    for stream in streams:
        out += evaluator.end(stream)
    assert not any(evaluator.late.values()), "an example has no late elements"
    return out


def by_instant(names: Iterable[str], all_answers: Iterable[Answer]) -> dict[str, Answers]:
    """Answers grouped by query and instant."""
    out: dict[str, Answers] = {name: {} for name in names}
    for answer in all_answers:
        here = out[answer.query].setdefault(answer.time, Counter())
        for key in keys(answer):
            here[key] += 1 if answer.sign == "+" else -1
    return out


def keys(answer: Answer) -> list[Any]:
    """What an answer counts: one solution, one truth value, or each of its triples."""
    if answer.bindings is not None:
        return [frozenset((name, short(term)) for name, term in answer.bindings.items())]
    if answer.triples is not None:
        return [(short(t.subject), short(t.predicate), short(t.object)) for t in answer.triples]
    return [answer.boolean]
