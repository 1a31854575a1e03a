"""rsp-js, an RSP-QL engine for Node: it asks Comunica anew for each window that closes.

It is installed from the npm registry when it is first needed, one fixed version, into a cache folder outside
the repository. The same text goes to both sides, in the spelling that rsp-js reads (`spelled`).

Windows differ by their ends: rsp-js has [from, to), we have (from, to]. Its events are told 1 ms earlier, so
that both see the same ones; then each window's answers must be the same bag. rsp-js is not charged for
reading text, we are. Each side has done the same work once before it is measured.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyoxigraph import Literal

from bench.families.base import BenchQuery
from bench.harness import data
from bench.harness.workload import Load, Ready, made
from kelda.engine.incremental import IncrementalEvaluator
from kelda.errors import EnvironmentProblem
from kelda.lang import algebra as A
from kelda.lang import parse as parse_query
from kelda.rdf import ntriples

PACKAGE, VERSION = "rsp-js", "1.3.5"
SCRIPT = Path(__file__).with_name("rspjs.mjs")
INSTALL_SECONDS = 300
FROM = re.compile(r"FROM NAMED WINDOW (\S+) ON (?:STREAM )?(<[^>]*>) \[[^\]]*\]")
XSD, NUMBERS = "http://www.w3.org/2001/XMLSchema#", ("integer", "decimal", "float", "double")
WINDOW = re.compile(r"\n?[ \t]*\bWINDOW(?= \S+ *\{)")

Bag = Counter[tuple[int, frozenset[tuple[str, object]]]]


def missing() -> str:
    """Why it cannot be run; empty if it can, once the package is there."""
    absent = [name for name in ("node", "npm") if shutil.which(name) is None]
    return f"{PACKAGE} needs {' and '.join(absent)} on the PATH; install Node 20 or later" if absent else ""


def folder() -> Path:
    """Where the package is, or will be."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return caches / "kelda" / "bench" / f"{PACKAGE}-{VERSION}"


def install() -> Path:
    """The folder with the package in it, fetched if it is not there yet."""
    problem, there = missing(), folder()
    if problem:
        raise EnvironmentProblem(problem)
    if (there / "node_modules" / PACKAGE).is_dir():
        return there
    there.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f"{there.name}-", dir=there.parent))
    try:
        _fetch(part)
        if not there.exists():  # else another process was faster
            part.rename(there)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return there


def _fetch(into: Path) -> None:
    command = ["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=1", "--prefix", str(into)]
    try:
        done = subprocess.run(
            [*command, f"{PACKAGE}@{VERSION}"],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            cwd=into,
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentProblem(_unreachable(f"nothing after {INSTALL_SECONDS} s")) from None
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("npm error code")]
        why = errors[0] if errors else f"npm ended with {done.returncode}"
        raise EnvironmentProblem(_unreachable(why))


def _unreachable(why: str) -> str:
    return (
        f"{PACKAGE} {VERSION} could not be fetched by npm ({why}); run it where the npm registry is in reach"
    )


def can_say(query: BenchQuery) -> bool:
    """Whether both mean the same by it: a SELECT over one window by time, in steps, and nothing stored."""
    if "rspql" not in query.texts or query.stored:
        return False
    asked = parse_query(query.texts["rspql"], dialect="rspql")
    if asked.form is not A.Form.SELECT or len(asked.windows) != 1:
        return False
    window = asked.windows[0].window
    return isinstance(window, A.TimeWindow) and window.slide is not None and not window.until


def spelled(text: str) -> str:
    """The query as rsp-js reads it: ON STREAM, sizes in ms, WINDOW at the beginning of a line."""
    (definition,) = parse_query(text, dialect="rspql").windows
    window = definition.window
    assert isinstance(window, A.TimeWindow)
    text = FROM.sub(rf"FROM NAMED WINDOW \1 ON STREAM \2 [RANGE {window.range} STEP {window.slide}]", text)
    return WINDOW.sub("\n  WINDOW", text)


