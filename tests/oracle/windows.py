"""What is in a window and when a query reports: docs/semantics.md once more, as plain as can be.

Nothing is kept from one instant to the next: each function looks at all events again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple


class Arrival(NamedTuple):
    """Some triples (N-Triples without the dot) that arrive at once on a stream."""

    stream: str
    time: int
    triples: tuple[str, ...]


@dataclass(frozen=True)
class Window:
    """A window on a stream. `size` and `step` are ms, triples or events, as `kind` has it."""

    stream: str
    kind: str  # now, all, range, past, triples, elements, session
    size: int = 0
    step: int = 0
    until: int = 0

    def text(self, dialect: str) -> str:
        """As the dialect writes it, brackets included."""
        ms = lambda n: f"{n}ms" if dialect != "rspql" else f"{n}"  # noqa: E731 - one line says it
        step = f" STEP {self.step}" if self.step else ""
        match self.kind:
            case "now" | "all":
                return f"[{self.kind.upper()}]"
            case "range":
                return f"[RANGE {ms(self.size)}{f' STEP {ms(self.step)}' if self.step else ''}]"
            case "past":
                step = f" STEP PT{self.step / 1000}S" if self.step else ""
                return f"[FROM NOW-PT{self.size / 1000}S TO NOW-PT{self.until / 1000}S{step}]"
            case "triples":
                return f"[{'RANGE ' if dialect == 'csparql' else ''}TRIPLES {self.size}{step}]"
            case "elements":
                return f"[ELEMENTS {self.size}{step}]"
        return f"[SESSION {'GAP ' if dialect == 'cqels' else ''}{ms(self.size)}]"

    def content(self, events: Sequence[Arrival], t: int, on_close: bool) -> list[tuple[int, int]]:
        """Which triples of which events are in it at t: numbers of the event and of the triple in it."""
        came = [
            (i, j)
            for i, event in enumerate(events)
            if event.stream == self.stream and event.time <= t
            for j in range(len(event.triples))
        ]
        at = t // self.step * self.step if self.step else t
        match self.kind:
            case "now":
                return [e for e in came if events[e[0]].time == t]
            case "all":
                return came
            case "range" | "past":
                return [e for e in came if at - self.size < events[e[0]].time <= at - self.until]
            case "triples":
                return came[: self.moves(events, t) * (self.step or 1)][-self.size :]
            case "elements":
                numbers = list(dict.fromkeys(i for i, _ in came))
                shown = numbers[: self.moves(events, t) * (self.step or 1)][-self.size :]
                return [e for e in came if e[0] in shown]
        sessions = self.sessions(came, events)
        if on_close:
            ended = [s for s in sessions if events[s[-1][0]].time + self.size <= t]
            return ended[-1] if ended else []
        running = sessions[-1] if sessions else []
        return running if running and t < events[running[-1][0]].time + self.size else []

    def sessions(self, came: list[tuple[int, int]], events: Sequence[Arrival]) -> list[list[tuple[int, int]]]:
        """What came, cut where it was silent for as long as the gap."""
        found: list[list[tuple[int, int]]] = []
        for e in came:
            if found and events[e[0]].time - events[found[-1][-1][0]].time < self.size:
                found[-1].append(e)
            else:
                found.append([e])
        return found

    def moves(self, events: Sequence[Arrival], t: int) -> int:
        """How often a count window has moved by t."""
        mine = [event for event in events if event.stream == self.stream and event.time <= t]
        count = len(mine) if self.kind == "elements" else sum(len(event.triples) for event in mine)
        return count // (self.step or 1)

    def closes(self, events: Sequence[Arrival], t: int) -> bool:
        """Whether the window closes at t."""
        if self.kind in ("triples", "elements"):
            return self.moves(events, t) > self.moves(events, t - 1)
        if self.kind == "session" or not self.step:
            return self.content(events, t, True) != self.content(events, t - 1, True)
        return t % self.step == 0


def reports(
    windows: Sequence[Window], events: Sequence[Arrival], dialect: str, every: int, differences: bool
) -> list[int]:
    """The instants at which a query reports."""
    if not events:
        return []
    on_close = dialect != "cqels"
    found, was_empty = [], True
    for t in range(events[0].time, max(event.time for event in events) + 1):
        if every:
            due = t % every == 0
        elif on_close:
            due = any(w.closes(events, t) for w in windows)
        else:
            due = any(w.content(events, t, False) != w.content(events, t - 1, False) for w in windows)
        if due and on_close:
            empty = not any(w.content(events, t, on_close) for w in windows)
            due = not empty or (differences and not was_empty)
            was_empty = empty if due else was_empty
        if due:
            found.append(t)
    return found


KINDS = {
    "cqels": ("now", "all", "range", "range", "range", "triples", "session"),
    "csparql": ("range", "range", "range", "triples"),
    "rspql": ("range", "range", "range", "past", "triples", "elements", "session"),
}


def random_window(random: Random, dialect: str) -> Window:
    """Any window of the dialect."""
    stream, kind = random.choice("aaaab"), random.choice(KINDS[dialect])
    size = random.randint(1, 14)
    step = random.choice((0, random.randint(1, 6)))
    if kind == "past":
        return Window(stream, kind, size + 1, step, random.randint(1, size))
    if kind in ("now", "all"):
        return Window(stream, kind)
    return Window(stream, kind, size, 0 if kind == "session" else step)


def random_events(random: Random, triples: list[str], repeat: bool) -> list[Arrival]:
    """A short history of two streams, in order of time; `repeat`: a triple may come more than once."""
    events, time = [], random.randint(0, 9)
    left = list(triples)
    for _ in range(random.randint(2, 9)):
        some = []
        for _ in range(random.choice((1, 2, 4, 6))):
            if not left:
                break
            one = random.choice(left)
            if not repeat:
                left.remove(one)
            some.append(one)
        if some:
            events.append(Arrival(random.choice("aaab"), time, tuple(some)))
        time += random.choice((0, 1, 1, 1, 2, 2, 7))
    return events
