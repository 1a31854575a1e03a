"""The operators of SPARQL's algebra on columns of ids, with bag semantics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kelda.ask.formula import Formula
from kelda.ask.matching import compatible_pairs, distinct
from kelda.ask.merge import Merge
from kelda.ask.node import At, Node, found, named, narrowed
from kelda.ask.table import Ids, Table, no_rows, rows_of
from kelda.engine.deltas import Deltas
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.group_by import GroupBy
from kelda.rdf.dictionary import Dictionary


class Rows(Node):
    """Solutions that are there whatever is stored: VALUES, and the empty group."""

    def __init__(self, columns: tuple[str, ...], ids: Ids) -> None:
        self.columns, self._ids = columns, ids
        self.bound = frozenset(name for name, column in zip(columns, ids, strict=True) if column.all())

    def run(self, at: At, only: Table | None = None) -> Ids:
        return self._ids

    def say(self) -> str:
        return f"{self._ids.shape[1]} given rows of {named(self.columns)}"


class Binary(Node):
    """What joins have in common."""

    def __init__(self, left: Node, right: Node) -> None:
        self.left, self.right = left, right
        shared = [name for name in left.columns if name in right.columns]
        self.shared = shared
        self.of_left = [left.columns.index(name) for name in shared]
        self.of_right = [right.columns.index(name) for name in shared]

    def beside(self, at: At, rows: Ids, only: Table | None = None) -> Ids:
        """What of the right side may be compatible with these rows of the left one."""
        said = found(self.left.columns, rows, self.right.columns)
        return self.right.run(at, only if said is None else said)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.left, self.right


class Joined(Binary):
    """Every solution of one side with every compatible one of the other."""

    def __init__(self, left: Node, right: Node) -> None:
        super().__init__(left, right)
        self._merge = Merge(left.columns, right.columns, left.bound)
        self.columns = self._merge.columns
        self.bound = left.bound | right.bound

    def run(self, at: At, only: Table | None = None) -> Ids:
        left = self.left.run(at, only)
        if not left.shape[1]:
            return no_rows(len(self.columns))
        right = self.beside(at, left, only)
        which, other = compatible_pairs(left[self.of_left], right[self.of_right])
        return self._merge.rows(left, right, which, other)

    def say(self) -> str:
        return f"join on {named(self.shared)}" if self.shared else "product"


class Optional(Binary):
    """OPTIONAL."""

    def __init__(self, left: Node, right: Node, merge: Merge, condition: Formula | None) -> None:
        super().__init__(left, right)
        self._merge, self._condition = merge, condition
        self.columns, self.bound = self._merge.columns, left.bound

    def run(self, at: At, only: Table | None = None) -> Ids:
        return self._beside(at, self.left.run(at, only))

    def _beside(self, at: At, left: Ids) -> Ids:
        if not left.shape[1]:
            return no_rows(len(self.columns))
        right = self.beside(at, left)
        which, other = compatible_pairs(left[self.of_left], right[self.of_right])
        both = self._merge.rows(left, right, which, other)
        if self._condition is not None:
            kept = self._condition.holds(at, both).nonzero()[0]
            which, both = which[kept], both[:, kept]
        alone = np.ones(left.shape[1], np.bool_)
        alone[which] = False
        if not alone.any():
            return both
        return np.concatenate([both, self._merge.alone(left[:, alone])], axis=1)

    def some(self, at: At, many: int) -> Ids:
        return self._beside(at, self.left.some(at, many))  # each of which has one solution at the least

    def say(self) -> str:
        return f"optional on {named(self.shared)}"

    @property
    def inputs(self) -> tuple[Node, ...]:
        condition = () if self._condition is None else self._condition.inputs
        return (self.left, self.right, *condition)


class Without(Binary):
    """MINUS."""

    def __init__(self, left: Node, right: Node) -> None:
        super().__init__(left, right)
        self.columns, self.bound = left.columns, left.bound

    def run(self, at: At, only: Table | None = None) -> Ids:
        left = self.left.run(at, only)
        if not left.shape[1] or not self.shared:
            return left
        right = self.beside(at, left)[self.of_right]
        which, _ = compatible_pairs(left[self.of_left], right[:, distinct(right)], sharing=True)
        alone = np.ones(left.shape[1], np.bool_)
        alone[which] = False
        return left[:, alone]

    def say(self) -> str:
        return f"minus on {named(self.shared)}"


class United(Node):
    """UNION."""

    def __init__(self, parts: Sequence[Node]) -> None:
        self._parts = tuple(parts)
        self.columns = tuple(dict.fromkeys(name for part in parts for name in part.columns))
        self.bound = frozenset.intersection(*(part.bound for part in parts))

    def run(self, at: At, only: Table | None = None) -> Ids:
        found = [rows_of(part.run(at, only), part.columns, self.columns) for part in self._parts]
        return np.concatenate(found, axis=1)

    def some(self, at: At, many: int) -> Ids:
        found: list[Ids] = []
        for part in self._parts:
            found.append(rows_of(part.some(at, many), part.columns, self.columns))
            many -= found[-1].shape[1]
            if many <= 0:
                break
        return np.concatenate(found, axis=1)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self._parts

    def say(self) -> str:
        return "union"


class Unary(Node):
    """What has one node below it, and its columns."""

    def __init__(self, source: Node) -> None:
        self.source, self.columns, self.bound = source, source.columns, source.bound

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)


class Filtered(Unary):
    """The solutions for which all conditions hold, decided one after another."""

    def __init__(self, source: Node, conditions: Sequence[Formula]) -> None:
        super().__init__(source)
        self._conditions = tuple(conditions)

    def run(self, at: At, only: Table | None = None) -> Ids:
        rows = self.source.run(at, only)
        for condition in self._conditions:
            if rows.shape[1]:
                rows = rows[:, condition.holds(at, rows)]
        return rows

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source, *(node for condition in self._conditions for node in condition.inputs))

    def say(self) -> str:
        return "filter"


class Extended(Unary):
    """One column more: the value of an expression."""

    def __init__(self, source: Node, name: str, expression: Formula) -> None:
        super().__init__(source)
        self._expression = expression
        self.columns = (*source.columns, name)

    def run(self, at: At, only: Table | None = None) -> Ids:
        return self._with_value(at, self.source.run(at, only))

    def some(self, at: At, many: int) -> Ids:
        return self._with_value(at, self.source.some(at, many))

    def _with_value(self, at: At, rows: Ids) -> Ids:
        return np.concatenate([rows, self._expression.ids(at, rows)[None, :]])

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source, *self._expression.inputs)

    def say(self) -> str:
        return f"bind ?{self.columns[-1]}"


class Projected(Unary):
    """Some columns; what is not there is unbound. Others are not seen from outside, whatever their names."""

    def __init__(self, source: Node, columns: tuple[str, ...]) -> None:
        super().__init__(source)
        self.columns, self.bound = columns, source.bound & frozenset(columns)

    def run(self, at: At, only: Table | None = None) -> Ids:
        return rows_of(self.source.run(at, narrowed(only, self.columns)), self.source.columns, self.columns)

    def some(self, at: At, many: int) -> Ids:
        return rows_of(self.source.some(at, many), self.source.columns, self.columns)

    def say(self) -> str:
        return f"project {named(self.columns)}"


class Once(Unary):
    """DISTINCT, and REDUCED: every solution once, where it first comes."""

    def run(self, at: At, only: Table | None = None) -> Ids:
        rows = self.source.run(at, only)
        return rows[:, distinct(rows)]

    def say(self) -> str:
        return "distinct"


class Sliced(Unary):
    """LIMIT and OFFSET."""

    def __init__(self, source: Node, offset: int, limit: int | None) -> None:
        super().__init__(source)
        self._slice = slice(offset, None if limit is None else offset + limit)

    def run(self, at: At, only: Table | None = None) -> Ids:
        end = self._slice.stop
        rows = self.source.run(at) if end is None else self.source.some(at, end)
        return rows[:, self._slice]

    def say(self) -> str:
        return f"rows {self._slice.start} to {'the end' if self._slice.stop is None else self._slice.stop}"


class Grouped(Unary):
    """GROUP BY with aggregates."""

    def __init__(
        self,
        source: Node,
        keys: tuple[str, ...],
        aggregates: tuple[tuple[str, AggregateSpec], ...],
        dictionary: Dictionary,
    ) -> None:
        super().__init__(source)
        self._keys, self._aggregates, self._dictionary = keys, aggregates, dictionary
        self.columns = (*keys, *(name for name, _ in aggregates))
        counts = frozenset(name for name, spec in aggregates if spec.op == "COUNT")
        self.bound = (source.bound & frozenset(keys)) | counts

    def run(self, at: At, only: Table | None = None) -> Ids:
        rows = self.source.run(at, narrowed(only, self._keys))
        many = rows.shape[1]
        operator = GroupBy(self.source.columns, self._keys, self._aggregates, self._dictionary)
        deltas = Deltas(self.source.columns, np.zeros(many, np.int64), np.ones(many, np.int64), rows)
        out = operator.step(deltas, until=0)
        out = out.select(out.weight > 0)
        if not self._keys and not len(out):
            out = operator.initial()
        return out.values

    def say(self) -> str:
        return f"group by {named(self._keys)}"


class InGraphs(Node):
    """GRAPH: the pattern in one named graph, or in each of them by itself."""

    def __init__(self, source: Node, graph: int | str) -> None:
        """`graph` is the id of one, or the name of a variable."""
        self._source, self._graph = source, graph
        self.columns, self.bound = source.columns, source.bound
        self._place = -1
        if isinstance(graph, str):
            self.bound |= {graph}
            if graph in source.columns:
                self._place = source.columns.index(graph)
            else:
                self.columns = (*source.columns, graph)

    def run(self, at: At, only: Table | None = None) -> Ids:
        graphs = at.dataset.named_graphs(at.view)
        if not isinstance(self._graph, str):
            if self._graph not in graphs:
                return no_rows(len(self.columns))
            return self._source.run(at.within(self._graph), only)
        if only is not None and self._graph in only.columns:
            wanted = set(only.column(self._graph).tolist())
            graphs = [graph for graph in graphs if graph in wanted]
        parts = [self._bound(self._source.run(at.within(graph), only), graph) for graph in graphs]
        return np.concatenate(parts, axis=1) if parts else no_rows(len(self.columns))

    def _bound(self, rows: Ids, graph: int) -> Ids:
        if self._place < 0:
            return np.concatenate([rows, np.full((1, rows.shape[1]), graph)])
        rows = rows[:, (rows[self._place] == 0) | (rows[self._place] == graph)]
        rows[self._place] = graph
        return rows

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self._source,)

    def say(self) -> str:
        return f"in each named graph ?{self._graph}" if isinstance(self._graph, str) else "in a named graph"
