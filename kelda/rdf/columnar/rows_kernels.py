"""Kernel: from the terms of rows to the triples that somebody asks for, and the times of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from kelda.rdf.hash_kernels import helper
from kelda.rdf.keyset_kernels import has
from kelda.rdf.skim_kernels import RULE_O, RULE_O_MASK, RULE_P, RULE_S, RULE_S_MASK

# Columns of the triples of a mapping: which term is the subject, the predicate's id, which term is the
# object, and whether any rule may ask for it.
SUBJECT, PREDICATE, OBJECT, IS_ASKED = range(4)
TRIPLE_SIZE = 4


class Out(NamedTuple):
    """What is written: of each triple its time and event; of each that is asked for its place among them, s,
    p, o and g; of each event its row; and which terms of which rows are needed."""

    times: NDArray[np.int64]
    events: NDArray[np.int64]
    columns: NDArray[np.int64]
    records: NDArray[np.int64]
    needed: NDArray[np.bool_]


@helper
def _matches(rules, tables, s, p, o):  # type: ignore[no-untyped-def]
    for k in range(rules.shape[0]):
        if rules[k, RULE_P] != 0 and rules[k, RULE_P] != p:
            continue
        if rules[k, RULE_S_MASK] >= 0 and not has(tables, rules[k, RULE_S], rules[k, RULE_S_MASK], s):
            continue
        if rules[k, RULE_O_MASK] >= 0 and not has(tables, rules[k, RULE_O], rules[k, RULE_O_MASK], o):
            continue
        return True
    return False


@njit(cache=True, nogil=True)
def triples_of(terms, triples, graph, asked, times, odd, out):  # type: ignore[no-untyped-def]
    """(triples, those asked for, events) of all rows that are not odd. `terms[k, row]` is the id of term k
    there, 0 where it has none; `graph` the term that is the graph's name, or -1. Rows that say nothing are
    odd from now on."""
    rules, tables = asked
    all_times, events, columns, records, needed = out
    size = found = event = 0
    for row in range(odd.shape[0]):
        if odd[row]:
            continue
        before = size
        g = terms[graph, row] if graph >= 0 else np.int64(0)
        for k in range(triples.shape[0]):
            subject, object = triples[k, SUBJECT], triples[k, OBJECT]
            s, p, o = terms[subject, row], triples[k, PREDICATE], terms[object, row]
            if s == 0 or o == 0:
                continue
            all_times[size], events[size] = times[row], event
            if triples[k, IS_ASKED] != 0 and _matches(rules, tables, s, p, o):
                columns[0, found], columns[1, found], columns[2, found] = s, p, o
                columns[3, found], columns[4, found] = g, size
                needed[subject, row] = needed[object, row] = True
                if graph >= 0:
                    needed[graph, row] = True
                found += 1
            size += 1
        if size == before:
            odd[row] = True
            continue
        records[event] = row
        event += 1
    return size, found, event
