"""All networks, step by step: each takes a step once, within one budget, and fails by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kelda.engine.answer import Answer
from kelda.engine.batch import Batch
from kelda.engine.budget import Budget
from kelda.engine.clock import NEVER
from kelda.engine.defined_network import FailedAt
from kelda.engine.input import Input
from kelda.engine.memory import Count, Held
from kelda.engine.network import Network
from kelda.engine.nodes import Step
from kelda.engine.reachable import TermRelease
from kelda.engine.registry import Registry
from kelda.engine.stopped import EVERYBODYS, Stopped
from kelda.errors import MemoryLimitError
from kelda.store.moments import instant_of


class Running:
    """Runs what is registered. With `memory_limit` (bytes), what takes too much in a step is stopped, and a
    step after which too much is held is an error."""

    def __init__(self, registry: Registry, input: Input, t0: int, memory_limit: int | None) -> None:
        self._t0 = t0
        self.memory_limit = memory_limit
        self.budget = Budget(memory_limit, self._fail)
        self.terms = TermRelease(input.dictionary)
        self._registry, self._input = registry, input
        self._told: dict[int, Any] = {}  # in this step, by who reports (equal queries have one); None: failed
        self._answered = NEVER  # where the clock stood before the step that was taken last

    # -------------------------------------------------------------------- steps

    def step(self, step: Step) -> list[Batch]:
        """What all networks say in a step."""
        networks = self._registry.networks()
        self._take(step, networks)
        self._input.stand_at(step.until)
        view = self._input.dictionary.view()
        batches = [network.batch(said, view) for network in networks if (said := self._told[network.who])]
        self._told = {}
        if self.terms.due:
            with_ids = [network for network in self._registry.networks() if network.rebuilds]
            self.terms.release(with_ids, self._input.pending, self._input.late_facts)
        self._check_memory()
        return batches

    def again(self, step: Step) -> None:
        """Take a step that was taken and answered before: those whose state comes from it."""
        networks = [network for network in self._registry.networks() if network.rebuilds]
        windowed = [network for network in networks if not network.is_live]
        self._take(step, windowed, lambda network: network.again(step))
        self._input.stand_at(step.until)
        self._told = {}

    def see_again(self, told: Mapping[str, int]) -> None:
        """Let live queries take again what they have told before, each up to a moment, by name."""
        networks = [network for network in self._registry.networks() if network.name in told]
        live = [network for network in networks if network.is_live and network.rebuilds]
        for moment in sorted({told[network.name] for network in live}):
            self._input.steps += 1
            step = Step(self._input.steps, instant_of(moment), {}, self.budget, update=moment)

            def see(network: Network, step: Step = step) -> None:
                network.see_again(step, told[network.name] >= step.moment)

            self._take(step, live, see)
            self._told = {}

    def _take(
        self, step: Step, networks: Iterable[Network], do: Callable[[Network], Any] | None = None
    ) -> None:
        """Let each network take a step (or do something else). One that fails is stopped, the others do not
        notice."""
        self._registry.apart()
        self._told = {}
        self._answered = self._input.now
        self.budget.begin()
        self._registry.reach(step.moment)
        self._look_beside(step)
        for network in networks:
            who = network.who
            if who not in self._told:
                self.budget.turn(who)
                try:
                    self._told[who] = network.step(step) if do is None else do(network)
                except EVERYBODYS:
                    raise
                except FailedAt as failed:
                    self.budget.done(who)
                    self._fail(who, failed.error, failed.at)
                    self._told[who] = failed.said
                except Exception as error:  # noqa: BLE001 - whatever it is, it is this network's alone
                    self.budget.done(who)
                    self._fail(who, error)

    def _fail(self, who: int, error: Exception, at: int | None = None) -> None:
        """Stop what has this number, after the instant `at` (else: after the last step): it sends nothing, in
        this step neither."""
        self._told[who] = None
        self._registry.stop_all(who, Stopped.by(error, self._answered if at is None else at))

    def answers(self, batches: Iterable[Batch]) -> list[Answer]:
        """Answers as objects, in time order."""
        batches = list(batches)
        sizes: Counter[int] = Counter()
        for batch in batches:
            sizes[batch.who] += batch.size
        gone = dict(self.budget.too_much(sizes))
        for who, size in gone.items():
            self._fail(who, self.budget.error(size))
        found: list[Answer] = []
        for batch in batches:
            if batch.who in gone:
                continue
            try:
                found += batch.answers()
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - as in a step
                self._fail(batch.who, error)
        found.sort(key=lambda a: a.time)
        return found

    # -------------------------------------------------------------------- stored graphs

    def _look_beside(self, step: Step) -> None:
        """Networks that take for granted that nothing is stored beside a window are made anew, if something
        will be in this step."""
        for network in self._registry.networks():
            at = Step(step.number - 1, self._input.now, {}, self.budget)
            try:
                root = network.merged(at, step.moment)
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - as in a step
                self._fail(network.who, error)
                continue
            if root is not None:
                for equal in self._registry.equal(network):
                    equal.made_anew(root)

    def updated(self, moment: int) -> list[Batch]:
        """Stored graphs have changed at a moment between two instants: what live queries say to it."""
        told = [network for network in self._registry.networks() if network.hears_updates]
        now = self._input.now
        if not told or (now == NEVER and self._input.clock.streams):  # they wait for the first instant
            return []
        self._input.steps += 1
        at = self._t0 if now == NEVER else now + 1
        step = Step(self._input.steps, at, {}, self.budget, now if now > NEVER else at - 1, moment)
        self._take(step, told)
        view = self._input.dictionary.view()
        batches = [network.batch(said, view) for network in told if (said := self._told[network.who])]
        self._told = {}
        return batches

    # -------------------------------------------------------------------- memory

    def memory(self) -> list[Held]:
        """Bytes held by each part: every index, table and buffer. What several queries share is a `join`."""
        out: list[Held] = []
        count = Count()
        networks = self._registry.networks()
        readers: dict[int, list[str]] = {}
        for network in networks:
            for node in network.nodes:
                readers.setdefault(id(node), []).append(network.name)
        for i, network in enumerate(networks):
            kind, owner = ("query", network.name) if network.name else ("shape", str(i))
            out += [Held(kind, owner, part, size) for part, size in network.held(count)]
            for node in reversed(network.nodes):
                who = readers[id(node)]
                whose = (kind, owner) if len(who) == 1 else ("join", ", ".join(who))
                first = node.say().partition("\n")[0]
                out += [Held(*whose, f"{first}: {part}", size) for part, size in count.node(node).items()]
        for stream, pending in self._input.pending.items():
            out.append(Held("stream", stream, "elements that wait", count.bytes(pending.parts)))
        return [*out, Held("dictionary", "", "terms", self._input.dictionary.nbytes)]

    def _check_memory(self) -> None:
        if self.memory_limit is None:
            return
        every = {id(node): node for network in self._registry.networks() for node in network.nodes}
        state = sum(node.nbytes for node in every.values()) + self._input.dictionary.nbytes
        self.budget.held = state
        if 2 * state < self.memory_limit and self._input.steps % 16:
            return  # far from it: a full count now and then will do
        memory = self.memory()
        total = sum(held.bytes for held in memory)
        if total > self.memory_limit:
            most = sorted(memory, key=lambda held: held.bytes, reverse=True)[:3]
            raise MemoryLimitError(
                f"{total:,} bytes are held, more than the limit of {self.memory_limit:,}; most by "
                + ", ".join(f"{held.whose} in its {held.name} ({held.bytes:,})" for held in most)
                + ". Nothing was dropped: raise the limit, or give queries smaller windows"
            )
