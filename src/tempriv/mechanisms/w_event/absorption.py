"""Publishes on change, with what quiet steps have saved."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.data.series import Bounds
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, shared
from tempriv.mechanisms.w_event.base import (
    SOURCE,
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
class BudgetAbsorption(Mechanism):
    """Publishes a row that has moved, with the budgets of the steps that went by without.

    Half of epsilon is for looking, as with BudgetDistribution. Of the other half every step owns a
    w-th. A publication takes what the steps before it did not use, up to all of a window; as many
    steps after it, but one, publish nothing.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps, the choice of what to
          publish included.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> watch = BudgetAbsorption(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> watch.guarantee.loss, round(watch.errors[0], 2)
    (Pure(epsilon=1.0), 48.0)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="budget-absorption",
        hides="values",
        purpose="the same, published when it has moved, with what quiet steps have saved",
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=10,
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
        "mean absolute error of a value published right after another, the most; after a pause "
        "of k steps a k-th"
    )

    def __post_init__(self) -> None:
        _set_up(self, 2.0)
        _ = self.plan

    domain = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1

    @functools.cached_property
    def plan(self) -> _Plan:
        return _Plan.of(self, self.unit.readings, self.unit.readings)

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        """Noise on the distance from the last release."""
        return [self.plan.dissimilarity(self)]

    @property
    def published(self) -> Published:
        return Published(
            claim="Looking for a w-th of epsilon / 2 at every step, and publishing with the "
            "budgets, a w-th of epsilon / 2 each, of up to w steps that published nothing, as many "
            "steps after it but one being left out, gives w-event privacy",
            source=f"{SOURCE}, Budget Absorption",
            holds=True,
            remark="Leaving steps out afterwards is what makes it hold: without that a window can "
            "spend nearly twice its half.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, self.plan.scales(1))

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        return _publish_or_repeat(self, readings, noise, state, absorbing=True)
