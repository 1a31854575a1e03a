"""The doctor: does this machine have what Kelda needs, and if not, what to install.

Each check looks at one thing and never raises: what is wrong is its result. `require_java` is
the one that others call before they start Spark, so that a missing JDK is a sentence and not a
stack trace.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kelda.compiling import kept_in
from kelda.errors import EnvironmentProblem

OLDEST_PYTHON = (3, 10)
OLDEST_JAVA = 17  # Spark 4 does not start on an older one
MEMORY_GIB = 2.0  # the JVM takes 1 GiB, its Python workers and this process the rest
DISK_GIB = 1.0  # checkpoints and shuffle files of a small run

INSTALL_JAVA = """\
  Debian, Ubuntu:  sudo apt install openjdk-17-jre-headless
  Fedora:          sudo dnf install java-21-openjdk-headless
  macOS:           brew install openjdk@21   (then set JAVA_HOME as brew says)
or point JAVA_HOME at a JDK that is already there. `kelda doctor` shows what Kelda finds."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: is it good, what was found, and what to do if it is not."""

    name: str
    ok: bool
    found: str
    advice: str = ""
    needed: bool = True  # False: Kelda works without it, only not as well


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was found: its command, its major version, and where we learnt of it."""

    command: str
    version: int
    origin: str  # "JAVA_HOME" or "PATH"


def find_java() -> Java | None:
    """The Java that Spark would start: that of JAVA_HOME if it is set, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    command = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if command is None:
        return None
    try:
        # macOS has a `java` on the PATH that only says that there is none: ask it, do not trust it.
        asked = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    version = java_version(asked.stderr + asked.stdout)
    if asked.returncode != 0 or version is None:
        return None
    return Java(command, version, "JAVA_HOME" if home else "PATH")


def java_version(text: str) -> int | None:
    """The major version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('java version "1.8.0_392"')
    (17, 8)
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def require_java() -> Java:
    """The Java to use; EnvironmentProblem, with what to install, where there is none that serves."""
    java = find_java()
    if java is None:
        home = os.environ.get("JAVA_HOME")
        missing = f"JAVA_HOME is {home}, but no Java runs there" if home else "no Java was found"
        raise EnvironmentProblem(f"{missing}; Spark needs a JDK {OLDEST_JAVA} or newer:\n{INSTALL_JAVA}")
    if java.version < OLDEST_JAVA:
        raise EnvironmentProblem(
            f"{java.command} is Java {java.version}; Spark needs {OLDEST_JAVA} or newer:\n{INSTALL_JAVA}"
        )
    return java


def run_checks() -> list[Check]:
    """All checks, in the order in which a person would fix them."""
    checks = [_python(), _java()]
    checks += [_package(name, needs) for name, needs in PACKAGES.items()]
    checks += [_kernel(), _kept_kernels(), _memory(), _temporary(), _disk(), _loopback()]
    return checks


# ------------------------------------------------------------------------------- the checks


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Check("Python", sys.version_info >= OLDEST_PYTHON, found, f"install Python {wanted} or newer")


def _java() -> Check:
    try:
        java = require_java()
    except EnvironmentProblem as problem:
        return Check("JDK", False, str(problem).split("; ")[0], f"install one:\n{INSTALL_JAVA}")
    return Check("JDK", True, f"{java.version} ({java.command}, from {java.origin})")


PACKAGES = {
    "pyspark": "the pipeline",
    "pyarrow": "columns between Spark and Python",
    "google.protobuf": "keyed state in Spark",
    "pandas": "keyed state in Spark",
    "numba": "the kernels",
    "pyoxigraph": "terms, parsers and stored graphs",
}


def _package(module: str, needs: str) -> Check:
    name = "protobuf" if module == "google.protobuf" else module
    try:
        loaded = importlib.import_module(module)
    except Exception as problem:  # noqa: BLE001 - a broken package may raise anything; it is the finding
        return Check(name, False, f"{type(problem).__name__}: {problem}", f"pip install {name}   ({needs})")
    return Check(name, True, str(getattr(loaded, "__version__", "present")))


def _kernel() -> Check:
    try:
        import numba

        add = numba.njit("int64(int64, int64)")(lambda a, b: a + b)
        answer = add(20, 22)
    except Exception as problem:  # noqa: BLE001 - LLVM fails in ways of its own; it is the finding
        return Check("numba compiles", False, str(problem).splitlines()[0], "pip install --upgrade numba")
    return Check("numba compiles", answer == 42, "a kernel compiled and ran", "pip install --upgrade numba")


def _kept_kernels() -> Check:
    folder = kept_in()
    found = "nowhere: every process compiles them again" if folder is None else f"in {folder}"
    advice = "set NUMBA_CACHE_DIR to a folder that can be written"
    return Check("kernels are kept", folder is not None, found, advice, needed=False)


def _memory() -> Check:
    advice = f"close something: Spark wants about {MEMORY_GIB:g} GiB"
    free = _available_memory_gib()
    if free is None:
        return Check("memory", True, "unknown on this system", needed=False)
    return Check("memory", free >= MEMORY_GIB, f"{free:.1f} GiB available", advice, needed=False)


def _available_memory_gib() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 2**20
    except OSError:  # not Linux: fall through to what POSIX knows
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError):
        return None


def _temporary() -> Check:
    folder = tempfile.gettempdir()
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"kelda")
    except OSError as problem:
        return Check("temporary folder", False, str(problem), "set TMPDIR to a folder you may write to")
    return Check("temporary folder", True, f"{folder} is writable")


def _disk() -> Check:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free / 2**30
    advice = f"free some space, or set TMPDIR to a folder with {DISK_GIB:g} GiB"
    return Check("disk", free >= DISK_GIB, f"{free:.1f} GiB free in {folder}", advice, needed=False)


def _loopback() -> Check:
    try:
        with (
            socket.create_server(("127.0.0.1", 0)) as server,
            socket.create_connection(server.getsockname(), timeout=5),
        ):
            pass
    except OSError as problem:
        return Check("loopback", False, str(problem), "allow connections to 127.0.0.1 (firewall, container)")
    return Check("loopback", True, "127.0.0.1 connects")


# --------------------------------------------------------------------------- as a command


def main(arguments: list[str]) -> int:
    """`python -m kelda.doctor`: print all checks; `--java`: only fail where Spark has no JDK."""
    if arguments == ["--java"]:
        try:
            require_java()
        except EnvironmentProblem as problem:
            print(f"error: {problem}", file=sys.stderr)
            return problem.exit_code
        return 0
    checks = run_checks()
    for check in checks:
        mark = "ok" if check.ok else ("MISSING" if check.needed else "low")
        print(f"{mark:8}{check.name:18}{check.found}")
        if not check.ok:
            print(f"{'':8}{'':18}{check.advice}")
    return 0 if all(check.ok or not check.needed for check in checks) else EnvironmentProblem.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
