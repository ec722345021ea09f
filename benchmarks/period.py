"""Windows read at a noisy pace, beside the paper's Algorithm 2 in numpy, a window at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from benchmarks.order import passed
from tempriv.data.series import Block
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod

READINGS = 4_000_000
SHORT = 100_000
SMALL, MIDDLE, LARGE = 8, 128, 1024
WANTED = 100
MOST_SLOWER = 5


def plainly(readings: Any, window: int) -> Any:
    """Algorithms 1 and 2 of the paper, a window at a time; of complex values the real part."""
    n = window + 2
    noise = np.random.default_rng(1)
    frequencies = 2 * np.pi / n * np.arange(n)
    points = np.arange(1, window + 1)
    released = []
    for start in range(0, len(readings) - n + 1, window):
        period = noise.laplace(1.0, 1.0)
        coefficients = np.fft.fft(readings[start : start + n])
        waves = np.exp(1j * np.outer(points * period, frequencies))
        released.append((waves @ coefficients).real / n)
    return np.concatenate(released)


def rows() -> list[Row]:
    readings = np.cumsum(np.random.default_rng(1).normal(size=READINGS))
    block = Block.of(readings, "series", 0)
    made = [
        SamplingPeriod(epsilon=1.0, window=SMALL, tau=1.0, pace="public", interpolation=kind)
        for kind in ("cosine", "hermitian", "printed")
    ] + [
        SamplingPeriod(epsilon=1.0, window=window, tau=1.0, pace="public")
        for window in (MIDDLE, LARGE)
    ]
    times = best_of(
        [lambda m=m: passed(m, block) for m in made]  # type: ignore[misc]
        + [lambda: plainly(readings[:SHORT], SMALL)],
        rounds=5,
    )
    plain = SHORT / times[-1]
    yardstick = f"numpy, a window at a time, {plain / 1e6:.2f} million/s"
    found = []
    for mechanism, seconds in zip(made[:3], times, strict=False):
        speed = READINGS / seconds
        work = f"SamplingPeriod, {mechanism.interpolation}, window {SMALL}: {READINGS:,} readings"
        wanted = f"at least {WANTED} times" if mechanism is made[0] else ""
        met = speed / plain >= WANTED if mechanism is made[0] else None
        found.append(
            Row(work, f"{speed / 1e6:.0f} million/s", yardstick, speed / plain, wanted, met)
        )
    middle, large = READINGS / times[3], READINGS / times[4]
    found.append(
        Row(
            f"SamplingPeriod, window {LARGE}, by chirp-z",
            f"{large / 1e6:.1f} million/s",
            f"window {MIDDLE}, term by term: {middle / 1e6:.1f} million/s",
            middle / large,
            f"at most {MOST_SLOWER} times slower",
            middle / large <= MOST_SLOWER,
        )
    )
    return found
