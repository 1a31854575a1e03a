"""GROUP BY against a twin that aggregates the rows present at each instant in the store."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Store, Triple

from kelda.engine.deltas import Deltas
from kelda.engine.operators.aggregates import totals_kernels
from kelda.engine.operators.aggregates.members import MemberTable
from kelda.engine.operators.aggregates.members_kernels import NUMBER
from kelda.engine.operators.aggregates.runs import Members, Runs
from kelda.engine.operators.aggregates.runs_kernels import by_group, by_number
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.group_by import GroupBy
from kelda.engine.operators.group_table import GroupTable
from kelda.errors import UsageError
from kelda.rdf.aggregates import AGGREGATES, aggregate_name
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import from_store, to_store
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ids import encode, text

XSD = "http://www.w3.org/2001/XMLSchema#"
COLUMNS = ("k", "x")
DICTIONARY = Dictionary()


def lit(value: str, datatype: str) -> Literal:
    return Literal(value, datatype=NamedNode(XSD + datatype))


INTEGERS = [lit(v, "integer") for v in ("0", "1", "2", "-3", "100", "9007199254740993", "144115188075855871")]
HUGE = [lit("9223372036854775807", "integer"), lit("-9223372036854775807", "integer")]
BEYOND = [
    lit(v, "integer") for v in ("99999999999999999999", "100000000000000000000", "-99999999999999999999")
]
BEYOND += [lit("0.1234567890123456789", "decimal"), lit("-1000000000000000000000.5", "decimal")]
BEYOND += [lit("18446744073709551615", "unsignedLong"), lit("300", "byte")]
NEAR = [lit("0.1", "decimal"), lit("0.1", "double"), lit("0.10", "decimal"), lit("1E-1", "double")]
NEAR += [lit("0.100000000000000005", "decimal"), lit("0.10000000000000001", "decimal"), lit("0.1", "float")]
DECIMALS = [lit(v, "decimal") for v in ("1.5", "1.50", "-0.25", "0.000000000000000001", "3", "2.000", "-7.1")]
DECIMALS.append(lit("123456789012345678.75", "decimal"))
DOUBLES = [lit(v, "double") for v in ("0.5", "1.0E0", "-2.25", "1", "1.5E3")]
FLOATS = [lit(v, "float") for v in ("0.5", "-1.5E1", "2")]
ODD_NUMBERS = [lit("01", "integer"), lit("7", "int"), lit("-0.0", "double"), lit("1.0000", "decimal")]
LONG = [
    lit("0.06250000000000000000", "double"),
    lit("01E0", "double"),
    lit("0.0", "double"),
    lit("+1.5", "decimal"),
]
SPECIAL = [lit("INF", "double"), lit("-INF", "double"), lit("NaN", "double"), lit("INF", "float")]
OTHERS = [
    Literal("a"), Literal("b"), Literal("a", language="en"), Literal("a longer string"),
    lit("true", "boolean"), lit("false", "boolean"), lit("abc", "integer"),
    lit("2020-01-01T00:00:00Z", "dateTime"),
    lit("2020-01-01T00:30:00+01:00", "dateTime"), lit("2019-05-05T00:00:00", "dateTime"),
    lit("2020-01-01", "date"), NamedNode("http://e/a"), NamedNode("http://e/b"), BlankNode("b0"),
    Triple(NamedNode("http://e/a"), NamedNode("http://e/b"), Literal("a")),
]  # fmt: skip
TEXTS = [
    Literal(v)
    for v in (
        "",
        "a",
        "abcdefg",
        "abcdefgh",
        "abcdefg\n",
        'abcdefgh"',
        "abcdefgh\\",
        "abcdefgé",
        '"\n',
        "é",
        "zz\r",
    )
]
IRIS = [NamedNode(f"http://e/{v}") for v in ("", "a", "a#", "a/b", "ab", "é", "~", "B")]
POOLS = [
    TEXTS,
    IRIS,
    TEXTS[:4] + IRIS[:4] + INTEGERS[:2],
    [*INTEGERS[:3], *ODD_NUMBERS, *DOUBLES[:2], *DECIMALS[:3], *LONG],
    INTEGERS,
    INTEGERS[:5] + DECIMALS,
    DECIMALS,
    DOUBLES,
    INTEGERS[:5] + DECIMALS[:3] + DOUBLES,
    INTEGERS[:5] + FLOATS,
    INTEGERS[:5] + ODD_NUMBERS + DECIMALS[:2],
    DOUBLES + SPECIAL,
    INTEGERS + HUGE + BEYOND,
    DECIMALS + BEYOND,
    BEYOND + DOUBLES + FLOATS + SPECIAL[:1],
    NEAR,
    [*NEAR, *FLOATS, *BEYOND[:3]],
    [o for o in OTHERS if isinstance(o, Literal)],
    INTEGERS[:5] + DECIMALS[:3] + DOUBLES + FLOATS + OTHERS,
]
OPERATIONS = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE", "GROUP_CONCAT")
ALL = (
    *(AggregateSpec(op, "x", False, "; ") for op in OPERATIONS),
    *(AggregateSpec(op, "x", True, "; ") for op in OPERATIONS),
    AggregateSpec("COUNT"),
    AggregateSpec("COUNT", None, True),
)
NAMED = tuple((f"a{i}", spec) for i, spec in enumerate(ALL))


# ---------------------------------------------------------------------------- the twin


def ask(expression: str, terms: list[object]) -> object:
    """An aggregate over ?x, which is each of the terms in turn, None for unbound."""
    rows = " ".join("UNDEF" if term is None else str(i) for i, term in enumerate(terms))
    query = f"SELECT ({expression} AS ?r) {{ VALUES ?i {{ {rows} }} BIND(<urn:t>(?i) AS ?x) }}"
    functions = {NamedNode("urn:t"): lambda i: to_store(terms[int(i.value)])}
    (solution,) = Store().query(query, custom_functions=functions, custom_aggregate_functions=AGGREGATES)
    return solution["r"] and from_store(solution["r"])


def scan_order(id: int) -> tuple[bool, int, str]:
    return (True, 0, text(DICTIONARY.term(id))) if id > 0 else (False, id, "")


def text_order(term: object) -> tuple[str, str, str]:
    if isinstance(term, Literal):
        return term.value, term.datatype.value, term.language or ""
    return (term.value, "", "") if isinstance(term, NamedNode) else ("", "", "")


def naive(spec: AggregateSpec, ids: list[int], rows: int, distinct_rows: int) -> int:
    if spec.column is None:
        return DICTIONARY.encode(Literal(distinct_rows if spec.distinct else rows))
    ids = sorted(set(ids) if spec.distinct else ids, key=scan_order)
    terms = [None if id == 0 else DICTIONARY.term(id) for id in ids]
    op = "MIN" if spec.op == "SAMPLE" else spec.op
    if op == "GROUP_CONCAT":
        terms.sort(key=text_order)
        as_text = [Literal(t.value) if isinstance(t, NamedNode | Literal) else None for t in terms]
        found = ask(f'GROUP_CONCAT(?x ; SEPARATOR = "{spec.separator}")', as_text)
    else:
        found = ask("COUNT(?x)" if op == "COUNT" else f"{aggregate_name(op, False)}(?x)", terms)
    return 0 if found is None else DICTIONARY.encode(found)


def relation(rows: Counter, keys: tuple[str, ...], specs: tuple[AggregateSpec, ...]) -> Counter:
    groups: dict[tuple[int, ...], list[tuple[int, int]]] = defaultdict(list)
    if not keys:
        groups[()] = []
    for row, count in rows.items():
        groups[(row[0],) if keys else ()] += [row] * count
    out: Counter = Counter()
    for key, members in groups.items():
        values = [naive(s, [x for _, x in members], len(members), len(set(members))) for s in specs]
        out[(*key, *values)] += 1
    return out


# ---------------------------------------------------------------------------- the law


def deltas_of(rows: list[tuple[int, int, int, int]]) -> Deltas:
    """(time, weight, k, x)"""
    table = np.array(rows, np.int64).reshape(-1, 4).T
    return Deltas(COLUMNS, table[0].copy(), table[1].copy(), table[2:].copy())


@st.composite
def histories(draw: st.DrawFn, pool: list[object] | None = None) -> list[tuple[int, int, int, int]]:
    """Deltas whose integrated multiplicities are never negative at the end of an instant."""
    terms = pool if pool is not None else draw(st.sampled_from(POOLS))
    ids = [DICTIONARY.encode(t) for t in terms]
    if draw(st.integers(0, 3)) == 0:
        ids.append(0)
    keys = [0, DICTIONARY.encode(NamedNode("http://e/k")), DICTIONARY.encode(lit("1", "integer"))]
    present: Counter = Counter()
    out = []
    for time in range(draw(st.integers(1, 6))):
        at = []
        for _ in range(draw(st.integers(0, 4))):
            gone = present and draw(st.booleans())
            if gone:
                row = draw(st.sampled_from(sorted(present)))
                weight = -draw(st.integers(1, present[row]))
            else:
                row = (draw(st.sampled_from(keys)), draw(st.sampled_from(ids)))
                weight = draw(st.sampled_from([1, 1, 2, 3]))
            present[row] += weight
            present += Counter()  # rows with count 0 go
            at.append((time, weight, *row))
        out += draw(st.permutations(at))
    return out


def check(
    history: list[tuple[int, int, int, int]], keys: tuple[str, ...], cuts: list[int], named=NAMED
) -> None:
    operator = GroupBy(COLUMNS, keys, named, DICTIONARY)
    parts = [operator.initial()]
    before = -1
    for until in sorted({*cuts, 10}):
        part = operator.step(deltas_of([r for r in history if before < r[0] <= until]), until=until)
        assert ((part.time > before) & (part.time <= until)).all()
        assert len(part.consolidated()) == len(part)
        parts.append(part)
        before = until
    got = Deltas.concat(parts, operator.columns)
    assert got.columns == (*keys, *(name for name, _ in named))
    specs = tuple(spec for _, spec in named)
    rows: Counter = Counter()
    for time in [operator.origin, *sorted({r[0] for r in history})]:
        for _, weight, *row in (r for r in history if r[0] == time):
            rows[tuple(row)] += weight
        rows += Counter()
        now: Counter = Counter()
        for i in np.flatnonzero(got.time <= time).tolist():
            now[tuple(got.values[:, i].tolist())] += int(got.weight[i])
        now = Counter({row: count for row, count in now.items() if count})
        assert now == relation(rows, keys, specs), time


@settings(max_examples=120, deadline=None)
@given(histories(), st.sampled_from([("k",), ()]), st.lists(st.integers(0, 5), max_size=3))
def test_the_law(history: list[tuple[int, int, int, int]], keys: tuple[str, ...], cuts: list[int]) -> None:
    check(history, keys, cuts)


@settings(max_examples=40, deadline=None)
@given(histories(INTEGERS[:3] + HUGE + BEYOND[:3]))
def test_sums_have_no_bounds(history: list[tuple[int, int, int, int]]) -> None:
    operator = GroupBy(COLUMNS, (), (("s", AggregateSpec("SUM", "x")),), DICTIONARY)
    total = 0
    for time in range(6):
        rows = [r for r in history if r[0] == time]
        total += sum(r[1] * int(DICTIONARY.term(r[3]).value) for r in rows if r[3])
        out = operator.step(deltas_of(rows), until=time)
        if any(r[3] == 0 for r in history):
            return
        for i in np.flatnonzero(out.weight > 0).tolist():
            assert out.values[0, i] == DICTIONARY.encode(lit(str(total), "integer"))


# ---------------------------------------------------------------------------- examples


def column(operator: GroupBy, *rows: tuple[int, int, object]) -> list[tuple[int, int, str | None]]:
    """The output of one step over (time, weight, term): (time, weight, value)."""
    ids = [(t, w, 0, 0 if x is None else DICTIONARY.encode(x)) for t, w, x in rows]
    out = operator.step(deltas_of(ids), until=100)
    values = [None if id == 0 else DICTIONARY.term(id).value for id in out.values[-1].tolist()]
    return list(zip(out.time.tolist(), out.weight.tolist(), values, strict=True))


def one(op: str, **options: object) -> GroupBy:
    return GroupBy(COLUMNS, ("k",), (("r", AggregateSpec(op, "x", **options)),), DICTIONARY)


def test_old_row_out_new_row_in() -> None:
    a, b = lit("2", "integer"), lit("3", "integer")
    assert column(one("AVG"), (1, 1, a), (2, 1, b), (3, -1, b), (3, 1, b), (4, -1, a), (5, -1, b)) == [
        (1, 1, "2"), (2, -1, "2"), (2, 1, "2.5"), (4, -1, "2.5"), (4, 1, "3"), (5, -1, "3"),
    ]  # fmt: skip


def test_an_average_is_cut_off_after_18_places() -> None:
    assert column(one("AVG"), (1, 2, lit("-1", "integer")), (1, 1, lit("0", "integer"))) == [
        (1, 1, "-0.666666666666666666")
    ]


def test_doubles_leave_nothing_behind() -> None:
    big, small = lit("1.0E16", "double"), lit("0.1", "double")
    operator = one("SUM")
    assert column(operator, (1, 1, small), (2, 1, big), (3, -1, big))[-1] == (3, 1, "0.1")


def test_no_keys_one_group_from_the_start() -> None:
    named = tuple((op, AggregateSpec(op, "x")) for op in ("COUNT", "SUM", "AVG", "MIN", "GROUP_CONCAT"))
    operator = GroupBy(COLUMNS, (), named, DICTIONARY)
    first = operator.initial()
    zero, empty = DICTIONARY.encode(Literal(0)), DICTIONARY.encode(Literal(""))
    assert first.values[:, 0].tolist() == [zero, zero, zero, 0, empty]
    assert first.time.tolist() == [operator.origin]
    assert len(operator.step(Deltas.empty(COLUMNS), until=1)) == 0


def test_what_makes_no_sense_is_refused() -> None:
    for spec, word in (
        (AggregateSpec("MEDIAN", "x"), "MEDIAN"),
        (AggregateSpec("SUM"), "needs a column"),
        (AggregateSpec("SUM", "y"), "no such column"),
    ):
        with pytest.raises(UsageError, match=word):
            GroupBy(COLUMNS, ("k",), (("r", spec),), DICTIONARY)
    with pytest.raises(UsageError, match="GROUP BY z"):
        GroupBy(COLUMNS, ("z",), (), DICTIONARY)


def test_memory_follows_the_live_content() -> None:
    operator = GroupBy(COLUMNS, ("k",), NAMED[:10] + NAMED[14:], DICTIONARY)
    rng = np.random.default_rng(5)

    def batch(time: int, weight: int, seed: int, n: int) -> Deltas:
        rng = np.random.default_rng(seed)
        values = np.stack([rng.integers(1, 500, n), -(2**63) + (1 << 58) + rng.integers(0, 10**6, n)])
        return Deltas(COLUMNS, np.full(n, time), np.full(n, weight), values)

    sizes = []
    for time in range(1, 60):
        parts = [batch(time, 1, time, 300)] + ([batch(time, -1, time - 3, 300)] if time > 3 else [])
        operator.step(Deltas.concat(parts, COLUMNS), until=time)
        sizes.append(operator.nbytes)
    assert max(sizes[20:]) <= 2 * max(sizes[3:10])
    operator.step(batch(100, 1, 100, 200_000), until=100)
    high = operator.nbytes
    operator.step(batch(101, -1, 100, 200_000), until=101)
    for time in range(57, 60):
        operator.step(batch(time + 100, -1, time, 300), until=time + 100)
    assert len(operator) == 0
    operator.step(batch(300, 1, int(rng.integers(9)), 1), until=300)
    assert operator.nbytes < high / 50


# ---------------------------------------------------------------------------- kernels and their twins


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12), st.data())
def test_double_sums(numbers: list[float], data: st.DataObject) -> None:
    weights = [data.draw(st.integers(-3, 3)) for _ in numbers]
    exact = sum((Fraction(x) * w for x, w in zip(numbers, weights, strict=True)), Fraction(0))
    try:
        expected = exact.numerator / exact.denominator
    except OverflowError:
        expected = math.inf if exact > 0 else -math.inf
    totals, groups = np.zeros((1, totals_kernels.LIMBS), np.int64), np.zeros(1, np.int64)
    runs, added = np.zeros(len(numbers), np.int64), np.array(numbers, np.float64)
    wanted = np.ones(1, np.bool_)
    got = totals_kernels.double_sums(totals, groups, runs, added, np.array(weights, np.int64), wanted)
    assert got[0] == expected


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 10**18 - 1), st.integers(1, 2**40)), max_size=9)
)
def test_quotients(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).reshape(-1, 3).T.copy()
    whole, fraction = totals_kernels.quotients(*columns)
    for (w, f, n), a, b in zip(rows, whole.tolist(), fraction.tolist(), strict=True):
        assert divmod((w * 10**18 + f) // n, 10**18) == (a, b)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2**62), st.integers(0, 10**18 - 1)), max_size=9))
def test_decimal_ids(rows: list[tuple[bool, int, int]]) -> None:
    negative = np.array([r[0] for r in rows], np.bool_)
    whole, fraction = (np.array([r[i] for r in rows], np.int64) for i in (1, 2))
    ids, texts, starts, ends = totals_kernels.decimal_ids(negative, whole, fraction, np.uint64(0))
    for (minus, w, f), id, start, end in zip(rows, ids.tolist(), starts, ends, strict=True):
        lexical = f"{w}.{f:018}".rstrip("0").rstrip(".")
        term = lit(("-" if minus and (w or f) else "") + lexical, "decimal")
        assert texts[start:end].tobytes().decode() == text(term)
        assert id == Dictionary().encode(term)


@given(st.lists(st.integers(0, 5), max_size=30))
def test_by_group(groups: list[int]) -> None:
    order = by_group(np.array(groups, np.int64), 6).tolist()
    first = {g: groups.index(g) for g in groups}
    assert order == sorted(range(len(groups)), key=lambda i: (first[groups[i]], i))


@given(st.lists(st.integers(0, 5), max_size=30))
def test_by_number(numbers: list[int]) -> None:
    order = by_number(np.array(numbers, np.int64), 6)
    assert order.tolist() == np.argsort(np.array(numbers, np.int64), kind="stable").tolist()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6), st.integers(-2, 3)), max_size=9), max_size=9
    )
)
def test_members(batches: list[list[tuple[int, int, int]]]) -> None:
    """Changes and least members, run by run, with keys that are the values' negatives."""
    table, present = MemberTable(DICTIONARY, sign=-1), Counter()
    for batch in batches:
        rows = []
        for group, value, weight in sorted(batch):
            allowed = max(weight, -present[group, value])
            present[group, value] += allowed
            rows += [(group, value, allowed)] if allowed else []
        groups = sorted({g for g, _, _ in rows})
        before = Counter({k: c - sum(w for g, v, w in rows if (g, v) == k) for k, c in present.items()})
        many = len(groups)
        runs = Runs(np.array(groups, np.int64), *(np.zeros(many, np.int64),) * 3, np.ones(many, np.bool_))
        deltas = np.array(rows, np.int64).reshape(-1, 3).T.copy()
        members = Members.of(runs, -deltas[1], deltas[2], np.searchsorted(groups, deltas[0]))
        changes, least, _ = table.step(runs, members, -deltas[1], np.full(len(rows), NUMBER))
        expected = {
            (groups.index(g), -v, 1 if c else -1)
            for (g, v), c in present.items()
            if (c > 0) != (before[g, v] > 0)
        }
        assert {tuple(c) for c in changes.T.tolist()} == expected
        assert least.tolist() == [
            min([-v for (h, v), c in present.items() if h == g and c], default=0) for g in groups
        ]
        assert len(table) == sum(c > 0 for c in present.values())


