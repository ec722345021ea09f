"""Publishes on change, with half of what a window has left."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, shared
from tempriv.mechanisms.w_event.base import (
    MOST_REMEMBERED,
    SOURCE,
    UNITS,
    _errors,
    _guarantee,
    _numbers,
    _Plan,
    _publish_or_repeat,
    _set_up,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class BudgetDistribution(Mechanism):
    """Publishes a row that has moved, with half of what the window has left.

    Half of epsilon is for looking, a w-th of it at every step: how far is the row from the last
    release? If farther than the noise that it would get, it is published.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps, the choice of what to
          publish included;
        - a step too poor for any use is not published.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> watch = BudgetDistribution(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> watch.guarantee.loss, round(watch.errors[0], 2)
    (Pure(epsilon=1.0), 3.96)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="budget-distribution",
        hides="values",
        purpose="the same, published when it has moved, with half of what the window has left",
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=9,
    )
    texts = ReportTexts(
        done="random noise was added to some of them, and the others repeat the last of these",
        band="± expected error of a fresh value",
        errors="Expected errors of fresh values, in the unit of the column",
        single="one fresh value",
        besides="A repeated value has the error of the one that it repeats, and misses "
        "what has changed since. Averages over repeated values are no better than one of them.",
    )

    has_status: ClassVar[bool] = True
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a value published when the window has seen none, the least"
    )

    def __post_init__(self) -> None:
        _set_up(self, 4.0)
        require(
            self.unit.readings <= MOST_REMEMBERED,
            f"unit={self.unit!r}: must be a window of at most {MOST_REMEMBERED:,} steps, for what "
            "each took is remembered; BudgetAbsorption takes any",
        )
        _ = self.plan

    domain = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1 + self.unit.readings

    @functools.cached_property
    def plan(self) -> _Plan:
        return _Plan.of(self, UNITS, UNITS // 2)

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        """Noise on the distance from the last release."""
        return [self.plan.dissimilarity(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Looking for a w-th of epsilon / 2 at every step, and publishing with half of "
            "what other publications within w steps leave of epsilon / 2, gives w-event privacy",
            source=f"{SOURCE}, Budget Distribution",
            holds=True,
            remark="Enumeration finds less than epsilon: halves of halves never add up to all of "
            "it. Frequent changes are published with ever more noise.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        plan = self.plan
        return _errors(self, plan.scales(plan.best))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        return _publish_or_repeat(self, readings, noise, state, absorbing=False)
