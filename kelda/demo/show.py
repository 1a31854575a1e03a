"""Run the demo's queries over the town and show the answers while they come."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from kelda.api import Engine
from kelda.cli.driving import declare, drive, load, opened
from kelda.cli.request import Request, Wanted, read_request
from kelda.demo import town
from kelda.engine.answer import Answer
from kelda.io.formats import Shape, shape_of
from kelda.io.jobfile import EngineSettings
from kelda.io.requests import register
from kelda.io.tables import short_name, table

QUESTIONS = {
    "together": ("CQELS-QL", "who is seen where somebody else just was?"),
    "warmest": ("C-SPARQL", "the two warmest rooms, every ten seconds"),
    "jam": ("RSP-QL", "where do cars go at less than half the limit?"),
}
ROWS = 4  # of each query that are in sight
BATCH_EVENTS = 40  # small, so that answers come little by little


def run_demo(
    *, runner: str = "spark", master: str = "local[2]", seconds: int = 60, keep: Path | None = None
) -> None:
    """The demo, from the data to what to do next. Without `keep` it leaves nothing behind."""
    console = Console(highlight=False)
    started = time.monotonic()
    with _folder(keep) as folder:
        write_demo(folder, seconds)
        wanted = read_request(demo_request(folder))
        view = View({spec.name: shape_of(query) for spec, query in wanted.queries}, f"starting {runner}")
        with Live(view, console=console, refresh_per_second=8):
            run_town(wanted, view.take, view.look, runner=runner, master=master)
            view.status = "done"
    console.print(_next_steps(keep, time.monotonic() - started))


def run_town(
    wanted: Wanted,
    take: Callable[[Answer], None],
    look: Callable[[Engine], None] = lambda engine: None,
    *,
    runner: str,
    master: str = "local[2]",
) -> None:
    """Ask the demo's queries: `take` gets the answers, `look` sees the engine now and then."""
    shards = 2 if runner == "spark" else 1
    engine = opened(EngineSettings(runner, master, shards, batch_events=BATCH_EVENTS), fixed_graphs=True)
    load(engine, wanted.graphs)
    declare(engine, wanted.streams)
    for spec, _ in wanted.queries:
        register(engine, spec, None).subscribe(take)
    drive(engine, strict=True, tick=lambda: look(engine))


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        yield keep
        return
    folder = Path(tempfile.mkdtemp(prefix="kelda-demo-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_demo(folder: Path, seconds: int = 60) -> None:
    """The town's data and the three queries, as files in `folder`."""
    town.write_town(folder, seconds)
    for name in QUESTIONS:
        text = (resources.files("kelda.demo") / "queries" / f"{name}.rq").read_text(encoding="utf-8")
        (folder / f"{name}.rq").write_text(text, encoding="utf-8")


def demo_request(folder: Path) -> Request:
    """What `kelda query` is asked in the demo."""
    return Request(
        queries=[folder / f"{name}.rq" for name in QUESTIONS],
        streams=[f"{iri}={folder / name}" for iri, name in town.STREAMS.items()],
        graphs=[f"{town.GRAPH}={folder / town.GRAPH_FILE}"],
        mappings=[f"http://example.org/traffic={folder / town.TRAFFIC_MAPPING}"],
    )


def demo_command(folder: Path) -> str:
    """The same as a command line."""
    request = demo_request(folder)
    lines = ["kelda query " + " ".join(shlex.quote(str(q)) for q in request.queries)]
    lines += [f"--stream {shlex.quote(text)}" for text in request.streams]
    lines += [f"--mapping {shlex.quote(text)}" for text in request.mappings]
    lines += [f"--graph {shlex.quote(text)}" for text in request.graphs]
    return " \\\n    ".join(lines)


class View:
    """The newest answers of each query, and what was read so far."""

    def __init__(self, shapes: dict[str, Shape], status: str) -> None:
        self.shapes, self.status = shapes, status
        self.questions = dict(zip(shapes, QUESTIONS.values(), strict=True))
        self.newest: dict[str, deque[Answer]] = {name: deque(maxlen=ROWS) for name in shapes}
        self.answers = self.events = 0

    def take(self, answer: Answer) -> None:
        self.newest[answer.query].append(answer)
        self.answers += 1

    def look(self, engine: Engine) -> None:
        self.events = engine.figures.events
        if self.events:
            self.status = "reading"
        assert not any(engine.late.values()), "the demo wrote late elements"

    def __rich__(self) -> RenderableType:
        parts: list[RenderableType] = []
        for name, answers in self.newest.items():
            dialect, question = self.questions[name]
            title = short_name(name, self.shapes[name].prefixes)
            heading = Text.assemble((title, "bold cyan"), (f"  {dialect}  ", "magenta"), question)
            shown = table("", list(answers), self.shapes[name])
            parts += [heading, Padding(shown, (0, 0, 0, 2))]
        parts.append(Text(f"{self.status}: {self.events} events, {self.answers} answers", "dim"))
        return Group(*parts)


def _next_steps(keep: Path | None, seconds: float) -> RenderableType:
    lines = [
        Text(f"\nThat was the whole job in {seconds:.0f} s: three streams, a stored graph, three dialects.")
    ]
    if keep is None:
        lines.append(Text("Take it with you, and change the queries:"))
        lines.append(Text("    kelda demo --keep town", "bold"))
    else:
        lines.append(Text(f"Data and queries are in {keep}. Change a query and run it again:"))
        lines.append(Text("    " + demo_command(keep), "bold"))
    lines.append(Text("Ask about your own files:  kelda query --help"))
    lines.append(Text("See how a query is run:    kelda explain Q.rq"))
    return Group(*lines)
