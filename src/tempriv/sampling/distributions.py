"""Exact integer samplers, each beside its probability mass function.

A distribution is a value: ``sample(keystream)`` draws one integer for each row from keyed words,
``pmf(k)`` says with which probability, ``outcomes(tail)`` lists all but a tail for audits that
enumerate. No sampler rounds a probability: floating point is believed only where its margin cannot
matter, and exact arithmetic decides the rest (see ``exact_compare`` and ``geometric``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.sampling._kernels import UNDECIDED, Halves, Scalable
from tempriv.sampling.exact_compare import (
    ExactReal,
    Integers,
    Thresholds,
    cells_of,
    decimal_of,
    exp_minus,
    is_below,
)
from tempriv.sampling.geometric import (
    LEVELS,
    Rows,
    floor_of_log,
    geometric_table,
    geometric_varying_signed,
)
from tempriv.sampling.keystream import Keystream, StepRange, blocks_of_runs

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

BATCH_ROWS = 1 << 17  # drawn at a time
MARGIN = 2.0**-40  # thousands of times the error of exp and sqrt in double precision
WORD_RESOLUTION = 2.0**-64  # what the digits after the first word of a uniform number weigh


class Distribution(Protocol):
    """A distribution over integers, or pairs of them, that can be drawn and written down."""

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row, from the words of a ``keystream``."""

    def outcomes(self, tail: float) -> list[tuple[Any, float]]:
        """Outcomes with their probabilities, leaving out at most ``tail`` of the mass."""


class MagnitudeDistribution(Distribution, Protocol):
    """A distribution over integers whose mean magnitude is known."""

    @property
    def mean_magnitude(self) -> float:
        """E |k|."""


@runtime_checkable
class DrawnByHalves(Protocol):
    """A distribution whose draws the first 32 digits of a uniform number mostly decide."""

    def halves(self, keystream: Keystream) -> Halves:
        """These digits for each row of a ``keystream``, for a kernel that asks row by row."""


def draw(distribution: Distribution, runs: Sequence[StepRange], purpose: str) -> Integers:
    """One draw for each step of the runs; large blocks are drawn in parts that fit the cache.

    Parameters:
        distribution: what is drawn.
        runs: the steps of each series.
        purpose: what the draws are for; those of unlike purposes are independent.
    """
    parts = list(blocks_of_runs(runs, BATCH_ROWS))
    if len(parts) == 1:
        return distribution.sample(Keystream(parts[0], purpose))
    out, at = None, 0
    for part in parts:
        drawn = distribution.sample(Keystream(part, purpose))
        if out is None:
            count = sum(run.count for run in runs)
            out = np.empty((count, *drawn.shape[1:]), dtype=np.int64)
        out[at : at + len(drawn)] = drawn
        at += len(drawn)
    assert out is not None
    return out


def until_accepted(
    keystream: Keystream, noise: Callable[[Keystream, Rows], tuple[Integers, Rows]]
) -> Integers:
    """Rejection sampling: rows that the draw names are drawn again from the next substream.

    Parameters:
        keystream: the words of all rows.
        noise: draws rows from a substream, and says which of them are rejected.
    """
    left, attempt = np.arange(keystream.count), 0
    values, rejected = noise(keystream.substream(0), left)
    while len(rejected):
        attempt += 1
        left = left[rejected]
        again, rejected = noise(keystream.rows(left).substream(attempt), left)
        values[left] = again
    return values


def _with_probability_exp(
    keystream: Keystream, rate: Floats, exact: Callable[[int], ExactReal]
) -> Flags:
    """True with probability e^-rate; ``exact(i)`` is that real number for row i.

    ``rate`` may carry an error far below the margin: a word within the margin of the estimate, or
    within the grain of the words themselves, is decided by the exact number.
    """
    word = keystream.read()
    uniform = word.astype(np.float64) * WORD_RESOLUTION
    estimate = np.exp(-rate)
    accepted = uniform < estimate
    close = np.abs(uniform - estimate) <= MARGIN * estimate * (1 + rate) + 2 * WORD_RESOLUTION
    for i in np.flatnonzero(close).tolist():
        accepted[i] = is_below(
            int(word[i]), functools.partial(keystream.substream(0).read_one, i), exact(i)
        )
    return np.asarray(accepted, dtype=np.bool_)


