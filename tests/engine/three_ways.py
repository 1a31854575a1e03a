"""Queries over a few triples, in every way in which a query is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyoxigraph import NamedNode, Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Solutions, evaluate
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from kelda.rdf.event import Event
from kelda.rdf.exact import Value
from kelda.rdf.graphstore import GraphStore

STREAM = "http://ex/s"
PREFIXES = "PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "

Rows = list[dict[str, Value]]
Way = Callable[[Sequence[tuple[str, str, str]], Sequence[Quad]], list[Rows]]


def triples(turtle: str) -> list[Quad]:
    """Triples, spelled as they are."""
    return list(parse_rdf(PREFIXES + turtle, RdfFormat.TURTLE))


def one_shot(queries: Sequence[tuple[str, str, str]], data: Sequence[Quad]) -> list[Rows]:
    """Rows of `SELECT head WHERE { pattern } tail`, asked once."""
    store = GraphStore(data)
    found = []
    for head, pattern, tail in queries:
        answer = evaluate(parse(f"{PREFIXES} SELECT {head} WHERE {{ {pattern} }} {tail}"), store)
        assert isinstance(answer, Solutions)
        found.append(answer.rows)
    return found


def _streamed(
    make: type[ReferenceEvaluator] | type[IncrementalEvaluator],
    queries: Sequence[tuple[str, str, str]],
    data: Sequence[Quad],
) -> list[Rows]:
    evaluator = make()
    evaluator.add_stream(STREAM)
    for i, (head, pattern, tail) in enumerate(queries):
        window = f"STREAM <{STREAM}> [NOW] {{ {pattern} }}"
        evaluator.register(str(i), parse(f"{PREFIXES} SELECT {head} WHERE {{ {window} }} {tail}"))
    if isinstance(evaluator, IncrementalEvaluator):
        assert not evaluator.reasons, evaluator.reasons
    answers = evaluator.push(STREAM, [Event(1000, tuple(data))]) + evaluator.end(STREAM)
    found: list[Rows] = [[] for _ in queries]
    for answer in answers:
        assert answer.sign == "+" and answer.bindings is not None
        if answer.time == 1000:
            found[int(answer.query)].append(answer.bindings)
    return found


def reference(queries: Sequence[tuple[str, str, str]], data: Sequence[Quad]) -> list[Rows]:
    """The same over a window, by definition."""
    return _streamed(ReferenceEvaluator, queries, data)


def incremental(queries: Sequence[tuple[str, str, str]], data: Sequence[Quad]) -> list[Rows]:
    """The same over a window, from the changes alone."""
    return _streamed(IncrementalEvaluator, queries, data)


WAYS: dict[str, Way] = {"one-shot": one_shot, "reference": reference, "incremental": incremental}


def put(subject: str, predicate: str, term: Value) -> Quad:
    """A triple with this object."""
    return Quad(NamedNode("http://ex/" + subject), NamedNode("http://ex/" + predicate), term)
