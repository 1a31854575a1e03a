"""DISTINCT against its definition; and the harness with which all keyed operators are held to the law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kelda.engine.deltas import Deltas, Operator
from kelda.engine.operators.distinct import Distinct
from kelda.engine.operators.rows import RowTable
from kelda.engine.operators.rows_kernels import intern, release

Row = tuple[int, ...]
Timed = tuple[int, int, Row]  # time, weight, row
Relation = Counter[Row]
Changes = dict[tuple[int, Row], int]

LAST = 6  # histories run over the instants 0..LAST


# --- the harness -----------------------------------------------------------------------------------------


@st.composite
def histories(draw: st.DrawFn, width: int, values: int = 3) -> list[Timed]:
    """Deltas whose sums are never negative; within an instant they may come and go in any order."""
    row = st.tuples(*[st.integers(0, values - 1)] * width)
    now: Relation = Counter()
    timed: list[Timed] = []
    for t in range(LAST + 1):
        for r, multiplicity in draw(st.dictionaries(row, st.integers(0, 3), max_size=4)).items():
            pieces = draw(st.lists(st.integers(-2, 2), max_size=2))
            pieces.append(multiplicity - now[r] - sum(pieces))
            timed += [(t, w, r) for w in pieces if w]
            now[r] = multiplicity
    order = draw(st.permutations(range(len(timed))))
    return sorted((timed[i] for i in order), key=lambda delta: delta[0])


cuts = st.sets(st.integers(0, LAST))


def deltas(columns: tuple[str, ...], timed: Sequence[Timed]) -> Deltas:
    time, weight = (np.array([d[i] for d in timed], np.int64) for i in (0, 1))
    values = np.array([d[2] for d in timed], np.int64).reshape(len(timed), len(columns)).T
    return Deltas(columns, time, weight, values)


def by_definition(f: Callable[..., Relation], *inputs: list[Timed]) -> Changes:
    """f of the summed inputs at every instant, and from it what has changed since the one before."""
    changes: Changes = {}
    previous: Relation = Counter()
    for t in sorted({d[0] for timed in inputs for d in timed}):
        sums = []
        for timed in inputs:
            relation: Relation = Counter()
            for time, weight, row in timed:
                if time <= t:
                    relation[row] += weight
            sums.append(relation)
        current = f(*sums)
        for row in current.keys() | previous.keys():
            if current[row] != previous[row]:
                changes[t, row] = current[row] - previous[row]
        previous = current
    return changes


def sent(operator: Operator, inputs: Sequence[Deltas], ends: Iterable[int]) -> Changes:
    """What an operator sends when its input is cut after these instants."""
    changes: Changes = {}
    before = -1
    for until in sorted({*ends, LAST}):
        parts = [d.select((d.time > before) & (d.time <= until)) for d in inputs]
        out = operator.step(*parts, until=until)
        assert out.columns == operator.columns
        assert out.values.shape == (len(out.columns), len(out))
        assert (np.diff(out.time) >= 0).all() and ((out.time > before) & (out.time <= until)).all()
        for time, weight, row in zip(
            out.time.tolist(), out.weight.tolist(), out.values.T.tolist(), strict=True
        ):
            assert weight != 0
            assert (time, tuple(row)) not in changes, "a row is sent once per instant"
            changes[time, tuple(row)] = weight
        before = until
    return changes


def coming_and_going(seed: int, columns: tuple[str, ...], rows: int, values: int) -> Deltas:
    """Rows that each come at an instant in 0..1000 and go, all but a few, at most 300 later."""
    random = np.random.default_rng(seed)
    came = random.integers(0, 1000, rows)
    time = np.concatenate([came, came + random.integers(0, 300, rows)])
    weight = np.concatenate([np.ones(rows, np.int64), -np.ones(rows, np.int64)])
    ids = random.integers(0, values, (len(columns), rows)) << 40
    order = np.argsort(time, kind="stable")
    order = order[time[order] <= 1000]
    return Deltas(columns, time[order], weight[order], np.concatenate([ids, ids], axis=1)[:, order])


def sum_until(d: Deltas, t: int) -> Relation:
    total: Relation = Counter()
    for time, weight, row in zip(d.time.tolist(), d.weight.tolist(), d.values.T.tolist(), strict=True):
        if time <= t:
            total[tuple(row)] += weight
    return +total


def check_sums(operator: Operator, f: Callable[..., Relation], *inputs: Deltas) -> None:
    """The law at a few instants of a run that is too long to check at all of them."""
    total: Relation = Counter()
    before = -1
    for until in (0, 17, 250, 251, 600, 1000):
        parts = [d.select((d.time > before) & (d.time <= until)) for d in inputs]
        out = operator.step(*parts, until=until)
        assert len(out.consolidated()) == len(out), "a row is sent once per instant"
        total.update(sum_until(out, until))
        total.subtract(sum_until(out.negated(), until))
        assert +total == +f(*(sum_until(d, until) for d in inputs))
        before = until


# --- DISTINCT --------------------------------------------------------------------------------------------


def distinct(a: Relation) -> Relation:
    return Counter({row: 1 for row, multiplicity in a.items() if multiplicity > 0})


@settings(deadline=None)
@given(histories(2), cuts)
@example([(0, 1, (1, 1)), (0, -1, (1, 1)), (1, 2, (1, 1)), (2, -2, (1, 1)), (2, 1, (1, 1))], {0, 1})
def test_law(timed: list[Timed], ends: set[int]) -> None:
    operator = Distinct(("x", "y"))
    assert sent(operator, [deltas(("x", "y"), timed)], ends) == by_definition(distinct, timed)
    live: Relation = Counter()
    for _, weight, row in timed:
        live[row] += weight
    assert len(operator) == len(distinct(live)), "only rows that are there are held"


@settings(deadline=None, max_examples=20)
@given(histories(0), cuts)
def test_no_columns(timed: list[Timed], ends: set[int]) -> None:
    assert sent(Distinct(()), [deltas((), timed)], ends) == by_definition(distinct, timed)


def test_long_run() -> None:
    check_sums(Distinct(("x", "y")), distinct, coming_and_going(1, ("x", "y"), 5000, 40))


def test_a_row_that_comes_and_goes_within_an_instant_was_never_there() -> None:
    a = deltas(("x",), [(1, 1, (7,)), (1, -1, (7,)), (2, -1, (8,)), (2, 1, (8,))])
    operator = Distinct(("x",))
    assert len(operator.step(a, until=2)) == 0
    assert len(operator) == 0


def test_columns_are_found_by_name_and_read_only_input_is_taken() -> None:
    a = deltas(("y", "x"), [(1, 1, (2, 1))])
    for array in (a.time, a.weight, a.values):
        array.flags.writeable = False
    assert Distinct(("x", "y")).step(a, until=1).values.tolist() == [[1], [2]]


def test_memory_follows_the_live_rows() -> None:
    """A window of 1000 rows over 200 000: slots are used again; after a burst, the room is given back."""
    operator = Distinct(("x",))
    sizes = []
    for step in range(100):
        came = np.arange(step * 2000, (step + 1) * 2000)
        time = np.concatenate([came, came + 1000])
        weight = np.repeat([1, -1], 2000)
        order = np.argsort(time, kind="stable")
        a = Deltas(("x",), time[order], weight[order], np.concatenate([came, came])[None, order])
        operator.step(a.select(a.time < (step + 1) * 2000), until=(step + 1) * 2000 - 1)
        operator.step(a.select(a.time >= (step + 1) * 2000), until=(step + 1) * 2000 + 1000)
        sizes.append(operator.nbytes)
    assert len(operator) == 0
    assert max(sizes) == sizes[5], "nothing grows with the length of the run"
    many = np.arange(200_000, dtype=np.int64)
    ones = np.ones_like(many)
    operator.step(Deltas(("x",), ones * 10**7, ones, many[None, :]), until=10**7)
    burst = operator.nbytes
    operator.step(Deltas(("x",), ones * 10**7 + 1, -ones, many[None, :]).select(many >= 10), until=10**7 + 1)
    again = operator.step(deltas(("x",), [(10**7 + 2, -1, (3,)), (10**7 + 2, 1, (4,))]), until=10**7 + 2)
    assert (again.weight.tolist(), again.values.tolist()) == ([-1], [[3]])
    assert len(operator) == 9 and operator.nbytes < burst / 100


# --- the table -------------------------------------------------------------------------------------------


def test_the_table_against_a_dict() -> None:
    """Interning, releasing and growing in a random order, with rows that differ in few bits."""
    random = np.random.default_rng(1)
    table, slots, every = RowTable(2), dict[Row, int](), np.arange(2)
    shift = np.array([0, 0, 40, 62])
    for _ in range(3000):
        grown = random.random() < 0.6
        if grown or not slots:
            row = random.integers(-40, 40, (2, 1)) << random.choice(shift)
            table.reserve(1)
            slot = intern(table.table, row, 0, every)
            assert slots.setdefault((int(row[0, 0]), int(row[1, 0])), slot) == slot
        else:
            row = list(slots)[random.integers(len(slots))]
            release(table.table, slots.pop(row))
        assert len(table) == len(slots)
    assert len(set(slots.values())) == len(slots)
    for row, slot in slots.items():
        assert intern(table.table, np.array(row, np.int64)[:, None], 0, every) == slot
    assert {tuple(r) for r in table.rows()[1].T.tolist()} == slots.keys()
