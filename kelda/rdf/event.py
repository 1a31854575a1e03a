"""An event: what arrives on a stream at one instant, all of it or nothing."""

from __future__ import annotations

from dataclasses import dataclass

from pyoxigraph import Quad

from kelda.rdf import wire

SHOWN = 200  # characters of a record that is rejected


@dataclass(frozen=True, slots=True)
class Event:
    """One atomic stream element.

    `time` is event time in milliseconds since 1970 (None: it gets the arrival time).
    `quads` keep the order in which they were written; a triple is a quad in the default graph.
    """

    time: int | None
    quads: tuple[Quad, ...]


@wire.plain
@dataclass(frozen=True, slots=True)
class Reject:
    """A record that could not be read: where it was, why, and the record itself (shortened)."""

    source: str
    line: int
    reason: str
    record: str

    @classmethod
    def of(cls, source: str, line: int, reason: str, record: bytes) -> Reject:
        """The reject of a record, of which the beginning is shown."""
        text = record[: 4 * SHOWN + 8].decode("utf-8", "replace").strip("\r\n")
        return cls(source, line, reason, text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")
