"""The times that a program says on one stream, as instants."""

from __future__ import annotations

import warnings

from kelda.rdf.times import Time, looks_like_seconds, seconds_taken_for_ms, to_ms

_CALLER = 3  # who called push or heartbeat, which called `of`


class Instants:
    """Reads and checks times. The first one tells whether their unit is mistaken: a story that begins in 1970
    may well come to where seconds of today are, but does not begin there."""

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._begun = False

    def of(self, time: Time) -> int:
        """Milliseconds since 1970; see `to_ms`."""
        ms = to_ms(time)
        if not self._begun:
            self._begun = True
            if looks_like_seconds(ms):
                warnings.warn(f"<{self._stream}>: {seconds_taken_for_ms(ms)}", stacklevel=_CALLER)
        return ms
