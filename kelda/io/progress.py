"""What a runner tells about its work while it works: what was read, refused, or came too late.

A runner calls these as it goes and never looks at what becomes of them; who wants to show a bar,
count, or keep the rejects in a file gives a `Progress` that does so.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from kelda.rdf.event import Reject


class Progress(Protocol):
    """Told by a runner. All numbers are *increments*: what is new since the call before."""

    def read(self, stream: str, events: int, bytes: int) -> None:
        """`events` more elements were read from stream `stream` (its IRI), out of `bytes` more bytes
        of its file as it lies on disk (compressed, if it is)."""
        ...

    def rejected(self, reject: Reject) -> None:
        """One record could not be read."""
        ...

    def late(self, stream: str, count: int) -> None:
        """`count` more elements of `stream` came behind its clock and took no part."""
        ...

    def done(self) -> None:
        """Everything was read and answered. Not called when the run fails."""
        ...


@runtime_checkable
class ShowsBatches(Protocol):
    """A progress that also wants to know how a pipeline runs."""

    def batch(self, seconds: float, lag: float | None, state_bytes: int) -> None:
        """A batch took so long; its answers are `lag` seconds behind the wall clock, if stream time is of
        today; the shards hold so many bytes."""
        ...


class NoProgress:
    """Listens to nothing."""

    def read(self, stream: str, events: int, bytes: int) -> None:
        pass

    def rejected(self, reject: Reject) -> None:
        pass

    def late(self, stream: str, count: int) -> None:
        pass

    def done(self) -> None:
        pass


def refusal(reject: Reject) -> str:
    """Why a strict run stops."""
    return (
        f"{reject.source}, line {reject.line}: {reject.reason}\n  {reject.record}\n"
        "without --strict the record is counted as rejected and reading goes on"
    )
