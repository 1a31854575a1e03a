"""The dictionary: from hashed ids back to terms.

It holds the canonical N-Triples text of each term once, in one block of bytes, and finds it by id through
a hash table of flat arrays, so that millions of terms cost little more than their text. Inline ids are
decoded without it.

It promises that an id never stands for two terms: whoever brings a second one gets `IdCollisionError`.
Any thread may look up and add terms; who hands `tables` to a kernel that adds some holds `lock` meanwhile, or
is the only one who knows the dictionary.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pyoxigraph import DefaultGraph

from kelda.errors import IdCollisionError, UsageError
from kelda.rdf import hash_kernels as kernels
from kelda.rdf import ids as term_ids
from kelda.rdf import wire
from kelda.rdf.few_terms import term_id
from kelda.rdf.hash_kernels import COLLISION, DONE, NEEDS_ROOM, PADDING, Tables
from kelda.rdf.ids import DEFAULT_GRAPH, Term, decode_inline, from_text, padded


@wire.plain
class Entries(NamedTuple):
    """Some entries of a dictionary, to be sent or stored: entry i has the text
    `texts[offsets[i]:offsets[i + 1]]`."""

    ids: NDArray[np.int64]
    texts: NDArray[np.uint8]
    offsets: NDArray[np.int64]


class Dictionary:
    """Hashed ids and the terms they stand for. All dictionaries that meet must have the same `seed`."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self.generation = 0
        """Grows with each `retain`: entry numbers (`entries(since)`) hold within one generation."""
        self._tables = _empty(64, 4096)
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in self.__dict__.items() if name != "lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__ |= state
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return int(self._tables.counts[0])

    def __contains__(self, id: int) -> bool:
        return bool(kernels.find(self._tables.slots, np.array([id], np.int64))[0] >= 0)

    @property
    def nbytes(self) -> int:
        """Bytes of memory in use, spare room included."""
        return sum(array.nbytes for array in self._tables)

    # ------------------------------------------------------------------------ adding

    def encode(self, term: Term | DefaultGraph) -> int:
        """The id of a term, which is known from now on."""
        if isinstance(term, DefaultGraph):
            return DEFAULT_GRAPH
        text = padded(term_ids.text(term).encode())
        id, check = term_id(text, self.seed)
        if id > 0:
            self._intern(id, check, text)
        return int(id)

    def add(self, id: int, text: str | bytes) -> None:
        """Know the hashed `id` as the term with this canonical N-Triples text."""
        data = text.encode() if isinstance(text, str) else text
        if id <= 0 or not data:
            raise UsageError(
                f"id {id} cannot be added with text {data!r}: only hashed (positive) ids have texts"
            )
        text_array = padded(data)
        self._intern(id, kernels.hash_array(text_array, np.uint64(self.seed))[1], text_array)

    def add_batch(
        self, ids: ArrayLike, texts: bytes | NDArray[np.uint8], starts: ArrayLike, ends: ArrayLike
    ) -> None:
        """Know each hashed id as the term with the canonical text `texts[start:end]`."""
        given, first, last = (np.ascontiguousarray(a, np.int64) for a in (ids, starts, ends))
        if not given.size:
            return
        if not given.shape == first.shape == last.shape or given.ndim != 1:
            raise UsageError("ids, starts and ends must be flat arrays of one length")
        if given.min() <= 0 or first.min() < 0 or (last <= first).any() or last.max() > len(texts):
            raise UsageError(
                "ids must be hashed (positive) ids, and spans must lie within the texts, not empty"
            )
        buffer = _with_padding(texts, int(last.max()))
        with self.lock:
            self._add_spans(given, buffer, first, last)

    def _add_spans(
        self,
        given: NDArray[np.int64],
        buffer: NDArray[np.uint8],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> None:
        seed, position = np.uint64(self.seed), 0
        while True:
            status, position, entry = kernels.intern_spans(
                tuple(self._tables), seed, given, buffer, first, last, position
            )
            if status == DONE:
                return
            if status == COLLISION:
                self.collision(entry, bytes(buffer[first[position] : last[position]]))
            assert status == NEEDS_ROOM
            self.make_room(1, int(last[position] - first[position]))

    def add_rows(
        self,
        columns: NDArray[np.int64],
        spans: NDArray[np.int32],
        rows: NDArray[np.int64],
        text: NDArray[np.uint8],
    ) -> None:
        """Know the terms of some rows of statements, as a scan of `text` leaves these: the ids of s, p, o, g,
        and where each begins and ends (0: known already)."""
        seed, place = np.uint64(self.seed), 0
        while True:
            status, place, part, found = kernels.intern_rows(
                tuple(self._tables), seed, columns, spans, rows, text, place
            )
            if status == DONE:
                return
            if status == COLLISION:
                begin, end = spans[2 * part : 2 * part + 2, rows[place]]
                self.collision(found, text[begin:end].tobytes())
            assert status == NEEDS_ROOM
            self.make_room(4, found)

    def _intern(self, id: int, check: int, text: NDArray[np.uint8]) -> None:
        with self.lock:
            status, entry = kernels.intern_array(tuple(self._tables), id, check, text)
            if status == NEEDS_ROOM:
                self.make_room(1, text.size)
                status, entry = kernels.intern_array(tuple(self._tables), id, check, text)
        if status == COLLISION:
            self.collision(entry, text[:-PADDING].tobytes())

    def collision(self, entry: int, text: bytes) -> NoReturn:
        """Fail: `text` came with the id of another entry."""
        known = self._text(entry)
        raise IdCollisionError(
            f"two terms have the id {self._tables.ids[entry]}: {known} and {text.decode(errors='replace')}. "
            f"The hash seed is {self.seed}; start again with another seed (the same one everywhere)."
        )

    # ------------------------------------------------------------------------ looking up

    def term(self, id: int) -> Term | DefaultGraph:
        """The term of an id."""
        return self.terms([id])[0]

    def terms(self, ids: Sequence[int] | NDArray[np.int64]) -> list[Term | DefaultGraph]:
        """The terms of ids, in order; each distinct id is decoded once."""
        distinct, places = np.unique(np.asarray(ids, np.int64), return_inverse=True)
        entries = kernels.find(self._tables.slots, distinct)
        decoded = [
            self._decode(id, entry) for id, entry in zip(distinct.tolist(), entries.tolist(), strict=True)
        ]
        return [decoded[place] for place in places.tolist()]

    def _decode(self, id: int, entry: int) -> Term | DefaultGraph:
        if id < 0:
            return decode_inline(id)
        if entry >= 0:
            return from_text(self._text(entry))
        if id == DEFAULT_GRAPH:
            return DefaultGraph()
        raise UsageError(
            f"id {id} is not in this dictionary: its term was never added, or has been let go by retain()"
        )

    def _text(self, entry: int) -> str:
        start, end = self._tables.offsets[entry : entry + 2]
        return self._tables.arena[start:end].tobytes().decode()

    # ------------------------------------------------------------------------ parts of it

    def entries(self, since: int = 0) -> Entries:
        """The entries numbered `since`, `since` + 1, … in the order in which they were added.

        `entries(since=n)` with n an earlier `len` of the same generation is what is new.
        """
        count, _ = self._tables.counts
        offsets = self._tables.offsets[since : count + 1].copy()
        texts = self._tables.arena[offsets[0] : offsets[-1]].copy()
        return Entries(self._tables.ids[since:count].copy(), texts, offsets - offsets[0])

    def ids(self, since: int = 0) -> NDArray[np.int64]:
        """Those of the same entries."""
        return self._tables.ids[since : self._tables.counts[0]].copy()

    def entries_of(self, ids: NDArray[np.int64]) -> Entries:
        """The entries of these ids, each once, in the order in which they are first met: the same whatever
        else the dictionary knows. Ids that are inline or unknown have none."""
        return self._entries_at(self._entries_of(ids))

    def _entries_at(self, entries: NDArray[np.int64]) -> Entries:
        """Those of these numbers."""
        starts, ends = self._tables.offsets[entries], self._tables.offsets[entries + 1]
        offsets = np.zeros(len(entries) + 1, np.int64)
        np.cumsum(ends - starts, out=offsets[1:])
        texts = np.empty(offsets[-1] + PADDING, np.uint8)
        kernels.gather(self._tables.arena, starts, ends, texts)
        texts[offsets[-1] :] = 0
        return Entries(self._tables.ids[entries], texts, offsets)

    def fresh_entries_of(self, ids: NDArray[np.int64], seen: NDArray[np.bool_]) -> Entries:
        """The same without those that were `seen` before, by the numbers of entries; now all of them are."""
        out = np.empty(min(len(ids), len(self)), np.int64)
        return self._entries_at(out[: kernels.distinct(self._tables.slots, ids, seen, out)])

    def unknown(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The hashed ids among these whose terms are not here, as often as they are there."""
        hashed = ids[ids > 0]
        return hashed[kernels.find(self._tables.slots, hashed) < 0]

    def begin(self, ids: NDArray[np.int64], byte: bytes) -> NDArray[np.bool_]:
        """Of which of these ids the terms are here, and their texts begin so."""
        slots, _, offsets, arena, _ = self._tables
        found = kernels.begin(slots, offsets, arena, ids.ravel(), ord(byte))
        return found.reshape(ids.shape)

    def _entries_of(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of their entries, each once. (To sort the ids first takes longer.)"""
        seen = np.zeros(len(self), np.bool_)
        out = np.empty(min(len(ids), len(self)), np.int64)
        return out[: kernels.distinct(self._tables.slots, ids, seen, out)]

    def add_entries(self, entries: Entries) -> None:
        """Know what another dictionary of the same seed knew."""
        self.add_batch(entries.ids, entries.texts, entries.offsets[:-1], entries.offsets[1:])

    def retain(self, needed: ArrayLike) -> int:
        """Let go of every term but those with the `needed` ids; the number of terms let go."""
        keep = np.sort(self._entries_of(np.asarray(needed, np.int64).ravel()))
        _, ids, offsets, arena, counts = self._tables
        starts, ends = offsets[keep], offsets[keep + 1]
        released = int(counts[0]) - keep.size
        self._tables = _empty(_capacity(keep.size), int((ends - starts).sum()) + PADDING)
        self.generation += 1
        self.add_batch(ids[keep], arena, starts, ends)
        return released

    def clear(self) -> None:
        """Let go of every term (so do views), and keep the room for others: fresh memory is slow."""
        self._tables.slots[:] = 0
        self._tables.counts[:] = 0
        self.generation += 1

    def view(self) -> Dictionary:
        """This dictionary as it is now: it still knows what the other lets go of later."""
        view = Dictionary(self.seed)
        view._tables, view.generation = self._tables, self.generation
        return view

    # ------------------------------------------------------------------------ for kernels

    @property
    def tables(self) -> Tables:
        """The arrays to hand to a kernel that interns; read them anew after `make_room`."""
        return self._tables

    def restore(self, tables: Tables) -> None:
        """Know what a dictionary of the same seed knew whose arrays these are."""
        self._tables = tables

    def make_room(self, entries: int, size: int) -> None:
        """Make sure that this many more entries, with `size` bytes of text in all, fit in."""
        slots, ids, offsets, arena, counts = self._tables
        count, used = counts.tolist()
        if used + size + PADDING > arena.size:
            grown = np.zeros(max(2 * arena.size, used + size + PADDING), np.uint8)
            grown[:used] = arena[:used]
            arena = grown
        if 2 * (count + entries) > len(slots):
            larger = _empty(_capacity(count + entries), 0)
            kernels.rehash(slots, larger.slots)
            larger.ids[:count] = ids[:count]
            larger.offsets[: count + 1] = offsets[: count + 1]
            slots, ids, offsets = larger.slots, larger.ids, larger.offsets
        self._tables = Tables(slots, ids, offsets, arena, counts)


def _capacity(entries: int) -> int:
    """Slots for this many entries: a power of two, at most half of it taken."""
    return max(64, 1 << (2 * entries - 1).bit_length())


def _empty(capacity: int, size: int) -> Tables:
    most = capacity // 2
    return Tables(
        np.zeros((capacity, 2), np.int64),
        np.zeros(most, np.int64),
        np.zeros(most + 1, np.int64),
        np.zeros(size, np.uint8),
        np.zeros(2, np.int64),
    )


def _with_padding(texts: bytes | NDArray[np.uint8], end: int) -> NDArray[np.uint8]:
    """The texts as kernels want them; copied only where they lack the padding."""
    if isinstance(texts, np.ndarray):
        if texts.size >= end + PADDING and texts.flags.c_contiguous and texts.flags.writeable:
            return texts
        texts = texts.tobytes()
    return padded(texts)


def together(entries: Sequence[Entries | None]) -> Entries | None:
    """All of them, each term once."""
    some = [e for e in entries if e is not None]
    if len(some) < 2:
        return some[0] if some else None
    dictionary = Dictionary()
    for each in some:
        dictionary.add_entries(each)
    return dictionary.entries()
