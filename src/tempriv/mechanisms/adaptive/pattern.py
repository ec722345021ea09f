"""Streams by the points that leave their trend: as published, and in a way that can be guaranteed.

A trend is told by few points and lines between them. PatternLDP sends the points that break the
trend; which ones these are gives readings away. PatternSampling takes its samples by what earlier,
noisy samples say, and so does not look at a reading before it pays for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.adaptive._pattern_kernels import (
    BUDGETS,
    FINER,
    LEAST_IMPORTANCE,
    UNITS,
    BreakPlan,
    LinePlan,
    sample_the_line,
    send_breaks,
)
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import (
    Derived,
    Integers,
    floats_of,
    gains_of,
    is_whole,
    positive,
)
from tempriv.mechanisms.numbers import LARGEST_SCALE, AcceptedUnits, NumberMechanism
from tempriv.mechanisms.options import option
from tempriv.mechanisms.w_event.base import (
    MOST_REMEMBERED,
    ScalableColumns,
    window_command,
)
from tempriv.privacy.guarantees import NoGuarantee, Published
from tempriv.privacy.units import Event, Unit, Window
from tempriv.sampling._kernels import suited
from tempriv.sampling.distributions import DiscreteLaplace

WHOLE = 1 << 40
"""Epsilon in whole units, for budgets that are parts of parts."""

SPREADS = 6  # standard deviations in the range, where nothing better is known
SOURCE = (
    "Wang, Qin and others, Towards pattern-aware privacy-preserving real-time data collection, "
    "INFOCOM 2020"
)


def _reach(given: object) -> tuple[float, ...]:
    theta, mu = reach = floats_of(given, 2)
    require(
        0 < theta <= 1e6 and 1 <= mu <= 1e6,
        f"reach={given!r}: must be two numbers up to a million, the first > 0 and the second >= 1, "
        "such as (10, 1)",
    )
    return reach


@dataclass(frozen=True, kw_only=True)
class PatternLDP(NumberMechanism):
    """Sends the points where the trend breaks, with noise by their importance. Guarantees nothing.

    Readings that a line from the last point sent reaches within ``tolerance`` are not sent; that
    point stands again (status "repeated"), and whoever receives them draws lines in between. A
    point's importance is a weighted sum (``gains``) of how far it is off the line through the two
    points before it, the mean of the last five such deviations, and their slope. It decides which
    part of what is left of the window's budget the point takes, and that its noise stays within
    ln(theta / importance + mu), with ``reach`` = (theta, mu).

    Parameters:
        epsilon: what budgets of points within a window add up to, at most.
        bounds: smallest and largest possible value.
        window: how many time steps epsilon is for.
        tolerance: how far off a line readings may be, in standard deviations.
        gains: weights of the latest deviation, the mean of the latest five, and their slope.
        reach: theta and mu, which bound the noise, in standard deviations.
        spread: what counts as one standard deviation, a public number in the unit of the column,
            for the scheme is for z-scores; a sixth of the range by default.
        grid: of released values, a power of two; fine beside the noise by default.

    >>> pulse = PatternLDP(epsilon=1.0, bounds=(40, 160), window=40)
    >>> pulse.guarantee.sentence[:18], pulse.published.holds
    ('Protects nothing: ', False)
    """

    epsilon: float
    window: int = option(
        "--window",
        "Time steps that epsilon is for.",
        type=int,
        unit="time steps",
    )
    tolerance: float = option(
        "--tolerance",
        "How far off a line readings may be, in standard deviations.",
        default=0.5,
    )
    gains: tuple[float, ...] = (0.8, 0.1, 0.1)
    reach: tuple[float, ...] = (10.0, 1.0)
    spread: float | None = option(
        "--spread",
        "A standard deviation; a sixth of the bounds if not given.",
        default=None,
    )

    spec_order = ("epsilon", "bounds", "window", "tolerance", "gains", "reach", "spread", "grid")
    command = CommandLine(
        name="pattern-ldp",
        hides="values",
        purpose="a stream by the points that break its trend; guarantees nothing (a baseline)",
        example="--epsilon 1 --bounds 0 500 --window 24 --value people",
        units=(),
        rank=14,
    )
    one_column = "release each by itself"
    texts = ReportTexts(
        done="those that break the trend were sent, with noise that depends on them",
        band="± expected error of a point, at most",
        errors="Expected errors of points that were sent, at most, in the unit of the column",
        single="one point",
        besides="Between points the last one stands; lines from one point to the next are nearer.",
    )

    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = (
        "mean absolute error of a value sent, at most; how much it is depends on the readings"
    )

    published: ClassVar[Published] = Published(
        claim="Sending the points that leave the trend, each with a part of what other points "
        "within w steps leave of epsilon, gives w-event local differential privacy",
        source=SOURCE,
        holds=False,
        remark="Budgets of a window do add up to epsilon at most. But the choice of points and "
        "of their budgets looks at the readings without noise, and noise that ends somewhere "
        "leaves outputs that only one of two inputs can have. Enumeration finds an infinite "
        "loss; PatternSampling is the repair.",
    )

    def _require_settings(self) -> None:
        require(
            is_whole(self.window, 1, MOST_REMEMBERED),
            f"window={self.window}: must be a whole number of steps from 1 to {MOST_REMEMBERED:,}",
        )
        positive("tolerance", self.tolerance)
        object.__setattr__(self, "gains", gains_of(self.gains, "(0.8, 0.1, 0.1)"))
        object.__setattr__(self, "reach", _reach(self.reach))
        if self.spread is None:
            low, high = self.bounds[0]
            object.__setattr__(self, "spread", (high - low) / SPREADS)
        positive("spread", self.spread)

    def _require_noise(self) -> None:
        steps = self._deviation / self.grids[0]
        require(
            1 <= steps <= LARGEST_SCALE and self.tolerance * steps <= LARGEST_SCALE,
            f"spread={self.spread}: must be between 1 and 2^34 steps of the grid "
            f"{self.grids[0]:g}, and so must tolerance times it at most",
        )

    @property
    def noise_to_range(self) -> float:
        low, high = self.bounds[0]
        return self._deviation / (high - low) / max(1.0, self.epsilon)

    @property
    def unit(self) -> Unit:
        """What the claim is about."""
        return Window(self.window)

    @property
    def memory_size(self) -> int:
        return BUDGETS + self.window

    @property
    def _deviation(self) -> float:
        assert self.spread is not None
        return float(self.spread)

    @property
    def guarantee(self) -> NoGuarantee:
        return NoGuarantee(
            "which readings are sent, and with how much noise, is decided by the readings "
            "themselves and can be seen, and the noise is bounded: two inputs that differ in one "
            "reading can be told apart for certain"
        )

    @property
    def errors(self) -> tuple[float, ...]:
        """Half of the longest reach: what noise that is even within it has."""
        theta, mu = self.reach
        return (self._deviation * math.log(theta / LEAST_IMPORTANCE + mu) / 2,)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Of ``readings`` those that break the trend in the ``state``, with bounded ``noise``."""
        deviation = self._deviation / self.grids[0]
        plan = BreakPlan(
            self.tolerance * deviation,
            deviation,
            np.array(self.gains),
            np.array(self.reach),
            WHOLE,
            max(deviation * (WHOLE / float(self.epsilon)), 1e-280),
            self.window,
        )
        rows = state.kernel_rows(readings)
        points = ScalableColumns(noise, ["points"], len(readings))
        points.run(suited(send_breaks, points.words), rows, plan)
        return rows.outputs


