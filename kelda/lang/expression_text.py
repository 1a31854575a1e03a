"""Expressions -> SPARQL text whose value, put to Oxigraph, is what SPARQL 1.1 says.

Oxigraph's operators are fast, and know integers of 64 bits and decimals of 18 places only; they err, too,
where SPARQL does not (`true > false`, the effective boolean value of "abc"@en, NaN < 2). So an expression is
written twice, and the second text is looked at only where the first one is an error:

    COALESCE(?v + 1 > 7, <…:gt>(<…:add>(?v, 1), 7))

    native    Oxigraph's operators; where their value is not an error, it is right
    exact     the same, by the functions of `kelda.rdf.operators`

`&& || ! IF COALESCE` are right if their parts are, and are written once, with parts that are right. In the
native text, an operator whose value may be wrong without being an error is written so that it is not:

    < > <= >=     of two equal terms, which Oxigraph takes for equal values: IRIs have no order, nor has NaN
    = !=          of times, where there are some without a zone (`Needs.ZONES`)
    isNumeric     of numbers that Oxigraph does not know
    xsd:integer, xsd:decimal    of doubles and floats
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from pyoxigraph import Literal, NamedNode

from kelda.lang import algebra as A
from kelda.lang.scope import is_repeatable
from kelda.lang.timestamps import TIMESTAMP
from kelda.lang.walk import exists_in, nodes
from kelda.rdf.exact import DATATYPE_OF, VALUE_OF, Needs, to_store
from kelda.rdf.operators import CASTS, ERROR, name_of
from kelda.rdf.values import NUMERIC, TEMPORAL, XSD, Sort, meaning

COMPARISONS = frozenset(["<", ">", "<=", ">="])
ARITHMETIC = frozenset(["+", "-", "*", "/"])
INFIX = frozenset(["||", "&&", "=", "!=", *COMPARISONS, *ARITHMETIC])

# Built-ins that look at terms, not at their values, and those that hand on one of their arguments.
PASSES_TERMS = frozenset(["IF", "COALESCE"])
TAKES_TERMS = frozenset(
    ["BOUND", "SAMETERM", "STR", "LANG", "ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "DATATYPE", "COALESCE"]
)

# What is always a boolean, a string, a number, or an error.
BOOLEANS = COMPARISONS.union(
    ["||", "&&", "!", "=", "!=", "IN", "NOT IN", "BOUND", "SAMETERM"],
    ["ISIRI", "ISURI", "ISBLANK", "ISLITERAL", "ISNUMERIC"],
    ["REGEX", "CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES"],
)
STRINGS = frozenset(["STR", "LANG", "ENCODE_FOR_URI", "TZ", "STRUUID"]).union(
    ["MD5", "SHA1", "SHA256", "SHA384", "SHA512"]
)
NUMBERS = ARITHMETIC.union(
    ["U+", "U-", "ABS", "ROUND", "CEIL", "FLOOR", "STRLEN", "RAND"],
    ["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"],
)
_EXACT_FORMS = frozenset(["U+", "U-", "ABS", "ROUND", "CEIL", "FLOOR", "SUBSTR", "ISNUMERIC"])
_CASTS = {NamedNode(XSD + name): name for name in CASTS}
_FROM_FLOATS = frozenset(["integer", "decimal"])
_FLOATS = f"(<{XSD}double>, <{XSD}float>)"
_TIMES = frozenset(NamedNode(XSD + name) for name in ("dateTime", "date", "time"))

_Text = Callable[[A.Expr], str]


class ExpressionText:
    """Writes expressions. With `plain`, as they stand: for readers, and to compare with Oxigraph itself."""

    needs: Needs = Needs.NOTHING
    plain: bool = False
    now: Literal | None = None

    @abstractmethod
    def term(self, term: object) -> str:
        """The text of a term or a variable."""

    @abstractmethod
    def nested(self, pattern: A.Pattern) -> str:
        """The text of a pattern, in braces."""

    # ------------------------------------------------------------ what patterns ask for

    def expr(self, expr: A.Expr) -> str:
        """The expression as a term."""
        if self.plain:
            return self.native(expr)
        match expr:
            case A.Call("&&" | "||" as op, args):
                return balanced(op, [self.condition(arg) for arg in args])
            case A.Call("!", (arg,)):
                return f"(! {self.condition(arg)})"
            case A.Call("IF", (condition, *branches)):
                return f"IF({self.condition(condition)}, {', '.join([self.expr(b) for b in branches])})"
            case A.Call("COALESCE", args):
                return f"COALESCE({', '.join([self.expr(arg) for arg in args])})"
        if not _may_err(expr):
            return self.native(expr)
        if _asks_once(expr):
            return self.exact(expr)
        return f"COALESCE({self.native(expr)}, {self.exact(expr)})"

    def condition(self, expr: A.Expr) -> str:
        """The effective boolean value of the expression, if it is not a boolean already."""
        if is_boolean(expr):
            return self.expr(expr)
        if self.plain:
            return self.value(expr, self.native)
        exact = f"{name_of('EBV')}({self.exact(expr)})"
        if _asks_once(expr):
            return exact
        return f"COALESCE(IF({self.value(expr, self.native)}, true, false), {exact})"

    def sort_key(self, expr: A.Expr) -> str:
        """Something that Oxigraph sorts in the order of the expression's values."""
        if self.plain:
            return self.value(expr, self.native)
        if isinstance(expr, A.Call) and expr.op in STRINGS:
            return self.expr(expr)
        return f"{name_of('ORDER')}({self.expr(expr)})"

    # ------------------------------------------------------------ the two texts

    def value(self, expr: A.Expr, text: _Text) -> str:
        """A text of the expression where its value counts, not its spelling."""
        if isinstance(expr, A.Const) and isinstance(expr.term, Literal):
            return self.constant(expr.term)
        is_term = isinstance(expr, A.VarRef) or (isinstance(expr, A.Call) and expr.op in PASSES_TERMS)
        return f"{VALUE_OF}({text(expr)})" if Needs.SPELLING in self.needs and is_term else text(expr)

    def constant(self, literal: Literal) -> str:
        """A literal where its value counts; one without a value must not get one from Oxigraph."""
        return str(to_store(literal) if meaning(literal)[0] is Sort.ILL and not self.plain else literal)

    def common(self, expr: A.Expr, text: _Text) -> str:
        """What both texts have in common, of parts that are written by `text`."""

        def values(args: tuple[A.Expr, ...]) -> str:
            return ", ".join([self.value(arg, text) for arg in args])

        match expr:
            case A.Const(term):
                return self.term(term)
            case A.VarRef(var):
                return self.term(var)
            case A.Exists(pattern):
                return f"EXISTS {self.nested(pattern)}"
            case A.Call("IN" | "NOT IN" as op, (arg,)):  # in none; Oxigraph errs if it is a constant
                found = "false" if op == "IN" else "true"
                return f"IF(ISLITERAL({text(arg)}), {found}, {found})"
            case A.FunctionCall(function, args) if function == TIMESTAMP:  # of terms, not of their values
                return f"{function}({', '.join([text(arg) for arg in args])})"
            case A.FunctionCall(function, args, distinct):
                if function in _TIMES:
                    self.needs |= Needs.ZONES
                return f"{function}({'DISTINCT ' if distinct else ''}{values(args)})"
            case A.Call("NOW", _) if self.now is not None:
                return str(self.now)
            case A.Call("DATATYPE", (arg,)) if Needs.SPELLING in self.needs:
                return f"{DATATYPE_OF}({text(arg)})"
            case A.Call(op, args) if op in TAKES_TERMS:
                return f"{op}({', '.join([text(arg) for arg in args])})"
            case A.Call(op, args):
                if op == "STRDT":
                    self.needs |= Needs.ZONES
                if op == "BNODE" and args and not self.plain:
                    return f"{name_of('BNODE')}({values(args)})"
                if op == "REPLACE" and not self.plain:
                    return self.replace(args, text)
                return f"{op}({values(args)})"
        raise TypeError(f"not an expression: {expr!r}")

    def replace(self, args: tuple[A.Expr, ...], text: _Text) -> str:
        """REPLACE, with the replacement as Oxigraph writes what SPARQL means by it."""
        source, pattern, replacement, *flags = [self.value(arg, text) for arg in args]
        ours = f"{name_of('REPLACEMENT')}({', '.join([pattern, replacement, *flags])})"
        return f"REPLACE({', '.join([source, pattern, ours, *flags])})"

    def native(self, expr: A.Expr) -> str:
        """By Oxigraph's operators: right where it is not an error."""
        match expr:
            case A.Call("!", (arg,)):
                return f"(! {self.value(arg, self.native)})"
            case A.Call("U+" | "U-" as op, (arg,)):
                return f"({op[1]} {self.value(arg, self.native)})"
            case A.Call("IF", (condition, *branches)):
                parts = [self.value(condition, self.native), *(self.native(b) for b in branches)]
                return f"IF({', '.join(parts)})"
            case A.Call("COALESCE", args) if not self.plain:
                return f"COALESCE({', '.join([self.expr(arg) for arg in args])})"
            case A.Call("IN" | "NOT IN" as op, (_, _, *_) as args):
                return self.native_member(op, args)
            case A.Call(op, (left, right)) if op in COMPARISONS and not self.plain:
                return self.native_comparison(op, left, right)
            case A.Call("=" | "!=" as op, (left, right)) if self.zones_matter(left, right):
                same = f"{name_of('=')}({self.native(left)}, {self.native(right)})"
                return same if op == "=" else f"(! {same})"
            case A.Call("&&" | "||" as op, args):
                return balanced(op, [self.value(arg, self.native) for arg in args])
            case A.Call(op, args) if op in INFIX:
                return "(" + f" {op} ".join([self.value(arg, self.native) for arg in args]) + ")"
            case A.Call("ISNUMERIC", (arg,)) if not self.plain:
                ours = f"{name_of('ISNUMERIC')}({self.native(arg)})"
                return f"(ISNUMERIC({self.value(arg, self.native)}) || {ours})" if _is_leaf(arg) else ours
            case A.FunctionCall(function, (arg,)) if _CASTS.get(function) in _FROM_FLOATS and not self.plain:
                return self.native_cast(function, arg)
        return self.common(expr, self.native)

    def native_member(self, op: str, args: tuple[A.Expr, ...]) -> str:
        if self.zones_matter(*args):
            return self.exact_member(op, args, self.native)
        members = ", ".join([self.value(arg, self.native) for arg in args[1:]])
        return f"({self.value(args[0], self.native)} {op} ({members}))"

    def native_comparison(self, op: str, left: A.Expr, right: A.Expr) -> str:
        a, b = self.value(left, self.native), self.value(right, self.native)
        if _settles(left) or _settles(right):
            return f"({a} {op} {b})"
        if op in ("<", ">") and (_is_typed(left) or _is_typed(right)):
            return f"({a} {op} {b})"  # of equal terms it is false, as it should
        ours = f"{name_of(op)}({self.native(left)}, {self.native(right)})"
        if _is_leaf(left) and _is_leaf(right):
            return f"IF(SAMETERM({a}, {b}), {ours}, {a} {op} {b})"
        return ours

    def native_cast(self, function: NamedNode, arg: A.Expr) -> str:
        ours = f"{name_of('CAST-' + _CASTS[function])}({self.native(arg)})"
        if not _is_leaf(arg):
            return ours
        value = self.value(arg, self.native)
        return f"IF(DATATYPE({value}) IN {_FLOATS}, {ours}, {function}({value}))"

    def exact(self, expr: A.Expr) -> str:
        """By functions of ours, which take terms as they are stored."""
        match expr:
            case A.Call("&&" | "||" as op, args):
                return balanced(op, [self.exact_condition(arg) for arg in args])
            case A.Call("!", (arg,)):
                return f"(! {self.exact_condition(arg)})"
            case A.Call("IF", (condition, *branches)):
                parts = [self.exact_condition(condition), *(self.exact(b) for b in branches)]
                return f"IF({', '.join(parts)})"
            case A.Call("=", (left, right)):
                return f"{name_of('=')}({self.exact(left)}, {self.exact(right)})"
            case A.Call("!=", (left, right)):
                return f"(! {name_of('=')}({self.exact(left)}, {self.exact(right)}))"
            case A.Call("IN" | "NOT IN" as op, (_, _, *_) as args):
                return self.exact_member(op, args, self.exact)
            case A.Call(op, (first, *others)) if op in COMPARISONS or op in ARITHMETIC:
                text = self.exact(first)
                for other in others:
                    text = f"{name_of(op)}({text}, {self.exact(other)})"
                return text
            case A.Call(op, args) if op in _EXACT_FORMS:
                return f"{name_of(op)}({', '.join([self.exact(arg) for arg in args])})"
            case A.FunctionCall(function, (arg,)) if function in _CASTS:
                return f"{name_of('CAST-' + _CASTS[function])}({self.exact(arg)})"
        return self.common(expr, self.exact)

    def exact_condition(self, expr: A.Expr) -> str:
        return self.exact(expr) if is_boolean(expr) else f"{name_of('EBV')}({self.exact(expr)})"

    def exact_member(self, op: str, args: tuple[A.Expr, ...], text: _Text) -> str:
        members = [text(a) if isinstance(a, A.Const) else f"COALESCE({text(a)}, {ERROR})" for a in args[1:]]
        found = f"{name_of('IN')}({', '.join([text(args[0]), *members])})"
        return found if op == "IN" else f"(! {found})"

    def zones_matter(self, first: A.Expr, *others: A.Expr) -> bool:
        """Whether one of these may be a time without a zone that is compared with one that has one."""
        if Needs.ZONES not in self.needs or self.plain:
            return False
        return _may_be_time(first) and any(map(_may_be_time, others))