def _outward(pmf: Callable[[int], float], tail: float) -> list[tuple[int, float]]:
    """0, then outward in pairs until what is left weighs less than the tail."""
    outcomes = [(0, pmf(0))]
    left, k = 1.0 - outcomes[0][1], 1
    while left > tail and pmf(k) > 0:
        outcomes += [(k, pmf(k)), (-k, pmf(k))]
        left, k = left - 2 * pmf(k), k + 1
    return outcomes


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(k) proportional to e^(-|k| / scale), k any integer.

    >>> noise = DiscreteLaplace(Fraction(2))
    >>> round(math.log(noise.pmf(0) / noise.pmf(1)), 12)
    0.5
    """

    scale: Fraction

    def __post_init__(self) -> None:
        require(self.scale > 0, f"scale={self.scale}: must be > 0")

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return math.tanh(1 / (2 * self.scale)) * math.exp(-abs(k) / self.scale)

    @property
    def mean_magnitude(self) -> float:
        """E |k|."""
        rate = float(1 / self.scale)
        return 1 / math.sinh(rate) if rate < 700 else 0.0

    @property
    def mean_square(self) -> float:
        """E k^2: of the discrete distribution, not of the continuous one.

        >>> round(DiscreteLaplace(Fraction(1)).mean_square, 6)
        1.841347
        """
        half = float(1 / (2 * self.scale))
        return 1 / (2 * math.sinh(half) ** 2) if half < 300 else 0.0

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return _outward(self.pmf, tail)

    def reach(self, chance: float) -> int:
        """What |k| is above with a ``chance`` at most: 2 e^(-m / scale) / (1 + e^(-1 / scale)).

        >>> noise = DiscreteLaplace(Fraction(2))
        >>> m = noise.reach(1e-6)
        >>> 1e-7 < 2 * sum(noise.pmf(k) for k in range(m + 1, m + 200)) <= 1e-6
        True
        """
        return math.ceil(self.scale * Fraction(math.log(2 / chance)))

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return geometric_table(self.scale).sample_signed(keystream)


def discrete_laplace_varying(scales: Floats, keystream: Keystream) -> Integers:
    """Discrete Laplace noise with a scale of its own for every row, for budgets that vary.

    Parameters:
        scales: of each row, in grid steps.
        keystream: the words of the rows.
    """
    require(
        bool(np.all(scales > 0) and np.all(scales < 2.0**40)),
        "scales: each must be > 0 and < 2^40 grid steps",
    )

    def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
        """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
        return geometric_varying_signed(scales[rows], substream)

    return until_accepted(keystream, draw)


