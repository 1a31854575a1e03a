"""Many threads on one engine: answers as if somebody had called one after the other."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest

import kelda
from kelda.errors import UsageError
from kelda.io.elements import unpack
from kelda.io.job import StreamSource
from kelda.io.payload import quads_of
from kelda.io.sources import PushReader, open_reader

S = "http://ex/s"
LAST_3S = "SELECT ?x ?y { STREAM <http://ex/s> [RANGE 3s] { ?x <http://ex/p> ?y } }"
NOW = "SELECT ?x ?y { STREAM <http://ex/s> [NOW] { ?x <http://ex/p> ?y } }"
CASES = int(os.environ.get("KELDA_CASES", "4"))


def triple(thread: object, number: object) -> str:
    return f"<http://ex/t{thread}> <http://ex/p> <http://ex/n{number}> ."


def together(*works: Callable[[], None]) -> None:
    """Run each in a thread of its own, begun at once; raises what one of them raised."""
    begin = threading.Barrier(len(works))
    errors: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        begin.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


def pairs(answers: list[kelda.Answer]) -> Counter[tuple[str, str]]:
    return Counter((a.bindings["x"].value, a.bindings["y"].value) for a in answers if a.bindings)  # type: ignore[union-attr]


def test_each_event_without_a_time_is_answered_once_in_the_order_of_its_thread() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(NOW, output="istream")

    def pusher(thread: int) -> Callable[[], None]:
        return lambda: [stream.push(triple(thread, number)) for number in range(300)] and None

    together(*map(pusher, range(4)))
    answers = list(query.results())
    assert len(answers) == 1200
    assert set(pairs(answers).values()) == {1}
    assert engine.late == {S: 0}
    times = [a.time for a in answers]
    assert times == sorted(set(times))  # each event has an instant of its own
    for thread in range(4):
        mine = [y for (x, y) in pairs(answers) if x == f"http://ex/t{thread}"]
        assert mine == [f"http://ex/n{number}" for number in range(300)]


@pytest.mark.parametrize("case", range(CASES))
def test_any_interleaving_gives_the_answers_of_one_caller(case: int) -> None:
    """With a lateness that lets all of it in, the law says: any order of arrival gives the same answers."""
    seed = case if "KELDA_RANDOM" not in os.environ else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    threads = [
        [(chance.randrange(4000), triple(t, chance.randrange(6))) for _ in range(60)] for t in range(5)
    ]

    def answers(run: Callable[[kelda.Stream], None]) -> list[tuple[object, ...]]:
        engine = kelda.connect()
        stream = engine.stream(S, lateness=4000)
        queries = [engine.register(text, name=name) for name, text in (("a", LAST_3S), ("b", NOW))]
        run(stream)
        engine.stop()
        assert engine.late == {S: 0}
        said = [[(a.query, a.time, a.sign, str(a.bindings)) for a in q.results()] for q in queries]
        for mine in said:
            assert [t for _, t, _, _ in mine] == sorted(t for _, t, _, _ in mine)
        return sorted(line for mine in said for line in mine)

    def one_caller(stream: kelda.Stream) -> None:
        for mine in threads:
            for at, text in mine:
                stream.push(text, time=at)

    def many(stream: kelda.Stream) -> None:
        def pusher(mine: list[tuple[int, str]]) -> Callable[[], None]:
            return lambda: [stream.push(text, time=at) for at, text in mine] and None

        together(*map(pusher, threads))

    assert answers(many) == answers(one_caller)


def test_queries_come_and_go_while_others_push_read_load_and_ask(tmp_path) -> None:
    stored = tmp_path / "stored.nt"
    stored.write_text("<http://ex/t0> <http://ex/is> <http://ex/known> .\n")
    engine = kelda.connect()
    stream, lasting = engine.stream(S), engine.register(NOW, name="lasting", output="istream")
    read: list[kelda.Answer] = []

    def pusher(thread: int) -> Callable[[], None]:
        return lambda: [stream.push(triple(thread, number)) for number in range(100)] and None

    def come_and_go() -> None:
        for _ in range(15):
            with engine.register(LAST_3S) as query:
                query.pause()
                query.resume()
                assert "runs" in query.explain()
                list(query.results())

    def load_and_ask() -> None:
        for _ in range(15):
            engine.load(stored)
            assert engine.query("ASK { ?s <http://ex/is> ?o }") is True
            assert repr(engine) and engine.memory and engine.late == {S: 0} and engine.queries

    def reader() -> None:
        for _ in range(2000):
            read.extend(lasting.results())

    together(pusher(0), pusher(1), come_and_go, come_and_go, load_and_ask, reader, reader)
    read.extend(lasting.results())
    assert pairs(read) == {(f"http://ex/t{t}", f"http://ex/n{n}"): 1 for t in (0, 1) for n in range(100)}
    assert engine.queries == [lasting]


def test_callbacks_are_told_in_order_and_one_at_a_time() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(NOW, output="istream")
    told: list[int] = []
    inside = threading.Lock()

    def tell(answer: kelda.Answer) -> None:
        assert inside.acquire(blocking=False), "two at a time"
        told.append(answer.time)
        inside.release()

    query.subscribe(tell)

    def pusher(thread: int) -> Callable[[], None]:
        return lambda: [stream.push(triple(thread, number)) for number in range(200)] and None

    together(*map(pusher, range(3)))
    assert len(told) == 600
    assert told == sorted(set(told))


def test_a_callback_may_push_and_what_it_makes_comes_after_what_was_there() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(NOW, output="istream")
    told: list[str] = []

    def copy(answer: kelda.Answer) -> None:
        assert answer.bindings is not None
        who = answer.bindings["x"].value.removeprefix("http://ex/t")  # type: ignore[union-attr]
        told.append(who)
        if not who.startswith("copy"):
            stream.push(triple(f"copy-of-{who}", 1))

    query.subscribe(copy)
    stream.push(triple(1, 1) + triple(2, 1))
    assert sorted(told[:2]) == ["1", "2"]
    assert told[2:] == [f"copy-of-{who}" for who in told[:2]]


def test_a_callback_may_wait_for_a_thread_that_pushes() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(NOW, output="istream")
    told: list[str] = []

    def wait(answer: kelda.Answer) -> None:
        told.append(answer.bindings["y"].value)  # type: ignore[index, union-attr]
        if len(told) == 1:
            together(lambda: stream.push(triple(0, 2)))  # ends while this callback runs

    query.subscribe(wait)
    together(lambda: stream.push(triple(0, 1)))
    assert told == ["http://ex/n1", "http://ex/n2"]


def test_callbacks_that_are_too_slow_stop_the_input_not_the_memory() -> None:
    engine = kelda.connect(max_unread=10)
    stream, query = engine.stream(S), engine.register(NOW, output="istream")
    entered, leave = threading.Event(), threading.Event()

    def slow(answer: kelda.Answer) -> None:
        entered.set()
        assert leave.wait(30)

    query.subscribe(slow)

    def hasty() -> None:
        assert entered.wait(30)
        with pytest.raises(UsageError, match="11 answers wait for callbacks"):
            for number in range(100):
                stream.push(triple(1, number))
        leave.set()

    together(lambda: stream.push(triple(0, 0)), hasty)
    stream.push(triple(2, 2))


def test_a_closed_engine_takes_nothing_of_any_thread() -> None:
    engine = kelda.connect()
    stream, query = engine.stream(S), engine.register(NOW, output="istream")
    taken: list[int] = []

    def pusher(thread: int) -> Callable[[], None]:
        def push() -> None:
            with pytest.raises(UsageError, match="closed"):
                for number in range(100_000):
                    stream.push(triple(thread, number))
                    taken.append(number)

        return push

    def close() -> None:
        while len(taken) < 20:
            time.sleep(0.001)
        engine.stop()

    together(pusher(0), pusher(1), close)
    assert len(list(query.results())) == len(taken)


def test_events_without_a_time_pushed_on_a_spooled_stream_are_never_late(tmp_path) -> None:
    """They get their times in the order in which they are written, whatever the wall clock says."""
    reader = open_reader("push:", StreamSource(S, "push:", "tsnt"), 0, spool=tmp_path)
    assert isinstance(reader, PushReader)
    event = kelda.Event(None, quads_of(triple(0, 0)))

    def push() -> None:
        for _ in range(100):
            reader.push(event)

    together(push, push, push)
    begin = reader.start()
    pieces = [piece.loaded().chunk for piece in reader.pieces(begin, reader.latest(begin, 1000))]
    times = [time for chunk in pieces if chunk for time in unpack(chunk.data)[0].time.tolist()]
    assert len(times) == 300
    assert times == sorted(times)
    reader.close()
