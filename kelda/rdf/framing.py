"""Streams from files and bytes: open, pick the framing, cut into chunks, read events.

    for event in read_events("gps.tsnt.gz", on_reject=print):
        ...

Reading a stream is cutting it into chunks of whole records (`Chunker`) and reading each
(`read_chunk`), here or on another machine: the events, the blank node labels and the line numbers
of rejects are the same however the bytes were cut.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import yaml

from kelda.errors import UsageError
from kelda.rdf.compression import name_of, open_bytes, without_suffix
from kelda.rdf.event import Event, Reject
from kelda.rdf.framings.base import HEAD, MAX_RECORD, Chunk, Framing, Quick, Reading
from kelda.rdf.framings.messages import MESSAGES
from kelda.rdf.framings.ndjsonld import NDJSONLD
from kelda.rdf.framings.nquads import NQUADS
from kelda.rdf.framings.row_kernels import UNSURE
from kelda.rdf.framings.tabular import CSV, JSON
from kelda.rdf.framings.tsnt import TSNT

__all__ = ["FORMATS", "Chunk", "Chunker", "guess_format", "read_chunk", "read_events", "split_records"]

FORMATS: dict[str, Framing] = {
    "tsnt": TSNT,
    "nquads": NQUADS,
    "messages": MESSAGES,
    "ndjsonld": NDJSONLD,
    "csv": CSV,
    "json": JSON,
    "ndjson": JSON,
}

BLOCK = 1 << 20  # bytes read at a time
RECORDS = 4096  # the most records of a chunk

MANY = 1 << 16  # bytes in which usual records are found many at once

BOM = b"\xef\xbb\xbf"


def guess_format(path: str | Path) -> str:
    """The format that a file name stands for, looking through .gz, .bz2, .xz and .zst."""
    inner = without_suffix(path)
    extension = inner.suffix.lower().removeprefix(".")
    for name, framing in FORMATS.items():
        if extension in framing.extensions:
            return name
    known = "\n".join(
        f"  {name:9} .{', .'.join(framing.extensions)}: {framing.about}"
        for name, framing in FORMATS.items()
        if name == framing.name
    )
    raise UsageError(f"cannot tell the stream format of '{path}' from its name; say which it is:\n{known}")


def framing_of(format: str) -> Framing:
    """The framing by its name."""
    framing = FORMATS.get(format)
    if framing is None:
        raise UsageError(f"unknown stream format '{format}'; there are: {', '.join(FORMATS)}")
    return framing


def checked_length(format: str, max_record: int | None) -> int:
    """The bytes that a record may have at most; UsageError if that makes no sense."""
    if max_record is None:
        return MAX_RECORD
    if max_record < 1:
        raise UsageError(f"max_record must be at least 1 byte, not {max_record}")
    if max_record > MAX_RECORD and framing_of(format) not in (CSV, JSON):
        raise UsageError(
            f"max_record of '{format}' can be {MAX_RECORD:,} bytes at most, as the RDF parser has it; "
            f"{max_record:,} can only be said of csv and json"
        )
    return max_record


def prepare_mapping(format: str, mapping: Any) -> Any:
    """A mapping (a dict, or a YAML or JSON file) checked for the format and made ready for use.

    What this returns is taken as a `mapping` by everything here, so that it is checked only once.
    """
    if isinstance(mapping, ReadyMapping):
        if mapping.framing is not framing_of(format):
            raise UsageError(f"the mapping was prepared for '{mapping.framing.name}', not for '{format}'")
        return mapping
    if isinstance(mapping, (str, Path)):
        return _from_file(format, Path(mapping))
    if mapping is not None and not isinstance(mapping, Mapping):
        raise UsageError(f"a mapping must be a table of names and values, not {type(mapping).__name__}")
    framing = framing_of(format)
    return ReadyMapping(framing, framing.prepare(mapping))


def _from_file(format: str, path: Path) -> Any:
    """As `prepare_mapping`; a file that was not changed is read once."""
    try:
        state = path.stat()
    except OSError:
        return prepare_mapping(format, _load(path))  # which raises
    return _unchanged(format, path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _unchanged(format: str, path: Path, mtime_ns: int, size: int) -> Any:
    return prepare_mapping(format, _load(path))


class ReadyMapping:
    def __init__(self, framing: Framing, mapping: Any) -> None:
        self.framing, self.mapping = framing, mapping


def _load(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the mapping {path}: {error}") from error
    try:
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"the mapping {path} is broken: {error}") from error


class Chunker:
    """Cuts a stream of bytes, fed in any portions, into chunks of whole records.

    chunker = Chunker("messages")
    chunks = chunker.feed(b"…") + chunker.feed(b"…") + chunker.finish()

    A record of more than `max_record` bytes is a chunk of which nearly all is left out: it is never held.
    """

    def __init__(
        self,
        format: str,
        *,
        mapping: Any = None,
        max_records: int = RECORDS,
        max_record: int | None = None,
    ) -> None:
        if max_records < 1:
            raise UsageError(f"max_records must be at least 1, not {max_records}")
        ready = prepare_mapping(format, mapping)
        self._longest = checked_length(format, max_record)
        self._splitter = ready.framing.splitter(ready.mapping, self._longest)
        self._context = self._splitter.context
        self._max_records = max_records
        self._rest = b""
        # Of a record that is too long and not at its end yet: its beginning, and what was let go of it.
        self._head, self._gone, self._gone_lines = b"", 0, 0
        self._line, self._ordinal = 1, 0
        self._started = False

    def feed(self, data: bytes) -> list[Chunk]:
        """The chunks that are complete now; what is not stays here."""
        return self._cut(data, at_end=False)

    def finish(self) -> list[Chunk]:
        """The stream has ended: the chunks that were left."""
        return self._cut(b"", at_end=True)

    def _cut(self, data: bytes, at_end: bool) -> list[Chunk]:
        data = self._rest + data
        if not self._started:
            if len(data) < len(BOM) and not at_end:
                self._rest = data
                return []
            data, self._started = data.removeprefix(BOM), True
        chunks: list[Chunk] = []
        start = end = records = 0
        context = self._context

        def close() -> None:
            nonlocal start, records, context
            if records:
                chunks.append(Chunk(self._line, self._ordinal, context, data[start:end]))
            self._line += data.count(b"\n", start, end)
            self._ordinal += records
            start, records, context = end, 0, self._context

        def pass_over(until: int) -> None:
            """A record that is too long, from `start` on."""
            nonlocal start, end
            head = (self._head + data[start : min(until, start + HEAD)])[: min(HEAD, self._longest)]
            size = self._gone + until - start
            chunks.append(Chunk(self._line, self._ordinal, context, head, left_out=size - len(head)))
            self._line += self._gone_lines + data.count(b"\n", start, until)
            self._ordinal += 1
            self._head, self._gone, self._gone_lines = b"", 0, 0
            start = end = until

        if isinstance(self._splitter, Quick) and len(data) >= MANY and not self._gone:
            data = data[self._usual(self._splitter, data, at_end, chunks) :]
            context = self._context
        for cut in self._splitter.cuts(data, at_end):
            if self._gone + cut.end - end > self._longest and cut.record:
                close()
                pass_over(cut.end)
                self._context = context = cut.context
                continue
            self._line += self._gone_lines  # of comments, say
            self._head, self._gone, self._gone_lines = b"", 0, 0
            if not cut.record:
                close()
            end, self._context = cut.end, cut.context
            records += cut.record
            if not cut.record or records == self._max_records:
                close()
        close()
        if at_end and self._gone:
            pass_over(len(data))
        self._rest = data[start:]
        if self._gone + len(self._rest) > self._longest:
            gone = self._splitter.forget(len(self._rest))
            self._head = (self._head + self._rest[: min(gone, HEAD)])[:HEAD]
            self._gone += gone
            self._gone_lines += self._rest.count(b"\n", 0, gone)
            self._rest = self._rest[gone:]
        return chunks

    def _usual(self, splitter: Quick, data: bytes, at_end: bool, chunks: list[Chunk]) -> int:
        """Chunks of usual records, as far as there are such; where they end."""
        array, start = np.frombuffer(data, np.uint8), 0
        while True:
            end, records, why = splitter.usual(array, start, self._max_records, self._longest, at_end)
            if not records or why == UNSURE:
                return start
            chunks.append(Chunk(self._line, self._ordinal, self._context, data[start:end]))
            self._line += data.count(b"\n", start, end)
            self._ordinal += records
            start = end


def split_records(format: str, data: bytes, *, at_end: bool = False, mapping: Any = None) -> int:
    """How many bytes of `data`, which starts at a record boundary, are complete records.

    A CSV header counts as one. To read the parts alone, with what they need of the earlier ones,
    use `Chunker`.
    """
    if at_end:
        return len(data)
    ready = prepare_mapping(format, mapping)
    cuts = ready.framing.splitter(ready.mapping).cuts(data, at_end)
    return cuts[-1].end if cuts else 0


def read_chunk(
    chunk: Chunk,
    format: str,
    *,
    time_predicate: str | None = None,
    mapping: Any = None,
    on_reject: Callable[[Reject], None],
    name: str = "",
    max_record: int | None = None,
    needs_time: bool = False,
) -> Iterator[Event]:
    """The events of one chunk. If they are to have a time (`needs_time`), those without are rejected."""
    ready = prepare_mapping(format, mapping)
    longest = checked_length(format, max_record)
    return _read(ready, chunk, Reading(name, on_reject, time_predicate, ready.mapping, longest, needs_time))


def _read(ready: ReadyMapping, chunk: Chunk, how: Reading) -> Iterator[Event]:
    if chunk.left_out:
        how.too_long(chunk)
        return
    yield from ready.framing.read(chunk, how)


def read_events(
    source: str | Path | bytes | BinaryIO,
    *,
    format: str | None = None,
    time_predicate: str | None = None,
    mapping: str | Path | Mapping[str, Any] | None = None,
    on_reject: Callable[[Reject], None],
    name: str = "",
    on_bytes: Callable[[int], None] | None = None,
    max_record: int | None = None,
) -> Iterator[Event]:
    """The events of a stream: a path, bytes, or a binary file object, compressed or not.

    A record that cannot be read goes to `on_reject`, and the stream goes on; to stop there, raise.
    `name` is the stream's name in rejects, and part of the labels of blank nodes that belong to one
    record (default: the path). `on_bytes` hears how many bytes of the source were read. A record with more
    than `max_record` bytes (default: 16 million) is rejected.
    The mapping and the format are checked before this returns.
    """
    if format is None:
        where = name_of(source)
        if not where:
            raise UsageError(f"say the format of the stream; there are: {', '.join(FORMATS)}")
        format = guess_format(where)
    ready = prepare_mapping(format, mapping)
    name = name or name_of(source)
    if isinstance(source, (str, Path)) and (not Path(source).exists() or Path(source).is_dir()):
        open_bytes(source).close()  # raises what is wrong with it, now rather than at the first event
    how = Reading(name, on_reject, time_predicate, ready.mapping, checked_length(format, max_record))
    return _events(source, format, ready, how, on_bytes)


def _events(
    source: str | Path | bytes | BinaryIO,
    format: str,
    ready: ReadyMapping,
    how: Reading,
    on_bytes: Callable[[int], None] | None,
) -> Iterator[Event]:
    chunker = Chunker(format, mapping=ready, max_record=how.longest)
    with open_bytes(source, on_bytes=on_bytes) as reader:
        while block := reader.read1(BLOCK):  # type: ignore[attr-defined]  # what is there, without waiting for more
            for chunk in chunker.feed(block):
                yield from _read(ready, chunk, how)
    for chunk in chunker.finish():
        yield from _read(ready, chunk, how)
