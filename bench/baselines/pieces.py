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

BLOCK = 1 << 24  # bytes of lines that are looked at together
LEAST = 12  # pieces, if there are elements for so many: only the second half is measured


def cut(files: Mapping[str, str], folder: Path, triples: int, least: int | None = None) -> list[int]:
    """Write `folder/<stream>/<number>`; how many triples piece i has, of all streams together.

    A piece has about that many triples, fewer if there would be fewer than `least` pieces (LEAST). It ends
    where a millisecond does: Spark takes an element of the watermark's own time for late.
    """
    lines = {stream: _lines(path) for stream, path in files.items()}
    all_times = np.sort(np.concatenate([times for times, _ in lines.values()]))
    size = max(1, min(triples, -(-len(all_times) // (least or LEAST))))
    starts = np.unique(all_times[::size])
    counts = np.zeros(len(starts), np.int64)
    now = int(time.time()) - len(starts)
    for stream, (times, places) in lines.items():
        (folder / stream).mkdir(parents=True)
        ends = np.append(np.searchsorted(times, starts[1:]), len(times))
        begin = 0
        with open(files[stream], "rb") as file:
            for i, end in enumerate(ends.tolist()):
                piece = folder / stream / f"{i:06}"
                piece.write_bytes(file.read(int(places[end] - places[begin])))
                os.utime(piece, (now + i, now + i))  # the file source takes the oldest first
                counts[i] += end - begin
                begin = end
    return counts.tolist()


def _lines(path: str) -> tuple[np.ndarray, np.ndarray]:
    """The time of each line, and where each begins (and, at last, where the file ends)."""
    times, sizes = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    with open(path, "rb") as file:
        while lines := file.readlines(BLOCK):
            times.append(np.array([int(line[: line.index(b"\t")]) for line in lines], np.int64))
            sizes.append(np.array([len(line) for line in lines], np.int64))
    all_times = np.concatenate(times)
    if (np.diff(all_times) < 0).any():
        raise InputError(f"{path} is not in order of time: pieces of it would drop elements as late; sort it")
    return all_times, np.cumsum(np.concatenate(sizes))