def balanced(op: str, parts: list[str]) -> str:
    """The parts joined two by two, for whoever reads the text makes a tree of it."""
    while len(parts) > 1:
        pairs = [f"({a} {op} {b})" for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, *parts[len(pairs) * 2 :]]
    return parts[0]


def is_boolean(expr: A.Expr) -> bool:
    """Whether the value is a boolean or an error, whatever the data."""
    match expr:
        case A.Exists():
            return True
        case A.Const(Literal() as literal):
            return literal in (Literal(True), Literal(False))  # spelled so, as Oxigraph keeps them
        case A.Call("IF", (_, left, right)):
            return is_boolean(left) and is_boolean(right)
        case A.Call(op, _):
            return op in BOOLEANS
        case A.FunctionCall(function, _):
            return _CASTS.get(function) == "boolean"
    return False


def _is_leaf(expr: A.Expr) -> bool:
    return isinstance(expr, A.VarRef | A.Const)


def _settles(expr: A.Expr) -> bool:
    """Whether two equal terms of this one's value are comparable, and equal."""
    if not isinstance(expr, A.Const) or not isinstance(expr.term, Literal):
        return False
    sort, value = meaning(expr.term)
    return sort < Sort.ILL and not (sort in NUMERIC and value != value)


def _is_typed(expr: A.Expr) -> bool:
    """Whether the value is of a type that is ordered: a number, mostly, and else a time or a duration."""
    return isinstance(expr, A.Call) and (expr.op in NUMBERS or expr.op in STRINGS or expr.op in BOOLEANS)


