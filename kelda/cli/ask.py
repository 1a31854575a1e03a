"""`kelda ask`: a one-shot query over files, over what a job has stored, or over what it stores right now.

files              loaded, asked, forgotten
a job that runs    is asked through its checkpoint folder, and answers from its memory
one that does not  what its checkpoint keeps is read; nothing there changes
--on spark         a job of Spark over the files of the checkpoint's store
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from kelda.ask.prepared import PreparedAsk
from kelda.cli.at_hand import store_of
from kelda.cli.output import writer_for
from kelda.cli.request import Request, graphs_of, parsed_queries
from kelda.cli.steer import TIMEOUT, Asked, checkpoint_of, job_at
from kelda.engine.oneshot import Result
from kelda.errors import UsageError
from kelda.io.formats import shape_of
from kelda.io.hold import Hold, InUse
from kelda.io.job import QuerySpec
from kelda.io.jobfile import JobFile
from kelda.io.results import answers_of, from_plain
from kelda.io.values import instant, is_whole
from kelda.lang import algebra as A
from kelda.rdf.dictionary import Dictionary
from kelda.shards.at_rest import at_rest, snapshots_in
from kelda.shards.storing import FOLDER
from kelda.words import count


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asked, as it was written."""

    words: Sequence[str] = ()  # whom to ask, if not files; then a file with the query
    text: str | None = None  # the query, if it is not in a file
    graphs: Sequence[str] = ()
    default_graphs: Sequence[Path] = ()
    params: Sequence[str] = ()
    base: str | None = None
    at: str | None = None
    on: str | None = None
    master: str | None = None
    timeout: float = field(default=TIMEOUT)


def ask(question: Question, *, format: str = "table", explain: bool = False) -> None:
    """Answer it once, on stdout; with `explain`, say how it would be answered."""
    where, file = _whom(question)
    spec, query = _query(question, file)
    if explain:
        print(_explained(query, question.on))
        return
    result = _of_files(question, query) if where is None else _of_job(job_at(where), question, spec, query)
    writer = writer_for(format, sys.stdout, {spec.name: shape_of(query)}, lambda: None, timed=False)
    answers = list(answers_of(spec.name, result, time.time_ns() // 1_000_000))
    writer.write(answers)
    writer.close()
    print(count(len(answers), "answer"), file=sys.stderr)


def _whom(question: Question) -> tuple[Path | None, Path | None]:
    """The job or checkpoint that is asked (None: files), and the file of the query (None: it is a text)."""
    files = bool(question.graphs or question.default_graphs)
    words = [Path(word) for word in question.words]
    if len(words) != (not files) + (question.text is None):
        whom = "" if files else "JOB.toml (or a checkpoint folder, or --default-graph FILE) "
        raise UsageError(f"say whom to ask what: kelda ask {whom}Q.rq, or -e 'SELECT …' for a text")
    file = words[-1] if question.text is None else None
    return None if files else words[0], file


def _query(question: Question, file: Path | None) -> tuple[QuerySpec, A.Query]:
    texts = [] if question.text is None else [question.text]
    request = Request([] if file is None else [file], texts, params=question.params, base=question.base)
    ((spec, query),) = parsed_queries(request)
    if query.windows:
        raise UsageError(
            f"query '{spec.name}' has windows, so it is answered as streams go on: `kelda query`, or "
            "`kelda add` it to a job"
        )
    return spec, query


def _explained(query: A.Query, on: str | None) -> str:
    if on is None:
        return PreparedAsk(query, Dictionary()).explain()
    from kelda.spark.sql.explain import explained
    from kelda.spark.sql.refused import check

    check(query)
    return explained(query)


def _of_files(question: Question, query: A.Query) -> Result:
    if question.at is not None or question.on is not None:
        raise UsageError("--at and --on are for what a job has stored, not for files")
    request = Request(graphs=question.graphs, default_graphs=question.default_graphs)
    store = store_of(graphs_of(request, question.base))
    return PreparedAsk(query, store.dictionary).answer(store.view())


# ---------------------------------------------------------------------------------- of a job


def _of_job(job: JobFile, question: Question, spec: QuerySpec, query: A.Query) -> Result:
    checkpoint = checkpoint_of(job)
    number, ms = _snapshot(question.at)
    if question.on is not None:
        master = question.master or (job.engine.master if job.engine.runner == "spark" else "local[*]")
        return _on_spark(checkpoint, master, _moment(checkpoint, number, ms), query)
    if _is_running(checkpoint):
        asked = Asked(job, "ask", question.timeout, query=asdict(spec), snapshot=number, time=ms)
        return from_plain(asked.value)
    store = at_rest(checkpoint)
    return PreparedAsk(query, store.dictionary).answer(store.view(_moment(checkpoint, number, ms)))


def _snapshot(at: str | None) -> tuple[int | None, int | None]:
    """`--at`: the number of a snapshot, or a time (ms)."""
    if at is None:
        return None, None
    return (int(at), None) if is_whole(at) else (None, instant(at))


def _is_running(checkpoint: Path) -> bool:
    try:
        Hold(checkpoint).release()
    except InUse:
        return True
    return False


def _moment(checkpoint: Path, number: int | None, ms: int | None) -> int | None:
    """The moment of a snapshot or a time; None: now."""
    if number is not None:
        return snapshots_in(checkpoint).at(number).moment
    return None if ms is None else snapshots_in(checkpoint).moment_at(ms)


def _on_spark(checkpoint: Path, master: str, moment: int | None, query: A.Query) -> Result:
    from kelda.spark.session import session
    from kelda.spark.sql.store import SparkStore

    if not (checkpoint / FOLDER / "quads").is_dir():
        raise UsageError(f"{checkpoint} has stored nothing yet: no batch has changed its graphs")
    return SparkStore(session(master), checkpoint / FOLDER, at_moment=moment).query(query)
