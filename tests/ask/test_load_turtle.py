"""Turtle that is loaded as columns gives what pyoxigraph reads in it: quads, labels, errors."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from random import Random, SystemRandom
from unittest.mock import patch

import numpy as np
import pytest

from kelda.ask.updating import loading
from kelda.ask.updating.loading import Document
from kelda.errors import InputError
from kelda.rdf import turtle_document
from kelda.rdf.dictionary import Dictionary
from tests.rdf import turtle_text

CASES = int(os.environ.get("KELDA_CASES", "200"))
FIRST = SystemRandom().randrange(10**9) if "KELDA_RANDOM" in os.environ else 0
W3C = Path(__file__).parents[3] / "shared" / "data" / "w3c"


def loaded(data: bytes, iri: str, *, columns: bool) -> list[tuple[object, ...]] | str:
    """What is in the document; or what is wrong with it."""
    dictionary = Dictionary()
    slow = patch.object(loading, "_turtle", lambda *_: None)
    try:
        if columns:
            found = loading.load(iri, None, lambda _: Document(data, "f", "turtle"), dictionary)
        else:
            with slow:
                found = loading.load(iri, None, lambda _: Document(data, "f", "turtle"), dictionary)
    except InputError as error:
        return str(error)
    terms = dictionary.terms(found.ravel())
    return [tuple(row) for row in np.array(terms, object).reshape(found.shape).T]


def compare(data: bytes, iri: str = "http://base/dir/file.ttl") -> None:
    assert loaded(data, iri, columns=True) == loaded(data, iri, columns=False)


def run(seed: int) -> bool:
    draw = Random(seed)
    data = turtle_text.document(draw, calm=draw.random() < 0.7)
    base = draw.choice(["http://base/dir/file.ttl", "file:///a/b%20c.ttl", "urn:x:y", "http://b"])
    with (
        patch.object(turtle_document, "LEAST", draw.choice([1, 100, 4096])),
        patch.object(turtle_document, "PART", draw.choice([50, 1000, 1 << 24])),
    ):
        compare(data, base)
        try:
            list(turtle_document.read_turtle(BytesIO(data).read, base, Dictionary()))
        except turtle_document.UnreadableError:
            return False
    return True


def test_any_document() -> None:
    by_columns = 0
    for seed in range(FIRST, FIRST + CASES):
        try:
            by_columns += run(seed)
        except BaseException as error:
            error.add_note(f"run({seed})")
            raise
    assert by_columns > CASES // 3  # else little was compared


@pytest.mark.skipif(not W3C.exists(), reason="the W3C's files are not at hand")
def test_files_of_the_w3c() -> None:
    paths = sorted(W3C.rglob("*.ttl"))
    assert paths
    for path in paths:
        compare(path.read_bytes(), path.as_uri())
