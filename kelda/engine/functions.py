"""Which functions a query may call by IRI: found out before it runs, not in the middle of a stream."""

from __future__ import annotations

from functools import cache

from pyoxigraph import NamedNode, Store

from kelda.errors import QueryError
from kelda.lang import algebra as A
from kelda.lang.terms import XSD
from kelda.lang.timestamps import TIMESTAMP
from kelda.lang.walk import nodes

GEOF = "http://www.opengis.net/def/function/geosparql/"
# Those that Oxigraph may have; which of them it has, it is asked.
CASTS = """
boolean double float decimal integer string dateTime date time
duration dayTimeDuration yearMonthDuration gYear gYearMonth gMonth gMonthDay gDay
"""
OF_GEOSPARQL = """
distance area length perimeter buffer envelope convexHull centroid boundary
union intersection difference symDifference relate
sfEquals sfDisjoint sfIntersects sfTouches sfCrosses sfWithin sfContains sfOverlaps
ehEquals ehDisjoint ehMeet ehOverlap ehCovers ehCoveredBy ehInside ehContains
rcc8eq rcc8dc rcc8ec rcc8po rcc8tppi rcc8tpp rcc8ntpp rcc8ntppi
getSRID asWKT asGeoJSON dimension coordinateDimension spatialDimension isEmpty isSimple
"""


def check_functions(query: A.Query) -> None:
    """A QueryError for the first function that nothing here can evaluate."""
    for node in nodes(query.pattern):
        if not isinstance(node, A.FunctionCall):
            continue
        if node.function == TIMESTAMP:
            if not query.windows or len(node.args) % 3 or not node.args:
                raise QueryError(
                    "f:timestamp(?s, ?p, ?o) is the time of a triple in a window: it takes three arguments, "
                    "in a query over streams"
                )
        elif not is_known(node.function):
            raise QueryError(f"unknown function {node.function}; {known_functions(node.function)}")
        elif not is_known(node.function, len(node.args)):
            raise QueryError(f"{node.function} cannot be called with {len(node.args)} arguments")


def known_functions(instead_of: NamedNode) -> str:
    """What can be called by IRI instead, for a person to read."""
    if instead_of.value.startswith(GEOF):
        names = [name for name in OF_GEOSPARQL.split() if is_known(NamedNode(GEOF + name))]
        return f"of GeoSPARQL there are geof:{', geof:'.join(names)}"
    names = [name for name in CASTS.split() if is_known(NamedNode(XSD + name))]
    return (
        f"by IRI there are the casts xsd:{', xsd:'.join(names)}, some functions of GeoSPARQL, and C-SPARQL's "
        "f:timestamp"
    )


@cache
def is_known(function: NamedNode, arguments: int = 1) -> bool:
    """Whether the store's SPARQL evaluator has the function, with so many arguments."""
    given = ", ".join(['""'] * arguments)
    try:
        list(Store().query(f"SELECT ({function}({given}) AS ?x) {{}}"))  # type: ignore[arg-type]
    except RuntimeError:
        return False
    return True
