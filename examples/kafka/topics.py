"""Make the topics of the example, and send sightings: python topics.py [BROKER]

Each line of ../sightings.tsnt is a message; who was seen is its key, so their sightings stay in order.
"""

from __future__ import annotations

import sys
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

SIGHTINGS = Path(__file__).parent.parent / "sightings.tsnt"
# What is true at an instant is told when something later is seen.
LAST = "10000\t<http://example.org/dan> <http://example.org/seenIn> <http://example.org/hall> ."


def main(broker: str = "127.0.0.1:9092") -> None:
    admin = AdminClient({"bootstrap.servers": broker})
    topics = [NewTopic("sightings", num_partitions=2), NewTopic("in-the-lab", num_partitions=1)]
    for name, made in admin.create_topics(topics).items():
        try:
            made.result()
            print(f"made the topic {name}")
        except KafkaException as problem:
            if problem.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    producer = Producer({"bootstrap.servers": broker})
    lines = [*SIGHTINGS.read_text(encoding="utf-8").splitlines(), LAST]
    for line in lines:
        who = line.split()[1]
        producer.produce("sightings", line, key=who)
    producer.flush()
    print(f"sent {len(lines)} sightings")


if __name__ == "__main__":
    main(*sys.argv[1:])
