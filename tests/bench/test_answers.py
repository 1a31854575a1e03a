"""The benchmark of answers runs, and measures the same answers both ways."""

from __future__ import annotations

from bench.answers import CONSTRUCT, FORMATS, KINDS, SELECT, measured, sent
from kelda.engine.block import Block
from kelda.engine.columnar import Columnar
from kelda.io.formats import Messages, NQuads
from kelda.rdf.dictionary import Dictionary


def test_every_format_of_every_kind_is_measured() -> None:
    lines = list(measured(50))
    assert [(line["value"], line["format"]) for line in lines] == [(k, f) for k in KINDS for f in FORMATS]
    assert all(int(str(line["rows"])) > 0 for line in lines)


def test_what_is_measured_is_the_same_both_ways() -> None:
    for kind in KINDS:
        dictionary = Dictionary()
        said = sent(kind, dictionary, 30)
        for name, format in FORMATS.items():
            query = CONSTRUCT if isinstance(format, NQuads | Messages) else SELECT
            block = Block(query, "q", said, dictionary)
            if format is not None and name != "parquet":
                assert bytes(format.body(Columnar([block]))) == bytes(format.body(block.answers()))
