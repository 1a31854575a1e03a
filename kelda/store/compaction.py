"""Compaction: the files of many batches are put together into few, while others write and read.

Sizes are geometric. When there are many files of single batches, or these are large, they are put together
with all files before them that are not much larger than what comes behind. So a row is written again only
into a file that is at least `GROWTH` times as large as the one it lay in: n rows cost O(n log n), and there
are O(log n) files. It goes bucket by bucket: a sixty-fourth of the rows is in memory at a time, beside what
the last batches brought.

What nobody can see any more goes: a fact that was added, and removed not later than `keep_from`, the oldest
moment that can still be asked for. So do changes that take each other back within one moment. All others stay
as they are.

The new terms are in place before the new quads, these before the old files go. Whoever dies leaves the old
ones in force, or the new; what is left of the others is removed when the store is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kelda.durable import remove, temporary_name
from kelda.kept import writing
from kelda.rdf.dictionary import Entries
from kelda.store.changes import Changes
from kelda.store.moments import LAST, NEVER, of_instant
from kelda.store.parquet import (
    COMPACTED,
    COMPACTED_TERMS,
    Content,
    Label,
    QuadsWriter,
    TermsWriter,
    by_bucket,
    concat_entries,
)
from kelda.store.truth import Pair, Run, Truth

MOST_FILES = 64  # of single batches
MOST_BYTES = 1 << 24  # in them
GROWTH = 4
TERMS_AT_ONCE = 1 << 20  # in a row group


class Compaction:
    """Puts the files of a truth together: when called, or in a thread of its own."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self._thread: threading.Thread | None = None
        self._problem: Exception | None = None
        self._stopping = False
        self._apart = -1

    def keep_apart(self, batch: int) -> None:
        """There is an image of the store behind a batch: what was stored up to it is put together by itself,
        and so is what came later, until that is so much more that the image is worth little."""
        self._apart = batch

    def _due(self, until: int) -> list[Run]:
        runs = self._truth.runs_until(until)
        before = [run for run in runs if run.last <= self._apart]
        behind = runs[len(before) :]
        if (GROWTH - 1) * _size(before) <= _size(behind):
            return due(runs)
        return due(before) or due(behind)

    def run(self, until: int, keep_from: int = NEVER, *, whole: bool = False) -> bool:
        """Put together what is due (or, if `whole`, everything) of the batches up to `until`, which are
        committed and will not come again; whether anything was."""
        runs = self._truth.runs_until(until) if whole else self._due(until)
        if not runs:
            return False
        with suppress(_Stopped):
            self._put_together(runs, keep_from)
            return True
        return False

    def start(self, until: int, keep_from: int = NEVER) -> None:
        """The same as `run`, in the background; nothing, if that is busy. What went wrong there is raised at
        the next start, or at the end."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._raise()
        if self._due(until):
            self._thread = threading.Thread(
                target=self._go, args=(until, keep_from), name="kelda-compaction", daemon=True
            )
            self._thread.start()

    def close(self) -> None:
        """Stop soon; what is half done is given up."""
        self._stopping = True
        if self._thread is not None:
            self._thread.join()
        self._raise()

    def _go(self, until: int, keep_from: int) -> None:
        try:
            self.run(until, keep_from)
        except Exception as problem:  # noqa: BLE001 - told to the next who asks
            self._problem = problem

    def _raise(self) -> None:
        problem, self._problem = self._problem, None
        if problem is not None:
            raise problem

    # -------------------------------------------------------------------- doing it

    def _put_together(self, runs: list[Run], keep_from: int) -> None:
        pairs = [self._truth.open_run(run) for run in runs]
        together = Run.of_runs(runs)
        quads, terms = (
            folder / temporary_name(together.name) for folder in (self._truth.quads, self._truth.terms)
        )
        try:
            content = self._write_terms(pairs, terms)
            self._write_quads(pairs, keep_from, quads, content)
            self._truth.put_together(runs, quads, terms if content.rows else None)
        finally:
            remove([quads, terms])

    def _write_terms(self, pairs: Sequence[Pair], path: Path) -> Content:
        with (
            writing(path),
            pa.OSFile(str(path), "wb") as out,
            TermsWriter(out, COMPACTED_TERMS) as writer,
        ):
            for entries in _gathered(pairs):
                self._go_on()
                writer.add(entries)
        return writer.content

    def _write_quads(self, pairs: Sequence[Pair], keep_from: int, path: Path, terms: Content) -> None:
        buckets = []
        with writing(path), pa.OSFile(str(path), "wb") as out, QuadsWriter(out, COMPACTED) as writer:
            for bucket, found in enumerate(by_bucket([pair.quads for pair in pairs])):
                self._go_on()
                changes = settled(found, keep_from)
                if len(changes):
                    writer.add(changes)
                    buckets.append(bucket)
            labels = [pair.quads.label for pair in pairs]
            first, last, after = labels[0].first, labels[-1].last, labels[0].after
            about = {
                batch: about
                for label in labels
                for batch, about in label.about.items()
                if batch == last or moment_of(about) >= keep_from
            }
            writer.put_on(Label(first, last, after, writer.content, terms, about, buckets))

    def _go_on(self) -> None:
        if self._stopping:
            raise _Stopped


def moment_of(about: dict[str, Any]) -> int:
    """The last moment that a snapshot may have seen, by what is known about it."""
    instant: int = about.get("instant", NEVER)
    return about.get("moment", NEVER if instant == NEVER else of_instant(instant) + LAST)


class _Stopped(Exception):
    """Whoever waits for us wants to go."""


def _size(runs: Sequence[Run]) -> int:
    return sum(run.size for run in runs)


def due(runs: Sequence[Run]) -> list[Run]:
    """Which to put together now: the newest, down to the last that is not large beside all behind it."""
    loose = sum(not run.compacted for run in runs)
    size = sum(run.size for run in runs if not run.compacted)
    if loose <= MOST_FILES and size <= MOST_BYTES:
        return []
    first, behind = len(runs), 0
    for i in range(len(runs) - 1, -1, -1):
        if not runs[i].compacted or (GROWTH - 1) * runs[i].size <= behind:
            first = i
        behind += runs[i].size
    return list(runs[first:])


def settled(changes: Changes, keep_from: int) -> Changes:
    """Changes by predicate and subject, without those that nobody can see from `keep_from` on."""
    if (changes.sign > 0).all():  # each fact once
        return changes.select(np.lexsort((changes.s, changes.p)))
    graph, s, p, o, moment, _ = changes.columns
    changes = changes.select(np.lexsort((moment, o, graph, s, p)))
    changes = _netted(changes)
    gone = np.zeros(len(changes), np.bool_)
    seen = (changes.sign[1:] > 0) | (changes.moment[1:] > keep_from)
    gone[1:] = same_fact(changes) & (changes.sign[:-1] > 0) & ~seen
    gone[:-1] |= gone[1:]
    return changes.select(~gone)


def _netted(changes: Changes) -> Changes:
    """Of changes sorted by fact and moment: at most one a moment, which comes to the same."""
    again = np.zeros(len(changes), np.bool_)
    again[1:] = same_fact(changes) & (changes.moment[1:] == changes.moment[:-1])
    if not again.any():
        return changes
    firsts = np.flatnonzero(~again)
    signs = np.add.reduceat(changes.sign, firsts)
    graph, s, p, o, moment, _ = changes.select(firsts).columns
    return Changes(graph, s, p, o, moment, signs).select(signs != 0)


def same_fact(changes: Changes) -> NDArray[np.bool_]:
    """Whether each but the first is of the same fact as the one before it."""
    same = np.ones(max(len(changes) - 1, 0), np.bool_)
    for column in changes.columns[:4]:
        same &= column[1:] == column[:-1]
    return same


def _gathered(pairs: Sequence[Pair]) -> Iterator[Entries]:
    """The terms of all, in order, many at a time."""
    some: list[Entries] = []
    for pair in pairs:
        for entries in pair.terms.groups():
            some.append(entries)
            if sum(len(part.ids) for part in some) >= TERMS_AT_ONCE:
                yield concat_entries(some)
                some = []
    if some:
        yield concat_entries(some)
