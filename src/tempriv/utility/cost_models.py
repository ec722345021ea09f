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
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, least_latency
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.utility import reorder_costs
from tempriv.utility.reorder_costs import ORDER_MECHANISMS, OrderMechanism, UnitCosts
from tempriv.utility.simulation import (
    Count,
    Seen,
    Task,
    TrialReadings,
    TrialResult,
    simulate_task,
    sources,
)

DEFAULT_DELTA = 1e-6  # of NoisyOrder as a stream, unless said
TRIED_THRESHOLDS = 9  # thresholds that are tried on the data


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

    def of(self, mechanism: Any) -> TrialResult:
        """What a ``mechanism`` costs."""

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        """Thresholds for a mechanism of this kind, the cheapest first.

        Parameters:
            kind: ``Threshold`` or ``DualThreshold``.
            epsilon: the budget.
            window: in time steps.
        """

    def once_complete(self) -> CostModel:
        """The same for somebody who reads the output when all of it is there."""


@dataclass(frozen=True)
class ExpectedCost:
    """Expected shares, each at its unit cost: exact, and nothing is drawn or read.

    Parameters:
        costs: of a missing, repeated, empty and late reading.
        seen: whether rows are read as they come out, or once all are there.
        unit: what costs are measured in.
    """

    costs: UnitCosts
    seen: Seen = "stream"
    unit: str = "steps of delay"

    def of(self, mechanism: Any) -> TrialResult:
        """What a ``mechanism`` costs."""
        return TrialResult(self.costs.cost(shares_of(mechanism, self.seen)), 0.0)

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        """Thresholds of a ``kind`` for an ``epsilon`` and a ``window``, the cheapest first."""
        thresholds, drops = _drops(epsilon, window)
        late = window - thresholds if kind is Threshold else thresholds - 1 - (window - 1) * drops
        lost = self.costs.missing + self.costs.empty
        order = np.argsort(lost * drops + self.costs.delay * late, kind="stable")
        return [int(threshold) for threshold in thresholds[order]]

    def once_complete(self) -> ExpectedCost:
        return replace(self, seen="file")


@dataclass(frozen=True, eq=False)
class SimulatedCost:
    """The squared error of a task on readings, by releasing them; private like the readings.

    Thresholds are chosen by a few runs, and costs come from others.

    Parameters:
        task: what the readings are for.
        readings: that are released.
        costs: the paper's unit costs, by which its strategy goes.
        seen: whether rows are read as they come out, or once all are there.
        runs: how many releases.
        seed: of their noise.
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
        """What a ``mechanism`` costs."""
        latency = getattr(mechanism, "latency", None) or 0
        length = float(self.readings.counts.mean())
        # steps before the first average have no error, so the longest wait would seem the best
        require(
            self.seen == "file" or isinstance(self.task, Count) or 2 * latency <= length,
            f"latency={latency}: is longer than half of a series ({length:.0f} steps)",
        )
        return simulate_task(mechanism, self.task, self.readings, self.runs, self.seed, self.seen)

    def thresholds(self, kind: type, epsilon: float, window: int) -> list[int]:
        """Thresholds of a ``kind`` for an ``epsilon`` and a ``window``, the cheapest first."""
        low, high = int(_drops(epsilon, window)[0][0]), window - 1
        feasible = analysis.feasible_thresholds(epsilon, window)
        thresholds = {round(place) for place in np.linspace(low, high, TRIED_THRESHOLDS)}
        if feasible:
            # any others without drops delay more, so only how many drops are worth it is open
            plain = {feasible[-1]} if kind is Threshold else {feasible[0]}
            thresholds = plain | (thresholds - set(feasible))
        quick = replace(self, runs=max(2, self.runs // 4), seed=self.seed + 1)
        costs = {}
        for threshold in thresholds:
            mechanism = _with_threshold(kind, epsilon, window, threshold)
            if mechanism is not None:
                costs[threshold] = quick.of(mechanism).cost
        return sorted(costs, key=costs.__getitem__)

    def once_complete(self) -> SimulatedCost:
        return replace(self, seen="file")


def _with_threshold(
    kind: type[OrderMechanism], epsilon: float, window: int, threshold: int
) -> Threshold | DualThreshold | None:
    """None where its chances are too small to be drawn."""
    try:
        assert kind in (Threshold, DualThreshold)
        mechanism = kind(epsilon=epsilon, window=window, threshold=threshold)
        return mechanism if mechanism.keep > 0 else None
    except TemprivError:
        return None


def _drops(epsilon: float, window: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Every threshold that can keep the budget, and which share of readings it then drops."""
    known = analysis.budgets(window)
    within = known.last <= epsilon
    thresholds = known.thresholds[within]
    ratios = analysis.stirling_ratios(window, window - 1)[window - 1]
    stay = analysis.first_slot(ratios)[0][thresholds]  # p_0 of each
    keep = np.exp(np.minimum(0.0, (epsilon - known.first[within]) / 2))
    return thresholds, stay * (1 - keep)


