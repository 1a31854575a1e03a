"""The ways a case is answered: Oxigraph alone, Kelda at once, and Kelda with the data streamed in, through
the reference evaluator and through the incremental one.

Oxigraph alone gets the query text as it stands. It is no test of Kelda: it tells, for a case that fails,
whether the engine below would have answered it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from urllib.parse import urljoin

from pyoxigraph import DefaultGraph, NamedNode, Quad, QueryTriples, Store

from kelda.ask.prepared import prepare
from kelda.ask.updating.update import carry_out
from kelda.engine.absorb import Absorb
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import Result as Answer
from kelda.engine.oneshot import evaluate
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.report import Report, When
from kelda.errors import QueryError
from kelda.lang import algebra, parse, parse_update
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from kelda.store.store import Store as KeldaStore
from tests.ask.stored import view_of

from ..ask.by_oxigraph import added, by_oxigraph, contents
from .results import (
    Result,
    Rows,
    Triples,
    as_csv,
    by_value,
    difference,
    from_query_results,
    read_expected,
    row,
)
from .w3c import Case, Kind, quads

STREAM = "urn:stream"
NAME = "q"
TICK = 1000  # ms between events

Evaluator = ReferenceEvaluator | IncrementalEvaluator


# ---------------------------------------------------------------------------- data


@dataclass(frozen=True, slots=True)
class Documents:
    """What a case is asked over: the documents of the default graph and of the named graphs, and those
    that the query itself calls into its default graph (FROM)."""

    default: tuple[str, ...]
    named: tuple[str, ...]
    called: tuple[str, ...]

    @staticmethod
    def of(case: Case) -> Documents:
        """As the manifest says; FROM and FROM NAMED in the query add the documents they name."""
        clauses = re.findall(r"\bFROM\s+(NAMED\s+)?<([^>]*)>", case.text(), re.IGNORECASE)
        called = tuple(urljoin(case.query, iri) for named, iri in clauses if not named)
        named = tuple(urljoin(case.query, iri) for named, iri in clauses if named)
        return Documents(case.data, tuple(dict.fromkeys(case.graphs + named)), called)

    def all(self) -> Iterable[Quad]:
        """Everything in one store; FROM picks graphs by their document's IRI."""
        yield from self.default_graph()
        yield from self.named_graphs(*self.named, *self.called)

    def default_graph(self) -> Iterable[Quad]:
        """The default graph as the manifest gives it."""
        for iri in self.default:
            yield from quads(iri, f"d{self.default.index(iri)}")

    def named_graphs(self, *iris: str) -> Iterable[Quad]:
        """Each document under its IRI, with blank nodes that no other document shares."""
        for i, iri in enumerate(dict.fromkeys(iris)):
            yield from quads(iri, f"n{i}", NamedNode(iri))

    def elements(self) -> list[Quad]:
        """What the query sees as its default graph, in document order, each triple once."""
        if not self.called:
            return list(dict.fromkeys(self.default_graph()))
        called = self.named_graphs(*self.named, *self.called)
        chosen = {NamedNode(iri) for iri in self.called}
        return list(dict.fromkeys(Quad(*q.triple) for q in called if q.graph_name in chosen))


# ---------------------------------------------------------------------------- four ways


def oxigraph(case: Case) -> Result:
    """The text as it stands, answered by Oxigraph."""
    documents = Documents.of(case)
    store = Store()
    store.extend(documents.all())
    results = store.query(case.text(), base_iri=case.query)
    return Triples(frozenset(results)) if isinstance(results, QueryTriples) else from_query_results(results)


def one_shot(case: Case) -> Result:
    """Kelda's parser and one-shot evaluation over a store that holds all the data."""
    documents = Documents.of(case)
    store = GraphStore(documents.all())
    return told(evaluate(parse(case.text(), base=case.query), store))


def told(result: Answer) -> Result:
    """An answer of Kelda's, to be compared."""
    if isinstance(result, bool):
        return result
    if isinstance(result, list):
        return Triples(frozenset(result))
    return Rows(tuple(row(r.items()) for r in result.rows), frozenset(result.variables))


