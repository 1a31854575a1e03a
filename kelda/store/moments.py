"""Time in the store.

Streams bring facts at instants (milliseconds); loads and updates are carried out between two, when all
instants up to one have been answered. So the store counts in *moments*, two for each instant:

    2t        what streams bring at instant t
    2t + 1    what is loaded and updated before instant t + 1
"""

from __future__ import annotations

NEVER = -(2**63)
FOREVER = 2**63 - 1


def of_instant(instant: int) -> int:
    """The moment of what streams bring at an instant."""
    return instant if instant in (NEVER, FOREVER) else 2 * instant


def behind(instant: int) -> int:
    """The moment of an update that is carried out when all up to an instant has been answered."""
    return instant if instant in (NEVER, FOREVER) else 2 * instant + 1


def instant_of(moment: int) -> int:
    """The first instant at which queries see what is there from a moment on."""
    return moment if moment in (NEVER, FOREVER) else (moment + 1) >> 1
