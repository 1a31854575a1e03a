"""An evaluator to test the plumbing with: it reports what it was given, and when.

For each instant over all streams, once no stream can change it any more: how many elements it had.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable

from pyoxigraph import Literal, NamedNode

from kelda.engine.answer import Answer
from kelda.errors import UsageError
from kelda.rdf.event import Event
from kelda.runner.job import Job


class Counting:
    def __init__(self, streams: list[str]) -> None:
        self.late = dict.fromkeys(streams, 0)
        self.newest: dict[str, float] = {stream: float("-inf") for stream in streams}
        self.waiting: dict[int, int] = {}
        self.total = 0
        self.restored = 0

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]:
        for event in events:
            assert event.time is not None
            if event.time < self.newest[stream]:
                self.late[stream] += 1
                continue
            if event.quads[0].object == Literal("fail"):
                raise UsageError("told to fail")
            if event.quads[0].object == Literal("crash"):
                raise ZeroDivisionError("told to crash")
            self.newest[stream] = event.time
            self.waiting[event.time] = self.waiting.get(event.time, 0) + 1
        return self.report()

    def end(self, stream: str) -> list[Answer]:
        self.newest[stream] = float("inf")
        return self.report()

    def report(self) -> list[Answer]:
        answers = []
        for time in sorted(t for t in self.waiting if t < min(self.newest.values())):
            count = self.waiting.pop(time)
            self.total += count
            bindings = {"n": Literal(count), "total": Literal(self.total), "is": NamedNode("http://ex/é")}
            answers.append(Answer("q", time, "+", bindings=bindings))
        return answers

    def snapshot(self) -> bytes:
        return pickle.dumps((self.late, self.newest, self.waiting, self.total))

    def restore(self, data: bytes) -> None:
        self.late, self.newest, self.waiting, self.total = pickle.loads(data)


def prepare(job: Job) -> Counting:
    return Counting([stream.iri for stream in job.streams])
