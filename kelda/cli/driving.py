"""An engine from the command line: opened as settings say, driven until its streams end or Ctrl-C comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import kelda
from kelda.doctor import require_java
from kelda.errors import InputError, QueryStopped
from kelda.io.job import StreamSource
from kelda.io.jobfile import EngineSettings, JobGraph
from kelda.rdf.event import Reject

STOPPED = 130  # the exit code of who was stopped by Ctrl-C
TICK = 0.1  # seconds between two looks at an engine that runs


def opened(settings: EngineSettings, *, fixed_graphs: bool = False, to_run: bool = True) -> kelda.Engine:
    """The engine that settings ask for, which runs nothing yet. What this machine lacks for it `to_run` is
    raised now."""
    if settings.runner == "spark" and to_run:
        require_java()
    more: dict[str, Any] = {"reference": True} if settings.runner == "reference" else {}
    if settings.batch_events is not None:
        more["batch_events"] = settings.batch_events
    if settings.keep is not None:
        more["keep"] = settings.keep
    return kelda.connect(
        settings.master if settings.runner == "spark" else None,
        checkpoint=settings.checkpoint,
        shards=settings.shards,
        balance=settings.balance,
        t0=settings.t0,
        memory_limit=settings.memory_limit,
        fixed_graphs=fixed_graphs,
        **more,
    )


def declare(engine: kelda.Engine, streams: Sequence[StreamSource]) -> None:
    """Let the engine know streams; those that it knows already stay as they are."""
    for stream in streams:
        engine.stream(
            stream.iri,
            stream.path,
            format=stream.format,
            time_predicate=stream.time,
            mapping=stream.mapping,
            lateness=stream.lateness,
            idle=stream.idle_ms,
            rate=stream.rate,
            max_record=stream.max_record,
            absorb=stream.absorb,
            predicates=stream.predicates,
        )


def load(engine: kelda.Engine, graphs: Sequence[JobGraph]) -> None:
    """Load stored graphs."""
    for graph in graphs:
        engine.load(graph.path, graph.graph, format=graph.format)


def drive(engine: kelda.Engine, *, strict: bool = False, tick: Callable[[], None] = lambda: None) -> bool:
    """Run an engine until all streams have ended; False if Ctrl-C came before. It is stopped then.

    `tick` is called ten times a second, and once at the end. Raises what went wrong: with `strict`, the first
    record that could not be read; at the end, the queries that have failed.
    """
    running = _Running(engine)
    finished = True
    try:
        running.start()
        while not running.ended.wait(TICK):
            tick()
            _check(engine, strict)
            if _nobody_is_left(engine):
                break
    except KeyboardInterrupt:
        finished = False
    finally:
        running.end()
        tick()
    if finished:
        running.check()
        _check(engine, strict)
        _raise_stopped(engine)
    return finished


class _Running(threading.Thread):
    """Starts an engine and waits for its end. Ctrl-C reaches the main thread, which must not be in the midst
    of a call to the JVM then: so those are made here."""

    def __init__(self, engine: kelda.Engine) -> None:
        super().__init__(name="kelda-running", daemon=True)
        self.ended = threading.Event()
        self._engine = engine
        self._problem: Exception | None = None
        self._over = False

    def run(self) -> None:
        try:
            self._engine.start()
            if self._over:  # meanwhile
                self._engine.stop()
            else:
                self._engine.wait()
        except Exception as problem:  # noqa: BLE001 - raised by `check`, in the main thread
            self._problem = problem
        finally:
            self.ended.set()

    def end(self) -> None:
        """Stop the engine, whatever it is at."""
        self._over = True
        self._engine.stop()
        if self.ident is not None:  # Ctrl-C may have come before it began
            self.join()

    def check(self) -> None:
        """Raise what it failed with."""
        if self._problem is not None:
            raise self._problem


def _check(engine: kelda.Engine, strict: bool) -> None:
    if strict and engine.rejects:
        raise InputError(refusal(engine.rejects[0]))


def _nobody_is_left(engine: kelda.Engine) -> bool:
    return bool(engine.queries) and all(query.error is not None for query in engine.queries)


def _raise_stopped(engine: kelda.Engine) -> None:
    errors = [query.error for query in engine.queries if query.error is not None]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise QueryStopped("\n".join(str(error).splitlines()[0] for error in errors))


def refusal(reject: Reject) -> str:
    """Why a strict run stops."""
    return (
        f"{reject.source}, line {reject.line}: {reject.reason}\n  {reject.record}\n"
        "without --strict the record is counted as rejected and reading goes on"
    )
