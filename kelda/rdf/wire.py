"""Plain data as bytes: what goes over a socket or lies in a checkpoint.

Whoever can write there must not be able to make us run anything, so what is read is data, never code: plain
values, arrays of numbers, RDF terms, and objects of the classes that say of themselves that they are
`plain`. Everything else is refused, when it is written and when it is read.

    magic "KLDW" | form | u32 | arrays' dtypes and shapes | u32 | values | the arrays, one after another

Both parts in the middle are msgpack. In the values an object is a map of one entry, whose key is its tag;
an array is its number. So arrays are copied once on either side, as they are, and one that is there several
times is sent once.
"""

from __future__ import annotations

import struct
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from math import prod
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgpack
import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, Triple

from kelda.errors import WireError

FORM = 2
"""Grows with each change that makes what was written before unreadable: also of the fields of a class that
lies in checkpoints."""

MAGIC = b"KLDW"
_LENGTH = struct.Struct("<I")
_DTYPES = {name: np.dtype(name) for name in ("int64", "int32", "uint8", "uint64", "bool", "float64")}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

_TAG, _ARRAY = 1, 2  # kinds of msgpack's extensions

Buffer = bytes | bytearray | memoryview
C = TypeVar("C", bound=type)


# ------------------------------------------------------------------------------ what is plain


class _Form(NamedTuple):
    """How the objects of a class are taken apart and put together."""

    tag: msgpack.ExtType
    apart: Callable[[Any], list[Any]]
    together: Callable[[list[Any]], Any]
    shared: bool = False  # one object may be there many times, and stays one


class _Tag(NamedTuple):
    name: str


_BY_CLASS: dict[type, _Form] = {}
_BY_TAG: dict[str, _Form] = {}


def _know(
    cls: type,
    tag: str,
    apart: Callable[[Any], list[Any]],
    together: Callable[[list[Any]], Any],
    shared: bool = False,
) -> None:
    assert tag not in _BY_TAG, f"two classes are called {tag}"
    _BY_CLASS[cls] = _BY_TAG[tag] = _Form(msgpack.ExtType(_TAG, tag.encode()), apart, together, shared)


def plain(cls: C) -> C:
    """Say of a dataclass or named tuple that its objects may travel and be kept, by its own name."""
    return _plain(cls, shared=False)


def shared(cls: C) -> C:
    """The same for a class whose objects may be there many times: each is written once."""
    return _plain(cls, shared=True)


def _plain(cls: C, *, shared: bool) -> C:
    by_name: list[str] = []
    if is_dataclass(cls):
        names = [f.name for f in fields(cls) if not f.kw_only]
        by_name = [f.name for f in fields(cls) if f.kw_only]
    else:
        names = list(cls._fields)  # type: ignore[attr-defined]
    get = attrgetter(*names, *by_name)
    first, count, name = len(names), len(names) + len(by_name), cls.__name__

    def apart(thing: Any) -> list[Any]:
        return list(get(thing)) if count > 1 else [get(thing)]

    def together(parts: list[Any]) -> Any:
        if len(parts) != count:
            raise ValueError(f"a {name} of {len(parts)} parts, not {count}")
        if not by_name:
            return cls(*parts)
        return cls(*parts[:first], **dict(zip(by_name, parts[first:], strict=True)))

    _know(cls, name, apart, together, shared)
    return cls


def _term(cls: type) -> None:
    # The texts of terms are made by a module with kernels: it is imported when there are terms.
    def apart(term: Any) -> list[Any]:
        from kelda.rdf.ids import text

        return [text(term)]

    def together(parts: list[Any]) -> Any:
        from kelda.rdf.ids import from_text

        term = from_text(*parts)
        if type(term) is not cls:
            raise ValueError(f"{parts[0]!r} is no {cls.__name__}")
        return term

    _know(cls, cls.__name__, apart, together)


for _cls in (NamedNode, BlankNode, Literal, Triple):
    _term(_cls)
_know(DefaultGraph, "DefaultGraph", lambda graph: [], lambda parts: DefaultGraph(*parts))
_know(
    Quad,
    "Quad",
    lambda quad: [quad.subject, quad.predicate, quad.object, quad.graph_name],
    lambda parts: Quad(*parts),
)
_know(tuple, "tuple", list, tuple)
_know(deque, "deque", list, deque)
_know(
    Counter,
    "Counter",
    lambda counts: [list(counts), list(counts.values())],
    lambda parts: Counter(dict(zip(*parts, strict=True))),
)
_know(
    int,  # one that does not fit into 64 bits: others never get here
    "int",
    lambda number: [number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)],
    lambda parts: int.from_bytes(parts[0], "big", signed=True),
)
_SAME = msgpack.ExtType(_TAG, b"same")  # as an object before


# ------------------------------------------------------------------------------ writing


