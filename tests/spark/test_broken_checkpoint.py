"""A checkpoint whose files are broken, cut or gone: it goes on as it was, or one line says which file and
what to do; never a traceback. No Spark here: its own files are looked at before it starts."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kelda.cli import main
from kelda.engine.oneshot import Solutions
from kelda.errors import CheckpointError, EnvironmentProblem, KeldaError, UsageError
from kelda.io.job import QuerySpec, StreamSource
from kelda.io.sources.reader import Offset
from kelda.lang import parse
from kelda.shards.setup import Setup
from kelda.shards.shard import News
from kelda.spark.driver import SparkDriver

FILE, PUSHED = "http://ex/file", "http://ex/pushed"
QUERY = "SELECT ?x { STREAM <http://ex/file> [RANGE 5s] { ?x <x:p> ?y } }"
NAMES = ["plain", "../../../evil", "/etc/evil", "..", "", "a\0b", "x" * 500]


def begun(folder: Path, checkpoint: Path, shards: int = 2) -> SparkDriver:
    """A driver, of two streams when it is the first one with this checkpoint."""
    driver = SparkDriver(Setup(shards=shards), checkpoint)
    if not driver.deployment.streams:
        file = folder / "file.tsnt"
        file.write_text("1000\t<x:a> <x:p> <x:b> .\n")
        driver.add_stream(StreamSource(FILE, str(file)))
        driver.add_stream(StreamSource(PUSHED, "push:", "tsnt"))
    return driver


class Opened:
    """A driver that has taken up a checkpoint, as far as that goes without Spark."""

    def __init__(self, folder: Path, checkpoint: Path) -> None:
        self.driver = begun(folder, checkpoint)
        try:
            deployment, log = self.driver.deployment, self.driver.log
            for sink in deployment.stand(deployment.catalog.version):
                log.agree(sink.held, max(log.begun(), default=0))
            reader = self.driver.reader(PUSHED)
            at: Offset = log.find(log.begun()[-1], f"1 {PUSHED}") if log.begun() else reader.start()
            self.pushed = reader.pieces(at, reader.latest(at))
        except BaseException:
            self.driver.close()
            raise

    def says(self) -> tuple[list[str], list[list[str]], object, int]:
        """What must be the same in every run that takes the checkpoint up."""
        deployment = self.driver.deployment
        waiting = [w.names for w in deployment.registrations.waiting]
        names = deployment.ask(deployment.prepare_ask(parse("SELECT ?n { ?x <x:name> ?n } ORDER BY ?n")))
        assert isinstance(names, Solutions)
        return deployment.queries, waiting, [row["n"] for row in names.rows], len(self.pushed)


def spark_files(folder: Path) -> None:
    """What Spark leaves of two batches."""
    conf = {"conf": {"spark.sql.shuffle.partitions": "2"}}
    for batch in (0, 1):
        at = {"pieces": 1 + batch, "records": 1 + batch, "ended": False}
        offset = {f"1 {PUSHED}": at, "catalog": {"version": 5}}
        text = "v1\n" + json.dumps(conf) + "\n" + json.dumps(offset)
        for path in ("offsets", "commits", "state/0/0", "state/0/1"):
            (folder / path).mkdir(parents=True, exist_ok=True)
        (folder / "offsets" / str(batch)).write_text(text)
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
        for partition in "01":
            (folder / "state" / "0" / partition / f"{batch + 1}.changelog").write_bytes(b"changes")


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The folder of a job, with its checkpoint."""
    begun(tmp_path, tmp_path / "cp").close()
    driver = begun(tmp_path, tmp_path / "cp")
    deployment = driver.deployment
    (tmp_path / "names.ttl").write_text("".join(f'<x:{i}> <x:name> "{i}" .\n' for i in range(8)))
    deployment.load(tmp_path / "names.ttl", None, None)
    (tmp_path / "names.ttl").unlink()  # there is a copy
    deployment.register(QuerySpec("plain", QUERY), sink=str(tmp_path / "plain.ndjson"))
    deployment.register(QuerySpec("../../../evil", QUERY), sink="console")
    deployment.registrations.settle(0, [News(told={FILE: 5}, now=0)])  # so that the next one waits
    deployment.register(QuerySpec("waits", QUERY))
    for i in range(4):
        driver.push_text(PUSHED, f"{i}\t<x:a> <x:p> <x:b> .")
    for sink in deployment.stand(deployment.catalog.version):
        sink.write(1, [], content="0" * 40)
    driver.close()
    spark_files(tmp_path / "cp" / "spark")
    return tmp_path


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def garble(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3 : len(data) // 3 + 9] = b"\xff\x00\xfe" * 3
    path.write_bytes(bytes(data))


DAMAGES: list[Callable[[Path], object]] = [cut, garble, Path.unlink, lambda path: path.write_bytes(b"")]


def test_any_file_may_be_broken(whole: Path) -> None:
    opened = Opened(whole, whole / "cp")
    *wanted, pieces = opened.says()
    opened.driver.close()
    assert wanted[:2] == [["plain", "../../../evil", "waits"], [["waits"]]]
    assert pieces == 2
    files = sorted(path.relative_to(whole / "cp") for path in (whole / "cp").rglob("*") if path.is_file())
    assert len(files) > 12
    refused = 0
    for file in files:
        for number, damage in enumerate(DAMAGES):
            copy = whole / f"copy-{number}"
            shutil.copytree(whole / "cp", copy)
            damage(copy / file)
            try:
                again = Opened(whole, copy)
            except KeldaError as problem:
                said = str(problem)
                refused += 1
                assert len(said.splitlines()) == 1, said
                named = copy / file.parent if "spool" in file.parts else copy / file
                assert str(named) in said or (file.name == "kelda.json" and "no kelda.json" in said), said
            else:
                *same, pushed = again.says()
                assert same == wanted, f"{damage} {file}"
                # Without the last files of Spark's log, more is taken again; never less.
                more = 2 if file.parts[0] == "spark" else 0
                # What was pushed last and not read yet may be cut off, as by the end of a process.
                fewer = 2 if file.suffix == ".spool" else 0
                assert pieces - fewer <= pushed <= pieces + more, f"{damage} {file}"
                again.driver.close()
            shutil.rmtree(copy)
    assert refused > 20


@pytest.mark.parametrize("emptied", [("commits/1",), ("offsets/1", "commits/1"), ("offsets/1",)])
def test_names_without_content_are_what_a_power_failure_leaves(whole: Path, emptied: tuple[str, ...]) -> None:
    """Found by a crash round: they are set aside, and the batch is taken again."""
    for sink in ("plain.ndjson", "cp/sinks"):  # nobody has the batch: that would be refused
        path = whole / sink
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for journal in whole.glob(".*kelda*"):
        journal.unlink()
    for name in emptied:
        (whole / "cp" / "spark" / name).write_bytes(b"")
    opened = Opened(whole, whole / "cp")
    assert opened.driver.log.begun()[-1] == ("offsets/1" not in emptied)
    opened.driver.close()
    lost = {path.relative_to(path.parents[1]).as_posix() for path in (whole / "cp" / "lost").rglob("[01]")}
    assert set(emptied) <= lost


@pytest.mark.parametrize("name", NAMES)
def test_no_name_leaves_the_checkpoint(tmp_path: Path, name: str) -> None:
    checkpoint = tmp_path / "a" / "b" / "cp"
    driver = begun(tmp_path, checkpoint)
    driver.deployment.register(QuerySpec(name, QUERY), sink="console")
    assert driver.deployment.queries == [name]
    driver.close()
    (ledger,) = (checkpoint / "sinks").iterdir()
    assert ledger.is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file.tsnt"]
    assert [path.name for path in (tmp_path / "a").rglob("*evil*")] in ([], [ledger.name])


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    first = begun(tmp_path, tmp_path / "cp")
    first.run.flag.touch()  # it runs
    with pytest.raises(UsageError, match=f"held by pid {os.getpid()} on "):
        begun(tmp_path, tmp_path / "cp")
    assert first.run.flag.exists()
    first.close()
    assert not first.run.flag.exists()
    begun(tmp_path, tmp_path / "cp").close()


def test_one_that_was_refused_holds_nothing(tmp_path: Path) -> None:
    begun(tmp_path, tmp_path / "cp").close()
    with pytest.raises(UsageError, match=r"another way .shards was 2 and is 3."):
        begun(tmp_path, tmp_path / "cp", shards=3)
    begun(tmp_path, tmp_path / "cp").close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    driver = begun(tmp_path, tmp_path / "cp")
    (tmp_path / "g.ttl").touch()

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    for change in (
        lambda: driver.deployment.register(QuerySpec("q", QUERY)),
        lambda: driver.deployment.load(tmp_path / "g.ttl", None, None),
        lambda: driver.deployment.drop_stream(PUSHED),
    ):
        with pytest.raises(
            EnvironmentProblem, match=rf"cannot write {tmp_path}/cp/.*: {os.strerror(number)}; "
        ):
            change()
    monkeypatch.undo()
    driver.close()


def test_a_batch_is_read_again_with_a_stream_that_is_dropped_by_now(whole: Path) -> None:
    driver = begun(whole, whole / "cp")
    driver.drop_stream(PUSHED)
    driver.close()
    again = begun(whole, whole / "cp")  # its last batch was begun before
    assert [source.iri for source in again.deployment.streams.values()] == [FILE]
    begin, end = (again.log.find(batch, f"1 {PUSHED}") for batch in (0, 1))
    assert len(again._here[1].pieces(begin, end)) == 1
    again.close()


def test_the_command_line_says_a_line(
    whole: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole / "q.rq").write_text(QUERY)
    (whole / "cp" / "kelda.json").write_text("{")
    words = ["query", "q.rq", "--stream", f"{FILE}=file.tsnt", "--runner", "spark", "--checkpoint", "cp"]
    monkeypatch.chdir(whole)
    monkeypatch.setattr("sys.argv", ["kelda", *words])
    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == CheckpointError.exit_code
    said = capsys.readouterr().err
    assert (
        said.startswith(f"error: {whole / 'cp' / 'kelda.json'} is broken (") and len(said.splitlines()) == 1
    )
