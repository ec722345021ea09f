"""What moving readings in time costs: how many are missing, repeated or late, and the price of it.

After Ye et al. 2021 (see ``order_theory``), Section II-D and Table I. All other costs supersede the
delay: a reading that does not come out has none, and one that comes out again is late by its first
time only. Shares are what to expect of a reading in the middle of a long series.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.mechanisms.reorder import analysis


@dataclass(frozen=True)
class Shares:
    """How much of each trouble there is for one reading: three rates, and time steps of delay."""

    missing: float = 0.0
    repeated: float = 0.0
    empty: float = 0.0
    delay: float = 0.0


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
        """What one reading costs (Equations 8, 12 and 14)."""
        return (
            self.missing * shares.missing
            + self.repeated * shares.repeated
            + self.empty * shares.empty
            + self.delay * shares.delay
        )


# mechanisms


def _unseen_and_delay(epsilon: float, window: int) -> tuple[float, float]:
    """The chance that a reading does not come out, and its delay if it does, else 0."""
    first, other = analysis.even_lags(epsilon, window)
    later = np.arange(1, window)
    passed = (1 - first) * (1 - other) ** (later - 1)  # nothing before that lag
    return float(passed[-1] * (1 - other)), float((later * other * passed).sum())


def backward(epsilon: float, window: int) -> Shares:
    """Equations 5 to 7 (with j for the misprinted j - i): for every repeat, a missing reading.

    >>> backward(1.0, 3)
    Shares(missing=0.288..., repeated=0.288..., empty=0.0, delay=0.368...)
    """
    unseen, delay = _unseen_and_delay(epsilon, window)
    return Shares(missing=unseen, repeated=unseen, delay=delay)


def forward(epsilon: float, window: int) -> Shares:
    """Equations 9 to 11: for every empty slot, a missing reading.

    >>> forward(1.0, 3)
    Shares(missing=0.288..., repeated=0.0, empty=0.288..., delay=0.368...)
    """
    unseen, delay = _unseen_and_delay(epsilon, window)
    return Shares(missing=unseen, empty=unseen, delay=delay)


def threshold(window: int, free: int, keep: float | Fraction = 1) -> Shares:
    """Equation 14, and Section IV-E for ``keep`` < 1: only readings that have no delay are dropped.

    >>> threshold(10, 7)
    Shares(missing=0.0, repeated=0.0, empty=0.0, delay=3.0)
    """
    dropped = _dropped(window, free, keep)
    return Shares(missing=dropped, empty=dropped, delay=float(window - free))


def dual(window: int, free: int, keep: float | Fraction = 1) -> Shares:
    """The delays of Threshold the other way round: p'_j = p_{k-1-j}, so c0 - 1 on average.

    The readings that are dropped are those that would have been k-1 steps late.

    >>> dual(10, 4)
    Shares(missing=0.0, repeated=0.0, empty=0.0, delay=3.0)
    """
    dropped = _dropped(window, free, keep)
    delay = free - 1 - (window - 1) * dropped
    return Shares(missing=dropped, empty=dropped, delay=float(delay))


def _dropped(window: int, free: int, keep: float | Fraction) -> float:
    analysis.require_threshold(window, free)
    require(0 <= keep <= 1, f"keep={keep}: must be a probability")
    return float(analysis.dispatch(window, free)[0]) * float(1 - keep)


def block_shuffle(block: int) -> Shares:
    """A block is released when it is complete, in the slots that follow: block - 1 steps late.

    >>> block_shuffle(10).delay
    9.0
    """
    require(block >= 2, f"block={block}: must be a number of time steps >= 2")
    return Shares(delay=float(block - 1))


def noisy_order(latency: int) -> Shares:
    """Every reading comes out once: what some are late by, others are early, but for the latency.

    >>> noisy_order(30).delay
    30.0
    """
    require(latency >= 0, f"latency={latency}: must be a number of time steps >= 0")
    return Shares(delay=float(latency))


def expected(mechanism: Any) -> Shares:
    """The shares of an order mechanism."""
    name = type(mechanism).__name__
    if name == "Backward":
        return backward(mechanism.epsilon, mechanism.window)
    if name == "Forward":
        return forward(mechanism.epsilon, mechanism.window)
    if name == "Threshold":
        return threshold(mechanism.window, mechanism.threshold, mechanism.keep)
    if name == "DualThreshold":
        return dual(mechanism.window, mechanism.threshold, mechanism.keep)
    if name == "BlockShuffle":
        return block_shuffle(mechanism.block)
    require(name == "NoisyOrder", f"{name}: does not move readings in time, so has no such costs")
    require(
        mechanism.latency is not None,
        "latency=None: the series is released when it has ended, so its delay is that of its "
        "length; give a latency",
    )
    return noisy_order(mechanism.latency)


# tasks


def counting_costs(share: float, other_share: float, length: int, window: int) -> UnitCosts:
    """Unit costs for counting how often a value v occurred so far (Section II-D, case 1).

    ``share`` is that of v, ``other_share`` that of the value repeated in its place, ``length`` the
    number of counts that follow. The paper gives M + N = ((f(v) - f(v')) l/2)^2,
    M + E = (f(v) l/2)^2 and D = (f(v) (k-1)/2)^2. Since every missing reading comes with one
    repeat or one empty slot, only the sums matter, and all of it is put on the repeat or slot.

    Assumes that errors neither add up nor cancel from one reading to the next, and prices each step
    of delay like a whole delay of up to k-1 steps, which is too much.

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

    >>> measured([0, 0, 2, -1, 3, 5, 5], latency=0, margin=1)
    Shares(missing=0.4, repeated=0.2, empty=0.2, delay=0.2)
    """
    found = np.asarray(sources, dtype=np.int64)
    steps = len(found)
    require(margin >= 0, f"margin={margin}: must be a number of time steps >= 0")
    require(
        steps > 2 * margin,
        f"{steps} slots: too few to leave out {margin} at both ends",
        DataError,
    )
    require(
        bool(((found >= -1) & (found < steps)).all()),
        f"sources: must be steps from 0 to {steps - 1}, or -1 for an empty slot",
        DataError,
    )
    counted = slice(margin, steps - margin)
    slots = np.flatnonzero(found >= 0)
    times = np.bincount(found[slots], minlength=steps)[counted]
    first = np.full(steps, steps)
    np.minimum.at(first, found[slots], slots)
    late = (first + latency - np.arange(steps))[counted]
    total = steps - 2 * margin
    return Shares(
        missing=float((times == 0).sum() / total),
        repeated=float((times - 1)[times > 1].sum() / total),
        empty=float((found[counted] < 0).sum() / total),
        delay=float(late[times > 0].sum() / total),
    )
