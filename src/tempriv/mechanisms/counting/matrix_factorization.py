"""Running sums by a Toeplitz factorization: noise on C x, and B (C x + noise) is released.

C is a lower triangular Toeplitz matrix of public whole numbers close to 2^bits times the square
root of the matrix of ones, so C x is a whole number and its noise exact; B = A C^-1 (A adds up)
works in floating point on what is noisy already.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.counting._kernels import factored_sums
from tempriv.mechanisms.counting.sensitivity import Changes, require_drawable
from tempriv.mechanisms.domains import FINENESS, Floats, Integers, power_of_two_below
from tempriv.sampling.distributions import DiscreteGaussian

Spectrum = npt.NDArray[np.complex128]

BLOCK = 256
"""Steps that are convolved one by one; beyond, blocks are by Fourier transforms."""

LEAST_BITS = 12
MOST_BITS = 24
LEAST_COEFFICIENT = 8  # coefficients rounded to 1/16 of themselves cost 1e-4 of the error
MOST_STEPS = 1 << 22


def default_bits(horizon: int) -> int:
    """Bits for coefficients: at ``horizon`` at least ``LEAST_COEFFICIENT`` is left of them."""
    last = 1 / math.sqrt(math.pi * horizon)  # f_k is close to 1 / sqrt(pi k)
    return max(LEAST_BITS, math.ceil(math.log2(LEAST_COEFFICIENT / last)))


def square_root(horizon: int) -> Floats:
    """The first column of the square root of the matrix of ones: binomial(2k, k) / 4^k.

    Parameters:
        horizon: how many rows it has.

    >>> square_root(4).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, horizon)
    return np.concatenate([[1.0], np.cumprod(1 - 1 / (2 * k))])


def inverse_series(series: Floats) -> Floats:
    """1 / ``series`` as a power series, by Newton's iteration.

    >>> inverse_series(np.array([2.0, 1.0, 0.5])).tolist()
    [0.5, -0.25, -0.0]
    """
    found = np.array([1 / series[0]])
    while len(found) < len(series):
        known, size = len(found), 2 * len(found)
        spectrum = np.fft.rfft(found, size)
        wrong = np.fft.irfft(np.fft.rfft(series[:size], size) * spectrum, size)
        # 1, 0, 0, ... and what the transform wraps around: the known terms are right
        wrong[:known] = 0.0
        step = np.fft.irfft(np.fft.rfft(wrong, size) * spectrum, size)
        found = np.concatenate([found, -step[known:]])
    return found[: len(series)]


# What floating point can get wrong in a cyclic convolution of 2^n numbers: at most this times n
# times the product of the two Euclidean norms. Percival 2003 (Theorem 5.1) shows
# (1 + u)^(3n) (1 + sqrt(5) u)^(3n + 1) (1 + v)^(3n) - 1, which is below 15 n u for the roundoff
# u = 2^-53 and roots of unity right to v = sqrt(2) u, for transforms by radix 2. The real
# transforms of powers of two at work here go by radix 4 and, from any input to any output, round
# no more often than two steps of radix 2 do. A factor of two is kept in hand.
TRANSFORM_ERROR = 30 * 2.0**-53


