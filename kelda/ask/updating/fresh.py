"""Values that are new each time, made so that a replay makes the same ones.

A blank node of a template, RAND(), UUID(), STRUUID() and BNODE() are functions of the *stem* (which says the
entry of the catalog and the operation in it), of which of them it is, and of the number of its solution when
all are sorted. They are written as text, all of a column at once, and read as any other terms.
"""

from __future__ import annotations

import numpy as np
import xxhash
from numpy.typing import NDArray

from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ntriples import read
from kelda.rdf.values import XSD
from kelda.store.changes import Ids

_ZERO, _HEX = ord("0"), np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 12, 16, 20)  # digits of a UUID before its dashes
_DIGITS = 15  # of a random number; a double has them exactly
_WORD = 19  # digits of the largest id
_POWERS = 10 ** np.arange(_WORD, dtype=np.int64)


def blank_nodes(label: str, numbers: Ids, dictionary: Dictionary) -> Ids:
    """Blank nodes with this label and a number behind it."""
    found = np.empty(len(numbers), np.int64)
    sizes = np.searchsorted(_POWERS, numbers, side="right")
    for size in np.unique(sizes).tolist():
        here = sizes == size
        found[here] = _terms(f"_:{label}", _decimal(numbers[here], max(size, 1)), "", dictionary)
    return found


def blank_nodes_of(label: str, numbers: Ids, texts: Ids, dictionary: Dictionary) -> Ids:
    """Blank nodes that are equal where the numbers and the texts (as ids) are."""
    sign = np.where(texts < 0, ord("i"), ord("h")).astype(np.uint8)
    parts = [_decimal(numbers, _WORD), sign[:, None], _decimal(np.abs(texts), _WORD)]
    return _terms(f"_:{label}", np.concatenate(parts, axis=1), "", dictionary)


def randoms(stem: str, numbers: Ids, dictionary: Dictionary) -> Ids:
    """Doubles in [0, 1)."""
    drawn = (_mixed(stem, numbers) % np.uint64(10**_DIGITS)).astype(np.int64)
    return _terms('"0.', _decimal(drawn, _DIGITS), f'"^^<{XSD}double>', dictionary)


def uuids(stem: str, numbers: Ids, dictionary: Dictionary) -> Ids:
    """IRIs urn:uuid:…"""
    return _terms("<urn:uuid:", _uuid_text(stem, numbers), ">", dictionary)


def uuid_texts(stem: str, numbers: Ids, dictionary: Dictionary) -> Ids:
    """The strings of such."""
    return _terms('"', _uuid_text(stem, numbers), '"', dictionary)


# ---------------------------------------------------------------------------- bits


def _mixed(stem: str, numbers: Ids) -> NDArray[np.uint64]:
    """64 bits for each number that look random (the finalizer of splitmix64)."""
    seed = np.uint64(xxhash.xxh3_64_intdigest(stem.encode()))
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + seed
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed


# ---------------------------------------------------------------------------- text


def _terms(before: str, middle: NDArray[np.uint8], after: str, dictionary: Dictionary) -> Ids:
    """The ids of the terms that are written so; `middle` has a row of bytes for each."""
    start, end = (np.frombuffer(text.encode(), np.uint8) for text in (f"<x:> <x:> {before}", f"{after} .\n"))
    lines = np.empty((len(middle), len(start) + middle.shape[1] + len(end)), np.uint8)
    lines[:, : len(start)] = start
    lines[:, len(start) : len(start) + middle.shape[1]] = middle
    lines[:, lines.shape[1] - len(end) :] = end
    return read(lines.tobytes(), dictionary, quads=False).o


def _decimal(numbers: Ids, width: int) -> NDArray[np.uint8]:
    """The last digits of numbers that are not negative."""
    return (numbers[:, None] // _POWERS[width - 1 :: -1] % 10 + _ZERO).astype(np.uint8)


def _uuid_text(stem: str, numbers: Ids) -> NDArray[np.uint8]:
    high, low = _mixed(f"{stem}high", numbers), _mixed(f"{stem}low", numbers)
    shifts = np.arange(60, -4, -4, dtype=np.uint64)
    digits = np.concatenate([bits[:, None] >> shifts & np.uint64(15) for bits in (high, low)], axis=1)
    digits[:, 12] = 4  # the version: random
    digits[:, 16] = digits[:, 16] & np.uint64(3) | np.uint64(8)  # the variant
    return np.insert(_HEX[digits.astype(np.int64)], _DASHES, np.uint8(ord("-")), axis=1)
