"""The private part of a summary: people's vectors in, noisy whole numbers out, within one budget.

Everything here that looks at a vector ends in a draw. What is computed in between, from what has
been released already, decides only how the next look is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np

from tempriv.accounting.gaussian_privacy import mu_of_range, range_of_mu
from tempriv.sampling.distributions import DiscreteGaussian, Distribution
from tempriv.sampling.exponential import ExponentialChoice
from tempriv.summaries import bands
from tempriv.summaries.bands import Ladder
from tempriv.summaries.shrink import shrunk
from tempriv.summaries.vectors import (
    READING_STEPS,
    CellBasis,
    Floats,
    Integers,
    Vectors,
    chunks,
    clipped,
    inner,
    squared_norms,
)

NOISE_GRID = 1 << 20
"""Steps of the noise's grid to the norm of one person."""

COUNT_SHARE = 0.03
WEIGHTS = {"first": 0.06, "mean": 0.30, "bands": 0.46, "spread": 0.10, "peak": 0.18}
"""How what is left after the number of people and the clips is divided."""
OTHER_WEIGHT = 0.18
CLIP_OPTIONS, CLIP_RATIO = 26, 1.3
CLIP_FACTOR = 1.5
SECOND_OPTIONS, SECOND_RATIO, SECOND_FACTOR, SECOND_POWER = 36, 1.15, 32.0, 3.5
OFFSET_STEPS = 1 << 10  # so that a utility and its offset add up without rounding


class Draws(Protocol):
    """Where noise comes from: keyed words in a release, every outcome in an audit."""

    def __call__(self, distribution: Distribution, purpose: str, count: int, /) -> Integers:
        """So many draws for a purpose, which no other draw has."""


