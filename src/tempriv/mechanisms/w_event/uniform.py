"""An equal part of the budget for every step of a window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, shared
from tempriv.mechanisms.w_event.base import (
    SOURCE,
    UNITS,
    _changes,
    _errors,
    _guarantee,
    _numbers,
    _require_reach,
    _set_up,
    _within_window,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit, Window
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class UniformBudget(Mechanism):
    """Publishes every step, with a w-th of epsilon each.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> hourly = UniformBudget(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> hourly.guarantee.loss, round(hourly.errors[0], 2)
    (Pure(epsilon=1.0), 23.99)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="uniform-budget",
        hides="values",
        purpose="a stream without an end, any window of it protected; every step is published",
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=7,
    )

    per_column: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _set_up(
            self, float(min(self.unit.readings, UNITS)) if isinstance(self.unit, Window) else 1.0
        )
        _require_reach([law.scale for law in self.laws])

    domain = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        factor = _within_window(self) / Fraction(self.epsilon)
        return [distributions.DiscreteLaplace(change * factor) for change in _changes(self)]

    @property
    def averaging_factor(self) -> float | None:
        return 2 / math.sqrt(math.pi)

    @property
    def published(self) -> Published:
        return Published(
            claim="Noise for a w-th of epsilon at every step gives w-event privacy",
            source=f"{SOURCE}, Uniform",
            holds=True,
            remark="It is Laplace noise measured for a window; the simplest scheme, and hard to "
            "beat where rows keep changing or w is small.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, [law.scale for law in self.laws])

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        drawn = [noise(law, f"column {j}") for j, law in enumerate(self.laws)]
        return readings + np.stack(drawn, axis=1)
