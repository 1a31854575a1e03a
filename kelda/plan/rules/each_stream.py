"""A window on every stream is the union over the streams there are, each of which binds the variable.

    STREAM ?s {P}   becomes   { STREAM <a> {P} VALUES ?s {<a>} } UNION { STREAM <b> {P} VALUES ?s {<b>} }

by the definition of `STREAM ?s`, where <a> and <b> are all the streams. A query is rewritten again for one
that is new.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import reduce

from pyoxigraph import NamedNode

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.walk import transform


def reads_every_stream(query: A.Query) -> bool:
    """Whether the query has a window on every stream."""
    return any(isinstance(w.stream, A.Var) for w in query.windows)


@roomy()
def each_stream(query: A.Query, streams: Collection[str]) -> A.Query:
    """The rule. `streams`: those that ?var ranges over; without any the query stays as it is."""
    variables = {w.name: w.stream for w in query.windows if isinstance(w.stream, A.Var)}
    if not variables or not streams:
        return query

    def name(window: str, stream: str) -> str:
        return f"{window} on {stream}"

    def rewrite(node: object) -> object:
        if not isinstance(node, A.InWindow) or node.window not in variables:
            return node
        ways: list[A.Pattern] = [
            A.Join(
                A.InWindow(name(node.window, stream), node.pattern),
                A.Values((variables[node.window],), ((NamedNode(stream),),)),
            )
            for stream in streams
        ]
        return reduce(A.Union, ways)

    windows: list[A.WindowDef] = []
    for window in query.windows:
        if window.name in variables:
            windows += [replace(window, name=name(window.name, s), stream=NamedNode(s)) for s in streams]
        else:
            windows.append(window)
    return replace(query, pattern=transform(query.pattern, rewrite), windows=tuple(windows))
