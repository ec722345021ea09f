"""The mechanisms of ``tempriv.mechanisms.value._shared`` from their definitions.

Nothing here uses the package. Readings go in as they come, noise as the whole numbers that were
drawn; out comes what must be released. Numbers are rounded as exact fractions, so that no floating
point is shared with the code under test.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Pairs = Sequence[tuple[float, float]]

EARTH_RADIUS = 6_371_008.8


def steps(value: float, grid: float) -> int:
    """The nearest multiple of the grid, in steps; halves go to the even one."""
    return round(Fraction(value) / Fraction(grid))


def snapped(value: float, bounds: tuple[float, float], grid: float) -> int:
    """Put on the grid and kept between the bounds."""
    low, high = (steps(edge, grid) for edge in bounds)
    return min(max(steps(value, grid), low), high)


def numbers(values: Floats, bounds: Pairs, grids: Sequence[float], noise: list[Integers]) -> Floats:
    """Clip, round, add, scale: each column with its own bounds, grid and noise."""
    return np.array(
        [
            [
                (snapped(value, bounds[c], grids[c]) + int(noise[c][row])) * grids[c]
                for c, value in enumerate(readings)
            ]
            for row, readings in enumerate(values.tolist())
        ]
    ).reshape(values.shape)


def laplace_scales(
    epsilon: float, bounds: Pairs, grids: Sequence[float], parts: int
) -> list[Fraction]:
    """In grid steps: what one reading can change, over its part of epsilon."""
    share = Fraction(epsilon) / parts
    return [
        (steps(h, g) - steps(low, g)) / share for (low, h), g in zip(bounds, grids, strict=True)
    ]


def laplace_for(epsilon: float, grids: Sequence[float], change: float) -> list[Fraction]:
    """For counts that one person changes by so much in all."""
    return [Fraction(change) / Fraction(grid) / Fraction(epsilon) for grid in grids]


def gaussian_for(rho: float, grids: Sequence[float], square: Fraction) -> list[Fraction]:
    """For counts that one person changes by so much, squared and added up."""
    return [square / Fraction(grid) ** 2 / (2 * Fraction(rho)) for grid in grids]


def gaussian_variances(
    rho: float, bounds: Pairs, grids: Sequence[float], parts: int
) -> list[Fraction]:
    """In square grid steps: sensitivity^2 / (2 rho)."""
    share = Fraction(rho) / parts
    widths = [steps(h, g) - steps(low, g) for (low, h), g in zip(bounds, grids, strict=True)]
    return [width * width / (2 * share) for width in widths]


def answers(values: Floats, sizes: Sequence[int], noise: list[Integers]) -> Floats:
    """The category's number, moved on by the shift; what is no category counts as the last."""
    out = np.empty(values.shape)
    for row, readings in enumerate(values.tolist()):
        for c, value in enumerate(readings):
            truth = math.floor(value) if 0 <= value < sizes[c] else sizes[c] - 1
            out[row, c] = (truth + int(noise[c][row])) % sizes[c]
    return out


def meters_per_degree(origin: tuple[float, float]) -> tuple[float, float]:
    """North and east, on a sphere, true at the origin's latitude."""
    north = math.pi * EARTH_RADIUS / 180
    return north, north * math.cos(math.pi * origin[0] / 180)


def planar_rate(epsilon: float, meters: float, grid: float) -> float:
    """The largest that is safe: epsilon over the distance in steps and what rounding adds."""
    return epsilon / (meters / grid + math.sqrt(2))


def lattice(values: Floats, origin: tuple[float, float], grid: float) -> list[tuple[int, int]]:
    """Steps north and east of the origin, the short way round the globe."""
    north, east = meters_per_degree(origin)
    found = []
    for latitude, longitude in values.tolist():
        up = min(max(latitude, -90.0), 90.0) - origin[0]
        across = min(max(longitude, -180.0), 180.0) - origin[1]
        if across >= 180:
            across -= 360
        elif across < -180:
            across += 360
        found.append((round(up * north / grid), round(across * east / grid)))
    return found


def places(
    values: Floats, origin: tuple[float, float], grid: float, noise: list[Integers]
) -> Floats:
    """Moved on the lattice and given in degrees to the centimetre."""
    north, east = meters_per_degree(origin)
    (moves,) = noise
    out = np.empty(values.shape)
    for row, (up, across) in enumerate(lattice(values, origin, grid)):
        out[row] = (
            round(origin[0] + (up + int(moves[row][0])) * grid / north, 7),
            round(origin[1] + (across + int(moves[row][1])) * grid / east, 7),
        )
    return out