class ScalableLaplace:
    """Discrete Laplace noise for kernels that find its scale as they go.

    A kernel asks for ``kernels.laplace(noise.words, row, scale)``; where that is UNDECIDED it
    stops, ``settle`` draws the number exactly from further words, and the kernel goes on there.
    """

    def __init__(self, runs: Sequence[StepRange], purpose: str):
        self._words = Keystream(runs, purpose)
        settled = np.full(self._words.count, UNDECIDED, dtype=np.int64)
        self.words = Scalable(self._words.read(0), self._words.read(1), settled)

    def settle(self, row: int, scale: float) -> None:
        """Draw the number of a ``row`` exactly, now that its ``scale`` is known."""
        exact = Fraction(scale)
        more = functools.partial(self._words.substream(0).read_one, row)
        size = floor_of_log(int(self.words.sizes[row]) >> 1, 63, exact, more)
        plus = ExactReal(lambda: 1 / (1 + (-decimal_of(1 / exact)).exp()))
        toss = functools.partial(self._words.substream(1).read_one, row)
        is_plus = is_below(int(self.words.signs[row]), toss, plus)
        self.words.settled[row] = size if is_plus else -1 - size


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(k) proportional to e^(-k^2 / (2 variance)), k any integer.

    Drawn from a discrete Laplace and accepted with the ratio of the two
    (Canonne, Kamath and Steinke 2020, Algorithm 3).

    >>> noise = DiscreteGaussian(Fraction(4))
    >>> round(math.log(noise.pmf(0) / noise.pmf(2)), 12)
    0.5
    """

    variance: Fraction

    def __post_init__(self) -> None:
        require(self.variance > 0, f"variance={self.variance}: must be > 0")

    @functools.cached_property
    def _mass(self) -> float:
        reach = math.ceil(40 * math.sqrt(self.variance)) + 1
        if reach > 100_000:
            return math.sqrt(2 * math.pi * self.variance)  # exact to 1e-1000 by Poisson summation
        return math.fsum(
            math.exp(-k * k / (2 * float(self.variance))) for k in range(-reach, reach + 1)
        )

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return math.exp(-k * k / (2 * float(self.variance))) / self._mass

    @property
    def mean_magnitude(self) -> float:
        """E |k|: added up, or by Euler and Maclaurin's formula where that is long."""
        variance = float(self.variance)
        if variance > 10_000:
            return math.sqrt(2 * variance / math.pi) * (1 - 1 / (12 * variance))
        reach = math.ceil(40 * math.sqrt(variance)) + 1
        return 2 * math.fsum(k * self.pmf(k) for k in range(1, reach + 1))

    @property
    def mean_square(self) -> float:
        """E k^2: of the discrete distribution, not of the continuous one."""
        variance = float(self.variance)
        if variance > 20:
            return variance  # exact to 1e-80 by Poisson summation
        reach = math.ceil(40 * math.sqrt(variance)) + 1
        return 2 * math.fsum(k * k * self.pmf(k) for k in range(1, reach + 1))

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return _outward(self.pmf, tail)

    def reach(self, chance: float) -> int:
        """What |k| is above with a ``chance`` at most: 2 e^(-m^2 / (2 variance)).

        The discrete Gaussian is sub-Gaussian with its own variance parameter
        (Canonne, Kamath and Steinke 2020).

        >>> noise = DiscreteGaussian(Fraction(4))
        >>> m = noise.reach(1e-6)
        >>> 1e-9 < 2 * sum(noise.pmf(k) for k in range(m + 1, m + 200)) <= 1e-6
        True
        """
        return math.ceil(math.sqrt(2 * float(self.variance) * math.log(2 / chance)))

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        variance = self.variance
        scale = math.isqrt(math.floor(variance)) + 1
        proposal = geometric_table(Fraction(scale))
        peak, spread = float(variance / scale), 2 * float(variance)

        def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
            """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
            value = proposal.sample_signed(substream)

            def exact(i: int) -> ExactReal:
                """The exact probability that the candidate of row ``i`` is accepted."""
                distance = abs(int(value[i])) - variance / scale
                return exp_minus(distance * distance / (2 * variance))

            rate = (np.abs(value) - peak) ** 2 / spread
            accepted = _with_probability_exp(substream.substream(LEVELS), rate, exact)
            return value, np.flatnonzero(~accepted)

        return until_accepted(keystream, draw)


@dataclass(frozen=True)
class Staircase:
    """The staircase distribution for integer sensitivity.

    Steps of ``width`` are e^-epsilon lower each time: |k| = j width + i weighs e^(-j epsilon),
    times e^-epsilon once i >= inner (Geng and Viswanath 2014, the discrete form of Section VI).
    """

    epsilon: Fraction
    width: int
    inner: int

    def __post_init__(self) -> None:
        require(self.epsilon > 0, f"epsilon={self.epsilon}: must be > 0")
        require(self.width >= 1, f"width={self.width}: must be >= 1")
        require(
            1 <= self.inner <= self.width, f"inner={self.inner}: must be from 1 to {self.width}"
        )

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        ratio = math.exp(-self.epsilon)
        step, place = divmod(abs(k), self.width)
        near = self.inner + (self.width - self.inner) * ratio
        mass = 2 * near / (1 - ratio) - 1
        return ratio ** (step + (place >= self.inner)) / mass

    @property
    def mean_magnitude(self) -> float:
        """E |k|."""
        return self._moments()[0]

    @property
    def mean_square(self) -> float:
        """E k^2."""
        return self._moments()[1]

    def _moments(self) -> tuple[float, float]:
        """E |k| and E k^2: sums over places within a step, then over all steps."""
        ratio, fall = math.exp(-self.epsilon), -math.expm1(-self.epsilon)
        inner, width = self.inner, self.width

        def place(power: int) -> float:
            near = _sum_of_powers(inner, power)
            return near + ratio * (_sum_of_powers(width, power) - near)

        mean = place(1) + width * place(0) * ratio / fall
        square = place(2) + 2 * width * place(1) * ratio / fall
        square += width**2 * place(0) * ratio * (1 + ratio) / fall**2
        total = place(0) - fall / 2  # zero is met from both sides
        return mean / total, square / total

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return _outward(self.pmf, tail)

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        steps = geometric_table(1 / self.epsilon)
        inner, outer = self.inner, self.width - self.inner

        def is_inner() -> Decimal:
            return inner / (inner + outer * (-decimal_of(self.epsilon)).exp())

        coin = Thresholds([ExactReal(is_inner)])

        def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
            """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
            step = steps.sample(substream)
            place = _uniform(substream.substream(LEVELS), inner)
            if outer:
                side = substream.substream(LEVELS + 1)
                far = coin.cells(side.read(), side.substream(0).read_one) == 1
                place = np.where(
                    far, inner + _uniform(substream.substream(LEVELS + 2), outer), place
                )
            size = step * self.width + place
            minus = (substream.read(1) >> np.uint64(63)).astype(np.bool_)
            return np.where(minus, -size, size), np.flatnonzero(minus & (size == 0))

        return until_accepted(keystream, draw)


