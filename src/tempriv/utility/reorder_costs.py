"""What moving readings in time costs: how many are missing, repeated or late, and the price of it.

After Ye et al. 2021 (see ``order_theory``), Section II-D and Table I. All other costs supersede the
delay: a reading that does not come out has none, and one that comes out again is late by its first
time only. Shares are what to expect of a reading in the middle of a long series.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold


@dataclass(frozen=True, kw_only=True)
class UnitCosts:
    """The price of a missing reading, a repeated one, an empty slot and a time step of delay.

    >>> UnitCosts(missing=10, repeated=10, empty=10, delay=1).cost(Shares(0.1, 0.1, 0.0, 2.0))
    4.0
    """

    missing: float
    repeated: float
    empty: float
    delay: float

    def __post_init__(self) -> None:
        for name in ("missing", "repeated", "empty", "delay"):
            value = getattr(self, name)
            require(0 <= value < np.inf, f"{name}={value}: a cost must be a number >= 0")

    def cost(self, shares: Shares) -> float:
        """What one reading costs with these ``shares`` (Equations 8, 12 and 14)."""
        return (
            self.missing * shares.missing
            + self.repeated * shares.repeated
            + self.empty * shares.empty
            + self.delay * shares.delay
        )


ORDER_MECHANISMS = (Backward, Forward, Threshold, DualThreshold, BlockShuffle, NoisyOrder)
OrderMechanism = Backward | Forward | Threshold | DualThreshold | BlockShuffle | NoisyOrder


def expected(mechanism: Any) -> Shares:
    """The shares of an order mechanism, as a stream.

    Parameters:
        mechanism: one of ``ORDER_MECHANISMS``.
    """
    require(
        isinstance(mechanism, ORDER_MECHANISMS),
        f"{type(mechanism).__name__}: does not move readings in time, so has no such costs",
    )
    shares: Shares = mechanism.expected_shares()
    return shares


# tasks


def counting_costs(share: float, other_share: float, length: int, window: int) -> UnitCosts:
    """Unit costs for counting how often a value v occurred so far (Section II-D, case 1).

    ``share`` is that of v, ``other_share`` that of the value repeated in its place, ``length`` the
    number of counts that follow. The paper gives M + N = ((f(v) - f(v')) l/2)^2,
    M + E = (f(v) l/2)^2 and D = (f(v) (k-1)/2)^2. Since every missing reading comes with one
    repeat or one empty slot, only the sums matter, and all of it is put on the repeat or slot.

    Assumes that errors neither add up nor cancel from one reading to the next, and prices each step
    of delay like a whole delay of up to k-1 steps, which is too much.

    Parameters:
        share: of readings with the value that is counted.
        other_share: of readings with the value repeated in its place.
        length: how many counts follow.
        window: in time steps.

    >>> counting_costs(0.5, 0.4, length=100, window=5)
    UnitCosts(missing=0.0, repeated=24.99..., empty=625.0, delay=1.0)
    """
    for name, value in (("share", share), ("other_share", other_share)):
        require(0 <= value <= 1, f"{name}={value}: must be a share from 0 to 1")
    require(length >= 1, f"length={length}: must be a number of counts >= 1")
    analysis.require_window(window, 2)
    return UnitCosts(
        missing=0.0,
        repeated=((share - other_share) * length / 2) ** 2,
        empty=(share * length / 2) ** 2,
        delay=(share * (window - 1) / 2) ** 2,
    )


def average_costs(mean: float, mean_square: float, window: int, averaged: int) -> UnitCosts:
    """Unit costs for moving averages over ``averaged`` steps (Section II-D, case 2).

    M = N = mean square - squared mean of the readings nearby, E = 0 and D = k M / d. Assumes
    d >= k, and an empty slot that is left out of its average. The paper's own error of a delay of
    t steps is 2 t M / d, so its D is right for one delay of k/2 steps and too much for one step.

    Parameters:
        mean: of the readings nearby.
        mean_square: of the same.
        window: in time steps.
        averaged: steps of an average.

    >>> average_costs(2.0, 5.0, window=10, averaged=20)
    UnitCosts(missing=1.0, repeated=1.0, empty=0.0, delay=0.5)
    """
    analysis.require_window(window, 2)
    require(
        averaged >= window,
        f"averaged={averaged}: must be at least the window, {window}, for these costs to hold",
    )
    spread = mean_square - mean**2
    require(spread >= 0, f"mean_square={mean_square}: must be at least the square of mean={mean}")
    return UnitCosts(missing=spread, repeated=spread, empty=0.0, delay=window * spread / averaged)


# simulation


def measured(sources: npt.ArrayLike, latency: int, margin: int) -> Shares:
    """The shares of one run: ``sources[s]`` is the step of the reading in output slot s, or -1.

    Slot s is released ``latency`` steps after step s. The first and last ``margin`` readings and
    slots are left out (footnote 1 of the paper leaves out k): readings from before the first step
    show there as empty slots, and readings that come out after the last one as missing.

    Parameters:
        sources: the step of the reading in each slot, or -1.
        latency: in time steps.
        margin: how many steps are left out at both ends.

    >>> measured([0, 0, 2, -1, 3, 5, 5], latency=0, margin=1)
    Shares(missing=0.4, repeated=0.2, empty=0.2, delay=0.2)
    """
    steps_read = np.asarray(sources, dtype=np.int64)
    steps = len(steps_read)
    require(margin >= 0, f"margin={margin}: must be a number of time steps >= 0")
    require(
        steps > 2 * margin,
        f"{steps} slots: too few to leave out {margin} at both ends",
        DataError,
    )
    require(
        bool(((steps_read >= -1) & (steps_read < steps)).all()),
        f"sources: must be steps from 0 to {steps - 1}, or -1 for an empty slot",
        DataError,
    )
    counted = slice(margin, steps - margin)
    slots = np.flatnonzero(steps_read >= 0)
    times = np.bincount(steps_read[slots], minlength=steps)[counted]
    first = np.full(steps, steps)
    np.minimum.at(first, steps_read[slots], slots)
    late = (first + latency - np.arange(steps))[counted]
    total = steps - 2 * margin
    return Shares(
        missing=float((times == 0).sum() / total),
        repeated=float((times - 1)[times > 1].sum() / total),
        empty=float((steps_read[counted] < 0).sum() / total),
        delay=float(late[times > 0].sum() / total),
    )
