"""Where in a topic some messages are: that is handed out, and who needs the messages reads them himself.

A connection is kept for each partition and thread, and goes on where it stopped: whoever reads a partition
from place to place has its next messages already.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from kelda.errors import InputError, UsageError
from kelda.io.kafka.clients import PATIENCE, Clients, Pauses, log
from kelda.io.kafka.place import KafkaPlace
from kelda.rdf import wire
from kelda.rdf.framings.base import Chunk

GROUP = "kelda"
KEPT = 64  # connections of a thread
AT_ONCE = 10_000  # messages that are taken from the client at a time
LOOK = 0.2  # seconds between two looks at whether the client complains


@wire.plain
@dataclass(frozen=True, slots=True)
class KafkaSpot(Chunk):
    """The messages of a partition from offset `begin` up to `end`, to be read as the stream says.

    Not every offset has a message: where a transaction ended there is none, and a topic that is compacted
    lets go of older ones. What the broker has deleted is another thing: `on_gap` says what becomes of it.
    """

    place: KafkaPlace
    partition: int
    begin: int
    end: int
    isolation: str
    on_gap: str
    by_broker: bool  # the time of an event is the broker's, whatever it says itself

    @property
    def name(self) -> str:
        """Of the partition."""
        return f"{self.place}, partition {self.partition}"

    def messages(self) -> Iterator[Message]:
        """The messages that there are."""
        yield from connection(self.place, self.partition, self.isolation).between(self)


class Message(NamedTuple):
    """A message, or (without a value) a word on offsets that are gone: from `offset` up to `until`."""

    offset: int
    value: bytes
    time: int | None
    kind: str | None  # its media type
    until: int = -1


_mine = threading.local()


def connection(place: KafkaPlace, partition: int, isolation: str) -> Connection:
    """This thread's connection to a partition."""
    if not hasattr(_mine, "kept"):
        _mine.kept = OrderedDict()
    kept: OrderedDict[Any, Connection] = _mine.kept
    key = (place, partition, isolation)
    if key not in kept:
        kept[key] = Connection(place, partition, isolation)
    kept.move_to_end(key)
    while len(kept) > KEPT:
        kept.popitem(last=False)[1].close()
    return kept[key]


def let_go(place: KafkaPlace) -> None:
    """Close this thread's connections to a topic."""
    kept: dict[Any, Connection] = getattr(_mine, "kept", {})
    for key in [key for key in kept if key[0] == place]:
        kept.pop(key).close()


class Connection:
    """Reads one partition."""

    def __init__(self, place: KafkaPlace, partition: int, isolation: str) -> None:
        self.clients = Clients(place)
        self.place, self.partition = place, partition
        self._consumer = self.clients.consumer(
            GROUP,
            isolation,
            fetch_wait_max_ms=25,  # so long it takes to hear that nothing follows
            queued_max_messages_kbytes=16_384,
            fetch_queue_backoff_ms=5,
        )
        self._at = -1  # what comes next from the client is at this offset or behind
        self._left: list[Any] = []  # taken from the client, and not asked for yet

    def close(self) -> None:
        self._consumer.close()

    def _go_to(self, offset: int) -> None:
        kafka = self.clients.kafka
        self._left = []
        self._consumer.assign([kafka.TopicPartition(self.place.topic, self.partition, offset)])
        self._at = offset

    def between(self, spot: KafkaSpot) -> Iterator[Message]:
        """The messages of a spot, in order."""
        if self._at != spot.begin:
            self._go_to(spot.begin)
        pauses: Pauses | None = None
        heard = time.monotonic()
        while self._at < spot.end:
            some = self._left or self._taken()
            self._left = []
            for i, message in enumerate(some):
                error = message.error()
                if error is None:
                    if message.offset() >= spot.end:
                        self._left, self._at = some[i:], spot.end
                        return
                    self._at = message.offset() + 1
                    heard, pauses = time.monotonic(), None
                    yield _message(message)
                elif error.code() == self.clients.kafka.KafkaError._PARTITION_EOF:
                    heard = time.monotonic()
                    if message.offset() >= spot.end:
                        self._left, self._at = some[i + 1 :], spot.end
                        return
                elif error.code() == self.clients.kafka.KafkaError._AUTO_OFFSET_RESET:
                    yield self._gone(spot)
                    break
                else:
                    pauses = self._complained(error, pauses)
            if time.monotonic() - heard > PATIENCE:
                trouble = self.clients.trouble or self._no_answer()
                self._at = -1
                raise self.clients.explained(trouble)

    def _taken(self) -> list[Any]:
        """What has come: at least one message, if there is one within a moment."""
        kafka = self.clients.kafka
        try:
            some: list[Any] = self._consumer.consume(1, LOOK)
            return some + self._consumer.consume(AT_ONCE, 0) if some else some
        except kafka.KafkaException as error:
            self._at = -1
            raise self.clients.explained(error.args[0]) from None

    def _no_answer(self) -> Any:
        return self.clients.kafka.KafkaError(self.clients.kafka.KafkaError._TIMED_OUT)

    def _complained(self, error: Any, pauses: Pauses | None) -> Pauses:
        pauses = pauses or Pauses(PATIENCE)
        log.warning("%s: %s; it is tried again", self.place, error.str())
        if not self.clients.may_pass(error) or not pauses.wait():
            self._at = -1
            raise self.clients.explained(error)
        return pauses

    def _gone(self, spot: KafkaSpot) -> Message:
        """Offsets of the spot that are not there any more."""
        kafka = self.clients.kafka
        at = kafka.TopicPartition(self.place.topic, self.partition)
        try:
            first, _ = self._consumer.get_watermark_offsets(at, timeout=PATIENCE)
        except kafka.KafkaException as error:
            raise self.clients.explained(error.args[0]) from None
        gone, until = self._at, min(first, spot.end)
        if until <= gone:
            self._at = -1
            raise InputError(
                f"{spot.name} has nothing at offset {gone:,}, where the checkpoint goes on: the topic was "
                "made anew. Start again with another checkpoint folder"
            )
        if spot.on_gap == "fail":
            self._at = -1
            raise InputError(
                f"{spot.name}: the offsets {gone:,} to {until - 1:,} are to be read, and the broker has "
                "deleted them (retention of the topic). What was in them is lost: say ?on_gap=skip to go on "
                "behind them, or start again with another checkpoint folder"
            )
        self._go_to(until)
        return Message(gone, b"", None, None, until)


def _message(message: Any) -> Message:
    kind, time_ms = message.timestamp()
    media = None
    for name, value in message.headers() or ():
        if value is not None and name.lower() in ("content-type", "rdf-message-content-type"):
            media = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
            if name.lower() != "content-type":
                break
    return Message(message.offset(), message.value() or b"", time_ms if kind else None, media)


def check_isolation(text: str) -> str:
    """What of transactions is read."""
    if text not in ("read_committed", "read_uncommitted"):
        raise UsageError(f"isolation is read_committed or read_uncommitted, not '{text}'")
    return text
