"""The tables of a TOML file, read key by key: every mistake in it is found, and all are told at once.

document = Document(path)
engine = document.table("engine")
shards = engine.get("shards", whole_number(least=1), 1)
engine.done()                  # keys that nobody asked for are mistakes
document.done()
"""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, overload

from kelda.errors import KeldaError, QueryError, UsageError
from kelda.io import values

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")
Read = Callable[[object], T]

_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*([\w-]+)\s*[.=]")
_AT = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)")


class Document:
    """A file, and the mistakes that were found in it so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mistakes: list[tuple[int, str]] = []
        text = _text_of(path)
        try:
            self._data: dict[str, Any] = tomllib.loads(text, parse_float=_number)
        except tomllib.TOMLDecodeError as error:
            raise _no_toml(path, text, error) from error
        self._lines = _lines_of(text)
        self._known: list[str] = []

    def table(self, name: str) -> Table:
        """The table `[name]`; an empty one, if there is none."""
        self._known.append(name)
        found = self._data.get(name, {})
        if not isinstance(found, dict):
            self.wrong((name,), f"[{name}]: it is one table, written [{name}]")
            found = {}
        return Table(self, (name, 0), f"[{name}]", found)

    def tables(self, name: str) -> list[Table]:
        """The tables `[[name]]`, in their order."""
        self._known.append(name)
        found = self._data.get(name, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            self.wrong((name,), f"[[{name}]]: there may be several, so write [[{name}]]")
            return []
        several = len(found) > 1
        return [
            Table(self, (name, n), f"[[{name}]]" + f" number {n + 1}" * several, one)
            for n, one in enumerate(found)
        ]

    def wrong(self, at: tuple[object, ...], message: str) -> None:
        """Note a mistake; `at` is a key, or a table."""
        self._mistakes.append((self._lines.get(at, 0), message))

    def done(self) -> None:
        """All tables were read. Raises the mistakes, if there are any."""
        for name in self._data.keys() - set(self._known):
            self.wrong((name,), f"[{name}]: {_unknown(name, self._known, 'table')}")
        if not self._mistakes:
            return
        said = [
            (f"line {line}, {message}" if line else message).replace("\n", "\n    ")
            for line, message in sorted(self._mistakes, key=lambda mistake: mistake[0])
        ]
        many = f"{len(said)} mistakes" if len(said) > 1 else "a mistake"
        raise UsageError(f"{self.path} has {many}:\n  " + "\n  ".join(said))


class Table:
    """A table of a document."""

    def __init__(self, document: Document, at: tuple[str, int], where: str, data: dict[str, Any]) -> None:
        self._document, self._at, self._where, self._data = document, at, where, data
        self._known: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._data)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    @overload
    def get(self, key: str, read: Read[T]) -> T | None: ...
    @overload
    def get(self, key: str, read: Read[T], otherwise: T) -> T: ...
    def get(self, key: str, read: Read[T], otherwise: T | None = None) -> T | None:
        """The value of a key. What `read` raises is a mistake of the file; it returns `otherwise` then."""
        self._known.append(key)
        if key not in self._data:
            return otherwise
        try:
            return read(self._data[key])
        except KeldaError as error:
            self.wrong(key, str(error))
            return otherwise

    def need(self, key: str, read: Read[T]) -> T | None:
        """The same for a key that must be there; None if it is not, or is wrong."""
        if key not in self._data:
            self._known.append(key)
            self.wrong(None, f"it needs the key '{key}'")
            return None
        return self.get(key, read)

    def wrong(self, key: str | None, message: str) -> None:
        """Note a mistake, in the value of a key or in the table as such."""
        at = self._at if key is None else (*self._at, key)
        self._document.wrong(at, f"{self._where}{'' if key is None else ' ' + key}: {message}")

    def done(self) -> None:
        """All keys were asked for: another one is a mistake."""
        for key in self._data.keys() - set(self._known):
            self.wrong(key, _unknown(key, self._known, "key"))


def _unknown(name: str, known: Iterable[str], what: str) -> str:
    """
    >>> _unknown("shard", ["shards", "t0"], "key"), _unknown("x", ["shards", "t0"], "key")
    ("there is no such key; did you mean 'shards'?", 'there is no such key; there are: shards, t0')
    """
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known)}"
    return f"there is no such {what}; {hint}"


# ------------------------------------------------------------------------------ kinds of values


def text(value: object) -> str:
    """A text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"it is a text in quotes, not {_shown(value)}")
    return value


def flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise UsageError(f"it is true or false, not {_shown(value)}")
    return value


def whole_number(least: int, most: int | None = None) -> Read[int]:
    """A whole number within bounds."""
    bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < least or (most or value) < value:
            raise UsageError(f"it is a whole number {bounds}, not {_shown(value)}")
        return value

    return read


def one_of(*choices: str) -> Read[str]:
    """One of some words."""

    def read(value: object) -> str:
        if value not in choices:
            near = difflib.get_close_matches(str(value), choices, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise UsageError(f"it is one of {', '.join(choices)}, not {_shown(value)}{hint}")
        return str(value)

    return read


def iri(value: object) -> str:
    """An absolute IRI."""
    if not values.is_absolute_iri(text(value)):
        raise UsageError(f"it is an absolute IRI such as http://example.org/s, not {_shown(value)}")
    return text(value)


def iris(value: object) -> tuple[str, ...]:
    """A list of absolute IRIs, one at least."""
    if not isinstance(value, list) or not value:
        raise UsageError(f'it is a list such as ["http://example.org/p"], not {_shown(value)}')
    return tuple(map(iri, value))


def graph(value: object) -> str:
    """The IRI of a graph, or "default"."""
    return values.graph_name(text(value))


def keeping(value: object) -> int | timedelta:
    """How many snapshots are kept, or those of which time."""
    if isinstance(value, int) and not isinstance(value, bool):
        return values.at_least_one(value)
    if not isinstance(value, str):
        raise UsageError(f'it is a number of snapshots or a duration such as "1h", not {_shown(value)}')
    return values.keeping(value)


def duration(value: object) -> int:
    """Milliseconds, written with their unit."""
    if value == 0 and not isinstance(value, bool):
        return 0
    if not isinstance(value, str):
        raise UsageError(f'it is a duration such as "5s" or "500ms", not {_shown(value)}')
    return values.duration(value)


def size(value: object) -> int:
    """Bytes."""
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if not isinstance(value, str):
        raise UsageError(f'it is a size such as "16MB", not {_shown(value)}')
    return values.size(value)


def instant(value: object) -> int:
    """Milliseconds since 1970: a number, a date and time, or either as text."""
    if isinstance(value, datetime):
        at = value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)
        return round(at.timestamp() * 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise UsageError(
            f"it is a time: milliseconds since 1970 or 2026-05-01T12:00:00Z, not {_shown(value)}"
        )
    return values.instant(value)


def mapping(value: object) -> Mapping[str, object]:
    """A table of its own."""
    if not isinstance(value, dict):
        raise UsageError(f"it is a table such as {{ name = 1 }}, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    """A value as it would stand in the file.

    >>> _shown("a"), _shown(True), _shown([1]), _shown(2.5)
    ("'a'", 'true', 'a list', '2.5')
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'"
        case list():
            return "a list"
        case dict():
            return "a table"
    return str(value)


# --------------------------------------------------------------------------------- the file


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UsageError(f"cannot read {path}: {reason}") from error


def _number(written: str) -> Decimal | float:
    """A number with a point is decimal, as in a query; one with an exponent is a double."""
    return float(written) if re.search("[einEIN]", written) else Decimal(written.replace("_", ""))


def _no_toml(path: Path, text: str, error: Exception) -> UsageError:
    """What is wrong with the text, with the line and a caret."""
    found = _AT.search(str(error))
    message = _AT.sub("", str(error))
    if found is None or found[1] is None:
        return UsageError(f"{path} is not TOML: {message}, at its end")
    shown = QueryError(message, text=text, line=int(found[1]), column=int(found[2]))
    return UsageError(f"{path} is not TOML: {shown}")


def _lines_of(text: str) -> dict[tuple[object, ...], int]:
    """On which line tables and their keys stand, as far as one sees by looking at line after line."""
    lines: dict[tuple[object, ...], int] = {}
    counts: dict[str, int] = {}
    at: tuple[object, ...] = ()
    inside = ""  # the quotes of a text that goes over several lines
    for number, line in enumerate(text.splitlines(), 1):
        if inside:
            inside = "" if inside in line else inside
            continue
        if header := _HEADER.match(line):
            name = header[2]
            counts[name] = counts.get(name, -1) + 1
            at = (name, counts[name])
            lines.setdefault((name,), number)
            lines[at] = number
        elif key := _KEY.match(line):
            lines.setdefault((*at, key[1]), number)
        inside = next((quotes for quotes in ('"""', "'''") if line.count(quotes) % 2), "")
    return lines
