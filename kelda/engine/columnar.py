"""Answers that are a sequence to whoever wants them one by one, and columns to whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from kelda.engine.answer import Answer
from kelda.engine.block import Block


class Columnar(Sequence[Answer]):
    """The answers of some blocks, one block after the other. They are made when somebody looks at one."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self._made: list[Answer] | None = None

    def __len__(self) -> int:
        return sum(map(len, self.blocks))

    def _all(self) -> list[Answer]:
        if self._made is None:
            self._made = [answer for block in self.blocks for answer in block.answers()]
        return self._made

    @overload
    def __getitem__(self, place: int) -> Answer: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Answer]: ...
    def __getitem__(self, place: int | slice) -> Answer | Sequence[Answer]:
        if place == slice(0, None):
            return self
        return self._all()[place]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self._all())


def blocks_in(answers: Sequence[Answer]) -> Sequence[Block] | None:
    """The answers as columns, if they are."""
    if isinstance(answers, Columnar) and all(block.is_columns for block in answers.blocks):
        return answers.blocks
    return None


def last_time(answers: Sequence[Answer]) -> int | None:
    """The time of the latest one."""
    if (blocks := blocks_in(answers)) is not None:
        return max((int(block.rows.time.max()) for block in blocks if len(block)), default=None)
    return max((answer.time for answer in answers), default=None)
