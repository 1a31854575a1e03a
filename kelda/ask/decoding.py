"""From ids to terms, each decoded once while it is remembered."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from kelda.ask.table import Ids, Table
from kelda.engine.answer import Value
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import from_text

MOST_REMEMBERED = 1 << 18
FEW = 200  # terms that are decoded one by one

Row = dict[str, Value]


class Decoder:
    """The terms of one dictionary. What an id stands for never changes: terms are only forgotten to save
    room."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._known: dict[int, Value] = {}

    def columns(self, ids: Ids) -> list[list[Value | None]]:
        """The terms, column by column; None for what is unbound."""
        known = self._known
        new = {*ids.ravel().tolist()}
        new.discard(0)
        if len(known) + len(new) > MOST_REMEMBERED:
            known.clear()
        new.difference_update(known)
        if len(new) > FEW:
            self._learn(new)
        elif new:
            some = list(new)
            known.update(zip(some, self._dictionary.terms(some), strict=True))  # type: ignore[arg-type]
        return [list(map(known.get, column)) for column in ids.tolist()]

    def _learn(self, ids: set[int]) -> None:
        """Many at once: hashed terms come from one piece of text, the others from their ids."""
        texts = self._dictionary.entries_of(np.fromiter(ids, np.int64, len(ids)))
        data, offsets = texts.texts.tobytes(), texts.offsets.tolist()
        hashed = texts.ids.tolist()
        for id, begin, end in zip(hashed, offsets[:-1], offsets[1:], strict=True):
            self._known[id] = from_text(data[begin:end].decode())
        others = list(ids.difference(hashed))
        self._known.update(zip(others, self._dictionary.terms(others), strict=True))  # type: ignore[arg-type]

    def rows(self, table: Table) -> list[Row]:
        """Solutions as dictionaries, without what is unbound."""
        columns = self.columns(table.ids)
        if not columns:
            return [{} for _ in range(len(table))]
        rows = list(map(_row_maker(table.columns), *columns))
        if table.ids.all():
            return rows
        return [{name: term for name, term in row.items() if term is not None} for row in rows]


@lru_cache(maxsize=256)
def _row_maker(names: tuple[str, ...]) -> Callable[..., Row]:
    """A function from values to a row of these names: written out, it takes a third of the time of `zip`."""
    arguments = [f"v{i}" for i in range(len(names))]
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, arguments, strict=True))
    maker: Callable[..., Row] = eval(f"lambda {', '.join(arguments)}: {{{items}}}")
    return maker
