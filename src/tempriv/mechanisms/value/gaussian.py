"""Gaussian noise on bounded numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from tempriv.mechanisms.base import CommandLine
from tempriv.mechanisms.numbers import NumberMechanism, counted_by, model_of
from tempriv.mechanisms.options import PER_COLUMN, shared
from tempriv.privacy.guarantees import Guarantee, Published
from tempriv.privacy.units import Event, Unit
from tempriv.sampling.distributions import DiscreteGaussian


@dataclass(frozen=True, kw_only=True)
class Gaussian(NumberMechanism):
    """Adds discrete Gaussian noise to bounded numbers.

    Parameters:
        rho: the loss for the unit.
        bounds: smallest and largest possible value, for all columns or for each.
        unit: what is protected.
        per_column: whether every column has the whole of rho.
        grid: of released values, a power of two; fine beside the noise by default.

    Guarantees:
        - rho-zCDP (zero-concentrated differential privacy) for the unit;
        - columns share rho, or with ``per_column`` each has it whole and the total is stated;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Window
    >>> Gaussian(rho=0.5, bounds=(0, 5), unit=Window(24)).guarantee.loss
    Concentrated(rho=0.5)
    """

    rho: float
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)

    spec_order = ("rho", "bounds", "unit", "per_column", "grid")
    command = CommandLine(
        name="gaussian",
        hides="values",
        purpose="numbers, less noise when many readings or columns are protected together",
        example="--epsilon 1 --delta 1e-6 --bounds 0 5 --value kwh --unit window --window 24",
        count_example="--epsilon 1 --delta 1e-6 --max-per-step 1 --max-per-person 10",
        noise="gaussian",
        rank=1,
    )

    published: ClassVar[Published] = Published(
        claim="Discrete Gaussian noise of variance sensitivity^2 / (2 rho) is rho-zCDP",
        source="Canonne, Kamath and Steinke 2020, Theorem 4",
        holds=True,
        remark="It holds for whole numbers, which is what the public grid makes of readings.",
    )

    @property
    def noise_to_range(self) -> float:
        return 1 / math.sqrt(2 * float(self.reading_share))

    @property
    def distributions(self) -> list[DiscreteGaussian]:
        """The noise of each column, in steps of its grid."""
        if unit := counted_by(self.unit):
            squares = [unit.square / Fraction(grid) ** 2 for grid in self.grids]
        else:
            squares = [Fraction(width**2) for width in self.numbers.widths]
        return [DiscreteGaussian(square / (2 * self.reading_share)) for square in squares]

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.loss, self.unit, model_of(self.unit))

    @property
    def averaging_factor(self) -> float | None:
        return 1.0
