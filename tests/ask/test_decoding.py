"""Terms of tables of ids: as the dictionary has them, one by one."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from pyoxigraph import Literal, NamedNode

from kelda.ask import decoding
from kelda.ask.decoding import Decoder
from kelda.ask.table import Table
from kelda.errors import UsageError
from kelda.rdf.dictionary import Dictionary

SEED = int.from_bytes(os.urandom(3), "big") if "KELDA_RANDOM" in os.environ else 3


@pytest.mark.parametrize("case", range(6))
def test_terms_are_those_of_the_dictionary(case: int, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")
    draw = Random(SEED * 100 + case)
    monkeypatch.setattr(decoding, "LEAST_SLOTS", 4)
    monkeypatch.setattr(decoding, "MOST_REMEMBERED", draw.choice([10, 1000]))
    dictionary = Dictionary()
    terms = [NamedNode(f"x:{i}") if i % 3 else Literal(i) for i in range(draw.choice([5, 400]))]
    ids = [0, *map(dictionary.encode, terms)]
    decoder = Decoder(dictionary)
    for _ in range(12):
        columns, rows = draw.randrange(4), draw.randrange(300)
        table = np.array([draw.choices(ids, k=rows) for _ in range(columns)], np.int64).reshape(columns, rows)
        found = decoder.columns(table)
        wanted = [[dictionary.term(id) if id else None for id in column] for column in table.tolist()]
        assert found == wanted
        names = tuple(f"v{i}" for i in range(columns))
        told = [{n: t for n, t in zip(names, row, strict=True) if t} for row in zip(*wanted, strict=True)]
        assert decoder.rows(Table(names, table)) == (told if columns else [{}] * len(Table(names, table)))


def test_an_id_without_a_term_is_refused_each_time() -> None:
    dictionary = Dictionary()
    known, decoder = dictionary.encode(NamedNode("x:a")), Decoder(dictionary)
    for _ in range(2):
        with pytest.raises(UsageError):
            decoder.columns(np.array([[known, known + 1]], np.int64))
    assert decoder.columns(np.array([[known]], np.int64)) == [[NamedNode("x:a")]]
