"""A star, found in the tasks that read the store.

All facts of a subject are in one bucket, so each task joins its buckets by itself and nothing is shuffled.
The conditions of the star are evaluated there too, as far as ids tell: a row whose terms must be looked at is
marked `open`, and they are looked at later.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kelda.engine.deltas import Deltas, Ids
from kelda.engine.expressions import Expressions
from kelda.lang import algebra as A
from kelda.lang.expressions import side_by_side
from kelda.rdf.dictionary import Dictionary
from kelda.spark.sql.facts import Facts, Wanted, read_facts
from kelda.spark.sql.rows import GRAPH, NOTHING, name, schema

OPEN = "$open"
MOST_ROWS = 1 << 16  # in one batch on its way to Spark
_SUBJECT = "$subject"

Ref = int | str  # the id of a term, or a column


@dataclass(frozen=True, slots=True)
class StarTask:
    """What a task needs to know. `patterns` are predicates and objects; `looked_at` the columns whose terms
    the conditions may have to look at."""

    paths: tuple[str, ...]
    wanted: Wanted
    subject: Ref
    patterns: tuple[tuple[Ref, Ref], ...]
    columns: tuple[str, ...]
    conditions: tuple[A.Expr, ...] = ()
    looked_at: tuple[str, ...] = ()
    base: str | None = None
    now: int = 0

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """From bucket numbers to solutions."""
        condition = None
        if self.conditions:
            expressions = Expressions(Dictionary(), base=self.base)
            condition = expressions.compile(side_by_side("&&", list(self.conditions)), self.columns)
        buckets = [int(bucket) for batch in batches for bucket in batch.column(0).to_numpy()]
        for facts in read_facts(self.paths, buckets, self.wanted):
            table = self._joined(facts)
            found = {column: _ids(table[name(column)]) for column in self.columns}
            size = table.num_rows
            is_open = np.zeros(size, np.bool_)
            if condition is not None:
                for column in self.looked_at:
                    is_open |= found[column] > 0
                values = (
                    np.stack([found[c] for c in self.columns]) if found else np.zeros((0, size), np.int64)
                )
                sure = np.flatnonzero(~is_open)
                deltas = Deltas(
                    self.columns, np.full(len(sure), self.now), np.ones(len(sure), np.int64), values[:, sure]
                )
                kept = is_open.copy()
                kept[sure] = condition.holds(deltas)
                found = {column: ids[kept] for column, ids in found.items()}
                is_open, size = is_open[kept], int(kept.sum())
            yield from self._batches(found, is_open, size)

    def _joined(self, facts: Facts) -> Any:
        tables = sorted((self._matches(facts, *pattern) for pattern in self.patterns), key=len)
        table = tables[0]
        for other in tables[1:]:
            shared = [c for c in table.column_names if c in other.column_names]
            table = table.join(other, shared, join_type="inner", use_threads=False)
        return table

    def _matches(self, facts: Facts, p: Ref, o: Ref) -> Any:
        """The facts that match one pattern: the subject, the graph if it counts, the variables."""
        kept = np.ones(len(facts), np.bool_)
        columns: dict[str, Ids] = {}
        for ref, values in ((self.subject, facts.s), (p, facts.p), (o, facts.o)):
            if isinstance(ref, int):
                kept &= values == ref
            elif name(ref) in columns:
                kept &= values == columns[name(ref)]
            else:
                columns[name(ref)] = values
        if isinstance(self.subject, int):
            columns[_SUBJECT] = facts.s
        if self.wanted.each:
            columns[name(GRAPH)] = facts.graph
        return pa.table({column: pa.array(ids[kept], pa.int64()) for column, ids in columns.items()})

    def _batches(self, found: dict[str, Ids], is_open: Any, size: int) -> Iterator[Any]:
        columns = {name(column): pa.array(ids, pa.int64()) for column, ids in found.items()}
        if not columns:
            columns[NOTHING] = pa.array(np.zeros(size, np.int64))
        if self.looked_at:
            columns[OPEN] = pa.array(is_open)
        yield from pa.table(columns).to_batches(max_chunksize=MOST_ROWS)

    @property
    def gives(self) -> str:
        """That of what it gives."""
        return schema(self.columns, ()) + f", `{OPEN}` boolean" * bool(self.looked_at)


def _ids(column: Any) -> Ids:
    found: Ids = column.to_numpy()
    return found
