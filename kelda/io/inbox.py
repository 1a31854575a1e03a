"""Answers on their way to whoever reads them: kept as columns until they are read, or handed to callbacks.

What a callback raises is its query's own trouble: the query is stopped, its `error` says why, and nobody else
notices.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple

from kelda.engine.answer import Answer
from kelda.engine.block import Block, table_of
from kelda.engine.columnar import Columnar, last_time
from kelda.engine.stopped import Stopped
from kelda.errors import QueryStopped
from kelda.io.formats import shape_of
from kelda.io.frames import to_pandas, to_polars
from kelda.io.tables import html_table
from kelda.lang import algebra as A
from kelda.rdf.arrow import Terms

Callback = Callable[[Answer], None]
Taker = Callable[[Block], None]


class Readers(NamedTuple):
    """Who is told of answers as they come: of each, or of a block of them at once."""

    callbacks: tuple[Callback, ...] = ()
    takers: tuple[Taker, ...] = ()


class Inbox:
    """The reading side of a registered query. Any thread may read and subscribe."""

    name: str
    algebra: A.Query

    def __init__(self) -> None:
        self._error: QueryStopped | None = None
        self._lock = threading.Lock()
        self._blocks: deque[Block] = deque()
        self._answers: deque[Answer] = deque()  # of the block that is being read
        self._unread = 0
        self._readers = Readers()  # replaced, never changed: who calls them has a whole one
        self._over = False  # nothing will come any more
        self._sleepers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    # ------------------------------------------------------------------ reading

    def results(self) -> Iterator[Answer]:
        """The answers that have come and were not read yet, oldest first; each once, whoever reads.

        If there are none, and there will be none because the query has failed, its `error` is raised."""
        some = False
        while (answer := self._next()) is not None:
            some = True
            yield answer
        if not some and (error := self.error) is not None:
            raise error

    def _next(self) -> Answer | None:
        with self._lock:
            while not self._answers:
                if not self._blocks:
                    return None
                self._answers.extend(self._blocks.popleft().answers())
            self._unread -= 1
            return self._answers.popleft()

    def batches(self) -> Iterator[Block]:
        """The same batch by batch, as columns: each has `answers()` and `to_arrow()`."""
        while (block := self._next_block()) is not None:
            yield block

    def _next_block(self) -> Block | None:
        with self._lock:
            if self._answers:
                block = Block.of_answers(self.algebra, self.name, list(self._answers))
                self._answers.clear()
            elif self._blocks:
                block = self._blocks.popleft()
            else:
                return None
            self._unread -= len(block)
            return block

    def to_arrow(self, terms: Terms = "values") -> Any:
        """The answers that have come and were not read yet, as one `pyarrow.Table`: numbers, booleans and
        dates as such, IRIs and strings as text; or, with `terms="ntriples"`, all terms in full."""
        return table_of(self.algebra, list(self.batches()), terms)

    def to_pandas(self, terms: Terms = "values") -> Any:
        """The same as a pandas DataFrame."""
        return to_pandas(self.to_arrow(terms))

    def to_polars(self, terms: Terms = "values") -> Any:
        """The same as a Polars DataFrame."""
        return to_polars(self.to_arrow(terms))

    @property
    def unread(self) -> int:
        """How many answers wait to be read."""
        return self._unread

    @property
    def error(self) -> QueryStopped | None:
        """Why the query was stopped, if it has failed; what it had answered before can still be read."""
        return self._error

    def _repr_html_(self) -> str:
        with self._lock:
            blocks = list(self._blocks)
            if self._answers:
                blocks.insert(0, Block.of_answers(self.algebra, self.name, list(self._answers)))
        return html_table(self.name, blocks, shape_of(self.algebra))

    # ------------------------------------------------------------------ as they come

    def subscribe(self, callback: Callback) -> None:
        """Call `callback` with each further answer, instead of keeping it for `results()`."""
        with self._lock:
            self._readers = self._readers._replace(callbacks=(*self._readers.callbacks, callback))

    def subscribe_to_batches(self, callback: Taker) -> None:
        """Call `callback` with all further answers of a batch at once, as `batches()` has them."""
        with self._lock:
            self._readers = self._readers._replace(takers=(*self._readers.takers, callback))

    @property
    def _is_told(self) -> bool:
        """Whether answers go to callbacks."""
        return any(self._readers)

    async def __aiter__(self) -> AsyncIterator[Answer]:
        """Answers as they come, until the query or its engine is stopped; raises its `error` if it fails."""
        woken = asyncio.Event()
        sleeper = (asyncio.get_running_loop(), woken)
        with self._lock:
            self._sleepers.append(sleeper)
        try:
            while True:
                woken.clear()
                while (answer := self._next()) is not None:
                    yield answer
                if (error := self.error) is not None:
                    raise error
                if self._over:
                    return
                await woken.wait()
        finally:
            with self._lock:
                self._sleepers.remove(sleeper)

    # ------------------------------------------------------------------ the writing side

    def _keep(self, block: Block) -> None:
        """Keep answers until somebody reads them."""
        if self._error is not None:
            return
        with self._lock:
            self._blocks.append(block)
            self._unread += len(block)
        self._wake()

    def _end(self) -> None:
        """Nothing will come any more."""
        self._over = True
        self._wake()

    def _wake(self) -> None:
        if not self._sleepers:
            return
        with self._lock:
            for loop, woken in self._sleepers:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(woken.set)

    def _tell(self, readers: Readers, block: Block) -> None:
        """Tell callbacks of answers, unless one has failed before."""
        for taker in readers.takers:
            self._call(taker, block)
        for answer in block.answers() if readers.callbacks else ():
            for callback in readers.callbacks:
                self._call(callback, answer)

    def _call(self, callback: Callable[[Any], None], said: Answer | Block) -> None:
        if self._error is not None:
            return
        try:
            callback(said)
        except Exception as error:  # noqa: BLE001 - a callback may raise anything
            time = said.time if isinstance(said, Answer) else last_time(Columnar([said]))
            self._fail(Stopped.by(error, time or 0, "its callback raised "))

    def _fail(self, why: Stopped) -> None:
        """The query is not to go on."""
        why.warn([self.name])
        self._error = why.raised(self.name)
        self._wake()
