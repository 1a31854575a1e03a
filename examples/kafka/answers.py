"""Print what is in a topic as it comes, whole batches only: python answers.py [BROKER]"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer


def main(broker: str = "127.0.0.1:9092") -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "example",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",  # nothing of a batch before all of it is there
        }
    )
    consumer.subscribe(["in-the-lab"])
    try:
        while True:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                print(message.key().decode(), message.value().decode(), flush=True)
    except KeyboardInterrupt:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
