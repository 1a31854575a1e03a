"""The comparison with a sample of the original: it counts what it says, and does without the sample."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

from bench import shape
from bench.families.lsbench.generator import stored, stream
from bench.families.lsbench.vocabulary import STREAMS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Our own data in place of the original's."""
    root = tmp_path_factory.mktemp("data")
    (root / "lsbench").mkdir()
    made = dict.fromkeys(STREAMS, b"")
    for block in stream(triples=20_000, scale=60, seed=7):
        made[block.stream.rsplit("/", 1)[1]] += block.text
    for name, text in made.items():
        (root / "lsbench" / f"{name}.tsnt.gz").write_bytes(gzip.compress(text))
    (root / "lsbench" / "static.nt.gz").write_bytes(gzip.compress(b"".join(stored(scale=60, seed=7))))
    return root


def test_like_is_like_like(folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["shape", "--data", str(folder), "--json"])
    shape.main()
    found = json.loads(capsys.readouterr().out)
    for name in ("tags of a post", "friends of a user", "users who like a photo"):
        one, other = found[name]["original"], found[name]["generated"]
        assert set(one) == set(other) and abs(one["mean"] - other["mean"]) < 0.2 * one["mean"]
    assert found["friends of a user"]["original"] == found["friends of a user"]["generated"]
    assert 80 < found["answers of Q6"]["generated"] / found["answers of Q6"]["original"] * 100 < 125
    assert found["photo: share of usertag (%)"]["original"] > 25


def test_the_table_has_a_line_for_everything():
    rows = [("degrees", shape._distribution([1, 2, 3]), shape._distribution([2])), ("answers of Q1", 2, 3)]
    lines = shape.table(rows).splitlines()
    assert lines[2] == "| degrees | original | 2.00 | 1.2 | 1.5 | 2 | 2.5 | 2.8 | 2.98 | 3 | 3 |"
    assert lines[3].startswith("|  | generated | 2.00 |") and lines[-1] == "| answers of Q1 | 2 | 3 | 1.50 |"


def test_without_the_sample(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["shape", "--data", str(tmp_path)])
    shape.main()
    assert capsys.readouterr().out.startswith("skipped: there is no sample of LSBench in ")
