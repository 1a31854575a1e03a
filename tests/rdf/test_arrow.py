"""Columns of ids as Arrow arrays, beside what the terms themselves say."""

from __future__ import annotations

import math
import os
import random
from datetime import date, datetime, timezone
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from kelda.errors import UsageError
from kelda.rdf.arrow import TEXT, Held, _Read, _value, column, one_dictionary
from kelda.rdf.arrow_kernels import inline_texts
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import Term, decode_inline, encode, text
from kelda.rdf.values import BOUNDS

SEED = int(os.environ.get("KELDA_RANDOM", random.randrange(1 << 32)))
XSD = "http://www.w3.org/2001/XMLSchema#"


def lit(value: str, datatype: str) -> Literal:
    return Literal(value, datatype=NamedNode(XSD + datatype))


IRIS = [NamedNode("http://ex/a"), NamedNode("urn:x"), NamedNode("http://ex/ü?q=1#f")]
TEXTS: list[Term] = [
    *IRIS,
    BlankNode("b0"),
    Literal(""),
    Literal("short"),
    Literal('a "b"'),
    Literal('q"\\\n\r\t'),
    Literal('longer than seven bytes, with \\ and " and \n'),
    Literal("日本"),
    Literal("chat", language="fr"),
    Literal("@en", language="en"),
    Literal("PT5S"),
    lit("12:00:00", "time"),
    lit("P1D", "duration"),
    lit("x", "integer"),
    lit("300", "byte"),
    lit("2020-02-30", "date"),
    lit("-0044-03-15", "date"),
    lit("9" * 30, "integer"),
    lit("1" * 400 + ".5", "decimal"),
    lit("12024-01-01T00:00:00Z", "dateTime"),
    Literal("POINT(1 2)", datatype=NamedNode("http://www.opengis.net/ont/geosparql#wktLiteral")),
    Triple(NamedNode("http://ex/a"), NamedNode("http://ex/p"), Literal('o"')),
]
UTC = timezone.utc
# Groups of terms that make a column of one type, with their values.
COLUMNS: list[tuple[pa.DataType, dict[Term, Any]]] = [
    (
        pa.int64(),
        {
            Literal(0): 0,
            Literal(-7): -7,
            Literal(2**56): 2**56,
            lit("01", "integer"): 1,
            lit("+5", "integer"): 5,
            lit("-9223372036854775808", "integer"): -(2**63),
            lit("12", "int"): 12,
            lit("255", "unsignedByte"): 255,
        },
    ),
    (
        pa.float64(),
        {
            Literal(1.5): 1.5,
            lit("2.50", "decimal"): 2.5,
            lit("1.25E-3", "double"): 0.00125,
            lit("-0.0", "double"): -0.0,
            lit("INF", "double"): math.inf,
            lit("-INF", "float"): -math.inf,
            lit("NaN", "double"): math.nan,
            lit("0.1", "float"): float(np.float32(0.1)),
            lit("0.12345678901234567", "double"): 0.12345678901234567,
            lit("3.333333333333333333", "decimal"): 10 / 3,
            lit("1e400", "double"): math.inf,
            lit(".5", "decimal"): 0.5,
            lit("5.", "decimal"): 5.0,
        },
    ),
    (
        pa.bool_(),
        {Literal(True): True, Literal(False): False, lit("1", "boolean"): True, lit("0", "boolean"): False},
    ),
    (
        pa.timestamp("us", "UTC"),
        {
            lit("2024-02-29T12:30:15Z", "dateTime"): datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC),
            lit("2024-02-29T12:30:15.25+05:30", "dateTime"): datetime(2024, 2, 29, 7, 0, 15, 250_000, UTC),
            lit("1969-12-31T23:59:59.123456Z", "dateTime"): datetime(1969, 12, 31, 23, 59, 59, 123_456, UTC),
            lit("1969-12-31T23:59:59.1234567Z", "dateTime"): datetime(1969, 12, 31, 23, 59, 59, 123_456, UTC),
            lit("2024-12-31T24:00:00Z", "dateTime"): datetime(2025, 1, 1, tzinfo=UTC),
            lit("2024-01-01T00:00:00Z", "dateTimeStamp"): datetime(2024, 1, 1, tzinfo=UTC),
        },
    ),
    (
        pa.timestamp("us"),
        {
            lit("2024-02-29T12:30:15", "dateTime"): datetime(2024, 2, 29, 12, 30, 15),
            lit("0001-01-01T00:00:00", "dateTime"): datetime(1, 1, 1),
            lit("9999-12-31T23:59:59.999999", "dateTime"): datetime(9999, 12, 31, 23, 59, 59, 999_999),
        },
    ),
    (
        pa.date32(),
        {lit("2024-02-29", "date"): date(2024, 2, 29), lit("1969-12-31+02:00", "date"): date(1969, 12, 31)},
    ),
]
ALL = [*TEXTS, *(term for _, values in COLUMNS for term in values)]


