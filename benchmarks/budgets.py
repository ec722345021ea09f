"""Budgets over a window: a long scalar stream through push, and the same loop as plain Python."""

from __future__ import annotations

from unittest import mock

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.mechanisms.w_event import base
from tempriv.mechanisms.w_event._kernels import publish_or_repeat
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.privacy.units import Contribution, Window
from tempriv.sampling.keys import Key

STEPS = 2_000_000
PLAIN_STEPS = 20_000
WANTED = 2e6


def stream() -> np.ndarray:
    """Counts that drift, with a jump now and then."""
    rng = np.random.default_rng(1)
    drift = np.cumsum(rng.normal(0, 0.3, STEPS))
    jumps = np.cumsum(np.where(rng.random(STEPS) < 0.001, rng.normal(0, 80, STEPS), 0))
    return np.rint(np.abs(drift + jumps) % 1000)


def rows() -> list[Row]:
    counts, found = stream(), []
    for window in (24, 10_000):
        for kind in (BudgetDistribution, BudgetAbsorption):
            mechanism = kind(epsilon=1.0, bounds=(0, 1000), unit=Contribution(Window(window)))

            def compiled(mechanism: BudgetDistribution = mechanism) -> None:
                mechanism.start(Key.from_seed(1)).push(counts)

            def plain(mechanism: BudgetDistribution = mechanism) -> None:
                with mock.patch.object(base, "publish_or_repeat", publish_or_repeat.py_func):
                    mechanism.start(Key.from_seed(1)).push(counts[:PLAIN_STEPS])

            fast, slow = best_of([compiled, plain], rounds=3)
            rate, plain_rate = STEPS / fast, PLAIN_STEPS / slow
            found.append(
                Row(
                    f"{kind.__name__}, windows of {window:,}: steps of a stream",
                    f"{rate / 1e6:.1f} million/s",
                    f"the same loop in plain Python, {plain_rate / 1e6:.2f} million/s",
                    rate / plain_rate,
                    "at least 2 million/s",
                    rate >= WANTED,
                )
            )
    return found
