"""Aggregates.

Spark counts how often each combination of keys and arguments occurs, which is where most rows go away; the
combinations of a group then meet in one task, where the engine's own aggregates reckon with them, each so
many times. So sums are as exact as elsewhere, and extremes follow the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyoxigraph import Literal
from pyspark.sql import functions as F

from kelda.engine.deltas import Deltas
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.group_by import GroupBy
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import encode
from kelda.spark.sql.rows import NOTHING, Rows, ids, name, schema, text_name, texts
from kelda.spark.sql.stars import MOST_ROWS
from kelda.spark.sql.terms import Terms, learn_all, texts_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_COUNT = "$count"
_SOMETHING = encode(Literal(True))
_BY_IDENTITY = ("COUNT",)  # of these no text is looked at


def grouped(
    rows: Rows,
    solution: tuple[str, ...],
    keys: tuple[str, ...],
    aggregates: tuple[tuple[str, AggregateSpec], ...],
    terms: Terms,
) -> Rows:
    """A row for each group: its keys, and the value of each aggregate. `solution` are the columns that tell
    solutions apart; others are arguments."""
    args = tuple(dict.fromkeys(spec.column for _, spec in aggregates if spec.column is not None))
    if any(spec.distinct and spec.column is None for _, spec in aggregates):  # of whole solutions
        args = tuple(dict.fromkeys((*args, *solution)))
    only_counted = {c for c in args if c not in keys and _is_only_counted(c, args, aggregates)}
    combined = _combined(rows, keys, tuple(c for c in args if c not in keys), only_counted)
    read = {spec.column for _, spec in aggregates if spec.op not in _BY_IDENTITY and spec.column is not None}
    combined = terms.beside(combined, sorted(read))
    frame = combined.frame.repartition(*map(ids, keys)) if keys else _one_task(combined.frame)
    known = tuple(c for c in combined.columns if c in combined.made)
    task = _Group(combined.columns, known, keys, aggregates, tuple(k for k in keys if k in combined.made))
    counts = frozenset(a for a, spec in aggregates if spec.op == "COUNT")
    columns = (*keys, *(a for a, _ in aggregates))
    return Rows(frame.mapInArrow(task, task.gives), columns, (rows.bound & set(keys)) | counts, task.made)


def _one_task(frame: DataFrame) -> DataFrame:
    """All rows in one task, which runs even if there are none: a row that counts nothing keeps Spark from
    leaving it out."""
    nothing = {c: F.lit(None) for c in frame.columns} | {_COUNT: F.lit(0)}
    types = frame.schema
    row = [value.cast(types[c].dataType).alias(c) for c, value in nothing.items()]
    return frame.unionAll(frame.sparkSession.range(1).select(*row)).repartition(1)


def _is_only_counted(
    column: str, args: tuple[str, ...], aggregates: tuple[tuple[str, AggregateSpec], ...]
) -> bool:
    """Whether nobody asks more of a column than whether it is bound."""
    if any(spec.distinct and spec.column is None for _, spec in aggregates):
        return False
    return all(spec.op == "COUNT" and not spec.distinct for _, spec in aggregates if spec.column == column)


def _combined(rows: Rows, keys: tuple[str, ...], args: tuple[str, ...], only_counted: set[str]) -> Rows:
    """Each combination of keys and arguments once, with its number."""
    by = []
    for c in (*keys, *args):
        if c not in rows.columns:
            column = F.lit(0).cast("long")
        elif c in only_counted:
            column = F.when(ids(c) != 0, F.lit(_SOMETHING)).otherwise(F.lit(0).cast("long"))
        else:
            column = ids(c)
        by.append(column.alias(name(c)))
    made = [c for c in (*keys, *args) if c in rows.made and c not in only_counted]
    counts = [F.count("*").alias(_COUNT), *(F.max(texts(c)).alias(text_name(c)) for c in made)]
    return Rows(rows.frame.groupBy(*by).agg(*counts), (*keys, *args), frozenset(), frozenset(made))


@dataclass(frozen=True, slots=True)
class _Group:
    columns: tuple[str, ...]
    known: tuple[str, ...]
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, AggregateSpec], ...]
    keys_made: tuple[str, ...]

    @property
    def gives(self) -> str:
        return schema((*self.keys, *(a for a, _ in self.aggregates)), self.made)

    @property
    def made(self) -> frozenset[str]:
        return frozenset(self.keys_made) | {a for a, _ in self.aggregates}

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        dictionary = Dictionary()
        operator = GroupBy(self.columns, self.keys, self.aggregates, dictionary)
        said = [operator.initial()]
        for some in batches:
            batch = some.filter(pc.greater(some.column(_COUNT), 0))
            learn_all(batch, self.known, dictionary)
            values = [batch.column(name(c)).to_numpy() for c in self.columns]
            weight = batch.column(_COUNT).to_numpy()
            stacked = np.stack(values) if values else np.zeros((0, len(weight)), np.int64)
            deltas = Deltas(self.columns, np.zeros(len(weight), np.int64), np.array(weight), stacked)
            said.append(operator.step(deltas, until=0))
        whole = Deltas.concat(said, operator.columns)
        whole = Deltas(
            whole.columns, np.zeros(len(whole), np.int64), whole.weight, whole.values
        ).consolidated()
        found: dict[str, Any] = {}
        for c, values in zip(whole.columns, whole.values, strict=True):
            found[name(c)] = pa.array(values, pa.int64())
            if c in self.made:
                found[text_name(c)] = texts_of(values, dictionary)
        found = found or {NOTHING: pa.array(np.zeros(len(whole), np.int64))}
        yield from pa.table(found).to_batches(max_chunksize=MOST_ROWS)