def bare(term: Term) -> str:
    match term:
        case NamedNode() | Literal():
            return term.value
        case BlankNode():
            return f"_:{term.value}"
    return text(term)


def ids_of(terms: list[Term | None], dictionary: Dictionary) -> np.ndarray:
    return np.array([0 if term is None else dictionary.encode(term) for term in terms], np.int64)


@pytest.mark.parametrize("case", COLUMNS, ids=lambda case: str(case[0]))
@given(data=st.data())
def test_values_of_one_kind(case: tuple[pa.DataType, dict[Term, Any]], data: st.DataObject) -> None:
    kind, values = case
    terms = data.draw(st.lists(st.sampled_from([None, *values]), min_size=1))
    dictionary = Dictionary()
    found = column(ids_of(terms, dictionary), dictionary)
    assert found.type == (kind if any(terms) else TEXT)
    expected = [None if term is None else values[term] for term in terms]
    assert [repr(v) for v in found.cast(kind).to_pylist()] == [repr(v) for v in _in_utc(expected, kind)]


def _in_utc(values: list[Any], kind: pa.DataType) -> list[Any]:
    return pa.array(values, kind).to_pylist()


@given(st.lists(st.sampled_from([None, *ALL])))
def test_any_terms_are_text_unless_of_one_kind(terms: list[Term | None]) -> None:
    dictionary = Dictionary()
    ids = ids_of(terms, dictionary)
    assert column(ids, dictionary, "ntriples").to_pylist() == [None if t is None else text(t) for t in terms]
    found = column(ids, dictionary)
    kinds = {next((kind for kind, values in COLUMNS if t in values), TEXT) for t in terms if t is not None}
    if kinds == {pa.int64(), pa.float64()}:
        assert found.type == pa.float64()
    else:
        assert found.type == (kinds.pop() if len(kinds) == 1 else TEXT)
    if found.type == TEXT:
        assert found.to_pylist() == [None if term is None else bare(term) for term in terms]


def test_integers_among_reals() -> None:
    dictionary = Dictionary()
    found = column(ids_of([Literal(3), Literal(2**56 + 1), Literal(0.5), None], dictionary), dictionary)
    assert found.to_pylist() == [3.0, float(2**56 + 1), 0.5, None]


@given(
    st.lists(
        st.one_of(
            st.integers(-(2**57) + 1, 2**57 - 1).map(Literal),
            st.booleans().map(Literal),
            st.text(max_size=7).map(Literal),
            st.decimals(allow_nan=False, allow_infinity=False, places=3).map(
                lambda d: lit(format(d, "f"), "decimal")
            ),
            st.tuples(st.integers(-999, 999), st.integers(-20, 20), st.sampled_from(["double", "float"])).map(
                lambda t: lit(f"{t[0] / 100}E{t[1]}", t[2])
            ),
            st.floats(allow_nan=False, allow_infinity=False, width=16).map(Literal),
            st.datetimes().map(lambda t: lit(t.isoformat(timespec="milliseconds"), "dateTime")),
            st.datetimes().map(lambda t: lit(t.isoformat(timespec="milliseconds") + "-03:15", "dateTime")),
            st.datetimes().map(lambda t: lit(t.isoformat(timespec="seconds") + "Z", "dateTime")),
        )
    )
)
def test_inline_texts_are_those_of_the_terms(terms: list[Literal]) -> None:
    ids = np.array([id for id in map(encode, terms) if id < 0], np.int64)
    literals = [decode_inline(id) for id in ids.tolist()]
    for full, expected in ((True, list(map(text, literals))), (False, [lit.value for lit in literals])):
        texts, offsets = inline_texts(ids, full)
        assert [texts[a:b].tobytes().decode() for a, b in pairwise(offsets)] == expected


