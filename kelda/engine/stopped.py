"""A query that has failed is stopped: it answers nothing any more, and says why; the others go on."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kelda.engine.clock import NEVER
from kelda.errors import IdCollisionError, KeldaError, QueryStopped
from kelda.rdf.times import ms_to_iso

log = logging.getLogger("kelda")

# What is wrong with all that the engine holds is no query's own trouble.
EVERYBODYS = (IdCollisionError,)
_FAR = 1 << 45  # ms: more than a thousand years from 1970


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why, and the instant up to which it has answered; `error` is there in the process where it happened."""

    at: int
    reason: str
    error: Exception | None = field(default=None, compare=False)

    @classmethod
    def by(cls, error: Exception, at: int, how: str = "") -> Stopped:
        """It failed after `at`."""
        text = str(error).strip()
        ours = isinstance(error, KeldaError) and text
        return cls(at, how + (text if ours else f"{type(error).__name__}: {text}".rstrip(": ")), error)

    def say(self) -> str:
        """In words."""
        if self.at == NEVER:
            return f"stopped before it had answered anything: {self.reason}"
        when = ms_to_iso(self.at) if abs(self.at) < _FAR else f"{self.at} ms"
        return f"stopped after {when}: {self.reason}"

    def raised(self, name: str) -> QueryStopped:
        """What the query's reader is told."""
        error = QueryStopped(
            f"query {name!r} is {self.say()}\n"
            "The other queries go on. To try it again: drop it and register it anew"
        )
        error.__cause__ = self.error
        return error

    def warn(self, names: Sequence[str]) -> None:
        """For the log; with the traceback if that is not an error of ours, which tell all in their text."""
        known = self.error is None or isinstance(self.error, KeldaError)
        more = f" (and {len(names) - 1} more, in one network with it)" if len(names) > 1 else ""
        log.warning("query %r%s is %s", names[0], more, self.say(), exc_info=None if known else self.error)


def raise_stopped(stopped: Mapping[str, Stopped]) -> None:
    """At the end of a run in which others went on: its reader is told of the queries that did not."""
    errors = [why.raised(name) for name, why in stopped.items()]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise QueryStopped("\n".join(f"query {name!r} is {why.say()}" for name, why in stopped.items()))