class _Writer:
    def __init__(self) -> None:
        self.shapes: list[list[Any]] = []
        self.arrays: list[memoryview] = []
        self._numbers: dict[int, int] = {}  # of arrays, by identity
        self._shared: dict[int, int] = {}
        self._held: list[Any] = []  # so that no identity is given to another

    def plain(self, thing: Any) -> Any:
        """Something that msgpack does not know, in terms of what it does."""
        kind = type(thing)
        if kind is np.ndarray:
            return self._array(thing)
        form = _BY_CLASS.get(kind)
        if form is None:
            if isinstance(thing, np.integer | np.floating | np.bool_):
                return thing.item()
            raise WireError(
                f"{kind.__module__}.{kind.__qualname__} is no plain data: it cannot be sent or kept"
            )
        if not form.shared:
            return {form.tag: form.apart(thing)}
        if id(thing) in self._shared:
            return {_SAME: self._shared[id(thing)]}
        number = self._shared[id(thing)] = len(self._shared)
        self._held.append(thing)
        return {form.tag: [number, *form.apart(thing)]}

    def _array(self, array: np.ndarray) -> msgpack.ExtType:
        number = self._numbers.get(id(array))
        if number is None:
            name = _NAMES.get(array.dtype)
            if name is None:
                raise WireError(f"an array of {array.dtype} is no plain data: it cannot be sent or kept")
            number = self._numbers[id(array)] = len(self.shapes)
            self.shapes.append([name, *array.shape])
            self._held.append(array)
            if array.size:
                self.arrays.append(np.ascontiguousarray(array).data.cast("B"))
        return msgpack.ExtType(_ARRAY, _LENGTH.pack(number))


def encode(thing: Any) -> bytes:
    """Plain data as bytes."""
    return b"".join(pieces(thing))


def pieces(thing: Any) -> list[bytes | memoryview]:
    """The same in pieces, to be written one after another; arrays are not copied."""
    writer = _Writer()
    values = msgpack.packb(
        thing, default=writer.plain, strict_types=True, use_bin_type=True, unicode_errors="surrogatepass"
    )
    shapes = msgpack.packb(writer.shapes)
    head = MAGIC + bytes([FORM]) + _LENGTH.pack(len(shapes)) + shapes + _LENGTH.pack(len(values))
    return [head, values, *writer.arrays]


# ------------------------------------------------------------------------------ reading


class _Reader:
    def __init__(self, data: memoryview) -> None:
        """Behind the magic."""
        self._shared: dict[int, Any] = {}
        at, shapes = _section(data, 0)
        at, self._values = _section(data, at)
        self._arrays = _arrays(data, at, msgpack.unpackb(shapes))

    def values(self) -> Any:
        return msgpack.unpackb(
            self._values,
            object_pairs_hook=self._map,
            ext_hook=self._extension,
            strict_map_key=False,
            raw=False,
            unicode_errors="surrogatepass",
        )

    def _map(self, pairs: list[tuple[Any, Any]]) -> Any:
        if len(pairs) != 1 or type(pairs[0][0]) is not _Tag:
            return dict(pairs)
        (tag,), parts = pairs[0]
        if tag == "same":
            return self._shared[parts]
        form = _BY_TAG.get(tag)
        if form is None:
            raise ValueError(f"a {tag!r} is nothing that is known here")
        if not isinstance(parts, list):
            raise ValueError(f"a {tag!r} without parts")
        if not form.shared:
            return form.together(parts)
        thing = self._shared[parts[0]] = form.together(parts[1:])
        return thing

    def _extension(self, code: int, data: bytes) -> Any:
        if code == _TAG:
            return _Tag(data.decode())
        if code == _ARRAY:
            return self._arrays[_LENGTH.unpack(data)[0]]
        raise ValueError(f"an extension of kind {code}")


def _section(data: memoryview, at: int) -> tuple[int, memoryview]:
    """(its end, a section of the bytes) that begins with its length."""
    (size,) = _LENGTH.unpack_from(data, at)
    begin = at + _LENGTH.size
    if begin + size > len(data):
        raise ValueError("it is cut off")
    return begin + size, data[begin : begin + size]


def _arrays(data: memoryview, at: int, shapes: list[list[Any]]) -> list[np.ndarray]:
    """The arrays that begin at `at`, each in memory of its own: it may outlive the others."""
    found = []
    for name, *shape in shapes:
        dtype = _DTYPES[name]
        if not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"an array of shape {shape}")
        size = prod(shape) * dtype.itemsize
        if at + size > len(data):
            raise ValueError("it is cut off")
        found.append(
            np.ndarray(shape, dtype, data, at).copy() if size else np.empty(shape, dtype),
        )
        at += size
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes too many")
    return found


WAY_OUT = (
    "it is damaged, or another version of Kelda wrote it; go on with that version, or delete the checkpoint "
    "folder to start from the beginning"
)


def decode(data: Buffer, what: str = "what was sent", way_out: str = WAY_OUT) -> Any:
    """What `encode` was given. `what` the bytes are is said if they are not that, and the way out."""
    view = memoryview(data).cast("B")
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise WireError(f"{what} is not in Kelda's form: {way_out}")
    form = bytes(view[len(MAGIC) : len(MAGIC) + 1])
    if form != bytes([FORM]):
        which = str(form[0]) if form else "(none)"
        raise WireError(f"{what} is in form {which}, and this version reads form {FORM}: {way_out}")
    try:
        return _Reader(view[len(MAGIC) + 1 :]).values()
    except WireError:
        raise
    except Exception as problem:
        # msgpack, numpy and the classes themselves each have their own ways to say that it is no good.
        why = f"{type(problem).__name__}: {problem}"
        raise WireError(f"{what} cannot be read ({why}): {way_out}") from problem
