"""Power failures: files that nobody made last are gone, and yet every answer is in the sinks once, or it is
said that this cannot be.

A model of Spark writes offsets, state and commits as Spark does, and starts again as Spark does; the log, the
sinks and the order in which they are used are the real ones. The disk loses, empties or keeps each file that
was not synced, as it likes; or, where nothing is synced, some of the last ones.
"""

from __future__ import annotations

import io
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from kelda.engine.answer import Answer
from kelda.errors import CheckpointError
from kelda.io.sinks import CallbackSink, open_sink
from kelda.io.sinks.sink import Sink
from kelda.spark import log as log_module
from kelda.spark.log import SparkLog

CASES = settings(max_examples=int(os.environ.get("KELDA_CASES", "40")))
INPUT = 120  # elements, of which some have answers
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None


class PowerFailure(BaseException):
    """The machine is off."""


class Machine:
    """A disk, and a Spark that makes batches of the input on it. `careful`: syncing is done."""

    def __init__(self, folder: Path, seed: int, careful: bool) -> None:
        self.folder, self.random, self.careful = folder, random.Random(seed), careful
        self.spark = folder / "cp" / "spark"
        self.safe: set[Path] = set()
        self.waiting: set[Path] = set()  # synced, but not their folders
        self.written: list[Path] = []  # in this order
        self.told: list[int] = []  # by the callback

    def synced(self, path: str | Path) -> None:
        """Instead of `sync`: a file lasts if it was synced, and its folder behind it."""
        path = Path(path)
        if path.is_dir():
            self.safe |= {file for file in self.waiting if file.parent == path}
            self.waiting = {file for file in self.waiting if file.parent != path}
        else:
            self.waiting.add(path)

    def write(self, path: Path, *lines: object) -> None:
        """As text; a snapshot is a zip."""
        data = "\n".join(["v1", *(json.dumps(line) for line in lines)]).encode()
        if path.suffix == ".zip":
            zipped = io.BytesIO()
            with ZipFile(zipped, "w") as snapshot:
                snapshot.writestr("metadata", data)
            data = zipped.getvalue()
        self.maybe_fail()
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.tmp")
        beside.write_bytes(data)
        beside.replace(path)
        self.written.append(path)
        self.safe.discard(path)
        self.maybe_fail()

    def maybe_fail(self) -> None:
        if self.random.random() < 0.04:
            raise PowerFailure

    def lose(self) -> None:
        """What was not made to last is there, or not, or empty."""
        unsafe = [path for path in dict.fromkeys(self.written) if path.exists() and path not in self.safe]
        if not self.careful:  # the last of them
            unsafe = unsafe[len(unsafe) - self.random.randint(0, min(4, len(unsafe))) :]
        for path in unsafe:
            fate = self.random.choice(("there", "gone", "gone", "empty"))
            if fate == "gone":
                path.unlink()
            elif fate == "empty":
                path.write_text("")

    # ------------------------------------------------------------------ a run

    def run(self) -> None:
        """To the end of the input, or to a failure."""
        log = SparkLog(self.spark)
        log.mend()
        begun, done = log.begun(), log_module._numbers(self.spark / "commits")
        batch = begun[-1] + (done[-1:] == begun[-1:]) if begun else 0  # that is where Spark goes on
        with self.sinks() as sinks:
            first = True
            while True:
                begin = self.end_of(log, batch - 1)
                if not (self.spark / "offsets" / str(batch)).exists():
                    if begin >= INPUT:
                        return
                    end = min(INPUT, begin + self.random.randint(1, 9))
                    conf = {"conf": {"spark.sql.shuffle.partitions": "1"}}
                    self.write(self.spark / "offsets" / str(batch), conf, {"s": end})
                self.batch(log, batch, begin, sinks, first)
                first, batch = False, batch + 1

    def batch(self, log: SparkLog, batch: int, begin: int, sinks: list[Sink], first: bool) -> None:
        end = self.end_of(log, batch)
        assert self.state(batch) == begin, "the state is that of other input"
        if self.careful:
            log.sync(state=True)
        state = self.spark / "state" / "0" / "0"
        self.write(state / f"{batch + 1}.changelog", {"moved": end - begin})
        if self.random.random() < 0.3:
            self.write(state / f"{batch + 1}.zip", {"at": end, "sstFiles": []})
        content = log.content(batch)
        for sink in sinks if first else ():
            log.agree(sink.held, batch)
        answers = [Answer("q", i, "+", {"i": Literal(i)}) for i in range(begin, end) if i % 7 < 3]
        if answers and self.careful:
            log.sync(state=True)
        for sink in sinks if answers else ():
            sink.write(batch, answers, content=content)
            self.maybe_fail()
        self.write(self.spark / "commits" / str(batch), {"nextBatchWatermarkMs": 0})
        for old in (self.spark / "offsets" / str(batch - 12), self.spark / "commits" / str(batch - 12)):
            old.unlink(missing_ok=True)

    def end_of(self, log: SparkLog, batch: int) -> int:
        return int(log.find(batch, "s")) if batch >= 0 else 0

    def state(self, version: int) -> int:
        """As Spark loads it: the last snapshot, and the changes since."""
        at = {0: 0}
        for path in (self.spark / "state" / "0" / "0").glob("*.zip"):
            at[int(path.stem)] = told(path)["at"]
        last = max(n for n in at if n <= version)
        changes = [self.spark / "state" / "0" / "0" / f"{n}.changelog" for n in range(last + 1, version + 1)]
        return at[last] + sum(told(path)["moved"] for path in changes)

    @contextmanager
    def sinks(self) -> Iterator[list[Sink]]:
        opened: list[Sink] = []
        try:
            for spec in ("file.ndjson", "csv:folder/"):
                kind, _, path = spec.rpartition(":")
                where = f"{self.folder}/{path}"
                opened.append(open_sink(f"{kind}:{where}" if kind else where, query="q", run="r"))
            opened.append(CallbackSink(lambda a: self.told.append(a.time), self.folder / "ledger", run="r"))
            yield opened
        finally:
            for sink in opened:
                sink.close()

    def has_exactly_once(self) -> bool:
        wanted = [i for i in range(INPUT) if i % 7 < 3]
        lines = (self.folder / "file.ndjson").read_text().splitlines()
        files = sorted((self.folder / "folder").glob("*.csv"))
        rows = [row for file in files for row in file.read_text().splitlines()[1:]]
        assert sorted(set(self.told)) == wanted  # the call that was cut short may come again
        return [json.loads(line)["time"] for line in lines] == wanted and len(rows) == len(wanted)


