"""Order mechanisms on one long series, beside the paper's Algorithm 1 in plain Python."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.data.series import Block
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

READINGS = 5_000_000
SHORT = 100_000
SMALL, LARGE = 20, 200
WANTED = 150


def passed(mechanism: Any, block: Block) -> None:
    """As a release passes a block: keyed randomness, deciding and carrying."""
    key = Key.from_seed(1).again("bench", "series")
    perturb_block(mechanism, block, [StepRange(key, 0, len(block))])


def plainly(readings: Any, window: int, threshold: int) -> Any:
    """Algorithm 1 of Ye et al. 2021, line by line."""
    taken = [False] * (len(readings) + window)
    released: list[Any] = [None] * (len(readings) + window)
    for i, reading in enumerate(readings):
        free = [j for j in range(i, i + window) if not taken[j]]
        slot = random.choice(free) if len(free) > threshold or taken[i] else i
        released[slot] = reading
        taken[slot] = True
    return released


def rows() -> list[Row]:
    readings = np.random.default_rng(1).normal(size=READINGS)
    short, block = readings[:SHORT].tolist(), Block.of(readings, "series", 0)
    mechanisms = [
        Threshold(epsilon=6.0, window=SMALL),
        DualThreshold(epsilon=6.0, window=SMALL),
        Backward(epsilon=6.0, window=SMALL),
        Forward(epsilon=6.0, window=SMALL),
        Threshold(epsilon=10.0, window=LARGE),
        Backward(epsilon=10.0, window=LARGE),
        Forward(epsilon=10.0, window=LARGE),
    ]
    threshold = mechanisms[0].threshold
    times = best_of(
        [lambda m=m: passed(m, block) for m in mechanisms]  # type: ignore[misc]
        + [lambda: plainly(short, SMALL, threshold)],
        rounds=5,
    )
    plain = SHORT / times[-1]
    found = []
    speeds = {}
    for mechanism, seconds in zip(mechanisms, times, strict=False):
        name, window = type(mechanism).__name__, mechanism.window
        speed = speeds[name, window] = READINGS / seconds
        work = f"{name}, window {window}: {READINGS:,} readings moved"
        ours = f"{speed / 1e6:.0f} million/s"
        if window == SMALL:
            yardstick = f"Algorithm 1 in plain Python, {plain / 1e6:.2f} million/s"
            ratio = speed / plain
            found.append(
                Row(work, ours, yardstick, ratio, f"at least {WANTED} times", ratio >= WANTED)
            )
        else:
            ratio = speeds[name, SMALL] / speed
            yardstick = f"window {SMALL}: {speeds[name, SMALL] / 1e6:.0f} million/s"
            found.append(Row(work, ours, yardstick, ratio, "at most 3 times slower", ratio <= 3))
    analysis.dispatch.cache_clear()
    begun = time.perf_counter()
    analysis.dispatch(1000, 200)
    seconds = time.perf_counter() - begun
    found.append(
        Row(
            "Threshold's probabilities, window 1,000",
            f"{seconds * 1000:.0f} ms",
            "",
            None,
            "under 0.3 s",
            seconds < 0.3,
        )
    )
    return found
