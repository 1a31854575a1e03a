"""The two kinds of Parquet files that the truth is made of, and what is written on them.

    quads   graph, s, p, o, moment (int64), sign (int8): changes, as ids
    terms   id (int64), text (binary): the canonical N-Triples text of each hashed id that is new

A quads file carries a *label*, as JSON in its metadata under `kelda`: which batches it is of, which it comes
after, checksums of its columns and of those of the terms file beside it, and what was known about each batch.
So a file that is cut, mixed up or lost is found out by whoever reads the others.

A file of one batch has its rows in the order in which they were carried out. One that was compacted has them
by bucket of the subject, a row group each, and within it by predicate and subject: star joins need only the
groups of one bucket of all files, and pages that have no such predicate are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash
from numpy.typing import NDArray

from kelda.kept import reading
from kelda.rdf.dictionary import Entries
from kelda.rdf.hash_kernels import PADDING
from kelda.store.changes import Changes, Ids

BUCKETS = 64

QUADS = pa.schema(
    [pa.field(name, pa.int64(), nullable=False) for name in ("graph", "s", "p", "o", "moment")]
    + [pa.field("sign", pa.int8(), nullable=False)]
)
TERMS = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("text", pa.large_binary(), nullable=False)]
)

# See docs/decisions/truth-in-parquet.md for what each choice costs.
OF_A_BATCH: dict[str, Any] = {
    "compression": "lz4",
    "use_dictionary": False,
    "write_statistics": False,
    "store_schema": False,
}
COMPACTED: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 1,
    "use_dictionary": ["graph", "p", "moment", "sign"],
    "write_statistics": ["graph", "s", "p", "moment"],
    "write_page_index": True,
    "data_page_size": 1 << 16,
    "store_schema": False,
}
COMPACTED_TERMS = OF_A_BATCH | {"compression": "zstd", "compression_level": 1}

_LABEL = "kelda"


def bucket_of(s: Ids) -> Ids:
    """The bucket of each subject."""
    return s & (BUCKETS - 1)


class Content(NamedTuple):
    """How much is in a file, and a checksum of it."""

    rows: int = 0
    checksum: str = ""


class Label(NamedTuple):
    """What is written on a quads file."""

    first: int
    last: int
    after: int  # the last batch of the file before; -1: there is none
    quads: Content
    terms: Content
    about: dict[int, dict[str, Any]]  # by batch
    buckets: list[int] | None = None  # of each row group

    def to_json(self) -> str:
        return json.dumps(self._asdict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes) -> Label:
        told = json.loads(text)
        told["quads"], told["terms"] = Content(*told["quads"]), Content(*told["terms"])
        told["about"] = {int(batch): about for batch, about in told["about"].items()}
        return cls(**told)


class Checksum:
    """Of columns that come in pieces: the same however they are cut."""

    def __init__(self, columns: int) -> None:
        self.rows = 0
        self._columns = [xxhash.xxh3_64() for _ in range(columns)]

    def add(self, *columns: NDArray[Any]) -> None:
        """The next piece of each column."""
        self.rows += len(columns[0])
        for hashed, column in zip(self._columns, columns, strict=True):
            hashed.update(column.data)

    @property
    def content(self) -> Content:
        """What was added so far."""
        together = b"".join(hashed.digest() for hashed in self._columns)
        return Content(self.rows, xxhash.xxh3_64_hexdigest(together))


def _add_quads(checksum: Checksum, changes: Changes) -> list[NDArray[Any]]:
    """Add them; the columns as they lie in a file."""
    *ids, sign = changes.columns
    columns: list[NDArray[Any]] = [*map(np.ascontiguousarray, ids), sign.astype(np.int8)]
    checksum.add(*columns)
    return columns


def _add_terms(checksum: Checksum, entries: Entries) -> None:
    ids, texts, offsets = entries
    checksum.add(np.ascontiguousarray(ids), np.diff(offsets), np.ascontiguousarray(texts[: offsets[-1]]))


# ------------------------------------------------------------------------------ writing


W = TypeVar("W", bound="_Writer")


class _Writer:
    """A Parquet file on its way. What is not finished is let go of with it."""

    def __init__(self, out: Any, schema: Any, options: dict[str, Any], hashed: int) -> None:
        self._writer, self._schema = pq.ParquetWriter(out, schema, **options), schema
        self._checksum = Checksum(hashed)

    def __enter__(self: W) -> W:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def _group(self, columns: Sequence[Any]) -> None:
        table = pa.Table.from_arrays(columns, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(len(table), 1))

    @property
    def content(self) -> Content:
        """What was added so far."""
        return self._checksum.content


class QuadsWriter(_Writer):
    """Writes changes into a file, a row group at a time; the label goes on it at the end."""

    def __init__(self, out: Any, options: dict[str, Any] = OF_A_BATCH) -> None:
        super().__init__(out, QUADS, options, 6)

    def add(self, changes: Changes) -> None:
        """One more row group."""
        self._group([pa.array(column) for column in _add_quads(self._checksum, changes)])

    def put_on(self, label: Label) -> None:
        """What is to be known of it."""
        self._writer.add_key_value_metadata({_LABEL: label.to_json()})


class TermsWriter(_Writer):
    """Writes entries of a dictionary into a file, a row group at a time."""

    def __init__(self, out: Any, options: dict[str, Any] = OF_A_BATCH) -> None:
        super().__init__(out, TERMS, options, 3)

    def add(self, entries: Entries) -> None:
        """One more row group."""
        ids, texts, offsets = entries
        _add_terms(self._checksum, entries)
        buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets)), pa.py_buffer(texts)]
        self._group([pa.array(ids), pa.Array.from_buffers(TERMS.field("text").type, len(ids), buffers)])


# ------------------------------------------------------------------------------ reading


class QuadsFile:
    """A quads file that was opened: it can be read to the end, whatever becomes of its name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            self.size, self._file = _opened(path)
            _same_columns(self._file, QUADS)
            metadata = self._file.metadata.metadata or {}
            self.label = Label.from_json(metadata[_LABEL.encode()])
            self.groups = self._file.num_row_groups
            if self.label.buckets is not None and len(self.label.buckets) != self.groups:
                raise ValueError("not a row group for each bucket")

    def changes(self) -> Changes:
        """All of them, in the order in which they were carried out; checked against the label."""
        with reading(self.path):
            changes = _changes(self._file.read(use_threads=False))
            _add_quads(checksum := Checksum(6), changes)
            _same_content(checksum.content, self.label.quads)
        return changes if self.label.buckets is None else _in_order(changes)

    def by_bucket(self) -> Iterator[Changes]:
        """Of a compacted file those of bucket 0, of bucket 1, …; checked against the label at the end."""
        assert self.label.buckets is not None
        checksum, groups = Checksum(6), dict(zip(self.label.buckets, range(self.groups), strict=True))
        for bucket in range(BUCKETS):
            changes = self._group(groups[bucket]) if bucket in groups else Changes.none()
            _add_quads(checksum, changes)
            yield changes
        with reading(self.path):
            _same_content(checksum.content, self.label.quads)

    def _group(self, number: int) -> Changes:
        with reading(self.path):
            return _changes(self._file.read_row_group(number, use_threads=False))

    def columns(self, *names: str) -> list[Ids]:
        """Some columns, in the order of the file."""
        with reading(self.path):
            table = self._file.read(columns=list(names), use_threads=False)
            return [_ids(table.column(name)) for name in names]


