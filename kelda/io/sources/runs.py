"""Where the last event of plain N-Quads before some position ends, found from there backwards.

Which lines are one event is a matter of neighbours: the state of the splitter behind a whole line that is
in order does not depend on the lines before it. So the cuts behind such a line can be found without
splitting all that comes before, which is most of the text of a piece.
"""

from __future__ import annotations

from kelda.rdf.framings.nquads import RunSplitter, thing_of
from kelda.rdf.framings.tsnt import TIMED, says_nothing

BACK = 1 << 10  # bytes that are looked at first


def last_cut(data: bytes, target: int, at_end: bool) -> int:
    """The last boundary between events in `data`, which begins with one, up to `target`; 0 if there is none.

    `at_end`: nothing follows `data`.
    """
    back = BACK
    stop = data.find(b"\n", target) + 1 or len(data)  # a boundary at the target shows in the line behind it
    while True:
        start = _line_in_order(data, target - back, target) if back < target else 0
        if start < target:
            cuts = RunSplitter().cuts(data[start:stop], at_end and stop == len(data))
            found = [start + cut.end for cut in cuts if start + cut.end <= target]
            if found:
                return found[-1]
        if start == 0:
            return 0
        back *= 8


def _line_in_order(data: bytes, begin: int, target: int) -> int:
    """Where the first line behind `begin` starts that says what it is about; `target` if none does."""
    start = data.find(b"\n", begin, target) + 1
    while 0 < start < target:
        end = data.find(b"\n", start) + 1
        line = data[start : end or len(data)]
        if not says_nothing(line) and (TIMED.match(line) or thing_of(line) is not None):
            return start
        start = end
    return target
