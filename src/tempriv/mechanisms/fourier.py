"""A finite series by its slow waves: a few noisy coefficients, and what they make together.

A whole series is turned into coefficients of cosine waves (the discrete cosine transform, real and
without a jump where the series ends). The first few get noise, the others are dropped, and the
inverse gives as many values as there were. The waves are rounded to public whole numbers first, so
the coefficients of whole numbers are whole numbers: nothing is rounded that is private, and what a
change of the series can do to the coefficients is added up exactly.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, KernelNoise, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.counting.sensitivity import (
    Changes,
    Noise,
    changes_of,
    column_share,
)
from tempriv.mechanisms.domains import (
    FINENESS,
    Derived,
    Floats,
    Integers,
    is_whole,
    power_of_two_below,
    whole_or_none,
)
from tempriv.mechanisms.numbers import LARGEST_SCALE, NumberMechanism
from tempriv.mechanisms.options import HORIZON, option, shared
from tempriv.mechanisms.perturb import limit_of
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Event, Unit
from tempriv.sampling._kernels import at
from tempriv.sampling.distributions import DiscreteGaussian, DiscreteLaplace

MOST_BITS, ENOUGH_BITS = 24, 10
MOST_WORK = 1 << 27  # numbers in the waves of one series: some seconds
ROUNDED = Fraction(51, 100)  # how far a rounded number of a wave is off, floating point included
ROOM = 1 << 61  # coefficients stay whole numbers of 64 bits, with room for noise
FINEST = 10  # halvings of a grid step for the outputs, at most


@functools.lru_cache(maxsize=8)
def _cosines(length: int) -> Floats:
    """cos(pi i / (2 length)) for i up to a full turn: every wave takes its numbers from here."""
    return np.asarray(np.cos(np.arange(4 * length) * (math.pi / (2 * length))))


def wave(number: int, length: int) -> Floats:
    """One of the orthonormal waves of a series.

    Parameters:
        number: which one; number 0 is constant.
        length: of the series.

    >>> wave(1, 3).round(4).tolist()
    [0.7071, 0.0, -0.7071]
    """
    places = (2 * np.arange(length, dtype=np.int64) + 1) * number % (4 * length)
    return np.asarray(_cosines(length)[places] * math.sqrt((1 if number == 0 else 2) / length))


def whole_wave(number: int, length: int, bits: int) -> Integers:
    """The wave of a ``number`` and ``length`` as whole numbers, 2^``bits`` times as large."""
    return np.asarray(np.rint(np.ldexp(wave(number, length), bits)).astype(np.int64))


@dataclass(frozen=True)
class Spectrum:
    """What changes of a series do to its first whole-number coefficients.

    Parameters:
        length: how many readings it has.
        count: how many coefficients are kept.
        bits: of the waves.
    """

    length: int
    count: int
    bits: int

    @functools.cached_property
    def _columns(self) -> tuple[Integers, Integers]:
        """For a change of each reading by 1: the L1 norm, and the square of the L2 norm."""
        sizes, squares = np.zeros((2, self.length), dtype=np.int64)
        for number in range(self.count):
            one = np.abs(whole_wave(number, self.length, self.bits))
            sizes += one
            squares += one * one
        return sizes, squares

    @property
    def gain(self) -> Fraction:
        """No direction grows by more: the waves are orthonormal, but for their rounding."""
        return Fraction(2**self.bits) + ROUNDED * _root_above(self.count * self.length)

    @property
    def is_there(self) -> bool:
        """Whether anything is left of the waves, rounded to whole numbers."""
        return bool(self._columns[0].any())

    def _together(self, norms: Integers, changes: Changes) -> Fraction:
        """Norms add up: over a window, or the largest as often as there is something to add."""
        sums = np.concatenate([[0], np.cumsum(norms)])
        window = min(changes.window, self.length)
        widest = int((sums[window:] - sums[:-window]).max())
        return min(changes.each * widest, changes.total * int(norms.max()))

    def square(self, changes: Changes) -> Fraction:
        """The square of the L2 norm of what ``changes`` do is at most this."""
        squares = self._columns[1]
        alone = self.gain**2 * square_of(changes)
        if changes.total == changes.each:  # one reading
            return min(changes.each**2 * int(squares.max()), alone)
        roots = np.array([_root_above(one) for one in squares.tolist()], dtype=np.int64)
        return min(self._together(roots, changes) ** 2, alone)

    def size(self, changes: Changes, columns: int) -> Fraction:
        """The L1 norm of what ``changes`` do is at most this.

        Many coefficients share a length by Cauchy and Schwarz, those of several ``columns`` too.
        """
        added = self._together(self._columns[0], changes)
        return min(added, self.share(changes, columns))

    def share(self, changes: Changes, columns: int) -> Fraction:
        """The same by the length of what ``changes`` do alone, over so many ``columns``."""
        square = self.count * columns * self.gain**2 * square_of(changes)
        return Fraction(_root_above(math.ceil(square)))


def square_of(changes: Changes) -> Fraction:
    """The square of the L2 norm of the worst of ``changes``: in few steps, as much as can be."""
    full, rest = divmod(changes.total, changes.each)
    return full * changes.each**2 + rest**2


def _root_above(square: int) -> int:
    root = math.isqrt(square)
    return root if root * root == square else root + 1


@functools.lru_cache(maxsize=32)
def spectrum(length: int, count: int, bits: int) -> Spectrum:
    """A spectrum, made once for each ``length``, ``count`` and ``bits``."""
    return Spectrum(length, count, bits)


@dataclass(frozen=True, kw_only=True)
class FourierPerturbation(NumberMechanism):
    """Releases a finite series from its first cosine coefficients, with noise on each.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        coefficients: how many cosine waves are kept; fewer are smoother.
        epsilon: the loss for the unit, for Laplace noise; or give rho.
        rho: the loss for the unit, for Gaussian noise.
        horizon: the most time steps of a series; needed unless the unit has a length.
        bits: of the waves; chosen if left out.
        unit: what is protected.
        grid: of readings, a power of two; by default as coarse as leaves room for fine waves.

    Guarantees:
        - pure epsilon (Laplace noise) or rho-zCDP (Gaussian noise) for the unit;
        - noise is on whole numbers, and everything after it is made of noisy coefficients only;
        - nothing comes out before the last reading is in, and then as many values as readings; a
          missing one counts as the middle of the bounds (for counts as zero) and stays missing.

    >>> from tempriv.privacy.units import WholeSeries
    >>> week = FourierPerturbation(epsilon=1.0, bounds=(0, 5), coefficients=15,
    ...                            unit=WholeSeries(168))
    >>> round(week.errors[0], 1), round(168 * 5 * 2**0.5)
    (106.1, 1188)
    """

    coefficients: int = option(
        "--coefficients",
        "How many cosine waves are kept; fewer are smoother.",
        type=int,
    )
    horizon: int | None = shared(HORIZON, default=None)
    unit: Unit = field(default_factory=Event)
    epsilon: float | None = None
    rho: float | None = None
    bits: int | None = None

    spec_order = ("bounds", "coefficients", "epsilon", "rho", "horizon", "bits", "unit", "grid")
    command = CommandLine(
        name="fourier",
        hides="values",
        purpose="whole series by their slow waves, smooth and with little noise",
        example="--epsilon 1 --bounds 0 5 --coefficients 15 --value kwh --unit series --length 168",
        count_example="--epsilon 1 --coefficients 15 --max-per-step 1 --max-per-person 10",
        noise="either",
        rank=15,
    )
    texts = ReportTexts(
        done="they were put together from a few slow waves of the original series, "
        "with random noise on each wave",
        band="± expected error by noise",
        errors="Expected errors by noise, in the unit of the column",
        besides="The waves are smooth: what comes and goes quickly, such as a peak of one "
        "step, is not in them, and what it adds to the error is not in these numbers. Errors of "
        "neighboring values go together: averages over them are hardly better than one.",
        measured="Error: of released value minus reading, the root of the mean square.",
    )

    causal: ClassVar[bool] = False
    bounded_memory: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = True
    error_name: ClassVar[str] = (
        "root mean squared error by noise; what the dropped waves held comes on top"
    )

    published: ClassVar[Published] = Published(
        claim="Laplace noise of scale sqrt(k) D2 / epsilon on each of the first k Fourier "
        "coefficients, D2 the L2 sensitivity of the series, is epsilon-differentially private",
        source="Rastogi and Nath 2010, Fourier perturbation algorithm",
        holds=True,
        remark="It holds for transforms that keep lengths, as this one does. A Fourier "
        "transform that is not divided by the root of the length (as numpy's) makes changes "
        "longer by that root, and takes as much more noise.",
    )

    def _require_settings(self) -> None:
        changes_of(self.unit, 1, 1.0, 1)
        whole_or_none("horizon", self.horizon, 1, MOST_WORK)
        whole_or_none("bits", self.bits, 1, MOST_BITS)
        require(
            limit_of(self) is not None,
            "horizon=None: must be given, the most readings of a series; its waves are as long",
        )
        require(
            is_whole(self.coefficients, 1, self.length),
            f"coefficients={self.coefficients!r}: must be a whole number from 1 to {self.length}, "
            "the length",
        )
        require(
            self.coefficients * self.length <= MOST_WORK,
            f"coefficients={self.coefficients}: must be fewer, at most "
            f"{MOST_WORK // self.length} for {self.length} readings",
        )
        _ = self._share

    def _require_noise(self) -> None:
        require(
            1 <= (self.bits or 1) <= self._most_bits,
            "grid: must be coarser for these bounds, this length and this much noise, or the bits "
            "of the waves fewer",
        )
        require(
            spectrum(self.length, self.coefficients, self._bits).is_there,
            f"bits={self._bits}: must be more, waves of {self.length} readings round to nothing",
        )

    def _fitting_grids(self) -> tuple[float, ...]:
        grids, given = super()._fitting_grids(), self.grid
        object.__setattr__(self, "grid", grids)
        while given is None and self._coarser_helps:
            object.__setattr__(self, "grid", tuple(2 * grid for grid in self.grids))
        return self.grids

    @property
    def length(self) -> int:
        """The most readings of a series."""
        return limit_of(self) or 1

    @property
    def _share(self) -> Fraction:
        """Of the budget, for a column of a series."""
        return column_share(self)

    @property
    def noise_to_range(self) -> float:
        return 1.0

    @property
    def _middles(self) -> Integers:
        """What stands for a missing reading, and is taken off all others, in grid steps."""
        low, high = self.numbers.edges().T
        counts = self.unit.counts_people
        return np.asarray(np.clip(0, low, high) if counts else (low + high) // 2)

    @property
    def _coarser_helps(self) -> bool:
        """Where there is much noise, fewer steps of the readings leave room for finer waves."""
        coarse = self.unit.counts_people or min(self.numbers.widths) < 4
        return not coarse and self._most_bits < ENOUGH_BITS

    @functools.cached_property
    def _bits(self) -> int:
        return self._most_bits if self.bits is None else self.bits

    @property
    def _most_bits(self) -> int:
        """As many as fit, since more of them cost nothing: sums and noise must stay in range."""
        largest = int(np.abs(self.numbers.edges().T - self._middles).max())
        readings = 2 * (_root_above(self.length) + 1)
        for bits in range(MOST_BITS, 0, -1):
            if largest * readings << max(bits, FINEST) > ROOM:
                continue
            # of whatever length a series is, its noise is no wider
            found = Spectrum(self.length, self.coefficients, bits)
            if all(
                self._widest(found, column) <= LARGEST_SCALE for column in range(len(self.bounds))
            ):
                return bits
        return 0

    def _widest(self, found: Spectrum, column: int) -> Fraction:
        if self.rho is not None:
            square = found.gain**2 * square_of(self._changes(column))
            return square / (2 * self._share) / LARGEST_SCALE
        return found.share(self._changes(column), self._sharing) / self._share

    def _changes(self, column: int) -> Changes:
        width, grid = self.numbers.widths[column], self.grids[column]
        return changes_of(self.unit, width, grid, self.length)

    @property
    def _sharing(self) -> int:
        """Over how many columns one change can spread: numbers have a share of the budget each."""
        return len(self.bounds) if self.unit.counts_people else 1

    def noise_on(self, length: int, column: int) -> Noise:
        """The noise on each coefficient of a series, in whole numbers.

        Parameters:
            length: how many readings it has.
            column: which of them.
        """
        found = spectrum(length, min(self.coefficients, length), self._bits)
        changes = self._changes(column)
        if self.rho is not None:
            return DiscreteGaussian(found.square(changes) / (2 * self._share))
        return DiscreteLaplace(found.size(changes, self._sharing) / self._share)

    @property
    def distributions(self) -> list[Noise]:
        """The noise of each column on each coefficient of a series of full length."""
        return [self.noise_on(self.length, column) for column in range(len(self.bounds))]

    @functools.cached_property
    def _steps(self) -> tuple[float, ...]:
        """Of the outputs, in grid steps: a power of two that vanishes beside the noise."""
        return tuple(
            max(min(1.0, power_of_two_below(error / grid / FINENESS)), 2.0**-FINEST)
            for error, grid in zip(self.errors, self.grids, strict=True)
        )

    @property
    def domain(self) -> Derived:
        grids = (grid * step for grid, step in zip(self.grids, self._steps, strict=True))
        return Derived(self.numbers, tuple(grids))

    @property
    def errors(self) -> tuple[float, ...]:
        part = math.sqrt(self.coefficients / self.length) / 2**self._bits
        return tuple(
            grid * part * math.sqrt(noise.mean_square)
            for grid, noise in zip(self.grids, self.distributions, strict=True)
        )

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Series of ``readings`` by waves with ``noise``; ``state`` says where they begin."""
        moved = np.where(state.missing, 0, readings - self._middles)
        outputs = np.zeros_like(readings)
        starts = np.cumsum(state.counts) - state.counts
        for length in np.unique(state.counts[state.counts > 0]).tolist():
            first = starts[state.counts == length]
            rows = first[:, None] + np.arange(length)
            for column, step in enumerate(self._steps):
                drawn = noise.each(
                    self.noise_on(length, column), f"length {length}, column {column}"
                )
                found = self._smoothed(moved[:, column][rows], drawn, first) / step
                middle = round(int(self._middles[column]) / step)
                outputs[rows, column] = middle + np.rint(found).astype(np.int64)
        return outputs

    def _smoothed(self, series: Integers, drawn: KernelNoise, first: Integers) -> Floats:
        """Rows of equally long series by their noisy coefficients, added up wave by wave."""
        length = series.shape[1]
        made = np.zeros(series.shape)
        for number in range(min(self.coefficients, length)):
            exact = series @ whole_wave(number, length, self._bits)
            # the noise of a coefficient is that of the reading in its place
            noisy = exact + np.array([at(drawn, int(row) + number) for row in first])
            made += np.ldexp(noisy.astype(np.float64), -self._bits)[:, None] * wave(number, length)
        return made
