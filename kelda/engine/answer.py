"""Answers: what a continuous query says at an instant."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, Triple

from kelda.rdf import wire
from kelda.rdf.times import FIRST_MS, LAST_MS, ms_to_iso

Value = NamedNode | BlankNode | Literal | Triple
XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"


@wire.plain
@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """One solution of query `query` at instant `time` (ms): new ("+") or gone ("-").

    Exactly one of the last three is set: `bindings` (SELECT; unbound variables are absent),
    `triples` (CONSTRUCT, DESCRIBE: all triples of this instant; quads for those that the template puts into a
    GRAPH), `boolean` (ASK).
    """

    query: str
    time: int
    sign: str
    bindings: Mapping[str, Value] | None = None
    triples: tuple[Triple | Quad, ...] | None = None
    boolean: bool | None = None

    def __repr__(self) -> str:
        """
        >>> Answer("q", 5, "+", bindings={"x": NamedNode("http://a")})
        <Answer of 'q' at 1970-01-01T00:00:00.005Z: + ?x = <http://a>>
        """
        if self.bindings is not None:
            said = ", ".join(f"?{name} = {term}" for name, term in self.bindings.items())
        elif self.triples is not None:
            said = " ".join(f"{t} ." for t in self.triples)
        else:
            said = str(self.boolean).lower()
        at = ms_to_iso(self.time) if FIRST_MS <= self.time <= LAST_MS else str(self.time)
        return f"<Answer of {self.query!r} at {at}: {self.sign} {said}>"

    def to_json(self) -> str:
        """The NDJSON line of this answer, with terms as in SPARQL 1.1 Query Results JSON.

        >>> from pyoxigraph import NamedNode
        >>> Answer("q", 5, "+", bindings={"x": NamedNode("http://a")}).to_json()
        '{"query": "q", "time": 5, "sign": "+", "bindings": {"x": {"type": "uri", "value": "http://a"}}}'
        """
        out: dict[str, object] = {"query": self.query, "time": self.time, "sign": self.sign}
        if self.bindings is not None:
            out["bindings"] = {name: term_to_json(term) for name, term in self.bindings.items()}
        elif self.triples is not None:
            out["triples"] = "".join(f"{t} .\n" for t in self.triples)
        else:
            out["boolean"] = self.boolean
        return json.dumps(out, ensure_ascii=False)


def term_to_json(term: Value) -> dict[str, object]:
    """A term as SPARQL 1.1 Query Results JSON writes it."""
    if isinstance(term, NamedNode):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.value}
    if isinstance(term, Triple):
        parts = {"subject": term.subject, "predicate": term.predicate, "object": term.object}
        return {"type": "triple", "value": {k: term_to_json(v) for k, v in parts.items()}}
    out: dict[str, object] = {"type": "literal", "value": term.value}
    if term.language:
        out["xml:lang"] = term.language
    elif term.datatype.value != XSD_STRING:
        out["datatype"] = term.datatype.value
    return out
