"""The whole budget of a window on one of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, shared
from tempriv.mechanisms.w_event._kernels import publish_once
from tempriv.mechanisms.w_event.base import (
    SOURCE,
    SideBySide,
    _changes,
    _errors,
    _guarantee,
    _numbers,
    _origin,
    _require_reach,
    _set_up,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit
from tempriv.sampling import distributions
from tempriv.sampling._kernels import suited


@dataclass(frozen=True, kw_only=True)
class SampleOnce(Mechanism):
    """Publishes one step with all of epsilon, then repeats it for the next w - 1 steps.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - when a row is published depends on no value; a missing one is made up for at the next.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> daily = SampleOnce(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> daily.guarantee.loss, round(daily.errors[0], 2)
    (Pure(epsilon=1.0), 0.85)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="sample-once",
        hides="values",
        purpose="the same, one step of each window published well, and repeated until the next",
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=8,
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
    error_name: ClassVar[str] = "mean absolute error of a published value, while it is fresh"

    def __post_init__(self) -> None:
        _set_up(self, 1.0)
        _require_reach([law.scale for law in self.laws])

    domain = property(_numbers)
    guarantee = property(_guarantee)

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        return [
            distributions.DiscreteLaplace(change / Fraction(self.epsilon))
            for change in _changes(self)
        ]

    @property
    def published(self) -> Published:
        return Published(
            claim="Noise for all of epsilon at one step in w gives w-event privacy",
            source=f"{SOURCE}, Sample",
            holds=True,
            remark="Between two publications nothing new is told; hard to beat where rows change "
            "slowly beside w.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return _errors(self, [law.scale for law in self.laws])

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        origin = _origin(self)
        parts = [noise.each(law, f"column {j}") for j, law in enumerate(self.laws)]
        drawn = SideBySide(parts, len(readings)).joined
        outputs = np.zeros_like(readings)
        suited(publish_once, drawn)(
            readings - origin,
            state.missing,
            state.which,
            state.steps,
            self.unit.readings,
            drawn,
            state.memory,
            outputs,
            state.status,
        )
        return np.asarray(outputs + origin)
