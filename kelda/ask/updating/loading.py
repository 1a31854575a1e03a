"""LOAD: an RDF document as quads of ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyoxigraph import DefaultGraph, Quad, RdfFormat

from kelda.ask.updating import fresh, quads
from kelda.errors import UsageError
from kelda.rdf.compression import Source, open_bytes
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.blanks import file_scope
from kelda.rdf.graphs import BLOCK, graph_format, read_graph
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.rdf.ntriples import blocks, ids_of
from kelda.rdf.turtle_document import UnreadableError, read_turtle
from kelda.store.changes import Ids

AT_ONCE = 1 << 14  # quads whose terms are made ids together


@dataclass(frozen=True, slots=True)
class Document:
    """Where the text of a document is. `name` keeps its blank nodes apart from those of others; `format` is
    said where the name of the source does not tell it."""

    source: Source
    name: str
    format: str | None = None


Fetch = Callable[[str], Document]
"""From the IRI of a document to where it is."""


def from_files(iri: str) -> Document:
    """Documents of this machine, by file: IRIs; no others."""
    parts = urlsplit(iri)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        path = url2pathname(parts.path)
        return Document(Path(path), path)
    if parts.scheme in ("http", "https"):
        raise UsageError(
            f"<{iri}> is not fetched: an update that is carried out again after a crash must find the same. "
            "Save the document as a file, and LOAD that"
        )
    raise UsageError(
        f"<{iri}> is no file: LOAD takes file: IRIs, such as <file:///data/g.ttl>, and paths relative to a "
        "base that is one"
    )


def load(iri: str, graph: int | None, fetch: Fetch, dictionary: Dictionary) -> Ids:
    """The quads of a document, all in one graph if one is said. Blank nodes are renamed as `read_graph` does.

    InputError if it cannot be read; nothing is changed but the dictionary."""
    document = fetch(iri)
    kind = graph_format(urlsplit(iri).path, document.format)
    by_lines = kind in (RdfFormat.N_TRIPLES, RdfFormat.N_QUADS)
    found = _lines(document, kind, dictionary) if by_lines else None
    if kind is RdfFormat.TURTLE:
        found = _turtle(document, iri, dictionary)
    if found is None:  # who reads statement by statement can say in which line a mistake is
        statements = read_graph(document.source, format=kind.file_extension, base=iri, name=document.name)
        found = _ids(statements, dictionary)
    return found if graph is None else quads.into(graph, found)


def _lines(document: Document, kind: RdfFormat, dictionary: Dictionary) -> Ids | None:
    """N-Triples and N-Quads, read as columns. None if a line is wrong, or needs who reads it as terms."""
    parts, blank = [quads.NONE], [quads.NONE.astype(np.bool_)]
    own, rest, has_blanks = Dictionary(dictionary.seed), b"", False
    with open_bytes(document.source) as reader:
        while True:
            block = reader.read(BLOCK)
            text, _, rest = (rest + block).rpartition(b"\n") if block else (rest, b"", b"")
            has_blanks |= b"_:" in text
            if has_blanks and b"<<(" in text:
                return None
            for some in blocks(text, own if has_blanks else dictionary, quads=kind == RdfFormat.N_QUADS):
                if some.rejects:
                    return None
                part = some.columns[[3, 0, 1, 2]]
                parts.append(part)
                if has_blanks:
                    is_blank = own.begin(part, b"_")
                    blank.append(is_blank)
                    dictionary.add_entries(own.entries_of(part[~is_blank]))
                    own.clear()  # their labels are not known for long: they are not those of the document
                else:
                    blank.append(np.zeros(part.shape, np.bool_))
            if not block:
                break
    found = np.concatenate(parts, axis=1)
    if not has_blanks:
        return found
    return _renamed(found, np.concatenate(blank, axis=1), file_scope(document.name), dictionary)


def _turtle(document: Document, iri: str, dictionary: Dictionary) -> Ids | None:
    """Turtle, read as columns. None if there may be a mistake in it."""
    own = Dictionary(dictionary.seed)
    try:
        with open_bytes(document.source) as reader:
            found = np.concatenate([quads.NONE, *read_turtle(reader.read, iri, own)], axis=1)
    except UnreadableError:
        return None
    is_blank = own.begin(found, b"_")
    dictionary.add_entries(own.entries_of(found[~is_blank]))
    return _renamed(found, is_blank, file_scope(document.name), dictionary)


def _renamed(found: Ids, is_blank: NDArray[np.bool_], scope: str, dictionary: Dictionary) -> Ids:
    """The quads with the labels that `Renamer` gives: numbered in the order in which they are first met."""
    in_order = [1, 3, 0]  # the subject is met before the object, and that before the graph
    met = is_blank[in_order].T
    new = found[in_order].T
    encoded = pa.array(new[met]).dictionary_encode()
    numbers = np.arange(len(encoded.dictionary))
    new[met] = fresh.blank_nodes(f"{scope}b", numbers, dictionary)[encoded.indices.to_numpy()]
    found[in_order] = new.T
    return found


def _ids(statements: Iterable[Quad], dictionary: Dictionary) -> Ids:
    parts, left = [quads.NONE], iter(statements)
    while rows := [(q.graph_name, q.subject, q.predicate, q.object) for q in islice(left, AT_ONCE)]:
        terms = list({t for row in rows for t in row if not isinstance(t, DefaultGraph)})
        known = dict(zip(terms, ids_of(terms, dictionary), strict=True))
        found = [[DEFAULT_GRAPH if isinstance(t, DefaultGraph) else known[t] for t in row] for row in rows]
        parts.append(np.array(found, np.int64).T)
    return np.concatenate(parts, axis=1)
