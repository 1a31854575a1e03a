"""The benchmark of formats, on a few readings: the same is said in each, and each is measured."""

from __future__ import annotations

import pytest

from bench.experiments import find
from bench.formats import ours, theirs
from bench.formats.readings import FORMATS, MAPPING, SENSORS, written
from kelda.rdf.framing import read_events

MANY = 1_200
TWO = ("madeBySensor", "hasSimpleResult")


def said(name: str) -> list[tuple[int | None, set[tuple[str, str, str]]]]:
    """Of each instant, what is said of sensors and values."""
    import yaml

    format = FORMATS[name]
    events = read_events(
        written(name, 50).encode(),
        format=format.kelda,
        mapping=yaml.safe_load(MAPPING) if format.mapped else None,
        on_reject=pytest.fail,
    )
    found: dict[int | None, set[tuple[str, str, str]]] = {}
    for event in events:
        for q in event.quads:
            if q.predicate.value.endswith(TWO):
                found.setdefault(event.time, set()).add(tuple(map(str, (q.subject, q.predicate, q.object))))
    return list(found.items())


@pytest.mark.parametrize("name", FORMATS)
def test_all_formats_say_the_same(name: str) -> None:
    assert said(name) == said("tsnt")
    assert all(len(triples) == 2 for _, triples in said(name))


@pytest.mark.parametrize("name", FORMATS)
def test_ours(name: str) -> None:
    found = ours.measure(name, MANY, repeats=1)
    assert found["triples"] == MANY * FORMATS[name].triples
    assert found["answers"] > SENSORS
    assert min(found["read_per_cpu_s"], found["answered_per_cpu_s"], found["written_per_cpu_s"]) > 0


@pytest.mark.parametrize(("who", "name"), theirs.cases())
def test_theirs(who: str, name: str) -> None:
    assert theirs.measure(who, name, MANY, repeats=1)["read_per_cpu_s"] > 0


def test_who_is_not_there_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MORPH_KGC", raising=False)
    monkeypatch.setattr(theirs.importlib.util, "find_spec", lambda name: None)
    assert theirs.cases() == []
    assert "duckdb (pip install duckdb)" in theirs.left_out() and "MORPH_KGC" in theirs.left_out()


def test_the_experiment() -> None:
    (experiment,) = find(["formats"])
    assert len(experiment.cases(False)) == len(FORMATS) + len(theirs.cases())
