"""How many people lie below each of some thresholds in each cell, and quantiles from that.

Each person has one entry in a histogram of each cell. The histograms are released through a square
root of the matrix that adds them up (Fichtenberger, Henzinger and Upadhyay 2023), its columns
brought to one norm, so that what is known best are the cumulative counts that quantiles ask for.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tempriv.summaries.shrink import rising, shrunk
from tempriv.summaries.vectors import CellBasis, Floats, Integers, Vectors, chunks

LOWEST, HIGHEST = 0.06, 12.0
NOTHING = 1e-6
"""The first threshold, of a cell's scale: below it there is nothing but zero."""
LEAST_SCALE = 0.15
"""A cell is scaled by at least so much of the mean of all cells."""
THRESHOLDS = ((300, 20), (1_500, 40), (20_000, 64))
MOST_THRESHOLDS = 128


def thresholds_for(people: float, noise_multiplier: float) -> int:
    """How many thresholds so many ``people`` can tell apart through the noise."""
    for least, count in THRESHOLDS:
        if people / noise_multiplier < least:
            return count
    return MOST_THRESHOLDS


@dataclass(frozen=True)
class Ladder:
    """The thresholds of each cell, in grid steps of a reading; a row for each cell."""

    count: int
    steps: Integers

    @classmethod
    def around(cls, mean: Floats, count: int, high: int) -> Ladder:
        """Thresholds for cells with this ``mean``, in grid steps, up to ``high``."""
        scale = np.clip(mean, max(LEAST_SCALE * float(mean.mean()), 1.0), high)
        levels = np.concatenate([[NOTHING], np.geomspace(LOWEST, HIGHEST, count - 1)])
        steps = np.ceil(scale[:, None] * levels[None, :]).astype(np.int64)
        return cls(count, np.minimum(np.maximum(steps, 1), high + 1))

    def histogram(self, vectors: Vectors) -> Integers:
        """How many people are in each bin of each cell: exact counts, a row for each cell.

        Who is at or above the last threshold is in none.
        """
        cells = len(self.steps)
        counts = np.zeros((cells, self.count + 1), dtype=np.int64)
        for part in chunks(len(vectors)):
            for cell in range(cells):
                column = np.ascontiguousarray(vectors[part, cell])
                bins = np.searchsorted(self.steps[cell].astype(column.dtype), column, side="right")
                counts[cell] += np.bincount(bins, minlength=self.count + 1)
        return counts[:, : self.count]


@functools.lru_cache(maxsize=16)
def square_root(count: int) -> Floats:
    """The lower triangular square root of the matrix of ones, its columns of norm 1."""
    first = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, count)]))
    root = np.zeros((count, count))
    for i in range(count):
        root[i:, i] = first[: count - i]
    return np.asarray(root / np.sqrt((root**2).sum(axis=0)))


def whole_root(count: int, cells: int, grid: int) -> Integers:
    """The same in whole steps, so that one person's entries in all cells have norm <= ``grid``.

    The norm of each column is checked exactly.
    """
    size = grid / np.sqrt(cells)
    root = np.rint(square_root(count) * max(size - np.sqrt(count) / 2, size / 2)).astype(np.int64)
    while cells * int((root * root).sum(axis=0).max()) > grid * grid:
        over = cells * (root * root).sum(axis=0) > grid * grid
        root[:, over] -= np.sign(root[:, over])
    return np.asarray(root)


@functools.lru_cache(maxsize=16)
def cosines(count: int) -> Floats:
    """The orthonormal cosine transform."""
    rows = np.cos(np.pi / count * (np.arange(count) + 0.5)[None, :] * np.arange(count)[:, None])
    rows *= np.sqrt(2 / count)
    rows[0] /= np.sqrt(2)
    return np.asarray(rows)


@dataclass(frozen=True)
class Bands:
    """Shares of people below thresholds, with the deviation of each; a row for each cell.

    Parameters:
        thresholds: in units of a reading above the lower bound.
        below: the share below each threshold.
        deviation: of that share.
    """

    thresholds: Floats
    below: Floats
    deviation: Floats

    def quantile(self, share: float, shift: float = 0.0) -> Floats:
        """Below this lies a ``share`` of people, in each cell.

        Parameters:
            share: of people.
            shift: deviations that are added to what lies below, for the ends of an interval.
        """
        out = np.empty(len(self.below))
        for cell, (levels, below, spread) in enumerate(
            zip(self.thresholds, self.below, self.deviation, strict=True)
        ):
            curve = np.maximum.accumulate(np.clip(below + shift * spread, 0.0, 1.0))
            out[cell] = _inverse(levels, curve, share)
        return out

    @property
    def spread(self) -> Floats:
        """The standard deviation of people in each cell, by the released shares."""
        above = 1 - np.clip(self.below, 0, 1)
        levels = np.concatenate([np.zeros((len(above), 1)), self.thresholds], axis=1)
        widths, middles = np.diff(levels), (levels[:, 1:] + levels[:, :-1]) / 2
        before = np.concatenate([np.ones((len(above), 1)), above[:, :-1]], axis=1)
        height = (before + above) / 2
        first, second = (height * widths).sum(1), (2 * middles * height * widths).sum(1)
        return np.asarray(np.sqrt(np.maximum(second - first**2, 0)))


