"""A question about hiding times, from the table or the unit costs to everything that is advised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.errors import DataError, require
from tempriv.mechanisms.reorder import analysis
from tempriv.utility.baselines import expected_error, task_of, value_baseline
from tempriv.utility.cost_models import CostModel, ExpectedCost, SimulatedCost
from tempriv.utility.inputs import AdvisorInput, papers_costs, read
from tempriv.utility.order_leak import OrderLeak, find_order_leaks
from tempriv.utility.ranking import Ranking, advise, curves
from tempriv.utility.reorder_costs import UnitCosts
from tempriv.utility.simulation import Seen, Task

ROWS_TO_TRY = 2_000_000
SERIES_TO_TRY, SERIES_AT_ONCE = 1600, 200  # each has noise of its own to be set up
FEWEST_RUNS, MOST_RUNS = 8, 100

PAPERS_COSTS = (
    "The paper's unit costs price every step of a delay like a whole one (counts) or like half a "
    "window (averages), and the errors of a count as if they neither added up nor canceled; "
    "leave --unit-costs out to try it on the data instead"
)


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
            f"--task {self.task}: must be count, average or none",
        )
        require(self.seen in ("stream", "file"), f"--as {self.seen}: must be stream or file")
        tasked = self.task != "none"
        require(
            tasked or self.costs is not None,
            "there is nothing to compute costs from: give --missing-cost, --repeated-cost and "
            "--empty-cost (a step of delay costs 1), or a --task with a table to try it on",
        )
        require(
            not tasked or self.costs is None,
            f"--task {self.task} finds its own costs; give unit costs with --task none",
        )
        require(
            not tasked or self.table is not None,
            f"--task {self.task}: there is nothing to compute costs from; give INPUT or "
            "--public-sample, or unit costs with --task none",
        )
        require(
            not tasked or len(self.columns) > 0, f"--task {self.task} needs --value, its column"
        )
        for name, given, wanted in (
            ("--value-of-interest", self.value, self.task == "count"),
            ("--average-over", self.average_over, self.task == "average"),
            ("--bounds", self.bounds, self.task == "average"),
            ("--unit-costs paper", self.by_papers_costs or None, tasked),
            ("--latency", self.latency, self.seen == "stream"),
            ("--delta", self.delta, self.seen == "stream"),
        ):
            remedy = {
                "--value-of-interest": "goes with --task count",
                "--unit-costs paper": "goes with --task count or average",
                "--latency": "goes with --as stream; a file waits for its end",
                "--delta": "goes with --as stream; a file needs none",
            }.get(name, "goes with --task average")
            require(given is None or wanted, f"{name}: {remedy}")

        require(
            self.latency is None or self.latency >= 2,
            f"--latency {self.latency}: must be a whole number of time steps >= 2",
        )
        require(
            self.delta is None or 0 < self.delta < 1,
            f"--delta {self.delta}: must be between 0 and 1, such as 1e-6",
        )
        require(
            self.average_over is None or self.average_over >= 1,
            f"--average-over {self.average_over}: must be a whole number of steps >= 1",
        )

    @property
    def steps(self) -> int:
        """Of a moving average: those of the window, as in the paper, unless said."""
        return self.window if self.average_over is None else self.average_over

    @property
    def table(self) -> Path | None:
        return self.source if self.public_sample is None else self.public_sample


@dataclass(frozen=True, eq=False)
class Changed:
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
    changed: Changed | None

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


def consult(question: AdviceRequest, progress: Callable[[str], None] | None = None) -> Advice:
    """Read what has to be read, rank the mechanisms, and look for columns that betray the order.

    >>> even = UnitCosts(missing=10, repeated=10, empty=10, delay=1)
    >>> answer = consult(AdviceRequest(epsilon=5.0, window=10, costs=even))
    >>> answer.private, answer.advice.first.title
    (False, 'DualThreshold (4 free slots)')
    """
    table, asked = question.table, question
    found = None
    require(
        asked.public_sample is None or bool(asked.columns),
        "a public sample is read for its columns: name them by --value",
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
    advice = advise(
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
        changed=None if task is None or found is None else _changed(asked, task, found),
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


def _changed(asked: AdviceRequest, task: Task, found: AdvisorInput) -> Changed | None:
    readings = found.task
    assert readings is not None
    if asked.task == "count":
        said = found.value or ""
        mechanism = value_baseline(asked.epsilon, categories=(said, f"not {said}"))
        remark = "randomized response, the count corrected for what it turns round"
        return Changed(mechanism, expected_error(mechanism, task, readings), remark)
    bounds, whose = asked.bounds, "of --bounds"
    if bounds is None:
        there = readings.values[readings.there]
        bounds, whose = (float(there.min()), float(there.max())), "of the data, as in the paper"
        whose += "; a release needs bounds that do not come from them"
        if bounds[0] == bounds[1]:
            return None  # there is no noise for a range of nothing
    mechanism = value_baseline(asked.epsilon, bounds=bounds)
    remark = f"Laplace noise for the range {whose}"
    return Changed(mechanism, expected_error(mechanism, task, readings), remark)
