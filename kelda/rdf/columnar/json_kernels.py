"""Kernel: the values of some columns in lines of JSON objects.

Every line is read through once, and all of it is checked. A column is a member by its name, or along a path
of names; these are the nodes of a tree whose root is the object of the line. What no column wants is passed
over.

Lines of a stream have the same keys in the same order, so a key is first looked for at its number in the
line, by comparing bytes with that of a line before.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from kelda.rdf.byte_masks import WIDTH, differing
from kelda.rdf.columnar.json_text_kernels import (
    COLON,
    COMMA,
    LF,
    MINUS,
    QUOTE,
    feed_behind,
    number_at,
    skip_blanks,
    string_at,
    unescaped,
)
from kelda.rdf.hash_kernels import helper, load8, load64

# Columns of the nodes: where the name of a node begins and ends in the names; the number of the column that
# its value is (-1: none); its first child, and how many there are, which lie side by side.
NAME, NAME_END, COLUMN, CHILD, CHILDREN = range(5)
NODE_SIZE = 5

ABSENT = -2  # begins a value that is not there at all, while that of a null is at -1

DEEPEST = 64  # containers in each other: what is deeper is left to the framing, which has a limit, too
_KEYS = 64  # that are remembered
_NOBODY = np.int64(-1)

_TRUE, _NULL, _FALS = (np.uint64(int.from_bytes(word, "little")) for word in (b"true", b"null", b"fals"))
_LOW32 = np.uint64(0xFFFFFFFF)
_OPEN, _CLOSE, _OPEN_ARRAY, _CLOSE_ARRAY = 123, 125, 91, 93


@helper
def _child(text, start, end, nodes, names, node):  # type: ignore[no-untyped-def]
    """The child of a node that has this name; -1 if there is none."""
    first = nodes[node, CHILD]
    for child in range(first, first + nodes[node, CHILDREN]):
        at = nodes[child, NAME]
        if nodes[child, NAME_END] - at != end - start:
            continue
        same = True
        for i in range(end - start):
            if names[at + i] != load8(text, start + i):
                same = False
                break
        if same:
            return child
    return _NOBODY


@helper
def word_at(text, i):  # type: ignore[no-untyped-def]
    """The position after true, false or null; -1 if it is none."""
    word = load64(text, i)
    four = word & _LOW32
    if four in (_TRUE, _NULL):
        return i + 4
    return i + 5 if four == _FALS and load8(text, i + 4) == 101 else -1


@njit(cache=True, nogil=True)
def tokenize(buf, size, nodes, names, starts, ends, lines, odd):  # type: ignore[no-untyped-def]
    """Find the columns of all lines of `buf[:size]`; how many lines there are.

    The last line ends with a line feed; behind it are `WIDTH` bytes. Column c of line i is then
    `buf[starts[c, i]:ends[c, i]]`, without escapes: strings that have some are written over. `lines[i]` is
    where it begins (and behind the last one, where that ends). A line is `odd` that is blank, is no JSON
    object, has an array or an object where a value is needed, or a column twice.
    """
    text = buf.ctypes.data
    stack = np.empty(DEEPEST, np.int64)  # of each container: its node, -1: nobody wants it; -2: an array
    seen = np.full(nodes.shape[0], -1, np.int64)  # the line that had a node last
    key_at, key_size = np.zeros(_KEYS, np.int64), np.zeros(_KEYS, np.int64)
    key_parent, key_node = np.zeros(_KEYS, np.int64), np.zeros(_KEYS, np.int64)
    line, start = 0, 0
    while start < size:
        lines[line] = start
        for column in range(starts.shape[0]):
            starts[column, line] = ABSENT
        i = skip_blanks(text, start)
        good = load8(text, i) == _OPEN
        depth = keys = 0
        if good:
            stack[0] = 0
            depth = 1
            i = skip_blanks(text, i + 1)
            opened = True
        while good and depth > 0:
            node = _NOBODY
            parent = stack[depth - 1]
            closing = _CLOSE_ARRAY if parent == -2 else _CLOSE
            value = not (opened and load8(text, i) == closing)
            if value and parent != -2:  # a key
                known = False
                if keys < _KEYS:
                    known_size = key_size[keys]
                    known = (
                        known_size > 0
                        and key_parent[keys] == parent
                        and differing(text, i, text, key_at[keys]) << np.uint64(WIDTH - known_size) == 0
                    )
                if known:
                    node = key_node[keys]
                    i = skip_blanks(text, i + known_size)
                else:
                    key = i
                    close, escaped = string_at(text, i) if load8(text, i) == QUOTE else (-1, False)
                    if close < 0 or escaped:
                        good = False
                        break
                    if parent >= 0:
                        node = _child(text, key + 1, close, nodes, names, parent)
                    i = skip_blanks(text, close + 1)
                    if load8(text, i) != COLON:
                        good = False
                        break
                    i += 1
                    if keys < _KEYS:
                        key_size[keys] = i - key if i - key < WIDTH else 0
                        key_at[keys], key_parent[keys], key_node[keys] = key, parent, node
                    i = skip_blanks(text, i)
                keys += 1
                if node >= 0:
                    if seen[node] == line:  # the last of them holds
                        good = False
                        break
                    seen[node] = line
            if value:
                column = nodes[node, COLUMN] if node >= 0 else _NOBODY
                c = load8(text, i)
                if c in (_OPEN, _OPEN_ARRAY):
                    wanted = node >= 0 and (column >= 0 or c == _OPEN_ARRAY)
                    if wanted or depth == DEEPEST:
                        good = False
                        break
                    stack[depth] = node if c == _OPEN else -2
                    depth += 1
                    opened = True
                    i = skip_blanks(text, i + 1)
                    continue
                end = i
                if c == QUOTE:
                    close, escaped = string_at(text, i)
                    if close < 0:
                        good = False
                        break
                    i += 1
                    end = close
                    if escaped and column >= 0:
                        end = unescaped(text, i, close, text, i, False)
                    behind = close + 1
                elif c == MINUS or 48 <= c <= 57:
                    end = behind = number_at(text, i)
                else:
                    end = behind = word_at(text, i)
                if behind < 0:
                    good = False
                    break
                if column >= 0:
                    starts[column, line] = -1 if c == 110 else i
                    ends[column, line] = end
                i = skip_blanks(text, behind)
            opened = False
            while True:  # behind a value, or at the end of an empty container
                c = load8(text, i)
                if c == COMMA and value:
                    i = skip_blanks(text, i + 1)
                    break
                if c != closing:
                    good = False
                    break
                value = True
                depth -= 1
                i = skip_blanks(text, i + 1)
                if depth == 0:
                    break
                closing = _CLOSE_ARRAY if stack[depth - 1] == -2 else _CLOSE
            if not good:
                break
        if good and load8(text, i) != LF:
            good = False
        odd[line] = not good
        start = (i if good else feed_behind(text, i if i > start else start)) + 1
        line += 1
    lines[line] = size
    return line