def _may_be_time(expr: A.Expr) -> bool:
    if isinstance(expr, A.Const):
        return isinstance(expr.term, Literal) and meaning(expr.term)[0] in TEMPORAL
    return not _is_typed(expr) or (isinstance(expr, A.Call) and expr.op in ("+", "-"))


def _asks_once(expr: A.Expr) -> bool:
    """Whether the expression must not, or had better not, be written twice."""
    return bool(exists_in(expr)) or not is_repeatable(expr)


def _may_err(expr: A.Expr) -> bool:
    """Whether Oxigraph may say that it is an error where it is none."""
    return any(_errs(node) for node in nodes(expr))


def _errs(node: object) -> bool:
    match node:
        case A.Call("=" | "!=", args):
            # What an IRI is equal to, Oxigraph knows; and it knows how to find it.
            return not any(isinstance(arg, A.Const) and isinstance(arg.term, NamedNode) for arg in args)
        case A.Call("IN" | "NOT IN", (_, *members)):
            return not all(isinstance(arg, A.Const) and isinstance(arg.term, NamedNode) for arg in members)
        case A.Call("&&" | "||" | "!", args):
            return not all(map(is_boolean, args))
        case A.Call("IF", (condition, *_)):
            return not is_boolean(condition)
        case A.Call(op, _):
            return op in COMPARISONS or op in ARITHMETIC or (op in _EXACT_FORMS and op != "ISNUMERIC")
        case A.FunctionCall(function, _):
            return function in _CASTS
    return False
