"""The truth of the store: files that outlive the process, from which all else can be made again.

    quads/000000000007.parquet               what batch 7 changed; that it is there makes the batch count
    terms/000000000007.parquet               the terms that came with it, if any; it is there first
    quads/000000000000-000000000006.parquet  those of batches 0 to 6, put together by compaction

A file is written under a hidden name, synced and renamed, so it is whole or not there. Whether a batch is
*committed* is decided above: who opens a store says which was the last (`forget_after`), and one that was not
is written again. Each quads file names the batch that it comes after, so a lost one is noticed.

One process writes, any number read, and nobody waits: whoever has opened a file can read it to its end, and
who finds one gone, because it was put together with others, looks again.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from kelda.durable import make_folder, put_in_place, remove, replace_file, sync
from kelda.errors import CheckpointError
from kelda.kept import RESTORE
from kelda.rdf.dictionary import Entries
from kelda.store.changes import Changes
from kelda.store.parquet import Content, Label, NoTerms, QuadsFile, QuadsWriter, TermsFile, TermsWriter

_NAME = re.compile(r"(\d{12})(?:-(\d{12}))?\.parquet")
_LOOKS = 10  # at the folder, while files are put together under our eyes


@dataclass(frozen=True, slots=True)
class Run:
    """A pair of files: of one batch, or of several that were put together."""

    first: int
    last: int
    compacted: bool
    size: int = field(default=0, compare=False)  # bytes of the quads file

    @property
    def name(self) -> str:
        """Of both files."""
        return (
            f"{self.first:012d}-{self.last:012d}.parquet" if self.compacted else f"{self.first:012d}.parquet"
        )

    @classmethod
    def of_runs(cls, runs: Sequence[Run]) -> Run:
        """One that stands for several."""
        return cls(runs[0].first, runs[-1].last, True)

    @classmethod
    def of_name(cls, name: str, size: int = 0) -> Run | None:
        """The run whose files are called so; None if it is no such name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        first, last = found.groups()
        return cls(int(first), int(last or first), last is not None, size)


class Pair(NamedTuple):
    """The two files of a run, opened."""

    quads: QuadsFile
    terms: TermsFile | NoTerms


class Stored(NamedTuple):
    """What a batch changed, or several that were put together, and what was known about each."""

    first: int
    last: int
    changes: Changes
    entries: Entries
    about: dict[int, dict[str, Any]]


