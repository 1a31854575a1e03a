"""L4 to L6 evaluated anew for every window: Spark reads, filters and cuts the lines, the driver joins.

A window has the elements of (end - RANGE, end] and ends at a multiple of SLIDE. Rows are kept in order of
time, so that a window is a slice of them; what it joins is found as `again` finds it, by Arrow's hash join on
all cores of the driver.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.baselines.again import Again
from bench.baselines.queries import RANGE, SLIDE


class EachWindow(Again):
    """A query by this way: takes the new rows of each batch, gives the answers of the windows that end."""

    def push(self, rows: pa.Table) -> pa.Table:
        """Rows: s, p (a place in `reads`), o, t (ms), later than those of the batches before."""
        every = rows if self.kept is None else pa.concat_tables([self.kept, rows])
        every = every.take(pc.sort_indices(every, [("t", "ascending")])).combine_chunks()
        which = {
            read: every.filter(pc.equal(every["p"], i)).select(["s", "o", "t"])
            for i, read in enumerate(self.reads)
        }
        times = {read: table["t"].to_numpy() for read, table in which.items()}
        if not len(rows):
            return self._window(which, times, self.until)[:0]
        first = pc.min(every["t"]).as_py() if self.until < 0 else self.until + 1
        self.until = pc.max(every["t"]).as_py()
        ends = np.arange(-(-first // SLIDE) * SLIDE, self.until + 1, SLIDE)
        found = [self._window(which, times, end) for end in ends.tolist()]
        self.kept = every.filter(pc.greater(every["t"], self.until + 1 - RANGE))
        return pa.concat_tables(found) if found else self._window(which, times, self.until)[:0]

    def _window(
        self, which: dict[tuple[str, str], pa.Table], times: dict[tuple[str, str], np.ndarray], end: int
    ) -> pa.Table:
        rows = {}
        for read, table in which.items():
            begin, until = np.searchsorted(times[read], (end - RANGE, end), side="right").tolist()
            rows[read] = table.slice(begin, until - begin)
        answers = self.answer(rows, self._stored)
        return answers.append_column("end", pa.array(np.full(len(answers), end)))
