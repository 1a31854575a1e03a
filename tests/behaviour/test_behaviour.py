"""The behaviour suite: every case on every runner."""

from __future__ import annotations

import pytest

from tests.behaviour.cases import CASES, Case
from tests.behaviour.runners import RUNNERS, Answers, show
from tests.behaviour.worlds import WORLDS


@pytest.fixture(scope="session")
def answers_on(tmp_path_factory: pytest.TempPathFactory):
    """All cases of a world run together, once for each runner."""
    done: dict[tuple[str, str], Answers] = {}

    def answers(runner: str, world: str) -> Answers:
        if (runner, world) not in done:
            cases = [c for c in CASES if c.world == world]
            folder = tmp_path_factory.mktemp(f"{runner}-{world}")
            done[runner, world] = RUNNERS[runner](WORLDS[world], cases, folder)
        return done[runner, world]

    return answers


RUNNER_PARAMS = [
    pytest.param(name, marks=pytest.mark.spark if name.startswith("spark") else ()) for name in RUNNERS
]


@pytest.mark.parametrize("runner", RUNNER_PARAMS)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_case(runner: str, case: Case, answers_on) -> None:
    expected = [line.strip() for line in case.expected.strip().splitlines()]
    assert show(answers_on(runner, case.world)[case.name]) == expected


def test_names_are_unique() -> None:
    assert len({c.name for c in CASES}) == len(CASES)
