"""Whether a query looks at the default graph of the stored data."""

from __future__ import annotations

from kelda.lang import algebra as A
from kelda.lang.walk import children


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


def _outside(pattern: A.Pattern) -> bool:
    left = [pattern]
    while left:
        node = left.pop()
        if isinstance(node, A.PathPattern) or (isinstance(node, A.Triples) and node.patterns):
            return True
        if not isinstance(node, A.InWindow | A.InGraph | A.Service):
            left += children(node)
    return False
