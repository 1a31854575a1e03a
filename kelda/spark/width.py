"""How wide the cluster is: how many tasks can read at the same time.

Executors come and go while a pipeline runs, and only the driver knows of them. It writes the number into the
checkpoint folder, where the source (which Spark runs in a process of its own beside the driver) looks before
it cuts a batch into tasks. How a batch is cut makes no difference to its answers.
"""

from __future__ import annotations

from pathlib import Path

from kelda.durable import replace_file

FILE = "width"  # in the checkpoint folder
MOST = 4096


class Width:
    """What the driver tells."""

    def __init__(self, folder: Path) -> None:
        self._file, self._told = folder / FILE, 0

    def tell(self, tasks: int) -> None:
        """So many from the next batch on."""
        if tasks != self._told:
            replace_file(self._file, b"%d\n" % tasks)
            self._told = tasks


def width_in(folder: Path, otherwise: int) -> int:
    """What the driver has told last."""
    try:
        told = int((folder / FILE).read_text())
    except (OSError, ValueError):  # nothing: then as wide as it was at the start
        return otherwise
    return min(max(1, told), MOST)
