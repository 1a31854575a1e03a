"""Whether a store is sound: each file by itself, all of them in their order, and what they say together.

    files    they can be read, their columns are of the right types, their checksums and buckets are right
    order    no batches overlap, none is lost; moments do not fall within a graph
    facts    what is removed was there, what is added was not
    terms    each hashed id has a text, one alone, whose hash it is

What the files say together is looked at if each is right by itself. Others may write meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from kelda.errors import CheckpointError
from kelda.kept import RESTORE
from kelda.store.changes import Changes, Ids
from kelda.store.check_kernels import term_ids
from kelda.store.compaction import same_fact
from kelda.store.moments import NEVER
from kelda.store.parquet import QuadsFile, bucket_of, by_bucket
from kelda.store.truth import Pair, Run, Truth
from kelda.words import count


def check(folder: Path, seed: int = 0) -> list[str]:
    """All that is wrong with the store in a folder, a line each; `seed` is that of its terms' hashes."""
    while True:
        before = _names(folder)
        found = _Check(Truth(folder), seed).findings()
        if not found or _names(folder) == before:  # else files were put together while we looked
            return found


def _names(folder: Path) -> set[str]:
    return {str(path) for path in folder.glob("*/*.parquet")}


@dataclass
class _Check:
    truth: Truth
    seed: int
    found: list[str] = field(default_factory=list)

    def findings(self) -> list[str]:
        """All of them. Nothing else may have been asked before."""
        pairs = self._pairs()
        terms = [self._terms(pair) for pair in pairs]
        latest: dict[int, int] = {}
        for pair in pairs:
            self._quads(pair.quads, latest)
        if not self.found:
            self._together([pair.quads for pair in pairs], terms)
        return self.found

    def _say_why(self, problem: CheckpointError) -> None:
        self.found.append(str(problem).removesuffix(f"; {RESTORE}"))

    # -------------------------------------------------------------------- files

    def _pairs(self) -> list[Pair]:
        """Those that can be opened."""
        self._names()
        try:
            runs = self.truth.runs()
        except CheckpointError as problem:
            self._say_why(problem)
            return []
        pairs, last = [], -1
        for run in runs:
            try:
                pair = self.truth.open_run(run)
            except CheckpointError as problem:
                self._say_why(problem)
            else:
                if pair.quads.label.after != last:
                    said = (
                        f"comes after batch {pair.quads.label.after}, and what is there before it is {last}"
                    )
                    self.found.append(f"{pair.quads.path} {said}")
                pairs.append(pair)
            last = run.last
        return pairs

    def _names(self) -> None:
        for folder in (self.truth.quads, self.truth.terms):
            if not folder.is_dir():
                self.found.append(f"{folder} is missing")
                continue
            for path in sorted(folder.iterdir()):
                if not path.name.startswith(".") and Run.of_name(path.name) is None:
                    self.found.append(f"{path} does not belong there")

    def _terms(self, pair: Pair) -> tuple[Ids, Ids]:
        """The ids of a file, and second hashes of their texts."""
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        try:
            for ids, texts, offsets in pair.terms.groups():
                right, checks = term_ids(texts, offsets, np.uint64(self.seed))
                wrong = np.flatnonzero(right != ids)
                if len(wrong):
                    text = texts[offsets[wrong[0]] : offsets[wrong[0] + 1]].tobytes().decode(errors="replace")
                    said = f"{count(len(wrong), 'text')} with an id that is not theirs, the first {text[:80]}"
                    self.found.append(
                        f"{pair.quads.path.parents[1] / 'terms' / pair.quads.path.name} has {said}"
                    )
                found.append((ids, checks))
        except CheckpointError as problem:
            self._say_why(problem)
        ids, checks = (np.concatenate(column) for column in zip(*found, strict=True))
        return ids, checks

    def _quads(self, quads: QuadsFile, latest: dict[int, int]) -> None:
        """`latest`: the latest moment of each graph so far."""
        try:
            changes = quads.changes()
            strays = _strays(quads)
        except CheckpointError as problem:
            self._say_why(problem)
            return
        if strays:
            self.found.append(f"{quads.path} has {count(strays, 'row')} out of its bucket or order")
        if (np.abs(changes.sign) != 1).any():
            self.found.append(f"{quads.path} has signs that are not 1 or -1")
        if any((column == 0).any() for column in (changes.s, changes.p, changes.o)):
            self.found.append(f"{quads.path} has facts without a subject, predicate or object")
        order = np.argsort(changes.graph, kind="stable")
        graph, moment = changes.graph[order], changes.moment[order]
        firsts = np.flatnonzero(np.concatenate([[True], graph[1:] != graph[:-1]])) if len(graph) else order
        falls = np.zeros(len(graph), np.bool_)
        falls[1:] = (graph[1:] == graph[:-1]) & (moment[1:] < moment[:-1])
        falls[firsts] = [latest.get(g, NEVER) > m for g, m in _pairs_of(graph[firsts], moment[firsts])]
        if falls.any():
            said = f"moments fall in {count(int(falls.sum()), 'place')}, first to {moment[falls][0]}"
            self.found.append(f"{quads.path}: {said}")
        if len(graph):
            latest |= dict(_pairs_of(graph[firsts], np.maximum.reduceat(moment, firsts)))

    # -------------------------------------------------------------------- all together

    def _together(self, files: Sequence[QuadsFile], terms: Sequence[tuple[Ids, Ids]]) -> None:
        known = self._one_text_each(terms)
        strange, again, absent = [np.zeros(0, np.int64)], [Changes.none()], [Changes.none()]
        for changes in by_bucket(files):
            strange.append(_strange(changes, known))
            added, removed = _out_of_turn(changes)
            again.append(added)
            absent.append(removed)
        if len(ids := np.unique(np.concatenate(strange))):
            said = f"{count(len(ids), 'id')} without a text, the first {ids[0]}"
            self.found.append(f"{self.truth.quads} has {said}")
        self._say_first(Changes.concat(again), "added that was there already")
        self._say_first(Changes.concat(absent), "removed that was not there")

    def _one_text_each(self, terms: Sequence[tuple[Ids, Ids]]) -> Ids:
        """The ids that have texts, sorted."""
        none = np.zeros(0, np.int64)
        ids = np.concatenate([none, *(ids for ids, _ in terms)])
        checks = np.concatenate([none, *(checks for _, checks in terms)])
        order = np.argsort(ids)
        ids, checks = ids[order], checks[order]
        two = np.unique(ids[1:][(ids[1:] == ids[:-1]) & (checks[1:] != checks[:-1])])
        if len(two):
            said = f"{count(len(two), 'id')} with two texts, the first {two[0]}"
            self.found.append(f"{self.truth.terms} has {said}")
        return ids

    def _say_first(self, changes: Changes, what: str) -> None:
        if len(changes):
            graph, s, p, o, moment, _ = (int(column[0]) for column in changes.columns)
            first = f"one at moment {moment}: graph {graph}, s {s}, p {p}, o {o}"
            self.found.append(f"{self.truth.quads} has {count(len(changes), 'fact')} {what}, {first}")


