"""The catalog: what was declared, registered, paused, moved and dropped, in order.

Entries are numbered and never change; the catalog only grows. *Version* n is the first n entries. The
version that holds for a batch is part of the batch's offset, like the elements it reads, so a batch that
is taken again after a crash finds the same queries, in every process.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, get_args

from kelda.durable import replace_file
from kelda.errors import CheckpointError, KeldaError
from kelda.io.job import QuerySpec, StreamSource
from kelda.kept import RESTORE, reading, writing
from kelda.lang.algebra import Report, When
from kelda.plan.partition import Spread
from kelda.shards.seen import when_seen


@dataclass(frozen=True, slots=True)
class AddStream:
    """A stream is there; its elements are known by its number."""

    number: int
    source: StreamSource


@dataclass(frozen=True, slots=True)
class DropStream:
    iri: str


@dataclass(frozen=True, slots=True)
class Load:
    """A file is loaded into a stored graph (None: the default graph, or those that the file names)."""

    graph: str | None
    path: str
    format: str | None = None
    base: str | None = None  # what its relative IRIs stand against
    name: str = ""  # by which its blank nodes are told from those of other files
    size: int | None = None  # bytes, of a copy that is ours: with fewer it is broken


@dataclass(frozen=True, slots=True)
class DropGraph:
    graph: str | None  # None: the default graph


@dataclass(frozen=True, slots=True)
class Update:
    """A SPARQL update of the stored graphs. What it makes anew (blank nodes, UUIDs, random numbers) depends
    on its `number`; `now` (ms) is what NOW() gives. `documents` are copies of what it loads, by IRI."""

    text: str
    base: str | None = None
    now: int = 0
    number: int = 0
    documents: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Register:
    """A query, spread over shards or whole on one."""

    name: str
    spec: QuerySpec
    spread: Spread | None = None
    shard: int = 0  # if it is whole
    sink: str | None = None  # where its answers go, if not to whoever iterates
    level: int = 0  # above that of the queries whose answers it reads


@dataclass(frozen=True, slots=True)
class RegisterMany:
    """Queries that differ in parameters: `values[p][i]` is the N-Triples text for the i-th name."""

    names: tuple[str, ...]
    spec: QuerySpec
    values: Mapping[str, tuple[str, ...]]
    spread: Spread | None = None
    shard: int = 0
    level: int = 0


@dataclass(frozen=True, slots=True)
class Drop:
    name: str


@dataclass(frozen=True, slots=True)
class Pause:
    name: str
    paused: bool = True


@dataclass(frozen=True, slots=True)
class Warm:
    """A whole query is about to move: `shard` runs it too, silently, until its windows are as full."""

    name: str
    shard: int


@dataclass(frozen=True, slots=True)
class Switch:
    """From now on `shard`, which has warmed up, answers; the one before forgets the query."""

    name: str
    shard: int


GraphOp = Load | DropGraph | Update
Op = AddStream | DropStream | GraphOp | Register | RegisterMany | Drop | Pause | Warm | Switch
_KINDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Op)}


class Catalog:
    """All entries so far. An entry is one or more operations that hold together."""

    def __init__(self) -> None:
        self.entries: list[tuple[Op, ...]] = []

    @property
    def version(self) -> int:
        """How many entries there are."""
        return len(self.entries)

    def add(self, ops: Iterable[Op]) -> int:
        """One more entry; returns the version that has it."""
        self.entries.append(tuple(ops))
        return self.version

    def between(self, after: int, until: int) -> list[Op]:
        """What version `until` has more than version `after`."""
        if until > self.version:
            raise KeldaError(f"version {until} of the catalog is asked for, and there are {self.version}")
        return [op for entry in self.entries[after:until] for op in entry]


class CatalogFolder(Catalog):
    """The catalog as files, one an entry, which appear whole or not at all. One process writes, any read."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def add(self, ops: Iterable[Op]) -> int:
        ops = tuple(ops)
        self.refresh()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(as_json(self._inside(op))) for op in ops]
        replace_file(self._path(self.version), ("\n".join(lines) + "\n").encode())
        return super().add(ops)

    def between(self, after: int, until: int) -> list[Op]:
        """The same, read first if need be: who asks for a version knows that it was written."""
        self.refresh(until)
        return super().between(after, until)

    def refresh(self, until: int | None = None) -> CatalogFolder:
        """Read what is new: all that is seen here, or up to a version, which is waited for."""
        while until is None or self.version < until:
            path, number = self._path(self.version), self.version + 1
            if until is None:
                text = _text(path)
            else:
                text = when_seen(partial(_text, path), path, f"version {number} of the catalog")
            if text is None:
                break
            with reading(path):
                ops = [self._outside(from_json(json.loads(line))) for line in text.splitlines()]
                if not ops:
                    raise ValueError("it is empty")
            super().add(ops)
        return self

    def check(self, needed: int) -> None:
        """Refuse a catalog that lacks an entry: before others, or of the version that is `needed`."""
        numbers = [int(path.stem) for path in self.folder.glob("*.jsonl") if path.stem.isdigit()]
        if self.version < max(needed, max(numbers, default=-1) + 1):
            raise CheckpointError(f"{self._path(self.version)} is missing; {RESTORE}")

    def _inside(self, op: Op) -> Op:
        """As it is written: a file beside the catalog is named from there, so that both can be moved."""
        beside = self.folder.parent

        def within(path: str) -> str:
            return str(Path(path).relative_to(beside)) if Path(path).is_relative_to(beside) else path

        return _with_paths(op, within)

    def _outside(self, op: Op) -> Op:
        """As it was before it was written."""
        return _with_paths(op, lambda path: str(self.folder.parent / path))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:08d}.jsonl"


def _with_paths(op: Op, path: Callable[[str], str]) -> Op:
    """An operation with its files under other names."""
    if isinstance(op, Load):
        return replace(op, path=path(op.path))
    if isinstance(op, Update):
        return replace(op, documents=tuple((iri, path(copy)) for iri, copy in op.documents))
    return op


def _text(path: Path) -> str | None:
    with reading(path):
        try:
            return path.read_text("utf-8")
        except FileNotFoundError:
            return None


def as_json(op: Op) -> dict[str, Any]:
    """An operation as plain data."""
    data = {"op": type(op).__name__, **asdict(op)}
    if isinstance(op, Register | RegisterMany) and op.spec.report is not None:
        data["spec"]["report"]["when"] = op.spec.report.when.value
    return data


def from_json(data: dict[str, Any]) -> Op:
    """What `as_json` made plain."""
    kind = _KINDS[data.pop("op")]
    if "source" in data:
        source = data["source"]
        if source.get("predicates") is not None:
            source["predicates"] = tuple(source["predicates"])
        data["source"] = StreamSource(**source)
    if "documents" in data:
        data["documents"] = tuple((iri, path) for iri, path in data["documents"])
    if "spec" in data:
        report = data["spec"].pop("report", None)
        report = report and Report(**report | {"when": When(report["when"])})
        data["spec"] = QuerySpec(**data["spec"], report=report)
    if data.get("spread") is not None:
        axes = tuple((name, share) for name, share in data["spread"]["axes"])
        data["spread"] = Spread(axes, data["spread"]["merged"])
    if "names" in data:
        data["names"] = tuple(data["names"])
        data["values"] = {name: tuple(texts) for name, texts in data["values"].items()}
    op: Op = kind(**data)
    return op
