"""Terms as the texts of a format: a text for each distinct id, made once, by kernels.

A spelling says what stands for each byte of a value (in IRIs, and in all else), and what stands around
the parts of a term. The tables are asked of whoever defines the format: `json` and `csv` of Python, and
pyoxigraph for N-Triples. What kernels leave (triple terms, the two characters that are none) is spelled by
the definition itself, as a term.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, Literal, Triple

from kelda.engine.answer import term_to_json
from kelda.io import spelling_kernels as kernels
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.hash_kernels import PADDING
from kelda.rdf.ids import DATATYPES, Term

Ids = NDArray[np.int64]
Bytes = NDArray[np.uint8]


class Texts(NamedTuple):
    """Texts by their numbers: number i is `bytes[starts[i]:ends[i]]`, and behind the last there is the
    padding that kernels need. Number 0 is empty."""

    bytes: Bytes
    starts: Ids
    ends: Ids


@dataclass(frozen=True)
class Spelling:
    """How a format spells terms: `tables` for kernels, and its definition."""

    tables: tuple[Any, ...]
    define: Callable[[Term], str]

    def texts(self, ids: Ids, dictionary: Dictionary) -> Texts:
        """The texts of distinct ids, of which the first is 0."""
        inline, hashed = np.flatnonzero(ids < 0), np.flatnonzero(ids > 0)
        entries = dictionary.entries_of(ids[hashed])
        if len(entries.ids) < len(hashed):
            dictionary.terms(ids[hashed])  # says which is not there
        out, begun, ended, odd = kernels.spelled(entries.texts, entries.offsets, ids[inline], self.tables)
        order = np.concatenate([hashed, inline])
        if odd.any():
            which = np.flatnonzero(odd)
            out = self._by_definition(dictionary.terms(ids[order[which]]), which, out, begun, ended)
        starts, ends = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
        starts[order], ends[order] = begun, ended
        return Texts(out, starts, ends)

    def _by_definition(self, terms: Sequence[Any], which: Ids, out: Bytes, starts: Ids, ends: Ids) -> Bytes:
        """The texts with those of some terms behind."""
        parts, at = [out], len(out)
        for i, term in zip(which.tolist(), terms, strict=True):
            said = self.define(term).encode()
            parts.append(np.frombuffer(said, np.uint8))
            starts[i], ends[i] = at, at + len(said)
            at += len(said)
        return np.concatenate([*parts, np.zeros(PADDING, np.uint8)])


def _spelling(
    define: Callable[[Term], str],
    value: Callable[[str], str],
    iri: Callable[[str], str],
    marks: tuple[tuple[str, str, str], ...],
    second: int,
    special: str = "",
) -> Spelling:
    """`marks` stand before the value, between it and the language or datatype, and at the end: of IRIs, blank
    nodes, triple terms (none), strings, tagged and typed literals. `second` is 0 if there is no language or
    datatype, 1 if directions are left out. A value with a `special` character stands in quotes."""
    escapes = np.zeros((2, 256, kernels.WIDE), np.uint8)
    sizes = np.ones((2, 256), np.int64)
    escapes[:, :, 0] = np.arange(256)
    for table, spell in enumerate((iri, value)):
        for byte in range(128):
            said = spell(chr(byte)).encode()
            escapes[table, byte, : len(said)], sizes[table, byte] = list(said), len(said)
    about = np.zeros((len(marks), 3, kernels.MARK), np.uint8)
    lengths = np.array([[len(mark) for mark in of] for of in marks], np.int64)
    for kind, of in enumerate(marks):
        for place, mark in enumerate(of):
            about[kind, place, : len(mark)] = list(mark.encode())
    quoted = np.isin(np.arange(256), list(special.encode()))
    plain = (sizes == 1) & ~quoted & ~np.isin(np.arange(256), [*b"\\", 0xEF])
    endings, ending_sizes = np.zeros((32, kernels.MARK), np.uint8), np.zeros(32, np.int64)
    for kind, datatype in DATATYPES.items():
        _, _, end = define(Literal("0", datatype=datatype)).partition("0")
        endings[kind, : len(end)], ending_sizes[kind] = list(end.encode()), len(end)
    tables = (escapes, sizes, quoted, about, lengths, second, plain, endings, ending_sizes)
    return Spelling(tables, define)


# ---------------------------------------------------------------------------- the formats


def exact(term: Term) -> str:
    """The N-Triples text of a term, of which the term can be made again.

    >>> exact(Literal("chat", language="fr"))
    '"chat"@fr'
    """
    return f"<<( {term} )>>" if isinstance(term, Triple) else str(term)


def bare(term: Term) -> str:
    """The bare text of a term: an IRI without brackets, a literal without its type."""
    match term:
        case Triple():
            return str(term)
        case BlankNode():
            return f"_:{term.value}"
    return term.value


def in_json(text: str) -> str:
    """A text as it stands in JSON, without the quotes around it."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def csv_field(text: str) -> str:
    """A text as a field of CSV, in quotes if it needs them.

    >>> csv_field("one, two"), csv_field("hall")
    ('"one, two"', 'hall')
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(["", text])
    return out.getvalue()[1:-1]


def _quoted(character: str) -> str:
    return str(Literal(character))[1:-1]


def _same(character: str) -> str:
    return character


def _json(term: Term) -> str:
    return json.dumps(term_to_json(term), ensure_ascii=False)


_NONE = ("", "", "")
_LITERAL = '{"type": "literal", "value": "'
_MARKS = (
    ("<", "", ">"),
    ("_:", "", ""),
    _NONE,
    ('"', "", '"'),
    ('"', '"@', ""),
    ('"', '"^^<', ">"),
)

JSON = _spelling(
    _json,
    in_json,
    in_json,
    (
        ('{"type": "uri", "value": "', "", '"}'),
        ('{"type": "bnode", "value": "', "", '"}'),
        _NONE,
        (_LITERAL, "", '"}'),
        (_LITERAL, '", "xml:lang": "', '"}'),
        (_LITERAL, '", "datatype": "', '"}'),
    ),
    second=1,
)
"""As SPARQL 1.1 Query Results JSON."""

CSV = _spelling(
    lambda term: csv_field(bare(term)),
    lambda c: '""' if c == '"' else c,
    lambda c: '""' if c == '"' else c,
    (_NONE, ("_:", "", ""), _NONE, _NONE, _NONE, _NONE),
    second=0,
    special="".join(c for c in map(chr, range(128)) if csv_field(c) != c),
)
"""As SPARQL 1.1 Query Results CSV."""

NTRIPLES = _spelling(exact, _quoted, _same, _MARKS, second=2)

NTRIPLES_IN_JSON = _spelling(
    lambda term: in_json(exact(term)),
    lambda c: in_json(_quoted(c)),
    in_json,
    tuple((in_json(a), in_json(b), in_json(c)) for a, b, c in _MARKS),
    second=2,
)
"""N-Triples within a text of JSON."""
