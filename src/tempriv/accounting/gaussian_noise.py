"""The least Gaussian noise on whole numbers that keeps (epsilon, delta).

The noise is discrete, so the profile of the continuous Gaussian does not hold for it as it stands.
Two bounds do, and the better one counts; both are rounded towards more privacy.

One number. The privacy loss falls along the line, so the worst set of outputs is a half-line
(Canonne, Kamath and Steinke 2020, Theorem 7). With noise X and a change of s, delta is

    Pr[X > epsilon sigma^2 / s - s / 2] - e^epsilon Pr[X > epsilon sigma^2 / s + s / 2],

and no smaller change makes more, as each half-line tells smaller ones apart less well. Both
probabilities are added up: this is exact.

Several numbers. Let M add continuous noise of variance sigma^2 - r^2 to each number and round what
comes out at random, by a discrete Gaussian of parameter r around it. By Poisson summation every
result of M has the probability that discrete noise of variance sigma^2 gives it, up to a factor of
(1 + t) / (1 - t) with t = 2 (e^(-2 pi^2 r^2) + ...). M rounds what continuous noise made, which
costs nothing more. So over n numbers, with c = n ln((1 + t) / (1 - t)),

    delta(epsilon) <= e^c delta_continuous(epsilon - 2 c),

where the continuous noise has the smaller variance. r = 1 costs one square step of the grid and
t = 5e-9. This is an upper bound, close where sigma is several steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tempriv.accounting.renyi import rho_budget

# what sums of exponentials, and erfc, may be wrong by: thousands of times their errors
SLACK = 1e-12
# beyond so many steps of deviation the bound for several numbers is as good for one
MOST_ADDED_UP = 1 << 13
# e^-this is left out at the end of a sum
REACH = 60.0
ROUNDINGS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)
"""Values of r^2 that are tried."""

DIGITS = 9
"""Of a rho that is found: far fewer than floating point has, so that no machine doubts it."""

LEAST_DELTA = 1e-290
"""Smaller ones are near the end of floating point."""


def discrete_delta(variance: float, change: int, epsilon: float) -> float:
    """The delta at ``epsilon`` of discrete Gaussian noise on one number; never below the truth.

    Parameters:
        variance: its parameter, in square steps of the grid.
        change: what neighbors differ by at most, in steps.
        epsilon: the loss at which delta is asked for.

    >>> f"{discrete_delta(17.85, 1, 1.0):.2e}"
    '1.02e-06'
    """
    center, half = epsilon * variance / change, change / 2
    first = math.floor(center - half) + 1
    above = _weight_from(first, variance, 0.0)
    further = _weight_from(first + change, variance, epsilon)
    whole = 2 * _weight_from(1, variance, 0.0) + 1
    return max((above * (1 + SLACK) - further * (1 - SLACK)) / whole, LEAST_DELTA)


def _weight_from(first: int, variance: float, exponent: float) -> float:
    """e^``exponent`` times the sum of e^(-k^2 / (2 variance)) over all k from ``first`` on."""
    if first < 1:
        # the rest of the whole line, which looks the same to the left
        scale = math.exp(min(exponent, 700.0))
        return scale * (2 * _weight_from(1, variance, 0.0) + 1) - _weight_from(
            1 - first, variance, exponent
        )
    last = math.isqrt(math.ceil(first**2 + 2 * variance * REACH)) + 1
    squares = np.arange(first, last + 1, dtype=np.float64) ** 2
    return float(np.exp(exponent - squares / (2 * variance)).sum())


def continuous_delta(rho: float, epsilon: float) -> float:
    """The delta at ``epsilon`` of continuous Gaussian noise; never below the truth.

    Parameters:
        rho: half the square of sensitivity / sigma.
        epsilon: the loss at which delta is asked for.

    >>> f"{continuous_delta(1 / (2 * 4.2247**2), 1.0):.2e}"
    '1.00e-06'
    """
    shift = math.sqrt(2 * rho)
    above = math.erfc((epsilon / shift - shift / 2) / math.sqrt(2)) / 2
    further = math.erfc((epsilon / shift + shift / 2) / math.sqrt(2)) / 2
    # e^epsilon has no float past 700; a larger delta is the safe side
    further *= math.exp(min(epsilon, 700.0))
    return max(above * (1 + SLACK) - further * (1 - SLACK), LEAST_DELTA)


@dataclass(frozen=True)
class NoisyNumbers:
    """Whole numbers with discrete Gaussian noise, and how far neighbors are apart in them.

    Parameters:
        variance: of the noise at rho = 1, the least of all numbers, in square steps of the grid.
        count: how many numbers neighbors differ in at most.
        change: how far one number changes at most, in steps, if they differ in one only.
    """

    variance: Fraction
    count: int
    change: int | None = None

    def delta(self, rho: float, epsilon: float) -> float:
        """The delta at ``epsilon`` of noise that costs ``rho``; never below the truth."""
        variance = float(self.variance / Fraction(rho))
        if self.count == 1 and self.change and variance <= MOST_ADDED_UP**2:
            return discrete_delta(variance, self.change, epsilon)
        return min((self._rounded(rho, variance, epsilon, r) for r in ROUNDINGS), default=1.0)

    def _rounded(self, rho: float, variance: float, epsilon: float, square: float) -> float:
        """The bound for several numbers, with r^2 = ``square``."""
        if variance <= square:
            return 1.0
        far = 2.001 * math.exp(-2 * math.pi**2 * square)  # all further terms are below 1e-12 of it
        factor = self.count * (math.log1p(far) - math.log1p(-far))
        left = epsilon - 2 * factor
        if left < 0:
            return 1.0
        smaller = rho * variance / (variance - square) * (1 + SLACK)
        return min(math.exp(factor) * continuous_delta(smaller, left), 1.0)

    def keeps(self, rho: float, epsilon: float, delta: float) -> bool:
        """Whether noise that costs ``rho`` is known to keep (``epsilon``, ``delta``)."""
        return rho <= rho_budget(epsilon, delta)[0] * (1 - SLACK) or (
            self.delta(rho, epsilon) <= delta
        )

    def largest_rho(self, epsilon: float, delta: float) -> float:
        """The largest rho, so the least noise, that keeps (``epsilon``, ``delta``).

        >>> one = NoisyNumbers(Fraction(1000**2, 2), 1, 1000)
        >>> round(1 / math.sqrt(2 * one.largest_rho(1.0, 1e-6)), 2)
        4.22
        """
        low = rho_budget(epsilon, delta)[0] * (1 - 2 * SLACK)
        high = 2 * low
        while self.keeps(high, epsilon, delta):
            low, high = high, 2 * high
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            if self.keeps(middle, epsilon, delta):
                low = middle
            else:
                high = middle
        return self._shortened(low, epsilon, delta)

    def _shortened(self, rho: float, epsilon: float, delta: float) -> float:
        """``rho`` with fewer digits, downward."""
        unit = Fraction(10) ** (math.floor(math.log10(rho)) - DIGITS + 1)
        short = float(math.floor(Fraction(rho) / unit) * unit)
        return short if self.keeps(short, epsilon, delta) else rho


def first_rho(epsilon: float, delta: float) -> float:
    """A rho near the largest, to choose a grid by before the numbers on it are known.

    Parameters:
        epsilon: that is to be kept.
        delta: that is to be kept.
    """
    low = rho_budget(epsilon, delta)[0]
    high = 2 * low
    while continuous_delta(high, epsilon) <= delta:
        high *= 2
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if continuous_delta(middle, epsilon) <= delta else (low, middle)
    return low
