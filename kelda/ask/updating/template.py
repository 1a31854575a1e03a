"""Templates filled in: from a table of solutions to quads, a column at a time."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, Triple

from kelda.ask.updating import quads
from kelda.ask.updating.table import Table
from kelda.lang import algebra as A
from kelda.lang.update import Template
from kelda.rdf.arrow import what_terms
from kelda.rdf.arrow_kernels import BLANK, IRI
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import DEFAULT_GRAPH, Term
from kelda.rdf.ntriples import ids_of
from kelda.store.changes import Ids


def variables(template: Template) -> frozenset[A.Var]:
    """The variables of a template."""
    return frozenset(part for triple in template for part in _parts(triple) if isinstance(part, A.Var))


def written(template: Template, labels: Mapping[A.Var, BlankNode], dictionary: Dictionary) -> Ids:
    """The quads of a template without variables but those that stand for blank nodes."""
    rows = [[_named(part, labels) for part in _parts(triple)] for triple in template]
    terms = list(dict.fromkeys(part for row in rows for part in row if part is not None))
    ids = dict(zip(terms, ids_of(terms, dictionary), strict=True))
    found = [
        [DEFAULT_GRAPH if part is None else ids[part] for part in row]
        for row in rows
        if not isinstance(row[1], Literal | Triple)
    ]
    return np.array(found, np.int64).reshape(-1, 4).T


def filled(template: Template, table: Table, dictionary: Dictionary) -> Ids:
    """What a template makes of all solutions. A quad is left out where a variable is unbound, or stands for
    what cannot be there: a literal as subject, a blank node as predicate, …"""
    if not len(table):
        return quads.NONE
    ground = tuple(triple for triple in template if not variables((triple,)))
    filler = _Filler(table, dictionary)
    parts = [written(ground, {}, dictionary)]
    parts += [filler.quads(triple) for triple in template if variables((triple,))]
    return np.concatenate(parts, axis=1)


class _Filler:
    """Fills in one template triple after another; looks at each variable's column once."""

    def __init__(self, table: Table, dictionary: Dictionary) -> None:
        self._table, self._dictionary = table, dictionary
        self._what: dict[str, NDArray[np.int8]] = {}

    def quads(self, triple: A.TriplePattern) -> Ids:
        graph, s, p, o = _parts(triple)
        size = len(self._table)
        if isinstance(s, Literal | Triple):
            return quads.NONE
        fits = self._may_be(s, IRI, BLANK) & self._may_be(p, IRI) & (self._ids(o) != 0)
        if graph is not None:
            fits = fits & self._may_be(graph, IRI, BLANK)
        where = np.flatnonzero(np.broadcast_to(fits, size))
        found = np.empty((4, len(where)), np.int64)
        for row, part in zip(found, (graph, s, p, o), strict=True):
            row[:] = np.broadcast_to(self._ids(part), size)[where]
        return found

    def _ids(self, part: A.TermOrVar | None) -> Ids:
        """The ids of all solutions; of length 1 where they are the same."""
        if part is None:
            return np.full(1, DEFAULT_GRAPH)
        if not isinstance(part, A.Var):
            return np.full(1, self._dictionary.encode(_term(part)))
        column = self._table.column(part.name)
        return np.zeros(1, np.int64) if column is None else column

    def _may_be(self, part: A.TermOrVar, *kinds: int) -> NDArray[np.bool_]:
        """Where a variable stands for one of these kinds of terms; a constant is of the right kind."""
        if not isinstance(part, A.Var):
            return np.ones(1, np.bool_)
        if part.name not in self._what:
            self._what[part.name] = what_terms(self._ids(part), self._dictionary)
        return np.isin(self._what[part.name], kinds)


def _parts(triple: A.TriplePattern) -> tuple[A.TermOrVar | None, A.TermOrVar, A.TermOrVar, A.TermOrVar]:
    graph = triple.graph if isinstance(triple, A.QuadPattern) else None
    return graph, triple.s, triple.p, triple.o


def _named(part: A.TermOrVar | None, labels: Mapping[A.Var, BlankNode]) -> Term | None:
    if part is None:
        return None
    return labels[part] if isinstance(part, A.Var) else _term(part)


def _term(part: A.TermOrVar) -> Term:
    assert not isinstance(part, A.Var | A.Param)
    return part