def _inverse(levels: Floats, curve: Floats, share: float) -> float:
    """Where a ``curve`` that rises reaches a ``share``."""
    at = int(np.searchsorted(curve, share, side="left"))
    if at == 0:
        return 0.0  # the first threshold is the least above zero
    if at == len(curve):
        return float(levels[-1])
    part = (share - curve[at - 1]) / (curve[at] - curve[at - 1])
    return float(levels[at - 1] + part * (levels[at] - levels[at - 1]))


def estimated(
    noisy: Floats,
    deviation: float,
    ladder: Floats,
    people: tuple[float, float],
    mean: tuple[Floats, Floats],
) -> Bands:
    """Shares below thresholds from noisy histograms.

    Parameters:
        noisy: histograms times the square root, with noise, a row for each cell.
        deviation: of the noise, in people, where one person changes a cell by norm 1.
        ladder: the thresholds, in the unit of readings.
        people: their released number, and its deviation.
        mean: the released mean of each cell above the lower bound, and its deviation.
    """
    cells, count = noisy.shape
    hours, modes = CellBasis(cells), cosines(count)
    rotated = hours.orthonormal @ noisy @ modes.T
    falls = (
        np.repeat(np.log1p(hours.frequencies.astype(np.float64))[:, None], count, axis=1),
        np.repeat(np.log1p(np.arange(count, dtype=np.float64))[None, :], cells, axis=0),
    )
    best, left = shrunk(rotated, np.full(noisy.shape, deviation**2), falls)
    smooth = hours.orthonormal.T @ best @ modes
    add_up = np.linalg.inv(square_root(count)).cumsum(axis=0)
    number, number_sd = people
    below = smooth @ add_up.T / number
    # of each cell: the variances of modes, averaged over frequencies, through both transforms
    by_cell = (hours.orthonormal**2).T @ left
    lines = add_up @ modes.T
    shares, spreads = np.empty(noisy.shape), np.empty(noisy.shape)
    for cell in range(cells):
        covariance = (lines * by_cell[cell]) @ lines.T / number**2
        covariance += np.outer(below[cell], below[cell]) * (number_sd / number) ** 2
        fixed, variance = _conditioned(
            below[cell], covariance, ladder[cell], mean[0][cell], mean[1][cell]
        )
        shares[cell] = rising(np.clip(fixed, 0, 1), 1 / variance)
        steps = np.diff(shares[cell], prepend=0.0, append=1.0)
        between = BETWEEN * (steps[1:] + steps[:-1])
        spreads[cell] = np.sqrt(variance + between**2)
    return Bands(ladder, shares, spreads)


BETWEEN = 0.04
"""How far lines between thresholds are off, in parts of the shares that lie between them."""
TOP_SD, INTEGRAL_SD = 0.01, 0.03
"""How well the last threshold is known to be above nearly all, and trapezes to give the mean."""


def _conditioned(
    below: Floats, covariance: Floats, levels: Floats, mean: float, mean_sd: float
) -> tuple[Floats, Floats]:
    """Shares below ``levels`` and their variances, given the mean and that they end near 1."""
    widths = np.diff(np.concatenate([[0.0], levels]))
    # the mean is the integral of what lies above, by trapezes
    integral = -(widths + np.concatenate([widths[1:], [0.0]])) / 2
    top = np.zeros_like(levels)
    top[-1] = 1.0
    facts = (
        (integral, mean - widths.sum(), mean_sd**2 + (INTEGRAL_SD * mean) ** 2),
        (top, 1.0, TOP_SD**2),
    )
    for line, value, variance in facts:
        reach = covariance @ line
        gain = reach / (float(line @ reach) + variance)
        below = below + gain * (value - float(line @ below))
        covariance = covariance - np.outer(gain, reach)
    return below, np.maximum(np.diag(covariance), 1e-16)
