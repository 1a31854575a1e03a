"""Walking and rebuilding algebra trees: what every question about a tree is asked with.

A tree is made of nodes (the dataclasses of `kelda.lang.algebra`), of tuples of them, and of leaves: terms,
names, numbers. Which variables a *solution* binds is another question; see `kelda.lang.scope`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import Any, TypeVar

from kelda.lang.algebra import Exists, Pattern, Var

T = TypeVar("T")


class _Fields(dict[type, tuple[str, ...] | None]):
    """The names of the parts of a class's nodes; None if it has no nodes."""

    def __missing__(self, kind: type) -> tuple[str, ...] | None:
        self[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else None
        return self[kind]


_FIELDS = _Fields()


def parts(node: object) -> Sequence[Any]:
    """What a node, or a tuple, is directly made of; a leaf of nothing."""
    if isinstance(node, tuple):
        return node
    return [getattr(node, name) for name in _FIELDS[type(node)] or ()]


def transform(node: T, rule: Callable[[Any], Any]) -> T:
    """Rebuild the tree from the leaves up, each node replaced by `rule(node)`.

    Nodes that nothing changes are kept as they are, not copied."""
    names = _FIELDS[type(node)]
    if names is None and not isinstance(node, tuple):
        return node
    old = parts(node)
    new = [transform(part, rule) for part in old]
    same = all(map(is_, new, old))
    if names is None:
        return node if same else tuple(new)  # type: ignore[return-value]
    rebuilt: Any = node if same else replace(node, **dict(zip(names, new, strict=True)))  # type: ignore[type-var]
    result: T = rule(rebuilt)
    return result


def nodes(node: object) -> Iterator[Any]:
    """Every algebra node below and including `node`, from the root down."""
    left = [node]
    while left:
        node = left.pop()
        if _is_node(node):
            yield node
        left.extend(reversed(parts(node)))


def has(node: object, kind: type | tuple[type, ...]) -> bool:
    """Whether a node of this class is in the tree."""
    return any(isinstance(n, kind) for n in nodes(node))


def mentioned(node: object) -> frozenset[Var]:
    """The variables that stand anywhere in the tree."""
    return frozenset(n for n in nodes(node) if isinstance(n, Var))


def children(pattern: Pattern) -> list[Pattern]:
    """The patterns directly below a pattern: those it is made of, then those of EXISTS in its expressions."""
    below = parts(pattern)
    direct = [part for part in below if isinstance(part, Pattern)]
    return direct + [found for part in below if not isinstance(part, Pattern) for found in exists_in(part)]


def exists_in(expression: object) -> list[Pattern]:
    """The patterns of EXISTS in an expression (or a tuple of them), not those further inside."""
    found: list[Pattern] = []
    left = [expression]
    while left:
        node = left.pop()
        if isinstance(node, Exists):
            found.append(node.pattern)
        else:
            left.extend(reversed(parts(node)))
    return found


def depth(node: object) -> int:
    """How many algebra nodes stand above one another, at most."""
    deepest = 0
    left: list[tuple[object, int]] = [(node, 0)]
    while left:
        node, above = left.pop()
        here = above + _is_node(node)
        deepest = max(deepest, here)
        left.extend((part, here) for part in parts(node))
    return deepest


def _is_node(node: object) -> bool:
    return _FIELDS[type(node)] is not None
