"""Stream files cut into pieces, one for each batch: Spark's file source takes whole files.

Piece i of every stream covers the same span of time, so that the streams of a query go forward together. The
bytes are those of the files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kelda.errors import InputError

LEAST = 12  # pieces, if there are elements for so many: only the second half is measured


def cut(files: Mapping[str, str], folder: Path, triples: int) -> list[int]:
    """Write `folder/<stream>/<number>`; how many triples piece i has, of all streams together.

    A piece has about that many triples, fewer if there would be fewer than LEAST pieces. It ends where a
    millisecond does: Spark takes an element of the watermark's own time for late.
    """
    texts = {stream: Path(path).read_bytes().splitlines(keepends=True) for stream, path in files.items()}
    times = {stream: _times(files[stream], lines) for stream, lines in texts.items()}
    all_times = np.sort(np.concatenate(list(times.values())))
    size = max(1, min(triples, -(-len(all_times) // LEAST)))
    starts = np.unique(all_times[::size])
    counts = np.zeros(len(starts), np.int64)
    now = int(time.time()) - len(starts)
    for stream, lines in texts.items():
        (folder / stream).mkdir(parents=True)
        ends = np.append(np.searchsorted(times[stream], starts[1:]), len(lines))
        begin = 0
        for i, end in enumerate(ends.tolist()):
            piece = folder / stream / f"{i:06}"
            piece.write_bytes(b"".join(lines[begin:end]))
            os.utime(piece, (now + i, now + i))  # the file source takes the oldest first
            counts[i] += end - begin
            begin = end
    return counts.tolist()


def _times(path: str, lines: list[bytes]) -> np.ndarray:
    times = np.array([int(line.partition(b"\t")[0]) for line in lines], np.int64)
    if (np.diff(times) < 0).any():
        raise InputError(f"{path} is not in order of time: pieces of it would drop elements as late; sort it")
    return times
