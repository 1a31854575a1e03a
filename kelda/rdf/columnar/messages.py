"""RDF Messages by columns. A message with anything unusual in it is read by the framing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pyoxigraph import NamedNode

from kelda.rdf.columnar.found import Found
from kelda.rdf.columnar.weave import Odd, runs, woven
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.framings.base import Chunk, Reading
from kelda.rdf.framings.blanks import scope_of
from kelda.rdf.framings.eventtime import TIME_PREDICATES
from kelda.rdf.framings.messages import MESSAGES
from kelda.rdf.ids import encode
from kelda.rdf.messages import Walked, padded, walk
from kelda.rdf.skim import Asked
from kelda.rdf.turtle import Reader, UnusableError, prefixes_of
from kelda.rdf.turtle_kernels import Messages


def read(chunk: Chunk, how: Reading, asked: Asked, dictionary: Dictionary) -> Found | None:
    """The elements of a chunk."""
    buffer = padded(chunk.data)
    walked = walk(chunk.data, chunk.context, how.longest, at_end=True, buffer=buffer)
    count = len(walked.ends) - walked.tail
    ends = walked.ends[:count]
    begins = np.concatenate([[0], ends[:-1]]) if count else ends
    numbers = chunk.ordinal + np.arange(count)
    odd = np.zeros(count, np.bool_)
    messages = Messages(begins, walked.text_ends[:count], numbers, odd)
    names = TIME_PREDICATES if how.time_predicate is None else [how.time_predicate]
    times = [encode(NamedNode(name)) for name in names]
    settings = (how.time_predicate is not None, how.needs_time, False)
    # A record's scope ends with its number, which the kernel writes.
    scope = scope_of(how.name, 0).removesuffix("0")
    reader = Reader(buffer, messages, scope, asked, times, settings, dictionary)
    for first, end, context in _contexts(walked, count):
        try:
            prefixes = prefixes_of(context)
        except UnusableError:
            odd[first:end] = True
            prefixes = prefixes_of(b"")
        reader.read(prefixes, end)
    some = [Odd(first, list(MESSAGES.read(part, how))) for first, part in _parts(chunk, walked, odd)]
    times_of, events, records, (s, p, o, g, rows) = reader.found
    sent = None if len(rows) == len(times_of) else rows
    found = Found(len(times_of), times_of, events, sent, s, p, o, g if g.any() else None)
    return woven(found, records, some, dictionary)


def _contexts(walked: Walked, count: int) -> Iterator[tuple[int, int, bytes]]:
    """Runs of messages that begin in one context: the first, the end, the context."""
    starts = [first for first, _ in walked.contexts]
    for (first, context), end in zip(walked.contexts, [*starts[1:], count], strict=True):
        if first < min(end, count):
            yield first, min(end, count), context


def _parts(chunk: Chunk, walked: Walked, odd: np.ndarray) -> Iterator[tuple[int, Chunk]]:
    """The runs of messages for the framing: their first number, and a chunk of each."""
    line, at, context = chunk.first_line, 0, 0
    for first, end in runs(odd):
        begin = int(walked.ends[first - 1]) if first else 0
        line += chunk.data.count(b"\n", at, begin)
        at = begin
        while context + 1 < len(walked.contexts) and walked.contexts[context + 1][0] <= first:
            context += 1
        data = chunk.data[begin : int(walked.ends[end - 1])]
        yield first, Chunk(line, chunk.ordinal + first, walked.contexts[context][1], data)
