"""A default graph that is one window alone, until triples are stored beside it.

In C-SPARQL the default graph is the stored one and the windows, merged. Where nothing is stored there,
patterns read the window as any other. A network that was made so is made anew when something is stored: as
one that merges, with the rows that are in its windows. It is then where the old one was, and goes on from
there.
"""

from __future__ import annotations

from dataclasses import dataclass

from kelda.engine.compile import Incremental
from kelda.engine.join_groups import JoinGroups
from kelda.engine.nodes import JoinWindows, Node, Projected, Step, WindowLeaf
from kelda.engine.top import Top


def alone(compiler: Incremental, top: Top | None) -> Alone | None:
    """What the compiler has made, if it takes for granted that nothing is stored beside a window."""
    return Alone(compiler, top) if compiler.merges is False else None


@dataclass(frozen=True, slots=True)
class Alone:
    """How to make a network anew, as one that merges."""

    compiler: Incremental
    top: Top | None

    def is_wrong(self, moment: int) -> bool:
        """Whether something is stored beside the window by a moment."""
        return not self.compiler.nothing_beside(moment)

    def merged(self, old: Node, at: Step) -> Node:
        """The root of a network that merges, for the one of `old`; `at` is where that is."""
        leaves: dict[tuple[object, ...], tuple[JoinWindows, int]] = {}
        for node in nodes_of(old):
            if isinstance(node, JoinWindows):
                leaves |= {_pattern(leaf): (node, i) for i, leaf in enumerate(node.windows)}
        compiler = self.compiler
        compiler.merges, compiler.groups, compiler.since = True, JoinGroups(), at.moment
        root = compiler.compile() if self.top is None else compiler.compile_top(self.top)
        if root.columns != old.columns:
            root = Projected(root, old.columns)
        for node in nodes_of(root):
            if isinstance(node, JoinWindows):
                node.seed([leaves[_pattern(leaf)] for leaf in node.windows])
        for node in inputs_first(root):  # what its rows amount to was told by the old one
            node.step(at)
        return root


def _pattern(leaf: WindowLeaf) -> tuple[object, ...]:
    """What makes a leaf's rows what they are."""
    return (id(leaf.intervals), leaf.wanted, tuple(leaf.columns.values()), leaf.equal)


def nodes_of(root: Node) -> list[Node]:
    """A node and all below it, each once."""
    found: dict[int, Node] = {}
    todo = [root]
    while todo:
        node = todo.pop()
        if id(node) not in found:
            found[id(node)] = node
            todo += node.inputs
    return list(found.values())


def inputs_first(root: Node) -> tuple[Node, ...]:
    """All nodes, each after those it reads."""
    found: dict[int, Node] = {}
    todo = [(root, False)]
    while todo:
        node, inputs_are_there = todo.pop()
        if inputs_are_there:
            found.setdefault(id(node), node)
        elif id(node) not in found:
            todo.append((node, True))
            todo += [(source, False) for source in node.inputs]
    return tuple(found.values())
