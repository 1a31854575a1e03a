"""Questions and answers between processes of one user on a machine, over a socket in a folder of ours alone.

Each side makes sure who the other is, as far as the system tells (`SO_PEERCRED`), and what goes over is plain
data (`kelda.rdf.wire`). What goes wrong on one side is raised on the other by name: an error of Kelda's as
what it was, any other as a RuntimeError with where it came from.
"""

from __future__ import annotations

import os
import socket
import struct
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kelda.errors import KeldaError, WireError
from kelda.io.private import check_private
from kelda.rdf import wire

LONGEST = 1 << 36  # bytes of a message
STRANGER = "the other side is no process of this version of Kelda: end it (kelda-shard-N in ps), start anew"
SMALL = 1 << 16  # up to this it is copied together: cheaper than to send piece by piece

_LENGTH = struct.Struct("!Q")
_PEER = struct.Struct("3i")  # process, user, group


# ------------------------------------------------------------------------------ who


def listen(path: str | Path) -> socket.socket:
    """A socket at a path in a folder of ours; OSError if there is one already."""
    check_private(Path(path).parent)
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(path) as name:
            door.bind(name)
        door.listen(8)
    except BaseException:
        door.close()
        raise
    return door


def connect(path: str | Path) -> socket.socket:
    """To one that listens there; OSError if none does."""
    check_private(Path(path).parent)
    to = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(path) as name:
            to.connect(name)
        if (user := user_of(to)) != os.geteuid():
            raise KeldaError(f"another user (number {user}) listens at {path}: nothing was said to him")
    except BaseException:
        to.close()
        raise
    return to


def accept(door: socket.socket) -> socket.socket:
    """The next who comes in and is of the same user; others find the door closed."""
    while True:
        guest, _ = door.accept()
        if user_of(guest) == os.geteuid():
            return guest
        guest.close()


def user_of(peer: socket.socket) -> int:
    """The user of the process at the other end. Where the system does not tell, the folder's mode must do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return os.geteuid()
    _, user, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    return int(user)


@contextmanager
def short(path: str | Path) -> Iterator[str]:
    """The path of a socket, by an open folder if it is too long for one (107 bytes)."""
    if len(os.fsencode(path)) < 100:
        yield str(path)
        return
    folder = os.open(Path(path).parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{Path(path).name}"
    finally:
        os.close(folder)


# ------------------------------------------------------------------------------ what


def send(to: socket.socket, message: Any) -> None:
    """A message, whole."""
    pieces = wire.pieces(message)
    size = sum(len(piece) for piece in pieces)
    pieces.insert(0, _LENGTH.pack(size))
    for piece in pieces if size > SMALL else [b"".join(pieces)]:
        to.sendall(piece)


def receive(of: socket.socket) -> Any:
    """The next message; `ConnectionResetError` if there is none."""
    (size,) = _LENGTH.unpack(_exactly(of, _LENGTH.size))
    if size > LONGEST:
        raise WireError(f"a message of {size:,} bytes: {STRANGER}")
    return wire.decode(_exactly(of, size), "a message", STRANGER)


def _exactly(of: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view.nbytes:
        got = of.recv_into(view)
        if not got:
            raise ConnectionResetError("the other side has gone")
        view = view[got:]
    return data


def ask(of: socket.socket, *request: Any) -> Any:
    """What the other side answers; raises what went wrong there."""
    send(of, request)
    match receive(of):
        case ("ok", body):
            return body
        case ("error", str(kind), str(message)):
            raise raised(kind, message)
    raise WireError(f"an answer that is none: {STRANGER}")


def answer(guest: socket.socket, call: Callable[..., Any]) -> None:
    """Answer the questions of a guest, by a call with what he asks, until he hangs up."""
    with guest:
        while True:
            try:
                request = receive(guest)
            except OSError:
                return
            except WireError:  # who speaks so is not to be talked to
                traceback.print_exc()
                return
            reply: tuple[Any, ...]
            try:
                reply = ("ok", call(*request))
            except KeldaError as problem:
                reply = ("error", type(problem).__name__, str(problem))
            except Exception as problem:  # noqa: BLE001 - it is raised again where it was asked
                reply = ("error", "RuntimeError", "".join(traceback.format_exception(problem)))
            try:
                send(guest, reply)
            except OSError:
                return


def raised(kind: str, message: str) -> Exception:
    """The error of this name."""
    if kind == "RuntimeError":
        return RuntimeError(message)
    return next((each for each in _kinds() if each.__name__ == kind), KeldaError)(message)


def _kinds() -> Iterator[type[KeldaError]]:
    todo: list[type[KeldaError]] = [KeldaError]
    while todo:
        some = todo.pop()
        yield some
        todo += some.__subclasses__()
