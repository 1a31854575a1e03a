"""The incremental evaluator: the same answers as the reference evaluator, from the changes alone.

Elements come as columns of ids. When instants have become complete, their rows go through the nodes
of every query in one step. A query, or what of it has no incremental form, is handed to a reference
evaluator that is fed the same elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
from pyoxigraph import NamedNode, Quad

from kelda.engine.answer import Answer
from kelda.engine.budget import Budget
from kelda.engine.clock import NEVER, Clock, StreamClock
from kelda.engine.compile import Incremental, NotIncremental
from kelda.engine.decode import decoded
from kelda.engine.deltas import Ids
from kelda.engine.first_report import FirstReports
from kelda.engine.functions import check_functions
from kelda.engine.intervals import CountIntervals, Intervals, StreamRows, intervals_of
from kelda.engine.intervals_kernels import falls, numbered
from kelda.engine.join_groups import JoinGroups
from kelda.engine.memory import Count, Held
from kelda.engine.merging import Alone, alone, inputs_first, nodes_of
from kelda.engine.nodes import NO_ROWS, JoinWindows, Node, Step, Stored
from kelda.engine.open_windows import OpenWindows, Window
from kelda.engine.ownership import Owner
from kelda.engine.reachable import reachable_ids
from kelda.engine.reference import ReferenceEvaluator
from kelda.engine.report import Report, When, output_of, periods_of, report_of
from kelda.engine.reporter import Asker, Reporter, SharedContentReporter, SharedReporter
from kelda.engine.sent import Sent
from kelda.engine.sharing import Parameters
from kelda.engine.stopped import EVERYBODYS, Stopped
from kelda.engine.term_order import TermOrder
from kelda.engine.top import TopReporter, top_of
from kelda.errors import MemoryLimitError, UsageError
from kelda.lang import algebra as A
from kelda.lang.deep import SHALLOW, roomy
from kelda.lang.params import Prepared, sizes_of, term_of
from kelda.lang.to_sparql import visible_vars
from kelda.lang.walk import nodes
from kelda.plan.rules.deterministic import deterministic
from kelda.plan.rules.each_stream import each_stream, reads_every_stream
from kelda.plan.rules.inline import inlined
from kelda.plan.shape import QUERY, Lifted, lift, nameless
from kelda.rdf.dictionary import Dictionary
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore

_Shape = tuple[A.Query, A.Output, Report, Owner | None]

LEAST_TERMS = 1 << 18  # a dictionary smaller than this is left alone


@dataclass
class _Pending:
    """Elements of a stream that wait for their instant to be complete."""

    parts: list[tuple[Ids, Ids, Ids, Ids, Ids]] = field(default_factory=list)  # s, p, o, time, event
    events: int = 0  # numbered so far
    rows: int = 0  # delivered so far

    def release(self, closed: int) -> StreamRows:
        """Take out the rows up to `closed`, in the order (time, arrival)."""
        if not self.parts:
            return NO_ROWS
        rest = self.parts[0]
        if len(self.parts) > 1:
            s, p, o, time, event = (np.concatenate([part[i] for part in self.parts]) for i in range(5))
            rest = (s, p, o, time, event)
        if falls(rest[3]):
            order = np.argsort(rest[3], kind="stable")
            s, p, o, time, event = (a[order] for a in rest)
            rest = (s, p, o, time, event)
        cut = int(rest[3].searchsorted(closed, "right"))
        s, p, o, time, event = (a[:cut] for a in rest)
        later = tuple(a[cut:] for a in rest)
        self.parts = [later] if len(later[3]) else []  # type: ignore[list-item]
        if not cut:
            return NO_ROWS
        # Events are numbered in the order in which windows see them.
        numbers = numbered(event, self.events)
        self.events = int(numbers[-1]) + 1
        rows = StreamRows(s, p, o, time, numbers, np.arange(self.rows, self.rows + len(time)))
        self.rows += len(time)
        return rows


@dataclass
class _Running:
    """A registered query that runs incrementally."""

    name: str
    query: A.Query
    root: Node
    reporter: Reporter
    windows: tuple[Window, ...]
    alone: Alone | None = None  # if it takes for granted that nothing is stored beside a window

    first: tuple[Node, ...] = field(init=False, default=())  # to be stepped before the root, if it is far up

    def __post_init__(self) -> None:
        if self.query.depth > SHALLOW:
            self.first = inputs_first(self.root)

    @property
    def streams(self) -> tuple[tuple[str, Intervals], ...]:
        """The stream and the intervals of each window."""
        return tuple((window.stream, window.intervals) for window in self.windows)


@dataclass
class _Shared(_Running):
    """All registered queries of one shape; `name` is nobody's."""

    reporter: SharedReporter
    parameters: Parameters = field(kw_only=True)
    first_reports: FirstReports = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """What one query sends in one step, as columns; decoded only when somebody looks."""

    running: _Running
    sent: Sent
    dictionary: Dictionary

    def __len__(self) -> int:
        return len(self.sent)

    @property
    def queries(self) -> list[str]:
        """The names of the queries whose answers these are."""
        if not isinstance(self.running, _Shared):
            return [self.running.name]
        names = self.running.parameters.names
        return [names[i - 1] for i in np.unique(self.sent.values[self.sent.columns.index(QUERY)])]

    def answers(self) -> list[Answer]:
        """The answers as terms, in time order."""
        names = shared_names(self)
        shown = [self.running.name] if names is None else ["", *names]  # queries are numbered from 1
        return decoded(self.running.query, shown, self.sent, self.dictionary)


