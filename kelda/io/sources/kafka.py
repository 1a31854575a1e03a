"""`kafka://host:port/topic?start=…`: the messages of a topic, one message an event.

An offset says of each partition where it was begun, and how far it was read. Only these numbers go through
the driver: the messages are read from the brokers where they are wanted (`kelda.io.kafka.spot`). Each
partition is a lane of the stream (`kelda.engine.clock`): Kafka keeps the order within one, and there is
none between them.

    {"0": [begun, next, silent], "1": …}        silent: it was when the offset was made
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from kelda.errors import UsageError
from kelda.io.job import StreamSource
from kelda.io.kafka.clients import Clients, client, log
from kelda.io.kafka.events import prepared
from kelda.io.kafka.place import KafkaPlace, place_in
from kelda.io.kafka.settings import settings_in
from kelda.io.kafka.spot import KafkaSpot, check_isolation, let_go
from kelda.io.sources.address import Address
from kelda.io.sources.reader import Now, Offset, Piece, wall
from kelda.rdf.framing import RECORDS
from kelda.rdf.framings.eventtime import to_ms

REFRESH = 5.0  # seconds between two looks at which partitions there are
FRESH = 0.005  # seconds for which the ends of partitions are taken as they were
ASKED = 10.0  # seconds that a broker has for an answer

OPTIONS = (
    "start",
    "end",
    "group",
    "time",
    "isolation",
    "on_gap",
    "refresh",
    "settings",
)


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """What the address of a stream says of a topic."""

    place: KafkaPlace
    start: str | int  # earliest, latest, or ms since 1970
    bounded: bool  # it ends where the topic ends when reading begins
    group: str | None  # of which the offsets are told to the broker, for others to see
    by_broker: bool
    isolation: str
    on_gap: str
    refresh: float


def kafka_options(address: Address) -> KafkaOptions:
    """The options of an address; UsageError if one is no good."""
    place = place_in(address)
    time_of = address.option("time", str, "event")
    end = address.option("end", str, "never")
    on_gap = address.option("on_gap", str, "fail")
    for name, value, allowed in (
        ("time", time_of, ("event", "broker")),
        ("end", end, ("never", "latest")),
        ("on_gap", on_gap, ("fail", "skip")),
    ):
        if value not in allowed:
            raise UsageError(f"{address.text}: '{name}' is {' or '.join(allowed)}, not '{value}'")
    start: str | int = address.option("start", _start, _start("earliest"))
    options = KafkaOptions(
        place,
        start,
        end == "latest",
        address.option("group", str, None),
        time_of == "broker",
        check_isolation(address.option("isolation", str, "read_committed")),
        on_gap,
        address.option("refresh", float, REFRESH),
    )
    address.done(*OPTIONS)
    return options


def _start(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    found = to_ms(text)
    if found is None:
        raise ValueError(text)
    return found


class KafkaReader:
    """Hands out the offsets of a topic."""

    def __init__(
        self,
        options: KafkaOptions,
        source: StreamSource,
        number: int,
        *,
        format: str,
        piece_records: int = RECORDS,
        now: Now = wall,
    ) -> None:
        client()
        settings_in(options.place.settings)
        prepared(format, source.mapping)
        if options.by_broker and source.time is not None:
            raise UsageError(
                f"{source.path}: the time is that of the broker (time=broker), or {source.time}: say one"
            )
        self.options, self.place, self.source = options, options.place, source
        self.number, self.format = number, format
        self._piece, self._now = piece_records, now
        self._clients: Clients | None = None
        self._admin: Any = None
        self._committer: Any = None
        self._ends: dict[int, int] = {}
        self._ends_at = self._partitions_at = float("-inf")
        self._partitions: list[int] = []
        self._heard: dict[int, float] = {}

    def start(self) -> Offset:
        return {"pieces": 0, "records": 0, "partitions": {}, "until": None, "ended": False}

    # ------------------------------------------------------------------ how far

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        if at["ended"]:
            return at
        try:
            self._look(at)
        except self._no_broker() as problem:
            error = problem.args[0]
            assert self._clients is not None
            if not at["pieces"] or not self._clients.may_pass(error):
                raise self._clients.explained(error) from None
            log.warning("%s does not answer (%s); it is tried again", self.place, error.str())
            return at
        partitions = {p: list(at["partitions"][p]) for p in at["partitions"]}
        until = at["until"]
        pieces, records = at["pieces"], at["records"]
        new = [p for p in self._partitions if str(p) not in partitions]
        if new:
            try:
                begun = self._begun(new, first=not partitions)
            except self._no_broker() as problem:
                assert self._clients is not None
                raise self._clients.explained(problem.args[0]) from None
            for p in new:
                partitions[str(p)] = [begun[p], begun[p], False]
                pieces += 1
        if self.options.bounded and until is None:
            until = {str(p): max(self._ends[p], partitions[str(p)][1]) for p in self._partitions}
        taken = self._share(partitions, until, max_records)
        now = self._now()
        for key, count in taken.items():
            of = partitions[key]
            of[1], of[2] = of[1] + count, False
            self._heard[int(key)] = now
            pieces, records = pieces + count, records + count
        for key in self._silent(partitions, taken, until, now):
            partitions[key][2] = True
            pieces += 1
        ended = until is not None and all(partitions[p][1] >= until[p] for p in until)
        pieces += ended
        if pieces == at["pieces"]:
            return at
        return {
            "pieces": pieces,
            "records": records,
            "partitions": partitions,
            "until": until,
            "ended": ended,
        }

    def _share(
        self, partitions: dict[str, list[Any]], until: dict[str, int] | None, most: int | None
    ) -> dict[str, int]:
        """How many offsets a batch takes of each partition: of one that has more waiting, more."""
        waiting = {}
        for p, (_, reached, _) in partitions.items():
            end = self._ends.get(int(p), reached) if until is None else until.get(p, reached)
            if end > reached:
                waiting[p] = end - reached
        total = sum(waiting.values())
        if most is None or total <= most:
            return waiting
        taken = {p: count * most // total for p, count in waiting.items()}
        for p in sorted(waiting, key=lambda p: taken[p]):
            if sum(taken.values()) >= max(1, most):
                break
            taken[p] += 1
        return {p: count for p, count in taken.items() if count}

    def _silent(
        self,
        partitions: dict[str, list[Any]],
        taken: dict[str, int],
        until: dict[str, int] | None,
        now: float,
    ) -> list[str]:
        """The partitions that fall silent now. One that is read to its end has nothing more to say."""
        found = []
        for p, (_, reached, silent) in partitions.items():
            if silent or p in taken:
                continue
            since = self._heard.setdefault(int(p), now)
            idle = self.source.idle_ms is not None and (now - since) * 1000 >= self.source.idle_ms
            if idle or (until is not None and reached >= until.get(p, reached)):
                found.append(p)
        return found

    # ------------------------------------------------------------------ what brokers say

    def _no_broker(self) -> Any:
        return client().KafkaException

    def _asked(self) -> Any:
        if self._admin is None:
            self._clients = Clients(self.place)
            self._admin = self._clients.admin()
        return self._admin

    def _look(self, at: Offset) -> None:
        """Look which partitions there are and where they end, if that is not known well enough."""
        now = time.monotonic()
        known = self._ends
        more = any(known.get(int(p), 0) > of[1] for p, of in at["partitions"].items())
        if self._partitions and (more or now - self._ends_at < FRESH):
            return
        admin = self._asked()
        assert self._clients is not None
        kafka = self._clients.kafka
        admin.poll(0)
        try:
            if now - self._partitions_at >= self.options.refresh:
                topic = admin.list_topics(self.place.topic, timeout=ASKED).topics[self.place.topic]
                if topic.error is not None:
                    raise kafka.KafkaException(topic.error)
                self._partitions = sorted(topic.partitions)
                self._partitions_at = now
            self._ends = self._offsets(self._partitions, "latest")
        except kafka.KafkaException:
            admin.poll(0)  # what it has to say of it
            raise
        self._ends_at = time.monotonic()

    def _begun(self, partitions: list[int], first: bool) -> dict[int, int]:
        """Where partitions begin: those that came later, with their first message."""
        return self._offsets(partitions, self.options.start if first else "earliest")

    def _offsets(self, partitions: list[int], what: str | int) -> dict[int, int]:
        kafka = client()
        admin = self._asked()
        spec = kafka.admin.OffsetSpec
        wanted = (
            spec.for_timestamp(what)
            if isinstance(what, int)
            else spec.earliest()
            if what == "earliest"
            else spec.latest()
        )
        committed = self.options.isolation == "read_committed"
        levels = kafka.IsolationLevel
        asked = {kafka.TopicPartition(self.place.topic, p): wanted for p in partitions}
        if not asked:
            return {}
        found = admin.list_offsets(
            asked,
            isolation_level=levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED,
            request_timeout=ASKED,
        )
        offsets = {at.partition: future.result().offset for at, future in found.items()}
        later = [p for p, offset in offsets.items() if offset < 0]  # nothing is as late as that yet
        return offsets | (self._offsets(later, "latest") if later else {})

    # ------------------------------------------------------------------ pieces

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        """By partition, in turn. Numbers count offsets, so they do not depend on the size of pieces."""
        number = begin["pieces"]
        found: list[Piece] = []
        for p, (begun, reached, silent) in sorted(end["partitions"].items(), key=lambda of: int(of[0])):
            lane = int(p)
            if p not in begin["partitions"]:
                found.append(Piece(self.number, number, None, 0, 0, lane=lane))
                number += 1
            _, at, was_silent = begin["partitions"].get(p, (begun, begun, False))
            spoke = reached > at
            while at < reached:
                size = min(self._piece, reached - at)
                found.append(self._piece_of(number, lane, at, at + size))
                number, at = number + size, at + size
            if silent and (spoke or not was_silent):
                found.append(Piece(self.number, number, None, 0, 0, idle=True, lane=lane))
                number += 1
        if end["ended"] and not begin["ended"]:
            found.append(Piece(self.number, number, None, 0, 0, ends=True))
        return found

    def _piece_of(self, number: int, lane: int, begin: int, end: int) -> Piece:
        options = self.options
        spot = KafkaSpot(
            0,
            begin,
            b"",
            b"",
            place=self.place,
            partition=lane,
            begin=begin,
            end=end,
            isolation=options.isolation,
            on_gap=options.on_gap,
            by_broker=options.by_broker,
        )
        return Piece(self.number, number, spot, end - begin, 0, format=self.format, lane=lane)

    # ------------------------------------------------------------------ the rest

    def commit(self, end: Offset) -> None:
        """Tell the broker how far the group has read, for whoever watches it. Nothing depends on it."""
        if self.options.group is None or not end["partitions"] or self._clients is None:
            return
        kafka = self._clients.kafka
        try:
            if self._committer is None:
                self._committer = self._clients.consumer(self.options.group, self.options.isolation)
            self._committer.commit(
                offsets=[
                    kafka.TopicPartition(self.place.topic, int(p), of[1])
                    for p, of in end["partitions"].items()
                ],
                asynchronous=True,
            )
            self._committer.poll(0)
        except kafka.KafkaException as problem:
            log.warning("%s: group %s: %s", self.place, self.options.group, problem.args[0].str())

    def finished(self, at: Offset) -> bool:
        return bool(at["ended"])

    def part(self, at: Offset) -> float:
        if at["ended"]:
            return 1.0
        read = sum(of[1] - of[0] for of in at["partitions"].values())
        left = sum(max(0, self._ends.get(int(p), 0) - of[1]) for p, of in at["partitions"].items())
        return read / (read + left) if read + left else 1.0

    def close(self) -> None:
        if self._committer is not None:
            self._committer.close()
            self._committer = None
        self._admin = None
        let_go(self.place)
