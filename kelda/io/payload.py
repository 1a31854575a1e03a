"""What an application may push, as events.

One event are: a text (Turtle or TriG), a triple, a quad, a tuple of terms or Python values (`(s, p, o)` or
`(s, p, o, g)`), several of these, an rdflib Graph or Dataset. Each an event of its own are: `Event`s,
dictionaries (by a mapping or as JSON-LD), the rows of Arrow tables and of pandas and Polars DataFrames (by a
mapping), the records of a text in the format of its stream.

In tuples, text is read as a reader of N-Triples expects: `<http://…>` is an IRI and `_:b` a blank node
wherever they stand. Subjects, predicates and graphs can only be such, so an IRI needs no brackets there, and
`a` is rdf:type; as an object all other text is a string:

    ("http://ex/ann", "http://ex/in", "<http://ex/lab>")     an IRI
    ("http://ex/ann", "http://ex/homepage", "http://ex/")    a string
    ("http://ex/ann", "http://ex/age", 37)                   an integer
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple
from pyoxigraph import parse as parse_rdf

from kelda.errors import InputError, QueryError, UsageError
from kelda.lang.params import term_of
from kelda.rdf.event import Event, Reject
from kelda.rdf.framings.mapping import TableMapping
from kelda.rdf.times import Time, to_ms

OneEvent: TypeAlias = str | bytes | Triple | Quad | Iterable[Any]
Payload: TypeAlias = OneEvent | Event
"""See above; frames and graphs of other libraries are iterable, too."""

TAKEN = """\
  Turtle or TriG text, or text in the format of the stream
  a Triple or Quad, a tuple (s, p, o) or (s, p, o, g) of terms or Python values, a list of these
  an rdflib Graph or Dataset
  an Event, a list of them
  a dictionary, a list of them, with a mapping or a JSON-LD context
  an Arrow table, a pandas or a Polars DataFrame, with a mapping"""

_TEXT, _STATEMENT = (str, bytes), (Triple, Quad)
_RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_NODE = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|^`\\]*)>|_:([A-Za-z0-9_](?:[\w.-]*[\w-])?)")


def events_of(
    data: Payload,
    time: Time | None = None,
    *,
    format: str | None = None,
    mapping: Any = None,
    context: Any = None,
    time_predicate: str | None = None,
    name: str = "",
) -> list[Event]:
    """The events of what is pushed. All have the `time` that is said with it; else each has its own, or that
    of the mapping, or of its triple with the `time_predicate`, or none.

    `format` is that of text, if it is not Turtle or TriG; `mapping` (best prepared once, by
    `framing.prepare_mapping`) and `context` (of JSON-LD) tell what dictionaries and rows mean. `name` is this
    push's own: blank nodes that belong to a record have labels made of it.
    """
    at = None if time is None else to_ms(time)
    if format is None and isinstance(data, _TEXT):
        events = [Event(at, quads_of(data))]
    elif isinstance(data, _STATEMENT):
        events = [Event(at, (_quad(data),))]
    else:
        events = _Reader(format, mapping, context, time_predicate, name).events(data)
        if at is not None:
            return [Event(at, event.quads) for event in events]
    if at is None and time_predicate is not None:
        return [_with_time(event, time_predicate) for event in events]
    return events


def quads_of(data: OneEvent) -> tuple[Quad, ...]:
    """The quads of what is pushed as one event."""
    if isinstance(data, _TEXT):
        try:
            return tuple(parse_rdf(data, RdfFormat.TRIG))
        except SyntaxError as error:
            raise InputError(f"the pushed text is not Turtle or TriG: {error}") from None
    if isinstance(data, _STATEMENT):
        return (_quad(data),)
    if _is_graph(data):
        return _quads_of_graph(data)
    if _is_statement(data):
        return (_quad(data),)
    if isinstance(data, Mapping | Event) or not isinstance(data, Iterable):
        _refuse(data)
    return tuple([_quad(part) for part in data])


def _refuse(data: object) -> NoReturn:
    said = repr(data)
    raise UsageError(
        f"{said if len(said) <= 80 else said[:79] + '…'} ({type(data).__name__}) cannot be pushed; "
        f"these can:\n{TAKEN}"
    )


def _with_time(event: Event, time_predicate: str) -> Event:
    from kelda.rdf.framings.base import RecordError
    from kelda.rdf.framings.eventtime import event_time

    if event.time is not None:
        return event
    try:
        return Event(event_time(event.quads, time_predicate), event.quads)
    except RecordError as error:
        raise InputError(f"the pushed event has {error}") from None


# ------------------------------------------------------------------------------ statements


def _is_statement(data: object) -> bool:
    """Whether it is one tuple of terms, rather than several statements."""
    return (
        isinstance(data, tuple) and len(data) > 0 and not isinstance(data[0], tuple | Triple | Quad | Event)
    )


def _quad(part: object) -> Quad:
    if isinstance(part, Quad):
        return part
    if isinstance(part, Triple):
        return Quad(part.subject, part.predicate, part.object)
    if not _is_statement(part):
        _refuse(part)
    assert isinstance(part, tuple)
    if len(part) not in (3, 4):
        raise UsageError(f"a statement is (s, p, o) or (s, p, o, g), not {part!r}")
    subject, predicate, object = _node(part[0], "subject"), _node(part[1], "predicate"), _object(part[2])
    if not isinstance(predicate, NamedNode):
        raise UsageError(f"a predicate is an IRI, not {predicate}")
    graph = DefaultGraph() if len(part) == 3 or part[3] is None else _node(part[3], "graph")
    return Quad(subject, predicate, object, graph)


def _node(value: object, where: str) -> NamedNode | BlankNode:
    """What stands where no literal can."""
    value = _own_term(value)
    if isinstance(value, str):
        if (found := _written_node(value)) is not None:
            return found
        if where == "predicate" and value == "a":
            return _RDF_TYPE
        try:
            return NamedNode(value)
        except ValueError as error:
            raise UsageError(
                f"the {where} {value!r} of a tuple is no absolute IRI ({error}) and no blank node such as _:b"
            ) from None
    if isinstance(value, NamedNode | BlankNode):
        return value
    raise UsageError(f"the {where} of a statement is an IRI or a blank node, not {value!r}")


def _object(value: object) -> NamedNode | BlankNode | Literal | Triple:
    value = _own_term(value)
    if isinstance(value, BlankNode):
        return value
    if isinstance(value, str) and (found := _written_node(value)) is not None:
        return found
    if not isinstance(value, str) and hasattr(value, "item") and not getattr(value, "shape", None):
        value = value.item()  # a number of NumPy's
    try:
        return term_of(value)
    except QueryError:
        raise UsageError(
            f"the object of a statement is a term, a number, a boolean, a date, a datetime or text, "
            f"not {value!r}"
        ) from None


def _written_node(text: str) -> NamedNode | BlankNode | None:
    found = _NODE.fullmatch(text)
    if found is None:
        return None
    return BlankNode(found[2]) if found[1] is None else NamedNode(found[1])


# ------------------------------------------------------------------------------ rdflib


def _own_term(value: object) -> object:
    """An rdflib term as one of ours; anything else as it is."""
    rdflib = sys.modules.get("rdflib")
    if rdflib is None or not isinstance(value, rdflib.term.Identifier):
        return value
    if isinstance(value, rdflib.URIRef):
        return NamedNode(str(value))
    if isinstance(value, rdflib.BNode):
        return BlankNode(str(value))
    if isinstance(value, rdflib.Literal):
        if value.language is not None:
            return Literal(str(value), language=value.language)
        datatype = None if value.datatype is None else NamedNode(str(value.datatype))
        return Literal(str(value), datatype=datatype)
    raise UsageError(f"{value!r} is no RDF term")


def _is_graph(data: object) -> bool:
    rdflib = sys.modules.get("rdflib")
    return rdflib is not None and isinstance(data, rdflib.Graph)


def _quads_of_graph(graph: Any) -> tuple[Quad, ...]:
    rdflib = sys.modules["rdflib"]
    if not isinstance(graph, rdflib.Dataset):
        return tuple(map(_quad, graph))
    default = (None, rdflib.graph.DATASET_DEFAULT_GRAPH_ID)
    return tuple(_quad((s, p, o, None if g in default else g)) for s, p, o, g in graph.quads())


# ------------------------------------------------------------------------------ records


class _Reader:
    """Reads what is not simply one event."""

    def __init__(
        self, format: str | None, mapping: Any, context: Any, time_predicate: str | None, name: str
    ) -> None:
        self.format, self.mapping, self.context = format, mapping, context
        self.time_predicate, self.name = time_predicate, name

    def events(self, data: object) -> list[Event]:
        if isinstance(data, Event):
            return [data]
        if isinstance(data, str | bytes):
            assert self.format is not None
            text = data.encode() if isinstance(data, str) else data
            return self._text(text, self.format, self.mapping)
        if isinstance(data, Mapping):
            return self._dictionaries([data])
        if (rows := _rows(data)) is not None:
            if self.mapping is None or not self._is_table():
                raise UsageError(
                    f"a {type(data).__name__} needs a mapping that says which triples a row makes "
                    "(docs/streams.md)"
                )
            return self._mapped(rows)
        if isinstance(data, Iterable) and not _is_statement(data) and not _is_graph(data):
            data = list(data)
            if data and all(isinstance(part, Event) for part in data):
                return data
            if data and all(isinstance(part, Mapping) for part in data):
                return self._dictionaries(data)
        return [Event(None, quads_of(data))]  # type: ignore[arg-type]  # it refuses what it does not know

    def _dictionaries(self, found: Sequence[Mapping[str, Any]]) -> list[Event]:
        if self.context is None and self.mapping is not None and self._is_table():
            return self._mapped(found)
        try:
            lines = [json.dumps(one, default=_said, allow_nan=False) for one in found]
        except (TypeError, ValueError) as error:
            raise UsageError(f"the dictionary cannot be written as JSON-LD: {error}") from None
        mapping = self.mapping
        if self.context is not None:
            known = isinstance(self.context, Mapping) and "@context" in self.context
            mapping = {"@context": self.context["@context"] if known else self.context}
        return self._text("\n".join(lines).encode(), "ndjsonld", mapping)

    def _text(self, text: bytes, format: str, mapping: Any) -> list[Event]:
        from kelda.rdf.framing import read_events  # readers of all formats: a small program needs none

        return list(
            read_events(
                text,
                format=format,
                time_predicate=self.time_predicate,
                mapping=mapping,
                on_reject=not_taken,
                name=self.name,
            )
        )

    def _is_table(self) -> bool:
        return self.ready().framing.name in ("csv", "json")

    def ready(self) -> Any:
        from kelda.rdf.framing import ReadyMapping, prepare_mapping

        if isinstance(self.mapping, ReadyMapping):
            return self.mapping
        self.mapping = prepare_mapping("ndjsonld" if self.format == "ndjsonld" else "json", self.mapping)
        return self.mapping

    def _mapped(self, rows: Iterable[Mapping[str, Any]]) -> list[Event]:
        from kelda.rdf.framings.base import Reading, RecordError
        from kelda.rdf.framings.tabular import object_event

        how = Reading(self.name, not_taken, self.time_predicate, self.ready().mapping)
        events = []
        for number, row in enumerate(rows):
            try:
                events.append(object_event(row, number, how))
            except RecordError as error:
                how.reject(number + 1, str(error), repr(dict(row)).encode())
        return events


def _rows(data: object) -> Iterable[Mapping[str, Any]] | None:
    """The rows of a table of another library, if it is one; nulls are None."""
    arrow, pandas, polars = (sys.modules.get(name) for name in ("pyarrow", "pandas", "polars"))
    if arrow is not None and isinstance(data, arrow.Table | arrow.RecordBatch):
        return data.to_pylist()
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return data.astype(object).where(data.notna(), None).to_dict("records")
    if polars is not None and isinstance(data, polars.DataFrame):
        return data.iter_rows(named=True)
    return None


def _said(value: object) -> object:
    """How JSON says what it has no word for."""
    if isinstance(value, date):  # datetimes are dates
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return format(value, "f")
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} ({type(value).__name__})")


def table_mapping(mapping: Any, format: str | None) -> TableMapping | None:
    """The mapping of rows, made ready; None if it is for something else."""
    ready = None if mapping is None else _Reader(format, mapping, None, None, "").ready().mapping
    return ready if isinstance(ready, TableMapping) else None


def not_taken(reject: Reject) -> None:
    """Refuse what is pushed for a record that cannot be read."""
    raise InputError(f"record {reject.line} of what is pushed: {reject.reason}; it was: {reject.record}")
