"""N-Quads by columns: lines with times, and plain ones of which those about the same thing are one event."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar import nquads_kernels as kernels
from kelda.rdf.columnar.found import NO_TIME, Found, found_of
from kelda.rdf.columnar.weave import Odd, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.eventtime import TIME_PREDICATES
from kelda.rdf.framings.nquads import NQUADS, thing_of
from kelda.rdf.framings.tsnt import TIMED, says_nothing
from kelda.rdf.hash_kernels import COLLISION, NEEDS_ROOM
from kelda.rdf.ids import encode
from kelda.rdf.skim import Asked

FEW = 64  # lines that the kernel asked about: where more than a fourth are such, the framing reads it all


def read(chunk: Chunk, how: Reading, asked: Asked, dictionary: Dictionary) -> Found | None:
    """See `kelda.rdf.columnar.found.Read`."""
    data = chunk.data
    predicates = TIME_PREDICATES if how.time_predicate is None else (how.time_predicate,)
    time_ids = _ids(predicates)
    if time_ids is None or _has_long(data, how.longest):
        return None
    buffer = np.zeros(len(data) + 1 + WIDTH, np.uint8)
    buffer[: len(data)] = np.frombuffer(data, np.uint8)
    buffer[len(data)] = ord("\n")
    most = len(data) // kernels.SHORTEST + 2
    times, events, records = (np.empty(most, np.int64) for _ in range(3))
    columns = np.empty((5, most), np.int64)
    names = np.zeros((kernels.NAMES, kernels.NAME_COLUMNS), np.int64)
    state = np.zeros(kernels.STATE_SIZE, np.int64)
    state[-kernels.MOST_PREDICATES :] = NO_TIME
    odd: list[tuple[int, int, int, int]] = []  # begin, end, line and number of runs of records
    found, seed, questions = (times, events, columns, records), np.uint64(dictionary.seed), 0
    needs, is_named = how.needs_time, how.time_predicate is not None
    last = -1
    while status := kernels.read(
        buffer,
        len(data),
        tuple(asked),
        time_ids,
        needs,
        is_named,
        names,
        seed,
        tuple(dictionary.tables),
        found,
        state,
    ):
        begin, end = int(state[kernels.BEGIN]), int(state[kernels.END])
        if status == kernels.ASK:
            questions += 1
            if questions > FEW and 4 * questions > state[kernels.LINES]:
                return found_of(list(NQUADS.read(chunk, how)), dictionary)
            _tell(data[begin : end + 1], begin, state)
        elif status == kernels.ODD:
            line, record = int(state[kernels.FIRST_LINE]), int(state[kernels.RECORD])
            if odd and last + 1 == record:  # they are read together
                begin, _, line, first = odd.pop()
            else:
                first = record
            odd.append((begin, end, line, first))
            last = record
        elif status == NEEDS_ROOM:
            dictionary.make_room(4, end - begin)
        else:
            assert status == COLLISION
            dictionary.collision(int(state[kernels.RECORD]), buffer[begin:end].tobytes())
    rows, many, count = state[[kernels.ROWS, kernels.FOUND, kernels.EVENTS]].tolist()
    s, p, o, g, row = columns[:, :many]
    by_columns = Found(
        rows, times[:rows], events[:rows], None if many == rows else row, s, p, o, g if g.any() else None
    )
    by_framing = [
        Odd(record, list(NQUADS.read(Chunk(chunk.first_line + line, 0, b"", data[begin:end]), how)))
        for begin, end, line, record in odd
    ]
    return woven(by_columns, records[:count], by_framing, dictionary)


@lru_cache(16)
def _ids(predicates: tuple[str, ...]) -> NDArray[np.int64] | None:
    try:
        return np.array([encode(NamedNode(predicate)) for predicate in predicates], np.int64)
    except ValueError:
        return None


def _has_long(data: bytes, longest: int) -> bool:
    """Whether some line is so long that it is broken, whatever it says."""
    return len(data) > longest and any(len(line) >= longest for line in data.split(b"\n"))


def _tell(line: bytes, begin: int, state: NDArray[np.int64]) -> None:
    """What a line is that the kernel is not sure about."""
    verdict = kernels.PLAIN
    if says_nothing(line):
        verdict = kernels.NOTHING
    elif TIMED.match(line):
        verdict = kernels.TIMED
    elif (thing := thing_of(line)) is None:
        verdict = kernels.BROKEN
    else:  # wherever it stands on the line, its bytes are the same
        state[[kernels.THING, kernels.THING_SIZE]] = begin + line.index(thing), len(thing)
    state[kernels.VERDICT] = verdict
