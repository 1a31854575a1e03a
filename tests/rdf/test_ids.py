"""Ids: inline forms come back exactly, and id equality is term equality."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime
from decimal import Decimal

import numpy as np
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import BaseDirection, BlankNode, DefaultGraph, Literal, NamedNode, Triple

from kelda.errors import UsageError
from kelda.rdf import ids
from kelda.rdf import ntriples_kernels as kernels
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.few_terms import plain_id
from kelda.rdf.hash_kernels import hash_array
from kelda.rdf.ids import Kind, decode_inline, encode, from_text, is_inline, text
from kelda.rdf.ntriples import MANY, ids_of

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, datatype=NamedNode(XSD + datatype))


# ---------------------------------------------------------------------------- the hash


def check_twin(data: bytes, seed: int) -> int:
    """The check of a text in plain Python."""
    q, mask = 0xD6E8FEB86659FD93, 2**64 - 1
    check = seed ^ q
    for i in range(0, len(data), 8):
        check = (check ^ int.from_bytes(data[i : i + 8], "little")) * q & mask
        check ^= check >> 32
    return (check * q & mask) >> 32


@settings(deadline=None)  # the first call may compile
@given(st.binary(max_size=100), st.integers(0, 2**64 - 1))
@example(b"", 0)
def test_hash_is_xxh64_without_its_lowest_bit(data: bytes, seed: int) -> None:
    expected = xxhash.xxh64_intdigest(data, seed) >> 1 or 1
    assert ids.hash_text(data, seed) == expected
    assert hash_array(ids.padded(data), np.uint64(seed)) == (expected, check_twin(data, seed))


def test_checks_of_similar_texts_differ() -> None:
    texts = [f"<http://example.org/{kind}/{i}>" for kind in ("a", "b", "ab") for i in range(10_000)]
    checks = {hash_array(ids.padded(t.encode()), np.uint64(0))[1] for t in texts}
    assert len(checks) > len(texts) - 3  # by chance, 32 bits give 0.1 pairs here


def test_ids_are_the_same_in_another_process() -> None:
    assert encode(NamedNode("http://example.org/")) == 7_582_178_732_409_994_081  # for ever
    code = "import pyoxigraph, kelda.rdf.ids as i; print(i.encode(pyoxigraph.Literal('snø', language='nb')))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(printed.stdout) == encode(Literal("snø", language="nb"))


# ---------------------------------------------------------------------------- inline forms

INLINE = [
    *(
        (typed(x, "integer"), Kind.INTEGER)
        for x in ("0", "1", "-1", "42", "144115188075855871", "-144115188075855871")
    ),
    (typed("true", "boolean"), Kind.BOOLEAN),
    (typed("false", "boolean"), Kind.BOOLEAN),
    *((typed(x, "decimal"), Kind.DECIMAL) for x in ("0", "0.0", "12.50", "-0.001", "999999999999999", "7")),
    *(
        (typed(x, "double"), Kind.DOUBLE)
        for x in ("0.0", "23.5", "0.1", "29.39773615453099", "-5", "1000000")
    ),
    *((typed(x, "double"), Kind.DOUBLE_E) for x in ("0.0E0", "1.0E0", "-2.35E-3", "1E21", "0.5E1")),
    *((typed(x, "float"), Kind.FLOAT) for x in ("0.0", "1.5", "-16777.215", "0.0000000001")),
    *((typed(x, "float"), Kind.FLOAT_E) for x in ("1.0E0", "-1.5E10", "2.5E-9")),
    *(
        (typed(x, "dateTime"), Kind.DATETIME)
        for x in (
            "1970-01-01T00:00:00Z",
            "2024-02-29T23:59:59.999",
            "0001-01-01T00:00:00",
            "9999-12-31T23:59:59.999+14:00",
            "2024-05-01T10:20:30.5-05:45",
            "2024-05-01T10:20:30.50Z",
            "2024-05-01T10:20:30.000Z",
            "2024-05-01T10:20:30+00:00",
        )
    ),
    *((Literal(x), Kind.STRING) for x in ("", "a", "7 bytes", "é\u20ac", "\n\r\t\"\\'x", "\x7f\x01", "😀")),
]

HASHED = [
    *(
        typed(x, "integer")
        for x in ("01", "+1", "-0", "", "-", "1.0", " 1", "144115188075855872", "9" * 30, "١")
    ),
    *(typed(x, "boolean") for x in ("1", "0", "True", "", "falsey")),
    *(
        typed(x, "decimal")
        for x in ("-0.0", "-0", "01.5", ".5", "5.", "+1.0", "1E3", "1000000000000000", "0." + "0" * 16)
    ),
    *(
        typed(x, "double")
        for x in ("-0.0", "-0.0E0", "INF", "NaN", "1e5", "1.0E+5", "1.0E05", "1.0E-0", "10.0E1")
    ),
    *(
        typed(x, "double")
        for x in ("9007199254740992", "1.0E32", "1.0E24", "1.0E-22", "1.E5", ".5E1", "1.0E", "1.0EE1")
    ),
    *(typed(x, "float") for x in ("16777216", "0.00000000001", "1.0E12", "1.0E-10")),
    *(
        typed(x, "dateTime")
        for x in (
            "2023-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2024-13-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:60:00Z",
            "2024-01-01T00:00:60Z",
            "2024-01-01T00:00:00.1234Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00-00:00",
            "2024-01-01T00:00:00+14:15",
            "2024-01-01T00:00:00+01:01",
            "2024-01-01T00:00:00z",
            "2024-01-01T00:00:00Z ",
            "0000-01-01T00:00:00Z",
            "-2024-01-01T00:00:00Z",
            "12024-01-01T00:00:00Z",
            "2024-01-01",
            "2024-01-01t00:00:00Z",
        )
    ),
    *(Literal(x) for x in ("8 bytes!", "é\u20acééé", "a\0", "\0", "\n" * 8, "\\" * 8)),
    typed("1", "int"),
    typed("1", "integerX"),
    Literal("a", datatype=NamedNode("http://www.w3.org/2001/XMLSchemaXinteger")),
    Literal("1", datatype=NamedNode("integer:")),
    Literal("a", language="en"),
    Literal("a", language="EN-us", direction=BaseDirection.RTL),
    NamedNode("a:b"),
    BlankNode("b0"),
    Triple(NamedNode("a:b"), NamedNode("a:b"), Literal('x"\n\\')),
    Triple(BlankNode("b"), NamedNode("a:b"), Triple(BlankNode("c"), NamedNode("a:b"), typed("1", "integer"))),
]


@pytest.mark.parametrize(("term", "kind"), INLINE, ids=str)
def test_inline(term: Literal, kind: Kind) -> None:
    id = encode(term)
    assert is_inline(id) and -(2**63) <= id < 0
    assert ids.kinds([id]) == [kind]
    assert decode_inline(id) == term


@pytest.mark.parametrize("term", HASHED, ids=repr)
def test_hashed(term: ids.Term) -> None:
    id = encode(term)
    assert not is_inline(id)
    assert id == ids.hash_text(text(term).encode())
    assert id != encode(term, seed=1)
    assert from_text(text(term)) == term


def test_no_two_of_the_examples_share_an_id() -> None:
    terms = [term for term, _ in INLINE] + HASHED
    assert len({encode(term) for term in terms}) == len(set(terms)) == len(terms)


def test_default_graph_is_zero() -> None:
    assert encode(DefaultGraph()) == 0
    with pytest.raises(UsageError, match="dictionary"):
        decode_inline(0)


def test_what_is_no_term_is_refused() -> None:
    with pytest.raises(UsageError, match="NamedNode"):
        encode(3)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- random terms

digits = st.text("0123456789", max_size=18)
number_like = st.one_of(
    st.integers(-(2**58), 2**58).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**9), max_value=10**9).map(
        str
    ),
    st.builds(
        "{}{}{}{}{}".format,
        st.sampled_from(["", "-", "+"]),
        digits,
        st.sampled_from(["", "."]),
        digits,
        st.builds(
            "{}{}{}".format,
            st.sampled_from(["", "E", "e"]),
            st.sampled_from(["", "-"]),
            st.text("0123456789", max_size=3),
        ),
    ),
)
time_like = st.one_of(
    st.builds(
        "{}{}".format,
        st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds")),
        st.sampled_from(["", "Z", "+00:00", "-00:00", "+05:45", "-13:15", "+14:00", "-14:15", "+1:00"]),
    ),
    st.from_regex(
        r"\A[0-9]{4}-[0-2][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,4})?(Z|[+-][0-1][0-9]:[0-5][05])?\Z"
    ),
)
lexical = st.one_of(
    number_like, time_like, st.sampled_from(["true", "false", "1", "0", ""]), st.text(max_size=12)
)
datatype = st.sampled_from(["integer", "decimal", "double", "float", "dateTime", "boolean", "string", "int"])
literal = st.builds(typed, lexical, datatype)


@settings(deadline=None)  # the first call may compile
@given(literal)
def test_every_literal_comes_back(term: Literal) -> None:
    id = encode(term)
    assert (decode_inline(id) if is_inline(id) else from_text(text(term))) == term


@settings(deadline=None)  # the first call may compile
@given(
    st.one_of(literal, st.builds(Literal, st.text(max_size=20), language=st.sampled_from(["en", "de-at"])))
)
@example(Literal("a long string of words"))
@example(Literal("seven77"))
@example(Literal("eight888"))
@example(Literal(10**17))
@example(Literal(-(10**16)))
@example(NamedNode("http://ex/a"))
@example(BlankNode("b"))
def test_few_terms_are_the_terms_of_the_kernel(term: ids.Term) -> None:
    data = text(term).encode()
    for seed in (0, 7, 2**64 - 1):
        plain = plain_id(data, seed)
        assert plain is None or plain == kernels.term_id(ids.padded(data), np.uint64(seed))


def test_common_terms_need_no_kernel() -> None:
    for term in (NamedNode("http://ex/a"), BlankNode("b"), Literal("a"), Literal(5), Literal(True)):
        assert plain_id(text(term).encode(), 0) is not None


@settings(deadline=None)  # the first call may compile
@given(literal, literal)
def test_one_id_is_one_term(a: Literal, b: Literal) -> None:
    assert (encode(a) == encode(b)) == (a == b)


@settings(deadline=None)  # the first call may compile
@given(number_like, st.sampled_from(["integer", "decimal", "double", "float"]))
@example("-0.1", "float")
@example("16777215", "float")
@example("1.6777215E-3", "float")
@example("9007199254740991", "double")
@example("1.40737488355327E-8", "double")
def test_numeric_values_are_exactly_rounded(lexical: str, datatype: str) -> None:
    id = encode(typed(lexical, datatype))
    (value,), (valid,) = ids.numeric_values([id])
    if not is_inline(id):
        assert not valid
    elif datatype == "integer":
        assert valid == (abs(int(lexical)) <= 2**53)
        assert not valid or value == int(lexical)
    else:
        assert valid
        assert value == (np.float32(lexical) if datatype == "float" else float(lexical))


@settings(deadline=None)  # the first call may compile
@given(st.lists(st.decimals(places=5, min_value=-(10**9), max_value=10**9), min_size=2, max_size=2))
def test_decimals_compare_as_their_values_do(pair: list[Decimal]) -> None:
    (a, b), valid = ids.numeric_values([encode(typed(f"{d:.5f}", "decimal")) for d in pair])
    if valid.all():
        assert (a < b, a == b) == (pair[0] < pair[1], pair[0] == pair[1])


def test_numeric_values_of_what_is_no_number() -> None:
    terms = [
        typed("true", "boolean"),
        Literal("1"),
        NamedNode("a:b"),
        typed("2024-05-01T00:00:00Z", "dateTime"),
    ]
    values, valid = ids.numeric_values(np.array([0, *(encode(t) for t in terms)]))
    assert not valid.any() and not values.any()


@settings(deadline=None)  # the first call may compile
@given(time_like)
def test_time_values(lexical: str) -> None:
    id = encode(typed(lexical, "dateTime"))
    (millis,), (valid,), (zoned,) = ids.time_values([id])
    assert valid == is_inline(id)
    if valid and 1 < int(lexical[:4]) < 9999:
        seconds, _, fraction = lexical.removesuffix("Z").partition(".")
        zone = next((lexical[-6:] for sign in "+-" if lexical[-6] == sign), "+00:00")
        fraction = fraction.removesuffix(zone) if zone in fraction else fraction
        moment = datetime.fromisoformat(f"{seconds.removesuffix(zone)}.{fraction:0<3}{zone}")
        assert millis == round(
            (moment - datetime.fromisoformat("1970-01-01T00:00:00+00:00")).total_seconds() * 1000
        )
        assert zoned == (lexical.endswith("Z") or lexical[-6] in "+-")


def test_short_strings_sort_as_their_ids_do() -> None:
    strings = sorted(["", "a", "ab", "b", "é", "zzzzzzz", "Z", "a b"], key=str.encode)
    assert [encode(Literal(s)) for s in strings] == sorted(encode(Literal(s)) for s in strings)


@given(st.lists(literal, min_size=MANY, max_size=MANY + 8))
def test_many_at_once(terms: list[ids.Term]) -> None:
    every = [*terms, *HASHED, *(term for term, _ in INLINE)]
    dictionary = Dictionary()
    found = ids_of(every, dictionary)
    assert found == [ids.encode(term) for term in every] == ids_of(every[:5], dictionary) + found[5:]
    assert dictionary.terms(found) == every
