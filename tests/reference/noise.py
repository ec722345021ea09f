"""Distributions from their definitions, and exact arithmetic to judge samplers by.

Nothing here uses the package, nor floating point where a decision is exact: e^-x is enclosed by its
series over integers, so that a wrong digit of another library would show too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

PRECISION = 50  # decimal digits of the reference masses


def _exp_enclosed(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers low <= 2^precision * e^x <= high for 0 <= x <= 1, from the series."""
    one = 1 << precision
    x_low = x.numerator * one // x.denominator
    x_high = -(-x.numerator * one // x.denominator)
    low = high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = term_low * x_low // (n * one)
        term_high = -(-term_high * x_high // (n * one))
        low, high = low + term_low, high + term_high
    return low, high + 2 * term_high + 1  # what is left weighs less than the last term


@functools.lru_cache(maxsize=1 << 14)
def exp_minus(rate: Fraction, bits: int) -> tuple[int, int]:
    """Integers low <= 2^bits * e^-rate <= high, at most two apart."""
    if rate == 0:
        return 1 << bits, 1 << bits
    if rate > bits:
        return 0, 1
    halvings = max(0, math.ceil(rate).bit_length())
    precision = bits + 64 + 2 * halvings + math.ceil(rate) * 3
    low, high = _exp_enclosed(rate / (1 << halvings), precision)
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    whole = 1 << (bits + precision)
    return whole // high, -(-whole // low)


def geometric_floor(digits: int, bits: int, scale: Fraction) -> int | None:
    """The g with e^(-(g + 1) / scale) < U <= e^(-g / scale) for every U in [digits, digits + 1) /
    2^bits, or None if there is no such g.
    """
    if digits == 0:
        return None
    guess = int(-float(scale) * (math.log(digits) - bits * math.log(2)))
    for g in range(max(guess - 1, 0), guess + 2):
        # U = (digits + 1) / 2^bits itself is not taken, so a tie at the top belongs to g
        above_next = digits << 128 > exp_minus((g + 1) / scale, bits + 128)[1]
        if digits + 1 << 128 <= exp_minus(g / scale, bits + 128)[0] and above_next:
            return g
    return None


def low_digit_cut(i: int, rate: Fraction, base: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits P(G mod base < i), P(G >= g) = e^(-g rate): blocks of i out of each base.

    Over the multiples of the base, sum of e^(-j base rate) (1 - e^(-i rate)).
    """
    more = bits + 128  # e^(-i rate) may be close to 1
    one = 1 << more
    part_low, part_high = exp_minus(i * rate, more)
    whole_low, whole_high = exp_minus(base * rate, more)
    low = ((one - part_high) << bits) // (one - whole_low)
    high = -((-(one - part_low) << bits) // (one - whole_high))
    return low, high


def top_digit_cut(i: int, rate: Fraction, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits P(G < i)."""
    low, high = exp_minus(i * rate, bits)
    return (1 << bits) - high, (1 << bits) - low


def sign_cut(rate: Fraction, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits P(k >= 0) of the law proportional to e^(-|k| rate): 1 / (1 + e^-rate)."""
    more = bits + 64
    low, high = exp_minus(rate, more)
    whole = 1 << more
    return (whole << bits) // (whole + high), -(-(whole << bits) // (whole + low))


def gaussian_acceptance(value: int, variance: Fraction, scale: int, bits: int) -> tuple[int, int]:
    """Bounds on 2^bits times the chance to keep a Laplace draw (Canonne et al. 2020, Alg. 3)."""
    return exp_minus((abs(value) - variance / scale) ** 2 / (2 * variance), bits)


def planar_acceptance(
    i: int, j: int, rate: Fraction, slope: Fraction, bits: int
) -> tuple[int, int]:
    """Bounds on 2^bits e^(-rate (sqrt(i^2 + j^2) - slope (|i| + |j|)))."""
    grain = 1 << (bits + 64)
    root = math.isqrt((i * i + j * j) * grain**2)
    exact = root * root == (i * i + j * j) * grain**2
    near = slope * (abs(i) + abs(j))
    slowest = Fraction(root, grain) - near
    fastest = Fraction(root + (not exact), grain) - near
    return exp_minus(rate * fastest, bits)[0], exp_minus(rate * slowest, bits)[1]


def _fraction(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _normalized(
    weight: Callable[[int], Decimal], points: Iterable[int], reach: int
) -> dict[int, Decimal]:
    """Weights of integers over their sum, which is taken out to the reach on both sides."""
    mass = weight(0) + sum(weight(k) + weight(-k) for k in range(1, reach + 1))
    return {k: weight(k) / mass for k in points}


def discrete_laplace(scale: Fraction, points: Iterable[int]) -> dict[int, Decimal]:
    """e^(-|k| / scale) over its sum: added up where that is short, else as a geometric series."""
    with localcontext(prec=PRECISION):
        reach = math.ceil(scale * 60) + 1

        def weight(k: int) -> Decimal:
            return (-_fraction(abs(k) / scale)).exp()

        if reach < 10_000:
            return _normalized(weight, points, reach)
        ratio = weight(1)
        mass = 1 + 2 * ratio / (1 - ratio)
        return {k: weight(k) / mass for k in points}


def discrete_gaussian(variance: Fraction, points: Iterable[int]) -> dict[int, Decimal]:
    """e^(-k^2 / (2 variance)) over its sum, always added up."""
    with localcontext(prec=PRECISION):
        reach = math.ceil(math.sqrt(variance) * 12) + 1
        return _normalized(lambda k: (-_fraction(k * k / (2 * variance))).exp(), points, reach)


def staircase(
    epsilon: Fraction, width: int, inner: int, points: Iterable[int]
) -> dict[int, Decimal]:
    """e^(-epsilon) lower at inner, inner + width, inner + 2 width, ..., added up."""

    def weight(k: int) -> Decimal:
        drops = sum(1 for edge in range(inner, abs(k) + 1, width) if edge <= abs(k))
        return (-_fraction(epsilon) * drops).exp()

    with localcontext(prec=PRECISION):
        return _normalized(weight, points, math.ceil(50 / epsilon) * width)


def randomized_response(epsilon: Fraction, choices: int) -> list[Decimal]:
    """e^epsilon for the truth, 1 for each other answer, over their sum."""
    with localcontext(prec=PRECISION):
        truth = _fraction(epsilon).exp()
        return [truth / (truth + choices - 1)] + [1 / (truth + choices - 1)] * (choices - 1)


def planar_mass(rate: Fraction) -> Decimal:
    """The sum of e^(-rate sqrt(i^2 + j^2)) over the lattice, one point of each octant at a time."""
    with localcontext(prec=PRECISION):
        reach = math.ceil(50 / rate)
        total = Decimal(1)
        for i in range(1, reach + 1):
            for j in range(i + 1):
                times = 4 if j in (0, i) else 8
                total += times * (-_fraction(rate) * Decimal(i * i + j * j).sqrt()).exp()
        return total


def planar_mass_by_rows(rate: float) -> float:
    """The same sum in floating point, row by row, for lattices too fine to add up in decimal."""
    reach = math.ceil(45 / rate)
    i = np.arange(-reach, reach + 1)
    rows = [math.fsum(np.exp(-rate * np.hypot(i, j))) for j in range(reach + 1)]
    return 2 * math.fsum(rows) - rows[0]


def planar_mass_by_waves(rate: float) -> float:
    """The same sum in the frequencies of the lattice (Poisson), with the rest as an integral."""
    reach = 400
    i, j = np.meshgrid(np.arange(-reach, reach + 1), np.arange(-reach, reach + 1))
    distance = np.hypot(i, j)
    inside = distance <= reach + 0.5
    waves = rate / (rate**2 + (2 * math.pi * distance[inside]) ** 2) ** 1.5
    beyond = rate / math.sqrt(rate**2 + (2 * math.pi * (reach + 0.5)) ** 2) / (2 * math.pi)
    return 2 * math.pi * (math.fsum(waves) + beyond)


def planar_grid(rate: float, reach: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Points (i, j) with i, j >= 0 and the weight of the up to four points they stand for."""
    i, j = (side.ravel() for side in np.meshgrid(np.arange(reach + 1), np.arange(reach + 1)))
    times = np.where(i > 0, 2, 1) * np.where(j > 0, 2, 1)
    return np.stack([i, j], axis=1), times * np.exp(-rate * np.hypot(i, j))
