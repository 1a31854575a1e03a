"""Writes columns of numbers as lines of text, some millions of lines a second.

A `TextWriter` is made once from templates, one per kind of line. A template is the text itself with
places in braces for the columns of numbers:

    {post}        a whole number
    {n:0000}      a whole number, at least that many digits
    {fare:.2}     a decimal; the column holds hundredths (any number of places up to 15)
    {t:iso}       milliseconds since 1970 as `2010-02-01T03:33:28Z`; {t:isoms} with `.000` before the Z;
                  {t:isous} the same with `.000000`, of a column of microseconds
    {tag:words}   the number of a word in the table `words` (given as bytes, already escaped for N-Triples)

    writer = TextWriter(
        {
            "like": "{t}\\t<urn:u{user}> <urn:like> <urn:po{post}> .\\n",
            "tag": '{t}\\t<urn:po{post}> <urn:tag> "{tag:words}" .\\n',
        },
        words={"words": [b"red", b"green"]},
    )
    text = writer.write({"t": t, "user": user, "post": post, "tag": tag}, kinds)

`kinds` says the template of each line, by its place in the mapping (`writer.kind["tag"]`); without it all
lines are of the first. Every column has a value for every line, unless `records` says for each line which
element of the columns is its own: so several lines, a post's and its tags', are made from one
element. What then differs from line to line is given as `items` and written with {item}.

Columns are whole numbers of 64 bits, so the same columns give the same bytes everywhere. What a line's
template does not use is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numba import njit

LITERAL, WHOLE, DECIMAL, ISO, ISO_MS, ISO_US, WORD = range(7)
ITEM = "item"
PLACE = re.compile(r"\{(\w+)(?::([^}]*))?\}")
TIMES = {"iso": ISO, "isoms": ISO_MS, "isous": ISO_US}
ROOM = {WHOLE: 21, DECIMAL: 31, ISO: 24, ISO_MS: 28, ISO_US: 31}  # most bytes that a number takes


class TextWriter:
    """Templates, compiled to steps of a small program."""

    def __init__(self, templates: Mapping[str, str], words: Mapping[str, Sequence[bytes]] | None = None):
        words = dict(words or {})
        self.kind = {name: i for i, name in enumerate(templates)}
        self.columns: list[str] = []
        pool: list[bytes] = []  # literals and words, one after another
        tables = {}
        for name, table in words.items():
            tables[name] = len(pool), len(table), max(map(len, table), default=0)
            pool.extend(table)
        steps: list[tuple[int, int, int]] = []  # what, column or piece, digits or first word
        begins, self._room = [0], []
        for template in templates.values():
            room, at = 0, 0
            for place in PLACE.finditer(template):
                room += self._literal(template[at : place.start()], steps, pool)
                room += self._place(place[1], place[2] or "", steps, tables)
                at = place.end()
            room += self._literal(template[at:], steps, pool)
            begins.append(len(steps))
            self._room.append(room)
        ends = np.cumsum([0, *map(len, pool)])
        self._begins, self._ends = np.array(begins, np.int64), ends.astype(np.int64)
        self._steps = np.array(steps, np.int64).reshape(-1, 3)
        self._pool = np.frombuffer(b"".join(pool) or b" ", np.uint8)

    @staticmethod
    def _literal(text: str, steps: list[tuple[int, int, int]], pool: list[bytes]) -> int:
        if not text:
            return 0
        steps.append((LITERAL, len(pool), 0))
        pool.append(text.encode())
        return len(pool[-1])

    def _place(
        self,
        column: str,
        form: str,
        steps: list[tuple[int, int, int]],
        tables: dict[str, tuple[int, int, int]],
    ) -> int:
        if column not in self.columns:
            self.columns.append(column)
        number = -1 if column == ITEM else [c for c in self.columns if c != ITEM].index(column)
        if form in tables:
            first, _, longest = tables[form]
            steps.append((WORD, number, first))
            return longest
        if form in TIMES:
            what, digits = TIMES[form], 0
        elif form.startswith("."):
            what, digits = DECIMAL, int(form[1:])
        elif not form.strip("0"):
            what, digits = WHOLE, len(form)
        else:
            raise ValueError(f"{{{column}:{form}}} is no form and no table: {sorted(tables)}")
        steps.append((what, number, digits))
        return ROOM[what]

    def write(
        self,
        columns: Mapping[str, np.ndarray],
        kinds: np.ndarray | None = None,
        records: np.ndarray | None = None,
        items: np.ndarray | None = None,
    ) -> bytes:
        """The text of all lines, in order."""
        names = [name for name in self.columns if name != ITEM]
        table = np.empty((len(columns[names[0]]), len(names)), np.int64)
        for i, name in enumerate(names):
            table[:, i] = columns[name]
        if kinds is None:
            kinds = np.zeros(len(table if records is None else records), np.uint8)
        if records is None:
            records = np.arange(len(kinds))
        if items is None:
            items = np.zeros(len(kinds) if ITEM in self.columns else 0, np.int64)
        counts = np.bincount(kinds, minlength=len(self._room))
        out = np.empty(int(counts @ np.array(self._room, np.int64)), np.uint8)
        end = write_lines(
            out, table, kinds, records, items, self._begins, self._steps, self._pool, self._ends
        )
        return out[:end].tobytes()


@njit(cache=True)
def write_lines(
    out: np.ndarray,
    table: np.ndarray,
    kinds: np.ndarray,
    records: np.ndarray,
    items: np.ndarray,
    begins: np.ndarray,
    steps: np.ndarray,
    pool: np.ndarray,
    ends: np.ndarray,
) -> int:
    """Run the steps of each line's template; the number of bytes written.

    The steps of template k lie in `steps[begins[k] : begins[k + 1]]`, piece j of the pool in
    `pool[ends[j] : ends[j + 1]]`.
    """
    at = 0
    for line in range(len(kinds)):
        kind, record = kinds[line], records[line]
        for i in range(begins[kind], begins[kind + 1]):
            what, argument, extra = steps[i, 0], steps[i, 1], steps[i, 2]
            if what == LITERAL:
                at = put_piece(out, at, pool, ends[argument], ends[argument + 1])
                continue
            value = table[record, argument] if argument >= 0 else items[line]
            if what == WORD:
                at = put_piece(out, at, pool, ends[extra + value], ends[extra + value + 1])
            elif what == WHOLE:
                at = put_whole(out, at, value, extra)
            elif what == DECIMAL:
                scale = 1
                for _ in range(extra):
                    scale *= 10
                if value < 0:
                    out[at] = 45
                    at, value = at + 1, -value
                at = put_whole(out, at, value // scale, 1)
                out[at] = 46
                at = put_whole(out, at + 1, value % scale, extra)
            else:
                digits = 3 * (what - ISO)
                at = put_time(out, at, value // 1000 if what == ISO_US else value)
                if digits:
                    out[at - 1] = 46
                    at = put_whole(out, at, value % (1_000_000 if what == ISO_US else 1_000), digits)
                    out[at] = 90
                    at += 1
    return at


@njit(cache=True)
def put_piece(out: np.ndarray, at: int, pool: np.ndarray, first: int, last: int) -> int:
    """A piece of the pool; where it ends."""
    # Indexes that come from `range` are known not to be negative, which makes the copy fast.
    target, source = out[at : at + last - first], pool[first:last]
    for i in range(last - first):
        target[i] = source[i]
    return at + last - first


@njit(cache=True)
def put_whole(out: np.ndarray, at: int, value: int, digits: int) -> int:
    """A whole number with at least `digits` digits; where it ends."""
    if value < 0:
        out[at] = 45
        at, value = at + 1, -value
    many, limit = 1, 10
    while many < 19 and value >= limit:
        many += 1
        limit *= 10
    many = max(many, digits)
    rest = value
    for i in range(at + many - 1, at - 1, -1):
        out[i] = 48 + rest % 10
        rest //= 10
    return at + many


@njit(cache=True)
def put_time(out: np.ndarray, at: int, ms: int) -> int:
    """A UTC time of the years 0 to 9999 in whole seconds, with its Z; where it ends."""
    days, rest = ms // 86_400_000, ms % 86_400_000
    # Days since 1 March of year 0, so that the leap day is the last of a year.
    days += 719_468
    era, day = days // 146_097, days % 146_097
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day = day - (153 * month + 2) // 5 + 1
    year += era * 400 + (month >= 10)
    month = month + 3 if month < 10 else month - 9
    at = put_whole(out, at, year, 4)
    out[at] = 45
    at = put_whole(out, at + 1, month, 2)
    out[at] = 45
    at = put_whole(out, at + 1, day, 2)
    out[at] = 84
    at = put_whole(out, at + 1, rest // 3_600_000, 2)
    out[at] = 58
    at = put_whole(out, at + 1, rest // 60_000 % 60, 2)
    out[at] = 58
    at = put_whole(out, at + 1, rest // 1_000 % 60, 2)
    out[at] = 90
    return at + 1
