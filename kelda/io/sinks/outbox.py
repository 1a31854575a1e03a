"""The outbox of a sink: batches that the broker has not taken yet, a file each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kelda.durable import make_folder, replace_file
from kelda.errors import InputError
from kelda.io.kafka.answers import Out
from kelda.io.sinks.content import Held
from kelda.kept import reading, writing
from kelda.rdf import wire

MOST = 1 << 30  # bytes that may wait


class Outbox:
    """Batches in order. `held` is the last that was put in, or nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.held = folder, Held()
        self._sizes: dict[int, int] = {}
        if folder.is_dir():
            with reading(folder):
                self._sizes = {int(f.stem): f.stat().st_size for f in sorted(folder.glob("*.batch"))}
        if self._sizes:
            last = max(self._sizes)
            self.held = Held(last, self._read(last)[1])

    def __len__(self) -> int:
        return len(self._sizes)

    def _file(self, batch: int) -> Path:
        return self.folder / f"{batch:012d}.batch"

    def _read(self, batch: int) -> tuple[int, str | None, list[Out]]:
        with reading(self._file(batch)):
            content, messages = wire.decode(self._file(batch).read_bytes(), "a batch of an outbox")
        return batch, content, [Out(key, value) for key, value in messages]

    def put(self, batch: int, content: str | None, messages: Sequence[Out]) -> None:
        """Keep a batch, on disk when this returns."""
        waiting = sum(self._sizes.values())
        if waiting > MOST:
            raise InputError(
                f"{waiting:,} bytes of answers wait in {self.folder} for a broker that does not take them; "
                "no more are kept. Start again when it does: nothing is lost"
            )
        data = wire.encode((content, [[key, value] for key, value in messages]))
        with writing(self.folder):
            make_folder(self.folder)
            replace_file(self._file(batch), data)
        self._sizes[batch] = len(data)
        self.held = Held(batch, content)

    def first(self) -> tuple[int, str | None, list[Out]] | None:
        """The batch that is next."""
        return self._read(min(self._sizes)) if self._sizes else None

    def drop(self, until: int) -> None:
        """The broker has the batches up to this one."""
        for batch in [batch for batch in self._sizes if batch <= until]:
            self._file(batch).unlink(missing_ok=True)
            del self._sizes[batch]
