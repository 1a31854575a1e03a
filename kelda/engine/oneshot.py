"""A query over stored graphs, asked once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    Triple,
)

from kelda.engine.answer import Value
from kelda.engine.budget import NO_LIMIT, Budget
from kelda.engine.deltas import Ids
from kelda.engine.functions import check_functions
from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.to_sparql import (
    NOTHING,
    WINDOW_PREFIX,
    WindowGraph,
    has_graph_by_graph,
    to_sparql,
    variable_name,
)
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import from_store, triple_from_store
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.ntriples import ids_of
from kelda.rdf.operators import Functions
from kelda.rdf.times import ms_to_literal


@dataclass(frozen=True, slots=True)
class Solutions:
    """The table of a SELECT: rows in result order, unbound variables absent."""

    variables: list[str]
    rows: list[dict[str, Value]]


Result = Solutions | bool | list[Triple | Quad]

AT_ONCE = 1 << 14  # rows of a table that are made ids together
MANY_TERMS = 1 << 20  # whose ids are remembered meanwhile

MERGE = WINDOW_PREFIX + "merge"


@roomy()
def evaluate(query: A.Query, store: GraphStore, *, now: int | None = None) -> Result:
    """Answer `query` (which has no windows) over `store`. `now` (ms) fixes NOW()."""
    if any(isinstance(t, A.QuadPattern) for t in query.template):  # SPARQL 1.1 builds no quads: we do
        found = ask(store, _text(as_select(query), store, now), query)
        assert isinstance(found, Solutions)
        built: dict[Triple | Quad, None] = {}
        for i, row in enumerate(found.rows):
            built.update(dict.fromkeys(instantiate(query.template, row, f"s{i}")))
        return list(built)
    return ask(store, _text(query, store, now), query)


def as_select(query: A.Query) -> A.Query:
    """The solutions that a CONSTRUCT query fills its template with."""
    return replace(query, form=A.Form.SELECT, template=())


@roomy()
def evaluate_ids(query: A.Query, store: GraphStore, dictionary: Dictionary) -> Ids:
    """The table of a SELECT as ids, a row of the answer for each variable; 0 where it is unbound."""
    with _asked(store, _text(query, store, None), query) as found:
        assert isinstance(found, QuerySolutions)
        places = [i for i, _ in _shown(found)]
        known: dict[Value | None, int] = {None: 0}
        parts = [np.zeros((len(places), 0), np.int64)]
        while some := list(islice(found, AT_ONCE)):
            if len(known) > MANY_TERMS:
                known = {None: 0}
            part = np.empty((len(places), len(some)), np.int64)
            for ids, place in zip(part, places, strict=True):
                values = [solution[place] for solution in some]
                fresh = [value for value in set(values) if value not in known]
                terms = [from_store(value) for value in fresh if value is not None]
                known.update(zip(fresh, ids_of(terms, dictionary), strict=True))
                ids[:] = [known[value] for value in values]
            parts.append(part)
    return np.concatenate(parts, axis=1)


def _text(query: A.Query, store: GraphStore, now: int | None) -> str:
    check_functions(query)
    at = None if now is None else ms_to_literal(now)
    return to_sparql(query, now=at, named_graphs=named_graphs(query, store), needs=store.needs)


def named_graphs(query: A.Query, store: GraphStore) -> tuple[NamedNode, ...] | None:
    """The graphs that GRAPH ?g of `query` ranges over, if its text must name them; never windows."""
    if not has_graph_by_graph(query):
        return None
    if query.dataset.named is not None:
        return query.dataset.named
    graphs = tuple(store.named_graphs())
    if any(isinstance(g, BlankNode) for g in graphs):  # which no text can name
        return None
    return tuple(g for g in graphs if isinstance(g, NamedNode) and not g.value.startswith(WINDOW_PREFIX))


@roomy(2)
def ask(
    store: GraphStore,
    text: str,
    query: A.Query,
    *,
    windows: tuple[WindowGraph, ...] = (),
    default_windows: str | None = None,
    functions: Functions | None = None,
    budget: Budget = NO_LIMIT,
) -> Result:
    """Run SPARQL text over the query's dataset, to which windows are added as named graphs.

    `default_windows` names a graph that belongs to the default graph and shares no triple with it. The
    result must fit into the `budget`."""
    with _asked(store, text, query, windows, default_windows, functions) as found:
        return _result(found, budget)


@contextmanager
def _asked(
    store: GraphStore,
    text: str,
    query: A.Query,
    windows: tuple[WindowGraph, ...] = (),
    default_windows: str | None = None,
    functions: Functions | None = None,
) -> Iterator[QueryBoolean | QuerySolutions | QueryTriples]:
    """What the store answers, to be read inside."""
    default, named = query.dataset.default, query.dataset.named
    default_graphs: list[NamedNode | BlankNode | DefaultGraph] = (
        [DefaultGraph()] if default is None else list(default)
    )
    merged = len(default_graphs) > 1
    if merged:  # a merge has each triple once
        store.merge(default_graphs, into=MERGE)
        default_graphs = [NamedNode(MERGE)]
    if default_windows is not None:
        default_graphs.append(NamedNode(default_windows))
    named_graphs: list[NamedNode | BlankNode] | None = None
    if named is not None:
        named_graphs = list(named)
        for window in windows:
            named_graphs += [NamedNode(window.graph), NamedNode(window.rows)]
    try:
        yield store.query(
            text,
            base=query.base,
            default_graphs=default_graphs,
            named_graphs=named_graphs,
            functions=functions,
        )
    finally:
        if merged:
            store.remove_graph(MERGE)


def _result(found: QueryBoolean | QuerySolutions | QueryTriples, budget: Budget) -> Result:
    if isinstance(found, QueryBoolean):
        return bool(found)
    if isinstance(found, QueryTriples):
        return [triple_from_store(t) for t in found]
    assert isinstance(found, QuerySolutions)
    return _table(found, budget)


def _table(found: QuerySolutions, budget: Budget) -> Solutions:
    shown = _shown(found)
    rows: list[dict[str, Value]] = []
    for solution in found:
        if len(rows) % AT_ONCE == 0:  # each is counted twice: as a solution, and as an answer
            budget.check(budget.of_answers(2 * len(rows), len(shown)))
        row = {}
        for i, name in shown:
            value = solution[i]
            if value is not None:
                row[name] = from_store(value)
        rows.append(row)
    return Solutions([n for _, n in shown], rows)


def _shown(found: QuerySolutions) -> list[tuple[int, str]]:
    """The places and names of the variables that were asked for."""
    names = [v.value for v in found.variables]
    return [(i, name) for i, name in enumerate(names) if not name.startswith(NOTHING)]


def instantiate(
    template: tuple[A.TriplePattern, ...], row: dict[str, Value], fresh: str
) -> list[Triple | Quad]:
    """The triples (in GRAPH: quads) that a CONSTRUCT template makes of one solution; incomplete ones are
    left out.

    `fresh` makes the labels of the template's blank nodes unique to the solution.
    """

    def value(term: A.TermOrVar) -> Value | None:
        if isinstance(term, A.Var):
            found = row.get(variable_name(term))
            if found is None and term.name.startswith("."):
                return BlankNode(f"{fresh}{variable_name(term)}")
            return found
        assert not isinstance(term, A.Param)
        return term

    triples: list[Triple | Quad] = []
    for t in template:
        s, p, o = value(t.s), value(t.p), value(t.o)
        if s is None or o is None or isinstance(s, Literal | Triple) or not isinstance(p, NamedNode):
            continue
        if not isinstance(t, A.QuadPattern):
            triples.append(Triple(s, p, o))
            continue
        graph = value(t.graph)
        if isinstance(graph, NamedNode | BlankNode):
            triples.append(Quad(s, p, o, graph))
    return triples
