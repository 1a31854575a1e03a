"""The keys of shards: numbers that Spark's hash spreads over as many partitions, one for each."""

from __future__ import annotations

from functools import cache

_MASK = 0xFFFFFFFF


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & _MASK


def spark_hash(number: int, seed: int = 42) -> int:
    """Spark's hash of an int column: Murmur3, 32 bits, signed."""
    k = _rotated((number & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = _rotated(seed ^ k, 13)
    h = (h * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


@cache
def shard_keys(shards: int) -> tuple[int, ...]:
    """The key of each shard: it lands in the partition of the shard's number.

    >>> [spark_hash(key) % 3 for key in shard_keys(3)]
    [0, 1, 2]
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < shards:
        found.setdefault(spark_hash(key) % shards, key)
        key += 1
    return tuple(found[i] for i in range(shards))
