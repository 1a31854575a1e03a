"""Every error Kelda raises on purpose: one tree, one message each, the way out in the message."""

from __future__ import annotations

LONGEST_LINE = 160  # characters of a query's line that a message shows


class KeldaError(Exception):
    """Base of all errors that are Kelda's to explain. `exit_code` is what the command line returns."""

    exit_code = 1


class QueryError(KeldaError):
    """A query that cannot be registered: where it goes wrong and what was expected.

    Printed, it shows the line and a caret:

        line 2, column 7: unexpected '}'
          SELECT ?x }
                    ^
        expected: WHERE, '{'
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        text: str | None = None,
        line: int | None = None,
        column: int | None = None,
        expected: tuple[str, ...] = (),
    ) -> None:
        self.message, self.line, self.column, self.expected = message, line, column, expected
        parts = [message]
        if line is not None and column is not None:
            parts = [f"line {line}, column {column}: {message}"]
            lines = (text or "").splitlines()
            if 1 <= line <= len(lines):
                shown, at = lines[line - 1].replace("\t", " "), column - 1
                if len(shown) > LONGEST_LINE:  # only what is around
                    start = max(0, min(at - LONGEST_LINE // 2, len(shown) - LONGEST_LINE))
                    end = start + LONGEST_LINE
                    before, after = "…" * (start > 0), "…" * (end < len(shown))
                    shown, at = before + shown[start:end] + after, at - start + len(before)
                parts += [f"  {shown}", "  " + " " * at + "^"]
        if expected:
            parts.append("expected: " + ", ".join(expected))
        super().__init__("\n".join(parts))


class InputError(KeldaError):
    """Stream or stored data that cannot be read (with `--strict`, the first bad record)."""

    exit_code = 3


class IdCollisionError(KeldaError):
    """Two different terms with one hashed id. Never answered wrongly: the run stops."""

    exit_code = 4


class EnvironmentProblem(KeldaError):
    """The machine lacks something (a JDK, a package); the message says what to install."""

    exit_code = 5


class MemoryLimitError(KeldaError):
    """The engine holds more than it may; the message says what holds most. Nothing was dropped. (A query that
    alone would take too much in a step is stopped instead, for this reason.)"""

    exit_code = 6


class QueryStopped(KeldaError):
    """A query that failed while it ran, and was stopped; the others went on. The message says why."""

    exit_code = 7


class UsageError(KeldaError):
    """A call that makes no sense as it stands (unknown stream, bad option value, …)."""

    exit_code = 2


class WireError(KeldaError):
    """Bytes from another process or from a checkpoint that are not what they should be. Nothing was done with
    them."""

    exit_code = 3


class CheckpointError(KeldaError):
    """A checkpoint whose files are lost or broken, or do not belong together or to what a sink holds."""

    exit_code = 8
