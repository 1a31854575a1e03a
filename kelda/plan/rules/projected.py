"""Every query ends in a projection, on what its answers are made of.

    ASK {P}              is there a solution of   SELECT () {P}              whatever its order
    CONSTRUCT T {P}      T for each solution of   SELECT (all that P shows) {P}

An ASK looks at no value and at no order. A CONSTRUCT is told apart by whole solutions, not by what its
template takes of them, so nothing that the pattern shows may go.
"""

from __future__ import annotations

from dataclasses import replace

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.scope import visible


@roomy()
def projected(query: A.Query) -> A.Query:
    """The rule."""
    pattern = query.pattern
    match query.form:
        case A.Form.ASK:
            unordered = pattern.pattern if isinstance(pattern, A.OrderBy) else pattern
            return replace(query, pattern=A.Project(unordered, ()))
        case A.Form.CONSTRUCT:
            streams = {w.name: w.stream for w in query.windows}
            variables = tuple(sorted(visible(pattern, streams)))
            return replace(query, pattern=_below_modifiers(pattern, variables))
    return query


def _below_modifiers(pattern: A.Pattern, variables: tuple[A.Var, ...]) -> A.Pattern:
    """The pattern with a projection where that of a SELECT stands, if it has none there."""
    match pattern:
        case A.Slice(inner) | A.Distinct(inner) | A.Reduced(inner):
            return replace(pattern, pattern=_below_modifiers(inner, variables))
        case A.Project():
            return pattern
    return A.Project(pattern, variables)
