"""What reading a window at a noisy pace costs in accuracy, exactly and by a bound.

The point of reading i is Re sum_k p_k e^(j angle k i (1 + x)), where x is how far the ratio of the
noisy period to the public one is from 1. Its mean squared error needs no more than the
characteristic function of x: squares of sums of such waves are sums of such waves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.domains import Floats

Complexes = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class PaceDistribution:
    """The distribution of x: Laplace noise about a center, kept between two bounds.

    Parameters:
        scale: how wide the noise is, in public periods.
        center: x without noise.
        low: the lower bound.
        high: the upper bound.
    """

    scale: float
    center: float
    low: float
    high: float

    def wave(self, frequency: Floats) -> Complexes:
        """The mean of e^(j frequency x).

        Parameters:
            frequency: any number of them.

        >>> pace = PaceDistribution(scale=2.0, center=0.0, low=-np.inf, high=np.inf)
        >>> complex(pace.wave(np.array([1.0]))[0])
        (0.2+0j)
        """
        low, high = self.low - self.center, self.high - self.center
        turned = np.exp(1j * frequency * self.center)
        if low >= 0 or high <= 0:
            return np.asarray(turned * self._one_side(frequency, low, high))
        below, above = self._part(-frequency, -low), self._part(frequency, high)
        return np.asarray(turned * (below + above))

    def _part(self, frequency: Floats, edge: float) -> Complexes:
        """Noise above zero: up to the edge by its density, the rest all at the edge."""
        slope = 1 / self.scale - 1j * frequency
        if edge == np.inf:
            return np.asarray(0.5 / self.scale / slope)
        there = np.exp(-edge * slope)
        return np.asarray(0.5 * ((1 - there) / (self.scale * slope) + there))

    def _one_side(self, frequency: Floats, low: float, high: float) -> Complexes:
        """Bounds that are both on one side of the center."""
        if low < 0:
            return np.asarray(np.conj(self._one_side(frequency, -high, -low)))
        rate = 1 / self.scale
        slope = rate - 1j * frequency
        at_low, at_high = np.exp(1j * frequency * low), np.exp(1j * frequency * min(high, 1e300))
        inside = 0.5 * rate * (np.exp(-low * slope) - np.exp(-high * rate) * at_high) / slope
        return np.asarray(
            (1 - 0.5 * np.exp(-low * rate)) * at_low + inside + 0.5 * np.exp(-high * rate) * at_high
        )


@dataclass(frozen=True)
class WindowCurve:
    """A window: its readings, and the coefficients of the curve through them.

    Parameters:
        readings: in the order of time.
        coefficients: of the curve's waves.
        angle: that of the slowest wave, for a step from one reading to the next.
    """

    readings: Floats
    coefficients: Complexes
    angle: float

    @property
    def points(self) -> Floats:
        """Which readings have points of the curve: all but the first and the last."""
        return np.arange(1.0, len(self.readings) - 1)


def expected_mse(pace: PaceDistribution, window: WindowCurve) -> float:
    """The mean of (released - read)^2 over the points of a window and the noise.

    With a_k = p_k e^(j angle k i) the error of point i is Re sum_k a_k (E_k - 1), where E_k is the
    wave of frequency angle k i; and Re(u)^2 = Re(u^2 + |u|^2) / 2.

    Parameters:
        pace: the distribution of x.
        window: its readings and their curve.
    """
    k = np.arange(len(window.coefficients))
    total = 0.0
    for i in window.points:
        turns = window.angle * i * k
        a = window.coefficients * np.exp(1j * turns)
        alone = pace.wave(turns)
        sums = pace.wave(turns[:, None] + turns[None, :])
        apart = pace.wave(turns[:, None] - turns[None, :])
        squares = a @ (sums - alone[:, None] - alone[None, :] + 1) @ a
        sizes = a @ (apart - alone[:, None] - np.conj(alone)[None, :] + 1) @ np.conj(a)
        total += float((squares + sizes).real) / 2
    return total / len(window.points)


def mse_bound(pace: PaceDistribution, window: WindowCurve) -> float:
    """Cauchy and Schwarz: sum |p_k|^2 times the mean of sum |E_k - 1|^2, over waves that turn.

    For the printed frequencies without a clamp this is
    (1 / (n w)) sum_m (d_m - mean)^2 sum_i sum_k 2 / (1 + (epsilon n T / (2 pi i k tau))^2): in
    Theorem 5 of the paper the mean is not taken off, and an upper bound is called the error.

    Parameters:
        pace: the distribution of x.
        window: its readings and their curve.
    """
    k = np.arange(1, len(window.coefficients))
    moved = [2 - 2 * pace.wave(window.angle * i * k).real.sum() / len(k) for i in window.points]
    energy = float((np.abs(window.coefficients[1:]) ** 2).sum())
    return energy * len(k) * float(np.mean(moved))
