"""Numbers in sentences."""

from __future__ import annotations


def count(number: int, what: str) -> str:
    """
    >>> count(1, "answer"), count(2000, "answer"), count(2, "query")
    ('1 answer', '2,000 answers', '2 queries')
    """
    many = what[:-1] + "ies" if what.endswith("y") else what + "s"
    return f"{number:,} {what if number == 1 else many}"
