"""A finite series from few samples: filtered, and taken more often where the series moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers, gains_of, is_whole, positive
from tempriv.mechanisms.numbers import LARGEST_SCALE, AcceptedUnits, NumberMechanism, laplace_noise
from tempriv.mechanisms.options import option
from tempriv.mechanisms.w_event._kernels import ERRORS, FilterPlan, sample_and_filter
from tempriv.privacy.guarantees import Published
from tempriv.privacy.units import Contribution, Unit, WholeSeries
from tempriv.sampling._kernels import suited
from tempriv.sampling.distributions import DiscreteLaplace


@dataclass(frozen=True, kw_only=True)
class Fast(NumberMechanism):
    """Releases a whole series from ``samples`` noisy readings of it.

    A Kalman filter joins the samples; in between, and when they are used up, its estimate stands
    (status "repeated"). How far the filter was off, by a PID controller, says when to sample next.

    Parameters:
        epsilon: the loss for a whole series.
        bounds: smallest and largest possible value.
        samples: how many readings of a series are looked at.
        wander: how much the value is expected to move in a time step, in the unit of the column; a
            guess that must not come from the data.
        unit: what is protected: a whole series of so many readings, or what a person adds to it.
        gains: weights of the latest error, the mean of the latest five, and the slope.
        set_point: the error to aim at, as a part of the estimate.
        stretch: how fast intervals grow, in time steps.
        grid: of released values, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for whole series: a share of epsilon for each sample, and everything else,
          the choice of the next sample included, is made of noisy samples only;
        - outputs lie on the public grid.

    >>> month = Fast(epsilon=1.0, bounds=(0, 500), samples=60, wander=2,
    ...              unit=Contribution(WholeSeries(720)))
    >>> month.guarantee.loss, round(month.errors[0], 1)
    (Pure(epsilon=1.0), 60.0)
    """

    epsilon: float
    samples: int = option(
        "--samples",
        "How many readings are looked at.",
        type=int,
    )
    wander: float = option(
        "--wander",
        "By how much the value moves in a step, a guess.",
    )
    unit: Unit
    gains: tuple[float, float, float] = (0.9, 0.1, 0.0)
    set_point: float = 0.1
    stretch: float = 5.0

    spec_order = (
        "epsilon",
        "bounds",
        "samples",
        "wander",
        "unit",
        "gains",
        "set_point",
        "stretch",
        "grid",
    )
    command = CommandLine(
        name="fast",
        hides="values",
        purpose="whole series from a few samples, taken where it moves and filtered",
        example="--epsilon 1 --bounds 0 500 --samples 60 --wander 2 --value people --unit "
        "series --length 720",
        count_example="--epsilon 1 --samples 20 --wander 2 --max-per-step 1 --max-per-person 10",
        units=("series",),
        rank=11,
    )
    accepted_units = AcceptedUnits(
        (WholeSeries,),
        "WholeSeries or Contribution(WholeSeries(...)); samples are few because the series ends",
    )
    one_column = "release each by itself"
    texts = ReportTexts(
        done="they were estimated from a few readings, to which random noise was added",
        band="± expected error of a sample",
        errors="Expected errors of a sample before it is joined with those before it, in "
        "the unit of the column",
        single="one sample",
        besides="Between samples the estimate stands still, and misses what changes "
        "meanwhile. Errors of neighboring values go together: averages over them are hardly "
        "better than one.",
    )

    has_status: ClassVar[bool] = True
    memory_size: ClassVar[int] = 6 + ERRORS
    error_name: ClassVar[str] = (
        "mean absolute error of a sample before the filter; between samples the series may move"
    )

    published: ClassVar[Published] = Published(
        claim="M samples with noise for an M-th of epsilon each, and whatever is made of them, "
        "cost epsilon for a whole series",
        source="Fan and Xiong 2014, An adaptive approach to real-time aggregate monitoring",
        holds=True,
        remark="When to sample next depends on noisy samples only. Samples that the controller "
        "does not get to are paid for and wasted.",
    )

    def _require_settings(self) -> None:
        for name in ("wander", "set_point", "stretch"):
            positive(name, getattr(self, name))
        most = self.unit.readings
        require(
            is_whole(self.samples, 1, most),
            f"samples={self.samples}: must be a whole number from 1 to {most}, the length",
        )
        object.__setattr__(self, "gains", gains_of(self.gains, "(0.9, 0.1, 0)"))

    def _require_noise(self) -> None:
        require(
            self.distributions[0].scale <= LARGEST_SCALE
            and self.wander / self.grids[0] <= LARGEST_SCALE,
            "grid: too fine for this much noise, or wander; choose a coarser grid",
        )

    @property
    def noise_to_range(self) -> float:
        return self.samples / self.epsilon

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """Noise on a sample: all of them together may cost epsilon."""
        together = self.samples * self.row_changes[0]
        if isinstance(self.unit, Contribution):
            together = min(together, self.changes[0])
        return laplace_noise([together], self.epsilon)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Estimates of ``readings`` from samples with ``noise``, filtered in the ``state``."""
        (distribution,) = self.distributions
        drawn = noise.each(distribution, "samples")
        scale, step = float(distribution.scale), self.wander / self.grids[0]
        plan = FilterPlan(
            self.samples,
            np.array([2 * scale * scale, step * step]) + 1e-300,  # never none at all
            float(self.row_changes[0]),
            np.array(self.gains),
            float(self.set_point),
            float(self.stretch),
        )
        rows = state.kernel_rows(readings)
        suited(sample_and_filter, drawn)(rows, plan, drawn)
        return rows.outputs
