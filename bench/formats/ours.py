"""How much CPU time Kelda needs for a file: from text to ids, and from text to answers."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kelda
from bench.formats.readings import FORMATS, MAPPING, QUERY, STREAM, written
from kelda.io.job import StreamSource
from kelda.io.sources import open_reader
from kelda.shards.ingest import ingest
from kelda.shards.parcel import unpack

BATCH = 100_000  # records
FEW = 2_000  # readings by which everything is compiled


def measure(format: str, readings: int, repeats: int = 3) -> dict[str, Any]:
    """CPU seconds for so many readings in a format: text to ids beside that of `tsnt`, to answers that go
    nowhere, to answers in a file."""
    with tempfile.TemporaryDirectory(prefix="kelda-bench-") as name:
        folder = Path(name)
        plain, mine = File(folder, "tsnt", readings), File(folder, format, readings)
        for kind in dict.fromkeys(("tsnt", format)):
            small = File(folder, kind, FEW)
            small.to_ids()
        small.to_answers()
        read, of_tsnt = mine.to_ids(), plain.to_ids()
        for _ in range(repeats - 1):  # in turn: what else the machine does, it does to both
            read, of_tsnt = min(read, mine.to_ids()), min(of_tsnt, plain.to_ids())
        told = min(mine.to_answers() for _ in range(repeats))
        out = folder / "answers.ndjson"
        wrote = min(mine.to_answers(out) for _ in range(repeats))
        answers = out.read_bytes().count(b"\n")
        triples, size = mine.triples, mine.path.stat().st_size
        per_triple = of_tsnt / plain.triples
    return {
        "triples": triples,
        "file_mb": size / 1e6,
        "read_cpu_s": read,
        "read_per_cpu_s": triples / read,
        "of_tsnt": per_triple / (read / triples),
        "answered_cpu_s": told,
        "answered_per_cpu_s": triples / told,
        "written_cpu_s": wrote,
        "written_per_cpu_s": triples / wrote,
        "answers": answers,
    }


class File:
    """Readings in a format, as a file."""

    def __init__(self, folder: Path, name: str, readings: int) -> None:
        self.format = FORMATS[name]
        self.path = folder / f"readings-{readings}{self.format.suffix}"
        self.path.write_text(written(name, readings), encoding="utf-8")
        self.triples = readings * self.format.triples
        self.mapping: str | None = None
        if self.format.mapped:
            mapping = folder / "mapping.yaml"
            mapping.write_text(MAPPING, encoding="utf-8")
            self.mapping = str(mapping)

    def to_ids(self) -> float:
        """CPU seconds until there are parcels of ids: what is asked for is what the query asks for."""
        with kelda.connect() as engine, tempfile.TemporaryDirectory() as spool:
            self._declare(engine)
            engine.register(QUERY, "means", sink="null")
            routing = engine._deployment.planner.routing
            source = StreamSource(STREAM, str(self.path), self.format.kelda, None, self.mapping)
            reader = open_reader(source.path, source, 0, spool=Path(spool), spots=True)
            at = reader.start()
            parcels = []
            begin = time.process_time()
            while (end := reader.latest(at, BATCH)) != at:
                parcels += ingest(reader.pieces(at, end), {0: source}, routing, 1, 1)
                reader.commit(end)
                at = end
            took = time.process_time() - begin
            reader.close()
        sent = sum(part.size for parcel in parcels for part in unpack(parcel)[1])
        if sent != self.triples:
            raise AssertionError(f"{sent:,} of {self.triples:,} triples were read")
        return took

    def to_answers(self, out: Path | None = None) -> float:
        """CPU seconds until all is answered."""
        if out is not None:
            out.unlink(missing_ok=True)
        with kelda.connect() as engine:
            self._declare(engine)
            engine.register(QUERY, "means", sink="null" if out is None else f"ndjson:{out}")
            return _cpu(lambda: _to_the_end(engine))

    def _declare(self, engine: kelda.Engine) -> None:
        engine.stream(STREAM, str(self.path), format=self.format.kelda, mapping=self.mapping)


def _to_the_end(engine: kelda.Engine) -> None:
    engine.start()
    engine.wait()


def _cpu(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
