"""What went wrong in Spark, in a sentence: the cause, without two hundred lines of JVM."""

from __future__ import annotations

import re

from kelda import errors
from kelda.errors import KeldaError
from kelda.spark.session import LOG

# The last line of a Python traceback that passed through the JVM as text, with what the error says
# further down, up to where Spark goes on: its frames, its error state, its plan.
_RAISED = re.compile(
    r"^(?:[A-Za-z_]\w*\.)*(?P<kind>[A-Z]\w*)(?:: (?P<text>.*?))?\s*"
    r"(?=^\s+at \S+\(|^ *SQLSTATE: |^=== |^Driver stacktrace|^JVM stacktrace|\Z)",
    re.MULTILINE | re.DOTALL,
)
_TRACEBACK = "Traceback (most recent call last):"
_CAUSED = re.compile(r"^Caused by: (?:[\w$.]+\.)?(?P<kind>[\w$]+)(?:: (?P<text>.*))?$", re.MULTILINE)


def explain(problem: BaseException) -> KeldaError:
    """The error to show for an exception that came out of Spark.

    An error that Kelda raised in a worker comes back as what it was; everything else becomes one
    sentence with the innermost cause.
    """
    if isinstance(problem, KeldaError):
        return problem
    kind, text = cause_of(str(problem))
    raised = getattr(errors, kind, None)
    if isinstance(raised, type) and issubclass(raised, KeldaError):
        return raised(text)
    said = f"{kind}: {text}" if text else kind
    return KeldaError(
        f"the Spark pipeline failed: {said}\n"
        f"Spark's own log says more: run again with {LOG}=spark.log in the environment"
    )


def cause_of(text: str) -> tuple[str, str]:
    """The kind and the words of the innermost cause in what Spark prints.

    >>> cause_of("Job aborted.\\nTraceback (most recent call last):\\n  File 'x'\\nValueError: no\\n")
    ('ValueError', 'no')
    """
    if _TRACEBACK in text:
        innermost = text[text.rindex(_TRACEBACK) + len(_TRACEBACK) :]
        raised = _RAISED.search(innermost)
        # An error of py4j is only the messenger of one in the JVM.
        if raised and not raised["kind"].startswith("Py4J"):
            return raised["kind"], (raised["text"] or "").strip()
    causes = list(_CAUSED.finditer(text))
    if causes:
        return causes[-1]["kind"], (causes[-1]["text"] or "").strip()
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no reason given")
    return "SparkException", first
