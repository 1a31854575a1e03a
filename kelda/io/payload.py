"""What an application may push as one event."""

from __future__ import annotations

from collections.abc import Iterable

from pyoxigraph import Quad, RdfFormat, Triple
from pyoxigraph import parse as parse_rdf

from kelda.errors import InputError

Payload = str | bytes | Triple | Quad | Iterable[Triple | Quad]


def quads_of(data: Payload) -> tuple[Quad, ...]:
    """The quads of what is pushed as one event."""
    if isinstance(data, str | bytes):
        try:
            return tuple(parse_rdf(data, RdfFormat.TRIG))
        except SyntaxError as error:
            raise InputError(f"the pushed text is not Turtle or TriG: {error}") from None
    if isinstance(data, Triple | Quad):
        data = [data]
    return tuple(q if isinstance(q, Quad) else Quad(q.subject, q.predicate, q.object) for q in data)
