"""A pattern on a cluster: from algebra to DataFrames.

Inside GRAPH ?g all graphs are looked at together: each solution says in a column of its own in which graph it
was found, and whatever is joined, grouped or told apart in there goes by that column too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyoxigraph import NamedNode
from pyspark.sql import functions as F

from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.lang import algebra as A
from kelda.lang.expressions import side_by_side
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import DEFAULT_GRAPH, encode
from kelda.spark.sql import joins
from kelda.spark.sql.conjunction import Conjunction, Part, Star, conjunction, conjuncts
from kelda.spark.sql.evaluated import (
    Setting,
    extended,
    filtered,
    filtered_where_open,
    looked_at,
    ordered,
)
from kelda.spark.sql.facts import Wanted
from kelda.spark.sql.files import StoreFiles
from kelda.spark.sql.groups import grouped
from kelda.spark.sql.refused import existence
from kelda.spark.sql.rows import GRAPH, NOTHING, Rows, ids, key_name, name, text_name, united
from kelda.spark.sql.session import tasks
from kelda.spark.sql.stars import OPEN, Ref, StarTask
from kelda.spark.sql.terms import Terms, texts_of
from kelda.store.parquet import BUCKETS, bucket_of

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

_S, _P, _O = (A.Var(f".any{part}") for part in "spo")


@dataclass(frozen=True, slots=True)
class Graphs:
    """The active graph: the merge of some (None: of all named ones), or `each` of them."""

    some: tuple[int, ...] | None
    each: bool = False

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns that solutions have in it beside their variables."""
        return (GRAPH,) if self.each else ()


