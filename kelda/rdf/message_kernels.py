"""Kernel: where messages end, or some statements of a document.

It knows the tokens of `framings.messages`, in their usual forms: words, IRIs, strings, comments, and what
separates them. At any other it stops, and the splitter of the framing goes on from where that message begins.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.byte_masks import WIDTH, among, first_bit
from kelda.rdf.hash_kernels import helper, inlined, load8, load64

# What `walk` keeps in its state between calls: where to go on, where that message begins, whether something
# is said in it, whether it owes a directive its dot, the messages so far; and of a directive, where its name
# begins and ends (BASE: nowhere) and its IRI.
AT, BEGIN, SAYS, OWES, MESSAGES, NAME, NAME_END, IRI, IRI_END = range(9)
STATE_SIZE = 9

# What it returns: the text ends (or what there is of a token, that may go on), a directive was found, a token
# is unusual, there is no room for more messages.
ENDS, DIRECTIVE, UNUSUAL, FULL = range(4)

LONGEST = 1 << 15  # bytes of a word or a comment; longer ones are unusual

_SPACE, _QUOTE, _HASH, _APOSTROPHE, _MINUS, _DOT, _COLON, _LESS, _GREATER = 32, 34, 35, 39, 45, 46, 58, 60, 62
_AT, _BACKSLASH, _LF, _CR = 64, 92, 10, 13

_SEPARATOR, _WORD, _OTHER = 1, 2, 0


def _classes() -> np.ndarray:
    table = np.full(256, _WORD, np.uint8)
    table[list(b" \t\n\r\f\v;,()[]{}|~")] = _SEPARATOR
    table[list(b"#<>\"'.\\")] = _OTHER
    return table


_CLASS = _classes()
# Bytes that may end a word, and those that may end an IRI; control characters are among both.
_ends_word = among((0, 32), (34, 35), (39, 41), (44, 44), (46, 46), (59, 60), (62, 62), (91, 93), (123, 126))
_ends_iri = among((0, 32), (34, 34), (60, 60), (62, 62), (94, 94), (96, 96), (123, 125))
_ends_quoted = among((_QUOTE, _QUOTE), (_BACKSLASH, _BACKSLASH), (_LF, _LF), (_CR, _CR))


def _as_word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_MESSAGE, _PREFIX, _BASE, _VERSION = (_as_word(word) for word in (b"message", b"prefix", b"base", b"version"))
_AT_MESSAGE = _as_word(b"@message")
_LOW = np.uint64(0x2020202020202020)


@inlined
def _class(c):  # type: ignore[no-untyped-def]
    return _CLASS[np.uint8(c)]


@inlined
def _is_word(text, start, size, word):  # type: ignore[no-untyped-def]
    """Whether the letters there are these, in whatever case."""
    mask = (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
    return (load64(text, start) | _LOW) & mask == word


@helper
def _word_ends(text, start, size):  # type: ignore[no-untyped-def]
    """Where the word at `start` ends; -1 if it is unusual."""
    i = start
    while True:
        mask = _ends_word(text, i)
        if mask == 0:
            i += WIDTH
            continue
        i += first_bit(mask)
        if i >= size:
            return np.int64(size)
        c = load8(text, i)
        if _class(c) == _WORD:  # a control character or another that is allowed
            i += 1
            continue
        if c == _BACKSLASH or i - start > LONGEST:
            return np.int64(-1)
        if c != _DOT:
            return np.int64(i)
        k = i
        while load8(text, k) == _DOT:
            k += 1
        if load8(text, k) == _BACKSLASH:
            return np.int64(-1)
        if k >= size:
            return np.int64(i)
        if _class(load8(text, k)) != _WORD:
            return np.int64(i)
        i = k


@helper
def _iri_ends(text, start, size):  # type: ignore[no-untyped-def]
    i = start + 1
    mask = _ends_iri(text, i)
    while mask == 0:
        i += WIDTH
        mask = _ends_iri(text, i)
    i += first_bit(mask)
    if i >= size:
        return np.int64(-2)
    return i + 1 if load8(text, i) == _GREATER else np.int64(-1)


@helper
def _string_ends(text, start, size):  # type: ignore[no-untyped-def]
    """Where the string at `start` ends, with its language; -1 if it is unusual, -2 if it goes on."""
    quote = load8(text, start)
    i = start + 1
    if start + 2 >= size:
        return np.int64(-2)
    if load8(text, i) == quote and load8(text, i + 1) == quote:
        i += 2
        while True:
            if i + 2 >= size:
                return np.int64(-2)
            c = load8(text, i)
            if c == quote and load8(text, i + 1) == quote and load8(text, i + 2) == quote:
                i += 3
                break
            i += 2 if c == _BACKSLASH else 1
    else:
        while True:
            if i >= size:
                return np.int64(-2)
            if quote == _QUOTE:
                mask = _ends_quoted(text, i)
                if mask == 0:
                    i += WIDTH
                    continue
                i += first_bit(mask)
                if i >= size:
                    return np.int64(-2)
            c = load8(text, i)
            i += 1
            if c == quote:
                break
            if c in (_LF, _CR):
                return np.int64(-1)
            if c == _BACKSLASH:
                if i >= size:
                    return np.int64(-2)
                c = load8(text, i)
                if c in (_LF, _CR):
                    return np.int64(-1)
                i += 1
    if i < size and load8(text, i) == _AT:
        if i + 1 >= size:
            return np.int64(-2)
        k = i + 1
        while k < size and 97 <= (load8(text, k) | 32) <= 122:
            k += 1
        if k > i + 1:
            i = k
            while k < size and load8(text, k) == _MINUS:
                while k < size and load8(text, k) == _MINUS:
                    k += 1
                first = k
                c = load8(text, k)
                while k < size and (97 <= (c | 32) <= 122 or 48 <= c <= 57):
                    k += 1
                    c = load8(text, k)
                if k == size:
                    return np.int64(-2)
                if k == first:
                    break
                i = k
    return i if i < size else np.int64(-2)


@helper
def _skip(text, i, size, at_end):  # type: ignore[no-untyped-def]
    """The next position with something else than separators and comments; -1 if there is an unusual comment,
    -2 if the last one may go on."""
    while i < size:
        c = load8(text, i)
        if c == _HASH:
            first = i
            while i < size and load8(text, i) != _LF and load8(text, i) != _CR:
                i += 1
            if i - first > LONGEST:
                return np.int64(-1)
            if i == size and not at_end:
                return np.int64(-2)
        elif _class(c) != _SEPARATOR:
            break
        else:
            i += 1
    return np.int64(i)


@njit(cache=True, nogil=True)
def walk(buf, size, before, at_end, longest, least, text_ends, ends, state):  # type: ignore[no-untyped-def]
    """Find messages from state[AT] on: the text of each ends at `text_ends`, its delimiter at `ends`. The
    text is the first `size` bytes of `buf` behind `before`, with a line feed and padding behind it. With
    `at_end` nothing follows; else a token that reaches the end is left, and state[AT] is where it begins.

    If `least` is not 0, the text is a document: whole statements of so many bytes are taken for a message,
    and each directive for one without text.
    """
    text = buf.ctypes.data + np.uint64(before)
    i, says, owes, many = state[AT], state[SAYS] != 0, state[OWES] != 0, state[MESSAGES]
    status = ENDS
    while True:
        start = i
        i = _skip(text, i, size, at_end)
        if i < 0:
            status = UNUSUAL if i == -1 else ENDS
            i = start
            break
        if i >= size:
            break
        start = i
        c = load8(text, i)
        if c == _LESS:
            end = _iri_ends(text, i, size)
        elif c in (_QUOTE, _APOSTROPHE):
            end = _string_ends(text, i, size)
        elif c == _DOT:
            end = i + 1
            while end < size and load8(text, end) == _DOT:
                end += 1
        elif _class(c) == _WORD:
            end = _word_ends(text, i, size)
        else:
            end = np.int64(-1)
        if end == -1 or end - start > longest:
            status = UNUSUAL
            break
        last = end
        while last < size and load8(text, last) == _DOT:
            last += 1
        if end == -2 or (last >= size and not at_end):
            status = UNUSUAL if at_end else ENDS
            break
        i = end
        size_of = end - start
        if _class(c) == _WORD:
            first = (c | 32) if c != _AT else (load8(text, start + 1) | 32)
            if size_of == 7 and c != _AT and _is_word(text, start, 7, _MESSAGE):
                if least > 0:
                    i, status = start, UNUSUAL
                    break
                if many == ends.shape[0]:
                    i, status = start, FULL
                    break
                text_ends[many], ends[many] = start, end
                many += 1
                says = owes = False
                state[BEGIN] = end
                continue
            if first in (109, 112, 98, 118):
                letters = start + 1 if c == _AT else start
                long = end - letters
                if c == _AT and long == 7 and load64(text, start) == _AT_MESSAGE:
                    status = UNUSUAL  # maybe "@message ."
                    if least > 0:
                        i = start
                        break
                    k = _skip(text, end, size, at_end)
                    if k >= 0 and k < size and load8(text, k) == _DOT:
                        if many == ends.shape[0]:
                            i, status = start, FULL
                            break
                        text_ends[many], ends[many] = start, k + 1
                        many += 1
                        says = owes = False
                        state[BEGIN] = i = k + 1
                        status = ENDS
                        continue
                    if (k == -2 or k >= size) and not at_end:
                        status = ENDS
                    i = start
                    break
                is_prefix = long == 6 and _is_word(text, letters, 6, _PREFIX)
                is_base = long == 4 and _is_word(text, letters, 4, _BASE)
                is_version = long == 7 and _is_word(text, letters, 7, _VERSION)
                if is_prefix or is_base or is_version:
                    k = _skip(text, end, size, at_end)
                    name = name_end = np.int64(0)
                    if k >= 0 and k < size and is_prefix:
                        name = k
                        name_end = np.int64(-1)
                        if _class(load8(text, k)) == _WORD:
                            name_end = _word_ends(text, k, size)
                        if name_end < 0 or load8(text, name_end - 1) != _COLON or name_end == size:
                            k = np.int64(-1)
                        else:
                            k = _skip(text, name_end, size, at_end)
                    after = k_dot = np.int64(-1)
                    if k >= 0 and k < size:
                        if is_version:
                            if load8(text, k) in (_QUOTE, _APOSTROPHE):
                                after = _string_ends(text, k, size)
                        elif load8(text, k) == _LESS:
                            after = _iri_ends(text, k, size)
                    if after < 0 or after - start > longest:
                        # What is not there yet may come.
                        status = UNUSUAL if at_end or size - start > longest else ENDS
                        i = start
                        break
                    if least > 0:
                        if many + 2 > ends.shape[0]:
                            i, status = start, FULL
                            break
                        if c == _AT:
                            k_dot = _skip(text, after, size, at_end)
                            if k_dot < 0 or k_dot >= size:
                                i, status = start, UNUSUAL if at_end else ENDS
                                break
                            if load8(text, k_dot) != _DOT:
                                i, status = start, UNUSUAL
                                break
                        if is_version:
                            i, says = after, True
                            continue
                        if says:
                            text_ends[many] = ends[many] = start
                            many += 1
                            state[BEGIN] = start
                        i = k_dot + 1 if c == _AT else after
                        text_ends[many], ends[many] = state[BEGIN], i
                        many += 1
                        state[BEGIN] = i
                        says = owes = False
                    else:
                        owes = c == _AT
                        i = after
                    if not is_version:
                        state[NAME], state[NAME_END], state[IRI], state[IRI_END] = name, name_end, k, after
                        status = DIRECTIVE
                        break
                    continue
        if c == _DOT and owes:
            owes = False
            continue
        says = True
        if c == _DOT and least > 0 and end - state[BEGIN] >= least:
            if many == ends.shape[0]:
                i, status = start, FULL
                break
            text_ends[many] = ends[many] = state[BEGIN] = end
            many += 1
            says = False
    state[AT], state[SAYS], state[OWES], state[MESSAGES] = i, says, owes, many
    return status
