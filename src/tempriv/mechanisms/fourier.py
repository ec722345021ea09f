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
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.counting.sensitivity import Changes, Law, changes_of, variance_of
from tempriv.mechanisms.domains import (
    FINENESS,
    Derived,
    Floats,
    Integers,
    Numbers,
    bounds_of,
    one_budget,
    power_of_two_below,
)
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.value._shared import LEAST_SHARE, model_of, number_grids
from tempriv.privacy.guarantees import Concentrated, Guarantee, Loss, Published, Pure
from tempriv.privacy.units import Event, Unit
from tempriv.sampling import distributions
from tempriv.sampling._kernels import at

MOST_BITS, ENOUGH_BITS = 24, 10
MOST_WORK = 1 << 27  # numbers in the waves of one series: some seconds
ROUNDED = Fraction(51, 100)  # how far a rounded number of a wave is off, floating point included
ROOM = 1 << 61  # coefficients stay whole numbers of 64 bits, with room for noise
LARGEST_SCALE = 1 << 34  # of noise that can be drawn
FINEST = 10  # halvings of a grid step for the outputs, at most


@functools.lru_cache(maxsize=8)
def _cosines(length: int) -> Floats:
    """cos(pi i / (2 length)) for i up to a full turn: every wave takes its numbers from here."""
    return np.asarray(np.cos(np.arange(4 * length) * (math.pi / (2 * length))))


def wave(number: int, length: int) -> Floats:
    """One of the orthonormal waves of a series of that length; number 0 is constant.

    >>> wave(1, 3).round(4).tolist()
    [0.7071, 0.0, -0.7071]
    """
    places = (2 * np.arange(length, dtype=np.int64) + 1) * number % (4 * length)
    return np.asarray(_cosines(length)[places] * math.sqrt((1 if number == 0 else 2) / length))


def whole_wave(number: int, length: int, bits: int) -> Integers:
    """The same as whole numbers, 2^bits times as large."""
    return np.asarray(np.rint(np.ldexp(wave(number, length), bits)).astype(np.int64))


@dataclass(frozen=True)
class Spectrum:
    """What changes of a series of ``length`` readings do to its first whole-number coefficients."""

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
        return bool(self._columns[0].any())

    def _together(self, norms: Integers, changes: Changes) -> Fraction:
        """Norms add up: over a window, or the largest as often as there is something to add."""
        sums = np.concatenate([[0], np.cumsum(norms)])
        window = min(changes.window, self.length)
        widest = int((sums[window:] - sums[:-window]).max())
        return min(changes.each * widest, changes.total * int(norms.max()))

    def square(self, changes: Changes) -> Fraction:
        """At most the square of the L2 norm."""
        squares = self._columns[1]
        alone = self.gain**2 * square_of(changes)
        if changes.total == changes.each:  # one reading
            return min(changes.each**2 * int(squares.max()), alone)
        roots = np.array([_root_above(one) for one in squares.tolist()], dtype=np.int64)
        return min(self._together(roots, changes) ** 2, alone)

    def size(self, changes: Changes, columns: int) -> Fraction:
        """At most the L1 norm; many coefficients share a length by Cauchy and Schwarz."""
        added = self._together(self._columns[0], changes)
        return min(added, self.share(changes, columns))

    def share(self, changes: Changes, columns: int) -> Fraction:
        square = self.count * columns * self.gain**2 * square_of(changes)
        return Fraction(_root_above(math.ceil(square)))


def square_of(changes: Changes) -> Fraction:
    """The square of the L2 norm of the worst change: few steps, as much as can be in each."""
    full, rest = divmod(changes.total, changes.each)
    return full * changes.each**2 + rest**2


def _root_above(square: int) -> int:
    root = math.isqrt(square)
    return root if root * root == square else root + 1


@functools.lru_cache(maxsize=32)
def spectrum(length: int, count: int, bits: int) -> Spectrum:
    return Spectrum(length, count, bits)


