"""What is declared: the streams and graphs of a version of the catalog.

Streams are numbered in the order in which they are declared, once and for all: a stream that is declared
again after it was dropped is another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kelda.engine.absorb import Absorb
from kelda.errors import UsageError
from kelda.io.job import DEFAULT, StreamSource
from kelda.shards.catalog import AddStream, DropStream, Op

FED = "query:"  # the address of a stream whose elements are the answers of a query of the same deployment


@dataclass
class Declared:
    """The streams that are there, by their numbers."""

    streams: dict[int, StreamSource] = field(default_factory=dict)
    _numbers: dict[str, int] = field(default_factory=dict)
    numbered: int = 0  # so far

    def take(self, ops: Iterable[Op]) -> Declared:
        """Entries of the catalog hold."""
        for op in ops:
            match op:
                case AddStream(number, source):
                    self.streams[number] = source
                    self._numbers[source.iri] = number
                    self.numbered = max(self.numbered, number + 1)
                case DropStream(iri):
                    del self.streams[self.number(iri)], self._numbers[iri]
        return self

    def number(self, iri: str) -> int:
        """The number of the stream that has this name now."""
        if iri not in self._numbers:
            there = ", ".join(f"<{known}>" for known in self._numbers) or "none"
            raise UsageError(f"there is no stream <{iri}>; there are: {there}")
        return self._numbers[iri]

    def knows(self, iri: str) -> bool:
        """Whether there is a stream of this name."""
        return iri in self._numbers

    @property
    def kept(self) -> set[str]:
        """The graphs that queries feed."""
        return set(self.feeders)

    @property
    def feeders(self) -> dict[str, str]:
        """The graphs that queries feed, with the names of these."""
        fed = [s for s in self.streams.values() if s.path.startswith(FED)]
        return {s.absorb: s.path.removeprefix(FED) for s in fed if s.absorb is not None}

    def fed_by(self, query: str) -> list[tuple[int, StreamSource]]:
        """The streams whose elements are the answers of a query, with their numbers."""
        return [(n, source) for n, source in self.streams.items() if source.path == FED + query]


def is_pushed(source: StreamSource) -> bool:
    """Whether elements of the stream are pushed by the application."""
    return source.path == "push:" or source.path.startswith("push:?")


def absorb_of(source: StreamSource) -> Absorb | None:
    """Where the elements of a stream are stored, if they are."""
    if source.absorb is None:
        return None
    graph = None if source.absorb == DEFAULT else source.absorb
    return Absorb(graph, None if source.predicates is None else frozenset(source.predicates))
