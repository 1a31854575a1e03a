"""Turtle by columns: the prefixes in force as a table, and the arrays that the kernel works in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import RdfFormat, parse

from kelda.rdf import turtle_kernels as kernels
from kelda.rdf import turtle_terms_kernels as terms
from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.messages import Context
from kelda.rdf.skim import Asked
from kelda.rdf.turtle_statement_kernels import STACK_SIZE
from kelda.rdf.turtle_tokens_kernels import LABEL_COLUMNS, LABELS, MORE_SCRATCH

_RDF = b"http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_FIXED = [b"<" + _RDF + name + b">" for name in (b"type", b"first", b"rest", b"nil")]
# Behind these a local name of letters, digits and "-_.:" makes a valid IRI, whatever it is.
_OPEN = re.compile(
    rb"<(?:[a-z][a-z0-9+-]*:)(?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?[/#?]|[^/?#<>])[^\x00-\x20<>]*\Z"
)
_UNUSUAL = re.compile(rb"[\x80-\xff%\\\[\]]|/\.|#[^#]*#")
_HIERARCHY = re.compile(rb"<[a-z][a-z0-9+-]*://[^/?#]+/")


class UnusableError(Exception):
    """A context in which the kernel can read nothing."""


@lru_cache(maxsize=64)
def prefixes_of(context: bytes) -> kernels.Prefixes:
    """The table of a context; UnusableError if there is a mistake in it."""
    try:
        list(parse(context, RdfFormat.TRIG))
    except (SyntaxError, MemoryError):
        raise UnusableError from None
    known = Context(context)
    names = dict(known.prefixes)
    if known.base is not None:
        names[b""] = known.base
    size = max(8, 1 << (2 * len(names)).bit_length())
    table = np.full((size + 2 + len(_FIXED), terms.PREFIX_COLUMNS), -1, np.int64)
    text = bytearray()

    def put(place: int, name: bytes, iri: bytes, usable: bool) -> None:
        at = len(text)
        text.extend(name + iri)
        table[place] = at, len(name), at + len(name), len(iri), usable

    for name, iri in names.items():
        place = _place(name, size - 1)
        while table[place, terms.PREFIX_SIZE] >= 0:
            place = (place + 1) & (size - 1)
        put(place, name, iri[:-1], bool(name) and _is_usable(iri[:-1]))
    base = (known.base or b"<>")[:-1].partition(b"#")[0]
    usable = known.base is not None and _is_usable(base) and _HIERARCHY.match(base) is not None
    put(size, b"", base.partition(b"?")[0].rpartition(b"/")[0] + b"/", usable)
    put(size + 1, b"", base, usable)
    for i, iri in enumerate(_FIXED):
        put(size + 2 + i, b"", iri, True)
    padding = bytes(2 * WIDTH)
    return kernels.Prefixes(table, np.frombuffer(bytes(text) + padding, np.uint8).copy(), size - 1)


def _place(name: bytes, mask: int) -> int:
    word = int.from_bytes(name[:8], "little") + len(name)
    return (word * 0x9E3779B185EBCA87 & 2**64 - 1) >> 40 & mask


def _is_usable(iri: bytes) -> bool:
    return _OPEN.match(iri) is not None and _UNUSUAL.search(iri) is None


class Reader:
    """Reads the messages of one text, in arrays that grow as need be."""

    def __init__(
        self,
        buffer: NDArray[np.uint8],
        messages: kernels.Messages,
        scope: str,
        asked: Asked,
        times: Sequence[int],
        how: tuple[bool, bool, bool],
        dictionary: Dictionary,
    ) -> None:
        size = len(buffer) // 16 + 256
        self._buffer, self._messages, self._asked, self._how = buffer, messages, asked, how
        self._dictionary = dictionary
        self._scope = np.frombuffer(f"_:{scope}".encode(), np.uint8)
        self._times = np.array(times, np.int64)
        self._work = kernels.Work(
            np.zeros(8, np.int64),
            np.empty((1024, terms.TERM_SIZE), np.int64),
            np.empty((1024, 4), np.int64),
            np.empty(1 << 16, np.uint8),
            np.zeros((terms.NAMES, terms.NAME_COLUMNS), np.int64),
            np.empty(terms.NAMES * terms.NAME_STRIDE, np.uint8),
            np.zeros((LABELS, LABEL_COLUMNS), np.int64),
            np.empty(STACK_SIZE, np.int64),
        )
        self._found = kernels.Found(
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(len(messages.begins), np.int64),
            np.empty((5, size), np.int64),
        )
        self._state = np.zeros(kernels.STATE_SIZE, np.int64)

    def read(self, prefixes: kernels.Prefixes, end: int) -> None:
        """Read the messages up to number `end`, with these prefixes in force."""
        state = self._state
        self._work.names[:] = 0
        begins, ends, numbers, odd = self._messages
        messages = begins[:end], ends[:end], numbers[:end], odd[:end]
        while True:
            status = kernels.parse(
                self._buffer,
                messages,
                tuple(prefixes),
                self._scope,
                tuple(self._work),
                tuple(self._asked),
                self._times,
                self._how,
                np.uint64(self._dictionary.seed),
                tuple(self._dictionary.tables),
                tuple(self._found),
                state,
            )
            if status == kernels.DONE:
                return
            if status == kernels.FULL:
                self._grow(int(state[kernels.BYTES]))
            elif status == kernels.NEEDS_ROOM:
                self._dictionary.make_room(int(state[kernels.ENTRIES]), int(state[kernels.BYTES]))
            else:
                begin, end = state[[kernels.CLASH_START, kernels.CLASH_END]].tolist()
                self._dictionary.collision(int(state[kernels.CLASH_ENTRY]), self._text(begin, end))

    def _text(self, begin: int, end: int) -> bytes:
        """A span of the text, or of what was put together, which is counted from the text, too."""
        if begin >= 0 and end <= len(self._buffer) - WIDTH:
            return self._buffer[WIDTH + begin : WIDTH + end].tobytes()
        begin += self._buffer.ctypes.data + WIDTH - self._work.scratch.ctypes.data
        end += self._buffer.ctypes.data + WIDTH - self._work.scratch.ctypes.data
        return self._work.scratch[max(0, begin) : max(0, end)].tobytes()

    def _grow(self, scratch: int) -> None:
        """More room, of all that may have been too small."""
        work, found, state = self._work, self._found, self._state
        size = len(work.scratch)
        if scratch + 4 * MORE_SCRATCH > size:
            self._work = work._replace(scratch=np.empty(2 * (scratch + 4 * MORE_SCRATCH), np.uint8))
            return
        self._work = work._replace(
            terms=np.empty((2 * len(work.terms), terms.TERM_SIZE), np.int64),
            rows=np.empty((2 * len(work.rows), 4), np.int64),
        )
        rows = int(state[kernels.ALL_ROWS])
        if len(found.times) - rows < 2 * len(work.rows):
            more = len(found.times) + 2 * len(work.rows)
            times, events = (np.concatenate([a[:rows], np.empty(more, np.int64)]) for a in found[:2])
            many = int(state[kernels.FOUND])
            columns = np.concatenate(
                [found.columns[:, :many], np.empty((5, rows + more - many), np.int64)], axis=1
            )
            self._found = kernels.Found(times, events, found.records, columns)

    @property
    def found(self) -> kernels.Found:
        """What was found, as long as it is."""
        rows, events, many = self._state[[kernels.ALL_ROWS, kernels.EVENTS, kernels.FOUND]].tolist()
        times, numbers, records, columns = self._found
        return kernels.Found(times[:rows], numbers[:rows], records[:events], columns[:, :many])
