"""Spark's log in a checkpoint, as far as Kelda looks at it: which batches were begun, with what, which done.

    offsets/N     written before batch N runs: where it ends in each stream (it begins where N - 1 ends)
    state/…/N+1   written by its tasks
    (our sinks)   take its answers
    commits/N     written behind it

Spark does not wait until the disk has these files, and a machine that loses power may lose any of them. So
`sync` waits, before a sink takes answers: what a sink has, the log then knows, and can do again. What is
lost otherwise, `mend` finds when a checkpoint is opened. Files of batches that nobody has begun, and
snapshots that are not whole, are set aside (to `lost/` in the checkpoint). If the state behind a batch is
incomplete, the batches from there on are taken again, since no sink has anything of them; a sink that does
refuses (`io/sinks/content.py`).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from kelda.durable import replace_file, sync
from kelda.errors import CheckpointError
from kelda.io.sinks.content import Held, has
from kelda.kept import RESTORE, reading, writing

AT_ONCE = 8  # files
_File = tuple[str, int, int]  # path, inode, time of change: what is replaced is another
_VERSION = re.compile(r"([0-9]+)(?:_[^.]*)?\.(changelog|zip)")
_PATH = re.compile(r"\bfile:(?://)?(/[^\s,;]+?)[.:]?(?=[\s,;]|$)")
_OF_STATE = re.compile(r"CANNOT_LOAD_STATE_STORE|Stream ended prematurely")
_OF_LAST = "put it back from a copy, or delete it: its batch is then taken again, from the state before it"


class SparkLog:
    """The log in a folder. Only `mend` changes anything in it, while Spark does not run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._synced: set[_File] = set()
        self._folders: set[Path] = set()  # whose own names last
        self._syncing = threading.Lock()
        self._known: dict[int, list[str]] = {}  # offsets of the last two batches that were asked for

    # ------------------------------------------------------------------ what it says

    def begun(self) -> list[int]:
        """The batches whose offsets are there."""
        return _numbers(self.folder / "offsets")

    def content(self, batch: int) -> str:
        """What is in a batch, as a digest: where it begins and ends in each stream, and which queries."""
        begin = self._offsets(batch - 1) if batch > 0 else []
        end = self._offsets(batch)
        self._known = {batch: end, batch - 1: begin}
        return hashlib.sha256(json.dumps([begin, end]).encode()).hexdigest()[:40]

    def content_if_known(self, batch: int) -> str | None:
        """The same of an earlier batch; None if its offsets have been cleared away."""
        try:
            return self.content(batch) if batch >= 0 else None
        except CheckpointError as problem:
            if isinstance(problem.__cause__, FileNotFoundError):
                return None
            raise

    def agree(self, held: Held, batch: int) -> None:
        """Refuse a sink that is ahead of the log, which goes on with `batch`, or has seen another log."""
        which = min(held.batch, batch) if held.batch >= 0 else batch
        content = self.content_if_known(which)
        if content is not None:
            has(held, which, content)

    def conf(self, batch: int) -> dict[str, str]:
        """The settings that a batch was begun with."""
        with reading(self.folder / "offsets" / str(batch), _OF_LAST):
            conf: dict[str, str] = json.loads(self._lines(batch)[1])["conf"]
            return conf

    def find(self, batch: int, key: str) -> Any:
        """What the offset of a source has under a key at the end of a batch; None if none has."""
        with reading(self.folder / "offsets" / str(batch), _OF_LAST):
            for offset in map(json.loads, self._offsets(batch)):
                if isinstance(offset, dict) and key in offset:
                    return offset[key]
        return None

    def _offsets(self, batch: int) -> list[str]:
        if batch not in self._known:
            self._known[batch] = self._lines(batch)[2:]
        return self._known[batch]

    def _lines(self, batch: int) -> list[str]:
        """The version, the settings, and a line for each source."""
        path = self.folder / "offsets" / str(batch)
        with reading(path, _OF_LAST):
            lines = path.read_text(encoding="utf-8").splitlines()
            if len(lines) < 3 or not lines[0].startswith("v"):
                raise ValueError("it is cut off")
            for line in lines[1:]:
                if line != "-":  # of a source without an offset
                    json.loads(line)
            return lines

    def blamed(self, text: str) -> CheckpointError | None:
        """If Spark failed by a file of the log, as the text of its error says or a look at them: which."""
        named = next((path for path in _PATH.findall(text) if path.startswith(f"{self.folder}/")), None)
        path = Path(named) if named else self._broken()
        if path is None and _OF_STATE.search(text):
            path = self.folder / "state"
        if path is None:
            return None
        return CheckpointError(f"{path} is broken, or files that it needs are gone; {RESTORE}")

    def _broken(self) -> Path | None:
        """A file that can be seen to be broken."""
        metadata = self.folder / "metadata"
        try:
            json.loads(metadata.read_bytes())
        except (OSError, ValueError):
            if metadata.exists():
                return metadata
        lacking = (self._lacks(path) for path, _ in self._versions())
        return next((path for path in lacking if path is not None), None)

    def _lacks(self, path: Path) -> Path | None:
        """What a file of state lacks: itself, if it is broken, or a table that a snapshot is made of."""
        if path.suffix != ".zip":
            return None if path.stat().st_size else path
        try:
            with ZipFile(path) as snapshot:
                if snapshot.testzip() is not None:
                    return path
                told = json.loads(snapshot.read("metadata").partition(b"\n")[2])
            tables = [(path.parent / "SSTs" / t["dfsSstFileName"], t["sizeBytes"]) for t in told["sstFiles"]]
        except (OSError, BadZipFile, ValueError, LookupError, TypeError):
            return path
        return next((t for t, size in tables if not t.exists() or t.stat().st_size != size), None)

    # ------------------------------------------------------------------ that it lasts

    def sync(self, *, state: bool) -> None:
        """Make all of it last that is there now; `state`: what tasks wrote too, if they run here."""
        parts = ["", "offsets", "commits", "sources", *(["state"] if state else [])]
        with self._syncing, writing(self.folder), ThreadPoolExecutor(AT_ONCE) as threads:
            seen: set[_File] = set()
            for part in parts:
                seen.update(_files(self.folder / part, deep=part in ("sources", "state")))
            new = [Path(path) for path, _, _ in seen - self._synced]
            folders = {path.parent for path in new}
            above = {over for folder in folders - self._folders for over in folder.parents}
            above = {over for over in above if over.is_relative_to(self.folder.parent)}
            # A disk takes several at once in the time of one; names come behind what they name.
            for some in (new, folders | above):
                list(threads.map(_sync, some))
            self._synced, self._folders = seen, self._folders | folders

    # ------------------------------------------------------------------ that it is whole

    def mend(self) -> None:
        """Let the log end with a batch that can be taken (again)."""
        # A power failure leaves names without content. No sink has such a batch: what it has was synced.
        parts = [
            self.folder / part / str(n)
            for part in ("offsets", "commits")
            for n in _numbers(self.folder / part)
        ]
        self._set_aside([path for path in parts if not path.stat().st_size])
        begun = self.begun()
        # A batch begins where the one before ends: without that one it cannot be taken.
        last = max((n for n in begun if n == 0 or n - 1 in begun), default=-1)
        if begun and last < 0:
            raise CheckpointError(
                f"{self.folder / 'offsets' / str(begun[-1] - 1)} is missing, without which batch {begun[-1]} "
                f"has no beginning; {RESTORE}"
            )
        if last >= 0:
            self._lines(last)
        self._forget(last)
        done = _numbers(self.folder / "commits")
        if done:
            _check_commit(self.folder / "commits" / str(done[-1]))
        needed = last + 1 if done and done[-1] == last else last
        if begun:
            self._mend_id()
        if needed <= 0:  # what there is of state is of a batch that begins without any
            self._set_aside(list((self.folder / "state").glob("*")))
        self._set_aside([path for path, _ in self._versions() if self._lacks(path) is not None])
        if needed <= 0:
            return
        whole = self._whole_state(needed, int(self.conf(last).get("spark.sql.shuffle.partitions", "1")))
        if whole == needed:
            return
        if self.content_if_known(whole) is None:
            raise CheckpointError(
                f"{self.folder / 'state'} lacks files of version {needed}, and the batches since version "
                f"{whole} are not in {self.folder / 'offsets'} any more; {RESTORE}"
            )
        self._forget(whole, done=whole - 1)

    def _mend_id(self) -> None:
        """Spark wants its name of the query, and any will do."""
        path = self.folder / "metadata"
        try:
            json.loads(path.read_bytes())["id"]
        except (OSError, ValueError, LookupError, TypeError):
            self._set_aside([path])
            replace_file(path, json.dumps({"id": str(uuid.uuid4())}).encode())

    def _forget(self, last: int, done: int | None = None) -> None:
        """Set aside what belongs to batches behind `last`, and that those behind `done` are done."""
        end = last if done is None else done
        files = [self.folder / "commits" / str(n) for n in _numbers(self.folder / "commits") if n > end]
        files += [path for path, version in self._versions() if version > last + 1]
        files += [self.folder / "offsets" / str(n) for n in self.begun() if n > last]
        self._set_aside(files)
        self._known.clear()

    def _set_aside(self, files: list[Path]) -> None:
        crcs = [path.with_name(f".{path.name}.crc") for path in files]
        there = [path for path in (*files, *crcs) if path.exists()]
        if not there:
            return
        lost = self.folder.parent / "lost"
        with writing(lost):
            lost.mkdir(exist_ok=True)
            aside = Path(tempfile.mkdtemp(prefix=time.strftime("%Y-%m-%dT%H-%M-%S-"), dir=lost))
            for path in there:
                to = aside / path.relative_to(self.folder)
                to.parent.mkdir(parents=True, exist_ok=True)
                path.replace(to)

    def _versions(self) -> Iterator[tuple[Path, int]]:
        """The files of state, and of which version they are: that behind batch n is n + 1."""
        for path in (self.folder / "state").glob("[0-9]*/[0-9]*/*"):
            if found := _VERSION.fullmatch(path.name):
                yield path, int(found[1])

    def _whole_state(self, needed: int, partitions: int) -> int:
        """The last version up to `needed` that all partitions have: a snapshot, or the changes since one."""
        snapshots: dict[Path, set[int]] = {}
        changes: dict[Path, set[int]] = {}
        for path, version in self._versions():
            kind = snapshots if path.suffix == ".zip" else changes
            kind.setdefault(path.parent, set()).add(version)
        whole = needed
        operators = {folder.parent for folder in snapshots | changes} or {self.folder / "state" / "0"}
        for operator in operators:
            for partition in range(partitions):
                folder = operator / str(partition)
                whole = min(whole, _last(needed, snapshots.get(folder, set()), changes.get(folder, set())))
        return whole


