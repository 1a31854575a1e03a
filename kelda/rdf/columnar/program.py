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

import numpy as np
from numpy.typing import NDArray

from kelda.rdf.columnar.cells import MISSING, Cells
from kelda.rdf.columnar.found import Found, Ids, found_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Reading, RecordError
from kelda.rdf.framings.mapping import TableMapping
from kelda.rdf.framings.tabular import row_event
from kelda.rdf.skim import Asked


class Program:
    """What a mapping makes of rows. It keeps nothing of them: threads may share it."""

    def __init__(self, mapping: TableMapping) -> None:
        self.mapping = mapping
        self.columns = mapping.columns

    @classmethod
    def of(cls, mapping: TableMapping) -> Program | None:
        """The program of a mapping; None if it has to be left to the framing."""
        return cls(mapping)

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
        events, records = [], []
        missing = self.mapping.missing
        for i in np.flatnonzero(~odd).tolist():
            texts = {
                name: None if start[i] == MISSING else text[start[i] : end[i]].tobytes().decode()
                for name, (text, start, end) in zip(self.columns, cells, strict=True)
            }
            row = {n: t for n, t in texts.items() if t is not None and t.strip() and t not in missing}
            try:
                events.append(row_event(row.get, ordinal + i, how))
                records.append(i)
            except RecordError:
                odd[i] = True
        return found_of(events, dictionary), np.array(records, np.int64)
