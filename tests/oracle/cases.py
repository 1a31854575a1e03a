"""A case: a query, what it is asked over, and how each side answers it."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

from pyoxigraph import BlankNode, Quad, RdfFormat
from pyoxigraph import parse as parse_rdf

from kelda.engine.answer import Answer
from kelda.engine.incremental import IncrementalEvaluator
from kelda.engine.oneshot import evaluate
from kelda.engine.reference import ReferenceEvaluator
from kelda.io.job import QuerySpec, StreamSource
from kelda.lang import parse
from kelda.lang.algebra import Output
from kelda.rdf.event import Event
from kelda.rdf.graphstore import GraphStore
from kelda.shards.setup import Setup
from tests.conformance.results import Row, Rows, Triples, colours, difference, isomorphic, lines, painted
from tests.shards.local import LocalShards

from . import terms as T
from .compare import Result, from_jena, from_kelda, in_order, one, solution
from .jena import Jena
from .queries import Writer, data
from .windows import Arrival, Window, random_events, random_window, reports

STREAMS = {"a": T.EX + "sa", "b": T.EX + "sb"}
GRAPH = "urn:window:"  # names of windows' graphs in Jena, which GRAPH ?g passes over (Oracle.java)
MANY = 200  # solutions, of which it is not tried how blank nodes can be renamed
WAYS = ("incremental", "reference", "1 shard", "2 shards", "5 shards")


@dataclass(frozen=True)
class Case:
    """`query` has `@w0@` where a window is read and `@from@` where windows are declared.

    Without windows the query is asked once, over `data`."""

    query: str
    data: tuple[str, ...]
    dialect: str = "sparql"
    windows: tuple[Window, ...] = ()
    events: tuple[Arrival, ...] = ()
    every: int = 0
    output: str = "rstream"
    way: str = "oneshot"

    def kelda(self) -> str:
        """The text for Kelda."""
        head, declared = "", ""
        if self.dialect == "csparql":
            head = "REGISTER QUERY q " + (f"COMPUTED EVERY {self.every}ms " if self.every else "") + "AS "
            declared = " ".join(
                f"FROM STREAM <{STREAMS[w.stream]}> {w.text(self.dialect)}" for w in self.windows
            )
        elif self.dialect == "rspql":
            head = "REGISTER RSTREAM :o AS "
            declared = " ".join(
                f"FROM NAMED WINDOW :w{i} ON <{STREAMS[w.stream]}> {w.text(self.dialect)}"
                for i, w in enumerate(self.windows)
            )

        def window(i: int) -> str:
            w = self.windows[i]
            if self.dialect == "cqels":
                return f"STREAM <{STREAMS[w.stream]}> {w.text(self.dialect)}"
            return f"WINDOW :w{i}" if self.dialect == "rspql" else ""

        return self._text(head, declared, window)

    def jena(self) -> str:
        """The text for Jena: windows are named graphs, or part of the default graph."""
        return self._text("", "", lambda i: "" if self.dialect == "csparql" else f"GRAPH <{GRAPH}{i}>")

    def _text(self, head: str, declared: str, window: Callable[[int], str]) -> str:
        text = self.query.replace("@from@", declared)
        return T.PREFIXES + head + re.sub(r"@w(\d+)@", lambda m: window(int(m.group(1))), text)

    def __str__(self) -> str:
        shown = [self.kelda().removeprefix(T.PREFIXES), *(f"  {line}" for line in self.data)]
        shown += [f"  {e.time} on {e.stream}: {' . '.join(e.triples)}" for e in self.events]
        if self.events:
            shown.append(f"  {self.way}, {self.output}")
        text = "\n".join(shown).replace(f"<{T.EX}g", "<:g")
        text = re.sub(rf"<{T.XSD}(\w+)>", r"xsd:\1", text)
        return re.sub(rf"<{T.EX}(\w+)>", r":\1", text)


# ---------------------------------------------------------------------------- random cases


def random_oneshot(random: Random) -> Case:
    """A query that is asked once."""
    blanks, graphs = random.random() < 0.6, random.random() < 0.7
    writer = Writer(random, graphs=graphs, blanks=blanks)
    forms = "SSSSSSSSGGGGAC" + ("D" if not blanks and not graphs else "")
    query = writer.query(forms)
    if graphs and random.random() < 0.12:
        query = query.replace("@from@", writer.dataset())
    return Case(query, tuple(data(random, random.choice((0, 10, 20, 30, 40)), blanks, graphs)))


def random_streamed(random: Random) -> Case:
    """A continuous query. In CQELS-QL a repeated triple counts twice, which no graph shows: none repeats."""
    dialect = random.choice(("cqels", "rspql", "rspql", "csparql"))
    blanks = random.random() < 0.6
    windows = tuple(random_window(random, dialect) for _ in range(random.choice((1, 1, 2))))
    query = Writer(random, windows=len(windows), blanks=blanks).query("SSSSSSSSGGGGAC")
    if dialect != "csparql":  # a query declares the windows that it reads
        read = sorted({int(i) for i in re.findall(r"@w(\d+)@", query)})
        windows = tuple(windows[i] for i in read)
        for new, old in enumerate(read):
            query = query.replace(f"@w{old}@", f"@w{new}@")
    triples = [line.removesuffix(" .") for line in data(random, 30, blanks, graphs=False)]
    output = random.choice(("rstream", "changes")) if query.startswith("SELECT") else "rstream"
    return Case(
        query,
        tuple(line.replace("_:b", "_:s") for line in data(random, random.choice((0, 12, 24, 36)), blanks)),
        dialect,
        windows,
        tuple(random_events(random, triples, repeat=dialect != "cqels")),
        random.choice((0, 0, random.randint(1, 5))) if dialect == "csparql" else 0,
        output,
        random.choice(("incremental", "incremental", "reference", *WAYS[2:])),
    )


# ---------------------------------------------------------------------------- both sides


class Refused(Exception):
    """A side has no answer: it does not take the query, or fails."""

    def __init__(self, side: str, reason: str) -> None:
        super().__init__(f"{side}: {reason}")
        self.side, self.reason = side, reason


@dataclass(frozen=True)
class Slice:
    """The end of a query: how its solutions are ordered and which of them are told."""

    keys: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    END = re.compile(
        r"( ORDER BY(?P<keys>( (ASC|DESC)?\(\?\w+\))+))?( LIMIT (?P<limit>\d+))?( OFFSET (?P<offset>\d+))?$"
    )

    @staticmethod
    def of(query: str) -> tuple[str, Slice]:
        """The query without its end, and that end."""
        found = Slice.END.search(query)
        assert found is not None
        keys = re.findall(r"(ASC|DESC)?\(\?(\w+)\)", found["keys"] or "")
        limit = None if found["limit"] is None else int(found["limit"])
        end = Slice(tuple((name, way == "DESC") for way, name in keys), limit, int(found["offset"] or 0))
        return query[: found.start()], end

    def wrong(self, got: Rows, everything: Rows, lax: bool, ordered: bool) -> str | None:
        """What is wrong about the told part of `everything`."""
        count = max(0, len(everything.rows) - self.offset)
        count = count if self.limit is None else min(count, self.limit)
        if len(got.rows) != count and not lax:
            return f"{len(got.rows)} solutions instead of {count}\n" + lines("all", everything.rows)
        if any(isinstance(term, BlankNode) for r in got.rows for _, term in r):
            return None  # whose names are the evaluator's own
        left = Counter(everything.rows)
        left.subtract(got.rows)
        if any(n < 0 for n in left.values()):
            made_up = [r for r, n in left.items() if n < 0]
            return "none of the solutions:\n" + lines("got", made_up) + lines("all", everything.rows)
        if ordered and not in_order(got.rows, self.keys):
            return "not in order:\n" + lines("got", got.rows)
        if self.offset == 0 and not lax:
            for r in (r for r, n in left.items() if n > 0):
                for told in got.rows:
                    if not in_order((told, r), self.keys):
                        return "not the first:\n" + lines("told", [told]) + lines("passed over", [r])
        return None


@dataclass(frozen=True)
class Difference:
    """Two results that should be the same, and in which way they are not."""

    got: Result | None
    expected: Result | None
    text: str
    again: Callable[[Result, Result], Difference | None] | None = None  # how other results would differ

    def __str__(self) -> str:
        return self.text


def judge(case: Case, jena: Jena) -> Difference | bool:
    """What is different; if nothing is, whether there was anything to compare."""
    return judge_streamed(case, jena) if case.windows else judge_oneshot(case, jena)


def finds(case: Case, jena: Jena) -> bool:
    """Whether the query has an answer over its data; if it has windows, at its last report."""
    content = list(case.data)
    if case.windows:
        times = reports(case.windows, case.events, case.dialect, case.every, False)
        if not times:
            return False
        content = contents(case, times[-1])
    try:
        return says(_asked(jena, Slice.of(case.jena())[0], content))
    except Refused:
        return True


def says(result: Result) -> bool:
    """Whether there is anything in a result."""
    return (
        result
        if isinstance(result, bool)
        else bool(result.rows if isinstance(result, Rows) else result.triples)
    )


def compare(got: Result, expected: Result, end: Slice, lax: bool, ordered: bool = True) -> Difference | None:
    """How a result differs from that of the query without its end."""
    if isinstance(got, Rows) and isinstance(expected, Rows) and (end.limit is not None or end.offset):
        found = end.wrong(got, expected, lax, ordered)
    else:
        found = None if equal(got, expected, lax) else difference(got, expected, lax=lax)
        if found is None and ordered and isinstance(got, Rows) and not in_order(got.rows, end.keys):
            found = "not in order:\n" + lines("got", got.rows)
    if found is None:
        return None
    return Difference(got, expected, found, lambda a, b: compare(a, b, end, lax, ordered))


def equal(got: Result, expected: Result, lax: bool) -> bool:
    """Whether nothing needs to be renamed, or too much to be tried: then by what surrounds blank nodes."""
    if not isinstance(got, Rows) or not isinstance(expected, Rows):
        return got == expected
    if lax:  # REDUCED: each at least once
        got, expected = (replace(side, rows=tuple(dict.fromkeys(side.rows))) for side in (got, expected))
        if len(got.rows) < MANY and isomorphic(got.rows, expected.rows):
            return True
    if Counter(got.rows) == Counter(expected.rows):
        return got.variables is None or got.variables == expected.variables
    if len(got.rows) < MANY:
        return False
    a, b = colours(got.rows), colours(expected.rows)
    return Counter(painted(r, a) for r in got.rows) == Counter(painted(r, b) for r in expected.rows)


def judge_oneshot(case: Case, jena: Jena) -> Difference | bool:
    whole, end = Slice.of(case.jena())
    expected = _asked(jena, whole, case.data)
    try:
        found = evaluate(parse(case.kelda()), GraphStore(quads(case.data)))
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is this case's outcome
        raise Refused("kelda", f"{type(problem).__name__}: {problem}") from None
    return compare(from_kelda(found), expected, end, lax="REDUCED" in whole) or says(expected)


def _asked(jena: Jena, query: str, lines: Sequence[str], **more: Any) -> Result:
    reply = jena.ask(query, lines, **more)
    if "error" in reply:
        raise Refused("jena" if reply["parsed"] else "jena's parser", reply["error"])
    return from_jena(reply)


def quads(lines: Iterable[str]) -> list[Quad]:
    """What N-Quads lines say."""
    return list(parse_rdf("\n".join(lines), RdfFormat.N_QUADS))


def judge_streamed(case: Case, jena: Jena) -> Difference | bool:
    whole, end = Slice.of(case.jena())
    lax = "REDUCED" in whole
    times = reports(case.windows, case.events, case.dialect, case.every, case.output != "rstream")
    _asked(jena, whole, case.data)
    try:
        told = answers(case)
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is this case's outcome
        raise Refused("kelda", f"{type(problem).__name__}: {problem}") from None
    extra = {answer.time for answer in told} - set(times)
    if extra:
        return Difference(None, None, f"answers at {sorted(extra)}, reports are at {times}")
    state: Counter[Row] = Counter()
    said = False
    for t in times:
        graphs = [] if case.dialect == "csparql" else [f"{GRAPH}{i}" for i in range(len(case.windows))]
        expected = _asked(jena, whole, contents(case, t), now=at(t), graphs=graphs)
        now = [answer for answer in told if answer.time == t]
        got: Result
        if isinstance(expected, bool):
            got = any(answer.boolean for answer in now)
            if len(now) != 1:
                return Difference(None, expected, f"at {t}: {len(now)} answers to ASK")
        elif isinstance(expected, Triples):
            got = Triples(frozenset(_one(t) for answer in now for t in answer.triples or ()))
        elif case.output == "rstream":
            got = Rows(tuple(solution(answer.bindings or {}) for answer in now))
        else:
            for answer in now:
                state[solution(answer.bindings or {})] += 1 if answer.sign == "+" else -1
            if any(n < 0 for n in state.values()):
                return Difference(None, expected, f"at {t}: takes back what was not told")
            got = Rows(tuple(state.elements()))
        ordered = case.output == "rstream" and not case.way.endswith("shards")
        found = compare(got, expected, end, lax, ordered)
        if found is not None:
            return replace(found, text=f"at {t}: {found}")
        said = said or says(expected)
    return said


def contents(case: Case, t: int) -> list[str]:
    """The stored data and what is in the windows at t."""
    lines = list(case.data)
    for i, window in enumerate(case.windows):
        place = "" if case.dialect == "csparql" else f" <{GRAPH}{i}>"
        shown = window.content(case.events, t, on_close=case.dialect != "cqels")
        lines += dict.fromkeys(f"{case.events[e].triples[k]}{place} ." for e, k in shown)
    return lines


def _one(triple: Any) -> Any:
    return type(triple)(*map(one, triple))


def at(t: int) -> str:
    """An instant as xsd:dateTime."""
    return datetime.fromtimestamp(t / 1000, timezone.utc).isoformat(timespec="milliseconds")[:-6] + "Z"


# ---------------------------------------------------------------------------- Kelda, streamed


def answers(case: Case) -> list[Answer]:
    """What Kelda says to the events, one by one."""
    if case.way.endswith("shards") or case.way.endswith("shard"):
        return by_shards(case, int(case.way.split()[0]))
    kind = IncrementalEvaluator if case.way == "incremental" else ReferenceEvaluator
    evaluator = kind()
    evaluator.load(quads(case.data))
    for stream in STREAMS.values():
        evaluator.add_stream(stream, from_start=True)
    evaluator.register("q", parse(case.kelda()), output=Output(case.output))
    told = []
    for event in case.events:
        told += evaluator.push(STREAMS[event.stream], [pushed(event)])
    for stream in STREAMS.values():
        told += evaluator.end(stream)
    return told


def by_shards(case: Case, shards: int) -> list[Answer]:
    """The same in several pieces; the stored data come from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stored.nq")
        path.write_text("\n".join(case.data), encoding="utf-8")
        streams = [StreamSource(s, "") for s in STREAMS.values()]
        local = LocalShards(Setup(shards=shards, fixed_graphs=True), streams, [(None, str(path))])
        local.apply([local.planner.plan(QuerySpec("q", case.kelda(), output=case.output))])
        told = []
        for event in case.events:
            told += local.push({STREAMS[event.stream]: [pushed(event)]})
        return told + local.push({}, ends=list(STREAMS.values()))


def pushed(event: Arrival) -> Event:
    """An event for Kelda."""
    return Event(event.time, tuple(quads(f"{triple} ." for triple in event.triples)))
