"""Blank nodes that belong to one record: renamed, always in the same way.

The new label says which stream, which record and which blank node of the record (by order of
appearance), so a replay of the stream gives the same labels and no two records share one.
"""

from __future__ import annotations

from collections.abc import Iterable

import xxhash
from pyoxigraph import BlankNode, Quad, Triple


def scope_of(name: str, ordinal: int) -> str:
    """The start of every blank node label of record number `ordinal` of stream `name`."""
    stream = f"s{xxhash.xxh3_64_hexdigest(name.encode())}" if name else ""
    return f"{stream}r{ordinal}"


def scoped(quads: Iterable[Quad], scope: str) -> tuple[Quad, ...]:
    """The quads with blank nodes `{scope}b0`, `{scope}b1`, … in order of appearance."""
    labels: dict[str, BlankNode] = {}

    def rename(term):  # type: ignore[no-untyped-def]  # any term in, the same kind out
        if isinstance(term, BlankNode):
            new = labels.get(term.value)
            if new is None:
                new = labels[term.value] = BlankNode(f"{scope}b{len(labels)}")
            return new
        if isinstance(term, Triple):
            return Triple(rename(term.subject), term.predicate, rename(term.object))
        return term

    special = (BlankNode, Triple)
    renamed = []
    for quad in quads:
        subject, object, graph = quad.subject, quad.object, quad.graph_name
        if isinstance(subject, special) or isinstance(object, special) or isinstance(graph, BlankNode):
            quad = Quad(rename(subject), quad.predicate, rename(object), rename(graph))
        renamed.append(quad)
    return tuple(renamed)
