"""Changes of the stored graphs that are entries of the catalog: loads, clearings, updates."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pyoxigraph import NamedNode

from kelda.ask.solutions import solutions
from kelda.ask.updating import quads
from kelda.ask.updating.loading import Document, from_files, load
from kelda.ask.updating.update import carry_out as carry_out_update
from kelda.engine.batch import Batch
from kelda.engine.incremental import IncrementalEvaluator
from kelda.errors import UsageError
from kelda.kept import reading
from kelda.lang import algebra as A
from kelda.lang import parse_update
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.shards.catalog import DropGraph, GraphOp, Load, Update
from kelda.store.changes import Changes, Ids, cleared
from kelda.store.view import View


def carry_out(op: GraphOp, evaluator: IncrementalEvaluator, kept: Collection[str]) -> list[Batch]:
    """Change the stored graphs as an entry says; what live queries say to it. Graphs that are `kept`, by
    queries that feed them, are not to be changed."""
    store, moment = evaluator.store, evaluator.next_moment
    encode = store.dictionary.encode
    if isinstance(op, Update):
        changes = _updated(op, evaluator, moment, {encode(NamedNode(graph)) for graph in kept})
        return evaluator.changed(changes)
    if op.graph in kept:
        raise UsageError(
            f"<{op.graph}> holds what a query makes (sink='graph:…'): nothing else can change it"
        )
    graph = None if op.graph is None else encode(NamedNode(op.graph))
    if isinstance(op, DropGraph):
        return evaluator.change(cleared(store.view(), DEFAULT_GRAPH if graph is None else graph, moment))
    with reading(op.path):
        if op.size is not None and Path(op.path).stat().st_size != op.size:
            raise ValueError("it is cut off")
    with store.dictionary.lock:
        found = load(op.base or Path(op.path).as_uri(), graph, lambda iri: _document(op), store.dictionary)
    return evaluator.change(quads.changes(quads.NONE, found, moment))


def _document(op: Load) -> Document:
    return Document(Path(op.path), op.name or op.path, op.format)


def _updated(op: Update, evaluator: IncrementalEvaluator, moment: int, kept: Collection[int]) -> Changes:
    dictionary = evaluator.store.dictionary

    def answer(query: A.Query, view: View) -> tuple[tuple[str, ...], Ids]:
        return solutions(query, view, dictionary, now=op.now, seed=op.number)

    def fetch(iri: str) -> Document:
        copy = dict(op.documents).get(iri)
        document = from_files(iri)
        return document if copy is None else Document(Path(copy), document.name)

    return carry_out_update(
        parse_update(op.text, base=op.base),
        evaluator.store,
        moment,
        entry=op.number,
        now=op.now,
        solutions=answer,
        fetch=fetch,
        kept=kept,
    )
