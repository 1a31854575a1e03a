"""A document in Turtle by columns: block by block, each read by the kernel, or else by pyoxigraph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import RdfFormat

from kelda.rdf import message_kernels as kernels
from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar.found import found_of
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.framings.base import RecordError, parsed
from kelda.rdf.framings.messages import Context
from kelda.rdf.messages import SHORTEST, padded
from kelda.rdf.skim import Asked
from kelda.rdf.turtle import Reader, UnusableError, prefixes_of
from kelda.rdf.turtle_kernels import Messages

PART = 1 << 24  # bytes that are read at once
LEAST = 1 << 12  # bytes of statements that are read together
ANONYMOUS = "."  # begins the labels of blank nodes without one: no written label begins so

Columns = NDArray[np.int64]  # g, s, p, o


class UnreadableError(Exception):
    """There is something in the document that is for pyoxigraph alone to judge."""


def read_turtle(read: Callable[[int], bytes], base: str, dictionary: Dictionary) -> Iterator[Columns]:
    """The triples of a document, part by part in order. Blank nodes have their labels as they are written, or
    others that cannot be written. UnreadableError if there may be a mistake in it."""
    context = Context()
    if not context.declare(b"", b"<" + base.encode() + b">"):
        raise UnreadableError
    rest, number = b"", 0
    while True:
        block = read(PART)
        data = rest + block
        ends, text_ends, contexts, done = _walked(data, context, at_end=not block)
        yield from _read(data, ends, text_ends, contexts, number, dictionary)
        number += len(ends)
        rest = data[done:]
        if not block:
            return


def _walked(
    data: bytes, context: Context, *, at_end: bool
) -> tuple[Columns, Columns, list[tuple[int, bytes]], int]:
    """Blocks of statements: where they and their texts end, the contexts from which block on, and where
    they all end."""
    size = len(data)
    buffer = padded(data)
    state = np.zeros(kernels.STATE_SIZE, np.int64)
    text_ends, ends = (np.empty(size // LEAST + SHORTEST, np.int64) for _ in range(2))
    contexts = [(0, context.text)]
    while True:
        longest = size + 1
        status = kernels.walk(buffer, size, WIDTH, at_end, longest, LEAST, text_ends, ends, state)
        many = int(state[kernels.MESSAGES])
        if status == kernels.FULL:
            text_ends, ends = (np.concatenate([a, np.empty_like(a)]) for a in (text_ends, ends))
        elif status == kernels.DIRECTIVE:
            name, name_end, iri, iri_end = state[kernels.NAME : kernels.IRI_END + 1].tolist()
            if not context.declare(data[name:name_end], data[iri:iri_end]):
                raise UnreadableError
            if context.text != contexts[-1][1]:
                contexts.append((many, context.text))
        elif status == kernels.UNUSUAL:
            raise UnreadableError
        else:
            break
    done = int(state[kernels.BEGIN])
    if at_end and done < size:
        text_ends, ends = (np.append(a[:many], size) for a in (text_ends, ends))
        many, done = many + 1, size
    return ends[:many], text_ends[:many], contexts, done


def _read(
    data: bytes,
    ends: Columns,
    text_ends: Columns,
    contexts: list[tuple[int, bytes]],
    number: int,
    dictionary: Dictionary,
) -> Iterator[Columns]:
    count = len(ends)
    begins = np.concatenate([[0], ends[:-1]])
    odd = np.zeros(count, np.bool_)
    messages = Messages(begins, text_ends, number + np.arange(count), odd)
    everything = Asked.of([(None, None, None)])
    reader = Reader(padded(data), messages, ANONYMOUS, everything, [], (False, False, True), dictionary)
    first_of = [first for first, _ in contexts]
    for (first, context), end in zip(contexts, [*first_of[1:], count], strict=True):
        if first == end:
            continue
        try:
            prefixes = prefixes_of(context)
        except UnusableError:
            raise UnreadableError from None
        reader.read(prefixes, end)
    _, events, records, (s, p, o, _, _) = reader.found
    found = np.array([np.zeros_like(s), s, p, o])
    block_of = records[events] if len(records) else events
    at = 0
    for block in np.flatnonzero(odd).tolist():
        before = int(np.searchsorted(block_of, block))
        yield found[:, at:before]
        at = before
        context = [text for first, text in contexts if first <= block][-1]
        try:
            quads = parsed(context + data[begins[block] : text_ends[block]], RdfFormat.TURTLE)
        except RecordError:
            raise UnreadableError from None
        some = found_of([Event(None, tuple(quads))], dictionary)
        yield np.array([np.zeros_like(some.s), some.s, some.p, some.o])
    yield found[:, at:]
