"""Noisy readings smoothed over groups of true ones, from the definition.

Nothing here uses the package. A column is a list of whole numbers with None for a missing reading;
noise comes as drawn numbers, one a step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Column = Sequence[int | None]


def deviation(group: Sequence[int]) -> Fraction:
    """The sum of distances from the mean."""
    mean = Fraction(sum(group), len(group))
    return sum((abs(x - mean) for x in group), start=Fraction(0))


def smooth(kind: str, noisy: Sequence[int]) -> Fraction:
    """What stands for the last of these."""
    mean, ordered = Fraction(sum(noisy), len(noisy)), sorted(noisy)
    if kind == "median":
        return Fraction(ordered[(len(noisy) - 1) // 2] + ordered[len(noisy) // 2], 2)
    if kind == "james-stein":
        return mean + (noisy[-1] - mean) / len(noisy)
    return mean


def release(
    readings: Column, theta: int, longest: int, kind: str, noise: Any, thresholds: Any, tests: Any
) -> list[Fraction]:
    """Of every step; 0 where a reading is missing.

    The threshold of a group gets its noise at the step of its first test.
    """
    out: list[Fraction] = []
    group: list[int] = []
    noisy: list[int] = []
    limit = 0
    for step, reading in enumerate(readings):
        if reading is None:
            out.append(Fraction(0))
            continue
        own = reading + int(noise[step])
        if len(group) == 1:
            limit = theta + int(thresholds[step])
        if group and not deviation([*group, reading]) + int(tests[step]) < limit:
            out.append(Fraction(own))  # closes the group, and is one by itself
            group, noisy = [], []
            continue
        group.append(reading)
        noisy.append(own)
        out.append(smooth(kind, noisy))
        if len(group) == longest:
            group, noisy = [], []
    return out


def rounded(value: Fraction, parts: int) -> Fraction:
    """To the nearest part of a step, halves up."""
    return Fraction(math.floor(value * parts + Fraction(1, 2)), parts)
