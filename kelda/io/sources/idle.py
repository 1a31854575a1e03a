"""A stream that falls silent: after a while it says so, and the others do not wait for it.

Which time an idle stream could promise depends on the others, which are not known here. So it promises
none: its idle piece tells the shard to leave it out of the clock until it speaks again. Its next records
are late if the clock has passed them meanwhile. When a stream fell silent is part of the offset: a batch
that is read again has the same idle pieces.
"""

from __future__ import annotations

from dataclasses import replace

from kelda.io.sources.reader import Around, Now, Offset, Piece, Reader, wall


class SayingWhenIdle(Around):
    """Another reader, with an idle piece after `idle_ms` of silence."""

    def __init__(self, reader: Reader, number: int, idle_ms: int, *, now: Now = wall) -> None:
        super().__init__(reader)
        self.number = number
        self._idle, self._now = idle_ms / 1000, now
        self._heard = now()

    def start(self) -> Offset:
        return {**self.reader.start(), "idle": False, "idles": 0}

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        end = self.reader.latest(at, max_records)
        if end["pieces"] != at["pieces"]:
            self._heard = self._now()
            return {**end, "idle": False}
        silent = self._now() - self._heard >= self._idle
        if silent and not at["idle"] and not self.reader.finished(at):
            return {**end, "idle": True, "idles": at["idles"] + 1}
        return at

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        spoken = self.reader.pieces(begin, end)
        pieces = [replace(piece, number=piece.number + begin["idles"]) for piece in spoken]
        if end["idle"] and end["idles"] > begin["idles"]:
            number = end["pieces"] + end["idles"] - 1
            pieces.append(Piece(self.number, number, None, 0, 0, idle=True))
        return pieces
