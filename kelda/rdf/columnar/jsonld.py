"""`ndjsonld` by columns: documents of a shape that was seen before are read by it, the others by the framing.

A shape is learned from the first document that has it (`jsonld_shapes`). What is read by shapes and what is
not is the same for both, so it does not matter what was seen before.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar import jsonld_kernels as kernels
from kelda.rdf.columnar.found import Found, Ids, found_of
from kelda.rdf.columnar.jsonld_known import Known, Table
from kelda.rdf.columnar.jsonld_shapes import Shape, iris_of, learn_rule, learned, names_in, renamed
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Chunk, Reading, RecordError, json_text
from kelda.rdf.framings.blanks import scope_of
from kelda.rdf.framings.ndjsonld import NDJSONLD, ContextMapping, _quads, context_line
from kelda.rdf.skim import Asked

MOST_CONTEXTS = 64  # of which the shapes are known
MOST_SHAPES = 64  # of a context
MOST_AT_ONCE = 32  # documents of a chunk that are looked at to learn from
# What may be spent on that in a context: at first, and with how many records one more; what it takes to have
# a look at a document, and to learn its shape.
AT_FIRST, WITH_RECORDS, LOOK, TRIAL = 1 << 14, 8, 1, 128
BLOCK_TEXT, BLOCK_ROWS = 1 << 26, 1 << 20  # for which there is room at a time

_contexts: OrderedDict[tuple[bytes, str, int], Known] = OrderedDict()
_lock = threading.Lock()


def read(chunk: Chunk, how: Reading, asked: Asked, dictionary: Dictionary) -> Found | None:
    """The elements of a chunk of JSON-LD documents."""
    mapping: ContextMapping = how.mapping
    lines = _Lines(chunk, mapping)
    known = _known(chunk.context, mapping, dictionary.seed)
    said = lines.read(known.table, asked, how, dictionary)
    tried: set[int] = set()
    known.records += len(said.shape)
    while len(tried) < MOST_AT_ONCE and known.spent < AT_FIRST + known.records // WITH_RECORDS:
        line = next((k for k in np.flatnonzero(said.shape < 0).tolist() if k not in tried), -1)
        if line < 0:
            break
        tried.add(line)
        if _learn(known, chunk.context, lines.text(line), mapping):
            said = lines.read(known.table, asked, how, dictionary)
    odd = said.shape < 0
    rest = []
    for first, end in runs(odd):
        if any(context_line(lines.text(line), mapping) is not None for line in range(first, end)):
            return None
    for first, end in runs(odd):
        rest.append(Odd(first, list(NDJSONLD.read(lines.part(first, end), how))))
    return woven(said.found(), np.flatnonzero(~odd), rest, dictionary)


class _Said(NamedTuple):
    """What the lines say that have a shape."""

    table: Table
    shape: Ids  # of each line
    time: Ids
    columns: NDArray[np.int64]

    def found(self) -> Found:
        good = np.flatnonzero(self.shape >= 0)
        sizes = self.table.rows[self.shape[good], kernels.QUADS] if len(good) else good
        size = int(sizes.sum())
        event = np.repeat(np.arange(len(good)), sizes)
        s, p, o, g, rows = self.columns
        graphs = g if g.any() else None
        return Found(size, self.time[good][event], event, rows if len(rows) < size else None, s, p, o, graphs)


class _Lines:
    """The records of a chunk."""

    def __init__(self, chunk: Chunk, mapping: ContextMapping) -> None:
        data = chunk.data
        size = len(data) + (bool(data) and not data.endswith(b"\n"))
        self._chunk, self._size = chunk, size
        self._text = np.empty(size + WIDTH, np.uint8)
        self._text[: len(data)] = np.frombuffer(data, np.uint8)
        self._text[len(data) :] = 10
        most = data.count(b"\n") + 1
        begins, numbers = np.empty((2, most + 1), np.int64)
        count = kernels.split(self._text, size, begins, numbers)
        begins[count] = size
        self._begins, self._numbers, self._count = begins[: count + 1], numbers[:count], count

    def text(self, line: int) -> bytes:
        return self._chunk.data[self._begins[line] : self._begins[line + 1]]

    def part(self, first: int, end: int) -> Chunk:
        """Some lines, as a chunk."""
        text = self._chunk.data[self._begins[first] : self._begins[end]]
        line, ordinal = self._chunk.first_line + int(self._numbers[first]), self._chunk.ordinal + first
        return Chunk(line, ordinal, self._chunk.context, text)

    def read(self, table: Table, asked: Asked, how: Reading, dictionary: Dictionary) -> _Said:
        """What the lines of known shapes say."""
        shape, time = np.full(self._count, kernels.UNKNOWN), np.empty(self._count, np.int64)
        if not len(table.rows):
            return _Said(table, shape, time, np.zeros((5, 0), np.int64))
        wanted = table.wanted(asked, how.time_predicate, how.needs_time)
        lines, parts = (self._begins, shape, time), []
        scope = np.frombuffer(scope_of(how.name, 0)[:-1].encode() + bytes(WIDTH), np.uint8)
        first = 0
        rows = 0
        while first < self._count:
            last = self._block(first, table)
            size = int(self._begins[last] - self._begins[first]) + (last - first) * table.more_text
            most = (last - first) * table.most_quads
            columns, spans = np.empty((5, most), np.int64), np.empty((8, most), np.int32)
            arena = np.empty(size + table.more_text + 4 * WIDTH, np.uint8)
            state = np.array([rows, 0, 0], np.int64)
            kernels.read(
                self._text,
                table.known,
                wanted,
                lines,
                first,
                last,
                self._chunk.ordinal + first,
                scope,
                np.uint64(dictionary.seed),
                (columns, spans, arena),
                state,
            )
            rows, found = int(state[0]), int(state[1])
            parts.append(columns[:, :found])
            dictionary.add_rows(columns, spans, np.arange(found), arena)
            first = last
        ids, places = table.constants_of(shape[shape >= 0], wanted[0])
        dictionary.add_batch(ids, table.texts, places[:, 0], places[:, 1])
        all_columns = np.concatenate(parts, axis=1) if parts else np.zeros((5, 0), np.int64)
        return _Said(table, shape, time, all_columns)

    def _block(self, first: int, table: Table) -> int:
        """Up to where lines are read at a time: one at least."""
        most = max(1, BLOCK_ROWS // max(1, table.most_quads))
        most = min(most, max(1, BLOCK_TEXT // max(1, table.more_text)))
        by_text = int(np.searchsorted(self._begins, self._begins[first] + BLOCK_TEXT, "right")) - 1
        return min(self._count, first + most, max(first + 1, by_text))


def _known(context: bytes, mapping: ContextMapping, seed: int) -> Known:
    key = context, mapping.key, seed
    with _lock:
        known = _contexts.get(key)
        if known is None:
            known = _contexts[key] = Known(seed)
            known.names |= names_in([mapping.contexts, json.loads(context) if context else None])
            while len(_contexts) > MOST_CONTEXTS:
                _contexts.popitem(last=False)
        _contexts.move_to_end(key)
    return known


def _learn(known: Known, context: bytes, line: bytes, mapping: ContextMapping) -> bool:
    """Learn from a line that has no shape yet; whether there is something new."""

    def say(text: bytes) -> Sequence[Quad] | None:
        try:
            return renamed(_quads(text, context, mapping))
        except RecordError:
            return None

    try:
        names = _names_of(json.loads(json_text(line)))
    except (ValueError, RecursionError, RecordError):
        return False
    with known.lock:
        known.spent += LOOK
        seen = [(shape, iris) for shape in known.shapes if (iris := iris_of(shape, line)) is not None]
        if seen:
            news = [learn_rule(shape, line, hole, value, say) for shape, iris in seen for hole, value in iris]
            if any(news):
                known.spent += TRIAL
                known.renew()
            return any(news)
        if len(known.shapes) >= MOST_SHAPES or not say(line):
            return False
        known.spent += TRIAL
        names |= known.names
        shape = learned(line, say)
        if shape is None or not _holds(shape, names, line, context, mapping):
            return False
        known.shapes.append(shape)
        known.names |= names
        known.renew()
        return True


def _holds(shape: Shape, names: set[str], line: bytes, context: bytes, mapping: ContextMapping) -> bool:
    """Whether the shape makes of the line that it was learned from what the framing makes of it."""
    chunk, how = Chunk(1, 0, context, line), Reading("", lambda _: None, None, mapping)
    asked = Asked.of([(None, None, None)])
    by_shape, by_framing = Dictionary(), Dictionary()
    said = _Lines(chunk, mapping).read(Table([shape], names, 0), asked, how, by_shape)
    if said.shape.tolist() != [0]:
        return True  # its own values are not sure, or its time is no good: others may be
    found = said.found()
    events = list(NDJSONLD.read(chunk, how))
    wanted = found_of(events, by_framing)
    if len(events) != 1 or wanted.size != found.size or found.time.tolist() != wanted.time.tolist():
        return False
    graphs = np.zeros(found.size, np.int64) if found.g is None else found.g
    pairs = [(found.s, wanted.s), (found.p, wanted.p), (found.o, wanted.o), (graphs, wanted.g)]
    ids = np.concatenate([found.s, found.p, found.o, graphs])
    same = all(np.array_equal(one, other) for one, other in pairs if other is not None)
    return same and by_shape.terms(ids) == by_framing.terms(ids)


def _names_of(document: object) -> set[str]:
    """The names in the contexts of a document."""
    if isinstance(document, list):
        return {name for part in document for name in _names_of(part)}
    if not isinstance(document, dict):
        return set()
    found = names_in(document.get("@context"))
    return found | {name for part in document.values() for name in _names_of(part)}
