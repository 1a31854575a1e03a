"""Random programs over stored graphs that grow, and those who run them.

A program is a list of operations, drawn once. Whoever runs it keeps a log: what was asked and refused, in
order, and all answers. The logs of any two must be equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hypothesis import note
from hypothesis import strategies as st

import kelda
from kelda.engine.absorb import Absorb
from kelda.engine.answer import Answer
from kelda.engine.oneshot import Result, Solutions
from kelda.engine.reference import ReferenceEvaluator
from kelda.errors import KeldaError, QueryError
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.plan.rules.each_stream import reads_every_stream
from kelda.rdf.event import Event
from kelda.rdf.graphs import read_graph
from tests.crash.abandon import abandon
from tests.engine.random_queries import EX, STORED, STREAMS, Writer, events, queries
from tests.engine.test_batching import bag

FEEDS = False  # the engine can feed graphs
KEEP: dict[str, Any] = {"keep": 10_000}  # snapshots, for `connect`: all of them

LATENESS = 1
PREFIX = "PREFIX : <http://ex/> "
G, FED = EX + "g", EX + "h"
FILES = (STORED, "@prefix : <http://ex/> . :n0 :k 2 ; :p :n2 . :n1 :q 1 . GRAPH :g { :n1 :p :n0 . :n0 :q 2 }")

# ------------------------------------------------------------------------------ texts

STORED_PARTS = (
    "?x :p ?z",
    "?x ?r ?z",
    "?x :knows ?z . ?z :k ?k",
    "GRAPH :g { ?x :p ?z }",
    "GRAPH :g { ?z ?r ?y }",
    "GRAPH :g { ?x :p+ ?z }",
    "GRAPH ?g { ?x :q ?z }",
    "GRAPH :h { ?x :seen ?z }",
    "{ SELECT ?x (COUNT(*) AS ?k) { GRAPH :g { ?x ?r ?any } } GROUP BY ?x }",
    "{ SELECT (MAX(?z) AS ?k) { ?x ?r ?z } }",
)
HEADS = (
    ("SELECT *", ""),
    ("SELECT ?x ?z", ""),
    ("SELECT DISTINCT ?x", ""),
    ("SELECT (COUNT(*) AS ?n)", ""),
    ("SELECT ?x (COUNT(DISTINCT ?z) AS ?n) (SUM(?k) AS ?sum)", "GROUP BY ?x"),
    ("SELECT ?x ?y ?z", "ORDER BY ?x DESC(?y) ?z LIMIT 2"),
    ("ASK", ""),
)


class Joining(Writer):
    """Queries over windows joined with stored graphs that grow: a few forms that mostly have answers."""

    def body(self) -> str:
        first = self.windowed(self.pick("?x ?p ?y", "?x :p ?y", "?x :p ?y . ?x :q ?w"))
        return " ".join([first, *(self.joined(self.pick(*STORED_PARTS)) for _ in range(1 + self.flip(3)))])

    def joined(self, stored: str) -> str:
        return self.pick(
            stored,
            f"OPTIONAL {{ {stored} }}",
            f"OPTIONAL {{ {stored} FILTER(?x != ?z) }}",
            f"FILTER NOT EXISTS {{ {stored} }}",
            f"FILTER EXISTS {{ {stored} }}",
            f"MINUS {{ {stored} }}",
            f"{{ {stored} }} UNION {{ {self.windowed('?x :q ?z')} }}",
        )

    def query(self) -> str:
        (head, tail), body = self.draw(st.sampled_from(HEADS)), self.body()
        if self.dialect == "cqels":
            return f"{PREFIX}{head} WHERE {{ {body} }} {tail}"
        windows = " ".join(self.windows)
        if self.dialect == "csparql":
            return f"{PREFIX}REGISTER QUERY q AS {head} {windows} WHERE {{ {body} }} {tail}"
        kind = self.pick("RSTREAM", "ISTREAM", "DSTREAM")
        return f"{PREFIX}REGISTER {kind} :o AS {head} {windows} WHERE {{ {body} }} {tail}"


class Live(Joining):
    """The same without windows."""

    def windowed(self, inside: str) -> str:
        return self.pick(f"GRAPH :g {{ {inside} }}", f"{{ {inside} }}", f"GRAPH ?g {{ {inside} }}")


@st.composite
def continuous(draw: st.DrawFn) -> str:
    """A query with windows."""
    return Joining(draw, draw(st.sampled_from(["cqels", "rspql", "csparql"])), []).query()


@st.composite
def live(draw: st.DrawFn) -> str:
    """A query over stored graphs alone."""
    return Live(draw, "cqels", []).query()


FEEDING = (
    "CONSTRUCT { ?x :seen ?p } { STREAM :a [RANGE 3ms] { ?x ?p ?y } }",
    "CONSTRUCT { ?x :seen ?y } { STREAM :b [NOW] { ?x ?p ?y } }",
    "CONSTRUCT { ?x :seen ?z } { STREAM :a [RANGE 5ms SLIDE 2ms] { ?x :p ?y } GRAPH :g { ?z ?q ?y } }",
    "CONSTRUCT { ?x :seen ?y . ?y :seen ?x } { GRAPH :g { ?x :p ?y } }",
    "CONSTRUCT { ?x :seen ?p } { ?x ?p ?y FILTER NOT EXISTS { GRAPH :g { ?x ?p ?y } } }",
    "REGISTER RSTREAM :o AS CONSTRUCT { ?x :seen ?y } FROM NAMED WINDOW :w ON :a [RANGE 4 STEP 2] "
    "WHERE { WINDOW :w { ?x ?p ?y } }",
    "CONSTRUCT { ?x :seen ?y } { GRAPH :h { ?x :p ?y } }",  # a circle
)
UPDATES = (
    "INSERT DATA { :n0 :p 1 . :n2 :knows :n0 }",
    "INSERT DATA { GRAPH :g { :n1 :q :n2 . :n0 :p 1 } :n2 :k 2 }",
    "DELETE DATA { :n0 :p 1 . :n1 :k 2 . GRAPH :g { :n0 :p 0 } }",
    "DELETE { GRAPH :g { ?x :p ?y } } INSERT { ?x :k ?y } WHERE { GRAPH :g { ?x :p ?y } }",
    "WITH :g DELETE { ?x ?p 1 } INSERT { ?x ?p 2 } WHERE { ?x ?p 1 FILTER NOT EXISTS { ?x ?p 2 } }",
    "INSERT { GRAPH :g { ?y :p ?x } } WHERE { ?x :knows ?y OPTIONAL { ?x :k ?k } FILTER(!BOUND(?k)) }",
    "DELETE WHERE { ?x :q ?y }",
    "DELETE WHERE { GRAPH :g { ?x :p ?y } } ; INSERT DATA { GRAPH :g { :n2 :p :n2 } }",
    "CLEAR SILENT GRAPH :g",
    "CLEAR SILENT DEFAULT",
    "COPY SILENT DEFAULT TO :g",
    "INSERT DATA { GRAPH :h { :nobody :seen :nobody } }",  # refused while it is fed
    "DELETE WHERE { :nobody ?p",  # no update at all
)
ABSORBING = (
    None,
    Absorb(G),
    Absorb(None),
    Absorb(G, frozenset([EX + "p"])),
    Absorb(None, frozenset([EX + "q", EX + "at"])),
    Absorb(FED),  # refused while it is fed
)

# ------------------------------------------------------------------------------ programs


@dataclass(frozen=True)
class Declare:
    stream: str
    absorb: Absorb | None


@dataclass(frozen=True)
class Undeclare:
    stream: str


@dataclass(frozen=True)
class Register:
    name: str
    text: str
    output: str | None
    feeds: str | None = None


@dataclass(frozen=True)
class Drop:
    name: str


@dataclass(frozen=True)
class Pause:
    name: str
    paused: bool


@dataclass(frozen=True)
class Push:
    batch: dict[str, list[Event]]


@dataclass(frozen=True)
class Beat:
    time: int


@dataclass(frozen=True)
class Update:
    text: str


@dataclass(frozen=True)
class Load:
    file: int


@dataclass(frozen=True)
class Clear:
    graph: str | None


@dataclass(frozen=True)
class Ask:
    """Now, or at the snapshot that was asked so many questions ago."""

    text: str
    back: int | None = None


@dataclass(frozen=True)
class Crash:
    pass


Op = Declare | Undeclare | Register | Drop | Pause | Push | Beat | Update | Load | Clear | Ask | Crash


def _is_query(text: str) -> bool:
    try:
        parse(text)
    except QueryError:  # a random query may break a rule of SPARQL
        return False
    return True


@st.composite
def programs(draw: st.DrawFn) -> list[Op]:
    """What is done, up to the end of all streams."""
    left = dict(zip(STREAMS, (draw(events()), draw(events())), strict=True))
    left = {stream: [e for e in some if e.quads] for stream, some in left.items()}
    absorb = st.sampled_from(ABSORBING[:-1])
    ops: list[Op] = [*(Declare(stream, draw(absorb)) for stream in STREAMS), Beat(-1)]
    random = st.one_of(continuous(), continuous(), live(), live(), queries())
    texts = list(filter(_is_query, draw(st.lists(random, min_size=1, max_size=3))))
    once = draw(st.lists(live(), min_size=1, max_size=2))
    if draw(st.booleans()):
        ops.append(Load(0))
    output = st.sampled_from([None, None, *(o.value for o in Output)])
    newest, names, asked = -1, 0, 0
    feed = ["feed"] if FEEDS else []
    kinds = ["register", "register", *feed, "update", "update", "load", "clear", "ask", "ask", *6 * ["push"]]
    rare = ["drop", "pause", "resume", "crash", "undeclare", "declare"]
    for i in range(draw(st.integers(6, 24))):
        kind = draw(st.sampled_from([*kinds, *rare])) if i else "register"
        if kind in ("register", "feed"):
            feeds = kind == "feed"
            text = PREFIX + draw(st.sampled_from(FEEDING)) if feeds else None
            if text is None and texts:
                text = draw(st.sampled_from(texts))
            if text is not None:
                # Nothing may wait for its instant: whether it is sent was decided without the query.
                ops.append(Beat(newest))
                ops.append(Register(f"q{names}", text, draw(output), FED if feeds else None))
                names += 1
        elif kind == "push":
            batch = {}
            for stream in STREAMS:
                size = draw(st.integers(0, 3))
                batch[stream], left[stream] = left[stream][:size], left[stream][size:]
            newest = max([newest, *(e.time or 0 for some in batch.values() for e in some)])
            ops.append(Push(batch))
        elif kind == "update":
            ops.append(Update(PREFIX + draw(st.sampled_from(UPDATES))))
        elif kind == "load":
            ops.append(Load(draw(st.integers(0, len(FILES) - 1))))
        elif kind == "clear":
            ops.append(Clear(draw(st.sampled_from([None, G]))))
        elif kind == "ask":
            back = draw(st.one_of(st.none(), st.integers(0, asked))) if asked else None
            ops.append(Ask(draw(st.sampled_from(once)), back))
            asked += 1
        elif kind == "crash":
            ops.append(Crash())
        elif kind == "declare":
            ops.append(Declare(draw(st.sampled_from(STREAMS)), draw(st.sampled_from(ABSORBING))))
        elif kind == "undeclare":
            ops.append(Undeclare(draw(st.sampled_from(STREAMS))))
        elif names:
            name = f"q{draw(st.integers(0, names - 1))}"
            ops.append(Drop(name) if kind == "drop" else Pause(name, kind == "pause"))
    return [*ops, Push(left)]


# ------------------------------------------------------------------------------ running


class Side(Protocol):
    """Who can carry a program out."""

    answers: list[Answer]

    def add_stream(self, iri: str, absorb: Absorb | None) -> None: ...
    def drop_stream(self, iri: str) -> None: ...
    def register(self, name: str, text: str, output: str | None, feeds: str | None) -> None: ...
    def drop(self, name: str) -> None: ...
    def pause(self, name: str, paused: bool) -> None: ...
    def push(self, stream: str, events: list[Event]) -> None: ...
    def beat(self, stream: str, time: int) -> None: ...
    def end(self, stream: str) -> None: ...
    def update(self, text: str) -> None: ...
    def load(self, path: Path) -> None: ...
    def drop_graph(self, graph: str | None) -> None: ...
    def snapshot(self) -> Any: ...
    def query(self, text: str, at: Any) -> Result: ...
    def crash(self) -> None: ...


@dataclass
class Log:
    """What a run has shown."""

    lines: list[str] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)


def run(program: Sequence[Op], side: Side, folder: Path) -> Log:
    """Carry a program out."""
    log, running, declared, taken = Log(), dict[str, Register](), set[str](), list[Any]()
    for i, op in enumerate(program):
        try:
            line = _carry_out(op, side, folder, running, declared, taken)
        except KeldaError as error:
            note(f"{i} refused: {error}")
            line = "refused"
        if line is not None:
            log.lines.append(f"{i} {line}")
    for stream in sorted(declared):
        side.end(stream)
    log.lines.append(f"at the end {_shown(side.query(PREFIX + 'SELECT * { GRAPH ?g { ?s ?p ?o } }', None))}")
    log.answers = bag(side.answers)
    return log


def _carry_out(
    op: Op, side: Side, folder: Path, running: dict[str, Register], declared: set[str], taken: list[Any]
) -> str | None:
    """Do one thing, if it can be done; what there is to be seen at once."""
    match op:
        case Declare(stream, absorb) if stream not in declared and not any(map(_reads_all, running.values())):
            side.add_stream(stream, absorb)
            declared.add(stream)
        case Undeclare(stream) if stream in declared and not any(_reads(r, stream) for r in running.values()):
            declared.remove(stream)
            side.drop_stream(stream)
        case Register(name, text, output, feeds):
            if {getattr(w.stream, "value", None) for w in parse(text).windows} <= {None, *declared}:
                side.register(name, text, output, feeds)
                running[name] = op
        case Drop(name) if name in running:
            del running[name]
            side.drop(name)
        case Pause(name, paused) if name in running:
            side.pause(name, paused)
        case Push(batch):
            for stream in sorted(declared & batch.keys()):
                side.push(stream, batch[stream])
        case Beat(time):
            for stream in sorted(declared):
                side.beat(stream, time)
        case Update(text):
            side.update(text)
        case Load(file):
            path = folder / f"{file}.trig"
            path.write_text(FILES[file])
            side.load(path)
        case Clear(graph):
            side.drop_graph(graph)
        case Ask(text, back):
            taken.append(side.snapshot())
            return _shown(side.query(text, None if back is None else taken[-1 - back % len(taken)]))
        case Crash():
            side.crash()
    return None


def _reads(registered: Register, stream: str) -> bool:
    windows = parse(registered.text).windows
    return _reads_all(registered) or any(getattr(w.stream, "value", None) == stream for w in windows)


def _reads_all(registered: Register) -> bool:
    return reads_every_stream(parse(registered.text))


def _shown(result: Result) -> str:
    """A result, whatever the order of its rows."""
    if isinstance(result, Solutions):
        rows = [str(sorted((name, str(term)) for name, term in row.items())) for row in result.rows]
        return f"{sorted(result.variables)} {sorted(rows)}"
    return str(result) if isinstance(result, bool) else str(sorted(map(str, result)))


# ------------------------------------------------------------------------------ sides


class ByDefinition:
    """The reference evaluator. With `cut` each element comes by itself, and it is lost and stands up again
    where the program says so."""

    def __init__(self, *, cut: bool = False) -> None:
        self.answers: list[Answer] = []
        self._cut = cut
        self._made: list[Declare | Register] = []  # what there is, in order
        self._evaluator = ReferenceEvaluator()

    def add_stream(self, iri: str, absorb: Absorb | None) -> None:
        self._evaluator.add_stream(iri, lateness=LATENESS, from_start=True, absorb=absorb)
        self._made.append(Declare(iri, absorb))

    def drop_stream(self, iri: str) -> None:
        self._evaluator.drop_stream(iri)
        self._made = [op for op in self._made if not (isinstance(op, Declare) and op.stream == iri)]

    def register(self, name: str, text: str, output: str | None, feeds: str | None) -> None:
        wanted = None if output is None else Output(output)
        self._evaluator.register(name, parse(text), output=wanted)
        if feeds is not None:
            try:
                self._evaluator.feed(name, feeds)
            except KeldaError:
                self._evaluator.drop(name)
                raise
        self._made.append(Register(name, text, output, feeds))

    def drop(self, name: str) -> None:
        self._evaluator.drop(name)
        self._made = [op for op in self._made if not (isinstance(op, Register) and op.name == name)]

    def pause(self, name: str, paused: bool) -> None:
        self._evaluator.pause(name, paused)

    def push(self, stream: str, events: list[Event]) -> None:
        for some in ([e] for e in events) if self._cut else [events]:
            self.answers += self._evaluator.push(stream, some)

    def beat(self, stream: str, time: int) -> None:
        self.answers += self._evaluator.heartbeat(stream, time)

    def end(self, stream: str) -> None:
        self.answers += self._evaluator.end(stream)

    def update(self, text: str) -> None:
        self.answers += self._evaluator.update(text)

    def load(self, path: Path) -> None:
        self.answers += self._evaluator.load(read_graph(path))

    def drop_graph(self, graph: str | None) -> None:
        self.answers += self._evaluator.clear(graph)

    def snapshot(self) -> int:
        return self._evaluator.moment

    def query(self, text: str, at: int | None) -> Result:
        return self._evaluator.ask(text, at)

    def crash(self) -> None:
        if self._cut:
            kept, made = self._evaluator.snapshot(), self._made
            self._evaluator, self._made = ReferenceEvaluator(), []
            for op in made:
                if isinstance(op, Declare):
                    self.add_stream(op.stream, op.absorb)
                else:
                    self.register(op.name, op.text, op.output, op.feeds)
            self._evaluator.restore(kept)


class OnEngine:
    """What users hold, in this process; with a checkpoint it can be lost."""

    def __init__(self, checkpoint: Path | None) -> None:
        self.answers: list[Answer] = []
        self._checkpoint = checkpoint
        self._start()

    def _start(self) -> None:
        self.engine = kelda.connect(checkpoint=self._checkpoint, batch_events=3, **KEEP)
        self.engine.start()

    def add_stream(self, iri: str, absorb: Absorb | None) -> None:
        more: dict[str, Any] = {}
        if absorb is not None:
            more = {
                "absorb": absorb.graph or "default",
                "predicates": absorb.predicates and sorted(absorb.predicates),
            }
        self.engine.stream(iri, lateness=LATENESS, **more)

    def drop_stream(self, iri: str) -> None:
        self._stream(iri).drop()

    def _stream(self, iri: str) -> kelda.Stream:
        return next(stream for stream in self.engine.streams if stream.iri == iri)

    def register(self, name: str, text: str, output: str | None, feeds: str | None) -> None:
        sink = None if feeds is None else f"graph:{feeds}"
        self.engine.register(text, name, output=output, sink=sink)

    def _query(self, name: str) -> kelda.Query:
        return next(query for query in self.engine.queries if query.name == name)

    def drop(self, name: str) -> None:
        self._read()
        self._query(name).stop()

    def pause(self, name: str, paused: bool) -> None:
        self._query(name).pause() if paused else self._query(name).resume()

    def push(self, stream: str, events: list[Event]) -> None:
        if events:
            self._stream(stream).push(events)
        self._read()

    def beat(self, stream: str, time: int) -> None:
        self._stream(stream).heartbeat(time)
        self._read()

    def end(self, stream: str) -> None:
        self._stream(stream).end()
        self._read()

    def update(self, text: str) -> None:
        self.engine.update(text)  # type: ignore[attr-defined]
        self._read()

    def load(self, path: Path) -> None:
        self.engine.load(path)
        self._read()

    def drop_graph(self, graph: str | None) -> None:
        self.engine.drop_graph(graph)
        self._read()

    def snapshot(self) -> int:
        self._read()
        return int(self.engine.snapshots()[-1].number)  # type: ignore[attr-defined]

    def query(self, text: str, at: int | None) -> Result:
        return self.engine.query(text, at=at)  # type: ignore[call-arg]

    def _read(self) -> None:
        assert self.engine.flush(60)
        for query in self.engine.queries:
            if query.sink is None:
                self.answers += query.results()

    def crash(self) -> None:
        if self._checkpoint is not None:
            abandon(self.engine)
            self._start()
