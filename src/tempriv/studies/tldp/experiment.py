"""What every part of the study on release orders shares: mechanisms, runs of them, and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.base import Mechanism
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, least_latency
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.utility.simulation import perturb_series

Integers = npt.NDArray[np.int64]

THEIRS = ("Backward", "Forward", "Threshold")
OURS = ("DualThreshold", "BlockShuffle", "NoisyOrder")
DELTA = 1e-6  # of NoisyOrder as a stream


@dataclass(frozen=True, kw_only=True)
class TldpSize:
    """How much of everything: steps of a run, budgets of Figure 6, windows of Figure 5(d), runs.

    ``segments`` of taxis are grouped ``groupings`` times; ``attacked`` steps are sorted back.
    """

    steps: int
    budgets: tuple[float, ...]
    windows: tuple[int, ...]
    runs: int
    segments: int
    groupings: int
    attacked: int


QUICK = TldpSize(
    steps=200_000,
    budgets=tuple(float(epsilon) for epsilon in range(1, 17)),
    windows=(10, 20, 40, 80, 160),
    runs=20,
    segments=1000,
    groupings=1,
    attacked=1000,
)
FULL = TldpSize(
    steps=1_000_000,
    budgets=tuple(half / 2 for half in range(2, 33)),
    windows=(10, 20, 40, 80, 120, 160),
    runs=100,
    segments=3000,
    groupings=3,
    attacked=4000,
)


def mechanisms(epsilon: float, window: int, *, whole: bool = False) -> dict[str, Any]:
    """The paper's three and ours for the same epsilon; ``whole`` if series are released at the end.

    The same epsilon is not the same guarantee: the paper's three and DualThreshold keep it (halved)
    for the odds of one slot alone, BlockShuffle for swaps inside its blocks, NoisyOrder for all.

    Parameters:
        epsilon: the budget.
        window: in time steps.
        whole: whether series are released at their end.
    """
    latency = None if whole else least_latency(epsilon, window, DELTA)
    return {
        "Backward": Backward(epsilon=epsilon, window=window),
        "Forward": Forward(epsilon=epsilon, window=window),
        "Threshold": Threshold(epsilon=epsilon, window=window),
        "DualThreshold": DualThreshold(epsilon=epsilon, window=window),
        "BlockShuffle": BlockShuffle(epsilon=epsilon, block=window),
        "NoisyOrder": NoisyOrder(
            epsilon=epsilon, window=window, latency=latency, delta=None if whole else DELTA
        ),
    }


def latency_of(mechanism: Mechanism) -> int:
    """How many steps after a slot's own time it comes out; none, for those that never look ahead.

    A series that is released whole has no meaning of time left, so nothing is late.

    Parameters:
        mechanism: that moves rows.
    """
    return int(getattr(mechanism, "latency", None) or 0)


def release(mechanism: Mechanism, values: npt.NDArray[Any], seed: int) -> Any:
    """Many series through a mechanism, in the same shape; empty slots are masked.

    Parameters:
        mechanism: what releases the series.
        values: of shape (series, steps) or (series, steps, columns).
        seed: of the noise.
    """
    number, steps = values.shape[:2]
    rows, counts = values.reshape(number * steps, -1), np.full(number, steps, dtype=np.int64)
    return perturb_series(mechanism, rows, counts, seed, "study").reshape(values.shape)


def sources(mechanism: Mechanism, number: int, steps: int, seed: int) -> Integers:
    """For each slot the step of the row in it, or -1: which row that is depends on no value.

    Parameters:
        mechanism: what releases the series.
        number: how many series.
        steps: of each.
        seed: of the noise.
    """
    rows = np.broadcast_to(np.arange(steps), (number, steps))
    return np.asarray(release(mechanism, rows, seed).filled(-1), dtype=np.int64)


def as_it_comes(slots: Integers, latency: int) -> Integers:
    """The slots as somebody has them who watches: none before the first is out.

    Parameters:
        slots: the step of the row in each slot, a row for each run.
        latency: in steps.
    """
    if not latency:
        return slots
    waiting = np.full((len(slots), min(latency, slots.shape[1])), -1, dtype=np.int64)
    return np.concatenate([waiting, slots], axis=1)[:, : slots.shape[1]]


def in_slots(values: npt.NDArray[Any], slots: Integers) -> Iterator[Any]:
    """The released series of each run: the values at the sources, gaps masked.

    Parameters:
        values: one for each step.
        slots: the step of the row in each slot, a row for each run.
    """
    for run in slots:
        gone = run < 0
        moved = values[np.where(gone, 0, run)]
        mask = gone if moved.ndim == 1 else np.repeat(gone[:, None], moved.shape[1], axis=1)
        yield np.ma.array(moved, mask=mask)
