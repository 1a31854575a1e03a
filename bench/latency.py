"""Latency of a step: six LSBench queries as Wukong+S runs them, windows of 1 s that move on every 100 ms.

Each step pushes 100 ms of encoded rows and takes one report out. L1 to L3 are selective; L4 to L6 have
answers that grow with the data. L1 and L4 read streams alone, the others stored data too. One query at a
time, one core. Every query is measured with its whole answer sent at each step (what Wukong+S computes)
and with what is new alone. Rows are ids already, which only the evaluator takes: text is `bench.lsbench`'s.

    python -m bench.latency [--rate 50000] [--steps 300] [--queries L1,L4] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import io
import json
import pstats
import time
from dataclasses import dataclass

import numpy as np
from pyoxigraph import Literal, NamedNode

from bench.harness.stores import store_of
from bench.lsbench import FOAF, SIB, SIOC, TAGS, VOC, _skewed
from kelda.engine.incremental import IncrementalEvaluator
from kelda.lang import algebra as A
from kelda.lang import parse
from kelda.rdf.dictionary import Dictionary
from kelda.store.store import Store

STEP, RANGE = 100, 1000  # milliseconds
WARM = 30  # steps before measuring: three windows
FRIENDS, SUBSCRIPTIONS, FORUMS, POSTERS = 20, 2, 1000, 1000

Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # s, p, o, time

# Wukong+S, table 2: milliseconds, median of 100 runs. One node with two Xeon E5-2650 v4, one core a query,
# 118 million stored triples, 133,000 triples a second on five streams.
WUKONG = {"L1": 0.13, "L2": 0.10, "L3": 0.13, "L4": 1.19, "L5": 2.89, "L6": 2.14}

# The share of each stream in a query's rate, as the streams' default rates are in the paper.
SHARES: dict[str, dict[str, float]] = {
    "L1": {"post": 10, "gps": 20},
    "L2": {"post": 1},
    "L3": {"post": 1},
    "L4": {"post": 1},
    "L5": {"photo": 10, "photolike": 7.5},
    "L6": {"post": 10, "postlike": 86},
}
PATTERNS = {
    "L1": "{ { WINDOW :post { user:u7 ?p ?o } } UNION { WINDOW :gps { user:u7 ?p ?o } } }",
    "L2": "{ ?user sioc:account_of <urn:person7> . WINDOW :post { ?user sioc:creator_of ?post } }",
    "L3": """{ ?user sioc:account_of <urn:person7> . ?user foaf:knows ?friend .
               WINDOW :post { ?friend sioc:creator_of ?post } }""",
    "L4": """{ WINDOW :post { ?user sioc:creator_of ?a . ?a voc:hashtag ?tag .
                              ?user sioc:creator_of ?b . ?b voc:hashtag ?tag } FILTER(?a != ?b) }""",
    "L5": """{ WINDOW :photo { ?photo voc:usertag ?tagged } ?tagged foaf:knows ?friend .
               WINDOW :photolike { ?friend voc:like ?photo } }""",
    "L6": """{ WINDOW :post { ?forum sioc:container_of ?post } ?user sioc:subscriber_of ?forum .
               ?user foaf:knows ?friend . WINDOW :postlike { ?friend voc:like ?post } }""",
}


def query(name: str) -> A.Query:
    """The query, over a window on each of its streams."""
    windows = "".join(f"FROM NAMED WINDOW :{s} ON <urn:{s}> [RANGE PT1S STEP PT0.1S] " for s in SHARES[name])
    prefixes = (
        f"PREFIX : <urn:window:> PREFIX sioc: <{SIOC}> PREFIX foaf: <{FOAF}> "
        f"PREFIX voc: <{VOC}> PREFIX user: <{SIB}user/> "
    )
    return parse(f"{prefixes} REGISTER RSTREAM <urn:out> AS SELECT * {windows} WHERE {PATTERNS[name]}")


@dataclass
class Network:
    """The stored social network, and who befriends whom as numbers."""

    store: Store
    friends: np.ndarray  # (users, FRIENDS)


def network(rng: np.random.Generator, users: int) -> Network:
    friends = rng.integers(0, users, (users, FRIENDS))
    forums = rng.integers(0, FORUMS, (users, SUBSCRIPTIONS))
    lines = []
    for u in range(users):
        user = f"<{SIB}user/u{u}>"
        lines.append(f"{user} <{SIOC}account_of> <urn:person{u}> .\n")
        lines += (f"{user} <{FOAF}knows> <{SIB}user/u{f}> .\n" for f in friends[u].tolist())
        lines += (f"{user} <{SIOC}subscriber_of> <{SIB}forum/fo{f}> .\n" for f in forums[u].tolist())
    return Network(store_of(["".join(lines).encode()]), friends)


class Rows:
    """Makes the streams, 100 ms at a time, as ids."""

    def __init__(self, dictionary: Dictionary, friends: np.ndarray, rng: np.random.Generator) -> None:
        self.friends, self.rng, self.made, self.dictionary = friends, rng, 0, dictionary

        def ids(*names: str) -> np.ndarray:
            return np.array([dictionary.encode(NamedNode(n)) for n in names], np.int64)

        self.users = ids(*(f"{SIB}user/u{u}" for u in range(len(friends))))
        self.forums = ids(*(f"{SIB}forum/fo{f}" for f in range(FORUMS)))
        self.tags = np.array([dictionary.encode(Literal(f"hash tag {i}")) for i in range(TAGS)], np.int64)
        self.creator, self.container = ids(f"{SIOC}creator_of", f"{SIOC}container_of")
        self.hashtag, self.usertag, self.like = ids(f"{VOC}hashtag", f"{VOC}usertag", f"{VOC}like")
        self.tracked = ids(f"{VOC}trackedAt")[0]
        self.other = ids(*(f"urn:property{i}" for i in range(7)))
        self.things = np.zeros(0, np.int64)  # the last second's, to be liked
        self.tagged = np.zeros(0, np.int64)

    def make(self, stream: str, begin: int, triples: int) -> Columns:
        s, p, o, per = getattr(self, f"_{stream}")(triples)
        when = begin + np.arange(len(s)) // per * per * STEP // max(len(s), 1)
        when[-per:] = begin + STEP - 1  # all streams come equally far, so that a step is one report
        return s, p, o, when

    def _new(self, many: int) -> np.ndarray:
        self.made += many
        names = (NamedNode(f"{SIB}thing/{i}") for i in range(self.made - many, self.made))
        return np.array([self.dictionary.encode(name) for name in names], np.int64)

    def _remember(self, things: np.ndarray, tagged: np.ndarray) -> None:
        self.things = np.concatenate([self.things, things])[-8 * len(things) :]
        self.tagged = np.concatenate([self.tagged, tagged])[-8 * len(things) :]

    def _post(self, triples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Twelve triples each: creator, forum, three tags, seven that no query asks for."""
        posts = self._new(triples // 12)
        by = _skewed(self.rng, POSTERS, 0.2, len(posts))
        tags = self.tags[_skewed(self.rng, TAGS, 1.0, (len(posts), 3))]
        self._remember(posts, by)
        s, o = np.repeat(posts[:, None], 12, axis=1), np.repeat(self.tags[:12][None], len(posts), axis=0)
        p = np.empty_like(s)
        p[:, :7], p[:, 7], p[:, 8], p[:, 9:] = self.other, self.container, self.creator, self.hashtag
        s[:, 7], o[:, 7] = self.forums[by % FORUMS], posts
        s[:, 8], o[:, 8] = self.users[by], posts
        o[:, 9:] = tags
        return s.ravel(), p.ravel(), o.ravel(), 12

    def _photo(self, triples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Six triples each: creator, two people in the picture, three that no query asks for."""
        photos = self._new(triples // 6)
        on = self.rng.integers(0, len(self.users), (len(photos), 2))
        self._remember(photos, on[:, 0])
        s, o = np.repeat(photos[:, None], 6, axis=1), np.repeat(self.tags[:6][None], len(photos), axis=0)
        p = np.empty_like(s)
        p[:, :3], p[:, 3], p[:, 4:] = self.other[:3], self.creator, self.usertag
        s[:, 3], o[:, 3] = self.users[on[:, 0]], photos
        o[:, 4:] = self.users[on]
        return s.ravel(), p.ravel(), o.ravel(), 6

    def _likes(self, triples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Things of the last second, liked by a friend of whom they are about every second time."""
        what = self.rng.integers(0, len(self.things), triples)
        friend = self.friends[self.tagged[what], self.rng.integers(0, FRIENDS, triples)]
        anyone = self.rng.integers(0, len(self.users), triples)
        by = np.where(self.rng.random(triples) < 0.5, friend, anyone)
        return self.users[by], np.full(triples, self.like), self.things[what], 1

    _postlike = _photolike = _likes

    def _gps(self, triples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Five triples each: who, and four about the place."""
        seen = self._new(triples // 5)
        who = self.users[self.rng.integers(0, len(self.users), len(seen))]
        s, o = np.repeat(seen[:, None], 5, axis=1), np.repeat(self.tags[:5][None], len(seen), axis=0)
        p = np.repeat(self.other[:5][None], len(seen), axis=0)
        s[:, 0], p[:, 0], o[:, 0] = who, self.tracked, seen
        return s.ravel(), p.ravel(), o.ravel(), 5


def measure(
    name: str,
    output: A.Output,
    known: Network,
    rate: int,
    steps: int,
    profile: cProfile.Profile | None = None,
) -> dict[str, object]:
    """One query: time per step."""
    engine = IncrementalEvaluator(store=known.store)
    shares = SHARES[name]
    for stream in shares:
        engine.add_stream(f"urn:{stream}", from_start=True)
    engine.register("q", query(name), output=output)
    assert not engine.reasons, engine.reasons
    rows = Rows(engine.dictionary, known.friends, np.random.default_rng(1))
    each = {s: int(rate * STEP / 1000 * share / sum(shares.values())) for s, share in shares.items()}
    wall, cpu, answers, triples = [], [], 0, 0
    for i in range(WARM + steps):
        input = [(f"urn:{s}", rows.make(s, 1000 + i * STEP, n)) for s, n in each.items()]
        if profile is not None and i >= WARM:
            profile.enable()
        begin, busy = time.perf_counter(), time.process_time()
        sent = [b for stream, columns in input for b in engine.push_batch(stream, *columns)]
        spent, used = time.perf_counter() - begin, time.process_time() - busy
        if profile is not None:
            profile.disable()
        if i >= WARM:
            wall.append(spent * 1000)
            cpu.append(used * 1000)
            answers += sum(map(len, sent))
            triples += sum(len(c[0]) for _, c in input)
    return {
        "query": name,
        "output": output.name.lower(),
        "median_ms": float(np.median(wall)),
        "p99_ms": float(np.percentile(wall, 99)),
        "cpu_ms": float(np.median(cpu)),
        "triples_per_step": triples // steps,
        "answers_per_step": answers / steps,
    }


def top(profile: cProfile.Profile, steps: int, many: int = 14) -> str:
    """Where the time of a step goes: own time per step, in microseconds."""
    stats = pstats.Stats(profile, stream=io.StringIO())
    entries = sorted(stats.stats.items(), key=lambda e: -e[1][2])[:many]  # type: ignore[attr-defined]
    lines = [f"{'us/step':>10}{'calls':>8}  function"]
    for (file, line, function), (_, calls, own, _, _) in entries:
        place = f"{file.rsplit('/', 1)[-1]}:{line} " if line else ""
        lines.append(f"{own / steps * 1e6:>10.1f}{calls / steps:>8.1f}  {place}{function}")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument(
        "--rate", type=int, default=50_000, help="triples per second, all streams of a query"
    )
    arguments.add_argument("--steps", type=int, default=300)
    arguments.add_argument("--users", type=int, default=10_000, help="users in the stored network")
    arguments.add_argument("--queries", default=",".join(PATTERNS))
    arguments.add_argument("--profile", action="store_true", help="show where a step's time goes")
    chosen = arguments.parse_args()
    known = network(np.random.default_rng(0), chosen.users)
    stored = len(known.store.view())
    print(f"{chosen.rate:,} triples/s, {stored:,} stored triples, {chosen.steps} steps of {STEP} ms")
    print(
        f"{'query':6}{'output':>9}{'median ms':>11}{'p99 ms':>9}{'CPU ms':>9}{'answers':>9}{'Wukong+S':>10}"
    )
    found = []
    for name in chosen.queries.split(","):
        for output in (A.Output.RSTREAM, A.Output.ISTREAM):
            measure(name, output, known, chosen.rate, 20)  # compiles and touches memory
            row = measure(name, output, known, chosen.rate, chosen.steps)
            row["wukong_ms"] = WUKONG[name]
            found.append(row)
            print(
                f"{name:6}{row['output']:>9}{row['median_ms']:>11.2f}{row['p99_ms']:>9.2f}{row['cpu_ms']:>9.2f}"
                f"{row['answers_per_step']:>9.1f}{WUKONG[name]:>10.2f}",
                flush=True,
            )
            if chosen.profile:
                profile = cProfile.Profile()
                measure(name, output, known, chosen.rate, chosen.steps, profile)
                print(top(profile, chosen.steps), flush=True)
    print(json.dumps({"benchmark": "latency", "rate": chosen.rate, "milliseconds_per_step": found}))


if __name__ == "__main__":
    main()
