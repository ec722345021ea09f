"""Which way to move readings in time costs least: every order mechanism priced and ranked.

The same epsilon does not mean the same protection: every offer carries the guarantee that it keeps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import TemprivError
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.utility.cost_models import NAMES, CostModel, cheapest, shares_of
from tempriv.utility.reorder_costs import Shares, UnitCosts
from tempriv.utility.simulation import Seen

# offers

STRENGTH = ("Swap", "BlockSwap", "SlotOrigin", "nothing")  # guarantees, the strongest first


@dataclass(frozen=True)
class Recommendation:
    """A mechanism, what it costs for one reading, and what it does to readings."""

    mechanism: Any
    cost: float
    standard_error: float
    shares: Shares

    @property
    def name(self) -> str:
        return type(self.mechanism).__name__

    @property
    def title(self) -> str:
        """Its name, with what is particular about it."""
        if isinstance(self.mechanism, (Threshold, DualThreshold)):
            kind = "extended, " if self.mechanism.extended else ""
            return f"{self.name} ({kind}{self.mechanism.threshold} free slots)"
        if isinstance(self.mechanism, BlockShuffle):
            return f"{self.name} (block = {self.mechanism.block})"
        if isinstance(self.mechanism, NoisyOrder):
            latency = self.mechanism.latency
            return f"{self.name} ({'whole' if latency is None else f'latency = {latency}'})"
        return self.name

    @property
    def protects(self) -> str:
        """What its guarantee is about: Swap, BlockSwap, SlotOrigin or nothing."""
        promise = self.mechanism.guarantee
        return type(promise.unit).__name__ if isinstance(promise, Guarantee) else "nothing"

    @property
    def promise(self) -> str:
        """What it truly guarantees, in a few words."""
        promise = self.mechanism.guarantee
        if not isinstance(promise, Guarantee):
            return "nothing"
        if isinstance(promise.unit, Swap):
            return f"any swap up to {promise.unit.span} steps: {promise.loss}"
        if isinstance(promise.unit, BlockSwap):
            return f"swaps inside a block of {promise.unit.block}: {promise.loss}"
        assert isinstance(promise.unit, SlotOrigin)
        return f"one row alone: {promise.loss}; no swap"

    @property
    def neighbors(self) -> Approximate:
        """What all rows together tell of two neighbors that trade places."""
        found: Approximate = self.mechanism.loss_at(1)
        return found

    def effect(self, seen: Seen) -> str:
        """What it does to readings."""
        troubles = [
            f"{100 * share:.3g} % of the {what}"
            for share, what in (
                (self.shares.missing, "readings are missing"),
                (self.shares.repeated, "rows are repeats"),
                (self.shares.empty, "rows are empty"),
            )
            if share > 0
        ]
        where = "late" if seen == "stream" else "off their time"
        lost = ", ".join(troubles) or "nothing is lost or repeated"
        return f"{lost} and readings are {self.shares.delay:.3g} steps {where} on average"


@dataclass(frozen=True)
class Ranking:
    """Offers for one budget and window, the cheapest first, and those that could not be made."""

    epsilon: float
    window: int
    seen: Seen
    unit: str
    offers: tuple[Recommendation, ...]
    left_out: tuple[tuple[str, str], ...]
    papers: Recommendation
    once_complete: Recommendation

    @property
    def first(self) -> Recommendation:
        return self.offers[0]

    @property
    def promising(self) -> Recommendation:
        """The cheapest that guarantees anything, which is the one to take."""
        return self.cheapest(*STRENGTH[:-1]) or self.first

    @property
    def why(self) -> str:
        """Why the first is first, in one sentence."""
        first, level = self.first, [one for one in self.offers[1:] if self._times(one) < 1.005]
        names = " and ".join(one.name for one in level)
        said = f"{first.name} is first" + (f", level with {names}," if level else "")
        said += f" because {first.effect(self.seen)}"
        if len(level) + 1 < len(self.offers):
            next_one = self.offers[len(level) + 1]
            times = self._times(next_one)
            more = f"{times:.3g} times as much" if math.isfinite(times) else "something"
            said += f"; {next_one.name} costs {more}, because {next_one.effect(self.seen)}"
        return said + "."

    def _times(self, other: Recommendation) -> float:
        if self.first.cost > 0:
            return other.cost / self.first.cost
        return 1.0 if other.cost == 0 else math.inf

    @property
    def as_good(self) -> tuple[Recommendation, ...]:
        """Offers that a trial cannot tell from the first: within three standard errors."""

        def noise(offer: Recommendation) -> float:
            return math.hypot(offer.standard_error, self.first.standard_error)

        others = [one for one in self.offers[1:] if noise(one) > 0]
        return tuple(one for one in others if one.cost - self.first.cost <= 3 * noise(one))

    def cheapest(self, *protecting: str) -> Recommendation | None:
        """The cheapest offer with a guarantee about one of these units."""
        return next((one for one in self.offers if one.protects in protecting), None)


def advise(
    epsilon: float,
    window: int,
    price: CostModel,
    *,
    latency: int | None = None,
    delta: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Ranking:
    """Every order mechanism at this budget and window, the cheapest first.

    ``latency`` and ``delta`` are for NoisyOrder as a stream; the least latency that does, by
    default. Of two that cost the same, the one that guarantees more comes first.

    >>> from tempriv.utility.cost_models import ExpectedCost
    >>> unit = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> found = advise(5.0, 10, ExpectedCost(unit))
    >>> [(offer.name, round(offer.cost, 1)) for offer in found.offers[:3]]
    [('DualThreshold', 3.0), ('Threshold', 3.0), ('Backward', 6.2)]
    >>> found.cheapest("Swap", "BlockSwap").title
    'BlockShuffle (block = 10)'
    """
    analysis.require_epsilon(epsilon)
    analysis.require_window(window)
    tell = progress or (lambda part: None)
    offers, left_out = [], []
    for name in NAMES:
        tell(name)
        try:
            offers.append(_offer(cheapest(name, epsilon, window, price, latency, delta), price))
        except TemprivError as refusal:
            left_out.append((name, str(refusal)))
    offers.sort(key=_rank)
    if price.seen == "stream":
        left_out.append(("NoisyOrder (whole)", "nothing comes out before the end of the series"))
    tell("the paper's strategy")
    papers = papers_strategy(epsilon, window, price.costs)
    known = [one for one in offers if one.mechanism == papers]
    return Ranking(
        epsilon=epsilon,
        window=window,
        seen=price.seen,
        unit=price.unit,
        offers=tuple(offers),
        left_out=tuple(left_out),
        papers=known[0] if known else _offer(papers, price),
        once_complete=_once_complete(offers, epsilon, window, price),
    )


def _rank(offer: Recommendation) -> tuple[float, int, float]:
    promise = offer.mechanism.guarantee
    loss = math.inf
    if isinstance(promise, Guarantee) and not isinstance(promise.loss, Concentrated):
        loss = promise.loss.epsilon
    return float(f"{offer.cost:.9g}"), STRENGTH.index(offer.protects), loss


def _offer(mechanism: Any, price: CostModel) -> Recommendation:
    found = price.of(mechanism)
    shares = shares_of(mechanism, price.seen)
    return Recommendation(mechanism, found.cost, found.standard_error, shares)


def _once_complete(
    offers: list[Recommendation], epsilon: float, window: int, price: CostModel
) -> Recommendation:
    """The cheapest if the output is read when it is complete: only waiting makes a difference."""
    if price.seen == "file":
        return offers[0]
    later = price.once_complete()
    waiting = [
        BlockShuffle(epsilon=epsilon, block=window),
        NoisyOrder(epsilon=epsilon, window=window),
    ]
    same = [one for one in offers if not hasattr(one.mechanism, "latency")]
    return min([*(_offer(one, later) for one in waiting), *same], key=lambda one: one.cost)


# the paper's own advice


def papers_strategy(epsilon: float, window: int, costs: UnitCosts) -> Any:
    """What the paper would take (Section V-B4): a baseline.

    Threshold where it derives the budget; its extension below that unless epsilon < 1 or k > 100;
    Threshold above that unless epsilon > 20 or k < 10; else Forward where a repeat costs more than
    an empty slot, or Backward. The threshold is that of the corrected Algorithm 2, so that the
    comparison is about the strategy.

    >>> even = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> papers_strategy(5.0, 10, even).threshold, papers_strategy(0.5, 10, even)
    (7, Backward(epsilon=0.5, window=10))
    """
    analysis.require_epsilon(epsilon)
    derived = analysis.budgets(window).derived
    beyond = (epsilon < derived.min() and (epsilon < 1 or window > 100)) or (
        epsilon > derived.max() and (epsilon > 20 or window < 10)
    )
    if not beyond:
        return Threshold(epsilon=epsilon, window=window)
    kind = Forward if costs.repeated > costs.empty else Backward
    return kind(epsilon=epsilon, window=window)


# against epsilon


def curves(
    epsilons: npt.ArrayLike,
    window: int,
    price: CostModel,
    *,
    latency: int | None = None,
    delta: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> dict[str, list[float]]:
    """The cost of the cheapest mechanism of each name at every epsilon; NaN where there is none.

    >>> from tempriv.utility.cost_models import ExpectedCost
    >>> unit = UnitCosts(missing=9, repeated=9, empty=9, delay=1)
    >>> [round(one, 2) for one in curves([1.0, 8.0], 10, ExpectedCost(unit))["DualThreshold"]]
    [11.99, 2.0]
    """
    tell = progress or (lambda part: None)

    def costs_of(name: str) -> Iterator[float]:
        for epsilon in np.asarray(epsilons, dtype=np.float64).tolist():
            tell(f"{name} at epsilon {epsilon:.2g}")
            try:
                yield price.of(cheapest(name, epsilon, window, price, latency, delta)).cost
            except TemprivError:
                yield math.nan

    return {name: list(costs_of(name)) for name in NAMES}
