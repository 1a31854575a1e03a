"""Which stored graphs a query reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyoxigraph import BlankNode, DefaultGraph, NamedNode

from kelda.lang import algebra as A
from kelda.lang.walk import children

GraphName = NamedNode | BlankNode | DefaultGraph


@dataclass(frozen=True, slots=True)
class StoredReads:
    """The default graph, graphs by their names, or `every` named graph (GRAPH ?g)."""

    default: bool = False
    named: frozenset[NamedNode] = frozenset()
    every: bool = False

    def __contains__(self, graph: GraphName) -> bool:
        if isinstance(graph, DefaultGraph):
            return self.default
        return self.every or graph in self.named

    def any_of(self, graphs: Iterable[GraphName]) -> bool:
        """Whether it reads one of them."""
        return any(graph in self for graph in graphs)


def stored_reads(query: A.Query) -> StoredReads:
    """What a query reads, by its text alone.

    >>> from kelda.lang import parse
    >>> stored_reads(parse("SELECT * { ?s ?p ?o FILTER EXISTS { GRAPH <a:g> { ?s ?p ?o } } }"))
    StoredReads(default=True, named=frozenset({<NamedNode value=a:g>}), every=False)
    >>> stored_reads(parse("SELECT * FROM <a:h> { ?s ?p ?o }"))
    StoredReads(default=False, named=frozenset({<NamedNode value=a:h>}), every=False)
    >>> stored_reads(parse("SELECT * { STREAM <a:s> [NOW] { ?s ?p ?o } GRAPH ?g { ?s ?q ?x } }"))
    StoredReads(default=False, named=frozenset(), every=True)
    """
    bare = query.form is A.Form.DESCRIBE
    names: set[NamedNode] = set()
    every = False
    left: list[tuple[A.Pattern, bool]] = [(query.pattern, True)]  # with whether it reads the default graph
    while left:
        node, outside = left.pop()
        match node:
            case A.Service():
                continue
            case A.InGraph(name, _):
                outside = False
                if isinstance(name, NamedNode):
                    names.add(name)
                else:
                    every = True
            case A.InWindow():
                outside = False
            case A.PathPattern():
                bare |= outside
            case A.Triples(patterns):
                bare |= outside and bool(patterns)
        left += [(child, outside) for child in children(node)]
    dataset = query.dataset
    if dataset.named is not None:
        names &= set(dataset.named)
        if every:
            names, every = set(dataset.named), False
    if bare and dataset.default is not None:
        names |= set(dataset.default)
    return StoredReads(bare and dataset.default is None, frozenset(names), every)
