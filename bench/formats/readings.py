"""Readings of sensors, one a millisecond, written in each format."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import NamedTuple

SENSORS = 100
BEGIN = 1_700_000_000_000  # ms, the time of the first reading
SOSA = "http://www.w3.org/ns/sosa/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STREAM = "http://example.org/readings"

MAPPING = """prefixes: {ex: "http://example.org/"}
time: {column: time, format: epoch-ms}
triples:
  - ["ex:{id}", sosa:madeBySensor, "ex:{sensor}"]
  - ["ex:{id}", sosa:hasSimpleResult, {column: value, datatype: xsd:double}]
"""

QUERY = f"""PREFIX : <http://example.org/> PREFIX sosa: <{SOSA}>
REGISTER RSTREAM :means AS SELECT ?sensor (AVG(?value) AS ?mean)
FROM NAMED WINDOW :w ON :readings [RANGE PT10S STEP PT1S]
WHERE {{ WINDOW :w {{ ?o sosa:madeBySensor ?sensor . ?o sosa:hasSimpleResult ?value }} }}
GROUP BY ?sensor"""


class Format(NamedTuple):
    """A format as Kelda calls it, how a file of it ends, how many triples say a reading, and whether it needs
    the mapping."""

    kelda: str
    suffix: str
    triples: int
    mapped: bool = False


FORMATS = {
    "tsnt": Format("tsnt", ".tsnt", 2),
    "timed N-Quads": Format("nquads", ".nq", 2),
    "plain N-Triples": Format("nquads", ".nt", 3),
    "plain N-Quads": Format("nquads", ".nq", 3),
    "messages, Turtle": Format("messages", ".ttl", 3),
    "messages, N-Triples": Format("messages", ".messages", 3),
    "ndjsonld": Format("ndjsonld", ".ndjsonld", 3),
    "csv": Format("csv", ".csv", 2, mapped=True),
    "json": Format("json", ".json", 2, mapped=True),
}


class Reading(NamedTuple):
    id: str
    sensor: str
    value: float
    time: int

    @property
    def iso(self) -> str:
        moment = datetime.fromtimestamp(self.time / 1000, tz=timezone.utc)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{self.time % 1000:03}Z"


def readings(many: int) -> Iterator[Reading]:
    """The same each time."""
    for i in range(many):
        yield Reading(f"o{i}", f"s{i * 7 % SENSORS}", 150 + i * 31 % 200 / 10 + 0.5, BEGIN + i)


def written(name: str, many: int) -> str:
    """So many readings as the text of a file."""
    text = "".join(map(_WRITE[name], readings(many)))
    return _HEAD.get(name, "") + text


_PREFIXES = f"PREFIX ex: <http://example.org/>\nPREFIX sosa: <{SOSA}>\nPREFIX xsd: <{XSD}>\n"
_HEAD = {
    "messages, Turtle": f'VERSION "1.2-messages"\n{_PREFIXES}',
    "csv": "id,sensor,value,time\n",
    "ndjsonld": f'{{"@context": {{"@vocab": "{SOSA}", "@base": "http://example.org/", '
    f'"madeBySensor": {{"@type": "@id"}}, "hasSimpleResult": {{"@type": "{XSD}double"}}, '
    f'"resultTime": {{"@type": "{XSD}dateTime"}}}}}}\n',
}


def _two(r: Reading) -> tuple[str, str]:
    subject = f"<http://example.org/{r.id}>"
    return (
        f"{subject} <{SOSA}madeBySensor> <http://example.org/{r.sensor}>",
        f'{subject} <{SOSA}hasSimpleResult> "{r.value}"^^<{XSD}double>',
    )


def _three(r: Reading) -> tuple[str, str, str]:
    return (*_two(r), f'<http://example.org/{r.id}> <{SOSA}resultTime> "{r.iso}"^^<{XSD}dateTime>')


def _quads(r: Reading) -> str:
    """A graph for each reading, and the time of that beside it."""
    graph = f"<http://example.org/{r.id}/g>"
    when = f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{r.iso}"^^<{XSD}dateTime> .\n'
    return "".join(f"{said} {graph} .\n" for said in _two(r)) + when


_WRITE = {
    "tsnt": lambda r: "".join(f"{r.time}\t{said} .\n" for said in _two(r)),
    "timed N-Quads": lambda r: "".join(
        f"{r.time}\t{said} <http://example.org/hall/{r.time % 7}> .\n" for said in _two(r)
    ),
    "plain N-Triples": lambda r: "".join(f"{said} .\n" for said in _three(r)),
    "plain N-Quads": _quads,
    "messages, Turtle": lambda r: (
        f'ex:{r.id} sosa:madeBySensor ex:{r.sensor} ; sosa:hasSimpleResult "{r.value}"^^xsd:double ; '
        f'sosa:resultTime "{r.iso}"^^xsd:dateTime .\nMESSAGE\n'
    ),
    "messages, N-Triples": lambda r: "".join(f"{said} .\n" for said in _three(r)) + "MESSAGE\n",
    "ndjsonld": lambda r: (
        f'{{"@id": "{r.id}", "madeBySensor": "{r.sensor}", "hasSimpleResult": "{r.value}", '
        f'"resultTime": "{r.iso}"}}\n'
    ),
    "csv": lambda r: f"{r.id},{r.sensor},{r.value},{r.time}\n",
    "json": lambda r: f'{{"id":"{r.id}","sensor":"{r.sensor}","value":{r.value},"time":{r.time}}}\n',
}