def _sum_of_powers(count: int, power: int) -> float:
    """The sum of i^power for i from 0 to count - 1, for powers up to 2."""
    sums = (count, count * (count - 1) / 2, (count - 1) * count * (2 * count - 1) / 6)
    return sums[power]


def _uniform(keystream: Keystream, choices: int) -> Integers:
    """0 .. choices - 1, each equally likely: words past the last whole multiple are drawn again."""
    last = np.uint64((1 << 64) // choices * choices - 1)

    def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
        """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
        word = substream.read()
        return (word % np.uint64(choices)).astype(np.int64), np.flatnonzero(word > last)

    return until_accepted(keystream, draw)


@dataclass(frozen=True)
class UniformChoice:
    """One of 0 .. choices - 1, each equally likely."""

    choices: int

    def __post_init__(self) -> None:
        require(1 <= self.choices < 2**62, f"choices={self.choices}: must be >= 1 and < 2^62")

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return 1 / self.choices if 0 <= k < self.choices else 0.0

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return [(k, 1 / self.choices) for k in range(self.choices)]

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return _uniform(keystream, self.choices)


@dataclass(frozen=True)
class Bernoulli:
    """1 with the given probability, else 0; the probability is taken as the exact fraction."""

    probability: Fraction

    def __post_init__(self) -> None:
        require(0 <= self.probability <= 1, f"probability={self.probability}: must be from 0 to 1")

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return float({1: self.probability, 0: 1 - self.probability}.get(k, 0))

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return [(k, self.pmf(k)) for k in (0, 1) if self.pmf(k) > 0]

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        if self.probability in (0, 1):
            return np.full(keystream.count, int(self.probability), dtype=np.int64)
        cut = Thresholds([ExactReal(lambda: decimal_of(self.probability))])
        return 1 - cut.cells(keystream.read(), keystream.substream(0).read_one)


@dataclass(frozen=True)
class CategoryFlip:
    """k-ary randomized response as a shift: 0 keeps the answer, 1 .. choices - 1 each replace it.

    P(0) / P(shift) = e^epsilon; the answer is (truth + shift) mod choices.
    """

    epsilon: Fraction
    choices: int

    def __post_init__(self) -> None:
        require(self.epsilon > 0, f"epsilon={self.epsilon}: must be > 0")
        require(self.choices >= 2, f"{self.choices} categories: at least 2 are needed")

    @property
    def _mass(self) -> float:
        """Of all outcomes, where the kept answer has weight 1."""
        return 1 + (self.choices - 1) * math.exp(-self.epsilon)

    @property
    def keep(self) -> float:
        return 1 / self._mass

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        if not 0 <= k < self.choices:
            return 0.0
        # a large budget would leave no digits of 1 - keep
        return self.keep if k == 0 else math.exp(-self.epsilon) / self._mass

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return [(k, self.pmf(k)) for k in range(self.choices)]

    @functools.cached_property
    def cuts(self) -> Thresholds:
        """A uniform number below its one cut keeps the answer."""
        return Thresholds(
            [ExactReal(lambda: 1 / (1 + (self.choices - 1) * (-decimal_of(self.epsilon)).exp()))]
        )

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return self.replacing(
            self.cuts.cells(keystream.read(), keystream.substream(0).read_one), keystream
        )

    def replacing(self, shift: Integers, keystream: Keystream) -> Integers:
        """Where the ``shift`` is 1, one of all shifts but 0, drawn from a ``keystream``."""
        replaced = np.flatnonzero(shift)
        shift[replaced] += _uniform(keystream.rows(replaced).substream(1), self.choices - 1)
        return shift


SUMMED_RATE = 0.05  # a lattice of a smaller rate is summed by formula


def _grain(q: float) -> tuple[float, float]:
    """What the lattice makes of the plane's mass 2 pi / rate^2, a factor, and its slope in q.

    The sum over lattice points k of (1 + |k|^2 / q^2)^(-3/2), in powers of q = rate / (2 pi): the
    sums of |k|^-s are 4 zeta(s/2) beta(s/2), and what is left out is below 1e-13.
    """
    cubic, fifth = 9.03362168310095, 7.63538735
    return 1 + cubic * q**3 - fifth * q**5, 3 * cubic * q**2 - 5 * fifth * q**4


@dataclass(frozen=True)
class PlanarLattice:
    """P(i, j) proportional to e^(-rate sqrt(i^2 + j^2)) over the whole integer lattice.

    Two discrete Laplace draws are accepted with the ratio of the two; about 79 of 100 are.
    """

    rate: Fraction

    SLOPE = Fraction(7071067811, 10**10)  # just below 1/sqrt(2), so that the ratio is at most 1

    def __post_init__(self) -> None:
        require(self.rate > 0, f"rate={self.rate}: must be > 0")

    def _distances(self) -> Floats:
        """How far the points of the lattice are, all but a part of e^-45."""
        reach = math.ceil(45 / float(self.rate)) + 1
        axis = np.arange(-reach, reach + 1)
        return np.hypot(*np.meshgrid(axis, axis))

    @functools.cached_property
    def _mass(self) -> float:
        """By Poisson summation where the lattice is fine, else by adding up."""
        rate = float(self.rate)
        if rate < SUMMED_RATE:
            return 2 * math.pi / rate**2 * _grain(rate / (2 * math.pi))[0]
        return float(np.exp(-rate * self._distances()).sum())

    def pmf(self, k: tuple[int, int]) -> float:
        """The probability of ``k``."""
        return math.exp(-float(self.rate) * math.hypot(*k)) / self._mass

    @functools.cached_property
    def mean_distance(self) -> float:
        """E sqrt(i^2 + j^2): minus the slope of the logarithm of the mass."""
        rate = float(self.rate)
        if rate < SUMMED_RATE:
            grain, slope = _grain(rate / (2 * math.pi))
            return 2 / rate - slope / (2 * math.pi * grain)
        distances = self._distances()
        return float((distances * np.exp(-rate * distances)).sum()) / self._mass

    def outcomes(self, tail: float) -> list[tuple[tuple[int, int], float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        rate, reach = float(self.rate), 1
        # the mass outside a disc of radius r is about (1 + rate r) e^(-rate r)
        while (1 + rate * (reach - 1)) * math.exp(-rate * (reach - 1)) > tail:
            reach += 1
        return [
            ((i, j), self.pmf((i, j)))
            for i in range(-reach, reach + 1)
            for j in range(-reach, reach + 1)
            if math.hypot(i, j) <= reach
        ]

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        proposal = DiscreteLaplace(1 / (self.rate * self.SLOPE))

        def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
            """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
            pair = [proposal.sample(substream.substream(axis)) for axis in (0, 1)]
            rates, slopes = np.full((2, len(rows)), [[float(self.rate)], [float(self.SLOPE)]])
            return accepted_pairs(pair, rates, slopes, substream, lambda n: (self.rate, self.SLOPE))

        return until_accepted(keystream, draw)


def accepted_pairs(
    pair: Sequence[Integers],
    rates: Floats,
    slopes: Floats,
    substream: Keystream,
    exactly: Callable[[int], tuple[Fraction, Fraction]],
) -> tuple[Integers, Rows]:
    """Pairs that were proposed at slope times the rate each, and the rows to be drawn again.

    A pair is accepted with probability e^(-rate (distance - slope steps)).

    Parameters:
        pair: the proposed coordinates of each row.
        rates: of the rows, rounded.
        slopes: of the rows, rounded.
        substream: the words of this attempt.
        exactly: gives rate and slope of a row as they are.
    """
    i, j = pair
    steps = np.abs(i) + np.abs(j)

    def exact(n: int) -> ExactReal:
        """The exact probability that pair ``n`` is accepted."""
        square = int(i[n]) ** 2 + int(j[n]) ** 2
        rate, slope = exactly(n)
        near = slope * int(steps[n])

        def formula() -> Decimal:
            return (-decimal_of(rate) * (Decimal(square).sqrt() - decimal_of(near))).exp()

        return ExactReal(formula)

    excess = rates * (np.hypot(i, j) - slopes * steps)
    accepted = _with_probability_exp(substream.substream(2), excess, exact)
    return np.stack([i, j], axis=1), np.flatnonzero(~accepted)


class Varying:
    """For row i the distribution number ``which[i]``."""

    def __init__(
        self, distributions: Sequence[CategoryFlip] | Sequence[PlanarLattice], which: Integers
    ):
        self.distributions, self.which = distributions, which

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row, from the words of a ``keystream``."""
        if isinstance(self.distributions[0], CategoryFlip):
            return self._answers(keystream)
        return self._places(keystream)

    def _answers(self, keystream: Keystream) -> Integers:
        cuts = [flip.cuts for flip in self.distributions if isinstance(flip, CategoryFlip)]
        shift = cells_of(cuts, self.which, keystream.read(), keystream.substream(0).read_one)
        first = self.distributions[0]
        assert isinstance(first, CategoryFlip)
        return first.replacing(shift, keystream)

    def _places(self, keystream: Keystream) -> Integers:
        exact_rates = [flat.rate for flat in self.distributions if isinstance(flat, PlanarLattice)]
        # floats, as any scale is drawn from; the slope leaves room for rounding them
        wide = [float(1 / (rate * PlanarLattice.SLOPE)) for rate in exact_rates]
        slopes = [
            1 / (rate * Fraction(scale)) for rate, scale in zip(exact_rates, wide, strict=True)
        ]
        scales, rates, rising = (
            np.array([float(number) for number in numbers])[self.which]
            for numbers in (wide, exact_rates, slopes)
        )

        def draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
            """Candidates for ``rows`` from a ``substream``, and which of them to draw again."""
            pair = [
                discrete_laplace_varying(scales[rows], substream.substream(axis)) for axis in (0, 1)
            ]

            def exactly(n: int) -> tuple[Fraction, Fraction]:
                """The exact rate and slope of row ``n``."""
                number = self.which[rows[n]]
                return exact_rates[number], slopes[number]

            return accepted_pairs(pair, rates[rows], rising[rows], substream, exactly)

        return until_accepted(keystream, draw)
