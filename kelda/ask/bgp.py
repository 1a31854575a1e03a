"""Basic graph patterns: one triple pattern after another, each looked up for all rows at once.

A plan is an order of the patterns: next is always the one with the fewest matches for a row, of those that
share a variable with what is bound, if there are any. How many that are is read off the tables, for constants
exactly. A plan is kept until its tables have doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kelda.ask.facts import Facts, Graph
from kelda.ask.formula import Formula
from kelda.ask.node import At, Node, named, narrowed
from kelda.ask.table import Ids, Table, no_rows

Match = tuple[Ids, list[Ids]]  # for each match which row it is of, and the values of the new variables

_NONE = np.zeros(0, np.int64)
_GROWN = 2
_FEW = 1000  # rows more, which are no reason to plan again
_SOME = 1000  # rows that are followed first, where not all are wanted


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a triple pattern: a term, or a variable."""

    id: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Lookup:
    """A triple pattern."""

    s: Spot
    p: Spot
    o: Spot
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """Its variables."""
        return tuple(dict.fromkeys(spot.name for spot in (self.s, self.p, self.o) if spot.name))


@dataclass(frozen=True, slots=True)
class Step:
    """A lookup in its place: what to keep of the rows before it and of what it finds, and the conditions that
    can be decided then. `matches` is how many a row is expected to have."""

    lookup: Lookup
    old: tuple[str, ...]
    new: tuple[str, ...]
    conditions: tuple[Formula, ...]
    matches: float


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, how many rows they are expected to find, and the sizes of the tables when it was made."""

    steps: tuple[Step, ...]
    work: float
    sizes: tuple[int, ...]


class Bgp(Node):
    """Triple patterns, and conditions on their variables. Of the variables, `wanted` are told."""

    def __init__(
        self, lookups: Sequence[Lookup], wanted: Sequence[str], conditions: Sequence[Formula] = ()
    ) -> None:
        self._lookups, self._conditions = tuple(lookups), tuple(conditions)
        self._names = frozenset(name for lookup in lookups for name in lookup.names)
        self.columns = tuple(wanted)
        self.bound = frozenset(wanted)
        self._plans: dict[frozenset[str], Plan] = {}

    @property
    def names(self) -> frozenset[str]:
        """All its variables, told or not."""
        return self._names

    def run(self, at: At, only: Table | None = None) -> Ids:
        graph = at.graph
        only = narrowed(only, self.columns)
        start = self.plan(graph, frozenset())
        rows: dict[str, Ids] = {}
        size = 1
        if only is not None and len(only) <= start.work:
            seeded = self.plan(graph, frozenset(only.columns))
            if len(only) * seeded.work <= start.work:
                start, size = seeded, len(only)
                rows = dict(zip(only.columns, only.ids, strict=True))
        return self._followed(at, start.steps, rows, size)

    def some(self, at: At, many: int) -> Ids:
        """The first step at once, then the others for a few of its rows at a time."""
        first, *others = self.plan(at.graph, frozenset()).steps
        rows: dict[str, Ids] = {}
        size = _followed(at, [first], rows, 1)
        found = [no_rows(len(self.columns))]
        begin, end = 0, max(many, _SOME)
        while begin < size and sum(part.shape[1] for part in found) < many:
            part = {name: ids[begin:end] for name, ids in rows.items()}
            found.append(self._followed(at, others, part, min(end, size) - begin))
            begin, end = end, 4 * end
        return np.concatenate(found, axis=1)

    def _followed(self, at: At, steps: Sequence[Step], rows: dict[str, Ids], size: int) -> Ids:
        size = _followed(at, steps, rows, size)
        if not size or not self.columns:
            return np.zeros((len(self.columns), size), np.int64)
        return np.stack([rows[name] for name in self.columns])

    def plan(self, graph: Graph, seeded: frozenset[str]) -> Plan:
        """The order, where these variables are given."""
        plan = self._plans.get(seeded)
        sizes = tuple(_size(graph, lookup) for lookup in self._lookups)
        if plan is None or any(
            now > _GROWN * then + _FEW for now, then in zip(sizes, plan.sizes, strict=True)
        ):
            plan = self._plans[seeded] = self._planned(graph, seeded, sizes)
        return plan

    def _planned(self, graph: Graph, seeded: frozenset[str], sizes: tuple[int, ...]) -> Plan:
        left = list(self._lookups)
        known = set(seeded)
        order: list[tuple[Lookup, float]] = []
        while left:
            reached = [lookup for lookup in left if not known or known & set(lookup.names)]
            constant = [lookup for lookup in left if not lookup.names]
            some = constant or reached or left
            costs = [_matches(graph, lookup, known) for lookup in some]
            best = costs.index(min(costs))
            order.append((some[best], costs[best]))
            known |= set(some[best].names)
            left.remove(some[best])
        return self._spelled(order, seeded, sizes)

    def _spelled(
        self, order: list[tuple[Lookup, float]], seeded: frozenset[str], sizes: tuple[int, ...]
    ) -> Plan:
        known = set(seeded)
        conditions = list(self._conditions)
        steps: list[Step] = []
        rows = work = 1.0
        for i, (lookup, matches) in enumerate(order):
            new = [name for name in lookup.names if name not in known]
            decided = [c for c in conditions if known | set(new) >= set(c.columns)]
            conditions = [c for c in conditions if c not in decided]
            later = {name for other, _ in order[i + 1 :] for name in other.names}
            needed = later.union(self.columns, *(c.columns for c in (*decided, *conditions)))
            steps.append(
                Step(
                    lookup,
                    tuple(sorted(known & needed)),
                    tuple(name for name in new if name in needed),
                    tuple(decided),
                    matches,
                )
            )
            known |= set(new)
            rows *= matches
            work += rows
        return Plan(tuple(steps), work, sizes)

    def say(self) -> str:
        lines = [f"look up {named(self.columns)}"]
        if not self._plans:
            lines += [f"    {lookup.text}" for lookup in self._lookups]
        for seeded, plan in self._plans.items():
            if seeded:
                lines.append(f"  for each {named(sorted(seeded))}")
            for step in plan.steps:
                tested = f", {len(step.conditions)} conditions" if step.conditions else ""
                lines.append(f"    {step.lookup.text}    (~{step.matches:.3g} for a row{tested})")
        return "\n".join(lines)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(node for condition in self._conditions for node in condition.inputs)


def _followed(at: At, steps: Sequence[Step], rows: dict[str, Ids], size: int) -> int:
    """The rows after some steps; how many there are."""
    for step in steps:
        size = _follow(step, rows, size, at.graph)
        for condition in step.conditions:
            size = _keep(condition, at, rows, size) if size else 0
        if not size:
            break
    return size


def _keep(condition: Formula, at: At, rows: dict[str, Ids], size: int) -> int:
    """Only the rows for which the condition holds."""
    given = np.stack([rows[name] for name in condition.columns]) if condition.columns else None
    holds = condition.holds(at, np.zeros((0, size), np.int64) if given is None else given)
    kept = holds.nonzero()[0]
    if len(kept) < size:
        for name, ids in rows.items():
            rows[name] = ids[kept]
    return len(kept)


def _size(graph: Graph, lookup: Lookup) -> int:
    table = None if lookup.p.name else graph.table(lookup.p.id)
    return 0 if table is None else table.rows


def _matches(graph: Graph, lookup: Lookup, known: set[str]) -> float:
    """How many matches a row is expected to have."""
    if lookup.p.name:
        total = sum(_matches_in(table, lookup, known) for table in graph.tables())
        return total / max(len(graph.tables()), 1) if lookup.p.name in known else total
    table = graph.table(lookup.p.id)
    return 0.0 if table is None else _matches_in(table, lookup, known)


def _matches_in(table: Facts, lookup: Lookup, known: set[str]) -> float:
    s, o = lookup.s, lookup.o
    s_known, o_known = not s.name or s.name in known, not o.name or o.name in known
    if not s.name and not o_known:
        return float(len(table.by_subject(np.array([s.id]))[0]))
    if not o.name and not s_known:
        return float(len(table.by_object(np.array([o.id]))[0]))
    rows = float(table.rows)
    if s_known:
        rows /= max(table.subjects(), 1)
    if o_known:
        rows /= max(table.objects(), 1)
    return rows


def _follow(step: Step, rows: dict[str, Ids], size: int, graph: Graph) -> int:
    """The rows with each match of the next pattern."""
    p = step.lookup.p
    if p.name and p.name not in rows:
        which, new = _through_all(step, rows, size, graph)
        return _taken(step, rows, which, new)
    if not p.name:
        table = graph.table(p.id)
        parts: list[tuple[Facts, Ids | None]] = [] if table is None else [(table, None)]
    else:
        parts = _by_predicate(rows[p.name], graph)
    matches = [_matched(step, rows, size, table, some) for table, some in parts]
    return _taken(step, rows, *_together(step, matches))


def _together(step: Step, matches: list[Match]) -> Match:
    if len(matches) == 1:
        return matches[0]
    if not matches:
        return _NONE, [_NONE] * len(step.new)
    which = np.concatenate([which for which, _ in matches])
    return which, [np.concatenate(columns) for columns in zip(*(new for _, new in matches), strict=True)]


def _taken(step: Step, rows: dict[str, Ids], which: Ids, new: list[Ids]) -> int:
    """What is kept of the rows, one for each match; how many there are."""
    found = {name: rows[name][which] for name in step.old}
    rows.clear()
    rows.update(found)
    rows.update(zip(step.new, new, strict=True))
    return len(which)


def _through_all(step: Step, rows: dict[str, Ids], size: int, graph: Graph) -> Match:
    """The matches of a pattern whose predicate is to be found."""
    lookup = step.lookup
    s, o = _given(lookup.s, rows, size, None), _given(lookup.o, rows, size, None)
    alike = len({lookup.s.name, lookup.p.name, lookup.o.name}) < 3  # one variable in two places
    if (s is None) == (o is None) or alike:
        return _together(step, [_matched(step, rows, size, table, None) for table in graph.tables()])
    if s is not None:
        which, predicates, ends = graph.by_any(s, subjects=True)
        values = {lookup.o.name: ends, lookup.p.name: predicates}
    else:
        assert o is not None
        which, predicates, ends = graph.by_any(o, subjects=False)
        values = {lookup.s.name: ends, lookup.p.name: predicates}
    return which, [values[name] for name in step.new]


def _by_predicate(ids: Ids, graph: Graph) -> list[tuple[Facts, Ids | None]]:
    """The tables of these predicates, each with the rows that have it."""
    found: list[tuple[Facts, Ids | None]] = []
    for predicate in np.unique(ids).tolist():
        table = graph.table(predicate)
        if table is not None:
            found.append((table, (ids == predicate).nonzero()[0]))
    return found


def _matched(step: Step, rows: dict[str, Ids], size: int, table: Facts, some: Ids | None) -> Match:
    """For each match of some rows (None: all) in a table: which row, and the values of the new variables."""
    lookup = step.lookup
    if some is not None:
        size = len(some)
    s, o = _given(lookup.s, rows, size, some), _given(lookup.o, rows, size, some)
    if s is not None and o is not None:
        which = table.holds(s, o).nonzero()[0]
        values = {}
    elif s is not None:
        which, found = table.by_subject(s)
        values = {lookup.o.name: found}
    elif o is not None:
        which, found = table.by_object(o)
        values = {lookup.s.name: found}
    else:
        found, other = table.scan()
        if lookup.s.name == lookup.o.name:
            found = other = found[found == other]
        values = {lookup.s.name: found, lookup.o.name: other}
        which = np.repeat(np.arange(size), len(found))
        if size > 1:
            values = {name: np.tile(ids, size) for name, ids in values.items()}
    p = lookup.p.name
    if p and p in values:  # the predicate is also subject or object
        same = (values[p] == table.predicate).nonzero()[0]
        which, values = which[same], {name: ids[same] for name, ids in values.items()}
    elif p and p in step.new:
        values[p] = np.full(len(which), table.predicate)
    return which if some is None else some[which], [values[name] for name in step.new]


def _given(spot: Spot, rows: dict[str, Ids], size: int, some: Ids | None) -> Ids | None:
    """The values of a place for each row; None if they are to be found."""
    if not spot.name:
        return np.full(size, spot.id)
    ids = rows.get(spot.name)
    return ids if ids is None or some is None else ids[some]
