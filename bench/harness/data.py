"""A family's streams as text in memory, cut into the steps in which a runner gets them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bench.families.base import Block
from kelda.rdf import ntriples
from kelda.rdf.dictionary import Dictionary


class Piece(NamedTuple):
    """Some lines of one stream."""

    stream: str
    text: bytes
    triples: int
    until: int  # ms, the last time in it


Step = list[Piece]


def whole(blocks: Iterable[Block], streams: Iterable[str]) -> list[Step]:
    """The blocks as the generator makes them, those of the given streams alone."""
    wanted = set(streams)
    return [[Piece(*block)] for block in blocks if block.stream in wanted]


def by_time(blocks: Iterable[Block], streams: Iterable[str], step: int) -> list[Step]:
    """Steps of `step` ms of stream time, all streams together; what comes late goes with its neighbours.

    A step ends with the instant it is named by, (k - 1) * step < t <= k * step: a window that closes then is
    complete with the step."""
    wanted = set(streams)
    steps: dict[int, dict[str, list[Piece]]] = {}
    for block in blocks:
        if block.stream not in wanted:
            continue
        starts, times = _lines(block.text)
        number = -(-np.maximum.accumulate(times) // step)
        for first, last in _runs(number):
            text = block.text[starts[first] : starts[last]]
            piece = Piece(block.stream, text, last - first, int(times[first:last].max()))
            steps.setdefault(int(number[first]), {}).setdefault(block.stream, []).append(piece)
    return [
        [_joined(pieces) for pieces in steps.get(k, {}).values()]
        for k in range(min(steps, default=0), max(steps, default=-1) + 1)
    ]


def by_count(blocks: Iterable[Block], streams: Iterable[str], triples: int) -> list[Step]:
    """Steps of so many triples of one stream, in the order of their last times."""
    wanted = set(streams)
    pieces = [piece for block in blocks if block.stream in wanted for piece in _every(block, triples)]
    return [[piece] for piece in sorted(pieces, key=lambda piece: piece.until)]


def prefix(steps: list[Step], triples: int) -> Iterator[Piece]:
    """About the first `triples`, in pieces of at most 100."""
    left = triples
    for step in steps:
        if left <= 0:
            return
        for (piece,) in by_count([Block(*p) for p in step], {p.stream for p in step}, 100):
            if left > 0:
                left -= piece.triples
                yield piece


def count(steps: Iterable[Step]) -> int:
    """Triples in all."""
    return sum(piece.triples for step in steps for piece in step)


def _every(block: Block, triples: int) -> Iterator[Piece]:
    starts, times = _lines(block.text)
    for first in range(0, len(times), triples):
        last = min(first + triples, len(times))
        yield Piece(
            block.stream, block.text[starts[first] : starts[last]], last - first, int(times[first:last].max())
        )


def _lines(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Where each line starts (and the text ends), and its time."""
    starts = np.concatenate([[0], np.flatnonzero(np.frombuffer(text, np.uint8) == 10) + 1])
    times = ntriples.read(text, Dictionary(), timed=True).t
    assert times is not None and len(times) == len(starts) - 1, "a generator writes one triple a line"
    return starts, times


def _runs(number: np.ndarray) -> list[tuple[int, int]]:
    cuts = np.flatnonzero(number[1:] != number[:-1]) + 1
    return list(zip([0, *cuts.tolist()], [*cuts.tolist(), len(number)], strict=True))


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    return Piece(
        pieces[0].stream,
        b"".join(p.text for p in pieces),
        sum(p.triples for p in pieces),
        max(p.until for p in pieces),
    )
