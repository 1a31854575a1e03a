"""The journal of a sink: which batch is the last that it holds, and how far it reaches.

A batch is in the sink if and only if the journal says so. It is replaced whole, after the batch is on
the disk: a crash before leaves a batch that does not count, a crash after leaves one that does.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kelda.durable import replace_file
from kelda.errors import CheckpointError, UsageError
from kelda.io.sinks.sink import Existing

JOURNAL = ".kelda-batches"


@dataclass(frozen=True, slots=True)
class Page:
    """What a journal says. `batch` is -1 before the first; `run` names the run whose batches these are:
    the numbers of another run mean nothing here."""

    query: str
    run: str = ""
    batch: int = -1
    content: str | None = None  # of that batch
    bytes: int = 0  # so many were written: in a file, where the last batch ends
    columns: tuple[str, ...] | None = None  # None: not known yet
    time: int | None = None  # of a stream: up to when the query has reported


class Journal:
    """A page on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def page(self) -> Page | None:
        """What it says; None if there is none."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CheckpointError(
                f"cannot read {self.path}: {error.strerror}; put it back from a copy, with what it is beside"
            ) from error
        try:
            kept = json.loads(data)
            columns = kept.pop("columns")
            if not (isinstance(kept["batch"], int) and isinstance(kept["bytes"], int)):
                raise TypeError("its numbers are none")
            return Page(**kept, columns=None if columns is None else tuple(columns))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CheckpointError(
                f"{self.path} is broken, or not a journal of Kelda ({error}); put it back from a copy, "
                "or move it away, with what it is beside"
            ) from error

    def now(self) -> Page:
        """What it says, while its sink is open."""
        page = self.page()
        if page is None:
            raise UsageError(f"{self.path} has been deleted while it was in use; open the sink again")
        return page

    def keep(self, page: Page) -> None:
        """Say this from now on."""
        replace_file(self.path, json.dumps(asdict(page)).encode() + b"\n")

    def begin(
        self, query: str, run: str, existing: Existing, *, occupied: bool, what: Path
    ) -> tuple[Page, bool]:
        """The page to go on from, and whether it is a new one, for the caller to keep.

        `occupied` says whether there is something already. What this run did not begin is refused, or,
        as `existing` says, kept (the old page, if any, is in the new one but for its batch) or not.
        """
        page = self.page()
        if page is not None and (page.query, page.run) == (query, run):
            return page, False
        if not occupied:
            return Page(query, run), True
        if existing == "refuse":
            whose = (
                "was not written by Kelda, or its journal is gone"
                if page is None
                else f"holds the answers of query '{page.query}'" + (f", run {page.run}" if page.run else "")
            )
            raise UsageError(
                f"{what} is there already and {whose}: "
                "write somewhere else, or open the sink with existing='append' or existing='overwrite'"
            )
        if existing == "overwrite" or page is None:
            return Page(query, run), True
        return replace(page, query=query, run=run, batch=-1, content=None), True
