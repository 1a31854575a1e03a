"""The graphs that queries read: stored ones and the contents of windows, in one Oxigraph store.

Terms come out as they went in, whatever the store does to numbers and dates (`kelda.rdf.exact`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyoxigraph import (
    BlankNode,
    DefaultGraph,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    QueryTriples,
    RdfFormat,
    Store,
)

from kelda.rdf.aggregates import AGGREGATES
from kelda.rdf.exact import Needs, quad_from_store, quad_to_store, to_store_with_needs
from kelda.rdf.operators import FUNCTIONS, Functions


class GraphStore:
    """A set of quads. `needs` grows with the literals that come: the texts of queries must be written for it
    (`to_sparql(needs=…)`)."""

    def __init__(self, quads: Iterable[Quad] = ()) -> None:
        self._store = Store()
        self.needs = Needs.NOTHING
        self.extend(quads)

    def __len__(self) -> int:
        return len(self._store)

    def __iter__(self) -> Iterator[Quad]:
        return (quad_from_store(quad) for quad in self._store)

    def __contains__(self, quad: Quad) -> bool:
        return quad_to_store(quad) in self._store

    def add(self, quad: Quad) -> None:
        """Put a quad in."""
        self._store.add(self._stored(quad))

    def extend(self, quads: Iterable[Quad]) -> None:
        """Put quads in."""
        self._store.extend(map(self._stored, quads))

    def bulk_extend(self, quads: Iterable[Quad]) -> None:
        """Put many quads in, fast."""
        self._store.bulk_extend(map(self._stored, quads))

    def load_lines(self, text: bytes, graph: NamedNode | None) -> None:
        """Put the statements of N-Triples in, without blank nodes and datatypes."""
        self._store.bulk_load(text, RdfFormat.N_TRIPLES, to_graph=graph)

    def remove(self, quad: Quad) -> None:
        """Take a quad out."""
        self._store.remove(quad_to_store(quad))

    def remove_graph(self, name: str) -> None:
        """Take a whole named graph out."""
        self._store.remove_graph(NamedNode(name))

    def clear_default_graph(self) -> None:
        """Take out all that is in the default graph."""
        self._store.clear_graph(DefaultGraph())

    def named_graphs(self) -> tuple[NamedNode | BlankNode, ...]:
        """The names of all graphs that hold anything."""
        return tuple(self._store.named_graphs())

    def merge(self, graphs: Iterable[NamedNode | BlankNode | DefaultGraph], into: str) -> None:
        """Copy graphs into one: their RDF merge, without the copies that a union of them would show."""
        target = NamedNode(into)
        for graph in graphs:
            quads = self._store.quads_for_pattern(None, None, None, graph)
            self._store.extend(Quad(q.subject, q.predicate, q.object, target) for q in list(quads))

    def query(
        self,
        text: str,
        *,
        base: str | None,
        default_graphs: list[NamedNode | BlankNode | DefaultGraph],
        named_graphs: list[NamedNode | BlankNode] | None,
        functions: Functions | None = None,
    ) -> QueryBoolean | QuerySolutions | QueryTriples:
        """Ask SPARQL text; terms of the answer, and of arguments of `functions`, are as they are stored."""
        return self._store.query(
            text,
            base_iri=base,
            default_graph=default_graphs,
            named_graphs=named_graphs,
            custom_functions=FUNCTIONS if functions is None else FUNCTIONS | functions,
            custom_aggregate_functions=AGGREGATES,
        )

    def _stored(self, quad: Quad) -> Quad:
        written = quad.object
        stored, needs = to_store_with_needs(written)
        if needs:
            self.needs |= needs
        return quad if stored is written else Quad(quad.subject, quad.predicate, stored, quad.graph_name)
