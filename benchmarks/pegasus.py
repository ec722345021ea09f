"""PeGaSus on one long stream, beside its definition in plain numpy, a reading at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.measure import Row, best_of
from tempriv.data.series import Block
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy.units import Contribution, Window
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

READINGS = 2_000_000
SHORT = 10_000
WANTED = 10e6


def passed(mechanism: Any, block: Block) -> None:
    """As a release passes a block: keyed randomness, noise, groups and smoothing."""
    key = Key.from_seed(1).again("bench", "series")
    perturb_block(mechanism, block, [StepRange(key, 0, len(block))])


def plainly(readings: Any, epsilon: float, theta: float) -> list[float]:
    """The paper's three parts for one event, in floating point, with means."""
    source = np.random.default_rng(1)
    noise, grouping = 0.8 * epsilon, 0.2 * epsilon
    released: list[float] = []
    group: list[float] = []
    noisy: list[float] = []
    limit = 0.0
    for reading in readings:
        own = reading + source.laplace(scale=1 / noise)
        if not group:
            limit = theta + source.laplace(scale=4 / grouping)
        else:
            more = np.array([*group, reading])
            apart = np.abs(more - more.mean()).sum() + source.laplace(scale=8 / grouping)
            if apart >= limit:
                released.append(own)
                group, noisy = [], []
                continue
        group.append(reading)
        noisy.append(own)
        released.append(float(np.mean(noisy)))
    return released


def stream() -> np.ndarray:
    """Counts that drift, with a jump now and then."""
    rng = np.random.default_rng(1)
    drift = np.cumsum(rng.normal(0, 0.3, READINGS))
    jumps = np.cumsum(np.where(rng.random(READINGS) < 0.001, rng.normal(0, 80, READINGS), 0))
    return np.rint(np.abs(drift + jumps) % 1000)


def rows() -> list[Row]:
    counts = stream()
    block = Block.of(counts, "series", 0)
    given: dict[str, Any] = {"epsilon": 1.0, "bounds": (0, 1000), "unit": Contribution()}
    mechanisms = {
        "as published": PeGaSus(**given),
        "theta 150": PeGaSus(**given, theta=150.0),
        "theta 150, median": PeGaSus(**given, theta=150.0, smoothing="median"),
        "numbers, any 8 readings": PeGaSus(epsilon=1.0, bounds=(0, 1000), unit=Window(8)),
    }
    thetas = {"as published": 25.0, "theta 150": 150.0}
    times = best_of(
        [lambda m=m: passed(m, block) for m in mechanisms.values()]  # type: ignore[misc]
        + [lambda t=t: plainly(counts[:SHORT], 1.0, t) for t in thetas.values()],  # type: ignore[misc]
        rounds=3,
    )
    plain = dict(zip(thetas, times[len(mechanisms) :], strict=True))
    found = []
    for (name, _), seconds in zip(mechanisms.items(), times, strict=False):
        speed = READINGS / seconds
        slow = SHORT / plain[name] if name in plain else None
        event = "numbers" not in name
        found.append(
            Row(
                f"PeGaSus, {name}: readings of a stream",
                f"{speed / 1e6:.1f} million/s",
                "" if slow is None else f"numpy, reading by reading: {slow / 1e6:.3f} million/s",
                None if slow is None else speed / slow,
                "at least 10 million/s" if event and "median" not in name else "",
                speed >= WANTED if event and "median" not in name else None,
            )
        )
    return found
