"""Landmark schemes on many series, beside the mechanism for single values that they are over."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.data.series import Block
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import WithinDistance
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

SERIES, LENGTH = 1_000, 1_000
SHARE = 0.2  # of landmarks
WANTED = 5e6
SHORT = 2_000


def blocks() -> dict[str, tuple[Any, np.ndarray]]:
    """Of each kind of value the mechanism and readings; marks come last."""
    rng = np.random.default_rng(1)
    count = SERIES * LENGTH
    numbers, marks = rng.uniform(0, 5, count), rng.random(count) < SHARE
    return {
        "numbers": (Laplace(epsilon=1.0, bounds=(0, 5)), np.column_stack([numbers, marks])),
        "categories": (
            RandomizedResponse(epsilon=1.0, categories=("no", "yes")),
            np.column_stack([numbers > 2, marks]).astype(float),
        ),
        "places": (
            PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=(39.9, 116.4)),
            np.column_stack([39.9 + numbers / 100, 116.4 + numbers / 200, marks]),
        ),
    }


def passed(mechanism: Any, rows: np.ndarray) -> None:
    key = Key.from_seed(1)
    names = tuple(f"series {i}" for i in range(SERIES))
    block = Block(
        values=rows,
        missing=np.zeros(rows.shape, dtype=np.bool_),
        ids=names,
        counts=np.full(SERIES, LENGTH),
        starts=np.zeros(SERIES, dtype=np.int64),
    )
    perturb_block(
        mechanism, block, [StepRange(key.again("bench", name), 0, LENGTH) for name in names]
    )


def plainly(rows: np.ndarray, count: int) -> list[float]:
    """Adaptive over Laplace noise as in the paper, in floating point, a reading at a time."""
    source = np.random.default_rng(1)
    reserved, later, rate = 1 / (count + 1), count, 1.0
    released: list[float] = []
    for reading, mark in rows:
        later -= int(mark)
        if not released or source.random() < rate:
            noisy = reading + source.laplace(scale=5 / reserved)
            if released:
                moved = abs(noisy - released[-1]) > 5 / reserved
                rate = rate + (1 - rate) * 0.5 if moved else max(0.1, rate * 0.8)
            released.append(noisy)
        else:
            released.append(released[-1])
            if mark:
                reserved += reserved / (later + 1)
    return released


def rows() -> list[Row]:
    found = []
    for kind, (over, readings) in blocks().items():
        schemes = {
            "Uniform": UniformLandmarks(over=over),
            "Skip": SkipLandmarks(over=over),
            "Split": SplitLandmarks(over=over),
            "CountBound": CountBoundLandmarks(over=over, count=300),
            "Adaptive": AdaptiveLandmarks(over=over),
        }
        times = best_of(
            [lambda o=over, r=readings: passed(o, r[:, :-1])]  # type: ignore[misc]
            + [lambda s=s, r=readings: passed(s, r) for s in schemes.values()],  # type: ignore[misc]
            rounds=3,
        )
        alone, count = times[0], SERIES * LENGTH
        for name, seconds in zip(schemes, times[1:], strict=True):
            beyond = count / max(seconds - alone, 1e-9)
            found.append(
                Row(
                    f"{name}Landmarks over {kind}: timestamps beyond the noise itself",
                    f"{beyond / 1e6:.1f} million/s ({seconds:.2f} s in all)",
                    f"{kind} alone: {alone:.2f} s a million",
                    None,
                    "at least 5 million/s",
                    beyond >= WANTED,
                )
            )
    numbers = blocks()["numbers"][1][:SHORT]
    fast, slow = best_of(
        [
            lambda: passed(AdaptiveLandmarks(over=blocks()["numbers"][0]), blocks()["numbers"][1]),
            lambda: plainly(numbers, int(numbers[:, 1].sum())),
        ],
        rounds=2,
    )
    speeds = SERIES * LENGTH / fast, SHORT / slow
    found.append(
        Row(
            "AdaptiveLandmarks over numbers: timestamps",
            f"{speeds[0] / 1e6:.1f} million/s",
            f"plain Python: {speeds[1] / 1e6:.2f} million/s",
            speeds[0] / speeds[1],
            "",
            None,
        )
    )
    return found
