"""Case after case: which differ, and in their smallest form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random

from .cases import Case, Difference, Refused, finds, judge, random_oneshot, random_streamed
from .jena import BUILD, Jena
from .quirks import excuse
from .shrink import shrink

KINDS = {"oneshot": random_oneshot, "streamed": random_streamed}
CURRENT = BUILD / "case"  # which case is running: one that ends the process cannot say it itself
DRAWS = 5  # how often a case is drawn again that finds nothing


def draw(jena: Jena, kind: str, seed: int, number: int) -> Case:
    """The case of this number, mostly one that finds something."""
    case = None
    for again in range(DRAWS):
        case = KINDS[kind](Random(f"{kind}:{seed}:{number}:{again}"))
        if finds(case, jena):
            break
    assert case is not None
    return case


@dataclass(frozen=True)
class Finding:
    """A case in which the two differ without a reason that we know."""

    kind: str
    seed: int
    number: int
    case: Case
    what: str

    def __str__(self) -> str:
        again = f"--seed {self.seed} --only {self.number}"
        again += " --streamed 0" if self.kind == "oneshot" else " --cases 0 --streamed 1"
        return f"-- {self.kind} {self.number} ({again})\n{self.case}\n{self.what.rstrip()}\n"


def outcome(case: Case, jena: Jena) -> tuple[str, str]:
    """A word for the counts, and what is different if that word is `different` or `kelda refused`."""
    try:
        found = judge(case, jena)
    except Refused as refused:
        return f"{refused.side} refused", refused.reason
    if isinstance(found, bool):
        return "the same" if found else "both empty", ""

    def differs(other: Case) -> bool:
        try:
            return isinstance(judge(other, jena), Difference)
        except Refused:  # then nothing is known
            return True

    excused = excuse(case, found, differs)
    return (f"excused: {excused}", "") if excused else ("different", str(found))


def run(
    jena: Jena, kind: str, seed: int, numbers: Iterable[int], counts: Counter[str], *, small: bool = True
) -> Iterator[Finding]:
    """The findings among the cases of these numbers."""
    for number in numbers:
        CURRENT.write_text(f"{kind} {number} of seed {seed}\n")
        case = draw(jena, kind, seed, number)
        word, what = outcome(case, jena)
        counts[word] += 1
        if word not in ("different", "kelda refused"):
            continue
        if small:
            start = what.split(":")[0]

            def shows(other: Case, word: str = word, start: str = start) -> bool:
                found, what = outcome(other, jena)
                return found == word and (word == "different" or what.startswith(start))

            case = shrink(case, shows)
            _, what = outcome(case, jena)
        yield Finding(kind, seed, number, case, what)
