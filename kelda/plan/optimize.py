"""A query as it is run: rewritten by each rule in turn, with the same answers."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kelda.lang import algebra as A
from kelda.plan.rules.deterministic import deterministic
from kelda.plan.rules.each_stream import each_stream
from kelda.plan.rules.inlined import inlined
from kelda.plan.rules.projected import projected

Rule = Callable[[A.Query], A.Query]

RULES: tuple[Rule, ...] = (deterministic, inlined, projected)


def optimize(query: A.Query, streams: Collection[str] = ()) -> A.Query:
    """The rewritten query. STREAM ?var becomes the union over `streams`, if there are any; that is the last
    rule, for it multiplies the query."""
    for rule in RULES:
        query = rule(query)
    return each_stream(query, streams)
