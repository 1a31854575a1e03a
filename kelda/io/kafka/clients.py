"""The client of Kafka: made as the settings say, and its troubles in words that say what to do."""

from __future__ import annotations

import logging
import time
from types import ModuleType
from typing import Any

from kelda.errors import InputError, KeldaError, UsageError
from kelda.io.kafka.place import KafkaPlace
from kelda.io.kafka.settings import settings_in

PATIENCE = 60.0  # seconds that a broker which is away is waited for, where somebody waits for its answer
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0

log = logging.getLogger("kelda.kafka")


def client() -> ModuleType:
    """The package, or what to install."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise UsageError(
            "kafka:// needs the client of Kafka, which is not installed: pip install 'kelda[kafka]'"
        ) from error
    return confluent_kafka


class Clients:
    """Makes clients for a topic, and remembers what they last complained of: that tells more than the error
    of a call that waited in vain."""

    def __init__(self, place: KafkaPlace) -> None:
        self.place, self.kafka = place, client()
        self.trouble: Any = None

    def config(self, **more: Any) -> dict[str, Any]:
        """What a client is made with."""
        return {
            "reconnect.backoff.max.ms": 2000,
            "log_level": 4,
            **settings_in(self.place.settings),
            "bootstrap.servers": self.place.servers,
            "client.id": "kelda",
            "error_cb": self._hear,
            "logger": log,
            **{name.replace("_", "."): value for name, value in more.items()},
        }

    def _hear(self, error: Any) -> None:
        if self.trouble is None or error.code() != self.kafka.KafkaError._ALL_BROKERS_DOWN:
            self.trouble = error

    def made(self, kind: Any, **more: Any) -> Any:
        """A client of a kind; UsageError if a setting is no good."""
        config = self.config(**more)
        logger = config.pop("logger")
        try:
            return kind(config, logger=logger)
        except self.kafka.KafkaException as error:
            raise UsageError(f"{self.place}: {error.args[0].str()}; see {self.place.settings}") from None

    def admin(self) -> Any:
        return self.made(self.kafka.admin.AdminClient)

    def consumer(self, group: str, isolation: str, **more: Any) -> Any:
        return self.made(
            self.kafka.Consumer,
            group_id=group,
            isolation_level=isolation,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            **more,
        )

    # ------------------------------------------------------------------ what went wrong

    def may_pass(self, error: Any) -> bool:
        """Whether it may go well when it is tried again."""
        kafka = self.kafka.KafkaError
        error = self.trouble if self._says_more(error) else error
        return error.code() not in (
            kafka._AUTHENTICATION,
            kafka._SSL,
            kafka.SASL_AUTHENTICATION_FAILED,
            kafka.TOPIC_AUTHORIZATION_FAILED,
            kafka.GROUP_AUTHORIZATION_FAILED,
            kafka.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            kafka.CLUSTER_AUTHORIZATION_FAILED,
            kafka.UNKNOWN_TOPIC_OR_PART,
            kafka._UNKNOWN_TOPIC,
            kafka._UNKNOWN_PARTITION,
            kafka._AUTO_OFFSET_RESET,
            kafka.OFFSET_OUT_OF_RANGE,
            kafka.MSG_SIZE_TOO_LARGE,
            kafka._FENCED,
            kafka.INVALID_PRODUCER_EPOCH,
        )

    def _says_more(self, error: Any) -> bool:
        kafka = self.kafka.KafkaError
        waited = (kafka._TRANSPORT, kafka._TIMED_OUT, kafka._ALL_BROKERS_DOWN, kafka.REQUEST_TIMED_OUT)
        return self.trouble is not None and error.code() in waited

    def explained(self, error: Any) -> KeldaError:
        """An error of the client with what to do about it."""
        kafka = self.kafka.KafkaError
        error = self.trouble if self._says_more(error) else error
        said = error.str()
        match error.code():
            case kafka._AUTHENTICATION | kafka.SASL_AUTHENTICATION_FAILED:
                hint = "the broker does not take this user or password: look at sasl.* in [kafka]"
            case code if code == kafka._SSL or "SSL handshake failed" in said or "SSL_HANDSHAKE" in said:
                hint = "no TLS with this broker: look at ssl.* in [kafka], and at the dates of certificates"
            case kafka.UNKNOWN_TOPIC_OR_PART | kafka._UNKNOWN_TOPIC | kafka._UNKNOWN_PARTITION:
                hint = "there is no such topic: make it, or look at its name"
            case kafka.MSG_SIZE_TOO_LARGE:
                hint = "the topic takes no messages of this size: raise max.message.bytes of the topic"
            case _ if "AUTHORIZATION" in error.name():
                hint = "the user may not do this: ask for the right (ACL)"
            case _:
                hint = "is Kafka running there? If it asks for TLS or a password, say so in [kafka]"
        return InputError(f"{self.place}: {hint} ({said})")


class Pauses:
    """Trying again: pauses that grow, for as long as one has patience."""

    def __init__(self, patience: float) -> None:
        self._until, self._pause = time.monotonic() + patience, FIRST_PAUSE

    @property
    def goes_on(self) -> bool:
        """Whether there is patience left."""
        return time.monotonic() < self._until

    def wait(self) -> bool:
        """Wait before another try; False if that was the last."""
        left = self._until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, self._pause))
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return True
