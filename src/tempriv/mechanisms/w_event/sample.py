"""The whole budget of a window on one of its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.numbers import NumberMechanism, laplace_noise, require_drawable
from tempriv.mechanisms.w_event._kernels import publish_once
from tempriv.mechanisms.w_event.base import (
    REPEATING,
    SOURCE,
    WINDOWS,
    SideBySide,
    origin_of,
    window_command,
)
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Unit
from tempriv.sampling._kernels import suited
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class SampleOnce(NumberMechanism):
    """Publishes one step with all of epsilon, then repeats it for the next w - 1 steps.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        epsilon: the loss for any window of w time steps; one step in w gets all of it.
        unit: the window, or what a person adds to counts within it.
        grid: of released values, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps;
        - when a row is published depends on no value; a missing one is made up for at the next.

    >>> from tempriv.privacy.units import Contribution, Window
    >>> daily = SampleOnce(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> daily.guarantee.loss, round(daily.errors[0], 2)
    (Pure(epsilon=1.0), 0.85)
    """

    epsilon: float
    unit: Unit

    accepted_units = WINDOWS
    spec_order = ("epsilon", "bounds", "unit", "grid")
    command = window_command(
        "sample-once",
        "the same, one step of each window published well, and repeated until the next",
        rank=8,
    )
    texts = REPEATING

    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = "mean absolute error of a published value, while it is fresh"

    published: ClassVar[Published] = Published(
        claim="Noise for all of epsilon at one step in w gives w-event privacy",
        source=f"{SOURCE}, Sample",
        holds=True,
        remark="Between two publications nothing new is told; hard to beat where rows change "
        "slowly beside w.",
    )

    def _require_noise(self) -> None:
        require_drawable(noise.scale for noise in self.distributions)

    @property
    def noise_to_range(self) -> float:
        return len(self.bounds) / self.epsilon

    @property
    def memory_size(self) -> int:
        return len(self.bounds) + 1

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise of each column, in steps of its grid."""
        return laplace_noise(self.row_changes, self.epsilon)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """One row of ``readings`` a window with ``noise``, repeated by the ``state``."""
        origin = origin_of(self)
        parts = [noise.each(each, f"column {j}") for j, each in enumerate(self.distributions)]
        drawn = SideBySide(parts, len(readings)).joined
        rows = state.kernel_rows(readings - origin)
        suited(publish_once, drawn)(rows, self.unit.readings, drawn)
        return np.asarray(rows.outputs + origin)
