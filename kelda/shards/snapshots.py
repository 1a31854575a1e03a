"""Snapshots: instants up to which all streams are complete, one behind each batch, to be asked later.

The number of a snapshot is that of its batch, and its offsets are where each stream stood then: what Wukong+S
plans ahead (SN-VTS), the log of batches says by itself.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from kelda.engine.clock import NEVER
from kelda.errors import UsageError
from kelda.store.moments import of_instant

Keep = int | timedelta
"""So many snapshots, or those of so long a time before the last."""

DEFAULT_KEEP = 2


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The stored graphs behind a batch: all streams up to `instant` (ms; None before there is any), each
    having come to its offset, and all updates so far."""

    number: int
    instant: int | None
    offsets: Mapping[str, int]
    moment: int


class Snapshots:
    """Those that are kept. Any thread may look."""

    def __init__(self, keep: Keep) -> None:
        if isinstance(keep, int) and keep < 1:
            raise UsageError(f"keep={keep}: there is always the last snapshot; keep 1 or more")
        self._keep = keep
        self._kept: deque[Snapshot] = deque()
        self._lock = threading.Lock()

    def take(self, number: int, now: int, offsets: Mapping[str, int], moment: int) -> None:
        """One more; it takes the place of the last if that has its number."""
        snapshot = Snapshot(number, None if now == NEVER else now, dict(offsets), moment)
        with self._lock:
            if self._kept and self._kept[-1].number == number:
                self._kept.pop()
            self._kept.append(snapshot)
            while self._too_many():
                self._kept.popleft()

    def _too_many(self) -> bool:
        if isinstance(self._keep, int):
            return len(self._kept) > self._keep
        if len(self._kept) < 2:
            return False
        # One is kept that is older than the time that is to be kept: it is the one that held then.
        second, last = self._kept[1].instant, self._kept[-1].instant
        return last is not None and (
            second is None or last - second >= self._keep // timedelta(milliseconds=1)
        )

    def all(self) -> list[Snapshot]:
        """Oldest first."""
        with self._lock:
            return list(self._kept)

    def at(self, number: int) -> Snapshot:
        """The one of this number, or the last before it: after a restart those are not known that had nothing
        new."""
        kept = self.all()
        found = bisect_right(kept, number, key=lambda snapshot: snapshot.number)
        if found and number <= kept[-1].number:
            return kept[found - 1]
        there = f"{kept[0].number} to {kept[-1].number}" if kept else "none"
        raise UsageError(
            f"snapshot {number} is not kept; there are: {there}. Connect with keep= to keep more"
        )

    def moment_at(self, instant: int) -> int:
        """The moment at which continuous queries saw the graphs at an instant."""
        kept = self.all()
        first, last = (kept[0], kept[-1]) if kept else (None, None)
        if last is None or last.instant is None or instant > last.instant:
            raise UsageError("the streams have not come so far yet: wait until they have, or ask without at=")
        assert first is not None
        if first.instant is not None and instant < first.instant:
            raise UsageError(
                "what was stored at that time is not kept any more: connect with keep= to keep it longer"
            )
        return of_instant(instant)

    @property
    def oldest(self) -> int | None:
        """The oldest moment that can be asked for."""
        kept = self.all()
        return kept[0].moment if kept else None
