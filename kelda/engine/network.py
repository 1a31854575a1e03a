"""A network answers one query, or several together: it takes each step once and tells what they send.

Most are made of nodes (`NodeNetwork`, `SharedNetwork`); one by definition is in `defined_network.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kelda.engine.answer import Answer
from kelda.engine.batch import AnswerBatch, Batch
from kelda.engine.deltas import Deltas
from kelda.engine.first_report import FirstReports
from kelda.engine.memory import Count
from kelda.engine.merging import Alone, inputs_first, nodes_of
from kelda.engine.nodes import Node, Step
from kelda.engine.open_windows import Window
from kelda.engine.report import When
from kelda.engine.reporter import Reporter, SharedReporter
from kelda.engine.sent import Sent
from kelda.engine.sharing import Parameters
from kelda.lang import algebra as A
from kelda.lang.deep import SHALLOW
from kelda.rdf import wire
from kelda.rdf.dictionary import Dictionary
from kelda.store.moments import of_instant
from kelda.store.store import Store


@wire.plain
@dataclass(frozen=True, slots=True)
class KeptNetwork:
    """What a network keeps for one of its queries beside rows: of each window, of what reports, and the
    moment at which it has told all for the last time."""

    windows: tuple[int | None, ...]
    report: Any
    told: int | None = None


class Network:
    """What every network can do."""

    name: str  # its query's; nobody's, if several share it
    query: A.Query
    windows: tuple[Window, ...] = ()
    rebuilds = True  # its state comes again from the rows that are in its windows

    @property
    def names(self) -> list[str]:
        """The queries it answers, those before that were dropped included."""
        return [self.name]

    @property
    def who(self) -> int:
        """A number for what reports: equal queries have it in common."""
        raise NotImplementedError

    @property
    def what(self) -> int:
        """A number for what is computed: equal queries have it in common, however they report."""
        return self.who

    @property
    def nodes(self) -> list[Node]:
        """The nodes it is made of."""
        return []

    @property
    def margin(self) -> int:
        """How long after a row has left it may still be told of."""
        return 0

    @property
    def paused(self) -> bool:
        """Whether what is not told now has to be told later."""
        return False

    def step(self, step: Step) -> Sent | list[Answer]:
        """What is sent in a step."""
        raise NotImplementedError

    def again(self, step: Step) -> None:
        """Take a step that was taken before; `restore` will say what of it was told."""
        raise NotImplementedError

    def batch(self, sent: Any, dictionary: Dictionary) -> Batch:
        """What `step` gave, for others."""
        raise NotImplementedError

    def add_stream(self, iri: str) -> None:
        """There is one more stream."""

    @property
    def is_live(self) -> bool:
        """Whether it reads stored graphs alone, and tells how they change."""
        return not self.query.windows

    @property
    def hears_updates(self) -> bool:
        """Whether changes of stored graphs between two instants are told to it at once."""
        return self.is_live

    def merged(self, at: Step, moment: int) -> Node | None:
        """A root to go on with where the network is wrong by a moment: it took for granted that nothing is
        stored beside a window. `at` is where it is."""
        return None

    def made_anew(self, root: Node) -> None:
        """Go on with another root."""
        raise NotImplementedError

    def pause(self, name: str, paused: bool, now: int) -> None:
        """One of its queries tells nothing from now on, or tells again."""
        raise NotImplementedError

    def drop(self, name: str) -> None:
        """One of its queries is gone."""

    def held(self, count: Count) -> list[tuple[str, int]]:
        """Bytes by part, without those of nodes."""
        return []

    def say(self, equal: int) -> str:
        """How it runs, in words; for so many queries that are equal."""
        raise NotImplementedError

    # -------------------------------------------------------------------- what survives

    def snapshot(self) -> KeptNetwork | None:
        """What must be kept for each of its queries; None: nothing."""
        raise NotImplementedError

    def begin_with(self, kept: Sequence[KeptNetwork], first: Mapping[str, tuple[int, int]]) -> None:
        """Before it takes steps again, given what was kept for its queries, and of each stream the numbers of
        the row and the event that come first."""

    def see_again(self, step: Step, told: bool) -> None:
        """Take changes of stored graphs up to a moment again, if it is live; whether they were told."""

    def restore(self, kept: KeptNetwork) -> None:
        """Go on, when all steps have been taken again."""
        raise NotImplementedError


@dataclass
class NodeNetwork(Network):
    """Deltas flow from the windows through nodes to a reporter."""

    name: str
    query: A.Query
    root: Node
    reporter: Reporter
    windows: tuple[Window, ...]
    alone: Alone | None = None  # if it takes for granted that nothing is stored beside a window

    first: tuple[Node, ...] = field(init=False, default=())  # to be stepped before the root, if it is far up
    told: int | None = field(init=False, default=None)  # the moment up to which all was, if it is live

    def __post_init__(self) -> None:
        if self.query.depth > SHALLOW:
            self.first = inputs_first(self.root)

    def twin(self, name: str) -> NodeNetwork:
        """The same for an equal query."""
        return replace(self, name=name, reporter=self.reporter.shared())

    def merged(self, at: Step, moment: int) -> Node | None:
        if self.alone is None or not self.alone.is_wrong(moment):
            return None
        return self.alone.merged(self.root, at)

    def made_anew(self, root: Node) -> None:
        self.root, self.alone = root, None
        self.__post_init__()

    @property
    def who(self) -> int:
        return id(self.reporter)

    @property
    def what(self) -> int:
        return id(self.root)

    @property
    def nodes(self) -> list[Node]:
        return nodes_of(self.root)

    @property
    def margin(self) -> int:
        report = self.reporter.report
        if report.when is When.WINDOW_CLOSE:
            return max((window.intervals.slide or 0 for window in self.windows), default=0)
        return report.every or 0 if report.when is When.PERIODIC else 0

    @property
    def paused(self) -> bool:
        return self.reporter.paused

    def step(self, step: Step) -> Sent:
        deltas = self._deltas(step)
        if not self.is_live:
            return self.reporter.step(deltas, step.until)
        self.reporter.starts_after(step.since)
        sent = self.reporter.step(deltas, step.until)
        if not self.reporter.paused:
            self.told = step.moment
        if step.update is not None:  # the instant behind it is still to come
            self.reporter.starts_after(step.since)
        return sent

    def _deltas(self, step: Step) -> Deltas:
        for window in self.windows:
            window.move(step)
        self.reporter.budget = step.budget
        for node in self.first:
            node.step(step)
        return self.root.step(step)

    def again(self, step: Step) -> None:
        self.reporter.again(self._deltas(step), step.until)

    def see_again(self, step: Step, told: bool) -> None:
        self.again(step)
        if told:
            self.reporter.retell(step.until)

    def batch(self, sent: Sent, dictionary: Dictionary) -> Batch:
        return AnswerBatch(self.who, self.query, self.names, sent, dictionary)

    def pause(self, name: str, paused: bool, now: int) -> None:
        if paused and not self.reporter.paused:
            self.reporter = self.reporter.apart()
        self.reporter.paused = paused

    def held(self, count: Count) -> list[tuple[str, int]]:
        return [("report", count.reporter(self.reporter)), ("windows", count.bytes(self.windows))]

    @property
    def sharing(self) -> str:
        """With whom, in words."""
        return ""

    def say(self, equal: int) -> str:
        once = f", once for {equal} queries that are equal" if equal > 1 else ""
        head = f"from the changes alone{self.sharing}{once}:"
        return "\n".join([head, *_tree(self.root, Count())])

    def snapshot(self) -> KeptNetwork | None:
        windows, report = tuple(w.intervals.snapshot() for w in self.windows), self.reporter.snapshot()
        if report is None and all(kept is None for kept in windows):
            return None
        told = self.told if report is None or self.is_live else of_instant(report.at)
        return KeptNetwork(windows, report, told)

    def begin_with(self, kept: Sequence[KeptNetwork], first: Mapping[str, tuple[int, int]]) -> None:
        for i, window in enumerate(self.windows):
            known = [k for k in (one.windows[i] for one in kept) if k is not None]
            if known:
                window.intervals.restore(known, *first[window.stream])

    def restore(self, kept: KeptNetwork) -> None:
        if kept.report is None:
            return
        if not self.is_live:
            self.reporter.retell(kept.report.at)
        self.reporter.restore(kept.report)
        self.told = kept.told


@dataclass
class SharedNetwork(NodeNetwork):
    """All queries of one shape."""

    reporter: SharedReporter
    parameters: Parameters = field(kw_only=True)
    first_reports: FirstReports = field(kw_only=True)
    store: Store = field(kw_only=True)

    @property
    def names(self) -> list[str]:
        return self.parameters.names

    def step(self, step: Step) -> Sent:
        self.first_reports.take(step.rows, step.until)
        self.reporter.stored_changed = self.store.latest > of_instant(step.since)
        return super().step(step)

    def again(self, step: Step) -> None:
        self.step(step)

    def pause(self, name: str, paused: bool, now: int) -> None:
        number = self.parameters.numbers[name]
        if paused:
            self.reporter.pause(number)
        else:
            self.reporter.resume(number, now)

    def drop(self, name: str) -> None:
        self.reporter.forget(self.parameters.drop(name))

    def held(self, count: Count) -> list[tuple[str, int]]:
        return [
            *super().held(count),
            ("parameters", count.bytes(self.parameters)),
            ("instants", count.bytes(self.first_reports)),
        ]

    @property
    def sharing(self) -> str:
        return f", in one network with {int(self.parameters.alive.sum())} queries of its shape"


def _tree(root: Node, count: Count) -> list[str]:
    """The nodes below the root, each with what it reads; one that is read twice is shown in full once."""
    lines: list[str] = []
    shown: set[int] = set()
    todo = [(root, 1)]
    while todo:
        node, depth = todo.pop()
        pad = "  " * depth
        held = count.node(node)
        size = f" ({sum(held.values()):,} bytes)" if held else ""
        first, *more = node.say().splitlines()
        if id(node) in shown and node.inputs:
            lines.append(f"{pad}{first}, as above")
            continue
        shown.add(id(node))
        parts = [f"    {name}: {part:,} bytes" for name, part in held.items()] if len(held) > 1 else []
        lines += [pad + line for line in (first + size, *more, *parts)]
        todo += [(source, depth + 1) for source in reversed(node.inputs)]
    return lines
