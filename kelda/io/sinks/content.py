"""What a batch contains: by that a batch is known again, not by its number alone.

Numbers are given by the log of whoever makes batches. A log that lost its end gives the same numbers again,
to other input: a sink that went by numbers would take new answers for old ones, or old for new. So a sink
remembers with the number what was in the batch (from where to where in each stream, with which queries, as
a digest), and refuses another batch of that number, or one before it.
"""

from __future__ import annotations

from typing import NamedTuple

from kelda.errors import CheckpointError


class Held(NamedTuple):
    """The last batch that a sink has, and what was in it (None: nobody said)."""

    batch: int = -1
    content: str | None = None
    where: str = "the sink"


def has(held: Held, batch: int, content: str | None) -> bool:
    """Whether a sink has a batch already. Refuses one that cannot be what the sink has.

    A batch that comes again is the last one: who says what batches contain never asks for one before.
    """
    if batch > held.batch:
        return False
    known = content is not None and held.content is not None
    if known and (batch < held.batch or content != held.content):
        raise otherwise(held, batch)
    return True


def otherwise(held: Held, batch: int) -> CheckpointError:
    """The refusal: a sink and a checkpoint that do not belong together any more."""
    return CheckpointError(
        f"{held.where} has batch {held.batch} already, and the checkpoint goes on with "
        f"{f'batch {batch}' if batch < held.batch else 'other content in it'}: the checkpoint has lost "
        "files, or is an older copy. Going on would lose answers or double them. Put back the checkpoint "
        f"that belongs to it; or begin again, with another checkpoint folder and without {held.where}"
    )