class Run:
    """One query over one state of the store."""

    def __init__(self, spark: SparkSession, files: StoreFiles, dataset: A.Dataset, setting: Setting) -> None:
        self.terms = Terms(spark, files.terms)
        self._spark, self._files, self._setting = spark, files, setting
        self._named = None if dataset.named is None else tuple(map(encode, dataset.named))
        default = (DEFAULT_GRAPH,) if dataset.default is None else tuple(map(encode, dataset.default))
        self._default = Graphs(default)
        self._keep = self.terms.keep

    def solutions(self, pattern: A.Pattern) -> Rows:
        """Those of a pattern over the default graph."""
        return self._rows(pattern, self._default)

    def _rows(self, pattern: A.Pattern, graphs: Graphs) -> Rows:
        match pattern:
            case A.Triples() | A.Join() | A.Filter():
                return self._conjunction(conjunction(pattern), graphs)
            case A.LeftJoin(left, right, condition):
                return self._left_join(left, right, condition, graphs)
            case A.Union(left, right):
                return united(self._rows(left, graphs), self._rows(right, graphs))
            case A.Minus(left, right):
                rows = self._rows(left, graphs).without_order()
                return joins.minus(rows, self._rows(right, graphs), self._keep)
            case A.Extend():
                return self._extended(pattern, graphs)
            case A.Values():
                return self._in_each(self._values(pattern), graphs)
            case A.InGraph(name_, inner):
                return self._in_graph(name_, inner, graphs)
            case A.Group():
                return self._group(pattern, graphs)
            case A.OrderBy(inner, keys):
                return ordered(self._rows(inner, graphs), keys, self._setting, self.terms)
            case A.Project(inner, variables):
                return self._rows(inner, graphs).project((*(v.name for v in variables), *graphs.hidden))
            case A.Distinct(inner):
                return self._rows(inner, graphs).distinct()
            case A.Reduced(inner):
                return self._rows(inner, graphs)
            case A.Slice(inner, offset, limit):
                return sliced(self._rows(inner, graphs), offset, limit)
        raise TypeError(f"not a pattern: {pattern!r}")

    # -------------------------------------------------------------------- conjunctions

    def _conjunction(self, parts: Conjunction, graphs: Graphs) -> Rows:
        found = [self._part(part, graphs) for part in parts.parts] or [self._in_each(self._unit(), graphs)]
        return self._where(reduce(self._joined, found), parts.conditions, graphs)

    def _joined(self, left: Rows, right: Rows) -> Rows:
        return joins.joined(left, right, self._keep)

    def _part(self, part: Part, graphs: Graphs) -> Rows:
        return self._star(part, graphs) if isinstance(part, Star) else self._rows(part, graphs)

    def _where(self, rows: Rows, conditions: tuple[A.Expr, ...], graphs: Graphs) -> Rows:
        """The rows for which conditions hold, those with EXISTS last."""
        plain = [part for part in conditions if existence(part) is None]
        if plain:
            rows = filtered(rows, side_by_side("&&", plain), self._setting, self.terms)
        for part in conditions:
            exists = existence(part)
            if exists is not None:
                group, wanted = exists
                rows = joins.matched(rows, self._rows(group, graphs), self._keep, wanted=wanted)
        return rows

    def _star(self, star: Star, graphs: Graphs) -> Rows:
        task = self._star_task(star, graphs)
        first, buckets, cut = 0, BUCKETS, min(BUCKETS, tasks(self._spark))
        if isinstance(task.subject, int):
            first, buckets, cut = int(bucket_of(np.array(task.subject))), 1, 1
        numbers = self._spark.range(first, first + buckets, 1, cut)
        rows = Rows(numbers.mapInArrow(task, task.gives), task.columns, frozenset(task.columns))
        if task.looked_at:
            condition = side_by_side("&&", list(task.conditions))
            rows = filtered_where_open(rows, OPEN, condition, self._setting, self.terms)
        return rows

    def _star_task(self, star: Star, graphs: Graphs) -> StarTask:
        patterns = tuple((_ref(t.p), _ref(t.o)) for t in star.patterns)
        predicates = tuple(p for p, _ in patterns if isinstance(p, int))
        wanted = Wanted(
            self._files.moment,
            graphs.some,
            graphs.each,
            predicates if len(predicates) == len(patterns) else None,
        )
        columns = (*sorted(v.name for v in star.variables), *graphs.hidden)
        condition = A.Call("&&", star.conditions)
        return StarTask(
            self._files.quads,
            wanted,
            _ref(star.subject),
            patterns,
            columns,
            star.conditions,
            looked_at(condition, columns),
            self._setting.base,
            self._setting.now,
        )

    # -------------------------------------------------------------------- graphs

    def _in_graph(self, graph: A.Var | NamedNode | A.Param, inner: A.Pattern, graphs: Graphs) -> Rows:
        assert not isinstance(graph, A.Param)
        if not isinstance(graph, A.Var):
            return self._in_each(self._in_one(encode(graph), inner), graphs)
        rows = self._rows(inner, Graphs(self._named, each=True)).without_order()
        if graph.name in rows.columns:
            rows = rows.where((ids(graph.name) == ids(GRAPH)) | (ids(graph.name) == 0))
            rows = rows.project([c for c in rows.columns if c != graph.name])
        return self._in_each(rows.rename(GRAPH, graph.name), graphs)

    def _in_one(self, graph: int, inner: A.Pattern) -> Rows:
        some = (graph,) if self._named is None or graph in self._named else ()
        rows = self._rows(inner, Graphs(some))
        if needs_facts(inner):
            return rows
        there = self._graphs(Graphs(some, each=True)).project(())  # a graph that holds nothing is none
        return self._joined(rows.without_order(), there)

    def _in_each(self, rows: Rows, graphs: Graphs) -> Rows:
        """Solutions that are there whatever the graph, in each that there is."""
        return self._joined(rows, self._graphs(graphs)) if graphs.each else rows

    def _graphs(self, graphs: Graphs) -> Rows:
        """The graphs that hold anything."""
        star = Star(_S, (A.TriplePattern(_S, _P, _O),))
        return self._star(star, graphs).project([GRAPH]).distinct()

    # -------------------------------------------------------------------- the rest

    def _left_join(self, left: A.Pattern, right: A.Pattern, condition: A.Expr | None, graphs: Graphs) -> Rows:
        rows, others = self._rows(left, graphs).without_order(), self._rows(right, graphs)
        if condition is None:
            return joins.left_joined(rows, others, self._keep)
        rows = self._keep(rows)
        pairs = self._where(self._joined(rows, others), tuple(conjuncts(condition)), graphs)
        pairs = self._keep(pairs)
        return united(pairs, joins.left_alone(rows, pairs))

    def _extended(self, pattern: A.Pattern, graphs: Graphs) -> Rows:
        """With new variables, as many at once as stand above one another."""
        new: list[tuple[str, A.Expr]] = []
        while isinstance(pattern, A.Extend):
            new.insert(0, (pattern.var.name, pattern.expr))
            pattern = pattern.pattern
        return extended(self._rows(pattern, graphs), new, self._setting, self.terms)

    def _group(self, group: A.Group, graphs: Graphs) -> Rows:
        rows = self._rows(group.pattern, graphs).without_order()
        visible = rows.columns
        specs: list[tuple[str, AggregateSpec]] = []
        new: list[tuple[str, A.Expr]] = []
        for var, aggregate in group.aggregates:
            column: str | None = None
            match aggregate.arg:
                case None:
                    pass
                case A.VarRef(A.Var(variable)) if variable in visible:
                    column = variable
                case expr:
                    column = f".argument{len(new)}"
                    new.append((column, expr))
            specs.append(
                (var.name, AggregateSpec(aggregate.op, column, aggregate.distinct, aggregate.separator))
            )
        keys = (*(k.name for k in group.keys), *graphs.hidden)
        rows = extended(rows, new, self._setting, self.terms)
        return grouped(rows, visible, keys, tuple(specs), self.terms)

    def _unit(self) -> Rows:
        """The one empty solution."""
        frame = self._spark.range(1).select(F.lit(0).cast("long").alias(NOTHING))
        return Rows(frame, (), frozenset(), small=True)

    def _values(self, values: A.Values) -> Rows:
        columns = tuple(v.name for v in values.vars)
        if not columns:
            frame = self._spark.range(len(values.rows)).select(F.lit(0).cast("long").alias(NOTHING))
            return Rows(frame, (), frozenset(), small=True)
        dictionary = Dictionary()
        table: dict[str, pa.Array] = {}
        bound = set()
        for i, column in enumerate(columns):
            found = [0 if (term := row[i]) is None else dictionary.encode(term) for row in values.rows]  # type: ignore[arg-type]
            table[name(column)] = pa.array(found, pa.int64())
            table[text_name(column)] = texts_of(np.array(found, np.int64), dictionary)
            if all(found):
                bound.add(column)
        frame = self._spark.createDataFrame(pa.table(table))
        return Rows(frame, columns, frozenset(bound), frozenset(columns), small=True)


