"""Blank nodes that belong to one record or one file: renamed, always in the same way.

The new label says where the blank node is from and which one it is, by order of appearance. So a
replay gives the same labels, and no two records or files share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import xxhash
from pyoxigraph import BlankNode, Quad, Triple


def scope_of(name: str, ordinal: int) -> str:
    """The start of every blank node label of record number `ordinal` of stream `name`."""
    stream = f"s{xxhash.xxh3_64_hexdigest(name.encode())}" if name else ""
    return f"{stream}r{ordinal}"


def file_scope(name: str) -> str:
    """The start of every blank node label of a stored file."""
    return f"f{xxhash.xxh3_64_hexdigest(name.encode())}"


class Renamer:
    """Gives blank nodes the labels `{scope}b0`, `{scope}b1`, … in order of appearance."""

    def __init__(self, scope: str) -> None:
        self._scope = scope
        self._new: dict[str, BlankNode] = {}

    def term(self, term: Any) -> Any:
        """A term of the same kind, renamed if it is, or names, a blank node."""
        if isinstance(term, BlankNode):
            new = self._new.get(term.value)
            if new is None:
                new = self._new[term.value] = BlankNode(f"{self._scope}b{len(self._new)}")
            return new
        if isinstance(term, Triple):
            return Triple(self.term(term.subject), term.predicate, self.term(term.object))
        return term

    def quad(self, quad: Quad) -> Quad:
        subject, object, graph = quad.subject, quad.object, quad.graph_name
        if isinstance(subject, _NAMES_ONE) or isinstance(object, _NAMES_ONE) or isinstance(graph, BlankNode):
            return Quad(self.term(subject), quad.predicate, self.term(object), self.term(graph))
        return quad


_NAMES_ONE = (BlankNode, Triple)


def scoped(quads: Iterable[Quad], scope: str) -> tuple[Quad, ...]:
    """The quads with their blank nodes renamed."""
    renamer = Renamer(scope)
    return tuple(renamer.quad(quad) for quad in quads)
