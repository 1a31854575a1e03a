"""How deep a query nests: what its translation, and every walk of its algebra, has to descend.

Brackets nest, and so do the elements of a group, each of which is joined with all before it, and the operands
of `+`. `&&`, `||` and UNION do not: their operands stand side by side in the algebra, however many there are.
"""

from __future__ import annotations

from typing import Any

from kelda.errors import QueryError
from kelda.lang.deep import DEEPEST
from kelda.lang.parser import Node, Token, error_at

SIDE_BY_SIDE = ("&&", "||")
OPERATORS = ("BINARY", "SIGNED")
CHAINS = ("group", "selected", "group_by")


def depth(tree: Node, text: str) -> int:
    """The depth of a syntax tree; a `QueryError` where it is more than can be."""
    deepest = 0
    left: list[tuple[Node, int]] = [(tree, 0)]
    while left:
        node, above = left.pop()
        here = above + _levels(node)
        if here > DEEPEST:
            message = (
                f"the query is nested too deeply, more than {DEEPEST:,} levels; take some brackets away, "
                "or make several queries of it"
            )
            at = _some_token(node)
            raise QueryError(message) if at is None else error_at(at, message, text)
        deepest = max(deepest, here)
        left.extend((item, here) for item in node.items if type(item) is Node)
    return deepest


def _levels(node: Node) -> int:
    """The levels that a node adds to those above it."""
    match node.kind:
        case "expr":
            return _longest_run(node.items)
        case "triples_block":  # a property path parts the triples before it from those after it
            return 1 + 2 * sum(_has_path(prop) for t in node.items for ps in t.items[1:] for prop in ps.items)
        case kind if kind in CHAINS:
            return len(node.items)
    return 1


def _longest_run(items: list[Any]) -> int:
    """The most operators in a row that apply one after the other, and one for && and ||."""
    longest = run = 1
    for item in items:
        if type(item) is Node and item.kind != "in_list":
            continue
        run = 1 if str(item) in SIDE_BY_SIDE else run + (type(item) is Node or item.type in OPERATORS)
        longest = max(longest, run)
    return longest


def _has_path(prop: Node) -> bool:
    return type(prop.items[0]) is Node


def _some_token(node: Node) -> Token | None:
    """The first token below, for an error's place; brackets leave none."""
    left: list[Any] = [node]
    while left:
        item = left.pop()
        if type(item) is not Node:
            assert isinstance(item, Token)
            return item
        left.extend(reversed(item.items))
    return None
