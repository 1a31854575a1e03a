"""The image of a store: its working form as it was behind a batch, in a file that is mapped to open it.

    working/000000000012.image    the heap and the dictionary behind batch 12

An image is worth nothing without the truth: it is stamped with the last batch whose changes it has, and what
the truth knows about that batch. One that is missing, damaged, or of another batch than the truth has is
passed over, and the store is made again from the truth; what later batches changed is carried out on it. It
is written under a hidden name, synced and renamed, never changed, and mapped so that who writes into a page
has that for himself: processes of a machine share all that none of them has changed.

    magic | u32 | header, as JSON | sections, each from the beginning of a page
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from kelda.durable import make_folder, remove, sync, temporary_name, write_all
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.hash_kernels import PADDING, Tables
from kelda.store.heap import Heap
from kelda.store.store import Store
from kelda.store.truth import Truth

FOLDER = "working"  # in that of the store
MAGIC, FORM = b"KLDI", 1
_LENGTH = struct.Struct("<I")
PAGE = max(mmap.ALLOCATIONGRANULARITY, 1 << 16)
MOST_HEADER = 1 << 20

About = dict[str, Any]


class _Section(NamedTuple):
    """An array in the file, of `length` items. The first `used` of them are there, others are 0."""

    dtype: str
    used: int
    length: int
    at: int
    checksum: str


class Image(NamedTuple):
    """A store as it was behind a batch. `written` tells which of its terms the truth has."""

    batch: int
    about: About
    store: Store
    written: NDArray[np.bool_]


class Images:
    """Those in the folder of a store: one at most is kept."""

    def __init__(self, truth: Truth) -> None:
        self._truth, self.folder = truth, truth.folder / FOLDER

    @property
    def newest(self) -> int:
        """The batch of the last one, sound or not; -1: there is none."""
        with contextlib.suppress(OSError):
            return max(
                (int(Path(name).stem) for name in os.listdir(self.folder) if _is_image(name)), default=-1
            )
        return -1

    def latest(self, until: int | None = None) -> Image | None:
        """The last one that is sound, fits the truth, and has nothing behind a batch."""
        for path in sorted(self.folder.glob("*.image"), reverse=True):
            # Whatever is wrong with it: all that it has is in the truth.
            with contextlib.suppress(OSError, ValueError, LookupError, TypeError, AssertionError):
                if (image := self._open(path, until)) is not None:
                    return image
        return None

    def _open(self, path: Path, until: int | None) -> Image | None:
        with _opened(path) as file:
            header = _header(file)
            batch, about = int(header["batch"]), dict(header["about"])
            if (until is not None and batch > until) or about != self._truth.about(batch):
                return None
            sections = {name: _Section(*some) for name, some in header["sections"].items()}
            store = Store(dictionary=Dictionary(int(header["seed"])), heap=_heap(file, sections.pop("heap")))
            found = {name: _array(file, section) for name, section in sections.items()}
        written = found.pop("written").view(np.bool_)
        store.dictionary.restore(Tables(found.pop("slots").reshape(-1, 2), **found))
        return Image(batch, about, store, written)

    def write(self, store: Store, batch: int, about: About, written: NDArray[np.bool_]) -> None:
        """Have the image of a store in the place of all others. The store has what the truth tells up to a
        batch, and nobody changes it meanwhile. Where there is no room for an image, there is none."""
        make_folder(self.folder)
        path = self.folder / f"{batch:012d}.image"
        beside = path.with_name(temporary_name(path.name))
        others = [*self.folder.glob("*.image"), *self.folder.glob(".*")]
        try:
            file = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                _write(file, store, batch, about, written)
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(beside, path)
            sync(self.folder)
        except OSError:
            remove([beside])
            return
        remove(other for other in others if other not in (path, beside))


def _write(file: int, store: Store, batch: int, about: About, written: NDArray[np.bool_]) -> None:
    sections: dict[str, _Section] = {}
    at = PAGE * -(-(len(json.dumps(about)) + 4096) // PAGE)
    for name, array, length in _arrays(store, written):
        size = length * array.itemsize
        sections[name] = _Section(array.dtype.name, len(array), length, at, _checksum(array))
        write_all(file, array.data.cast("B"), at) if len(array) else None
        at += PAGE * -(-size // PAGE)
    os.ftruncate(file, at)
    told = {"form": FORM, "batch": batch, "about": about, "seed": store.dictionary.seed, "sections": sections}
    header = json.dumps(told).encode()
    check = xxhash.xxh3_64(header).digest()
    write_all(file, MAGIC + _LENGTH.pack(len(header)) + check + header, 0)


def _arrays(store: Store, written: NDArray[np.bool_]) -> Iterator[tuple[str, NDArray[Any], int]]:
    """Each with its name, and how long it is to be with the room that is spare."""
    yield "heap", store.heap.cells[: store.heap.nbytes // 8], store.heap.nbytes // 8
    slots, ids, offsets, arena, counts = store.dictionary.tables
    entries, used = counts.tolist()
    yield "slots", slots.reshape(-1), slots.size
    yield "ids", ids[:entries], len(ids)
    yield "offsets", offsets[: entries + 1], len(offsets)
    yield "arena", arena[:used], used + used // 8 + PADDING
    yield "counts", counts, len(counts)
    yield "written", written[:entries].view(np.uint8), entries


def _checksum(array: NDArray[Any]) -> str:
    return xxhash.xxh3_64_hexdigest(array.data)


# ------------------------------------------------------------------------------ reading


def _is_image(name: str) -> bool:
    stem, _, kind = name.partition(".")
    return kind == "image" and stem.isdigit()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield file
    finally:
        os.close(file)


def _header(file: int) -> dict[str, Any]:
    head = os.pread(file, len(MAGIC) + _LENGTH.size + 8, 0)
    (size,) = _LENGTH.unpack_from(head, len(MAGIC))
    data = os.pread(file, min(size, MOST_HEADER), len(head))
    if head[: len(MAGIC)] != MAGIC or xxhash.xxh3_64(data).digest() != head[-8:]:
        raise ValueError("no image")
    header: dict[str, Any] = json.loads(data)
    if header["form"] != FORM:
        raise ValueError("an image of another version")
    return header


def _array(file: int, section: _Section) -> NDArray[Any]:
    """A section, mapped; who writes into it has the page for himself."""
    dtype = np.dtype(section.dtype)
    size = section.length * dtype.itemsize
    _check_size(file, section.at + size)
    if not size:
        return np.zeros(0, dtype)
    mapped = mmap.mmap(file, size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=section.at)
    array = np.frombuffer(mapped, dtype)
    _check(array[: section.used], section)
    return array


def _heap(file: int, section: _Section) -> Heap:
    heap = Heap()
    size = section.used * heap.cells.itemsize
    _check_size(file, section.at + size)
    heap.lay(file, section.at, section.used)
    _check(heap.cells[: section.used], section)
    return heap


def _check_size(file: int, size: int) -> None:
    if os.fstat(file).st_size < size:  # to read behind the end of a mapped file kills
        raise ValueError("it is cut off")


def _check(array: NDArray[Any], section: _Section) -> None:
    if _checksum(array) != section.checksum:
        raise ValueError("its checksum is wrong")
