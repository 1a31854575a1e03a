"""Queries as users give them, in files or as text, with their names and bases."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from kelda.errors import UsageError
from kelda.io.job import QuerySpec, parse_spec
from kelda.lang import algebra as A

# What may be a relative IRI, or a call that makes an IRI of one.
_RELATIVE = re.compile(r"<(?![A-Za-z][A-Za-z0-9+.-]*:)[^<>\"{}|^`\\\s]*>|\b[IU]RI\s*\(", re.IGNORECASE)


def query_text(path: Path) -> str:
    """The text of a query's file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"cannot read the query {path}: {reason}") from error


def address_of(path: Path, text: str) -> str | None:
    """The address of a query's file, if the query needs a base: one that does not is the same anywhere."""
    return path.resolve().as_uri() if _RELATIVE.search(text) else None


def specified(
    text: str,
    *,
    name: str | None = None,
    otherwise: str | None = None,
    file: Path | None = None,
    dialect: str | None = None,
    params: Mapping[str, str] | None = None,
    output: str | None = None,
    base: str | None = None,
) -> tuple[QuerySpec, A.Query]:
    """A query to register, and what it means. It is called `name`, or what its REGISTER says, or
    `otherwise`, or as its file; relative IRIs stand against `base`, or its file."""
    if base is None and file is not None:
        base = address_of(file, text)
    spec = QuerySpec("", text, dialect, dict(params or {}), output, base)
    query = parse_spec(spec)
    called = name or query.name or otherwise or (file.stem if file is not None else None)
    if called is None:
        raise UsageError("the query has no name: say one, or write REGISTER QUERY name AS … in it")
    return replace(spec, name=called), query


def undeclared_streams(query: A.Query, declared: Collection[str]) -> list[str]:
    """The streams that a query reads and that are not declared."""
    named = [w.stream.value for w in query.windows if not isinstance(w.stream, A.Var | A.Param)]
    return [iri for iri in dict.fromkeys(named) if iri not in declared]
