"""How deep a query nests: what its translation, and every walk of its algebra, has to descend.

Brackets nest, and so do the elements of a group, each of which is joined with all before it, and the operands
of `+`. `&&`, `||` and UNION do not: their operands stand side by side in the algebra, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kelda.errors import QueryError
from kelda.lang.deep import DEEPEST
from kelda.lang.parser import Node, Token, error_at

SIDE_BY_SIDE = ("&&", "||")
OPERATORS = ("BINARY", "SIGNED")


def depth(tree: Node, text: str) -> int:
    """The depth of a syntax tree; a `QueryError` where it is more than can be."""
    deepest = 0
    left: list[tuple[Node, int]] = [(tree, 0)]
    while left:
        node, above = left.pop()
        levels = _LEVELS.get(node.kind)
        here = above + (1 if levels is None else levels(node))
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


def _paths(block: Node) -> int:
    """A property path parts the triples before it from those after it."""
    paths = sum(type(p.items[0]) is Node for t in block.items for ps in t.items[1:] for p in ps.items)
    return 1 + 2 * paths


def _graphs(delete_where: Node) -> int:
    """What is in one graph after another is joined."""
    return 1 + 2 * len(delete_where.items[-1].items)


def _longest_run(expr: Node) -> int:
    """The most operators in a row that apply one after the other, and one for && and ||."""
    longest = run = 1
    for item in expr.items:
        if type(item) is Node and item.kind != "in_list":
            continue
        run = 1 if str(item) in SIDE_BY_SIDE else run + (type(item) is Node or item.type in OPERATORS)
        longest = max(longest, run)
    return longest


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


def _elements(chain: Node) -> int:
    """Each is applied to all before it."""
    return len(chain.items)


# The levels that a node adds to those above it, where that is not one.
_LEVELS: dict[str, Callable[[Node], int]] = {
    "expr": _longest_run,
    "triples_block": _paths,
    "group": _elements,
    "selected": _elements,
    "delete_where": _graphs,
    "group_by": _elements,
}
