"""The nodes of a running query: each turns the deltas of its inputs into its own, once per step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from kelda.engine.aside import Aside
from kelda.engine.budget import NO_LIMIT, Budget, Limited
from kelda.engine.clock import FOREVER, NEVER
from kelda.engine.deltas import Deltas, Ids, Operator
from kelda.engine.expressions import Compiled
from kelda.engine.intervals import Intervals
from kelda.engine.intervals_kernels import matching
from kelda.engine.ownership import Owner
from kelda.engine.relations import Picked, Relation, compared
from kelda.engine.sharing import Parameters
from kelda.engine.stream_rows import NO_ROWS, StreamRows
from kelda.engine.waiting import Waiting
from kelda.engine.window_join import Leaf, NewRows, WindowJoin
from kelda.plan.shape import QUERY
from kelda.rdf.keyset import KeySet


@dataclass(frozen=True, slots=True)
class Step:
    """What is new on each stream: all instants up to `until` are complete."""

    number: int
    until: int
    rows: Mapping[str, StreamRows]
    budget: Budget = NO_LIMIT
    since: int = NEVER  # the instants before were in the steps before


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

    def change(self, now: int) -> None:
        """The stored graphs have changed at `now`; one that fails at it has failed."""
        try:
            self.refresh(now)
        except Exception as error:
            self._failed = error
            raise

    def refresh(self, now: int) -> None:
        """What to do then: nothing, where nothing stored is read."""

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
    `equal` pairs of positions that hold one variable twice. A row that has no partner among the stored rows
    is set aside."""

    stream: str
    intervals: Intervals
    wanted: tuple[int | None, int | None, int | None]
    columns: dict[str, int]
    equal: tuple[tuple[int, int], ...] = ()
    window: str = ""  # its name in the query
    among: list[tuple[int, KeySet]] = field(default_factory=list)  # positions that must hold one of many ids
    owner: Owner | None = None  # if the query is spread over shards
    partners: list[tuple[int, KeySet]] = field(default_factory=list)  # columns that stored rows have, too
    aside: Aside = field(init=False)
    waiting: Waiting = field(init=False)
    open_rows: Ids = field(default_factory=lambda: np.zeros(0, np.int64))
    open_units: Ids = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.intervals, len(self.columns))
        self.aside = Aside(len(self.columns))
        self._positions = tuple(self.columns.values())
        self._places = np.array(self._positions, np.int64)
        self._wanted = np.array([w or 0 for w in self.wanted], np.int64)
        self._given = np.array([w is not None for w in self.wanted], np.bool_)

    def match(self, rows: StreamRows, step: Step) -> tuple[Ids, Ids]:
        """(units, values) of the rows of a step that match."""
        parts = (rows.s, rows.p, rows.o)
        which = matching(*parts, self._wanted, self._given)
        for a, b in self.equal:
            which = which[parts[a][which] == parts[b][which]]
        for position, keys in self.among:
            which = which[keys.holds(parts[position][which])]
        if self.owner is not None:
            which = which[self.owner.mine(self.columns, parts, which)]
        units: Ids | None = None
        if self.partners and len(which):
            units = self.intervals.units(rows)
            least = self.intervals.least(step.until)
            for column, keys in self.partners:
                place = self._positions[column]
                which = self.aside.split(which, keys, place, parts, units, self._places, step.number, least)
        values = np.empty((len(self.columns), len(which)), np.int64)
        if not len(which):
            return which, values
        if units is None:
            units = self.intervals.units(rows)
        for i, position in enumerate(self._positions):
            parts[position].take(which, out=values[i], mode="clip")
        return units.take(which), values

    def back(self, now: int) -> tuple[Ids, NewRows]:
        """The rows that were set aside and have a partner now: those that are in the window after `now`, with
        the steps in which they came. Those that will enter wait with the others."""
        steps, units, values = self.aside.back(self._has_partners)
        inside, rows, waiting = self._placed(units, values, now)
        self.waiting.take_back(*waiting)
        return steps[inside], rows

    def set_aside(self, now: int) -> tuple[NewRows, tuple[Ids, Ids]]:
        """All rows that are set aside: those in the window after `now`, and those that will enter."""
        _, units, values = self.aside.all()
        _, rows, waiting = self._placed(units, values, now)
        return rows, waiting

    def _placed(
        self, units: Ids, values: Ids, now: int
    ) -> tuple[NDArray[np.bool_], NewRows, tuple[Ids, Ids]]:
        """Of some rows, which are in the window after `now`; these; and (units, values) of those that will
        enter."""
        enter, leave = self.intervals.now_of(units)
        inside = (enter < FOREVER) & (enter < leave) & (leave > now)
        rows = NewRows(0, values[:, inside], enter[inside], leave[inside], units[inside])
        return inside, rows, (units[enter == FOREVER], values[:, enter == FOREVER])

    def begin_with(self, rows: NewRows) -> None:
        """These are the rows of the window: some may be without an end yet."""
        if self.intervals.ends_later:
            self.open_rows = np.flatnonzero(rows.leave == FOREVER)
            self.open_units = _units(rows)[self.open_rows]

    def _has_partners(self, units: Ids, values: Ids) -> NDArray[np.bool_]:
        fits = np.ones(len(units), np.bool_)
        for column, keys in self.partners:
            fits &= keys.holds(values[column])
        return fits


