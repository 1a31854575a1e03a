"""What users write behind the options, taken apart: `IRI=FILE`, `[IRI=]VALUE`, `NAME=VALUE`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from kelda.errors import UsageError
from kelda.io.values import graph_name, is_absolute_iri, term_text
from kelda.lang.iri import resolve

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z_]\w*")


def iri_and_file(text: str, option: str, base: str | None = None) -> tuple[str, str]:
    """`IRI=FILE`. Both may contain '='; the cut that leaves the name of a file is taken, else the first.

    A relative IRI stands against `base`, if there is one: as in the queries.

    >>> iri_and_file("http://ex/s=gps.nt", "--stream")
    ('http://ex/s', 'gps.nt')
    """
    cuts = [found.start() for found in re.finditer("=", text)]
    if not cuts or cuts[0] == 0 or not text[cuts[0] + 1 :]:
        raise UsageError(
            f"{option} takes IRI=FILE, for example {option} http://example.org/s=file.nt, not '{text}'"
        )
    cut = next((c for c in cuts if Path(text[c + 1 :]).exists()), cuts[0])
    iri = text[:cut].removeprefix("<").removesuffix(">")
    if base is not None:
        iri = resolve(base, iri)
    if not is_absolute_iri(iri):
        raise UsageError(
            f"{option}: '{iri}' is not an absolute IRI; write {option} http://example.org/s={text[cut + 1 :]}"
        )
    return iri, text[cut + 1 :]


def per_stream(texts: Iterable[str], streams: Sequence[str], read: Callable[[str], T]) -> dict[str, T]:
    """Options that hold for all streams (`VALUE`) or for one (`STREAM=VALUE`); the one wins.

    >>> from kelda.io.values import duration
    >>> per_stream(["1s", "http://ex/b=2s"], ["http://ex/a", "http://ex/b"], duration)
    {'http://ex/a': 1000, 'http://ex/b': 2000}
    """
    general: dict[str, T] = {}
    special: dict[str, T] = {}
    for text in texts:
        owner = next((s for s in sorted(streams, key=len, reverse=True) if text.startswith(s + "=")), None)
        if owner is not None:
            special[owner] = read(text[len(owner) + 1 :])
        else:
            value = read(text)
            general = dict.fromkeys(streams, value)
    return general | special


def absorbed(texts: Iterable[str], streams: Sequence[str]) -> dict[str, str]:
    """The graphs that streams are absorbed into: `STREAM=GRAPH`.

    >>> absorbed(["http://ex/a=http://ex/g", "http://ex/b=default"], ["http://ex/a", "http://ex/b"])
    {'http://ex/a': 'http://ex/g', 'http://ex/b': 'default'}
    """
    found: dict[str, str] = {}
    for text in texts:
        owner = next((s for s in sorted(streams, key=len, reverse=True) if text.startswith(s + "=")), None)
        if owner is None:
            there = ", ".join(f"<{stream}>" for stream in streams) or "none"
            raise UsageError(
                f"--absorb takes STREAM=GRAPH, the graph an IRI or default, not '{text}'; "
                f"the streams are: {there}"
            )
        if owner in found:
            raise UsageError(f"--absorb is given twice for <{owner}>; a stream is absorbed into one graph")
        found[owner] = graph_name(text[len(owner) + 1 :])
    return found


def parameter(text: str) -> tuple[str, str]:
    """`name=value`, the value as a term in N-Triples syntax.

    >>> parameter("room=<http://ex/lab>"), parameter("city=Graz")
    (('room', '<http://ex/lab>'), ('city', '"Graz"'))
    >>> parameter("limit=25")
    ('limit', '"25"^^<http://www.w3.org/2001/XMLSchema#integer>')
    """
    name, equals, value = text.partition("=")
    name = name.strip().lstrip("$?")
    if not equals or not _NAME.fullmatch(name):
        raise UsageError(
            f"--param takes NAME=VALUE, for example --param room='<http://example.org/lab>', not '{text}'"
        )
    return name, term_text(value)
