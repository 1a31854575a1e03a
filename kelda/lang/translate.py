"""Syntax tree -> algebra, by the rules of SPARQL 1.1 section 18.2, and the stream clauses.

`Translator` reads one query. Patterns come first, then what SELECT, HAVING and ORDER BY make of
them; a group's filters apply to the whole group wherever they stand in it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from pyoxigraph import NamedNode

from kelda.errors import QueryError
from kelda.lang.algebra import (
    Alternative,
    Const,
    Dataset,
    Dialect,
    Distinct,
    Expr,
    Extend,
    Filter,
    Form,
    Group,
    InGraph,
    Inverse,
    InWindow,
    Join,
    LeftJoin,
    Link,
    Minus,
    NegatedSet,
    OrderBy,
    Output,
    Param,
    Path,
    Pattern,
    Project,
    QuadPattern,
    Query,
    Reduced,
    Repeat,
    Report,
    Sequence,
    Service,
    Slice,
    Term,
    TermOrVar,
    TriplePattern,
    Triples,
    Values,
    Var,
    Window,
    WindowDef,
)
from kelda.lang.expressions import Expressions, Grouping, has_aggregate, side_by_side, ungrouped
from kelda.lang.parser import Node, Token
from kelda.lang.paths import spelled, union
from kelda.lang.scope import visible
from kelda.lang.terms import RDF_FIRST, RDF_NIL, RDF_REST
from kelda.lang.timestamps import spelled_out
from kelda.lang.walk import nodes
from kelda.lang.windows import MOST_ROWS, WindowReader, duration, whole

TO_STREAM = ("RSTREAM", "ISTREAM", "DSTREAM")
NOTHING = Triples()  # the one empty solution: where a group starts
CSPARQL, RSPQL, CQELS = Dialect.CSPARQL, Dialect.RSPQL, Dialect.CQELS


class Translator(Expressions):
    """Reads one syntax tree; `query()` is the result.

    `params`: the names that are parameters when written `$name`; None: none are."""

    def __init__(
        self,
        text: str,
        *,
        base: str | None = None,
        params: Container[str] | None = None,
        dialect: Dialect | None = None,
        allow_service: bool = False,
    ) -> None:
        super().__init__(text, base, params)
        self._allow_service = allow_service
        if dialect is not None:
            self.dialects, self.announced = frozenset([dialect]), True
        self.asks_time = []
        self._windows: list[WindowDef] = []
        self._report: Report | None = None  # what a window says
        self._streams: dict[str, NamedNode | Var | Param] = {}  # of each window, by the window's name
        self._named_windows: dict[str, None] = {}  # RSP-QL: what WINDOW can name
        self._as_graph: dict[NamedNode, str] = {}  # C-SPARQL: streams that GRAPH can name -> window
        self._default_windows: dict[str, None] = {}
        # Windows of `FROM s [..]` are in the default graph unless a GRAPH names them; those it has not yet:
        self._unnamed_yet: dict[str, None] = {}

    # ------------------------------------------------------------ the query

    def query(self, tree: Node, depth: int = 0) -> Query:
        """The query of a syntax tree that is `depth` levels deep."""
        register: Node | None = None
        for item in tree.items[:-1]:
            if item.kind == "register":
                register = item  # its name may use a prefix that is declared after it
            else:
                self.declare(item)
        name, output, stream_out, every = self._register(register)
        body = tree.items[-1]
        parts = _Parts(body.items)
        output = self._to_stream(parts, output)
        default, named = self._dataset(parts)
        template: tuple[TriplePattern, ...] = ()
        describe: tuple[NamedNode | Var, ...] = ()
        match body.kind:
            case "select_query":
                form, pattern = Form.SELECT, self._select(parts)
            case "ask_query":
                form, pattern = Form.ASK, self._modified(self._where(parts), parts)
            case "construct_query":
                form, pattern = Form.CONSTRUCT, self._modified(self._where(parts), parts)
                template = self.template(parts.nodes["template"])
            case "construct_where":
                form, block = Form.CONSTRUCT, parts.nodes["template"]
                for item in block.items:
                    if item.kind == "quads":
                        why = "GRAPH stands in CONSTRUCT { … } WHERE { … }, not in CONSTRUCT WHERE"
                        raise self.error(item.items[0], why)
                template = self.template(block)
                pattern = self._modified(self._triples_block(block.items), parts)
            case _:
                form, pattern = Form.DESCRIBE, self._modified(self._where(parts), parts)
                describe = self._described(parts, pattern)
        if self.asks_time:
            known = {v for n in nodes(pattern) if isinstance(n, TriplePattern) for v in (n.s, n.p, n.o)}
            for token, var in self.asks_time:
                if var not in known:
                    raise self.error(token, f"no triple pattern has ?{var.name}, so it has no time stamp")
            pattern = spelled_out(pattern)
        dialect = self._dialect()
        if output is not None and dialect is Dialect.SPARQL:
            at = next(token for kind, token in parts.tokens.items() if kind in TO_STREAM)
            raise self.error(at, f"{at} makes a stream of answers, and there is no window: leave it out")
        if dialect is Dialect.SPARQL and not (default is None and named is None):
            # SPARQL: FROM NAMED alone leaves the default graph empty, FROM alone no named graphs.
            # A stream query leaves as it is what it does not name.
            default, named = default or (), named or ()
        return Query(
            form,
            pattern,
            dialect,
            tuple(self._windows),
            Dataset(default, named, (*self._default_windows, *self._unnamed_yet)),
            template,
            describe,
            output,
            every,
            name,
            stream_out,
            self.base,
            tuple(self.prefixes.items()),
            self._report,
            depth,
        )

    def _dialect(self) -> Dialect:
        if self.dialects is None:
            return Dialect.SPARQL
        return next(
            dialect for dialect in (CSPARQL, CQELS, RSPQL, Dialect.SPARQL) if dialect in self.dialects
        )

    def _to_stream(self, parts: _Parts, registered: Output | None) -> Output | None:
        """What REGISTER, or SELECT and CONSTRUCT, say is sent: RSTREAM, ISTREAM, DSTREAM."""
        token = next((token for kind, token in parts.tokens.items() if kind in TO_STREAM), None)
        if token is None:
            return registered
        output = Output(token.lower())
        if registered not in (None, output):
            raise self.error(token, f"REGISTER says {registered.name}, and this says {token}: leave one out")
        return output

    def _register(self, node: Node | None) -> tuple[str | None, Output | None, NamedNode | None, int | None]:
        if node is None:
            return None, None, None, None
        _, kind, name, *computed = node.items
        word = kind.upper()
        output: Output | None = None
        if word == "QUERY":
            self.clause(kind, "REGISTER QUERY", CSPARQL)
        elif word == "STREAM":
            self.clause(kind, "REGISTER STREAM", CSPARQL, RSPQL)
        else:
            self.clause(kind, f"REGISTER {word}", RSPQL)
            output = Output(word.lower())
        every: int | None = None
        if computed:
            token = computed[0].items[-1]
            try:
                every = duration(token, plain_ms=False)
            except ValueError as problem:
                raise self.error(token, str(problem)) from None
        iri = None if word == "QUERY" and name.type == "NAME" else self.iri(name)
        title = str(name) if name.type == "NAME" or iri is None else iri.value
        return title, output, None if word == "QUERY" else iri, every

    # ------------------------------------------------------------ dataset and windows

    def _dataset(self, parts: _Parts) -> tuple[tuple[NamedNode, ...] | None, tuple[NamedNode, ...] | None]:
        default: dict[NamedNode, None] = {}
        named: dict[NamedNode, None] = {}
        said_default = said_named = False
        for node in parts.dataset:
            items = node.items
            if node.kind == "from_window":
                self._from_window(items)
            elif node.kind == "from_window_as":  # the name is behind, the rest is the same
                self._from_window([*items[:-3], items[-1], *items[-3:-1]])
            elif node.kind == "from_stream":
                is_named = items[1].type == "NAMED"
                what = "FROM NAMED STREAM" if is_named else "FROM STREAM"
                self.clause(items[0], what, CSPARQL)
                self._from_stream(items, self._default_windows if not is_named else {}, by_name=is_named)
            elif items[-1].type == "WINDOW_SPEC":
                self.clause(items[0], "FROM … [window]", CSPARQL)
                self._from_stream(items, self._unnamed_yet, by_name=True)
            else:
                graph = self._fixed(items[-1], "FROM")
                if node.kind == "from_named":
                    named[graph] = None
                    said_named = True
                else:
                    default[graph] = None
                    said_default = True
        if said_default and self._unnamed_yet:
            # Wukong+S names its stored graphs with FROM alone and reaches them with GRAPH.
            named.update(default)
            said_named = True
        return tuple(default) if said_default else None, tuple(named) if said_named else None

    def _from_stream(self, items: list[Any], group: dict[str, None], *, by_name: bool) -> None:
        token = items[-2]
        stream = self._stream(token)
        if isinstance(stream, Var):
            raise self.error(token, f"{token} is a variable; FROM STREAM needs the stream's IRI")
        name = self._window(items[-1], stream, CSPARQL)
        group[name] = None
        if by_name and isinstance(stream, NamedNode):
            if stream in self._as_graph:
                raise self.error(
                    token, f"{token} has a window already, and GRAPH could not tell the two apart"
                )
            self._as_graph[stream] = name

    def _from_window(self, items: list[Any]) -> None:
        is_named = items[1].type == "NAMED"
        self.clause(items[0], "FROM NAMED WINDOW" if is_named else "FROM WINDOW", RSPQL)
        name = next(token for token in items if token.type == "IRI")
        key = self.iri(name).value
        if key in self._streams:
            raise self.error(name, f"window {name} is declared twice; give the second another name")
        stream = self._stream(items[-2])
        if isinstance(stream, Var):
            raise self.error(items[-2], f"{items[-2]} is a variable; ON needs the stream's IRI")
        self._window(items[-1], stream, RSPQL, key)
        (self._named_windows if is_named else self._default_windows)[key] = None

    def _fixed(self, token: Token, where: str) -> NamedNode:
        if token.type == "VAR":
            raise self.error(token, f"{token} cannot stand here: {where} needs an IRI")
        return self.iri(token)

    def _stream(self, token: Token) -> NamedNode | Var | Param:
        return self.var(token) if token.type == "VAR" else self.iri(token)

    def _window(
        self, token: Token, stream: NamedNode | Var | Param, dialect: Dialect, name: str | None = None
    ) -> str:
        """Declare a window; without a name it is called w0, w1, … in the order of the text."""
        name = f"w{len(self._windows)}" if name is None else name
        self._windows.append(WindowDef(name, stream, self._window_spec(token, dialect)))
        self._streams[name] = stream
        return name

    def _window_spec(self, token: Token, dialect: Dialect) -> Window:
        def place(text: str, offset: int, kind: str = "IRI") -> Token:
            """A token for a part of the window's text."""
            before = token[:offset]
            line = (token.line or 1) + before.count("\n")
            column = offset - before.rfind("\n") if "\n" in before else (token.column or 1) + offset
            return Token(kind, text, line=line, column=column)

        def fail(message: str, offset: int) -> QueryError:
            return self.error(place("", offset), message)

        def param(text: str, offset: int) -> Param:
            var = self.var(place(text, offset, "VAR"))
            if isinstance(var, Param):
                return var
            raise fail(f"{text} needs a value: prepare the query, or pass params={{'{text[1:]}': …}}", offset)

        reader = WindowReader(
            str(token), dialect, fail, lambda text, offset: self.iri(place(text, offset)), param
        )
        window = reader.read()
        if reader.report is not None:
            if self._report not in (None, reader.report):
                raise self.error(token, "windows of one query report alike: another window says otherwise")
            self._report = reader.report
        return window

    # ------------------------------------------------------------ SELECT and the solution modifiers

    def _where(self, parts: _Parts) -> Pattern:
        group = parts.nodes.get("group")
        return NOTHING if group is None else self.group_pattern(group)

    def _select(self, parts: _Parts) -> Pattern:
        return self._modified(self._where(parts), parts, select=True)

    def _modified(self, where: Pattern, parts: _Parts, *, select: bool = False) -> Pattern:
        """`where` with grouping, SELECT expressions, order, projection and slice around it."""
        nodes = parts.nodes
        selected = nodes["selected"].items if select and "selected" in nodes else []
        pattern, keys = self._group_keys(where, nodes.get("group_by"))
        having, order = nodes.get("having"), nodes.get("order_by")
        grouped = (
            keys is not None
            or any(map(has_aggregate, selected))
            or (having is not None and has_aggregate(having))
            or (order is not None and has_aggregate(order))
        )
        values = self._values(nodes["values"]) if "values" in nodes else None
        taken: set[Var] = set()
        if grouped or any(type(item) is Node for item in selected):
            taken = set(keys or ()) if grouped else set(self._visible(pattern))
            taken.update(values.vars if values is not None else ())

        outer, self.grouping = self.grouping, Grouping(grouped, taken if grouped else set())
        variables, extends = self._selected(selected, taken)
        conditions: list[Expr] = []
        if having is not None:
            self.grouping.place = "HAVING"
            conditions = [self.expr(item) for item in having.items[1:]]
        order_keys: tuple[tuple[Expr, bool], ...] = ()
        if order is not None:
            self.grouping.place = "ORDER BY"
            order_keys = tuple([self._order_key(item) for item in order.items])
        aggregates = tuple(self.grouping.aggregates)
        self.grouping = outer

        if grouped:
            if any(a.distinct and a.arg is None for _, a in aggregates):
                # COUNT(DISTINCT *) is of solutions, and those do not have what no user can write.
                shown = tuple(v for v in self._visible(pattern) if not v.name.startswith(".") or v in taken)
                pattern = Project(pattern, shown)
            pattern = Group(pattern, tuple(keys or ()), aggregates)
        if conditions:
            pattern = Filter(side_by_side("&&", conditions), pattern)
        if values is not None:
            pattern = join(pattern, values)
        if select and "selected" not in nodes:
            if grouped:
                raise self.error(
                    parts.tokens["STAR"], "SELECT * and grouping exclude each other; list the variables"
                )
            variables = [v for v in self._visible(pattern) if not v.name.startswith(".")]
        for var, expr in extends:
            pattern = Extend(pattern, var, expr)
        if order_keys:
            pattern = OrderBy(pattern, order_keys)
        if select:
            pattern = Project(pattern, tuple(dict.fromkeys(variables)))
            if "DISTINCT" in parts.tokens:
                pattern = Distinct(pattern)
            elif "REDUCED" in parts.tokens:
                pattern = Reduced(pattern)
        if "limit" in nodes or "offset" in nodes:
            limit = self._rows("LIMIT", nodes["limit"].items[0]) if "limit" in nodes else None
            offset = self._rows("OFFSET", nodes["offset"].items[0]) if "offset" in nodes else 0
            pattern = Slice(pattern, offset, limit)
        return pattern

    def _rows(self, what: str, token: Token) -> int:
        number = whole(token)
        if number is None or number > MOST_ROWS:
            way_out = "; leave it out to get all" if what == "LIMIT" else ""
            raise self.error(token, f"{what} can be at most {MOST_ROWS:,}{way_out}")
        return number

    def _group_keys(self, pattern: Pattern, group_by: Node | None) -> tuple[Pattern, list[Var] | None]:
        """The pattern with the keys' expressions computed, and the keys; None: no GROUP BY."""
        if group_by is None:
            return pattern, None
        keys: dict[Var, None] = {}
        for item in group_by.items[1:]:
            if type(item) is Token:
                keys[self.real_var(item, "GROUP BY")] = None
                continue
            if item.kind != "key":
                var, expr = self.fresh("key"), self.expr(item)
            elif len(item.items) == 1:
                if type(item.items[0]) is Token and item.items[0].type == "VAR":
                    keys[self.real_var(item.items[0], "GROUP BY")] = None
                    continue
                var, expr = self.fresh("key"), self.expr(item.items[0])
            else:
                expr = self.expr(item.items[0])
                var = self.real_var(item.items[1], "AS")
                if var in keys or var in self._visible(pattern):
                    raise self.error(
                        item.items[1], f"{item.items[1]} has a value already; choose another name"
                    )
            pattern = Extend(pattern, var, expr)
            keys[var] = None
        return pattern, list(keys)

    def _selected(self, selected: list[Any], taken: set[Var]) -> tuple[list[Var], list[tuple[Var, Expr]]]:
        grouping = self.grouping
        assert grouping is not None
        variables: list[Var] = []
        extends: list[tuple[Var, Expr]] = []
        for item in selected:
            if type(item) is Token:
                var = self.real_var(item, "SELECT")
                if grouping.grouped and var not in taken and var not in grouping.aliases:
                    raise self.error(item, ungrouped(item))
            else:
                source, token = item.items
                if item.kind == "bare_alias":
                    what = f"{source.items[0]}(…) AS {token} without brackets"
                    self.clause(source.items[0], what, CQELS, RSPQL)
                expr = self.expr(source)
                var = self.real_var(token, "AS")
                if var in taken or var in grouping.aliases or var in variables:
                    raise self.error(token, f"{token} has a value already; choose another name after AS")
                grouping.aliases.add(var)
                extends.append((var, expr))
            variables.append(var)
        return variables, extends

    def _order_key(self, item: Any) -> tuple[Expr, bool]:
        if type(item) is Node and item.kind == "order":
            return self.expr(item.items[1]), item.items[0].type == "DESC"
        return self.expr(item), False

    def _described(self, parts: _Parts, pattern: Pattern) -> tuple[NamedNode | Var, ...]:
        if "described" not in parts.nodes:
            return tuple(v for v in self._visible(pattern) if not v.name.startswith("."))
        return tuple(
            self.iri(token) if token.type == "IRI" else self.real_var(token, "DESCRIBE")
            for token in parts.nodes["described"].items
        )

    def _visible(self, pattern: Pattern) -> tuple[Var, ...]:
        return visible(pattern, self._streams)

    # ------------------------------------------------------------ groups

    def group_pattern(self, node: Node) -> Pattern:
        pattern, condition = self._group(node)
        return pattern if condition is None else Filter(condition, pattern)

    def _group(self, node: Node) -> tuple[Pattern, Expr | None]:
        """A group's pattern and, apart from it, its filters: OPTIONAL treats the two differently."""
        outer, self.grouping = self.grouping, None
        pattern: Pattern = NOTHING
        filters: list[Any] = []
        block: list[Any] = []  # triples that stand together; a FILTER between does not part them
        for item in node.items:
            if item.kind == "triples_block":
                block += item.items
            elif item.kind == "filter":
                filters.append(item.items[1])
            else:
                if block:
                    pattern = join(pattern, self._triples_block(block))
                    block = []
                pattern = _ELEMENTS[item.kind](self, pattern, item)
        if block:
            pattern = join(pattern, self._triples_block(block))
        condition = side_by_side("&&", [self.expr(item) for item in filters]) if filters else None
        self.grouping = outer
        return pattern, condition

    def _sub_select(self, pattern: Pattern, node: Node) -> Pattern:
        return self._select(_Parts(node.items))

    def _group_or_union(self, pattern: Pattern, node: Node) -> Pattern:
        return join(pattern, union([self.group_pattern(item) for item in node.items]))

    def _optional(self, pattern: Pattern, node: Node) -> Pattern:
        inner, condition = self._group(node.items[1])
        return LeftJoin(pattern, inner, condition)

    def _minus(self, pattern: Pattern, node: Node) -> Pattern:
        return Minus(pattern, self.group_pattern(node.items[0]))

    def _bind(self, pattern: Pattern, node: Node) -> Pattern:
        _, source, token = node.items
        expr, var = self.expr(source), self.real_var(token, "BIND")
        if var in self._visible(pattern):
            raise self.error(
                token, f"{token} has a value already in this group; choose another name after AS"
            )
        return Extend(pattern, var, expr)

    def _values_element(self, pattern: Pattern, node: Node) -> Pattern:
        return join(pattern, self._values(node))

    def _values(self, node: Node) -> Values:
        head, *rows = node.items[1:]
        if type(head) is Token and head.type == "VAR":
            names = [head]
            cells = [[row] for row in rows]
        else:
            names = head.items if type(head) is Node else []
            cells = [row.items if type(row) is Node else [] for row in rows]
        variables = tuple([self.real_var(name, "VALUES") for name in names])
        if len(set(variables)) < len(variables):
            raise self.error(names[-1], "VALUES names a variable twice")
        for row, cell in zip(rows, cells, strict=True):
            if len(cell) != len(names):
                at = row if type(row) is Token else token_of(row)
                raise self.error(at, f"this row has {len(cell)} values for {len(names)} variables")
        return Values(variables, tuple([tuple([self._value(v) for v in row]) for row in cells]))

    def _value(self, node: Node) -> Term | Param | None:
        item = node.items[0]
        if type(item) is Token and item.type == "UNDEF":
            return None
        value = self.term(item)
        if isinstance(value, Var):
            raise self.error(item, f"{item} is a variable; VALUES holds constants")
        return value

    def _graph(self, pattern: Pattern, node: Node) -> Pattern:
        _, token, group = node.items
        name = self._stream(token)
        window = self._as_graph.get(name) if isinstance(name, NamedNode) else None
        if window is not None:
            self._unnamed_yet.pop(window, None)
            return join(pattern, InWindow(window, self.group_pattern(group)))
        return join(pattern, InGraph(name, self.group_pattern(group)))

    def _service(self, pattern: Pattern, node: Node) -> Pattern:
        token, *_, name, group = node.items
        if not self._allow_service:
            raise self.error(
                token,
                "SERVICE asks another server; load its data as a stored graph, and ask that with GRAPH",
            )
        silent = any(type(item) is Token and item.type == "SILENT" for item in node.items)
        endpoint = self.iri(name) if name.type == "IRI" else self.real_var(name, "SERVICE")
        return join(pattern, Service(endpoint, self.group_pattern(group), silent))

    # ------------------------------------------------------------ streams in patterns

    def _stream_element(self, pattern: Pattern, node: Node) -> Pattern:
        keyword, *middle, group = node.items
        self.clause(keyword, "STREAM … { }", CQELS)
        specs = [token for token in middle if token.type == "WINDOW_SPEC"]
        source = next(token for token in middle if token.type != "WINDOW_SPEC")
        if len(specs) != 1:
            what = "two windows" if specs else "no window"
            raise self.error(
                source, f"this stream has {what}; write one, for example STREAM {source} [RANGE 10s] {{ … }}"
            )
        window = self._window(specs[0], self._stream(source), CQELS)
        return join(pattern, InWindow(window, self.group_pattern(group)))

    def _window_element(self, pattern: Pattern, node: Node) -> Pattern:
        keyword, token, group = node.items
        self.clause(keyword, "WINDOW … { }", RSPQL)
        if token.type == "VAR":
            return join(pattern, self._any_window(token, self.group_pattern(group)))
        name = self.iri(token).value
        if name not in self._named_windows:
            if name in self._default_windows:
                raise self.error(
                    token, f"window {token} is in the default graph; declare it with FROM NAMED WINDOW"
                )
            raise self.error(
                token,
                f"window {token} is not declared; add FROM NAMED WINDOW {token} ON <stream> [RANGE PT10S]",
            )
        return join(pattern, InWindow(name, self.group_pattern(group)))

    def _any_window(self, token: Token, inner: Pattern) -> Pattern:
        """WINDOW ?w: each of the named windows in turn, and ?w says which."""
        var = self.real_var(token, "WINDOW")
        if not self._named_windows:
            raise self.error(
                token, f"there is no window for {token}; add FROM NAMED WINDOW … ON … [RANGE PT10S]"
            )
        ways: list[Pattern] = []
        for name in self._named_windows:
            window = InWindow(name, inner)
            iri = NamedNode(name)
            if var in self._visible(inner):  # then ?w is compared, not assigned
                one: Pattern = Join(window, Values((var,), ((iri,),)))
            else:
                one = Extend(window, var, Const(iri))
            ways.append(one)
        return union(ways)

    # ------------------------------------------------------------ triples

    def _triples_block(self, items: list[Any]) -> Pattern:
        """Triples that stand together: runs of plain ones, and what property paths between them stand for."""
        self.scope += 1
        found: list[TriplePattern | Pattern] = []
        for item in items:
            self._triples(item, found)
        pattern: Pattern = NOTHING
        run: list[TriplePattern] = []
        for part in found:
            if isinstance(part, TriplePattern):
                run.append(part)
                continue
            if run:
                pattern, run = join(pattern, Triples(tuple(run))), []
            pattern = join(pattern, part)
        return join(pattern, Triples(tuple(run))) if run else pattern

    def template(self, node: Node) -> tuple[TriplePattern, ...]:
        """The triples, and in GRAPH the quads, to fill in."""
        self.in_template = True
        found: list[TriplePattern] = []
        for item in node.items:
            if item.kind != "quads":
                self._triples(item, found)
                continue
            _, token, *inside = item.items
            graph = self._stream(token)
            triples: list[TriplePattern] = []
            for triple in inside:
                self._triples(triple, triples)
            found += [QuadPattern(t.s, t.p, t.o, graph) for t in triples]
        self.in_template = False
        return tuple(found)

    def _no_path(self, node: Any) -> QueryError:
        return self.error(token_of(node), "a property path cannot stand in a template; use a plain predicate")

    def _triples(self, node: Node, out: list[Any]) -> None:
        subject = self._object(node.items[0], out)
        if len(node.items) > 1:
            self._properties(subject, node.items[1], out)

    def _properties(self, subject: TermOrVar, node: Node, out: list[Any]) -> None:
        for prop in node.items:
            verb, *objects = prop.items
            path: Path | None = None
            predicate: TermOrVar | None = None
            if type(verb) is Node:
                if self.in_template:
                    raise self._no_path(verb)
                path = self._path(verb)
            else:
                predicate = self.var(verb) if verb.type == "VAR" else self.iri(verb)
            for item in objects:
                if path is not None:
                    end = self._object(item, out)
                    out += spelled(subject, path, end, lambda: self.fresh("path"))
                else:
                    assert predicate is not None
                    out.append(TriplePattern(subject, predicate, self._object(item, out)))

    def _object(self, item: Any, out: list[Any]) -> TermOrVar:
        """A term; the triples that a collection or a blank node with properties stands for go to `out`."""
        if type(item) is not Node or item.kind not in ("collection", "bnode"):
            return self.term(item)
        head = self.anonymous()
        if item.kind == "bnode":
            self._properties(head, item.items[0], out)
            return head
        cell = head
        for i, member in enumerate(item.items):
            out.append(TriplePattern(cell, RDF_FIRST, self._object(member, out)))
            rest = self.anonymous() if i + 1 < len(item.items) else RDF_NIL
            out.append(TriplePattern(cell, RDF_REST, rest))
            if isinstance(rest, Var):
                cell = rest
        return head

    # ------------------------------------------------------------ property paths

    def _path(self, item: Any) -> Path:
        if type(item) is Token:
            return Link(self.iri(item))
        items = item.items
        match item.kind:
            case "path":  # steps between '/' and '|', of which '/' binds more tightly
                ways: list[list[Path]] = [[self._path(items[0])]]
                for sign, step in zip(items[1::2], items[2::2], strict=True):
                    if sign == "/":
                        ways[-1].append(self._path(step))
                    else:
                        ways.append([self._path(step)])
                parts = tuple([way[0] if len(way) == 1 else Sequence(tuple(way)) for way in ways])
                return parts[0] if len(parts) == 1 else Alternative(parts)
            case "repeat":
                return _repeat(self._path(items[0]), items[1])
            case "inverse":
                return Inverse(self._path(items[-1]))
            case "inverse_repeat":
                return Inverse(_repeat(self._path(items[-2]), items[-1]))
        forward: list[NamedNode] = []
        inverse: list[NamedNode] = []
        for link in items:
            if type(link) is Token:
                if link == "/":
                    raise self.error(link, "only '|' can stand in a negated property set")
                continue
            (inverse if len(link.items) > 1 else forward).append(self.iri(link.items[-1]))
        return NegatedSet(tuple(forward), tuple(inverse))


