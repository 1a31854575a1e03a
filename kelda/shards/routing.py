"""Routing: which shards want a triple.

Patterns of all queries that look alike (same stream, predicate, places of constants, spread) are one
*rule*, with the constants as sets: a hundred thousand queries of one shape cost one probe. A rule may let
through a triple that no query wants, never hold one back that some query does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.ownership import shards_of
from kelda.lang import algebra as A
from kelda.plan.partition import Spread, WindowPattern
from kelda.rdf import wire
from kelda.rdf.ids import encode
from kelda.rdf.keyset import KeySet
from kelda.rdf.skim import Asked, Rule

FEW = 16  # rules; with more, each triple would be compared too often


# For a pattern, at each of its places in a query: the ids that its subject ("s") or object ("o") may have.
Narrowed = dict[WindowPattern, list[dict[str, Ids]]]


@wire.plain
@dataclass(frozen=True, slots=True)
class _Like:
    """What the patterns of a rule have in common."""

    stream: str
    p: int | None
    with_s: bool
    with_o: bool
    axes: tuple[tuple[str, int], ...]  # variables and their positions, as far as they are axes
    spread: Spread | None
    shard: int


@dataclass(slots=True)
class _Rule:
    like: _Like
    s: KeySet = field(default_factory=KeySet)
    o: KeySet = field(default_factory=KeySet)


class Routing:
    """The rules of all registered queries."""

    def __init__(self) -> None:
        self._rules: dict[_Like, _Rule] = {}
        self._of: dict[str, list[_Rule]] = {}
        self._counted: set[str] = set()
        self._asked: dict[str, Asked] = {}

    def count(self, stream: str) -> None:
        """Some window counts the elements of a stream."""
        self._counted.add(stream)

    def counts(self, stream: str) -> bool:
        """Whether some window counts the elements of a stream."""
        return stream in self._counted

    def asked(self, stream: str) -> Asked:
        """What a triple must be like for any shard to want it; it may let through more than `owners`."""
        if stream not in self._asked:
            self._asked[stream] = Asked.of(self._few(stream))
        return self._asked[stream]

    def _few(self, stream: str) -> list[Rule]:
        """The rules, with less in them if there are too many to look at one by one."""
        rules = self._of.get(stream, [])
        if len(rules) <= FEW:
            return [
                (rule.like.p, rule.s if rule.like.with_s else None, rule.o if rule.like.with_o else None)
                for rule in rules
            ]
        predicates = {rule.like.p for rule in rules}
        if None in predicates or len(predicates) > FEW:
            return [(None, None, None)]
        return [(p, None, None) for p in sorted(p for p in predicates if p is not None)]

    def to(self, stream: str) -> Callable[[Ids, Ids, Ids], Ids]:
        """`owners` of one stream."""
        return partial(self.owners, stream)

    def everything(self, stream: str, shard: int) -> None:
        """A shard wants all triples of a stream."""
        self._rule(_Like(stream, None, False, False, (), None, shard))

    def predicate(self, stream: str, predicate: int, shard: int) -> None:
        """A shard wants all triples with this predicate."""
        self._rule(_Like(stream, predicate, False, False, (), None, shard))

    def add(
        self,
        patterns: Iterable[WindowPattern],
        spread: Spread | None,
        shard: int,
        narrowed: Narrowed | None = None,
    ) -> None:
        """The patterns of a query, spread or whole on `shard`. Of a pattern that is `narrowed`, only triples
        are wanted that have one of the ids at each of the places ("s", "o") of one of the narrowings."""
        for wanted in patterns:
            t = wanted.pattern
            ids = {place: _fixed(getattr(t, place)) for place in ("s", "p", "o")}
            given = {place: np.array([id], np.int64) for place, id in ids.items() if id is not None}
            for some in (narrowed or {}).get(wanted, [{}]):
                self._one(wanted, ids["p"], {**some, **given}, spread, shard)

    def add_many(
        self, patterns: Iterable[WindowPattern], values: dict[str, Ids], spread: Spread | None, shard: int
    ) -> None:
        """As `add` for many queries: `values` has the ids of each parameter."""
        for wanted in patterns:
            t = wanted.pattern
            given = {}
            for place in ("s", "o"):
                term = getattr(t, place)
                if isinstance(term, A.Param):
                    given[place] = np.unique(values[term.name])
                elif (id := _fixed(term)) is not None:
                    given[place] = np.array([id], np.int64)
            # If the predicate differs, there is a rule for each.
            several = np.unique(values[t.p.name]).tolist() if isinstance(t.p, A.Param) else [_fixed(t.p)]
            for p in several:
                self._one(wanted, p, given, spread, shard)

    def _one(
        self,
        wanted: WindowPattern,
        p: int | None,
        given: Mapping[str, Ids],
        spread: Spread | None,
        shard: int,
    ) -> None:
        t = wanted.pattern
        places = {x.name: i for i, x in enumerate((t.s, t.p, t.o)) if isinstance(x, A.Var)}
        axes = () if spread is None else tuple((n, places[n]) for n, _ in spread.axes if n in places)
        rule = self._rule(_Like(wanted.stream, p, "s" in given, "o" in given, axes, spread, shard))
        if "s" in given:
            rule.s.add(given["s"])
        if "o" in given:
            rule.o.add(given["o"])

    def _rule(self, like: _Like) -> _Rule:
        self._asked.pop(like.stream, None)
        if like not in self._rules:
            self._rules[like] = _Rule(like)
            self._of.setdefault(like.stream, []).append(self._rules[like])
        return self._rules[like]

    def owners(self, stream: str, s: Ids, p: Ids, o: Ids) -> Ids:
        """The shards that want each triple, as bits."""
        out = np.zeros(len(s), np.int64)
        parts = (s, p, o)
        matches: dict[int | None, Ids] = {None: np.arange(len(s))}
        for rule in self._of.get(stream, ()):
            like = rule.like
            if like.p not in matches:
                matches[like.p] = np.flatnonzero(p == like.p)
            which = matches[like.p]
            if like.with_s and len(which):
                which = which[rule.s.holds(s[which])]
            if like.with_o and len(which):
                which = which[rule.o.holds(o[which])]
            if len(which):
                out[which] |= (
                    np.int64(1 << like.shard)
                    if like.spread is None
                    else shards_of(like.spread, dict(like.axes), parts, which)
                )
        return out

    @property
    def rules(self) -> int:
        """How many there are."""
        return len(self._rules)

    # -------------------------------------------------------------------- to be kept

    def plain(self) -> tuple[list[tuple[_Like, Ids, Ids]], list[str]]:
        """As plain data (`kelda.rdf.wire`)."""
        return [(rule.like, rule.s.ids, rule.o.ids) for rule in self._rules.values()], sorted(self._counted)

    @classmethod
    def of(cls, plain: tuple[list[tuple[_Like, Ids, Ids]], list[str]]) -> Routing:
        """From `plain`."""
        routing = cls()
        rules, counted = plain
        for like, s, o in rules:
            rule = routing._rule(like)
            rule.s.add(s)
            rule.o.add(o)
        for stream in counted:
            routing.count(stream)
        return routing


def id_of(terms: Iterable[A.Term]) -> Ids:
    """The ids of terms."""
    return np.array([encode(term) for term in terms], np.int64)


def _fixed(term: A.TermOrVar) -> int | None:
    return None if isinstance(term, A.Var | A.Param) else encode(term)
