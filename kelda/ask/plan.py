"""Algebra -> nodes that answer it from columns of ids.

`needed` are the variables that somebody above a pattern looks at: no others have columns. What has no node of
ours goes to Oxigraph, as the smallest pattern that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count

import numpy as np

from kelda.ask.bgp import Bgp, Lookup, Spot
from kelda.ask.by_oxigraph import ByOxigraph
from kelda.ask.formula import Existing, Formula, Hidden, New, NewByText
from kelda.ask.merge import Merge
from kelda.ask.node import Node
from kelda.ask.operators import (
    Extended,
    Filtered,
    Grouped,
    InGraphs,
    Joined,
    Once,
    Optional,
    Projected,
    Rows,
    Sliced,
    United,
    Without,
)
from kelda.ask.ordering import Ordered
from kelda.ask.paths import PathNode
from kelda.engine.expressions import Expressions
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.errors import KeldaError, QueryError
from kelda.lang import algebra as A
from kelda.lang.scope import NEW_EACH_TIME, certainly_bound, is_repeatable, visible_vars
from kelda.lang.walk import depth, exists_in, has, mentioned
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import encode

Names = frozenset[str]

DEEPEST_EXPRESSION = 100  # that is evaluated column by column, each operator calling its operands
_ONE = np.zeros((0, 1), np.int64)  # the one empty solution


class NotOurs(KeldaError):
    """No operator of ours evaluates this; the text is the reason."""


class Planner:
    """Plans the patterns of one query."""

    def __init__(self, query: A.Query, dictionary: Dictionary) -> None:
        self._query, self._dictionary = query, dictionary
        self._expressions = Expressions(dictionary, base=query.base)
        self._fresh = count()
        self._filled: Names = frozenset()  # variables that the EXISTS around a pattern fills in

    # -------------------------------------------------------------------- patterns

    def ordered(self, pattern: A.Pattern, needed: Names) -> Node:
        """A pattern whose order counts."""
        match pattern:
            case A.Slice(inner, offset, limit):
                return Sliced(self.ordered(inner, needed), offset, limit)
            case A.Distinct(inner) | A.Reduced(inner):
                return Once(self.ordered(inner, names(visible_vars(inner))))
            case A.Project(inner, variables):
                return Projected(self.ordered(inner, names(variables)), tuple(v.name for v in variables))
            case A.OrderBy(inner, keys):
                try:
                    source = self.ordered(inner, needed | names(mentioned(keys)))
                    formulas = [(self.formula(expr, source), down) for expr, down in keys]
                except NotOurs as reason:
                    return self._asked(pattern, reason)
                return Ordered(source, formulas, self._dictionary)
        return self.pattern(pattern, needed)

    def pattern(self, pattern: A.Pattern, needed: Names) -> Node:
        """A pattern as a bag."""
        try:
            return self._pattern(pattern, needed)
        except NotOurs as reason:
            return self._asked(pattern, reason)

    def _asked(self, pattern: A.Pattern, reason: NotOurs) -> Node:
        return ByOxigraph(pattern, self._query.base, str(reason))

    def _pattern(self, pattern: A.Pattern, needed: Names) -> Node:
        match pattern:
            case A.Triples() | A.Join() | A.PathPattern():
                return self._conjunction(pattern, needed, [])
            case A.Filter():
                return self._filter(pattern, needed)
            case A.Extend(inner, var, expr):
                source = self.pattern(inner, needed | names(mentioned(expr)))
                return Extended(source, var.name, self.formula(expr, source, _scope(inner)))
            case A.Union(left, right):
                return United([self.pattern(part, needed) for part in _branches(left, right)])
            case A.LeftJoin(left, right, condition):
                return self._optional(left, right, condition, needed)
            case A.Minus(left, right):
                shared = names(visible_vars(left) & visible_vars(right))
                return Without(self.pattern(left, needed | shared), self.pattern(right, shared))
            case A.Project(inner, variables):
                columns = tuple(v.name for v in variables)
                return Projected(self.pattern(inner, names(variables)), columns)
            case A.Distinct(inner):
                return Once(self.pattern(inner, names(visible_vars(inner))))
            case A.Reduced(inner):  # may leave copies out, and leaves none
                return self.pattern(inner, needed)
            case A.OrderBy(inner, _):  # a bag has no order
                return self.pattern(inner, needed)
            case A.Slice():
                return self.ordered(pattern, needed)
            case A.Group():
                return self._group(pattern)
            case A.Values(variables, rows):
                return self._values(variables, rows)
            case A.InGraph(name, inner):
                if isinstance(name, A.Var):
                    return InGraphs(self.pattern(inner, needed | {name.name}), name.name)
                return InGraphs(self.pattern(inner, needed), self._id(name))
            case A.Service():
                raise QueryError("SERVICE asks another server, which a one-shot query does not do")
        raise QueryError(f"{type(pattern).__name__} is no part of a query that is asked once")

    def _values(self, variables: tuple[A.Var, ...], rows: Sequence[Sequence[object]]) -> Node:
        known = self._dictionary.encode
        cells = [[0 if cell is None else known(cell) for cell in row] for row in rows]  # type: ignore[arg-type]
        ids = np.array(cells, np.int64).reshape(len(rows), len(variables)).T
        return Rows(tuple(v.name for v in variables), np.ascontiguousarray(ids))

    def _optional(self, left: A.Pattern, right: A.Pattern, condition: A.Expr | None, needed: Names) -> Node:
        shared = names(visible_vars(left) & visible_vars(right))
        looked_at = needed | shared | names(mentioned(condition))
        source, other = self.pattern(left, looked_at), self.pattern(right, looked_at)
        merge = Merge(source.columns, other.columns, source.bound)
        formula = None
        if condition is not None:
            outer = visible_vars(left) | visible_vars(right)
            formula = self._formula(condition, merge.columns, source.bound | other.bound, outer)
        return Optional(source, other, merge, formula)

    def _group(self, group: A.Group) -> Node:
        looked_at = names(group.keys) | names(mentioned(tuple(a.arg for _, a in group.aggregates)))
        whole = any(a.arg is None and a.distinct for _, a in group.aggregates)  # COUNT(DISTINCT *)
        if whole:
            looked_at |= names(visible_vars(group.pattern))
        source = self.pattern(group.pattern, looked_at)
        columns = source.columns
        specs = []
        for var, aggregate in group.aggregates:
            argument: str | None = None
            match aggregate.arg:
                case None:
                    pass
                case A.VarRef(A.Var() as v) if v.name in source.columns:
                    argument = v.name
                case expr:
                    argument = self._name("argument")
                    source = Extended(source, argument, self.formula(expr, source))
            spec = AggregateSpec(aggregate.op, argument, aggregate.distinct, aggregate.separator)
            specs.append((var.name, spec))
        keys = tuple(v.name for v in group.keys)
        read = tuple(
            dict.fromkeys([*keys, *(s.column for _, s in specs if s.column), *(columns if whole else ())])
        )
        return Grouped(Projected(source, read), keys, tuple(specs), self._dictionary)

    # -------------------------------------------------------------------- joins

    def _conjunction(self, pattern: A.Pattern, needed: Names, conditions: list[A.Expr]) -> Node:
        """Joined parts: given rows first, then all triple patterns together, then what they narrow."""
        parts = list(_conjuncts(pattern))
        triples = [t for part in parts if isinstance(part, A.Triples) for t in part.patterns]
        others = [part for part in parts if not isinstance(part, A.Triples)]
        others += _given_by(conditions, names(visible_vars(A.Triples(tuple(triples)))))
        others.sort(key=lambda part: not isinstance(part, A.Values))
        together: list[A.Pattern] = [p for p in others if isinstance(p, A.Values)]
        together += [A.Triples(tuple(triples))] if triples or not others else []
        together += [p for p in others if not isinstance(p, A.Values)]
        shown = [names(visible_vars(part)) for part in together]
        planned: list[Node] = []
        for i, part in enumerate(together):
            beside = frozenset().union(*(s for j, s in enumerate(shown) if j != i))
            wanted = needed | (shown[i] & beside)
            if isinstance(part, A.Triples):
                mine = [c for c in conditions if names(mentioned(c)) <= shown[i] and not exists_in(c)]
                mine = [c for c in mine if is_repeatable(c)] if part.patterns else []
                conditions = [c for c in conditions if not any(c is m for m in mine)]
                wanted |= names(mentioned(tuple(conditions)))
                planned.append(self._bgp(part.patterns, wanted & shown[i], mine))
            elif isinstance(part, A.PathPattern):
                planned.append(self._path(part))
            else:
                planned.append(self.pattern(part, wanted | names(mentioned(tuple(conditions)))))
        node = reduce(Joined, _connected(planned))
        return self._where(conditions, node, visible_vars(pattern))

    def _bgp(self, patterns: Sequence[A.TriplePattern], wanted: Names, conditions: list[A.Expr]) -> Node:
        if not patterns:
            return Rows((), _ONE)
        lookups = [
            Lookup(self._spot(t.s), self._spot(t.p), self._spot(t.o), _text(t.s, t.p, t.o)) for t in patterns
        ]
        formulas = []
        for condition in conditions:
            columns = tuple(sorted(names(mentioned(condition))))
            formulas.append(self._formula(condition, columns, frozenset(columns), frozenset()))
        return Bgp(lookups, sorted(wanted), formulas)

    def _path(self, pattern: A.PathPattern) -> Node:
        s, o = self._spot(pattern.s, kept=True), self._spot(pattern.o, kept=True)
        text = _text(pattern.s, A.NamedNode("path:"), pattern.o)
        return PathNode(s, pattern.path, o, self._id, self._filled, text)

    def _spot(self, term: A.TermOrVar, *, kept: bool = False) -> Spot:
        """`kept`: the term may be in answers."""
        if isinstance(term, A.Var):
            return Spot(name=term.name)
        return Spot(id=self._dictionary.encode(term) if kept else self._id(term))  # type: ignore[arg-type]

    def _id(self, term: object) -> int:
        if isinstance(term, A.Param):
            raise QueryError(f"parameter ${term.name} has no value: bind it before the query runs")
        return encode(term, self._dictionary.seed)  # type: ignore[arg-type]

    # -------------------------------------------------------------------- expressions

    def _filter(self, pattern: A.Pattern, needed: Names) -> Node:
        conditions: list[A.Expr] = []
        while isinstance(pattern, A.Filter):
            conditions[:0] = _all_of(pattern.condition)
            pattern = pattern.pattern
        if isinstance(pattern, A.Triples | A.Join):
            return self._conjunction(pattern, needed, conditions)
        source = self.pattern(pattern, needed | names(mentioned(tuple(conditions))))
        return self._where(conditions, source, visible_vars(pattern))

    def _where(self, conditions: list[A.Expr], source: Node, outer: frozenset[A.Var]) -> Node:
        if not conditions:
            return source
        conditions = sorted(conditions, key=lambda c: bool(exists_in(c)))
        formulas = [self._formula(c, source.columns, source.bound, outer) for c in conditions]
        return Filtered(source, formulas)

    def formula(self, expr: A.Expr, source: Node, scope: int = 0) -> Formula:
        """An expression over the solutions of a node."""
        outer = frozenset(A.Var(name) for name in source.columns)
        return self._formula(expr, source.columns, source.bound, outer, scope)

    def _formula(
        self,
        expr: A.Expr,
        columns: tuple[str, ...],
        bound: Names,
        outer: frozenset[A.Var],
        scope: int = 0,
    ) -> Formula:
        if depth(expr) > DEEPEST_EXPRESSION:
            raise NotOurs(f"an expression nested more than {DEEPEST_EXPRESSION} deep")
        hidden: list[Hidden] = []

        def column(part: A.Expr) -> A.Expr:
            match part:
                case A.Exists(group):
                    hidden.append(self._existing(group, columns, bound, outer))
                case A.Call(_, (text,)):
                    of_text = self._formula(text, columns, bound, outer, scope)
                    hidden.append(NewByText(self._name("new"), scope, of_text))
                case A.Call(function, _):
                    hidden.append(New(self._name("new"), function))
            return A.VarRef(A.Var(hidden[-1].name))

        plain = _rewritten(expr, column)
        everything = (*columns, *(column.name for column in hidden))
        return Formula(self._expressions.compile(plain, everything), columns, tuple(hidden))

    def _existing(
        self, group: A.Pattern, columns: tuple[str, ...], bound: Names, outer: frozenset[A.Var]
    ) -> Existing:
        condition: A.Expr | None = None
        if outer & mentioned(group) - visible_vars(group):
            if isinstance(group, A.Filter):
                condition, group = group.condition, group.pattern
            if outer & mentioned(group) - visible_vars(group):
                raise NotOurs("EXISTS whose group looks at variables from outside")
        shown = visible_vars(group)
        # EXISTS fills in values before it evaluates: only for plain patterns is that compatibility.
        unsure = (outer & shown) - certainly_bound(group)
        if unsure and has(group, _NOT_PLAIN):
            raise NotOurs("EXISTS with a variable that its group may leave unbound")
        if outer & shown and has(group, A.Repeat) and has(group, _NOT_PLAIN):
            raise NotOurs("EXISTS with a property path that a value filled in may stay at")
        shared = names(shown) & frozenset(columns)
        before, self._filled = self._filled, names(outer & shown)
        node = self.pattern(group, shared | names(mentioned(condition)))
        self._filled = before
        merge = Merge(columns, node.columns, bound)
        formula = None
        if condition is not None:
            formula = self._formula(condition, merge.columns, bound | node.bound, outer | shown)
        return Existing(self._name("exists"), columns, node, merge, formula)

    def _name(self, what: str) -> str:
        return f".{what}{next(self._fresh)}"


_NOT_PLAIN = (A.LeftJoin, A.Extend, A.Project, A.Group, A.Minus, A.Filter, A.Exists)


def names(variables: Iterable[A.Var]) -> Names:
    """The columns that hold variables."""
    return frozenset(v.name for v in variables)


def _is_hidden(expr: A.Expr) -> bool:
    """Whether it is no function of a row by itself."""
    return isinstance(expr, A.Exists) or (isinstance(expr, A.Call) and expr.op in NEW_EACH_TIME)


def _rewritten(expr: A.Expr, column: Callable[[A.Expr], A.Expr]) -> A.Expr:
    """The expression with a column for each part that is no function of a row."""
    if _is_hidden(expr):
        return column(expr)
    if isinstance(expr, A.Call | A.FunctionCall) and expr.args:
        return replace(expr, args=tuple(_rewritten(arg, column) for arg in expr.args))
    return expr


def _scope(pattern: A.Pattern) -> int:
    """What tells the solutions of a pattern from those of others; BIND makes no other solutions."""
    while isinstance(pattern, A.Extend):
        pattern = pattern.pattern
    return id(pattern)


def _conjuncts(pattern: A.Pattern) -> Iterable[A.Pattern]:
    left = [pattern]
    while left:
        part = left.pop()
        if isinstance(part, A.Join):
            left += (part.right, part.left)
        else:
            yield part


def _branches(*parts: A.Pattern) -> Iterable[A.Pattern]:
    left = list(reversed(parts))
    while left:
        part = left.pop()
        if isinstance(part, A.Union):
            left += (part.right, part.left)
        else:
            yield part


def _connected(parts: list[Node]) -> list[Node]:
    """In an order in which each has a column of one before, as far as that can be."""
    order, left = [parts[0]], parts[1:]
    while left:
        seen = {name for node in order for name in node.columns}
        i = next((i for i, node in enumerate(left) if seen & set(node.columns)), 0)
        order.append(left.pop(i))
    return order


def _all_of(expr: A.Expr) -> Iterable[A.Expr]:
    if isinstance(expr, A.Call) and expr.op == "&&":
        for arg in expr.args:
            yield from _all_of(arg)
    else:
        yield expr


def _given_by(conditions: list[A.Expr], bound: Names) -> list[A.Pattern]:
    """The rows that a variable which is bound anyway can only have: of IRIs, = is being the same."""
    found: list[A.Pattern] = []
    for condition in conditions:
        match condition:
            case A.Call("=", (A.VarRef(A.Var() as var), A.Const(A.NamedNode()) as one)) | A.Call(
                "=", (A.Const(A.NamedNode()) as one, A.VarRef(A.Var() as var))
            ) if var.name in bound:
                found.append(A.Values((var,), ((one.term,),)))
            case A.Call("IN", (A.VarRef(A.Var() as var), *members)) if var.name in bound:
                iris = [m.term for m in members if isinstance(m, A.Const) and isinstance(m.term, A.NamedNode)]
                if len(iris) == len(members):
                    found.append(A.Values((var,), tuple((iri,) for iri in dict.fromkeys(iris))))
    return found


def _text(*terms: A.TermOrVar) -> str:
    return " ".join(f"?{t.name}" if isinstance(t, A.Var | A.Param) else str(t) for t in terms)
