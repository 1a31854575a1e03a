"""A mapping compiled into a program over columns of cells.

    program = Program.of(mapping)                                 None: this mapping has no way by columns
    cells = [... one `Cells` for each of program.columns ...]     in that order, `size` rows each
    odd = np.zeros(size, np.bool_)                                True: not to be read here
    found, records = program.run(cells, size, odd, how, asked, dictionary, ordinal)
    # now `odd` has more rows: those must be read by the framing, and come back by `weave.woven`:
    woven(found, records, [Odd(first, events) for first, end in runs(odd)], dictionary)

Row i is record number `ordinal + i` of the stream. A cell says what the row has in a column as the framing
would say it, as text: one that is blank, or that the mapping calls missing, is found to be so here, one that
starts at MISSING has no value. Texts must be valid UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.rdf.columnar.cells import Cells
from kelda.rdf.columnar.found import NO_TIME, Found, Ids
from kelda.rdf.columnar.moments import Moments
from kelda.rdf.columnar.rows_kernels import TRIPLE_SIZE, triples_of
from kelda.rdf.columnar.terms import Batch, Column, Text, term_of, text_of
from kelda.rdf.columnar.terms import Term as Maker
from kelda.rdf.columnar.text_kernels import present
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Reading
from kelda.rdf.framings.blanks import scope_of
from kelda.rdf.framings.eventtime import TIME_PREDICATES
from kelda.rdf.framings.eventtime import to_ms as said_ms
from kelda.rdf.framings.mapping import (
    BlankMaker,
    Constant,
    IriMaker,
    LiteralMaker,
    TableMapping,
    TermMaker,
)
from kelda.rdf.ids import encode, padded
from kelda.rdf.skim import Asked
from kelda.rdf.skim_kernels import RULE_P


class Program:
    """What a mapping makes of rows. It keeps nothing of them: threads may share it."""

    def __init__(self, mapping: TableMapping, terms: dict[object, tuple[int, Maker]]) -> None:
        self.columns = mapping.columns
        position = {name: place for place, name in enumerate(mapping.columns)}
        self._terms = [term for _, term in terms.values()]
        self._triples = [
            (terms[_key(s)][0], predicate, terms[_key(o)][0]) for s, predicate, o in mapping.triples
        ]
        self._graph = -1 if mapping.graph is None else terms[_key(mapping.graph)][0]
        words = [word.encode() for word in sorted(mapping.missing)]
        self._missing = padded(b"".join(words))
        self._offsets = np.cumsum([0, *map(len, words)])
        self._time = None
        if mapping.time_column is not None:
            self._time = position[mapping.time_column.column], Moments(mapping.time_column)
        self._said = [_Said(predicate.value, o, position) for _, predicate, o in mapping.triples]

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, mapping: TableMapping) -> Program | None:
        """The program of a mapping; None if it has to be left to the framing."""
        position = {name: place for place, name in enumerate(mapping.columns)}
        terms: dict[object, tuple[int, Maker]] = {}
        makers = [maker for s, _, o in mapping.triples for maker in (s, o)]
        for maker in makers if mapping.graph is None else [*makers, mapping.graph]:
            if _key(maker) not in terms:
                term = term_of(maker, position)
                if term is None:
                    return None
                terms[_key(maker)] = len(terms), term
        return cls(mapping, terms)

    def run(
        self,
        cells: Sequence[Cells],
        size: int,
        odd: NDArray[np.bool_],
        how: Reading,
        asked: Asked,
        dictionary: Dictionary,
        ordinal: int,
    ) -> tuple[Found, Ids]:
        """What the rows that are not odd say, and the row of each event; `odd` then also has those that are
        to be read by the framing. Nothing is told to `how`."""
        scope = scope_of(how.name, 0).removesuffix("0").encode()
        batch = Batch(cells, size, odd, dictionary.seed, scope, ordinal)
        present(batch.texts, batch.starts, batch.ends, self._missing, self._offsets, odd)
        triples, wanted = self._wanted(asked, dictionary.seed)
        made = [term.made(batch, bool(wants)) for term, wants in zip(self._terms, wanted, strict=True)]
        times = self._times(batch, made, how)
        if how.needs_time:
            odd[times == NO_TIME] = True
        ids = np.array([column.ids for column in made], np.int64).reshape(len(made), size)
        if self._graph >= 0:
            odd[ids[self._graph] == 0] = True
        most = size * len(triples)
        columns, records = np.empty((5, most), np.int64), np.empty(size, np.int64)
        time, event = np.empty(most, np.int64), np.empty(most, np.int64)
        needed = np.zeros(ids.shape, np.bool_)
        out = (time, event, columns, records, needed)
        count, found, events = triples_of(ids, triples, self._graph, tuple(asked), times, odd, out)
        self._know(made, needed, dictionary)
        s, p, o, g, rows = columns[:, :found]
        for predicate in {p for _, p, _ in self._triples} if found else ():
            dictionary.encode(predicate)
        sent = None if found == count else rows
        graph = None if self._graph < 0 else g
        return Found(count, time[:count], event[:count], sent, s, p, o, graph), records[:events]

    def _wanted(self, asked: Asked, seed: int) -> tuple[Ids, NDArray[np.bool_]]:
        """The triples as the kernel has them, and which terms those have that somebody may ask for."""
        rules = asked.rules[:, RULE_P]
        triples = np.zeros((len(self._triples), TRIPLE_SIZE), np.int64)
        wanted = np.zeros(len(self._terms), np.bool_)
        for place, (s, predicate, o) in enumerate(self._triples):
            id = encode(predicate, seed)
            is_asked = bool(((rules == 0) | (rules == id)).any())
            triples[place] = s, id, o, is_asked
            if is_asked:
                wanted[[s, o]] = True
        if self._graph >= 0:
            wanted[self._graph] = wanted.any()
        return triples, wanted

    def _times(self, batch: Batch, made: Sequence[Column], how: Reading) -> Ids:
        """The time of each row, NO_TIME if it says none. Rows that should say one are odd."""
        if self._time is not None:
            column, moments = self._time
            times = moments.read(batch.column(column), batch.odd)
            batch.odd[times == NO_TIME] = True
            return times
        times = np.full(batch.size, NO_TIME)
        if how.time_predicate is not None:
            times = self._latest(how.time_predicate, batch, made, True)
            batch.odd[times == NO_TIME] = True
            return times
        for predicate in reversed(TIME_PREDICATES):
            here = self._latest(predicate, batch, made, False)
            times = np.where(here == NO_TIME, times, here)
        return times

    def _latest(self, predicate: str, batch: Batch, made: Sequence[Column], needed: bool) -> Ids:
        """The latest time that this predicate gives, in each row. If it is `needed`, each value must be one;
        else what is no literal is none."""
        times = np.full(batch.size, NO_TIME)
        for said, (s, _, o) in zip(self._said, self._triples, strict=True):
            if said.predicate != predicate:
                continue
            there = (made[s].ids != 0) & (made[o].ids != 0)
            if not said.is_literal:
                if needed:
                    batch.odd[there] = True
                continue
            before = batch.odd.copy()
            here = said.times(batch)
            # A value that is no time matters only where it is said.
            batch.odd[~there & ~before] = False
            np.maximum(times, here, out=times, where=there)
        return times

    def _know(self, made: Sequence[Column], needed: NDArray[np.bool_], dictionary: Dictionary) -> None:
        """Have the terms that are needed in the dictionary."""
        for column, rows in zip(made, needed, strict=True):
            some = np.flatnonzero(rows & (column.ids > 0))
            if len(some):
                dictionary.add_batch(column.ids[some], column.text, column.begins[some], column.ends[some])


class _Said:
    """When a triple says that the event was, if its predicate is one that says it."""

    def __init__(self, predicate: str, maker: TermMaker, position: dict[str, int]) -> None:
        self.predicate = predicate
        self.is_literal = isinstance(maker, LiteralMaker) or (
            isinstance(maker, Constant) and isinstance(maker.term, Literal)
        )
        self._ms: int | None = None
        self._text: Text | None = None
        self._moments = Moments(None)
        if isinstance(maker, Constant) and isinstance(maker.term, Literal):
            self._ms = said_ms(maker.term.value)
        elif isinstance(maker, LiteralMaker):
            self._text = text_of(maker.template, position)
            self._moments = Moments(maker.time)

    def times(self, batch: Batch) -> Ids:
        """In milliseconds; rows in which it is no time are odd."""
        if self._text is not None:
            return self._moments.read(self._text.cells(batch), batch.odd)
        if self._ms is None:
            batch.odd[:] = True
        return np.full(batch.size, NO_TIME if self._ms is None else self._ms)


def _key(maker: TermMaker) -> object:
    """The same for makers of the same terms."""
    if isinstance(maker, Constant):
        return str(maker.term)
    if isinstance(maker, LiteralMaker):
        return tuple(maker.template.parts), maker.datatype, maker.language, maker.time
    if isinstance(maker, IriMaker | BlankMaker):
        return type(maker), tuple(maker.template.parts)
    return maker
