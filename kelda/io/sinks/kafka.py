"""`kafka://host:port/topic`: answers as messages of a topic, each exactly once.

A batch is one transaction: its messages, and its number, as the offset of a consumer group of the sink's own.
So the broker has both or neither. Who opens the sink fences the writer before him and asks the broker for the
number: what a crash left half-done is taken back, and a batch that comes again is known.

While the broker is away, or refuses, batches go to an outbox beside the checkpoint instead, in order, and a
thread brings them from there when it can. So a broker that is away holds up no other query.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kelda.engine.answer import Answer
from kelda.errors import CheckpointError, InputError, KeldaError
from kelda.io.formats import TIME_PREDICATE, Shape
from kelda.io.kafka.answers import KafkaOutput, Out, Writer
from kelda.io.kafka.clients import FIRST_PAUSE, LONGEST_PAUSE, PATIENCE, Clients, Pauses, log
from kelda.io.sinks.content import Held, has
from kelda.io.sinks.ledger import Ledger
from kelda.io.sinks.outbox import Outbox

PROMPT = 5.0  # seconds that a broker has for a batch, before it goes to the outbox
LINGER = 5.0  # seconds that are taken at the end for what waits


Batch = tuple[int, str | None, list[Out]]  # its number, what is in it, its messages


class Fenced(CheckpointError):
    """Somebody else writes in our name."""


class Transactions:
    """Batches in transactions, with the number of the last one."""

    def __init__(self, output: KafkaOutput, name: str) -> None:
        self._output, self._name = output, name
        self.clients = Clients(output.place)
        self._producer: Any = None
        self._group: Any = None
        self.held = Held(where=str(output.place))

    def begin(self, patience: float) -> None:
        """Fence whoever wrote before, and ask for the number of the last batch."""
        kafka, place = self.clients.kafka, self._output.place
        self.close()
        producer = self.clients.made(
            kafka.Producer, transactional_id=self._name, linger_ms=5, **{"enable.idempotence": True}
        )
        self._group = self.clients.consumer(self._name, "read_committed")
        topic = producer.list_topics(place.topic, timeout=patience).topics[place.topic]
        if topic.error is not None:
            raise kafka.KafkaException(topic.error)
        producer.init_transactions(patience)
        (last,) = self._group.committed([self._numbers()], timeout=patience)
        if last.offset >= 1:
            self.held = Held(last.offset - 1, last.metadata or None, str(place))
        self._producer = producer

    def _numbers(self, batch: int = -1, content: str | None = None) -> Any:
        place, partition = self._output.place, self.clients.kafka.TopicPartition
        return (
            partition(place.topic, 0, batch + 1, metadata=content or "")
            if batch >= 0
            else partition(place.topic, 0)
        )

    def send(
        self, batch: int, content: str | None, messages: Sequence[Out], headers: Any, patience: float
    ) -> None:
        """A batch, or nothing of it; KafkaException if it is not known which."""
        if self._producer is None:
            self.begin(patience)
        if self.held.batch >= batch:  # it was there already, and its acknowledgement was lost
            return
        producer = self._producer
        self._producer = None  # until all is well: what went wrong begins anew
        producer.begin_transaction()
        _produce(producer, self._output.place.topic, messages, headers, patience)
        group = self._group.consumer_group_metadata()
        producer.send_offsets_to_transaction([self._numbers(batch, content)], group, patience)
        producer.commit_transaction(patience)
        self._producer = producer
        self.held = Held(batch, content, self.held.where)

    def close(self) -> None:
        if self._group is not None:
            self._group.close()
        self._group = self._producer = None


class AtLeastOnce:
    """Batches as they come; one that comes again is sent again."""

    def __init__(self, output: KafkaOutput) -> None:
        self._output, self.clients = output, Clients(output.place)
        self._producer: Any = None
        self.held = Held(where=str(output.place))

    def begin(self, patience: float) -> None:
        kafka, place = self.clients.kafka, self._output.place
        self._producer = self.clients.made(kafka.Producer, linger_ms=5, **{"enable.idempotence": True})
        topic = self._producer.list_topics(place.topic, timeout=patience).topics[place.topic]
        if topic.error is not None:
            raise kafka.KafkaException(topic.error)

    def send(
        self, batch: int, content: str | None, messages: Sequence[Out], headers: Any, patience: float
    ) -> None:
        if self._producer is None:
            self.begin(patience)
        producer, failed = self._producer, list[Any]()
        self._producer = None

        def heard(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        _produce(producer, self._output.place.topic, messages, headers, patience, on_delivery=heard)
        left = producer.flush(patience)
        kafka = self.clients.kafka
        if left or failed:
            producer.purge()
            raise kafka.KafkaException(failed[0] if failed else kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
        self._producer = producer
        self.held = Held(batch, content, self.held.where)

    def close(self) -> None:
        self._producer = None


def _produce(
    producer: Any, topic: str, messages: Sequence[Out], headers: Any, patience: float, **more: Any
) -> None:
    pauses = Pauses(patience)
    for key, value in messages:
        while True:
            try:
                producer.produce(topic, value, key, headers=headers, **more)
                break
            except BufferError:  # the broker is slower than we are
                producer.poll(0.05)
                if not pauses.goes_on:
                    raise InputError(f"{topic}: the broker takes no more messages") from None
    producer.poll(0)


class KafkaSink:
    """Answers of a query in a topic. With a `ledger`, a path of the checkpoint, batches are kept that the
    broker does not take; without, who writes waits for it."""

    def __init__(
        self,
        output: KafkaOutput,
        *,
        query: str,
        shape: Shape | None = None,
        run: str = "",
        ledger: Path | None = None,
        time_predicate: str = TIME_PREDICATE,
    ) -> None:
        self._writer = Writer(output, query, shape, time_predicate)
        self._output = output
        name = f"kelda-{run or uuid.uuid4().hex}-{quote(query, safe='')}"
        self._to: Transactions | AtLeastOnce = (
            Transactions(output, name) if output.transactions else AtLeastOnce(output)
        )
        self._ledger = Ledger(ledger, run)
        self._outbox: Outbox | None = None
        self._changed = threading.Condition()  # for what follows
        self._now: Batch | None = None  # that somebody waits for
        self._failed: KeldaError | None = None
        self._closing = False
        self._thread: threading.Thread | None = None
        self._state = ""
        try:
            if ledger is not None:
                self._outbox = Outbox(ledger.with_name(ledger.name + ".outbox"))
            self._begin()
        except BaseException:
            self._ledger.close()
            self._to.close()
            raise

    def _begin(self) -> None:
        """Of a sink that was there before, a broker that is away is no reason not to start."""
        known = self._ledger.held.batch >= 0 or bool(self._outbox and len(self._outbox))
        kafka = self._to.clients.kafka
        try:
            self._to.begin(PROMPT if known else PATIENCE / 2)
        except kafka.KafkaException as problem:
            error = problem.args[0]
            if not known or _fenced(self._to.clients, error):
                raise self._explained(error) from None
            self._say(str(self._to.clients.explained(error)))
        if self._outbox is not None and len(self._outbox):
            self._outbox.drop(self._to.held.batch)
            with self._changed:
                self._bring()

    @property
    def state(self) -> str:
        """What is wrong, if something is."""
        return self._state

    @property
    def waiting(self) -> int:
        """Batches that the broker does not have yet."""
        return 0 if self._outbox is None else len(self._outbox)

    @property
    def held(self) -> Held:
        kept = [self._to.held, self._ledger.held]
        if self._outbox is not None:
            kept.append(self._outbox.held)
        return max(kept, key=lambda held: held.batch)._replace(where=str(self._output.place))

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        if has(self.held, batch, content) or not answers:
            return
        messages = self._writer.messages(answers)
        if self._outbox is None:
            self._wait_for(batch, content, messages)
            return
        with self._changed:
            if self._failed is not None:
                raise self._failed
            if not len(self._outbox) and self._now is None:
                self._now = mine = (batch, content, messages)
                self._bring()
                self._changed.wait_for(lambda: self._now is not mine, PROMPT)
                if self._failed is not None:
                    raise self._failed
                if self._to.held.batch >= batch:
                    return
                self._say(self._state or f"{self._output.place} does not answer")
            self._outbox.put(batch, content, messages)
            self._changed.notify_all()

    # ------------------------------------------------------------------ sending

    def _tried(self, batch: int, content: str | None, messages: Sequence[Out]) -> str | None:
        """Send a batch; what was wrong if it could not be."""
        clients = self._to.clients
        try:
            self._to.send(batch, content, messages, self._writer.headers, PROMPT)
        except clients.kafka.KafkaException as problem:
            error = problem.args[0]
            if _fenced(clients, error):
                raise self._explained(error) from None
            return str(clients.explained(error))
        except KeldaError as problem:
            return str(problem)
        self._ledger.untold(batch, (), content)
        self._ledger.note(0)
        return None

    def _wait_for(self, batch: int, content: str | None, messages: Sequence[Out]) -> None:
        pauses = Pauses(PATIENCE)
        while (trouble := self._tried(batch, content, messages)) is not None:
            self._say(trouble)
            if not pauses.wait():
                raise InputError(f"{trouble}; the answers of batch {batch} could not be sent")
        self._say("")

    def _say(self, state: str) -> None:
        if state and state != self._state:
            log.warning("%s; answers wait, and it is tried again", state)
        elif not state and self._state:
            log.warning("%s: all answers are there", self._output.place)
        self._state = state

    def _explained(self, error: Any) -> KeldaError:
        clients = self._to.clients
        if _fenced(clients, error):
            return Fenced(
                f"{self._output.place}: another process writes the answers of this query for this "
                "checkpoint; it goes on, and this one stops"
            )
        return clients.explained(error)

    # ------------------------------------------------------------------ the thread that sends

    def _bring(self) -> None:
        """Send what there is to send, in a thread: the client may take as long for it as it likes."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._bring_all, name="kelda-outbox", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _bring_all(self) -> None:
        pause = FIRST_PAUSE
        while (batch := self._next()) is not None:
            try:
                trouble = self._tried(*batch)
            except KeldaError as problem:  # fenced: what waits is the other's to send
                with self._changed:
                    self._failed, self._now = problem, None
                    self._changed.notify_all()
                return
            with self._changed:
                self._now = None
                self._changed.notify_all()
                if trouble is None:
                    self._drop(batch[0])
                    pause = FIRST_PAUSE
                    continue
                self._say(trouble)
                self._changed.wait_for(lambda: self._closing, pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _next(self) -> Batch | None:
        """What is to be sent next; None at the end."""
        assert self._outbox is not None
        with self._changed:
            while True:
                first = self._outbox.first() or self._now
                if self._closing and (first is None or self._state):
                    return None
                if first is not None:
                    return first
                self._changed.wait()

    def _drop(self, batch: int) -> None:
        assert self._outbox is not None
        self._outbox.drop(batch)
        if not len(self._outbox):
            self._say("")

    def close(self) -> None:
        thread = self._thread
        if thread is not None:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            thread.join(LINGER)
        if self.waiting:
            log.warning("%s: %d batches wait for the next run", self._output.place, self.waiting)
        if thread is None or not thread.is_alive():
            self._to.close()
        self._ledger.close()


def _fenced(clients: Clients, error: Any) -> bool:
    return bool(error.code() == clients.kafka.KafkaError._FENCED)
