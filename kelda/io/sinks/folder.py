"""One file a batch, called by its number: for readers that take whole files, such as Spark and pandas.

A file appears under its name when it is whole and on the disk, never before. A batch that comes again
is the same file again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kelda.durable import make_folder, open_locked, replace_file
from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.formats import Format, columns_in
from kelda.io.sinks.content import Held, has
from kelda.io.sinks.journal import JOURNAL, Journal, Page
from kelda.io.sinks.sink import Existing
from kelda.kept import writing

_BATCH = re.compile(r"([0-9]{12,})\.[a-z]+")
_LEFT_OVER = re.compile(r"\.[0-9]{12,}\.[a-z]+\.new")


class FolderSink:
    """Answers in a folder, a file for each batch that has any."""

    def __init__(
        self, folder: str | Path, format: Format, *, query: str, run: str = "", existing: Existing = "refuse"
    ) -> None:
        self.folder, self.format = Path(folder), format
        make_folder(self.folder)
        self._lock = open_locked(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._journal = Journal(self.folder / JOURNAL)
            with writing(self.folder):
                self._begin(query, run, existing)
        except BaseException:
            self.close()
            raise

    def _begin(self, query: str, run: str, existing: Existing) -> None:
        names = [path.name for path in self.folder.iterdir()]
        visible = [name for name in names if not name.startswith(".")]
        page, new = self._journal.begin(query, run, existing, occupied=bool(visible), what=self.folder)
        if self.format.columns is None:
            self.format.columns = page.columns
        if new:
            # Before the journal is there: a crash in between finds the folder still to be cleared.
            self._clear([name for name in visible if _BATCH.fullmatch(name)], existing)
            self._journal.keep(page)
        for name in names:
            if _LEFT_OVER.fullmatch(name):
                (self.folder / name).unlink()

    def _clear(self, batches: list[str], existing: Existing) -> None:
        if batches and existing != "overwrite":
            raise UsageError(
                f"cannot append to {self.folder}: its files are called by the batches of another run, "
                "whose numbers come again; write to another folder"
            )
        for name in batches:
            (self.folder / name).unlink()

    def file(self, batch: int) -> Path:
        """Where a batch is."""
        return self.folder / f"{batch:012d}{self.format.suffix}"

    @property
    def held(self) -> Held:
        return self._held(self._journal.now())

    def _held(self, page: Page) -> Held:
        return Held(page.batch, page.content, str(self.folder))

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        if answers:
            self._put(batch, answers, None, content)

    def _put(self, batch: int, answers: Sequence[Answer], time: int | None, content: str | None) -> None:
        page = self._journal.now()
        if has(self._held(page), batch, content):
            return
        page = replace(page, batch=batch, content=content, time=time)
        if answers:
            if self.format.columns is None:
                self.format.columns = columns_in(answers)
            data = b"".join((self.format.head(), self.format.body(answers)))
            page = replace(page, columns=self.format.columns, bytes=page.bytes + len(data))
            replace_file(self.file(batch), data)
        self._journal.keep(page)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def batch_files(folder: Path, suffix: str) -> list[tuple[int, Path]]:
    """The batches that lie in a folder, in their order."""
    found = [(path, _BATCH.fullmatch(path.name)) for path in folder.iterdir() if path.suffix == suffix]
    return sorted((int(match[1]), path) for path, match in found if match)
