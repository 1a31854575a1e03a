"""Answers of one query as columns: terms are made when somebody looks, tables without any.

A table has the columns `time` (timestamp[ms, UTC]), `sign` ("+" or "-", a dictionary), and then

    SELECT                a column for each variable, in the order of the query, null where unbound
    CONSTRUCT, DESCRIBE   `answer`, `subject`, `predicate`, `object` and, if the query builds quads, `graph`:
                          a row a triple, as text; triples of one answer have one number
    ASK                   `boolean`

A variable that is itself called `time` or `sign` has the column `?time` or `?sign`. What type a variable has
is said by its values (`kelda.rdf.arrow`), so two tables of one query may differ; those with
`terms="ntriples"` do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Quad

from kelda.engine.answer import Answer
from kelda.engine.content_kernels import new_in_runs, numbered_rows
from kelda.engine.decode import decoded
from kelda.engine.deltas import Ids
from kelda.engine.sent import Sent
from kelda.lang import algebra as A
from kelda.lang.scope import selected
from kelda.lang.to_sparql import variable_name
from kelda.plan.shape import QUERY
from kelda.rdf.arrow import TEXT, Terms, column, one_dictionary, what_terms
from kelda.rdf.arrow_kernels import BLANK, IRI
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ntriples import ids_of
from kelda.rdf.numbered_kernels import numbered
from kelda.words import count

TIME = pa.timestamp("ms", "UTC")
PARTS = ("subject", "predicate", "object", "graph")


class Block:
    """Some answers of one query, in time order."""

    def __init__(self, query: A.Query, name: str, sent: Sent, dictionary: Dictionary) -> None:
        """What was sent for query `name` alone; a column that says for whom is left out."""
        self.query, self.name = query, name
        if QUERY in sent.columns:
            others = [i for i, column in enumerate(sent.columns) if column != QUERY]
            sent = sent.with_values(tuple(sent.columns[i] for i in others), sent.values[others])
        self._sent, self._dictionary = sent, dictionary
        self._answers: Sequence[Answer] | None = None

    @classmethod
    def of_answers(cls, query: A.Query, name: str, answers: Sequence[Answer]) -> Block:
        """Answers that are objects already, as those of the reference evaluator."""
        block = cls(query, name, Sent.nothing(()), Dictionary())
        block._answers = answers
        return block

    def __len__(self) -> int:
        if self._answers is not None:
            return len(self._answers)
        return len(self._sent) if self.query.form is not A.Form.CONSTRUCT else self.rows.answers

    def __repr__(self) -> str:
        return f"<Block of {self.name!r}: {count(len(self), 'answer')}>"

    def answers(self) -> list[Answer]:
        """The answers with their terms."""
        if self._answers is not None:
            return list(self._answers)
        return decoded(self.query, [self.name], self._sent, self._dictionary)

    def first(self, limit: int) -> list[Answer]:
        """The first few answers; of rows the others are not looked at."""
        if self._answers is None and self.query.form is not A.Form.CONSTRUCT:
            some = self._sent.one_by_one().select(np.s_[:limit])
            return decoded(self.query, [self.name], some, self._dictionary)
        return self.answers()[:limit]

    def to_arrow(self, terms: Terms = "values") -> Any:
        """The answers as a `pyarrow.Table`."""
        return table_of(self.query, [self], terms)

    @cached_property
    def rows(self) -> Rows:
        """The rows of the table, as ids."""
        if self._answers is not None:
            return _rows_of_answers(self.query, self._answers)
        sent = self._sent
        if self.query.form is A.Form.CONSTRUCT:
            return _constructed(self.query, sent.one_by_one(), self._dictionary)
        columns = sent.columns if self.query.form is A.Form.SELECT else columns_of(self.query)
        which, time = sent.said
        return Rows(time, sent.sign[which], columns, sent.values, self._dictionary, which)

    @property
    def is_columns(self) -> bool:
        """Whether its answers are still to be made."""
        return self._answers is None


class Cells(NamedTuple):
    """Columns of ids as numbers (0: none), and the ids of the numbers."""

    numbers: NDArray[np.int32]
    ids: Ids

    @classmethod
    def of(cls, values: Ids) -> Cells:
        numbers, ids = numbered(np.require(values, np.int64, ["C", "W"]).reshape(-1))
        return cls(numbers.reshape(values.shape), ids)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a table: `values[:, which[i]]` at `time[i]`, as ids (0: none; of ASK: 0 and 1). Where an answer
    has several rows, `answer` numbers them from 0."""

    time: Ids
    sign: Ids
    columns: tuple[str, ...]
    values: Ids
    dictionary: Dictionary
    which: Ids
    answer: Ids | None = None
    known: Cells | None = None  # if they were numbered already

    def cells(self) -> Cells:
        """The values, each distinct one once."""
        return self.known or Cells.of(self.values)

    @property
    def answers(self) -> int:
        """How many answers there are in the rows."""
        if self.answer is None:
            return len(self.time)
        return int(self.answer[-1]) + 1 if len(self.answer) else 0


