"""The checkpoint folder of a deployment: whose it is, and that one process at a time has it."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import asdict
from pathlib import Path

from kelda.durable import replace_file
from kelda.errors import UsageError
from kelda.io.hold import Hold
from kelda.io.private import tighten
from kelda.kept import reading, writing
from kelda.shards.setup import Setup

ABOUT = "kelda.json"
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")  # of a store elsewhere; a path has lost its second slash


class Checkpoint:
    """A folder that is new, or that of the same set-up; ours until it is closed."""

    def __init__(self, folder: str | Path, setup: Setup, driver: str) -> None:
        if ADDRESS.match(str(folder)):
            raise UsageError(f"a checkpoint is a folder of this machine or a mounted one, not {folder}")
        self.folder = Path(folder).absolute()
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._refuse_others()
        self._hold = Hold(self.folder)
        try:
            self._refuse_others()
            self.id = self._open(setup, driver)
            tighten(self.folder)
        except BaseException:
            self.close()
            raise

    def _open(self, setup: Setup, driver: str) -> str:
        file, mine = self.folder / ABOUT, {"driver": driver, **_lasting(setup)}
        if not file.exists():
            replace_file(file, json.dumps({"setup": mine, "id": uuid.uuid4().hex}).encode())
        with reading(file):
            about = json.loads(file.read_text("utf-8"))
            made_with, id = dict(about["setup"]), str(about["id"])
        if made_with != mine:
            other = [
                f"{key} was {made_with.get(key)!r} and is {value!r}"
                for key, value in mine.items()
                if made_with.get(key) != value
            ]
            raise UsageError(
                f"the checkpoint {self.folder} was begun in another way ({', '.join(other)}); "
                "connect as before, use another folder, or delete this one to start from the beginning"
            )
        return id

    def _refuse_others(self) -> None:
        """Refuse a folder that is neither empty nor a checkpoint. What begins with a dot may be of one that
        was killed when it began."""
        file = self.folder / ABOUT
        with reading(self.folder):
            if not file.exists() and any(not path.name.startswith(".") for path in self.folder.iterdir()):
                raise UsageError(
                    f"{self.folder} is not empty and not a checkpoint of Kelda (it has no {ABOUT}); "
                    "use another folder"
                )

    def close(self) -> None:
        """Let others have it."""
        self._hold.release()


def _lasting(setup: Setup) -> dict[str, object]:
    """What of a set-up cannot change from run to run."""
    return {key: value for key, value in asdict(setup).items() if key != "memory_limit"}
