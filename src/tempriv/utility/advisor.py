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
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Approximate, Concentrated, Guarantee
from tempriv.privacy.units import Unit
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tempriv.utility.baselines import expected_error, task_of, value_baseline
from tempriv.utility.cost_models import (
    CostModel,
    ExpectedCost,
    SimulatedCost,
    cheapest,
    shares_of,
)
from tempriv.utility.inputs import AdvisorInput, papers_costs, read
from tempriv.utility.order_leak import OrderLeak, find_order_leaks
from tempriv.utility.reorder_costs import ORDER_MECHANISMS, OrderMechanism, UnitCosts
from tempriv.utility.simulation import Seen, Task

Progress = Callable[[str], None]

MAX_ROW_RUNS = 2_000_000  # rows times runs of a trial
MAX_SERIES, MAX_SERIES_RUNS = 200, 1600  # each series has noise of its own to be set up
MIN_RUNS, MAX_RUNS = 8, 100


@dataclass(frozen=True, kw_only=True)
class AdviceRequest:
    """What is asked: a budget, a window, and what the output is for.

    Parameters:
        epsilon: the budget.
        window: within how many time steps it is hidden when a reading was taken.
        task: ``count`` (running counts), ``average`` (moving averages), or ``none``.
        costs: of missing, repeated, empty and late readings, for task ``none``.
        source: the table that is to be released.
        public_sample: a public table that looks alike; nothing is read from ``source`` then.
        columns: those to be released, the first that of the task.
        value: what is counted; the most frequent value by default.
        average_over: steps of a moving average; those of the window by default, as in the paper.
        layout: how the table is read: ``time``, ``series``, ``grid``, ``step``, ``gaps`` and
            ``duplicates``, as for a release.
        seen: whether rows are read as they come out (``stream``) or once all are there (``file``).
        latency: of NoisyOrder as a stream, in time steps; the least that does by default.
        delta: of NoisyOrder as a stream; 1e-6 by default.
        by_papers_costs: price a task by the paper's unit costs instead of trying it on the data.
        bounds: of the values, for the comparison with Laplace noise.

    Raises:
        UsageError: if these do not go together.
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
        """Of a moving average: those of the window, as in the paper, unless given."""
        return self.window if self.average_over is None else self.average_over

    @property
    def table(self) -> Path | None:
        """The table to read: the public sample, if there is one."""
        return self.source if self.public_sample is None else self.public_sample


@dataclass(frozen=True, eq=False)
class ValueAlternative:
    """What it would be to change values instead of times.

    Attributes:
        mechanism: for values, with a budget that hides a swap.
        error: of the task, squared.
        remark: what it is, in a few words.
    """

    mechanism: RandomizedResponse | Laplace
    error: float
    remark: str


@dataclass(frozen=True, eq=False)
class Advice:
    """The ranking, and what there is to know about it.

    Attributes:
        request: what was asked, with the value that was counted.
        ranking: the mechanisms, the cheapest first.
        cost_model: how costs were found.
        private: whether the advice must not be published.
        basis: what public advice was computed from.
        costs: the unit costs, where they decide.
        order_leaks: columns whose values give the order away.
        alternative: changing values instead, for a task.
    """

    request: AdviceRequest
    ranking: Ranking
    cost_model: CostModel
    private: bool
    basis: str
    costs: UnitCosts | None
    order_leaks: tuple[OrderLeak, ...]
    alternative: ValueAlternative | None

    @property
    def heading(self) -> str:
        """Whether the advice may be published, in a line."""
        if self.private:
            return "private: computed from the data, do not publish"
        return f"public: computed from {self.basis}"

    @property
    def how(self) -> str:
        """How costs were found."""
        model = self.cost_model
        if not isinstance(model, SimulatedCost):
            return "by formula"
        series = len(model.readings.counts)
        return f"tried on {len(model.readings):,} readings of {series} series, {model.runs} times"

    def costs_at(
        self, epsilons: list[float], progress: Progress = lambda part: None
    ) -> dict[type[OrderMechanism], list[float]]:
        """Costs at other budgets, by fewer runs; for a picture.

        Parameters:
            epsilons: the budgets.
            progress: is told which mechanism is looked at.
        """
        model = self.cost_model
        if isinstance(model, SimulatedCost):
            model = replace(model, runs=max(4, model.runs // 4))
        request = self.request
        return curves(
            epsilons,
            request.window,
            model,
            latency=request.latency,
            delta=request.delta,
            progress=progress,
        )


def advise(request: AdviceRequest, progress: Progress = lambda part: None) -> Advice:
    """Read what has to be read, rank the mechanisms, and look for columns that betray the order.

    Parameters:
        request: what is asked.
        progress: is told what is being done.

    >>> even = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> advice = advise(AdviceRequest(epsilon=5.0, window=10, costs=even))
    >>> advice.private, advice.ranking.first.title
    (False, 'DualThreshold (4 free slots)')
    """
    table = None
    sample = request.public_sample
    require(
        sample is None or bool(request.columns),
        "a public sample is read for its columns: name them by [[columns|value]]",
    )
    require(
        sample is None
        or request.source is None
        or sample.resolve() != Path(request.source).resolve(),
        "the public sample is INPUT itself: what is computed from it is private",
    )
    if request.table is not None and request.columns:
        progress("reading")
        table = read(
            request.table,
            request.columns,
            task=request.task,
            value=request.value,
            **request.layout,
        )
        require(
            int(table.counts.max()) >= request.window,
            f"window={request.window}: is longer than every series of the table; take a shorter "
            "one",
            DataError,
        )
    task = None if request.task == "none" else task_of(request.task, request.steps)
    model, basis = _cost_model(request, task, table)
    ranking = rank(
        request.epsilon,
        request.window,
        model,
        latency=request.latency,
        delta=request.delta,
        progress=progress,
    )
    leaks: list[OrderLeak] = []
    for name, values in ({} if table is None else table.columns).items():
        assert table is not None
        progress(f"sorting {name}")
        leaks.append(find_order_leaks(ranking.first.mechanism, name, values, table.counts))
    return Advice(
        request=replace(request, value=table.value if table else request.value),
        ranking=ranking,
        cost_model=model,
        private=table is not None and sample is None,
        basis=basis,
        costs=model.costs if isinstance(model, ExpectedCost) else None,
        order_leaks=tuple(leak for leak in leaks if leak.is_telling),
        alternative=None if task is None or table is None else _alternative(request, task, table),
    )


def _cost_model(
    request: AdviceRequest, task: Task | None, table: AdvisorInput | None
) -> tuple[CostModel, str]:
    """How costs are found, and from what."""
    sample = "" if request.public_sample is None else f"{request.public_sample} alone"
    if task is None or table is None:
        assert request.costs is not None
        step = request.costs.delay
        unit = "steps of delay" if step == 1 else f"costs, {step:g} for a step of delay"
        return ExpectedCost(request.costs, request.seen, unit), sample or "unit costs alone"
    readings = table.task
    assert readings is not None
    if request.by_papers_costs:
        costs = papers_costs(task, readings, request.window)
        return ExpectedCost(costs, request.seen, f"{task.unit}, by the paper's unit costs"), sample
    # by which the paper's strategy goes; it only compares repeats with empty slots
    length = min(request.window, getattr(task, "length", request.window))
    costs = papers_costs(task, readings, length)
    readings = readings.some(MAX_SERIES)
    runs = min(MAX_ROW_RUNS // len(readings), MAX_SERIES_RUNS // len(readings.counts))
    runs = int(np.clip(runs, MIN_RUNS, MAX_RUNS))
    return SimulatedCost(task, readings, costs, request.seen, runs), sample


def _alternative(
    request: AdviceRequest, task: Task, table: AdvisorInput
) -> ValueAlternative | None:
    readings = table.task
    assert readings is not None
    if request.task == "count":
        value = table.value or ""
        mechanism = value_baseline(request.epsilon, categories=(value, f"not {value}"))
        remark = "randomized response, the count corrected for what it turns round"
        return ValueAlternative(mechanism, expected_error(mechanism, task, readings), remark)
    bounds, whose = request.bounds, "of bounds"
    if bounds is None:
        values = readings.values[readings.there]
        bounds, whose = (float(values.min()), float(values.max())), "of the data, as in the paper"
        whose += "; a release needs bounds that do not come from them"
        if bounds[0] == bounds[1]:
            return None  # there is no noise for a range of nothing
    mechanism = value_baseline(request.epsilon, bounds=bounds)
    remark = f"Laplace noise for the range {whose}"
    return ValueAlternative(mechanism, expected_error(mechanism, task, readings), remark)


# recommendations

UNITS = (Swap, BlockSwap, SlotOrigin)  # what is protected, the strongest guarantee first


@dataclass(frozen=True)
class Recommendation:
    """A mechanism, what it costs for one reading, and what it does to readings.

    Attributes:
        mechanism: with every parameter settled.
        cost: of one reading.
        standard_error: of the cost; 0 where it is exact.
        shares: how many readings are missing or repeated, and how late they are.
    """

    mechanism: OrderMechanism
    cost: float
    standard_error: float
    shares: Shares

    @property
    def name(self) -> str:
        """The name of its class."""
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
    def unit(self) -> Unit | None:
        """What its guarantee is about; None if it guarantees nothing."""
        guarantee = self.mechanism.guarantee
        return guarantee.unit if isinstance(guarantee, Guarantee) else None

    @property
    def protects(self) -> str:
        """The name of its unit, or nothing."""
        return "nothing" if self.unit is None else type(self.unit).__name__

    @property
    def guarantee(self) -> str:
        """What it truly guarantees, in a few words."""
        guarantee = self.mechanism.guarantee
        if not isinstance(guarantee, Guarantee):
            return "nothing"
        if isinstance(guarantee.unit, Swap):
            return f"any swap up to {guarantee.unit.span} steps: {guarantee.loss}"
        if isinstance(guarantee.unit, BlockSwap):
            return f"swaps inside a block of {guarantee.unit.block}: {guarantee.loss}"
        assert isinstance(guarantee.unit, SlotOrigin)
        return f"one row alone: {guarantee.loss}; no swap"

    @property
    def neighbors(self) -> Approximate:
        """What all rows together tell of two neighbors that trade places."""
        return self.mechanism.loss_at(1)

    def effect(self, seen: Seen) -> str:
        """What it does to readings, in a sentence.

        Parameters:
            seen: whether rows are read as they come out, or once all are there.
        """
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
    """Recommendations for one budget and window.

    Attributes:
        epsilon: the budget.
        window: in time steps.
        seen: whether rows are read as they come out, or once all are there.
        unit: what costs are measured in.
        recommendations: the cheapest first.
        left_out: names of those that could not be recommended, each with the reason.
        papers: what the paper's own strategy would take.
        once_complete: the cheapest if the output is read when it is complete.
    """

    epsilon: float
    window: int
    seen: Seen
    unit: str
    recommendations: tuple[Recommendation, ...]
    left_out: tuple[tuple[str, str], ...]
    papers: Recommendation
    once_complete: Recommendation

    @property
    def first(self) -> Recommendation:
        """The cheapest."""
        return self.recommendations[0]

    @property
    def cheapest_guaranteed(self) -> Recommendation:
        """The cheapest that guarantees anything, which is the one to take."""
        return self.cheapest(*UNITS) or self.first

    @property
    def why(self) -> str:
        """Why the first is first, in one sentence."""
        first, others = self.first, self.recommendations[1:]
        level = [other for other in others if self._times(other) < 1.005]
        names = " and ".join(other.name for other in level)
        sentence = f"{first.name} is first" + (f", level with {names}," if level else "")
        sentence += f" because {first.effect(self.seen)}"
        if len(level) < len(others):
            following = others[len(level)]
            times = self._times(following)
            more = f"{times:.3g} times as much" if math.isfinite(times) else "something"
            sentence += f"; {following.name} costs {more}, because {following.effect(self.seen)}"
        return sentence + "."

    def _times(self, other: Recommendation) -> float:
        if self.first.cost > 0:
            return other.cost / self.first.cost
        return 1.0 if other.cost == 0 else math.inf

    @property
    def as_good(self) -> tuple[Recommendation, ...]:
        """Those that a trial cannot tell from the first: within three standard errors."""

        def noise(other: Recommendation) -> float:
            """The standard error of the difference to the ``other``."""
            return math.hypot(other.standard_error, self.first.standard_error)

        others = [other for other in self.recommendations[1:] if noise(other) > 0]
        return tuple(other for other in others if other.cost - self.first.cost <= 3 * noise(other))

    def cheapest(self, *units: type[Unit]) -> Recommendation | None:
        """The cheapest with a guarantee about one of these ``units``."""
        fits = (
            recommendation
            for recommendation in self.recommendations
            if isinstance(recommendation.unit, units)
        )
        return next(fits, None)


def rank(
    epsilon: float,
    window: int,
    model: CostModel,
    *,
    latency: int | None = None,
    delta: float | None = None,
    progress: Progress = lambda part: None,
) -> Ranking:
    """Every order mechanism at this budget and window, the cheapest first.

    Of two that cost the same, the one that guarantees more comes first.

    Parameters:
        epsilon: the budget.
        window: within how many time steps it is hidden when a reading was taken.
        model: what a mechanism costs.
        latency: of NoisyOrder as a stream, in time steps; the least that does by default.
        delta: of NoisyOrder as a stream; 1e-6 by default.
        progress: is told which mechanism is looked at.

    >>> from tempriv.utility.cost_models import ExpectedCost
    >>> unit = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> ranking = rank(5.0, 10, ExpectedCost(unit))
    >>> [(one.name, round(one.cost, 1)) for one in ranking.recommendations[:3]]
    [('DualThreshold', 3.0), ('Threshold', 3.0), ('Backward', 6.2)]
    >>> ranking.cheapest(Swap, BlockSwap).title
    'BlockShuffle (block = 10)'
    """
    analysis.require_epsilon(epsilon)
    analysis.require_window(window)
    recommendations, left_out = [], []
    for kind in ORDER_MECHANISMS:
        progress(kind.__name__)
        try:
            mechanism = cheapest(kind, epsilon, window, model, latency, delta)
            recommendations.append(_recommend(mechanism, model))
        except TemprivError as refusal:
            left_out.append((kind.__name__, str(refusal)))
    recommendations.sort(key=_sort_key)
    if model.seen == "stream":
        whole = f"{NoisyOrder.__name__} (whole)"
        left_out.append((whole, "nothing comes out before the end of the series"))
    progress("the paper's strategy")
    papers = papers_strategy(epsilon, window, model.costs)
    known = [
        recommendation for recommendation in recommendations if recommendation.mechanism == papers
    ]
    return Ranking(
        epsilon=epsilon,
        window=window,
        seen=model.seen,
        unit=model.unit,
        recommendations=tuple(recommendations),
        left_out=tuple(left_out),
        papers=known[0] if known else _recommend(papers, model),
        once_complete=_once_complete(recommendations, epsilon, window, model),
    )


def _sort_key(recommendation: Recommendation) -> tuple[float, int, float]:
    guarantee, loss, strength = recommendation.mechanism.guarantee, math.inf, len(UNITS)
    if isinstance(guarantee, Guarantee):
        strength = next(i for i, unit in enumerate(UNITS) if isinstance(guarantee.unit, unit))
        if not isinstance(guarantee.loss, Concentrated):
            loss = guarantee.loss.epsilon
    return float(f"{recommendation.cost:.9g}"), strength, loss


def _recommend(mechanism: OrderMechanism, model: CostModel) -> Recommendation:
    result = model.of(mechanism)
    shares = shares_of(mechanism, model.seen)
    return Recommendation(mechanism, result.cost, result.standard_error, shares)


def _once_complete(
    recommendations: list[Recommendation], epsilon: float, window: int, model: CostModel
) -> Recommendation:
    """The cheapest if the output is read when it is complete: only waiting makes a difference."""
    if model.seen == "file":
        return recommendations[0]
    later = model.once_complete()
    waiting = [
        _recommend(BlockShuffle(epsilon=epsilon, block=window), later),
        _recommend(NoisyOrder(epsilon=epsilon, window=window), later),
    ]
    same = [
        recommendation
        for recommendation in recommendations
        if not hasattr(recommendation.mechanism, "latency")
    ]
    return min([*waiting, *same], key=lambda recommendation: recommendation.cost)


def papers_strategy(
    epsilon: float, window: int, costs: UnitCosts
) -> Threshold | Forward | Backward:
    """What the paper would take (Section V-B4): a baseline.

    Threshold where it derives the budget; its extension below that unless epsilon < 1 or k > 100;
    Threshold above that unless epsilon > 20 or k < 10; else Forward where a repeat costs more than
    an empty slot, or Backward. The threshold is that of the corrected Algorithm 2, so that the
    comparison is about the strategy.

    Parameters:
        epsilon: the budget.
        window: k of the paper, in time steps.
        costs: of a repeat and an empty slot.

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


