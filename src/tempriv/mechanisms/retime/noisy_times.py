"""Noise on a column of times."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Description, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers, positive
from tempriv.mechanisms.options import RESOLUTION, option, shared
from tempriv.mechanisms.retime.base import (
    NOT_PROTECTED_OF_TIMES,
    SOURCE,
    RetimeMechanism,
    require_drawable,
    require_window,
    time_grid,
    widest,
)
from tempriv.mechanisms.retime.domains import Timed
from tempriv.privacy.guarantees import Published, Pure
from tempriv.privacy.units.time import Timestamps
from tempriv.sampling import distributions


@dataclass(frozen=True, kw_only=True)
class NoisyTimes(RetimeMechanism):
    """Adds noise of its own to every time stamp.

    There is one column, of times in the unit of ``tau``. With a ``window`` of more than one reading
    the times of any so many consecutive ones are hidden together, which is what (epsilon, w,
    tau)-event privacy asks for.

    Parameters:
        epsilon: the budget.
        tau: within how much of each other times are hidden, in their unit.
        window: the times of how many consecutive readings are hidden together.
        grid: the public grid of times, a power of two in their unit; fine by default.

    Guarantees:
        - pure epsilon for the times of any ``window`` consecutive readings, each within tau;
        - epsilon * d / tau for one time that is d away (Definition 4 of the paper): ``loss_at``.

    >>> times = NoisyTimes(epsilon=1.0, tau=60.0)
    >>> times.guarantee.unit, times.loss_at(30.0)
    (Timestamps(tau=60.0, window=1), Pure(epsilon=0.5))
    """

    tau: float = option(
        "--tau",
        "Times this close to each other are hard to tell apart (by a factor "
        "e^epsilon); in the unit of the column of times.",
    )
    window: int = option(
        "--window",
        "Consecutive readings whose times are protected together.",
        default=1,
        type=int,
        unit="time steps",
    )
    grid: float | None = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="noisy-times",
        hides="pace",
        purpose="a column of times, each hidden among those nearby",
        example="--epsilon 1 --tau 60 --value seconds",
        units=(),
        on_times="adds noise to a column of times",
        rank=22,
    )
    texts = ReportTexts(
        done="they are times, and random noise was added to each of them",
        errors="Expected errors in the unit of the times",
        besides="Times that come out in another order than they were read are no mistake.",
        outside=False,
    )

    error_name: ClassVar[str] = "mean absolute error, in the unit of the times"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        positive("tau", self.tau)
        require(
            1e-100 < self.tau < 1e100,
            f"tau={self.tau}: must be between 1e-100 and 1e100; use another unit of time",
        )
        require_window(self.window)
        object.__setattr__(self, "grid", time_grid(self.grid, self.tau))
        require_drawable(self.distribution.scale)

    @property
    def time_step(self) -> float:
        """The public grid of times, once it is settled."""
        assert self.grid is not None
        return self.grid

    @property
    def domain(self) -> Timed:
        return Timed(values=0, times=1, grid=self.time_step)

    @property
    def unit(self) -> Timestamps:
        """What is protected."""
        return Timestamps(self.tau, self.window)

    @property
    def distribution(self) -> distributions.DiscreteLaplace:
        """The noise on a time, in steps of the time grid."""
        share = Fraction(self.epsilon) / self.window
        return distributions.DiscreteLaplace(widest(self.tau, self.time_step) / share)

    def loss_at(self, distance: float) -> Pure:
        """What two inputs lose whose times differ, those of ``window`` readings.

        Parameters:
            distance: by how much, in the unit of the times.
        """
        steps = widest(max(distance, 0.0), self.time_step) if distance > 0 else 0
        return Pure(float(steps * self.window / self.distribution.scale))

    def not_protected(self, about: Description) -> list[str]:
        """All but the times, whatever else a release says ``about`` itself."""
        return list(NOT_PROTECTED_OF_TIMES)

    @property
    def published(self) -> Published:
        return Published(
            claim=f"Laplace noise of scale tau / epsilon on one time stamp gives (epsilon, tau)-"
            f"temporal indistinguishability, here for tau = {self.tau:g}",
            source=f"{SOURCE}, Theorem 3",
            holds=True,
            remark="It holds for one time stamp; for w consecutive ones the noise is w times as "
            "large.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return (self.time_step * self.distribution.mean_magnitude,)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with independent ``noise``, whatever the ``state``."""
        return readings + noise(self.distribution, "time")[:, None]
