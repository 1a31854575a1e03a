"""`folder:path?pattern=*.nt.gz&watch=true`, or just the path: the files of a folder, one after the other.

Files are taken in the order of their names. With `watch`, files that appear later are taken too, when
they are complete: unchanged for a second. Names that begin with a dot or an underscore are passed over, so
a file can be written under such a name and renamed when it is done.

The order in which files were taken is written down (`taken.jsonl`) before any of it is handed out. So
a file that appears under a name in front of those that were taken comes next instead of being missed,
and a batch that is read again finds the same files.
"""

from __future__ import annotations

import fnmatch
import json
import os
from dataclasses import replace
from pathlib import Path

from kelda.durable import append
from kelda.errors import InputError, UsageError
from kelda.io.job import StreamSource
from kelda.io.sources.file import FileReader, Taken
from kelda.io.sources.reader import Now, Offset, Piece, wall
from kelda.kept import reading
from kelda.rdf.framing import RECORDS, guess_format

SETTLED = 1.0  # seconds without a change after which a file counts as complete


class FolderReader:
    """Reads file after file. An offset is a place in the file that is being read."""

    def __init__(
        self,
        path: Path,
        source: StreamSource,
        number: int,
        *,
        pattern: str = "*",
        watch: bool = False,
        spool: Path,
        piece_records: int = RECORDS,
        now: Now = wall,
        spots: bool = False,
    ) -> None:
        if not path.is_dir():
            raise InputError(f"there is no folder {path}")
        self.path, self.source, self.number = path, source, number
        self._pattern, self._watch, self._piece_records, self._now = pattern, watch, piece_records, now
        self._spots = spots
        self._log = spool / "taken.jsonl"
        self._taken = self._read_log()  # names and sizes, in the order in which they were taken
        self._sizes = dict(self._taken)
        self._seen: dict[str, tuple[int, int, float]] = {}  # not taken yet: size, mtime, since when
        self.format = source.format or self._guess()
        self._open: FileReader | None = None
        self._open_index = -1

    def start(self) -> Offset:
        return {
            "file": "",
            "files": 0,  # how many were begun
            "pieces": 0,
            "records": 0,
            "bytes": 0,
            "line": 1,
            "context": "",
            "mark": [0, 0],
            "done": True,  # with this file
            "ended": False,
        }

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        if at["files"] > len(self._taken):
            raise InputError(
                f"{self._log} is not what it was: file {at['file']} is being read, and it does not say so. "
                "Restore it together with the checkpoint, or start again with another checkpoint folder"
            )
        records = 0
        self._look()
        while (taken := self._take(at)) is not None:
            if records and max_records is not None and records + taken.piece.records > max_records:
                break
            records += taken.piece.records
            at = taken.end
        return at

    def pieces(self, begin: Offset, end: Offset) -> list[Piece]:
        pieces: list[Piece] = []
        at = begin
        # By places, not by numbers of pieces: a run with larger or smaller batches cuts other pieces.
        while _place(at) != _place(end):
            taken = self._take(at, end)
            if taken is None or _place(taken.end)[:2] > _place(end)[:2]:
                raise InputError(
                    f"the files that were read from {self.path} are not there any more as {self._log} says. "
                    "Restore them, or start again with another checkpoint folder"
                )
            pieces.append(taken.piece)
            at = taken.end
        return pieces

    def commit(self, end: Offset) -> None:
        if self._open is not None and self._open_index == end["files"] - 1:
            self._open.commit(end)

    def finished(self, at: Offset) -> bool:
        return bool(at["ended"])

    def part(self, at: Offset) -> float:
        if at["ended"]:
            return 1.0
        before = sum(size for _, size in self._taken[: at["files"] - 1]) if at["files"] else 0
        total = sum(size for _, size in self._taken) + sum(size for size, _, _ in self._seen.values())
        here = 0.0
        if at["files"] and at["files"] <= len(self._taken):
            size = self._taken[at["files"] - 1][1]
            same = self._open is not None and self._open_index == at["files"] - 1
            here = size * (1.0 if at["done"] else self._open.part(at) if same and self._open else 0.0)
        return (before + here) / max(1, total)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    # ------------------------------------------------------------------ one piece

    def _take(self, at: Offset, until: Offset | None = None) -> Taken | None:
        if at["ended"]:
            return None
        if at["done"]:
            if at["files"] == len(self._taken) and not self._choose():
                if self._watch:
                    return None
                piece = Piece(self.number, at["pieces"], None, 0, 0, ends=True)
                return Taken(piece, {**at, "pieces": at["pieces"] + 1, "ended": True})
            name = self._taken[at["files"]][0]
            fresh = {"bytes": 0, "line": 1, "context": "", "mark": [0, 0], "done": False}
            at = {**at, "file": name, "files": at["files"] + 1, **fresh}
        here = None if until is None or until["done"] or until["files"] != at["files"] else until
        taken = self._reader(at["files"] - 1).take(at, here)
        assert taken is not None  # a complete file has a last piece
        # The last piece of a file is not that of the folder.
        piece = replace(taken.piece, ends=False, name=str(self.path / at["file"]))
        return Taken(piece, {**taken.end, "done": taken.piece.ends, "ended": False})

    def _reader(self, index: int) -> FileReader:
        if self._open is None or self._open_index != index:
            self.close()
            path = self.path / self._taken[index][0]
            self._open = FileReader(
                path,
                self.source,
                self.number,
                format=self.format,
                piece_records=self._piece_records,
                spots=self._spots,
            )
            self._open_index = index
        return self._open

    # ------------------------------------------------------------------ which file is next

    def _look(self) -> None:
        """Notice new files, and changes to those that were thought complete."""
        here: dict[str, tuple[int, int, float]] = {}
        for entry in os.scandir(self.path):
            if entry.name.startswith((".", "_")) or not fnmatch.fnmatch(entry.name, self._pattern):
                continue
            if not entry.is_file():
                continue
            found = entry.stat()
            if entry.name in self._sizes:
                if found.st_size != self._sizes[entry.name]:
                    raise InputError(
                        f"{self.path / entry.name} has changed after it was taken for complete. Write files "
                        "under a name that begins with a dot and rename them when they are done"
                    )
                continue
            before = self._seen.get(entry.name)
            same = before is not None and before[:2] == (found.st_size, found.st_mtime_ns)
            since = before[2] if before is not None and same else self._now()
            here[entry.name] = (found.st_size, found.st_mtime_ns, since)
        self._seen = here

    def _choose(self) -> bool:
        """Take the next file, if one is complete."""
        if not self._seen:
            return False
        name = min(self._seen)
        size, changed, since = self._seen[name]
        now = self._now()
        # The one that is next in order is waited for, even if others are complete.
        if self._watch and now - changed / 1e9 < SETTLED and now - since < SETTLED:
            return False
        if self.source.format is None and guess_format(name) != self.format:
            raise UsageError(
                f"{self.path / name} is not {self.format} as the files before it; "
                "say which files are meant with ?pattern=, or their format"
            )
        append(self._log, json.dumps([name, size]).encode() + b"\n")
        self._taken.append((name, size))
        self._sizes[name] = size
        del self._seen[name]
        return True

    def _read_log(self) -> list[tuple[str, int]]:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        if not self._log.exists():
            return []
        with reading(self._log):
            text = self._log.read_bytes()
            whole = text.rfind(b"\n") + 1
            if whole < len(text):
                os.truncate(self._log, whole)  # a line that was being written when the process died
            return [(name, size) for name, size in map(json.loads, text[:whole].splitlines())]

    def _guess(self) -> str:
        try:
            return guess_format(self._pattern)
        except UsageError:
            self._look()
        names = [name for name, _ in self._taken[:1]] or sorted(self._seen)
        if not names:
            raise UsageError(f"{self.path} is empty yet: say the format of the files that will be there")
        return guess_format(names[0])


def _place(at: Offset) -> tuple[int, int, bool, bool]:
    return at["files"], at["bytes"], at["done"], at["ended"]
