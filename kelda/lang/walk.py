"""Walking and rebuilding algebra trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

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
    if isinstance(node, tuple):
        for part in node:
            yield from nodes(part)
    elif is_dataclass(node) and not isinstance(node, type):
        yield node
        for f in fields(node):
            yield from nodes(getattr(node, f.name))
