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
FETCH_SECONDS = 300  # for what Maven brings


class NoOracle(Exception):
    """Jena cannot be had here; the message says why."""


def prepare(build: Path = BUILD, seconds: float = FETCH_SECONDS) -> str:
    """The class path of the oracle; fetches (in so many seconds) and compiles what is not there yet."""
    java = find_java()
    if java is None or java.version < OLDEST_JAVA:
        raise NoOracle(f"needs a JDK {OLDEST_JAVA} or newer, found {java.version if java else 'none'}")
    pom, sources = HERE / "pom.xml", sorted(HERE.glob("*.java"))
    jars, classes = build / "jars", build / "classes"
    if not _made(build / "jars-of", [pom]):
        shutil.rmtree(jars, ignore_errors=True)
        fetch = ("-q", "-B", "-f", str(pom), "dependency:copy-dependencies", f"-DoutputDirectory={jars}")
        done = _run(build, seconds, "mvn", *fetch)
        if done.returncode != 0:
            said = (done.stdout + done.stderr).strip().splitlines() or ["it does not say why"]
            raise NoOracle(f"Maven cannot fetch Apache Jena: {said[0]}")
        _mark(build / "jars-of", [pom])
    if not _made(build / "classes-of", sources):
        done = _run(build, seconds, "javac", "-cp", f"{jars}/*", "-d", str(classes), *map(str, sources))
        if done.returncode != 0:
            raise RuntimeError(f"tests/oracle/*.java cannot be compiled:\n{done.stderr}")
        _mark(build / "classes-of", sources)
    return f"{jars}/*{os.pathsep}{classes}"


def _mark(mark: Path, sources: list[Path]) -> None:
    mark.write_bytes(b"".join(source.read_bytes() for source in sources))


def _made(mark: Path, sources: list[Path]) -> bool:
    return mark.exists() and mark.read_bytes() == b"".join(source.read_bytes() for source in sources)


def _run(build: Path, seconds: float, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(command) is None:
        raise NoOracle(f"`{command}` is not on the PATH: install a JDK and Maven, then `make oracle-deps`")
    build.mkdir(parents=True, exist_ok=True)
    try:
        return subprocess.run(
            [command, *arguments], capture_output=True, text=True, timeout=seconds, cwd=build
        )
    except subprocess.TimeoutExpired:
        raise NoOracle(f"`{command}` took more than {seconds:g} s: run `make oracle-deps` first") from None


class Jena:
    """The process: one question, one answer, for as long as it is open."""

    def __init__(self, seconds: float = FETCH_SECONDS) -> None:
        java = find_java()
        path = prepare(seconds=seconds)
        assert java is not None
        self._process = subprocess.Popen(
            [java.command, "-Xmx512m", "-Xss16m", "-XX:+UseSerialGC", "-cp", path, "Oracle"],
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