def test_text_ids() -> None:
    terms = [
        Literal("a"),
        lit("1.25", "double"),
        NamedNode("http://e/a"),
        lit("0.30000000000000004", "double"),
    ]
    texts = [text(t).encode() for t in terms]
    data = np.frombuffer(bytearray(b"".join(t + bytes(PADDING) for t in texts)), np.uint8)
    ends = np.cumsum([len(t) + PADDING for t in texts]) - PADDING
    starts = ends - [len(t) for t in texts]
    assert totals_kernels.text_ids(data, starts, ends, np.uint64(0)).tolist() == [encode(t) for t in terms]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40), max_size=5))
def test_group_table(batches: list[list[tuple[int, bool]]]) -> None:
    """Numbers stay with their rows, are unique, and come back when given up."""
    table, known = GroupTable(2), {}
    for number, batch in enumerate(batches):
        rows = [(a, 10 * number * drop + i % 7) for i, (a, drop) in enumerate(batch)]
        if rows:
            found = table.find(np.array(rows, np.int64).T.copy()).tolist()
            for row, n in zip(rows, found, strict=True):
                assert known.setdefault(row, n) == n
        assert len(set(known.values())) == len(known) == len(table)
        gone = sorted(known)[::2]
        table.drop(np.array([known.pop(row) for row in gone], np.int64))
        if number % 2:
            kept = table.compact().tolist()
            known = {row: kept.index(n) for row, n in known.items()}
