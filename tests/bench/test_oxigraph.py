"""The plain way to answer continuously, by Oxigraph alone: as many answers as the engine has."""

from __future__ import annotations

import pytest

from bench.comparisons.oxigraph import measure


@pytest.mark.parametrize(
    ("family", "query", "more"),
    [
        ("lsbench", "L3", {"rate": 2_000}),
        # Stored numbers that Oxigraph would spell otherwise, and the query asks for as they are written.
        ("srbench", "Q8", {"rate": 1, "stream": {"stations": 20}, "stored": {"scale": 0.02}}),
    ],
)
def test_as_many_answers(family: str, query: str, more: dict) -> None:
    found = measure(family=family, queries=[query], triples=12_000, **more)
    assert found["same_answers"] and found["answers"] > 0, found
