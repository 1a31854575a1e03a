"""What is kept on disk between runs: read and written so that trouble is told in a line, with its file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kelda.errors import CheckpointError, EnvironmentProblem

RESTORE = "put it back from a copy, or begin again with another checkpoint folder"


@contextmanager
def reading(path: str | Path, way_out: str = RESTORE) -> Iterator[None]:
    """Whatever goes wrong while a file is read and taken apart is the file's fault, and is told as such."""
    try:
        yield
    except OSError as problem:
        if isinstance(problem, FileNotFoundError):
            way_out = RESTORE
        raise CheckpointError(f"cannot read {path}: {problem.strerror or problem}; {way_out}") from problem
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as problem:
        said = " ".join(str(problem).split())[:100]
        raise CheckpointError(f"{path} is broken ({type(problem).__name__}: {said}); {way_out}") from problem


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """The machine did not let us write: a full disk, a file system that is read-only, a disk that fails.
    `path` is what to name where the machine does not say which file."""
    try:
        yield
    except OSError as problem:
        which, why = problem.filename or path, problem.strerror or problem
        raise EnvironmentProblem(
            f"cannot write {which}: {why}; what was written before is whole: see to the disk and its "
            "permissions, and start again"
        ) from problem
