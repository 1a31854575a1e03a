"""The W3C SPARQL test suites as plain cases: which query, on which data, with which expected result.

The suites lie beside the repository (`../shared/data/w3c/sparql`, or `$KELDA_DATA/w3c/sparql`).
Every document has an IRI below `ROOT`; relative IRIs in manifests, queries, data and results are
resolved against it, and `document()` finds the file again, so that FROM <data.ttl> reads a local file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from .ignored import OUT_OF_SCOPE

ROOT = "https://w3c.github.io/rdf-tests/sparql/"
MANIFESTS = (
    "sparql11/manifest-all.ttl",
    "sparql10/manifest.ttl",
    "sparql10/extended-manifest-evaluation.ttl",
)

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
UT = "http://www.w3.org/2009/sparql/tests/test-update#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"

Node = NamedNode | BlankNode | Literal | Triple


def data_root() -> Path:
    """Where the suites lie; the folder may be absent."""
    shared = Path(__file__).parents[3] / "shared" / "data"
    return Path(os.environ.get("KELDA_DATA", shared)) / "w3c" / "sparql"


def available() -> bool:
    """Whether the suites are on this machine."""
    return all((data_root() / manifest).is_file() for manifest in MANIFESTS)


class Kind(Enum):
    """What a case asks for. `OTHER` is everything that is not about the query language."""

    EVALUATION = "evaluation"
    CSV = "csv"
    UPDATE = "update"
    POSITIVE_SYNTAX = "positive syntax"
    NEGATIVE_SYNTAX = "negative syntax"
    OTHER = "other"


KINDS = {
    "QueryEvaluationTest": Kind.EVALUATION,
    "CSVResultFormatTest": Kind.CSV,
    "UpdateEvaluationTest": Kind.UPDATE,
    "PositiveSyntaxTest": Kind.POSITIVE_SYNTAX,
    "PositiveSyntaxTest11": Kind.POSITIVE_SYNTAX,
    "NegativeSyntaxTest": Kind.NEGATIVE_SYNTAX,
    "NegativeSyntaxTest11": Kind.NEGATIVE_SYNTAX,
    "PositiveUpdateSyntaxTest11": Kind.POSITIVE_SYNTAX,
    "NegativeUpdateSyntaxTest11": Kind.NEGATIVE_SYNTAX,
}


@dataclass(frozen=True, slots=True)
class Contents:
    """What is stored before or after an update: documents of the default graph, and named graphs with
    theirs."""

    data: tuple[str, ...]
    graphs: tuple[tuple[str, str], ...]

    def quads(self) -> Iterator[Quad]:
        """All of it, with blank nodes that no two documents share."""
        for i, iri in enumerate(self.data):
            yield from quads(iri, f"d{i}")
        for i, (name, iri) in enumerate(self.graphs):
            yield from quads(iri, f"g{i}", NamedNode(name))


@dataclass(frozen=True, slots=True)
class Case:
    """One manifest entry. `id` is suite/group/name, e.g. sparql11/aggregates/agg01.

    `data` and `graphs` are document IRIs: the default graph's and the named graphs'. Of an update, `before`
    and `after` say what is stored. `type` is the manifest's own name for its kind; `lax` allows REDUCED to
    drop duplicates or not.
    """

    id: str
    type: str
    kind: Kind
    query: str
    data: tuple[str, ...] = ()
    graphs: tuple[str, ...] = ()
    result: str | None = None
    lax: bool = False
    before: Contents | None = None
    after: Contents | None = None

    @property
    def suite(self) -> str:
        """The suite's folder: sparql10 or sparql11."""
        return self.id.split("/")[0]

    @property
    def group(self) -> str:
        """suite/group, the folder of the manifest."""
        return self.id.rpartition("/")[0]

    @property
    def evaluates(self) -> bool:
        """Whether an expected result is to be met (rather than only parsing)."""
        return self.kind in (Kind.EVALUATION, Kind.CSV)

    @property
    def parses(self) -> bool:
        """Whether the text is only to be taken or refused."""
        return self.kind in (Kind.POSITIVE_SYNTAX, Kind.NEGATIVE_SYNTAX)

    @property
    def is_update(self) -> bool:
        """Whether the text is SPARQL Update, also where the manifest calls it a query."""
        return self.query.endswith(".ru")

    @property
    def out_of_scope(self) -> str | None:
        """Why Kelda does not take this case on at all, or None."""
        by_group = OUT_OF_SCOPE.get(self.group)
        return by_group or (OUT_OF_SCOPE.get(self.type, self.type) if self.kind is Kind.OTHER else None)

    def text(self) -> str:
        """The query as it is written."""
        return document(self.query).read_text(encoding="utf-8")

    def ordered(self) -> bool:
        """Whether the query ends in ORDER BY (one inside a sub-select orders nothing)."""
        return "ORDER BY" in self.text().upper().rpartition("}")[2]


def document(iri: str) -> Path:
    """The local file of a document's IRI."""
    if not iri.startswith(ROOT):
        raise FileNotFoundError(f"{iri} is not a document of the test suites (they are below {ROOT})")
    return data_root() / iri.removeprefix(ROOT)


