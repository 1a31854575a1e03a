"""The solutions of a query as ids."""

from __future__ import annotations

from kelda.ask.facts import Stored
from kelda.ask.prepared import PreparedAsk
from kelda.ask.table import Ids
from kelda.lang import algebra as A
from kelda.plan.rules.deterministic import deterministic
from kelda.rdf.dictionary import Dictionary


def solutions(
    query: A.Query, view: Stored, dictionary: Dictionary, *, now: int, seed: int | str | None = None
) -> tuple[tuple[str, ...], Ids]:
    """The columns of a SELECT and its solutions, 0 where a variable is unbound. As a bag they are a function
    of what is stored, of `now` (ms) and of `seed`, also where SPARQL leaves a choice."""
    found = PreparedAsk(deterministic(query), dictionary).run(view, now_ms=now, seed=seed)
    return found.columns, found.ids
