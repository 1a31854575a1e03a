"""Times of rows: a column of a table, read as a mapping says that its times are written."""

from __future__ import annotations

from datetime import timedelta, timezone, tzinfo

import numpy as np
from numpy.typing import NDArray

from kelda.rdf.columnar import moment_kernels as kernels
from kelda.rdf.columnar.cells import MISSING, Cells, addressed
from kelda.rdf.columnar.found import NO_TIME, Ids
from kelda.rdf.columnar.text_kernels import hashed
from kelda.rdf.framings.base import RecordError
from kelda.rdf.framings.mapping import TimeColumn
from kelda.rdf.times import EPOCH, FIRST_MS, LAST_MS

_WAYS = {"iso": kernels.ISO, "epoch-ms": kernels.MILLISECONDS, "epoch-s": kernels.SECONDS}
_DIRECTIVES = {
    "Y": (kernels.YEAR, 4, 4),
    "m": (kernels.MONTH, 1, 2),
    "d": (kernels.DAY, 1, 2),
    "H": (kernels.HOUR, 1, 2),
    "M": (kernels.MINUTE, 1, 2),
    "S": (kernels.SECOND, 1, 2),
    "f": (kernels.FRACTION, 1, 6),
    "z": (kernels.ZONE, 0, 0),
}
_QUARTER = 900_000  # milliseconds, within which clocks are seldom changed
_DAY = 86_400_000


class Moments:
    """Reads times."""

    def __init__(self, time: TimeColumn | None) -> None:
        """`None`: of literals that say when an event happened."""
        self._time = time
        self._zone = timezone.utc if time is None else time.zone
        steps = None if time is None or time.format in _WAYS else steps_of(time.format)
        self._by_value = time is not None and time.format not in _WAYS and steps is None
        if time is None:
            self._way = kernels.LITERAL
        else:
            self._way = _WAYS.get(time.format, kernels.STEPS)
        self._steps = np.array(steps or [], np.int64).reshape(-1, kernels.STEP_SIZE)

    def read(self, cells: Cells, odd: NDArray[np.bool_]) -> Ids:
        """In milliseconds, NO_TIME where there is no value. Rows whose time is not surely one are odd."""
        if self._by_value:
            return self._each(cells, odd)
        ms, local = np.empty(len(odd), np.int64), np.empty(len(odd), np.bool_)
        kernels.moments(addressed(cells), self._way, self._steps, odd, ms, local)
        if self._way != kernels.LITERAL and self._zone is not timezone.utc:
            rows = np.flatnonzero(local)
            ms[rows] -= _offsets(ms[rows], self._zone, rows, odd)
            odd[rows[(ms[rows] < FIRST_MS) | (ms[rows] > LAST_MS)]] = True
        return ms

    def _each(self, cells: Cells, odd: NDArray[np.bool_]) -> Ids:
        """As `read`, by Python: each text once."""
        assert self._time is not None
        ms = np.full(len(odd), NO_TIME)
        ids, checks = np.zeros(len(odd), np.int64), np.zeros(len(odd), np.int64)
        hashed(addressed(cells), np.uint64(0), ids, checks)
        rows = np.flatnonzero((cells.start != MISSING) & ~odd)
        _, first, which = np.unique(ids[rows], return_index=True, return_inverse=True)
        found, bad = np.full(len(first), NO_TIME), np.zeros(len(first), np.bool_)
        for place, row in enumerate(rows[first].tolist()):
            text = cells.text[cells.start[row] : cells.end[row]].tobytes().decode()
            try:
                found[place] = self._time.to_ms(text)
            except RecordError:
                bad[place] = True
        odd[rows[bad[which]]] = True
        odd[rows[checks[rows] != checks[rows[first]][which]]] = True
        ms[rows] = found[which]
        return ms


def _offsets(ms: Ids, zone: tzinfo, rows: Ids, odd: NDArray[np.bool_]) -> Ids:
    """By how much local times are ahead of UTC; those near a change of the clocks are odd."""
    quarters, which = np.unique(ms // _QUARTER, return_inverse=True)
    offsets = np.zeros(len(quarters), np.int64)
    unsure = np.zeros(len(quarters), np.bool_)
    for place, quarter in enumerate(quarters.tolist()):
        begin = quarter * _QUARTER
        if begin < FIRST_MS + _DAY or begin > LAST_MS - _DAY:
            unsure[place] = True
            continue
        offsets[place], last = (_offset(at, zone) for at in (begin, begin + _QUARTER - 1))
        unsure[place] = offsets[place] != last
    odd[rows[unsure[which]]] = True
    offset: Ids = offsets[which]
    return offset


def _offset(ms: int, zone: tzinfo) -> int:
    naive = (EPOCH + timedelta(milliseconds=ms)).replace(tzinfo=zone)
    ahead = naive.utcoffset()
    assert ahead is not None
    return ahead // timedelta(milliseconds=1)


def steps_of(format: str) -> list[tuple[int, int, int]] | None:
    """The steps of a pattern; None for what they cannot say as `strptime` means it: names of months, and
    whatever it may read in several ways."""
    steps: list[tuple[int, int, int]] = []
    at = 0
    while at < len(format):
        c = format[at]
        if c == "%" and format[at + 1 : at + 2] != "%":
            directive = _DIRECTIVES.get(format[at + 1 : at + 2])
            if directive is None:
                return None
            steps.append(directive)
            at += 2
            continue
        blank = c.isspace()
        if not c.isascii() or c.isdigit() or (blank and (c != " " or format[at + 1 : at + 2].isspace())):
            return None
        steps.append((kernels.CHARACTER, ord(c), 0))
        at += 2 if c == "%" else 1
    for place, (step, _least, most) in enumerate(steps):
        follows = steps[place + 1][0] if place + 1 < len(steps) else kernels.CHARACTER
        if step == kernels.ZONE and place + 1 < len(steps):
            return None
        if follows == kernels.CHARACTER or step == kernels.CHARACTER:
            continue
        if step == kernels.FRACTION and follows != kernels.ZONE:
            return None
        if step not in (kernels.YEAR, kernels.FRACTION) and follows != kernels.ZONE:
            steps[place] = (step, most, most)  # no more digits can be left to what follows
    return steps
