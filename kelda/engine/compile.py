"""Algebra -> nodes: how a query is run from the changes alone, or why it cannot be yet.

`Incremental` compiles what has an incremental form and raises `NotIncremental` with the reason for
what has none; such a query is run by the reference evaluator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from pyoxigraph import NamedNode

from kelda.engine.by_oxigraph import solve
from kelda.engine.clock import NEVER
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
    United,
    WindowLeaf,
)
from kelda.engine.operators.aggregates.spec import AggregateSpec
from kelda.engine.operators.antijoin import AntiJoin
from kelda.engine.operators.distinct import Distinct
from kelda.engine.operators.group_by import GroupBy
from kelda.engine.ownership import Owner
from kelda.engine.partly_bound import Sides, sides, united, words
from kelda.engine.sharing import Parameters
from kelda.engine.stated_time import StatedWindow
from kelda.engine.stored import GRAPH_NAME, Asked, StoredLeaf, StoredPattern, Watch, bring, facts_of
from kelda.engine.top import Top
from kelda.engine.window_join import Leaf
from kelda.errors import KeldaError
from kelda.lang import algebra as A
from kelda.lang.expressions import side_by_side
from kelda.lang.scope import NEW_EACH_TIME, certainly_bound, visible_vars
from kelda.lang.timestamps import TIMESTAMP
from kelda.lang.walk import children, depth, exists_in, has, mentioned, nodes
from kelda.plan.shape import QUERY
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ids import DEFAULT_GRAPH
from kelda.store.store import Store
from kelda.store.tables_kernels import OBJECT, SUBJECT


@dataclass(frozen=True, slots=True)
class StoredIn:
    """GRAPH: where patterns read a stored graph that has a name."""

    graph: NamedNode | A.Var


Where = str | StoredIn | None
"""Where triple patterns read: a window, a stored graph, or the stored default graph."""

Positions = tuple[tuple[int | None, int | None, int | None], dict[str, int], list[tuple[int, int]]]


class NotIncremental(KeldaError):
    """The query, or this part of it, has no incremental form yet; the text is the reason."""


class Incremental:
    """Compiles the pattern of one query."""

    def __init__(
        self,
        query: A.Query,
        store: Store,
        dictionary: Dictionary,
        windows: dict[str, tuple[str, Intervals]],  # name -> (stream, intervals)
        parameters: Parameters | None = None,  # of the queries of this shape, if they share a network
        owner: Owner | None = None,  # if the query is spread over shards
        groups: JoinGroups | None = None,  # of other queries, to be shared
        name: str = "",
        since: int = NEVER,  # the moment up to which stored graphs are as they are from the beginning
        *,
        looks_back: bool = False,  # they have changed since, and what they were meanwhile was told
    ) -> None:
        self._looks_back = looks_back
        self.since = since
        self.groups = JoinGroups() if groups is None else groups
        self.name = name
        self.owner = owner
        self.parameters = parameters
        self._whose: tuple[str, ...] = () if parameters is None else (QUERY,)
        self.query, self.store, self.dictionary, self.windows = query, store, dictionary, windows
        self.expressions = Expressions(dictionary, base=query.base)
        self._fresh = count()
        # Answers of `reads_windows`, with their patterns: while those are here, no other has their id.
        self._reading: dict[tuple[int, Where], tuple[A.Pattern, bool]] = {}
        self.merges: bool | None = None  # whether bare patterns read a window and stored graphs, merged

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
            nothing = self._never_anything() if self._looks_back else self.nothing_beside(self.since)
            self.merges = not (alone and nothing)
        return MERGED if self.merges else default[0]

    def nothing_beside(self, moment: int) -> bool:
        """Whether nothing is stored in the graph that windows are merged with, at a moment."""
        view = self.store.view(moment)
        return not any(view.tables(graph) for graph in self._default_graphs())

    def _never_anything(self) -> bool:
        """Whether nothing ever was there."""
        tables = self.store.tables
        graphs = self._default_graphs()
        return not any(tables.rows(table) for table in tables.all() if tables.name(table)[0] in graphs)

    def _default_graphs(self) -> tuple[int, ...]:
        default = self.query.dataset.default
        return (DEFAULT_GRAPH,) if default is None else tuple(map(self.dictionary.encode, default))

    def _stored_dataset(self) -> A.Dataset:
        return replace(self.query.dataset, windows=())

    # -------------------------------------------------------------------- patterns

    def pattern(self, pattern: A.Pattern, window: Where) -> Node:
        """The node of a pattern; `window` is where its triple patterns read."""
        if self.reads_windows(pattern, window):
            return self._node(pattern, window)
        return self.stored_node(pattern, window)

    def _node(self, pattern: A.Pattern, window: Where) -> Node:
        match pattern:
            case A.InGraph() if not _only_joins(pattern.pattern) and not has(pattern, A.InWindow):
                raise NotIncremental("a group inside GRAPH")
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

    def reads_windows(self, pattern: A.Pattern, window: Where) -> bool:
        """Whether the pattern reads a window (rather than stored graphs alone)."""
        key = (id(pattern), window)
        if key not in self._reading:
            self._reading[key] = (pattern, self._reads_windows(pattern, window))
        return self._reading[key][1]

    def _reads_windows(self, pattern: A.Pattern, window: Where) -> bool:
        if isinstance(pattern, A.InWindow):
            return True
        if isinstance(pattern, A.InGraph):
            return has(pattern, A.InWindow)
        if isinstance(window, str) and isinstance(pattern, A.Triples | A.PathPattern):
            return pattern != A.Triples()
        return any(self.reads_windows(child, window) for child in children(pattern))

    def stored_node(self, pattern: A.Pattern, where: Where) -> Node:
        """A stored sub-query as a node: from the changes alone if it can be."""
        if self._constants_in(pattern):
            raise NotIncremental("a stored part whose constants no window is joined with, for many queries")
        whose, self._whose = self._whose, ()  # what is stored is everybody's
        try:
            return self._node(pattern, where)
        except NotIncremental as reason:
            return self._asked(pattern, where, str(reason))
        finally:
            self._whose = whose

    def _asked(self, pattern: A.Pattern, where: Where, why: str) -> Node:
        """A stored sub-query that is asked again when something has changed."""
        if isinstance(where, StoredIn):
            pattern = A.InGraph(where.graph, pattern)
        variables = _variables(pattern)
        query = replace(
            self.query,
            form=A.Form.SELECT,
            pattern=A.Project(pattern, variables),
            windows=(),
            dataset=self._stored_dataset(),
        )
        predicates = predicates_of(pattern)
        ids = None if predicates is None else {self.dictionary.encode(p) for p in predicates}
        watch = Watch(self.store, lambda graph, predicate: ids is None or predicate in ids, self.since)

        def ask(moment: int) -> Ids:
            return solve(query, self.store.view(moment), self.store.dictionary, self.dictionary, ids)

        return Asked(tuple(map(column, variables)), watch, ask, why)

    def stored_leaf(self, t: A.TriplePattern, where: Where) -> StoredLeaf | None:
        """A stored triple pattern as a leaf of a join, if it reads one predicate of one graph."""
        graphs = self._graphs(where)
        wanted, columns, equal = self._positions(t, where)
        s, p, o = wanted
        if graphs is None or len(graphs) != 1 or p is None or equal:
            return None
        facts = facts_of(self.store, graphs[0], p, s or 0, o or 0, self.since)
        places = {0: SUBJECT, 2: OBJECT}
        return StoredLeaf(facts, {name: places[position] for name, position in columns.items()})

    def stored_pattern(self, t: A.TriplePattern, where: Where) -> Node:
        """A stored triple pattern as a node."""
        if self._constants_in(A.Triples((t,))):
            raise NotIncremental("a stored part whose constants no window is joined with, for many queries")
        graphs = self._graphs(where)
        wanted, columns, equal = self._positions(t, where)

        def wants(graph: int, predicate: int) -> bool:
            right = graph != DEFAULT_GRAPH if graphs is None else graph in graphs
            return right and wanted[1] in (None, predicate)

        watch = Watch(self.store, wants, self.since)
        node: Node = StoredPattern(watch, wanted, columns, equal, self.dictionary)
        if where is None and graphs is not None and len(graphs) > 1:  # a merge has each triple once
            node = Operated(Distinct(node.columns), (node,), "merged graphs")
        return node

    def _graphs(self, where: Where) -> tuple[int, ...] | None:
        """The stored graphs that patterns read; None: all that have names."""
        named = self.query.dataset.named
        if not isinstance(where, StoredIn):
            return self._default_graphs()
        if isinstance(where.graph, NamedNode):
            return (self.dictionary.encode(where.graph),) if named is None or where.graph in named else ()
        return None if named is None else tuple(map(self.dictionary.encode, named))

    def _positions(self, t: A.TriplePattern, where: Where) -> Positions:
        """Of a triple pattern: the ids of its constants, the position of each variable, and pairs of
        positions that hold the same one."""
        wanted: list[int | None] = []
        columns: dict[str, int] = {}
        equal: list[tuple[int, int]] = []
        graph = (where.graph,) if isinstance(where, StoredIn) and isinstance(where.graph, A.Var) else ()
        for position, term in enumerate((t.s, t.p, t.o, *graph)):
            if not isinstance(term, A.Var):
                assert not isinstance(term, A.Param)
                wanted.append(self.dictionary.encode(term))
                continue
            if position < GRAPH_NAME:
                wanted.append(None)
            if column(term) in columns:
                equal.append((columns[column(term)], position))
            else:
                columns[column(term)] = position
        return (wanted[0], wanted[1], wanted[2]), columns, equal

    def _constants_in(self, pattern: A.Pattern) -> tuple[A.Var, ...]:
        """The constants that queries of this shape differ in, of those in a pattern."""
        if self.parameters is None:
            return ()
        mine = {column(v): v for v in visible_vars(pattern)}
        return tuple(mine[name] for name in self.parameters.columns if name in mine)

    # -------------------------------------------------------------------- joins

    def join(self, pattern: A.Pattern, window: Where) -> Node:
        leaves: list[WindowLeaf] = []
        stored: list[tuple[A.TriplePattern, Where]] = []
        others: list[tuple[A.Pattern, Where]] = []
        more: list[tuple[Node, frozenset[str]]] = []
        for part, reads in self.conjuncts(pattern, window):
            if not isinstance(part, A.Triples):
                others.append((part, reads))
            elif reads == MERGED:
                merged = [self.merged(t) for t in part.patterns]
                more += [(node, frozenset(node.columns)) for node in merged]
            elif not isinstance(reads, str):
                stored += [(t, reads) for t in part.patterns]
            elif self.goes_by_stated_time(reads):
                stated = [self.stated(t, reads) for t in part.patterns]
                more += [(node, frozenset(node.columns)) for node in stated]
            else:
                leaves += [self.leaf(t, reads) for t in part.patterns]
        facts: list[StoredLeaf] = []
        for t, reads in stored:
            leaf = self.stored_leaf(t, reads) if leaves else None
            if leaf is not None:
                facts.append(leaf)
            else:
                node = self.stored_pattern(t, reads)
                more.append((node, frozenset(node.columns)))
        if leaves:
            is_graph = self.query.dialect is not A.Dialect.CQELS
            node = self.windows_joined(leaves, [leaf.leaf for leaf in facts], is_graph)
            more.insert(0, (node, frozenset(node.columns)))
        for part, reads in others:
            other = self.pattern(part, reads)
            whose = frozenset(self._whose) & set(other.columns)
            more.append((other, whose | {column(v) for v in self._surely(part, reads)}))
        if not more:
            return self._asked(A.Triples(()), None, "nothing to match")
        # What shares no variable with anything else is joined by itself, before every row of it goes with
        # every row of the others.
        node, bound = self._joined(more)
        while more:
            other, other_bound = self._joined(more)
            node = self.delta_join(node, other, bound, other_bound)
            bound |= other_bound
        return node

    def _joined(self, parts: list[tuple[Node, frozenset[str]]]) -> tuple[Node, frozenset[str]]:
        """The join of the first part with all that share a variable with it, or with one that does; they are
        taken out of the list."""
        node, bound = parts.pop(0)
        while True:
            mine = set(node.columns)
            i = next((i for i, (other, _) in enumerate(parts) if mine & set(other.columns)), None)
            if i is None:
                return node, bound
            other, other_bound = parts.pop(i)
            node = self.delta_join(node, other, bound, other_bound)
            bound |= other_bound

    def _surely(self, part: A.Pattern, reads: Where) -> frozenset[A.Var]:
        """The variables that a part binds in every solution."""
        if isinstance(reads, StoredIn):
            part = A.InGraph(reads.graph, part)
        return certainly_bound(A.InWindow(reads, part) if isinstance(reads, str) else part)

    def windows_joined(self, leaves: list[WindowLeaf], stored: list[Leaf], graph: bool) -> Node:
        """Patterns over windows and facts joined, together with other queries if that can be."""
        bringing = partial(bring, self.store, self.dictionary)
        if self.parameters is not None:
            return JoinWindows(leaves, stored, graph, self.parameters, bringing)
        return self.groups.reader(leaves, stored, graph, self.name, bringing)

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
        parts.append(Projected(self.stored_pattern(t, None), parts[0].columns))
        columns = parts[0].columns
        return Operated(Distinct(columns), (United(tuple(parts)),), "merged graph")

    def path(self, s: A.TermOrVar, path: A.Path, o: A.TermOrVar, window: Where) -> Node:
        """A property path over a window, or over stored triples."""
        paths = Paths(lambda t: self.in_graph(t, window), self.expression, self._constant, self._fresh)
        node = paths.node(s, path, o)
        if node is None:
            raise NotIncremental("a property path of any length")
        return node

    def _constant(self, values: A.Values) -> Node:
        return self._asked(values, None, "constants")

    def in_graph(self, t: A.TriplePattern, window: Where) -> Node:
        """A triple pattern over a window as a graph, whatever the dialect, or over stored triples."""
        if not isinstance(window, str):
            return self.stored_pattern(t, window)
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

    def conjuncts(self, pattern: A.Pattern, window: Where) -> Iterable[tuple[A.Pattern, Where]]:
        """The parts of a conjunction, each with where it reads."""
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
            case A.InGraph(NamedNode() | A.Var() as name, inner) if _only_joins(inner):
                yield from self.conjuncts(inner, StoredIn(name))
            case _:
                yield pattern, window

    def leaf(self, t: A.TriplePattern, window: str) -> WindowLeaf:
        stream, intervals = self.windows[window]
        wanted, columns, equal = self._positions(t, window)
        among = []
        if self.parameters is not None:
            known = {name: self.parameters.keys[i] for i, name in enumerate(self.parameters.columns[1:])}
            among = [(position, known[name]) for name, position in columns.items() if name in known]
        return WindowLeaf(
            stream,
            intervals,
            wanted,
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

    def filter(self, condition: A.Expr, inner: A.Pattern, window: Where) -> Node:
        source, bound = self.pattern(inner, window), certainly_bound(inner)
        return self.where(condition, source, bound, visible_vars(inner), window)

    def where(
        self,
        condition: A.Expr,
        source: Node,
        bound: frozenset[A.Var],
        outer: frozenset[A.Var],
        window: Where,
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
        window: Where,
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

    def minus(self, left: A.Pattern, right: A.Pattern, window: Where) -> Node:
        source = self.pattern(left, window)
        if not visible_vars(left) & visible_vars(right):
            return source
        return self.anti_join(source, right, certainly_bound(left), window, keep=False, word="minus")

    def left_join(self, left: A.Pattern, right: A.Pattern, condition: A.Expr | None, window: Where) -> Node:
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

    def group(self, group: A.Group, window: Where) -> Node:
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
NOT_PLAIN = (A.LeftJoin, A.Extend, A.Project, A.Group, A.Minus, A.Filter, A.Exists)


def column(var: A.Var) -> str:
    """The column that holds a variable."""
    return var.name


def _variables(pattern: A.Pattern) -> tuple[A.Var, ...]:
    """The variables of a stored sub-query, in the order of its columns."""
    return tuple(sorted(visible_vars(pattern)))


def _only_joins(pattern: A.Pattern) -> bool:
    """Whether a pattern is made of triple patterns alone, some at least."""
    if isinstance(pattern, A.Join):
        return _only_joins(pattern.left) and _only_joins(pattern.right)
    return isinstance(pattern, A.Triples) and bool(pattern.patterns)


def predicates_of(pattern: A.Pattern) -> set[NamedNode] | None:
    """The predicates that a stored pattern reads; None: it may read any."""
    found: set[NamedNode] = set()
    for node in nodes(pattern):
        match node:
            case A.TriplePattern(_, NamedNode() as predicate, _):
                found.add(predicate)
            case A.Link(NamedNode() as iri):
                found.add(iri)
            case A.InGraph(_, inner) if not _only_joins(inner):
                return None  # whether there is such a graph may matter
            case A.TriplePattern() | A.NegatedSet() | A.Link() | A.Repeat() | A.InGraph(A.Var(), _):
                return None  # a path of no length reads all terms of a graph
    return found


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
