"""A few sequences that stand for many: each other one is near to one of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from tempriv.errors import require

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_COMBINATIONS = 30_000  # combinations that are all looked at


def medoids(distances: Floats, weights: Floats, count: int) -> Integers:
    """The ``count`` rows for which the weighted sum of distances to the nearest is least.

    All combinations are tried where they are few; else rows are exchanged as long as it helps
    (Kaufman and Rousseeuw 1990). Of equally good ones the first is taken.

    Parameters:
        distances: between all rows.
        weights: of each row.

    >>> apart = np.abs(np.subtract.outer([0.0, 1.0, 9.0], [0.0, 1.0, 9.0]))
    >>> medoids(apart, np.array([5.0, 1.0, 2.0]), 2).tolist()
    [0, 2]
    """
    rows = len(distances)
    require(rows >= 1 and count >= 1, "medoids: there must be something to choose from")
    if count >= rows:
        return np.arange(rows)
    if math.comb(rows, count) <= MOST_COMBINATIONS:
        choices = np.array(list(itertools.combinations(range(rows), count)))
        costs = [float(weights @ distances[:, chosen].min(axis=1)) for chosen in choices]
        return np.asarray(choices[int(np.argmin(costs))], dtype=np.int64)
    return _exchanged(distances, weights, count)


def _exchanged(distances: Floats, weights: Floats, count: int) -> Integers:
    chosen: list[int] = []
    for _ in range(count):  # greedily first
        nearest = distances[:, chosen].min(axis=1) if chosen else np.full(len(distances), np.inf)
        gains = weights @ np.minimum(nearest[:, None], distances)
        gains[chosen] = np.inf
        chosen.append(int(np.argmin(gains)))
    cost = float(weights @ distances[:, chosen].min(axis=1))
    while True:
        best, exchanged, replacement = cost, -1, -1
        for i in range(count):
            remaining = [row for j, row in enumerate(chosen) if j != i]
            nearest = (
                distances[:, remaining].min(axis=1)
                if remaining
                else np.full(len(distances), np.inf)
            )
            costs = weights @ np.minimum(nearest[:, None], distances)
            costs[chosen] = np.inf
            if costs.min() < best * (1 - 1e-12):
                best, exchanged, replacement = float(costs.min()), i, int(np.argmin(costs))
        if exchanged < 0:
            return np.array(sorted(chosen), dtype=np.int64)
        chosen[exchanged], cost = replacement, best
