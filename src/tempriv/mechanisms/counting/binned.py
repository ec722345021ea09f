"""Running sums for streams without an end, or a very long one, from few remembered numbers.

As the square root (``matrix_factorization``): noise on C x, and B (C x + noise) with B = A C^-1 is
released. Two things differ.

Coefficients. With (1 - z)^(-1/2) alone, the columns of C grow with the logarithm of the horizon,
for everyone from the first step on. Jacobsen and Fawaz 2025 divide by a power of a logarithm, so
that columns stay short for streams of any length, and the error is near that of a known horizon at
all times. Here a coefficient of age k is 1 / sqrt(pi (k + 1/4) (1 + log2(k + 1) / 10)), the
logarithm drawn as straight lines between powers of two, which every machine computes alike.

Memory. Steps of the past are put together in bins that grow with their age (Andersson and Pagh
2024): up to ``WIDTH`` + 1 bins of each power of two. A bin has one coefficient, that of its oldest
step, and one sum for all its steps. So C x is a whole number, its noise is exact, and
C w = C x + noise is solved for w by the same bins as the stream goes on. No coefficient is above
that of the Toeplitz matrix that bins of one step would make, so neither is the sensitivity.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.counting._kernels import binned_sums
from tempriv.mechanisms.counting.matrix_factorization import inverse_series
from tempriv.mechanisms.counting.sensitivity import Changes, require_drawable
from tempriv.mechanisms.counting.tree import LONGEST
from tempriv.mechanisms.domains import FINENESS, Floats, Integers, power_of_two_below
from tempriv.sampling.distributions import DiscreteGaussian

WIDTH = 16
"""Bins of each size, or one more: their error is 1 % above that of bins of one step."""

FLATTENING = 0.1  # of the logarithm: least error at 10^6 steps, of streams up to 2^40
TABLE_BITS = 9  # a coefficient for each age below 2^9, and then 2^9 for each doubling
MOST_CHANGED = 1 << 20  # steps that a unit changes
EXACT = 1 << 16  # steps over which sums of coefficients are added up one by one
LOOKED_AT = 1 << 20  # steps over which the error is computed one by one


def coefficient(age: Floats) -> Floats:
    """The coefficients of steps of an ``age``, as real numbers.

    >>> coefficient(np.array([0.0, 1.0, 3.0])).round(3).tolist()
    [1.0, 0.481, 0.286]
    """
    mantissa, exponent = np.frexp(age + 1)
    logarithm = exponent - 1 + (2 * mantissa - 1)
    square = np.pi * (age + 0.25) * (1 + FLATTENING * logarithm)
    return np.where(age < 1, 1.0, 1 / np.sqrt(square))


@functools.lru_cache(maxsize=8)
def coefficients(bits: int) -> Integers:
    """Coefficients as whole numbers out of 2^``bits``, never rising, in the end 0.

    The places are those of ``_kernels.place_of``.

    >>> coefficients(10)[:4].tolist()
    [1024, 493, 359, 293]
    """
    size = 1 << TABLE_BITS
    shifts = np.arange(LONGEST.bit_length() - TABLE_BITS + 1)
    starts = (np.arange(size, 2 * size)[None, :] << shifts[:, None]).ravel()
    middles = starts + ((1 << np.repeat(shifts, size)) - 1) / 2
    ages = np.concatenate([np.arange(size, dtype=np.float64), middles])
    rounded = np.rint(np.ldexp(coefficient(ages), bits)).astype(np.int64)
    return np.asarray(np.minimum.accumulate(rounded), dtype=np.int64)


def block_starts() -> Integers:
    """The first age of each place of ``coefficients``."""
    size = 1 << TABLE_BITS
    shifts = np.arange(LONGEST.bit_length() - TABLE_BITS + 1)
    later = (np.arange(size, 2 * size)[None, :] << shifts[:, None]).ravel()
    return np.concatenate([np.arange(size), later])


def levels_for(steps: int) -> int:
    """How many sizes of bins hold so many ``steps``."""
    return max(1, math.ceil(math.log2(steps / WIDTH + 2)) + 1)


@functools.lru_cache(maxsize=32)
def changed_square(bits: int, steps: int, horizon: int) -> int:
    """The square of the L2 norm of what so many changes of one make of C x; never too small.

    All coefficients are at most those of a Toeplitz matrix whose coefficients never rise, and for
    that the worst place of changes is the start (``matrix_factorization.changed_square``). The
    first terms are added up one by one; of a later one at most ``steps`` coefficients are part,
    the first of which is the largest.

    Parameters:
        bits: of the coefficients.
        steps: how many changes there are.
        horizon: how many rows C has.
    """
    table, starts = coefficients(bits).tolist(), block_starts()
    one_by_one = min(horizon, max(EXACT, 4 * steps))
    ages = np.arange(one_by_one)
    column = np.array(table)[np.searchsorted(starts, ages, side="right") - 1]
    sums = np.cumsum(column)
    if steps < one_by_one:
        sums[steps:] -= sums[:-steps].copy()
    total = sum(int(value) ** 2 for value in sums.tolist())
    # rows from one_by_one on: the largest of their coefficients has this age, and then more
    first, last = one_by_one - min(steps, one_by_one) + 1, horizon - steps
    bounds = [*starts.tolist(), 2 * LONGEST]
    for value, begin, end in zip(table, bounds, bounds[1:], strict=False):
        rows = min(end - 1, last) - max(begin, first) + 1
        if rows > 0:
            total += int(rows * (steps * value) ** 2)
    return total


@functools.lru_cache(maxsize=2)
def error_column(bits: int) -> tuple[Floats, Floats]:
    """The column of B over the first steps, were it Toeplitz, and its sums of squares.

    The coefficient of a bin is that of its oldest step: on average it is older than a step of it
    by .36 / ``WIDTH`` of the age, since bins of a size last while the age doubles.

    Parameters:
        bits: of the coefficients.
    """
    ages = np.arange(LOOKED_AT, dtype=np.float64)
    older = np.rint(ages + np.maximum(ages - WIDTH, 0) * 0.36 / WIDTH)
    table, starts = coefficients(bits), block_starts()
    column = table[np.searchsorted(starts, older, side="right") - 1].astype(np.float64)
    back = np.cumsum(inverse_series(column))
    return back, np.concatenate([[0.0], np.cumsum(back**2)])


@dataclass(frozen=True)
class Binned:
    """How one column of running sums is made by bins; everything in grid steps.

    Parameters:
        horizon: the most steps of a series; None: up to ``LONGEST``.
        bits: of the coefficients of C.
        rho: the budget.
        changes: what the unit changes in the column.
        largest: the largest increment.
    """

    horizon: int | None
    bits: int
    rho: Fraction
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        require_drawable(self.noise)
        room = 1000 * (math.isqrt(math.ceil(self.noise.variance)) + 1)
        # sums of coefficients grow as twice the square root of steps, at most
        encoded = 2 * math.isqrt(self._steps) * self.largest * 2**self.bits + room
        decoded = self.largest * self._steps / self.step
        require(
            max(encoded, decoded) < 2**62,
            "grid: must be coarser for these bounds, or the horizon shorter: sums of 2^62 grid "
            "steps and more do not fit",
        )

    @property
    def _steps(self) -> int:
        return self.horizon or LONGEST

    @property
    def levels(self) -> int:
        """How many sizes of bins there are."""
        return levels_for(self._steps)

    @functools.cached_property
    def noise(self) -> DiscreteGaussian:
        """On each strategy value."""
        square = changed_square(self.bits, self.changes.steps, self._steps)
        return DiscreteGaussian(self.changes.each**2 * square / (2 * self.rho))

    @property
    def memory_size(self) -> int:
        """How many whole numbers are remembered of a series."""
        return 1 + 2 * self.levels * (WIDTH + 2)

    @functools.cached_property
    def step(self) -> float:
        """What released sums are multiples of: fine beside the noise."""
        first = math.sqrt(self.noise.mean_square) / 2**self.bits
        return max(2.0**-self.bits, power_of_two_below(first / FINENESS))

    def variance_at(self, count: int) -> float:
        """The mean square of the noise in the sum of so many increments, the ``count``."""
        back, squares = error_column(self.bits)
        if count <= LOOKED_AT:
            return self.noise.mean_square * float(squares[count])
        # further on, b_k is to 1 / (pi k c_k) as at the last step that was computed; where no
        # coefficients are left it stays 1 / (c_0 + c_1 + ...)
        starts = block_starts()
        table = coefficients(self.bits).astype(np.float64)
        last = LOOKED_AT - 1
        scale = back[last] * last * table[int(np.searchsorted(starts, last, "right")) - 1]
        begin = np.maximum(starts, LOOKED_AT)
        end = np.minimum(np.append(starts[1:], 2 * LONGEST), count)
        falling, flat = (end > begin) & (table > 0), (end > begin) & (table == 0)
        sums = (1 / begin[falling] - 1 / end[falling]) / table[falling] ** 2
        lengths = np.diff(np.append(starts, 2 * LONGEST))
        least = 1 / float((table * lengths).sum())
        further = scale**2 * sums.sum() + least**2 * float((end[flat] - begin[flat]).sum())
        return self.noise.mean_square * float(squares[-1] + further)

    def variance_between(self, start: int, stop: int) -> float:
        """The same for the difference of the sums of ``start`` and ``stop`` increments.

        Past 2^20 steps it is stated too large, as if both had noise of their own.
        """
        if start == 0:
            return self.variance_at(stop)
        if stop > LOOKED_AT:
            return self.variance_at(start) + self.variance_at(stop)
        later, earlier = (error_column(self.bits)[0][:count].copy() for count in (stop, start))
        later[stop - start :] -= earlier
        return self.noise.mean_square * float((later**2).sum())

    @property
    def mean_variance(self) -> float:
        """The mean of ``variance_at`` over all steps, at most the first 2^20."""
        squares = error_column(self.bits)[1]
        steps = min(self._steps, LOOKED_AT)
        return self.noise.mean_square * float(squares[1 : steps + 1].mean())

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """Running sums of ``increments`` in multiples of ``step``.

        ``noise`` is drawn for a ``purpose``; memory begins at slot ``first`` of the ``state``.
        """
        out = np.empty(len(increments))
        binned_sums(
            increments,
            state.which,
            state.steps,
            coefficients(self.bits),
            TABLE_BITS,
            WIDTH,
            noise(self.noise, purpose),
            state.memory,
            state.memory.view(np.float64),
            first,
            self.levels,
            out,
        )
        return np.floor(out / self.step + 0.5).astype(np.int64)
