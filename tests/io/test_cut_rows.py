"""Rows of CSV are cut by a kernel exactly as the splitter cuts them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from kelda.io.sources import cutter
from kelda.io.sources.cutter import Cutter, Place, Step
from kelda.io.sources.text import PlainText

CASES = int(os.environ.get("KELDA_CASES", "300"))
SEEDS = random.SystemRandom().sample(range(10**9), CASES) if "KELDA_RANDOM" in os.environ else range(CASES)

MAPPING: dict[str, Any] = {"triples": [["urn:{a}", "urn:p", {"column": "b"}]]}


def _steps(
    path: Path, mapping: dict[str, Any], max_record: int | None, complete: bool, most: int
) -> list[Step]:
    text, one = PlainText(path), Cutter("csv", mapping, max_record=max_record, max_records=most)
    place, steps = Place(), []
    while (step := one.next(text, place, complete=complete)) is not None:
        steps.append(step)
        place = step.place
        if step.last:
            break
    return steps


def _rows(draw: random.Random) -> bytes:
    rows = [
        b"1,2\n",
        b"a,b\r\n",
        b'"x\ny","z"""\n',
        b"\n",
        b'q"1,2\n',
        b"  \n",
        b"1" * 50 + b",\n",
        b'3,"4"',
        b'"',
        b"\r",
    ]
    kinds = draw.sample(rows, draw.randrange(1, 6)) if draw.random() < 0.6 else rows[:3]
    return b"".join(draw.choice(kinds) for _ in range(draw.randrange(30)))


@pytest.mark.parametrize("seed", SEEDS)
def test_as_the_splitter(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    draw = random.Random(seed)
    monkeypatch.setattr(cutter, "PIECE_BYTES", draw.choice([20, 60, 200]))
    monkeypatch.setattr(cutter, "LOOK", draw.choice([1, 7, 100]))
    path, mapping = tmp_path / "t.csv", dict(MAPPING)
    if draw.random() < 0.3:
        mapping["columns"] = ["a", "b"]
    path.write_bytes(
        draw.choice([b"", b"\xef\xbb\xbf"]) + draw.choice([b"a,b\n", b"\na,b\n", b'"a",b\n']) + _rows(draw)
    )
    how = draw.choice([None, 60, 200]), draw.random() < 0.7, draw.choice([1, 3, 4096])
    steps = _steps(path, mapping, *how)
    monkeypatch.setattr(Cutter, "_rows", lambda *_: None)
    assert steps == _steps(path, mapping, *how)


def test_usual_rows_are_not_split_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Cutter, "_records", None)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b'1,"2\n3"\n' * 10_000)
    steps = _steps(path, MAPPING, None, True, 4096)
    assert [step.records for step in steps] == [4096, 4096, 1808] and steps[-1].last
