"""What it costs to move readings in time: by unit costs, or by trying it on readings.

A price is either what unit costs say of a mechanism's expected shares (Ye et al. 2021, Section
II-D), or the squared error of a task when readings are released by way of trial.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.errors import TemprivError, require
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, least_latency
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.utility import reorder_costs
from tempriv.utility.reorder_costs import Shares, UnitCosts
from tempriv.utility.simulation import (
    Count,
    Seen,
    Task,
    TrialReadings,
    TrialResult,
    attempt,
    sources,
)

DELTA = 1e-6  # of NoisyOrder as a stream, unless said
FEW = 9  # thresholds that are tried on the data

NAMES = ("Backward", "Forward", "Threshold", "DualThreshold", "BlockShuffle", "NoisyOrder")


class CostModel(Protocol):
    """What a mechanism costs for one reading, and how that is found."""

    @property
    def unit(self) -> str:
        """What costs are measured in."""

    @property
    def seen(self) -> Seen: ...

    @property
    def costs(self) -> UnitCosts:
        """The paper's unit costs, by which its strategy goes."""

    def of(self, mechanism: Any) -> TrialResult: ...

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        """Thresholds for a mechanism of this kind, the cheapest first."""

    def once_complete(self) -> CostModel:
        """The same for somebody who reads the output when all of it is there."""


@dataclass(frozen=True)
class ExpectedCost:
    """Expected shares, each at its unit cost: exact, and nothing is drawn or read."""

    costs: UnitCosts
    seen: Seen = "stream"
    unit: str = "steps of delay"

    def of(self, mechanism: Any) -> TrialResult:
        return TrialResult(self.costs.cost(shares_of(mechanism, self.seen)), 0.0)

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        found, drops = _drops(epsilon, window)
        late = window - found if kind is Threshold else found - 1 - (window - 1) * drops
        lost = self.costs.missing + self.costs.empty
        order = np.argsort(lost * drops + self.costs.delay * late, kind="stable")
        return [int(one) for one in found[order]]

    def once_complete(self) -> ExpectedCost:
        return replace(self, seen="file")


@dataclass(frozen=True, eq=False)
class SimulatedCost:
    """The squared error of a task on readings, by releasing them; private like the readings.

    Thresholds are chosen by a few runs, and what is told comes from others.
    """

    task: Task
    readings: TrialReadings
    costs: UnitCosts
    seen: Seen = "stream"
    runs: int = 100
    seed: int = 1

    @property
    def unit(self) -> str:
        return self.task.unit

    def of(self, mechanism: Any) -> TrialResult:
        latency = getattr(mechanism, "latency", None) or 0
        length = float(self.readings.counts.mean())
        # steps before the first average have no error, so the longest wait would seem the best
        require(
            self.seen == "file" or isinstance(self.task, Count) or 2 * latency <= length,
            f"latency={latency}: is longer than half of a series ({length:.0f} steps)",
        )
        return attempt(mechanism, self.task, self.readings, self.runs, self.seed, self.seen)

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        low, high = int(_drops(epsilon, window)[0][0]), window - 1
        feasible = analysis.feasible_thresholds(epsilon, window)
        some = {round(one) for one in np.linspace(low, high, FEW)}
        if feasible:
            # any others without drops delay more, so only how many drops are worth it is open
            plain = {feasible[-1]} if kind is Threshold else {feasible[0]}
            some = plain | {one for one in some if one not in feasible}
        quick = replace(self, runs=max(2, self.runs // 4), seed=self.seed + 1)
        made = {one: _made(kind, epsilon, window, one) for one in some}
        tried = {one: quick.of(made[one]).cost for one in made if made[one] is not None}
        return sorted(tried, key=tried.__getitem__)

    def once_complete(self) -> SimulatedCost:
        return replace(self, seen="file")


def _made(kind: type, epsilon: float, window: int, threshold: int) -> Any:
    """None where its chances are too small to be drawn."""
    try:
        made = kind(epsilon=epsilon, window=window, threshold=threshold)
        return made if made.keep > 0 else None
    except TemprivError:
        return None


def _drops(epsilon: float, window: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Every threshold that can keep the budget, and which share of readings it then drops."""
    known = analysis.budgets(window)
    within = known.last <= epsilon
    found = known.thresholds[within]
    ratios = analysis.stirling_ratios(window, window - 1)[window - 1]
    stay = analysis.first_slot(ratios)[0][found]  # p_0 of each
    keep = np.exp(np.minimum(0.0, (epsilon - known.first[within]) / 2))
    return found, stay * (1 - keep)


def shares_of(mechanism: Any, seen: Seen = "stream") -> Shares:
    """What to expect of a mechanism, for those who watch or for those who read a file.

    In a file a reading is not late: what counts is how far it stands from its own time, either way.

    >>> shuffle = BlockShuffle(epsilon=1.0, block=4)
    >>> shares_of(shuffle).delay, round(shares_of(shuffle, "file").delay, 3)
    (3.0, 0.874)
    """
    if seen == "stream":
        return reorder_costs.expected(mechanism)
    if isinstance(mechanism, BlockShuffle):
        # a row that moves is as likely in any other slot: (B+1)/3 steps away on average
        return Shares(delay=(1 - mechanism.stays) * (mechanism.block + 1) / 3)
    if isinstance(mechanism, NoisyOrder):
        return Shares(delay=_displacement(replace(mechanism, latency=None, delta=None)))
    return reorder_costs.expected(mechanism)


@functools.lru_cache(maxsize=256)
def _displacement(mechanism: NoisyOrder, steps: int = 1 << 17) -> float:
    """Mean steps between a row and its slot, from one long run by a known seed."""
    found = sources(mechanism, np.array([steps]), 1, seed=1, seen="file")[0]
    return float(np.abs(found - np.arange(steps)).mean())


# the cheapest of a kind


def cheapest(
    name: str,
    epsilon: float,
    window: int,
    price: CostModel,
    latency: int | None = None,
    delta: float | None = None,
) -> Any:
    """The cheapest mechanism of this name, with every parameter settled.

    BlockShuffle takes blocks of the window, since its guarantee ends at their edges. The threshold
    of least delay, or the least extended one, is not always the cheapest: all are looked at.

    >>> worth = ExpectedCost(UnitCosts(missing=200, repeated=200, empty=200, delay=1))
    >>> usual = Threshold(epsilon=7.0, window=200)
    >>> usual.threshold, cheapest("Threshold", 7.0, 200, worth).threshold
    (56, 71)
    """
    if name == "Backward":
        return Backward(epsilon=epsilon, window=window)
    if name == "Forward":
        return Forward(epsilon=epsilon, window=window)
    if name == "BlockShuffle":
        return BlockShuffle(epsilon=epsilon, block=window)
    if name == "NoisyOrder":
        if price.seen == "file":
            return NoisyOrder(epsilon=epsilon, window=window)
        delta = DELTA if delta is None else delta
        if latency is None:
            latency = least_latency(epsilon, window, delta)
        return NoisyOrder(epsilon=epsilon, window=window, latency=latency, delta=delta)
    require(name in NAMES, f"{name}: must be one of {', '.join(NAMES)}")
    kind = Threshold if name == "Threshold" else DualThreshold
    for threshold in price.thresholds(kind, epsilon, window):
        made = _made(kind, epsilon, window, threshold)
        if made is not None:
            return made
    return kind(epsilon=epsilon, window=window)  # which says why there is none
