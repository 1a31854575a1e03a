"""Sockets of ours alone: folders and peers are looked at, and what a peer says is data."""

from __future__ import annotations

import os
import pickle
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kelda.errors import KeldaError, QueryError, UsageError, WireError
from kelda.io.private import check_private, make_private, tighten
from kelda.io.sources.push import BusyError
from kelda.shards.checkpoint import Checkpoint
from kelda.shards.setup import Setup
from kelda.spark import sockets
from kelda.spark.remote import Door, RemoteReader
from kelda.spark.sockets import accept, answer, ask, connect, listen, receive, user_of
from tests.hostile import Touch

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user for a moment")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_private(tmp_path / "ours")


# ------------------------------------------------------------------------------ folders


def test_a_new_folder_is_ours_alone(folder: Path) -> None:
    assert mode(folder) == 0o700
    assert make_private(folder) == folder, "and again"


def test_folders_that_others_can_reach_are_refused(tmp_path: Path, folder: Path) -> None:
    link, file, loose = tmp_path / "link", tmp_path / "file", tmp_path / "loose"
    link.symlink_to(folder)
    file.touch()
    loose.mkdir()
    loose.chmod(0o755)
    for bad, why in ((link, "link or a file"), (loose, r"open to other users \(mode 755\)")):
        with pytest.raises(UsageError, match=f"{why}.*TMPDIR"):
            make_private(bad)
        for use in (listen, connect):
            with pytest.raises(UsageError, match=why):
                use(bad / "x.sock")
    with pytest.raises(UsageError, match="link or a file"):
        check_private(file)


@as_root
def test_a_folder_that_another_user_made_first_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o700)
    os.chown(theirs, NOBODY, NOBODY)
    with pytest.raises(UsageError, match=f"belongs to another user .number {NOBODY}."):
        make_private(theirs)
    with pytest.raises(UsageError, match="run as that one, or use another"):
        tighten(theirs)


def test_checkpoints_are_closed_to_others(tmp_path: Path) -> None:
    def opened(folder: Path) -> None:
        Checkpoint(folder, Setup(), "spark").close()

    opened(tmp_path / "new")
    assert mode(tmp_path / "new") == 0o700
    for kept in (tmp_path / "new", tmp_path / "empty"):
        kept.mkdir(exist_ok=True)
        kept.chmod(0o755)
        opened(kept)
        assert mode(kept) == 0o700
    (tmp_path / "mine").mkdir(mode=0o755)
    (tmp_path / "mine" / "letter").touch()
    (tmp_path / "mine").chmod(0o755)
    with pytest.raises(UsageError, match="not a checkpoint"):
        opened(tmp_path / "mine")
    assert mode(tmp_path / "mine") == 0o755, "a folder that is none of ours stays as it is"


# ------------------------------------------------------------------------------ peers


def as_nobody(do: Callable[[], None]) -> int:
    """A child process that does something as another user; its id."""
    child = os.fork()
    if child:
        return child
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        do()
    finally:
        os._exit(0)


@as_root
def test_another_user_who_listens_is_not_talked_to(folder: Path) -> None:
    # Who listens is told as he was when he began to.
    path, ready = folder / "x.sock", os.pipe()
    theirs = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    theirs.bind(str(path))

    def hostile() -> None:
        theirs.listen()
        os.write(ready[1], b".")
        guest, _ = theirs.accept()
        guest.recv(1)

    child = as_nobody(hostile)
    os.read(ready[0], 1)
    with pytest.raises(KeldaError, match=f"another user .number {NOBODY}. listens"):
        connect(path)
    os.waitpid(child, 0)
    theirs.close()


