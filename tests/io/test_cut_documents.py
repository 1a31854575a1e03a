"""Lines of JSON-LD are cut by a kernel exactly as the splitter cuts them."""

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

MAPPING = {"@context": {"@vocab": "http://v/"}}
LINES = [
    b'{"a":1}\n',
    b'{"@id":"a:b","@context":{}}\r\n',
    b'{"@context":{"@vocab":"http://w/"}}\n',
    b' { "@context" : {"a":"b:c\\"}{,"} } \n',
    b'{"@context":{"a":["b:}]"]},"a":1}\n',
    b'{"@context":null,"@context":{"a":"x:y"}}\n',
    b'{"\\u0040context":1,"@context":{"a":"x:y"}}\n',
    b'{"@context":7}\n',
    b'{"@context":"http://unknown/"}\n',
    b'{"@context":{}\n',
    b'{"@context"\n',
    b'{"a\\n":"@context"}\n',
    b"\n",
    b" \t\x0b\n",
    b'{"a":"' + b"x" * 60 + b'"}\n',
    b"{}\n",
    b"[]\n",
    b'"',
    b"{",
    b"\r",
]


def _steps(path: Path, mapping: Any, max_record: int | None, complete: bool, most: int) -> list[Step]:
    text, one = PlainText(path), Cutter("ndjsonld", mapping, max_record=max_record, max_records=most)
    place, steps = Place(), []
    while (step := one.next(text, place, complete=complete)) is not None:
        steps.append(step)
        place = step.place
        if step.last:
            break
    return steps


@pytest.mark.parametrize("seed", SEEDS)
def test_as_the_splitter(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    draw = random.Random(seed)
    monkeypatch.setattr(cutter, "PIECE_BYTES", draw.choice([20, 60, 200]))
    monkeypatch.setattr(cutter, "LOOK", draw.choice([1, 7, 100]))
    kinds = draw.sample(LINES, draw.randrange(1, 6)) if draw.random() < 0.6 else LINES[:6]
    path = tmp_path / "t.ndjsonld"
    lines = [draw.choice(kinds) for _ in range(draw.randrange(30))]
    path.write_bytes(draw.choice([b"", b"\xef\xbb\xbf"]) + b"".join(lines))
    mapping = draw.choice([None, MAPPING])
    how = draw.choice([None, 60, 200]), draw.random() < 0.7, draw.choice([1, 3, 4096])
    steps = _steps(path, mapping, *how)
    monkeypatch.setattr(Cutter, "_documents", lambda *_: None)
    assert steps == _steps(path, mapping, *how)


def test_usual_documents_are_not_split_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Cutter, "_records", None)
    path = tmp_path / "t.ndjsonld"
    path.write_bytes(b'{"@context":{}}\n' + b'{"@context":{"a":"b:c"},"a":1}\n' * 10_000)
    steps = _steps(path, None, None, True, 4096)
    assert [step.records for step in steps] == [4096, 4096, 1808] and steps[-1].last
