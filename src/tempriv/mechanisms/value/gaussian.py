"""Gaussian noise on bounded numbers."""

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
from tempriv.privacy.guarantees import Concentrated, Guarantee, Published
from tempriv.privacy.units import (
    Contribution,
    Event,
    Unit,
)
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    """Adds discrete Gaussian noise to bounded numbers.

    Guarantees:
        - rho-zCDP (zero-concentrated differential privacy) for the unit;
        - columns share rho, or with ``per_column`` each has it whole and the total is stated;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Window
    >>> Gaussian(rho=0.5, bounds=(0, 5), unit=Window(24)).guarantee.loss
    Concentrated(rho=0.5)
    """

    rho: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="gaussian",
        hides="values",
        purpose="numbers, less noise when many readings or columns are protected together",
        example="--epsilon 1 --delta 1e-6 --bounds 0 5 --value kwh --unit window --window 24",
        count_example="--epsilon 1 --delta 1e-6 --max-per-step 1 --max-per-person 10",
        noise="gaussian",
        rank=1,
    )

    def __post_init__(self) -> None:
        positive("rho", self.rho)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        scale = 1 / math.sqrt(2 * float(self.share))
        object.__setattr__(self, "grid", number_grids(self, scale))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        if isinstance(self.unit, Contribution):
            return Fraction(self.rho)
        return _share(self.rho, self.unit, len(self.bounds), self.per_column)

    domain = property(_numbers)

    @property
    def laws(self) -> list[distributions.DiscreteGaussian]:
        if isinstance(self.unit, Contribution):
            squares = [self.unit.square / Fraction(grid) ** 2 for grid in self.grid]
        else:
            squares = [Fraction(width**2) for width in self.domain.widths]
        return [distributions.DiscreteGaussian(square / (2 * self.share)) for square in squares]

    @property
    def guarantee(self) -> Guarantee:
        rho = _total(self.rho, len(self.bounds), self.per_column)
        return _promise(self, Concentrated(rho))

    @property
    def averaging_factor(self) -> float | None:
        return 1.0

    @property
    def published(self) -> Published:
        return Published(
            claim="Discrete Gaussian noise of variance sensitivity^2 / (2 rho) is rho-zCDP",
            source="Canonne, Kamath and Steinke 2020, Theorem 4",
            holds=True,
            remark="It holds for whole numbers, which is what the public grid makes of readings.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * _mean_magnitude(law) for grid, law in zip(self.grid, self.laws, strict=True)
        )

    perturb = _add_noise


def _mean_magnitude(law: distributions.DiscreteGaussian) -> float:
    """E |k|: added up, or by Euler and Maclaurin's formula where that is long."""
    variance = float(law.variance)
    if variance > 10_000:
        return math.sqrt(2 * variance / math.pi) * (1 - 1 / (12 * variance))
    reach = math.ceil(40 * math.sqrt(variance)) + 1
    return 2 * math.fsum(k * law.pmf(k) for k in range(1, reach + 1))
