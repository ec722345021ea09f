"""Advice on hiding when: every order mechanism priced, ranked and compared.

The same epsilon does not mean the same protection: each recommendation carries its guarantee.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, TemprivError, require
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.utility.baselines import expected_error, task_of, value_baseline
from tempriv.utility.cost_models import (
    NAMES,
    CostModel,
    ExpectedCost,
    SimulatedCost,
    cheapest,
    shares_of,
)
from tempriv.utility.inputs import AdvisorInput, papers_costs, read
from tempriv.utility.order_leak import OrderLeak, find_order_leaks
from tempriv.utility.reorder_costs import Shares, UnitCosts
from tempriv.utility.simulation import Seen, Task

ROWS_TO_TRY = 2_000_000
SERIES_TO_TRY, SERIES_AT_ONCE = 1600, 200  # each has noise of its own to be set up
FEWEST_RUNS, MOST_RUNS = 8, 100


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """What is asked: a budget, a window, and what the output is for.

    ``costs`` are for task none. ``columns`` are those to be released, the first that of the task.
    Where a ``public_sample`` is given, nothing is read from ``source``.
    """

    epsilon: float
    window: int
    task: str = "none"
    costs: UnitCosts | None = None
    source: Path | None = None
    public_sample: Path | None = None
    columns: tuple[str, ...] = ()
    value: str | None = None
    average_over: int | None = None
    layout: Mapping[str, Any] = field(default_factory=dict)
    seen: Seen = "stream"
    latency: int | None = None
    delta: float | None = None
    by_papers_costs: bool = False
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        analysis.require_epsilon(self.epsilon)
        analysis.require_window(self.window)
        require(
            self.task in ("none", "count", "average"),
            f"task={self.task}: must be count, average or none",
        )
        require(
            self.seen in ("stream", "file"),
            f"seen={self.seen}: must be stream or file",
        )
        tasked = self.task != "none"
        require(
            tasked or self.costs is not None,
            "there is nothing to compute costs from: give [[costs|missing_cost]], "
            "[[costs|repeated_cost]] and [[costs|empty_cost]] (a step of delay costs 1), or a "
            "[[task]] with a table to try it on",
        )
        require(
            not tasked or self.costs is None,
            f"[[task={self.task}]] finds its own costs; give unit costs with [[task=none]]",
        )
        require(
            not tasked or self.table is not None,
            f"[[task={self.task}]]: there is nothing to compute costs from; give INPUT or "
            "[[public_sample]], or unit costs with [[task=none]]",
        )
        require(
            not tasked or len(self.columns) > 0,
            f"[[task={self.task}]] needs [[columns|value]], its column",
        )
        streamed, average = "[[seen=stream|as=stream]]", "[[task=average]]"
        for name, value, fits, companion in (
            ("value|value_of_interest", self.value, self.task == "count", "[[task=count]]"),
            ("average_over", self.average_over, self.task == "average", average),
            ("bounds", self.bounds, self.task == "average", average),
            (
                "by_papers_costs=True|unit_costs=paper",
                self.by_papers_costs or None,
                tasked,
                "[[task=count]] or average",
            ),
            (
                "latency",
                self.latency,
                self.seen == "stream",
                f"{streamed}; a file waits for its end",
            ),
            ("delta", self.delta, self.seen == "stream", f"{streamed}; a file needs none"),
        ):
            require(value is None or fits, f"[[{name}]]: goes with {companion}")
        require(
            self.latency is None or self.latency >= 2,
            f"latency={self.latency}: must be a whole number of time steps >= 2",
        )
        require(
            self.delta is None or 0 < self.delta < 1,
            f"delta={self.delta}: must be between 0 and 1, such as 1e-6",
        )
        require(
            self.average_over is None or self.average_over >= 1,
            f"average_over={self.average_over}: must be a whole number of steps >= 1",
        )

    @property
    def steps(self) -> int:
        """Of a moving average: those of the window, as in the paper, unless said."""
        return self.window if self.average_over is None else self.average_over

    @property
    def table(self) -> Path | None:
        return self.source if self.public_sample is None else self.public_sample


@dataclass(frozen=True, eq=False)
class ValueBaseline:
    """What it would be to change values instead: the mechanism, and the error of the task."""

    mechanism: Any
    error: float
    remark: str


@dataclass(frozen=True, eq=False)
class Advice:
    """Advice, and what there is to know about it. ``private`` if it must not be published."""

    question: AdviceRequest
    advice: Ranking
    price: CostModel
    private: bool
    basis: str
    costs: UnitCosts | None
    betrayals: tuple[OrderLeak, ...]
    changed: ValueBaseline | None

    @property
    def heading(self) -> str:
        if self.private:
            return "private: computed from the data, do not publish"
        return f"public: computed from {self.basis}"

    @property
    def how(self) -> str:
        """How costs were found."""
        if not isinstance(self.price, SimulatedCost):
            return "by formula"
        tried, series = self.price.readings, len(self.price.readings.counts)
        return f"tried on {len(tried):,} readings of {series} series, {self.price.runs} times"

    def costs_at(
        self, epsilons: list[float], progress: Callable[[str], None] | None = None
    ) -> dict[str, list[float]]:
        """For a picture: costs at other budgets, by fewer runs."""
        price = self.price
        if isinstance(price, SimulatedCost):
            price = replace(price, runs=max(4, price.runs // 4))
        asked = self.question
        return curves(
            epsilons,
            asked.window,
            price,
            latency=asked.latency,
            delta=asked.delta,
            progress=progress,
        )


def advise(question: AdviceRequest, progress: Callable[[str], None] | None = None) -> Advice:
    """Read what has to be read, rank the mechanisms, and look for columns that betray the order.

    >>> even = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> answer = advise(AdviceRequest(epsilon=5.0, window=10, costs=even))
    >>> answer.private, answer.advice.first.title
    (False, 'DualThreshold (4 free slots)')
    """
    table, asked = question.table, question
    found = None
    require(
        asked.public_sample is None or bool(asked.columns),
        "a public sample is read for its columns: name them by [[columns|value]]",
    )
    require(
        asked.public_sample is None
        or asked.source is None
        or asked.public_sample.resolve() != Path(asked.source).resolve(),
        "the public sample is INPUT itself: what is computed from it is private",
    )
    if table is not None and asked.columns:
        if progress is not None:
            progress("reading")
        found = read(table, asked.columns, task=asked.task, value=asked.value, **asked.layout)
        require(
            int(found.counts.max()) >= asked.window,
            f"window={asked.window}: is longer than every series of the table; take a shorter one",
            DataError,
        )
    task = None
    if asked.task != "none":
        task = task_of(asked.task, asked.steps)
    price, basis = _price(asked, task, found)
    advice = rank(
        asked.epsilon,
        asked.window,
        price,
        latency=asked.latency,
        delta=asked.delta,
        progress=progress,
    )
    betrayals: list[OrderLeak] = []
    if found is not None:
        for name, values in found.columns.items():
            if progress is not None:
                progress(f"sorting {name}")
            betrayals.append(find_order_leaks(advice.first.mechanism, name, values, found.counts))
    return Advice(
        question=replace(asked, value=found.value if found else asked.value),
        advice=advice,
        price=price,
        private=found is not None and asked.public_sample is None,
        basis=basis,
        costs=price.costs if isinstance(price, ExpectedCost) else None,
        betrayals=tuple(one for one in betrayals if one.telling),
        changed=None if task is None or found is None else _value_baseline(asked, task, found),
    )


def _price(
    asked: AdviceRequest, task: Task | None, found: AdvisorInput | None
) -> tuple[CostModel, str]:
    """How costs are found, and from what."""
    sample = "" if asked.public_sample is None else f"{asked.public_sample} alone"
    if task is None or found is None:
        assert asked.costs is not None
        step = asked.costs.delay
        unit = "steps of delay" if step == 1 else f"costs, {step:g} for a step of delay"
        return ExpectedCost(asked.costs, asked.seen, unit), sample or "unit costs alone"
    readings = found.task
    assert readings is not None
    if asked.by_papers_costs:
        costs = papers_costs(task, readings, asked.window)
        return ExpectedCost(costs, asked.seen, f"{task.unit}, by the paper's unit costs"), sample
    # by which the paper's strategy goes; it only compares repeats with empty slots
    costs = papers_costs(task, readings, min(asked.window, getattr(task, "length", asked.window)))
    readings = readings.some(SERIES_AT_ONCE)
    runs = min(ROWS_TO_TRY // len(readings), SERIES_TO_TRY // len(readings.counts))
    runs = int(np.clip(runs, FEWEST_RUNS, MOST_RUNS))
    return SimulatedCost(task, readings, costs, asked.seen, runs), sample


def _value_baseline(asked: AdviceRequest, task: Task, found: AdvisorInput) -> ValueBaseline | None:
    readings = found.task
    assert readings is not None
    if asked.task == "count":
        said = found.value or ""
        mechanism = value_baseline(asked.epsilon, categories=(said, f"not {said}"))
        remark = "randomized response, the count corrected for what it turns round"
        return ValueBaseline(mechanism, expected_error(mechanism, task, readings), remark)
    bounds, whose = asked.bounds, "of bounds"
    if bounds is None:
        there = readings.values[readings.there]
        bounds, whose = (float(there.min()), float(there.max())), "of the data, as in the paper"
        whose += "; a release needs bounds that do not come from them"
        if bounds[0] == bounds[1]:
            return None  # there is no noise for a range of nothing
    mechanism = value_baseline(asked.epsilon, bounds=bounds)
    remark = f"Laplace noise for the range {whose}"
    return ValueBaseline(mechanism, expected_error(mechanism, task, readings), remark)


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


def rank(
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
    >>> found = rank(5.0, 10, ExpectedCost(unit))
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
    offers.sort(key=_sort_key)
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


def _sort_key(offer: Recommendation) -> tuple[float, int, float]:
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
