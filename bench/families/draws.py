"""Draws that generators share: skewed choices, bursts, elements out of order and twice.

Everything is made from `Generator.random` and whole numbers, so that the same seed gives the same values
on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

import numpy as np

STEPS = 1 << 30  # the shares of a table are rounded to this, so that no last bit of a float decides


def generator(seed: int) -> np.random.Generator:
    """The random numbers of a seed."""
    return np.random.Generator(np.random.PCG64(seed))


def below(rng: np.random.Generator, limit: int | np.ndarray, many: int) -> np.ndarray:
    """Whole numbers from 0 to below `limit`, all equally often."""
    return (rng.random(many) * limit).astype(np.int64)


class Choice:
    """Numbers from 0, the k-th as often as the k-th weight says."""

    def __init__(self, weights: np.ndarray) -> None:
        sums = np.cumsum(weights, dtype=np.float64)
        self.limits = np.round(sums / sums[-1] * STEPS).astype(np.int64)

    @classmethod
    def power_law(cls, many: int, exponent: float, offset: float = 1.0) -> Choice:
        """Weights 1 / (k + offset) ** exponent; exponent 0 is all equally often."""
        return cls(1.0 / (np.arange(many) + offset) ** exponent)

    def draw(self, rng: np.random.Generator, many: int) -> np.ndarray:
        """That many numbers."""
        return np.searchsorted(self.limits, below(rng, STEPS, many), "right")

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """One number for each of these, always the same, and over all of them as if drawn."""
        mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return np.searchsorted(self.limits, (mixed >> np.uint64(34)).astype(np.int64), "right")


def spread(ranks: np.ndarray, many: int) -> np.ndarray:
    """Ranks below `many` as numbers below `many`, so that neighbours lie apart; one to one."""
    step = int(many * 0.6180339887) | 1
    while gcd(step, many) != 1:
        step += 2
    return ranks * step % many


def rounds(triples: int, rate: float, block: int) -> Iterator[tuple[int, int]]:
    """Spans of time from 0, in ms, with about `block` triples each; no instant is in two of them."""
    many, begin = max(1, round(triples / block)), 0
    for i in range(many):
        end = max(begin + 1, round(triples * 1000 / rate * (i + 1) / many))
        yield begin, end
        begin = end


def instants(
    rng: np.random.Generator, span: tuple[int, int], every: float, burst: float = 0.0, period: int = 10_000
) -> tuple[np.ndarray, int]:
    """Times in a span with about one in `every` ms, in order, and the end of the span; see `bursts`."""
    first, last = int(span[0] / every), int(span[1] / every)
    times = ((np.arange(first, last) + rng.random(last - first)) * every).astype(np.int64)
    begin, end = bursts(np.array(span), burst, period, period // 10)
    return np.clip(bursts(times, burst, period, period // 10), begin, max(begin, end - 1)), int(end)


def bursts(times: np.ndarray, share: float, every: int = 10_000, length: int = 1_000) -> np.ndarray:
    """Evenly spread times with a `share` of them moved into the first `length` of every `every` ms.

    Keeps the order and how many there are in each whole period. With share 0 the times stay.
    """
    if not share:
        return times
    period, phase = np.divmod(times, every)
    inside = length / every + share * (1 - length / every)  # of a period's elements, those in the burst
    edge = inside * every
    early = phase * (length / edge)
    late = length + (phase - edge) * ((every - length) / max(every - edge, 1))
    return period * every + np.where(phase < edge, early, late).astype(np.int64)


def disturbed(
    rng: np.random.Generator, times: np.ndarray, late: float, delay: int, twice: float
) -> np.ndarray | None:
    """The order in which elements with these times arrive, as numbers of elements; None if as they are.

    A share `late` arrives up to `delay` ms after its time, a share `twice` arrives two times.
    """
    order = None
    if twice:
        order = np.repeat(np.arange(len(times)), 1 + (rng.random(len(times)) < twice))
        times = times[order]
    if late:
        held = (rng.random(len(times)) < late) * below(rng, delay + 1, len(times))
        arrival = np.argsort(times + held, kind="stable")
        order = arrival if order is None else order[arrival]
    return order
