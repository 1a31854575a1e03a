"""Who holds how many bytes: a look at all arrays of a running network, down to the single index.

As with the ids that a network still needs (`reachable.py`), no operator tells what it holds, so none can
forget to: everything that can be reached is walked, each array counts once, for the first who leads to it,
and a part is named after the attribute that leads there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from kelda.engine.deltas import Deltas
from kelda.engine.expressions import Compiled, Expressions
from kelda.engine.nodes import JoinWindows, Node, Operated
from kelda.engine.reporter import Reporter
from kelda.engine.window_join import WindowJoin
from kelda.engine.window_join_kernels import SIZE, VALUES
from kelda.rdf.dictionary import Dictionary

# The first three hold terms, which the dictionary counts; a node counts for itself.
_LEFT_OUT = (Dictionary, Expressions, Compiled, Node)
_PLAIN = (int, float, str, bool, bytes)
_OF_A_JOIN = {"_rows": "results", "_start": "results", "_sent": "results"}


class Held(NamedTuple):
    """Bytes of one part: a `kind` of owner (query, shape, join, stream, dictionary), who it is, the part."""

    kind: str
    owner: str
    name: str
    bytes: int

    @property
    def whose(self) -> str:
        """The owner, in words."""
        return f"{self.kind} {self.owner}".rstrip()


class Count:
    """Counts arrays, each of them once."""

    def __init__(self) -> None:
        self._seen: set[object] = set()
        self._taken: dict[int, int] = {}  # of arrays, the bytes that were counted for parts of them

    def node(self, node: Node) -> dict[str, int]:
        """The bytes of a node by part, without those it reads; none if it was counted before."""
        parts: dict[str, int] = {}
        if id(node) in self._seen:
            return parts
        self._seen.add(id(node))
        if isinstance(node, JoinWindows):
            parts |= self._join(node.join)
        elif isinstance(node, Operated):
            parts |= {
                name.strip("_").replace("_", " "): self.bytes(value)
                for name, value in _attributes(node.operator)
            }
        parts["last step"] = self.bytes(node._deltas)
        parts["waiting rows"] = self.bytes(*(value for _, value in _attributes(node)))
        return {name: size for name, size in parts.items() if size}

    def reporter(self, reporter: Reporter) -> int:
        """What was not told yet, and what was told last."""
        return sum(self.bytes(v) for _, v in _attributes(reporter) if isinstance(v, Deltas | np.ndarray))

    def _join(self, join: WindowJoin) -> dict[str, int]:
        """The records of all leaves are parts of one array, with the chains of the indexes in them, and so
        are the hash tables of all indexes."""
        parts: dict[str, int] = {}
        cell = join._cells.itemsize
        for j, (leaf, room) in enumerate(zip(join.leaves, join._rooms, strict=True)):
            parts[f"rows of leaf {j}"] = room * (VALUES + len(leaf.columns)) * cell
        for d, index in enumerate(join._indexes):
            by = " ".join("?" + join.leaves[index.leaf].columns[c] for c in index.keys) or "nothing"
            table = int(join._index_table[d, SIZE]) * join._slots[:1].nbytes
            parts[f"index of leaf {index.leaf} by {by}"] = join._rooms[index.leaf] * cell + table
        rest = self.bytes(join._cells, join._slots) - sum(parts.values())
        for name, value in _attributes(join):
            part = _OF_A_JOIN.get(name, "plan")
            parts[part] = parts.get(part, 0) + self.bytes(value)
        parts["plan"] += rest
        return parts

    def bytes(self, *things: object) -> int:
        """Bytes of all arrays that `things` lead to and that were not counted yet."""
        size, todo = 0, list(things)
        while todo:
            value: Any = todo.pop()
            kind = type(value)
            if kind is np.ndarray:
                size += self._array(value)
            elif value is None or kind in _PLAIN or isinstance(value, _LEFT_OUT):
                continue
            elif isinstance(value, Mapping):
                todo.append(list(value.values()))
            elif isinstance(value, list | tuple | set | frozenset | deque):
                if value and type(next(iter(value))) not in _PLAIN:  # else all are
                    todo += value
            elif kind.__module__.startswith("kelda.engine") and id(value) not in self._seen:
                self._seen.add(id(value))
                todo += [v for _, v in _attributes(value)]
        return size

    def _array(self, array: np.ndarray) -> int:
        """A part of a larger array counts for itself; the larger one, if it comes later, for what is left."""
        if not array.nbytes:
            return 0
        whole = array
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        key: object = id(array)
        if whole is not array:  # the same part may be there as several objects
            key = (id(whole), array.__array_interface__["data"][0], array.nbytes)
        if key in self._seen:
            return 0
        self._seen.add(key)
        if whole is array:
            return max(0, array.nbytes - self._taken.pop(id(array), 0))
        self._taken[id(whole)] = self._taken.get(id(whole), 0) + array.nbytes
        return array.nbytes


def _attributes(thing: object) -> list[tuple[str, object]]:
    found = list(getattr(thing, "__dict__", {}).items())
    for cls in type(thing).__mro__:
        slots = getattr(cls, "__slots__", ())
        found += [(name, getattr(thing, name)) for name in slots if hasattr(thing, name)]
    return found