def told(path: Path) -> dict[str, int]:
    data = ZipFile(path).read("metadata") if path.suffix == ".zip" else path.read_bytes()
    found: dict[str, int] = json.loads(data.splitlines()[1])
    return found


def outcome(seed: int, careful: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """Fail and start again until the input is read: "once", or "refused"."""
    with tempfile.TemporaryDirectory(prefix="kelda-log-", dir=MEMORY) as name:
        machine = Machine(Path(name), seed, careful)
        monkeypatch.setattr(log_module, "sync", machine.synced)
        while True:
            try:
                machine.run()
                break
            except PowerFailure:
                machine.lose()
            except CheckpointError as refusal:
                broken = Path(str(refusal).split(" is broken")[0])
                if "or delete it" not in str(refusal):
                    return "refused"
                broken.unlink()  # as we are told
        assert machine.has_exactly_once()
        return "once"


@CASES
@given(st.integers(0, 2**32))
def test_what_is_synced_in_time_is_taken_up_again(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert outcome(seed, True, patch) == "once"


@CASES
@given(st.integers(0, 2**32))
def test_a_disk_that_forgets_all_the_same_is_found_out(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert outcome(seed, False, patch) in ("once", "refused")


def test_both_ends_are_met() -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert {outcome(seed, False, patch) for seed in range(20)} == {"once", "refused"}


def test_a_failure_of_spark_is_blamed_on_a_file_only_if_it_is_one(tmp_path: Path) -> None:
    log = SparkLog(tmp_path / "spark")
    state = tmp_path / "spark" / "state" / "0" / "0"
    state.mkdir(parents=True)

    def blamed(text: str) -> str:
        return str(log.blamed(text) or "nobody")

    assert blamed(f"Checksum error: file:{state}/3.changelog at 512 exp: 1").startswith(
        f"{state}/3.changelog is"
    )
    assert blamed(f"File file:{state}/x does not exist SQLSTATE: X").startswith(f"{state}/x is broken")
    assert blamed("EOFException: Stream ended prematurely").startswith(f"{tmp_path}/spark/state is broken")
    for text in (
        "Python worker exited unexpectedly\nCaused by: java.io.EOFException",
        "file:/etc/x at 3",
        "",
    ):
        assert blamed(text) == "nobody"
    (state / "3.zip").write_bytes(b"PK")
    assert blamed("NullPointerException").startswith(f"{state}/3.zip is broken")
