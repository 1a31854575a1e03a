"""Merging: what the shards say of one batch becomes the answers of the queries, in time order.

A solution arises on one shard, so answers are simply put together; only where a query does not show the
variable it is spread by can the same row go on one shard and come on another in one instant. Such a
query's shards tell both differences, and what cancels out is left out here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kelda.engine.answer import Answer
from kelda.engine.deltas import Deltas
from kelda.engine.incremental import decoded
from kelda.engine.reporter import Sent, repeated
from kelda.lang import algebra as A
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary
from kelda.shards.planner import Standing
from kelda.shards.shard import Outcome, Told


def merge(outcomes: Sequence[Outcome], standing: Mapping[str, Standing]) -> list[Answer]:
    """All answers of a batch, in time order."""
    dictionary = Dictionary()
    answers: list[Answer] = []
    groups: dict[tuple[object, ...], list[Told]] = {}
    for outcome in outcomes:
        answers += outcome.answers
        if outcome.entries is not None:
            dictionary.add_entries(outcome.entries)
        for told in outcome.told:
            query = standing.get(told.names[0])
            if query is not None:
                key = (told.columns, query.output, query.spread) if QUERY in told.columns else (query.name,)
                groups.setdefault(key, []).append(told)
    for group in groups.values():
        answers += _answers(group, standing, dictionary)
    answers.sort(key=lambda answer: answer.time)
    return answers


def _answers(group: list[Told], standing: Mapping[str, Standing], dictionary: Dictionary) -> list[Answer]:
    names = list(dict.fromkeys(name for told in group for name in told.names))
    first = standing[group[0].names[0]]
    sent = _together(group, names)
    if first.spread is not None and first.spread.merged and first.output is not A.Output.RSTREAM:
        sent = _netted(sent, first.output)
    elif len(group) > 1:
        order = np.lexsort((sent.sign, sent.time))
        sent = Sent(sent.columns, sent.time[order], sent.sign[order], sent.values[:, order])
    return decoded(first.query, [n if n in standing else "" for n in names], sent, dictionary)


def _together(group: list[Told], names: list[str]) -> Sent:
    """The shards' rows one after another, with one numbering of the queries."""
    columns = group[0].columns
    number = {name: i for i, name in enumerate(names)}
    parts = []
    for told in group:
        values = told.values
        if QUERY in columns:
            at = columns.index(QUERY)
            values = values.copy()
            values[at] = np.array([number[n] for n in told.names], np.int64)[values[at]]
        parts.append(values)
    return Sent(
        columns,
        np.concatenate([told.time for told in group]),
        np.concatenate([told.sign for told in group]),
        np.concatenate(parts, axis=1),
    )


def _netted(sent: Sent, output: A.Output) -> Sent:
    order = np.argsort(sent.time, kind="stable")  # the shards' rows come one shard after another
    deltas = Deltas(sent.columns, sent.time[order], sent.sign[order], sent.values[:, order]).consolidated()
    wanted = {
        A.Output.ISTREAM: deltas.weight > 0,
        A.Output.DSTREAM: deltas.weight < 0,
        A.Output.CHANGES: np.ones(len(deltas), np.bool_),
    }[output]
    some = deltas.select(wanted)
    order = np.lexsort((some.weight > 0, some.time))
    return repeated(sent.columns, some.time[order], some.weight[order], some.values[:, order])