def by_operators(case: Case) -> Result:
    """Kelda's own operators over columns of ids, once."""
    return told(asked(case)[0])


def why_oxigraph(case: Case) -> str | None:
    """Why a part of the query goes to Oxigraph when it is asked so; None: no part does."""
    _, plan = asked(case)
    found = re.search("ask Oxigraph for [^:]*: (.*)", plan)
    return None if found is None else found[1]


def asked(case: Case) -> tuple[Answer, str]:
    """The answer by operators, and the plan."""
    dictionary = Dictionary()
    view = view_of(Documents.of(case).all(), dictionary)
    prepared = prepare(parse(case.text(), base=case.query), dictionary)
    return prepared.answer(view), prepared.explain()


def absorbed(case: Case) -> Result:
    """By operators over the store that an engine has made of it: the default graph came on a stream, a triple
    an event, and was absorbed."""
    documents, evaluator = Documents.of(case), IncrementalEvaluator()
    evaluator.load(documents.named_graphs(*documents.named, *documents.called))
    evaluator.add_stream(STREAM, absorb=Absorb())
    for i, quad in enumerate(documents.default_graph(), start=1):
        evaluator.push(STREAM, [Event(TICK * i, (quad,))])
    evaluator.end(STREAM)
    query = parse(case.text(), base=case.query)
    return told(prepare(query, evaluator.store.dictionary).answer(evaluator.store.view()))


def streamed(case: Case) -> Result:
    """The data streamed through the reference evaluator, which recomputes its answer at every report."""
    return stream(case, ReferenceEvaluator())


def incremental(case: Case) -> Result:
    """The data streamed through the incremental evaluator."""
    return stream(case, IncrementalEvaluator())


def why_recomputed(case: Case) -> str | None:
    """Why the incremental evaluator hands the query to the reference evaluator; None: it does not."""
    evaluator = IncrementalEvaluator()
    register(case, evaluator, Documents.of(case))
    return evaluator.reasons.get(NAME)


def stream(case: Case, evaluator: Evaluator) -> Result:
    """The default graph arrives triple by triple, each pushed by itself, so that an evaluator must carry
    its state from one to the next. The result is what the query says at the last triple's instant."""
    documents = Documents.of(case)
    form = register(case, evaluator, documents)
    elements = documents.elements()
    answers = []
    for i, quad in enumerate(elements, start=1):
        answers += evaluator.push(STREAM, [Event(TICK * i, (quad,))])
    answers += evaluator.end(STREAM) if elements else evaluator.heartbeat(STREAM, TICK)
    last = [answer for answer in answers if answer.time == TICK * max(1, len(elements))]
    if form is algebra.Form.ASK:
        if len(last) != 1 or last[0].boolean is None:
            raise AssertionError(f"an ASK must say one thing at an instant, got {last}")
        return last[0].boolean
    if form is algebra.Form.SELECT:
        return Rows(tuple(row((answer.bindings or {}).items()) for answer in last))
    return Triples(frozenset(t for answer in last for t in answer.triples or ()))


def register(case: Case, evaluator: Evaluator, documents: Documents) -> algebra.Form:
    """Register the query with its default graph under a window that keeps everything; named graphs are
    stored. Returns the form of the query.

    Where the default graph is empty no element ever comes, and such a window never reports by itself;
    there the query is made to report at a heart-beat."""
    query = parse(case.text(), base=case.query)
    # The documents that FROM calls in are the stream now.
    default = () if documents.called else query.dataset.default
    continuous = replace(
        query,
        dialect=algebra.Dialect.CSPARQL,
        windows=(algebra.WindowDef("w0", NamedNode(STREAM), algebra.AllWindow()),),
        dataset=replace(query.dataset, default=default, windows=("w0",)),
        output=algebra.Output.RSTREAM,
    )
    evaluator.load(documents.named_graphs(*documents.named))
    evaluator.add_stream(STREAM)
    if documents.elements():
        evaluator.register(NAME, continuous)
    else:
        evaluator.heartbeat(STREAM, TICK - 1)
        evaluator.register(NAME, continuous, report=Report(When.PERIODIC, every=TICK))
    return query.form


