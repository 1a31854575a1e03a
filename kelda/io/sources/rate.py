"""A stream that is taken slowly: at most so many records a second, whatever there is."""

from __future__ import annotations

from kelda.io.sources.reader import Around, Now, Offset, Reader, wall

BURST = 1.0  # seconds of silence that may be made up for at once


class AtMost(Around):
    """Another reader, at most `rate` records a second. A piece that is larger than what is allowed is
    handed out whole, and what comes behind it waits the longer."""

    def __init__(self, reader: Reader, rate: int, *, now: Now = wall) -> None:
        super().__init__(reader)
        self._rate, self._now = rate, now
        self._allowed, self._since = 1.0, now()

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        now = self._now()
        earned = self._rate * (now - self._since)
        self._allowed = min(max(1.0, self._rate * BURST), self._allowed + earned)
        self._since = now
        if self._allowed < 1:
            return at
        most = int(self._allowed)
        end = self.reader.latest(at, most if max_records is None else min(most, max_records))
        self._allowed -= end["records"] - at["records"]
        return end