def curves(
    epsilons: npt.ArrayLike,
    window: int,
    model: CostModel,
    *,
    latency: int | None = None,
    delta: float | None = None,
    progress: Progress = lambda part: None,
) -> dict[type[OrderMechanism], list[float]]:
    """The cost of the cheapest mechanism of each kind at every epsilon; NaN where there is none.

    Parameters:
        epsilons: the budgets.
        window: in time steps.
        model: what a mechanism costs.
        latency: of NoisyOrder as a stream, in time steps.
        delta: of NoisyOrder as a stream.
        progress: is told which mechanism is looked at.

    >>> from tempriv.utility.cost_models import ExpectedCost
    >>> unit = UnitCosts(missing=9, repeated=9, empty=9, delay=1)
    >>> [round(cost, 2) for cost in curves([1.0, 8.0], 10, ExpectedCost(unit))[DualThreshold]]
    [11.99, 2.0]
    """

    def costs_of(kind: type[OrderMechanism]) -> Iterator[float]:
        """The costs of the mechanisms of a ``kind``, epsilon by epsilon."""
        for epsilon in np.asarray(epsilons, dtype=np.float64).tolist():
            progress(f"{kind.__name__} at epsilon {epsilon:.2g}")
            try:
                yield model.of(cheapest(kind, epsilon, window, model, latency, delta)).cost
            except TemprivError:
                yield math.nan

    return {kind: list(costs_of(kind)) for kind in ORDER_MECHANISMS}