def test_a_column_of_a_given_type() -> None:
    dictionary = Dictionary()
    numbers, none = ids_of([Literal(3)], dictionary), ids_of([None], dictionary)
    assert column(numbers, dictionary, type=pa.float64()).to_pylist() == [3.0]
    assert column(numbers, dictionary, type=TEXT).to_pylist() == ["3"]
    for kind, _ in COLUMNS:
        assert column(none, dictionary, type=kind) == pa.array([None], kind)
    with pytest.raises(UsageError, match=r'"3".*integer> does not fit into a column of bool.*ntriples'):
        column(numbers, dictionary, type=pa.bool_())
    with pytest.raises(UsageError, match="int8"):
        column(numbers, dictionary, type=pa.int8())


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UsageError, match="is not in this dictionary"):
        column(np.array([42]), Dictionary())
    with pytest.raises(UsageError, match="'values' or as 'ntriples'"):
        column(np.array([42]), Dictionary(), "turtle")  # type: ignore[arg-type]


def test_one_dictionary_of_several() -> None:
    first, second = Dictionary(), Dictionary()
    a, b = first.encode(IRIS[0]), second.encode(IRIS[1])
    both = one_dictionary([(np.array([a]), first), (np.array([[b], [-1]]), second)])
    assert both.terms([a, b]) == IRIS[:2]
    assert one_dictionary([(np.array([a]), first), (np.array([a]), first.view())]) is first
    assert len(one_dictionary([])) == 0


def test_one_dictionary_of_views_of_one_that_grows() -> None:
    dictionary = Dictionary()
    parts = []
    for i in range(2000):
        ids = np.array([dictionary.encode(NamedNode(f"http://ex/{'long' * (i % 50)}{i}"))])
        parts.append((ids, dictionary.view()))
    found = column(np.concatenate([ids for ids, _ in parts]), one_dictionary(parts))
    assert found.to_pylist() == [f"http://ex/{'long' * (i % 50)}{i}" for i in range(2000)]


def test_numbers_are_read_together_as_they_are_one_by_one() -> None:
    rng = random.Random(SEED)
    digits = [0, 1, 3, 15, 17, 18, 19, 25, 45]
    ends = ["", "", ".", ".5", ".123456789012345678", "e5", "E-3", " ", "\n", ".5.5", "-"]
    odd = [
        "",
        "-0",
        "0.30000000000000004",
        "5e-324",
        "9007199254740993.0",
        "16777217.0",
        "1" * 400,
        "-128",
        "255",
    ]
    for name in (*BOUNDS, "decimal", "double", "float", "boolean", "date"):
        texts = list(odd)
        for _ in range(200):
            whole = "".join(rng.choice("0123456789") for _ in range(rng.choice(digits)))
            texts.append(rng.choice(["", "", "-", "+", "00"]) + whole + rng.choice(ends))
        read = _Read.nothing(len(texts))
        read.take(np.arange(len(texts)), pa.array(texts, TEXT), name)
        for i, said in enumerate(texts):
            held, value = _value(said, name)
            assert read.held[i] == held, (SEED, name, said)
            if held is not Held.TEXT:
                got = (read.real if held is Held.REAL else read.whole)[i]
                assert got == value or value != value, (SEED, name, said)