@dataclass(frozen=True, kw_only=True)
class FourierPerturbation(Mechanism):
    """Releases a finite series from its first cosine coefficients, with noise on each.

    Guarantees:
        - pure epsilon (Laplace noise) or rho-zCDP (Gaussian noise) for the unit;
        - noise is on whole numbers, and everything after it is made of noisy coefficients only;
        - nothing comes out before the last reading is in, and then as many values as readings; a
          missing one counts as the middle of the bounds (for counts as zero) and stays missing.

    Give ``epsilon`` or ``rho``, and a ``horizon`` unless the unit has a length. ``bits`` of the
    waves are chosen if left out.

    >>> from tempriv.privacy.units import WholeSeries
    >>> week = FourierPerturbation(epsilon=1.0, bounds=(0, 5), coefficients=15,
    ...                            unit=WholeSeries(168))
    >>> round(week.errors[0], 1), round(168 * 5 * 2**0.5)
    (106.1, 1188)
    """

    bounds: Bounds = shared(BOUNDS)
    coefficients: int = option(
        "--coefficients",
        "How many cosine waves are kept; fewer are smoother.",
        type=int,
    )
    epsilon: float | None = None
    rho: float | None = None
    horizon: int | None = option(
        "--horizon",
        "The most steps that a series has.",
        default=None,
        type=int,
    )
    bits: int | None = None
    unit: Unit = field(default_factory=Event)
    grid: Any = shared(RESOLUTION, default=None)

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
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "root mean squared error by noise; what the dropped waves held comes on top"
    )

    def __post_init__(self) -> None:
        one_budget(self.epsilon, self.rho)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        changes_of(self.unit, 1, 1.0, 1)
        _whole("horizon", self.horizon, MOST_WORK)
        _whole("bits", self.bits, MOST_BITS)
        require(
            limit_of(self) is not None,
            "horizon=None: must be given, the most readings of a series; its waves are as long",
        )
        require(
            isinstance(self.coefficients, int)
            and not isinstance(self.coefficients, bool)
            and 1 <= self.coefficients <= self.length,
            f"coefficients={self.coefficients!r}: must be a whole number from 1 to {self.length}, "
            "the length",
        )
        require(
            self.coefficients * self.length <= MOST_WORK,
            f"coefficients={self.coefficients}: must be fewer, at most "
            f"{MOST_WORK // self.length} for {self.length} readings",
        )
        require(
            self._share > LEAST_SHARE,
            f"{self.epsilon or self.rho:g} for {self.unit!r}: must be greater, nothing is left of "
            "it for each column",
        )
        given = self.grid
        object.__setattr__(self, "grid", number_grids(self, 1.0))
        while given is None and self._coarser_helps:
            object.__setattr__(self, "grid", tuple(2 * grid for grid in self.grid))
        require(
            1 <= (self.bits or 1) <= self._most_bits,
            "grid: must be coarser for these bounds, this length and this much noise, or the bits "
            "of the waves fewer",
        )
        require(
            spectrum(self.length, self.coefficients, self._bits).is_there,
            f"bits={self._bits}: must be more, waves of {self.length} readings round to nothing",
        )

    @property
    def length(self) -> int:
        """The most readings of a series."""
        return limit_of(self) or 1

    @property
    def _share(self) -> Fraction:
        """Of the budget, for a column of a series: people's counts change in one at a time."""
        parts = 1 if self.unit.counts_people else len(self.bounds)
        parts *= self.unit.positions_per_person
        return Fraction(self.epsilon or self.rho or 0) / parts

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @property
    def _middles(self) -> Integers:
        """What stands for a missing reading, and is taken off all others, in grid steps."""
        low, high = self._numbers.edges().T
        counts = self.unit.counts_people
        return np.asarray(np.clip(0, low, high) if counts else (low + high) // 2)

    @property
    def _coarser_helps(self) -> bool:
        """Where there is much noise, fewer steps of the readings leave room for finer waves."""
        coarse = self.unit.counts_people or min(self._numbers.widths) < 4
        return not coarse and self._most_bits < ENOUGH_BITS

    @functools.cached_property
    def _bits(self) -> int:
        return self._most_bits if self.bits is None else self.bits

    @property
    def _most_bits(self) -> int:
        """As many as fit, since more of them cost nothing: sums and noise must stay in range."""
        largest = int(np.abs(self._numbers.edges().T - self._middles).max())
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
        width, grid = self._numbers.widths[column], self.grid[column]
        return changes_of(self.unit, width, grid, self.length)

    @property
    def _sharing(self) -> int:
        """Over how many columns one change can spread: numbers have a share of the budget each."""
        return len(self.bounds) if self.unit.counts_people else 1

    def law(self, length: int, column: int) -> Law:
        """The noise on each coefficient of a series of that many readings, in whole numbers."""
        found = spectrum(length, min(self.coefficients, length), self._bits)
        changes = self._changes(column)
        if self.rho is not None:
            return distributions.DiscreteGaussian(found.square(changes) / (2 * self._share))
        return distributions.DiscreteLaplace(found.size(changes, self._sharing) / self._share)

    @property
    def laws(self) -> list[Law]:
        """For series of full length, a law for each column."""
        return [self.law(self.length, column) for column in range(len(self.bounds))]

    @functools.cached_property
    def _steps(self) -> tuple[float, ...]:
        """Of the outputs, in grid steps: a power of two that vanishes beside the noise."""
        return tuple(
            max(min(1.0, power_of_two_below(error / grid / FINENESS)), 2.0**-FINEST)
            for error, grid in zip(self.errors, self.grid, strict=True)
        )

    @property
    def domain(self) -> Derived:
        grids = (grid * step for grid, step in zip(self.grid, self._steps, strict=True))
        return Derived(self._numbers, tuple(grids))

    @property
    def guarantee(self) -> Guarantee:
        loss: Loss = Pure(self.epsilon) if self.epsilon is not None else Concentrated(self.rho or 0)
        return Guarantee(loss, self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        return Published(
            claim="Laplace noise of scale sqrt(k) D2 / epsilon on each of the first k Fourier "
            "coefficients, D2 the L2 sensitivity of the series, is epsilon-differentially private",
            source="Rastogi and Nath 2010, Fourier perturbation algorithm",
            holds=True,
            remark="It holds for transforms that keep lengths, as this one does. A Fourier "
            "transform that is not divided by the root of the length (as numpy's) makes changes "
            "longer by that root, and takes as much more noise.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        part = math.sqrt(self.coefficients / self.length) / 2**self._bits
        return tuple(
            grid * part * math.sqrt(variance_of(law))
            for grid, law in zip(self.grid, self.laws, strict=True)
        )

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        moved = np.where(state.missing, 0, readings - self._middles)
        outputs = np.zeros_like(readings)
        starts = np.cumsum(state.counts) - state.counts
        for length in np.unique(state.counts[state.counts > 0]).tolist():
            first = starts[state.counts == length]
            rows = first[:, None] + np.arange(length)
            for column, step in enumerate(self._steps):
                drawn = noise.each(self.law(length, column), f"length {length}, column {column}")
                found = self._smoothed(moved[:, column][rows], drawn, first) / step
                middle = round(int(self._middles[column]) / step)
                outputs[rows, column] = middle + np.rint(found).astype(np.int64)
        return outputs

    def _smoothed(self, series: Integers, drawn: Any, first: Integers) -> Floats:
        """Rows of equally long series by their noisy coefficients, added up wave by wave."""
        length = series.shape[1]
        made = np.zeros(series.shape)
        for number in range(min(self.coefficients, length)):
            exact = series @ whole_wave(number, length, self._bits)
            # the noise of a coefficient is that of the reading in its place
            noisy = exact + np.array([at(drawn, int(row) + number) for row in first])
            made += np.ldexp(noisy.astype(np.float64), -self._bits)[:, None] * wave(number, length)
        return made


def _whole(name: str, value: Any, most: int) -> None:
    require(
        value is None
        or (isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most),
        f"{name}={value!r}: must be a whole number from 1 to {most}",
    )
