"""Folders of ours alone, for sockets and for checkpoints."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from kelda.errors import UsageError

OTHERS = 0o077  # what a mode gives to anybody but the owner


def make_private(folder: Path) -> Path:
    """A folder into which nobody else can put anything: a new one, or one that is so already."""
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)
    return folder


def check_private(folder: Path) -> None:
    """Refuse a folder that is not, or may not have been all the time, ours alone."""
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode):
        raise UsageError(f"{folder} is no folder of its own but a link or a file: {_elsewhere(folder)}")
    if about.st_uid != os.geteuid():
        raise UsageError(f"{folder} belongs to another user (number {about.st_uid}): {_elsewhere(folder)}")
    if about.st_mode & OTHERS:
        raise UsageError(
            f"{folder} is open to other users (mode {stat.S_IMODE(about.st_mode):o}): remove it, or "
            f"{_elsewhere(folder)}"
        )


def _elsewhere(folder: Path) -> str:
    return f"set TMPDIR to a folder of your own, other than {folder.parent}"


def tighten(folder: Path) -> None:
    """Close a folder of ours, such as a checkpoint, to all other users."""
    about = os.stat(folder)
    if about.st_uid != os.geteuid() and not _is_ours_by_the_file_system(folder, about.st_uid):
        raise UsageError(
            f"{folder} belongs to another user (number {about.st_uid}): run as that one, or use another"
        )
    if about.st_mode & OTHERS:
        try:
            os.chmod(folder, stat.S_IMODE(about.st_mode) & ~OTHERS)
        except OSError as problem:
            raise UsageError(
                f"{folder} is open to other users (mode {stat.S_IMODE(about.st_mode):o}) and cannot be "
                f"closed ({problem.strerror}): chmod 700 it, or use another folder"
            ) from problem


def _is_ours_by_the_file_system(folder: Path, owner: int) -> bool:
    """Whether what we make in a folder belongs to the folder's owner: some network file systems take all
    users for one."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".") as made:
            return os.fstat(made.fileno()).st_uid == owner
    except OSError:
        return False