def blocks_of(query: A.Query, names: Sequence[str], sent: Sent, dictionary: Dictionary) -> list[Block]:
    """What was sent to the queries of one shape: a block for each that has answers. The column `.q` tells
    which of `names` a row is for."""
    whose = sent.values[sent.columns.index(QUERY)]
    order = whose.argsort(kind="stable")
    numbers, starts = np.unique(whose[order], return_index=True)
    sent, ends = sent.select(order), [*starts[1:], len(order)]
    return [
        Block(query, names[number], sent.select(np.s_[start:end]), dictionary)
        for number, start, end in zip(numbers.tolist(), starts, ends, strict=True)
    ]


# ---------------------------------------------------------------------------------- tables


def table_of(query: A.Query, blocks: Sequence[Block], terms: Terms = "values", schema: Any = None) -> Any:
    """All answers of some blocks of a query as one `pyarrow.Table`.

    With the `schema` of an earlier table, values that do not fit are a UsageError."""
    rows = [block.rows for block in blocks]
    columns = columns_of(query)
    dictionary = one_dictionary((some.values, some.dictionary) for some in rows)
    which = _places(rows)
    table: dict[str, Any] = {
        "time": pa.array(_together([some.time for some in rows])).cast(TIME),
        "sign": _signs(_together([some.sign for some in rows])),
    }
    if query.form in (A.Form.CONSTRUCT, A.Form.DESCRIBE):
        table["answer"] = pa.array(_numbered(rows))
    for name in columns:
        ids = _together([_column(some, name) for some in rows])
        shown = f"?{name}" if name in ("time", "sign") else name
        if query.form is A.Form.ASK:
            table[shown] = pa.array(ids.astype(np.bool_)[which])
        else:
            type = TEXT if query.form is not A.Form.SELECT else schema and schema.field(shown).type
            table[shown] = column(ids, dictionary, terms, type, which)
    return pa.table(table)


def columns_of(query: A.Query) -> tuple[str, ...]:
    """The columns behind time and sign (and the number of the answer)."""
    match query.form:
        case A.Form.ASK:
            return ("boolean",)
        case A.Form.SELECT:
            return selected(query.pattern)
    quads = any(isinstance(t, A.QuadPattern) for t in query.template)
    return PARTS if quads else PARTS[:3]


def _together(parts: list[Ids]) -> Ids:
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _numbered(rows: list[Rows]) -> Ids:
    """The numbers of the answers, through all parts."""
    numbers, before = [], 0
    for some in rows:
        assert some.answer is not None
        numbers.append(some.answer + before)
        before += some.answers
    return _together(numbers)


def _places(rows: list[Rows]) -> Ids:
    """Which of the values of all parts is in which row."""
    places, before = [], 0
    for some in rows:
        places.append(some.which + before)
        before += some.values.shape[1]
    return _together(places)


def _column(rows: Rows, name: str) -> Ids:
    if name not in rows.columns:  # a variable that nothing binds
        return np.zeros(rows.values.shape[1], np.int64)
    return rows.values[rows.columns.index(name)]


def _signs(sign: Ids) -> Any:
    gone = pa.array((sign < 0).astype(np.int8))
    return pa.DictionaryArray.from_arrays(gone, pa.array(["+", "-"]))


# ---------------------------------------------------------------------------------- rows


