"""Text of a query or an update -> syntax tree, or a `QueryError` that says where and what was expected.

The tree is plain: a `Node` has a kind (the grammar rule's name) and items (nodes and tokens, in the
order of the text). Tokens know their line and column, so whoever reads the tree can point at things.
"""

from __future__ import annotations

import difflib
import re
import sys
from enum import Enum
from functools import cache, partial
from importlib import resources
from typing import Any

from lark import Lark, Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

from kelda.errors import QueryError

__all__ = ["Language", "Node", "Token", "decode", "error_at", "tree"]


class Node:
    """One grammar rule's match."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: str, items: list[Any]) -> None:
        self.kind, self.items = kind, items

    def __repr__(self) -> str:
        return f"{self.kind}{self.items}"


class _Inline:
    """The match of a rule whose name starts with '_': lark puts its children in its place."""

    __slots__ = ("children",)

    def __init__(self, children: list[Any]) -> None:
        self.children = children


class _Nodes:
    """What lark asks for the function of each rule: make a `Node` of that kind."""

    def __getattr__(self, name: str) -> Any:
        if name.upper() == name:  # terminals stay tokens
            raise AttributeError(name)
        return _Inline if name.startswith("_") else partial(Node, sys.intern(str(name)))


class Language(Enum):
    """What a text may be: its value is the rule of the grammar that it starts with."""

    QUERY = "start"
    UPDATE = "update"


@cache
def _lark(language: Language) -> Lark:
    """The parser, built at the first text: 0.2 s, less than reading a cache safely is worth."""
    grammar = resources.files("kelda.lang").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, start=language.value, parser="lalr", maybe_placeholders=False, transformer=_Nodes())


def tree(text: str, language: Language = Language.QUERY) -> Node:
    """The syntax tree of `text`, in which codepoint escapes have been decoded."""
    try:
        node = _lark(language).parse(text)
    except UnexpectedInput as problem:
        raise _explain(problem, text, language) from None
    assert isinstance(node, Node)
    return node


# ---------------------------------------------------------------------------- codepoint escapes

# A pair of backslashes is one escaped backslash, whose second half starts nothing.
_CODEPOINT = re.compile(r"\\\\|\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")


def decode(text: str) -> str:
    r"""`text` with \uXXXX and \UXXXXXXXX replaced; SPARQL does so before anything else."""
    if "\\u" not in text and "\\U" not in text:
        return text

    def char(match: re.Match[str]) -> str:
        digits = match[1] or match[2]
        if digits is None:
            return match[0]
        code = int(digits, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            line = text.count("\n", 0, match.start()) + 1
            column = match.start() - text.rfind("\n", 0, match.start())
            raise QueryError(f"{match[0]} is no character", text=text, line=line, column=column)
        return chr(code)

    return _CODEPOINT.sub(char, text)


# ---------------------------------------------------------------------------- errors

_PUNCTUATION = {
    "LBRACE": "'{'",
    "RBRACE": "'}'",
    "LPAR": "'('",
    "RPAR": "')'",
    "LSQB": "'['",
    "RSQB": "']'",
    "DOT": "'.'",
    "COMMA": "','",
    "SEMICOLON": "';'",
    "EQUAL": "'='",
    "STAR": "'*'",
}
# Sets of terminals that together are one thing to a reader; the first that fits is taken out first.
_THINGS: list[tuple[frozenset[str], frozenset[str], str]] = [
    (frozenset(need.split()), frozenset(also.split()), label)
    for need, also, label in [
        (
            "FILTER OPTIONAL",
            "MINUS GRAPH SERVICE BIND VALUES STREAM WINDOW LBRACE",
            "a pattern (OPTIONAL, FILTER, …)",
        ),
        (
            "UNARY VAR STRING",
            "IRI NUMBER SIGNED BOOLEAN FUNCTION AGGREGATE EXISTS NOT LPAR",
            "an expression",
        ),
        ("VAR STRING ANON", "IRI NAME NUMBER SIGNED BOOLEAN BNODE_LABEL NIL LPAR LSQB", "a term"),
        ("A", "VAR IRI NAME LPAR CIRCUMFLEX CARET BANG", "a predicate"),
        ("INSERT DELETE LOAD", "WITH CLEAR DROP CREATE ADD MOVE COPY", "INSERT, DELETE, LOAD, …"),
        ("ORDER LIMIT", "OFFSET GROUP HAVING VALUES", "ORDER BY, LIMIT, …"),
        ("IRI STRING NUMBER UNDEF", "SIGNED BOOLEAN VAR", "a value"),
        ("STRING NUMBER", "SIGNED BOOLEAN", "a literal"),
        ("BINARY", "SIGNED IN NOT", "an operator"),
        ("PATH_OP", "PATH_MOD", "a path operator"),
        ("FUNCTION", "AGGREGATE EXISTS NOT", "a function"),
        ("LANGTAG", "TYPED", "a language tag or datatype"),
        ("VAR", "", "a variable"),
        ("IRI", "NAME", "an IRI"),
        ("NAME", "", "a name"),
        ("IRIREF", "", "an IRI in <>"),
        ("PREFIX_NAME", "", "a prefix such as ex:"),
        ("INTEGER", "", "a whole number"),
        ("STRING", "", "a string"),
        ("AGGREGATE", "", "an aggregate"),
        ("NIL", "", "'()'"),
        ("WINDOW_SPEC", "", "a window such as [RANGE 10s]"),
        ("DURATION", "", "a duration such as 10s"),
        ("$END", "", "the end of the {}"),
    ]
]
_SHOWN = 8
_UPDATES = frozenset(["INSERT", "DELETE", "WITH", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY"])
_QUERIES = frozenset(["SELECT", "CONSTRUCT", "ASK", "DESCRIBE", "REGISTER"])
_WORD = re.compile(r"[?$]?[A-Za-z_][\w-]*")
_ODD_IRI = re.compile(r"<[^<>\n]*>?")


def error_at(token: Token, message: str, text: str) -> QueryError:
    """A `QueryError` that points at `token`."""
    return QueryError(message, text=text, line=token.line, column=token.column)


def readable(terminals: set[str], language: Language = Language.QUERY) -> tuple[str, ...]:
    """What a reader would call these terminals, punctuation first, a handful at most."""
    left = {name.lstrip("_") for name in terminals}
    things: list[str] = []
    for need, also, label in _THINGS:
        if need <= left:
            left -= need | also
            things.append(label.format(language.name.lower()))
    marks = sorted(_PUNCTUATION[name] for name in left if name in _PUNCTUATION)
    words = sorted(left & _keywords(language))
    shown = [*marks, *things, *words]
    return tuple(shown) if len(shown) <= _SHOWN else (*shown[: _SHOWN - 1], "…")


@cache
def _keywords(language: Language) -> frozenset[str]:
    names = (t for t in _lark(language).terminals if t.pattern.to_regexp().endswith(r"\b)"))
    return frozenset(t.name.lstrip("_") for t in names if t.name not in ("FUNCTION", "AGGREGATE", "BOOLEAN"))


@cache
def _functions() -> frozenset[str]:
    terminals = _lark(Language.QUERY).terminals
    patterns = (t.pattern.value for t in terminals if t.name in ("FUNCTION", "AGGREGATE"))
    return frozenset(word for pattern in patterns for word in re.findall(r"[A-Z][A-Z_0-9]{2,}", pattern))


def did_you_mean(word: str, terminals: set[str] | None = None, language: Language = Language.QUERY) -> str:
    """'; did you mean SELECT?' for a word close to a keyword (of `terminals`, or of all), or ''."""
    keywords = _keywords(language)
    wanted = keywords if terminals is None else {name.lstrip("_") for name in terminals}
    candidates = wanted & keywords | (set(_functions()) if "FUNCTION" in wanted else set())
    close = difflib.get_close_matches(word.upper(), sorted(candidates), 1, 0.7)
    return f"; did you mean {close[0]}?" if close and close[0] != word.upper() else ""


def _explain(problem: UnexpectedInput, text: str, language: Language) -> QueryError:
    """The error in the reader's words."""
    history, accepts = _replay(text, language)
    name = _guilty_name(history, language)
    if name is not None:
        return error_at(name, f"unexpected '{name}'" + did_you_mean(name, None, language), text)
    if isinstance(problem, UnexpectedToken) and problem.token.type == "$END":
        # The end has no place of its own: point behind the last token.
        line, column = (history[-1].end_line, history[-1].end_column) if history else (1, 1)
        what = f"the {language.name.lower()} " + ("ends too early" if history else "is empty")
        return QueryError(what, text=text, line=line, column=column, expected=readable(accepts, language))
    at = problem.pos_in_stream or 0
    line, column = problem.line, problem.column
    what, expected = _describe(text, at, accepts, language), readable(accepts, language)
    if what.endswith("?") or not what.startswith("unexpected"):
        expected = ()  # the message is the way out already
    return QueryError(what, text=text, line=line, column=column, expected=expected)


