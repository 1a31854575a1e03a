"""What messages of a topic say: one message, one event, whatever it is written in.

The law: *what a message says does not depend on the messages beside it*. So each is read alone, as a
document of its own (prefixes, contexts), and a broken one spoils no other. Those that are lines are read
together, where none of them has a line break of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.kafka.spot import KafkaSpot, Message
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import ReadyMapping, checked_length, framing_of, prepare_mapping, read_chunk
from kelda.rdf.framings.base import Chunk
from kelda.rdf.framings.mapping import TableMapping

KINDS = {
    "application/n-triples": "nquads",
    "application/n-quads": "nquads",
    "text/turtle": "messages",
    "application/trig": "messages",
    "application/rdf-messages": "messages",
    "application/ld+json": "ndjsonld",
    "application/json": "json",
    "text/csv": "csv",
}
"""Formats by the media types of messages."""

LINES = ("tsnt",)  # formats of which messages are read together
ROWS = ("json", "ndjson", "csv")  # and those of which they are where a mapping tells their times
SHORT = 8  # messages of a chunk, below which it does not pay


class Run(NamedTuple):
    """Messages of one format, one behind the other."""

    format: str
    messages: list[Message]

    @property
    def size(self) -> int:
        return sum(len(message.value) for message in self.messages)

    def lines(self, longest: int) -> bytes | None:
        """All of them as lines, if each is one, of at most so many bytes."""
        if self.format not in LINES:
            return None
        values = [message.value.rstrip(b"\r\n") for message in self.messages]
        data = b"\n".join(values)
        # One count for all: a line break more, and somebody has one of his own.
        if data.count(b"\n") != len(values) - 1 or b"\r" in data or max(map(len, values)) > longest:
            return None
        return data

    def rows(self, longest: int) -> list[tuple[Chunk, list[Message]]] | None:
        """All of them as rows, with the messages that these are: a chunk for offsets that follow each other,
        as blank nodes are called by them. None: it cannot be, or does not pay."""
        if self.format not in ROWS:
            return None
        chunks: list[tuple[Chunk, list[Message]]] = []
        first = 0
        messages = self.messages
        for i in range(1, len(messages) + 1):
            if i == len(messages) or messages[i].offset != messages[i - 1].offset + 1:
                some, first = messages[first:i], i
                values = [message.value for message in some]
                if self.format != "csv":
                    values = [_on_one_line(value) for value in values]
                data = b"\n".join(values)
                if self.format == "csv" and (b'"' in data or data.count(b"\n") != len(some) - 1):
                    return None
                if max(len(message.value) for message in some) > longest:
                    return None
                chunks.append((Chunk(1, some[0].offset, b"", data + b"\n"), some))
        return chunks if len(messages) >= SHORT * len(chunks) else None


def _on_one_line(value: bytes) -> bytes:
    """JSON without its line breaks, which are white space wherever they may stand."""
    if b"\n" in value or b"\r" in value:
        return value.replace(b"\n", b" ").replace(b"\r", b" ")
    return value


def format_of(kind: str | None, otherwise: str) -> str:
    """The format of a message by its media type; without one that is known, that of the stream.

    >>> format_of("application/ld+json; charset=utf-8", "tsnt"), format_of(None, "tsnt")
    ('ndjsonld', 'tsnt')
    """
    if kind is None:
        return otherwise
    name = kind.partition(";")[0].strip().lower()
    found = KINDS.get(name, otherwise)
    # What says of itself that it is JSON is what the stream makes of JSON.
    return otherwise if name == "application/json" and otherwise in ("json", "ndjson", "ndjsonld") else found


def runs(spot: KafkaSpot, otherwise: str, rejects: list[Reject]) -> Iterator[Run]:
    """The messages of a spot in runs. Tombstones (without a value) say nothing, and offsets that are gone
    are told as a reject."""
    said: list[Message] = []
    for message in spot.messages():
        if message.until >= 0:
            rejects.append(_gone(spot, message))
        elif message.value:
            said.append(message)
    for format, some in groupby(said, lambda message: format_of(message.kind, otherwise)):
        yield Run(format, list(some))


def _gone(spot: KafkaSpot, message: Message) -> Reject:
    return Reject(
        spot.name,
        1,
        f"the broker has deleted the offsets {message.offset:,} to {message.until - 1:,}",
        f"{message.until - message.offset:,} offsets",
    )


def at_offsets(spot: KafkaSpot, messages: Sequence[Message], rejects: Sequence[Reject]) -> list[Reject]:
    """Rejects of messages that were read as lines, with the offsets that these stand for."""
    found = []
    for reject in rejects:
        message = messages[min(max(reject.line, 1), len(messages)) - 1]
        found.append(replace(reject, source=_where(spot, message), line=1))
    return found


class ToRead:
    """How the messages of a run are read: as the stream says, as far as that is for this format."""

    def __init__(self, format: str, source: StreamSource, otherwise: str) -> None:
        self.source = source
        mapping = source.mapping if _alike(format, otherwise) else None
        self.ready = {format: prepared(format, mapping)}
        self.longest = checked_length(format, source.max_record)
        if format == "nquads":
            self.ready["messages"] = prepare_mapping("messages", None)

    @property
    def mapping(self) -> Any:
        """The mapping of the format, ready for use."""
        return next(iter(self.ready.values())).mapping

    def context(self, format: str) -> bytes:
        """What is in force before the first word of a message."""
        ready = self.ready[format]
        context: bytes = ready.framing.splitter(ready.mapping, self.longest).context
        return context


def prepared(format: str, mapping: str | None) -> ReadyMapping:
    """A mapping that is good for messages; UsageError if it is not."""
    ready: ReadyMapping = prepare_mapping(format, mapping)
    if isinstance(ready.mapping, TableMapping) and format == "csv" and ready.mapping.header is None:
        raise UsageError("a message of csv has no header: name the columns in the mapping (columns: [a, b])")
    return ready


def _alike(one: str, other: str) -> bool:
    return framing_of(one) is framing_of(other) or {one, other} <= {"csv", "json", "ndjson"}


def events_in(
    spot: KafkaSpot, run: Run, source: StreamSource, otherwise: str, rejects: list[Reject]
) -> Iterator[Event]:
    """The events of a run, message by message. One without a time has that of the broker."""
    try:
        how = ToRead(run.format, source, otherwise)
    except UsageError as error:  # of a kind that nobody has told how to read
        for message in run.messages:
            rejects.append(Reject.of(_where(spot, message), 1, str(error), message.value))
        return
    contexts = {format: how.context(format) for format in how.ready}
    for message in run.messages:
        if spot.by_broker and message.time is None:
            rejects.append(Reject.of(_where(spot, message), 1, "the broker gave it no time", message.value))
            continue
        for event in _read(spot, message, run.format, how, contexts, rejects):
            if event.quads:
                own = event.time is not None and not spot.by_broker
                yield event if own else Event(message.time, event.quads)


def _read(
    spot: KafkaSpot,
    message: Message,
    format: str,
    how: ToRead,
    contexts: Mapping[str, bytes],
    rejects: list[Reject],
) -> Iterator[Event]:
    value = message.value
    if format == "nquads" and not value[:1].isdigit():
        format = "messages"  # all of it is one event, whatever it is about
    if format in ("json", "ndjson", "ndjsonld"):
        value = _on_one_line(value)
    left_out = max(0, len(value) - how.longest)
    where = _where(spot, message)
    row = format in ROWS and b"\n" not in value  # so there is one event in it, and its offset is its number
    text = value[: how.longest] + (b"\n" if row and not left_out else b"")  # a row is a line
    return read_chunk(
        Chunk(1, message.offset if row else 0, contexts[format], text, left_out=left_out),
        format,
        time_predicate=how.source.time,
        mapping=how.ready[format],
        on_reject=lambda reject: rejects.append(replace(reject, source=where)),
        name=spot.name if row else where,  # so blank nodes belong to their message
        max_record=how.source.max_record,
        needs_time=message.time is None,
    )


def _where(spot: KafkaSpot, message: Message) -> str:
    return f"{spot.name}, offset {message.offset}"
