"""Carrying out SPARQL 1.1 updates on the store.

A request is carried out at one moment, its operations one after another: each sees what those before it did.
If one fails, all of it is undone. Whatever it makes is a function of the stored graphs, the number of the
entry and the time given, so that carrying it out again on the same graphs gives the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import partial

import numpy as np
from pyoxigraph import BlankNode, NamedNode

from kelda.ask.updating import fresh, quads, template
from kelda.ask.updating.loading import Fetch, from_files, load
from kelda.ask.updating.table import Solutions
from kelda.ask.updating.where import Where
from kelda.errors import KeldaError, UsageError
from kelda.lang.deep import with_room
from kelda.lang.scope import visible
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
    Place,
    Transfer,
    Update,
)
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.rdf.times import ms_to_literal
from kelda.store.changes import Changes, Ids
from kelda.store.store import Store
from kelda.store.view import View


def carry_out(
    update: Update,
    store: Store,
    moment: int,
    *,
    entry: int,
    now: int,
    solutions: Solutions,
    fetch: Fetch = from_files,
    kept: Collection[int] = (),
) -> Changes:
    """Carry an update out on a store at a moment; gives the changes that it comes to.

    `entry` is its number in the catalog, and `now` the time (ms) that NOW() gives. `solutions` answers WHERE,
    `fetch` finds what LOAD names. Graphs that are `kept` (by queries that feed them) cannot be changed. A
    `KeldaError` says what failed; then the store is as it was."""
    request = _Request(store, moment, entry, now, solutions, fetch)
    made: list[Changes] = []
    try:
        for number, operation in enumerate(update.operations):
            changes = with_room(update.depth, partial(request.changes, operation, number))
            _check(changes, kept, store)
            made.append(store.apply(changes))
    except BaseException:
        for changes in reversed(made):
            store.apply(quads.undone(changes))
        raise
    return quads.net(made)


def _check(changes: Changes, kept: Collection[int], store: Store) -> None:
    wrong = changes.graph[np.isin(changes.graph, np.fromiter(kept, np.int64))]
    if len(wrong):
        graph = store.dictionary.term(int(wrong[0]))
        raise UsageError(
            f"{graph} holds what a query makes (sink='graph:…'), so no update can change it; drop the query, "
            "or write to another graph"
        )


@dataclass(slots=True)
class _Request:
    """What operations are carried out with."""

    store: Store
    moment: int
    entry: int
    now: int
    solutions: Solutions
    fetch: Fetch

    def changes(self, operation: Operation, number: int) -> Changes:
        """What operation `number` of the request asks for now."""
        try:
            gone, come = self._quads(operation, number)
        except KeldaError:
            if not getattr(operation, "silent", False):
                raise
            gone = come = quads.NONE
        return quads.changes(gone, come, self.moment)

    def _quads(self, operation: Operation, number: int) -> tuple[Ids, Ids]:
        """The quads that go, and those that come."""
        dictionary, stem = self.store.dictionary, f"u{self.entry}o{number}"
        match operation:
            case InsertData(data):
                labels = {
                    var: BlankNode(f"{stem}b{i}") for i, var in enumerate(sorted(template.variables(data)))
                }
                return quads.NONE, template.written(data, labels, dictionary)
            case DeleteData(data):
                return template.written(data, {}, dictionary), quads.NONE
            case Modify():
                return self._modified(operation, stem)
            case Load(source, into):
                graph = None if into is None else dictionary.encode(into)
                return quads.NONE, load(source.value, graph, self.fetch, dictionary)
            case Clear(graphs):
                return self._cleared(graphs), quads.NONE
            case Create(graph):
                if self._of(graph).size:
                    raise UsageError(f"graph {graph} is there already; write CREATE SILENT if it may be")
                return quads.NONE, quads.NONE
            case Transfer():
                return self._transferred(operation)
        raise AssertionError(operation)

    # ------------------------------------------------------------ patterns

    def _modified(self, modify: Modify, stem: str) -> tuple[Ids, Ids]:
        dictionary = self.store.dictionary
        variables = template.variables((*modify.delete, *modify.insert))
        new = sorted(variables - frozenset(visible(modify.where.pattern)))
        new = [var for var in new if var.name.startswith(".")]
        where = Where(dictionary, self.solutions, ms_to_literal(self.now), stem)
        table = where.answer(modify.where, self._view(), variables, bag=bool(new))
        gone = template.filled(modify.delete, table, dictionary)
        for i, var in enumerate(new):
            ids = fresh.blank_nodes(f"{stem}b{i}n", np.arange(len(table)), dictionary)
            table = table.with_column(var.name, ids)
        return gone, template.filled(modify.insert, table, dictionary)

    # ------------------------------------------------------------ whole graphs

    def _cleared(self, graphs: NamedNode | Graphs) -> Ids:
        view = self._view()
        if isinstance(graphs, NamedNode):
            return self._of(graphs)
        held = view.graphs()
        if graphs is Graphs.DEFAULT:
            held = [DEFAULT_GRAPH]
        elif graphs is Graphs.NAMED:
            held = [graph for graph in held if graph != DEFAULT_GRAPH]
        return np.concatenate([quads.NONE, *(quads.of_graph(view, graph) for graph in held)], axis=1)

    def _transferred(self, transfer: Transfer) -> tuple[Ids, Ids]:
        source, target = self._of(transfer.source), self._of(transfer.target)
        if transfer.source is not None and not source.size:
            raise UsageError(
                f"graph {transfer.source} is not there; write {transfer.how.name} SILENT if it may be absent"
            )
        if transfer.source == transfer.target:
            return quads.NONE, quads.NONE
        come = quads.into(self._id(transfer.target), source)
        match transfer.how:
            case How.ADD:
                return quads.NONE, come
            case How.COPY:
                return target, come
        return np.concatenate([target, source], axis=1), come

    def _of(self, place: Place) -> Ids:
        """All that a graph holds."""
        return quads.of_graph(self._view(), self._id(place))

    def _id(self, place: Place) -> int:
        return DEFAULT_GRAPH if place is None else self.store.dictionary.encode(place)

    def _view(self) -> View:
        return self.store.view(self.moment)
