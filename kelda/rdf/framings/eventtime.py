"""Event time from the event itself: which triple says when it happened."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyoxigraph import Literal, Quad

from kelda.rdf.framings.base import RecordError
from kelda.rdf.times import in_calendar, iso_to_ms

# Tried in this order when the caller names no predicate.
TIME_PREDICATES = (
    "http://www.w3.org/ns/prov#generatedAtTime",
    "http://www.w3.org/ns/sosa/resultTime",
    "http://www.w3.org/ns/sosa/phenomenonTime",
    "https://www.w3.org/ns/activitystreams#published",
)

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


def to_ms(text: str) -> int | None:
    """A whole number is epoch milliseconds, anything else an ISO date (no zone means UTC).

    The text decides, not the datatype: many a stream writes its times as plain strings.
    """
    text = text.strip()
    if _INTEGER.fullmatch(text):  # beyond the calendar it is rather in other units than so far away
        return int(text) if in_calendar(int(text)) else None
    return iso_to_ms(text)


def event_time(quads: Iterable[Quad], time_predicate: str | None) -> int | None:
    """The latest time that `time_predicate` gives in these quads: by then all of it had happened.

    A named predicate must be there with a readable value, or the record is rejected. With no
    name, the usual ones are tried in order (values that are not literals are passed over), and
    None means arrival time. An event without quads has no time.
    """
    values: dict[str, list[object]] = {}
    for quad in quads:
        values.setdefault(quad.predicate.value, []).append(quad.object)
    if not values:
        return None
    if time_predicate is not None:
        if time_predicate not in values:
            raise RecordError(f"no time: no triple of the event has the time predicate <{time_predicate}>")
        return max(_time(time_predicate, value) for value in values[time_predicate])
    for predicate in TIME_PREDICATES:
        times = [_time(predicate, value) for value in values.get(predicate, ()) if isinstance(value, Literal)]
        if times:
            return max(times)
    return None


def _time(predicate: str, value: object) -> int:
    time = to_ms(value.value) if isinstance(value, Literal) else None
    if time is None:
        raise RecordError(
            f"no time: {value} of <{predicate}> is neither an xsd:dateTime nor epoch milliseconds"
        )
    return time
