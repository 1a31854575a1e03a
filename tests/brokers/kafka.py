"""A real Kafka broker for tests: one process on loopback, in KRaft mode, with all its data in a folder.

    with Broker(folder) as broker:
        broker.address              # 127.0.0.1:41234
        broker.kill(); broker.start()

The jars come from the Maven registry, once, into ~/.cache/kelda (`make brokers`). `NoBroker` says what is
missing where they cannot be had.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from kelda.doctor import find_java, require_java
from kelda.errors import EnvironmentProblem

VERSION = "4.1.0"
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kelda" / f"kafka-{VERSION}"
PATIENCE = 90.0  # seconds until a broker is up: the machine may be busy
HEAP = ["-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]

POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>kelda</groupId><artifactId>brokers</artifactId><version>1</version><dependencies><dependency>
<groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version>
</dependency></dependencies></project>
"""

SERVER = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAIN://127.0.0.1:{port},SASL://127.0.0.1:{sasl},CONTROLLER://127.0.0.1:{controller}
inter.broker.listener.name=PLAIN
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAIN:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \\
 user_ann="{password}";
log.dirs={folder}/data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=2
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.check.interval.ms=500
log.cleaner.backoff.ms=200
log.cleaner.dedupe.buffer.size=4194304
log.segment.delete.delay.ms=0
"""
PASSWORD = "a-secret-of-the-tests"


class NoBroker(Exception):
    """There can be no broker here; the text says what is missing."""


def prepare() -> Path:
    """The folder with the jars, which are fetched if they are not there yet."""
    try:
        require_java()
    except EnvironmentProblem as problem:
        raise NoBroker(str(problem).splitlines()[0]) from problem
    jars = CACHE / "jars"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBroker(f"no Maven (mvn) to fetch Kafka {VERSION} with, and no {jars}")
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = CACHE / f"jars-{os.getpid()}"
    pom = CACHE / f"pom-{os.getpid()}.xml"
    pom.write_text(POM)
    try:
        made = subprocess.run(
            [maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={fresh}"],
            capture_output=True,
            text=True,
            timeout=600,
        )
        if made.returncode:
            raise NoBroker(f"Maven could not fetch Kafka {VERSION}: {(made.stdout + made.stderr)[:300]}")
        if not jars.is_dir():  # another process may have been faster
            fresh.rename(jars)
    finally:
        pom.unlink()
        shutil.rmtree(fresh, ignore_errors=True)
    return jars


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _goes_with_its_parent() -> None:
    """The broker is killed when whoever started it is gone, however that was."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Broker:
    """A broker, which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._jars = folder, prepare()
        folder.mkdir(parents=True, exist_ok=True)
        ports = {"port": free_port(), "sasl": free_port(), "controller": free_port()}
        self.address, self.guarded = (f"127.0.0.1:{ports[name]}" for name in ("port", "sasl"))
        self._port = ports["port"]
        self._settings = folder / "server.properties"
        self._settings.write_text(SERVER.format(folder=folder, password=PASSWORD, **ports))
        self._process: subprocess.Popen[bytes] | None = None
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings)).wait()
        self.start()

    def _java(self, *arguments: str) -> subprocess.Popen[bytes]:
        java = find_java()
        assert java is not None
        with open(self.folder / "log", "ab") as log:
            command = [java.command, *HEAP, "-cp", f"{self._jars}/*", *arguments]
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_goes_with_its_parent
            )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._process = self._java("kafka.Kafka", str(self._settings))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        said = (self.folder / "log").read_text(errors="replace")
        self.kill()
        raise NoBroker(f"Kafka {VERSION} did not start: {said[-2000:]}")

    def kill(self) -> None:
        """As if the power had gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    # ------------------------------------------------------------------ what tests do with it

    def topic(self, name: str, partitions: int = 1, **settings: str) -> str:
        """A new topic."""
        from confluent_kafka.admin import NewTopic

        config = {key.replace("_", "."): value for key, value in settings.items()}
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config)
        admin = self.admin()  # which has to stay until it is done
        admin.create_topics([new], operation_timeout=30)[name].result()
        return name

    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address})

    def producer(self, **more: Any) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.address, "linger.ms": 0, **more})

    def send(self, topic: str, *values: str | bytes | None, partition: int = 0, **more: Any) -> None:
        """Messages to a partition; on the broker when it returns."""
        producer = self.producer()
        failed: list[Any] = []

        def heard(error: Any, message: Any) -> None:
            if error is not None:
                failed.append(error)

        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=heard, **more)
            producer.poll(0)
        assert producer.flush(60) == 0 and not failed, failed

    def read(self, topic: str, partitions: int = 1) -> list[Any]:
        """All messages that are there for a reader of what is committed."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": "tests",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
        found, ended = [], 0
        try:
            while ended < partitions:
                for message in consumer.consume(10_000, timeout=0.5):
                    error = message.error()
                    if error is None:
                        found.append(message)
                    else:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        ended += 1
        finally:
            consumer.close()
        return found


if __name__ == "__main__":
    try:
        print(f"Kafka {VERSION}: {prepare()}")
    except NoBroker as problem:
        print(f"no Kafka here, and its tests are skipped: {problem}", file=sys.stderr)
