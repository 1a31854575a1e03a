"""One growing file: batches appended, and a journal beside it that says where the last one ends.

    file     ├── batch 0 ──┼── batch 1 ──┼── batch 2 ──┼── half of ba
    journal                                             ▲ (2, bytes)

Whatever lies behind the journal's mark is of a batch that a crash cut short. It is cut off before
anything is written, and the batch, when it comes again, is written whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kelda.durable import make_folder, open_locked, write_all
from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.formats import Format, columns_in
from kelda.io.sinks.content import Held, has
from kelda.io.sinks.journal import JOURNAL, Journal, Page
from kelda.io.sinks.sink import Existing
from kelda.kept import writing


class FileSink:
    """Answers in one file, in a format that can be appended to."""

    def __init__(
        self, path: str | Path, format: Format, *, query: str, run: str = "", existing: Existing = "refuse"
    ) -> None:
        self.path, self.format = Path(path), format
        make_folder(self.path.parent)
        if self.path.exists() and not self.path.is_file():
            raise UsageError(
                f"{self.path} is not a plain file, so a half-written batch cannot be taken back; "
                "write to a file, or to the console"
            )
        self._file = open_locked(self.path, os.O_RDWR | os.O_CREAT)
        try:
            self._journal = Journal(self.path.with_name(self.path.name + JOURNAL))
            with writing(self.path):
                self._begin(query, run, existing)
        except BaseException:
            self.close()
            raise

    def _begin(self, query: str, run: str, existing: Existing) -> None:
        size = os.fstat(self._file).st_size
        page, new = self._journal.begin(query, run, existing, occupied=size > 0, what=self.path)
        if new and existing == "append" and size > 0:
            page = replace(page, bytes=page.bytes or size)
        if page.bytes > size:
            raise UsageError(
                f"{self.path} has {size:,} bytes, and {page.bytes:,} were written to it: put it back as it "
                f"was, or delete it and {self._journal.path} to go on without what is lost"
            )
        if self.format.columns is None:
            self.format.columns = page.columns
        if new:
            if page.bytes:
                self._check_foreign(page.bytes)
            self._journal.keep(page)
        os.ftruncate(self._file, page.bytes)

    def _check_foreign(self, size: int) -> None:
        """Refuse to append to what answers in this format cannot follow."""
        if self.format.columns is None:
            raise UsageError(
                f"cannot append to {self.path} without knowing the columns of the query: "
                "open the sink with shape=shape_of(query)"
            )
        head = self.format.head()
        if os.pread(self._file, len(head), 0) != head or os.pread(self._file, 1, size - 1) != b"\n":
            raise UsageError(
                f"cannot append to {self.path}: it does not begin or end as answers in this format do "
                "(another header, or no newline at the end); write somewhere else"
            )

    @property
    def held(self) -> Held:
        return self._held(self._journal.now())

    def _held(self, page: Page) -> Held:
        return Held(page.batch, page.content, str(self.path))

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        page = self._journal.now()
        if has(self._held(page), batch, content) or not answers:
            return
        columns = self.format.columns = (
            columns_in(answers) if self.format.columns is None else self.format.columns
        )
        data = self.format.body(answers)
        if page.bytes == 0 and (head := self.format.head()):
            data = b"".join((head, data))
        with writing(f"batch {batch} to {self.path}"):
            os.ftruncate(self._file, page.bytes)
            write_all(self._file, data, page.bytes)
            os.fsync(self._file)
            end = page.bytes + len(data)
            self._journal.keep(replace(page, batch=batch, content=content, bytes=end, columns=columns))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
