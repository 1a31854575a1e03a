"""Does the generated social network look like LSBench's own? Compares it with a sample of the original.

Takes as many triples of each stream, and as many users, as the sample has. Compared are the frequencies of
predicates, the distributions of degrees, the lengths of lines, and how many answers queries have; for these,
windows by time become windows of 1,000 triples, because the sample's streams are as slow as life.

    python -m bench.shape [--data ../shared/data] [--json] [--write]

`--write` puts the table into docs/benchmark-data.md. Without the sample nothing is compared.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.families.base import BenchQuery
from bench.families.lsbench.generator import stored, stream
from bench.families.lsbench.queries import LSBENCH
from bench.families.lsbench.vocabulary import STREAMS
from bench.harness.stores import store_of
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import parse
from kelda.rdf import ntriples
from kelda.store.store import Store

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmark-data.md"
BEGIN, END = "<!-- shape: begin -->", "<!-- shape: end -->"
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
WINDOW = 1_000  # triples
SEED = 1

Texts = dict[str, bytes]  # stream or "static" -> text


def sample(folder: Path) -> Texts:
    """The original's data."""
    names = {name: f"{name}.tsnt.gz" for name in STREAMS} | {"static": "static.nt.gz"}
    return {name: gzip.decompress((folder / file).read_bytes()) for name, file in names.items()}


def generated(like: Texts) -> Texts:
    """As many lines of each stream, for as many users."""
    many = {name: text.count(b"\n") for name, text in like.items()}
    users = like["static"].count(b"sioc/ns#account_of>")
    parts: dict[str, list[bytes]] = defaultdict(list)
    for block in stream(triples=int(1.3 * sum(many[name] for name in STREAMS)), scale=users, seed=SEED):
        parts[next(name for name, iri in STREAMS.items() if iri == block.stream)].append(block.text)
    made = {name: _first(b"".join(parts[name]), many[name]) for name in STREAMS}
    return made | {"static": b"".join(stored(scale=users, seed=SEED))}


def _first(text: bytes, lines: int) -> bytes:
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    return text if len(ends) < lines else text[: int(ends[lines - 1]) + 1]


def shape(texts: Texts) -> dict[str, Any]:
    """What can be counted: name -> a number, or the mean and quantiles of a distribution."""
    found: dict[str, Any] = {}
    edges: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, text in texts.items():
        rows = [_triple(line, name != "static") for line in text.decode().split("\n") if line]
        frequency = Counter(p for _, p, _ in rows)
        for predicate, many in frequency.most_common():
            if many >= len(rows) / 500:
                found[f"{name}: share of {_short(predicate)} (%)"] = 100 * many / len(rows)
        found[f"{name}: bytes a line"] = len(text) / len(rows)
        found[f"{name}: elements that come again (%)"] = 100 * (1 - len(set(rows)) / len(rows))
        for s, p, o in rows:
            edges.setdefault((name, _short(p)), []).append((s, o))
    degrees = {
        "tags of a post": _subjects(edges["post", "hashtag"]),
        "posts with a tag": _objects(edges["post", "hashtag"]),
        "posts of a user who posts": _subjects(edges["post", "creator_of"]),
        "users who like a post": _objects(set(edges["postlike", "like"])),
        "users who like a photo": _objects(set(edges["photolike", "like"])),
        "posts and photos that a user likes": _subjects(
            set(edges["postlike", "like"]) | set(edges["photolike", "like"])
        ),
        "people in a photo": _subjects(edges["photo", "usertag"]),
        "photos of a person": _objects(edges["photo", "usertag"]),
        "photos of an album": _subjects(edges["photo", "container_of"]),
        "places of a user": _subjects(edges["gps", "trackedAt"]),
        "friends of a user": _subjects(edges["static", "knows"]),
        "interests of a user": _subjects(edges["static", "interest"]),
        "members of a group": _subjects(edges["static", "has_member"]),
        "letters of a post": [len(o) - 2 for _, o in edges["post", "content"]],
    }
    for name, values in degrees.items():
        found[name] = _distribution(values)
    friends = defaultdict(set)
    for a, b in edges["static", "knows"]:
        friends[a].add(b)
    pairs = sum(len(f) * (len(f) - 1) for f in friends.values())
    closed = sum(len(f & friends[x]) for f in friends.values() for x in f)
    found["friends of a user who know each other (%)"] = 100 * closed / pairs
    return found


