"""Expressions over ids against pyoxigraph, row by row."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from kelda.engine import expression_kernels as kernels
from kelda.engine import expressions as module
from kelda.engine.deltas import Deltas
from kelda.engine.expressions import Compiled, Expressions, supports
from kelda.engine.oneshot import Solutions, evaluate
from kelda.errors import KeldaError, UsageError
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore
from kelda.rdf.ids import Term, encode
from kelda.rdf.times import ms_to_literal

XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://example.org/"
COLUMNS = ("a", "b", "c")
Row = tuple[Term | None, ...]  # a term or None for each column


def typed(text: str, datatype: str) -> Literal:
    return Literal(text, datatype=NamedNode(XSD + datatype))


INTEGERS = [Literal(i) for i in (-3, -1, 0, 1, 2, 20, 2**53 + 1, 2**57 - 1, -(2**57) + 1, 2**57, 2**63 - 1)]
NUMBERS = [
    *INTEGERS,
    *(
        typed(t, "decimal")
        for t in [
            "1.50",
            "1.5",
            "1.0",
            "0.0",
            "-0.5",
            "0.1",
            "20.5",
            "0.000000000000001",
            "99999999999999.9",
            "123456789012345678.5",
        ]
    ),
    *(
        typed(t, "double")
        for t in [
            "1.5",
            "1.5E0",
            "1",
            "0.1",
            "0",
            "-0.0",
            "2E1",
            "1E-7",
            "9007199254740992",
            "9.007199254740993E15",
            "NaN",
            "INF",
        ]
    ),
    *(typed(t, "float") for t in ["1.5", "0.1", "1", "20", "16777216", "1.25E-3", "NaN"]),
    typed("16777217", "integer"),
    typed("01", "integer"),
    typed("+1", "integer"),
    typed("1", "int"),
    typed("2", "nonNegativeInteger"),
]
TIMES = [
    typed(t, "dateTime")
    for t in [
        "2020-01-01T00:00:00Z",
        "2020-01-01T00:00:00.000Z",
        "2020-01-01T01:00:00+01:00",
        "2019-12-31T19:00:00.5-05:00",
        "2020-01-01T00:00:00",
        "2020-01-01T13:00:00",
        "2020-01-03T00:00:00",
        "2020-01-01T24:00:00Z",
        "0001-01-01T00:00:00Z",
    ]
]
OTHERS: list[A.Term] = [
    *(typed(t, "boolean") for t in ("true", "false", "1", "0")),
    *(
        Literal(t)
        for t in ("", "a", "b", "ab", "é", "1", "seven77", "eight888", "a long string", "another long one")
    ),
    *(
        Literal(t, language=tag)
        for t, tag in (("a", "en"), ("a", "de"), ("", "en"), ("b", "EN"), ("long text", "en-GB"))
    ),
    typed("abc", "integer"),
    typed("2020-01-01", "date"),
    typed("P1D", "dayTimeDuration"),
    typed("PT5S", "dayTimeDuration"),
    Literal("q", datatype=NamedNode(EX + "unit")),
    Literal("r", datatype=NamedNode(EX + "unit")),
    NamedNode(EX + "x"),
    NamedNode(EX + "y"),
]
CONSTANTS: list[A.Term] = [*NUMBERS, *TIMES, *OTHERS]
HIDDEN: list[
    Term
] = [  # not as constants: no query text can write them, or pyoxigraph folds them (the boolean) by whim
    typed("maybe", "boolean"),
    BlankNode("n1"),
    BlankNode("n2"),
    Triple(NamedNode(EX + "x"), NamedNode(EX + "p"), Literal(1)),
    Triple(BlankNode("n1"), NamedNode(EX + "p"), Literal("a")),
]
TERMS: list[Term] = [*CONSTANTS, *HIDDEN]


# ---------------------------------------------------------------------------- the oracle


def by_query(expr: A.Expr, rows: list[Row], times: list[int]) -> tuple[list[object], list[bool]]:
    """Values and filter results of each row as the reference evaluator gives them."""
    store = GraphStore()
    row_of: dict[Term, int] = {}
    for i, row in enumerate(rows):
        name = NamedNode(f"{EX}row{i}")
        row_of[name] = i
        store.add(Quad(name, NamedNode(EX + "at"), Literal(str(times[i]))))
        for column, term in zip(COLUMNS, row, strict=True):
            if term is not None:
                store.add(Quad(name, NamedNode(EX + column), term))
    this, value = A.Var("this"), A.Var("value")
    values: list[object] = [None] * len(rows)
    kept = [False] * len(rows)
    for now in set(times):
        at = A.TriplePattern(this, NamedNode(EX + "at"), Literal(str(now)))
        pattern: A.Pattern = A.Triples((at,))
        for column in COLUMNS:
            triple = A.TriplePattern(this, NamedNode(EX + column), A.Var(column))
            pattern = A.LeftJoin(pattern, A.Triples((triple,)))
        for final, extra in ((A.Extend(pattern, value, expr), (value,)), (A.Filter(expr, pattern), ())):
            query = A.Query(A.Form.SELECT, A.Project(final, (this, *extra)))
            found = evaluate(query, store, now=now)
            assert isinstance(found, Solutions)
            for solution in found.rows:
                i = row_of[solution["this"]]
                if extra:
                    values[i] = solution.get("value")
                else:
                    kept[i] = True
    return values, kept


def deltas_of(dictionary: Dictionary, rows: list[Row], times: list[int]) -> Deltas:
    ids = [[0 if t is None else dictionary.encode(t) for t in row] for row in rows]
    values = np.array(ids, np.int64).reshape(-1, len(COLUMNS)).T
    return Deltas(COLUMNS, np.array(times, np.int64), np.ones(len(rows), np.int64), values)


def check(expr: A.Expr, rows: list[Row], times: list[int] | None = None) -> None:
    times = times or [0] * len(rows)
    dictionary = Dictionary()
    deltas = deltas_of(dictionary, rows, times)
    compiled = Expressions(dictionary).compile(expr, COLUMNS)
    values, kept = by_query(expr, rows, times)
    for _ in range(2):  # the second time from memory
        found = [None if id == 0 else dictionary.term(id) for id in compiled.ids(deltas).tolist()]
        assert list(zip(rows, found, strict=True)) == list(zip(rows, values, strict=True)), expr
        held = compiled.holds(deltas).tolist()
        assert list(zip(rows, held, strict=True)) == list(zip(rows, kept, strict=True)), expr


@cache
def expression(text: str) -> A.Expr:
    pattern = parse(f"PREFIX : <{EX}> PREFIX xsd: <{XSD}> SELECT * {{ ?a ?b ?c FILTER({text}) }}").pattern
    while not isinstance(pattern, A.Filter):
        pattern = pattern.pattern  # type: ignore[attr-defined]
    return pattern.condition


# ---------------------------------------------------------------------------- random ones

LEAVES = st.one_of(
    st.sampled_from(COLUMNS).map(lambda name: A.VarRef(A.Var(name))),
    st.sampled_from(COLUMNS).map(lambda name: A.VarRef(A.Var(name))),
    st.sampled_from(CONSTANTS).map(A.Const),
    st.sampled_from([A.VarRef(A.Var("nowhere")), A.Call("NOW", ())]),
)
BOUND = st.sampled_from(COLUMNS).map(lambda name: A.Call("BOUND", (A.VarRef(A.Var(name)),)))
ONE = [
    "!",
    "U+",
    "U-",
    "STR",
    "LANG",
    "DATATYPE",
    "ISIRI",
    "ISBLANK",
    "ISLITERAL",
    "ISNUMERIC",
    "ABS",
    "STRLEN",
    "YEAR",
]
TWO = ["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "SAMETERM", "CONTAINS", "STRLANG"]


def larger(inner: st.SearchStrategy[A.Expr]) -> st.SearchStrategy[A.Expr]:
    def call(op: str, *args: A.Expr) -> A.Expr:
        return A.Call(op, args)

    return st.one_of(
        BOUND,
        st.builds(call, st.sampled_from(ONE), inner),
        st.builds(call, st.sampled_from(TWO), inner, inner),
        st.builds(call, st.sampled_from(TWO), inner, inner),
        st.builds(call, st.just("IF"), inner, inner, inner),
        st.builds(
            lambda op, x, more: A.Call(op, (x, *more)),
            st.sampled_from(["IN", "NOT IN"]),
            inner,
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(lambda args: A.Call("COALESCE", tuple(args)), st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda name, x: A.FunctionCall(NamedNode(XSD + name), (x,)),
            st.sampled_from(["integer", "double", "string"]),
            inner,
        ),
    )


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=6)
ROWS = st.lists(
    st.tuples(*[st.one_of(st.none(), st.sampled_from(TERMS), st.sampled_from(NUMBERS)) for _ in COLUMNS]),
    min_size=1,
    max_size=12,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, ROWS, st.sampled_from([0, 1, 86_400_000]))
def test_any_expression_on_any_rows(expr: A.Expr, rows: list[Row], apart: int) -> None:
    check(expr, rows, [i // 2 * apart for i in range(len(rows))])


# ---------------------------------------------------------------------------- every pair of terms

PAIRS: list[Row] = [(a, b, None) for a in TERMS for b in TERMS]


@pytest.mark.parametrize("op", ["=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "SAMETERM"])
def test_operators_on_all_pairs(op: str) -> None:
    check(A.Call(op, (A.VarRef(A.Var("a")), A.VarRef(A.Var("b")))), PAIRS)


@pytest.mark.parametrize(
    "op", ["!", "U+", "U-", "ISIRI", "ISBLANK", "ISLITERAL", "ISNUMERIC", "BOUND", "STR", "DATATYPE"]
)
def test_operators_on_all_terms(op: str) -> None:
    check(A.Call(op, (A.VarRef(A.Var("a")),)), [(t, None, None) for t in [*TERMS, None]])


@pytest.mark.parametrize(
    "text",
    [
        "?a",
        "?nowhere",
        "?a > 20 && ?b != :x",
        "?a > 20 || REGEX(STR(?b), 'a')",
        "?a IN (1, 1.5, :x, 'a')",
        "?a IN (:x, :y)",
        "?a NOT IN (:x, 1, ?nowhere)",
        "1 IN (:x, ?a)",
        "?a NOT IN (?b, 1/0, :x)",
        "?a IN ()",
        "?nowhere IN ()",
        "COALESCE(?a + ?b, ?a, ?b, 'none')",
        "COALESCE()",
        "IF(?a, ?b, ?nowhere)",
        "IF(?a < ?b, ?a, ?b)",
        "1 + 1 = 2",
        "1/0 || true",
        "IF(true, :x, :y)",
        "sameTerm(?a, ?a + 0)",
        "!?a || ?b",
        "BOUND(?c)",
        "?a + ?b > ?a * 2",
        "?a - ?b < 0.1",
        "0.1 = ?a * ?b",
        "-?a >= +?b",
        "?a / ?b != 1",
        "1.0e0 / -?a < ?b",
        "1.0e0 / (?a * -1) < ?b",
        "(?a - ?b) * (?a - ?b) + 1.8 * ?a <= 2.25e0",
        "?a / ?b / ?b + 0.1",
        "-(?a - ?b)",
        "9223372036854775807 + 1",
        "144115188075855871 + 1",
        "?a * 1000000000 * 1000000000",
        "CONCAT(STR(?a), STR(?b))",
        "xsd:integer(?a) = xsd:integer(?b)",
        '?a = "1"^^xsd:int',
        '"b"@EN = ?a',
        "STRDT(STR(?a), xsd:integer) = 1",
        "isLiteral(?a) && isNumeric(?a) || isBlank(?b)",
        "NOW() > ?a",
        "NOW() = NOW() && YEAR(NOW()) = 2020",
        "NOW()",
    ],
)
def test_nasty(text: str) -> None:
    some = [None, *TERMS[::3], *HIDDEN, *TIMES]
    rows: list[Row] = [(a, b, None) for a in some for b in some[::4]]
    start = 1_577_836_800_000  # 2020-01-01
    check(expression(text), rows, [start + i // 200 * 10 for i in range(len(rows))])


# ---------------------------------------------------------------------------- fast, and forgetful


def compiled_over(rows: list[Row], text: str) -> tuple[Dictionary, Deltas, Compiled]:
    dictionary = Dictionary()
    deltas = deltas_of(dictionary, rows, [0] * len(rows))
    return dictionary, deltas, Expressions(dictionary).compile(expression(text), COLUMNS)


@pytest.mark.parametrize(
    "text",
    [
        "?a > 20 && ?b != :x",
        "?a + ?a * 2 - 1 <= 7.5",
        "?b IN (:x, :y, 'a long string')",
        "IF(BOUND(?c), ?a, COALESCE(?c, ?b))",
        "isIRI(?b) && !isBlank(?a) && sameTerm(?a, ?a)",
        "NOW() > '2019-01-01T00:00:00Z'^^xsd:dateTime",
    ],
)
def test_ids_decide_without_asking(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(Literal(i), NamedNode(f"{EX}{i}"), None) for i in range(30)]
    _, deltas, compiled = compiled_over(rows, text)

    def refuse(*_: object) -> None:
        raise AssertionError("asked pyoxigraph")

    monkeypatch.setattr(module._Answers, "_ask", refuse)
    compiled.ids(deltas)
    compiled.holds(deltas)


@pytest.mark.parametrize("text", ["(?a - ?b) * 111 <= 1.8 + ?a / 7", "(?a - ?b) * (?a - ?b) + 0.1 / ?a"])
def test_doubles_are_reckoned_without_asking(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [
        (Literal(round(53.27 + i / 97, 6)), Literal(round(i / 3 - 9.05, 6)), None) for i in range(60)
    ]
    check(expression(text), rows)
    _, deltas, compiled = compiled_over(rows, text)
    monkeypatch.setattr(module._Answers, "_ask", None)
    compiled.ids(deltas)
    if "<" in text:
        compiled.holds(deltas)


EXACT_NUMBERS = st.one_of(
    st.integers(-(2**57), 2**57).map(Literal),
    st.sampled_from([0, 1, 2, 5, 8, 10, 3600, 10**15, 10**17]).map(Literal),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=6).map(
        Literal
    ),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-10, max_value=10, places=14).map(Literal),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(EXACT_NUMBERS, EXACT_NUMBERS, st.none()), min_size=1, max_size=40))
def test_quotients(rows: list[Row]) -> None:
    check(expression("?a / ?b"), rows)


def test_quotients_that_end_need_no_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [(Literal(i), Literal(j), None) for i in range(-40, 40) for j in (1, -2, 4, 5, 8, 10)]
    check(expression("(?a + ?b) / ?b"), rows)
    _, deltas, compiled = compiled_over(rows, "(?a + ?b) / ?b")
    monkeypatch.setattr(module._Answers, "_ask", None)
    compiled.ids(deltas)


NUMBER_ROWS = st.lists(st.tuples(*[st.sampled_from(NUMBERS) for _ in COLUMNS]), min_size=1, max_size=12)
SUMS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda op, a, b: A.Call(op, (a, b)), st.sampled_from(["+", "-", "*", "/"]), inner, inner),
        st.builds(lambda op, a: A.Call(op, (a,)), st.sampled_from(["U+", "U-"]), inner),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(SUMS, st.sampled_from(["=", "!=", "<", ">", "<=", ">="]), SUMS, NUMBER_ROWS)
def test_any_sums_compared(left: A.Expr, op: str, right: A.Expr, rows: list[Row]) -> None:
    check(A.Call(op, (left, right)), rows)
    check(left, rows)


def test_each_combination_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    ask = module._Answers._ask

    def counting(answers: module._Answers, combinations: module.Ids) -> module.Ids:
        asked.append(len(combinations))
        return ask(answers, combinations)

    monkeypatch.setattr(module._Answers, "_ask", counting)
    rows: list[Row] = [(Literal(f"name {i % 10}"), None, None) for i in range(1000)]
    _, deltas, compiled = compiled_over(rows, "REGEX(?a, '[3-5]$')")
    assert compiled.holds(deltas).sum() == 300
    assert compiled.holds(deltas).sum() == 300
    assert asked == [10]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REMEMBERED", 100)
    dictionary = Dictionary()
    compiled = Expressions(dictionary).compile(expression("STRLEN(?a)"), COLUMNS)
    for step in range(20):
        rows: list[Row] = [
            (Literal(f"a string that is number {step * 50 + i:04}"), None, None) for i in range(50)
        ]
        ids = compiled.ids(deltas_of(dictionary, rows, [0] * 50))
        assert set(ids.tolist()) == {encode(Literal(28))}
        assert compiled.nbytes < 10_000


def test_answers_survive_a_dictionary_that_lets_go() -> None:
    rows: list[Row] = [(Literal("a"), None, None)]
    for text in ("CONCAT(?a, ' and a long tail')", "IF(BOUND(?a), 'a long constant', ?b)"):
        dictionary, deltas, compiled = compiled_over(rows, text)
        before = dictionary.term(compiled.ids(deltas)[0])
        dictionary.retain([])
        assert dictionary.term(compiled.ids(deltas)[0]) == before


def test_a_failure_leaves_nothing_half_known(monkeypatch: pytest.MonkeyPatch) -> None:
    _, deltas, compiled = compiled_over([(Literal("a"), None, None)], "UCASE(?a) = 'A'")
    with monkeypatch.context() as broken:
        broken.setattr(module, "to_store_with_needs", lambda term: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compiled.holds(deltas)
    assert compiled.holds(deltas).tolist() == [True]


def test_no_rows() -> None:
    for text in (
        "?a > 1",
        "REGEX(?a, 'x')",
        "1 + 1",
        "1/0",
        "IF(?a, 1, 2)",
        "COALESCE(?a, 2)",
        "NOW()",
        "?nowhere",
    ):
        compiled = Expressions(Dictionary()).compile(expression(text), COLUMNS)
        assert compiled.ids(Deltas.empty(COLUMNS)).shape == (0,)
        assert compiled.holds(Deltas.empty(COLUMNS)).shape == (0,)


def test_a_long_list() -> None:
    members = tuple(A.Const(t) for i in range(2000) for t in (NamedNode(f"{EX}{i}"), Literal(i)))
    dictionary = Dictionary()
    compiled = Expressions(dictionary).compile(A.Call("IN", (A.VarRef(A.Var("a")), *members)), COLUMNS)
    rows: list[Row] = [(t, None, None) for t in (Literal(1999), NamedNode(EX + "7"), Literal(-1), None)]
    assert compiled.holds(deltas_of(dictionary, rows, [0] * 4)).tolist() == [True, True, False, False]


@given(st.lists(st.integers(-62_135_596_800_000, 253_402_300_799_999)))
def test_now_is_the_time_of_the_row(times: list[int]) -> None:
    times = sorted([*times, *(t // 1000 * 1000 for t in times), *(t // 10 * 10 for t in times)])
    rows: list[Row] = [(None, None, None)] * len(times)
    dictionary = Dictionary()
    ids = (
        Expressions(dictionary).compile(expression("NOW()"), COLUMNS).ids(deltas_of(dictionary, rows, times))
    )
    assert ids.tolist() == [encode(ms_to_literal(t)) for t in times]


def test_columns_used() -> None:
    compiled = Expressions(Dictionary()).compile(expression("?c > 1 && ?a = ?nowhere"), COLUMNS)
    assert compiled.columns_used == ("a", "c")


def test_base() -> None:
    dictionary = Dictionary()
    compiled = Expressions(dictionary, base=EX).compile(expression("IRI('x')"), COLUMNS)
    ids = compiled.ids(deltas_of(dictionary, [(None, None, None)], [0]))
    assert dictionary.term(ids[0]) == NamedNode(EX + "x")


@pytest.mark.parametrize(
    "text", ["RAND() > 0", "EXISTS { ?a ?b 1 }", "isIRI(UUID())", "STRUUID()", "isBlank(BNODE())"]
)
def test_what_is_no_function_of_a_row(text: str) -> None:
    assert not supports(expression(text))
    with pytest.raises(UsageError, match="no functions of a row"):
        Expressions(Dictionary()).compile(expression(text), COLUMNS)


def test_supports() -> None:
    assert supports(expression("NOW() > ?a && REGEX(?b, 'x')"))


def test_a_parameter_without_value() -> None:
    dictionary = Dictionary()
    with pytest.raises(KeldaError, match="parameter"):
        compiled = Expressions(dictionary).compile(A.VarRef(A.Param("p")), COLUMNS)
        compiled.ids(deltas_of(dictionary, [(None, None, None)], [0]))


# ---------------------------------------------------------------------------- kernels and their twins


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=40))
def test_numbering_is_that_of_a_dict(pairs: list[tuple[int, int]]) -> None:
    keys = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    slots, table, out = np.zeros(128, np.int64), np.zeros((64, 2), np.int64), np.zeros(len(pairs), np.int64)
    count = kernels.number_combinations(keys, slots, table, 0, out)
    twin = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    assert count == len(twin)
    assert out.tolist() == [twin[pair] for pair in pairs]
    assert [tuple(row) for row in table[:count].tolist()] == list(twin)
