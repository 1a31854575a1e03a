"""Where a topic is: its brokers, its name, and the file that says how the brokers are spoken to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kelda.errors import UsageError
from kelda.rdf import wire

if TYPE_CHECKING:
    from kelda.io.sources.address import Address

SCHEME = "kafka"
_SERVER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


@wire.plain
@dataclass(frozen=True, slots=True)
class KafkaPlace:
    """A topic. It travels and is kept, so there is no secret in it: these are read from `settings`, or from
    what that names, wherever somebody speaks to the brokers."""

    servers: str
    topic: str
    settings: str | None = None

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"


def place_in(address: Address) -> KafkaPlace:
    """The topic of an address.

    >>> from kelda.io.sources.address import read_address
    >>> print(place_in(read_address("kafka://a:9092,b:9092/rooms?settings=k.toml")))
    kafka://a:9092,b:9092/rooms
    """
    servers, _, topic = address.place.partition("/")
    if not servers or not all(map(_SERVER.fullmatch, servers.split(","))) or not _TOPIC.fullmatch(topic):
        raise UsageError(
            f"{address.text}: write kafka://host:port/topic, for example kafka://127.0.0.1:9092/rooms "
            "(several brokers as host:port,host:port)"
        )
    return KafkaPlace(servers, topic, address.option("settings", str, None))
