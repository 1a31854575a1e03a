"""Algebra -> nodes: how a query is run from the changes alone, or why it cannot be yet.

`Incremental` compiles what has an incremental form and raises `NotIncremental` with the reason for
what has none; such a query is run by the reference evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from itertools import count

from pyoxigraph import NamedNode

from kelda.engine.compile_paths import Paths
from kelda.engine.deltas import Ids
from kelda.engine.expressions import Compiled, Expressions, supports
from kelda.engine.intervals import Intervals
from kelda.engine.join_groups import JoinGroups, JoinReader
from kelda.engine.nodes import (
    Extended,
    Filtered,
    JoinWindows,
    Node,
    Operated,
    Projected,
    Stored,
    United,
    WindowLeaf,
)
from kelda.engine.oneshot import evaluate, evaluate_ids
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.antijoin import AntiJoin
from kelda.engine.operators.distinct import Distinct
from kelda.engine.operators.group_by import GroupBy
from kelda.engine.ownership import Owner
from kelda.engine.partly_bound import Sides, sides, united, words
from kelda.engine.relations import Picked, Relation
from kelda.engine.sharing import Parameters
from kelda.engine.stated_time import StatedWindow
from kelda.engine.top import Top
from kelda.errors import KeldaError
from kelda.lang import algebra as A
from kelda.lang.expressions import side_by_side
from kelda.lang.scope import NEW_EACH_TIME, certainly_bound, visible_vars
from kelda.lang.timestamps import TIMESTAMP
from kelda.lang.walk import children, depth, exists_in, has, mentioned, nodes
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.graphstore import GraphStore


class NotIncremental(KeldaError):
    """The query, or this part of it, has no incremental form yet; the text is the reason."""


class Incremental:
    """Compiles the pattern of one query."""

    def __init__(
        self,
        query: A.Query,
        store: GraphStore,
        dictionary: Dictionary,
        windows: dict[str, tuple[str, Intervals]],  # name -> (stream, intervals)
        parameters: Parameters | None = None,  # of the queries of this shape, if they share a network
        owner: Owner | None = None,  # if the query is spread over shards
        groups: JoinGroups | None = None,  # of other queries, to be shared
        name: str = "",
    ) -> None:
        self.groups = JoinGroups() if groups is None else groups
        self.name = name
        self.owner = owner
        self.parameters = parameters
        self._whose = () if parameters is None else (QUERY,)
        self.query, self.store, self.dictionary, self.windows = query, store, dictionary, windows
        self.expressions = Expressions(dictionary, base=query.base)
        self._fresh = count()
        # Answers of `reads_windows`, with their patterns: while those are here, no other has their id.
        self._reading: dict[tuple[int, str | None], tuple[A.Pattern, bool]] = {}
        self.merges: bool | None = None  # whether bare patterns read a window and stored graphs, merged
        self.before: dict[A.Pattern, Ids] | None = None  # what was stored when nothing was beside the windows

    def compile(self) -> Node:
        """The node whose deltas are the solutions of the query."""
        for node in nodes(self.query.pattern):
            if isinstance(node, A.Call) and node.op == "NOW":
                raise NotIncremental("NOW() changes at every report")
            if isinstance(node, A.Call) and node.op in NEW_EACH_TIME:
                raise NotIncremental(f"{node.op}() is new at every report")
            if isinstance(node, A.FunctionCall) and node.function == TIMESTAMP:
                raise NotIncremental("the time stamps of triples")
            if isinstance(node, A.Reduced):
                raise NotIncremental("REDUCED leaves the choice to the implementation")
            if isinstance(node, A.Service):
                raise NotIncremental("SERVICE is asked anew at every report")
        return self.pattern(self.query.pattern, self._outside())

    def compile_top(self, top: Top) -> Node:
        """The node of a query with an order or a slice: its solutions, and the keys of the order."""
        self.query = replace(self.query, pattern=top.pattern)
        node = self.compile()
        keys = tuple(f".key{i}" for i in range(len(top.computed)))
        for name, expr in zip(keys, top.computed, strict=True):
            node = Extended(node, name, self.expression(expr, node))
        node = Projected(node, (*(column(v) for v in top.variables), *keys))
        if top.distinct and top.by_what_is_shown:  # else, which of the equal solutions comes first decides
            node = Operated(Distinct(node.columns), (node,), "distinct")
        return node

    def _outside(self) -> str | None:
        """The window that bare patterns read: none, one, or (C-SPARQL) several things merged."""
        default = self.query.dataset.windows
        if not default:
            return None
        if self.merges is None:
            alone = len(default) == 1 and not any(map(self.goes_by_stated_time, self.windows))
            self.merges = not (alone and self.nothing_beside())
        return MERGED if self.merges else default[0]

    def nothing_beside(self) -> bool:
        """Whether nothing is stored in the graph that windows are merged with."""
        anything = A.Triples((A.TriplePattern(A.Var("s"), A.Var("p"), A.Var("o")),))
        dataset = self._stored_dataset()
        query = replace(self.query, form=A.Form.ASK, pattern=anything, windows=(), dataset=dataset)
        return not evaluate(query, self.store)

    def _stored_dataset(self) -> A.Dataset:
        return replace(self.query.dataset, windows=())

    # -------------------------------------------------------------------- patterns

    def pattern(self, pattern: A.Pattern, window: str | None) -> Node:
        """The node of a pattern; `window` is the one that its triple patterns read, if any."""
        if not self.reads_windows(pattern, window):
            return self.stored_node(pattern)
        match pattern:
            case A.Triples() | A.Join() | A.InWindow() | A.InGraph():
                return self.join(pattern, window)
            case A.Filter(condition, inner):
                return self.filter(condition, inner, window)
            case A.Extend(inner, var, expr):
                source = self.pattern(inner, window)
                return Extended(source, column(var), self.expression(expr, source))
            case A.Union(left, right):
                branches = (self.pattern(left, window), self.pattern(right, window))
                if any(name not in branch.columns for branch in branches for name in self._whose):
                    raise NotIncremental("a branch of a UNION that reads no window, shared by many queries")
                return United(branches)
            case A.LeftJoin(left, right, condition):
                return self.left_join(left, right, condition, window)
            case A.Minus(left, right):
                return self.minus(left, right, window)
            case A.Project(inner, variables):
                source = self.pattern(inner, window)
                return Projected(source, (*(column(v) for v in variables), *self._whose))
            case A.Distinct(inner):
                source = self.pattern(inner, window)
                return Operated(Distinct(source.columns), (source,), "distinct")
            case A.Group():
                return self.group(pattern, window)
            case A.OrderBy(inner, _):  # below the top, solutions are a bag
                return self.pattern(inner, window)
            case A.Slice():
                raise NotIncremental("LIMIT or OFFSET in a sub-select")
            case A.PathPattern(s, path, o):
                return self.path(s, path, o, window)
        raise NotIncremental(f"{type(pattern).__name__} has no incremental form")

    def reads_windows(self, pattern: A.Pattern, window: str | None) -> bool:
        """Whether the pattern reads a window (rather than stored graphs alone)."""
        key = (id(pattern), window)
        if key not in self._reading:
            self._reading[key] = (pattern, self._reads_windows(pattern, window))
        return self._reading[key][1]

    def _reads_windows(self, pattern: A.Pattern, window: str | None) -> bool:
        if isinstance(pattern, A.InWindow):
            return True
        if isinstance(pattern, A.InGraph):
            return has(pattern, A.InWindow)
        if window is not None and isinstance(pattern, A.Triples | A.PathPattern):
            return pattern != A.Triples()
        return any(self.reads_windows(child, window) for child in children(pattern))

    def stored_node(self, pattern: A.Pattern) -> Stored:
        """A stored sub-query as a node."""
        if self._constants_in(pattern):
            raise NotIncremental("a stored part whose constants no window is joined with, for many queries")
        return Stored(self.stored(pattern))

    def _constants_in(self, pattern: A.Pattern) -> tuple[A.Var, ...]:
        """The constants that queries of this shape differ in, of those in a pattern."""
        if self.parameters is None:
            return ()
        mine = {column(v): v for v in visible_vars(pattern)}
        return tuple(mine[name] for name in self.parameters.columns if name in mine)

    def relation(self, pattern: A.Pattern) -> Relation | Picked:
        """A stored sub-query to be joined with windows. Of one with constants, only what they pick."""
        constants = self._constants_in(pattern)
        if not constants or certainly_bound(pattern) != visible_vars(pattern):
            return self.stored(pattern)

        def pick(ids: Ids) -> Ids:
            rows = tuple(zip(*(self.dictionary.terms(values) for values in ids), strict=True))
            return self.asked(A.Join(A.Values(constants, rows), pattern))

        return Picked(tuple(map(column, _variables(pattern))), tuple(map(column, constants)), pick)

    def stored(self, pattern: A.Pattern) -> Relation:
        """A stored sub-query: its columns and rows of ids, to be asked again when stored graphs change."""
        return Relation(
            tuple(map(column, _variables(pattern))),
            self.asked(pattern),
            frozenset(map(column, certainly_bound(pattern))),
            lambda: self.asked(pattern),
            pattern,
            self._stored_dataset(),
        )

    def asked(self, pattern: A.Pattern) -> Ids:
        """The rows of a stored sub-query as they are now."""
        variables, dataset = _variables(pattern), self._stored_dataset()
        if self.before is not None:
            if pattern in self.before:
                return self.before[pattern]
            dataset = replace(dataset, default=(_NO_GRAPH,))
        query = replace(
            self.query,
            form=A.Form.SELECT,
            pattern=A.Project(pattern, variables),
            windows=(),
            dataset=dataset,
        )
        return evaluate_ids(query, self.store, self.dictionary)

    # -------------------------------------------------------------------- joins

    def join(self, pattern: A.Pattern, window: str | None) -> Node:
        leaves: list[WindowLeaf] = []
        stored: list[A.Pattern] = []
        others: list[A.Pattern] = []
        more: list[tuple[Node, frozenset[str]]] = []
        for part, reads in self.conjuncts(pattern, window):
            if isinstance(part, A.Triples) and reads == MERGED:
                merged = [self.merged(t) for t in part.patterns]
                more += [(node, frozenset(node.columns)) for node in merged]
            elif isinstance(part, A.Triples) and reads is not None and self.goes_by_stated_time(reads):
                stated = [self.stated(t, reads) for t in part.patterns]
                more += [(node, frozenset(node.columns)) for node in stated]
            elif isinstance(part, A.Triples) and reads is not None:
                leaves += [self.leaf(t, reads) for t in part.patterns]
            elif isinstance(part, A.Triples):
                stored += [A.Triples((t,)) for t in part.patterns]
            elif not self.reads_windows(part, reads):
                stored.append(part)
            else:
                others.append(part if reads is None else A.InWindow(reads, part))
        stored = _connected(stored)
        relations = [(self.relation(p), p) for p in stored]
        names = [tuple(leaf.columns) for leaf in leaves] + [r.columns for r, _ in relations]
        shared = _shared_columns(names)
        apart = [p for r, p in relations if not leaves or shared & (set(r.columns) - r.bound)]
        joined = [r for r, p in relations if not any(p is other for other in apart)]
        if leaves:
            is_graph = self.query.dialect is not A.Dialect.CQELS
            node = self.windows_joined(leaves, joined, is_graph)
            surely = [frozenset(leaf.columns) for leaf in leaves] + [r.bound for r in joined]
            more.insert(0, (node, frozenset(self._whose).union(*surely)))
        for p in apart:
            stored_node = self.stored_node(p)
            more.append((stored_node, stored_node.relation.bound))
        for part in others:
            other = self.pattern(_unwrapped(part), _window_of(part, window))
            whose = frozenset(self._whose) & set(other.columns)
            more.append((other, whose | {column(v) for v in certainly_bound(part)}))
        node, bound = more.pop(0)
        while more:  # next, always one that shares a variable, if there is one
            mine = set(node.columns)
            i = next((i for i, (other, _) in enumerate(more) if mine & set(other.columns)), 0)
            other, other_bound = more.pop(i)
            node = self.delta_join(node, other, bound, other_bound)
            bound |= other_bound
        return node

    def windows_joined(self, leaves: list[WindowLeaf], stored: list[Relation | Picked], graph: bool) -> Node:
        """Patterns over windows and stored relations joined, together with other queries if that can be."""
        if self.parameters is not None:
            return JoinWindows(leaves, stored, graph, self.parameters)
        return self.groups.reader(leaves, stored, graph, self.name)

    def goes_by_stated_time(self, window: str) -> bool:
        """Whether the window goes by a time that events state themselves."""
        return self.windows[window][1].by_stated_time

    def stated(self, t: A.TriplePattern, window: str) -> Node:
        """A triple pattern over such a window."""
        if self.parameters is not None:
            raise NotIncremental("a window by stated times, shared by many queries")
        node = StatedWindow(self.leaf(t, window))
        if self.query.dialect is A.Dialect.CQELS:
            return node
        return Operated(Distinct(node.columns), (node,), "graph")

    def merged(self, t: A.TriplePattern) -> Node:
        """A triple pattern over windows and stored triples merged into one graph."""
        parts: list[Node] = [
            self.stated(t, name)
            if self.goes_by_stated_time(name)
            else self.windows_joined([self.leaf(t, name)], [], graph=True)
            for name in self.query.dataset.windows
        ]
        parts.append(Projected(self.stored_node(A.Triples((t,))), parts[0].columns))
        columns = parts[0].columns
        return Operated(Distinct(columns), (United(tuple(parts)),), "merged graph")

    def path(self, s: A.TermOrVar, path: A.Path, o: A.TermOrVar, window: str | None) -> Node:
        """A property path over a window."""
        assert window is not None
        paths = Paths(lambda t: self.in_graph(t, window), self.expression, self.stored_node, self._fresh)
        node = paths.node(s, path, o)
        if node is None:
            raise NotIncremental("a property path of any length over a window")
        return node

    def in_graph(self, t: A.TriplePattern, window: str) -> Node:
        """A triple pattern over a window as a graph, whatever the dialect."""
        if window == MERGED:
            return self.merged(t)
        if not self.goes_by_stated_time(window):
            return self.windows_joined([self.leaf(t, window)], [], graph=True)
        node = StatedWindow(self.leaf(t, window))
        return Operated(Distinct(node.columns), (node,), "graph")

    def delta_join(self, left: Node, right: Node, bound: frozenset[str], right_bound: frozenset[str]) -> Node:
        both = self.sides(left, right, bound, right_bound)
        return united(both.joined(part) for part in both.left)

    def sides(self, left: Node, right: Node, bound: Iterable[str], right_bound: Iterable[str]) -> Sides:
        """Both sides of a join, split by which of the shared variables are bound."""
        if QUERY in left.columns and QUERY in right.columns and not (QUERY in bound and QUERY in right_bound):
            raise NotIncremental("a join of parts that many queries share")
        both = sides(left, right, bound, right_bound)
        if both is None:
            raise NotIncremental("a join on several variables that may be unbound")
        return both

    def conjuncts(self, pattern: A.Pattern, window: str | None) -> Iterable[tuple[A.Pattern, str | None]]:
        """The parts of a conjunction, each with the window it reads."""
        match pattern:
            case A.Join(left, right):
                yield from self.conjuncts(left, window)
                yield from self.conjuncts(right, window)
            case A.InWindow(name, inner):
                if name not in self.windows:
                    raise NotIncremental("STREAM ?var")
                yield from self.conjuncts(inner, name)
            case A.Triples(()):
                pass
            case A.InGraph() if self.reads_windows(pattern, None):
                raise NotIncremental("a window inside GRAPH")
            case _:
                yield pattern, window

    def leaf(self, t: A.TriplePattern, window: str) -> WindowLeaf:
        stream, intervals = self.windows[window]
        wanted: list[int | None] = []
        columns: dict[str, int] = {}
        equal: list[tuple[int, int]] = []
        for position, term in enumerate((t.s, t.p, t.o)):
            if isinstance(term, A.Var):
                wanted.append(None)
                if column(term) in columns:
                    equal.append((columns[column(term)], position))
                else:
                    columns[column(term)] = position
            else:
                assert not isinstance(term, A.Param)
                wanted.append(self.dictionary.encode(term))
        among = []
        if self.parameters is not None:
            known = {name: self.parameters.keys[i] for i, name in enumerate(self.parameters.columns[1:])}
            among = [(position, known[name]) for name, position in columns.items() if name in known]
        return WindowLeaf(
            stream,
            intervals,
            (wanted[0], wanted[1], wanted[2]),
            columns,
            tuple(equal),
            window,
            among,
            self.owner,
        )

    # -------------------------------------------------------------------- the rest

    def expression(self, expr: A.Expr, source: Node) -> Compiled:
        if depth(expr) > DEEPEST_EXPRESSION:
            raise NotIncremental(f"an expression nested more than {DEEPEST_EXPRESSION} deep")
        if not supports(expr):
            raise NotIncremental("an expression that is new at every report, or EXISTS inside an expression")
        return self.expressions.compile(expr, source.columns)

    def filter(self, condition: A.Expr, inner: A.Pattern, window: str | None) -> Node:
        source, bound = self.pattern(inner, window), certainly_bound(inner)
        return self.where(condition, source, bound, visible_vars(inner), window)

    def where(
        self,
        condition: A.Expr,
        source: Node,
        bound: frozenset[A.Var],
        outer: frozenset[A.Var],
        window: str | None,
    ) -> Node:
        """The rows for which a condition holds; `outer` are the variables they may bind."""
        parts = list(_conjunction(condition))
        plain = [part for part in parts if not exists_in(part)]
        if plain and isinstance(source, JoinWindows | JoinReader):
            for part in plain:
                source.require(self.expression(part, source))  # before anything is kept or routed
        elif plain:
            source = Filtered(source, self.expression(side_by_side("&&", plain), source))
        for part in parts:
            if not exists_in(part):
                continue
            negated = isinstance(part, A.Call) and part.op == "!" and isinstance(part.args[0], A.Exists)
            exists = part.args[0] if negated else part  # type: ignore[attr-defined]
            if not isinstance(exists, A.Exists):
                raise NotIncremental("EXISTS inside an expression")
            group, inside = exists.pattern, None
            if outer & mentioned(group) - visible_vars(group):
                group, inside = _filter_on_top(group)
            if outer & mentioned(group) - visible_vars(group):
                raise NotIncremental("EXISTS whose group looks at variables from outside")
            source = self.anti_join(
                source, group, bound, window, keep=not negated, word="exists", condition=inside
            )
        return source

    def anti_join(
        self,
        source: Node,
        right: A.Pattern,
        bound: frozenset[A.Var],
        window: str | None,
        *,
        keep: bool,
        word: str,
        condition: A.Expr | None = None,
    ) -> Node:
        """The rows of `source` with a match in `right` (`keep`) or without one; a `condition` is on both."""
        other = self.pattern(right, window)
        right_bound = {column(v) for v in certainly_bound(right)}
        # EXISTS fills in values before it evaluates: only for plain patterns is that compatibility.
        unsure = set(source.columns) & set(other.columns) - right_bound
        if word == "exists" and unsure and has(right, NOT_PLAIN):
            raise NotIncremental("EXISTS with a variable that its group may leave unbound")
        if word == "exists" and has(right, A.Repeat):
            raise NotIncremental("EXISTS with a property path that a value filled in may stay at")
        both = self.sides(source, other, {column(v) for v in bound}, right_bound)
        found: list[Node] = []
        for part in both.left:
            if condition is not None:
                pairs = both.joined(part)
                matching = Projected(Filtered(pairs, self.expression(condition, pairs)), part.columns)
                having = AntiJoin(part.columns, part.columns, part.columns, keep_matched=keep)
                found.append(Operated(having, (part, matching), f"{word} with a condition"))
                continue
            unmatched, matched = both.without_match(part, word, need_shared=word == "minus")
            found += matched if keep else [unmatched]
        return (
            found[0]
            if found[0].columns == source.columns and len(found) == 1
            else Projected(united(found), source.columns)
        )

    def minus(self, left: A.Pattern, right: A.Pattern, window: str | None) -> Node:
        source = self.pattern(left, window)
        if not visible_vars(left) & visible_vars(right):
            return source
        return self.anti_join(source, right, certainly_bound(left), window, keep=False, word="minus")

    def left_join(
        self, left: A.Pattern, right: A.Pattern, condition: A.Expr | None, window: str | None
    ) -> Node:
        source, other = self.pattern(left, window), self.pattern(right, window)
        bound = frozenset(column(v) for v in certainly_bound(left))
        other_bound = frozenset(column(v) for v in certainly_bound(right))
        split = self.sides(source, other, bound, other_bound)
        found: list[Node] = []
        for part in split.left:
            both = split.joined(part)
            if condition is not None:
                surely = certainly_bound(left) | certainly_bound(right)
                both = self.where(condition, both, surely, visible_vars(left) | visible_vars(right), window)
            matched = Projected(both, part.columns)
            alone = AntiJoin(part.columns, part.columns, part.columns)
            found += [both, Operated(alone, (part, matched), "rows without a match")]
        return United(tuple(found))

    def group(self, group: A.Group, window: str | None) -> Node:
        source = self.pattern(group.pattern, window)
        specs = []
        for var, aggregate in group.aggregates:
            argument: str | None = None
            match aggregate.arg:
                case None:
                    pass
                case A.VarRef(A.Var() as v) if column(v) in source.columns:
                    argument = column(v)
                case expr:
                    argument = f".argument{next(self._fresh)}"
                    source = Extended(source, argument, self.expression(expr, source))
            spec = AggregateSpec(aggregate.op, argument, aggregate.distinct, aggregate.separator)
            specs.append((column(var), spec))
        keys = (*(column(k) for k in group.keys), *self._whose)
        looked_at = [*keys, *(s.column for _, s in specs if s.column)]
        if any(s.distinct and s.column is None for _, s in specs):  # at whole solutions
            looked_at += map(column, _variables(group.pattern))
        source = Projected(source, tuple(dict.fromkeys(looked_at)))
        operator = GroupBy(source.columns, keys, tuple(specs), self.dictionary)
        return Operated(operator, (source,), words("group", keys))


DEEPEST_EXPRESSION = 100  # that is evaluated column by column, each operator calling its operands
MERGED = "merged"  # the window of bare patterns, where the default graph is made of several things
_NO_GRAPH = NamedNode("urn:kelda:nothing")  # in which nothing is stored
NOT_PLAIN = (A.LeftJoin, A.Extend, A.Project, A.Group, A.Minus, A.Filter, A.Exists)


def column(var: A.Var) -> str:
    """The column that holds a variable."""
    return var.name


def _variables(pattern: A.Pattern) -> tuple[A.Var, ...]:
    """The variables of a stored sub-query, in the order of its columns."""
    return tuple(sorted(visible_vars(pattern)))


def _window_of(part: A.Pattern, window: str | None) -> str | None:
    return part.window if isinstance(part, A.InWindow) else window


def _unwrapped(part: A.Pattern) -> A.Pattern:
    return part.pattern if isinstance(part, A.InWindow) else part


def _connected(patterns: list[A.Pattern]) -> list[A.Pattern]:
    """Stored parts that share variables, joined: the store is asked once for each group. What shares none
    stays apart: together they would be a product."""
    groups: list[A.Pattern] = []
    for pattern in patterns:
        mine = visible_vars(pattern)
        touching = [g for g in groups if visible_vars(g) & mine]
        groups = [g for g in groups if not any(g is t for t in touching)]
        groups.append(reduce(_joined, [*touching, pattern]))
    return groups


def _joined(left: A.Pattern, right: A.Pattern) -> A.Pattern:
    if isinstance(left, A.Triples) and isinstance(right, A.Triples):
        return A.Triples(left.patterns + right.patterns)
    return A.Join(left, right)


def _shared_columns(leaves: list[tuple[str, ...]]) -> set[str]:
    seen: set[str] = set()
    twice: set[str] = set()
    for columns in leaves:
        twice |= seen & set(columns)
        seen |= set(columns)
    return twice


def _conjunction(expr: A.Expr) -> Iterable[A.Expr]:
    if isinstance(expr, A.Call) and expr.op == "&&":
        for arg in expr.args:
            yield from _conjunction(arg)
    else:
        yield expr


def _filter_on_top(pattern: A.Pattern) -> tuple[A.Pattern, A.Expr | None]:
    """A group without the filter at its top, and the filter."""
    match pattern:
        case A.Filter(condition, inner):
            return inner, condition
        case A.InWindow(window, A.Filter(condition, inner)) if supports(condition):
            return A.InWindow(window, inner), condition
    return pattern, None
