"""Temporal privacy loss from its definitions. Nothing here uses the package.

Sets of states are all tried, outputs are all tried, paths are all summed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def stationary(matrix: Floats) -> Floats:
    """By its equations: what flows in flows out, and all is 1."""
    n = len(matrix)
    equations = np.vstack([matrix.T - np.eye(n), np.ones(n)])
    return np.asarray(np.linalg.lstsq(equations, np.eye(n + 1)[n], rcond=None)[0])


def reversed_matrix(matrix: Floats, shares: Floats) -> Floats:
    after = shares @ matrix
    return np.array(
        [
            [shares[x] * matrix[x, y] / after[y] for x in range(len(matrix))]
            for y in range(len(matrix))
        ]
    )


def grown(rows: Floats, a: float) -> float:
    """L(a): the best of all pairs of rows and all sets of states."""
    n, gain = rows.shape[1], math.expm1(a)
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    found = 0.0
    for q, d in itertools.permutations(rows, 2):
        found = max(found, float(np.max(np.log((sets @ q * gain + 1) / (sets @ d * gain + 1)))))
    return found


def one_sided(matrices: Sequence[Floats], budgets: Sequence[float]) -> list[float]:
    """matrices[t] leads to step t; that of step 0 is not looked at."""
    found: list[float] = []
    for t, budget in enumerate(budgets):
        found.append(budget + (grown(matrices[t], found[-1]) if t else 0.0))
    return found


def totals(forward: Floats, backward: Sequence[Floats], budgets: Sequence[float]) -> Floats:
    before = one_sided(backward, budgets)
    after = one_sided([forward] * len(budgets), budgets[::-1])[::-1]
    return np.array(before) + np.array(after) - np.array(budgets)


def definition5(
    forward: Floats,
    backward: Floats,
    budgets: Sequence[float],
    protected: Sequence[int],
    closed: bool,
) -> float:
    """The sum of Equation 3 over the protected steps, in order."""
    found = 0.0
    for place, i in enumerate(protected):
        for rows, earlier in ((backward, True), (forward, False)):
            if earlier:
                edge = protected[place - 1] if place else -1
                steps = list(range(edge + 1, i))
            else:
                edge = protected[place + 1] if place + 1 < len(protected) else len(budgets)
                steps = list(range(edge - 1, i, -1))
            if closed and 0 <= edge < len(budgets):
                steps = [edge, *steps]
            a = 0.0
            for step in steps:
                a = (grown(rows, a) if a else 0.0) + budgets[step]
            found += grown(rows, a) if a else 0.0
        found += budgets[i]
    return found


def bridge(
    forward: Floats, backward: Floats, budgets: Sequence[float], protected: Sequence[int]
) -> float:
    """Positive matrices: the two bounds of each gap, and the budgets in it if they are less."""
    n = len(forward)
    ends = [
        (backward, list(range(protected[0]))),
        (forward, list(range(len(budgets) - 1, protected[-1], -1))),
    ]
    found = sum(budgets[i] for i in protected)
    for rows, steps in ends:
        a = 0.0
        for step in steps:
            a = grown(rows, a + budgets[step])
        found += a
    for first, last in itertools.pairwise(protected):
        sides = [0.0, 0.0]
        for fixed in range(n):
            ahead = back = 0.0
            for r in range(2, last - first + 1):
                near, far = (np.linalg.matrix_power(forward, k) for k in (r - 1, r))
                law = np.array(
                    [
                        [forward[x, m] * near[m, fixed] / far[x, fixed] for m in range(n)]
                        for x in range(n)
                    ]
                )
                ahead = grown(law, ahead + budgets[last - r + 1])
                law = np.array(
                    [
                        [near[fixed, m] * forward[m, y] / far[fixed, y] for m in range(n)]
                        for y in range(n)
                    ]
                )
                back = grown(law, back + budgets[first + r - 1])
            sides = [max(sides[0], ahead), max(sides[1], back)]
        found += min(sum(sides), sum(budgets[first + 1 : last]))
    return found


def joint(
    matrix: Floats, shares: Floats, budgets: Sequence[float], protected: Sequence[int]
) -> float:
    """The largest log ratio over every output, each likelihood 1 or e^epsilon, and all values.

    Paths are summed one by one, weighted by their probability and the likelihoods on them.
    """
    n, length = len(matrix), len(budgets)
    paths = np.array(list(itertools.product(range(n), repeat=length)))
    weights = shares[paths[:, 0]].copy()
    for t in range(1, length):
        weights *= matrix[paths[:, t - 1], paths[:, t]]
    places = np.ravel_multi_index(tuple(paths[:, i] for i in protected), (n,) * len(protected))
    chances = np.bincount(places, weights, n ** len(protected))
    possible = chances > 0
    found = 0.0
    raised = list(itertools.product((0, 1), repeat=n))
    for outputs in itertools.product(raised, repeat=length):
        logs = sum(budgets[t] * np.array(outputs[t])[paths[:, t]] for t in range(length))
        sums = np.bincount(places, weights * np.exp(logs), n ** len(protected))
        ratios = np.log(sums[possible] / chances[possible])
        found = max(found, float(ratios.max() - ratios.min()))
    return found
