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

from pyoxigraph import RdfFormat, parse

from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    Chunk,
    Cut,
    Framing,
    Reading,
    RecordError,
    line_ends,
    no_mapping,
    reason_of,
)
from kelda.rdf.framings.eventtime import event_time
from kelda.rdf.framings.tsnt import TIME_AND_REST, timed_quads

_TERM = re.compile(
    rb"(?P<open><<\()|(?P<close>\)>>)|(?P<dot>\.(?=\s*(?:#|$)))|"
    rb'(?P<term><[^<>"\s]*>|_:[^\s<>"]*[^\s<>".]|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?)|'
    rb"[ \t]+|(?P<junk>.)"
)
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

    def __init__(self) -> None:
        self._seen = 0  # bytes of the open run that were looked at before
        self._thing: bytes | None = None
        self._open = False

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        cuts: list[Cut] = []
        start, done = self._seen, 0
        for end in line_ends(data[start:], at_end) if start else line_ends(data, at_end):
            end += self._seen
            line = data[start:end]
            stripped = line.lstrip()
            if not stripped or stripped.startswith(b"#"):
                pass
            elif TIME_AND_REST.match(line):
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
        if at_end and start > done:
            cuts.append(Cut(start, b"", record=self._open))
            done = start
        self._seen = start - done
        return cuts


class NQuads:
    name = "nquads"
    about = "N-Quads or N-Triples, plain or with epoch-milliseconds TAB before each line"
    extensions: tuple[str, ...] = ("nq", "nt", "nquads", "ntriples")

    def prepare(self, mapping: Mapping[str, Any] | None) -> None:
        no_mapping(self.name, mapping)

    def splitter(self, mapping: Any) -> RunSplitter:
        return RunSplitter()

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        timed: list[tuple[int, int, bytes]] = []
        start, number = 0, chunk.first_line
        for cut in RunSplitter().cuts(chunk.data, at_end=True):
            record = chunk.data[start : cut.end]
            for offset, line in enumerate(record.split(b"\n")):
                found = TIME_AND_REST.match(line)
                if found:
                    timed.append((number + offset, int(found[1]), found[2]))
                    break
                if line.strip() and not line.lstrip().startswith(b"#"):
                    yield from timed_quads(timed, how)
                    timed = []
                    yield from self._read_run(record, number, number + offset, how)
                    break
            start, number = cut.end, number + record.count(b"\n")
        yield from timed_quads(timed, how)

    def _read_run(self, record: bytes, first_line: int, shown_line: int, how: Reading) -> Iterator[Event]:
        try:
            quads = tuple(parse(record, RdfFormat.N_QUADS))
            event = Event(event_time(quads, how.time_predicate), quads)
        except SyntaxError as error:
            line = first_line + (error.lineno or 1) - 1
            text = (
                record.split(b"\n")[line - first_line] if line - first_line <= record.count(b"\n") else record
            )
            how.reject(line, reason_of(error), text)
        except RecordError as error:
            how.reject(shown_line, str(error), record.strip())
        else:
            yield event


NQUADS: Framing = NQuads()
