"""Answers of one-shot queries: as plain data that travels, and as answers that writers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyoxigraph import Quad, RdfFormat, Triple, parse

from kelda.engine.answer import Answer, Value
from kelda.engine.oneshot import Result, Solutions
from kelda.io.formats import exact


def answers_of(name: str, result: Result, time: int) -> Iterator[Answer]:
    """What a query says once, at an instant."""
    if isinstance(result, Solutions):
        for row in result.rows:
            yield Answer(name, time, "+", bindings=row)
    elif isinstance(result, bool):
        yield Answer(name, time, "+", boolean=result)
    else:
        yield Answer(name, time, "+", triples=tuple(result))


def as_plain(result: Result) -> Any:
    """A result as JSON can have it: each term once, rows as their numbers (-1: unbound)."""
    if isinstance(result, bool):
        return result
    if not isinstance(result, Solutions):
        return {"triples": "".join(f"{t} .\n" for t in result)}
    numbers: dict[Value, int] = {}
    rows = [
        [numbers.setdefault(row[name], len(numbers)) if name in row else -1 for name in result.variables]
        for row in result.rows
    ]
    return {"variables": result.variables, "terms": list(map(exact, numbers)), "rows": rows}


def from_plain(plain: Any) -> Result:
    """What `as_plain` made plain.

    >>> from pyoxigraph import NamedNode
    >>> from_plain(as_plain(Solutions(["x", "y"], [{"y": NamedNode("http://ex/a")}])))
    Solutions(variables=['x', 'y'], rows=[{'y': <NamedNode value=http://ex/a>}])
    """
    if isinstance(plain, bool):
        return plain
    if "triples" in plain:
        return [_without_default(quad) for quad in parse(plain["triples"], RdfFormat.N_QUADS)]
    lines = "".join(f"<urn:s> <urn:p> {text} .\n" for text in plain["terms"])
    terms = [quad.object for quad in parse(lines, RdfFormat.N_TRIPLES)]
    names = plain["variables"]
    rows = [{name: terms[i] for name, i in zip(names, row, strict=True) if i >= 0} for row in plain["rows"]]
    return Solutions(names, rows)


def _without_default(quad: Quad) -> Triple | Quad:
    """A triple, unless it is in a named graph."""
    return quad if str(quad) != str(quad.triple) else quad.triple