class JoinWindows(Node):
    """All window patterns of a group joined with each other and with the stored relations."""

    def __init__(
        self,
        windows: list[WindowLeaf],
        stored: list[Relation | Picked],
        graph: bool,
        parameters: Parameters | None = None,
    ) -> None:
        super().__init__()
        leaves = [Leaf(tuple(w.columns), graph=graph) for w in windows]
        leaves += [Leaf(relation.columns, stored=relation.rows) for relation in stored]
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
        self._stored = stored
        # Per stored relation, the values of the columns that windows have too: a row of a window with none
        # of them is set aside.
        self._values: list[dict[int, KeySet]] = [{} for _ in stored]
        for relation, values in zip(stored, self._values, strict=True):
            for i, name in enumerate(relation.columns):
                for window in (w for w in windows if name in w.columns):
                    if window.intervals.places_later:
                        at = tuple(window.columns).index(name)
                        window.partners.append((at, values.setdefault(i, KeySet())))
            _note(values, relation.rows)
        # Per leaf and class of queries that was let in, the first row that it may see.
        self._since = np.zeros((len(leaves), 0), np.int64)
        self._admitted = np.zeros(0, np.int64)  # in which step each of them was
        self.join = WindowJoin(leaves)
        self.columns = (*self.join.columns, QUERY) if self._routes else self.join.columns
        if parameters is not None:
            parameters.readers.append(self._pick)

    def require(self, condition: Compiled) -> None:
        """Only results for which the condition holds."""
        self.join.conditions.append(condition.holds)

    def _pick(self, constants: Ids) -> None:
        """More queries come: the stored rows that their constants pick."""
        assert self.parameters is not None
        places = {name: i for i, name in enumerate(self.parameters.columns[1:])}
        for i, relation in enumerate(self._stored):
            if isinstance(relation, Picked):
                rows = relation.more(constants[[places[name] for name in relation.constants]])
                self.join.add_stored(len(self.windows) + i, rows)
                _note(self._values[i], rows)

    def refresh(self, now: int) -> None:
        """The stored graphs have changed: the relations do after `now`.

        If they do, the rows are joined anew, those with them that were set aside and have a partner now. What
        came of it up to `now` was told, so the difference is told after it."""
        first = len(self.windows)
        stored = [_changed(self.join.rows_of(first + i), r.again(), now) for i, r in enumerate(self._stored)]
        if all(s is None for s in stored):
            return
        old, join = self.join, WindowJoin([_emptied(leaf) for leaf in self.join.leaves])
        join.conditions = old.conditions
        for i in range(first, len(old.leaves)):
            changed = stored[i - first] if i - first < len(stored) else None
            rows = old.rows_of(i) if changed is None else changed
            join.add_stored(i, rows.values, rows.enter, rows.leave)
            if changed is not None:
                _note(self._values[i - first], rows.values)
        begins, batches = old.oldest_rows, []
        for i, window in enumerate(self.windows):
            steps, back = window.back(now)
            rows = _merged(old.rows_of(i), back, i)
            batches.append(rows)
            # Who was let in later sees none from before: of the old rows by number, of the others by step.
            self._since[i] = np.maximum(self._since[i] - begins[i], 0) + steps.searchsorted(self._admitted)
            window.begin_with(rows)
        join.add(batches)
        self.join = join
        join.told(now, None if self.parameters is None else self._bound)

    @property
    def relations(self) -> list[Relation]:
        """The stored relations that are here with all their rows."""
        return [relation for relation in self._stored if isinstance(relation, Relation)]

    def seed(self, places: list[tuple[JoinWindows, int]], now: int) -> None:
        """Begin with the rows that leaves of other joins have, for the same patterns and windows."""
        batches = []
        for i, (window, (other, place)) in enumerate(zip(self.windows, places, strict=True)):
            theirs = other.windows[place]
            aside, waiting = theirs.set_aside(now)
            rows = _merged(other.join.rows_of(place), aside, i)
            window.waiting.take_back(*theirs.waiting.all())
            window.waiting.take_back(*waiting)
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
            units, values = window.match(rows, step)
            if not len(units) and not len(window.waiting):
                continue
            values, enter, leave, units = window.waiting.step(units, values)
            if len(enter):
                batches.append(NewRows(i, values, enter, leave, units))
                owners.append((window, units, leave))
        if batches:
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
            return self.join.routed(step.until, self._bound, QUERY)
        return self.join.results(step.until, None if self.parameters is None else self._bound)

    @property
    def nbytes(self) -> int:
        return self.join.nbytes

    def say(self) -> str:
        lines = [f"join of {len(self.join.leaves)} leaves by intervals"]
        for i, leaf in enumerate(self.join.leaves):
            kind = "window" if leaf.stored is None else "stored"
            line = f"    leaf {i} ({kind}: {' '.join('?' + c for c in leaf.columns) or 'no variables'})"
            probed = ", ".join(f"{other} (~{matches:.3g} rows)" for other, matches in self.join.order[i])
            lines.append(line + (f": a new row probes {probed}" if probed and leaf.stored is None else ""))
        return "\n".join(lines)


