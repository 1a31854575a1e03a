"""What travels between tasks and the hosts of shards: stamps, tickets, replies, and what goes wrong."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kelda.errors import KeldaError
from kelda.rdf import wire
from kelda.shards.shard import Outcome
from kelda.spark.run import Run

EXECUTOR = "KELDA_EXECUTOR"  # environment variable of workers: the process that they work for
TICKET = b"\xff" * 8  # begins what stands for parcels that a host has; no parcel begins so

Stamp = tuple[int, int]  # a batch, and which of the times that it was taken
NEW: Stamp = (-1, 0)  # of a shard that has taken nothing

ASKED = frozenset({"take", "told", "offer", "has", "stand_up"})  # what a host can be asked


@wire.plain
@dataclass(frozen=True, slots=True)
class Reply:
    """What a host has made of a batch: what is to be kept, compressed. The answers are asked for apart."""

    stamp: Stamp
    version: int  # of the catalog
    put: dict[int, bytes]
    removed: list[int]
    memory: bytes


def new_ticket() -> bytes:
    """For the parcels of one batch."""
    return TICKET + secrets.token_bytes(8)


class ParcelsGone(KeldaError):
    """The host that had the parcels of a ticket has died: they must be read again."""


class ToldGone(KeldaError):
    """The host that had the answers of a batch has died: it must be taken again."""


def hosts_folder(run: Run) -> Path:
    """Where the sockets of a run's hosts are. Nobody else knows its name before it is there."""
    return Path(tempfile.gettempdir(), f"kelda-hosts-{os.geteuid()}-{run.id[:12]}")


def outcome_of(told: bytes) -> tuple[int, Outcome]:
    """(the shard, what it made of a batch) of what it has told."""
    number, outcome = wire.decode(told, "what a shard tells")
    assert isinstance(outcome, Outcome)
    return int(number), outcome
