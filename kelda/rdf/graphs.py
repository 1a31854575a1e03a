"""Stored graphs: RDF files of any format, compressed or not, into an Oxigraph store.

Blank nodes are renamed by the file's name and their order in it: two files never share one, and
loading a file again, here or on another machine, gives the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kelda.errors import InputError, UsageError
from kelda.rdf.compression import Source, name_of, open_bytes, without_suffix
from kelda.rdf.framings.base import reason_of
from kelda.rdf.framings.blanks import Renamer, file_scope
from kelda.rdf.graphstore import GraphStore

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
    target = None
    if graph is not None:
        try:
            target = NamedNode(graph)
        except ValueError as error:
            raise UsageError(f"'{graph}' cannot name a graph: {error}") from None
    if base is None and isinstance(source, (str, Path)):
        base = Path(source).absolute().as_uri()
    rename = Renamer(file_scope(name or where)).quad
    with open_bytes(source) as reader:
        try:
            for quad in parse(reader, kind, base_iri=base):
                quad = rename(quad)
                yield quad if target is None else Quad(quad.subject, quad.predicate, quad.object, target)
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
    store.bulk_extend(read_graph(source, graph, format, base=base, name=name))
