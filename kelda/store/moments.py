"""Time in the store.

Streams bring facts at instants (milliseconds); loads and updates are carried out between two, when all
instants up to one have been answered. So the store counts in *moments*, many for each instant t:

    t << 20          what streams bring at t
    (t << 20) + k    the k-th load or update before instant t + 1

Each update has a moment of its own: the graphs at a moment never change any more. What was loaded before
there was any time is at NEVER and the moments behind it. Instants lie within 278 years of 1970.
"""

from __future__ import annotations

NEVER = -(2**63)
FOREVER = 2**63 - 1
BITS = 20
LAST = (1 << BITS) - 1


def of_instant(instant: int) -> int:
    """The moment of what streams bring at an instant."""
    return instant if instant in (NEVER, FOREVER) else instant << BITS


def behind(instant: int, last: int = NEVER) -> int:
    """The moment of an update that is carried out when all up to an instant has been answered, and changes up
    to the moment `last` were made before it. Of more than a million, the last ones share a moment."""
    if instant == NEVER:
        return last + 1
    return min(max(last, of_instant(instant)) + 1, of_instant(instant) + LAST)


def seen_by(instant: int, last: int) -> int:
    """The moment up to which queries that come when all up to an instant has been answered find stored graphs
    changed already, if changes up to the moment `last` were made."""
    before_next = NEVER + (1 << 2 * BITS) if instant == NEVER else of_instant(instant) + LAST
    return max(of_instant(instant), min(last, before_next))


def instant_of(moment: int) -> int:
    """The first instant at which queries see what is there from a moment on."""
    return moment if moment in (NEVER, FOREVER) else (moment + LAST) >> BITS
