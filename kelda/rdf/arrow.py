"""Columns of ids as Arrow arrays, without a Python object per term.

A column has one type, that of all its values:

    integers, of all xsd: types              int64
    decimals, floats, doubles                float64; integers among them, too
    booleans                                 bool
    dateTimes                                timestamp[us, UTC], or, if none has a time zone, timestamp[us]
    dates                                    date32, a time zone is lost
    all else, mixtures, and empty columns    large_string

Text is the bare one: an IRI without brackets, the lexical form of a literal without its language. Numbers and
dates that the type cannot hold (an integer beyond 64 bits, a year beyond 9999) and literals that are not what
their type says ("x"^^xsd:integer) are text, too: one of them makes its column text. Seconds are cut to six
decimals.

Decimals are not `decimal128`: an average of integers is a decimal in SPARQL, and whoever takes columns wants
to reckon with it; pandas would make an object of each. Who needs every digit asks for N-Triples.

Values that are inside their ids are converted where they are, a column at a time. Of hashed ids each distinct
one is looked up once, as bytes; numbers among these are read together, and one by one only dates and what is
written in an unusual way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_FLOOR
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kelda.errors import UsageError
from kelda.rdf import arrow_kernels as kernels
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.hash_kernels import gather
from kelda.rdf.ids import Kind, kinds, numeric_values, time_values
from kelda.rdf.times import FIRST_MS, LAST_MS
from kelda.rdf.values import BOUNDS, EXACTLY, XSD, Moment, Sort, days, of_text

Ids = NDArray[np.int64]
Terms = Literal["values", "ntriples"]
"""How terms become columns: by their values, as above, or all as N-Triples text, with nothing lost."""

TEXT = pa.large_string()


class Held(IntEnum):
    """What a column can hold."""

    NOTHING, TEXT, INTEGER, REAL, BOOLEAN, INSTANT, LOCAL, DATE = range(8)


TYPES: dict[Held, Any] = {
    Held.NOTHING: TEXT,
    Held.TEXT: TEXT,
    Held.INTEGER: pa.int64(),
    Held.REAL: pa.float64(),
    Held.BOOLEAN: pa.bool_(),
    Held.INSTANT: pa.timestamp("us", "UTC"),
    Held.LOCAL: pa.timestamp("us"),
    Held.DATE: pa.date32(),
}

_INLINE = np.zeros(32, np.int8)
_INLINE[[Kind.DECIMAL, Kind.DOUBLE, Kind.DOUBLE_E, Kind.FLOAT, Kind.FLOAT_E]] = Held.REAL
_INLINE[[Kind.STRING, Kind.INTEGER, Kind.BOOLEAN]] = Held.TEXT, Held.INTEGER, Held.BOOLEAN

_EPOCH_SECONDS = days(1970, 1, 1) * 86_400
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_US, _LAST_US = FIRST_MS * 1000, LAST_MS * 1000 + 999


def column(
    ids: Ids, dictionary: Dictionary, terms: Terms = "values", type: Any = None, which: Ids | None = None
) -> Any:
    """The terms of `ids` (0: none) as an Arrow array, or, if it is given, of `ids[which]`, in which all are;
    with a `type`, of that one, or a UsageError says which value does not fit."""
    found = _Column.of(ids, dictionary, which)
    if terms == "ntriples":
        return found.texts(full=True)
    if terms != "values":
        raise UsageError(f"terms are told by their 'values' or as 'ntriples', not as {terms!r}")
    held = _common(found.holds) if type is None else found.fitting(type)
    return found.texts() if held is Held.TEXT else found.values(held)


def _common(holds: frozenset[Held]) -> Held:
    if len(holds) == 1:
        return next(iter(holds))
    return Held.REAL if holds == {Held.INTEGER, Held.REAL} else Held.TEXT


def what_terms(ids: Ids, dictionary: Dictionary) -> NDArray[np.int8]:
    """What kind of term each id stands for, as `arrow_kernels` has them; inline ones are TYPED, 0 is -1."""
    found = _Column.of(ids, dictionary)
    what = np.where(found.ids < 0, np.int8(kernels.TYPED), np.int8(-1))
    what[found.ids > 0] = found.hashed.what
    return what if found.places is None else what[found.places.to_numpy()]


@dataclass(frozen=True)
class _Column:
    """Some ids, and where in the column each stands; if no text is to be looked up, `ids` are the column."""

    ids: Ids
    places: Any
    dictionary: Dictionary

    @classmethod
    def of(cls, ids: Ids, dictionary: Dictionary, which: Ids | None = None) -> _Column:
        places = None if which is None else pa.array(which)
        if not (ids > 0).any():
            return cls(ids, places, dictionary)
        encoded = pa.array(ids).dictionary_encode()
        indices = encoded.indices if places is None else encoded.indices.take(places)
        return cls(encoded.dictionary.to_numpy(), indices, dictionary)

    @cached_property
    def hashed(self) -> _Hashed:
        return _Hashed.of(self.ids[self.ids > 0], self.dictionary)

    @cached_property
    def held(self) -> NDArray[np.int8]:
        """What each id holds."""
        kind = kinds(self.ids)
        held = _INLINE[kind]
        dated = kind == Kind.DATETIME
        if dated.any():
            held[dated] = np.where(time_values(self.ids[dated])[2], Held.INSTANT, Held.LOCAL)
        some = self.ids > 0
        if some.any():
            held[some] = self.hashed.held
        return held

    @cached_property
    def holds(self) -> frozenset[Held]:
        """What there is in the column."""
        present = np.flatnonzero(np.bincount(self.held, minlength=len(Held)))
        return frozenset(Held(int(i)) for i in present) - {Held.NOTHING} or frozenset([Held.TEXT])

    def fitting(self, type: Any) -> Held:
        """What the values are as members of `type`."""
        wanted = next((held for held in reversed(Held) if TYPES[held] == type), None)
        if wanted is None:
            raise UsageError(f"a column of terms is {', '.join(map(str, TYPES.values()))}; not {type}")
        fits = {wanted, Held.INTEGER} if wanted is Held.REAL else {wanted}
        misfit = ~np.isin(self.held, [Held.NOTHING, *fits])
        if wanted is not Held.TEXT and misfit.any():
            odd = _Column(self.ids[misfit][:1], None, self.dictionary).texts(full=True)[0]
            raise UsageError(f'{odd} does not fit into a column of {type}; ask for terms="ntriples"')
        return wanted

    def texts(self, full: bool = False) -> Any:
        """Bare texts, or N-Triples if `full`."""
        inline, hashed = self.ids < 0, self.ids > 0
        parts = [_strings(*kernels.inline_texts(self.ids[inline], full))]
        if hashed.any():
            parts.append(self.hashed.full if full else self.hashed.bare)
        order = np.zeros(len(self.ids), np.int64)
        order[inline] = np.arange(len(parts[0]))
        order[hashed] = len(parts[0]) + np.arange(hashed.sum())
        return self._placed(pa.concat_arrays(parts).take(pa.array(order, mask=self.ids == 0)))

    def values(self, held: Held) -> Any:
        """Values that are all of one kind (integers may be among reals)."""
        mask = self.ids == 0
        values: NDArray[Any]
        match held:
            case Held.INTEGER:
                values = self.ids << 6 >> 6
            case Held.BOOLEAN:
                values = (self.ids & 1).astype(np.bool_)
            case Held.REAL:
                values, _ = numeric_values(self.ids)
                whole = kinds(self.ids) == Kind.INTEGER  # numeric_values knows those that are exact
                values[whole] = self.ids[whole] << 6 >> 6
            case Held.INSTANT | Held.LOCAL:
                values = time_values(self.ids)[0] * 1000
            case _:
                values = np.zeros(len(self.ids), np.int32)
        hashed = self.ids > 0
        if hashed.any():
            values[hashed] = self.hashed.values(held)
        return self._placed(pa.array(values, mask=mask).cast(TYPES[held]))

    def _placed(self, values: Any) -> Any:
        return values if self.places is None else values.take(self.places)


@dataclass(frozen=True)
class _Hashed:
    """Distinct hashed terms: their texts, what they are, where their datatypes begin, bare texts."""

    entries: Entries
    what: NDArray[np.int8]
    types: Ids
    bare: Any

    @classmethod
    def of(cls, ids: Ids, dictionary: Dictionary) -> _Hashed:
        entries = dictionary.entries_of(ids)
        if len(entries.ids) < len(ids):
            dictionary.terms(ids)  # says which is not there
        what, types, bare, ends = kernels.taken_apart(entries.texts, entries.offsets)
        return cls(entries, what, types, _strings(bare, ends))

    @property
    def full(self) -> Any:
        return _strings(self.entries.texts, self.entries.offsets)

    @property
    def held(self) -> NDArray[np.int8]:
        return self._read.held

    def values(self, held: Held) -> NDArray[Any]:
        """The values, all of which a column of this kind can hold."""
        read = self._read
        if held is not Held.REAL:
            return read.whole
        return np.where(read.held == Held.INTEGER, read.whole, read.real)

    @cached_property
    def _read(self) -> _Read:
        found = _Read.nothing(len(self.what))
        typed = np.flatnonzero(self.what == kernels.TYPED)
        if not len(typed):
            return found
        starts, ends = self.types[typed], self.entries.offsets[1:][typed] - 1
        cut = np.zeros(len(typed) + 1, np.int64)
        np.cumsum(ends - starts, out=cut[1:])
        names = np.empty(cut[-1], np.uint8)
        gather(self.entries.texts, starts, ends, names)
        types = _strings(names, cut).dictionary_encode()
        which = types.indices.to_numpy()
        for i, datatype in enumerate(types.dictionary.to_pylist()):
            if datatype.startswith(XSD):
                some = typed[which == i]
                found.take(some, self.bare.take(pa.array(some)), datatype[len(XSD) :])
        return found


@dataclass(frozen=True)
class _Read:
    """What terms hold, and their values: reals in `real`, all else in `whole`."""

    held: NDArray[np.int8]
    whole: Ids
    real: NDArray[np.float64]

    @classmethod
    def nothing(cls, size: int) -> _Read:
        return cls(np.full(size, Held.TEXT, np.int8), np.zeros(size, np.int64), np.zeros(size))

    def take(self, places: Ids, texts: Any, name: str) -> None:
        """Literals of the xsd: type of this name. Numbers as nearly all are written are read together."""
        if name in NUMBERS:
            whole = NUMBERS[name] is Held.INTEGER
            easy = pc.match_substring_regex(texts, _EASY_INTEGER if whole else _EASY_REAL).to_numpy(False)
            numbers = texts.filter(pa.array(easy)).cast(pa.int64() if whole else pa.float64()).to_numpy()
            if name == "float":
                numbers = numbers.astype(np.float32).astype(np.float64)
            fits = np.ones(len(numbers), np.bool_)
            if whole:
                low, high = BOUNDS[name]
                fits &= low is None or numbers >= low
                fits &= high is None or numbers <= high
            some = places[easy][fits]
            self.held[some] = NUMBERS[name]
            (self.whole if whole else self.real)[some] = numbers[fits]
            places, texts = places[~easy], texts.filter(pa.array(~easy))
        for place, text in zip(places.tolist(), texts.to_pylist(), strict=True):
            held, value = _value(text, name)
            self.held[place] = held
            (self.real if held is Held.REAL else self.whole)[place] = value


NUMBERS = dict.fromkeys(BOUNDS, Held.INTEGER) | dict.fromkeys(("decimal", "double", "float"), Held.REAL)
_EASY_INTEGER = "^-?[0-9]{1,18}$"
_EASY_REAL = r"^-?[0-9]{1,40}(\.[0-9]{1,40})?$"


def _value(text: str, name: str) -> tuple[Held, Any]:
    """What a literal of the xsd: type of this name holds, and its value."""
    sort, value = of_text(text, name)
    match sort:
        case Sort.INTEGER if -(2**63) <= value < 2**63:
            return Held.INTEGER, int(value)
        case Sort.DECIMAL if np.isfinite(number := float(value)):
            return Held.REAL, number
        case Sort.DOUBLE | Sort.FLOAT:
            return Held.REAL, value
        case Sort.BOOLEAN:
            return Held.BOOLEAN, value
        case Sort.DATETIME if _FIRST_US <= (us := _microseconds(value)) <= _LAST_US:
            return Held.INSTANT if value.zoned else Held.LOCAL, us
        case Sort.DATE if text[4] == "-" and text[:4] != "0000" and text[0] != "-":
            return Held.DATE, date.fromisoformat(text[:10]).toordinal() - _EPOCH_DAY
    return Held.TEXT, 0


def _microseconds(moment: Moment) -> int:
    seconds = EXACTLY.subtract(moment.seconds, _EPOCH_SECONDS)
    return int(seconds.scaleb(6, EXACTLY).to_integral_value(ROUND_FLOOR))


def _strings(texts: NDArray[np.uint8], offsets: Ids) -> Any:
    """Texts that are one after the other."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(texts))]
    return pa.Array.from_buffers(TEXT, len(offsets) - 1, buffers)


def one_dictionary(parts: Iterable[tuple[Ids, Dictionary]]) -> Dictionary:
    """A dictionary that knows the ids of each part, which its own dictionary knows."""
    groups: dict[int, list[tuple[Ids, Dictionary]]] = {}
    for ids, dictionary in parts:  # views of one dictionary share their slots until these grow
        groups.setdefault(id(dictionary.tables.slots), []).append((ids, dictionary))
    newest = [max((d for _, d in group), key=lambda d: d.tables.arena.size) for group in groups.values()]
    if len(newest) == 1:
        return newest[0]
    together = Dictionary(newest[0].seed if newest else 0)
    for dictionary, group in zip(newest, groups.values(), strict=True):
        together.add_entries(dictionary.entries_of(np.concatenate([ids.ravel() for ids, _ in group])))
    return together
