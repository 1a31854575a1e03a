"""`nquads`: N-Quads (and N-Triples), with or without a time before each line.

- `epoch-milliseconds TAB N-Quads`: the line is one event of one quad, as in `tsnt`.
- Plain N-Quads: consecutive lines *about the same thing* are one event. The thing is the graph
  name, or for a triple in the default graph its subject. So a named graph is one event, also
  together with the `<graph> prov:generatedAtTime "…"` beside it, and so is a resource that is
  described in a few lines of N-Triples. Time comes from the time predicate.

Each line says by itself which of the two it is. An event is all or nothing: a broken plain line
belongs to the event of the line before it, and the whole event is rejected. Blank lines and
comments separate nothing. Blank node labels belong to the whole file and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyoxigraph import RdfFormat

from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    MAX_RECORD,
    Chunk,
    Cut,
    Framing,
    Reading,
    RecordError,
    line_ends,
    no_mapping,
    parsed,
)
from kelda.rdf.framings.eventtime import event_time
from kelda.rdf.framings.tsnt import TIMED, Timed, says_nothing, timed_line, timed_quads

_TERM = re.compile(
    rb"(?P<open><<\()|(?P<close>\)>>)|(?P<dot>\.(?=\s*(?:#|$)))|"
    rb'(?P<term><[^<>"\s]*>|_:[^\s<>"]*[^\s<>".]|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?)|'
    rb"[ \t]+|(?P<junk>.)"
)
_CR_WITHIN = re.compile(rb"\r(?![ \t\r]*(?:\n|\Z))")
# The usual line at one stroke: IRIs, and a literal without escapes.
_SIMPLE = re.compile(
    rb"""
    [ \t]* (IRI) [ \t]* IRI [ \t]*
    (?: IRI | "[^"\\]*" (?: @[A-Za-z0-9-]+ | \^\^IRI )? )
    [ \t]* (IRI)? [ \t]* \. \s* $
    """.replace(b"IRI", rb"""<[^<>"\s]*>"""),
    re.VERBOSE,
)


def thing_of(line: bytes) -> bytes | None:
    """The graph name of a plain line, or its subject; None if the line is broken."""
    simple = _SIMPLE.match(line)
    if simple:
        return simple[2] or simple[1]
    terms: list[bytes] = []
    depth = 0
    for found in _TERM.finditer(line.rstrip(b"\r\n")):
        kind = found.lastgroup
        if kind == "dot" and depth == 0:
            return terms[3] if len(terms) == 4 else terms[0] if len(terms) == 3 else None
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        if kind == "junk":
            return None
        if depth == 0 and kind in ("term", "close"):
            terms.append(found[0])
    return None


class RunSplitter:
    """A timed line is a record; so is a run of plain lines about the same thing."""

    context = b""

    def __init__(self, longest: int = MAX_RECORD) -> None:
        self._longest = longest
        self._seen = 0  # bytes of the open run that were looked at before
        self._gone = 0  # bytes of the line before `_seen` that were let go
        self._forgot = False
        self._thing: bytes | None = None
        self._open = False

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        cuts: list[Cut] = []
        start, done = self._seen, 0
        for end in line_ends(data[start:], at_end) if start else line_ends(data, at_end):
            end += self._seen
            line = data[start:end]
            too_long, self._gone = self._gone + len(line) > self._longest, 0
            if too_long:  # a broken line, whatever it says
                self._thing, self._open = self._thing if self._open else None, True
            elif says_nothing(line):
                pass
            elif TIMED.match(line):
                if self._open:
                    cuts.append(Cut(start, b""))
                cuts.append(Cut(end, b""))
                done, self._open = end, False
            else:
                thing = thing_of(line)
                if self._open and thing is not None and thing != self._thing:
                    cuts.append(Cut(start, b""))
                    done, self._open = start, False
                if thing is not None or not self._open:
                    self._thing, self._open = thing, True
            start = end
        if cuts:
            self._forgot = False
        if at_end and (start > done or self._forgot):
            cuts.append(Cut(start, b"", record=self._open or self._gone > 0))
            done = start
        self._seen = start - done
        return cuts

    def forget(self, size: int) -> int:
        line = size - self._seen  # what is there of a line, which may belong to the next record
        if self._gone + line > self._longest:
            self._gone += line
            gone = size
        elif self._forgot or self._seen > self._longest:
            gone = self._seen
        else:
            return 0
        self._seen, self._forgot = 0, True
        return gone


class NQuads:
    name = "nquads"
    about = "N-Quads or N-Triples, plain or with epoch-milliseconds TAB before each line"
    extensions: tuple[str, ...] = ("nq", "nt", "nquads", "ntriples")

    def prepare(self, mapping: Mapping[str, Any] | None) -> None:
        no_mapping(self.name, mapping)

    def splitter(self, mapping: Any, longest: int = MAX_RECORD) -> RunSplitter:
        return RunSplitter(longest)

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        timed: list[Timed] = []
        start, number = 0, chunk.first_line
        for cut in RunSplitter(how.longest).cuts(chunk.data, at_end=True):
            record = chunk.data[start : cut.end]
            for offset, line in enumerate(record.split(b"\n")):
                if says_nothing(line):
                    continue
                if not TIMED.match(line):
                    yield from timed_quads(timed, how)
                    timed = []
                    yield from self._read_run(record, number, number + offset, how)
                    break
                try:
                    found = timed_line(line)
                except RecordError as error:
                    yield from timed_quads(timed, how)
                    timed = []
                    how.reject(number + offset, str(error), line)
                else:
                    assert found is not None  # it says something
                    timed.append((number + offset, line, *found))
                break
            start, number = cut.end, number + record.count(b"\n")
        yield from timed_quads(timed, how)

    def _read_run(self, record: bytes, first_line: int, shown_line: int, how: Reading) -> Iterator[Event]:
        try:
            quads = tuple(parsed(record, RdfFormat.N_QUADS))
            if _CR_WITHIN.search(record):
                raise RecordError("a carriage return within a line: lines end with LF or CR LF")
            event = how.event(event_time(quads, how.time_predicate), quads)
        except RecordError as error:
            broken = error.__cause__
            line = shown_line
            if isinstance(broken, SyntaxError) and broken.lineno and b"\r" not in record:
                line = min(first_line + broken.lineno - 1, first_line + record.count(b"\n"))
                record = record.split(b"\n")[line - first_line]
            how.reject(line, str(error), record.strip())
        else:
            yield event


NQUADS: Framing = NQuads()
