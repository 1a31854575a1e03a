"""A short form of `make crash`: a few kills of each kind that one machine has, in one application."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash import load
from tests.crash.inprocess_rounds import INPROCESS, InProcessRounds
from tests.crash.rounds import Rounds


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_is_lost_and_nothing_doubled(tmp_path: Path) -> None:
    rounds = Rounds(("worker", "host", "driver"), 6, tmp_path, seconds=90, seed=7)
    rounds.run()
    assert rounds.done == 6 and rounds.starts == 2 + rounds.applications
    assert rounds.rebuilt > 0, "a shard that lost its host stands up"


@pytest.mark.slow
def test_an_engine_in_a_process_that_is_killed(tmp_path: Path) -> None:
    rounds = InProcessRounds((INPROCESS,), 3, tmp_path, seconds=60, seed=3)
    rounds.run()
    assert rounds.done == 3 and rounds.starts == 3 + rounds.applications


def test_differences_are_seen() -> None:
    wanted, found = load.bags_of({"q": ["a", "a", "b"]}), load.bags_of({"q": ["a", "b", "b"]})
    assert load.difference(wanted, wanted) == []
    assert load.difference(wanted, found) == ["doubled q 1 x b", "lost    q 1 x a"]