class TermsFile:
    """A terms file that was opened. The label of the quads file beside it says what must be in it."""

    def __init__(self, path: Path, content: Content) -> None:
        self.path, self._content = path, content
        with reading(path):
            self.size, self._file = _opened(path)
            _same_columns(self._file, TERMS)

    def entries(self) -> Entries:
        """All of them, checked against the label."""
        parts = list(self.groups())
        return parts[0] if len(parts) == 1 else concat_entries(parts)

    def groups(self) -> Iterator[Entries]:
        """One row group after another; checked against the label at the end."""
        checksum = Checksum(3)
        for number in range(self._file.num_row_groups):
            with reading(self.path):
                entries = _entries(self._file.read_row_group(number, use_threads=False))
            _add_terms(checksum, entries)
            yield entries
        with reading(self.path):
            _same_content(checksum.content, self._content)


class NoTerms:
    """Of a batch that brings no terms."""

    size = 0

    def entries(self) -> Entries:
        return no_entries()

    def groups(self) -> Iterator[Entries]:
        return iter(())


def _in_order(changes: Changes) -> Changes:
    """By moment, removals first: as good as what it was, since there is one change of a fact a moment."""
    if (changes.sign > 0).all():
        return changes.select(np.argsort(changes.moment, kind="stable"))
    return changes.select(np.lexsort((changes.sign, changes.moment)))


