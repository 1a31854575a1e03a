"""Where messages end, as columns: what `MessageSplitter` finds, most of it found by a kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kelda.rdf import message_kernels as kernels
from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.framings.base import MAX_RECORD, Chunk
from kelda.rdf.framings.messages import Context, Message, MessageSplitter

SHORTEST = 8  # bytes of a message and its delimiter, nearly always: for fewer, more room is made
WINDOW = 1 << 14  # bytes that the splitter of the framing is given at first, where the kernel stops


class Walked(NamedTuple):
    """Messages, in order: their texts end at `text_ends`, and they themselves at `ends`.

    The context behind message i is that of the last of `contexts` whose number is not above i + 1. `tail`:
    whether the last one is only what stands behind the last delimiter, and says nothing. `open_at`: where in
    a text that may go on the token begins that is not complete.
    """

    text_ends: NDArray[np.int64]
    ends: NDArray[np.int64]
    contexts: Sequence[tuple[int, bytes]]
    tail: bool
    open_at: int


def padded(data: bytes | memoryview) -> NDArray[np.uint8]:
    """A copy with `WIDTH` bytes before it, a line feed behind it, and then as many again."""
    size = len(data)
    buffer = np.empty(size + 3 * WIDTH, np.uint8)
    buffer[:WIDTH] = 0
    buffer[WIDTH : WIDTH + size] = np.frombuffer(data, np.uint8)
    buffer[WIDTH + size :] = 0
    buffer[WIDTH + size] = ord("\n")
    return buffer


def walk(
    data: bytes, context: bytes, longest: int, *, at_end: bool, buffer: NDArray[np.uint8] | None = None
) -> Walked:
    """Find the messages of a text that begins with one. With `at_end` nothing follows, and all of it belongs
    to some message. `buffer` is the text as `padded` has it."""
    size = len(data)
    buffer = padded(data) if buffer is None else buffer
    state = np.zeros(kernels.STATE_SIZE, np.int64)
    text_ends, ends = (np.empty(size // SHORTEST + 16, np.int64) for _ in range(2))
    contexts = [(0, context)]
    known = Context(context)
    tail = False
    while True:
        status = kernels.walk(buffer, size, WIDTH, at_end, longest, 0, text_ends, ends, state)
        many = int(state[kernels.MESSAGES])
        if status == kernels.FULL:
            text_ends, ends = (np.concatenate([a, np.empty_like(a)]) for a in (text_ends, ends))
        elif status == kernels.DIRECTIVE:
            name, name_end, iri, iri_end = state[kernels.NAME : kernels.IRI_END + 1].tolist()
            known.declare(data[name:name_end], data[iri:iri_end])
            if known.text != contexts[-1][1]:
                contexts.append((many + 1, known.text))
        elif status == kernels.UNUSUAL:
            while contexts[-1][0] > many:  # of the message that is read again
                contexts.pop()
            found = _by_splitter(data, int(state[kernels.BEGIN]), contexts[-1][1], longest, at_end)
            if not found:
                break
            if many + len(found) > len(ends):
                more = np.empty(len(ends) + len(found), np.int64)
                text_ends, ends = np.concatenate([text_ends, more]), np.concatenate([ends, more])
            for message in found:
                text_ends[many], ends[many] = message.text_end, message.end
                many += 1
                if message.context != contexts[-1][1]:
                    contexts.append((many, message.context))
                tail = not message.record
            known = Context(contexts[-1][1])
            end = int(ends[many - 1])
            state[[kernels.AT, kernels.BEGIN, kernels.MESSAGES]] = end, end, many
            state[[kernels.SAYS, kernels.OWES]] = 0
            if end == size:
                break
        else:
            begin = int(state[kernels.BEGIN])
            if at_end and begin < size:
                text_ends, ends = (np.append(a[:many], size) for a in (text_ends, ends))
                many, tail = many + 1, not state[kernels.SAYS]
            break
    return Walked(text_ends[:many], ends[:many], contexts, tail, int(state[kernels.AT]))


def _by_splitter(data: bytes, begin: int, context: bytes, longest: int, at_end: bool) -> list[Message]:
    """Some messages from `begin` on, at least one if there is one, with positions in the data."""
    reach = WINDOW
    while True:
        done = begin + reach >= len(data)
        splitter = MessageSplitter(context, longest)
        found = splitter.messages(data[begin : begin + reach], at_end and done)
        if found or done:
            return [m._replace(text_end=begin + m.text_end, end=begin + m.end) for m in found]
        reach *= 4


def chunks(data: bytes, max_records: int) -> Iterator[Chunk]:
    """A whole text of messages, none of which is too long, as chunks."""
    walked = walk(data, b"", MAX_RECORD, at_end=True)
    count = len(walked.ends) - walked.tail
    begin, line, which = 0, 1, 0
    for first in range(0, count, max_records):
        while which + 1 < len(walked.contexts) and walked.contexts[which + 1][0] <= first:
            which += 1
        end = int(walked.ends[min(first + max_records, count) - 1])
        yield Chunk(line, first, walked.contexts[which][1], data[begin:end])
        line += data.count(b"\n", begin, end)
        begin = end