class _Parts:
    """A query's parts by kind: nodes, tokens, and the dataset clauses in their order."""

    __slots__ = ("dataset", "nodes", "tokens")

    def __init__(self, items: list[Any]) -> None:
        self.nodes: dict[str, Node] = {}
        self.tokens: dict[str, Token] = {}
        self.dataset: list[Node] = []
        for item in items:
            if type(item) is Token:
                self.tokens[item.type] = item
            elif item.kind.startswith("from_"):
                self.dataset.append(item)
            else:
                self.nodes[item.kind] = item


def join(left: Pattern, right: Pattern) -> Pattern:
    """Both; `NOTHING` adds nothing."""
    if left is NOTHING:
        return right
    return left if right is NOTHING else Join(left, right)


def _repeat(path: Path, sign: Token) -> Path:
    return Repeat(path, 1 if sign == "+" else 0, sign != "?")


def token_of(node: Any) -> Token:
    """Some token at the start of the node, for an error's place."""
    while type(node) is Node:
        node = node.items[0]
    assert isinstance(node, Token)
    return node


_ELEMENTS = {
    "sub_select": Translator._sub_select,
    "group_or_union": Translator._group_or_union,
    "optional": Translator._optional,
    "minus": Translator._minus,
    "bind": Translator._bind,
    "values": Translator._values_element,
    "graph": Translator._graph,
    "service": Translator._service,
    "stream": Translator._stream_element,
    "window": Translator._window_element,
}
