"""Apache Jena ARQ in a JVM of its own: fetched once by Maven into build/oracle, asked line by line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kelda.doctor import OLDEST_JAVA, find_java

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "oracle"
FETCH_SECONDS = 300


class NoOracle(Exception):
    """Jena cannot be had here; the message says why."""


def prepare(build: Path = BUILD) -> str:
    """The class path of the oracle; fetches and compiles what is not there yet."""
    java = find_java()
    if java is None or java.version < OLDEST_JAVA:
        raise NoOracle(f"needs a JDK {OLDEST_JAVA} or newer, found {java.version if java else 'none'}")
    pom, sources = HERE / "pom.xml", [HERE / "Oracle.java", HERE / "Strict.java"]
    jars, classes = build / "jars", build / "classes"
    if not _made(build / "jars-of", [pom]):
        _run(build, "mvn", "Maven", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies",
             f"-DoutputDirectory={jars}")  # fmt: skip
        _mark(build / "jars-of", [pom])
    if not _made(build / "classes-of", sources):
        _run(build, "javac", "a JDK", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources))
        _mark(build / "classes-of", sources)
    return f"{jars}/*{os.pathsep}{classes}"


def _mark(mark: Path, sources: list[Path]) -> None:
    mark.write_bytes(b"".join(source.read_bytes() for source in sources))


def _made(mark: Path, sources: list[Path]) -> bool:
    return mark.exists() and mark.read_bytes() == b"".join(source.read_bytes() for source in sources)


def _run(build: Path, command: str, package: str, *arguments: str) -> None:
    if shutil.which(command) is None:
        raise NoOracle(f"`{command}` is not on the PATH: install {package}, then `make oracle-deps`")
    build.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=FETCH_SECONDS, cwd=build
        )
    except subprocess.TimeoutExpired:
        raise NoOracle(f"`{command}` took more than {FETCH_SECONDS} s") from None
    if done.returncode != 0:
        reason = (done.stdout + done.stderr).strip().splitlines() or ["no reason given"]
        raise NoOracle(f"`{command}` failed: {reason[0]}")


class Jena:
    """The process. `ask` many at once: it answers while requests are still being written."""

    def __init__(self) -> None:
        java = find_java()
        path = prepare()
        assert java is not None
        self._process = subprocess.Popen(
            [java.command, "-Xmx512m", "-Xss16m", "-XX:TieredStopAtLevel=1", "-cp", path, "Oracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Jena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()

    def ask(
        self, query: str, data: Sequence[str], *, now: str | None = None, graphs: Sequence[str] = ()
    ) -> dict[str, Any]:
        """The reply (see Oracle.java) to a query over N-Quads lines. `graphs` are there even if empty."""
        request: dict[str, Any] = {"query": query, "data": "\n".join(data), "graphs": list(graphs)}
        if now is not None:
            request["now"] = now
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"Jena ended with {self._process.wait()} at {query}")
        reply: dict[str, Any] = json.loads(line)
        return reply
