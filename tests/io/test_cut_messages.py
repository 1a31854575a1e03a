"""Pieces of messages, found by the kernel, are those that the splitter of the framing finds."""

from __future__ import annotations

import os
from random import Random, SystemRandom
from typing import Any
from unittest.mock import patch

from kelda.io.sources import cutter
from kelda.io.sources.cutter import Cutter, Place
from tests.rdf import turtle_text

CASES = int(os.environ.get("KELDA_CASES", "200"))
FIRST = SystemRandom().randrange(10**9) if "KELDA_RANDOM" in os.environ else 0


class Growing:
    """A text of which more and more is there."""

    only_grows = True

    def __init__(self, data: bytes) -> None:
        self.data, self.size = data, 0

    def read(self, at: int, size: int) -> bytes:
        return self.data[at : min(at + size, self.size)]

    def at_end(self, at: int) -> bool:
        return at >= self.size

    def stored(self, at: int) -> int:
        return at

    def close(self) -> None:
        pass


def pieces(draw: Random, data: bytes, how: dict[str, Any], portion: int) -> list[Any]:
    """The pieces, of a text that comes in portions (0: at once)."""
    some, text, place = Cutter("messages", **how), Growing(data), Place()
    found = []
    for size in [*range(portion, len(data), portion), len(data)] if portion else [len(data)]:
        text.size = size
        complete = size == len(data)
        while (step := some.next(text, place, complete=complete)) is not None:
            place = step.place
            found.append((step.chunk, step.records, place, step.last))
            if step.last or (complete and step.chunk is None):
                break
    return found


def by_splitter(self: Cutter, *rest: Any) -> Any:
    return self._records(*rest)


def run(seed: int) -> None:
    draw = Random(seed)
    data = draw.choice([b"", b"", b"\xef\xbb\xbf"]) + turtle_text.messages(draw, calm=draw.random() < 0.5)
    how = {"max_records": draw.choice([1, 2, 4096]), "max_record": draw.choice([None, None, None, 60, 300])}
    with patch.object(cutter, "PIECE_BYTES", draw.choice([64, 300, 1 << 18])):
        found = pieces(draw, data, how, 0)
        with patch.object(Cutter, "_messages", by_splitter):
            expected = pieces(draw, data, how, 0)
        assert found == expected
        records = [(c.data, c.context, c.first_line, c.ordinal) for c, *_ in expected if c and not c.left_out]
        by_one = how | {"max_records": 1}
        portions = pieces(draw, data, by_one, draw.choice([1, 7, 100]))
        with patch.object(Cutter, "_messages", by_splitter):
            single = pieces(draw, data, by_one, 0)
        assert [c for c, *_ in portions if c] == [c for c, *_ in single if c]
        assert b"".join(r[0] for r in records) == b"".join(c.data for c, *_ in single if c and not c.left_out)


def test_pieces_are_those_of_the_splitter() -> None:
    for seed in range(FIRST, FIRST + CASES):
        try:
            run(seed)
        except BaseException as error:
            error.add_note(f"run({seed})")
            raise
