"""The same answers as by definition: a prefix of the streams through the reference evaluator beside ours."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable

from bench.harness.data import Piece
from kelda.engine.answer import Answer
from kelda.engine.reference import ReferenceEvaluator
from kelda.rdf.framing import read_events

_BLANK = re.compile(r"_:\w+")
SOME = 10  # answers: equality of fewer says little

Asked = Callable[[Piece], list[Answer]]


def fingerprint(answers: Iterable[Answer]) -> Counter[str]:
    """The answers as a bag. Order within an instant is nobody's promise, nor are labels of blank nodes."""
    return Counter(
        repr(
            (
                a.query,
                a.time,
                a.sign,
                sorted((a.bindings or {}).items()),
                a.boolean,
                sorted(_BLANK.sub("_:", str(triple)) for triple in a.triples or ()),
            )
        )
        for a in answers
    )


def agree(
    pieces: Iterable[Piece], ours: Asked, reference: ReferenceEvaluator, *, least: int, seconds: float
) -> dict[str, object]:
    """Push pieces through both until `least` triples have gone in and some answers have come, or until the
    CPU time is up; the verdict says how far it came."""
    begin, triples = time.process_time(), 0
    found: Counter[str] = Counter()
    expected: Counter[str] = Counter()
    for piece in pieces:
        found += fingerprint(ours(piece))
        expected += fingerprint(by_definition(reference, piece))
        triples += piece.triples
        enough = triples >= least and expected.total() >= SOME
        if enough or time.process_time() - begin > seconds:
            break
    return verdict(found, expected, triples)


def verdict(found: Counter[str], expected: Counter[str], triples: int) -> dict[str, object]:
    """What came of a check: whether the answers are equal, and on how much."""
    same = found == expected
    return {
        "checked": f"{'equal' if same else 'DIFFERS'}, {expected.total():,} on {triples:,}",
        "checked_equal": same,
        "checked_triples": triples,
        "checked_answers": expected.total(),
    }


def by_definition(reference: ReferenceEvaluator, piece: Piece) -> list[Answer]:
    """The reference evaluator's answers to a piece."""
    events = list(read_events(piece.text, format="tsnt", on_reject=refuse, name=piece.stream))
    return reference.push(piece.stream, events)


def refuse(reject: object) -> None:
    """Generated text has no bad records."""
    raise AssertionError(f"a generator wrote what cannot be read: {reject}")
