"""SPARQL expressions over columns of term ids.

A value is computed from the ids alone where they decide it, and otherwise by pyoxigraph and the functions of
`kelda.rdf.operators`, once for each distinct combination of arguments; both say the same. Each part of an
expression chooses for itself and row by row, so `?x > 20 && REGEX(?name, "^A")` compares ids and matches each
name once.

From ids
    = != < > <= >=      numbers, dateTimes (both with a zone, or both without), booleans, strings of up to
                        seven bytes; = and != also IRIs, blank nodes and longer strings
    IN, NOT IN          as the equalities they stand for
    + - * / and signs   integers and decimals, exactly (of quotients, those that end); doubles, as float64
    && || !             of any parts; the right side only for rows that the left side leaves open
    IF COALESCE BOUND sameTerm NOW() isIRI isBlank isLiteral isNumeric, effective boolean values
All else, and every row above with numbers of other datatypes or in other spellings, overflow, or dates
compared across zones that are not known: pyoxigraph. What is only compared or reckoned with further stays
a float64 and gets no id.

`NOW()` is the time of the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import DefaultGraph, Literal, NamedNode, QuerySolutions, Store

from kelda.engine import expression_kernels as kernels
from kelda.engine.deltas import Deltas, Ids
from kelda.engine.expression_kernels import ERROR, FALSE, TRUE, UNSURE
from kelda.errors import UsageError
from kelda.lang import algebra as A
from kelda.lang.scope import is_repeatable
from kelda.lang.to_sparql import to_sparql
from kelda.lang.walk import exists_in, mentioned, transform
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.exact import Needs, Value, from_store, to_store_with_needs
from kelda.rdf.ids import Kind, encode
from kelda.rdf.operators import FUNCTIONS
from kelda.rdf.times import ms_to_literal

Truth = NDArray[np.uint8]
Numbers = tuple[NDArray[np.float64], NDArray[np.uint8]]  # values, and of which sort each is

MOST_REMEMBERED = 1 << 20

_NOW, _ROW, _VALUE = A.Var(".now"), A.Var(".row"), A.Var(".value")
_ARGUMENT = "urn:kelda:argument:"
_BATCH = 1 << 12  # combinations in one query
_CHUNK = 1 << 16  # rows whose combinations are looked up at once
_NUMBERS = tuple((Literal(i),) for i in range(_BATCH))
_YEAR_ONE = int(np.datetime64("0001-01-01", "ms").astype(np.int64))
_TRUE, _FALSE = A.Const(Literal(True)), A.Const(Literal(False))
_IDS_OF_TRUTH = np.array([encode(Literal(False)), 0, encode(Literal(True))], np.int64)

_COMPARISONS = {
    "=": kernels.EQUAL,
    "<": kernels.LESS,
    ">": kernels.GREATER,
    "<=": kernels.AT_MOST,
    ">=": kernels.AT_LEAST,
}
_ARITHMETIC = {"+": kernels.ADD, "-": kernels.SUBTRACT, "*": kernels.MULTIPLY, "/": kernels.DIVIDE}
_SIGNS = {"U+": (kernels.ADD, kernels.KEEP), "U-": (kernels.SUBTRACT, kernels.NEGATE)}


def _truth_of_classes(*true: int, unsure: tuple[int, ...] = ()) -> Truth:
    """A table from the class of an id to the truth of a test of it."""
    table = np.full(32, FALSE, np.uint8)
    table[list(true)] = TRUE
    table[[kernels.UNKNOWN, *unsure]] = UNSURE
    table[kernels.NOTHING] = ERROR
    return table


_NUMERIC = (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.DOUBLE_E, Kind.FLOAT, Kind.FLOAT_E)
_TESTS = {
    "ISIRI": _truth_of_classes(kernels.IRI),
    "ISURI": _truth_of_classes(kernels.IRI),
    "ISBLANK": _truth_of_classes(kernels.BLANK),
    "ISLITERAL": _truth_of_classes(*Kind, kernels.TEXT, kernels.TAGGED, kernels.TYPED),
    "ISNUMERIC": _truth_of_classes(*_NUMERIC, unsure=(kernels.TYPED,)),
}


def supports(expr: A.Expr) -> bool:
    """Whether the expression is a function of its row: no EXISTS, RAND, UUID, STRUUID, BNODE."""
    return not exists_in(expr) and is_repeatable(expr)


class Expressions:
    """Compiles expressions over the ids of one dictionary. `base` is what IRI("…") resolves against."""

    def __init__(self, dictionary: Dictionary, *, base: str | None = None) -> None:
        self._dictionary = dictionary
        self._base = base

    def compile(self, expr: A.Expr, columns: tuple[str, ...]) -> Compiled:
        """The expression over rows with these columns; a variable that is none of them is unbound."""
        if not supports(expr):
            raise UsageError(
                "EXISTS, RAND, UUID, STRUUID and BNODE are no functions of a row; "
                "take them out of the expression, or evaluate the query with the reference evaluator"
            )
        expr = transform(expr, _with_now_as_variable)
        compiler = _Compiler(self._dictionary, self._base, columns)
        node = compiler.node(expr)
        variables = mentioned(expr)
        used = tuple(c for c in columns if A.Var(c) in variables)
        return Compiled(node, list(compiler.answers.values()), used, _NOW in variables)


class Compiled:
    """An expression, ready for rows. It remembers what it has asked for, up to `MOST_REMEMBERED` answers
    for each of its parts."""

    def __init__(
        self, node: _Node, answers: list[_Answers], columns_used: tuple[str, ...], uses_now: bool
    ) -> None:
        self.columns_used = columns_used
        self._node = node
        self._answers = answers
        self._uses_now = uses_now

    def ids(self, deltas: Deltas) -> Ids:
        """The value of each row; 0 where it is an error or unbound."""
        found = self._node.ids(self._rows(deltas))
        return np.array(np.broadcast_to(found, len(deltas)))

    def holds(self, deltas: Deltas) -> NDArray[np.bool_]:
        """The effective boolean value of each row; an error is False."""
        found = self._node.truth(self._rows(deltas)) == TRUE
        return np.array(np.broadcast_to(found, len(deltas)))

    @property
    def nbytes(self) -> int:
        """Bytes of what is remembered."""
        return sum(answers.nbytes for answers in self._answers)

    def _rows(self, deltas: Deltas) -> _Rows:
        columns = {
            name: np.ascontiguousarray(deltas.column(name))
            for name in self.columns_used
            if name in deltas.columns
        }
        if self._uses_now:
            columns[_NOW.name] = _times(deltas.time)
        return _Rows(columns, len(deltas))


def _with_now_as_variable(node: object) -> object:
    return A.VarRef(_NOW) if isinstance(node, A.Call) and node.op == "NOW" else node


def _times(ms: Ids) -> Ids:
    """The ids of the xsd:dateTimes of instants, as `ms_to_literal` spells them."""
    for edge in (*ms[:1], *ms[-1:]):
        ms_to_literal(int(edge))  # complains of what no calendar has; times are in order
    places = 3 - (ms % 10 == 0).astype(np.int64) - (ms % 100 == 0) - (ms % 1000 == 0)
    inline = np.int64(-(2**63)) | np.int64(Kind.DATETIME) << 58
    utc = 1
    return inline | (ms - _YEAR_ONE) << 9 | places << 7 | utc


# ---------------------------------------------------------------------------- the parts of an expression
#
# An array of length 1 stands for all rows: it comes from a part without variables.


class _Rows:
    """The columns that an expression reads, and what its arithmetic gave for them: a part that occurs twice,
    or that is tried in two ways, is reckoned once."""

    def __init__(self, columns: dict[str, Ids], size: int) -> None:
        self.columns, self.size = columns, size
        self.numbers: dict[_Node, Numbers] = {}
        self.ids: dict[_Node, Ids] = {}

    def column(self, name: str) -> Ids:
        return self.columns[name] if name in self.columns else np.zeros(1, np.int64)

    def take(self, positions: NDArray[np.int64]) -> _Rows:
        return _Rows({name: ids[positions] for name, ids in self.columns.items()}, positions.size)


class _Node(ABC):
    asks = False  # may need pyoxigraph on the common path, so is worth sparing rows

    @abstractmethod
    def ids(self, rows: _Rows) -> Ids: ...

    @abstractmethod
    def truth(self, rows: _Rows) -> Truth: ...

    def numbers(self, rows: _Rows) -> Numbers:
        """The values as float64, as far as they are numbers that those can be reckoned with."""
        if self not in rows.numbers:
            rows.numbers[self] = self._numbers(rows)
        return rows.numbers[self]

    def _numbers(self, rows: _Rows) -> Numbers:
        found: Numbers = kernels.numbers(self.ids(rows))
        return found


class _Test(_Node):
    """A part whose value is true, false or an error."""

    def ids(self, rows: _Rows) -> Ids:
        return _IDS_OF_TRUTH[self.truth(rows)]


class _Term(_Node):
    """A part whose value is any term."""

    def __init__(self, compiler: _Compiler, expr: A.Expr) -> None:
        self.dictionary = compiler.dictionary
        self.truth_asked = compiler.asked(A.Call("IF", (expr, _TRUE, _FALSE)))

    def truth(self, rows: _Rows) -> Truth:
        found = kernels.effective(self.ids(rows), *_texts(self.dictionary))
        return _settle(found, rows, self.truth_asked)


class _Constant(_Term):
    def __init__(self, compiler: _Compiler, expr: A.Const) -> None:
        super().__init__(compiler, expr)
        self.term = expr.term
        self.generation = -1

    def ids(self, rows: _Rows) -> Ids:
        if self.generation != self.dictionary.generation:  # it may have been let go
            self.generation = self.dictionary.generation
            self.id = np.array([self.dictionary.encode(self.term)], np.int64)
        return self.id


class _Column(_Term):
    def __init__(self, compiler: _Compiler, expr: A.VarRef) -> None:
        super().__init__(compiler, expr)
        self.name = expr.var.name

    def ids(self, rows: _Rows) -> Ids:
        return rows.column(self.name)


class _Asked(_Term):
    """A part that only pyoxigraph can evaluate."""

    asks = True

    def __init__(self, compiler: _Compiler, expr: A.Expr) -> None:
        super().__init__(compiler, expr)
        self.asked = compiler.asked(expr)

    def ids(self, rows: _Rows) -> Ids:
        return self.asked.ids(rows)


class _Bound(_Test):
    def __init__(self, name: str) -> None:
        self.name = name

    def truth(self, rows: _Rows) -> Truth:
        return np.where(rows.column(self.name) != 0, np.uint8(TRUE), np.uint8(FALSE))


class _Not(_Test):
    def __init__(self, arg: _Node) -> None:
        self.arg, self.asks = arg, arg.asks

    def truth(self, rows: _Rows) -> Truth:
        return np.uint8(2) - self.arg.truth(rows)


class _Logic(_Test):
    """&& and ||: the least and the greatest truth. A part that asks is given open rows only."""

    def __init__(self, op: str, parts: list[_Node]) -> None:
        self.parts = parts
        self.combine: np.ufunc = np.minimum if op == "&&" else np.maximum
        self.decisive = FALSE if op == "&&" else TRUE
        self.asks = any(part.asks for part in parts)

    def truth(self, rows: _Rows) -> Truth:
        found = self.parts[0].truth(rows)
        for part in self.parts[1:]:
            if not part.asks or found.size != rows.size:
                found = self.combine(found, part.truth(rows))
                continue
            open_rows = np.flatnonzero(found != self.decisive)
            more = self.combine(found[open_rows], part.truth(rows.take(open_rows)))
            found = found.copy()
            found[open_rows] = more
        return found


class _OneOf(_Test):
    """IN, of IRIs."""

    def __init__(self, arg: _Node, members: list[_Node]) -> None:
        self.arg, self.members, self.asks = arg, members, arg.asks

    def truth(self, rows: _Rows) -> Truth:
        ids = self.arg.ids(rows)
        members = np.concatenate([member.ids(rows) for member in self.members])
        found = np.where(np.isin(ids, members), np.uint8(TRUE), np.uint8(FALSE))
        found[ids == 0] = ERROR
        return found


class _SameTerm(_Test):
    def __init__(self, left: _Node, right: _Node) -> None:
        self.left, self.right = left, right
        self.asks = left.asks or right.asks

    def truth(self, rows: _Rows) -> Truth:
        left, right = self.left.ids(rows), self.right.ids(rows)
        same = np.where(left == right, np.uint8(TRUE), np.uint8(FALSE))
        same[np.broadcast_to((left == 0) | (right == 0), same.shape)] = ERROR
        return same


class _IsA(_Test):
    """isIRI and its like."""

    def __init__(self, compiler: _Compiler, expr: A.Call) -> None:
        self.dictionary = compiler.dictionary
        self.table = _TESTS[expr.op]
        self.arg = compiler.node(expr.args[0])
        self.asked = compiler.asked(expr)
        self.asks = self.arg.asks

    def truth(self, rows: _Rows) -> Truth:
        found = self.table[kernels.classes(self.arg.ids(rows), *_texts(self.dictionary))]
        return _settle(found, rows, self.asked)


class _Comparison(_Test):
    def __init__(self, compiler: _Compiler, expr: A.Call) -> None:
        self.dictionary = compiler.dictionary
        self.op = _COMPARISONS[expr.op]
        self.left, self.right = (compiler.node(arg) for arg in expr.args)
        self.asked = compiler.asked(expr)
        self.asks = self.left.asks or self.right.asks

    def truth(self, rows: _Rows) -> Truth:
        if not isinstance(self.left, _Arithmetic) and not isinstance(self.right, _Arithmetic):
            return self._by_ids(rows)
        found: Truth = kernels.compare_numbers(*self.left.numbers(rows), *self.right.numbers(rows), self.op)
        where = np.flatnonzero(found == UNSURE)
        if where.size:
            found[where] = self._by_ids(rows.take(where) if found.size == rows.size else rows)
        return found

    def _by_ids(self, rows: _Rows) -> Truth:
        left, right = self.left.ids(rows), self.right.ids(rows)
        found = kernels.compare(left, right, self.op, *_texts(self.dictionary))
        return _settle(found, rows, self.asked)


class _Arithmetic(_Term):
    """`op` of ids, or `reckoned` of float64."""

    def __init__(
        self, compiler: _Compiler, expr: A.Call, ops: tuple[int, int], left: A.Expr, right: A.Expr
    ) -> None:
        super().__init__(compiler, expr)
        self.op, self.reckoned = ops
        self.left, self.right = compiler.node(left), compiler.node(right)
        self.asked = compiler.asked(expr)
        self.asks = self.left.asks or self.right.asks

    def ids(self, rows: _Rows) -> Ids:
        if self not in rows.ids:
            rows.ids[self] = self._ids(rows)
        return rows.ids[self]

    def _ids(self, rows: _Rows) -> Ids:
        values, sorts = self.numbers(rows)
        doubles = sorts == kernels.A_DOUBLE
        if not doubles.any():
            return self._exactly(rows)
        found = np.empty(len(values), np.int64)
        found[doubles] = self._spelled(values[doubles])
        rest = np.flatnonzero(~doubles)
        if rest.size:
            found[rest] = self._exactly(rows.take(rest) if found.size == rows.size else rows)
        return found

    def _numbers(self, rows: _Rows) -> Numbers:
        found: Numbers = kernels.reckon(*self.left.numbers(rows), *self.right.numbers(rows), self.reckoned)
        return found

    def _exactly(self, rows: _Rows) -> Ids:
        found, unsure = kernels.arithmetic(self.left.ids(rows), self.right.ids(rows), self.op)
        where = np.flatnonzero(unsure)
        if where.size:
            found[where] = self.asked.ids(rows.take(where) if found.size == rows.size else rows)
        return found

    def _spelled(self, values: NDArray[np.float64]) -> Ids:
        """Doubles as terms, each distinct one once; by their bits, for 0 is not -0."""
        distinct, which = np.unique(values.view(np.int64), return_inverse=True)
        encode = self.dictionary.encode
        terms = [encode(Literal(value)) for value in distinct.view(np.float64).tolist()]
        return np.array(terms, np.int64)[which]


class _Choice(_Term):
    """IF."""

    def __init__(self, compiler: _Compiler, expr: A.Call) -> None:
        super().__init__(compiler, expr)
        self.condition, self.then, self.otherwise = (compiler.node(arg) for arg in expr.args)
        self.asks = self.condition.asks or self.then.asks or self.otherwise.asks

    def ids(self, rows: _Rows) -> Ids:
        condition = np.broadcast_to(self.condition.truth(rows), rows.size)
        found = np.zeros(rows.size, np.int64)
        for truth, branch in ((TRUE, self.then), (FALSE, self.otherwise)):
            where = np.flatnonzero(condition == truth)
            if where.size:
                found[where] = branch.ids(rows.take(where))
        return found


class _Coalesce(_Term):
    def __init__(self, compiler: _Compiler, expr: A.Call) -> None:
        super().__init__(compiler, expr)
        self.args = [compiler.node(arg) for arg in expr.args]
        self.asks = any(arg.asks for arg in self.args)

    def ids(self, rows: _Rows) -> Ids:
        found = np.zeros(rows.size, np.int64)
        for arg in self.args:
            where = np.flatnonzero(found == 0)
            if where.size:
                found[where] = arg.ids(rows.take(where))
        return found


def _texts(dictionary: Dictionary) -> tuple[Ids, Ids, NDArray[np.uint8]]:
    tables = dictionary.tables
    return tables.slots, tables.offsets, tables.arena


def _settle(truth: Truth, rows: _Rows, asked: _Answers) -> Truth:
    """The same truth, with what was unsure asked for."""
    where = np.flatnonzero(truth == UNSURE)
    if where.size:
        ids = asked.ids(rows.take(where) if truth.size == rows.size else rows)
        truth[where] = np.where(ids == _IDS_OF_TRUTH[TRUE], TRUE, np.where(ids == 0, ERROR, FALSE))
    return truth


class _Compiler:
    """From expressions to nodes; equal expressions share one, and what it remembers."""

    def __init__(self, dictionary: Dictionary, base: str | None, columns: tuple[str, ...]) -> None:
        self.dictionary = dictionary
        self.base = base
        self.columns = (*columns, _NOW.name)
        self.answers: dict[A.Expr, _Answers] = {}
        self.nodes: dict[A.Expr, _Node] = {}

    def asked(self, expr: A.Expr) -> _Answers:
        if expr not in self.answers:
            self.answers[expr] = _Answers(expr, self.dictionary, self.base, self.columns)
        return self.answers[expr]

    def node(self, expr: A.Expr) -> _Node:
        if expr not in self.nodes:
            self.nodes[expr] = self._node(expr)
        return self.nodes[expr]

    def _node(self, expr: A.Expr) -> _Node:
        match expr:
            case A.Const():
                return _Constant(self, expr)
            case A.VarRef(A.Var()):
                return _Column(self, expr)
            case A.Call("BOUND", (A.VarRef(var),)):
                return _Bound(var.name)
            case A.Call("!", (arg,)):
                return _Not(self.node(arg))
            case A.Call("&&" | "||" as op, parts):
                return _Logic(op, [self.node(part) for part in parts])
            case A.Call("IN", (arg, _, *_)):
                return self._member(arg, expr.args[1:])
            case A.Call("!=", args):
                return _Not(self.node(A.Call("=", args)))
            case A.Call("NOT IN", (_, _, *_) as args):
                return _Not(self.node(A.Call("IN", args)))
            case A.Call("SAMETERM", (left, right)):
                return _SameTerm(self.node(left), self.node(right))
            case A.Call("IF", (_, _, _)):
                return _Choice(self, expr)
            case A.Call("COALESCE", _):
                return _Coalesce(self, expr)
            case A.Call(op, (_,)) if op in _TESTS:
                return _IsA(self, expr)
            case A.Call(op, (_, _)) if op in _COMPARISONS:
                return _Comparison(self, expr)
            case A.Call(op, (left, right)) if op in _ARITHMETIC:
                return _Arithmetic(self, expr, (_ARITHMETIC[op],) * 2, left, right)
            case A.Call(op, (arg,)) if op in _SIGNS:
                return _Arithmetic(self, expr, _SIGNS[op], A.Const(Literal(0)), arg)
        return _Asked(self, expr)

    def _member(self, arg: A.Expr, members: tuple[A.Expr, ...]) -> _Node:
        parts: list[_Node] = []
        iris: list[_Node] = []
        for member in members:
            if isinstance(member, A.Const) and isinstance(member.term, NamedNode):
                iris.append(self.node(member))
            else:
                parts.append(self.node(A.Call("=", (arg, member))))
        if iris:
            parts.insert(0, _OneOf(self.node(arg), iris))
        return _Logic("||", parts)


# ---------------------------------------------------------------------------- asking pyoxigraph


class _Answers:
    """The values of an expression for the combinations of arguments that have come so far.

    Combinations are numbered; `_answers[number]` is the value. All is forgotten when there are too many,
    and when the dictionary lets go of terms, for an answer's id may be of one of them.
    """

    def __init__(
        self, expr: A.Expr, dictionary: Dictionary, base: str | None, columns: tuple[str, ...]
    ) -> None:
        variables = mentioned(expr)
        self._expr = expr
        self._dictionary = dictionary
        self._base = base
        self._columns = tuple(c for c in columns if A.Var(c) in variables)
        self._forget()

    def _forget(self) -> None:
        self._generation = self._dictionary.generation
        self._count = 0
        self._slots = np.zeros(64, np.int64)
        self._table = np.zeros((32, len(self._columns)), np.int64)
        self._answers = np.zeros(32, np.int64)

    @property
    def nbytes(self) -> int:
        return self._slots.nbytes + self._table.nbytes + self._answers.nbytes

    def ids(self, rows: _Rows) -> Ids:
        """The value of each row; of length 1 where the expression has no variables."""
        if self._generation != self._dictionary.generation:
            self._forget()
        if not self._columns:
            return self._numbered(np.zeros((0, 1), np.int64))
        columns = [np.broadcast_to(rows.column(name), rows.size) for name in self._columns]
        out = np.empty(rows.size, np.int64)
        for start in range(0, rows.size, _CHUNK):
            out[start : start + _CHUNK] = self._numbered(
                np.stack([c[start : start + _CHUNK] for c in columns])
            )
        return out

    def _numbered(self, keys: Ids) -> Ids:
        size = keys.shape[1]
        if self._count + size > MOST_REMEMBERED:
            self._forget()
        self._make_room(self._count + size)
        numbers = np.empty(size, np.int64)
        known = self._count
        count = kernels.number_combinations(keys, self._slots, self._table, known, numbers)
        try:
            for start in range(known, count, _BATCH):
                end = min(start + _BATCH, count)
                self._answers[start:end] = self._ask(self._table[start:end])
        except BaseException:
            self._forget()  # numbered, but not answered
            raise
        self._count = count
        return self._answers[numbers]

    def _make_room(self, entries: int) -> None:
        if entries <= len(self._table):
            return
        room = 1 << (entries - 1).bit_length()
        table, answers = self._table[: self._count], self._answers[: self._count]
        self._slots = np.zeros(2 * room, np.int64)
        self._table = np.zeros((room, len(self._columns)), np.int64)
        self._answers = np.zeros(room, np.int64)
        self._answers[: self._count] = answers
        again = np.empty(self._count, np.int64)
        kernels.number_combinations(np.ascontiguousarray(table.T), self._slots, self._table, 0, again)

    def _ask(self, combinations: Ids) -> Ids:
        """One query: the variables are bound by functions from the row's number to its terms."""
        arguments: list[list[Value | None]] = []
        needs = Needs.NOTHING
        for ids in combinations.T:
            written = [None if isinstance(t, DefaultGraph) else t for t in self._dictionary.terms(ids)]
            stored = [(None, needs) if t is None else to_store_with_needs(t) for t in written]
            for _, more in stored:
                needs |= more
            arguments.append([term for term, _ in stored])
        functions = dict(FUNCTIONS)
        for i, terms in enumerate(arguments):
            functions[NamedNode(f"{_ARGUMENT}{i}")] = _getter(terms)
        found = _STORE.query(
            self._text(len(combinations), needs), base_iri=self._base, custom_functions=functions
        )
        assert isinstance(found, QuerySolutions)
        values = np.zeros(len(combinations), np.int64)
        known: dict[Value, int] = {}
        for row, value in found:
            if value is not None:
                if value not in known:
                    known[value] = self._dictionary.encode(from_store(value))
                values[int(row.value)] = known[value]
        return values

    def _text(self, rows: int, needs: Needs) -> str:
        pattern: A.Pattern = A.Values((_ROW,), _NUMBERS[:rows])
        for i, name in enumerate(self._columns):
            call = A.FunctionCall(NamedNode(f"{_ARGUMENT}{i}"), (A.VarRef(_ROW),))
            pattern = A.Extend(pattern, A.Var(name), call)
        pattern = A.Extend(pattern, _VALUE, self._expr)
        return to_sparql(A.Query(A.Form.SELECT, A.Project(pattern, (_ROW, _VALUE))), needs=needs)


_STORE = Store()  # queries read nothing from it


def _getter(terms: list[Value | None]) -> Callable[[Literal], Value | None]:
    def get(row: Literal) -> Value | None:
        return terms[int(row.value)]

    return get
