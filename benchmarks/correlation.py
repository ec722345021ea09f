"""Temporal privacy loss and the bridge bound, beside their definitions in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.correlation.chain import Chain
from tempriv.correlation.growth import backward_growth, forward_growth
from tempriv.correlation.landmarks import landmark_loss
from tempriv.correlation.loss import loss

STEPS, STATES, MOST_SECONDS = 1_000_000, 50, 5.0
PLAIN_STEPS = 5
BRIDGE_STEPS, BRIDGE_STATES, MOST_BRIDGE_SECONDS = 1_000, 10, 10.0
PLAIN_GAP = 6
WANTED = 1_000


def grown(rows: Any, a: float) -> float:
    """L(a) by its definition: for all pairs of rows at once, the best prefix by falling q / d."""
    q, d = rows[:, None, :], rows[None, :, :]
    order = np.argsort(-(q / d), axis=2)
    tops = np.cumsum(np.take_along_axis(q + 0 * d, order, axis=2), axis=2)
    bottoms = np.cumsum(np.take_along_axis(d + 0 * q, order, axis=2), axis=2)
    gain = math.expm1(a)
    return float(np.max(np.log((tops * gain + 1) / (bottoms * gain + 1))))


def plainly(matrix: Any, budgets: Any) -> float:
    """One side of the loss."""
    a = 0.0
    for budget in budgets:
        a = grown(matrix, a) + budget
    return a


def plain_bridge(matrix: Any, budgets: Any) -> float:
    """One side of one gap: the kernels of each distance, for each value at its end."""
    found = 0.0
    for y in range(len(matrix)):
        a, near = 0.0, matrix
        for budget in budgets:
            far = matrix @ near
            a = grown(matrix * near[:, y] / far[:, [y]], a + budget)
            near = far
        found = max(found, a)
    return found


def cold(chain: Chain, budgets: Any) -> None:
    """With the candidates found anew."""
    forward_growth.cache_clear()
    backward_growth.cache_clear()
    loss(chain, budgets)


def rows() -> list[Row]:
    random = np.random.default_rng(1)
    matrix = random.dirichlet(np.full(STATES, 0.5), size=STATES) + 1e-9
    matrix /= matrix.sum(axis=1, keepdims=True)
    chain, budgets = Chain(forward=matrix), random.exponential(0.1, STEPS)
    small = random.dirichlet(np.full(BRIDGE_STATES, 0.5), size=BRIDGE_STATES) + 1e-9
    small /= small.sum(axis=1, keepdims=True)
    other, spent = Chain(forward=small), random.exponential(0.1, BRIDGE_STEPS)
    scattered = np.flatnonzero(random.random(BRIDGE_STEPS) < 0.2)
    times = best_of(
        [
            lambda: cold(chain, budgets),
            lambda: plainly(matrix, budgets[:PLAIN_STEPS]),
            lambda: landmark_loss(other, spent, scattered),
            lambda: landmark_loss(other, spent, [0, BRIDGE_STEPS - 1]),
            lambda: plain_bridge(small, spent[:PLAIN_GAP]),
        ],
        rounds=3,
    )
    plain = times[1] / PLAIN_STEPS  # a step of one side
    ratio = 2 * plain * STEPS / times[0]
    found = [
        Row(
            f"temporal loss, {STEPS:,} steps, {STATES} states, candidates found anew",
            f"{times[0]:.2f} s",
            f"numpy, each step by its definition, {1000 * plain:.1f} ms a side",
            ratio,
            f"at most {MOST_SECONDS:g} s, at least {WANTED} times faster",
            times[0] <= MOST_SECONDS and ratio >= WANTED,
        )
    ]
    plain = times[4] / PLAIN_GAP
    for seconds, name, gaps in (
        (times[2], "every fifth a landmark", np.diff(scattered)),
        (times[3], "landmarks at both ends", np.array([BRIDGE_STEPS - 1])),
    ):
        # for every t, both parts of its gap, both sides: as many steps as the gap has
        steps = 2 * float(np.sum(gaps.astype(float) ** 2))
        found.append(
            Row(
                f"bridge bound, {BRIDGE_STEPS:,} steps, {BRIDGE_STATES} states, {name}",
                f"{seconds:.3f} s",
                f"numpy, each step by its definition, {1000 * plain:.2f} ms",
                steps * plain / seconds,
                f"at most {MOST_BRIDGE_SECONDS:g} s",
                seconds <= MOST_BRIDGE_SECONDS,
            )
        )
    return found
