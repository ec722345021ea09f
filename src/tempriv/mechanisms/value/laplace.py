"""Laplace noise on bounded numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from tempriv.mechanisms.base import CommandLine
from tempriv.mechanisms.domains import Numbers
from tempriv.mechanisms.numbers import NumberMechanism, laplace_noise, model_of
from tempriv.mechanisms.options import PER_COLUMN, shared
from tempriv.privacy.guarantees import Guarantee, Published
from tempriv.privacy.units import Event, Unit
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class Laplace(NumberMechanism):
    """Adds discrete Laplace noise to bounded numbers.

    Parameters:
        epsilon: the loss for the unit.
        bounds: smallest and largest possible value, for all columns or for each.
        unit: what is protected.
        per_column: whether every column has the whole of epsilon.
        grid: of released values, a power of two; fine beside the noise by default.

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
    unit: Unit = field(default_factory=Event)
    per_column: bool = shared(PER_COLUMN, default=False)

    spec_order = ("epsilon", "bounds", "unit", "per_column", "grid")
    command = CommandLine(
        name="laplace",
        hides="values",
        purpose="numbers, pure guarantee",
        example="--epsilon 1 --bounds 0 5 --value kwh",
        count_example="--epsilon 1 --max-per-step 1 --max-per-person 10",
        rank=0,
    )

    published: ClassVar[Published] = Published(
        claim="Laplace noise of scale sensitivity / epsilon is epsilon-differentially private",
        source="Dwork, McSherry, Nissim and Smith 2006, Proposition 1",
        holds=True,
        remark="It holds for real numbers; in floating point the noise's last bits give values "
        "away (Mironov 2012), so whole numbers on a public grid are drawn here.",
    )

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise of each column, in steps of its grid."""
        return laplace_noise(self.changes, self.epsilon)

    @property
    def domain(self) -> Numbers:
        return self.numbers

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(self.loss, self.unit, model_of(self.unit))

    @property
    def averaging_factor(self) -> float | None:
        return 2 / math.sqrt(math.pi)

    def reading_epsilon(self) -> float | None:
        return None if self.unit.counts_people else float(self.reading_share * len(self.bounds))
