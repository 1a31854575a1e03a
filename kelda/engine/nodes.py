"""The nodes of a running query: each turns the deltas of its inputs into its own, once per step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kelda.engine.budget import NO_LIMIT, Budget, Limited
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Deltas, Ids, Operator
from kelda.engine.expressions import Compiled
from kelda.engine.intervals import Intervals
from kelda.engine.intervals_kernels import matching
from kelda.engine.ownership import Owner
from kelda.engine.sharing import Parameters
from kelda.engine.stream_rows import NO_ROWS, StreamRows
from kelda.engine.waiting import Waiting
from kelda.engine.window_join import Leaf, NewRows, WindowJoin
from kelda.plan.shape import QUERY
from kelda.rdf.keyset import KeySet
from kelda.store.moments import of_instant


@dataclass(frozen=True, slots=True)
class Step:
    """What is new on each stream: all instants up to `until` are complete."""

    number: int
    until: int
    rows: Mapping[str, StreamRows]
    budget: Budget = NO_LIMIT
    since: int = NEVER  # the instants before were in the steps before
    update: int | None = None  # the moment of an update, if it is a step for that alone

    @property
    def moment(self) -> int:
        """Up to which the changes of stored graphs are seen."""
        return of_instant(self.until) if self.update is None else self.update


class Node:
    """Base: computes its deltas once per step, however many nodes read them. One that has failed is in no
    state to go on: it fails for all of them, from then on."""

    columns: tuple[str, ...]

    def __init__(self) -> None:
        self._done = -1
        self._deltas: Deltas | None = None
        self._failed: Exception | None = None

    def step(self, step: Step) -> Deltas:
        """The node's deltas in this step."""
        if self._done == step.number and self._deltas is not None:
            return self._deltas
        if self._failed is not None:
            raise self._failed
        self._deltas = None  # those of the step before are not needed any more
        try:
            deltas = self.advance(step)
            step.budget.made(deltas)
        except Exception as error:
            self._failed = error
            raise
        self._deltas, self._done = deltas, step.number
        return deltas

    def advance(self, step: Step) -> Deltas:
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes it reads."""
        return ()

    @property
    def nbytes(self) -> int:
        """Bytes of state of its own."""
        return 0

    def say(self) -> str:
        """What it does, in a few words."""
        return type(self).__name__


@dataclass
class WindowLeaf:
    """A triple pattern over a window: which rows match, and which columns they give.

    `wanted` has the id that each of s, p, o must have, or None; `columns` the position of each variable;
    `equal` pairs of positions that hold one variable twice."""

    stream: str
    intervals: Intervals
    wanted: tuple[int | None, int | None, int | None]
    columns: dict[str, int]
    equal: tuple[tuple[int, int], ...] = ()
    window: str = ""  # its name in the query
    among: list[tuple[int, KeySet]] = field(default_factory=list)  # positions that must hold one of many ids
    owner: Owner | None = None  # if the query is spread over shards
    waiting: Waiting = field(init=False)
    open_rows: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    open_units: Ids = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.intervals, len(self.columns))
        self._positions = tuple(self.columns.values())
        self._wanted = np.array([w or 0 for w in self.wanted], np.int64)
        self._given = np.array([w is not None for w in self.wanted], np.bool_)

    def match(self, rows: StreamRows) -> tuple[Ids, Ids]:
        """(units, values) of the rows of a step that match."""
        parts = (rows.s, rows.p, rows.o)
        which = matching(*parts, self._wanted, self._given)
        for a, b in self.equal:
            which = which[parts[a][which] == parts[b][which]]
        for position, keys in self.among:
            which = which[keys.holds(parts[position][which])]
        if self.owner is not None:
            which = which[self.owner.mine(self.columns, parts, which)]
        values = np.empty((len(self.columns), len(which)), np.int64)
        if not len(which):
            return which, values
        units = self.intervals.units(rows)
        for i, position in enumerate(self._positions):
            parts[position].take(which, out=values[i], mode="clip")
        return units.take(which), values

    def begin_with(self, rows: NewRows) -> None:
        """These are the rows of the window: some may be without an end yet."""
        if self.intervals.ends_later:
            self.open_rows = np.flatnonzero(rows.leave == FOREVER)
            self.open_units = _units(rows)[self.open_rows]


class JoinWindows(Node):
    """All window patterns of a group joined with each other and with the stored relations."""

    def __init__(
        self,
        windows: list[WindowLeaf],
        stored: list[Leaf],
        graph: bool,
        parameters: Parameters | None = None,
        bring: Callable[[Ids], None] = lambda ids: None,
    ) -> None:
        """`bring` is told the ids of what is found: some are of stored terms."""
        super().__init__()
        leaves = [Leaf(tuple(w.columns), graph=graph) for w in windows]
        leaves += stored
        # Of the parameters' columns, those that are compared here.
        self._compared: list[int] = []
        if parameters is not None:
            mine = {name for leaf in leaves for name in leaf.columns}
            self._compared = [i for i, name in enumerate(parameters.columns) if name in mine]
        # With no constants to join on, every result is everybody's: it is routed by window size.
        self._routes = parameters is not None and not self._compared
        if parameters is not None and not self._routes:
            self._compared.insert(0, 0)  # and whose row it is
            names = tuple(parameters.columns[i] for i in self._compared)
            leaves.append(Leaf(names, stored=np.zeros((len(names), 0), np.int64)))
        self.windows = windows
        self.parameters = parameters
        # Per leaf and class of queries that was let in, the first row that it may see.
        self._since = np.zeros((len(leaves), 0), np.int64)
        self._admitted = np.zeros(0, np.int64)  # in which step each of them was
        self.join = WindowJoin(leaves)
        # The columns that no window has: terms in these may be known to the store alone.
        seen = {name for window in windows for name in window.columns}
        self._foreign = [i for i, name in enumerate(self.join.columns) if name not in seen]
        self._bring = bring if stored and self._foreign else None
        self.columns = (*self.join.columns, QUERY) if self._routes else self.join.columns

    def require(self, condition: Compiled) -> None:
        """Only results for which the condition holds."""

        def holds(found: Deltas) -> NDArray[np.bool_]:
            if self._bring is not None:
                self._bring(found.values[self._foreign])
            return condition.holds(found)

        self.join.conditions.append(holds)

    def seed(self, places: list[tuple[JoinWindows, int]]) -> None:
        """Begin with the rows that leaves of other joins have, for the same patterns and windows."""
        batches = []
        for i, (window, (other, place)) in enumerate(zip(self.windows, places, strict=True)):
            rows = replace(other.join.rows_of(place), leaf=i)
            window.waiting.take_back(*other.windows[place].waiting.all())
            window.begin_with(rows)
            batches.append(rows)
        self.join.add(batches)

    def _admit(self, parameters: Parameters, step: Step) -> None:
        """Let classes of queries in that were registered since the last step."""
        rows = parameters.rows(known=self._since.shape[1])
        if not self._routes:
            self.join.add_stored(len(self.join.leaves) - 1, rows[self._compared])
        fresh = np.repeat(self.join.next_rows[:, None], rows.shape[1], axis=1)
        self._since = np.concatenate([self._since, fresh], axis=1)
        self._admitted = np.concatenate([self._admitted, np.full(rows.shape[1], step.number)])

    def _bound(self, rows: Ids) -> Ids:
        """When results end by the windows of their own query; before all time if they are none of its."""
        parameters = self.parameters
        assert parameters is not None
        if self._routes:  # every result for every query
            query = np.arange(len(parameters))[None, :]
            rows = rows[:, :, None]
        else:
            query = self.join.cell(len(self.join.leaves) - 1, 0, rows[:, -1]) - 1
        shape = np.broadcast_shapes(query.shape, rows[:, 0].shape)
        end = np.full(shape, FOREVER)
        mine = np.broadcast_to(parameters.alive[query] > 0, shape)
        for i, window in enumerate(self.windows):
            mine = mine & (rows[:, i] >= self._since[i][query])
            sizes = parameters.sizes.get(window.window)
            if sizes is not None:
                units = self.join.unit(i, rows[:, i])
                end = np.minimum(end, window.intervals.leave_by(units, sizes[query]))
        return np.where(mine, end, NEVER)

    def advance(self, step: Step) -> Deltas:
        self.join.budget = step.budget
        if self.parameters is not None and self._since.shape[1] < len(self.parameters):
            self._admit(self.parameters, step)
        batches, owners = [], []
        for i, window in enumerate(self.windows):
            rows = step.rows.get(window.stream)
            if rows is None:
                rows = NO_ROWS
            if len(window.open_rows):
                _, leave = window.intervals.of(window.open_units)
                known = leave < FOREVER
                self.join.settle(i, window.open_rows[known], leave[known])
                window.open_rows, window.open_units = window.open_rows[~known], window.open_units[~known]
            units, values = window.match(rows)
            if not len(units) and not len(window.waiting):
                continue
            values, enter, leave, units = window.waiting.step(units, values)
            if len(enter):
                batches.append(NewRows(i, values, enter, leave, units))
                owners.append((window, units, leave))
        if self.join.reach(step.moment) or batches:
            for (window, units, leave), first in zip(owners, self.join.add(batches), strict=True):
                # Of rows in their order, only the last may be without an end yet.
                if leave[-1] == FOREVER and window.intervals.ends_later:
                    unknown = np.flatnonzero(leave == FOREVER)
                    window.open_rows = np.concatenate([window.open_rows, first + unknown])
                    window.open_units = np.concatenate([window.open_units, units[unknown]])
        elif not self.join.standing:
            return Deltas.empty(self.columns)
        if self._routes:
            assert self.parameters is not None
            step.budget.check(BYTES_A_ROUTE * self.join.standing * len(self.parameters))
            found = self.join.routed(step.until, self._bound, QUERY)
        else:
            found = self.join.results(step.until, None if self.parameters is None else self._bound)
        if self._bring is not None:
            self._bring(found.values[self._foreign])
        return found

    @property
    def nbytes(self) -> int:
        return self.join.nbytes

    def say(self) -> str:
        lines = [f"join of {len(self.join.leaves)} leaves by intervals"]
        for i, leaf in enumerate(self.join.leaves):
            kind = "facts" if leaf.facts is not None else "window" if leaf.stored is None else "stored"
            line = f"    leaf {i} ({kind}: {' '.join('?' + c for c in leaf.columns) or 'no variables'})"
            probed = ", ".join(f"{other} (~{matches:.3g} rows)" for other, matches in self.join.order[i])
            lines.append(line + (f": a new row probes {probed}" if probed and leaf.stored is None else ""))
        return "\n".join(lines)


class Filtered(Node):
    """The rows for which the condition holds."""

    def __init__(self, source: Node, condition: Compiled) -> None:
        super().__init__()
        self.source, self.condition, self.columns = source, condition, source.columns

    def advance(self, step: Step) -> Deltas:
        deltas = self.source.step(step)
        return deltas.select(self.condition.holds(deltas)) if len(deltas) else deltas

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def say(self) -> str:
        return "filter"


class Extended(Node):
    """One column more: the value of an expression."""

    def __init__(self, source: Node, name: str, expression: Compiled) -> None:
        super().__init__()
        self.source, self.expression = source, expression
        self.columns = (*source.columns, name)

    def advance(self, step: Step) -> Deltas:
        deltas = self.source.step(step)
        if not len(deltas):
            return Deltas.empty(self.columns)
        return deltas.with_column(self.columns[-1], self.expression.ids(deltas))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def say(self) -> str:
        return f"bind ?{self.columns[-1]}"


class Projected(Node):
    """Some columns; what is not there is unbound."""

    def __init__(self, source: Node, columns: tuple[str, ...]) -> None:
        super().__init__()
        self.source, self.columns = source, columns

    def advance(self, step: Step) -> Deltas:
        return self.source.step(step).project(self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.source,)

    def say(self) -> str:
        return "project " + " ".join("?" + c for c in self.columns)


class United(Node):
    """All rows of all inputs."""

    def __init__(self, sources: tuple[Node, ...]) -> None:
        super().__init__()
        self.sources = sources
        self.columns = tuple(dict.fromkeys(c for s in sources for c in s.columns))

    def advance(self, step: Step) -> Deltas:
        return Deltas.concat([s.step(step) for s in self.sources], self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.sources

    def say(self) -> str:
        return "union"


class Operated(Node):
    """An operator with a state of its own on its inputs."""

    def __init__(self, operator: Operator, sources: tuple[Node, ...], words: str) -> None:
        super().__init__()
        self.operator, self.sources, self.columns, self._words = operator, sources, operator.columns, words
        self._initial = getattr(operator, "initial", None)

    def advance(self, step: Step) -> Deltas:
        inputs = [s.step(step) for s in self.sources]
        if isinstance(self.operator, Limited):
            self.operator.budget = step.budget
        out = self.operator.step(*inputs, until=step.until)
        if self._initial is not None:  # what is there before any input: an aggregate over nothing
            out = Deltas.concat([self._initial(), out], self.columns)
            self._initial = None
        return out

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.sources

    @property
    def nbytes(self) -> int:
        return self.operator.nbytes

    def say(self) -> str:
        return self._words


def _units(rows: NewRows) -> Ids:
    return rows.enter if rows.unit is None else rows.unit


BYTES_A_ROUTE = 48  # what telling whether a result is for a query takes meanwhile, about
