"""Facts of all predicates with given subjects or objects, by one look through the store's own tables."""

from __future__ import annotations

from kelda.ask import any_predicate_kernels as kernels
from kelda.ask.table import Ids
from kelda.store.tables_kernels import OBJECT, SUBJECT
from kelda.store.view import View


def by_any(view: View, graph: int, keys: Ids, *, subjects: bool) -> tuple[Ids, Ids, Ids]:
    """For each fact with one of these subjects (or objects): which, the predicate, and the other end."""
    tables, column = view.store, SUBJECT if subjects else OBJECT
    while True:
        missing, found = kernels.probe_all(
            tables.heap.cells, tables.heap.halves, graph, view.at, column, keys
        )
        if not missing:
            which, predicates, ends = found
            return which, predicates, ends
        tables.index(missing, column)
