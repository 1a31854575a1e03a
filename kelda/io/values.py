"""Values as people write them: durations, sizes, instants, terms, IRIs."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction

from kelda.errors import UsageError

UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)")
_ISO = re.compile(
    r"P(?:(?P<d>\d+)D)?(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?", re.IGNORECASE
)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kKmMgG]?)(i?)[bB])?")
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?\d*\.\d+")
_DOUBLE = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")
XSD = "http://www.w3.org/2001/XMLSchema#"


def is_absolute_iri(text: str) -> bool:
    """Whether it says alone what it names.

    >>> is_absolute_iri("http://example.org/s"), is_absolute_iri("s"), is_absolute_iri("<http://example.org/s>")
    (True, False, False)
    """
    return _ABSOLUTE.fullmatch(text) is not None


def duration(text: str) -> int:
    """Milliseconds of `500ms`, `5s`, `2m`, `1h`, `1d` or ISO 8601 `PT5S`.

    >>> duration("5s"), duration("500ms"), duration("PT1M0.5S"), duration("1.5s"), duration("0")
    (5000, 500, 60500, 1500, 0)
    """
    text = text.strip()
    if text == "0":
        return 0
    if found := _SHORT.fullmatch(text):
        total = Fraction(found[1]) * UNITS[found[2]]
    elif len(text) > 2 and (found := _ISO.fullmatch(text)):
        total = sum(
            (Fraction(value) * UNITS[unit] for unit, value in found.groupdict().items() if value), Fraction(0)
        )
    else:
        raise UsageError(f"'{text}' is not a duration; write 500ms, 5s, 2m, 1h or PT5S")
    if total.denominator != 1:
        raise UsageError(f"'{text}' is not a whole number of milliseconds")
    return int(total)


def keeping(text: str) -> int | timedelta:
    """How many snapshots are kept, or those of which time.

    >>> keeping("10"), keeping("1h")
    (10, datetime.timedelta(seconds=3600))
    """
    if is_whole(text):
        return at_least_one(int(text))
    return timedelta(milliseconds=duration(text))


def at_least_one(snapshots: int) -> int:
    """So many of them."""
    if snapshots < 1:
        raise UsageError(f"{snapshots} snapshots cannot be kept: there is always the last one")
    return snapshots


def graph_name(text: str) -> str:
    """The IRI of a graph, or `default`.

    >>> graph_name("<http://ex/g>"), graph_name("default")
    ('http://ex/g', 'default')
    """
    name = text.removeprefix("<").removesuffix(">")
    if name != "default" and not is_absolute_iri(name):
        raise UsageError(f"'{text}' is no graph: write an absolute IRI, or default for the default graph")
    return name


def size(text: str) -> int:
    """Bytes of `1000`, `64kB`, `16MB` or `1GB`; powers of 1000, or with an i (`64KiB`) of 1024.

    >>> size("1000"), size("64kB"), size("16 MB"), size("1MiB")
    (1000, 64000, 16000000, 1048576)
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"'{text}' is not a size; write 1000, 64kB or 16MB")
    power = " kmg".index((found[2] or " ").lower())
    total = Fraction(found[1]) * (1024 if found[3] else 1000) ** power
    if total.denominator != 1 or total < 1:
        raise UsageError(f"'{text}' is not a whole number of bytes")
    return int(total)


def instant(text: str) -> int:
    """Milliseconds since 1970, as a number or an ISO date.

    >>> instant("1500"), instant("1970-01-01T00:00:01.5Z")
    (1500, 1500)
    """
    from kelda.rdf.times import iso_to_ms

    ms = int(text) if is_whole(text) else iso_to_ms(text)
    if ms is None:
        raise UsageError(f"'{text}' is not a time; write milliseconds since 1970 or 2026-05-01T12:00:00Z")
    return ms


def is_whole(text: str) -> bool:
    """Whether it is a whole number.

    >>> is_whole("12"), is_whole("12s")
    (True, False)
    """
    return _INTEGER.fullmatch(text.strip()) is not None


def term_text(value: str) -> str:
    """A value as N-Triples: `<…>` and `"…"` as they stand, a number or true/false typed, else a string."""
    from pyoxigraph import Literal, RdfFormat, parse

    if value.startswith(("<", '"')):
        try:
            quads = list(parse(f"<urn:s> <urn:p> {value} .".encode(), RdfFormat.N_TRIPLES))
        except SyntaxError as error:
            raise UsageError(f"'{value}' is not a term in N-Triples syntax: {error}") from None
        if len(quads) != 1:
            raise UsageError(f"'{value}' is not one term in N-Triples syntax")
        return str(quads[0].object)
    if value.startswith("_:"):
        raise UsageError(
            f"'{value}' is a blank node, which cannot be a parameter: it names nothing in the data"
        )
    for pattern, kind in ((_INTEGER, "integer"), (_DECIMAL, "decimal"), (_DOUBLE, "double")):
        if pattern.fullmatch(value):
            return f'"{value}"^^<{XSD}{kind}>'
    if value in ("true", "false"):
        return f'"{value}"^^<{XSD}boolean>'
    return str(Literal(value))
