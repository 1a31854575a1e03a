"""GROUP_CONCAT(?x) = the members' STR with a separator between, ordered by STR, then DATATYPE, then LANG.

With a member that has no STR, or is unbound, it is unbound. It is made anew from all members of a group
whenever that changes.
"""

from __future__ import annotations

import numpy as np
from pyoxigraph import BlankNode, DefaultGraph, Literal, Triple

from kelda.engine.deltas import UNBOUND, Ids
from kelda.engine.operators.aggregates.members import MemberTable
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Term


class Concat:
    """The aggregate; of `distinct` members, each once."""

    def __init__(self, distinct: bool, separator: str, dictionary: Dictionary) -> None:
        self._distinct, self._separator, self._dictionary = distinct, separator, dictionary
        self._table = MemberTable(dictionary, always=True)

    @property
    def empty(self) -> int:
        return self._dictionary.encode(Literal(""))

    def step(self, runs: Runs, members: Members) -> Ids:
        nothing = np.zeros(len(members.run), np.int64)
        _, _, snapshot = self._table.step(runs, members, nothing, nothing)
        distinct, places = np.unique(snapshot[1], return_inverse=True)
        keys = [_text_key(term) for term in self._dictionary.terms(distinct)]
        by_text = sorted(range(len(keys)), key=lambda i: keys[i] or ("", "", ""))
        rank = np.empty(len(keys), np.int64)
        rank[by_text] = np.arange(len(keys))
        parts: list[list[str] | None] = [[] for _ in range(len(runs))]
        for i in np.lexsort((rank[places], snapshot[0])).tolist():
            run, key = snapshot[0, i], keys[places[i]]
            part = parts[run]
            if key is None:
                parts[run] = None
            elif part is not None:
                part.extend([key[0]] * (1 if self._distinct else int(snapshot[2, i])))
        encode, join = self._dictionary.encode, self._separator.join
        return np.array([UNBOUND if p is None else encode(Literal(join(p))) for p in parts], np.int64)

    def resize(self, kept: Ids, room: int) -> None:
        self._table.resize(kept, room)

    @property
    def nbytes(self) -> int:
        return self._table.nbytes


def _text_key(term: Term | DefaultGraph) -> tuple[str, str, str] | None:
    """(STR, DATATYPE, LANG), '' where there is none; None for a term without STR."""
    if isinstance(term, Literal):
        return term.value, term.datatype.value, term.language or ""
    if isinstance(term, BlankNode | Triple | DefaultGraph):
        return None
    return term.value, "", ""
