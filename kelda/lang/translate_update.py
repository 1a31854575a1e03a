"""Syntax tree -> update. Prefixes and base go on from one operation to the next; blank node labels do not."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from pyoxigraph import NamedNode

from kelda.lang.algebra import (
    Dataset,
    Dialect,
    Form,
    InGraph,
    Pattern,
    QuadPattern,
    Query,
    TriplePattern,
    Triples,
    Var,
)
from kelda.lang.parser import Node, Token
from kelda.lang.translate import NOTHING, Translator, join, token_of
from kelda.lang.update import (
    Clear,
    Create,
    DeleteData,
    Graphs,
    How,
    InsertData,
    Load,
    Modify,
    Operation,
    Place,
    Template,
    Transfer,
    Update,
)
from kelda.lang.windows import TITLE


class UpdateTranslator(Translator):
    """Reads one syntax tree; `update()` is the result."""

    def __init__(self, text: str, *, base: str | None = None, params: Container[str] | None = None) -> None:
        super().__init__(text, base=base, params=params)
        self._depth = 0
        self._used: set[str] = set()  # blank node labels of all INSERT DATA so far

    def update(self, tree: Node, depth: int = 0) -> Update:
        """The update of a syntax tree that is `depth` levels deep."""
        self._depth = depth
        operations: list[Operation] = []
        for item in tree.items:
            if item.kind in ("base", "prefix"):
                self.declare(item)
            else:
                self.forget_labels()
                operations.append(_OPERATIONS[item.kind](self, item))
        return Update(tuple(operations), depth)

    def clause(self, token: Token, what: str, *having: Dialect) -> None:
        owners = " and ".join(TITLE[dialect] for dialect in Dialect if dialect in having)
        raise self.error(
            token,
            f"'{what}' is {owners}: an update is SPARQL 1.1 and reads stored graphs, no windows; to keep "
            "what a stream brings, absorb it, or let a CONSTRUCT query feed a graph",
        )

    # ------------------------------------------------------------ data

    def _insert_data(self, node: Node) -> Operation:
        block = node.items[-1]
        self._no_variables(block, "INSERT DATA")
        labels: dict[str, Token] = {}
        for item in _inside(block):
            if type(item) is Token and item.type == "BNODE_LABEL":
                labels.setdefault(str(item), item)
        for label, token in labels.items():
            if label in self._used:
                raise self.error(
                    token,
                    f"{label} is in an INSERT DATA before this one already, and would be another blank node; "
                    "make one operation of the two, or choose another label",
                )
        self._used |= labels.keys()
        return InsertData(self.template(block))

    def _delete_data(self, node: Node) -> Operation:
        block = node.items[-1]
        self._no_variables(block, "DELETE DATA")
        self._no_blank_nodes(block)
        return DeleteData(self.template(block))

    def _no_variables(self, block: Node, where: str) -> None:
        for item in _inside(block):
            if type(item) is Token and item.type == "VAR" and isinstance(self.var(item), Var):
                way_out = "INSERT { … } WHERE { … }" if where == "INSERT DATA" else "DELETE { … } WHERE { … }"
                raise self.error(item, f"{item} is a variable, and {where} has none; write {way_out}")

    def _no_blank_nodes(self, block: Node) -> None:
        for item in _inside(block):
            if type(item) is Node:
                if item.kind in ("bnode", "collection"):
                    what = "a list" if item.kind == "collection" else "[ … ]"
                    raise self.error(token_of(item), f"{what} is made of blank nodes {_OF_THIS_TEXT}")
            elif item.type in ("BNODE_LABEL", "ANON"):
                raise self.error(item, f"{item} is a blank node {_OF_THIS_TEXT}")

    # ------------------------------------------------------------ DELETE and INSERT with WHERE

    def _delete_where(self, node: Node) -> Operation:
        block = node.items[-1]
        self._no_blank_nodes(block)
        template = self.template(block)
        return Modify(template, (), self._query(_pattern(template), Dataset()))

    def _modify(self, node: Node) -> Operation:
        graph: NamedNode | None = None
        delete: Template = ()
        insert: Template = ()
        default: dict[NamedNode, None] = {}
        named: dict[NamedNode, None] = {}
        for item in node.items[:-1]:
            match item.kind:
                case "with_graph":
                    graph = self.iri(item.items[-1])
                case "delete":
                    self._no_blank_nodes(item.items[-1])
                    delete = self.template(item.items[-1])
                case "insert":
                    insert = self.template(item.items[-1])
                case _:
                    (named if len(item.items) > 2 else default)[self.iri(item.items[-1])] = None
        dataset = Dataset() if graph is None else Dataset(default=(graph,))
        if default or named:
            dataset = Dataset(tuple(default), tuple(named))
        where = self._query(self.group_pattern(node.items[-1]), dataset)
        return Modify(_in_graph(delete, graph), _in_graph(insert, graph), where)

    def _query(self, pattern: Pattern, dataset: Dataset) -> Query:
        return Query(
            Form.SELECT,
            pattern,
            dataset=dataset,
            base=self.base,
            prefixes=tuple(self.prefixes.items()),
            depth=self._depth,
        )

    # ------------------------------------------------------------ whole graphs

    def _load(self, node: Node) -> Operation:
        source, *into = (item for item in node.items if item.type == "IRI")
        return Load(self.iri(source), self.iri(into[0]) if into else None, _is_silent(node))

    def _clear(self, node: Node) -> Operation:
        last = node.items[-1]
        graphs = self.iri(last) if last.type == "IRI" else Graphs[last.type]
        return Clear(graphs, _is_silent(node))

    def _create(self, node: Node) -> Operation:
        return Create(self.iri(node.items[-1]), _is_silent(node))

    def _transfer(self, node: Node) -> Operation:
        source, target = (self._place(end) for end in node.items[-2:])
        return Transfer(How[node.items[0].type], source, target, _is_silent(node))

    def _place(self, end: Node) -> Place:
        last = end.items[-1]
        return None if last.type == "DEFAULT" else self.iri(last)


_OF_THIS_TEXT = "of this text, so no graph has it; find what goes by a variable: DELETE { … } WHERE { … }"


def _inside(node: Node) -> Iterator[Any]:
    """All nodes and tokens below, in the order of the text."""
    left: list[Any] = [node]
    while left:
        item = left.pop()
        if type(item) is Node:
            left.extend(reversed(item.items))
        if item is not node:
            yield item


def _is_silent(node: Node) -> bool:
    return any(type(item) is Token and item.type == "SILENT" for item in node.items)


def _in_graph(template: Template, graph: NamedNode | None) -> Template:
    """The template with the graph of WITH where it names none."""
    if graph is None:
        return template
    return tuple(t if isinstance(t, QuadPattern) else QuadPattern(t.s, t.p, t.o, graph) for t in template)


def _pattern(template: Template) -> Pattern:
    """The pattern of DELETE WHERE: triples that stand together in one graph are matched together."""
    pattern: Pattern = NOTHING
    run: list[TriplePattern] = []
    for i, triple in enumerate(template):
        graph = triple.graph if isinstance(triple, QuadPattern) else None
        run.append(TriplePattern(triple.s, triple.p, triple.o))
        after = template[i + 1] if i + 1 < len(template) else None
        if after is None or (after.graph if isinstance(after, QuadPattern) else None) != graph:
            triples = Triples(tuple(run))
            pattern = join(pattern, triples if graph is None else InGraph(graph, triples))
            run = []
    return pattern


_OPERATIONS = {
    "load": UpdateTranslator._load,
    "clear": UpdateTranslator._clear,
    "create": UpdateTranslator._create,
    "transfer": UpdateTranslator._transfer,
    "insert_data": UpdateTranslator._insert_data,
    "delete_data": UpdateTranslator._delete_data,
    "delete_where": UpdateTranslator._delete_where,
    "modify": UpdateTranslator._modify,
}
