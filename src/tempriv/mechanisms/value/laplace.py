"""Laplace noise on bounded numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tempriv.data.series import Bounds
from tempriv.mechanisms.base import CommandLine, Mechanism
from tempriv.mechanisms.domains import (
    bounds_of,
    positive,
)
from tempriv.mechanisms.options import BOUNDS, PER_COLUMN, RESOLUTION, shared
from tempriv.mechanisms.value._shared import (
    _add_noise,
    _numbers,
    _promise,
    _share,
    _total,
    number_grids,
)
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import (
    Contribution,
    Event,
    Unit,
)
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """Adds discrete Laplace noise to bounded numbers.

    Guarantees:
        - pure epsilon for the unit, whatever the readings within (or outside) the bounds;
        - columns share epsilon, or with ``per_column`` each has it whole and the total is stated;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Window
    >>> hourly = Laplace(epsilon=1.0, bounds=(0, 5))
    >>> print(hourly.guarantee.loss, "|", hourly.unit)
    epsilon = 1 | Event()
    >>> daily = Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(24))
    >>> round(daily.errors[0] / hourly.errors[0], 3)
    24.0
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="laplace",
        hides="values",
        purpose="numbers, pure guarantee",
        example="--epsilon 1 --bounds 0 5 --value kwh",
        count_example="--epsilon 1 --max-per-step 1 --max-per-person 10",
        rank=0,
    )

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        object.__setattr__(self, "grid", number_grids(self, 1 / float(self.share)))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        if isinstance(self.unit, Contribution):
            return Fraction(self.epsilon)
        return _share(self.epsilon, self.unit, len(self.bounds), self.per_column)

    domain = property(_numbers)

    @property
    def laws(self) -> list[distributions.DiscreteLaplace]:
        if isinstance(self.unit, Contribution):
            changes = [Fraction(self.unit.most) / Fraction(grid) for grid in self.grid]
        else:
            changes = [Fraction(width) for width in self.domain.widths]
        return [distributions.DiscreteLaplace(change / self.share) for change in changes]

    @property
    def guarantee(self) -> Guarantee:
        return _promise(self, Pure(_total(self.epsilon, len(self.bounds), self.per_column)))

    @property
    def averaging_factor(self) -> float | None:
        return 2 / math.sqrt(math.pi)

    def reading_epsilon(self) -> float | None:
        if isinstance(self.unit, Contribution):
            return None
        return float(self.share * self.domain.columns)

    @property
    def published(self) -> Published:
        return Published(
            claim="Laplace noise of scale sensitivity / epsilon is epsilon-differentially private",
            source="Dwork, McSherry, Nissim and Smith 2006, Proposition 1",
            holds=True,
            remark="It holds for real numbers; in floating point the noise's last bits give values "
            "away (Mironov 2012), so whole numbers on a public grid are drawn here.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * law.mean_magnitude for grid, law in zip(self.grid, self.laws, strict=True)
        )

    perturb = _add_noise
