"""Prepared queries: parse once, then give the parameters their values as often as you like.

Binding does not look at the text again, nor at parts of the algebra without parameters: `prepare`
turns the rest into functions that build the finished nodes from a row of values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar, cast

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from kelda.errors import QueryError
from kelda.lang.algebra import (
    Const,
    CountWindow,
    InGraph,
    Param,
    QuadPattern,
    Query,
    SessionWindow,
    Term,
    TimeWindow,
    TriplePattern,
    VarRef,
    Window,
    WindowDef,
)
from kelda.lang.deep import with_room
from kelda.lang.terms import XSD
from kelda.lang.windows import duration, too_many, whole

T = TypeVar("T")
Row: TypeAlias = Mapping[str, Any]
Build: TypeAlias = Callable[[Row], Any]

_DATE_TIME, _DATE, _DECIMAL = (NamedNode(XSD + name) for name in ("dateTime", "date", "decimal"))


class Prepared:
    """A query with parameters. `query` is its algebra, in which they are `Param`."""

    __slots__ = ("_build", "_names", "base", "dialect", "parameters", "query", "text")

    def __init__(
        self,
        query: Query,
        parameters: Iterable[str],
        text: str = "",
        dialect: str | None = None,
        base: str | None = None,
    ) -> None:
        self.query = query
        self.text, self.dialect, self.base = text, dialect, base  # as it was written
        self.parameters = tuple(parameters)
        self._names = frozenset(self.parameters)
        self._build = with_room(query.depth, lambda: _builder(query))

    def bind(self, /, **values: object) -> Query:
        """The query with every parameter replaced by its value: a term, or a Python int, float, bool,
        str, Decimal, date or datetime. A window's size takes milliseconds or text such as "10s"; the
        place of a stream, a graph or a predicate takes an IRI, also as text."""
        if values.keys() != self._names:
            raise _mismatch(self.parameters, values)
        if self._build is None:
            return self.query
        build = self._build
        query: Query = with_room(self.query.depth, lambda: build(values))
        return query

    def __repr__(self) -> str:
        return f"Prepared({', '.join('$' + name for name in self.parameters)})"


def bound(node: T, parameters: Iterable[str], values: Mapping[str, object]) -> T:
    """A tree of algebra nodes with every parameter replaced by its value; see `Prepared.bind`."""
    names = tuple(parameters)
    if values.keys() != set(names):
        raise _mismatch(names, values)
    build = _builder(node)
    return node if build is None else cast(T, build(values))


def term_of(value: Any) -> Term:
    """A term as it is; a Python value as the literal it is in RDF."""
    if isinstance(value, NamedNode | Literal | Triple):
        return value
    if isinstance(value, bool | int | float | str):
        return Literal(value)
    if isinstance(value, datetime):
        return Literal(value.isoformat().replace("+00:00", "Z"), datatype=_DATE_TIME)
    if isinstance(value, date):
        return Literal(value.isoformat(), datatype=_DATE)
    if isinstance(value, Decimal):
        return Literal(format(value, "f"), datatype=_DECIMAL)
    if isinstance(value, BlankNode):
        raise QueryError(f"{value} is a blank node, which no query can name; give an IRI or a literal")
    raise QueryError(
        f"{value!r} ({type(value).__name__}) cannot be a parameter; give a term, number, string or date"
    )


def term_from_text(text: str) -> Term:
    """The term that N-Triples text such as `<http://e/x>`, `"a"@en` or `"1"^^<…>` writes."""
    try:
        (quad,) = parse(f"<urn:x> <urn:x> {text} .\n".encode(), RdfFormat.N_TRIPLES)
    except (SyntaxError, ValueError) as problem:
        raise QueryError(f"{text!r} is not a term in N-Triples: {problem}") from None
    return term_of(quad.object)


def _mismatch(names: Iterable[str], values: Iterable[str]) -> QueryError:
    missing = [f"${name}" for name in names if name not in set(values)]
    unknown = [f"${name}" for name in values if name not in set(names)]
    parts = ["no value for " + ", ".join(missing)] if missing else []
    if unknown:
        known = ", ".join(f"${name}" for name in names) or "none"
        parts.append(f"no such parameter: {', '.join(unknown)} (the query has {known})")
    return QueryError("; ".join(parts))


# ---------------------------------------------------------------------------- the places of parameters


def _iri(name: str, place: str) -> Build:
    def build(row: Row) -> NamedNode:
        value = row[name]
        if isinstance(value, NamedNode):
            return value
        try:
            if isinstance(value, str):
                return NamedNode(value)
        except ValueError as problem:
            raise QueryError(f"${name} is {place}, and {value!r} is not an IRI: {problem}") from None
        raise QueryError(f"${name} is {place} and must be an IRI, not {value!r}")

    return build


def _plain(value: Any) -> Any:
    """A literal as the number or text it holds: window sizes are not terms."""
    if not isinstance(value, Literal):
        return value
    number = whole(value.value)
    return value.value if number is None else number


def _shown(value: int | str) -> str:
    """The value as text; Python refuses to write numbers of thousands of digits."""
    return str(value) if isinstance(value, str) or abs(value) < 10**40 else "a number of more than 40 digits"


def _milliseconds(name: str) -> Build:
    def build(row: Row) -> int:
        value = _plain(row[name])
        try:
            if isinstance(value, int | str) and not isinstance(value, bool):
                return duration(_shown(value))
        except ValueError as problem:
            raise QueryError(f"${name}: {problem}") from None
        raise QueryError(f"${name} is a duration: give milliseconds or text such as '10s', not {value!r}")

    return build


def _count(name: str) -> Build:
    def build(row: Row) -> int:
        value = _plain(row[name])
        if not isinstance(value, int) or isinstance(value, bool):
            raise QueryError(f"${name} is a number of elements and must be at least 1, not {value!r}")
        wrong = too_many(value)
        if wrong is not None:
            raise QueryError(f"${name} is a number of elements and {wrong}, not {_shown(value)}")
        return value

    return build


def _term(name: str) -> Build:
    return lambda row: term_of(row[name])


def _param(name: str, owner: type, field: str) -> Build:
    """How the parameter's value is read where it stands: field `field` of a node of class `owner`."""
    if issubclass(owner, TriplePattern) and field == "p":
        return _iri(name, "a predicate")
    if owner is InGraph or (owner is QuadPattern and field == "graph"):
        return _iri(name, "the name of a graph")
    if owner is WindowDef:
        return _iri(name, "a stream")
    if owner in (TimeWindow, SessionWindow):
        return _milliseconds(name)
    if owner is CountWindow:
        return _count(name)
    return _term(name)


