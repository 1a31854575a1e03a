"""LSBench-shaped queries on the incremental engine, one core: triples per CPU-second.

Data are made here, in LSBench's vocabulary: posts with hash tags, likes, photos with user tags, and
stored friendships. Each query is measured with windows of 100 and of 1,000 triples, beside the figures of
the original CQELS engine: from files, as a user runs it (`kelda.connect()`), and from encoded columns, by the
evaluator alone, which nobody but a benchmark has at hand: what is left when nothing is read or handed out.

    python -m bench.lsbench [--triples 1000000] [--queries Q1,Q4]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import kelda
from bench.harness.stores import store_of
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.rdf import ntriples

SIB, VOC = "http://www.ins.cwi.nl/sib/", "http://www.ins.cwi.nl/sib/vocabulary/"
SIOC, FOAF, DC = "http://rdfs.org/sioc/ns#", "http://xmlns.com/foaf/0.1/", "http://purl.org/dc/"
USERS, TAGS = 1000, 2000
BATCH = 1 << 20

PREFIXES = f"PREFIX sioc: <{SIOC}> PREFIX foaf: <{FOAF}> PREFIX voc: <{VOC}> PREFIX user: <{SIB}user/> "
QUERIES = {
    "Q1": "SELECT ?p ?o { STREAM <urn:post> [TRIPLES N] { user:u7 ?p ?o } }",
    "Q2": """SELECT ?u ?post { STREAM <urn:post> [TRIPLES N] { ?u sioc:creator_of ?post }
             ?u sioc:account_of <urn:person7> }""",
    "Q3": """SELECT ?f ?post { user:u7 foaf:knows ?f
             STREAM <urn:post> [TRIPLES N] { ?f sioc:creator_of ?post } }""",
    "Q4": """SELECT ?u ?a ?b ?tag { STREAM <urn:post> [TRIPLES N] {
             ?u sioc:creator_of ?a . ?a voc:hashtag ?tag .
             ?u sioc:creator_of ?b . ?b voc:hashtag ?tag } FILTER(?a != ?b) }""",
    "Q5": """SELECT ?photo ?a ?b { STREAM <urn:photo> [TRIPLES N] { ?photo voc:usertag ?a }
             STREAM <urn:like> [TRIPLES N] { ?b voc:like ?photo } ?a foaf:knows ?b }""",
    "Q6": """SELECT ?u ?post ?b ?place { STREAM <urn:post> [TRIPLES N] { ?u sioc:creator_of ?post }
             STREAM <urn:like> [TRIPLES N] { ?b voc:like ?post }
             ?u foaf:knows ?b . ?b foaf:based_near ?place }""",
    "Q10": """SELECT ?tag (COUNT(*) AS ?n) { STREAM <urn:post> [TRIPLES N] { ?p voc:hashtag ?tag } }
              GROUP BY ?tag""",
}
CQELS = {  # triples per CPU-second of the original engine, windows of 100 and 1,000
    "Q1": (108_000, 108_000),
    "Q2": (98_000, 23_000),
    "Q3": (95_000, 27_000),
    "Q4": (35_000, 4_600),
    "Q5": (16_000, 3_200),
    "Q6": (8_000, 2_300),
    "Q10": (21_000, 4_700),
}


def stored(rng: np.random.Generator) -> bytes:
    """Friendships (20 a user, skewed), accounts, places; as N-Triples."""
    lines = []
    for u in range(USERS):
        lines.append(f"<{SIB}user/u{u}> <{SIOC}account_of> <urn:person{u}> .")
        lines.append(f"<{SIB}user/u{u}> <{FOAF}based_near> <urn:place{u % 50}> .")
        for f in set(_skewed(rng, USERS, 0.3, 20).tolist()):
            lines.append(f"<{SIB}user/u{u}> <{FOAF}knows> <{SIB}user/u{f}> .")
    return "\n".join(lines).encode()


def texts(rng: np.random.Generator, triples: int, streams: tuple[str, ...]) -> dict[str, bytes]:
    """The streams of a query, with about `triples` triples in all, in steps of time."""
    each = triples // len(streams)
    makers = {"urn:post": _posts, "urn:like": _likes, "urn:photo": _photos}
    return {s: makers[s](rng, each, "photo" if "urn:photo" in streams else "post") for s in streams}


def _skewed(rng: np.random.Generator, size: int, exponent: float, shape: int | tuple[int, ...]) -> np.ndarray:
    """Numbers below `size` by a power law. LSBench's own data: users post about equally often, and the
    most frequent tag has 7 % of all tags."""
    weights = 1 / (np.arange(size) + 2.0) ** exponent
    return np.searchsorted(np.cumsum(weights) / weights.sum(), rng.random(shape))


def _posts(rng: np.random.Generator, triples: int, _: str) -> bytes:
    posts = triples // 12
    users, tags = _skewed(rng, USERS, 0.2, posts), _skewed(rng, TAGS, 1.0, (posts, 3))
    lines = []
    for i in range(posts):
        t, post = 1_000 + 12 * i, f"<{SIB}post/po{i}>"
        lines.append(
            f"{t}\t{post} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{VOC}Post> .\n"
            f"{t}\t{post} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{SIOC}Post> .\n"
            f'{t}\t{post} <{DC}terms/title> "null" .\n'
            f'{t}\t{post} <{DC}elements/1.1/created> "2010-02-01T03:33:28Z"'
            "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
            f'{t}\t{post} <{VOC}browser> "Internet Explorer" .\n'
            f'{t}\t{post} <{SIOC}ip_address> "80.71.{i % 250}.10" .\n'
            f'{t}\t{post} <{SIOC}content> "About the fourth album, number {i % 997}, and what it sold" .\n'
            f"{t}\t<{SIB}forum/fo{users[i]}> <{SIOC}container_of> {post} .\n"
            f"{t}\t<{SIB}user/u{users[i]}> <{SIOC}creator_of> {post} .\n"
            f'{t}\t{post} <{VOC}hashtag> "tag{tags[i, 0]}" .\n'
            f'{t}\t{post} <{VOC}hashtag> "tag{tags[i, 1]}" .\n'
            f'{t}\t{post} <{VOC}hashtag> "tag{tags[i, 2]}" .\n'
        )
    return "".join(lines).encode()


def _likes(rng: np.random.Generator, triples: int, of: str) -> bytes:
    users = _skewed(rng, USERS, 0.2, triples)
    back = np.minimum(rng.zipf(1.5, triples), 50) - 1
    per = 12 if of == "post" else 6
    things = np.maximum(np.arange(triples) // per - back, 0)
    kind = "post/po" if of == "post" else "photo/pho"
    return "".join(
        f"{1_000 + i}\t<{SIB}user/u{u}> <{VOC}like> <{SIB}{kind}{x}> .\n"
        for i, (u, x) in enumerate(zip(users.tolist(), things.tolist(), strict=True))
    ).encode()


def _photos(rng: np.random.Generator, triples: int, _: str) -> bytes:
    users = _skewed(rng, USERS, 0.2, (triples // 6, 2))
    lines = []
    for i in range(triples // 6):
        t, photo = 1_000 + 6 * i, f"<{SIB}photo/pho{i}>"
        lines.append(
            f"{t}\t{photo} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{VOC}Photo> .\n"
            f"{t}\t{photo} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{SIOC}Item> .\n"
            f'{t}\t{photo} <http://dbpedia.org/ontology/location> "Hebi" .\n'
            f"{t}\t<{SIB}user/u{users[i, 0]}> <{SIOC}creator_of> {photo} .\n"
            f"{t}\t{photo} <{VOC}usertag> <{SIB}user/u{users[i, 0]}> .\n"
            f"{t}\t{photo} <{VOC}usertag> <{SIB}user/u{users[i, 1]}> .\n"
        )
    return "".join(lines).encode()


def blocks(data: dict[str, bytes]) -> list[tuple[str, bytes]]:
    """The streams side by side, in blocks of text that go forward in time together."""
    cut: dict[str, list[bytes]] = {}
    pieces = max(1, max(len(d) for d in data.values()) // BATCH)
    for name, text in data.items():
        at, parts = 0, []
        for i in range(pieces):
            end = len(text) if i == pieces - 1 else text.find(b"\n", len(text) * (i + 1) // pieces) + 1
            parts.append(text[at:end])
            at = end
        cut[name] = parts
    return [(name, cut[name][i]) for i in range(pieces) for name in data]


def from_files(
    register: Callable[[kelda.Engine], object], known: bytes, data: dict[str, bytes]
) -> tuple[float, float, int]:
    """What a user gets: CPU seconds to register, triples per CPU-second from files, and how many answers."""
    registering, rate, answers = 0.0, 0.0, 0
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        (folder / "stored.nt").write_bytes(known)
        for part in (8, 1):  # the first run compiles and touches memory
            with kelda.connect(fixed_graphs=True) as engine:
                for number, (stream, text) in enumerate(data.items()):
                    path = folder / f"{number}-{part}.tsnt"
                    path.write_bytes(text[: text.rfind(b"\n", 0, len(text) // part) + 1])
                    engine.stream(stream, str(path))
                engine.load(folder / "stored.nt")
                begin = time.process_time()
                register(engine)
                registering = time.process_time() - begin
                begin = time.process_time()
                engine.start()
                engine.wait()
                rate = engine.figures.events / (time.process_time() - begin)
                answers = engine.figures.answers
    return registering, rate, answers


def from_columns(query: A.Query, known: bytes, data: list[tuple[str, bytes]]) -> tuple[float, int]:
    """The evaluator alone: triples per CPU-second, and how many there are."""
    store = store_of([known])
    streams = list(dict.fromkeys(stream for stream, _ in data))
    rate, total = 0.0, 0
    for some in (data[: 2 * len(streams)], data):
        engine = IncrementalEvaluator(store=store)
        for stream in streams:
            engine.add_stream(stream, from_start=True)
        engine.register("q", query)
        assert not engine.reasons, engine.reasons
        columns = [(stream, ntriples.read(text, engine.dictionary, timed=True)) for stream, text in some]
        total = sum(len(c) for _, c in columns)
        begin = time.process_time()
        for stream, c in columns:
            assert c.t is not None
            engine.push_batch(stream, c.s, c.p, c.o, c.t)
        rate = total / (time.process_time() - begin)
    return rate, total


def measure(name: str, window: int, triples: int, seed: int = 1) -> dict[str, object]:
    """One query with one window size: rates from files and from columns, and how many answers."""
    text = PREFIXES + QUERIES[name].replace("[TRIPLES N]", f"[TRIPLES {window}]")
    query = parse(text)
    streams = tuple(dict.fromkeys(w.stream.value for w in query.windows))
    rng = np.random.default_rng(seed)
    known, data = stored(rng), texts(rng, triples, streams)
    _, rate, answers = from_files(lambda engine: engine.register(text), known, data)
    encoded, total = from_columns(query, known, blocks(data))
    rates = {"text": rate, "encoded": encoded}
    return {"query": name, "window": window, "triples": total, "answers": answers, **rates}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--triples", type=int, default=1_000_000)
    arguments.add_argument("--queries", default=",".join(QUERIES))
    chosen = arguments.parse_args()
    rows = []
    print(
        f"{'query':6}{'window':>7}{'text/s':>12}{'encoded/s':>12}{'answers':>10}{'CQELS/s':>10}{'times':>8}"
    )
    for name in chosen.queries.split(","):
        for i, window in enumerate((100, 1000)):
            row = measure(name, window, chosen.triples)
            row["cqels"] = CQELS[name][i]
            rows.append(row)
            print(
                f"{name:6}{window:>7}{row['text']:>12,.0f}{row['encoded']:>12,.0f}{row['answers']:>10,}"
                f"{CQELS[name][i]:>10,}{row['text'] / CQELS[name][i]:>8.0f}",
                flush=True,
            )
    print(json.dumps({"benchmark": "lsbench", "triples_per_cpu_second": rows}))


if __name__ == "__main__":
    main()