class IncrementalEvaluator:
    """Same interface and same answers as `ReferenceEvaluator`."""

    def __init__(
        self,
        *,
        t0: int = 0,
        store: GraphStore | None = None,
        on_late: Callable[[str, Event], None] | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.t0 = t0
        self.memory_limit = memory_limit
        self.store = GraphStore() if store is None else store
        self.dictionary = Dictionary()
        self.clock = Clock()
        self.late: dict[str, int] = {}
        self.reasons: dict[str, str] = {}  # queries that run by the reference evaluator, and why
        self.pending: dict[str, _Pending] = {}
        self._queries: dict[str, _Running] = {}
        # Shapes seen; None while only one query has it, which then runs alone.
        self._shapes: dict[_Shape, _Shared | None] = {}
        self._names: dict[str, _Shared] = {}  # queries that share a network
        # What queries that are registered before the next step can have in common.
        self._open_windows, self._open_groups = OpenWindows(), JoinGroups()
        self._open_queries: dict[_Shape, _Running] = {}
        self._opened_by: dict[str, _Shape] = {}
        # Queries with STREAM ?var as they were registered, to be compiled again for a stream that is new.
        self._on_every_stream: dict[str, tuple[A.Query, A.Output | None, Report | None]] = {}
        self.released = 0  # terms that the dictionary has let go of
        self._release_at = LEAST_TERMS
        self._kept = 0  # entries of the dictionary that were there after the last release
        self.arrival = 0
        self._steps = 0
        self.now = NEVER
        self._answered = NEVER  # where the clock stood before the step that was taken last
        self._stopped: dict[str, Stopped] = {}
        self._told: dict[
            int, Sent | None
        ] = {}  # in this step, by reporter (equal queries have one); None: failed
        self._budget = Budget(memory_limit, self._fail)
        self.fallback = ReferenceEvaluator(t0=t0, store=self.store, on_late=on_late, budget=self._budget)
        self._owner: Owner | None = None  # of the query that is being registered
        self.on_step: Callable[[Step], None] | None = None  # told of each step before it is taken

    # -------------------------------------------------------------------- set-up

    def add_stream(self, iri: str, *, lateness: int = 0, from_start: bool = False) -> None:
        """Declare a stream; see the reference evaluator."""
        waiting = dict(self._on_every_stream)
        if waiting and self._steps and iri not in self.clock.streams:
            raise UsageError(
                f"stream <{iri}> comes too late for {', '.join(map(repr, waiting))}, reading every stream: "
                "declare all streams before elements come, or drop these queries and register them again"
            )
        self.fallback.add_stream(iri, lateness=lateness, from_start=from_start)
        self.clock.streams[iri] = StreamClock(lateness, from_start)
        self.late[iri] = 0
        self.pending[iri] = _Pending()
        for name, (query, output, report) in waiting.items():
            self.drop(name)
            self.register(name, query, output=output, report=report)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads. The clock does not wait for it any more."""
        self.fallback.drop_stream(iri)
        for known in (self.clock.streams, self.late, self.pending):
            del known[iri]

    @roomy(2)
    def register(
        self,
        name: str,
        query: A.Query,
        *,
        output: A.Output | None = None,
        report: Report | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Add a query; what has no incremental form goes to the reference evaluator.

        With `owner` it takes only the rows that are this shard's."""
        self._owner = owner
        if any(name in known for known in (self._queries, self._names, self._stopped, self.reasons)):
            raise UsageError(f"a query named {name!r} is registered already: choose another name or drop it")
        check_functions(query)
        wanted, told = output or output_of(query), report or report_of(query)
        key = (nameless(query), wanted, told, owner)
        is_deep = query.depth > SHALLOW  # and so not to be looked up again and again
        if not is_deep and (self._share(name, query, wanted, told) or self._equal(name, key)):
            return
        try:
            running = self._compile(name, query, wanted, told)
        except NotIncremental as reason:
            if not self.fallback.queries:  # it was not told of what came
                self.fallback.catch_up(self.clock, self.now, self._waiting())
            self.fallback.register(name, query, output=output, report=report)
            self.reasons[name] = str(reason)
        else:
            running.reporter.starts_after(self.now)
            self._queries[name] = running
            if reads_every_stream(query):
                self._on_every_stream[name] = (query, output, report)
            elif not (is_deep or any(_counts_in_steps(w) for w in running.windows)):
                self._open_queries[key], self._opened_by[name] = running, key

    def _waiting(self) -> list[tuple[str, Event]]:
        """The events that wait for their instant, with their streams, in order of arrival."""
        found: dict[int, tuple[str, int, list[Quad]]] = {}
        for stream, pending in self.pending.items():
            for s, p, o, time, event in pending.parts:
                known = np.flatnonzero(s)  # others are there for their time alone
                columns = (self.dictionary.terms(ids[known]) for ids in (s, p, o))
                for number, at, *spo in zip(
                    event[known].tolist(), time[known].tolist(), *columns, strict=True
                ):
                    found.setdefault(number, (stream, at, []))[2].append(Quad(*spo))
        return [(stream, Event(at, tuple(quads))) for _, (stream, at, quads) in sorted(found.items())]

    def _equal(self, name: str, key: _Shape) -> bool:
        """Let the query run with an equal one, if that has seen nothing of the stream before it."""
        if key not in self._open_queries:
            return False
        self._queries[name] = replace(self._open_queries[key], name=name)
        if isinstance(self._queries[name].reporter, Asker):  # what it said last is remembered by name
            self._queries[name].reporter = self._queries[name].reporter.apart()
        return True

    def _alone(self, name: str) -> None:
        """From now on, no other query is to run with this one."""
        if name in self._opened_by:
            del self._open_queries[self._opened_by.pop(name)]

    def _compile(self, name: str, query: A.Query, output: A.Output, report: Report) -> _Running:
        if not query.windows or any(
            isinstance(w.stream, NamedNode) and w.stream.value not in self.clock.streams
            for w in query.windows
        ):
            raise NotIncremental("refused")  # the reference evaluator says why
        if query.form is A.Form.DESCRIBE:
            raise NotIncremental("DESCRIBE")
        query = inlined(deterministic(query))
        if reads_every_stream(query):
            if not self.clock.streams:
                raise NotIncremental("STREAM ?var without any stream")
            query = each_stream(query, list(self.clock.streams))
        if query.form is A.Form.ASK:
            query = replace(query, pattern=A.Project(query.pattern, ()))
        elif query.form is A.Form.CONSTRUCT and top_of(query.pattern) is None:
            variables = tuple(sorted(visible_vars(query.pattern), key=lambda v: v.name))
            query = replace(query, pattern=A.Project(query.pattern, variables))
        windows = self._windows(query, report, self._open_windows)
        compiler, read = self._compiler(query, windows, name=name), tuple(windows.values())
        tracks = [window.track for window in read]
        top = None if query.form is A.Form.ASK else top_of(query.pattern)
        if top is not None:
            root, order = compiler.compile_top(top), TermOrder(self.dictionary)
            ranked = TopReporter(root.columns, output, report, self.t0, tracks, top=top, order=order)
            return _Running(name, query, root, ranked, read, alone(compiler, top))
        root, kind = compiler.compile(), Asker if query.form is A.Form.ASK else Reporter
        reporter = kind(root.columns, output, report, self.t0, tracks)
        return _Running(name, query, root, reporter, read, alone(compiler, None))

    def _compiler(
        self,
        query: A.Query,
        windows: dict[str, Window],
        parameters: Parameters | None = None,
        name: str = "",
    ) -> Incremental:
        return Incremental(
            query,
            self.store,
            self.dictionary,
            {window: (w.stream, w.intervals) for window, w in windows.items()},
            parameters,
            self._owner,
            self._open_groups,
            name,
        )

    def _windows(self, query: A.Query, report: Report, opened: OpenWindows | None) -> dict[str, Window]:
        """The windows of a query by name; equal ones are those that are `opened` already."""
        windows: dict[str, Window] = {}
        on_close = report.when is When.WINDOW_CLOSE
        for name, stream, window in ((w.name, w.stream, w.window) for w in query.windows):
            if not isinstance(stream, NamedNode):
                raise NotIncremental("STREAM ?var")
            make = partial(intervals_of, window, self.t0, self.dictionary, on_close=on_close)
            if opened is None:
                windows[name] = Window(stream.value, make())
            else:
                windows[name] = opened.window(stream.value, window, on_close, make)
        return windows

    # -------------------------------------------------------------------- many queries

    def _share(self, name: str, query: A.Query, output: A.Output, report: Report) -> bool:
        """Let the query join the network of its shape; the first of a shape goes alone."""
        lifted = self._lifted(query, output, report)
        if lifted is None:
            return False
        key = (lifted.shape, output, report, self._owner)
        if key not in self._shapes:
            self._shapes[key] = None
            return False
        encode = self.dictionary.encode
        constants = np.array([[encode(c)] for c in lifted.constants], np.int64)  # type: ignore[arg-type]
        sizes = [np.array([s], np.int64) for s in lifted.sizes if s is not None]
        return self._join_shape(lifted, key, [name], constants.reshape(len(lifted.constants), 1), sizes)

    def register_many(
        self,
        prepared: Prepared,
        names: Sequence[str],
        values: Mapping[str, Sequence[object]],
        *,
        output: A.Output | None = None,
        report: Report | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Register one query per name: `prepared` with the i-th value of each parameter.

        They run as one network if their shape allows it, and one by one if not."""
        self._owner = owner
        wanted, told = output or output_of(prepared.query), report or report_of(prepared.query)
        lifted = self._lifted(prepared.query, wanted, told)
        taken = next((n for n in names if n in self._names or n in self._stopped), None)
        if taken is not None or len(set(names)) < len(names):
            raise UsageError(f"query names must be new and differ; {taken or 'some name'!r} does not")
        if lifted is not None:
            check_functions(prepared.query)
            constants = np.empty((len(lifted.constants), len(names)), np.int64)
            for i, constant in enumerate(lifted.constants):
                given = values[constant.name] if isinstance(constant, A.Param) else [constant] * len(names)
                constants[i] = [self.dictionary.encode(term_of(v)) for v in given]
            sizes = []
            for w, size in zip(prepared.query.windows, lifted.sizes, strict=True):
                if isinstance(size, A.Param):
                    sizes.append(np.array(sizes_of(w.window, size, values), np.int64))
                elif size is not None:
                    sizes.append(np.full(len(names), size, np.int64))
            key = (lifted.shape, wanted, told, owner)
            if self._join_shape(lifted, key, list(names), constants, sizes):
                return
        for i, name in enumerate(names):
            query = prepared.bind(**{p: values[p][i] for p in prepared.parameters})
            self.register(name, query, output=output, report=report, owner=owner)

    def _lifted(self, query: A.Query, output: A.Output, report: Report) -> Lifted | None:
        if query.form is not A.Form.SELECT or query.depth > SHALLOW:
            return None
        if not periods_of(query, report) if output is A.Output.RSTREAM else report.when is When.PERIODIC:
            return None
        if any(isinstance(n, A.Slice | A.OrderBy | A.Reduced) for n in nodes(query.pattern)):
            return None
        if any(
            isinstance(w.stream, NamedNode) and w.stream.value not in self.clock.streams
            for w in query.windows
        ):
            return None
        return _shape_of(query)

    def _join_shape(
        self,
        lifted: Lifted,
        key: _Shape,
        names: list[str],
        constants: Ids,
        sizes: list[Ids],
    ) -> bool:
        shared = self._shapes.get(key)
        if shared is None:
            try:
                shared = self._network(lifted, key[1], key[2])
            except NotIncremental:
                return False
            self._shapes[key] = shared
        varying = [w.name for w, s in zip(lifted.shape.windows, lifted.sizes, strict=True) if s is not None]
        shared.parameters.add(names, constants, dict(zip(varying, sizes, strict=True)), self.now)
        self._names.update(dict.fromkeys(names, shared))
        return True

    def _network(self, lifted: Lifted, output: A.Output, report: Report) -> _Shared:
        windows = self._windows(lifted.shape, report, None)  # each its own: they will differ in size
        varying = {
            w.name: windows[w.name].intervals
            for w, size in zip(lifted.shape.windows, lifted.sizes, strict=True)
            if size is not None
        }
        parameters = Parameters(len(lifted.constants), varying)
        root = self._compiler(lifted.shape, windows, parameters).compile()
        if QUERY not in root.columns:
            raise NotIncremental("no window to share")
        by_name = {name: (w.stream, w.intervals) for name, w in windows.items()}
        first_reports = FirstReports(by_name, on_close=report.when is When.WINDOW_CLOSE)

        def first(queries: Ids, since: Ids) -> Ids:
            of = parameters.classes[queries - 1]
            sizes = {name: all_sizes[of] for name, all_sizes in parameters.sizes.items()}
            return first_reports.after(since, parameters.registered[of], sizes)

        reporter = SharedReporter(root.columns, output, report, first, parameters.told_to)
        if output is A.Output.RSTREAM:
            every = periods_of(lifted.shape, report)
            reporter = SharedContentReporter(root.columns, report, self.t0, every, parameters.told_to)
            reporter.starts_after(self.now)
        read = tuple(windows.values())
        return _Shared(
            "", lifted.shape, root, reporter, read, parameters=parameters, first_reports=first_reports
        )

    def apart(self) -> None:
        """Queries that are registered from now on have no state in common with those before."""
        self._open_windows.close()
        self._open_groups.close()
        self._open_queries.clear()
        self._opened_by.clear()
        for shared in self._shapes.values():
            if shared is not None:
                shared.parameters.close()

    def drop(self, name: str) -> None:
        """Forget a query."""
        if self._stopped.pop(name, None) is not None:
            return
        self._on_every_stream.pop(name, None)
        shared = self._names.pop(name, None)
        if shared is not None:
            shared.reporter.forget(shared.parameters.drop(name))
            return
        self._alone(name)
        if self._queries.pop(name, None) is None:
            self.fallback.drop(name)
            self.reasons.pop(name, None)

    @property
    def queries(self) -> list[str]:
        """Names of the registered queries, those that were stopped included."""
        return [*self._queries, *self._names, *self._stopped, *self.fallback.queries]

    @property
    def stopped(self) -> dict[str, Stopped]:
        """The queries that have failed, and why; until they are dropped."""
        return self._stopped | self.fallback.stopped

    def stop(self, name: str, why: Stopped) -> None:
        """A query has failed: it answers nothing any more, but is still registered."""
        if name in self.fallback.queries:
            self.fallback.stop(name, why)
            self.reasons.pop(name, None)
            return
        if name not in self._stopped:
            self.drop(name)
        self._stopped[name] = why

    def pause(self, name: str, paused: bool = True) -> None:
        """A paused query keeps its windows up to date but reports nothing."""
        if name in self._stopped:
            return
        if name in self._names:
            shared = self._names[name]
            number = shared.parameters.numbers[name]
            if paused:
                shared.reporter.pause(number)
            else:
                shared.reporter.resume(number, self.now)
        elif name in self._queries:
            running = self._queries[name]
            if paused and not running.reporter.paused:
                self._alone(name)
                running.reporter = running.reporter.apart()
            running.reporter.paused = paused
        else:
            self.fallback.pause(name, paused)

    def stored_changed(self) -> None:
        """The stored graphs have changed: queries see that from their next report on."""
        refreshed: set[int] = set()
        for network in self.networks():
            try:
                self._refresh(network, refreshed)
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - as in a step
                self._answered = self.now
                self._fail(id(network.reporter), error)
        self.fallback.stored_changed()

    def _refresh(self, network: _Running, refreshed: set[int]) -> None:
        """Let a network know that stored graphs have changed; of its nodes, those that do not know it yet."""
        if network.alone is not None and network.alone.is_wrong:
            self._merge(network, network.alone)
        for node in nodes_of(network.root):
            if isinstance(node, Stored | JoinWindows) and id(node) not in refreshed:
                refreshed.add(id(node))
                node.change(self.now)
        if isinstance(network, _Shared):
            network.reporter.stored_changed(self.now)

    def _merge(self, network: _Running, how: Alone) -> None:
        """Make a network anew, and those that are equal with it: something is stored beside their window."""
        root = how.merged(network.root, Step(self._steps, self.now, {}, self._budget))
        every = [*self._queries.values(), *self._open_queries.values()]
        for equal in [n for n in every if n.root is network.root]:
            equal.root, equal.alone = root, None
            equal.__post_init__()

    def networks(self) -> list[_Running]:
        """What runs: queries by themselves, and shapes that queries share."""
        return [*self._queries.values(), *(s for s in self._shapes.values() if s is not None)]

    @property
    def nbytes(self) -> dict[str, int]:
        """Bytes held, by query (or shape), by stream (elements that wait), and by the dictionary."""
        out: dict[str, int] = {}
        for held in self.memory():
            out[held.whose] = out.get(held.whose, 0) + held.bytes
        return out

    def memory(self) -> list[Held]:
        """Bytes held by each part: every index, table and buffer. What several queries share is a `join`."""
        out: list[Held] = []
        count = Count()
        readers: dict[int, list[str]] = {}
        for network in self.networks():
            for node in nodes_of(network.root):
                readers.setdefault(id(node), []).append(network.name)
        for i, network in enumerate(self.networks()):
            kind, owner = ("query", network.name) if network.name else ("shape", str(i))
            out.append(Held(kind, owner, "report", count.reporter(network.reporter)))
            out.append(Held(kind, owner, "windows", count.bytes(network.windows)))
            if isinstance(network, _Shared):
                out.append(Held(kind, owner, "parameters", count.bytes(network.parameters)))
                out.append(Held(kind, owner, "instants", count.bytes(network.first_reports)))
            for node in reversed(nodes_of(network.root)):
                who = readers[id(node)]
                whose = (kind, owner) if len(who) == 1 else ("join", ", ".join(who))
                first = node.say().partition("\n")[0]
                out += [Held(*whose, f"{first}: {part}", size) for part, size in count.node(node).items()]
        for stream, pending in self.pending.items():
            out.append(Held("stream", stream, "elements that wait", count.bytes(pending.parts)))
        return [*out, Held("dictionary", "", "terms", self.dictionary.nbytes)]

    def say(self, name: str) -> str:
        """How a query is run, as a tree of nodes."""
        if name in self.stopped:
            return self.stopped[name].say()
        if name in self.reasons:
            return f"by the reference evaluator, anew at each report: {self.reasons[name]}"
        network = self._names.get(name) or self._queries[name]
        head = "from the changes alone"
        if isinstance(network, _Shared):
            head += f", in one network with {int(network.parameters.alive.sum())} queries of its shape"
        equal = sum(other.root is network.root for other in self._queries.values())
        if equal > 1:
            head += f", once for {equal} queries that are equal"
        return "\n".join([head + ":", *_tree(network.root, Count())])

    # -------------------------------------------------------------------- input

    def push(self, stream: str, events: Iterable[Event]) -> list[Answer]:
        """Take events as objects; see `push_columns` for the fast way."""
        events = [e for e in events if e.quads]  # an empty message says nothing
        if any(e.time is None for e in events):
            raise UsageError(f"an event on <{stream}> has no time: give one, or a time predicate")
        answers = self.fallback.push(stream, events) if self.fallback.queries else []
        encode = self.dictionary.encode
        quads = [(q, e.time, i) for i, e in enumerate(events) for q in e.quads]
        s, p, o = (
            np.array([encode(getattr(q, part)) for q, _, _ in quads], np.int64)
            for part in ("subject", "predicate", "object")
        )
        time = np.array([t for _, t, _ in quads], np.int64)
        event = np.array([i for _, _, i in quads], np.int64)
        return _in_time_order(answers, self.push_columns(stream, s, p, o, time, event))

    def push_columns(
        self, stream: str, s: Ids, p: Ids, o: Ids, time: Ids, event: Ids | None = None
    ) -> list[Answer]:
        """Take triples as columns of ids, known to `dictionary`; equal `event` numbers in a row make
        one event (None: each triple is its own)."""
        return self.all_answers(self.push_batch(stream, s, p, o, time, event))

    def push_batch(
        self, stream: str, s: Ids, p: Ids, o: Ids, time: Ids, event: Ids | None = None
    ) -> list[AnswerBatch]:
        """As `push_columns`, with the answers left as columns."""
        self.take(stream, s, p, o, time, event)
        return self.advance()

    def take(
        self,
        stream: str,
        s: Ids,
        p: Ids,
        o: Ids,
        time: Ids,
        event: Ids | None = None,
        stands_for: Ids | None = None,
    ) -> None:
        """Take triples, to be answered at the next `advance`. Rows of zeros are elements of which the time
        alone matters here; a row may stand for several, which counts if it is late."""
        clock = self.clock.streams[stream]
        if event is None:
            event = np.arange(self.arrival, self.arrival + len(time))
        else:
            event = event + self.arrival
        in_order = not falls(time)
        if len(time) and (not in_order or time[0] <= max(clock.closed, self.now)):
            newest = np.maximum.accumulate(np.concatenate([[clock.newest], time[:-1]]))
            closed = np.maximum(np.where(newest == NEVER, NEVER, newest - clock.lateness - 1), clock.promised)
            fine = time > np.maximum(closed, self.now)
            if not fine.all():
                late = ~fine
                events = len(np.unique(event[late])) if stands_for is None else int(stands_for[late].sum())
                self.late[stream] += events
                s, p, o, time, event = (a[fine] for a in (s, p, o, time, event))
        if len(time):
            clock.newest = max(clock.newest, int(time[-1] if in_order else time.max()))
            self.pending[stream].parts.append((s, p, o, time, event))
            self.arrival = int(event[-1]) + 1

    def heartbeat(self, stream: str, time: int) -> list[Answer]:
        """The stream promises that no element at or before `time` will come any more."""
        answers = self.fallback.heartbeat(stream, time)
        clock = self.clock.streams[stream]
        clock.promised = max(clock.promised, time)
        return _in_time_order(answers, self.all_answers(self.advance()))

    def end(self, stream: str) -> list[Answer]:
        """The stream has no more elements."""
        answers = self.fallback.end(stream)
        self.clock.streams[stream].ended = True
        return _in_time_order(answers, self.all_answers(self.advance()))

    # -------------------------------------------------------------------- time

    def advance(self) -> list[AnswerBatch]:
        """Answer what has become complete."""
        closed = self.clock.closed
        if closed <= self.now:
            return []
        rows = {name: pending.release(closed) for name, pending in self.pending.items()}
        self._steps += 1
        step = Step(self._steps, closed, rows, self._budget)
        if self.on_step is not None:
            self.on_step(step)
        self._answered = self.now
        sent = self._run(step)
        self.now = closed
        view = self.dictionary.view()
        batches = [AnswerBatch(running, some, view) for running, some in sent if len(some)]
        self._release()
        self._check_memory()
        return batches

    def retake(self, until: int, rows: Mapping[str, StreamRows]) -> None:
        """Take a step again that was taken and answered before."""
        self._steps += 1
        step = Step(self._steps, until, rows, self._budget)
        self._answered = self.now
        self._run(step)
        self.now = until

    def names_of(self, network: _Running) -> list[str]:
        """The queries that a network answers."""
        return network.parameters.names if isinstance(network, _Shared) else [network.name]

    def _check_memory(self) -> None:
        if self.memory_limit is None:
            return
        every = {id(node): node for network in self.networks() for node in nodes_of(network.root)}
        state = sum(node.nbytes for node in every.values()) + self.dictionary.nbytes
        self._budget.held = state
        if 2 * state < self.memory_limit and self._steps % 16:
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

    def _release(self) -> None:
        """Let go of terms that nothing holds any more, whenever the dictionary has doubled.

        Terms that are new since the last time stay: they may be in columns that were read ahead."""
        if len(self.dictionary) < self._release_at:
            return
        held = reachable_ids(self._queries, self._shapes, self.pending)
        new = self.dictionary.ids(since=self._kept)
        self.released += self.dictionary.retain(np.concatenate([held, new]))
        self._kept = len(self.dictionary)
        self._release_at = max(LEAST_TERMS, 2 * self._kept)

    def _run(self, step: Step) -> list[tuple[_Running, Sent]]:
        """What each network sends in a step. One that fails is stopped, the others do not notice."""
        self.apart()
        networks = self.networks()
        self._told = {}
        self._budget.begin()
        for running in networks:
            who = id(running.reporter)
            if who not in self._told:
                self._budget.turn(who)
                try:
                    self._told[who] = self._sent(running, step)
                except EVERYBODYS:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever it is, it is this network's alone
                    self._budget.done(who)
                    self._fail(who, error)
        told = [(running, self._told[id(running.reporter)]) for running in networks]
        self._told = {}
        return [(running, sent) for running, sent in told if sent is not None]

    def _sent(self, running: _Running, step: Step) -> Sent:
        """What a network sends in a step."""
        for window in running.windows:
            window.move(step)
        if isinstance(running, _Shared):
            running.first_reports.take(step.rows, step.until)
        running.reporter.budget = self._budget
        for node in running.first:
            node.step(step)
        return running.reporter.step(running.root.step(step), step.until)

    def _fail(self, who: int, error: Exception) -> None:
        """Stop the queries that a reporter (the one with this `id`) reports for: they send nothing, in this
        step neither."""
        self._told[who] = None
        names = [name for name, network in self._queries.items() if id(network.reporter) == who]
        for key, network in list(self._shapes.items()):
            if network is not None and id(network.reporter) == who:
                del self._shapes[key]
                names += network.parameters.numbers
        why = Stopped.by(error, self._answered)
        if names:
            why.warn(names)
        for name in names:
            self.stop(name, why)

    def all_answers(self, batches: list[AnswerBatch]) -> list[Answer]:
        """The answers as objects, in time order."""
        sizes: Counter[int] = Counter()
        for batch in batches:
            sizes[id(batch.running.reporter)] += self._budget.of_answers(len(batch), len(batch.sent.columns))
        gone = dict(self._budget.too_much(sizes))
        for who, size in gone.items():
            self._fail(who, self._budget.error(size))
        found: list[Answer] = []
        for batch in batches:
            if (who := id(batch.running.reporter)) in gone:
                continue
            try:
                found += batch.answers()
            except EVERYBODYS:
                raise
            except Exception as error:  # noqa: BLE001 - as in a step
                self._fail(who, error)
        found.sort(key=lambda a: a.time)
        return found


@lru_cache(maxsize=64)
def _shape_of(query: A.Query) -> Lifted | None:
    return lift(inlined(deterministic(query)))


def _counts_in_steps(window: Window) -> bool:
    """Whether where the window began to count matters, which is remembered by query."""
    return isinstance(window.intervals, CountIntervals) and window.intervals.step > 1


def shared_names(batch: AnswerBatch) -> list[str] | None:
    """The names of all queries of the batch's network, by their numbers from 1; None if it is one query's."""
    return batch.running.parameters.names if isinstance(batch.running, _Shared) else None


def how_it_runs(query: A.Query) -> str:
    """How a query would be run over empty stored graphs: from the changes alone, or why not."""
    evaluator = IncrementalEvaluator()
    for window in query.windows:
        if isinstance(window.stream, NamedNode) and window.stream.value not in evaluator.clock.streams:
            evaluator.add_stream(window.stream.value)
    evaluator.register("query", query)
    return evaluator.say("query")


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


def _in_time_order(first: list[Answer], second: list[Answer]) -> list[Answer]:
    if not first or not second:
        return first or second
    return sorted([*first, *second], key=lambda a: a.time)
