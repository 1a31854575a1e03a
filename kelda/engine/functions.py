"""Which functions a query may call by IRI: found out before it runs, not in the middle of a stream."""

from __future__ import annotations

from functools import cache

from pyoxigraph import NamedNode, Store

from kelda.errors import QueryError
from kelda.lang import algebra as A
from kelda.lang.walk import nodes


def check_functions(query: A.Query) -> None:
    """A QueryError for the first function that nothing here can evaluate."""
    for node in nodes(query.pattern):
        if isinstance(node, A.FunctionCall) and not is_known(node.function):
            raise QueryError(
                f"unknown function {node.function}; known by IRI are the xsd: casts of SPARQL 1.1 "
                "(xsd:integer, xsd:dateTime, …) and the GeoSPARQL functions"
            )


@cache
def is_known(function: NamedNode) -> bool:
    """Whether the store's SPARQL evaluator has the function."""
    try:
        list(Store().query(f'SELECT ({function}("") AS ?x) {{}}'))  # type: ignore[arg-type]
    except RuntimeError:
        return False
    return True