@dataclass(frozen=True, kw_only=True)
class PatternSampling(NumberMechanism):
    """Follows a trend by noisy samples, sooner after each other where they leave it.

    A line of level and trend, a Kalman filter, joins the samples. Where it is at a sample stands
    until the next one (status "repeated"); whoever receives it may draw lines in between. A
    sample's importance is a weighted sum (``gains``) of how far it was off the line, the mean of
    the last five such deviations and their slope, each as a multiple of its noise. The more
    important, the sooner the next sample: after w steps at the latest. A sample that is waited for
    k steps takes k shares of w, as far as the window has them left.

    Parameters:
        epsilon: the loss for all that happens within any window.
        bounds: smallest and largest possible value.
        unit: what is protected: a window of so many time steps, or what a person adds within one;
            for ``Event()`` every reading is a sample with all of epsilon, and the line smooths
            them.
        gains: weights of the latest deviation, the mean of the latest five, and their slope.
        grid: of readings, a power of two; fine beside the noise by default.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps: samples within them take
          w shares of epsilon / w at most, on every path, and when each is taken and what it takes
          is made of noisy samples before it only;
        - outputs lie on a public grid, 1024 times as fine as that of readings.

    >>> from tempriv.privacy.units import Contribution
    >>> meter = PatternSampling(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> meter.guarantee.loss, round(meter.errors[0], 2)
    (Pure(epsilon=1.0), 0.85)
    """

    epsilon: float
    unit: Unit = field(default_factory=Event)
    gains: tuple[float, ...] = (0.2, 0.7, 0.1)

    spec_order = ("epsilon", "bounds", "unit", "gains", "grid")
    command = window_command(
        "pattern-sampling",
        "a stream that follows trends by noisy samples, more of them where it leaves its trend",
        rank=13,
    )
    one_column = "release each by itself"
    accepted_units = AcceptedUnits(
        (Event, Window),
        "Event() or Window(w), or Contribution of one of them for counts; budgets are for any w "
        "consecutive steps",
    )
    texts = ReportTexts(
        done="a line was drawn through some readings, to which random noise was added",
        band="± expected error of a sample",
        errors="Expected errors of a sample with all of a window’s budget, before it is "
        "joined with those before it, in the unit of the column",
        single="one sample",
        besides="Between samples the last one stands, and misses what changes meanwhile; "
        "lines from one sample to the next are nearer. Errors of neighboring values go together: "
        "averages over them are hardly better than one.",
    )

    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = (
        "mean absolute error of a sample with all of a window's budget, before the line joins it "
        "with others; between samples the series may move"
    )

    published: ClassVar[Published] = Published(
        claim="Steps that each cost a part of epsilon, any w consecutive ones epsilon at most, "
        "give w-event privacy together",
        source="Kellaris, Papadopoulos, Xiao and Papadias 2014",
        holds=True,
        remark="It also holds where a part is set by outputs before it, as here. The published "
        "PatternLDP sets it by the private readings; here a sudden change is seen by the next "
        "sample only, and looking for it costs nothing.",
    )

    def _require_settings(self) -> None:
        require(
            self.unit.readings <= MOST_REMEMBERED,
            f"unit={self.unit!r}: must be a window of at most {MOST_REMEMBERED:,} steps, for what "
            "each took is remembered",
        )
        object.__setattr__(self, "gains", gains_of(self.gains, "(0.8, 0.1, 0.1)"))

    def _require_noise(self) -> None:
        require(
            self._top / self.unit.readings <= LARGEST_SCALE,
            "grid: too fine for this much noise; choose a coarser grid, or a greater epsilon",
        )

    @property
    def noise_to_range(self) -> float:
        return 1 / self.epsilon

    @property
    def domain(self) -> Derived:
        return Derived(self.numbers, (self.grids[0] / FINER,))

    @property
    def memory_size(self) -> int:
        return UNITS + self.unit.readings

    @property
    def _top(self) -> Fraction:
        """The scale of a sample that takes one share of w, in grid steps."""
        return self.row_changes[0] * self.unit.readings / Fraction(self.epsilon)

    @property
    def distributions(self) -> list[DiscreteLaplace]:
        """Noise on a sample that takes all of a window's budget."""
        return [DiscreteLaplace(self._top / self.unit.readings)]

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """A line through samples of ``readings`` with ``noise``, followed in the ``state``."""
        low, high = self.numbers.edges()[0].tolist()
        # rounded up by more than dividing it can round down
        top = float(self._top) * (1 + 2.0**-50)
        # with fewer shares a sample is not taken: there is too much noise to draw
        least = min(max(1, math.ceil(top / LARGEST_SCALE)), self.unit.readings)
        plan = LinePlan(low, high, top, least, self.unit.readings, np.array(self.gains))
        rows = state.kernel_rows(readings)
        samples = ScalableColumns(noise, ["samples"], len(readings))
        samples.run(suited(sample_the_line, samples.words), rows, plan)
        return rows.outputs
