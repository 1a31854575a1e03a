"""Readers of chunks as columns, by the format of the stream.

A framing (`kelda.rdf.framings`) says what a record means, record by record, as terms. A reader here finds the
same in bytes, as ids: the same elements, rejects, line numbers and blank node labels. What is odd in a
record it hands to the framing. Formats that are not listed are read by their framings alone.
"""

from __future__ import annotations

from kelda.rdf.columnar import csv, json_lines, jsonld, messages, nquads
from kelda.rdf.columnar.found import Found, Read, found_of, without_heads

READERS: dict[str, Read] = {
    "csv": csv.read,
    "json": json_lines.read,
    "messages": messages.read,
    "ndjson": json_lines.read,
    "ndjsonld": jsonld.read,
    "nquads": nquads.read,
}

__all__ = ["READERS", "Found", "Read", "found_of", "without_heads"]
