"""Running sums from their definitions. Nothing here uses the package.

Nodes are added up one by one, factors are exact fractions, and sensitivities are found by trying
every place of the changes.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tests.reference.value import snapped

Floats = npt.NDArray[np.float64]
Rows = Sequence[Sequence[int]]
Interval = tuple[int, int]


def increments(values: Sequence[float], bounds: tuple[float, float], grid: float) -> list[int]:
    return [snapped(value, bounds, grid) for value in values]


def nearest(exact: Fraction, step: Fraction) -> int:
    """Halves go up."""
    return (exact / step + Fraction(1, 2)).__floor__()


# nodes


def nodes_of(count: int, branching: int) -> list[Interval]:
    """A prefix of so many steps as whole nodes, the longest first: (start, stop)."""
    found, start = [], 0
    size = 1
    while size * branching <= count:
        size *= branching
    while start < count:
        while size > count - start:
            size //= branching
        found.append((start, start + size))
        start += size
    return found


def epoch_nodes_of(count: int, branching: int) -> list[Interval]:
    """Totals of the epochs that are over, then the nodes of the last one."""
    found: list[Interval] = []
    start, end = 0, branching
    while end <= count:
        found.append((start, end))
        start, end = end, end * branching
    return found + [node for node in nodes_of(count, branching) if node[0] >= start]


def tree_sums(increments: Sequence[int], branching: int, noise: Sequence[int]) -> list[int]:
    """The noise of a node is what was drawn at its last step."""
    return [
        sum(
            sum(increments[start:stop]) + noise[stop - 1]
            for start, stop in nodes_of(count, branching)
        )
        for count in range(1, len(increments) + 1)
    ]


def epoch_of(count: int, branching: int) -> int:
    epoch, end = 0, branching
    while end < count:
        epoch, end = epoch + 1, end * branching
    return epoch


def is_end(count: int, branching: int) -> bool:
    return count == branching ** (epoch_of(count, branching) + 1)


def epoch_draws(length: int, branching: int) -> list[tuple[int, bool]]:
    """The draws in order: (epoch, whether for its total)."""
    met = {(epoch_of(n, branching), is_end(n, branching)) for n in range(1, length + 1)}
    return sorted(met)


def epoch_sums(increments: Sequence[int], branching: int, drawn: list[Sequence[int]]) -> list[int]:
    by_name = dict(zip(epoch_draws(len(increments), branching), drawn, strict=True))

    def noise(stop: int) -> int:
        name = epoch_of(stop, branching), is_end(stop, branching)
        return int(by_name[name][stop - 1])

    return [
        sum(
            sum(increments[start:stop]) + noise(stop)
            for start, stop in epoch_nodes_of(count, branching)
        )
        for count in range(1, len(increments) + 1)
    ]


def used_nodes(horizon: int, branching: int) -> set[Interval]:
    return {node for n in range(1, horizon + 1) for node in nodes_of(n, branching)}


def norms(matrix: Rows, window: int, steps: int) -> tuple[int, int]:
    """The most that ``steps`` changes of one in a window make: the L1 norm, and the L2 squared."""
    array = np.array(matrix, dtype=object)
    horizon = array.shape[1]
    window, steps = min(window, horizon), min(steps, horizon)
    most_l1 = most_l2 = 0
    for start in range(horizon - window + 1):
        for places in itertools.combinations(range(start, start + window), min(steps, window)):
            column = array[:, list(places)].sum(axis=1)
            most_l1 = max(most_l1, sum(abs(x) for x in column))
            most_l2 = max(most_l2, sum(x * x for x in column))
    return int(most_l1), int(most_l2)


def node_matrix(horizon: int, branching: int) -> Rows:
    return [
        [int(start <= step < stop) for step in range(horizon)]
        for start, stop in sorted(used_nodes(horizon, branching))
    ]


# the square root


def coefficients(horizon: int, bits: int) -> list[int]:
    """binomial(2k, k) / 4^k, the power series of (1 - x)^(-1/2), to the nearest part of 2^bits."""
    found, exact = [], Fraction(1)
    for k in range(1, horizon + 1):
        found.append(round(exact * 2**bits))
        exact *= Fraction(2 * k - 1, 2 * k)
    return found


def toeplitz(column: Sequence[int]) -> Rows:
    size = len(column)
    return [[column[i - j] if i >= j else 0 for j in range(size)] for i in range(size)]


def square_root_sums(
    increments: Sequence[int], column: Sequence[int], noise: Sequence[int]
) -> list[Fraction]:
    """y = C x + z, then C w = y is solved and w added up; numerators over powers of C_0."""
    count, first = len(increments), column[0]
    noisy = [
        sum(column[i - j] * increments[j] for j in range(i + 1)) + int(noise[i])
        for i in range(count)
    ]
    solved: list[int] = []  # w_i times first^(i + 1)
    for i in range(count):
        known = sum(column[k] * solved[i - k] * first ** (k - 1) for k in range(1, i + 1))
        solved.append(noisy[i] * first**i - known)
    sums, total = [], 0
    for i, value in enumerate(solved):
        total = total * first + value  # over first^(i + 1)
        sums.append(Fraction(total, first ** (i + 1)))
    return sums


# bins


def binned_coefficients(count: int, bits: int) -> list[int]:
    """1 / sqrt(pi (k + 1/4) (1 + l / 10)), l a straight line between whole logarithms of k + 1."""
    found = [2**bits]
    for k in range(1, count):
        whole = (k + 1).bit_length() - 1
        logarithm = whole + (k + 1) / 2**whole - 1
        found.append(round(2**bits / (np.pi * (k + 0.25) * (1 + 0.1 * logarithm)) ** 0.5))
    return found


def bins_of(count: int, width: int) -> list[Interval]:
    """So many steps in bins: two become one where there are width + 2 of a size; oldest first."""
    bins: list[Interval] = []
    for step in range(count):
        bins.append((step, step + 1))
        size = 1
        while sum(stop - start == size for start, stop in bins) == width + 2:
            at = next(i for i, (start, stop) in enumerate(bins) if stop - start == size)
            bins[at : at + 2] = [(bins[at][0], bins[at + 1][1])]
            size *= 2
    return bins


def binned_matrix(horizon: int, column: Sequence[int], width: int) -> Rows:
    """The strategy: all steps of a bin have the coefficient of its oldest."""
    rows = []
    for step in range(horizon):
        row = [0] * horizon
        row[step] = column[0]
        for start, stop in bins_of(step, width):
            row[start:stop] = [column[step - start]] * (stop - start)
        rows.append(row)
    return rows


def factored_sums(increments: Sequence[int], matrix: Rows, noise: Sequence[int]) -> list[Fraction]:
    """y = C x + z, then C w = y is solved and w added up; numerators over powers of C_00."""
    first, solved, total, sums = matrix[0][0], [], 0, []
    for i in range(len(increments)):
        row = matrix[i]
        noisy = sum(row[j] * increments[j] for j in range(i + 1)) + int(noise[i])
        known = sum(row[j] * solved[j] * first ** (i - 1 - j) for j in range(i))
        solved.append(noisy * first**i - known)
        total = total * first + solved[i]
        sums.append(Fraction(total, first ** (i + 1)))
    return sums


def rounded(sums: Sequence[Fraction | int], grid: float, step: float) -> Floats:
    """Multiples of step grid steps, as a column of values."""
    unit = Fraction(step)
    return np.array([[float(nearest(Fraction(s), unit) * unit * Fraction(grid))] for s in sums])
