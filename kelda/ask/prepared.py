"""A query that is asked once or many times: parsed and planned once."""

from __future__ import annotations

from time import time_ns

import numpy as np
from pyoxigraph import NamedNode, Quad, Triple

from kelda.ask.construct import constructed, described
from kelda.ask.decoding import Decoder
from kelda.ask.facts import Dataset, Graph, Stored
from kelda.ask.fresh import Fresh
from kelda.ask.node import At, Node
from kelda.ask.plan import Planner, names
from kelda.ask.table import Table
from kelda.engine.functions import check_functions
from kelda.engine.oneshot import Result, Solutions
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.lang.deep import with_room
from kelda.lang.scope import visible_vars
from kelda.lang.walk import mentioned
from kelda.rdf.dictionary import Dictionary


def prepare(query: str | A.Query, dictionary: Dictionary) -> PreparedAsk:
    """A query, ready to be asked of views whose terms are in the dictionary."""
    parsed = parse(query) if isinstance(query, str) else query
    return PreparedAsk(parsed, dictionary)


class PreparedAsk:
    """A query without windows. New terms that it makes go into the dictionary."""

    def __init__(self, query: A.Query, dictionary: Dictionary) -> None:
        if query.windows:
            raise UsageError("a query with windows cannot be asked once: register it")
        check_functions(query)
        self.query = query
        self._dictionary = dictionary
        self._decoder = Decoder(dictionary)
        self._dataset = Dataset.of(query.dataset, dictionary.seed)
        self._last: tuple[Stored, Graph] | None = None
        self._plan = with_room(query.depth, self._planned)

    def _planned(self) -> Node:
        query = self.query
        needed = names(visible_vars(query.pattern))
        if query.form is A.Form.ASK:
            needed = frozenset()
        elif query.form is A.Form.CONSTRUCT:
            needed = names(mentioned(query.template))
        elif query.form is A.Form.DESCRIBE:
            needed = names(mentioned(query.describe))
        return Planner(query, self._dictionary).ordered(query.pattern, needed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of what `run` gives."""
        return self._plan.columns

    def run(
        self,
        view: Stored,
        *,
        now_ms: int | None = None,
        seed: int | str | None = None,
        limit: int | None = None,
    ) -> Table:
        """The solutions of a SELECT; the triples of a CONSTRUCT or DESCRIBE; of an ASK one empty solution, or
        none. `now_ms` fixes NOW(), `seed` what RAND() and its like give. `limit`: of no more than so many
        solutions."""
        at = At(
            view,
            self._dataset,
            self._graph(view),
            self._dictionary,
            time_ns() // 1_000_000 if now_ms is None else now_ms,
            Fresh(self._dictionary, seed),
        )
        return with_room(self.query.depth, lambda: self._run(at, limit))

    def _graph(self, view: Stored) -> Graph:
        """The default graph; tables that were found stay found while the view is the same."""
        if self._last is None or self._last[0] is not view:
            self._last = (view, Graph(view, self._dataset.default))
        return self._last[1]

    def _run(self, at: At, limit: int | None) -> Table:
        if self.query.form is A.Form.ASK:
            found = self._plan.some(at, 1)
            return Table((), np.zeros((0, min(found.shape[1], 1)), np.int64))
        ids = self._plan.run(at) if limit is None else self._plan.some(at, limit)[:, :limit]
        return self._made_of(Table(self._plan.columns, ids), at)

    def _made_of(self, found: Table, at: At) -> Table:
        match self.query.form:
            case A.Form.SELECT:
                return found
            case A.Form.CONSTRUCT:
                return constructed(self.query.template, found, at)
        shown = {t.name for t in self.query.describe if isinstance(t, A.Var)}
        terms = [found.column(name) for name in found.columns if name in shown]
        named = [self._dictionary.encode(t) for t in self.query.describe if isinstance(t, NamedNode)]
        return described(np.concatenate([*terms, np.array(named, np.int64)]), at)

    def answer(
        self,
        view: Stored,
        *,
        now_ms: int | None = None,
        seed: int | str | None = None,
        limit: int | None = None,
    ) -> Result:
        """The same with terms: a table, a boolean, or triples."""
        table = self.run(view, now_ms=now_ms, seed=seed, limit=limit)
        if self.query.form is A.Form.SELECT:
            return Solutions(list(table.columns), self._decoder.rows(table))
        if self.query.form is A.Form.ASK:
            return bool(len(table))
        columns = self._decoder.columns(table.ids)
        return [
            Triple(*row[:3]) if len(row) < 4 or row[3] is None else Quad(*row)
            for row in zip(*columns, strict=True)
        ]

    def forget(self) -> None:
        """Let go of the terms and tables that are remembered from one time to the next."""
        self._decoder = Decoder(self._dictionary)
        self._last = None

    def explain(self) -> str:
        """The plan: what is looked up in which order, with estimates if it was asked before, and what
        Oxigraph is asked and why."""
        return "\n".join(self._plan.lines())
