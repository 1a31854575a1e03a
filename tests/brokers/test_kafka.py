"""Kafka as source and sink, with a real broker."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import kelda
from kelda.engine.answer import Answer
from kelda.errors import InputError, KeldaError
from kelda.io.sinks import open_sink
from tests.behaviour.cases import CASES
from tests.behaviour.runners import Answers, register, show
from tests.behaviour.worlds import WORLDS, World
from tests.brokers.kafka import PASSWORD, Broker

pytestmark = pytest.mark.kafka

S = "http://ex/s"
PATIENCE = 60.0
NOW_QUERY = "SELECT ?who ?n WHERE { STREAM <http://ex/s> [NOW] { ?who <http://ex/said> ?n } }"


def line(time: int, who: str, n: int) -> str:
    return f'{time}\t<http://ex/{who}> <http://ex/said> "{n}"^^<http://www.w3.org/2001/XMLSchema#integer> .'


def numbers(answers: Iterable[Answer]) -> list[int]:
    return [int(answer.bindings["n"].value) for answer in answers]  # type: ignore[index,union-attr]


def sent(messages: Iterable[Any]) -> list[int]:
    return [int(json.loads(message.value())["bindings"]["n"]["value"]) for message in messages]


def answered(broker: Broker, topic: str, options: str = "end=latest", **how: Any) -> tuple[list[int], Any]:
    """What the query says of a topic, and the rejects."""
    with kelda.connect() as engine:
        engine.stream(
            S, f"kafka://{broker.address}/{topic}?{options}", format=how.pop("format", "tsnt"), **how
        )
        query = engine.register(NOW_QUERY, "q")
        engine.start()
        assert engine.wait(PATIENCE)
        return numbers(query.results()), engine.rejects


def until(true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


# ------------------------------------------------------------------------------ behaviour


def on_kafka(broker: Broker, world: World, folder: Path, partitions: int, **how: Any) -> Answers:
    """All cases of a world, its streams in topics; with several partitions, spread over them."""
    name = f"{world.name}-{partitions}-{folder.name}"
    with kelda.connect(**how) as engine:
        for i, (graph, text) in enumerate(world.graphs.items()):
            file = folder / f"graph{i}.ttl"
            file.write_text(text)
            engine.load(file, graph)
        for i, (iri, (format, text)) in enumerate(world.streams.items()):
            topic = broker.topic(f"{name}-{i}", partitions)
            if format == "messages":
                head, *_ = text.split("\n_:o", 1)
                values = [f"{head}\n{part}" for part in text.split("MESSAGE\n")]
                values[0] = text.split("MESSAGE\n")[0]
            else:
                values = text.splitlines()
            for p in range(partitions):
                broker.send(topic, *values[p::partitions], partition=p)
            address = f"kafka://{broker.address}/{topic}?end=latest"
            engine.stream(iri, address, format=format, lateness=world.lateness)
        queries = [register(engine, case) for case in CASES if case.world == world.name]
        engine.start()
        assert engine.wait(PATIENCE)
        assert not engine.rejects
        return {query.name: list(query.results()) for query in queries}


def check_cases(world: str, answers: Answers) -> None:
    for case in CASES:
        if case.world == world:
            expected = [text.strip() for text in case.expected.strip().splitlines()]
            assert show(answers[case.name]) == expected, case.name


@pytest.mark.parametrize("world", ["building", "observations", "unordered"])
def test_the_behaviour_suite(broker: Broker, world: str, tmp_path: Path) -> None:
    check_cases(world, on_kafka(broker, WORLDS[world], tmp_path, 1, batch_events=3))


def test_streams_in_partitions(broker: Broker, tmp_path: Path) -> None:
    """Which partition an element is in changes no answer, where each has its elements in order of time."""
    check_cases("building", on_kafka(broker, WORLDS["building"], tmp_path, 3, batch_events=2))


@pytest.mark.spark
def test_the_behaviour_suite_on_spark(broker: Broker, tmp_path: Path) -> None:
    check_cases("building", on_kafka(broker, WORLDS["building"], tmp_path, 2, master="local[2]", shards=2))


# ------------------------------------------------------------------------------ the source


def test_partitions_that_are_added(broker: Broker) -> None:
    topic = broker.topic("added", 1)
    broker.send(topic, line(1000, "a", 1), line(2000, "a", 2), "rubbish")
    with kelda.connect() as engine:
        engine.stream(S, f"kafka://{broker.address}/{topic}?refresh=0.2", format="tsnt", lateness=60_000)
        query = engine.register(NOW_QUERY.replace("[NOW]", "[RANGE 1s]"), "q")
        engine.start()
        until(lambda: bool(engine.rejects))
        from confluent_kafka.admin import NewPartitions

        admin = broker.admin()
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result()
        until(lambda: len(broker.admin().list_topics(topic, timeout=30).topics[topic].partitions) == 3)
        for partition in (1, 2):  # of which nobody knows until it is looked for
            broker.send(topic, "rubbish", partition=partition)
        until(lambda: len(engine.rejects) == 3)
        broker.send(topic, line(3000, "b", 3), line(100_000, "b", 6), partition=1)
        broker.send(topic, line(2500, "c", 4), line(100_000, "c", 7), partition=2)
        broker.send(topic, line(3500, "a", 5), line(100_000, "a", 8), partition=0)
        found: list[int] = []

        def all_are_there() -> bool:
            found.extend(numbers(query.results()))
            return len(found) >= 5

        until(all_are_there)
    assert found == [1, 2, 4, 3, 5]


def test_an_idle_partition_holds_nothing_back(broker: Broker) -> None:
    topic = broker.topic("idle", 3)
    broker.send(topic, line(1000, "a", 1), line(5000, "a", 2), partition=0)
    broker.send(topic, line(2000, "b", 3), line(5000, "b", 4), partition=1)
    with kelda.connect() as engine:
        engine.stream(S, f"kafka://{broker.address}/{topic}", format="tsnt", idle=700)
        query = engine.register(NOW_QUERY, "q")
        engine.start()
        found: list[int] = []

        def all_are_there() -> bool:
            found.extend(numbers(query.results()))
            return len(found) >= 2

        until(all_are_there)
        broker.send(topic, line(6000, "c", 5), partition=2)
        broker.send(topic, line(7000, "a", 6), partition=0)
        broker.send(topic, line(8000, "b", 7), line(9000, "b", 8), partition=1)
        until(lambda: all_are_there() and 5 in found)
    assert found[:3] == [1, 3, 2] or found[:2] == [1, 3]


def test_one_far_behind(broker: Broker) -> None:
    """Partitions need not keep pace, whatever the batches: each is in its own order."""
    topic = broker.topic("behind", 2)
    many = [line(1000 + 10 * i, "a", i) for i in range(500)]
    broker.send(topic, *many, partition=0)
    broker.send(topic, line(1005, "b", 1000), line(3005, "b", 1001), partition=1)
    found, _ = answered(broker, topic)
    assert found == [0, 1000, *range(1, 201), 1001, *range(201, 500)]


def test_transactions_and_their_marks(broker: Broker) -> None:
    """What is not committed is not there, and where a transaction ended nothing is missing."""
    topic = broker.topic("transactions", 1)
    producer = broker.producer(**{"transactional.id": "tests-transactions"})
    producer.init_transactions(60)
    n = 0
    for commit in (True, False, True, False, True):
        producer.begin_transaction()
        for _ in range(3):
            n += 1
            producer.produce(topic, line(n * 1000, "a", n), partition=0)
        producer.flush(60)
        producer.commit_transaction(60) if commit else producer.abort_transaction(60)
    found, rejects = answered(broker, topic)
    assert found == [1, 2, 3, 7, 8, 9, 13, 14, 15] and not rejects
    both, _ = answered(broker, topic, "end=latest&isolation=read_uncommitted")
    assert both == list(range(1, 16))


def test_compacted_offsets_are_no_loss(broker: Broker) -> None:
    topic = broker.topic(
        "compacted",
        1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )
    for i in range(12):
        broker.send(topic, line(1000 * i, "a", i), key=f"k{i % 3}")
        time.sleep(0.02)
    broker.send(topic, None, key="k0")  # a tombstone
    found, rejects = [], [None]
    for _ in range(30):
        time.sleep(0.3)
        broker.send(topic, line(50_000, "a", 99), key="last")  # so that there is a segment to close
        found, rejects = answered(broker, topic)
        if len(found) < 13:
            break
    assert found[-1] == 99 and not rejects
    assert {10, 11} <= set(found) and len(found) < 14


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition

    admin = broker.admin()
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result()


def test_deleted_offsets(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("deleted", 1)
    broker.send(topic, *(line(1000 * i, "a", i) for i in range(5)))
    for choice in ("fail", "skip"):

        def go_on(choice: str = choice) -> tuple[list[int], Any]:
            with kelda.connect(checkpoint=tmp_path / choice) as engine:
                if not engine.streams:
                    address = f"kafka://{broker.address}/{topic}?on_gap={choice}&refresh=0.1"
                    engine.stream(S, address, format="tsnt")
                    engine.register(NOW_QUERY, "q")
                engine.start()
                found: list[int] = []
                last = 3 if not (tmp_path / f"{choice}-again").exists() else 13

                def there() -> bool:
                    engine.wait(0)
                    found.extend(numbers(engine.queries[0].results()))
                    return last in found

                until(there)
                return found, engine.rejects

        assert go_on()[0] == [0, 1, 2, 3]
        (tmp_path / f"{choice}-again").touch()
    broker.send(topic, *(line(1000 * i, "a", i) for i in range(5, 15)))
    delete_before(broker, topic, 8)
    found, rejects = go_on()
    assert found == [4, *range(8, 14)]
    assert [(reject.source, reject.reason) for reject in rejects] == [
        (f"kafka://{broker.address}/{topic}, partition 0", "the broker has deleted the offsets 5 to 7")
    ]
    with pytest.raises(InputError, match=r"offsets 5 to 7 .* deleted them .*on_gap=skip"):
        go_on("fail")


def test_messages_with_headers_and_the_time_of_the_broker(broker: Broker) -> None:
    topic = broker.topic("headers", 1, retention_ms="-1")
    said = "http://ex/said"
    broker.send(
        topic, f"<http://ex/a> <{said}> 1 .", headers=[("content-type", b"text/turtle")], timestamp=5000
    )
    broker.send(
        topic,
        json.dumps({"@id": "http://ex/a", said: 2}, indent=1),
        headers=[("RDF-Message-Content-Type", b"application/ld+json"), ("content-type", b"text/csv")],
        timestamp=6000,
    )
    broker.send(topic, line(1, "a", 3), timestamp=7000)
    broker.send(topic, "what?", timestamp=8000)
    with kelda.connect() as engine:
        engine.stream(S, f"kafka://{broker.address}/{topic}?end=latest&time=broker", format="tsnt")
        query = engine.register(NOW_QUERY, "q")
        engine.start()
        assert engine.wait(PATIENCE)
        answers = list(query.results())
        assert [(a.time, n) for a, n in zip(answers, numbers(answers), strict=True)] == [
            (5000, 1),
            (6000, 2),
            (7000, 3),
        ]
        (reject,) = engine.rejects
        assert reject.source == f"kafka://{broker.address}/{topic}, partition 0, offset 3"


def test_a_group_is_told(broker: Broker, tmp_path: Path) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = broker.topic("grouped", 1)
    broker.send(topic, *(line(1000 * i, "a", i) for i in range(5)))
    answered(broker, topic, "end=latest&group=watched")
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "watched"})
    until(lambda: consumer.committed([TopicPartition(topic, 0)], timeout=30)[0].offset == 5)
    consumer.close()


# ------------------------------------------------------------------------------ troubles


def test_what_is_said_of_troubles(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kelda.io.sources.kafka.ASKED", 2.0)
    monkeypatch.setattr("kelda.io.sinks.kafka.PATIENCE", 4.0)
    monkeypatch.setenv("RIGHT", PASSWORD)
    monkeypatch.setenv("WRONG", "another-secret")
    topic = broker.topic("guarded", 1)
    broker.send(topic, line(1000, "a", 1))

    def settings(name: str, *lines: str) -> str:
        (tmp_path / name).write_text("\n".join(["[kafka]", *lines]))
        return str(tmp_path / name)

    sasl = ['security.protocol = "SASL_PLAINTEXT"', 'sasl.mechanism = "PLAIN"', 'sasl.username = "ann"']
    right = settings("right.toml", *sasl, 'sasl.password = {env = "RIGHT"}')
    wrong = settings("wrong.toml", *sasl, 'sasl.password = {env = "WRONG"}')
    tls = settings("tls.toml", 'security.protocol = "SSL"')
    odd = settings("odd.toml", 'sasl.usernam = "ann"')

    def read(address: str) -> list[int]:
        with kelda.connect() as engine:
            engine.stream(S, address, format="tsnt")
            query = engine.register(NOW_QUERY, "q")
            engine.start()
            assert engine.wait(PATIENCE)
            return numbers(query.results())

    assert read(f"kafka://{broker.guarded}/{topic}?end=latest&settings={right}") == [1]
    for address, told in (
        (f"kafka://127.0.0.1:1/{topic}", "is Kafka running there?.*Connection refused"),
        (f"kafka://{broker.address}/nowhere", "there is no such topic"),
        (f"kafka://{broker.guarded}/{topic}?settings={wrong}", "does not take this user or password"),
        (f"kafka://{broker.address}/{topic}?settings={tls}", "no TLS with this broker"),
        (
            f"kafka://{broker.address}/{topic}?settings={odd}",
            'No such configuration property: "sasl.usernam"',
        ),
    ):
        with pytest.raises(KeldaError, match=told) as raised:
            read(address)
        assert "another-secret" not in str(raised.value)
    for address, told in (
        (f"kafka://127.0.0.1:1/{topic}", "is Kafka running there?"),
        (f"kafka://{broker.address}/nowhere", "there is no such topic"),
    ):
        with pytest.raises(KeldaError, match=told):
            open_sink(address, query="q")


# ------------------------------------------------------------------------------ the sink


def answers(*numbers: int) -> list[Answer]:
    from pyoxigraph import Literal, NamedNode

    who = NamedNode("http://ex/a")
    return [Answer("q", 1000 * n, "+", bindings={"who": who, "n": Literal(n)}) for n in numbers]


def test_a_batch_is_sent_once(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topic("once", 2)
    address, how = (
        f"kafka://{broker.address}/{topic}?key=who",
        {"query": "q", "run": "once", "ledger": tmp_path / "l"},
    )
    sink = open_sink(address, **how)
    sink.write(0, answers(1, 2), content="c0")
    sink.write(3, answers(3), content="c3")
    sink.write(3, answers(3), content="c3")
    sink.close()
    (tmp_path / "l").unlink()  # the broker knows
    sink = open_sink(address, **how)
    assert (sink.held.batch, sink.held.content) == (3, "c3")
    sink.write(3, answers(3), content="c3")
    with pytest.raises(KeldaError, match="has batch 3 already"):
        sink.write(3, answers(3), content="other")
    sink.write(4, answers(4), content="c4")
    messages = broker.read(topic, 2)
    assert sent(messages) == [1, 2, 3, 4]
    assert {message.key() for message in messages} == {b"http://ex/a"}
    assert dict(messages[0].headers()) == {"content-type": b"application/json"}
    # Another that opens it fences this one, and goes on.
    later = open_sink(address, **{**how, "ledger": tmp_path / "other"})
    with pytest.raises(KeldaError, match="another process writes"):
        sink.write(5, answers(5), content="c5")
    later.write(5, answers(5), content="c5")
    assert sent(broker.read(topic, 2)) == [1, 2, 3, 4, 5]
    sink.close()
    later.close()


def test_a_construct_query_feeds_a_topic_that_is_a_stream(broker: Broker, tmp_path: Path) -> None:
    first, second = broker.topic("chain-in", 1), broker.topic("chain-out", 1)
    broker.send(first, *(line(1000 * i, "a", i) for i in range(1, 6)))
    with kelda.connect(checkpoint=tmp_path) as engine:
        engine.stream(S, f"kafka://{broker.address}/{first}?end=latest", format="tsnt")
        text = NOW_QUERY.replace(
            "SELECT ?who ?n", "CONSTRUCT { ?who <http://ex/said> ?n ; <http://ex/p> _:b }"
        )
        engine.register(text, "c", sink=f"kafka://{broker.address}/{second}?delivery=at-least-once")
        engine.start()
        assert engine.wait(PATIENCE)
    found, rejects = answered(broker, second, format="messages")
    assert found == [1, 2, 3, 4, 5] and not rejects


def test_a_broker_that_is_away_holds_up_no_other_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kelda.io.sinks.kafka.PROMPT", 1.0)
    caplog.set_level(logging.WARNING, "kelda.kafka")
    with Broker(tmp_path / "broker") as broker:
        topic = broker.topic("away", 1)
        state = tmp_path / "state"

        def connected() -> kelda.Engine:
            return kelda.connect(checkpoint=state)

        engine = connected()
        engine.stream(S, format="tsnt")
        engine.register(NOW_QUERY, "to-kafka", sink=f"kafka://{broker.address}/{topic}")
        engine.register(NOW_QUERY, "other")
        engine.start()

        def push(*numbers: int) -> None:
            engine.stream(S).push("\n".join(line(1000 * n, "a", n) for n in numbers))
            engine.stream(S).heartbeat(1000 * numbers[-1])
            assert engine.flush(PATIENCE)

        push(1)
        broker.kill()
        for n in range(2, 6):
            begin = time.monotonic()
            push(n)
            took = time.monotonic() - begin
        assert took < 1.0  # the first waited a moment, and those behind it do not
        other = next(query for query in engine.queries if query.name == "other")
        assert numbers(other.results()) == [1, 2, 3, 4, 5]
        assert "answers wait" in caplog.text
        engine.stop()
        engine = connected()  # without a broker, too
        engine.start()
        push(6)
        broker.start()
        until(lambda: "all answers are there" in caplog.text)
        assert sent(broker.read(topic)) == [1, 2, 3, 4, 5, 6]
        push(7)
        assert sent(broker.read(topic)) == [1, 2, 3, 4, 5, 6, 7]
        engine.stop()


def test_the_example(broker: Broker, tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    shutil.copytree(root / "examples", tmp_path / "examples")
    folder = tmp_path / "examples" / "kafka"
    job = folder / "job.toml"
    job.write_text(job.read_text().replace("127.0.0.1:9092", broker.address))
    subprocess.run([sys.executable, str(folder / "topics.py"), broker.address], check=True, timeout=60)
    how: Any = {"env": os.environ | {"PYTHONPATH": str(root)}, "stdout": subprocess.PIPE, "text": True}
    main = "from kelda.cli import main; main()"
    kelda_run = subprocess.Popen([sys.executable, "-c", main, "run", str(job)], **how)
    shown = subprocess.Popen([sys.executable, str(folder / "answers.py"), broker.address], **how)
    give_up = threading.Timer(PATIENCE, shown.kill)
    give_up.start()
    try:
        assert shown.stdout is not None
        who = [shown.stdout.readline().partition(" ")[0] for _ in range(2)]
    finally:
        give_up.cancel()
        kelda_run.kill()
        shown.kill()
        kelda_run.communicate()
        shown.communicate()
    assert who == ["http://example.org/ann", "http://example.org/cem"]


def test_exactly_once_whatever_is_killed(broker: Broker, tmp_path: Path) -> None:
    """kill -9 at random moments, from topic to topic: each answer is there once. KELDA_CASES=n kills."""
    kills = int(os.environ.get("KELDA_CASES", "3"))
    seed = random.SystemRandom().randrange(10**6) if "KELDA_RANDOM" in os.environ else 19
    print(f"seed {seed}")
    draw, size = random.Random(seed), 600 + 600 * kills
    source, sink = broker.topic(f"kills-{seed}", 2), broker.topic(f"kills-{seed}-out", 2)
    for p in (0, 1):
        broker.send(source, *(line(10 * n, f"a{n % 7}", n) for n in range(p, size, 2)), partition=p)
    command = [
        sys.executable,
        "-m",
        "tests.brokers.load",
        broker.address,
        source,
        sink,
        str(tmp_path / "state"),
    ]
    killed = 0
    while True:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                assert process.stdout.readline() == "ready\n"
                if killed < kills:
                    process.wait(draw.uniform(0.05, 1.5))
                else:
                    process.wait(300)
            except subprocess.TimeoutExpired:
                pass
            finally:
                process.kill()
            if process.wait() == 0:
                break
            killed += 1
    assert killed or not kills, "it was over before anything was killed: give it more to do"
    assert sorted(sent(broker.read(sink, 2))) == list(range(size))
