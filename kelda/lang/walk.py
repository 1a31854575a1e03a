"""Walking and rebuilding algebra trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from kelda.lang.algebra import Exists, Pattern

T = TypeVar("T")


def transform(node: T, rule: Callable[[Any], Any]) -> T:
    """Rebuild the tree from the leaves up, each node replaced by `rule(node)`.

    Nodes that nothing changes are kept as they are, not copied."""
    if isinstance(node, tuple):
        parts = tuple(transform(part, rule) for part in node)
        return node if all(a is b for a, b in zip(parts, node, strict=True)) else parts  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changed = {}
    for f in fields(node):
        old = getattr(node, f.name)
        new = transform(old, rule)
        if new is not old:
            changed[f.name] = new
    rebuilt: Any = replace(node, **changed) if changed else node
    result: T = rule(rebuilt)
    return result


def nodes(node: object) -> Iterator[Any]:
    """Every algebra node below and including `node`, from the root down."""
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, tuple):
            left.extend(reversed(node))
        elif is_dataclass(node) and not isinstance(node, type):
            yield node
            left.extend(getattr(node, f.name) for f in reversed(fields(node)))


def children(pattern: Pattern) -> list[Pattern]:
    """The patterns directly below a pattern: those it is made of, then those of EXISTS in its expressions."""
    slots = [getattr(pattern, f.name) for f in fields(pattern)]  # type: ignore[arg-type]
    direct = [slot for slot in slots if isinstance(slot, Pattern)]
    return direct + [found for slot in slots if not isinstance(slot, Pattern) for found in exists_in(slot)]


def exists_in(expression: object) -> list[Pattern]:
    """The patterns of EXISTS in an expression (or a tuple of them), not those further inside."""
    found: list[Pattern] = []
    left = [expression]
    while left:
        node = left.pop()
        if isinstance(node, Exists):
            found.append(node.pattern)
        elif isinstance(node, tuple):
            left.extend(reversed(node))
        elif is_dataclass(node) and not isinstance(node, type):
            left.extend(getattr(node, f.name) for f in reversed(fields(node)))
    return found


def depth(node: object) -> int:
    """How many algebra nodes stand above one another, at most."""
    deepest = 0
    left: list[tuple[object, int]] = [(node, 0)]
    while left:
        node, above = left.pop()
        if isinstance(node, tuple):
            left.extend((part, above) for part in node)
        elif is_dataclass(node) and not isinstance(node, type):
            deepest = max(deepest, above + 1)
            left.extend((getattr(node, f.name), above + 1) for f in fields(node))
    return deepest
