"""Several streams read side by side: one offset for all of them, by their keys. Streams come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kelda.io.job import StreamSource
from kelda.io.sources.fed import FedReader
from kelda.io.sources.reader import Offset, Piece, Reader

Offsets = dict[str, Offset]
Open = Callable[[int, StreamSource], Reader]


def key_of(number: int, source: StreamSource) -> str:
    """How a stream is called in an offset: by its number, which no other has, and for people by its name."""
    return f"{number} {source.iri}"


class Together:
    """The readers of the streams that there are; each is opened when it is first asked for."""

    def __init__(self, open: Open, piece_records: int) -> None:
        self._open, self._piece_records = open, piece_records
        self.readers: dict[str, Reader] = {}

    def have(self, streams: Mapping[int, StreamSource]) -> None:
        """These are the streams from now on."""
        wanted = {key_of(number, source): (number, source) for number, source in streams.items()}
        for key in [key for key in self.readers if key not in wanted]:
            self.readers.pop(key).close()
        for key, (number, source) in wanted.items():
            if key not in self.readers:
                self.readers[key] = self._open(number, source)

    def begun(self, at: Mapping[str, Offset]) -> Offsets:
        """The offset `at` of the streams that there are; one that is new begins."""
        return {key: at[key] if key in at else reader.start() for key, reader in self.readers.items()}

    def latest(self, at: Mapping[str, Offset], most: int) -> Offsets:
        """Where a batch of at most so many records ends that begins at `at`.

        The stream that lags furthest behind goes next, by the part of it that was read: files that
        cover the same time keep about the same pace, so little has to wait for the clock.
        """
        end = self.begun(at)
        left = dict(self.readers)
        step = max(1, min(self._piece_records, most // max(1, 4 * len(left))))
        first = {key: offset["records"] for key, offset in end.items()}
        while left:
            taken = sum(offset["records"] - first[key] for key, offset in end.items())
            if taken >= most:
                break
            key = min(left, key=lambda k: left[k].part(end[k]) if end[k]["pieces"] else -1.0)
            further = left[key].latest(end[key], min(step, most - taken))
            if further == end[key]:
                del left[key]
            end[key] = further
        return end

    def is_fed(self, at: Mapping[str, Offset]) -> bool:
        """Whether a query has said something, behind `at`, that others are to read."""
        fed = {key: reader for key, reader in self.readers.items() if isinstance(reader, FedReader)}
        begun = self.begun(at)
        return any(reader.latest(begun[key]) != begun[key] for key, reader in fed.items())

    def pieces(self, begin: Mapping[str, Offset], end: Mapping[str, Offset]) -> list[Piece]:
        """What lies between two offsets; of a stream that is new, from its beginning."""
        found: list[Piece] = []
        for key, reader in self.readers.items():
            if key in end:
                found += reader.pieces(begin[key] if key in begin else reader.start(), end[key])
        return found

    def commit(self, end: Mapping[str, Offset]) -> None:
        """What lies before is not asked for again."""
        for key, reader in self.readers.items():
            if key in end:
                reader.commit(end[key])

    def close(self) -> None:
        """Let go of all."""
        for reader in self.readers.values():
            reader.close()
        self.readers.clear()
