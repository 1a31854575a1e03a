"""Where whole queries go."""

from __future__ import annotations

import pytest

from kelda.errors import UsageError
from kelda.io.job import QuerySpec, StreamSource
from kelda.shards.balance import STRATEGIES, balancer
from kelda.shards.planner import Planner
from kelda.shards.setup import Setup
from tests.engine.random_queries import STREAMS
from tests.shards.local import declare
from tests.shards.worlds import PREFIX


def test_rotation_goes_round() -> None:
    chosen = balancer("rotation", 3)
    placed: dict[str, int] = {}
    for i in range(7):
        placed[f"q{i}"] = chosen.place(f"q{i}", placed)
    assert list(placed.values()) == [0, 1, 2, 0, 1, 2, 0]
    del placed["q1"]
    assert chosen.place("next", placed) == 1, "where one has gone there is room"


def test_least_latency_and_smallest_buffers() -> None:
    for name, best in (("least-latency", 2), ("smallest-buffers", 1)):
        chosen = balancer(name, 3)
        assert chosen.place("q", {"p": 0}) == 1, "as long as nothing is known, the fewest queries"
        for shard, (seconds, held) in enumerate([(0.3, 300), (0.2, 100), (0.1, 200)]):
            chosen.load.told(shard, seconds, held)
        assert chosen.place("q", {"p": best}) == best


def test_latency_is_smoothed() -> None:
    load = balancer("least-latency", 2).load
    for _ in range(40):
        load.told(0, 1.0, 0)
    assert load.seconds[0] == pytest.approx(1.0, abs=0.01)
    load.told(0, 11.0, 0)
    assert load.seconds[0] == pytest.approx(3.0, abs=0.1), "one slow batch is not the end of the world"


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=f"{', '.join(STRATEGIES)}"):
        balancer("luck", 2)


def test_the_planner_asks_only_for_whole_queries() -> None:
    planner = Planner(Setup(shards=3), balancer("rotation", 3))
    declare(planner, [StreamSource(iri, "") for iri in STREAMS])
    texts = (
        "SELECT * {{ STREAM :a [RANGE {0}s] {{ ?x :p ?y }} }}",
        "ASK {{ STREAM :a [RANGE {0}s] {{ ?x :p 1 }} }}",
    )
    for i in range(6):
        op = planner.plan(QuerySpec(f"q{i}", PREFIX + texts[i % 2].format(i + 1)))
        assert (op.spread is None) == (i % 2 == 1)
        planner.route([op])
    assert planner.placed == {"q1": 0, "q3": 1, "q5": 2}
    assert "over 3 shards" in planner.explain("q0") and "(shard 1)" in planner.explain("q3")


@pytest.mark.parametrize("shards", [0, 64])
def test_the_number_of_shards_has_its_limits(shards: int) -> None:
    with pytest.raises(UsageError, match="1 to 63"):
        Planner(Setup(shards=shards))