def _replay(text: str, language: Language) -> tuple[list[Token], set[str]]:
    """The tokens before the mistake, and the terminals that could have stood there."""
    history: list[Token] = []
    parser = _lark(language).parse_interactive(text)
    try:
        for token in parser.iter_parse():
            history.append(token)
        return history, parser.accepts()
    except UnexpectedInput as again:
        if history and isinstance(again, UnexpectedToken) and history[-1] is again.token:
            history.pop()
        return history, parser.accepts()


def _guilty_name(history: list[Token], language: Language) -> Token | None:
    """A bare word that was taken for a name of C-SPARQL's and is in truth a mistyped keyword."""
    kinds = [token.type for token in history]
    names = [i for i, kind in enumerate(kinds) if kind == "NAME"]
    if not names:
        return None
    csparql = "REGISTER" in kinds or any(
        kinds[i - 1 : i + 2] == ["FROM", "NAME", "WINDOW_SPEC"] for i in names if i > 0
    )
    if not csparql:
        return history[names[0]]
    last = names[-1]
    return history[last] if len(kinds) - last <= 3 and did_you_mean(history[last], None, language) else None


def _describe(text: str, at: int, accepts: set[str], language: Language) -> str:
    char = text[at]
    if char in "\"'":
        return "this string does not end" if "\n" not in text[at:] else "this string does not end on its line"
    if char == "[" and "WINDOW_SPEC" in accepts:
        return "this window does not end: ']' is missing"
    if char == "<" and accepts & {"IRI", "IRIREF"}:
        match = _ODD_IRI.match(text, at)
        assert match is not None
        if not match[0].endswith(">"):
            return "this IRI does not end: '>' is missing"
        return f'{match[0]} is not an IRI: spaces and any of "{{}}|^`\\ must be percent-encoded'
    if char == "<" and "BINARY" in accepts:
        return "this reads as an IRI; put a space after '<' to compare"
    word = _WORD.match(text, at)
    if word is None:
        return f"unexpected '{char}'"
    keyword = word[0].upper()
    if language is Language.QUERY and "SELECT" in accepts and keyword in _UPDATES:
        return f"{keyword} is an update, not a query: give it to update()"
    if language is Language.UPDATE and "INSERT" in accepts and keyword in _QUERIES:
        return f"{keyword} is a query, not an update: give it to query()"
    return f"unexpected '{word[0]}'" + did_you_mean(word[0], accepts, language)
