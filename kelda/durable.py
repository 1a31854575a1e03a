"""Bytes that outlive the process: files replaced whole or appended to, synced to the disk, locked."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from kelda.errors import UsageError
from kelda.kept import writing


def replace_file(path: Path, data: bytes | memoryview, *, mode: int = 0o644) -> None:
    """Put `data` in the place of `path`, and have it on the disk: at any moment, for any reader and after any
    crash, the file is the old one or the new one, whole."""
    beside = path.with_name(temporary_name(path.name))
    with writing(path):
        file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        try:
            write_all(file, data, 0)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(beside, path)
        sync(path.parent)


def put_in_place(beside: Path, path: Path) -> None:
    """Have a file that was written under another name on the disk, and then in the place of `path`."""
    with writing(path):
        sync(beside)
        os.replace(beside, path)
        sync(path.parent)


def temporary_name(name: str) -> str:
    """What a file is called until it is whole. Hidden, so that no reader of the folder takes it."""
    return f".{name.removeprefix('.')}.new"


def append(path: Path, data: bytes) -> None:
    """Put `data` behind what is in a file, and have it on the disk."""
    with writing(path), path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def write_all(file: int, data: bytes | memoryview, offset: int) -> None:
    """Write all of `data` at `offset`; the system may take it in portions."""
    left = memoryview(data)
    while left:
        done = os.pwrite(file, left, offset)
        left, offset = left[done:], offset + done


def sync(path: str | Path) -> None:
    """Make a file, or the names in a folder, last."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def open_locked(path: Path, flags: int) -> int:
    """Open a file or folder for one writer alone; the lock goes with the process, however it ends."""
    try:
        file = os.open(path, flags, 0o644)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(file)
        raise UsageError(
            f"{path} is being written already, by this process or another; "
            "give each query a file of its own, and end the other run first"
        ) from error
    return file


def remove(paths: Iterable[Path]) -> None:
    """Files that are needed no more, if they are there. That they are gone need not last."""
    for path in paths:
        with writing(path), contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def make_folder(folder: Path) -> None:
    """The folder and those above it, if they are not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror}") from error
