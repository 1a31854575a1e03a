"""Expressions over solutions: filters, new variables and sort keys.

They are evaluated by the engine's own columnar code, in the tasks that have the rows. Terms that they look at
are in columns of text beside the ids; terms that they make come out in such columns, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyoxigraph import NamedNode
from pyspark.sql import functions as F

from kelda.engine.deltas import Deltas
from kelda.engine.expressions import Expressions
from kelda.engine.term_order import Aspect, TermOrder
from kelda.lang import algebra as A
from kelda.lang.walk import mentioned, parts
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import encode, text
from kelda.spark.sql.rows import Rows, ids, key_name, name, names, schema, text_name, texts
from kelda.spark.sql.terms import Terms, learn_all, texts_of

MOST_KNOWN = 1 << 28  # bytes of terms that a task remembers


@dataclass(frozen=True, slots=True)
class Setting:
    """What expressions depend on beside their row."""

    base: str | None
    now: int  # ms


def looked_at(expr: A.Expr, columns: tuple[str, ...]) -> tuple[str, ...]:
    """The columns whose terms an expression may have to look at: not those that are only compared with IRIs,
    or asked whether they are bound."""
    found: set[str] = set()
    left: list[object] = [expr]
    while left:
        match left.pop():
            case A.Call("BOUND", _):
                pass
            case A.Call("SAMETERM", args) if all(isinstance(a, A.VarRef | A.Const) for a in args):
                pass
            case A.Call("IN" | "NOT IN", (A.VarRef(), *members)) if _all_iris(members):
                pass
            case A.Var(variable):
                found.add(variable)
            case node:
                left.extend(parts(node))
    return tuple(c for c in columns if c in found)


def by_identity(node: object) -> object:
    """A rule: what equals an IRI is that IRI."""
    match node:
        case A.Call("=", (left, right)) if _all_iris((left,)) or _all_iris((right,)):
            return A.Call("SAMETERM", node.args)
        case A.Call("!=", (left, right)) if _all_iris((left,)) or _all_iris((right,)):
            return A.Call("!", (A.Call("SAMETERM", node.args),))
    return node


def _all_iris(members: Any) -> bool:
    return all(isinstance(m, A.Const) and isinstance(m.term, NamedNode) for m in members)


# ---------------------------------------------------------------------------- on the driver


def filtered(rows: Rows, condition: A.Expr, setting: Setting, terms: Terms) -> Rows:
    """The rows for which a condition holds."""
    rows = rows.without_order()
    known = terms.beside(rows, looked_at(condition, rows.columns))
    return _filtered(rows, known, condition, setting, None)


def filtered_where_open(rows: Rows, mark: str, condition: A.Expr, setting: Setting, terms: Terms) -> Rows:
    """The rows without a mark, and those with it for which a condition holds; the mark is gone."""
    known = terms.beside(rows, looked_at(condition, rows.columns), F.col(mark))
    return _filtered(rows, known, condition, setting, mark)


def _filtered(rows: Rows, known: Rows, condition: A.Expr, setting: Setting, mark: str | None) -> Rows:
    task = _Filter(condition, setting, known.columns, _known(known), names(rows.columns, rows.made), mark)
    return replace(rows, frame=known.frame.mapInArrow(task, schema(rows.columns, rows.made)))


def extended(rows: Rows, new: Sequence[tuple[str, A.Expr]], setting: Setting, terms: Terms) -> Rows:
    """The rows with the values of expressions as more variables; each may look at those before it."""
    rows = rows.without_order()
    if all(isinstance(expr, A.VarRef | A.Const) for _, expr in new):
        for variable, expr in new:
            rows = _copied(rows, variable, expr)
        return rows
    made_anew = [expr for _, expr in new if not isinstance(expr, A.VarRef)]  # others are handed on
    looks_at = {c for expr in made_anew for c in looked_at(expr, rows.columns)}
    known = terms.beside(rows, [c for c in rows.columns if c in looks_at])
    shown = names(rows.columns, rows.made) if rows.columns else ()
    task = _Extend(tuple(new), setting, known.columns, _known(known), shown)
    columns, made = (*rows.columns, *(v for v, _ in new)), rows.made | {v for v, _ in new}
    frame = known.frame.mapInArrow(task, schema(columns, made))
    return replace(rows, frame=frame, columns=columns, made=made)


def _copied(rows: Rows, variable: str, expr: A.Expr) -> Rows:
    """With a variable that has the values of another, or a constant."""
    columns, made, bound = (*rows.columns, variable), rows.made, rows.bound
    match expr:
        case A.Const(term):
            id = encode(term)
            written = F.lit(bytearray(text(term).encode())) if id > 0 else F.lit(None).cast("binary")
            more = [F.lit(id).cast("long").alias(name(variable)), written.alias(text_name(variable))]
            made, bound = made | {variable}, bound | {variable}
        case A.VarRef(A.Var(other)) if other in rows.columns:
            more = [ids(other).alias(name(variable))]
            if other in made:
                more.append(texts(other).alias(text_name(variable)))
                made |= {variable}
            if other in bound:
                bound |= {variable}
        case _:
            return rows.project(columns)
    return replace(rows, frame=rows.frame.select("*", *more), columns=columns, bound=bound, made=made)


def ordered(rows: Rows, keys: tuple[tuple[A.Expr, bool], ...], setting: Setting, terms: Terms) -> Rows:
    """The rows with sort keys beside them: texts that are in the order of the terms."""
    rows = rows.without_order()
    exprs = tuple(expr for expr, _ in keys)
    variables = {v.name for v in mentioned(exprs)}
    known = terms.beside(rows, [c for c in rows.columns if c in variables])
    task = _Order(exprs, setting, known.columns, _known(known), names(rows.columns, rows.made))
    types = [schema(rows.columns, rows.made), *(f"`{key_name(i)}` string" for i in range(len(keys)))]
    frame = known.frame.mapInArrow(task, ", ".join(types))
    return replace(rows, frame=frame, order=tuple(down for _, down in keys))


def _known(rows: Rows) -> tuple[str, ...]:
    return tuple(c for c in rows.columns if c in rows.made)


# ---------------------------------------------------------------------------- in tasks


class _Known:
    """The terms that a task has met."""

    def __init__(self, columns: tuple[str, ...], known: tuple[str, ...], setting: Setting) -> None:
        self.dictionary = Dictionary()
        self.expressions = Expressions(self.dictionary, base=setting.base)
        self._columns, self._known, self._now = columns, known, setting.now

    def rows(self, batch: Any) -> Deltas:
        """A batch as the engine's rows, with the terms that stand beside."""
        if self.dictionary.nbytes > MOST_KNOWN:
            self.dictionary.clear()
        learn_all(batch, self._known, self.dictionary)
        values = [batch.column(name(c)).to_numpy() for c in self._columns]
        size = batch.num_rows
        stacked = np.stack(values) if values else np.zeros((0, size), np.int64)
        return Deltas(self._columns, np.full(size, self._now, np.int64), np.ones(size, np.int64), stacked)


