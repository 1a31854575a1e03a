"""What somebody might send who wants us to run something."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Touch:
    """A pickle of this makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))