@as_root
def test_another_user_who_comes_in_is_sent_away(tmp_path: Path) -> None:
    # In an open folder, by hand: into one of ours he could not even look.
    open_folder = Path("/tmp", f"kelda-test-{os.getpid()}")
    open_folder.mkdir()
    try:
        open_folder.chmod(0o755)
        path = str(open_folder / "x.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(path)
            os.chmod(path, 0o777)
            door.listen()
            told = os.pipe()

            def hostile() -> None:
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as to:
                    to.connect(path)
                    os.write(told[1], to.recv(1) or b"0")

            child = as_nobody(hostile)
            ours = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            threading.Timer(0.3, ours.connect, [path]).start()
            with accept(door) as guest:
                assert user_of(guest) == os.geteuid()
            assert os.read(told[0], 1) == b"0", "he was hung up on"
            os.waitpid(child, 0)
            ours.close()
    finally:
        (open_folder / "x.sock").unlink(missing_ok=True)
        open_folder.rmdir()


def test_each_side_asks_who_the_other_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with listen(folder / "x.sock") as door:
        monkeypatch.setattr(sockets, "user_of", lambda peer: os.geteuid() + 1)
        with pytest.raises(KeldaError, match="another user"):
            connect(folder / "x.sock")
        users = iter([os.geteuid() + 1, os.geteuid()])
        monkeypatch.setattr(sockets, "user_of", lambda peer: next(users))
        with closing(socket.socket(socket.AF_UNIX)) as second:
            second.connect(str(folder / "x.sock"))
            accept(door).close()  # the second: the first was sent away
            assert next(users, None) is None


# ------------------------------------------------------------------------------ what is said


@pytest.fixture
def talk(folder: Path) -> Iterator[Callable[[Callable[..., Any]], socket.socket]]:
    """A connection to somebody who answers by a call."""
    opened: list[socket.socket] = []

    def to(call: Callable[..., Any]) -> socket.socket:
        path = folder / f"{len(opened)}.sock"
        door = listen(path)
        threading.Thread(target=lambda: answer(accept(door), call), daemon=True).start()
        opened.extend((door, connect(path)))
        return opened[-1]

    yield to
    for each in opened:
        each.close()


def test_questions_are_answered(talk: Callable[..., socket.socket]) -> None:
    to = talk(lambda *words: [*words, len(words)])
    assert ask(to, "a", (1, b"x")) == ["a", (1, b"x"), 2]
    big = bytes(5_000_000)
    assert ask(to, big, [big]) == [big, [big], 2]


@pytest.mark.parametrize(
    "problem", [UsageError("so not"), QueryError("bad", text="x", line=1, column=1), BusyError("later")]
)
def test_errors_of_ours_come_back_by_name(talk: Callable[..., socket.socket], problem: Exception) -> None:
    def fail() -> None:
        raise problem

    with pytest.raises(type(problem)) as told:
        ask(talk(fail))
    assert type(told.value) is type(problem) and str(told.value) == str(problem)


def test_other_errors_come_back_as_text(talk: Callable[..., socket.socket]) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError: "):
        ask(talk(lambda: 1 // 0))
    assert type(sockets.raised("SystemExit", "x")) is KeldaError, "only errors of ours have names"


def test_a_hostile_answer_runs_nothing(folder: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    code = pickle.dumps(("ok", Touch(touched)))
    with listen(folder / "x.sock") as door:

        def hostile() -> None:
            with accept(door) as guest:
                receive(guest)
                guest.sendall(len(code).to_bytes(8, "big") + code)

        threading.Thread(target=hostile, daemon=True).start()
        with connect(folder / "x.sock") as to, pytest.raises(WireError, match="not in Kelda's form"):
            ask(to, "take")
    assert not touched.exists()


def test_a_hostile_question_runs_nothing(talk: Callable[..., socket.socket], tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    code = pickle.dumps((Touch(touched),))
    to = talk(lambda *words: touched.touch())
    to.sendall(len(code).to_bytes(8, "big") + code)
    assert to.recv(1) == b"", "he is hung up on"
    endless = talk(lambda *words: touched.touch())
    endless.sendall(b"\xff" * 8)
    assert endless.recv(1) == b""
    assert not touched.exists()


def test_a_reader_behind_a_door_answers_what_it_should(folder: Path) -> None:
    class Reader:
        def start(self) -> dict[str, int]:
            return {"pieces": 0, "records": 0}

        def secret(self) -> int:
            return 42

    door = Door(folder / "readers.sock", {3: Reader()})  # type: ignore[dict-item]
    try:
        reader = RemoteReader(folder / "readers.sock", 3)
        assert reader.start() == {"pieces": 0, "records": 0}
        with pytest.raises(UsageError, match="cannot be asked for 'secret'"):
            reader._ask("secret")
        reader.close()
    finally:
        door.close()
