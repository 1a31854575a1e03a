"""Requests to an engine that another process runs, through its checkpoint folder.

    who asks                     .requests/                     the engine
    ask ──────────────────► ID.json
                                 ID.taken.json ◄────────── takes it, carries it out
    reads, removes ◄──────── ID.reply.json ◄────────────── says what became of it

Files are plain JSON, appear whole, and are open to their owner alone; nothing in them is ever run. A request
is carried out once: what was taken when the engine was killed is looked at again by the next one, which does
what is still to be done. So it makes no difference who serves them: an engine that runs, or, if there is
none, whoever asks, with an engine of his own on the same checkpoint for as long as that takes.
"""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Protocol

from kelda.durable import replace_file, sync
from kelda.errors import EnvironmentProblem, KeldaError, UsageError
from kelda.io.job import QuerySpec, parse_spec
from kelda.io.query_files import undeclared_streams
from kelda.io.results import as_plain
from kelda.kept import writing
from kelda.lang.params import term_from_text

FOLDER = ".requests"  # in the checkpoint
POLL = 0.2  # seconds between two looks of an engine that runs
LOOK = 0.05  # and of who waits for a reply
FORGOTTEN = 3600.0  # seconds after which a reply that nobody has read is removed
TAKEN, REPLY = ".taken.json", ".reply.json"


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of a request: a value, or an error as text."""

    value: Any = None
    error: str | None = None
    exit_code: int = KeldaError.exit_code

    def result(self) -> Any:
        """The value; raises the error."""
        if self.error is None:
            return self.value
        error = KeldaError(self.error)
        error.exit_code = self.exit_code
        raise error


# ------------------------------------------------------------------------------------- asking


class Ask:
    """A request on its way: written when this is made, until its reply is read or it is withdrawn."""

    def __init__(self, checkpoint: Path, what: str, **about: object) -> None:
        self.folder = _folder_in(checkpoint)
        self.id = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
        data = json.dumps({"what": what, **about}).encode()
        replace_file(self.folder / f"{self.id}.json", data, mode=0o600)

    def reply(self) -> Reply | None:
        """The reply, if it is there; it is read once."""
        path = self.folder / f"{self.id}{REPLY}"
        try:
            said = Reply(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        path.unlink(missing_ok=True)
        return said

    def wait(self, timeout: float) -> Reply:
        """The reply of an engine that runs. Nothing is left behind if it does not come in time, unless
        it is being carried out just then."""
        until = time.monotonic() + timeout
        while (said := self.reply()) is None:
            if time.monotonic() > until:
                raise self._unanswered(timeout)
            time.sleep(LOOK)
        return said

    def withdraw(self) -> bool:
        """Take the request back; False if it was taken by an engine already."""
        try:
            (self.folder / f"{self.id}.json").unlink()
        except FileNotFoundError:
            return False
        return True

    def _unanswered(self, timeout: float) -> KeldaError:
        if self.withdraw():
            return KeldaError(
                f"the job did not answer within {timeout:.0f} s, and nothing was done: it may be starting or "
                "busy with a long batch; try again, or with a longer --timeout"
            )
        return KeldaError(
            f"the job took the request and has not answered within {timeout:.0f} s: it may still be done; "
            "`kelda list` shows what is so"
        )


# ------------------------------------------------------------------------------------ serving


class ServedStream(Protocol):
    """A stream of an engine, as far as requests go."""

    @property
    def iri(self) -> str: ...
    @property
    def source(self) -> Any: ...


class ServedQuery(Protocol):
    """A query of an engine, as far as requests go."""

    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def sink(self) -> str | None: ...
    @property
    def state(self) -> str: ...
    @property
    def error(self) -> Exception | None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...


class Served(Protocol):
    """An engine, as far as requests go."""

    @property
    def streams(self) -> Iterable[ServedStream]: ...
    @property
    def queries(self) -> Iterable[ServedQuery]: ...
    @property
    def figures(self) -> Any: ...
    @property
    def register(self) -> Callable[..., object]: ...
    @property
    def query(self) -> Callable[..., Any]: ...
    def update(self, text: str, *, base: str | None = None) -> None: ...


class Desk:
    """Where an engine serves requests: all that wait now, or, from `start` to `stop`, all that come."""

    def __init__(self, checkpoint: Path, engine: Served) -> None:
        self.folder, self._engine = _folder_in(checkpoint), engine
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._tidy_up()

    def serve(self) -> int:
        """Carry out what waits, in the order in which it was asked; returns how many there were."""
        waiting = sorted(path.name for path in self.folder.glob("[0-9]*.json") if not _is(REPLY, path))
        for name in waiting:
            self._serve(name)
        return len(waiting)

    def start(self) -> Desk:
        """Serve from now on, in a thread."""
        self._thread = threading.Thread(target=self._run, name="kelda-requests", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Finish what is being carried out, and take no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        told = False
        while not self._over.wait(POLL):
            try:
                self.serve()
                told = False
            except (KeldaError, OSError) as problem:  # the disk: the job itself goes on, and asks no one
                if not told:
                    warnings.warn(f"requests cannot be served: {problem}", stacklevel=1)
                told = True

    def _serve(self, name: str) -> None:
        id, taken = name.partition(".")[0], self.folder / f"{name.partition('.')[0]}{TAKEN}"
        again = name.endswith(TAKEN)
        if not again:
            try:
                os.rename(self.folder / name, taken)
            except FileNotFoundError:  # withdrawn
                return
            with writing(self.folder):
                sync(self.folder)
        reply = self.folder / f"{id}{REPLY}"
        if not (again and reply.exists()):
            replace_file(reply, json.dumps(asdict(self._answered(taken, again))).encode(), mode=0o600)
        with writing(taken):
            taken.unlink()

    def _answered(self, path: Path, again: bool) -> Reply:
        try:
            request = json.loads(path.read_bytes())
            return Reply(carry_out(self._engine, request.pop("what"), request, again=again))
        except KeldaError as error:
            return Reply(error=str(error), exit_code=error.exit_code)
        except Exception as error:  # noqa: BLE001 - told to who asked; the engine goes on
            return Reply(error=f"it failed: {type(error).__name__}: {error}")

    def _tidy_up(self) -> None:
        """Remove what nobody will read any more: replies to who has gone, files that were not finished."""
        for path in [*self.folder.glob(f"*{REPLY}"), *self.folder.glob(".*.new")]:
            if time.time() - path.stat().st_mtime > FORGOTTEN:
                path.unlink(missing_ok=True)


def carry_out(engine: Served, what: str, about: Mapping[str, Any], *, again: bool = False) -> Any:
    """Do what a request asks. `again`: it may have been done before, and then there is nothing to do."""
    match what:
        case "list":
            return listed(engine)
        case "ask":
            return as_plain(_asked(engine, QuerySpec(**about["query"]), about["snapshot"], about["time"]))
        case "add":
            return _add(engine, QuerySpec(**about["query"]), about["sink"], again)
        case "update":
            if again:
                raise KeldaError(
                    "the job was killed while it took this update, which may have been carried out or not: "
                    "look at what is stored, and ask again if it was not"
                )
            engine.update(about["text"], base=about["base"])
            return None
        case "drop" | "pause" | "resume":
            name = about["name"]
            found = next((query for query in engine.queries if query.name == name), None)
            if found is None:
                if what == "drop" and again:
                    return name
                there = ", ".join(query.name for query in engine.queries) or "none"
                raise UsageError(f"there is no query named '{name}'; there are: {there}")
            {"drop": found.stop, "pause": found.pause, "resume": found.resume}[what]()
            return name
    raise UsageError(f"the job runs with a version of Kelda that does not know '{what}'")


def _asked(engine: Served, spec: QuerySpec, snapshot: int | None, time: int | None) -> Any:
    params = {name: term_from_text(text) for name, text in spec.params.items()}
    at = snapshot if time is None else datetime_at(time)
    return engine.query(spec.text, params=params or None, base=spec.base, at=at)


def datetime_at(ms: int) -> datetime:
    """The time so many milliseconds after the beginning of 1970."""
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)


def _add(engine: Served, spec: QuerySpec, sink: str | None, again: bool) -> str:
    declared = [stream.iri for stream in engine.streams]
    if missing := undeclared_streams(parse_spec(spec), declared):
        raise UsageError(
            f"query '{spec.name}' reads <{missing[0]}>, and the job has no such stream; "
            f"it has: {', '.join(f'<{iri}>' for iri in declared) or 'none'}"
        )
    for query in engine.queries:
        if again and (query.name, query.text, query.sink) == (spec.name, spec.text, sink):
            return spec.name
    register(engine, spec, sink)
    return spec.name


def register(engine: Served, spec: QuerySpec, sink: str | None) -> Any:
    """Register a query as it is specified."""
    return engine.register(
        spec.text,
        spec.name,
        {name: term_from_text(text) for name, text in spec.params.items()},
        dialect=spec.dialect,
        base=spec.base,
        output=spec.output,
        sink=sink,
    )


def listed(engine: Served) -> dict[str, Any]:
    """What an engine reads and answers, as plain data."""
    return {
        "streams": [{"iri": stream.iri, "source": stream.source.path} for stream in engine.streams],
        "queries": [
            {
                "name": query.name,
                "state": query.state,
                "sink": query.sink,
                "error": None if query.error is None else str(query.error),
            }
            for query in engine.queries
        ],
        "figures": asdict(engine.figures),
    }


def _folder_in(checkpoint: Path) -> Path:
    folder = checkpoint / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise EnvironmentProblem(f"cannot make {folder}: {error.strerror}") from error
    return folder


def _is(kind: str, path: Path) -> bool:
    return path.name.endswith(kind)
