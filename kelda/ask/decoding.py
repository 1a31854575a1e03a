"""From ids to terms, each decoded once while it is remembered."""

from __future__ import annotations

import numpy as np

from kelda.ask.table import Table
from kelda.engine.answer import Value
from kelda.rdf.dictionary import Dictionary

MOST_REMEMBERED = 1 << 18


class Decoder:
    """The terms of one dictionary. What an id stands for never changes, so nothing is ever forgotten but to
    save room."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._known: dict[int, Value] = {}

    def terms(self, ids: list[int]) -> list[Value | None]:
        """The terms in order; None for what is unbound."""
        known = self._known
        new = [id for id in {*ids}.difference(known) if id]
        if new:
            if len(known) + len(new) > MOST_REMEMBERED:
                known.clear()
                new = [id for id in {*ids} if id]
            known.update(zip(new, self._dictionary.terms(np.array(new, np.int64)), strict=True))  # type: ignore[arg-type]
        return list(map(known.get, ids))

    def rows(self, table: Table) -> list[dict[str, Value]]:
        """Solutions as dictionaries, without what is unbound."""
        columns = [self.terms(ids.tolist()) for ids in table.ids]
        if not columns:
            return [{} for _ in range(len(table))]
        names = table.columns
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if table.ids.all():
            return rows
        return [{name: term for name, term in row.items() if term is not None} for row in rows]