@dataclass(frozen=True, eq=False)
class Factors:
    """C and B for a horizon, and the transforms of their parts.

    Parameters:
        strategy: the first column of C.
        back: that of B.
    """

    strategy: Integers
    back: Floats
    _spectra: dict[int, tuple[Spectrum, Spectrum, int]] = field(default_factory=dict)

    @functools.cached_property
    def squares(self) -> Floats:
        """The sums of squares of the first 0, 1, 2, ... numbers of B."""
        return np.concatenate([[0.0], np.cumsum(self.back**2)])

    def spectra(self, half: int) -> tuple[Spectrum, Spectrum, int]:
        """Transforms of the coefficients up to twice a ``half``, of C and of B; ``limb_bits``."""
        if half not in self._spectra:
            parts = self.strategy[: 2 * half].astype(np.float64), self.back[: 2 * half]
            exact, back = (np.fft.rfft(part, 2 * half) for part in parts)
            self._spectra[half] = exact, back, self.limb_bits(half)
        return self._spectra[half]

    def limb_bits(self, half: int) -> int:
        """How wide a number may be so that the rounded convolution of a ``half`` is exact.

        Numbers of so many bits, between -2^(bits - 1) and 2^(bits - 1), have a Euclidean norm of
        at most 2^(bits - 1) sqrt(half); the error must stay below a quarter.
        """
        exact = self.strategy[: 2 * half].astype(np.float64)
        norm = math.sqrt(float((exact**2).sum()) * half) * (1 + 2.0**-20)
        error = TRANSFORM_ERROR * math.log2(2 * half) * norm
        return 1 + math.floor(math.log2(0.25 / error))

    def carried(self, increments: Integers, most: int) -> Integers:
        """What a half of ``increments``, each at most ``most``, adds to C x in the next half.

        Increments are cut into limbs, signed digits that are narrow enough.
        """
        half = len(increments)
        exact, _, widest = self.spectra(half)
        bits = min(widest, most.bit_length() + 1)
        buffer, spectrum = np.zeros(2 * half), np.empty(half + 1, dtype=np.complex128)
        total = np.zeros(half, dtype=np.int64)
        middle = 1 << (bits - 1)
        for shift in range(0, most.bit_length() + 1, bits):
            limb = increments
            if shift + bits <= most.bit_length():
                limb = ((increments + middle) & (2 * middle - 1)) - middle
                increments = (increments - limb) >> bits
            buffer[:half], buffer[half:] = limb, 0.0
            np.fft.rfft(buffer, out=spectrum)
            np.multiply(spectrum, exact, out=spectrum)
            np.fft.irfft(spectrum, 2 * half, out=buffer)
            total += np.rint(buffer[half:]).astype(np.int64) << shift
        return total

    def carried_back(self, values: Floats) -> Floats:
        """The same for noisy ``values`` and B, in floating point."""
        half = len(values)
        buffer, spectrum = np.zeros(2 * half), np.empty(half + 1, dtype=np.complex128)
        buffer[:half] = values
        np.fft.rfft(buffer, out=spectrum)
        np.multiply(spectrum, self.spectra(half)[1], out=spectrum)
        np.fft.irfft(spectrum, 2 * half, out=buffer)
        return buffer[half:]


@functools.lru_cache(maxsize=4)
def factors(horizon: int, bits: int) -> Factors:
    """Square-root factors with coefficients rounded to whole numbers out of 2^bits.

    Parameters:
        horizon: how many rows they have.
        bits: of a coefficient.

    >>> factors(4, 4).strategy.tolist(), factors(4, 4).back.tolist()
    ([16, 8, 6, 5], [0.0625, 0.03125, 0.0234375, 0.01953125])
    """
    strategy = np.rint(np.ldexp(square_root(horizon), bits)).astype(np.int64)
    return Factors(strategy, np.cumsum(inverse_series(strategy.astype(np.float64))))


@functools.lru_cache(maxsize=32)
def changed_square(horizon: int, bits: int, steps: int) -> int:
    """The square of the L2 norm of C applied to ones at the start.

    No other place of so many changes of one makes more. With changes at s_0 < s_1 < ... it is the
    sum over i, j of the products of columns s_i and s_j, which are sums of C_k C_(k + s_j - s_i)
    over k < horizon - s_j. As s_j >= j and s_j - s_i >= j - i, and as coefficients fall and stay
    above zero, moving the changes to 0, 1, ... makes no term smaller. Signs cannot help, because
    no coefficient is negative; nor can smaller changes, because the norm is convex.

    Parameters:
        horizon: how many rows C has.
        bits: of its coefficients.
        steps: how many ones there are.
    """
    sums = np.cumsum(factors(horizon, bits).strategy)
    if steps < horizon:
        sums[steps:] -= sums[:-steps].copy()
    return sum(value * value for value in sums.tolist())


