"""Every figure in the documentation names the command that gives it, and every such command exists.

A *figure* is a table with numbers, or a line with a number and a unit of speed, time or size, on the page of
benchmarks; elsewhere, a line with a number per second or so many times. Its command (`kelda bench NAME`,
`python -m bench.x`, `make x`) stands in the same section; other pages may link to the page of benchmarks.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.experiments import EXPERIMENTS, find
from kelda.errors import UsageError

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "benchmarks.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

COMMAND = re.compile(r"kelda bench ([^`\n#]+)|python -m (bench\.[\w.]+)|make (bench[\w-]*)")
FILE = re.compile(r"\.(json|html)$")
NUMBER = r"\d[\d.,]*(?:\s?[–-]\s?\d[\d.,]*)?\s?(?:M |million )?"
PER_SECOND = r"(?:triples|elements|rows|answers|inserts)?\s?(?:/s\b|/ ?CPU|(?:a|per) (?:CPU-)?second)"
MEASURED = re.compile(NUMBER + rf"(?:{PER_SECOND}|M/s|k/s|ms\b|ns\b|µs\b|MB\b|times\b)")
SPEED = re.compile(NUMBER + rf"(?:{PER_SECOND}|times (?:as|faster))")


def sections(text: str) -> Iterator[tuple[str, str]]:
    """(heading, text) down to the next heading of any level; code is left in, a command may stand in it."""
    heading, lines = "", []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("#") and not fenced:
            yield heading, "\n".join(lines)
            heading, lines = line.lstrip("# "), [line]
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def figures(text: str, pattern: re.Pattern[str]) -> list[str]:
    """The lines of a section, outside code, that quote figures."""
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    found = []
    for line in outside.splitlines():
        cells = (
            line.startswith("|")
            and len(re.findall(r"\|\s*[\d.,–-]*\d[\d.,]*\s*(?:M|ns|ms|MB)?\s*(?=\|)", line)) >= 2
        )
        if cells or pattern.search(line):
            found.append(line)
    return found


@pytest.mark.parametrize(
    "heading, text", [pytest.param(*s, id=s[0] or "top") for s in sections(PAGE.read_text())]
)
def test_figures_on_the_page_of_benchmarks_name_their_command(heading, text):
    quoted = figures(text, MEASURED)
    assert not quoted or COMMAND.search(text), f"under “{heading}” no command for:\n" + "\n".join(quoted)


@pytest.mark.parametrize("page", [p for p in PAGES if p != PAGE], ids=lambda p: p.name)
def test_figures_elsewhere_name_a_command_or_link_to_that_page(page):
    for heading, text in sections(page.read_text()):
        for line in figures(text, SPEED):
            if line.startswith("|") and not SPEED.search(line):
                continue  # tables of other things
            assert COMMAND.search(text) or "benchmarks.md" in text, f"under “{heading}”: {line}"


def commands() -> list[tuple[str, str]]:
    return [(page.name, found[0]) for page in PAGES for found in COMMAND.finditer(page.read_text())]


@pytest.mark.parametrize("page, text", commands())
def test_commands_exist(page, text):
    found = COMMAND.match(text)
    assert found is not None
    names, module, target = found.groups()
    if module:
        assert importlib.util.find_spec(module) is not None, f"{page}: there is no {module}"
    elif target:
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), (
            f"{page}: make {target}"
        )
    else:
        words = [w for w in names.split() if re.fullmatch(r"[a-z][\w.]*", w) and not FILE.search(w)]
        try:
            find(words)
        except UsageError as problem:
            pytest.fail(f"{page}: {text}: {problem}")


def test_the_page_covers_the_papers():
    said = PAGE.read_text()
    for name in EXPERIMENTS:
        assert name.partition(".")[0] in said, f"docs/benchmarks.md does not mention {name}"


def test_figures_are_recognised():
    assert figures("It takes 2.5 M triples/s here.", MEASURED)
    assert figures("| Q1 | 100 | 2,703,586 |", MEASURED)
    assert figures("a median of 0.13 ms", MEASURED)
    assert not figures("There are 5 papers.\n```\n10 ms\n```", MEASURED)
    assert figures("at 4 M triples a second", SPEED) and not figures("windows of 10 s, 5 papers", SPEED)