class Truth:
    """The files in a folder. Nothing is written before something is to be."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.quads, self.terms = self.folder / "quads", self.folder / "terms"
        self._lock = threading.Lock()  # who writes batches and who puts them together are two threads
        self._ready = False

    @cached_property
    def _runs(self) -> list[Run]:
        """The pairs that count, as this process has left them: it is the only one that writes."""
        return self.runs()

    @property
    def last(self) -> int:
        """The last batch that is there, committed or not; -1: none."""
        with self._lock:
            return self._runs[-1].last if self._runs else -1

    # -------------------------------------------------------------------- writing

    def write(
        self,
        batch: int,
        changes: Changes,
        entries: Entries | None = None,
        *,
        about: dict[str, Any],
        always: bool = False,
    ) -> None:
        """Make what a batch changed last; `entries` are the terms that are new with it. Nothing is written
        for one that changes nothing, unless `always`. A batch that is there already is replaced, and those
        behind it go: they cannot have been committed."""
        if entries is not None and not len(entries.ids):
            entries = None
        if not len(changes) and entries is None and not always:
            return
        after, run, terms = self._make_way(batch), Run(batch, batch, False), Content()
        if entries is not None:
            terms = self._write_terms(run, entries)
        with QuadsWriter(out := pa.BufferOutputStream()) as quads:
            quads.add(changes)
            quads.put_on(Label(batch, batch, after, quads.content, terms, {batch: about}))
        replace_file(self.quads / run.name, data := memoryview(out.getvalue()))
        with self._lock:
            self._runs.append(replace(run, size=len(data)))

    def _write_terms(self, run: Run, entries: Entries) -> Content:
        with TermsWriter(out := pa.BufferOutputStream()) as terms:
            terms.add(entries)
        replace_file(self.terms / run.name, memoryview(out.getvalue()))
        return terms.content

    def _make_way(self, batch: int) -> int:
        """Make sure that the batch can be the last one; the one that it comes after."""
        if not self._ready:
            self._make_folders()
        with self._lock:
            if self._runs and self._runs[-1].last >= batch:
                self._take_back(batch)
            return self._runs[-1].last if self._runs else -1

    def _take_back(self, batch: int) -> None:
        """The batch comes again: its files will be replaced, and those behind it go."""
        again = [run for run in self._runs if run.last >= batch]
        if again[0].compacted:
            raise CheckpointError(f"batch {batch} comes again, and is in {again[0].name}; {RESTORE}")
        self._remove({run.name for run in again if run.first > batch})
        self._runs = [run for run in self._runs if run.last < batch]

    def _remove(self, names: set[str]) -> None:
        """Take batches back for good: after a power failure no file may be there again, whose batch was taken
        anew and changed nothing. Quads go first: without them a batch does not count."""
        for folder in (self.quads, self.terms):
            if some := [path for path in _files(folder) if path.name in names]:
                remove(some)
                sync(folder)

    def _make_folders(self) -> None:
        for folder in (self.quads, self.terms):
            make_folder(folder)
        for folder in (self.folder, self.folder.parent):
            sync(folder)
        self._ready = True

    def forget_after(self, batch: int) -> None:
        """Remove the files of all batches behind this one, which were never committed, and what somebody left
        who died while he wrote. To be called before anything is written, with no compaction under way."""
        with self._lock:
            runs = self.runs()
            keep = [run for run in runs if run.last <= batch]
            if len(keep) < len(runs) and runs[len(keep)].first <= batch:
                name = runs[len(keep)].name
                raise CheckpointError(
                    f"{self.quads / name} has batches behind {batch}, which was the last one; {RESTORE}"
                )
            there = {path.name for folder in (self.quads, self.terms) for path in _files(folder)}
            self._remove({name for name in there if _is_ours(name)} - {run.name for run in keep})
            self._runs = keep

    def put_together(self, runs: list[Run], quads: Path, terms: Path | None) -> None:
        """Have one pair, written under hidden names, in the place of several; the old files go."""
        together = Run(runs[0].first, runs[-1].last, True, quads.stat().st_size)
        if terms is not None:
            put_in_place(terms, self.terms / together.name)
        put_in_place(quads, self.quads / together.name)
        with self._lock:
            self._runs = self._live([*self._runs, together])
        remove(folder / run.name for folder in (self.quads, self.terms) for run in runs if run != together)

    # -------------------------------------------------------------------- reading

    def runs(self) -> list[Run]:
        """The pairs that count, in order, as they are now in the folder."""
        return self._live(filter(None, map(_run_of, _files(self.quads))))

    def _live(self, runs: Iterable[Run]) -> list[Run]:
        """Those that no wider one stands for, in order."""
        live: list[Run] = []
        for run in sorted(runs, key=lambda run: (run.first, -run.last, not run.compacted)):
            if not live or run.first > live[-1].last:
                live.append(run)
            elif run.last > live[-1].last:
                raise CheckpointError(f"{self.quads / run.name} overlaps {live[-1].name}; {RESTORE}")
        return live

    def runs_until(self, batch: int) -> list[Run]:
        """The pairs that have no batch behind this one, as who writes them knows."""
        with self._lock:
            return [run for run in self._runs if run.last <= batch]

    def open_run(self, run: Run) -> Pair:
        """The two files of a run."""
        quads = QuadsFile(self.quads / run.name)
        label = quads.label
        if (label.first, label.last) != (run.first, run.last):
            raise CheckpointError(f"{quads.path} has batches {label.first} to {label.last}; {RESTORE}")
        return Pair(quads, TermsFile(self.terms / run.name, label.terms) if label.terms.rows else NoTerms())

    def about(self, batch: int) -> dict[str, Any] | None:
        """What was known about a batch behind which a file ends; None if there is none such."""
        for run in self.runs():
            if run.last == batch:
                return self.open_run(run).quads.label.about.get(batch)
        return None

    def opened(self, until: int | None = None, after: int = -1) -> list[Pair]:
        """The files that count and begin at or before batch `until`, behind the batch `after`, with which one
        of them ends. They can be read to the end, whatever happens in the folder."""
        for _ in range(_LOOKS - 1):
            with contextlib.suppress(CheckpointError):
                return self._opened(until, after)
        return self._opened(until, after)

    def _opened(self, until: int | None, after: int) -> list[Pair]:
        found: list[Pair] = []
        last = after
        for run in self.runs():
            if run.last <= after:
                continue
            if until is not None and run.first > until:
                break
            pair = self.open_run(run)
            if pair.quads.label.after != last:
                raise CheckpointError(
                    f"the files of batch {pair.quads.label.after} are missing, or are not those that "
                    f"{pair.quads.path} comes after; {RESTORE}"
                )
            found.append(pair)
            last = run.last
        return found

    def read(self, until: int | None = None, after: int = -1) -> Iterator[Stored]:
        """What was stored behind the batch `after`, in the order of batches, up to and including `until` (and
        those that it was put together with, whose changes are by moment, removals first)."""
        for quads, terms in self.opened(until, after):
            label = quads.label
            yield Stored(label.first, label.last, quads.changes(), terms.entries(), label.about)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _is_ours(name: str) -> bool:
    """Whether a file is one that we write, or was about to be."""
    return _NAME.fullmatch(name.removeprefix(".").removesuffix(".new")) is not None


def _run_of(path: Path) -> Run | None:
    try:
        return Run.of_name(path.name, path.stat().st_size)
    except FileNotFoundError:  # put together with others, just now
        return None