# ---------------------------------------------------------------------------- verdicts


class Verdict(Enum):
    """How a case went. `BY_VALUE`: right, but with another spelling of the same number."""

    PASSED = "passed"
    BY_VALUE = "passed by value"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, and for a failure what went wrong."""

    verdict: Verdict
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.verdict is not Verdict.FAILED


def judge(case: Case, way: Callable[[Case], Result]) -> Outcome:
    """Answer an evaluation case and compare. Order counts wherever the answer has one."""
    assert case.result is not None, f"{case.id}: no expected result"
    expected = read_expected(case.result)
    try:
        actual = way(case)
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is this case's failure, not the run's
        return Outcome(Verdict.FAILED, f"{type(problem).__name__}: {problem}")
    if case.kind is Kind.CSV and isinstance(actual, Rows):
        actual = as_csv(actual)
    # A stream of answers has no order within an instant.
    in_order = case.ordered() and way not in (streamed, incremental)
    found = difference(actual, expected, in_order=in_order, lax=case.lax)
    if found is None:
        return Outcome(Verdict.PASSED)
    if difference(by_value(actual), by_value(expected), in_order=in_order, lax=case.lax) is None:
        return Outcome(Verdict.BY_VALUE)
    return Outcome(Verdict.FAILED, found)


def updated(case: Case) -> Rows:
    """What is stored after an update that Kelda has carried out on its store."""
    assert case.before is not None
    store = KeldaStore()
    store.apply(added(case.before.quads(), store.dictionary, moment=0))
    request = parse_update(case.text(), base=case.query)
    carry_out(request, store, 1, entry=1, now=0, solutions=by_oxigraph(store))
    return as_rows(contents(store.view(), store.dictionary))


def updated_by_oxigraph(case: Case) -> Rows:
    """The same, by Oxigraph alone."""
    assert case.before is not None
    store = Store()
    store.extend(case.before.quads())
    store.update(case.text(), base_iri=case.query)
    return as_rows(store)


def as_rows(quads: Iterable[Quad]) -> Rows:
    """A dataset as solutions of ?g ?s ?p ?o, so that results are compared in one way."""
    named = ((q, None if isinstance(q.graph_name, DefaultGraph) else q.graph_name) for q in set(quads))
    return Rows(
        tuple(
            row((("g", graph), ("s", q.subject), ("p", q.predicate), ("o", q.object))) for q, graph in named
        )
    )


def judge_update(case: Case, way: Callable[[Case], Rows]) -> Outcome:
    """Carry out an update and compare what is stored then."""
    assert case.after is not None
    try:
        found = difference(way(case), as_rows(case.after.quads()))
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is this case's failure, not the run's
        return Outcome(Verdict.FAILED, f"{type(problem).__name__}: {problem}")
    return Outcome(Verdict.PASSED) if found is None else Outcome(Verdict.FAILED, found)


def judge_syntax(case: Case) -> Outcome:
    """A syntax case: the parser must take it, or refuse it with a QueryError."""
    wanted = case.kind is Kind.POSITIVE_SYNTAX
    try:
        if case.is_update:
            parse_update(case.text(), base=case.query)
        else:
            parse(case.text(), base=case.query, allow_service=True)
    except QueryError as refusal:
        return Outcome(Verdict.FAILED, str(refusal)) if wanted else Outcome(Verdict.PASSED)
    except Exception as problem:  # noqa: BLE001 - neither taken nor refused: a failure either way
        return Outcome(Verdict.FAILED, f"{type(problem).__name__}: {problem}")
    return Outcome(Verdict.PASSED) if wanted else Outcome(Verdict.FAILED, "taken, though it is not SPARQL")
