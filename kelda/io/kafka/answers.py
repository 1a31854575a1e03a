"""Answers as messages: one answer, one message, with a key by which a topic keeps its order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.io.formats import Messages, Ndjson, NQuads, Shape, cells_of, plain, sign_of_events
from kelda.io.kafka.place import KafkaPlace, place_in
from kelda.io.sources.address import read_address
from kelda.lang.algebra import Form

FORMATS = {"json": "application/json", "messages": "application/n-quads", "nquads": "application/n-quads"}
DELIVERIES = ("exactly-once", "at-least-once")
OPTIONS = ("key", "format", "delivery", "settings")


class Out(NamedTuple):
    """A message to send."""

    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class KafkaOutput:
    """Where answers go, and how they are written."""

    place: KafkaPlace
    key: tuple[str, ...]
    format: str
    transactions: bool


def kafka_output(spec: str, query: str, shape: Shape | None) -> KafkaOutput:
    """The options of a sink; UsageError if they are no good for the answers of this query."""
    address = read_address(spec)
    place = place_in(address)
    triples = shape is not None and shape.form in (Form.CONSTRUCT, Form.DESCRIBE)
    key = address.option("key", _names, _names(""))
    format = address.option("format", str, "messages" if triples else "json")
    delivery = address.option("delivery", str, DELIVERIES[0])
    address.done(*OPTIONS)
    if format not in FORMATS:
        raise UsageError(f"{spec}: the format is one of {', '.join(FORMATS)}, not '{format}'")
    if delivery not in DELIVERIES:
        raise UsageError(f"{spec}: the delivery is {' or '.join(DELIVERIES)}, not '{delivery}'")
    if format != "json":
        sign_of_events(query, shape)
    unknown = [name for name in key if shape is not None and name not in shape.columns]
    if unknown:
        assert shape is not None
        raise UsageError(
            f"{spec}: the key names ?{unknown[0]}, and query '{query}' has "
            f"{', '.join(f'?{c}' for c in shape.columns) if shape.form is Form.SELECT else 'no variables'}"
        )
    return KafkaOutput(place, key, format, delivery == DELIVERIES[0])


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.lstrip("?") for name in text.split(",")) if text else ()


class Writer:
    """Writes answers as messages."""

    def __init__(self, output: KafkaOutput, query: str, shape: Shape | None, time_predicate: str) -> None:
        self._output = output
        sign = "+" if output.format == "json" else sign_of_events(query, shape)
        self._messages = Messages(sign=sign, time_predicate=time_predicate)
        self._nquads = NQuads(sign=sign, time_predicate=time_predicate)
        self.headers = [("content-type", FORMATS[output.format].encode())]

    def messages(self, answers: Sequence[Answer]) -> list[Out]:
        """A message an answer, in order."""
        match self._output.format:
            case "json":
                values = bytes(Ndjson().body(answers)).split(b"\n")[:-1]
            case "messages":
                delimiter = b"\nMESSAGE\n"
                values = [text + b"\n" for text in bytes(self._messages.body(answers)).split(delimiter)[:-1]]
            case _:
                values = [bytes(self._nquads.body([answer])) for answer in answers]
        names = self._output.key
        if not names:
            return [Out(None, value) for value in values]
        return [Out(_key(answer, names), value) for answer, value in zip(answers, values, strict=True)]


def _key(answer: Answer, names: tuple[str, ...]) -> bytes | None:
    """The values of some variables: of one its text, of several a JSON array; unbound ones are null."""
    cells = cells_of(answer)
    texts = [plain(cells[name]) if name in cells else None for name in names]
    if len(texts) == 1:
        return None if texts[0] is None else texts[0].encode()
    return json.dumps(texts, ensure_ascii=False).encode()
