"""The hand-written Structured Streaming queries: the right answers, and pieces that lose nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from bench.baselines import kelda
from bench.baselines.again import Again
from bench.baselines.pieces import LEAST, cut
from bench.baselines.queries import QUERIES
from bench.baselines.windows import EachWindow
from bench.families.lsbench import FAMILY
from bench.families.lsbench.vocabulary import STREAMS
from kelda.errors import InputError

# A few seconds of stream time, so that windows move on; likes come up to 1.6 s after what they are of.
SMALL = {"triples": 16_000, "rate": 4_000, "scale": 30, "seed": 5, "active": 0.3, "like_delay": 800}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str]:
    folder = tmp_path_factory.mktemp("lsbench")
    text = dict.fromkeys(STREAMS.values(), b"")
    for block in FAMILY.stream(**SMALL):
        text[block.stream] += block.text
    for name, iri in STREAMS.items():
        (folder / f"{name}.tsnt").write_bytes(text[iri])
    (folder / "stored.nt").write_bytes(b"".join(FAMILY.stored(scale=30)))
    return {name: str(folder / f"{name}.tsnt") for name in STREAMS}, str(folder / "stored.nt")


def test_pieces_are_the_files_in_step(data, tmp_path):
    files = {name: data[0][name] for name in ("photo", "photolike")}
    counts = cut(files, tmp_path / "pieces", 500)
    assert max(counts) < 1_000 and len(counts) >= LEAST
    lasts = []
    for name, path in files.items():
        pieces = sorted((tmp_path / "pieces" / name).iterdir())
        assert len(pieces) == len(counts)
        assert [p.stat().st_mtime for p in pieces] == sorted({p.stat().st_mtime for p in pieces})
        texts = [p.read_bytes() for p in pieces]
        assert b"".join(texts) == Path(path).read_bytes()
        lasts.append([[int(line.split(b"\t")[0]) for line in t.splitlines()] for t in texts])
    for i in range(1, len(counts)):
        before, now = [t for some in lasts for t in some[i - 1]], [t for some in lasts for t in some[i]]
        assert max(before) < min(now)  # no millisecond is in two pieces


def test_pieces_need_order(tmp_path):
    (tmp_path / "post.tsnt").write_text("2\t<a> <b> <c> .\n1\t<a> <b> <c> .\n")
    with pytest.raises(InputError, match="not in order of time"):
        cut({"post": str(tmp_path / "post.tsnt")}, tmp_path / "pieces", 10)


@pytest.mark.parametrize("query", ["L4", "L5", "L6"])
@pytest.mark.parametrize("size", [97, 100_000])
@pytest.mark.parametrize("sliding", [False, True], ids=["once", "each window"])
def test_joined_anew(query, size, sliding, data):
    """By tables alone, without Spark, cut small and not at all."""
    files, stored = data
    asked = QUERIES[query]
    rows = []
    for i, (stream, predicate) in enumerate(asked.reads):
        for line in Path(files[stream]).read_text().splitlines():
            time, s, p, o = line.replace("\t", " ", 1).split(" ", 3)
            if p == predicate:
                rows.append((int(time), s, i, o.removesuffix(" .")))
    rows.sort(key=lambda row: row[0])
    again = (EachWindow if sliding else Again)(query, asked.reads, pairs(stored))
    columns = [*asked.variables, *(["end"] if sliding else [])]
    found, begin = [], 0
    while begin < len(rows):
        end = min(begin + size, len(rows))
        while end < len(rows) and rows[end][0] == rows[end - 1][0]:
            end += 1
        t, s, p, o = zip(*rows[begin:end], strict=True)
        answers = again.push(pa.table({"s": s, "p": p, "o": o, "t": t}))
        found += zip(*(answers[name].to_pylist() for name in columns), strict=True)
        begin = end
    (right,) = kelda.answers(query, files, stored, sliding=sliding)
    assert len(right) > 50
    if sliding:  # rows of other predicates may close windows after the last row that is asked for
        right = upto(right, rows[-1][0])
    assert set(found) == set(right)
    assert len(found) >= right.total() if sliding else len(found) == right.total()


def upto(answers: Counter, last: int) -> Counter:
    """The answers of the windows that end by then."""
    return Counter({row: n for row, n in answers.items() if row[-1] <= last})


def pairs(path: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for line in Path(path).read_text().splitlines():
        s, p, o = line.split(" ", 2)
        found.setdefault(p, []).append((s, o.removesuffix(" .")))
    return found


@pytest.mark.spark
@pytest.mark.slow
def test_answers_are_those_of_the_engine(data, monkeypatch):
    """All in one Spark. L1 to L3 for three users, the joins in both ways, one with the other state store."""
    from bench.baselines.measure import measure
    from kelda.spark.session import session

    monkeypatch.setattr("bench.baselines.pieces.LEAST", 5)  # each batch takes its time
    spark = session("local[2]")
    files, stored = data
    runs = [(name, {"copies": 3}) for name in ("L1", "L2", "L3")]
    runs += [(name, {"way": way}) for name in ("L4", "L5", "L6") for way in ("join", "again")]
    runs.append(("L5", {"way": "join", "state": "rocksdb"}))
    runs += [("L3", {"sliding": True}), ("L1", {"sliding": True, "way": "windows"})]
    runs += [("L6", {"way": way, "sliding": True}) for way in ("join", "again")]
    for name, how in runs:
        figures = measure(name, files, stored, spark, keep=True, **how)
        copies, sliding = how.get("copies", 1), how.get("sliding", False)
        right = kelda.answers(name, files, stored, copies, sliding)
        if sliding:  # the engine closes no window after the last element
            last = min(
                max(row[-1] for row in rows) for answers in (right, figures["rows"]) for rows in answers
            )
            right = [upto(rows, last) for rows in right]
            figures["rows"] = [upto(rows, last) for rows in figures["rows"]]
        assert [set(rows) for rows in figures["rows"]] == [set(rows) for rows in right], (name, how)
        if not sliding:
            assert figures["answers"] == sum(rows.total() for rows in right) > 0, (name, how)