@dataclass(frozen=True)
class SquareRoot:
    """How one column of running sums is made by square-root factors; everything in grid steps.

    Parameters:
        horizon: the most steps of a series.
        bits: of the coefficients of C.
        rho: the budget.
        changes: what the unit changes in the column.
        largest: the largest increment.
    """

    horizon: int
    bits: int
    rho: Fraction
    changes: Changes
    largest: int

    def __post_init__(self) -> None:
        require_drawable(self.noise)
        noise_room = 1000 * (math.isqrt(math.ceil(self.noise.variance)) + 1)
        encoded = self.largest * int(self.factors.strategy.sum()) + noise_room
        decoded = (self.largest * self.horizon + noise_room / 2**self.bits) / self.step
        require(
            max(encoded, decoded) < 2**62,
            "grid: must be coarser for these bounds and this horizon, or bits fewer: sums of 2^62 "
            "grid steps and more do not fit",
        )

    @functools.cached_property
    def factors(self) -> Factors:
        return factors(self.horizon, self.bits)

    @functools.cached_property
    def noise(self) -> DiscreteGaussian:
        """On each strategy value."""
        square = changed_square(self.horizon, self.bits, self.changes.steps)
        return DiscreteGaussian(self.changes.each**2 * square / (2 * self.rho))

    @property
    def memory_size(self) -> int:
        """How many whole numbers are remembered of a series."""
        return 2 * self.horizon

    @functools.cached_property
    def step(self) -> float:
        """What released sums are multiples of: fine beside the noise, no finer than B needs."""
        first = math.sqrt(self.noise.mean_square) * float(self.factors.back[0])
        return max(2.0**-self.bits, power_of_two_below(first / FINENESS))

    def variance_at(self, count: int) -> float:
        """The mean square of the noise in the sum of so many increments, the ``count``."""
        return self.noise.mean_square * float(self.factors.squares[count])

    def variance_between(self, start: int, stop: int) -> float:
        """The same for the difference of the sums of ``start`` and ``stop`` increments."""
        later, earlier = self.factors.back[:stop].copy(), self.factors.back[:start]
        later[stop - start :] -= earlier
        return self.noise.mean_square * float((later**2).sum())

    @property
    def mean_variance(self) -> float:
        """The mean of ``variance_at`` over all steps."""
        return self.noise.mean_square * float(self.factors.squares[1:].mean())

    def sums(
        self, increments: Integers, noise: NoiseSource, purpose: str, state: SeriesState, first: int
    ) -> Integers:
        """Running sums of ``increments`` in multiples of ``step``.

        ``noise`` is drawn for a ``purpose``; memory begins at slot ``first`` of the ``state``.
        """
        drawn = noise(self.noise, purpose)
        out = np.empty(len(increments))
        row = 0
        for series, (count, start) in enumerate(
            zip(state.counts.tolist(), state.starts.tolist(), strict=True)
        ):
            own = state.memory[series, first : first + self.memory_size]
            encoded, decoded = own[: self.horizon], own[self.horizon :].view(np.float64)
            while count:
                if start % BLOCK == 0 and start:
                    self._carry(start, encoded, decoded)
                end = min(start + BLOCK - start % BLOCK, self.horizon)
                rows = slice(row, row + min(count, end - start))
                factored_sums(
                    increments[rows],
                    drawn[rows],
                    start,
                    end,
                    self.factors.strategy,
                    self.factors.back,
                    encoded,
                    decoded,
                    out[rows],
                )
                done = rows.stop - row
                row, count, start = row + done, count - done, start + done
        return np.floor(out / self.step + 0.5).astype(np.int64)

    def _carry(self, start: int, encoded: Integers, decoded: Floats) -> None:
        """At the end of a block: what steps before add to those after.

        At an odd multiple of 2^j blocks the 2^j blocks before it go into as many after it. Any two
        steps of different blocks meet at exactly one such boundary, which their places alone
        decide.
        """
        half = start & -start
        reach = min(half, self.horizon - start)
        before, after = slice(start - half, start), slice(start, start + reach)
        encoded[after] += self.factors.carried(encoded[before], self.largest)[:reach]
        decoded[after] += self.factors.carried_back(decoded[before])[:reach]


def optimal_mean_error(horizon: int, precision: float = 1e-6) -> float:
    """The least mean squared error of any factorization, for noise of variance 1 on sensitivity 1.

    Over X = C^T C with ones on the diagonal, trace(A^T A X^-1) / horizon is least. It is found at
    the fixed point v = diag((D A^T A D)^(1/2)), D = diag(v)^(1/2) (Denisov, McMahan, Rush, Smith
    and Thakurta 2022). Any v bounds it from below (duality) and from above (the X it makes,
    scaled).

    Parameters:
        horizon: how many sums there are.
        precision: the iteration ends when the two bounds agree to it.

    >>> round(optimal_mean_error(2), 6)
    1.309017
    """
    ones = np.tril(np.ones((horizon, horizon)))
    gram = ones.T @ ones
    values = np.ones(horizon)
    while True:
        roots = np.sqrt(values)
        eigenvalues, vectors = np.linalg.eigh(roots[:, None] * gram * roots)
        spread = np.sqrt(np.maximum(eigenvalues, 0.0))
        diagonal = (vectors**2) @ spread
        below = float(spread.sum()) ** 2 / float(values.sum())
        above = float(spread.sum()) * float((diagonal / values).max())
        if above <= below * (1 + precision):
            return below / horizon
        values = diagonal**2 / values  # twice the step: it takes half as many