def _triple(line: str, timed: bool) -> tuple[str, str, str]:
    s, p, o = (line.split("\t", 1)[1] if timed else line).split(" ", 2)
    return s, p, o[:-2]


def _short(predicate: str) -> str:
    return re.split(r"[/#]", predicate.strip("<>"))[-1]


def _subjects(pairs: Iterable[tuple[str, str]]) -> list[int]:
    return list(Counter(s for s, _ in pairs).values())


def _objects(pairs: Iterable[tuple[str, str]]) -> list[int]:
    return list(Counter(o for _, o in pairs).values())


def _distribution(values: list[int]) -> dict[str, float]:
    found = {"n": float(len(values)), "mean": float(np.mean(values))}
    return found | {f"q{q:g}": float(np.quantile(values, q)) for q in QUANTILES}


def answers(texts: Texts, store: Store, query: BenchQuery) -> int:
    """How many answers a query has over the texts, with windows of 1,000 triples."""
    text = re.sub(r"\[RANGE \d+ms\]", f"[TRIPLES {WINDOW}]", query.texts["cqels"])
    user = _busiest(texts["post"])
    text = re.sub(r"\b(user:u|person:p)0\b", rf"\g<1>{user}", text)
    engine = IncrementalEvaluator(store=store)
    read = [name for name, iri in STREAMS.items() if iri in query.streams]
    for name in read:
        engine.add_stream(STREAMS[name], from_start=True)
    engine.register("q", parse(text, dialect="cqels"))
    many = 0
    for name in read:
        c = ntriples.read(texts[name], engine.dictionary, timed=True)
        assert c.t is not None
        order = np.argsort(c.t, kind="stable")  # the sample is not quite in order of time
        columns = (column[order] for column in (c.s, c.p, c.o, c.t))
        many += sum(map(len, engine.push_batch(STREAMS[name], *columns)))
    return many + sum(len(engine.end(STREAMS[name])) for name in read)


def _busiest(posts: bytes) -> int:
    """The user with most posts; of several, the first."""
    many = Counter(re.findall(rb"/user/u(\d+)> <[^>]*creator_of>", posts))
    return int(min(many, key=lambda user: (-many[user], int(user))))


def compared(folder: Path) -> list[tuple[str, Any, Any]]:
    """Name, what the original has, what is generated."""
    original = sample(folder)
    made = generated(original)
    one, other = shape(original), shape(made)
    rows = [(name, one.get(name, 0.0), other.get(name, 0.0)) for name in {**one, **other}]
    stores = [store_of([texts["static"]]) for texts in (original, made)]
    for query in LSBENCH:
        found = [answers(texts, store, query) for texts, store in zip((original, made), stores, strict=True)]
        rows.append((f"answers of {query.name}", found[0], found[1]))
    return rows


def table(rows: list[tuple[str, Any, Any]]) -> str:
    """The comparison as Markdown, distributions first."""
    lines = [
        f"| distribution | | mean | {' | '.join(f'{100 * q:g} %' for q in QUANTILES)} | number |",
        "|---|---|" + "--:|" * (len(QUANTILES) + 2),
    ]
    plain = []
    for name, one, other in rows:
        if not isinstance(one, dict):
            plain.append((name, one, other))
            continue
        for label, side in (("original", one), ("generated", other)):
            cells = [f"{side['mean']:.2f}", *(f"{side[f'q{q:g}']:g}" for q in QUANTILES), f"{side['n']:,.0f}"]
            lines.append(f"| {name if label == 'original' else ''} | {label} | {' | '.join(cells)} |")
    lines += ["", "| | original | generated | ratio |", "|---|--:|--:|--:|"]
    for name, one, other in plain:
        form = "{:,}" if isinstance(one, int) else "{:.2f}"
        ratio = f"{other / one:.2f}" if one else "–"
        lines.append(f"| {name} | {form.format(one)} | {form.format(other)} | {ratio} |")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    data = os.environ.get("KELDA_DATA", str(ROOT.parent / "shared" / "data"))
    arguments.add_argument("--data", default=data, help="the folder with lsbench/ in it")
    arguments.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    chosen = arguments.parse_args()
    folder = Path(chosen.data) / "lsbench"
    if not (folder / "static.nt.gz").is_file():
        print(f"skipped: there is no sample of LSBench in {folder} (say --data, or set KELDA_DATA)")
        return
    rows = compared(folder)
    if chosen.json:
        print(json.dumps({name: {"original": one, "generated": other} for name, one, other in rows}))
    else:
        print(table(rows))
    if chosen.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