def measure(**params: Any) -> dict[str, Any]:
    """CPU time of both for the same events and text; and whether every window has the same answers."""
    params["queries"] = tuple(params["queries"])
    ready = made(Load(dialect="rspql", **params))
    ((_, _, text),) = ready.texts()
    text = spelled(text)
    theirs, told = _theirs(ready, text, install())
    ours, answers = _ours(ready, text)
    count = data.count(ready.steps)
    return {
        "triples": count,
        "cpu_us": ours / count * 1e6,
        "theirs_cpu_us": theirs / count * 1e6,
        "ratio": theirs / ours,
        "reports": len({at for at, _ in answers}),
        "answers": answers.total(),
        "theirs_answers": told.total(),
        "same_answers": answers == told,
    }


def _theirs(ready: Ready, text: str, packages: Path) -> tuple[float, Bag]:
    lines = b"".join(piece.text for step in ready.steps for piece in step).splitlines()
    parts = (line.split(b"\t", 1) for line in lines)
    events = sorted(((int(at), triple) for at, triple in parts), key=itemgetter(0))
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as place:
        stream, task = Path(place, "stream.tsnt"), Path(place, "task.json")
        stream.write_bytes(b"".join(b"%d\t%s\n" % (at - 1, triple) for at, triple in events))
        task.write_text(json.dumps({"query": text, "stream": str(stream), "runs": 2}), encoding="utf-8")
        done = subprocess.run(["node", str(SCRIPT), str(packages), str(task)], capture_output=True, cwd=place)
    if done.returncode:
        said = done.stderr.decode(errors="replace").splitlines()
        why = next((line for line in said if "Error" in line), f"node ended with {done.returncode}")
        raise EnvironmentProblem(f"{PACKAGE} {VERSION} did not finish: {why}")
    found = json.loads(done.stdout)
    bag: Bag = Counter(
        (report["at"], frozenset((name, _value(*term)) for name, term in answer.items()))
        for report in found["reports"]
        for answer in report["answers"]
    )
    return found["cpu_s"], bag


def _ours(ready: Ready, text: str) -> tuple[float, Bag]:
    query = parse_query(text, dialect="rspql")
    spent = 0.0
    for _ in range(2):  # the first run compiles
        engine = _engine(ready, query)
        begin = time.process_time()
        for piece in (piece for step in ready.steps for piece in step):
            c = ntriples.read(piece.text, engine.dictionary, timed=True)
            assert c.t is not None
            engine.push_batch(piece.stream, c.s, c.p, c.o, c.t)
        spent = time.process_time() - begin
    engine = _engine(ready, query)
    bag: Bag = Counter()
    for piece in (piece for step in ready.steps for piece in step):
        c = ntriples.read(piece.text, engine.dictionary, timed=True)
        assert c.t is not None
        for answer in engine.push_columns(piece.stream, c.s, c.p, c.o, c.t):
            assert answer.bindings is not None
            bag[answer.time, frozenset((name, _known(t)) for name, t in answer.bindings.items())] += 1
    return spent, bag


def _known(term: Any) -> object:
    return _value(term.value, term.datatype.value) if isinstance(term, Literal) else _value(term.value)


def _value(value: str, datatype: str = "") -> object:
    """A term to be compared. The mean of some floats is written with more digits by one side than by the
    other, so numbers count with six."""
    if datatype.startswith(XSD) and datatype.removeprefix(XSD) in NUMBERS:
        return float(f"{float(value):.6g}")
    return value, datatype


def _engine(ready: Ready, query: A.Query) -> IncrementalEvaluator:
    engine = IncrementalEvaluator()
    for stream in ready.streams:
        engine.add_stream(stream, lateness=ready.lateness, from_start=True)
    engine.register("q", query, output=A.Output.RSTREAM)
    return engine
