"""What people do with a released series: count, average, group. How wrong each comes out.

The tasks are those of Ye, Hu, Li, Meng, Zheng and Yan, "Beyond Value Perturbation: Local
Differential Privacy in the Temporal Setting" (2021), Section V-C. A released series is a masked
array with a slot for each time step: empty slots are masked, repeated ones hold a value like any
other, since that is all that somebody who counts or averages can see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def _same_steps(private: Any, released: Any) -> None:
    require(
        len(private) == len(released),
        f"{len(released)} released slots for {len(private)} readings: give one slot for each time "
        "step",
        DataError,
    )


def running_count(values: Any, value: Any) -> Integers:
    """How often the value came up so far, at every slot; empty slots hold no value.

    Parameters:
        values: an array, empty slots masked.
        value: that is counted.

    >>> running_count(np.ma.array(["up", "up", "down"], mask=[0, 1, 0]), "up").tolist()
    [1, 1, 1]
    """
    values = np.ma.asarray(values)
    hits = (values.data == value) & ~np.ma.getmaskarray(values)
    return np.asarray(np.cumsum(hits), dtype=np.int64)


def count_error(private: Any, released: Any, value: Any) -> float:
    """The mean squared error of the running count, over all time steps.

    A repeated slot is counted each time, an empty one never, and nobody makes up for either.

    Parameters:
        private: the readings.
        released: an array with a slot for each, empty ones masked.
        value: that is counted.

    >>> count_error([1, 1, 0, 1], np.ma.array([0, 1, 1, 1], mask=[1, 0, 0, 0]), 1)
    0.5
    """
    _same_steps(private, released)
    return mean_square(running_count(released, value) - running_count(private, value))


def moving_average(values: Any, length: int) -> Any:
    """The mean over the past ``length`` slots, this one included; empty slots are skipped.

    The first slots average what there is. Where all slots of a window are empty there is no mean,
    and the slot of the result is masked.

    Parameters:
        values: an array, empty slots masked.
        length: in slots.

    >>> moving_average(np.ma.array([2.0, 0.0, 4.0, 9.0], mask=[0, 1, 0, 0]), 2).tolist()
    [2.0, 2.0, 4.0, 6.5]
    """
    require(
        isinstance(length, int) and length >= 1,
        f"length={length}: must be a whole number of slots >= 1",
    )
    values = np.ma.asarray(values)
    filled = ~np.ma.getmaskarray(values)
    numbers = np.where(filled, values.data, 0).astype(np.float64)
    # about the middle of the numbers, so that differences of long sums keep their digits
    middle = float(numbers[filled].mean()) if filled.any() else 0.0
    sums, counts = (
        _over_past(part, length) for part in (np.where(filled, numbers - middle, 0.0), filled)
    )
    return np.ma.array(middle + sums / np.maximum(counts, 1), mask=counts == 0)


def _over_past(values: npt.NDArray[Any], length: int) -> Floats:
    total = np.concatenate([[0.0], np.cumsum(values)])
    end = np.arange(1, len(values) + 1)
    return np.asarray(total[end] - total[np.maximum(end - length, 0)])


def average_error(private: Any, released: Any, length: int) -> float:
    """The mean squared error of the moving average, over the time steps.

    Where a whole window is empty the last average stands in; slots before the first average are
    left out, since nothing has been released yet.

    Parameters:
        private: the readings.
        released: an array with a slot for each, empty ones masked.
        length: in slots.

    >>> average_error([2.0, 4.0, 6.0], np.ma.array([0.0, 2.0, 6.0], mask=[1, 0, 0]), 1)
    2.0
    """
    _same_steps(private, released)
    truth = moving_average(private, length).filled(np.nan)
    averages = moving_average(released, length)
    filled = ~np.ma.getmaskarray(averages)
    require(bool(filled.any()), "every slot is empty: there is nothing to average", DataError)
    first = int(np.argmax(filled))
    last = np.maximum.accumulate(np.where(filled, np.arange(len(filled)), 0))
    return mean_square((averages.data[last] - truth)[first:])


def mean_square(errors: Any) -> float:
    """The mean of the squares of ``errors``."""
    return float(np.mean(np.square(np.asarray(errors, dtype=np.float64))))


# groups of trajectories


def distances(series: Any) -> Floats:
    """Between every two of many series: the root mean square distance over the slots both hold.

    ``series`` has the shape (series, slots) or (series, slots, coordinates); a slot is empty where
    any of its coordinates is masked.

    Parameters:
        series: of shape (series, slots) or (series, slots, coordinates).

    >>> distances([[0.0, 0.0], [3.0, 4.0]]).round(3).tolist()
    [[0.0, 3.536], [3.536, 0.0]]
    """
    series = np.ma.asarray(series)
    if series.ndim == 2:
        series = series[:, :, None]
    require(series.ndim == 3, "series: give (series, slots) or (series, slots, coordinates)")
    number, slots, coordinates = series.shape
    filled: Flags = np.asarray(~np.ma.getmaskarray(series).any(axis=2))
    values = np.where(filled[:, :, None], series.data, 0.0).astype(np.float64)
    # squares of numbers far from zero would eat up their differences
    middle = values.sum(axis=(0, 1)) / max(1, int(filled.sum()))
    values = np.where(filled[:, :, None], values - middle, 0.0)
    flat = values.reshape(number, slots * coordinates)
    squares = np.square(values).sum(axis=2)
    weights = filled.astype(np.float64)
    common = weights @ weights.T if not filled.all() else np.full((number, number), float(slots))
    require(
        bool((common > 0).all()),
        "two series have no slot in common: leave out those that are nearly empty",
        DataError,
    )
    one_way = squares @ weights.T
    total = one_way + one_way.T - 2 * (flat @ flat.T)
    roots: Floats = np.sqrt(np.maximum(total, 0.0) / common)
    np.fill_diagonal(roots, 0.0)
    return roots


@dataclass(frozen=True)
class Groups:
    """A group for every item, the medoids in their order, and how far items are from them."""

    labels: Integers
    medoids: tuple[int, ...]
    distance: float
    rounds: int


def k_medoids(distances: Floats, groups: int) -> Groups:
    """Groups about central items, by Park and Jun (2009); no choice in it is random.

    It starts with the items nearest to all others, relative to how far those are from everything
    (their Step 1), and goes on moving each medoid to the middle of its group until the sum of
    distances falls no more.

    Parameters:
        distances: between every two items.
        groups: how many.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> found = k_medoids(np.abs(line[:, None] - line), 2)
    >>> found.medoids, found.labels.tolist(), found.distance
    ((1, 4), [0, 0, 0, 1, 1, 1], 4.0)
    """
    distances = np.asarray(distances, dtype=np.float64)
    number = len(distances)
    require(
        distances.shape == (number, number),
        f"distances of shape {distances.shape}: must be a square, each item against each",
    )
    require(
        isinstance(groups, int) and 1 <= groups <= number,
        f"groups={groups}: must be a whole number from 1 to the {number} items",
    )
    sums = distances.sum(axis=1)
    nearness = (distances / np.where(sums > 0, sums, 1.0)[:, None]).sum(axis=0)
    medoids = np.sort(np.argsort(nearness, kind="stable")[:groups])
    labels, total = _nearest(distances, medoids)
    rounds = 0
    while True:  # ends: there are finitely many choices, and each sum is less than the one before
        rounds += 1
        moved = medoids.copy()
        for group in range(groups):
            members = np.flatnonzero(labels == group)
            if len(members):  # a copy of another medoid keeps none
                within = distances[np.ix_(members, members)].sum(axis=0)
                moved[group] = members[int(np.argmin(within))]
        moved = np.sort(moved)
        new_labels, new_total = _nearest(distances, moved)
        if not new_total < total:
            return Groups(labels, tuple(medoids.tolist()), total, rounds)
        medoids, labels, total = moved, new_labels, new_total


def _nearest(distances: Floats, medoids: Integers) -> tuple[Integers, float]:
    reach = distances[:, medoids]
    labels = np.asarray(np.argmin(reach, axis=1), dtype=np.int64)
    return labels, float(reach[np.arange(len(reach)), labels].sum())


def mutual_information(first_groups: Any, second_groups: Any) -> float:
    """Of two groupings of the same items, normalized: 1 if they are the same, about 0 if unrelated.

    The mutual information is divided by the mean of both entropies. Unrelated groupings of n items
    into g groups come out near (g - 1)^2 / (2 n) nats before that division, not at 0.

    Parameters:
        first_groups: the group of each item.
        second_groups: the same by the other grouping.

    >>> round(mutual_information([0, 0, 1, 1], [5, 5, 3, 3]), 12)
    1.0
    >>> mutual_information([0, 0, 1, 1], [0, 1, 0, 1])
    0.0
    """
    first_groups, second_groups = np.asarray(first_groups), np.asarray(second_groups)
    require(
        first_groups.shape == second_groups.shape
        and first_groups.ndim == 1
        and len(first_groups) > 0,
        "two groupings: must have a group for each of the same items",
    )
    first = np.unique(first_groups, return_inverse=True)[1]
    second = np.unique(second_groups, return_inverse=True)[1]
    table = np.zeros((int(first.max()) + 1, int(second.max()) + 1))
    np.add.at(table, (first, second), 1.0 / len(first_groups))
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    entropy = _entropy(rows) + _entropy(columns)
    if entropy == 0:
        return 1.0  # one group each
    shared = entropy - _entropy(table.ravel())
    return float(min(1.0, max(0.0, 2 * shared / entropy)))


def _entropy(shares: Floats) -> float:
    shares = shares[shares > 0]
    return max(0.0, float(-(shares * np.log(shares)).sum()))