@dataclass(frozen=True)
class PersonVectors:
    """The vectors of the people in one stratum, as private as the table.

    Parameters:
        vectors: for each person whole grid steps above the lower bound, a column for each cell.
        shares: for each share that is asked for, the same with 0 to 1 as bounds.
    """

    vectors: Vectors = field(repr=False)
    shares: tuple[Vectors, ...] = field(default=(), repr=False)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is measured of a stratum.

    Parameters:
        cells: how many numbers a person has.
        mean: whether the mean of each cell.
        bands: whether quantiles of each cell.
        spread: whether a coarser form of these, for sampling errors only.
        peak: whether the cell in which people's numbers are largest.
        edges: of the histogram of people's averages, in grid steps; none: no histogram.
        shares: how many shares.
        mu: the whole budget.
        grid: steps of the noise's grid to the norm of one person.
    """

    cells: int
    mean: bool
    bands: bool
    spread: bool
    peak: bool
    edges: tuple[int, ...]
    shares: int
    mu: float
    grid: int = NOISE_GRID


@dataclass(frozen=True)
class Part:
    """One part of a measurement: what it cost, by its purpose.

    Parameters:
        purpose: of its draws.
        mu: in units of Gaussian privacy.
        rho: as zero-concentrated privacy.
        sigma: of its noise, in grid steps; 0 for a choice.
        coordinates: how many numbers it released.
    """

    purpose: str
    mu: float
    rho: float
    sigma: float
    coordinates: int


@dataclass
class Measured:
    """What was released of a stratum, in people and grid steps, with the deviation of its noise.

    ``clip`` and ``tail`` are the norm that people's vectors around the center were cut to, and
    about how many of them were longer; ``reach`` is a vector of norm 1 in their direction.
    """

    parts: list[Part]
    people: float
    people_sd: float
    mean: Floats | None = None
    mean_sd: Floats | None = None
    left: Floats | None = None
    reach: Floats | None = None
    clip: float = 0.0
    tail: float = 0.0
    ladder: Ladder | None = None
    bands: Floats | None = None
    bands_sd: float = 0.0
    peak: Floats | None = None
    peak_sd: float = 0.0
    histogram: Floats | None = None
    histogram_sd: float = 0.0
    shares: list[Floats] = field(default_factory=list)
    shares_sd: float = 0.0
    observed: list[tuple[int, ...]] = field(default_factory=list)


class Measurement:
    """One pass over the people of a stratum, part by part within the budget.

    Parameters:
        people: of the stratum.
        wanted: what to measure.
        draws: where noise comes from.
    """

    def __init__(self, people: PersonVectors, wanted: Wanted, draws: Draws):
        self.people, self.wanted, self.draws = people, wanted, draws
        self.basis = CellBasis(wanted.cells)
        self.multiplier = 1 / wanted.mu
        self.parts: list[Part] = []
        self.observed: list[tuple[int, ...]] = []

    # the two kinds of looks

    def noisy(self, whole: Integers, share: float, purpose: str) -> tuple[Integers, float]:
        """A sum of whole vectors of norm at most the grid, with noise for a ``share``.

        Returns the noisy sum and the deviation of its noise, in grid steps.
        """
        grid, mu = self.wanted.grid, self.wanted.mu * math.sqrt(share)
        variance = Fraction(math.ceil((grid / mu) ** 2 * (1 + 1e-12)))
        if grid < 64:
            variance = Fraction((grid / mu) ** 2)
        drawn = self.draws(DiscreteGaussian(variance), purpose, whole.size)
        spent = grid * grid / variance
        sigma = math.sqrt(variance)
        self.parts.append(
            Part(purpose, math.sqrt(spent) * (1 + 1e-12), float(spent) / 2, sigma, whole.size)
        )
        out = whole + drawn.reshape(whole.shape)
        self.observed.append(tuple(out.ravel().tolist()))
        return out, sigma

    def chosen(self, utilities: Floats, share: float, purpose: str) -> int:
        """One of the options, of which each utility changes by at most 1 with a person."""
        log_range = range_of_mu(self.wanted.mu * math.sqrt(share))
        choice = ExponentialChoice(utilities, log_range, 1.0)
        at = int(self.draws(choice, purpose, 1)[0])
        rho = log_range**2 / 8
        self.parts.append(Part(purpose, mu_of_range(log_range), rho, 0.0, 1))
        self.observed.append((at,))
        return at

    # the parts

    def run(self) -> Measured:
        """All parts that are wanted."""
        wanted, grid = self.wanted, self.wanted.grid
        count, sigma = self.noisy(np.array([len(self.people) * grid]), COUNT_SHARE, "people")
        known = Measured(self.parts, float(count[0]) / grid, sigma / grid)
        people = max(known.people, 1.0)
        shares = self.shares_of(people)
        if wanted.mean:
            self.measure_mean(known, people, shares)
        if "bands" in shares:
            self.measure_bands(known, people, shares["bands"], wanted.bands)
        if wanted.peak:
            known.peak, known.peak_sd = self.one_each(
                peaks(self.people.vectors), wanted.cells + 1, shares["peak"], "peak"
            )
        if wanted.edges:
            bins = len(wanted.edges) + 1
            levels = averages(self.people.vectors)
            numbers = np.searchsorted(np.array(wanted.edges), levels, side="right")
            known.histogram, known.histogram_sd = self.one_each(
                numbers, bins, shares["histogram"], "histogram"
            )
        for i, vectors in enumerate(self.people.shares):
            self.measure_share(known, vectors, shares[f"share-{i}"], f"share-{i}")
        known.observed = self.observed
        return known

    def shares_of(self, people: float) -> dict[str, float]:
        """What part of the budget each part gets, by the released number of ``people``."""
        wanted = self.wanted
        weights: dict[str, float] = {}
        shares: dict[str, float] = {}
        left = 1.0 - COUNT_SHARE
        if wanted.mean:
            for name, error, (least, most) in (
                ("first clip", people / 18, (0.004, 0.06)),
                ("clip", people / 25, (0.03, 0.05)),
            ):
                share = (mu_of_range(2 / error) * self.multiplier) ** 2 if error > 0.01 else 1.0
                shares[name] = min(max(share, least), most)
                left -= shares[name]
            weights |= {name: WEIGHTS[name] for name in ("first", "mean")}
            if wanted.bands or wanted.spread:
                weights["bands"] = WEIGHTS["bands" if wanted.bands else "spread"]
        if wanted.peak:
            weights["peak"] = WEIGHTS["peak"]
        if wanted.edges:
            weights["histogram"] = OTHER_WEIGHT
        weights |= {f"share-{i}": OTHER_WEIGHT for i in range(wanted.shares)}
        whole = sum(weights.values())
        # a little less than all, so that rounding never makes it more
        return shares | {
            name: left * weight / whole * (1 - 1e-9) for name, weight in weights.items()
        }

    def measure_mean(self, known: Measured, people: float, shares: dict[str, float]) -> None:
        """The mean of each cell: around zero, and then around that with a tighter clip."""
        basis, cells = self.basis, self.wanted.cells
        zero = np.zeros(cells, dtype=np.int64)
        norms = self.norms(zero)
        options = [
            math.ceil(READING_STEPS * math.sqrt(cells) * CLIP_RATIO**-j)
            for j in range(CLIP_OPTIONS)
        ]
        # of the exact number of people, so that all utilities change by 1 exactly
        above = counts_above(norms, options)
        utilities = -np.abs(2.0 * above - len(self.people))
        first = options[self.chosen(utilities, shares["first clip"], "first clip")]
        first = math.ceil(first * CLIP_FACTOR)
        total, sigma = self.noisy(self.clipped_sum(zero, first), shares["first"], "first")
        coarse, _, _ = self.profile(total, sigma, first, people, zero)
        center = np.clip(np.rint(coarse), 0, READING_STEPS).astype(np.int64)

        norms = self.norms(center)
        options = [
            max(math.ceil(SECOND_FACTOR * first * SECOND_RATIO**-j), 1)
            for j in range(SECOND_OPTIONS)
        ]
        sd = math.sqrt(cells) * self.multiplier / math.sqrt(shares["mean"])
        log_range = range_of_mu(self.wanted.mu * math.sqrt(shares["clip"]))
        tail = min(max(sd, 3 / log_range), 0.15 * people)
        offsets = [-SECOND_POWER * math.log(c / options[0]) * 2 / log_range for c in options]
        offsets = [round(offset * OFFSET_STEPS) / OFFSET_STEPS for offset in offsets]
        utilities = -np.abs(counts_above(norms, options) - round(tail)) + np.array(offsets)
        clip = options[self.chosen(utilities, shares["clip"], "clip")]
        total, sigma = self.noisy(self.clipped_sum(center, clip), shares["mean"], "mean")
        known.mean, known.mean_sd, known.left = self.profile(total, sigma, clip, people, center)
        known.clip, known.tail = float(clip), tail
        # people whose vectors were cut have, by and large, more of the same: the mean's direction
        length = float(np.linalg.norm(basis.coefficients(center[None, :], zero)))
        known.reach = center / max(length, 1.0)

    def norms(self, center: Integers) -> Integers:
        """Squared norms of people's coefficients around a ``center``, sorted."""
        vectors = self.people.vectors
        parts = [
            squared_norms(self.basis.coefficients(vectors[part], center))
            for part in chunks(len(vectors))
        ]
        return np.sort(np.concatenate([*parts, np.zeros(0, dtype=np.int64)]))

    def clipped_sum(self, center: Integers, clip: int) -> Integers:
        """The sum of people's coefficients around a ``center``, each of norm ``clip`` at most."""
        total = np.zeros(self.wanted.cells, dtype=np.int64)
        for part in chunks(len(self.people)):
            coefficients = self.basis.coefficients(self.people.vectors[part], center)
            total += clipped(coefficients, clip, self.wanted.grid).sum(axis=0)
        return total

    def profile(
        self, total: Integers, sigma: float, clip: int, people: float, center: Integers
    ) -> tuple[Floats, Floats, Floats]:
        """Cells from noisy sums of coefficients around a ``center``, with their deviations.

        The last are the variances of the orthonormal coefficients.
        """
        basis = self.basis
        step = clip / inner(self.wanted.grid, self.wanted.cells) / people
        plain = total * step / basis.scale
        variance = (sigma * step / basis.scale) ** 2
        falls = (np.log1p(basis.frequencies.astype(np.float64)),)
        best, left = shrunk(plain, variance, falls)
        back = basis.inverse * basis.scale
        mean = np.clip(center + back @ best, 0, READING_STEPS)
        return mean, np.sqrt((back**2) @ left), left

    def measure_bands(
        self, known: Measured, people: float, share: float, all_thresholds: bool
    ) -> None:
        """Histograms of all cells, on thresholds that the released mean places."""
        wanted = self.wanted
        assert known.mean is not None
        count = bands.thresholds_for(people, self.multiplier) if all_thresholds else 20
        ladder = Ladder.around(known.mean, count, READING_STEPS)
        root = bands.whole_root(count, wanted.cells, wanted.grid)
        exact = ladder.histogram(self.people.vectors) @ root.T
        noisy, sigma = self.noisy(exact, share, "bands")
        size = float(np.sqrt((root.astype(np.float64) ** 2).sum(axis=0)).mean())
        known.ladder, known.bands, known.bands_sd = ladder, noisy / size, sigma / size

    def one_each(
        self, numbers: Integers, options: int, share: float, purpose: str
    ) -> tuple[Floats, float]:
        """How many people have each number, each person one."""
        grid = self.wanted.grid
        counts = np.bincount(numbers, minlength=options).astype(np.int64)
        noisy, sigma = self.noisy(counts * grid, share, purpose)
        return noisy / grid, sigma / grid

    def measure_share(self, known: Measured, vectors: Vectors, share: float, purpose: str) -> None:
        """The sum over people of a share in each cell, around one half."""
        grid, cells = self.wanted.grid, self.wanted.cells
        half = READING_STEPS // 2
        size = max(math.floor(grid / math.sqrt(cells)), 1) if grid >= cells else 0
        total = np.zeros(cells, dtype=np.int64)
        for part in chunks(len(vectors)):
            moved = (vectors[part] - half).astype(np.float64) * (size / half)
            whole = np.rint(moved).astype(np.int64)
            total += np.clip(whole, -size, size).sum(axis=0)
        noisy, sigma = self.noisy(total, share, purpose)
        known.shares.append(noisy / max(size, 1) / 2)
        known.shares_sd = sigma / max(size, 1) / 2


def counts_above(squares: Integers, clips: Sequence[int]) -> Floats:
    """How many sorted squared norms are above each of some ``clips``."""
    bounds = np.array([clip * clip for clip in clips], dtype=np.int64)
    below = np.searchsorted(squares, bounds, side="right")
    return np.asarray((len(squares) - below).astype(np.float64))


def averages(vectors: Vectors) -> Integers:
    """Each person's average over cells, in whole grid steps."""
    return np.asarray((2 * vectors.sum(axis=1) + vectors.shape[1]) // (2 * vectors.shape[1]))


def peaks(vectors: Vectors) -> Integers:
    """The first cell in which each person's number is largest; the last but one for none.

    Whose numbers are all the same, all zero for instance, has no peak.
    """
    if not len(vectors):
        return np.zeros(0, dtype=np.int64)
    flat = vectors.max(axis=1) == vectors.min(axis=1)
    return np.asarray(np.where(flat, vectors.shape[1], vectors.argmax(axis=1)), dtype=np.int64)
