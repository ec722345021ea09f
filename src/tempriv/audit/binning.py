"""From the outputs of many runs to numbered cells: what a guesser may look at.

A statistic puts every output into one of a few cells, so that all that follows is counting. Which
statistics there are, and where their cells end, is learned from outputs that are not counted later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tempriv.errors import extra_packages

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SINGLE_CELLS = 128  # cells of a single number
JOINT_CELLS = 4096  # cells of several numbers together
MAX_DISTINCT_VALUES = 8  # values that a number may have to be taken as it is
MAX_JOINT_NUMBERS = 6  # numbers that are cut into cells together
MAX_CODED_NUMBERS = (
    18  # numbers of few values that are taken together: (MAX_DISTINCT_VALUES + 2)^18 is below 2^63
)
MAX_SINGLE_STATISTICS = 8  # numbers that are looked at one by one, and differences of two


@dataclass(frozen=True)
class Statistic:
    """Puts every output (a row of numbers) into a cell, 0 .. cells - 1."""

    name: str
    cells: int
    cell_of: Callable[[Floats], Integers]
    ordered: bool = True  # neighboring cells are neighboring numbers

    def count(self, outputs: Floats) -> Integers:
        """How many ``outputs`` fall into each cell."""
        return np.bincount(self.cell_of(outputs), minlength=self.cells)


@dataclass(frozen=True)
class BinEdges:
    """Cells of a number: below the first edge, then from edge to edge; NaN has the last cell."""

    edges: Floats

    @property
    def cells(self) -> int:
        return len(self.edges) + 2

    def __call__(self, values: Floats) -> Integers:
        cell = np.searchsorted(self.edges, values, side="right")
        return np.where(np.isnan(values), len(self.edges) + 1, cell)

    @classmethod
    def of(cls, values: Floats, most: int) -> BinEdges:
        """Cells of about equal weight; a value that comes up often has one for itself.

        Parameters:
            values: that cells are learned from.
            most: how many cells.
        """
        distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        if len(distinct) <= most:
            return cls(distinct)
        often = distinct[counts >= len(values) / (4 * most)]
        quantiles = np.quantile(values[~np.isnan(values)], np.arange(1, most) / most)
        return cls(np.unique([*quantiles, *often, *np.nextafter(often, np.inf)]))


def log_ratio(ones: Integers, others: Integers) -> Floats:
    """How much likelier x makes each cell, half a run added to each count.

    Parameters:
        ones: counts, or outputs, for the input x.
        others: the same for the input y.
    """
    shares = [(counts + 0.5) / (counts.sum() + 0.5 * len(counts)) for counts in (ones, others)]
    return np.asarray(np.log(shares[0] / shares[1]))


def smooth_ratio(ones: Integers, others: Integers) -> Floats:
    """The same for cells of a number where a larger number never speaks less for x (or for y).

    So it is with noise whose distribution has one smooth hill. A rising (or falling) fit has far
    less error than each cell by itself, and that error adds up when many are taken together.

    Parameters:
        ones: counts, or outputs, for the input x.
        others: the same for the input y.
    """
    with extra_packages("analysis", "audits"):
        from scipy.optimize import isotonic_regression

    ratio, runs = log_ratio(ones, others), ones + others + 1.0
    fits = [isotonic_regression(ratio, weights=runs, increasing=rising).x for rising in (1, 0)]
    return np.asarray(min(fits, key=lambda fit: float(runs @ (fit - ratio) ** 2)))


def _number(name: str, take: Callable[[Floats], Floats], both: Floats) -> Statistic:
    cuts = BinEdges.of(take(both), SINGLE_CELLS)
    return Statistic(name, cuts.cells, lambda outputs: cuts(take(outputs)))


def statistics(ones: Floats, others: Floats) -> list[Statistic]:
    """What to look at, learned from outputs for x and for y: an array (runs, numbers) each.

    Parameters:
        ones: counts, or outputs, for the input x.
        others: the same for the input y.
    """
    both = np.concatenate([ones, others])
    width = both.shape[1]
    single = [_number(f"output {j}", _column(j), both) for j in range(width)]
    if width == 1:
        return single
    counted = [(statistic.count(ones), statistic.count(others)) for statistic in single]
    few = [len(np.unique(column)) <= MAX_DISTINCT_VALUES for column in both.T]
    ratios = [
        (log_ratio if are_few else smooth_ratio)(*counts)
        for are_few, counts in zip(few, counted, strict=True)
    ]
    telling = np.argsort([-float(np.abs(a - b).sum()) for a, b in counted], kind="stable")

    def evidence(outputs: Floats) -> Floats:
        """What each number of each of the ``outputs`` says by itself."""
        columns = zip(single, ratios, strict=True)
        return np.stack([ratio[statistic.cell_of(outputs)] for statistic, ratio in columns], axis=1)

    chosen = [single[j] for j in telling[:MAX_SINGLE_STATISTICS]]
    chosen += itertools.islice(_differences(both, telling.tolist()), MAX_SINGLE_STATISTICS)
    chosen.append(_number("sum of the outputs", lambda outputs: outputs.sum(axis=1), both))
    chosen.append(_number("summed log ratios", lambda outputs: evidence(outputs).sum(axis=1), both))
    chosen.append(_discriminant(ones, others, evidence))
    return [*chosen, _together(both, telling.tolist(), all(few))]


def _column(j: int) -> Callable[[Floats], Floats]:
    return lambda outputs: outputs[:, j]


def _differences(both: Floats, telling: list[int]) -> Iterator[Statistic]:
    """Noise that two numbers share falls out of their difference."""
    width = both.shape[1]
    near = ((j, k) for gap in range(1, width) for j in telling for k in (j + gap, j - gap))
    seen = set()
    for j, k in near:
        if 0 <= k < width and frozenset((j, k)) not in seen:
            seen.add(frozenset((j, k)))
            low, high = min(j, k), max(j, k)
            yield _number(f"output {high} - output {low}", _difference(low, high), both)


def _difference(low: int, high: int) -> Callable[[Floats], Floats]:
    return lambda outputs: outputs[:, high] - outputs[:, low]


def _discriminant(ones: Floats, others: Floats, evidence: Callable[[Floats], Floats]) -> Statistic:
    """Fisher's linear discriminant of the numbers and of what each says by itself."""
    both = np.concatenate([ones, others])
    low, high = np.nanquantile(both, [0.005, 0.995], axis=0)
    scale = np.where(high > low, high - low, 1.0)

    def features(outputs: Floats) -> Floats:
        """Each number of the ``outputs`` within bounds, and what it says by itself."""
        bounded = (np.clip(outputs, low, high) - low) / scale
        return np.concatenate([np.nan_to_num(bounded), evidence(outputs)], axis=1)

    inputs = [features(ones), features(others)]
    spread = np.cov(inputs[0], rowvar=False) + np.cov(inputs[1], rowvar=False)
    ridge = 1e-9 + 1e-6 * np.trace(spread) / len(spread)
    gap = inputs[0].mean(axis=0) - inputs[1].mean(axis=0)
    direction = np.linalg.solve(spread + ridge * np.eye(len(spread)), gap)
    return _number("linear discriminant", lambda outputs: features(outputs) @ direction, both)


def _together(both: Floats, telling: list[int], few: bool) -> Statistic:
    """Every combination of values, or of coarse cells of the most telling numbers, as a cell."""
    telling = telling[: MAX_CODED_NUMBERS if few else MAX_JOINT_NUMBERS]
    cells = MAX_DISTINCT_VALUES if few else int(JOINT_CELLS ** (1 / len(telling)))
    cuts = {j: BinEdges.of(both[:, j], cells) for j in telling}

    def code(outputs: Floats) -> Integers:
        """The number of each combination of cells in ``outputs``."""
        number = np.zeros(len(outputs), dtype=np.int64)
        for j in telling:
            number = number * cuts[j].cells + cuts[j](outputs[:, j])
        return number

    codes, counts = np.unique(code(both), return_counts=True)
    known = np.sort(codes[np.argsort(-counts, kind="stable")[: JOINT_CELLS - 1]])

    def cell_of(outputs: Floats) -> Integers:
        """The cell of each of the ``outputs``."""
        number = code(outputs)
        place = np.minimum(np.searchsorted(known, number), len(known) - 1)
        return np.where(known[place] == number, place, len(known))

    return Statistic("all outputs together", len(known) + 1, cell_of, ordered=False)
