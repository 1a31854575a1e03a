"""From ids to terms, each decoded once while it is remembered."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from kelda.ask.decoding_kernels import move, number
from kelda.ask.table import Ids, Table
from kelda.engine.answer import Value
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.hash_kernels import PADDING, find, gather
from kelda.rdf.ids import from_text

MOST_REMEMBERED = 1 << 18
LEAST_SLOTS = 1 << 10

Row = dict[str, Value]


class Decoder:
    """The terms of one dictionary. What an id stands for never changes: terms are only forgotten to save
    room."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._forget()

    def _forget(self) -> None:
        self._slots = np.zeros((LEAST_SLOTS, 2), np.int64)  # ids and their numbers
        self._known = 0
        self._terms = np.full(LEAST_SLOTS, None, object)  # by number; that of what is unbound is 0

    def columns(self, ids: Ids) -> list[list[Value | None]]:
        """The terms, column by column; None for what is unbound."""
        with self._dictionary.lock:
            if self._known > MOST_REMEMBERED:
                self._forget()
            try:
                numbers = self._numbers(np.ascontiguousarray(ids).ravel())
            except BaseException:
                self._forget()  # there may be numbers without a term
                raise
            return [self._terms[column].tolist() for column in numbers.reshape(ids.shape)]

    def _numbers(self, ids: Ids) -> Ids:
        """Those of some ids, each of which has a term then."""
        numbers, at = np.empty(len(ids), np.int64), 0
        while at < len(ids):
            fresh = np.empty(len(self._slots) // 2 - self._known, np.int64)
            known, at = number(self._slots, self._known, ids, at, numbers, fresh)
            self._learn(fresh[: known - self._known])
            if at < len(ids):
                self._grow()
        return numbers

    def _grow(self) -> None:
        old = self._slots
        self._slots = np.zeros((4 * len(old), 2), np.int64)
        move(old, self._slots)

    def _learn(self, ids: Ids) -> None:
        """The terms of the ids with the next numbers. Hashed terms come from one piece of text, the others
        from their ids."""
        if not len(ids):
            return
        first, size = self._known + 1, len(ids)
        if first + size > len(self._terms):
            more = np.full(max(first + size, 2 * len(self._terms)), None, object)
            more[:first] = self._terms[:first]
            self._terms = more
        tables = self._dictionary.tables
        entries = find(tables.slots, ids)
        hashed = (entries >= 0).nonzero()[0]
        starts, ends = tables.offsets[entries[hashed]], tables.offsets[entries[hashed] + 1]
        lengths = ends - starts
        texts = np.empty(int(lengths.sum()) + PADDING, np.uint8)
        gather(tables.arena, starts, ends, texts)
        data, end = texts.tobytes(), 0
        for place, length in zip((first + hashed).tolist(), lengths.tolist(), strict=True):
            begin, end = end, end + length
            self._terms[place] = from_text(data[begin:end].decode())
        others = (entries < 0).nonzero()[0]
        for place, term in zip((first + others).tolist(), self._dictionary.terms(ids[others]), strict=True):
            self._terms[place] = term
        self._known += size

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
