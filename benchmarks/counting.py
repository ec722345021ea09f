"""Running sums in a stream, beside numpy with two dot products a step."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.mechanisms.counting.matrix_factorization import square_root
from tempriv.mechanisms.counting.running_count import RunningCount
from tempriv.privacy.units import Contribution
from tempriv.sampling.keys import Key

STEPS = 1_000_000
SHORT = 20_000
PUSH = 10_000


def streamed(mechanism: Any, readings: Any) -> None:
    stream = mechanism.start(Key.from_seed(1), "series")
    for start in range(0, len(readings), PUSH):
        stream.push(readings[start : start + PUSH])


def plainly(readings: Any) -> None:
    """The definition in floating point: noise on what the root asks, and the root of the answer."""
    steps = len(readings)
    backwards = np.ascontiguousarray(square_root(steps)[::-1])
    noisy, sums = np.random.default_rng(1).normal(size=steps), np.empty(steps)
    for t in range(1, steps + 1):
        noisy[t - 1] += backwards[-t:] @ readings[:t]
        sums[t - 1] = backwards[-t:] @ noisy[:t]


def rows() -> list[Row]:
    rng = np.random.default_rng(1)
    counts, numbers = rng.integers(0, 9, STEPS).astype(np.float64), rng.uniform(0, 5, STEPS)
    people = {"bounds": (0, 1000), "unit": Contribution()}
    by_root = RunningCount(rho=0.5, horizon=STEPS, **people)
    of_numbers = RunningCount(rho=0.5, horizon=STEPS, bounds=(0, 5))
    shorter = RunningCount(rho=0.5, horizon=SHORT, **people)
    by_tree = RunningCount(epsilon=1.0, **people)
    long = best_of(
        [
            lambda: streamed(by_root, counts),
            lambda: streamed(of_numbers, numbers),
            lambda: streamed(by_tree, counts),
        ],
        rounds=3,
    )
    ours, plain = best_of(
        [lambda: streamed(shorter, counts[:SHORT]), lambda: plainly(counts[:SHORT])], rounds=3
    )
    at_length = plain * (STEPS / SHORT) ** 2
    names = (
        f"running count by square root, {STEPS:,} steps in pushes of {PUSH:,}",
        f"running sum of numbers by square root, {STEPS:,} steps",
        f"running count by tree without a horizon, {STEPS:,} steps",
    )
    found = [
        Row(
            f"running count by square root, {SHORT:,} steps",
            f"{ours:.3f} s",
            f"numpy, two dot products a step: {plain:.2f} s",
            plain / ours,
            "",
            None,
        )
    ]
    for name, seconds in zip(names, long, strict=True):
        wanted = "" if "tree" in name else "under 2 s"
        against = "" if "tree" in name else f"numpy, extrapolated by squares: {at_length:.0f} s"
        found.append(
            Row(name, f"{seconds:.2f} s", against, None, wanted, seconds < 2 if wanted else None)
        )
    return found
