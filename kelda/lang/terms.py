"""Tokens -> terms: IRIs with prefixes and base, literals, variables, parameters, blank nodes.

`Terms` is the lowest of three classes that read a syntax tree (`Terms`, `Expressions`,
`Translator`); it also keeps the query text, so that whatever goes wrong can be pointed at.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

from pyoxigraph import Literal, NamedNode

from kelda.errors import QueryError
from kelda.lang.algebra import Dialect, Param, TermOrVar, Var
from kelda.lang.iri import is_absolute, resolve
from kelda.lang.parser import Node, Token, did_you_mean, error_at
from kelda.lang.windows import TITLE

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD_INTEGER, XSD_DECIMAL, XSD_DOUBLE, XSD_BOOLEAN = (
    NamedNode(XSD + name) for name in ("integer", "decimal", "double", "boolean")
)
RDF_TYPE, RDF_FIRST, RDF_REST, RDF_NIL = (NamedNode(RDF + name) for name in ("type", "first", "rest", "nil"))
BARE_NAME = "urn:kelda:name:"  # what a bare name becomes without a base
DEFAULT_BASE = "kelda:/"  # what relative IRIs stand against if nobody says a base

WELL_KNOWN = {
    "rdf": RDF,
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
}

_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
# Characters beyond ASCII that no name may have, and those that may not come first in it.
_NOT_IN_NAMES = re.compile(
    "[\x80-\xb6\xb8-\xbf\xd7\xf7\u037e\u2000-\u200b\u200e-\u203e\u2041-\u206f\u2190-\u2bff\u2ff0-\u3000"
    "\ud800-\uf8ff\ufdd0-\ufdef\ufffe\uffff\U000f0000-\U0010ffff]"
)
_NOT_FIRST = re.compile("(?:^|[?$:])[\xb7\u0300-\u036f\u203f\u2040]")


class Terms:
    """Prefixes, base, and the terms that tokens stand for.

    `params` are the names that are parameters where `$name` is written (None: none, `$` is as `?`)."""

    def __init__(self, text: str, base: str | None, params: Container[str] | None) -> None:
        if base is not None and not is_absolute(base):
            raise QueryError(
                f"the base {base!r} is not an absolute IRI; write for example http://example.org/"
            )
        self.text = text
        self.base = base
        self.params = params
        self.prefixes: dict[str, str] = {}
        self.parameters: dict[str, None] = {}  # those that occur, in order
        self.dialects: frozenset[Dialect] | None = None  # that fit the clauses seen; None: no such clause yet
        self.decisive: tuple[str, Token] | None = None  # the first clause that belongs to a dialect
        self.announced = False  # the caller said the dialect
        self._iris: dict[str, NamedNode] = {}
        self._vars: dict[str, Var] = {}
        self._labels: dict[tuple[bool, str], tuple[Var, int]] = {}
        self._fresh: dict[str, int] = {}
        self.scope = 0  # the number of the basic graph pattern that is being read
        self.in_template = False

    def error(self, token: Token, message: str) -> QueryError:
        return error_at(token, message, self.text)

    # ------------------------------------------------------------ dialects

    def clause(self, token: Token, what: str, *having: Dialect) -> None:
        """`what` at `token` belongs to the dialects `having`: check it against all that came before."""
        fits = frozenset(having)
        if self.dialects is None:
            self.dialects, self.decisive = fits, (what, token)
        elif self.dialects & fits:
            self.dialects &= fits
        else:
            owners = " and ".join(TITLE[d] for d in Dialect if d in fits)
            mine = " or ".join(TITLE[d] for d in Dialect if d in self.dialects)
            if self.announced:
                why = f"the query was announced as {mine}; drop the announcement or the clause"
            else:
                assert self.decisive is not None
                why = f"'{self.decisive[0]}' in line {self.decisive[1].line} makes this query {mine}"
            raise self.error(token, f"'{what}' is {owners}, but {why}")

    # ------------------------------------------------------------ IRIs

    def declare(self, node: Node) -> None:
        """BASE or PREFIX."""
        iri = self._resolve(node.items[-1], node.items[-1][1:-1])
        if node.kind == "base":
            self.base = iri
        else:
            self._check_name(node.items[0])
            self.prefixes[node.items[0][:-1]] = iri
        self._iris.clear()

    def iri(self, token: Token) -> NamedNode:
        """The IRI of an IRI, NAME or A token."""
        known = self._iris.get(token)
        if known is not None:
            return known
        kind = token.type
        if kind == "A":
            return RDF_TYPE
        if kind == "NAME":
            return self._bare_name(token)
        iri = self._resolve(token, token[1:-1]) if token[0] == "<" else self._expand(token)
        node = self._iris[token] = self._named_node(token, iri)
        return node

    def _named_node(self, token: Token, iri: str) -> NamedNode:
        try:
            return NamedNode(iri)
        except ValueError as problem:
            raise self.error(token, f"<{iri}> is not an IRI: {problem}") from None

    def _resolve(self, token: Token, iri: str) -> str:
        if is_absolute(iri):
            return iri
        return resolve(DEFAULT_BASE if self.base is None else self.base, iri)

    def _expand(self, token: Token) -> str:
        prefix, _, local = token.partition(":")
        namespace = self.prefixes.get(prefix)
        if namespace is None:
            at = WELL_KNOWN.get(prefix, "…")
            raise self.error(token, f"prefix '{prefix}:' is not declared; add PREFIX {prefix}: <{at}>")
        if not token.isascii():
            self._check_name(token)
        if "\\" in local:
            local = _ESCAPE.sub(r"\1", local)
        return namespace + local

    def _bare_name(self, token: Token) -> NamedNode:
        """A name without prefix, as Wukong+S writes C-SPARQL."""
        if self.dialects is None or Dialect.CSPARQL not in self.dialects:
            hint = did_you_mean(token) or f"; write <{token}> or a prefixed name such as ex:{token}"
            raise self.error(token, f"'{token}' is not a term{hint}")
        if self.base is not None and not self.base.startswith("file:"):  # where the text lies says nothing
            return self._named_node(token, resolve(self.base, token))
        return NamedNode(BARE_NAME + token)

    def _check_name(self, token: Token) -> None:
        bad = _NOT_IN_NAMES.search(token) or _NOT_FIRST.search(token)
        if bad is not None:
            raise self.error(token, f"'{bad[0][-1]}' cannot stand here in a name")

    # ------------------------------------------------------------ variables and parameters

    def var(self, token: Token) -> Var | Param:
        """The variable, or the parameter where `$name` is one."""
        name = token[1:]
        if token[0] == "$" and self.params is not None and name in self.params:
            self.parameters[name] = None
            return Param(name)
        known = self._vars.get(name)
        if known is None:
            if not token.isascii():
                self._check_name(token)
            known = self._vars[name] = Var(name)
        return known

    def real_var(self, token: Token, where: str) -> Var:
        """A variable where no parameter can stand."""
        var = self.var(token)
        if isinstance(var, Param):
            raise self.error(
                token, f"{where} needs a variable, and {token} is a parameter; write ?{token[1:]}"
            )
        return var

    def fresh(self, stem: str) -> Var:
        """A variable that no user can write."""
        number = self._fresh.get(stem, 0)
        self._fresh[stem] = number + 1
        return Var(f".{stem}{number}")

    def blank(self, token: Token) -> Var:
        """The hidden variable of a blank node label; a label belongs to one basic graph pattern."""
        key = (self.in_template, str(token))
        known = self._labels.get(key)
        if known is None:
            if not token.isascii():
                self._check_name(token)
            known = self._labels[key] = (self.anonymous(), self.scope)
        elif not self.in_template and known[1] != self.scope:
            raise self.error(
                token, f"{token} is used in another group of triples already; use a variable to join the two"
            )
        return known[0]

    def forget_labels(self) -> None:
        """Blank node labels from here on are others."""
        self._labels.clear()

    def anonymous(self) -> Var:
        return self.fresh("new" if self.in_template else "b")

    # ------------------------------------------------------------ terms

    def term(self, item: Any) -> TermOrVar:
        """The term of a token, or of the node of a string with a tag or a datatype."""
        if type(item) is Node:
            return self.literal(item)
        kind = item.type
        if kind == "VAR":
            return self.var(item)
        if kind == "IRI" or kind == "NAME":
            return self.iri(item)
        if kind == "BNODE_LABEL":
            return self.blank(item)
        if kind == "ANON":
            return self.anonymous()
        if kind == "NIL":
            return RDF_NIL
        return self.literal(item)

    def literal(self, item: Any) -> Literal:
        if type(item) is Node:
            value = self.string(item.items[0])
            if item.kind == "typed":
                return Literal(value, datatype=self.iri(item.items[1]))
            try:
                return Literal(value, language=item.items[1][1:])
            except ValueError as problem:
                raise self.error(item.items[1], f"{item.items[1]} is not a language tag: {problem}") from None
        kind = item.type
        if kind == "STRING":
            return Literal(self.string(item))
        if kind == "BOOLEAN":
            return Literal(item.lower(), datatype=XSD_BOOLEAN)
        return number(str(item))

    def string(self, token: Token) -> str:
        """The value of a quoted string."""
        quotes = 3 if token[:3] in ('"""', "'''") and len(token) >= 6 else 1
        value = token[quotes:-quotes]
        if "\\" not in value:
            return value

        def char(match: re.Match[str]) -> str:
            if match[1] not in _ESCAPES:
                raise self.error(token, f"\\{match[1]} is no escape in a string; a backslash itself is \\\\")
            return _ESCAPES[match[1]]

        return _ESCAPE.sub(char, value)


def number(text: str) -> Literal:
    """The literal of a number as SPARQL writes it."""
    if "e" in text or "E" in text:
        return Literal(text, datatype=XSD_DOUBLE)
    return Literal(text, datatype=XSD_DECIMAL if "." in text else XSD_INTEGER)
