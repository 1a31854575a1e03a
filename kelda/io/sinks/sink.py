"""What a sink promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from kelda.engine.answer import Answer
from kelda.io.sinks.content import Held

Existing = Literal["refuse", "append", "overwrite"]
"""What to do with a file or folder that is there and was not begun by this run."""


class Sink(Protocol):
    """Takes the answers of one query, batch by batch.

    Batches ascend. After a crash a batch may come again, with the same answers: what was written of
    it is not written twice, and what was not is written now.
    """

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        """Take the answers of a batch. When this returns they are on disk; when it raises, the same
        batch can be written again. `content` says what is in the batch (`sinks/content.py`): one that
        comes again with another is refused."""
        ...

    @property
    def held(self) -> Held:
        """The last batch with answers that it has."""
        ...

    def close(self) -> None:
        """Let go of files. Everything is on disk already; a sink that is not closed loses nothing."""
        ...
