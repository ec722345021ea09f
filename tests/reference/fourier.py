"""Fourier perturbation from its definition. Nothing here uses the package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from tests.reference.value import snapped

Pair = tuple[float, float]


def cosine(number: int, step: int, length: int) -> float:
    """An entry of the orthonormal discrete cosine transform (DCT-II)."""
    weight = math.sqrt((1 if number == 0 else 2) / length)
    return weight * math.cos(math.pi * (2 * step + 1) * number / (2 * length))


def whole(number: int, step: int, length: int, bits: int) -> int:
    return round(2**bits * cosine(number, step, length))


def root_above(square: Fraction | int) -> int:
    """The least whole number whose square is no less."""
    root = math.isqrt(math.ceil(square))
    return root if root * root >= square else root + 1


def norms(
    length: int, count: int, bits: int, window: int, by: Fraction, total: Fraction, columns: int
) -> tuple[Fraction, Fraction]:
    """Bounds on the L1 norm, and the square of the L2 norm, of how coefficients change.

    ``window`` readings in a row change, each by at most ``by``, together by at most ``total``.
    """
    entries = [[abs(whole(j, t, length, bits)) for j in range(count)] for t in range(length)]
    starts = range(length - min(window, length) + 1)

    def added(sizes: list[int]) -> Fraction:
        widest = max(sum(sizes[start : start + window]) for start in starts)
        return min(by * widest, total * max(sizes))

    most = int(total / by)
    square = most * by**2 + (total - most * by) ** 2
    # rows of the rounded matrix are off by at most half, so no length grows by more
    gain = 2**bits + Fraction(51, 100) * root_above(count * length)
    shared = Fraction(root_above(count * columns * gain**2 * square))
    l1 = min(added([sum(entry) for entry in entries]), shared)
    squares = [sum(x * x for x in entry) for entry in entries]
    single = by**2 * max(squares) if total == by else added([root_above(x) for x in squares]) ** 2
    l2 = min(single, gain**2 * square)
    return l1, l2


def smoothed(
    values: Sequence[float],
    bounds: Pair,
    grid: float,
    middle: int,
    count: int,
    bits: int,
    step: float,
    noise: Sequence[int],
) -> list[float]:
    """Exact coefficients of grid numbers, noise on each, and the inverse on its own grid."""
    x = [snapped(value, bounds, grid) - middle for value in values]
    n = len(x)
    noisy = [
        sum(whole(j, t, n, bits) * x[t] for t in range(n)) + noise[j] for j in range(min(count, n))
    ]
    found = [
        math.fsum(z / 2**bits * cosine(j, t, n) for j, z in enumerate(noisy)) for t in range(n)
    ]
    return [(round(one / step) + middle / step) * step * grid for one in found]
