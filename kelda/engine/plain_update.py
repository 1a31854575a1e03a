"""A SPARQL update by Oxigraph: slow, and right for what is deterministic.

Literals of the text are written as they are stored (`kelda.rdf.exact`), so that each is the term that stands
there. In expressions Oxigraph goes by its own values: numbers that it spells otherwise do not compare there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pyoxigraph import Literal, NamedNode, Quad, Store

from kelda.errors import QueryError
from kelda.rdf.exact import quad_from_store, quad_to_store, to_store
from kelda.rdf.values import XSD

_TOKENS = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<iri> <[^<>"{}|^`\\\s]*> )
    | (?P<text> \"{3}(?:[^\\]|\\.)*?\"{3} | '{3}(?:[^\\]|\\.)*?'{3}
              | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
      (?: \^\^ (?P<type> <[^<>]*> | [\w.-]*:[\w.-]* ) | (?P<language> @[\w-]+ ) )?
    | (?P<name> [?$]\w+ | _:[\w.-]+ | [\w.-]*:[\w.-]* )
    | (?P<number> [+-]? (?: \d+\.?\d*[eE][+-]?\d+ | \.?\d+[eE][+-]?\d+ | \d*\.\d+ | \d+ ) )
    | (?P<word> \w+ )
    | (?P<paren> [()] )
    """,
    re.VERBOSE | re.DOTALL,
)
_PREFIX = re.compile(r"PREFIX\s+([\w.-]*):\s*<([^<>]*)>", re.IGNORECASE)
_PLAIN = re.compile(r"""['"]+([^'"\\]*)['"]+""")


def updated(facts: Iterable[Quad], text: str) -> set[Quad]:
    """The facts that there are after an update."""
    store = Store()
    store.extend(map(quad_to_store, facts))
    try:
        store.update(_as_stored(text))
    except SyntaxError as error:
        raise QueryError(f"the update cannot be read: {error}") from None
    return {quad_from_store(quad) for quad in store}


def _as_stored(text: str) -> str:
    """The text with its literals as they are stored; numbers in parentheses are values, not terms."""
    prefixes = dict(_PREFIX.findall(text))
    out, last, depth = [], 0, 0
    for found in _TOKENS.finditer(text):
        if found["paren"]:
            depth += 1 if found["paren"] == "(" else -1
        term = None if depth else _literal(found, prefixes)
        if term is None or (stored := to_store(term)) is term:
            continue
        out += [text[last : found.start()], str(stored)]
        last = found.end()
    return "".join([*out, text[last:]])


def _literal(found: re.Match[str], prefixes: dict[str, str]) -> Literal | None:
    """The literal that a token is, if it has a type of its own."""
    if number := found["number"]:
        kind = "double" if "e" in number.lower() else "decimal" if "." in number else "integer"
        return Literal(number, datatype=NamedNode(XSD + kind))
    if not found["type"] or not (plain := _PLAIN.fullmatch(found["text"])):
        return None
    prefix, _, local = found["type"].partition(":")
    iri = found["type"][1:-1] if found["type"].startswith("<") else prefixes.get(prefix, "") + local
    return Literal(plain[1], datatype=NamedNode(iri)) if ":" in iri else None