@cache
def triples(iri: str) -> tuple[Triple, ...]:
    """The triples of an RDF document, in order, each once (a graph is a set), labels as parsed."""
    path = document(iri)
    syntax = {".ttl": RdfFormat.TURTLE, ".rdf": RdfFormat.RDF_XML, ".nt": RdfFormat.N_TRIPLES}[path.suffix]
    quads = parse(path.read_bytes(), syntax, base_iri=iri)
    return tuple(dict.fromkeys(quad.triple for quad in quads))


def load(iri: str, scope: str) -> list[Triple]:
    """The document's triples with blank nodes that no other `scope` shares."""

    def rename(term: Node) -> Node:
        return BlankNode(f"{scope}{term.value}") if isinstance(term, BlankNode) else term

    return [Triple(rename(t.subject), t.predicate, rename(t.object)) for t in triples(iri)]  # type: ignore[arg-type]


class Graph:
    """A document as a graph to walk: `value`, `values`, `items` of an RDF list."""

    def __init__(self, iri: str) -> None:
        self._objects: dict[tuple[Node, str], list[Node]] = {}
        self.subjects: dict[tuple[str, Node], list[Node]] = {}
        for t in triples(iri):
            self._objects.setdefault((t.subject, t.predicate.value), []).append(t.object)
            self.subjects.setdefault((t.predicate.value, t.object), []).append(t.subject)

    def values(self, subject: Node, predicate: str) -> list[Node]:
        """All objects of subject and predicate, in document order."""
        return self._objects.get((subject, predicate), [])

    def value(self, subject: Node, predicate: str) -> Node | None:
        """The one object, or None."""
        found = self.values(subject, predicate)
        return found[0] if found else None

    def text(self, subject: Node, predicate: str) -> str | None:
        """The text of the one literal that is the object, or None."""
        found = self.value(subject, predicate)
        return found.value if isinstance(found, Literal) else None

    def texts(self, subject: Node, predicate: str) -> list[str]:
        """The texts of all literals among the objects."""
        return [found.value for found in self.values(subject, predicate) if isinstance(found, Literal)]

    def items(self, subject: Node, predicate: str) -> Iterator[Node]:
        """The members of the RDF list that is the object."""
        cell = self.value(subject, predicate)
        while cell is not None and cell != NamedNode(RDF + "nil"):
            item = self.value(cell, RDF + "first")
            assert item is not None, f"a list cell without a value: {cell}"
            yield item
            cell = self.value(cell, RDF + "rest")


def iris(nodes: list[Node]) -> tuple[str, ...]:
    """The IRIs among nodes (the others describe protocol steps and the like)."""
    return tuple(node.value for node in nodes if isinstance(node, NamedNode))


def manifest(iri: str) -> Iterator[Case]:
    """The cases of a manifest and of those it includes, in order."""
    graph = Graph(iri)
    (me,) = graph.subjects[RDF + "type", NamedNode(MF + "Manifest")]
    included, entries = list(graph.items(me, MF + "include")), list(graph.items(me, MF + "entries"))
    if not included and not entries:
        raise ValueError(f"{iri} lists no tests")
    for other in iris(included):
        yield from manifest(other)
    group = iri.removeprefix(ROOT).rpartition("/")[0]
    for entry in entries:
        yield read_case(graph, entry, group)


def read_case(graph: Graph, entry: Node, group: str) -> Case:
    """One manifest entry."""
    assert isinstance(entry, NamedNode), f"{group}: an entry without a name"
    types = [t.rpartition("#")[2] for t in iris(graph.values(entry, RDF + "type"))]
    type = next((t for t in types if t in KINDS), types[0])
    action = graph.value(entry, MF + "action")
    described = iris(graph.values(action, QT + "query")) if action else ()
    # Syntax tests name the query itself; evaluation tests describe query and data; protocol tests neither.
    requests = iris(graph.values(action, UT + "request")) if action else ()
    queries = described or requests or iris([action] if action else [])
    updates = KINDS.get(type) is Kind.UPDATE
    return Case(
        id=f"{group}/{entry.value.rpartition('#')[2]}",
        type=type,
        kind=KINDS.get(type, Kind.OTHER),
        query=queries[0] if queries else "",
        data=iris(graph.values(action, QT + "data")) if action else (),
        graphs=iris(graph.values(action, QT + "graphData")) if action else (),
        result=next(iter(iris(graph.values(entry, MF + "result"))), None),
        lax=graph.value(entry, MF + "resultCardinality") == NamedNode(MF + "LaxCardinality"),
        before=contents(graph, action) if updates else None,
        after=contents(graph, graph.value(entry, MF + "result")) if updates else None,
    )


def contents(graph: Graph, node: Node | None) -> Contents:
    """What a manifest says is stored."""
    assert node is not None, "an update without an action or a result"
    named = graph.values(node, UT + "graphData")
    return Contents(
        iris(graph.values(node, UT + "data")),
        tuple((graph.texts(one, LABEL)[0], iris(graph.values(one, UT + "graph"))[0]) for one in named),
    )


@cache
def cases() -> tuple[Case, ...]:
    """Every case of both suites; none where the suites are absent."""
    if not available():
        return ()
    return tuple(case for path in MANIFESTS for case in manifest(ROOT + path))


def quads(iri: str, scope: str, graph: NamedNode | None = None) -> Iterator[Quad]:
    """The document as quads of a named graph, or of the default graph."""
    for t in load(iri, scope):
        yield Quad(t.subject, t.predicate, t.object, graph)
