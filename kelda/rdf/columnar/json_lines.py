"""`json` by columns: what a mapping names is found in the lines, and its program makes ids of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar import json_kernels as kernels
from kelda.rdf.columnar.cells import MISSING, Cells
from kelda.rdf.columnar.found import Found
from kelda.rdf.columnar.program import Program
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.tabular import JSON
from kelda.rdf.skim import Asked


class Tree(NamedTuple):
    """The columns as a tree of names, for the kernel. A column `a.b` is a member of that name, or if there is
    none `b` of the object `a`: the first is number `literal`, the second number `path`."""

    nodes: NDArray[np.int64]
    names: NDArray[np.uint8]
    places: Sequence[tuple[int, int]]  # of each column: literal, path


class _Node:
    def __init__(self, name: str) -> None:
        self.name, self.column = name, -1
        self.children: dict[str, _Node] = {}

    def child(self, name: str) -> _Node:
        return self.children.setdefault(name, _Node(name))


@lru_cache(64)
def tree_of(columns: Sequence[str]) -> Tree:
    """The tree of these columns."""
    root, places, count = _Node(""), [], 0
    for column in columns:
        found = []
        for steps in dict.fromkeys([(column,), tuple(column.split("."))]):
            node = root
            for step in steps:
                node = node.child(step)
            if node.column < 0:
                node.column, count = count, count + 1
            found.append(node.column)
        places.append((found[0], found[-1]))
    order, names, rows = [root], b"", []
    for node in order:
        text = node.name.encode()
        rows.append([len(names), len(names) + len(text), node.column, len(order), len(node.children)])
        names += text
        order += node.children.values()
    return Tree(np.array(rows, np.int64), np.frombuffer(names + b"\0", np.uint8), places)


def cells_of(data: bytes, tree: Tree) -> tuple[list[Cells], NDArray[np.int64], NDArray[np.bool_]]:
    """The columns in lines of JSON, where lines begin (and the last one ends), and which are odd."""
    size = len(data) + (bool(data) and not data.endswith(b"\n"))
    text = np.empty(size + WIDTH, np.uint8)
    text[: len(data)] = np.frombuffer(data, np.uint8)
    text[len(data) :] = 10
    most = data.count(b"\n") + 1
    count = int(tree.nodes[:, kernels.COLUMN].max()) + 1
    starts, ends = np.empty((2, count, most), np.int64)
    begins, odd = np.empty(most + 1, np.int64), np.empty(most, np.bool_)
    lines = kernels.tokenize(text, size, tree.nodes, tree.names, starts, ends, begins, odd)
    begins[lines] = len(data)
    cells = []
    for literal, path in tree.places:
        start, end = starts[literal, :lines], ends[literal, :lines]
        if literal != path:
            along = start == kernels.ABSENT
            start, end = (
                np.where(along, starts[path, :lines], start),
                np.where(along, ends[path, :lines], end),
            )
        cells.append(Cells(text, np.maximum(start, MISSING), end))
    return cells, begins[: lines + 1], odd[:lines]


def read(chunk: Chunk, how: Reading, asked: Asked, dictionary: Dictionary) -> Found | None:
    """The elements of a chunk of JSON objects."""
    program = Program.of(how.mapping)
    if program is None:
        return None
    cells, begins, odd = cells_of(chunk.data, tree_of(tuple(program.columns)))
    found, records = program.run(cells, len(odd), odd, how, asked, dictionary, chunk.ordinal)
    rest = []
    for first, end in runs(odd):
        text = chunk.data[begins[first] : begins[end]]
        part = Chunk(chunk.first_line + first, chunk.ordinal + first, chunk.context, text)
        rest.append(Odd(first, list(JSON.read(part, how))))
    return woven(found, records, rest, dictionary)
