"""Small drawings as SVG: lines over numbers, bars over names. No more than the report needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 640, 300
LEFT, RIGHT, TOP, BOTTOM = 78, 16, 16, 56
COLOURS = ("#0b6e99", "#d9730d", "#0f7b6c", "#ad1a72", "#6940a5", "#b58900", "#9b3a2f", "#5a6b7b")

FEW = 7  # values on an axis that are all written down

Series = dict[str, list[tuple[float, float]]]


def lines(series: Series, *, x: str, y: str, log: bool) -> str:
    """One line with dots per series. `log`: both axes, where values are above zero and far apart."""
    points = [p for some in series.values() for p in some]
    if not points:
        return ""
    log_x, log_y = (log and _far_apart([p[i] for p in points]) for i in (0, 1))
    x_axis = Axis([p[0] for p in points], log_x, LEFT, WIDTH - RIGHT)
    y_axis = Axis([p[1] for p in points] + ([] if log_y else [0.0]), log_y, HEIGHT - BOTTOM, TOP)
    parts = [_frame(y_axis, y)]
    places = sorted({p[0] for p in points})
    for tick in places if len(places) <= FEW else x_axis.ticks():
        parts.append(_text(x_axis.at(tick), HEIGHT - BOTTOM + 16, short(tick), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 32, x, "middle"))
    for colour, (_, some) in zip(_colours(len(series)), series.items(), strict=True):
        at = [(x_axis.at(a), y_axis.at(b)) for a, b in sorted(some)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in at)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in at]
    return _svg(parts + _legend(list(series)))


def bars(names: Sequence[str], series: dict[str, list[float | None]], *, y: str, log: bool) -> str:
    """Groups of bars, a group for each name and in it a bar for each series."""
    values = [v for some in series.values() for v in some if v is not None]
    if not values:
        return ""
    log = log and _far_apart(values)
    axis = Axis(
        values + ([10 ** math.floor(math.log10(min(values)))] if log else [0.0]), log, HEIGHT - BOTTOM, TOP
    )
    parts = [_frame(axis, y)]
    group = (WIDTH - LEFT - RIGHT) / len(names)
    wide = group * 0.8 / len(series)
    for i, name in enumerate(names):
        fits = max(int(group / 6.5), 3)
        said = name if len(name) <= fits else name[: fits - 1] + "…"
        parts.append(_text(LEFT + (i + 0.5) * group, HEIGHT - BOTTOM + 16, said, "middle"))
        for j, (colour, some) in enumerate(zip(_colours(len(series)), series.values(), strict=True)):
            value = some[i]
            if value is None:
                continue
            top = axis.at(value)
            parts.append(
                f'<rect x="{LEFT + i * group + group * 0.1 + j * wide:.1f}" y="{top:.1f}" '
                f'width="{max(wide - 1, 1):.1f}" height="{max(HEIGHT - BOTTOM - top, 0):.1f}" '
                f'fill="{colour}">'
                f"<title>{escape(name)}: {short(value)}</title></rect>"
            )
    return _svg(parts + _legend(list(series)))


def _far_apart(values: Sequence[float]) -> bool:
    """Whether a logarithmic axis shows them better."""
    return min(values) > 0 and max(values) / min(values) > 20


class Axis:
    """Values to places."""

    def __init__(self, values: Sequence[float], log: bool, start: float, end: float) -> None:
        self.log, self.start, self.end = log, start, end
        low, high = min(values), max(values)
        if low == high:
            low, high = (low / 2, high * 2) if log else (min(low, 0.0), high or 1.0)
        self.low, self.high = self._scale(low), self._scale(high)

    def _scale(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def at(self, value: float) -> float:
        """Where a value lies."""
        part = (self._scale(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values inside."""
        if self.log:
            decades = range(math.ceil(self.low - 1e-9), math.floor(self.high + 1e-9) + 1)
            if len(decades) >= 2:
                return [10.0**d for d in decades]
            return [10**self.low, 10**self.high]
        step = 10 ** math.floor(math.log10((self.high - self.low) or 1))
        if (self.high - self.low) / step < 3:
            step /= 2
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def short(value: float) -> str:
    """
    >>> short(1500000), short(20000), short(0.25), short(7)
    ('1.5M', '20k', '0.25', '7')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _colours(many: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(many)]


def _frame(axis: Axis, title: str) -> str:
    parts = []
    for tick in axis.ticks():
        at = axis.at(tick)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}" class="grid"/>')
        parts.append(_text(LEFT - 6, at + 4, short(tick), "end"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(title)}</text>"
    )
    return "".join(parts)


def _legend(names: list[str]) -> list[str]:
    if len(names) < 2:
        return []
    parts, at = [], float(LEFT)
    for colour, name in zip(_colours(len(names)), names, strict=True):
        parts.append(f'<rect x="{at:.0f}" y="{HEIGHT - 14}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(at + 14, HEIGHT - 5, name, "start"))
        at += 26 + 7 * len(name)
    return parts


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(parts: list[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{"".join(parts)}</svg>'
