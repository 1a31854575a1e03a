"""Merging: what the shards say of one batch becomes the answers of the queries, in time order.

A solution arises on one shard, so answers are simply put together; only where a query does not show the
variable it is spread by can the same row go on one shard and come on another in one instant. Such a
query's shards tell both differences, and what cancels out is left out here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Group:
    """What one query says, or several of one shape (column `.q` tells which of `names`)."""

    query: A.Query
    names: list[str]
    sent: Sent


@dataclass(frozen=True, slots=True)
class Merged:
    """The answers of a batch as columns; terms are made when somebody looks."""

    groups: list[Group]
    dictionary: Dictionary
    others: list[Answer]  # of queries by the reference evaluator

    def __len__(self) -> int:
        return sum(len(group.sent) for group in self.groups) + len(self.others)

    @property
    def times(self) -> np.ndarray:
        """The time of each answer, in no order."""
        others = np.array([answer.time for answer in self.others], np.int64)
        return np.concatenate([*(group.sent.time for group in self.groups), others])

    def answers(self, without: Collection[str] = ()) -> list[Answer]:
        """All answers but those of some queries, in time order."""
        found = [a for a in self.others if a.query not in without]
        for group in self.groups:
            if len(group.names) > 1 or group.names[0] not in without:
                some = decoded(group.query, group.names, group.sent, self.dictionary)
                found += [a for a in some if a.query not in without] if without else some
        found.sort(key=lambda answer: answer.time)
        return found

    def of(self, name: str) -> list[Answer]:
        """The answers of one query, in time order."""
        found = [a for a in self.others if a.query == name]
        for group in self.groups:
            if name in group.names:
                sent = group.sent
                if QUERY in sent.columns:
                    mine = sent.values[sent.columns.index(QUERY)] == group.names.index(name)
                    sent = Sent(sent.columns, sent.time[mine], sent.sign[mine], sent.values[:, mine])
                found += decoded(group.query, group.names, sent, self.dictionary)
        return found


def merge(outcomes: Sequence[Outcome], standing: Mapping[str, Standing]) -> Merged:
    """What the shards said to one batch."""
    merged = Merged([], Dictionary(), [])
    groups: dict[tuple[object, ...], list[Told]] = {}
    for outcome in outcomes:
        merged.others.extend(a for a in outcome.answers if a.query in standing)
        if outcome.entries is not None:
            merged.dictionary.add_entries(outcome.entries)
        for told in outcome.told:
            query = standing.get(told.names[0])
            if query is not None:
                key = (told.columns, query.output, query.spread) if QUERY in told.columns else (query.name,)
                groups.setdefault(key, []).append(told)
    merged.groups.extend(_group(group, standing) for group in groups.values())
    return merged


def _group(group: list[Told], standing: Mapping[str, Standing]) -> Group:
    names = list(dict.fromkeys(name for told in group for name in told.names))
    first = standing[group[0].names[0]]
    sent = _together(group, names)
    if first.spread is not None and first.spread.merged and first.output is not A.Output.RSTREAM:
        sent = _netted(sent, first.output)
    elif len(group) > 1:
        order = np.lexsort((sent.sign, sent.time))
        sent = Sent(sent.columns, sent.time[order], sent.sign[order], sent.values[:, order])
    return Group(first.query, names, sent)


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
