"""Shapes of JSON-LD documents, learned from what the framing makes of a document with other values in it.

A shape is a text with holes where values were. What a value becomes is found by trial: with a name in its
place that nothing else has, its hole is where that name comes out. That the trial holds for other values,
too, follows from how JSON-LD is defined: a string that comes out as a literal is looked at by nothing; a
number is written canonically; and an IRI depends on the value's beginning up to its colon (or on there being
none), unless the value is itself a term of the context. What else a value may do (name a type, whose context
may be another, or a datatype, or a language) makes it a part of the shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from kelda.rdf.columnar.jsonld_kernels import IRI, LITERAL, NUMBER, SILENT, STRING
from kelda.rdf.framings.blanks import scoped
from kelda.rdf.ids import Term, text

MOST_HOLES, LONGEST = 64, 1 << 15  # of a document that is learned from

Say = Callable[[bytes], Sequence[Quad] | None]
"""What the framing makes of a document; None if it rejects it."""

_TOKEN = re.compile(rb'("(?:[^"\\]|\\.)*")|(-?[0-9][-+.eE0-9]*)|([{}\[\],:])|true|false|null|[ \t\r]+')
_NAME = "x-kelda-hole-"
_NAMED = re.compile(_NAME + r"([0-9]+):")
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_JSON = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON"

Part = Term | DefaultGraph | int  # of a quad; a number is that of a hole


@dataclass
class Hole:
    """A place of a value: its kind, what it becomes, and of a literal the empty one of its datatype (of a
    number that is whole; `other` is that of the others), of an IRI the rules by which the value makes it."""

    kind: int
    role: int = SILENT
    literal: Literal | None = None
    other: Literal | None = None
    always_double: bool = False
    rules: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)


@dataclass
class Shape:
    """A text with holes, and the quads of a document that has it."""

    pieces: tuple[bytes, ...]
    holes: list[Hole]
    quads: list[tuple[Part, Part, Part, Part]]


class _Document:
    """A document taken apart: the pieces of its text and the values between them."""

    def __init__(self, line: bytes) -> None:
        self.line = line
        self.spans: list[tuple[int, int, int]] = []  # of values: begin and end without quotes, kind
        self.plain = self._take_apart()

    def _take_apart(self) -> bool:
        """Whether it could be done: keys have no escapes, and none comes twice."""
        stack: list[set[bytes] | None] = []  # of the objects that are open, their keys; None is an array
        at, inside = 0, -1  # inside: how deep a context lies that the value is in
        expects_key, key = False, b""
        while at < len(self.line):
            found = _TOKEN.match(self.line, at)
            if found is None:
                return False
            at = found.end()
            string, number, sign = found.groups()
            if string is not None and expects_key:
                keys = stack[-1]
                if b"\\" in string or keys is None or string in keys:
                    return False
                keys.add(string)
                key, expects_key = string, False
                continue
            if sign in (b"{", b"["):
                if inside < 0 and key == b'"@context"':
                    inside = len(stack)
                stack.append(set() if sign == b"{" else None)
                expects_key, key = sign == b"{", b""
            elif sign in (b"}", b"]"):
                stack.pop()
                inside = -1 if len(stack) == inside else inside
                expects_key = False
            elif sign == b",":
                expects_key, key = stack[-1] is not None, b""
            elif inside < 0 and key != b'"@context"':
                if string is not None:
                    self.spans.append((found.start() + 1, found.end() - 1, STRING))
                elif number is not None:
                    self.spans.append((*found.span(), NUMBER))
        return not stack

    def filled(self, values: dict[int, bytes]) -> bytes:
        """The document with other values in some places."""
        out, at = [], 0
        for number in sorted(values):
            begin, end, _ = self.spans[number]
            out += [self.line[at:begin], values[number]]
            at = end
        return b"".join([*out, self.line[at:]])

    def pieces(self, holes: Iterable[int]) -> tuple[bytes, ...]:
        out, at = [], 0
        for number in holes:
            begin, end, _ = self.spans[number]
            out.append(self.line[at:begin])
            at = end
        return (*out, self.line[at:])


def learned(line: bytes, say: Say) -> Shape | None:
    """The shape of a document; None if that is not sure."""
    document = _Document(line.rstrip(b" \t\r\n"))
    spans = document.spans
    if not document.plain or len(spans) > MOST_HOLES or len(line) > LONGEST or _NAME.encode() in line:
        return None
    original = say(line)
    if not original:
        return None
    fixed: set[int] = set()
    for _ in range(4):
        holes = [number for number in range(len(spans)) if number not in fixed]
        found = _Trial(document, holes, say, original).outcome()
        if isinstance(found, Shape):
            for number, hole in zip(holes, found.holes, strict=True):
                begin, end, _ = spans[number]
                if hole.role == IRI:
                    learn_rule(found, line, holes.index(number), line[begin:end], say)
            return found
        if not found - fixed:
            return None
        fixed |= found
    return None


def rule_of(value: str) -> str:
    """The beginning of a value by which it becomes an IRI."""
    before, colon, rest = value.partition(":")
    return before + ":" + ("//" if rest.startswith("//") else "") if colon else ""


def learn_rule(shape: Shape, line: bytes, number: int, value: bytes, say: Say) -> bool:
    """Know what becomes of values of a hole that begin as this one does; whether that is news."""
    hole = shape.holes[number]
    try:
        begin = rule_of(value.decode())
    except UnicodeDecodeError:
        return False
    if hole.role != IRI or begin in hole.rules or begin in hole.failed or len(hole.failed) > MOST_HOLES:
        return False
    if re.fullmatch(r"(?:[A-Za-z][\w.+-]*:(?://)?)?", begin, re.ASCII) is None:
        return False
    hole.failed.add(begin)
    document, bases = _Document(line.rstrip(b" \t\r\n")), set()
    values = values_of(shape, document)
    if values is None:
        return False
    for rest in ("kelda-hole", "kelda/hole-2"):
        quads = say(document.filled({values[number]: (begin + rest).encode()}))
        if quads is None or len(quads) != len(shape.quads):
            return False
        for quad, parts in zip(quads, shape.quads, strict=True):
            for term, part in zip(_parts(quad), parts, strict=True):
                if part == number and isinstance(part, int):
                    if not isinstance(term, NamedNode) or not term.value.endswith(rest):
                        return False
                    bases.add(term.value.removesuffix(rest))
    if len(bases) != 1:
        return False
    hole.failed.discard(begin)
    hole.rules[begin] = bases.pop()
    return True


def values_of(shape: Shape, document: _Document) -> list[int] | None:
    """Which values of a document are in the holes of a shape; None if it has not that shape."""
    at, numbers = 0, []
    places = {begin: number for number, (begin, _, _) in enumerate(document.spans)}
    for piece, hole in zip(shape.pieces, [*shape.holes, None], strict=True):
        if not document.line.startswith(piece, at):
            return None
        at += len(piece)
        if hole is not None:
            number = places.get(at)
            if number is None or document.spans[number][2] != hole.kind:
                return None
            numbers.append(number)
            at = document.spans[number][1]
    return numbers if at == len(document.line) else None


def iris_of(shape: Shape, line: bytes) -> list[tuple[int, bytes]] | None:
    """The holes for IRIs and what is in them, if the line has this shape; None if not."""
    document = _Document(line.rstrip(b" \t\r\n"))
    numbers = values_of(shape, document) if document.plain else None
    if numbers is None:
        return None
    spans = [document.spans[number][:2] for number in numbers]
    holes = enumerate(zip(shape.holes, spans, strict=True))
    return [(k, document.line[begin:end]) for k, (hole, (begin, end)) in holes if hole.role == IRI]


def _parts(quad: Quad) -> tuple[Any, Any, Any, Any]:
    return quad.subject, quad.predicate, quad.object, quad.graph_name


def canonical(number: str, always_double: bool = False) -> tuple[str, bool]:
    """A number without exponent as JSON-LD writes it, and whether that is a double."""
    sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
    whole, _, fraction = digits.partition(".")
    whole, fraction = whole.lstrip("0"), fraction.rstrip("0")
    if not fraction and not always_double:
        return sign + (whole or "0"), False
    if not whole and not fraction:
        return sign + "0.0E0", True
    exponent = len(whole) - 1 if whole else -1 - (len(fraction) - len(fraction.lstrip("0")))
    significant = (whole + fraction).lstrip("0").rstrip("0")
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{exponent}", True


class _Trial:
    """What comes out when other values are put into some places of a document."""

    def __init__(self, document: _Document, holes: list[int], say: Say, original: Sequence[Quad]) -> None:
        self.document, self.holes, self.say, self.original = document, holes, say, original
        self.kinds = [document.spans[number][2] for number in holes]

    def outcome(self) -> Shape | set[int]:
        """The shape, or places that cannot be holes (none if there is no hope)."""
        trials = [self._values(series) for series in range(3)]
        said = [self._say(values) for values in trials]
        if any(quads is None for quads in said):
            return {
                self.holes[k]
                for values in trials
                for k, value in enumerate(values)
                if self._say([value if i == k else None for i in range(len(values))]) is None
            }
        wrong: set[int] = set()
        roles = []
        for values, quads in zip(trials, said, strict=True):
            assert quads is not None
            if len(quads) != len(self.original):
                return set()
            roles.append([tuple(self._role(term, values, wrong) for term in _parts(quad)) for quad in quads])
        if wrong:
            return {self.holes[k] for k in wrong}
        holes = [Hole(kind) for kind in self.kinds]
        quads_of_shape: list[tuple[Part, Part, Part, Part]] = []
        for original, *each in zip(self.original, *roles, strict=True):
            parts: list[Any] = []
            for term, *seen in zip(_parts(original), *each, strict=True):
                numbers = {role[0] for role in seen}
                if numbers == {-1}:
                    if any(role[1] != term for role in seen):
                        return set()
                    parts.append(term)
                    continue
                if len(numbers) > 1:
                    return {self.holes[k] for k in numbers if k >= 0}
                (number,) = numbers
                if not self._settle(holes[number], [role[1] for role in seen]):
                    return {self.holes[number]}
                parts.append(number)
            if isinstance(parts[1], int):
                return {self.holes[parts[1]]}
            if parts[1] == NamedNode(_TYPE) and isinstance(parts[2], int):
                return {self.holes[parts[2]]}
            quads_of_shape.append((parts[0], parts[1], parts[2], parts[3]))
        heard = self._heard(holes)
        return heard or Shape(self.document.pieces(self.holes), holes, quads_of_shape)

    def _say(self, values: Sequence[bytes | None]) -> Sequence[Quad] | None:
        some = {self.holes[k]: value for k, value in enumerate(values) if value is not None}
        return self.say(self.document.filled(some))

    def _values(self, series: int) -> list[bytes]:
        """Values that can be told from each other. Those of the last series are full of what is special."""
        out = []
        for k, kind in enumerate(self.kinds):
            if kind == STRING:
                name = f"{_NAME}{k}:{'vwx'[series]}"
                out.append((name if series < 2 else name + "-_~é").encode())
            else:
                out.append(str([9130000 + k, f"9130.{k:03}1", f"-0.0{9130000 + k}0"][series]).encode())
        return out

    def _role(self, term: Any, values: list[bytes], wrong: set[int]) -> tuple[int, Any]:
        """Which hole's value a term is made of (-1: of none), and the term without that."""
        if isinstance(term, NamedNode):
            return self._named(term.value, values, term, wrong)
        if not isinstance(term, Literal):
            return -1, term
        empty = Literal("", language=term.language, direction=term.direction) if term.language else None
        empty = empty or Literal("", datatype=term.datatype)
        for part in (term.language or "", term.datatype.value):
            wrong.update(int(found) for found in _NAMED.findall(part))
        for k, (kind, value) in enumerate(zip(self.kinds, values, strict=True)):
            if kind == NUMBER:
                for double in (False, True):
                    if term.value == canonical(value.decode(), double)[0]:
                        return k, (empty, canonical(value.decode(), double)[1])
        return self._named(term.value, values, empty, wrong, term)

    def _named(
        self, value: str, values: list[bytes], without: Any, wrong: set[int], term: Any = None
    ) -> tuple[int, Any]:
        found = _NAMED.search(value)
        if found is None:
            return -1, term or without
        k = int(found[1])
        if value.encode() != values[k]:
            wrong.update(int(number) for number in _NAMED.findall(value))
        return k, without if term is not None else None

    def _settle(self, hole: Hole, seen: list[Any]) -> bool:
        """Give a hole the role that was seen in each series; False if they do not agree with it."""
        if hole.kind == NUMBER:
            (whole, double), (other, _), (third, _) = seen
            role: tuple[Any, ...] = (LITERAL, whole, other, double)
            if other != third or _JSON in (whole.datatype.value, other.datatype.value):
                return False
        elif seen[0] is None:
            role = (IRI, None, None, False)
        else:
            role = (LITERAL, seen[0], None, False)
            if seen[0].datatype.value == _JSON:
                return False
        if hole.kind != NUMBER and any(one != seen[0] for one in seen):
            return False
        if hole.role != SILENT and role != (hole.role, hole.literal, hole.other, hole.always_double):
            return False
        hole.role, hole.literal, hole.other, hole.always_double = role
        return True

    def _heard(self, holes: list[Hole]) -> set[int]:
        """Those whose value changes something though it does not come out."""
        wrong = set()
        for k, hole in enumerate(holes):
            if hole.role != SILENT:
                continue
            for value in [b"", b"@id", b"5", b"_:b", b"en"] if hole.kind == STRING else [b"0", b"1.5"]:
                if self._say([value if i == k else None for i in range(len(holes))]) != self.original:
                    wrong.add(self.holes[k])
        return wrong


def renamed(quads: Iterable[Quad]) -> tuple[Quad, ...]:
    """The quads with blank nodes that are called after their number."""
    return scoped(quads, "")


def suffix(literal: Literal) -> bytes:
    """What stands behind the quotes of literals of this datatype and language."""
    return text(literal).encode()[2:]


def names_in(context: Any) -> set[str]:
    """All names in a context, or in a document with contexts."""
    if isinstance(context, list):
        return {name for part in context for name in names_in(part)}
    if isinstance(context, dict):
        return {str(name) for name in context} | {n for part in context.values() for n in names_in(part)}
    return set()


def number_of(blank: BlankNode) -> int:
    """The number that a renamed blank node is called after."""
    return int(blank.value[1:])
