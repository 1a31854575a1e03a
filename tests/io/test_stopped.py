"""What fails in one query is that query's trouble: its reader hears of it, nobody else does."""

from __future__ import annotations

from pathlib import Path

import pytest

import kelda
from kelda.engine.answer import Answer
from tests.engine.test_stopped import breaking

S = "http://ex/s"
ALL = "SELECT ?x { STREAM <http://ex/s> [NOW] { ?x ?p ?y } }"
COUNT = "SELECT (COUNT(*) AS ?n) { STREAM <http://ex/s> [NOW] { ?x ?p ?y } }"


def push(engine: kelda.Engine, *times: int) -> None:
    for time in times:
        engine.stream(S).push(f"<http://ex/a{time}> <http://ex/p> 1 .", time=time)
        engine.advance(time)


def test_the_reader_hears_of_it() -> None:
    with kelda.connect() as engine:
        bad, good = engine.register(COUNT, name="bad"), engine.register(ALL, name="good")
        push(engine, 1)
        assert bad.error is None
        breaking(engine._driver.levels.shards[0].evaluator.network("bad").root, "advance")
        push(engine, 2, 3)
        assert [a.time for a in bad.results()] == [1], "what it had answered can be read"
        with pytest.raises(kelda.QueryStopped, match=r"'bad' is stopped after .*: ValueError: broken"):
            list(bad.results())
        assert isinstance(bad.error, kelda.QueryStopped)
        assert "stopped after" in bad.explain()
        bad.pause()
        bad.resume()
        bad.stop()
        assert bad.error is not None, "also when it is dropped"
        again = engine.register(COUNT, name="bad")
        push(engine, 4)
        assert [a.time for a in again.results()] == [4] and again.error is None
        assert [a.time for a in good.results()] == [1, 2, 3, 4]


def test_a_callback_that_raises_is_its_querys_trouble() -> None:
    heard: list[tuple[str, int]] = []

    def hear(answer: Answer) -> None:
        heard.append((answer.query, answer.time))

    def raise_at_2(answer: Answer) -> None:
        hear(answer)
        if answer.time == 2:
            raise ValueError("no more")

    with kelda.connect() as engine:
        queries = {name: engine.register(ALL, name=name) for name in ("before", "bad", "after", "read")}
        for name in ("before", "after"):
            queries[name].subscribe(hear)
        queries["bad"].subscribe(raise_at_2)
        queries["bad"].subscribe(hear)
        push(engine, 1, 2, 3)
        for name in ("before", "after"):
            assert [t for whose, t in heard if whose == name] == [1, 2, 3]
        assert [t for whose, t in heard if whose == "bad"] == [1, 1, 2]
        assert [a.time for a in queries["read"].results()] == [1, 2, 3]
        error = queries["bad"].error
        assert error is not None and "its callback raised ValueError: no more" in str(error)
        assert isinstance(error.__cause__, ValueError)
        with pytest.raises(kelda.QueryStopped):
            list(queries["bad"].results())


def test_streams_by_address_are_read_to_their_ends_for_the_others(tmp_path: Path) -> None:
    file = tmp_path / "s.tsnt"
    file.write_text("".join(f"{t}\t<http://ex/a{t}> <http://ex/p> <http://ex/b> .\n" for t in range(1, 9)))
    with kelda.connect() as engine:
        engine.stream(S, str(file))
        bad, good = engine.register(COUNT, name="bad"), engine.register(ALL, name="good")
        breaking(engine._driver.levels.shards[0].evaluator.network("bad").root, "advance")
        engine.start()
        assert engine.wait(60)
        assert [a.time for a in good.results()] == list(range(1, 9))
        assert bad.error is not None and bad.error.exit_code == 7 and bad.state == "stopped"
        assert "'bad'" in str(bad.error)


def test_300_queries_joined_with_stored_data_are_few_networks(tmp_path: Path) -> None:
    """As through the evaluator by itself: one by itself (it came first), and one that the others share."""
    file = tmp_path / "follows.ttl"
    follows = [f"<http://ex/u{i}> <http://ex/follows> <http://ex/u{i + 1}> ." for i in range(300)]
    file.write_text("\n".join(follows))
    engine = kelda.connect()
    queries = []
    for i in range(300):
        text = (
            f"PREFIX : <http://ex/> SELECT ?who ?post {{ :u{i} :follows ?who "
            f"STREAM :s [RANGE {1 + i % 3}s] {{ ?who :posts ?post }} }}"
        )
        queries.append(engine.register(text, name=f"q{i}"))
        if i == 100:
            engine.load(file)
    assert len(engine._driver.levels.shards[0].evaluator.networks()) == 2
    engine.stream(S).push("<http://ex/u7> <http://ex/posts> <http://ex/p> .", time=1000)
    engine.stream(S).push("<http://ex/u200> <http://ex/posts> <http://ex/p> .", time=1001)
    engine.stop()
    assert [q.name for q in queries if q.unread] == ["q6", "q199"]