def by_bucket(files: Sequence[QuadsFile]) -> Iterator[Changes]:
    """The changes of several files, by bucket: little more than those of one are in memory at a time, beside
    those of files that are not compacted."""
    compacted = [file.by_bucket() for file in files if file.label.buckets is not None]
    others = Changes.concat([file.changes() for file in files if file.label.buckets is None])
    for parts in zip(*compacted, _split(others), strict=True):
        yield Changes.concat(parts)


def _split(changes: Changes) -> Iterator[Changes]:
    """By bucket."""
    bucket = bucket_of(changes.s).astype(np.uint8)
    changes = changes.select(np.argsort(bucket, kind="stable"))
    ends = np.cumsum(np.bincount(bucket, minlength=BUCKETS)).tolist()
    for start, end in zip([0, *ends], ends, strict=False):
        yield Changes(*(column[start:end] for column in changes.columns))


def no_entries() -> Entries:
    """None at all."""
    return Entries(np.zeros(0, np.int64), np.zeros(PADDING, np.uint8), np.zeros(1, np.int64))


def concat_entries(parts: Sequence[Entries]) -> Entries:
    """One after another."""
    ends = np.cumsum([0, *(part.offsets[-1] for part in parts)])
    return Entries(
        np.concatenate([np.zeros(0, np.int64), *(part.ids for part in parts)]),
        np.concatenate([*(part.texts[: part.offsets[-1]] for part in parts), np.zeros(PADDING, np.uint8)]),
        np.concatenate([[0], *(part.offsets[1:] + end for part, end in zip(parts, ends[:-1], strict=True))]),
    )


def _opened(path: Path) -> tuple[int, Any]:
    """The file, and its size in bytes."""
    size = path.stat().st_size  # which also says in fewer words that it is not there
    return size, pq.ParquetFile(pa.OSFile(str(path)))


def _same_columns(file: Any, wanted: Any) -> None:
    found = [(f.name, _width(f.type), f.nullable) for f in file.schema_arrow]
    if found != [(f.name, _width(f.type), f.nullable) for f in wanted]:
        raise ValueError(f"its columns are {', '.join(f'{n} {t}' for n, t, _ in found)}")


def _width(type: Any) -> Any:
    """What a type is in Parquet, which does not know long texts from short ones."""
    return pa.binary() if type == pa.large_binary() else type


def _same_content(found: Content, wanted: Content) -> None:
    if found.rows != wanted.rows:
        raise ValueError(f"{found.rows} rows instead of {wanted.rows}")
    if found.checksum != wanted.checksum:
        raise ValueError("its checksum is wrong")


def _changes(table: Any) -> Changes:
    return Changes(*(_ids(column) for column in table.columns))


def _ids(column: Any) -> Ids:
    """As an array of its own, which kernels may take."""
    pieces = [chunk.to_numpy() for chunk in column.chunks]
    return np.concatenate([np.zeros(0, np.int64), *pieces], dtype=np.int64)


def _entries(table: Any) -> Entries:
    texts = []
    for chunk in table.column("text").chunks:
        wide = chunk.cast(TERMS.field("text").type)
        _, places, data = wide.buffers()
        offsets = np.frombuffer(places, np.int64)[wide.offset : wide.offset + len(wide) + 1]
        bytes_ = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        none = np.zeros(0, np.int64)
        texts.append(Entries(none, bytes_[offsets[0] : offsets[-1]], offsets - offsets[0]))
    joined = concat_entries(texts) if texts else no_entries()
    return Entries(_ids(table.column("id")), joined.texts, joined.offsets)
