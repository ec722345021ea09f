"""Temporal privacy loss: what releases tell of a moment when moments are correlated.

A mechanism that spends epsilon at each step tells no more than epsilon about a reading by itself.
But if readings follow each other as a Markov chain does, earlier and later releases tell of it too.
Cao, Yoshikawa, Xiao and Xiong 2017 bound how much, given the chain: that is computed here. What
holds for some protected moments together is in ``correlation.landmarks``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from tempriv.correlation.chain import Chain, Floats, equal_width, read_chain, states_of, write_chain
from tempriv.correlation.growth import (
    Growth,
    as_budgets,
    as_epsilon,
    backward_growth,
    forward_growth,
    growths,
    shown,
)
from tempriv.correlation.landmarks import LandmarkLoss, landmark_loss
from tempriv.errors import require

__all__ = [
    "Chain",
    "LandmarkLoss",
    "TemporalLoss",
    "allocate",
    "equal_width",
    "landmark_loss",
    "loss",
    "read_chain",
    "shown",
    "states_of",
    "supremum",
    "write_chain",
]

BISECTION_STEPS = 200
MAX_SHRINKINGS = 60


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TemporalLoss:
    """Per step: what releases up to it tell of it, those from it on, and all of them.

    It is private where the chain is, and then no number is shown.
    """

    backward: Floats
    forward: Floats
    total: Floats
    private: bool

    def __repr__(self) -> str:
        if self.private:
            return "TemporalLoss(private=True)"
        return f"TemporalLoss(steps={len(self.total)}, largest={shown(self.total.max())})"


def loss(chain: Chain, budgets: npt.ArrayLike) -> TemporalLoss:
    """Backward, forward and total loss at each step, for the budgets that the steps spend.

    The total is backward + forward - epsilon_t (Equation 2 of the landmark paper, after Cao et
    al.), no less than what any
    mechanisms with these budgets tell about the reading at t, to someone who knows the chain.

    Parameters:
        chain: how readings follow each other.
        budgets: the epsilon that each step spends.

    >>> found = loss(Chain.smoothed_identity(2, 1.0), [1.0, 1.0, 1.0])
    >>> found.backward.round(4).tolist(), found.total.round(4).tolist()
    ([1.0, 1.3106, 1.3883], [1.3883, 1.6211, 1.3883])
    """
    spent = as_budgets(budgets)
    before, after = growths(chain, len(spent))
    backward = before.losses(spent)
    forward = np.ascontiguousarray(after.losses(spent[::-1].copy())[::-1])
    total = backward + forward - spent
    return TemporalLoss(backward=backward, forward=forward, total=total, private=chain.private)


Side = Literal["total", "backward", "forward"]


def supremum(chain: Chain, epsilon: float, side: Side = "total") -> float:
    """The least number that the loss stays below however long epsilon is spent at every step.

    The total, backward + forward - epsilon, or one side; infinite where there is no bound. With a
    start that is not stationary the backward side takes the worst of all reversed matrices at every
    step, so it may be more than is reached.

    Parameters:
        chain: how readings follow each other.
        epsilon: what every step spends.
        side: ``total``, ``backward`` or ``forward``.

    >>> round(supremum(Chain.smoothed_identity(2, 1.0), 1.0), 4)
    1.8218
    >>> supremum(Chain.smoothed_identity(2, 0.0), 1.0)
    inf
    """
    epsilon = as_epsilon("epsilon", epsilon)
    require(
        side in ("total", "backward", "forward"),
        f"side={side}: must be total, backward or forward",
    )
    largest = 0.0
    if side != "forward":
        largest += backward_growth(chain).worst().supremum(epsilon)
    if side != "backward":
        largest += forward_growth(chain).supremum(epsilon)
    return largest - epsilon if side == "total" else largest


def allocate(
    chain: Chain,
    target: float,
    length: int,
    method: Literal["quantified", "upper-bound"] = "quantified",
) -> Floats:
    """Budgets for so many steps that keep the total loss at every step at the target.

    Both are of Cao et al. 2017. ``"upper-bound"`` spends the same everywhere, so that the supremum
    is the target: it holds for any length. ``"quantified"`` spends more at the first and the last
    step, and the loss is the target at every step. Where the start is not stationary, the
    worst reversed matrix counts at every step, and the loss is at most the target.

    Parameters:
        chain: how readings follow each other.
        target: the loss to keep at every step.
        length: how many steps.
        method: ``quantified`` or ``upper-bound``, as above.

    >>> allocate(Chain.smoothed_identity(2, 1.0), 1.0, 4).round(5).tolist()
    [0.75769, 0.51537, 0.51537, 0.75769]
    """
    target = as_epsilon("target", target)
    require(target > 0, f"target={target}: must be above 0")
    require(length >= 1, f"length={length}: must be at least 1 step")
    require(
        method in ("quantified", "upper-bound"),
        f"method={method}: must be quantified or upper-bound",
    )
    if method == "upper-bound":
        return np.full(length, _constant(chain, target))
    if length == 1:
        return np.array([target])
    backward, forward = _ends(backward_growth(chain).worst(), forward_growth(chain), target)
    middle = max(0.0, backward + forward - target)
    budgets = np.full(length, middle)
    budgets[0], budgets[-1] = backward, forward
    shrink = 2.0**-50
    for _ in range(MAX_SHRINKINGS):  # so that rounding never leaves a loss above the target
        if loss(chain, budgets).total.max() <= target:
            break
        budgets *= 1 - shrink
        shrink *= 2
    return budgets


def _constant(chain: Chain, target: float) -> float:
    before, after = backward_growth(chain).worst(), forward_growth(chain)
    low, high = 0.0, target
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        reached = before.supremum(middle) + after.supremum(middle) - middle
        low, high = (middle, high) if reached <= target else (low, middle)
    require(
        low > 0,
        f"target={target}: no constant budget keeps below it, as the loss of every one grows "
        "without end under this chain; use the quantified method, for a series that ends",
    )
    return low


def _ends(before: Growth, after: Growth, target: float) -> tuple[float, float]:
    """The backward and forward losses b and f that stay as they are under one budget.

    b - L(b) = f - L(f) = epsilon in the middle, and b + f - epsilon = target, so f = target - L(b).
    What is sought is where b - L(b) - (f - L(f)) turns positive; it only rises with b. Where it is
    zero on a whole stretch (a chain that forgets nothing), the middle of that is taken.
    """

    def excess(b: float) -> float:
        """By how much ``b`` is above the loss that is sought."""
        lost = before.of(b)
        f = target - lost
        return (b - lost) - (f - after.of(f))

    ends = []
    for strictly in (False, True):
        low, high = 0.0, target
        for _ in range(BISECTION_STEPS):
            middle = (low + high) / 2
            difference = excess(middle)
            above = difference > 0 if strictly else difference >= 0
            low, high = (low, middle) if above else (middle, high)
        ends.append((low + high) / 2)
    b = math.fsum(ends) / 2
    return b, target - before.of(b)
