"""Merging: what the shards say of one batch becomes the answers of the queries, in time order.

A solution arises on one shard, so answers are simply put together; only where a query does not show the
variable it is spread by can the same row go on one shard and come on another in one instant. Such a
query's shards tell both differences, and what cancels out is left out here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kelda.engine.answer import Answer
from kelda.engine.block import Block, blocks_of
from kelda.engine.columnar import Columnar
from kelda.engine.decode import decoded
from kelda.engine.deltas import Deltas
from kelda.engine.reporter import repeated
from kelda.engine.sent import Sent
from kelda.lang import algebra as A
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary, Entries
from kelda.shards.planner import Standing
from kelda.shards.shard import Outcome, Told, without


@dataclass(frozen=True)
class Group:
    """What the shards say of one query, or of several of one shape (column `.q` tells which of `names`).
    It is put together when somebody looks."""

    query: A.Query
    names: list[str]
    told: list[Told]
    netted: A.Output | None  # if what cancels out is to be left out: what is sent of the rest

    def __len__(self) -> int:
        return sum(len(told.sent) for told in self.told) if self.netted is None else len(self.sent)

    @cached_property
    def sent(self) -> Sent:
        return self._put_together(self.told)

    @property
    def times(self) -> np.ndarray:
        """The time of each answer, in no order."""
        some = [told.sent for told in self.told] if self.netted is None else [self.sent]
        return np.concatenate([sent.times for sent in some])

    def of(self, name: str) -> Sent:
        """What is said of one of the queries."""
        if len(self.names) == 1:
            return self.sent
        return self._put_together([_only(told, name) for told in self.told if name in told.names])

    def _put_together(self, some: list[Told]) -> Sent:
        if len(some) == 1 and self.netted is None and some[0].names == self.names:
            return some[0].sent
        sent = _together(some, self.names)
        if self.netted is not None:
            return _netted(sent, self.netted)
        order = np.lexsort((sent.sign, sent.time))
        return sent.select(order)


@dataclass(frozen=True)
class Merged:
    """The answers of a batch as columns; terms are made when somebody looks."""

    groups: list[Group]
    entries: list[Entries]  # of the terms in them
    others: list[Answer]  # of queries by the reference evaluator
    standing: Mapping[str, Standing]
    known: Dictionary | None = None  # of a shard in this process: has the terms already

    def __len__(self) -> int:
        return sum(map(len, self.groups)) + len(self.others)

    @cached_property
    def dictionary(self) -> Dictionary:
        if self.known is not None and not self.entries:
            return self.known
        found = Dictionary()
        for entries in self.entries:
            found.add_entries(entries)
        return found

    @property
    def times(self) -> np.ndarray:
        """The time of each answer, in no order."""
        others = np.array([answer.time for answer in self.others], np.int64)
        return np.concatenate([*(group.times for group in self.groups), others])

    def answers(self, without: Collection[str] = ()) -> list[Answer]:
        """All answers but those of some queries, in time order."""
        found = [a for a in self.others if a.query not in without]
        for group in self.groups:
            if len(group.names) > 1 or group.names[0] not in without:
                some = decoded(group.query, group.names, group.sent, self.dictionary)
                found += [a for a in some if a.query not in without] if without else some
        found.sort(key=lambda answer: answer.time)
        return found

    def blocks(self, without: Collection[str] = ()) -> list[Block]:
        """All answers but those of some queries, as columns: a block for each query that has some."""
        found: list[Block] = []
        for group in self.groups:
            if QUERY in group.told[0].sent.columns:
                found += blocks_of(group.query, group.names, group.sent, self.dictionary)
            else:
                found.append(Unread(self, group))
        for name in dict.fromkeys(answer.query for answer in self.others):
            mine = [answer for answer in self.others if answer.query == name]
            found.append(Block.of_answers(self.standing[name].query, name, mine))
        return [block for block in found if block.name not in without]

    def of(self, name: str) -> Columnar:
        """The answers of one query, in time order."""
        found: list[Block] = []
        if mine := [answer for answer in self.others if answer.query == name]:
            found.append(Block.of_answers(self.standing[name].query, name, mine))
        for group in self.groups:
            if name in group.names:
                found.append(Block(group.query, name, group.of(name), self.dictionary))
        return Columnar(found)


class Unread(Block):
    """The answers of one query, put together when somebody looks."""

    def __init__(self, merged: Merged, group: Group) -> None:
        self.query, self.name = group.query, group.names[0]
        self._merged, self._group = merged, group
        self._answers = None

    @property
    def _sent(self) -> Sent:  # type: ignore[override]
        return self._group.sent

    @property
    def _dictionary(self) -> Dictionary:  # type: ignore[override]
        return self._merged.dictionary

    def __len__(self) -> int:
        return len(self._group) if self.query.form is not A.Form.CONSTRUCT else self.rows.answers


def merge(
    outcomes: Sequence[Outcome], standing: Mapping[str, Standing], known: Dictionary | None = None
) -> Merged:
    """What the shards said to one batch; of a query that has failed on one of them, nothing."""
    merged = Merged([], [], [], standing, known)
    stopped = {name for outcome in outcomes for name in outcome.news.stopped}
    if stopped:
        standing = {name: query for name, query in standing.items() if name not in stopped}
    groups: dict[tuple[object, ...], list[Told]] = {}
    for outcome in outcomes:
        merged.others.extend(a for a in outcome.answers if a.query in standing)
        if outcome.entries is not None:
            merged.entries.append(outcome.entries)
        for told in (without(t, stopped) for t in outcome.told) if stopped else outcome.told:
            query = next((standing[name] for name in told.names if name in standing), None)
            if query is not None:
                columns = told.sent.columns
                key = (columns, query.output, query.spread) if QUERY in columns else (query.name,)
                groups.setdefault(key, []).append(told)
    merged.groups.extend(_group(group, standing) for group in groups.values())
    return merged


def _group(told: list[Told], standing: Mapping[str, Standing]) -> Group:
    names = list(dict.fromkeys(name for one in told for name in one.names))
    first = next(standing[name] for name in names if name in standing)
    netted = first.spread is not None and first.spread.merged and first.output is not A.Output.RSTREAM
    return Group(first.query, names, told, first.output if netted else None)


def _only(told: Told, name: str) -> Told:
    """What is said of one query."""
    number, sent = told.names.index(name), told.sent
    return Told(told.names, sent.select(sent.values[sent.columns.index(QUERY)] == number))


def _together(told: list[Told], names: list[str]) -> Sent:
    """The shards' rows one after another, with one numbering of the queries."""
    columns = told[0].sent.columns
    number = {name: i for i, name in enumerate(names)}
    parts = []
    for one in told:
        sent = one.sent.one_by_one()
        if QUERY in columns:
            at, values = columns.index(QUERY), sent.values.copy()
            values[at] = np.array([number[n] for n in one.names], np.int64)[values[at]]
            sent = sent.with_values(columns, values)
        parts.append(sent)
    return Sent(
        columns,
        np.concatenate([sent.time for sent in parts]),
        np.concatenate([sent.sign for sent in parts]),
        np.concatenate([sent.values for sent in parts], axis=1),
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
