"""A finite series from few samples: filtered, and taken more often where the series moves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers, Numbers, bounds_of, positive
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.value._shared import change_of, model_of, number_grids
from tempriv.mechanisms.w_event._kernels import ERRORS, sample_and_filter
from tempriv.privacy.guarantees import Guarantee, Published, Pure
from tempriv.privacy.units import Contribution, Unit, WholeSeries
from tempriv.sampling import distributions
from tempriv.sampling._kernels import suited

LARGEST_SCALE = 1 << 34  # in grid steps, so that estimates are exact to a step


@dataclass(frozen=True, kw_only=True)
class Fast(Mechanism):
    """Releases a whole series from ``samples`` noisy readings of it.

    A Kalman filter joins the samples; in between, and when they are used up, its estimate stands
    (status "repeated"). How far the filter was off, by a PID controller, says when to sample next.

    Guarantees:
        - pure epsilon for whole series: a share of epsilon for each sample, and everything else,
          the choice of the next sample included, is made of noisy samples only;
        - outputs lie on the public grid.

    ``wander`` is how much the value is expected to move in a step, a guess that must not come from
    the data. ``gains`` weigh the latest error, the mean of the latest five, and the slope;
    ``set_point`` is the error to aim at, ``stretch`` how fast intervals grow.

    >>> month = Fast(epsilon=1.0, bounds=(0, 500), samples=60, wander=2,
    ...              unit=Contribution(WholeSeries(720)))
    >>> month.guarantee.loss, round(month.errors[0], 1)
    (Pure(epsilon=1.0), 60.0)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
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
    grid: Any = shared(RESOLUTION, default=None)

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
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a sample before the filter; between samples the series may move"
    )

    def __post_init__(self) -> None:
        for name in ("epsilon", "wander", "set_point", "stretch"):
            positive(name, getattr(self, name))
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        require(
            len(self.bounds) == 1,
            f"bounds={self.bounds}: must be one pair, for one column; release each by itself",
        )
        each = self.unit.each if isinstance(self.unit, Contribution) else self.unit
        require(
            isinstance(each, WholeSeries),
            f"unit={self.unit!r}: must be WholeSeries or Contribution(WholeSeries(...)); samples "
            "are few because the series ends",
        )
        most = self.unit.readings
        require(
            isinstance(self.samples, int)
            and not isinstance(self.samples, bool)
            and 1 <= self.samples <= most,
            f"samples={self.samples}: must be a whole number from 1 to {most}, the length",
        )
        object.__setattr__(self, "gains", _gains(self.gains))
        object.__setattr__(self, "grid", number_grids(self, self.samples / self.epsilon))
        require(
            self.laws[0].scale <= LARGEST_SCALE and self.wander / self.grid[0] <= LARGEST_SCALE,
            "grid: too fine for this much noise, or wander; choose a coarser grid",
        )

    @property
    def domain(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @property
    def _change(self) -> Fraction:
        return change_of(self.unit, self.domain)[0]

    @property
    def laws(self) -> tuple[distributions.DiscreteLaplace]:
        """Noise on a sample: all of them together may cost epsilon."""
        together = self.samples * self._change
        if isinstance(self.unit, Contribution):
            together = min(together, Fraction(self.unit.most) / Fraction(self.grid[0]))
        return (distributions.DiscreteLaplace(together / Fraction(self.epsilon)),)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        return Published(
            claim="M samples with noise for an M-th of epsilon each, and whatever is made of them, "
            "cost epsilon for a whole series",
            source="Fan and Xiong 2014, An adaptive approach to real-time aggregate monitoring",
            holds=True,
            remark="When to sample next depends on noisy samples only. Samples that the controller "
            "does not get to are paid for and wasted.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return (self.grid[0] * self.laws[0].mean_magnitude,)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        (law,) = self.laws
        drawn = noise.each(law, "samples")
        scale, step = float(law.scale), self.wander / self.grid[0]
        variances = np.array([2 * scale * scale, step * step]) + 1e-300  # never none at all
        outputs = np.zeros(len(readings), dtype=np.int64)
        suited(sample_and_filter, drawn)(
            np.ascontiguousarray(readings[:, 0]),
            state.missing[:, 0],
            state.which,
            state.steps,
            self.samples,
            variances,
            float(self._change),
            np.array(self.gains),
            float(self.set_point),
            float(self.stretch),
            drawn,
            state.memory,
            state.memory.view(np.float64),
            outputs,
            state.status,
        )
        return outputs[:, None]


def _gains(given: Any) -> tuple[float, float, float]:
    try:
        first, second, third = map(float, given)
    except (TypeError, ValueError, OverflowError):
        first = second = third = math.nan
    require(
        all(0 <= gain <= 1e6 for gain in (first, second, third)),
        f"gains={given!r}: must be three numbers from 0 to a million, such as (0.9, 0.1, 0)",
    )
    return first, second, third
