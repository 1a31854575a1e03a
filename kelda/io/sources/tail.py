"""`tail:path`: a file that somebody appends to, for as long as the job runs.

Only whole records are taken; the rest of a half-written one is waited for. The file may only grow: one
that became shorter, was written over or replaced is an error, since what was in it may not all have
been read.
"""

from __future__ import annotations

from kelda.errors import UsageError
from kelda.io.sources.file import FileReader
from kelda.io.sources.reader import Offset
from kelda.io.sources.text import PackedText, PlainText, is_packed


class TailReader(FileReader):
    """Reads what has been appended. Where a batch ends depends on when it was made, so offsets that
    follow from each other may be far apart, but the records between two of them are always the same."""

    complete = False

    def _open(self) -> PlainText | PackedText:
        if is_packed(self.path):
            raise UsageError(
                f"{self.path} is compressed, so it cannot be followed while it grows; "
                "read it as a file, or append plain text"
            )
        return PlainText(self.path)

    def latest(self, at: Offset, max_records: int | None = None) -> Offset:
        assert isinstance(self._text, PlainText)
        if self._text.replaced():
            raise self._changed("another file bears its name")
        self._reached = -1  # what was read may have been written over since: look at its end again
        self._size = self.path.stat().st_size
        return super().latest(at, max_records)
