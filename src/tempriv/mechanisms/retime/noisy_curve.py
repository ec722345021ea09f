"""What to take instead of a noisy pace, where values or single times are to be hidden."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.retime.base import STATUS_OF_CURVES, RetimeMechanism, require_window
from tempriv.mechanisms.retime.domains import Smoothed
from tempriv.mechanisms.retime.interpolation import Windows
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Event, Unit
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class NoisyCurve(RetimeMechanism):
    """Adds noise to every value first, then releases the smooth curve through each window.

    The curve is the sum of the ``waves`` slowest cosines of the window, which takes off most of
    the noise where readings change slowly beside it; with as many waves as readings (w + 2) it
    meets every noisy value.

    Parameters:
        epsilon: the budget.
        bounds: the smallest and the largest value, of each column.
        window: how many readings come out of one curve.
        unit: what is protected.
        waves: how many waves a curve has; a third of as many as readings by default.
        grid: the public grid that noisy values lie on, a power of two in the unit of the values;
            fine by default.

    Guarantees:
        - pure epsilon for the unit, as ``Laplace``: curves are made of noisy values only;
        - columns share epsilon.

    >>> curve = NoisyCurve(epsilon=1.0, bounds=(0, 5), window=8)
    >>> curve.guarantee.loss, curve.unit, curve.waves
    (Pure(epsilon=1.0), Event(), 3)
    """

    bounds: Bounds = shared(BOUNDS)
    window: int = option(
        "--span",
        "How many readings come out of one curve.",
        type=int,
    )
    unit: Unit = field(default_factory=Event)
    waves: int | None = option(
        "--waves",
        "How many waves a curve has; fewer are smoother.",
        default=None,
        type=int,
    )
    grid: float | tuple[float, ...] | None = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="noisy-curve",
        hides="values",
        purpose="numbers, noise on each of them and then a smooth curve through a few at a time",
        example="--epsilon 1 --bounds 0 5 --span 22 --value kwh",
        rank=21,
    )
    texts = ReportTexts(
        done="random noise was added to each of them, and smooth curves were drawn "
        "through what came of that",
        errors="Expected errors of values before they are smoothed, in the unit of the column",
        besides="Curves take off noise where readings change slowly, and peaks along with "
        "it: what that adds to the error, or saves, depends on the data. Errors of neighboring "
        "values go together.",
        status=STATUS_OF_CURVES,
    )

    published = Published(
        claim="What is made of noisy values alone is as private as they are",
        source="Dwork and Roth 2014, Proposition 2.1 (post-processing)",
        holds=True,
        remark="So a curve through noisy values keeps their guarantee, which a curve through "
        "the readings read at a noisy pace does not give.",
    )

    causal: ClassVar[bool] = False
    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = "mean absolute error of a value before it is smoothed"

    def __post_init__(self) -> None:
        require_window(self.window)
        require(
            isinstance(self.unit, Unit) and not self.unit.counts_people,
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
    def domain(self) -> Smoothed:
        return Smoothed(self.noisy.domain, self.window)

    @property
    def memory_size(self) -> int:
        return (2 * self.window + 2) * len(self.bounds)

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """The noise on values, in steps of each grid."""
        return self.noisy.distributions

    @property
    def errors(self) -> tuple[float, ...]:
        return self.noisy.errors

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Points of curves through ``readings`` with ``noise``; ``state`` holds those to come."""
        noisy = self.noisy.perturb(readings, noise, state) * np.array(self.grid)
        values = np.where(state.missing, np.nan, noisy)
        none = np.zeros((len(readings), 0), dtype=np.int64)
        windows = Windows(values, none, state, self.window)
        at_its_pace = np.zeros(len(windows)), np.ones(len(windows))
        return windows.read("cosine", *at_its_pace, windows.sums, self.waves)
