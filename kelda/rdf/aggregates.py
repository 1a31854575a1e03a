"""SUM, AVG, MIN and MAX, by the letter of SPARQL 1.1 and without bounds on numbers.

    SUM, AVG    integers and decimals exactly; doubles and floats as the exact sum, rounded once. AVG of
                integers and decimals to 18 places, the rest cut off. Of no number: an error. Of none: 0
    MIN, MAX    in the order of ORDER BY (`kelda.rdf.sort_text`). Equal members: one whose id holds its value
                comes before one that is known by its text, then the least id or text. Of none: an error

They are functions of the bag of their members. A member that is an error makes the aggregate one, which
Oxigraph sees to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.rdf.exact import Value, from_store
from kelda.rdf.ids import encode, text
from kelda.rdf.operators import ERROR, MEMBER
from kelda.rdf.sort_text import sort_text
from kelda.rdf.values import EXACTLY, NUMERIC, Sort, literal_of, meaning, quotient

_PREFIX = "urn:kelda:aggregate:"


def aggregate_name(op: str, distinct: bool) -> NamedNode:
    """The name under which a query calls the aggregate."""
    return NamedNode(_PREFIX + op.lower() + (":distinct" if distinct else ""))


# ---------------------------------------------------------------------------- sums


def total(members: Iterable[Value]) -> tuple[Sort, Decimal, float, int] | None:
    """(sort, sum of the integers and decimals, sum of the others, how many); None if one is no number."""
    sort, count = Sort.INTEGER, 0
    exact: list[Decimal] = []
    floats: list[float] = []
    for term in members:
        if not isinstance(term, Literal):
            return None
        found, value = meaning(term)
        if found not in NUMERIC:
            return None
        sort = max(sort, found)
        (exact if found <= Sort.DECIMAL else floats).append(value)
        count += 1
    whole = Decimal(0)
    for value in exact:
        whole = EXACTLY.add(whole, value)
    return sort, whole, exact_float_sum(floats), count


def exact_float_sum(values: list[float]) -> float:
    """The sum, rounded once."""
    odd = [value for value in values if not math.isfinite(value)]
    if odd:
        return sum(odd)
    try:
        return math.fsum(values)
    except OverflowError:  # on the way, or in the end
        exact = sum(map(Fraction, values), Fraction(0))
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


def sum_of(sort: Sort, exact: Decimal, inexact: float) -> Literal:
    """SUM."""
    return literal_of(sort, exact if sort <= Sort.DECIMAL else inexact_total(sort, exact, inexact))


def average_of(sort: Sort, exact: Decimal, inexact: float, count: int) -> Literal:
    """AVG."""
    if not count:
        return literal_of(Sort.INTEGER, Decimal(0))
    if sort <= Sort.DECIMAL:
        return literal_of(Sort.DECIMAL, quotient(exact, Decimal(count)))
    whole = inexact_total(sort, exact, inexact)
    with np.errstate(all="ignore"):
        by = np.float64(whole) / count if sort is Sort.DOUBLE else np.float32(whole) / np.float32(count)
    return literal_of(sort, float(by) + 0.0)


def inexact_total(sort: Sort, exact: Decimal, inexact: float) -> float:
    """The sum of both sorts of numbers, as a float or double; there is no -0 among sums."""
    with np.errstate(all="ignore"):
        whole = np.float64(inexact) + np.float64(float(exact))
        return float(np.float32(whole) if sort is Sort.FLOAT else whole) + 0.0


class _Members(list[Value]):
    accumulate = list.append


class _Sum(_Members):
    def finish(self) -> Value | None:
        found = total(self)
        return None if found is None else sum_of(*found[:3])


class _Average(_Members):
    def finish(self) -> Value | None:
        found = total(self)
        return None if found is None else average_of(*found)


class _SumDistinct(_Sum):
    def finish(self) -> Value | None:
        self[:] = dict.fromkeys(self)
        return super().finish()


class _AverageDistinct(_Average):
    def finish(self) -> Value | None:
        self[:] = dict.fromkeys(self)
        return super().finish()


# ---------------------------------------------------------------------------- extremes


def least(members: Iterable[Value]) -> Value:
    """The least of some terms."""
    return _first(members, min)


def greatest(members: Iterable[Value]) -> Value:
    """The greatest of some terms."""
    return _first(members, max)


def _first(members: Iterable[Value], pick: Callable[..., Any]) -> Value:
    """The extreme one; among equal ones the one that comes first."""
    texts = {term: sort_text(term) for term in members}
    best = pick(texts.values())
    equal = [term for term, its in texts.items() if its == best]
    return equal[0] if len(equal) == 1 else min(equal, key=_tie)


def _tie(term: Value) -> tuple[bool, int, str]:
    written = from_store(term)
    id = encode(written)
    return (False, id, "") if id < 0 else (True, 0, text(written))


class _Distinct(set[Value]):
    accumulate = set.add


class _Least(_Distinct):
    def finish(self) -> Value | None:
        return least(self) if self else None


class _Greatest(_Distinct):
    def finish(self) -> Value | None:
        return greatest(self) if self else None


# ---------------------------------------------------------------------------- distinct terms


class _CountDistinct(_Distinct):
    """Of terms and `ERROR`, which does not count."""

    def finish(self) -> Value | None:
        return Literal(len(self - {ERROR}))


class _ConcatDistinct(_Distinct):
    """Of what `concat_member` makes: in the order of text, datatype and language."""

    def finish(self) -> Value | None:
        members = sorted((term.value, term.datatype.value) for term in self if isinstance(term, Literal))
        if not members:
            return Literal("")
        separator = bytes.fromhex(members[0][1].removeprefix(MEMBER).partition(":")[0]).decode()
        return Literal(separator.join(text for text, _ in members))


AGGREGATES: dict[NamedNode, Callable[[], Any]] = {
    aggregate_name("SUM", False): _Sum,
    aggregate_name("SUM", True): _SumDistinct,
    aggregate_name("AVG", False): _Average,
    aggregate_name("AVG", True): _AverageDistinct,
    aggregate_name("COUNT", True): _CountDistinct,
    aggregate_name("GROUP_CONCAT", True): _ConcatDistinct,
    **{aggregate_name("MIN", distinct): _Least for distinct in (False, True)},
    **{aggregate_name("MAX", distinct): _Greatest for distinct in (False, True)},
}
"""What the texts of queries call by name: hand it to the store with each query."""
