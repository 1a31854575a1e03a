"""CONSTRUCT and DESCRIBE: triples from solutions, as columns of ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kelda.ask.matching import distinct
from kelda.ask.node import At
from kelda.ask.table import Ids, Table, no_rows
from kelda.engine import expression_kernels as kernels
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary

TRIPLE = ("s", "p", "o")
QUAD = (*TRIPLE, "graph")  # 0 is no graph


def constructed(template: tuple[A.TriplePattern, ...], solutions: Table, at: At) -> Table:
    """What a template makes of solutions, in their order, each triple once; incomplete ones are left out. A
    blank node of the template is a new one for each solution."""
    many = len(solutions)
    columns = QUAD if any(isinstance(t, A.QuadPattern) for t in template) else TRIPLE
    if not many or not template:
        return Table(columns, no_rows(len(columns)))
    filled: dict[A.TermOrVar, Ids] = {}

    def values(term: A.TermOrVar) -> Ids:
        if term not in filled:
            if not isinstance(term, A.Var):
                filled[term] = np.full(many, at.dictionary.encode(term))  # type: ignore[arg-type]
            elif term.name in solutions.columns:
                filled[term] = solutions.column(term.name)
            elif term.name.startswith("."):
                filled[term] = at.fresh.values("BNODE", many)
            else:
                filled[term] = np.zeros(many, np.int64)
        return filled[term]

    built = np.zeros((len(columns), many, len(template)), np.int64)
    there = np.ones((many, len(template)), np.bool_)
    for i, t in enumerate(template):
        parts = [t.s, t.p, t.o, *([t.graph] if isinstance(t, A.QuadPattern) else [])]
        for place, part in enumerate(parts):
            ids = built[place, :, i] = values(part)
            there[:, i] &= _fits(ids, place, at.dictionary)
    triples = built.reshape(len(columns), -1)[:, there.ravel()]
    return Table(columns, triples[:, distinct(triples)])


def _fits(ids: Ids, place: int, dictionary: Dictionary) -> NDArray[np.bool_]:
    """Which terms may stand in a place of a triple."""
    if TRIPLE[place : place + 1] == ("o",):
        return ids != 0
    kinds = _classes(ids, dictionary)
    fits: NDArray[np.bool_] = kinds == kernels.IRI
    return fits if place == TRIPLE.index("p") else fits | (kinds == kernels.BLANK)


def described(ids: Ids, at: At) -> Table:
    """The triples of these subjects, and in turn those of blank nodes that they lead to."""
    seen = front = np.unique(ids[ids != 0])
    parts: list[Ids] = []
    while len(front):
        found = []
        for table in at.graph.tables():
            which, objects = table.by_subject(front)
            found.append(np.stack([front[which], np.full(len(which), table.predicate), objects]))
        parts += found
        objects = np.unique(np.concatenate([part[2] for part in found])) if found else seen[:0]
        blank = objects[_classes(objects, at.dictionary) == kernels.BLANK]
        front = np.setdiff1d(blank, seen, assume_unique=True)
        seen = np.union1d(seen, front)
    return Table(TRIPLE, np.concatenate(parts, axis=1) if parts else no_rows(3))


def _classes(ids: Ids, dictionary: Dictionary) -> NDArray[np.uint8]:
    tables = dictionary.tables
    found: NDArray[np.uint8] = kernels.classes(
        np.ascontiguousarray(ids), tables.slots, tables.offsets, tables.arena
    )
    return found
