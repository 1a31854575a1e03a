"""Whether a query looks at the default graph of the stored data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

from kelda.lang import algebra as A


def reads_default_graph(query: A.Query) -> bool:
    """Whether a part of it, wherever it stands, is in no window, no GRAPH and no SERVICE, and no FROM says
    what the default graph is.

    >>> from kelda.lang import parse
    >>> reads_default_graph(parse("SELECT * { GRAPH <a:g> { ?s ?p ?o } FILTER EXISTS { ?s a ?o } }"))
    True
    >>> reads_default_graph(parse("SELECT * { GRAPH <a:g> { ?s ?p ?o FILTER EXISTS { ?s a ?o } } }"))
    False
    """
    dataset = query.dataset
    return dataset.default is None and not dataset.windows and _outside(query.pattern)


def _outside(node: object) -> bool:
    if isinstance(node, A.InWindow | A.InGraph | A.Service):
        return False
    if isinstance(node, A.Triples):
        return bool(node.patterns)
    if isinstance(node, A.PathPattern):
        return True
    if isinstance(node, tuple):
        return any(map(_outside, node))
    if is_dataclass(node) and not isinstance(node, type):
        return any(_outside(getattr(node, f.name)) for f in fields(node))
    return False
