"""From queries to networks.

What is built before the next step may have windows and joins in common with what was built since the last: a
query sees the stream from its registration on, so these hold the same elements for ever.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from pyoxigraph import NamedNode

from kelda.engine.by_definition import Definition
from kelda.engine.clock import FOREVER
from kelda.engine.compile import Incremental, NotIncremental
from kelda.engine.defined_network import DefinedNetwork, Elements
from kelda.engine.deltas import Ids
from kelda.engine.first_report import FirstReports
from kelda.engine.input import Input
from kelda.engine.intervals import intervals_of
from kelda.engine.join_groups import JoinGroups
from kelda.engine.merging import alone
from kelda.engine.mirrored import Mirrored
from kelda.engine.network import NodeNetwork, SharedNetwork
from kelda.engine.open_windows import OpenWindows, Window
from kelda.engine.ownership import Owner
from kelda.engine.report import Report, When, periods_of
from kelda.engine.reporter import Asker, Reporter, SharedContentReporter, SharedReporter
from kelda.engine.sharing import Parameters
from kelda.engine.term_order import TermOrder
from kelda.engine.top import TopReporter, top_of
from kelda.lang import algebra as A
from kelda.plan.optimize import optimize
from kelda.plan.rules.each_stream import reads_every_stream
from kelda.plan.shape import QUERY, Lifted
from kelda.store.moments import seen_by
from kelda.store.store import Store


class Asked(NamedTuple):
    """A query, what of it is sent and when; with an `owner` it takes only the rows that are this shard's."""

    query: A.Query
    output: A.Output
    report: Report
    owner: Owner | None = None


class Builder:
    """Builds networks over some streams and stored graphs."""

    def __init__(self, input: Input, store: Store, t0: int) -> None:
        self.input, self.store, self.t0 = input, store, t0
        self._mirror: Mirrored | None = None  # the stored graphs, for queries by definition
        self._windows, self._groups = OpenWindows(), JoinGroups()
        self._elements = Elements(input.dictionary)
        self._definitions = 0
        self._back = FOREVER  # new queries find stored graphs as they were at this moment, if that is earlier

    @property
    def _seen(self) -> int:
        """The moment up to which stored graphs are as new queries find them."""
        return min(self._back, seen_by(self.input.now, self.store.latest))

    def look_back(self, moment: int) -> None:
        """Let new queries find stored graphs as they were at a moment."""
        self._back = moment

    def stand_at_now(self) -> None:
        """Let new queries find stored graphs as they are."""
        self._back = FOREVER
        self.reach(self._seen)

    def reach(self, moment: int) -> None:
        """Changes of stored graphs up to a moment are about to be seen."""
        if self._mirror is not None:
            self._mirror.reach(moment)

    def close(self) -> None:
        """A step begins: what is built later has nothing in common with what was built before."""
        self._windows.close()
        self._groups.close()

    def alone(self, name: str, asked: Asked) -> NodeNetwork:
        """A network for one query; raises `NotIncremental` if it has no incremental form."""
        query, output, report, owner = asked
        if query.form is A.Form.DESCRIBE:
            raise NotIncremental("DESCRIBE")
        if not query.windows and output is A.Output.RSTREAM:
            raise NotIncremental("a live query that sends all it has whenever a graph changes")
        if reads_every_stream(query) and not self.input.clock.streams:
            raise NotIncremental("STREAM ?var without any stream")
        query = optimize(query, self.input.clock.streams)
        windows = self._opened(query, report, self._windows)
        compiler, read = self._compiler(query, windows, owner, name=name), tuple(windows.values())
        tracks = [window.track for window in read]
        top = top_of(query.pattern)
        reporter: Reporter
        if top is not None:
            root, order = compiler.compile_top(top), TermOrder(self.input.dictionary)
            reporter = TopReporter(root.columns, output, report, self.t0, tracks, top=top, order=order)
        else:
            root, kind = compiler.compile(), Asker if query.form is A.Form.ASK else Reporter
            reporter = kind(root.columns, output, report, self.t0, tracks)
        reporter.starts_after(self.input.now)
        return NodeNetwork(name, query, root, reporter, read, alone(compiler, top))

    def shared(self, lifted: Lifted, asked: Asked) -> SharedNetwork:
        """A network for all queries of a shape, none yet; raises `NotIncremental` if it cannot be."""
        shape, output, report, owner = asked
        windows = self._opened(shape, report, None)  # each its own: they will differ in size
        varying = {
            w.name: windows[w.name].intervals
            for w, size in zip(shape.windows, lifted.sizes, strict=True)
            if size is not None
        }
        parameters = Parameters(len(lifted.constants), varying)
        root = self._compiler(shape, windows, owner, parameters).compile()
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
            every = periods_of(shape, report)
            reporter = SharedContentReporter(root.columns, report, self.t0, every, parameters.told_to)
            reporter.starts_after(self.input.now)
        read = tuple(windows.values())
        return SharedNetwork(
            "",
            shape,
            root,
            reporter,
            read,
            parameters=parameters,
            first_reports=first_reports,
            store=self.store,
        )

    def by_definition(self, name: str, asked: Asked, reason: str) -> DefinedNetwork:
        """A network for one query, whatever it is."""
        query, output, report, _ = asked
        if self._mirror is None:
            self._mirror = Mirrored(self.store, self._seen)
        self._mirror.reach(self._seen)
        graphs, mirror = self._mirror.graphs, self._mirror.mirror
        definition = Definition(name, query, output, report, self.t0, self._definitions, graphs)
        self._definitions += 1
        for stream in self.input.clock.streams:
            definition.open_windows(stream)
        network = DefinedNetwork(definition, self._elements, reason, mirror)
        network.starts_after(self.input.now)
        return network

    def _compiler(
        self,
        query: A.Query,
        windows: dict[str, Window],
        owner: Owner | None,
        parameters: Parameters | None = None,
        name: str = "",
    ) -> Incremental:
        by_name = {window: (w.stream, w.intervals) for window, w in windows.items()}
        return Incremental(
            query,
            self.store,
            self.input.dictionary,
            by_name,
            parameters,
            owner,
            self._groups,
            name,
            self._seen,
            looks_back=self._back < FOREVER,
        )

    def _opened(self, query: A.Query, report: Report, opened: OpenWindows | None) -> dict[str, Window]:
        """The windows of a query by name; equal ones are those that are `opened` already."""
        windows: dict[str, Window] = {}
        on_close = report.when is When.WINDOW_CLOSE
        for name, stream, window in ((w.name, w.stream, w.window) for w in query.windows):
            if not isinstance(stream, NamedNode):
                raise NotIncremental("STREAM ?var")
            make = partial(intervals_of, window, self.t0, self.input.dictionary, on_close=on_close)
            if opened is None:
                windows[name] = Window(stream.value, make())
            else:
                windows[name] = opened.window(stream.value, window, on_close, make)
        return windows