class Stored(Node):
    """A stored sub-query: there from the beginning, and asked again (`again`) when stored graphs change."""

    def __init__(self, relation: Relation) -> None:
        super().__init__()
        self.columns, self.relation = relation.columns, relation
        self._news = self._signed(relation.rows, NEVER, 1)

    def refresh(self, now: int) -> None:
        """The stored graphs have changed: what differs is new after `now`."""
        changes = [
            self._signed(self.relation.rows, now + 1, -1),
            self._signed(self.relation.again(), now + 1, 1),
        ]
        self._news = Deltas.concat([self._news, *changes], self.columns).consolidated()

    def _signed(self, rows: Ids, time: int, sign: int) -> Deltas:
        size = rows.shape[1]
        return Deltas(self.columns, np.full(size, time), np.full(size, sign), rows)

    def advance(self, step: Step) -> Deltas:
        news, self._news = self._news, Deltas.empty(self.columns)
        return news

    def say(self) -> str:
        return f"stored relation of {self.relation.rows.shape[1]} rows"


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


def _changed(rows: NewRows, now_there: Ids, now: int) -> NewRows | None:
    """The rows of a stored leaf when those that are `now_there` are to be there after `now`; None if they are
    already. Those that have gone come first: rows of a leaf leave in their order."""
    lasting = np.flatnonzero(rows.leave == FOREVER)
    stay, came = compared(rows.values[:, lasting], now_there)
    if stay.all() and not came.shape[1]:
        return None
    seen = rows.enter <= now
    going = np.concatenate([np.flatnonzero((rows.leave < FOREVER) & (rows.leave > now)), lasting[~stay]])
    going, staying = going[seen[going]], lasting[stay]
    after = np.full(came.shape[1], now + 1)
    return NewRows(
        rows.leaf,
        np.concatenate([rows.values[:, going], rows.values[:, staying], came], axis=1),
        np.concatenate([rows.enter[going], rows.enter[staying], after]),
        np.concatenate([np.full(len(going), now + 1), np.full(len(staying) + len(after), FOREVER)]),
    )


def _emptied(leaf: Leaf) -> Leaf:
    """A leaf without its stored rows."""
    return leaf if leaf.stored is None else replace(leaf, stored=leaf.stored[:, :0])


def _units(rows: NewRows) -> Ids:
    return rows.enter if rows.unit is None else rows.unit


def _merged(rows: NewRows, more: NewRows, leaf: int) -> NewRows:
    """Rows of a window and others that came between them, in the order in which they came."""
    order = np.argsort(np.concatenate([_units(rows), _units(more)]), kind="stable")
    values = np.concatenate([rows.values, more.values], axis=1)[:, order]
    enter, leave, units = (
        np.concatenate([a, b])[order]
        for a, b in ((rows.enter, more.enter), (rows.leave, more.leave), (_units(rows), _units(more)))
    )
    return NewRows(leaf, values, enter, leave, units)


def _note(values: dict[int, KeySet], rows: Ids) -> None:
    """Add the values of some columns of new rows to what is known of them."""
    for i, keys in values.items():
        keys.add(np.unique(rows[i]))


BYTES_A_ROUTE = 48  # what telling whether a result is for a query takes meanwhile, about
