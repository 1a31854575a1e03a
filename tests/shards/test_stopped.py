"""A query that fails on one shard is stopped on all of them, also when they have stood up again."""

from __future__ import annotations

from kelda.engine.answer import Answer
from kelda.io.job import QuerySpec
from kelda.shards.catalog import Drop
from tests.engine.random_queries import STREAMS
from tests.engine.test_batching import bag
from tests.engine.test_stopped import breaking
from tests.shards.local import LocalShards
from tests.shards.worlds import PREFIX, event, local_shards

SPREAD = (
    PREFIX + "SELECT ?x ?y { STREAM :a [RANGE 9ms] { ?x :p ?y } OPTIONAL { STREAM :a [NOW] { ?x :q ?z } } }"
)
WHOLE = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 9ms] { ?x :p ?y } }"
NOW = PREFIX + "SELECT ?x ?now { STREAM :a [RANGE 9ms] { ?x :p 1 } BIND(NOW() AS ?now) }"


def local(**queries: str) -> LocalShards:
    made = local_shards(2)
    made.apply([made.planner.plan(QuerySpec(name, text)) for name, text in queries.items()])
    return made


def push(shards: LocalShards, first: int, last: int) -> list[Answer]:
    some = [event(t, f"n{t % 4}", "p", t % 3) for t in range(first, last)]
    return shards.push({STREAMS[0]: some}, heartbeats=dict.fromkeys(STREAMS, last - 1))


def stopped(shards: LocalShards) -> set[str]:
    return {name for shard in shards.shards for name in shard.evaluator.stopped}


def test_on_one_shard_and_so_on_all() -> None:
    broken = local(bad=SPREAD, count=WHOLE, good=SPREAD.replace("9ms", "8ms"), now=NOW)
    whole = local(count=WHOLE, good=SPREAD.replace("9ms", "8ms"), now=NOW)
    found = push(broken, 1, 5)
    assert {a.query for a in found} == {"bad", "count", "good", "now"}
    breaking(broken.shards[1].evaluator.network("bad").root, "advance")
    found += push(broken, 5, 9)
    assert max(a.time for a in found if a.query == "bad") == 4
    assert stopped(broken) == {"bad"} and "bad" not in broken.shards[0].evaluator.stopped
    for begin in (9, 13):
        broken.crash()
        found += push(broken, begin, begin + 4)
        assert stopped(broken) == {"bad"}
        assert broken.shards[1].evaluator.stopped["bad"].at == 4
    expected = push(whole, 1, 17)
    assert bag([a for a in found if a.query != "bad"]) == bag(expected)
    assert max(a.time for a in found if a.query == "bad") == 4


def test_it_can_be_registered_anew() -> None:
    broken = local(bad=SPREAD, now=NOW)
    push(broken, 1, 3)
    for shard in broken.shards:
        breaking(shard.evaluator.network("bad").root, "advance")
    assert {a.query for a in push(broken, 3, 5)} == {"now"}
    broken.crash()
    broken.apply([Drop("bad")])
    broken.apply([broken.planner.plan(QuerySpec("bad", SPREAD))])
    assert {a.query for a in push(broken, 5, 9)} == {"now", "bad"}
    broken.crash()
    assert stopped(broken) == set()
    assert {a.query for a in push(broken, 9, 13)} == {"now", "bad"}


def test_by_definition() -> None:
    broken = local(bad=NOW, good=NOW)
    push(broken, 1, 5)
    place = next(s for s in broken.shards if "bad" in s.evaluator.queries)
    breaking(place.evaluator.network("bad").definition, "result")
    found = push(broken, 5, 9)
    broken.crash()
    found += push(broken, 9, 13)
    assert {a.query for a in found} == {"good"} and stopped(broken) == {"bad"}