def _strange(changes: Changes, known: Ids) -> Ids:
    """The hashed ids that are not among the known ones, which are sorted."""
    ids = np.unique(np.concatenate(changes.columns[:4]))
    ids = ids[ids > 0]
    places = np.searchsorted(known, ids)
    return ids[(places == len(known)) | (np.append(known, 0)[places] != ids)]


def _out_of_turn(changes: Changes) -> tuple[Changes, Changes]:
    """A fact is added, removed, added, …; which additions and removals are not in their turn."""
    graph, s, p, o, moment, _ = changes.columns
    changes = changes.select(np.lexsort((moment, o, p, s, graph)))
    before = np.full(len(changes), -1)
    before[1:] = np.where(same_fact(changes), changes.sign[:-1], -1)
    again = changes.sign == before
    return changes.select(again & (before > 0)), changes.select(again & (before < 0))


def _strays(quads: QuadsFile) -> int:
    """Rows of a compacted file that do not lie where they should."""
    if quads.label.buckets is None:
        return 0
    strays = 0
    for bucket, changes in enumerate(quads.by_bucket()):
        falls = (changes.p[1:] < changes.p[:-1]) | (
            (changes.p[1:] == changes.p[:-1]) & (changes.s[1:] < changes.s[:-1])
        )
        strays += int((bucket_of(changes.s) != bucket).sum() + falls.sum())
    return strays


def _pairs_of(left: Ids, right: Ids) -> list[tuple[int, int]]:
    return list(zip(left.tolist(), right.tolist(), strict=True))
