"""Stored graphs: RDF files of any format, compressed or not, into an Oxigraph store.

Blank nodes are renamed by the file's name and their order in it: two files never share one, and
loading a file again, here or on another machine, gives the same labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import not_
from pathlib import Path

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kelda.errors import InputError, UsageError
from kelda.rdf.compression import Source, name_of, open_bytes, without_suffix
from kelda.rdf.framings.base import reason_of
from kelda.rdf.framings.blanks import Renamer, file_scope
from kelda.rdf.graphstore import GraphStore

_AGAIN = (str, Path, bytes)  # what can be read a second time
BLOCK = 1 << 22  # bytes of a file that are loaded at once

GRAPH_FORMATS = {
    "ntriples": RdfFormat.N_TRIPLES,
    "nquads": RdfFormat.N_QUADS,
    "turtle": RdfFormat.TURTLE,
    "trig": RdfFormat.TRIG,
    "n3": RdfFormat.N3,
    "rdfxml": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
}


def graph_format(path: str | Path, format: str | None = None) -> RdfFormat:
    """The RDF format of a file: as told (a name, an extension or a media type), or by its extension."""
    told = format if format is not None else without_suffix(path).suffix.removeprefix(".").lower()
    found = (
        GRAPH_FORMATS.get(told) or RdfFormat.from_extension(told) or RdfFormat.from_media_type(told)
        if told
        else None
    )
    if found is None:
        of = (
            f"unknown RDF format '{format}'"
            if format
            else f"cannot tell the RDF format of '{path}' from its name"
        )
        raise UsageError(f"{of}; say one of: {', '.join(GRAPH_FORMATS)}")
    return found


def read_graph(
    source: Source,
    graph: str | None = None,
    format: str | None = None,
    *,
    base: str | None = None,
    name: str = "",
) -> Iterator[Quad]:
    """The quads of a stored graph, in the order written.

    With `graph` every quad goes into that graph, whatever graph name the file gives it; without,
    N-Quads, TriG and JSON-LD keep their graph names and the rest goes into the default graph.
    Relative IRIs are resolved against `base`, by default the address of the file. `name` (by default
    the path) keeps the blank nodes of different files apart.
    """
    where = name_of(source)
    kind = graph_format(where, format)
    target = _target(graph)
    if base is None and isinstance(source, (str, Path)):
        base = Path(source).absolute().as_uri()
    rename = Renamer(file_scope(name or where)).quad
    with open_bytes(source) as reader:
        try:
            yield from _into(target, map(rename, parse(reader, kind, base_iri=base)))
        except SyntaxError as error:
            line = f", line {error.lineno}" if error.lineno is not None else ""
            raise InputError(
                f"{where or 'the graph'}{line}: {reason_of(error)} (read as {kind.name})"
            ) from None


def load_graph(
    store: GraphStore,
    source: Source,
    graph: str | None = None,
    format: str | None = None,
    *,
    base: str | None = None,
    name: str = "",
) -> None:
    """Load an RDF file into the store; see `read_graph` for what the arguments mean.

    InputError with file and line if it is broken; part of a big file may have been loaded by then.
    """
    statements = read_graph(source, graph, format, base=base, name=name)
    if graph_format(name_of(source), format) != RdfFormat.N_TRIPLES or not isinstance(source, _AGAIN):
        store.bulk_extend(statements)
        return
    try:
        _load_lines(store, source, _target(graph), name or name_of(source))
    except SyntaxError:  # who reads statement by statement can say in which line
        store.bulk_extend(statements)


def _load_lines(store: GraphStore, source: Source, graph: NamedNode | None, name: str) -> None:
    """Load N-Triples. The store reads most lines by itself, which is four times as fast: not those with a
    blank node, which is to be renamed, nor those with a datatype, whose literal is to be kept as written."""
    rename, rest = Renamer(file_scope(name)).quad, b""
    with open_bytes(source) as reader:
        while True:
            block = reader.read(BLOCK)
            *lines, rest = (rest + block).split(b"\n") if block else (rest, b"")
            special = [b"^^" in line or b"_:" in line for line in lines]
            store.load_lines(b"\n".join(compress(lines, map(not_, special))), graph)
            quads = map(rename, parse(b"\n".join(compress(lines, special)), RdfFormat.N_TRIPLES))
            store.bulk_extend(_into(graph, quads))
            if not block:
                return


def _target(graph: str | None) -> NamedNode | None:
    try:
        return None if graph is None else NamedNode(graph)
    except ValueError as error:
        raise UsageError(f"'{graph}' cannot name a graph: {error}") from None


def _into(graph: NamedNode | None, quads: Iterable[Quad]) -> Iterable[Quad]:
    """The quads, in this graph if one is given."""
    return quads if graph is None else (Quad(q.subject, q.predicate, q.object, graph) for q in quads)
