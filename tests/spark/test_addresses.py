"""Streams by their addresses, all in one running engine: socket, watched folder, growing file, replay."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

import kelda
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.lang import parse
from tests.shards.worlds import PREFIX, event
from tests.spark.scene import MASTER, until

STREAMS = ("sent", "dropped", "appended", "replayed")
TEXT = (
    PREFIX
    + "SELECT ?x ?y { "
    + " UNION ".join(f"{{ STREAM :{s} [NOW] {{ ?x :{s} ?y }} }}" for s in STREAMS)
    + " }"
)
LAST = 60


def line(stream: str, t: int) -> bytes:
    return f"{t}\t<http://ex/n{t % 3}> <http://ex/{stream}> <http://ex/n{t}> .\n".encode()


def text(stream: str, first: int, last: int) -> bytes:
    return b"".join(line(stream, t) for t in range(first, last + 1))


class Server:
    """Sends what it is told to, to one client."""

    def __init__(self) -> None:
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        self.client: socket.socket | None = None
        threading.Thread(target=self._open, daemon=True).start()

    def _open(self) -> None:
        self.client, _ = self.door.accept()

    def send(self, data: bytes) -> None:
        until(lambda: self.client is not None, "somebody listens")
        assert self.client is not None
        self.client.sendall(data)


@pytest.mark.spark
def test_streams_of_all_kinds_side_by_side(tmp_path: Path) -> None:
    server = Server()
    folder, tail, film = tmp_path / "folder", tmp_path / "tail.tsnt", tmp_path / "film.tsnt"
    folder.mkdir()
    tail.write_bytes(text("appended", 1, 10))
    film.write_bytes(text("replayed", 1, LAST + 1))
    (folder / "1.tsnt").write_bytes(text("dropped", 1, 10))
    addresses = {
        "sent": f"tcp://127.0.0.1:{server.port}",
        "dropped": f"folder:{folder}?watch=true",
        "appended": f"tail:{tail}",
        "replayed": f"replay:{film}?rate=50",
    }
    with kelda.connect(MASTER, shards=2) as engine:
        for name, address in addresses.items():
            engine.stream(f"http://ex/{name}", address, format="tsnt")
        query = engine.register(TEXT, name="q")
        engine.start()
        server.send(text("sent", 1, 10))
        # Nothing is known of an instant before all streams have come further.
        until(
            lambda: engine.wait(0.01) or (engine.figures.stream_time or 0) >= 9, "the beginning is answered"
        )
        server.send(text("sent", 11, LAST + 1))
        with tail.open("ab") as file:
            file.write(text("appended", 11, LAST + 1))
        hidden = folder / ".2.tsnt"
        hidden.write_bytes(text("dropped", 11, LAST + 1))
        hidden.rename(folder / "2.tsnt")
        until(lambda: engine.wait(0.01) or (engine.figures.stream_time or 0) >= LAST, "all is answered")

    reference = ReferenceEvaluator()
    for stream in STREAMS:
        reference.add_stream(f"http://ex/{stream}", from_start=True)
    reference.register("q", parse(TEXT))
    expected: list[Answer] = []
    for stream in STREAMS:
        events = [event(t, f"n{t % 3}", stream, f"n{t}") for t in range(1, LAST + 2)]
        expected += reference.push(f"http://ex/{stream}", events)
    found = [a for a in query.results() if a.time <= LAST]
    told = sorted(a.to_json() for a in expected if a.time <= LAST)
    assert sorted(a.to_json() for a in found) == told and len(told) >= 4 * LAST