def shares_of(mechanism: Any, seen: Seen = "stream") -> Shares:
    """What to expect of a mechanism, for those who watch or for those who read a file.

    In a file a reading is not late: what counts is how far it stands from its own time, either way.

    Parameters:
        mechanism: that moves rows.
        seen: whether rows are read as they come out, or once all are there.

    >>> shuffle = BlockShuffle(epsilon=1.0, block=4)
    >>> shares_of(shuffle).delay, round(shares_of(shuffle, "file").delay, 3)
    (3.0, 0.874)
    """
    if seen == "stream":
        return reorder_costs.expected(mechanism)
    if isinstance(mechanism, BlockShuffle):
        return Shares(delay=mechanism.errors[0])
    if isinstance(mechanism, NoisyOrder):
        return Shares(delay=_displacement(replace(mechanism, latency=None, delta=None)))
    return reorder_costs.expected(mechanism)


@functools.lru_cache(maxsize=256)
def _displacement(mechanism: NoisyOrder, steps: int = 1 << 17) -> float:
    """Mean steps between a row and its slot, from one long run by a known seed."""
    steps_released = sources(mechanism, np.array([steps]), 1, seed=1, seen="file")[0]
    return float(np.abs(steps_released - np.arange(steps)).mean())


# the cheapest of a kind


def cheapest(
    kind: type[OrderMechanism],
    epsilon: float,
    window: int,
    model: CostModel,
    latency: int | None = None,
    delta: float | None = None,
) -> OrderMechanism:
    """The cheapest mechanism of a kind, with every parameter settled.

    BlockShuffle takes blocks of the window, since its guarantee ends at their edges. The threshold
    of least delay, or the least extended one, is not always the cheapest: all are looked at.

    Parameters:
        kind: one of ``ORDER_MECHANISMS``.
        epsilon: the budget.
        window: within how many time steps it is hidden when a reading was taken.
        model: what a mechanism costs.
        latency: of NoisyOrder as a stream, in time steps; the least that does by default.
        delta: of NoisyOrder as a stream; 1e-6 by default.

    >>> model = ExpectedCost(UnitCosts(missing=200, repeated=200, empty=200, delay=1))
    >>> usual = Threshold(epsilon=7.0, window=200)
    >>> usual.threshold, cheapest(Threshold, 7.0, 200, model).threshold
    (56, 71)
    """
    names = ", ".join(known.__name__ for known in ORDER_MECHANISMS)
    require(kind in ORDER_MECHANISMS, f"{kind.__name__}: must be one of {names}")
    if kind is BlockShuffle:
        return BlockShuffle(epsilon=epsilon, block=window)
    if kind is NoisyOrder and model.seen == "stream":
        delta = DEFAULT_DELTA if delta is None else delta
        if latency is None:
            latency = least_latency(epsilon, window, delta)
        return NoisyOrder(epsilon=epsilon, window=window, latency=latency, delta=delta)
    if kind in (Threshold, DualThreshold):
        for threshold in model.thresholds(kind, epsilon, window):
            mechanism = _with_threshold(kind, epsilon, window, threshold)
            if mechanism is not None:
                return mechanism
    # where there is no threshold, this says why
    return kind(epsilon=epsilon, window=window)  # type: ignore[call-arg]
