"""How brokers are spoken to: the table `[kafka]` of a TOML file, with the names that librdkafka has for them.

    [kafka]
    security.protocol = "SASL_SSL"
    sasl.mechanism = "SCRAM-SHA-512"
    sasl.username = "kelda"
    sasl.password = {env = "KAFKA_PASSWORD"}       # or {file = "/run/secrets/kafka"}

Only the path of the file travels. Secrets are in the environment or in files of their own, and are read by
each process that connects: they are in no address, catalog, checkpoint, log or message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kelda.errors import UsageError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "kafka"
OURS = {
    "bootstrap.servers": "the address says them",
    "group.id": "say ?group= in the address",
    "client.id": "it tells the clients of Kelda apart",
    "transactional.id": "it is made of the run and the query",
    "isolation.level": "say ?isolation= in the address",
    "enable.idempotence": "a sink says it, with ?delivery=",
    "enable.auto.commit": "offsets are kept in the checkpoint",
    "enable.auto.offset.store": "offsets are kept in the checkpoint",
    "auto.offset.reset": "say ?start= and ?on_gap= in the address",
    "enable.partition.eof": "it is needed",
    "plugin.library.paths": "nothing is loaded that the address does not name",
}
_SECRET = ("password", "secret", "key.pem", "oauthbearer.config", "assertion.private.key.passphrase")


def settings_in(path: str | Path | None) -> dict[str, str | int | float | bool]:
    """The settings of a file, with the secrets that it points to."""
    if path is None:
        return {}
    path = Path(path)
    try:
        table = tomllib.loads(path.read_text("utf-8")).get(TABLE, {})
    except OSError as error:
        raise UsageError(f"cannot read the settings of Kafka, {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"the settings of Kafka, {path}, are no TOML: {error}") from error
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [{TABLE}] is a table of settings")
    return {name: _value(path, name, value) for name, value in _flat(table)}


def _flat(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """`security.protocol = …` is a table in a table."""
    for name, value in table.items():
        name = f"{before}{name}"
        if isinstance(value, dict) and not (before and set(value) in ({"env"}, {"file"})):
            yield from _flat(value, f"{name}.")
        else:
            yield name, value


def _value(path: Path, name: str, value: Any) -> str | int | float | bool:
    if name in OURS:
        raise UsageError(f"{path}: '{name}' is not to be set: {OURS[name]}")
    if isinstance(value, dict):
        return _secret(path, name, value)
    if name.endswith(_SECRET):
        raise UsageError(
            f"{path}: '{name}' is a secret, and is not written here: write {name} = {{env = \"NAME\"}}, "
            'or {file = "PATH"}'
        )
    if not isinstance(value, str | int | float):
        raise UsageError(f"{path}: '{name}' is a text, a number or a boolean")
    return value


def _secret(path: Path, name: str, where: dict[str, Any]) -> str:
    (kind, place), *_ = where.items()
    if kind == "env":
        found = os.environ.get(str(place))
        if found is None:
            raise UsageError(f"{path}: '{name}' is in the environment as {place}, which is not set")
        return found
    file = path.parent / str(place)
    try:
        return file.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is no text"
        raise UsageError(f"{path}: cannot read '{name}' from {file}: {what}") from error
