"""Publishes on change, with half of what a window has left."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.numbers import NumberMechanism
from tempriv.mechanisms.w_event.base import (
    MOST_REMEMBERED,
    REPEATING,
    SOURCE,
    UNITS,
    WINDOWS,
    AdaptiveBudget,
    publish_on_change,
    window_command,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class BudgetDistribution(NumberMechanism):
    """Publishes a row that has moved, with half of what the window has left.

    Half of epsilon is for looking, a w-th of it at every step: how far is the row from the last
    release? If farther than the noise that it would get, it is published.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        epsilon: the loss for any window of w time steps; half of it is for looking.
        unit: the window, or what a person adds to counts within it.
        grid: of released values, a power of two; fine beside the noise by default.

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
    unit: Unit

    accepted_units = WINDOWS
    spec_order = ("epsilon", "bounds", "unit", "grid")
    command = window_command(
        "budget-distribution",
        "the same, published when it has moved, with half of what the window has left",
        rank=9,
    )
    texts = REPEATING

    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = (
        "mean absolute error of a value published when the window has seen none, the least"
    )

    published: ClassVar[Published] = Published(
        claim="Looking for a w-th of epsilon / 2 at every step, and publishing with half of "
        "what other publications within w steps leave of epsilon / 2, gives w-event privacy",
        source=f"{SOURCE}, Budget Distribution",
        holds=True,
        remark="Enumeration finds less than epsilon: halves of halves never add up to all of "
        "it. Frequent changes are published with ever more noise.",
    )

    def _require_settings(self) -> None:
        require(
            self.unit.readings <= MOST_REMEMBERED,
            f"unit={self.unit!r}: must be a window of at most {MOST_REMEMBERED:,} steps, for what "
            "each took is remembered; BudgetAbsorption takes any",
        )

    @property
    def noise_to_range(self) -> float:
        return 4 * len(self.bounds) / self.epsilon

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1 + self.unit.readings

    @functools.cached_property
    def spending(self) -> AdaptiveBudget:
        """Half of epsilon for looking, half for what is published."""
        return AdaptiveBudget.of(self, UNITS, UNITS // 2)

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise of each column where the window has published none, in steps of its grid."""
        return self.spending.noise(self.spending.best)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Rows of ``readings`` that moved, with ``noise`` for half of what ``state`` has left."""
        return publish_on_change(self, self.spending, False, readings, noise, state)
