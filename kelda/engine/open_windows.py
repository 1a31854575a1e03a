"""Windows that are equal and were opened at the same instant are one window, however many queries read it.

A query sees the stream from its registration on, so windows that were opened with nothing delivered in
between hold the same elements for ever. They are moved once per step.
"""

from __future__ import annotations

from collections.abc import Callable

from kelda.engine.clock import NEVER
from kelda.engine.intervals import Intervals
from kelda.engine.nodes import Step
from kelda.engine.stream_rows import NO_ROWS, StreamRows
from kelda.engine.track import WindowTrack
from kelda.lang import algebra as A


class _OneTrack(WindowTrack):
    """A track with several readers: what one of them has passed is forgotten when the next step comes."""

    _passed = NEVER

    def take(self, rows: StreamRows) -> None:
        super().passed(self._passed)
        super().take(rows)

    def passed(self, until: int) -> None:
        self._passed = until


class Window:
    """A window on a stream: its intervals and, if a report goes by its changes, its track."""

    def __init__(self, stream: str, intervals: Intervals) -> None:
        self.stream, self.intervals = stream, intervals
        self._track: WindowTrack | None = None
        self._step = -1
        self._failed: Exception | None = None

    @property
    def track(self) -> WindowTrack:
        """Tells when the window changes; to be asked for before the first step."""
        if self._track is None:
            self._track = _OneTrack(self.intervals)
        return self._track

    def move(self, step: Step) -> None:
        """Take the elements of a step, once. If that fails, it fails for all who read the window."""
        if self._failed is not None:
            raise self._failed
        if self._step == step.number:
            return
        self._step = step.number
        rows = step.rows.get(self.stream, NO_ROWS)
        try:
            self.intervals.observe(rows, step.until)
            if self._track is not None:
                self._track.take(rows)
        except Exception as error:
            self._failed = error
            raise


class OpenWindows:
    """The windows that were opened since the last step."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, A.Window, bool], Window] = {}

    def window(self, stream: str, window: A.Window, on_close: bool, make: Callable[[], Intervals]) -> Window:
        """The window of a query; `make` gives its intervals if nobody has opened an equal one."""
        key = (stream, window, on_close)
        if key not in self._open:
            opened = Window(stream, make())
            if opened.intervals.remembers_its_opening:  # and each query's own
                return opened
            self._open[key] = opened
        return self._open[key]

    def close(self) -> None:
        """A step begins: who comes later opens windows of its own."""
        self._open.clear()
