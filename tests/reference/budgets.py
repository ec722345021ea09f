"""Budgets over a sliding window, and samples through a filter, from their definitions.

Nothing here uses the package. Rows are lists with None for a missing cell; noise comes as drawn
numbers, or as words from which a draw of any scale is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.value import snapped

Floats = npt.NDArray[np.float64]
Bounds = Sequence[tuple[float, float]]
Row = list[int | None]

NOT_SETTLED = -(1 << 62)
HALF = 2**40  # half of epsilon, in the units that budgets are counted in


def on_grid(rows: Any, bounds: Bounds, grids: Sequence[float]) -> list[Row]:
    gaps = np.ma.getmaskarray(rows)
    columns = list(zip(bounds, grids, strict=True))
    return [
        [
            None if gap else snapped(float(x), pair, grid)
            for x, gap, (pair, grid) in zip(row, hidden, columns, strict=True)
        ]
        for row, hidden in zip(np.ma.getdata(rows), gaps, strict=True)
    ]


def nothing_yet(bounds: Bounds, grids: Sequence[float]) -> list[int]:
    """Zero, or the bound nearest to it, in grid steps."""
    return [snapped(0.0, pair, grid) for pair, grid in zip(bounds, grids, strict=True)]


def laplace(words: Any, row: int, scale: Fraction) -> int:
    """A draw of any scale: its size is floor(-scale ln U)."""
    if words.settled[row] != NOT_SETTLED:
        return int(words.settled[row])
    uniform = ((int(words.sizes[row]) >> 1) + 0.5) / 2**63
    size = math.floor(-float(scale) * math.log(uniform))
    toss = int(words.signs[row]) / 2**64
    return size if toss < 1 / (1 + math.exp(-1 / scale)) else -1 - size


def values(
    rows: Any, bounds: Bounds, grids: Sequence[float], release: Callable[[list[Row]], list[Row]]
) -> Floats:
    """Through a scheme that sees grid steps, and back."""
    made = release(on_grid(rows, bounds, grids))
    return np.array([[x * grid for x, grid in zip(r, grids, strict=True)] for r in made])


def uniform(rows: list[Row], drawn: list[Any]) -> list[Row]:
    return [
        [0 if x is None else x + int(noise[i]) for x, noise in zip(row, drawn, strict=True)]
        for i, row in enumerate(rows)
    ]


def sample(rows: list[Row], first: list[int], window: int, drawn: list[Any]) -> list[Row]:
    last, out = list(first), []
    published: list[int] = []
    for i, row in enumerate(rows):
        recent = any(i - before < window for before in published)
        there = any(x is not None for x in row)
        if there and not recent:
            published.append(i)
            last = [
                old if x is None else x + int(noise[i])
                for x, old, noise in zip(row, last, drawn, strict=True)
            ]
        out.append(list(last))
    return out


def adaptive(
    rows: list[Row],
    first: list[int],
    changes: Sequence[Fraction],
    epsilon: float,
    budget: Callable[[list[Fraction]], Fraction],
    looks: Any,
    words: Sequence[Any],
) -> tuple[list[Row], list[int]]:
    """Publish where the distance from the last release is above what the noise would make it.

    ``budget`` says, from what every step so far has taken, what this one may take of epsilon.
    Distances count a column by what it can change beside the others.
    """
    weights = [max(1, round(max(changes) / change)) for change in changes]
    last, out, taken, repeated = list(first), [], [], []
    for i, row in enumerate(rows):
        share = budget(taken)
        cells = [j for j, x in enumerate(row) if x is not None]
        moved = sum(weights[j] * abs(row[j] - last[j]) for j in cells)
        would = sum(weights[j] * changes[j] / share for j in cells) if share > 0 else 0
        publishes = bool(cells) and share > 0 and moved + int(looks[i]) > would
        taken.append(share if publishes else Fraction(0))
        repeated.append(int(bool(cells) and not publishes))
        if publishes:
            for j in cells:
                last[j] = row[j] + laplace(words[j], i, changes[j] / share)
        out.append(list(last))
    return out, repeated


def distribution(epsilon: float, window: int) -> Callable[[list[Fraction]], Fraction]:
    """Half of what the last w - 1 steps have left of epsilon / 2, in whole units."""
    unit = Fraction(epsilon) / 2 / HALF

    def budget(taken: list[Fraction]) -> Fraction:
        recent = taken[-(window - 1) :] if window > 1 else []
        return (Fraction(epsilon) / 2 - sum(recent)) / unit // 2 * unit

    return budget


def absorption(epsilon: float, window: int) -> Callable[[list[Fraction]], Fraction]:
    """Each step owns epsilon / 2w; what others before it did not use, but for those left out."""
    own = Fraction(epsilon) / (2 * window)

    def budget(taken: list[Fraction]) -> Fraction:
        now = len(taken)
        before = [i for i, share in enumerate(taken) if share > 0]
        if not before:
            return own * min(now + 1, window)
        left_out = taken[before[-1]] / own - 1
        if now - before[-1] <= left_out:
            return Fraction(0)
        return own * min(now - (before[-1] + left_out), window)

    return budget


def fast(
    rows: list[Row],
    samples: int,
    noise_variance: float,
    step_variance: float,
    least: float,
    gains: Sequence[float],
    set_point: float,
    stretch: float,
    drawn: Any,
) -> list[Row]:
    """Kalman filter and PID controller as in the paper's Algorithms, one series of numbers."""
    out: list[Row] = []
    times: list[int] = []
    errors: list[float] = []
    estimate, variance, interval = 0.0, 0.0, 1.0
    for k, (x,) in enumerate(rows):
        due = not times or k - times[-1] >= math.floor(interval)
        if times:
            variance += step_variance
        if x is not None and due and len(times) < samples:
            measured = x + int(drawn[k])
            if not times:
                estimate, variance = float(measured), noise_variance
            else:
                prior = estimate
                gain = variance / (variance + noise_variance)
                estimate = prior + gain * (measured - prior)
                variance *= 1 - gain
                errors.append(abs(estimate - prior) / max(abs(estimate), least))
                recent = errors[-5:]
                slope = (errors[-1] - errors[-2]) / (k - times[-1]) if len(errors) > 1 else 0.0
                off = gains[0] * errors[-1] + gains[1] * sum(recent) / len(recent)
                off += gains[2] * slope
                exponent = min((off - set_point) / set_point, 700)
                interval = max(1.0, interval + stretch * (1 - math.exp(exponent)))
            times.append(k)
        out.append([math.floor(estimate + 0.5)])
    return out