def _last(needed: int, snapshots: set[int], changes: set[int]) -> int:
    """The last version up to `needed` that can be loaded.

    >>> _last(7, {3}, {4, 5, 6, 7}), _last(7, {3}, {4, 6, 7}), _last(2, set(), {1, 2}), _last(2, set(), {2})
    (7, 4, 2, 0)
    """
    for version in range(needed, 0, -1):
        at = version
        while at in changes and at not in snapshots:
            at -= 1
        if at == 0 or at in snapshots:
            return version
    return 0


def _numbers(folder: Path) -> list[int]:
    """The files in a folder that are called by numbers, in order."""
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit())


def _files(folder: str | Path, deep: bool) -> Iterator[_File]:
    """The files in a folder, and in those below it, but for those that are being written."""
    try:
        entries = list(os.scandir(folder))
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.is_dir():
            if deep:
                yield from _files(entry.path, deep)
        elif ".tmp" not in entry.name:
            try:
                about = entry.stat()
            except FileNotFoundError:  # cleared away meanwhile
                continue
            yield entry.path, about.st_ino, about.st_mtime_ns


def _sync(path: Path) -> None:
    try:
        sync(path)
    except FileNotFoundError:  # Spark clears away what is old
        return


def _check_commit(path: Path) -> None:
    with reading(path, "put it back from a copy, or delete it: its batch is then taken again"):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) < 2 or not lines[0].startswith("v"):
            raise ValueError("it is cut off")
        json.loads(lines[1])
