"""An equal part of the budget for every step of a window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tempriv.mechanisms.numbers import NumberMechanism, laplace_noise, require_drawable
from tempriv.mechanisms.w_event.base import (
    SOURCE,
    UNITS,
    WINDOWS,
    window_command,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit, Window
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class UniformBudget(NumberMechanism):
    """Publishes every step, with a w-th of epsilon each.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        epsilon: the loss for any window of w time steps; every step gets a w-th of it.
        unit: the window, or what a person adds to counts within it.
        grid: of released values, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - outputs lie on the public grid.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> hourly = UniformBudget(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> hourly.guarantee.loss, round(hourly.errors[0], 2)
    (Pure(epsilon=1.0), 23.99)
    """

    epsilon: float
    unit: Unit

    accepted_units = WINDOWS
    spec_order = ("epsilon", "bounds", "unit", "grid")
    command = window_command(
        "uniform-budget",
        "a stream without an end, any window of it protected; every step is published",
        rank=7,
    )

    published: ClassVar[Published] = Published(
        claim="Noise for a w-th of epsilon at every step gives w-event privacy",
        source=f"{SOURCE}, Uniform",
        holds=True,
        remark="It is Laplace noise measured for a window; the simplest scheme, and hard to "
        "beat where rows keep changing or w is small.",
    )

    def _require_noise(self) -> None:
        require_drawable(noise.scale for noise in self.distributions)

    @property
    def noise_to_range(self) -> float:
        rows = float(min(self.unit.readings, UNITS)) if isinstance(self.unit, Window) else 1.0
        return len(self.bounds) * rows / self.epsilon

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise of each column, in steps of its grid."""
        return laplace_noise(self.changes, self.epsilon)

    @property
    def averaging_factor(self) -> float | None:
        return 2 / math.sqrt(math.pi)
