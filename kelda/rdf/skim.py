"""Skimming: text with times to the ids of the statements that somebody asks for, and the times of all.

As `ntriples.blocks` with `timed`, the lines accepted are those of `framings/tsnt.py`, and every other line is
in `rejects`; but a statement that no rule asks for costs little more than a look at its
bytes. The graph of a statement is checked, and passed over: nobody asks a stream for it.

N-Quads whose lines have times are the same, as long as each line has one: else that is `Untimed`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.rdf import skim_kernels as kernels
from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Reject
from kelda.rdf.framings.base import Flow
from kelda.rdf.framings.tsnt import TIMED, says_nothing
from kelda.rdf.keyset import KeySet
from kelda.rdf.ntriples import timed_reader

BLOCK = 1 << 20
BLOCKS = 4  # of which what was found is kept, at the most

Rule = tuple[int | None, KeySet | None, KeySet | None]  # the predicate, the subjects, the objects; None: any


class Asked(NamedTuple):
    """Rules, any of which a statement must match to be asked for: as the kernel has them."""

    rules: NDArray[np.int64]
    tables: NDArray[np.int64]

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> Asked:
        rows, tables, at = [], [np.zeros(0, np.int64)], 0
        for predicate, *sets in rules:
            row = [predicate or 0]
            for keys in sets:
                row += [0, -1] if keys is None else [at, len(keys.table) - 1]
                if keys is not None:
                    tables.append(keys.table)
                    at += len(keys.table)
            rows.append(row)
        return cls(np.array(rows, np.int64).reshape(-1, kernels.RULE_SIZE), np.concatenate(tables))


class Untimed(Exception):
    """A line without a time where that is no mistake: it is to be read in another way, with those around
    it."""


class Skimmed(NamedTuple):
    """A part of a text, as views that the next part is written over.

    Its statements are `rows` many. Runs of them with one time begin at `heads` (counted from the beginning of
    the text; a run may go on from the part before). Statement `found[i]` has the terms s[i], p[i], o[i].
    """

    rows: int
    heads: NDArray[np.int64]
    times: NDArray[np.int64]
    found: NDArray[np.int64]
    s: NDArray[np.int64]
    p: NDArray[np.int64]
    o: NDArray[np.int64]
    rejects: list[Reject]
    know: Callable[[NDArray[np.int64]], None]  # have the terms of some that were found in the dictionary


class Skimmer:
    """Reads one text after another, in memory that it keeps (fresh memory is slow)."""

    def __init__(self, dictionary: Dictionary) -> None:
        self.dictionary = dictionary
        self._read_line = timed_reader(dictionary)
        self._names = np.zeros((kernels.NAMES, kernels.NAME_COLUMNS), np.int64)
        self._known = (
            self._names,
            np.zeros((kernels.NAMES, kernels.NAME_STRIDE), np.uint8),
            np.zeros((kernels.NAMES, kernels.TAIL_STRIDE), np.uint8),
            np.zeros((kernels.HOSTS, kernels.HOST_STRIDE), np.uint8),
            np.zeros(kernels.HOSTS, np.int64),
        )
        self._room(BLOCK)

    def _room(self, size: int) -> None:
        """Have room for a block of so many bytes."""
        rows = BLOCKS * (size // kernels.SHORTEST + 1)
        self._size = size
        self._buffer = np.zeros(size + 1 + WIDTH + 2 * size + WIDTH, np.uint8)
        self._heads, self._times = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
        self._columns, self._spans = np.zeros((5, rows), np.int64), np.zeros((8, rows), np.int32)

    def read(
        self, text: Flow, asked: Asked, *, source: str = "", first_line: int = 1, may_lack_times: bool = False
    ) -> Iterator[Skimmed]:
        """Read a text, part by part; `Untimed` if lines may lack times and one does."""
        state = np.zeros(kernels.STATE_SIZE, np.int64)
        state[kernels.LINE], state[kernels.AT], state[kernels.UNTIL] = first_line, text.at, text.end
        kernels.ask(self._names, asked.rules)
        rejects: list[Reject] = []
        before, final = 0, False
        while True:
            status = self._skim(text.file, final, asked, state)
            if status == kernels.ASK:
                rejects += self._ask(state, source, may_lack_times)
                continue
            done = final and status == kernels.MORE
            longer = not final and status == kernels.MORE and state[kernels.SIZE] == self._size
            if done or longer or status == kernels.FULL:
                rows = int(state[kernels.ROWS])
                yield self._skimmed(rows - before, state, rejects)
                state[[kernels.RUNS, kernels.FOUND, kernels.KEPT]] = 0
                before, rejects = rows, []
            if done:
                return
            if longer:  # a line, than a block
                beginning = self._buffer[: self._size]
                self._room(2 * self._size)
                self._buffer[: len(beginning)] = beginning
            if status == kernels.MORE:
                text.at = int(state[kernels.AT])
                more = text.fill(self._buffer.data[int(state[kernels.SIZE]) : self._size])
                state[kernels.SIZE] += more
                state[kernels.AT] = text.at
                final = not more

    def _skim(self, file: int, final: bool, asked: Asked, state: NDArray[np.int64]) -> int:
        block = (self._buffer, self._size, file, final)
        found = (self._columns, self._spans, self._heads, self._times)
        seed = np.uint64(self.dictionary.seed)
        status: int = kernels.skim(block, tuple(asked), self._known, found, seed, state)
        return status

    def _ask(self, state: NDArray[np.int64], source: str, may_lack_time: bool) -> list[Reject]:
        """Let pyoxigraph read the line that the kernel is not sure about."""
        begin, end, number = state[[kernels.BEGIN, kernels.END, kernels.LINE]].tolist()
        line = self._buffer[begin:end].tobytes()
        if may_lack_time and not says_nothing(line) and not TIMED.match(line):
            raise Untimed
        ids, reason = self._read_line(line)
        state[kernels.VERDICT] = kernels.NO_STATEMENT if ids is None else kernels.STATEMENT
        if ids is not None:
            s, p, o, _, time = ids
            state[[kernels.SUBJECT, kernels.PREDICATE, kernels.OBJECT, kernels.TIME]] = s, p, o, time
        return [Reject.of(source, number, reason, line)] if reason else []

    def _skimmed(self, rows: int, state: NDArray[np.int64], rejects: list[Reject]) -> Skimmed:
        runs, found = int(state[kernels.RUNS]), int(state[kernels.FOUND])
        s, p, o, _, row = self._columns[:, :found]

        def know(some: NDArray[np.int64]) -> None:
            self.dictionary.add_rows(self._columns, self._spans, some, self._buffer)

        return Skimmed(rows, self._heads[:runs], self._times[:runs], row, s, p, o, rejects, know)
