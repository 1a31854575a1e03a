"""Random histories of stored graphs, and what a truth tells of them: plain sets, slowly."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from pyoxigraph import Literal, NamedNode

from kelda.rdf.dictionary import Dictionary, Entries
from kelda.rdf.ids import Term
from kelda.store.changes import Changes
from kelda.store.truth import Truth

Fact = tuple[int, int, int, int]
Record = tuple[int, Fact, int]  # moment, fact, sign

PREDICATES = [NamedNode(f"http://example.org/p{i}") for i in range(3)]
OBJECTS: list[Term] = [Literal(i) for i in range(4)] + [
    Literal(f"a text of some length {i}") for i in range(4)
]


@dataclass
class Batch:
    """What a batch changes, and the terms that are new with it."""

    number: int
    changes: Changes
    entries: Entries
    about: dict[str, int]


@dataclass
class History:
    """Batches of changes of a few facts, which are added, removed, and added again."""

    seed: int
    batches: int = 12
    size: int = 8
    made: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        draw, dictionary = random.Random(self.seed), Dictionary()
        there: set[Fact] = set()
        moment = number = 0
        for _ in range(self.batches):
            number += draw.randint(1, 2)  # some batches change nothing
            known, records = len(dictionary), []
            moment += draw.randint(0, 3)  # 0: a moment goes on, and may take back what it did
            for _ in range(draw.randint(1, 2)):
                records += self._moment(moment, draw, dictionary, there)
                moment += draw.randint(1, 3)
            moment = records[-1][0] if records else moment
            about = {"instant": moment // 2, "moment": moment}
            self.made.append(Batch(number, columns(records), dictionary.entries(known), about))

    def _moment(
        self, moment: int, draw: random.Random, dictionary: Dictionary, there: set[Fact]
    ) -> list[Record]:
        gone = draw.sample(sorted(there), min(len(there), draw.randint(0, self.size // 2)))
        there.difference_update(gone)
        new = {self._fact(draw, dictionary) for _ in range(draw.randint(1, self.size))} - there
        there |= new
        return [(moment, fact, -1) for fact in gone] + [(moment, fact, 1) for fact in sorted(new)]

    def _fact(self, draw: random.Random, dictionary: Dictionary) -> Fact:
        graph = 0 if draw.random() < 0.5 else dictionary.encode(NamedNode("http://example.org/g"))
        s = dictionary.encode(NamedNode(f"http://example.org/s{draw.randrange(20)}"))
        p, o = (dictionary.encode(draw.choice(terms)) for terms in (PREDICATES, OBJECTS))
        return graph, s, p, o

    def write(self, truth: Truth, *, since: int = -1, until: int = 1 << 40) -> None:
        """All batches behind `since`, as they come."""
        for batch in self.made:
            if since < batch.number <= until:
                truth.write(batch.number, batch.changes, batch.entries, about=batch.about)

    def at(self, moment: int, until: int = 1 << 40) -> set[Fact]:
        """What is there at a moment, as the batches up to `until` have it."""
        return facts_at((batch.changes for batch in self.made if batch.number <= until), moment)

    @property
    def moments(self) -> list[int]:
        """From before the first change to behind the last."""
        found = np.concatenate([batch.changes.moment for batch in self.made])
        return list(range(int(found.min()) - 1, int(found.max()) + 2))


def columns(records: list[Record]) -> Changes:
    """As the store takes them."""
    rows = [(*fact, moment, sign) for moment, fact, sign in records]
    return Changes(*np.array(rows, np.int64).reshape(-1, 6).T.copy())


def records(changes: Changes) -> list[Record]:
    """And back."""
    return [(row[4], row[:4], row[5]) for row in zip(*(c.tolist() for c in changes.columns), strict=True)]


def facts_at(parts, moment: int) -> set[Fact]:
    """What is there at a moment, if these changes are carried out one after another."""
    there: set[Fact] = set()
    for part in parts:
        for when, fact, sign in records(part):
            if when <= moment:
                (there.add if sign > 0 else there.discard)(fact)
    return there


def texts(truth: Truth) -> dict[int, bytes]:
    """All terms of a truth; each is there once."""
    found: dict[int, bytes] = {}
    for stored in truth.read():
        ids, data, offsets = stored.entries
        for i, id in enumerate(ids.tolist()):
            assert id not in found
            found[id] = data[offsets[i] : offsets[i + 1]].tobytes()
    return found


def same(truth: Truth, history: History, keep_from: int, until: int = 1 << 40) -> bool:
    """Whether the truth says of all moments from `keep_from` on what the history says."""
    parts = [stored.changes for stored in truth.read()]
    return all(
        facts_at(parts, moment) == history.at(moment, until)
        for moment in history.moments
        if moment >= keep_from
    )
