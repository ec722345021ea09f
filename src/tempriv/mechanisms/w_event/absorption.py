"""Publishes on change, with what quiet steps have saved."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.numbers import NumberMechanism
from tempriv.mechanisms.w_event.base import (
    REPEATING,
    SOURCE,
    WINDOWS,
    AdaptiveBudget,
    publish_on_change,
    window_command,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class BudgetAbsorption(NumberMechanism):
    """Publishes a row that has moved, with the budgets of the steps that went by without.

    Half of epsilon is for looking, as with BudgetDistribution. Of the other half every step owns a
    w-th. A publication takes what the steps before it did not use, up to all of a window; as many
    steps after it, but one, publish nothing.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        epsilon: the loss for any window of w time steps; half of it is for looking,
            and every step owns a w-th of the other half.
        unit: the window, or what a person adds to counts within it.
        grid: of released values, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps, the choice of what to
          publish included.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> counts = {"bounds": (0, 500), "unit": Contribution(Window(24))}
    >>> round(BudgetAbsorption(epsilon=1.0, **counts).errors[0], 2)
    48.0
    """

    epsilon: float
    unit: Unit

    accepted_units = WINDOWS
    spec_order = ("epsilon", "bounds", "unit", "grid")
    command = window_command(
        "budget-absorption",
        "the same, published when it has moved, with what quiet steps have saved",
        rank=10,
    )
    texts = REPEATING

    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = (
        "mean absolute error of a value published right after another, the most; after a pause "
        "of k steps a k-th"
    )

    published: ClassVar[Published] = Published(
        claim="Looking for a w-th of epsilon / 2 at every step, and publishing with the "
        "budgets, a w-th of epsilon / 2 each, of up to w steps that published nothing, as many "
        "steps after it but one being left out, gives w-event privacy",
        source=f"{SOURCE}, Budget Absorption",
        holds=True,
        remark="Leaving steps out afterwards is what makes it hold: without that a window can "
        "spend nearly twice its half.",
    )

    @property
    def noise_to_range(self) -> float:
        return 2 * len(self.bounds) / self.epsilon

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1

    @functools.cached_property
    def spending(self) -> AdaptiveBudget:
        """Half of epsilon for looking, half for what is published."""
        return AdaptiveBudget.of(self, self.unit.readings, self.unit.readings)

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise of each column right after another publication, in steps of its grid."""
        return self.spending.noise(1)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Rows of ``readings`` that moved, with ``noise`` for what ``state`` has saved."""
        return publish_on_change(self, self.spending, True, readings, noise, state)