def _rows_of_answers(query: A.Query, answers: Sequence[Answer]) -> Rows:
    time = np.array([answer.time for answer in answers], np.int64)
    sign = np.array([1 if answer.sign == "+" else -1 for answer in answers], np.int64)
    dictionary, columns = Dictionary(), columns_of(query)
    if query.form is A.Form.ASK:
        yes = np.array([[bool(answer.boolean) for answer in answers]], np.int64)
        return Rows(time, sign, columns, yes, dictionary, np.arange(len(time)))
    number: Ids | None = None
    if query.form is A.Form.SELECT:
        rows = [[(answer.bindings or {}).get(name) for name in columns] for answer in answers]
    else:
        number = np.repeat(np.arange(len(answers)), [len(answer.triples or ()) for answer in answers])
        rows = [
            [*t] if isinstance(t, Quad) or len(columns) == 3 else [*t, None]
            for answer in answers
            for t in answer.triples or ()
        ]
        time, sign = time[number], sign[number]
    flat = [None if isinstance(term, DefaultGraph) else term for row in rows for term in row]
    terms = list(dict.fromkeys(term for term in flat if term is not None))
    known = dict(zip(terms, ids_of(terms, dictionary), strict=True))
    ids = np.array([0 if term is None else known[term] for term in flat], np.int64)
    which = np.arange(len(rows))
    return Rows(time, sign, columns, ids.reshape(-1, len(columns)).T, dictionary, which, number)


def _constructed(query: A.Query, sent: Sent, given: Dictionary) -> Rows:
    """The template filled in for all solutions at once: triples of one instant and sign are one answer, which
    has each of them once."""
    own = Dictionary(given.seed)  # of what the template adds: constants, and blank nodes
    columns, template, size = columns_of(query), query.template, len(sent)
    parts = np.zeros((len(columns), size, len(template)), np.int64)  # a solution's triples one after another
    for i, triple in enumerate(template):
        for part, term in enumerate((triple.s, triple.p, triple.o)):
            parts[part, :, i] = _filled(term, sent, own)
        if isinstance(triple, A.QuadPattern):
            parts[3, :, i] = _filled(triple.graph, sent, own)
    values = parts.reshape(len(columns), -1)
    numbers, ids = Cells.of(values)
    dictionary = one_dictionary([(ids, given), (own.ids(), own)])

    what = what_terms(ids, dictionary)[numbers]
    complete = ((what[0] == IRI) | (what[0] == BLANK)) & (what[1] == IRI) & (values[2] != 0)
    if len(columns) > 3:
        plain = np.tile([not isinstance(t, A.QuadPattern) for t in template], size)
        complete &= (what[3] == IRI) | (what[3] == BLANK) | plain

    # Triples of one answer stand together, in the order in which they were made.
    answer, _ = numbered_rows(np.array([sent.time, sent.sign]))
    made = np.flatnonzero(complete)
    solution = made // max(1, len(template))
    if (np.diff(answer) < 0).any():
        order = answer[solution].argsort(kind="stable")
        made, solution = made[order], solution[order]
    kept = new_in_runs(answer[solution], values[:, made])
    made, solution = made[kept], solution[kept]
    number = np.cumsum(np.diff(answer[solution], prepend=-1) != 0) - 1
    time, sign, whole = sent.time[solution], sent.sign[solution], np.arange(len(made))
    cells = Cells(numbers[:, made], ids)
    return Rows(time, sign, columns, values[:, made], dictionary, whole, number, cells)


def _filled(term: A.TermOrVar, sent: Sent, own: Dictionary) -> Ids:
    """What stands for a term of a template in each solution: 0 if nothing does."""
    if not isinstance(term, A.Var):
        assert not isinstance(term, A.Param)
        return np.full(len(sent), own.encode(term))
    bound = np.zeros(len(sent), np.int64)
    if term.name in sent.columns:
        bound = sent.values[sent.columns.index(term.name)]
    if not term.name.startswith(".") or bound.all():
        return bound
    label = variable_name(term)
    fresh = [BlankNode(f"t{t}s{i}{label}") for i, t in enumerate(sent.time.tolist())]
    return np.where(bound == 0, ids_of(fresh, own), bound)
