"""Silence of a stream that somebody else reads: after a while it says so, and the others do not wait for it.

A DataFrame is read by Spark, and nobody asks it whether there is more. The driver tells what it has `heard`
with each batch; a reader without records stands for the stream's silence in the offset of the other streams,
as `SayingWhenIdle` does for readers: a batch that is read again has the same idle pieces.
"""

from __future__ import annotations

from kelda.io.sources.reader import Now, Offset, Piece, wall

BEFORE_ALL = -1  # number of an idle piece: what the stream says in the same batch came after its silence


class Silence:
    """Idle pieces of a stream, one each time that it has been silent for `idle_ms`."""

    format = ""

    def __init__(self, number: int, idle_ms: int, *, now: Now = wall) -> None:
        self.number, self._idle, self._now = number, idle_ms / 1000, now
        self._heard, self._told = now(), 0  # the piece that tells of this silence; 0: none does yet

    def heard(self) -> None:
        """The stream has said something just now."""
        self._heard, self._told = self._now(), 0

    def start(self) -> Offset:
        return {"pieces": 0, "records": 0}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        if not self._told and self._now() - self._heard >= self._idle:
            self._told = at["pieces"] + 1
        return {**at, "pieces": max(at["pieces"], self._told)}

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        silent = end["pieces"] > begin["pieces"]
        return [Piece(self.number, BEFORE_ALL, None, 0, 0, idle=True)] if silent else []

    def commit(self, end: Offset) -> None:
        """Nothing is kept."""

    def finished(self, at: Offset) -> bool:
        return False

    def part(self, at: Offset) -> float:
        return 1.0

    def close(self) -> None:
        """Nothing is held open."""
