"""`kelda query` over the LSBench streams, one query of each dialect, joined with the stored profile.

Full files take longer than a test should, so each stream is cut after its first lines.
"""

from __future__ import annotations

import gzip
import json
import os
from itertools import islice
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kelda.cli.app import app

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("KELDA_DATA", ROOT.parent / "shared" / "data")) / "lsbench"
QUERIES = ROOT / "examples" / "lsbench"
BASE = "http://example.org/lsbench/"

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"LSBench data is not in {DATA} (set KELDA_DATA)"),
]


def run(query: str, folder: Path, **lines: int) -> list[dict]:
    """The answers of a query over the first `lines` of each stream."""
    arguments = ["query", str(QUERIES / query), "--graph", f"{BASE}profile={DATA / 'static.nt.gz'}"]
    for stream, count in lines.items():
        part = folder / f"{stream}.tsnt"
        with gzip.open(DATA / f"{stream}.tsnt.gz", "rt", encoding="utf-8") as whole:
            part.write_text("".join(islice(whole, count)), encoding="utf-8")
        arguments += ["--stream", f"{BASE}{stream}={part}"]
    arguments += ["--lateness", "12h", "--runner", "reference", "--format", "ndjson"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "0 rejects, 0 late" in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_cqels_friends_who_like_a_post(tmp_path):
    found = run("friends.cqels.rq", tmp_path, post=4000, postlike=8000)
    assert found
    assert {a["sign"] for a in found} == {"+"}
    assert set(found[0]["bindings"]) == {"reader", "author", "post"}


def test_csparql_countries_of_posts(tmp_path):
    found = run("countries.csparql.rq", tmp_path, post=12053)
    times = sorted({a["time"] for a in found})
    assert all(t % (6 * 3_600_000) == 0 for t in times) and len(times) >= 3
    for t in times:
        posts = [int(a["bindings"]["posts"]["value"]) for a in found if a["time"] == t]
        assert posts == sorted(posts, reverse=True) and len(posts) <= 5


def test_rspql_friends_nearby(tmp_path):
    found = run("nearby.rspql.rq", tmp_path, gps=10_000)
    assert found
    for answer in found:
        one, other = (answer["bindings"][v]["value"] for v in ("one", "other"))
        assert one < other
