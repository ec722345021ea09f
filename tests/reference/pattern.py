"""Points that break a trend, and samples along a line, from their definitions.

Nothing here uses the package. Readings are whole grid steps, None where missing; noise comes as
words from which a draw of any scale is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.budgets import laplace

Floats = npt.NDArray[np.float64]
Readings = Sequence[int | None]
Points = list[tuple[int, int]]  # step and value

WIDEST = 2**34  # the largest scale of noise, in grid steps


def importance(gains: Sequence[float], deviations: list[float], gap: int) -> float:
    """Proportional, integral and derivative part of the latest deviation."""
    recent = deviations[-5:]
    slope = (deviations[-1] - deviations[-2]) / gap if len(deviations) > 1 else 0.0
    return gains[0] * recent[-1] + gains[1] * sum(recent) / len(recent) + gains[2] * slope


def fits(points: Points, since: Points, new: tuple[int, int], tolerance: float) -> bool:
    """Whether the line from the last point to the new one is near all readings in between."""
    step, value = points[-1]
    slope = (new[1] - value) / (new[0] - step)
    return all(
        (v - tolerance - value) / (s - step) <= slope <= (v + tolerance - value) / (s - step)
        for s, v in since
    )


def breaks(
    readings: Readings,
    epsilon: float,
    window: int,
    deviation: float,
    tolerance: float,
    gains: Sequence[float],
    reach: tuple[float, float],
    words: Any,
) -> tuple[list[int], list[int], list[Fraction]]:
    """What stands at each step, the steps that are sent, and what each of these takes of epsilon.

    ``deviation`` and ``tolerance`` are in grid steps.
    """
    points: Points = []
    since: Points = []
    deviations: list[float] = []
    taken: dict[int, Fraction] = {}
    weight = 0.5
    shown, out = 0, []
    for step, value in enumerate(readings):
        if value is not None:
            if points and fits(points, since, (step, value), tolerance):
                since.append((step, value))
            else:
                score = 1.0
                if len(points) > 1:
                    (s0, v0), (s1, v1) = points[-2:]
                    trend = (v1 - v0) / (s1 - s0)
                    deviations.append(abs(v1 + trend * (step - s1) - value) / deviation)
                    score = max(0.01, importance(gains, deviations, step - s1))
                left = 1 - sum(share for s, share in taken.items() if s > step - window)
                part = 1 - math.exp(-(weight / score + (1 - weight) * score))
                share = Fraction(math.floor(part * float(left * 2**40)), 2**40)
                bound = max(1, round(math.log(reach[0] / score + reach[1]) * deviation))
                scale = min(deviation / (epsilon * share), WIDEST) if share else WIDEST
                drawn = laplace(words, step, Fraction(scale))
                drawn = drawn % bound if drawn >= 0 else -(1 + (-1 - drawn) % bound)
                shown = value + drawn
                if left - share > Fraction(1, 2):
                    weight -= 0.01 / (1 - weight) ** 2
                elif left - share < Fraction(1, window):
                    weight += 0.01 / (1 - weight) ** 2
                weight = min(max(weight, 0.1), 0.9)
                taken[step] = share
                points.append((step, value))
                since = []
        out.append(shown)
    return out, list(taken), list(taken.values())


def samples_along(
    readings: Readings,
    low: int,
    high: int,
    whole: Fraction,
    window: int,
    gains: Sequence[float],
    words: Any,
) -> tuple[list[int], dict[int, int]]:
    """What stands at each step, in 1024ths, and how many shares of the window the samples take.

    ``whole`` is the scale of a sample that has all of them.
    """
    span = high - low
    wander = 0.2 * span / window
    state = np.array([(low + high) / 2, 0.0])
    spread = np.array([[span**2 / 4, 0.0], [0.0, (wander / window) ** 2]])
    onward = np.array([[1.0, 1.0], [0.0, 1.0]])
    least = max(1, math.ceil(whole * window / WIDEST))
    due, wait, before = 0, window, 0.0
    deviations: list[float] = []
    taken: dict[int, int] = {}
    out: list[int] = []
    for step, value in enumerate(readings):
        if step:
            state = onward @ state
            spread = onward @ spread @ onward.T + np.diag([wander**2, (wander / window) ** 2])
        state[0] = min(max(state[0], low), high)
        left = window - sum(units for s, units in taken.items() if s > step - window)
        units = min(wait, left)
        if value is not None and step >= due and units >= least:
            scale = whole * window / units
            off = value + laplace(words, step, scale) - state[0]
            variance = 2 * float(scale) ** 2 + 1 / 12
            total = spread[0, 0] + variance
            pull = spread[:, 0] / total
            spread = spread - np.outer(pull, spread[0])
            wait = window
            if taken:
                deviations.append(abs(off) / math.sqrt(variance))
                score = importance(gains, deviations, step - max(taken))
                if score > 3:
                    wait = max(least, math.floor(window * 3 / score))
                surprise = off / math.sqrt(total)
                wander *= 1 + 0.1 * min(max(surprise * before, -4), 4)
                wander = min(max(wander, 1e-5 * span / window), span)
                before = surprise
            state = state + pull * off
            taken[step], due = units, step + wait
        fresh = step == 0 or step in taken
        out.append(math.floor(state[0] * 1024 + 0.5) if fresh else out[-1])
    return out, taken