def sizes_of(window: Window, size: Param, values: Mapping[str, Iterable[object]]) -> list[int]:
    """The sizes that the values of a parameter give to a window, checked as `bind` checks each."""
    read = _param(size.name, type(window), "")
    return [read({size.name: value}) for value in values[size.name]]


def _builder(node: Any, owner: type = Query, field: str = "") -> Build | None:
    """A function from a row of values to the finished node; None if the node has no parameter."""
    if isinstance(node, Param):
        return _param(node.name, owner, field)
    if isinstance(node, VarRef):
        if not isinstance(node.var, Param):
            return None
        name = node.var.name
        return lambda row: Const(term_of(row[name]))
    if isinstance(node, tuple):
        return _rebuild([_builder(part, owner, field) for part in node], node, lambda *parts: parts)
    if is_dataclass(node) and not isinstance(node, type):
        kind = type(node)
        names = [f.name for f in fields(node)]
        parts = [getattr(node, name) for name in names]
        return _rebuild(
            [_builder(part, kind, name) for part, name in zip(parts, names, strict=True)], parts, kind
        )
    return None


def _rebuild(builders: list[Build | None], parts: Iterable[Any], make: Callable[..., Any]) -> Build | None:
    """`make` over the parts, of which those with a builder are built anew."""
    template = list(parts)
    changing = [(i, build) for i, build in enumerate(builders) if build is not None]
    if not changing:
        return None
    if len(changing) == 1:
        ((at, only),) = changing
        before, after = template[:at], template[at + 1 :]
        return lambda row: make(*before, only(row), *after)

    def build(row: Row) -> Any:
        items = template.copy()
        for i, part in changing:
            items[i] = part(row)
        return make(*items)

    return build
