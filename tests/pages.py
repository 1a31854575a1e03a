"""Pages of documentation, run as they are printed: `python -m tests.pages PAGE.md` in an empty folder.

The blocks of a page run in order, Python ones in one namespace, `sh` ones with `bash -e`, all in the current
folder. A block without a language, or of `text`, right behind one that is run is what that one prints.
Comments, which no reader sees, say what is special, on the line before a block:

    <!-- not run: reason -->    it is not run
    <!-- spark -->              it is run only where Spark is (`--spark`)

and hold Python that runs at its place on the page, for what a block takes for granted:

    <!-- python
    text = "SELECT ..."
    -->
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

RUN = ("python", "sh")
SHOWN = ("sparql", "turtle", "trig", "yaml", "toml", "json", "csv")  # what is data, and read by other tests
OUTPUT = ("", "text")

_PART = re.compile(
    r"^(?P<indent> *)(?P<fence>```+)(?P<language>[^\n`]*)\n(?P<text>.*?)^ *(?P=fence) *$"
    r"|^ *<!--(?P<comment>.*?)-->",
    re.MULTILINE | re.DOTALL,
)


class PageError(Exception):
    """What is wrong on a page, and where."""


@dataclass(frozen=True)
class Block:
    """Some code on a page, from `line` on."""

    line: int
    language: str
    text: str
    not_run: str | None = None
    spark: bool = False
    prints: str | None = None


def blocks(page: str) -> list[Block]:
    """The blocks that are run, or would be but for a mark; PageError for what makes no sense."""
    found: list[Block] = []
    mark, ready = "", -1  # a mark, and where the block must begin that it is for
    behind: int | None = None  # where the block ended that the next one may be the output of
    for part in _PART.finditer(page):
        line = page.count("\n", 0, part.start()) + 1
        if mark and part.start() != ready:
            raise PageError(f"line {line}: '{mark}' does not stand right before a block")
        if part["comment"] is not None:
            comment = part["comment"].strip()
            if comment.startswith("python\n"):
                found.append(Block(line + 1, "python", comment.removeprefix("python\n")))
                behind = None
            elif comment == "spark" or comment.startswith("not run"):
                mark, ready = comment, part.end() + 1
            continue
        language, text = part["language"].strip(), textwrap.dedent(part["text"])
        if language in RUN:
            found.append(_marked(Block(line + 1, language, text), mark))
            mark, behind = "", part.end()
            continue
        if mark:
            raise PageError(f"line {line}: '{mark}' stands before a block that is never run")
        if language in OUTPUT and behind is not None and not page[behind : part.start()].strip():
            found[-1] = replace(found[-1], prints=text)
        elif language not in (*OUTPUT, *SHOWN):
            known = ", ".join((*RUN, *SHOWN, *OUTPUT[1:]))
            raise PageError(f"line {line}: a block of '{language}'; there are {known}")
        behind = None
    if mark:
        raise PageError(f"'{mark}' at the end of the page stands before no block")
    return found


def _marked(block: Block, mark: str) -> Block:
    if mark == "spark":
        return replace(block, spark=True)
    if not mark:
        return block
    reason = mark.removeprefix("not run").removeprefix(":").strip()
    if not reason:
        raise PageError(f"line {block.line}: not run, and no reason is given")
    return replace(block, not_run=reason)


def run(path: Path, *, spark: bool = False) -> None:
    """Run a page in the current folder; PageError says which block failed, and how."""
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.not_run or (block.spark and not spark):
            continue
        where = f"{path}:{block.line}"
        try:
            printed = _RUNNERS[block.language](block, path, names)
        except Exception as error:
            raise PageError(f"{where}: this block fails: {error}") from error
        if block.prints is not None and _plain(printed) != _plain(block.prints):
            raise PageError(f"{where}: this block prints\n{printed}and the page says\n{block.prints}")


def _plain(text: str) -> str:
    """Without blanks at the ends of lines, and lines at the end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip()


def _python(block: Block, path: Path, names: dict[str, object]) -> str:
    out = io.StringIO()
    if block.text.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.text, names, path.name, str(path), block.line - 1)
        runner = doctest.DocTestRunner(verbose=False)
        runner.run(test, out=out.write, clear_globs=False)
        names.update(test.globs)
        if runner.failures:
            raise PageError(out.getvalue())
        return ""
    code = compile("\n" * (block.line - 1) + block.text, str(path), "exec")  # so that lines are the page's
    with contextlib.redirect_stdout(out):
        exec(code, names)
    return out.getvalue()


def _sh(block: Block, path: Path, names: dict[str, object]) -> str:
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", block.text], capture_output=True, text=True)
    if done.returncode:
        raise PageError(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


_RUNNERS = {"python": _python, "sh": _sh}


def pages(root: Path) -> Iterator[Path]:
    """The pages that are run."""
    yield root / "README.md"
    yield from sorted((root / "docs").rglob("*.md"))


if __name__ == "__main__":
    run(Path(sys.argv[1]), spark="--spark" in sys.argv)
