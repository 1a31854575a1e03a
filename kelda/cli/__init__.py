"""The command line: `kelda query`, `explain`, `doctor`, `demo`, `version`."""

from kelda.cli.app import app, main

__all__ = ["app", "main"]
