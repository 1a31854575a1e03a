"""The shapes of JSON-LD documents that are known in some context, as arrays for the kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode

from kelda.rdf.byte_masks import WIDTH
from kelda.rdf.columnar import jsonld_kernels as kernels
from kelda.rdf.columnar.jsonld_shapes import Hole, Part, Shape, number_of, suffix
from kelda.rdf.framings.eventtime import TIME_PREDICATES, to_ms
from kelda.rdf.ids import Term, encode, hash_text, text
from kelda.rdf.keyset import KeySet
from kelda.rdf.skim import Asked
from kelda.rdf.skim_kernels import RULE_P

XSD = "http://www.w3.org/2001/XMLSchema#"
_INLINE = {"integer", "decimal", "double", "float", "dateTime", "boolean"}
_NO_TIME = -(2**63)


class _Texts:
    """Texts behind one another."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, piece: bytes) -> tuple[int, int]:
        begin = len(self.data)
        self.data += piece
        return begin, len(self.data)


class Table:
    """Shapes laid out for the kernel. Nothing in it changes, so threads may share it."""

    def __init__(self, shapes: Sequence[Shape], names: Iterable[str], seed: int) -> None:
        texts, self._shapes = _Texts(), shapes
        self._constants: dict[Term | DefaultGraph, int] = {}
        pieces: list[Sequence[int]] = []
        holes: list[Sequence[int]] = []
        rules: list[Sequence[int]] = []
        quads: list[Sequence[int]] = []
        rows: list[Sequence[int]] = []
        for shape in shapes:
            rows.append([len(pieces), len(holes), len(shape.holes), len(quads), len(shape.quads)])
            pieces += [texts.put(piece) for piece in shape.pieces]
            for hole in shape.holes:
                first = len(rules)
                for begin, base in hole.rules.items():
                    rules.append([*texts.put(begin.encode()), *texts.put(base.encode())])
                holes.append(_hole(hole, texts, first, len(rules)))
            quads += [[self._part(part) for part in quad] for quad in shape.quads]
        terms = KeySet()
        terms.add(np.array([hash_text(name.encode("utf-8", "replace")) for name in names], np.int64))
        self.spans = _array([texts.put(_text_of(term)) for term in self._constants], 2)
        self.constants = np.array([encode(term, seed) for term in self._constants], np.int64)
        self.texts = np.frombuffer(bytes(texts.data) + bytes(WIDTH), np.uint8)
        self.quads, self.rows = _array(quads, 4), _array(rows, 5)
        self.known = (
            self.rows,
            _array(pieces, 2),
            _array(holes, 11),
            _array(rules, 4),
            self.quads,
            self.texts,
            self.constants,
            terms.table,
        )
        self.holes = len(holes)
        self.most_quads = max([len(shape.quads) for shape in shapes], default=0)
        # Bytes of terms that a line has beyond those of its own text, at most.
        self.more_text = max(map(_more_text, shapes), default=0)
        self._times: dict[tuple[str | None, bool], tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}

    def _part(self, part: Part) -> int:
        if isinstance(part, int):
            return kernels.OF_HOLE | part
        if isinstance(part, BlankNode):
            return kernels.BLANK | number_of(part)
        return kernels.CONSTANT | self._constants.setdefault(part, len(self._constants))

    def wanted(
        self, asked: Asked, time_predicate: str | None, needs_time: bool
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_], NDArray[np.int64]]:
        """What is wanted of each line, as the kernel has it."""
        predicates = asked.rules[:, RULE_P]
        quads = np.isin(self.constants[self.quads[:, 1]], predicates)
        if (predicates == 0).any():
            quads[:] = True
        holes = np.zeros(self.holes, np.bool_)
        first = np.repeat(self.rows[:, kernels.HOLE], self.rows[:, kernels.QUADS])
        for part in self.quads.T:
            some = quads & (part >= kernels.OF_HOLE) & (part < kernels.BLANK)
            holes[(first + part - kernels.OF_HOLE)[some]] = True
        key = time_predicate, needs_time
        if key not in self._times:
            self._times[key] = self._timed(*key)
        times, timed = self._times[key]
        return quads, holes, timed, times

    def _timed(self, predicate: str | None, needs_time: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The times of the shapes, and which holes are times."""
        rows, timed = [], np.zeros(self.holes, np.bool_)
        for shape, (_, hole, *_) in zip(self._shapes, self.rows.tolist(), strict=True):
            parts = _time_parts(shape, predicate)
            mode, latest = kernels.TIMED if parts else kernels.UNTIMED, _NO_TIME
            if parts is None or (not parts and needs_time):
                mode, parts = kernels.NEVER, []
            for part in parts:
                if isinstance(part, int):
                    timed[hole + part] = True
                    continue
                ms = to_ms(part.value)
                mode, latest = (kernels.NEVER, latest) if ms is None else (mode, max(latest, ms))
            rows.append([mode, latest])
        return _array(rows, 2), timed

    def constants_of(
        self, shapes: NDArray[np.int64], quads: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The hashed constants in quads of these shapes that are wanted: their ids, and their spans."""
        used = np.zeros(len(self.rows), np.bool_)
        used[shapes] = True
        some = self.quads[quads & np.repeat(used, self.rows[:, kernels.QUADS])].ravel()
        numbers = np.unique(some[(some < kernels.OF_HOLE)])
        numbers = numbers[self.constants[numbers] > 0]
        return self.constants[numbers], self.spans[numbers]


class Known:
    """The shapes that are known, and grow more; `lock` is for who has them grow."""

    def __init__(self, seed: int) -> None:
        self.lock = threading.Lock()
        self.shapes: list[Shape] = []
        self.names: set[str] = set()
        self.records = 0
        """Of the streams so far, about: the more there were, the more may be spent on learning."""
        self.spent = 0
        self._seed = seed
        self.table = Table([], [], seed)

    def renew(self) -> None:
        """Lay out what is known by now."""
        self.table = Table(self.shapes, self.names, self._seed)


def _time_parts(shape: Shape, predicate: str | None) -> list[Any] | None:
    """The literals and the holes that tell the time; None if they cannot."""
    values: dict[str, list[Part]] = {}
    for _, name, value, _ in shape.quads:
        assert isinstance(name, NamedNode)
        values.setdefault(name.value, []).append(value)
    if predicate is not None:
        found = values.get(predicate, [])
        return found if found and all(_is_literal(part, shape) for part in found) else None
    for usual in TIME_PREDICATES:
        if some := [part for part in values.get(usual, []) if _is_literal(part, shape)]:
            return some
    return []


def _is_literal(part: Part, shape: Shape) -> bool:
    if isinstance(part, int):
        return shape.holes[part].role == kernels.LITERAL
    return isinstance(part, Literal)


def _hole(hole: Hole, texts: _Texts, rule: int, rule_end: int) -> list[int]:
    kinds: list[int] = []
    for literal in (hole.literal, hole.other):
        kinds += [0, 0, 0] if literal is None else [_type(literal), *texts.put(suffix(literal))]
    return [hole.kind, hole.role, *kinds, hole.always_double, rule, rule_end]


def _type(literal: Literal) -> int:
    """The datatype of a literal, as the kernel knows it."""
    if literal.language is not None:
        return 0
    name = literal.datatype.value.removeprefix(XSD)
    if XSD + name != literal.datatype.value:
        return 0
    if name == "string":
        return kernels.PLAIN
    return int.from_bytes(name.encode().ljust(8, b"\0"), "little") if name in _INLINE else 0


def _more_text(shape: Shape) -> int:
    size = 0
    for hole in shape.holes:
        size += 48 + max([len(base.encode()) for base in hole.rules.values()], default=0)
        size += sum(len(suffix(one)) for one in (hole.literal, hole.other) if one is not None)
    blanks = {part for quad in shape.quads for part in quad if isinstance(part, BlankNode)}
    return size + 96 * len(blanks)


def _text_of(term: Term | DefaultGraph) -> bytes:
    return b"" if isinstance(term, DefaultGraph) else text(term).encode()


def _array(rows: Sequence[Any], width: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, width)
