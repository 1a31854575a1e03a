"""`ndjsonld`: newline-delimited JSON-LD, one document a line = one event.

A line `{"@context": …}` and nothing else is no event: it sets the context of the lines below it
(they may add their own). The mapping can give that context for the start of the stream, and the
contents of contexts that are named by their address, since Kelda fetches nothing from the network:

    "@context": {"@vocab": "http://example.org/"}
    contexts: {"https://schema.org/": {"@vocab": "https://schema.org/"}}

`{}` is an event without quads. Blank nodes belong to their line and are renamed by its number.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from pyoxigraph import NamedNode, Quad, RdfFormat

from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    MAX_RECORD,
    Chunk,
    Cut,
    Framing,
    Reading,
    RecordError,
    json_text,
    line_ends,
    parsed,
)
from kelda.rdf.framings.blanks import scope_of, scoped
from kelda.rdf.framings.eventtime import event_time

# JSON-LD leaves out, in silence, what has a relative IRI and no base. With this base the relative
# IRIs can be seen, and the record be rejected.
_NO_BASE = "x-kelda-relative://"


class ContextMapping:
    """The mapping of an ndjsonld stream: its first context, and what the addresses stand for."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        given = given or {}
        unknown = set(given) - {"@context", "contexts"}
        if unknown:
            raise UsageError(
                f"the mapping has {', '.join(map(repr, sorted(map(str, unknown))))}; "
                "for ndjsonld it can have '@context' and 'contexts'"
            )
        contexts = given.get("contexts", {})
        if not isinstance(contexts, Mapping):
            raise UsageError("'contexts' of the mapping must give a JSON-LD context for each address")
        self.contexts = {address: _inner(context) for address, context in contexts.items()}
        self.first = b""
        if "@context" in given:
            self.first = json.dumps(given["@context"]).encode()

    @cached_property
    def key(self) -> str:
        """The same for mappings that say the same of addresses."""
        return repr(self.contexts)

    def filled_in(self, context: Any) -> Any:
        """The context with the addresses that the mapping knows replaced by what they stand for."""
        if isinstance(context, str):
            return self.contexts.get(context, context)
        if isinstance(context, list):
            return [self.filled_in(part) for part in context]
        return context


def _inner(context: Any) -> Any:
    return context["@context"] if isinstance(context, Mapping) and "@context" in context else context


class ContextLineSplitter:
    """Lines; a line that is a context and nothing else is no record. One that is no good as a context is a
    record, which is rejected, and the context stays as it was."""

    def __init__(self, context: bytes, mapping: ContextMapping, longest: int = MAX_RECORD) -> None:
        self.context = context
        self._mapping, self._longest = mapping, longest
        self._inside = False  # a line that is too long, whose beginning is gone

    def forget(self, size: int) -> int:
        self._inside = True
        return size

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        cuts = []
        start = 0
        for end in line_ends(data, at_end):
            line = data[start:end]
            too_long = self._inside or len(line) > self._longest
            context = None if too_long else context_line(line, self._mapping)
            if context is not None:
                self.context = context
            cuts.append(Cut(end, self.context, record=too_long or (context is None and not line.isspace())))
            start, self._inside = end, False
        return cuts


def context_line(line: bytes, mapping: ContextMapping) -> bytes | None:
    """The context that a line sets for those below it; None if it is a document, or blank."""
    if b'"@context"' not in line:
        return None
    try:
        found = json.loads(json_text(line))
        if not isinstance(found, dict) or list(found) != ["@context"]:
            return None
        context = json.dumps(found["@context"]).encode()
        _quads(_PROBE, context, mapping)
    except (ValueError, RecursionError, RecordError):
        return None  # the reader rejects the line and says why
    return context


# A document by which a context shows whether it is one.
_PROBE = b'{"@id":"x-kelda-probe:s","x-kelda-probe:p":"o"}'


class NdJsonLd:
    name = "ndjsonld"
    about = "newline-delimited JSON-LD, one document a line"
    extensions: tuple[str, ...] = ("ndjsonld", "jsonld")

    def prepare(self, mapping: Mapping[str, Any] | None) -> ContextMapping:
        return ContextMapping(mapping)

    def splitter(self, mapping: Any, longest: int = MAX_RECORD) -> ContextLineSplitter:
        return ContextLineSplitter(mapping.first, mapping, longest)

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        start, line, ordinal, context = 0, chunk.first_line, chunk.ordinal, chunk.context
        splitter = ContextLineSplitter(chunk.context, how.mapping, how.longest)
        for cut in splitter.cuts(chunk.data, at_end=True):
            text = chunk.data[start : cut.end]
            if cut.record:
                try:
                    quads = scoped(_quads(text, context, how.mapping), scope_of(how.name, ordinal))
                    event = how.event(event_time(quads, how.time_predicate), quads)
                except RecordError as error:
                    how.reject(line, str(error), text)
                else:
                    yield event
                ordinal += 1
            start, context, line = cut.end, cut.context, line + 1


def _quads(text: bytes, context: bytes, mapping: ContextMapping) -> list[Quad]:
    said = json_text(text)
    try:
        document = json.loads(said)
    except ValueError as error:
        raise RecordError(f"not a JSON document: {error}") from None
    except RecursionError:
        raise RecordError("the JSON document is nested too deeply") from None
    if not isinstance(document, (dict, list)):
        raise RecordError("expected a JSON object")
    if not document:
        return []
    if mapping.contexts:
        if isinstance(document, dict) and "@context" in document:
            document["@context"] = mapping.filled_in(document["@context"])
            text = json.dumps(document).encode()
        if context:
            context = json.dumps(mapping.filled_in(json.loads(context))).encode()
    if context:
        text = b'{"@context":%s,"@graph":%s}' % (context, text)
    try:
        quads = parsed(text, RdfFormat.JSON_LD, base_iri=_NO_BASE)
    except RecordError as error:
        if "LoadDocumentCallback" in str(error):
            raise RecordError(
                "the @context is an address, and Kelda fetches nothing from the network: "
                "give its contents in the mapping, under 'contexts'"
            ) from None
        raise
    for quad in quads:
        for term in (quad.subject, quad.predicate, quad.object, quad.graph_name):
            if isinstance(term, NamedNode) and term.value.startswith(_NO_BASE):
                raise RecordError(
                    f"relative IRI '{term.value[len(_NO_BASE) :].lstrip('/')}': give an @base in the @context"
                )
    if not quads:
        raise RecordError("the document says nothing: does its @context define its keys?")
    return quads


NDJSONLD: Framing = NdJsonLd()
