"""A function of yours, called with each answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from kelda.engine.answer import Answer
from kelda.io.sinks.content import Held
from kelda.io.sinks.ledger import Ledger


class CallbackSink:
    """Calls `call` with each answer, in order. With a `ledger` every answer is handed on once, but for the
    one whose call a crash (or an error of `call`) cut short: that is handed on again. Without, a batch
    that comes again after a restart is handed on again."""

    def __init__(self, call: Callable[[Answer], None], ledger: Path | None, *, run: str = "") -> None:
        self._call, self._ledger = call, Ledger(ledger, run)

    @property
    def held(self) -> Held:
        return self._ledger.held

    def write(self, batch: int, answers: Sequence[Answer], *, content: str | None = None) -> None:
        untold = self._ledger.untold(batch, answers, content)
        for answer in untold:
            self._call(answer)
            self._ledger.note()
        if untold:
            self._ledger.sync()

    def close(self) -> None:
        self._ledger.close()