def sliced(rows: Rows, offset: int, limit: int | None) -> Rows:
    """A slice of rows, in their order if they have one."""
    frame = rows.frame.orderBy(*sort_columns(rows)) if rows.order else rows.frame
    frame = frame.offset(offset) if offset else frame
    return replace(rows, frame=frame if limit is None else frame.limit(limit))


def sort_columns(rows: Rows) -> list[Column]:
    """What rows with an order are sorted by."""
    keys = (F.col(key_name(i)) for i in range(len(rows.order)))
    return [key.desc() if down else key.asc() for key, down in zip(keys, rows.order, strict=True)]


def needs_facts(pattern: A.Pattern) -> bool:
    """Whether there is no solution without a fact."""
    match pattern:
        case A.Triples(patterns):
            return bool(patterns)
        case A.Join(left, right):
            return needs_facts(left) or needs_facts(right)
        case A.Union(left, right):
            return needs_facts(left) and needs_facts(right)
        case A.LeftJoin(left, _) | A.Minus(left, _):
            return needs_facts(left)
        case A.Filter(_, inner) | A.Extend(inner) | A.Project(inner) | A.Distinct(inner):
            return needs_facts(inner)
        case A.Group(inner, keys):
            return bool(keys) and needs_facts(inner)
    return False


def _ref(term: A.TermOrVar) -> Ref:
    assert not isinstance(term, A.Param)
    return term.name if isinstance(term, A.Var) else encode(term)
