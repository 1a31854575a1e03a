"""From columns of ids to answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Quad, Triple

from kelda.engine.answer import Answer, Value
from kelda.engine.oneshot import instantiate
from kelda.engine.sent import Sent
from kelda.lang import algebra as A
from kelda.lang.scope import visible
from kelda.lang.to_sparql import variable_name
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary


def decoded(query: A.Query, names: Sequence[str], sent: Sent, dictionary: Dictionary) -> list[Answer]:
    """What was sent, as answers in the same order. If there is a column `.q`, it tells which of `names` a
    row is for; else all are for the first."""
    sent = sent.one_by_one()
    if QUERY in sent.columns:
        whose = sent.values[sent.columns.index(QUERY)]
        others = [i for i, name in enumerate(sent.columns) if name != QUERY]
        plain = sent.with_values(tuple(sent.columns[i] for i in others), sent.values[others])
        answers = decoded(query, [""], plain, dictionary)
        return [replace(a, query=names[q]) for a, q in zip(answers, whose.tolist(), strict=True)]
    if query.form is A.Form.ASK:
        return [
            Answer(names[0], int(t), "+" if sign > 0 else "-", boolean=bool(yes))
            for t, sign, yes in zip(sent.time, sent.sign, sent.values[0], strict=True)
        ]
    terms = [dictionary.terms(sent.values[i]) for i in range(len(sent.columns))]
    unbound: NDArray[np.bool_] = sent.values == 0
    rows: list[dict[str, Value]] = [
        {n: terms[c][i] for c, n in enumerate(sent.columns) if not unbound[c, i]}  # type: ignore[misc]
        for i in range(len(sent))
    ]
    signs = ["+" if sign > 0 else "-" for sign in sent.sign]
    if query.form is A.Form.SELECT:
        return [
            Answer(names[0], int(t), sign, bindings=row)
            for t, sign, row in zip(sent.time, signs, rows, strict=True)
        ]
    return _constructed(query, names[0], sent, signs, rows)


def _constructed(
    query: A.Query, name: str, sent: Sent, signs: list[str], rows: list[dict[str, Value]]
) -> list[Answer]:
    """One answer per instant and sign, with the template filled in."""
    variables = {v.name: variable_name(v) for v in visible(query.pattern)}
    built: dict[tuple[int, str], dict[Triple | Quad, None]] = {}
    for i, (t, sign, row) in enumerate(zip(sent.time, signs, rows, strict=True)):
        triples = instantiate(query.template, {variables[k]: v for k, v in row.items()}, f"t{t}s{i}")
        built.setdefault((int(t), sign), {}).update(dict.fromkeys(triples))
    return [Answer(name, t, sign, triples=tuple(ts)) for (t, sign), ts in built.items() if ts]
