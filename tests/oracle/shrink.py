"""The smallest case that still shows what a large one showed: parts are taken away while it does."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from .cases import Case

TOKEN = re.compile(r'<[^<>"{}\s]*>|"(?:[^"\\]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?|@\w+@|[?:\w]+|&&|\|\||[!<>]=|\S')
CLOSES = {"(": ")", "{": "}"}
MOST = 1500  # cases that are tried


def shrink(case: Case, shows: Callable[[Case], bool]) -> Case:
    """A case that `shows` it and of which no single part can be taken away (or none was found in time)."""
    tries = 0
    moved = True
    while moved:
        moved = False
        for smaller in candidates(case):
            tries += 1
            if tries > MOST:
                return case
            if shows(smaller):
                case, moved = smaller, True
                break
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Cases with something taken away, large parts first."""
    if case.way not in ("oneshot", "reference", "incremental"):
        yield replace(case, way="incremental")
    for kept in without(case.data):
        yield replace(case, data=kept)
    for events in without(case.events):
        yield replace(case, events=events)
    for i, event in enumerate(case.events):
        for triples in without(event.triples):
            if triples:
                yield replace(
                    case, events=(*case.events[:i], event._replace(triples=triples), *case.events[i + 1 :])
                )
    tokens = TOKEN.findall(case.query)
    seen = {" ".join(tokens)}
    for fewer in shorter(tokens):
        text = " ".join(fewer)
        if text not in seen and (not case.windows or "@from@" in text):
            seen.add(text)
            yield replace(case, query=text)


def without(items: tuple) -> Iterator[tuple]:  # type: ignore[type-arg]
    """All but a run of items: halves, quarters, …, single ones."""
    size = len(items) // 2 or len(items)
    while size:
        for i in range(0, len(items), size):
            yield items[:i] + items[i + size :]
        size //= 2


def shorter(tokens: list[str]) -> Iterator[list[str]]:
    """The tokens without a group, a call, or a run in which brackets are in pairs."""
    pairs = sorted(brackets(tokens).items(), key=lambda pair: pair[0] - pair[1])
    for i, j in pairs:
        yield tokens[:i] + tokens[j + 1 :]
        for before in (1, 2):
            if i >= before:
                yield tokens[: i - before] + tokens[j + 1 :]
        for start in (i, i - 1):  # with and without the function's name
            if start >= 0:
                yield tokens[:start] + tokens[i + 1 : j] + tokens[j + 1 :]
                for a, b in arguments(tokens, i, j):
                    yield tokens[:start] + tokens[a:b] + tokens[j + 1 :]
    for size in (24, 12, 8, 6, 5, 4, 3, 2, 1):
        for i in range(len(tokens) - size + 1):
            depth = [tokens[k] for k in range(i, i + size)]
            if balanced(depth):
                yield tokens[:i] + tokens[i + size :]
    for i, token in enumerate(tokens):
        if token == "/":
            yield [*tokens[:i], "|", *tokens[i + 1 :]]


def brackets(tokens: list[str]) -> dict[int, int]:
    """Where each bracket is closed."""
    found, waiting = {}, []
    for i, token in enumerate(tokens):
        if token in CLOSES:
            waiting.append(i)
        elif token in CLOSES.values() and waiting:
            found[waiting.pop()] = i
    return found


def arguments(tokens: list[str], i: int, j: int) -> Iterator[tuple[int, int]]:
    """The parts between commas, of the bracket that opens at i and closes at j."""
    depth, start = 0, i + 1
    for k in range(i + 1, j + 1):
        if tokens[k] in CLOSES:
            depth += 1
        elif k == j or (tokens[k] == "," and depth == 0):
            yield start, k
            start = k + 1
        elif tokens[k] in CLOSES.values():
            depth -= 1


def balanced(tokens: list[str]) -> bool:
    depth: list[str] = []
    for token in tokens:
        if token in CLOSES:
            depth.append(CLOSES[token])
        elif token in CLOSES.values() and (not depth or depth.pop() != token):
            return False
    return not depth
