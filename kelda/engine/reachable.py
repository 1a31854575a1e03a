"""Which ids a running network still holds: a conservative look at all its arrays.

Every int64 in every array that can be reached counts as an id that may be needed. What is no id (a row
number, a time) is never mistaken for a hashed one in practice, and if it were, a term would merely be kept
longer. So no operator has to tell what it holds, and none can forget to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kelda.engine.deltas import Ids
from kelda.engine.expressions import Compiled, Expressions
from kelda.rdf.dictionary import Dictionary

LEAST_TERMS = 1 << 18  # a dictionary smaller than this is left alone

# These look after their own terms when a dictionary lets go of some.
_LEFT_OUT = (Dictionary, Expressions, Compiled)


class TermRelease:
    """Lets go of terms that nothing holds any more, whenever the dictionary has doubled.

    Terms that are new since the last time stay: they may be in columns that were read ahead."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self.released = 0  # terms that the dictionary has let go of
        self._at = LEAST_TERMS
        self._kept = 0  # entries of the dictionary that were there after the last time

    @property
    def due(self) -> bool:
        """Whether it is time."""
        return len(self._dictionary) >= self._at

    def release(self, *roots: Iterable[object]) -> None:
        """Let go of what `roots`, together all that is held, do not lead to."""
        held = reachable_ids(*roots)
        new = self._dictionary.ids(since=self._kept)
        self.released += self._dictionary.retain(np.concatenate([held, new]))
        self._kept = len(self._dictionary)
        self._at = max(LEAST_TERMS, 2 * self._kept)


def reachable_ids(*roots: object) -> Ids:
    """The hashed ids (positive numbers) in all arrays that `roots` lead to, as often as they are there."""
    found: list[Ids] = []
    seen: set[int] = set()
    todo: list[Any] = list(roots)
    while todo:
        thing = todo.pop()
        if thing is None or isinstance(thing, str | bytes | float | bool) or id(thing) in seen:
            continue
        if isinstance(thing, int):
            found.append(np.array([thing if -(2**63) <= thing < 2**63 else 0], np.int64))
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            if thing.dtype == np.int64:
                found.append(thing[thing > 0])
        elif isinstance(thing, _LEFT_OUT):
            continue
        elif isinstance(thing, Mapping):
            todo += thing.values()
        elif isinstance(thing, list | tuple | set | frozenset):
            todo += thing
        elif type(thing).__module__.startswith("kelda.engine"):
            todo += _attributes(thing)
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _attributes(thing: object) -> list[object]:
    values = list(getattr(thing, "__dict__", {}).values())
    for cls in type(thing).__mro__:
        slots = getattr(cls, "__slots__", ())
        values += [getattr(thing, name) for name in slots if hasattr(thing, name)]
    return values
