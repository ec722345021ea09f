"""What order mechanisms do to readings: shares that are missing, repeated or late."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.reorder import analysis


@dataclass(frozen=True)
class Shares:
    """How much of each trouble there is for one reading.

    Parameters:
        missing: the part of readings that never come out.
        repeated: the part of rows that come out again.
        empty: the part of rows that hold nothing.
        delay: mean time steps that a reading comes out late.
    """

    missing: float = 0.0
    repeated: float = 0.0
    empty: float = 0.0
    delay: float = 0.0


# mechanisms


def _unseen_and_delay(epsilon: float, window: int) -> tuple[float, float]:
    """The chance that a reading does not come out, and its delay if it does, else 0."""
    first, other = analysis.even_lags(epsilon, window)
    later = np.arange(1, window)
    passed = (1 - first) * (1 - other) ** (later - 1)  # nothing before that lag
    return float(passed[-1] * (1 - other)), float((later * other * passed).sum())


def backward(epsilon: float, window: int) -> Shares:
    """Equations 5 to 7 (with j for the misprinted j - i): for every repeat, a missing reading.

    At an ``epsilon``, with a ``window`` of so many steps.

    >>> backward(1.0, 3)
    Shares(missing=0.288..., repeated=0.288..., empty=0.0, delay=0.368...)
    """
    unseen, delay = _unseen_and_delay(epsilon, window)
    return Shares(missing=unseen, repeated=unseen, delay=delay)


def forward(epsilon: float, window: int) -> Shares:
    """Equations 9 to 11: for every empty slot, a missing reading.

    At an ``epsilon``, with a ``window`` of so many steps.

    >>> forward(1.0, 3)
    Shares(missing=0.288..., repeated=0.0, empty=0.288..., delay=0.368...)
    """
    unseen, delay = _unseen_and_delay(epsilon, window)
    return Shares(missing=unseen, empty=unseen, delay=delay)


def threshold(window: int, free: int, keep: float | Fraction = 1) -> Shares:
    """Equation 14, and Section IV-E for ``keep`` < 1: only readings that have no delay are dropped.

    Parameters:
        window: time steps.
        free: slots to choose from.
        keep: the part of readings without delay that is not dropped.

    >>> threshold(10, 7)
    Shares(missing=0.0, repeated=0.0, empty=0.0, delay=3.0)
    """
    dropped = _dropped(window, free, keep)
    return Shares(missing=dropped, empty=dropped, delay=float(window - free))


def dual(window: int, free: int, keep: float | Fraction = 1) -> Shares:
    """The delays of Threshold the other way round: p'_j = p_{k-1-j}, so c0 - 1 on average.

    The readings that are dropped are those that would have been k-1 steps late.

    Parameters:
        window: time steps.
        free: readings in the pool.
        keep: the part of the oldest readings that is not dropped.

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
