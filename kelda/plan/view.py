"""A CONSTRUCT query as a view: each of its triples once, as long as any solution makes it.

    CONSTRUCT { ?x :p ?y . ?y :q ?x } WHERE P

is asked as

    CONSTRUCT { ?s ?p ?o } WHERE { SELECT DISTINCT ?s ?p ?o { { P  BIND … } UNION { P  BIND … } } }

so that what it sends is what comes into the graph and what goes, and nobody has to count solutions elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from kelda.lang import algebra as A

SUBJECT, PREDICATE, OBJECT = (A.Var(f".made_{part}") for part in "spo")  # no text can name these


def as_view(query: A.Query) -> A.Query:
    """The query whose solutions are the triples of a CONSTRUCT query."""
    parts = [_made(query.pattern, triple) for triple in query.template]
    every = reduce(A.Union, parts)
    pattern = A.Distinct(A.Project(every, (SUBJECT, PREDICATE, OBJECT)))
    return replace(query, pattern=pattern, template=(A.TriplePattern(SUBJECT, PREDICATE, OBJECT),))


def _made(pattern: A.Pattern, triple: A.TriplePattern) -> A.Pattern:
    for var, term in ((SUBJECT, triple.s), (PREDICATE, triple.p), (OBJECT, triple.o)):
        assert not isinstance(term, A.Param)
        value = A.VarRef(term) if isinstance(term, A.Var) else A.Const(term)
        pattern = A.Extend(pattern, var, value)
    return pattern