@dataclass(frozen=True, slots=True)
class _Filter:
    condition: A.Expr
    setting: Setting
    columns: tuple[str, ...]
    known: tuple[str, ...]
    shown: tuple[str, ...]
    mark: str | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        known = _Known(self.columns, self.known, self.setting)
        condition = known.expressions.compile(self.condition, self.columns)
        for batch in batches:
            rows = known.rows(batch)
            if self.mark is None:
                kept = condition.holds(rows)
            else:
                kept = ~batch.column(self.mark).to_numpy(zero_copy_only=False)
                asked = np.flatnonzero(~kept)
                kept[asked] = condition.holds(rows.select(asked))
            yield batch.select(list(self.shown)).filter(pa.array(kept))


@dataclass(frozen=True, slots=True)
class _Extend:
    new: tuple[tuple[str, A.Expr], ...]
    setting: Setting
    columns: tuple[str, ...]
    known: tuple[str, ...]
    shown: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        known = _Known(self.columns, self.known, self.setting)
        columns = self.columns
        compiled = []
        for variable, expr in self.new:
            compiled.append((variable, known.expressions.compile(expr, columns)))
            columns = (*columns, variable)
        for batch in batches:
            rows = known.rows(batch)
            shown = {c: batch.column(c) for c in self.shown}
            for variable, expression in compiled:
                values = expression.ids(rows)
                rows = rows.with_column(variable, values)
                shown[name(variable)] = pa.array(values, pa.int64())
                shown[text_name(variable)] = texts_of(values, known.dictionary)
            yield pa.RecordBatch.from_pydict(shown)


@dataclass(frozen=True, slots=True)
class _Order:
    exprs: tuple[A.Expr, ...]
    setting: Setting
    columns: tuple[str, ...]
    known: tuple[str, ...]
    shown: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        known = _Known(self.columns, self.known, self.setting)
        compiled = [known.expressions.compile(expr, self.columns) for expr in self.exprs]
        order = TermOrder(known.dictionary)
        for batch in batches:
            rows = known.rows(batch)
            shown = {c: batch.column(c) for c in self.shown}
            for i, expr in enumerate(compiled):
                values = expr.ids(rows).tolist()
                order.learn(values, Aspect.TERM)
                shown[key_name(i)] = pa.array([order.place(value) for value in values], pa.string())
            yield pa.RecordBatch.from_pydict(shown)
