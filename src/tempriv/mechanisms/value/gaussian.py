"""Gaussian noise on bounded numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine
from tempriv.mechanisms.domains import positive
from tempriv.mechanisms.numbers import NumberMechanism, counted_by, model_of
from tempriv.mechanisms.options import PER_COLUMN, shared
from tempriv.privacy.guarantees import Calibrated, Concentrated, Guarantee, Published
from tempriv.privacy.serialization import LEFT_OUT
from tempriv.privacy.units import Event, Unit
from tempriv.sampling.distributions import DiscreteGaussian

if TYPE_CHECKING:
    from tempriv.accounting.gaussian_noise import NoisyNumbers
    from tempriv.mechanisms.value.laplace import Laplace


@dataclass(frozen=True, kw_only=True)
class Gaussian(NumberMechanism):
    """Adds discrete Gaussian noise to bounded numbers.

    Give the budget as rho, or as epsilon and delta. The least noise that keeps (epsilon, delta)
    is then found for the discrete noise that is added, and its rho becomes part of the spec, so
    that every machine draws the same noise.

    Parameters:
        rho: the loss for the unit.
        bounds: smallest and largest possible value, for all columns or for each.
        unit: what is protected.
        per_column: whether every column has the whole budget.
        grid: of released values, a power of two; fine beside the noise by default.
        epsilon: the loss at ``delta``; rho is then found.
        delta: goes with epsilon, such as 1e-6.

    Guarantees:
        - rho-zCDP (zero-concentrated differential privacy) for the unit, and (epsilon, delta) if
          that was asked for: exactly for one number, by a proven bound for several;
        - columns share the budget, or with ``per_column`` each has it whole and the total is
          stated;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Window
    >>> Gaussian(rho=0.5, bounds=(0, 5), unit=Window(24)).guarantee.loss
    Concentrated(rho=0.5)
    >>> asked = Gaussian(epsilon=1.0, delta=1e-6, bounds=(0, 1))
    >>> print(asked.guarantee.loss)
    epsilon = 1, delta = 1e-06 (rho = 0.02802)
    >>> round(asked.sigmas[0], 2)
    4.22
    """

    rho: float | None = None
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)
    epsilon: float | None = field(default=None, metadata=LEFT_OUT)
    delta: float | None = field(default=None, metadata=LEFT_OUT)

    spec_order = ("rho", "bounds", "unit", "per_column", "grid")
    command = CommandLine(
        name="gaussian",
        hides="values",
        purpose="numbers, less noise when many readings or columns are protected together",
        example="--epsilon 1 --delta 1e-6 --bounds 0 5 --value kwh --unit window --window 24",
        count_example="--epsilon 1 --delta 1e-6 --max-per-step 1 --max-per-person 10",
        noise="gaussian",
        calibrated=True,
        rank=1,
    )

    published: ClassVar[Published] = Published(
        claim="Discrete Gaussian noise of variance sensitivity^2 / (2 rho) is rho-zCDP",
        source="Canonne, Kamath and Steinke 2020, Theorem 4",
        holds=True,
        remark="It holds for whole numbers, which is what the public grid makes of readings.",
    )

    def __post_init__(self) -> None:
        found = self.rho is None
        if found:
            # the grid is chosen by noise, and the noise is then found for the numbers on it
            object.__setattr__(self, "rho", self._first_rho())
        super().__post_init__()
        if self.epsilon is None or self.delta is None:
            return
        numbers = self._noisy_numbers
        if found:
            object.__setattr__(self, "rho", numbers.largest_rho(self.epsilon, self.delta))
        require(
            numbers.keeps(float(self.budget), self.epsilon, self.delta),
            f"rho={self.rho}: does not keep epsilon={self.epsilon} at delta={self.delta}; give "
            "epsilon and delta alone, and rho is found",
        )

    def _require_budget(self) -> None:
        positive("rho", self.rho)
        if self.epsilon is not None or self.delta is not None:
            self._require_asked()

    def _require_asked(self) -> None:
        from tempriv.accounting.gaussian_noise import LEAST_DELTA

        positive("epsilon", self.epsilon)
        require(
            isinstance(self.delta, (int, float)) and LEAST_DELTA < self.delta < 1,
            f"delta={self.delta}: must be given with epsilon, > 0 and < 1, such as 1e-6",
        )

    def _first_rho(self) -> float:
        from tempriv.accounting.gaussian_noise import first_rho

        require(
            self.epsilon is not None or self.delta is not None,
            f"rho={self.rho}: give it, or epsilon and delta",
        )
        self._require_asked()
        assert self.epsilon is not None and self.delta is not None
        return first_rho(self.epsilon, self.delta)

    @property
    def _noisy_numbers(self) -> NoisyNumbers:
        """What neighbors differ in, and the noise there."""
        from tempriv.accounting.gaussian_noise import NoisyNumbers

        rho = Fraction(self.budget)
        least = min(noise.variance for noise in self.distributions) * rho
        columns = 1 if self.per_column else len(self.bounds)
        count = self.unit.readings * columns
        if unit := counted_by(self.unit):
            # no more numbers change than there are steps of the grid to change by
            steps = sum(Fraction(unit.most) / Fraction(grid) for grid in set(self.grids))
            count = min(unit.readings * len(self.bounds), math.ceil(steps))
        change = None
        # columns with budgets of their own have changes of their own
        if count == 1 and not (self.per_column and len(self.bounds) > 1):
            change = math.isqrt(int(2 * least))
            change += change**2 < 2 * least
        return NoisyNumbers(least, count, change)

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The parameter of the noise of each column, in the column's unit."""
        return tuple(
            grid * math.sqrt(noise.variance)
            for grid, noise in zip(self.grids, self.distributions, strict=True)
        )

    @property
    def loss(self) -> Concentrated:
        """What the output tells of the unit; columns with budgets of their own add up."""
        times = len(self.bounds) if self.per_column else 1
        if self.epsilon is None or self.delta is None:
            return Concentrated(self.budget * times)
        return Calibrated(self.budget * times, self.epsilon * times, min(self.delta * times, 1.0))

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

    def less_noisy(self) -> Laplace | None:
        """Laplace noise that implies (epsilon, delta), or rho by epsilon^2 / 2, with less error."""
        from tempriv.mechanisms.value.laplace import Laplace

        if self.epsilon is None and self.per_column:
            return None  # pure losses of columns add up to more than this
        by_rho = math.sqrt(2 * self.budget)
        # a few digits, downward
        by_rho = math.floor(by_rho * 1000) / 1000 if by_rho > 0.1 else by_rho * (1 - 2.0**-40)
        other = Laplace(
            epsilon=self.epsilon or by_rho,
            bounds=self.bounds,
            unit=self.unit,
            per_column=self.per_column,
            grid=self.grid if counted_by(self.unit) else None,
        )
        return other if sum(other.errors) < sum(self.errors) else None

    @property
    def averaging_factor(self) -> float | None:
        return 1.0
