"""Expressions: operator precedence, built-in functions, aggregates.

The grammar hands over `a + b * c < d && e` as one flat list; here it gets its shape. Where an
aggregate may stand, and which variables may stand outside one, is decided by `Grouping`.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

from kelda.lang.algebra import (
    Aggregate,
    Call,
    Const,
    Dialect,
    Exists,
    Expr,
    FunctionCall,
    Param,
    Pattern,
    Var,
    VarRef,
)
from kelda.lang.nesting import SIDE_BY_SIDE
from kelda.lang.parser import Node, Token
from kelda.lang.scope import is_repeatable
from kelda.lang.terms import Terms, number

PRECEDENCE = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(["=", "!=", "<", ">", "<=", ">="], 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}
COMPARISON = 3

MANY = 1_000_000
ARITY: dict[str, tuple[int, int]] = {
    name: (low, high)
    for low, high, names in [
        (0, 0, "RAND NOW UUID STRUUID"),
        (0, 1, "BNODE"),
        (0, MANY, "COALESCE CONCAT"),
        (1, 1, "STR LANG DATATYPE BOUND IRI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI"),
        (1, 1, "YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512"),
        (1, 1, "ISIRI ISBLANK ISLITERAL ISNUMERIC TIMESTAMP"),
        (2, 2, "LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM"),
        (2, 3, "REGEX SUBSTR"),
        (3, 3, "IF"),
        (3, 4, "REPLACE"),
    ]
    for name in names.split()
}
SAME = {"URI": "IRI", "ISURI": "ISIRI", "AVERAGE": "AVG"}


@dataclass
class Grouping:
    """What SELECT, HAVING and ORDER BY of a query may mention, and the aggregates they ask for."""

    grouped: bool
    keys: set[Var]
    place: str = "SELECT"  # where the expression at hand stands
    aliases: set[Var] = field(default_factory=set)  # given by SELECT, so far
    aggregates: list[tuple[Var, Aggregate]] = field(default_factory=list)
    inside: bool = False  # an aggregate's argument


class Expressions(Terms):
    """Reads expressions. `grouping` is None wherever aggregates cannot stand."""

    grouping: Grouping | None = None
    asks_time: list[tuple[Token, Var]]  # where timestamp(?v) stands

    @abstractmethod
    def group_pattern(self, node: Node) -> Pattern:
        """The pattern of a group in braces, for EXISTS."""

    # ------------------------------------------------------------ the parts

    def expr(self, item: Any) -> Expr:
        """The expression of a token or a node."""
        if type(item) is Node:
            reader = _READERS.get(item.kind)
            return Const(self.literal(item)) if reader is None else reader(self, item)
        kind = item.type
        if kind == "VAR":
            var = self.var(item)
            return self._grouped(item, var) if self.grouping is not None else VarRef(var)
        if kind == "IRI":
            return Const(self.iri(item))
        return Const(self.literal(item))

    def _chain(self, node: Node) -> Expr:
        """A flat list of operands and operators, by precedence (shunting yard)."""
        items = node.items
        operands = [self.expr(items[0])]
        waiting: list[str] = []

        def settle(level: int, goes_on: str = "") -> None:
            """Apply what binds at least as tightly, but not a run of && or || that goes on."""
            while waiting and PRECEDENCE[waiting[-1]] >= level and waiting[-1] != goes_on:
                op, count = waiting.pop(), 2
                while op in SIDE_BY_SIDE and waiting and waiting[-1] == op:
                    waiting.pop()
                    count += 1
                args = operands[-count:]
                del operands[-count:]
                operands.append(side_by_side(op, args) if op in SIDE_BY_SIDE else Call(op, tuple(args)))

        compared = False  # a comparison stands since the last && or ||; SPARQL does not chain them
        i, end = 1, len(items)
        while i < end:
            item = items[i]
            if type(item) is Node:  # IN (…)
                level, at = COMPARISON, _first_token(item)
            elif item.type == "SIGNED":  # `?x -1` is a difference, though -1 is one token
                level, at = PRECEDENCE[item[0]], item
            else:
                level, at = PRECEDENCE[item], item
            if level == COMPARISON and compared:
                raise self.error(
                    at, "comparisons do not chain: join the two with &&, or put the first in brackets"
                )
            compared = level == COMPARISON or (compared and level > COMPARISON)
            settle(level, str(item) if type(item) is Token and item in SIDE_BY_SIDE else "")
            if type(item) is Node:
                negated = item.items[0].type == "NOT"
                args = self._arguments(item.items[2 if negated else 1 :])[0]
                operands[-1] = Call("NOT IN" if negated else "IN", (operands[-1], *args))
                i += 1
            elif item.type == "SIGNED":
                waiting.append(item[0])
                operands.append(Const(number(item[1:])))
                i += 1
            else:
                waiting.append(str(item))
                operands.append(self.expr(items[i + 1]))
                i += 2
        settle(0)
        return operands[0]

    def _unary(self, node: Node) -> Expr:
        sign, operand = node.items
        return Call("!" if sign == "!" else "U" + sign, (self.expr(operand),))

    def _exists(self, node: Node) -> Expr:
        found = Exists(self.group_pattern(node.items[-1]))
        return Call("!", (found,)) if node.items[0].type == "NOT" else found

    # ------------------------------------------------------------ functions

    def _arguments(self, items: list[Any]) -> tuple[tuple[Expr, ...], Token | None]:
        """Arguments, and the DISTINCT before them if there is one."""
        if items and type(items[0]) is Token:
            if items[0].type == "NIL":
                return (), None
            if items[0].type == "DISTINCT":
                return tuple([self.expr(item) for item in items[1:]]), items[0]
        return tuple([self.expr(item) for item in items]), None

    def _call(self, node: Node) -> Expr:
        token = node.items[0]
        name = token.upper()
        name = SAME.get(name, name)
        args, distinct = self._arguments(node.items[1:])
        if distinct is not None:
            raise self.error(
                distinct, f"DISTINCT belongs to aggregates; {name} has nothing to be distinct over"
            )
        low, high = ARITY[name]
        if not low <= len(args) <= high:
            wants = f"{low}" if low == high else f"{low} or {high}" if high < MANY else f"at least {low}"
            plural = "" if wants == "1" else "s"
            raise self.error(token, f"{name} takes {wants} argument{plural}, not {len(args)}")
        if name == "TIMESTAMP":
            self.clause(token, "timestamp(…)", Dialect.CSPARQL)
            if not (isinstance(args[0], VarRef) and isinstance(args[0].var, Var)):
                raise self.error(token, "timestamp takes a variable; for a triple: f:timestamp(?s, ?p, ?o)")
            self.asks_time.append((token, args[0].var))
        if name == "BOUND" and not (isinstance(args[0], VarRef) and isinstance(args[0].var, Var)):
            raise self.error(token, "BOUND takes a variable, for example BOUND(?x)")
        return Call(name, args)

    def _function(self, node: Node) -> Expr:
        args, distinct = self._arguments(node.items[1:])
        return FunctionCall(self.iri(node.items[0]), args, distinct is not None)

    # ------------------------------------------------------------ aggregates

    def _aggregate(self, node: Node) -> Expr:
        token = node.items[0]
        name, grouping = token.upper(), self.grouping
        if name == "AVERAGE":
            self.clause(token, "AVERAGE", Dialect.RSPQL)
            name = "AVG"
        if grouping is None:
            raise self.error(
                token, f"{name} cannot stand here: aggregates belong to SELECT, HAVING and ORDER BY"
            )
        if grouping.inside:
            raise self.error(
                token, f"{name} stands inside another aggregate; compute the inner one in a sub-select"
            )
        distinct, arg, separator = False, None, None
        star: Token | None = None
        for item in node.items[1:]:
            if type(item) is Token and item.type == "DISTINCT":
                distinct = True
            elif type(item) is Token and item.type == "STAR":
                star = item
            elif type(item) is Token and item.type == "SEPARATOR":
                if name != "GROUP_CONCAT":
                    raise self.error(item, f"SEPARATOR belongs to GROUP_CONCAT, not to {name}")
                separator = self.string(node.items[-1])
                break
            else:
                grouping.inside = True
                arg = self.expr(item)
                grouping.inside = False
        if star is not None and name != "COUNT":
            raise self.error(star, f"only COUNT can take '*'; {name} needs an expression")
        return VarRef(self._shared(Aggregate(name, arg, distinct, separator)))

    def _shared(self, aggregate: Aggregate) -> Var:
        """The variable of `aggregate`: one that is asked for twice is computed once."""
        assert self.grouping is not None
        for var, known in self.grouping.aggregates:
            if known == aggregate and is_repeatable(aggregate):
                return var
        var = self.fresh("agg")
        self.grouping.aggregates.append((var, aggregate))
        return var

    def _grouped(self, token: Token, var: Var | Param) -> Expr:
        """A variable in SELECT, HAVING or ORDER BY, where grouping may have taken it away."""
        grouping = self.grouping
        assert grouping is not None
        if not grouping.grouped or grouping.inside or isinstance(var, Param) or var in grouping.keys:
            return VarRef(var)
        if var in grouping.aliases:
            if grouping.place == "HAVING":
                raise self.error(token, f"{token} gets its value after HAVING; repeat its expression here")
            return VarRef(var)
        if grouping.place == "SELECT":
            raise self.error(token, ungrouped(token))
        return VarRef(self._shared(Aggregate("SAMPLE", VarRef(var))))  # as SPARQL 1.1 section 18.2.4.1 says


def side_by_side(op: str, args: list[Expr]) -> Expr:
    """All of && or of ||, whose order of application does not matter, in one call."""
    flat: list[Expr] = []
    for arg in args:
        flat += arg.args if isinstance(arg, Call) and arg.op == op else [arg]
    return flat[0] if len(flat) == 1 else Call(op, tuple(flat))


def ungrouped(token: Token) -> str:
    return f"{token} is neither grouped nor aggregated; add it to GROUP BY or write SAMPLE({token})"


def has_aggregate(item: Any) -> bool:
    """True if the expression asks for an aggregate of this query (a group inside it has its own)."""
    if type(item) is not Node or item.kind == "group":
        return False
    return item.kind == "aggregate" or any(map(has_aggregate, item.items))


def _first_token(node: Node) -> Token:
    item: Any = node
    while type(item) is Node:
        item = item.items[0]
    assert isinstance(item, Token)
    return item


_READERS = {
    "expr": Expressions._chain,
    "unary": Expressions._unary,
    "exists": Expressions._exists,
    "call": Expressions._call,
    "function": Expressions._function,
    "aggregate": Expressions._aggregate,
}
