"""What to take instead of a noisy pace, where values or single times are to be hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv import noise
from tempriv.errors import require
from tempriv.guarantees import Guarantee, Published, Pure
from tempriv.mechanisms.forms import Integers, Numbers, positive
from tempriv.mechanisms.forms_curves import Smoothed, Timed
from tempriv.mechanisms.period import (
    LARGEST_SCALE,
    SOURCE,
    require_window,
    time_grid,
    widest,
)
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.resampling import Windows
from tempriv.mechanisms.stream import start
from tempriv.mechanisms.value import Laplace
from tempriv.series import Bounds
from tempriv.units import Contribution, Event, Timestamps, Unit


@dataclass(frozen=True, kw_only=True)
class NoisyCurve:
    """Adds noise to every value first, then releases the smooth curve through each window.

    The curve is the sum of the ``waves`` slowest cosines of the window, which takes off most of
    the noise where readings change slowly beside it; with as many waves as readings (w + 2) it
    meets every noisy value. Left out, a third of them are kept.

    Guarantees:
        - pure epsilon for the unit, as ``Laplace``: curves are made of noisy values only;
        - columns share epsilon.

    >>> curve = NoisyCurve(epsilon=1.0, bounds=(0, 5), window=8)
    >>> curve.guarantee.loss, curve.unit, curve.waves
    (Pure(epsilon=1.0), Event(), 3)
    """

    epsilon: float
    bounds: Bounds
    window: int
    unit: Unit = field(default_factory=Event)
    waves: int | None = None
    grid: Any = None

    causal: ClassVar[bool] = False
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean absolute error of a value before it is smoothed"

    def __post_init__(self) -> None:
        require_window(self.window)
        require(
            not isinstance(self.unit, Contribution),
            f"unit={self.unit!r}: must be Event, Window, WholeSeries or Person; for counts of "
            "people take PeGaSus or Laplace",
        )
        most = self.window + 2
        if self.waves is None:
            object.__setattr__(self, "waves", max(1, most // 3))
        waves = self.waves
        require(
            isinstance(waves, int) and not isinstance(waves, bool) and 1 <= waves <= most,
            f"waves={waves}: must be a whole number from 1 to {most}, the readings of a window",
        )
        noisy = self.noisy
        object.__setattr__(self, "bounds", noisy.bounds)
        object.__setattr__(self, "grid", noisy.grid)

    @property
    def noisy(self) -> Laplace:
        """What is done to the values."""
        return Laplace(epsilon=self.epsilon, bounds=self.bounds, unit=self.unit, grid=self.grid)

    @property
    def form(self) -> Smoothed:
        return Smoothed(Numbers(self.bounds, self.grid), self.window)

    @property
    def slots(self) -> int:
        return (2 * self.window + 2) * len(self.bounds)

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        return self.noisy.laws

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="What is made of noisy values alone is as private as they are",
            source="Dwork and Roth 2014, Proposition 2.1 (post-processing)",
            holds=True,
            remark="So a curve through noisy values keeps their promise, which a curve through "
            "the readings read at a noisy pace does not give.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return self.noisy.errors

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        noisy = self.noisy.perturb(readings, draw, track) * np.array(self.grid)
        values = np.where(track.missing, np.nan, noisy)
        none = np.zeros((len(readings), 0), dtype=np.int64)
        windows = Windows(values, none, track, self.window)
        at_its_pace = np.zeros(len(windows)), np.ones(len(windows))
        return windows.read("cosine", *at_its_pace, windows.sums, self.waves)

    start = start


@dataclass(frozen=True, kw_only=True)
class NoisyTimes:
    """Adds noise of its own to every time stamp.

    There is one column, of times in the unit of ``tau``. With a ``window`` of more than one reading
    the times of any so many consecutive ones are hidden together, which is what (epsilon, w,
    tau)-event privacy asks for.

    Guarantees:
        - pure epsilon for the times of any ``window`` consecutive readings, each within tau;
        - epsilon * d / tau for one time that is d away (Definition 4 of the paper): ``loss_at``.

    >>> times = NoisyTimes(epsilon=1.0, tau=60.0)
    >>> times.guarantee.unit, times.loss_at(30.0)
    (Timestamps(tau=60.0, window=1), Pure(epsilon=0.5))
    """

    epsilon: float
    tau: float
    window: int = 1
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
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
        require(
            self.law.scale <= LARGEST_SCALE,
            f"noise of 2^{int(self.law.scale).bit_length()} grid steps: choose a coarser grid, or "
            "a greater epsilon",
        )

    @property
    def form(self) -> Timed:
        return Timed(values=0, times=1, grid=self.grid)

    @property
    def unit(self) -> Timestamps:
        return Timestamps(self.tau, self.window)

    @property
    def law(self) -> noise.DiscreteLaplace:
        share = Fraction(self.epsilon) / self.window
        return noise.DiscreteLaplace(widest(self.tau, self.grid) / share)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit)

    def loss_at(self, distance: float) -> Pure:
        """What two inputs lose whose times are so far apart, those of ``window`` readings."""
        steps = widest(max(distance, 0.0), self.grid) if distance > 0 else 0
        return Pure(float(steps * self.window / self.law.scale))

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
        return (self.grid * self.law.mean_magnitude,)

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        return readings + draw(self.law, "time")[:, None]

    start = start
