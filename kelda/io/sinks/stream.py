"""A query's answers as a stream that another query reads.

The folder holds RDF Messages, one file a batch, one message an answer, so an event arrives as it was
sent: all its triples at once, at the instant of the report. The journal says up to when the query has
reported, which is the stream's heart-beat: nothing at or before that time will come any more.
Blank nodes belong to their event, as always in RDF Messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kelda.engine.answer import Answer
from kelda.engine.columnar import last_time
from kelda.errors import InputError, UsageError
from kelda.io.formats import TIME_PREDICATE, Messages
from kelda.io.sinks.folder import FolderSink, batch_files
from kelda.io.sinks.journal import JOURNAL, Journal, Page
from kelda.io.sinks.sink import Existing
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events


class StreamSink(FolderSink):
    """Answers of a CONSTRUCT or DESCRIBE query as events. Their time is the value of `time_predicate`
    (`prov:generatedAtTime`, which readers look for by themselves) in an extra triple. `sign` is that of
    the answers which are events: "-" for a query that sends what is gone."""

    def __init__(
        self,
        folder: str | Path,
        *,
        query: str = "",
        run: str = "",
        existing: Existing = "refuse",
        sign: str = "+",
        time_predicate: str = TIME_PREDICATE,
    ) -> None:
        format = Messages(sign=sign, time_predicate=time_predicate)
        super().__init__(folder, format, query=query, run=run, existing=existing)

    def write(
        self,
        batch: int,
        answers: Sequence[Answer],
        reported: int | None = None,
        *,
        content: str | None = None,
    ) -> None:
        """Take the answers of a batch, with which the query has reported up to `reported`. Without it
        the heart-beat is the time of the last answer, and stands still while there is none."""
        before = self._journal.now().time
        times = (last_time(answers), before, reported)
        beat = max((time for time in times if time is not None), default=None)
        if answers or beat != before:
            self._put(batch, answers, beat, content)


def heartbeat(folder: str | Path) -> int | None:
    """Up to when the query that writes to `folder` has reported: all of it is there. None: not yet."""
    return _page(Path(folder)).time


def read_stream(
    folder: str | Path, *, after: int = -1, time_predicate: str = TIME_PREDICATE
) -> Iterator[tuple[int, Event]]:
    """The events that a `StreamSink` wrote, each with its batch, behind batch `after`: the triples of the
    answers, without the one that says the time."""
    folder = Path(folder)
    page = _page(folder)
    for batch, path in batch_files(folder, Messages.suffix):
        if not after < batch <= page.batch:
            continue
        for event in read_events(path, time_predicate=time_predicate, on_reject=_broken):
            yield batch, Event(event.time, event.quads[1:])  # the first one says the time


def _page(folder: Path) -> Page:
    page = Journal(folder / JOURNAL).page()
    if page is None:
        raise UsageError(f"{folder} is not a stream that a query writes: it has no {JOURNAL}")
    return page


def _broken(reject: Reject) -> None:
    raise InputError(f"{reject.source}, line {reject.line}: {reject.reason}; the file was changed")
