"""The W3C SPARQL suites: syntax; one-shot, by Oxigraph and by our own operators, also over what was absorbed;
again with the data streamed in, through either evaluator; and updates. One test per case and way.

A case in the ignore list still runs and must still fail: whoever closes the gap hears of it here.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .ignored import IGNORED, IGNORED_BY_OPERATORS, IGNORED_STREAMED
from .results import Result
from .w3c import Case, Kind, available, cases, data_root
from .ways import (
    absorbed,
    by_operators,
    incremental,
    judge,
    judge_syntax,
    judge_update,
    one_shot,
    streamed,
    updated,
)

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not available(), reason=f"no W3C suites in {data_root()} (set KELDA_DATA)"),
]

IN_SCOPE = [case for case in cases() if case.out_of_scope is None]


def each(chosen: Callable[[Case], bool], ignored: dict[str, str]) -> list[object]:
    """Parameters, one id each; what is ignored is expected to fail."""
    return [
        pytest.param(
            case,
            id=case.id,
            marks=[pytest.mark.xfail(strict=True, reason=ignored[case.id])] if case.id in ignored else [],
        )
        for case in IN_SCOPE
        if chosen(case)
    ]


def check(case: Case, way: Callable[[Case], Result]) -> None:
    outcome = judge(case, way)
    assert outcome.ok, f"{case.id} ({case.query})\n{outcome.detail}"


def evaluates(case: Case) -> bool:
    return case.evaluates


@pytest.mark.parametrize("case", each(lambda case: case.parses, IGNORED))
def test_syntax(case: Case) -> None:
    outcome = judge_syntax(case)
    assert outcome.ok, f"{case.id}, a {case.kind.value} test\n{outcome.detail}\n{case.text()}"


@pytest.mark.parametrize("case", each(evaluates, IGNORED))
def test_one_shot(case: Case) -> None:
    check(case, one_shot)


@pytest.mark.parametrize("case", each(evaluates, IGNORED_BY_OPERATORS))
def test_by_operators(case: Case) -> None:
    check(case, by_operators)


@pytest.mark.parametrize("case", each(evaluates, IGNORED_BY_OPERATORS))
def test_absorbed(case: Case) -> None:
    check(case, absorbed)


@pytest.mark.parametrize("case", each(evaluates, IGNORED_STREAMED))
def test_streamed(case: Case) -> None:
    check(case, streamed)


@pytest.mark.parametrize("case", each(evaluates, IGNORED_STREAMED))
def test_incremental(case: Case) -> None:
    check(case, incremental)


@pytest.mark.parametrize("case", each(lambda case: case.kind is Kind.UPDATE, IGNORED))
def test_updated(case: Case) -> None:
    outcome = judge_update(case, updated)
    assert outcome.ok, f"{case.id} ({case.query})\n{outcome.detail}"


@pytest.mark.parametrize(
    "ignored",
    [IGNORED, IGNORED_BY_OPERATORS, IGNORED_STREAMED],
    ids=["one-shot", "by operators", "streamed"],
)
def test_the_ignore_list_names_real_cases(ignored: dict[str, str]) -> None:
    assert not set(ignored) - {case.id for case in IN_SCOPE}
    assert all(ignored.values()), "every ignored case has its reason"
