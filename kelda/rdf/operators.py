"""SPARQL's operators on terms, by the letter of SPARQL 1.1 (17.2, 17.3) and without bounds on numbers.

Each takes terms as a store holds them and gives a literal, or None for an error. Queries that are put to
Oxigraph call them by name where Oxigraph's own operators err and SPARQL does not: integers beyond 64 bits,
decimals beyond 18 places, NaN, comparisons of booleans, effective boolean values of literals with a language
or a wrong text, times with and without a zone (`kelda.lang.expression_text` says where).

    =    is an error for two different literals without a language of which one has a type that is not known,
         or a text that is not of its type
    /    of integers and decimals is a decimal of 18 places, the rest cut off; + - * are exact
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from pyoxigraph import BlankNode, Literal, NamedNode, QuerySolutions, Store, Triple

from kelda.rdf.exact import DATATYPE_OF, VALUE_OF, Value, datatype_of, from_store, value_of
from kelda.rdf.sort_text import sort_text
from kelda.rdf.values import (
    EXACTLY,
    NUMERIC,
    TEMPORAL,
    XSD,
    Meaning,
    Moment,
    Sort,
    days,
    is_numeric_type,
    literal_of,
    meaning,
    of_text,
    promoted,
    quotient,
    single,
)

_PREFIX = "urn:kelda:op:"
ERROR = NamedNode(_PREFIX + "error")
"""What stands for an error among the members of IN, which goes on after one."""

MEMBER = "urn:kelda:member:"
"""Before the datatype of what `concat_member` makes."""

_TRUE, _FALSE = Literal(True), Literal(False)
_ZONE_DOUBT = 14 * 3600  # a time without a zone is meant in some zone from -14:00 to +14:00


def _truth(value: bool | None) -> Literal | None:
    return None if value is None else _TRUE if value else _FALSE


def effective(term: Value) -> Literal | None:
    """The effective boolean value."""
    if not isinstance(term, Literal):
        return None
    sort, value = meaning(term)
    if sort is Sort.BOOLEAN:
        return _truth(value)
    if sort is Sort.STRING:
        return _truth(value != "")
    if sort is Sort.TAGGED:
        return _truth(value[0] != "")
    if sort in NUMERIC:
        return _truth(value != 0 and value == value)
    if sort is Sort.ILL and (is_numeric_type(term.datatype.value) or _names(term, "boolean")):
        return _FALSE
    return None


def _names(literal: Literal, name: str) -> bool:
    return literal.datatype.value.endswith(XSD + name)


# ---------------------------------------------------------------------------- comparisons


def equals(a: Value, b: Value) -> bool | None:
    """a = b."""
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        if isinstance(a, Triple) and isinstance(b, Triple):
            same = (equals(x, y) for x, y in zip(a, b, strict=True))
            return _all(list(same))
        return a == b
    (sort_a, x), (sort_b, y) = meaning(a), meaning(b)
    if sort_a in NUMERIC and sort_b in NUMERIC:
        return _numbers(operator.eq, sort_a, x, sort_b, y)
    if a == b:
        return True
    if Sort.TAGGED in (sort_a, sort_b):  # what has a language is never equal to what has a type
        return bool(x == y)
    if sort_a >= Sort.ILL or sort_b >= Sort.ILL:
        return None
    if sort_a is not sort_b:
        return False
    if sort_a in TEMPORAL:
        order = _moments(x, y)
        return None if order is None else order == 0
    return bool(x == y)


def _all(found: list[bool | None]) -> bool | None:
    if False in found:
        return False
    return None if None in found else True


def _numbers(compare: Callable[[Any, Any], bool], sort_a: Sort, x: Any, sort_b: Sort, y: Any) -> bool:
    sort = max(sort_a, sort_b)
    return compare(_as(sort, sort_a, x), _as(sort, sort_b, y))


def _as(wanted: Sort, sort: Sort, value: Any) -> Any:
    """A number promoted to a sort that is no less."""
    if wanted <= Sort.DECIMAL or sort is wanted:
        return value
    value = promoted(value)
    return single(value) if wanted is Sort.FLOAT else value


def _moments(a: Moment, b: Moment) -> int | None:
    """-1, 0, 1; None where it depends on the zone that one of them does not say."""
    if a.field != b.field:
        return None
    if a.zoned is b.zoned:
        return (a.seconds > b.seconds) - (a.seconds < b.seconds)
    apart = EXACTLY.subtract(a.seconds, b.seconds)
    if abs(apart) <= _ZONE_DOUBT:
        return None
    return 1 if apart > 0 else -1


_STARTS = tuple(days(*day) for day in ((1696, 9, 1), (1697, 2, 1), (1903, 3, 1), (1903, 7, 1)))
_START_MONTHS = (1696 * 12 + 8, 1697 * 12 + 1, 1903 * 12 + 2, 1903 * 12 + 6)


def _durations(a: tuple[int, Decimal], b: tuple[int, Decimal]) -> int | None:
    """-1, 0, 1; None where it depends on the month at which they begin (XML Schema 3.2.6.2)."""
    found = set()
    for start, month in zip(_STARTS, _START_MONTHS, strict=True):
        x, y = (
            EXACTLY.add(86_400 * Decimal(days(*divmod_month(month + m), 1) - start), s) for m, s in (a, b)
        )
        found.add((x > y) - (x < y))
    return found.pop() if len(found) == 1 else None


def divmod_month(months: int) -> tuple[int, int]:
    """(year, month) of a number of months since the year 0."""
    return months // 12, months % 12 + 1


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def compares(op: str, a: Value, b: Value) -> bool | None:
    """a < b, and its like."""
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return None
    (sort_a, x), (sort_b, y) = meaning(a), meaning(b)
    compare = _COMPARE[op]
    if sort_a in NUMERIC and sort_b in NUMERIC:
        return _numbers(compare, sort_a, x, sort_b, y)
    if sort_a is not sort_b or sort_a >= Sort.ILL:
        return None
    if sort_a in TEMPORAL or sort_a is Sort.DURATION:
        order = _durations(x, y) if sort_a is Sort.DURATION else _moments(x, y)
        return None if order is None else compare(order, 0)
    if sort_a is Sort.TAGGED:
        return compare(x[0], y[0]) if x[1] == y[1] else None
    return compare(x, y)


def _comparison(op: str) -> Callable[[Value, Value], Literal | None]:
    return lambda a, b: _truth(compares(op, a, b))


def member(value: Value, *members: Value) -> Literal | None:
    """value IN (members)."""
    erred = False
    for other in members:
        same = None if other == ERROR else equals(value, other)
        if same:
            return _TRUE
        erred = erred or same is None
    return None if erred else _FALSE


# ---------------------------------------------------------------------------- arithmetic

_EXACT_ARITHMETIC: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "+": EXACTLY.add,
    "-": EXACTLY.subtract,
    "*": EXACTLY.multiply,
}
_FLOAT_ARITHMETIC: dict[str, Any] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


def reckons(op: str, a: Value, b: Value) -> Literal | None:
    """a + b, and its like."""
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return None
    (sort_a, x), (sort_b, y) = meaning(a), meaning(b)
    if sort_a not in NUMERIC or sort_b not in NUMERIC:
        return _reckons_times(op, a, b) if {sort_a, sort_b} <= _TIMES else None
    sort = max(sort_a, sort_b)
    if sort > Sort.DECIMAL:
        number = np.float64 if sort is Sort.DOUBLE else np.float32
        with np.errstate(all="ignore"):
            found = _FLOAT_ARITHMETIC[op](number(_as(sort, sort_a, x)), number(_as(sort, sort_b, y)))
        return literal_of(sort, float(found))
    if op == "/":
        return literal_of(Sort.DECIMAL, quotient(x, y)) if y else None
    return literal_of(sort, _EXACT_ARITHMETIC[op](x, y))


_TIMES = TEMPORAL | {Sort.DURATION}


@lru_cache(maxsize=1 << 12)
def _reckons_times(op: str, a: Literal, b: Literal) -> Literal | None:
    """Sums and differences of times and durations, which SPARQL 1.1 does not have: as Oxigraph has them."""
    found = Store().query(f"SELECT ({value_of(a)} {op} {value_of(b)} AS ?v) {{}}")
    assert isinstance(found, QuerySolutions)
    value = next(found)["v"]
    return value if isinstance(value, Literal) else None


def _arithmetic(op: str) -> Callable[[Value, Value], Literal | None]:
    return lambda a, b: reckons(op, a, b)


def _on_numbers(
    exactly: Callable[[Decimal], Decimal], roughly: Callable[[float], float]
) -> Callable[[Value], Literal | None]:
    """A function of one number that keeps its type."""

    def apply(term: Value) -> Literal | None:
        if not isinstance(term, Literal):
            return None
        sort, value = meaning(term)
        if sort not in NUMERIC:
            return None
        return literal_of(sort, exactly(value) if sort <= Sort.DECIMAL else roughly(value))

    return apply


def _whole(value: Decimal, rounding: str) -> Decimal:
    return value.to_integral_value(rounding, EXACTLY)


def _half_up(value: Decimal) -> Decimal:
    """The nearest integer; between two, the greater one."""
    return _whole(EXACTLY.add(value, Decimal("0.5")), ROUND_FLOOR)


def _round(value: float) -> float:
    if not math.isfinite(value) or abs(value) >= 2.0**52:
        return value
    below = math.floor(value)
    return math.copysign(below + (value - below >= 0.5), value)


def _float_whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def is_numeric(term: Value) -> Literal:
    """isNumeric."""
    return _TRUE if isinstance(term, Literal) and meaning(term)[0] in NUMERIC else _FALSE


def substring(source: Value, start: Value, length: Value | None = None) -> Literal | None:
    """SUBSTR, of which places may lie anywhere."""
    if not isinstance(source, Literal) or not isinstance(start, Literal):
        return None
    sort, _ = meaning(source)
    if sort not in (Sort.STRING, Sort.TAGGED):
        return None
    first = meaning(start)
    last: Meaning = (Sort.INTEGER, Decimal(len(source.value) + 1))
    if length is not None:
        last = meaning(length) if isinstance(length, Literal) else (Sort.UNKNOWN, None)
    if first[0] is not Sort.INTEGER or last[0] is not Sort.INTEGER:
        return None
    end = EXACTLY.add(first[1], last[1]) if length is not None else last[1]
    begin, end = (int(min(max(place, 1), len(source.value) + 1)) - 1 for place in (first[1], end))
    cut = source.value[begin:end]
    return Literal(cut, language=source.language) if sort is Sort.TAGGED else Literal(cut)


# ---------------------------------------------------------------------------- strings


def blank_node(label: Value) -> BlankNode | None:
    """BNODE of a string: the same blank node for the same string, whatever is in it."""
    if not isinstance(label, Literal) or meaning(label)[0] is not Sort.STRING:
        return None
    return BlankNode("b" + sha256(label.value.encode()).hexdigest()[:32])


_IN_REPLACEMENT = re.compile(r"\\(.?)|\$([0-9]*)|([^\\$]+)", re.DOTALL)
_IN_PATTERN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\((?!\?))", re.DOTALL)


def replacement(pattern: Value, text: Value, flags: Value | None = None) -> Literal | None:
    r"""REPLACE's replacement in the notation of Oxigraph: `\$` is a dollar, `$12` group 12 if there is one,
    and else group 1 and a 2. What XPath has no meaning for is an error."""
    if not all(isinstance(term, Literal) for term in (pattern, text)):
        return None
    assert isinstance(pattern, Literal) and isinstance(text, Literal)
    if isinstance(flags, Literal) and "q" in flags.value:
        return Literal(text.value.replace("$", "$$"))
    if "$" not in text.value and "\\" not in text.value:
        return text
    groups = sum(bool(found[1]) for found in _IN_PATTERN.finditer(pattern.value))
    parts = []
    for escaped, number, plain in _IN_REPLACEMENT.findall(text.value):
        if plain:
            parts.append(plain)
        elif number:
            known = len(number)
            while known > 1 and int(number[:known]) > groups:
                known -= 1
            parts.append(
                (f"${{{int(number[:known])}}}" if int(number[:known]) <= groups else "") + number[known:]
            )
        elif escaped in ("$", "\\"):
            parts.append("$$" if escaped == "$" else escaped)
        else:
            return None
    return Literal("".join(parts))


def concat_member(term: Value, separator: Literal) -> Literal | None:
    """A member of GROUP_CONCAT(DISTINCT …): its text, the separator, and what makes it another term."""
    written = from_store(term)
    if isinstance(written, NamedNode):
        kind = "iri"
    elif isinstance(written, Literal):
        kind = f"{written.datatype.value}@{written.language or ''}"
    else:
        return None
    return Literal(written.value, datatype=NamedNode(f"{MEMBER}{separator.value.encode().hex()}:{kind}"))


# ---------------------------------------------------------------------------- casts


def _cast(name: str) -> Callable[[Value], Literal | None]:
    def cast(term: Value) -> Literal | None:
        found = _cast_to(name, term)
        return None if found is None else literal_of(*found)

    return cast


_TARGETS = {
    "integer": Sort.INTEGER,
    "decimal": Sort.DECIMAL,
    "float": Sort.FLOAT,
    "double": Sort.DOUBLE,
    "boolean": Sort.BOOLEAN,
}


def _cast_to(name: str, term: Value) -> Meaning | None:
    if not isinstance(term, Literal):
        return None
    sort, value = meaning(term)
    target = _TARGETS[name]
    if sort is Sort.STRING:
        sort, value = of_text(value.strip(" \t\r\n"), name)
        return None if sort is Sort.ILL else (target, value)
    if sort is Sort.BOOLEAN:
        sort, value = Sort.INTEGER, Decimal(int(value))
    if sort not in NUMERIC:
        return None
    if target is Sort.BOOLEAN:
        return target, bool(value != 0 and value == value)
    if target >= Sort.FLOAT:
        value = promoted(value)
        return target, single(value) if target is Sort.FLOAT else value
    if sort >= Sort.FLOAT:
        if not math.isfinite(value):
            return None
        # An integer is the whole part of the double itself, a decimal the shortest one that it is nearest to.
        value = Decimal(value) if target is Sort.INTEGER else Decimal(repr(value))
    return target, _whole(
        value, ROUND_FLOOR if value > 0 else ROUND_CEILING
    ) if target is Sort.INTEGER else value


# ---------------------------------------------------------------------------- by name


def name_of(op: str) -> NamedNode:
    """The name under which a query calls the operator."""
    return NamedNode(_PREFIX + _NAMES.get(op, op.lower()))


_NAMES = {
    "=": "eq",
    "<": "lt",
    ">": "gt",
    "<=": "le",
    ">=": "ge",
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "U+": "plus",
    "U-": "minus",
}

CASTS = frozenset(_TARGETS)

Functions = dict[NamedNode, Callable[..., Value | None]]

FUNCTIONS: Functions = {
    VALUE_OF: value_of,
    DATATYPE_OF: datatype_of,
    name_of("ORDER"): lambda term: Literal(sort_text(term)),
    name_of("EBV"): effective,
    name_of("="): lambda a, b: _truth(equals(a, b)),
    name_of("IN"): member,
    name_of("ISNUMERIC"): is_numeric,
    name_of("SUBSTR"): substring,
    name_of("BNODE"): blank_node,
    name_of("REPLACEMENT"): replacement,
    name_of("MEMBER"): concat_member,
    name_of("U+"): _on_numbers(EXACTLY.plus, operator.pos),
    name_of("U-"): _on_numbers(EXACTLY.minus, operator.neg),
    name_of("ABS"): _on_numbers(EXACTLY.abs, abs),
    name_of("ROUND"): _on_numbers(_half_up, _round),
    name_of("CEIL"): _on_numbers(lambda x: _whole(x, ROUND_CEILING), _float_whole(math.ceil)),
    name_of("FLOOR"): _on_numbers(lambda x: _whole(x, ROUND_FLOOR), _float_whole(math.floor)),
    **{name_of(op): _comparison(op) for op in _COMPARE},
    **{name_of(op): _arithmetic(op) for op in _FLOAT_ARITHMETIC},
    **{name_of("CAST-" + name): _cast(name) for name in CASTS},
}
"""What the texts of queries call by name: hand it to the store with each query."""
