"""The solutions of an update's WHERE: a function of the stored graphs, of NOW() and of the entry alone.

What SPARQL leaves open is settled as for continuous queries (`kelda.plan.rules.deterministic`). RAND, UUID,
STRUUID and BNODE are made anew for each solution, and so that a replay makes the same: the pattern below them
is answered first, its solutions are sorted, and each value is made from the number of its solution
(`fresh.py`). That can be done for calls in BIND, FILTER and SELECT that apply to all of WHERE;

    INSERT { ?id :of ?x } WHERE { ?x a :T . BIND(UUID() AS ?id) FILTER(RAND() < 0.5) }

inside OPTIONAL, UNION and the like, or before other patterns, it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal

from kelda.ask.updating import fresh
from kelda.ask.updating.table import Solutions, Table
from kelda.engine.expressions import Expressions
from kelda.engine.functions import check_functions
from kelda.errors import QueryError
from kelda.lang import algebra as A
from kelda.lang.scope import NEW_EACH_TIME, is_repeatable, visible
from kelda.lang.walk import exists_in, mentioned, nodes, transform
from kelda.plan.rules.deterministic import deterministic
from kelda.rdf.arrow import what_terms
from kelda.rdf.arrow_kernels import STRING
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Kind, kinds
from kelda.store.changes import Ids
from kelda.store.view import View

Above = A.Extend | A.Filter | A.Project

_NUMBER = ".number"  # the column that has the number of the solution


@dataclass(frozen=True, slots=True)
class Where:
    """How WHERE is answered. `stem` tells it from all others (of this and other requests)."""

    dictionary: Dictionary
    solutions: Solutions
    now: Literal
    stem: str

    def answer(self, query: A.Query, view: View, wanted: frozenset[A.Var], *, bag: bool) -> Table:
        """The solutions over the wanted variables, sorted; without `bag` equal ones may have become one."""
        query = deterministic(transform(query, self._with_now))
        if is_repeatable(query.pattern):
            return self._asked(query, view, wanted, bag=bag)
        check_functions(query)
        core, above = _taken_apart(query.pattern)
        needed = wanted.union(*(mentioned(_expression(node)) for node in above))
        table = self._asked(replace(query, pattern=core), view, needed, bag=True)
        table = table.with_column(_NUMBER, np.arange(len(table)))
        compiler = _Steps(self.dictionary, query.base, self.stem)
        for node in reversed(above):
            table = compiler.step(node, table)
        return table.only(tuple(v.name for v in wanted)).sorted()

    def _asked(self, query: A.Query, view: View, wanted: frozenset[A.Var], *, bag: bool) -> Table:
        variables = tuple(v for v in visible(query.pattern) if v in wanted)
        pattern: A.Pattern = A.Project(query.pattern, variables)
        query = replace(query, pattern=pattern if bag else A.Distinct(pattern))
        _, values = self.solutions(query, view)
        return Table(tuple(v.name for v in variables), values).sorted()

    def _with_now(self, node: object) -> object:
        return A.Const(self.now) if isinstance(node, A.Call) and node.op == "NOW" else node


# ---------------------------------------------------------------------------- what is above


@dataclass(frozen=True, slots=True)
class _Once(A.Extend):
    """A BIND before all patterns: one value for all solutions."""


def _taken_apart(pattern: A.Pattern) -> tuple[A.Pattern, list[Above]]:
    """The pattern below all calls that are new each time, and what applies to its solutions, outermost
    first."""
    above: list[Above] = []
    while not is_repeatable(pattern):
        match pattern:
            case A.Filter(condition, A.Extend(inner, var, expr)) if var not in mentioned(condition):
                pattern = A.Extend(A.Filter(condition, inner), var, expr)
            case A.InGraph(name, A.Extend(inner, var, expr)) if _is_outside((expr, var), name):
                pattern = A.Extend(A.InGraph(name, inner), var, expr)
            case A.InGraph(name, A.Filter(condition, inner)) if _is_outside(condition, name):
                pattern = A.Filter(condition, A.InGraph(name, inner))
            case A.Extend(inner) | A.Filter(_, inner) | A.Project(inner):
                if exists_in(_expression(pattern)):
                    raise _refused(pattern)
                above.append(pattern)
                pattern = inner
            case A.Join() | A.LeftJoin() | A.Minus():
                first, pattern = _first(pattern)
                if not first:
                    raise _refused(pattern)
                above += first
            case _:
                raise _refused(pattern)
    return pattern, above


def _first(pattern: A.Pattern) -> tuple[list[_Once], A.Pattern]:
    """The BINDs that stand before all patterns, and what is left without them; a pattern that uses what they
    bind keeps them where they are."""
    match pattern:
        case A.Extend(inner, var, expr):
            before, rest = _first(inner)
            if rest == A.Triples():
                return [_Once(rest, var, expr), *before], rest
        case A.Join(left, right) | A.LeftJoin(left, right) | A.Minus(left, right):
            found, rest = _first(left)
            others = (right, pattern.condition) if isinstance(pattern, A.LeftJoin) else (right,)
            if found and not mentioned(others).intersection(bind.var for bind in found):
                return found, replace(pattern, left=rest)
    return [], pattern


def _expression(node: Above) -> A.Expr | None:
    """What is reckoned for each solution; of a projection nothing is."""
    match node:
        case A.Extend(_, _, expr) | A.Filter(expr):
            return expr
    return None


def _is_outside(node: object, graph: object) -> bool:
    """Whether an expression is the same outside GRAPH."""
    return graph not in mentioned(node) and not exists_in(node)


def _refused(pattern: A.Pattern) -> QueryError:
    calls = {node.op for node in nodes(pattern) if isinstance(node, A.Call) and node.op in NEW_EACH_TIME}
    return QueryError(
        f"{min(calls)} is made anew for each solution, and a replay must make the same: in an update it can "
        "stand in BIND and FILTER that apply to all of WHERE, not inside OPTIONAL, UNION, EXISTS or a "
        "grouping sub-select, nor in front of other patterns of its group; move it behind them"
    )


# ---------------------------------------------------------------------------- one after another


class _Steps:
    """Applies BIND, FILTER and projections to tables of numbered solutions."""

    def __init__(self, dictionary: Dictionary, base: str | None, stem: str) -> None:
        self._dictionary, self._stem = dictionary, stem
        self._expressions = Expressions(dictionary, base=base)
        self._calls = 0

    def step(self, node: Above, table: Table) -> Table:
        if isinstance(node, A.Project):
            return table.only((*(v.name for v in node.vars), _NUMBER))
        numbers = table.values[table.columns.index(_NUMBER)]
        if isinstance(node, _Once):
            numbers = np.zeros(len(table), np.int64)
        expr, rows = self._made(node.expr if isinstance(node, A.Extend) else node.condition, numbers, table)
        compiled = self._expressions.compile(expr, rows.columns)
        if isinstance(node, A.Extend):
            return table.with_column(node.var.name, compiled.ids(rows.rows()))
        return table.select(compiled.holds(rows.rows()))

    def _made(self, expr: A.Expr, numbers: Ids, table: Table) -> tuple[A.Expr, Table]:
        """The expression with variables for its calls that are new each time, and the table with columns for
        those."""
        rows = table

        def rule(node: object) -> object:
            nonlocal rows
            if not isinstance(node, A.Call) or node.op not in NEW_EACH_TIME:
                return node
            var = A.Var(f".fresh{self._calls}")
            rows = rows.with_column(var.name, self._column(node, numbers, rows))
            self._calls += 1
            return A.VarRef(var)

        return transform(expr, rule), rows

    def _column(self, call: A.Call, numbers: Ids, rows: Table) -> Ids:
        stem, dictionary = f"{self._stem}c{self._calls}n", self._dictionary
        match call.op, call.args:
            case "RAND", _:
                return fresh.randoms(stem, numbers, dictionary)
            case "UUID", _:
                return fresh.uuids(stem, numbers, dictionary)
            case "STRUUID", _:
                return fresh.uuid_texts(stem, numbers, dictionary)
            case _, (text,):  # the same for the same text, in one solution
                texts = self._expressions.compile(text, rows.columns).ids(rows.rows())
                nodes = fresh.blank_nodes_of(f"{self._stem}t", numbers, texts, dictionary)
                return np.where(_are_strings(texts, dictionary), nodes, 0)
        return fresh.blank_nodes(stem, numbers, dictionary)


def _are_strings(ids: Ids, dictionary: Dictionary) -> NDArray[np.bool_]:
    return (kinds(ids) == Kind.STRING) | (what_terms(ids, dictionary) == STRING)
