"""The sparse vector technique from its definition. Nothing here uses the package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tests.reference.value import snapped

Floats = npt.NDArray[np.float64]


def scales(
    epsilon: float, change: float, grid: float, most: int, share: float, monotone: bool
) -> tuple[Fraction, Fraction]:
    """In grid steps: of the noise on the threshold, and of that on every value."""
    steps = Fraction(change) / Fraction(grid)
    once = Fraction(epsilon) * Fraction(share)
    alert = (Fraction(epsilon) - once) / most
    return steps / once, (1 if monotone else 2) * steps / alert


def alerts(
    values: Floats,
    bounds: tuple[float, float],
    grid: float,
    threshold: float,
    most: int,
    drawn: list[npt.NDArray[np.int64]],
) -> Floats:
    """1 where the noisy value is at or above the noisy threshold; nothing after the last alert."""
    limit = snapped(threshold, bounds, grid) + int(drawn[0][0])
    out = []
    for value, noise in zip(values[:, 0].tolist(), drawn[1].tolist(), strict=True):
        over = snapped(value, bounds, grid) + noise >= limit
        out.append(float(over and sum(out) < most))
    return np.array(out)[:, None]
