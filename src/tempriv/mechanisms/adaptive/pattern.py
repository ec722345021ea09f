"""Streams by the points that leave their trend: as published, and in a way that can be guaranteed.

A trend is told by few points and lines between them. PatternLDP sends the points that break the
trend; which ones these are gives readings away. PatternSampling takes its samples by what earlier,
noisy samples say, and so does not look at a reading before it pays for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.adaptive._pattern_kernels import (
    BUDGETS,
    FINER,
    LARGEST_SCALE,
    LEAST_IMPORTANCE,
    UNITS,
    sample_the_line,
    send_breaks,
)
from tempriv.mechanisms.base import CommandLine, Mechanism, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Derived, Integers, Numbers, bounds_of, grids_of, positive
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, option, shared
from tempriv.mechanisms.value._shared import change_of, model_of, number_grids
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units import Contribution, Event, Unit, Window
from tempriv.sampling import distributions
from tempriv.sampling._kernels import suited

MOST_REMEMBERED = 1 << 20  # steps of a window, for what each of them took is remembered
WHOLE = 1 << 40
"""Epsilon in whole units, for budgets that are parts of parts."""

SPREADS = 6  # standard deviations in the range, where nothing better is known
SOURCE = (
    "Wang, Qin and others, Towards pattern-aware privacy-preserving real-time data collection, "
    "INFOCOM 2020"
)


def _one_column(mechanism: Any) -> None:
    positive("epsilon", mechanism.epsilon)
    object.__setattr__(mechanism, "bounds", bounds_of(mechanism.bounds))
    require(
        len(mechanism.bounds) == 1,
        f"bounds={mechanism.bounds}: must be one pair, for one column; release each by itself",
    )


def _gains(given: Any) -> tuple[float, float, float]:
    try:
        first, second, third = map(float, given)
    except (TypeError, ValueError, OverflowError):
        first = second = third = math.nan
    require(
        all(0 <= gain <= 1e6 for gain in (first, second, third)),
        f"gains={given!r}: must be three numbers from 0 to a million, such as (0.8, 0.1, 0.1)",
    )
    return first, second, third


def _reach(given: Any) -> tuple[float, float]:
    try:
        theta, mu = map(float, given)
    except (TypeError, ValueError, OverflowError):
        theta = mu = math.nan
    require(
        0 < theta <= 1e6 and 1 <= mu <= 1e6,
        f"reach={given!r}: must be two numbers up to a million, the first > 0 and the second >= 1, "
        "such as (10, 1)",
    )
    return theta, mu


@dataclass(frozen=True, kw_only=True)
class PatternLDP(Mechanism):
    """Sends the points where the trend breaks, with noise by their importance. Guarantees nothing.

    Readings that a line from the last point sent reaches within ``tolerance`` are not sent; that
    point stands again (status "repeated"), and whoever receives them draws lines in between. A
    point's importance is a weighted sum (``gains``) of how far it is off the line through the two
    points before it, the mean of the last five such deviations, and their slope. It decides which
    part of what is left of the window's budget the point takes, and that its noise stays within
    ln(theta / importance + mu), with ``reach`` = (theta, mu).

    The scheme is for z-scores. Here ``spread`` says what counts as one standard deviation, a public
    number; a sixth of the range by default. ``tolerance`` and ``reach`` are in this unit.

    >>> pulse = PatternLDP(epsilon=1.0, bounds=(40, 160), window=40)
    >>> pulse.guarantee.sentence[:18], pulse.published.holds
    ('Protects nothing: ', False)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
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
    gains: tuple[float, float, float] = (0.8, 0.1, 0.1)
    reach: tuple[float, float] = (10.0, 1.0)
    spread: float | None = option(
        "--spread",
        "A standard deviation; a sixth of the bounds if not given.",
        default=None,
    )
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="pattern-ldp",
        hides="values",
        purpose="a stream by the points that break its trend; guarantees nothing (a baseline)",
        example="--epsilon 1 --bounds 0 500 --window 24 --value people",
        units=(),
        rank=14,
    )
    texts = ReportTexts(
        done="those that break the trend were sent, with noise that depends on them",
        band="± expected error of a point, at most",
        errors="Expected errors of points that were sent, at most, in the unit of the column",
        single="one point",
        besides="Between points the last one stands; lines from one point to the next are nearer.",
    )

    has_status: ClassVar[bool] = True
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a value sent, at most; how much it is depends on the readings"
    )

    def __post_init__(self) -> None:
        _one_column(self)
        require(
            isinstance(self.window, int)
            and not isinstance(self.window, bool)
            and 1 <= self.window <= MOST_REMEMBERED,
            f"window={self.window}: must be a whole number of steps from 1 to {MOST_REMEMBERED:,}",
        )
        positive("tolerance", self.tolerance)
        object.__setattr__(self, "gains", _gains(self.gains))
        object.__setattr__(self, "reach", _reach(self.reach))
        low, high = self.bounds[0]
        if self.spread is None:
            object.__setattr__(self, "spread", (high - low) / SPREADS)
        positive("spread", self.spread)
        fine = self._deviation / (high - low) / max(1.0, self.epsilon)
        object.__setattr__(self, "grid", grids_of(self.grid, self.bounds, fine))
        require(
            1 <= self._deviation / self.grid[0] <= LARGEST_SCALE
            and self.tolerance * self._deviation / self.grid[0] <= LARGEST_SCALE,
            f"spread={self.spread}: must be between 1 and 2^34 steps of the grid {self.grid[0]:g}, "
            "and so must tolerance times it at most",
        )

    @property
    def domain(self) -> Numbers:
        return Numbers(self.bounds, self.grid)

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
    def published(self) -> Published:
        return Published(
            claim="Sending the points that leave the trend, each with a part of what other points "
            "within w steps leave of epsilon, gives w-event local differential privacy",
            source=SOURCE,
            holds=False,
            remark="Budgets of a window do add up to epsilon at most. But the choice of points and "
            "of their budgets looks at the readings without noise, and noise that ends somewhere "
            "leaves outputs that only one of two inputs can have. Enumeration finds an infinite "
            "loss; PatternSampling is the repair.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        """Half of the longest reach: what noise that is even within it has."""
        theta, mu = self.reach
        return (self._deviation * math.log(theta / LEAST_IMPORTANCE + mu) / 2,)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        deviation = self._deviation / self.grid[0]
        top = max(deviation * (WHOLE / float(self.epsilon)), 1e-280)
        source = noise.scalable("points")
        outputs, at = np.zeros(len(readings), dtype=np.int64), 0
        kernel = suited(send_breaks, source.words)
        while at < len(readings):
            at, scale = kernel(
                at,
                np.ascontiguousarray(readings[:, 0]),
                state.missing[:, 0],
                state.which,
                state.steps,
                self.tolerance * deviation,
                deviation,
                np.array(self.gains),
                np.array(self.reach),
                WHOLE,
                top,
                self.window,
                source.words,
                state.memory,
                state.memory.view(np.float64),
                outputs,
                state.status,
            )
            if at < len(readings):
                source.settle(at, scale)
        return outputs[:, None]


@dataclass(frozen=True, kw_only=True)
class PatternSampling(Mechanism):
    """Follows a trend by noisy samples, sooner after each other where they leave it.

    A line of level and trend, a Kalman filter, joins the samples. Where it is at a sample stands
    until the next one (status "repeated"); whoever receives it may draw lines in between. A
    sample's importance is a weighted sum (``gains``) of how far it was off the line, the mean of
    the last five such deviations and their slope, each as a multiple of its noise. The more
    important, the sooner the next sample: after w steps at the latest. A sample that is waited for
    k steps takes k shares of w, as far as the window has them left.

    Guarantees:
        - pure epsilon for all that happens within any w consecutive steps: samples within them take
          w shares of epsilon / w at most, on every path, and when each is taken and what it takes
          is made of noisy samples before it only;
        - outputs lie on a public grid, 1024 times as fine as that of readings.

    For ``Event()`` every reading is a sample with all of epsilon, and the line smooths them.

    >>> meter = PatternSampling(epsilon=1.0, bounds=(0, 500), unit=Contribution(Window(24)))
    >>> meter.guarantee.loss, round(meter.errors[0], 2)
    (Pure(epsilon=1.0), 0.85)
    """

    epsilon: float
    bounds: Bounds = shared(BOUNDS)
    unit: Unit = field(default_factory=Event)
    gains: tuple[float, float, float] = (0.2, 0.7, 0.1)
    grid: Any = shared(RESOLUTION, default=None)

    command = CommandLine(
        name="pattern-sampling",
        hides="values",
        purpose="a stream that follows trends by noisy samples, more of them where it "
        "leaves its trend",
        example="--epsilon 1 --bounds 0 500 --value people --unit window --window 24",
        count_example="--epsilon 1 --max-per-step 1 --unit window --window 24",
        units=("event", "window"),
        rank=13,
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
    per_column: ClassVar[bool] = False
    error_name: ClassVar[str] = (
        "mean absolute error of a sample with all of a window's budget, before the line joins it "
        "with others; between samples the series may move"
    )

    def __post_init__(self) -> None:
        _one_column(self)
        each = self.unit.each if isinstance(self.unit, Contribution) else self.unit
        require(
            isinstance(each, (Event, Window)),
            f"unit={self.unit!r}: must be Event() or Window(w), or Contribution of one of them for "
            "counts; budgets are for any w consecutive steps",
        )
        require(
            self.unit.readings <= MOST_REMEMBERED,
            f"unit={self.unit!r}: must be a window of at most {MOST_REMEMBERED:,} steps, for what "
            "each took is remembered",
        )
        object.__setattr__(self, "gains", _gains(self.gains))
        object.__setattr__(self, "grid", number_grids(self, 1 / self.epsilon))
        require(
            self._top / self.unit.readings <= LARGEST_SCALE,
            "grid: too fine for this much noise; choose a coarser grid, or a greater epsilon",
        )

    @property
    def _numbers(self) -> Numbers:
        return Numbers(self.bounds, self.grid, self.unit.counts_people)

    @property
    def domain(self) -> Derived:
        return Derived(self._numbers, (self.grid[0] / FINER,))

    @property
    def memory_size(self) -> int:
        return UNITS + self.unit.readings

    @property
    def _top(self) -> Fraction:
        """The scale of a sample that takes one share of w, in grid steps."""
        change = change_of(self.unit, self._numbers)[0]
        return change * self.unit.readings / Fraction(self.epsilon)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit, model_of(self.unit))

    @property
    def published(self) -> Published:
        return Published(
            claim="Steps that each cost a part of epsilon, any w consecutive ones epsilon at most, "
            "give w-event privacy together",
            source="Kellaris, Papadopoulos, Xiao and Papadias 2014",
            holds=True,
            remark="It also holds where a part is set by outputs before it, as here. The published "
            "PatternLDP sets it by the private readings; here a sudden change is seen by the next "
            "sample only, and looking for it costs nothing.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        best = distributions.DiscreteLaplace(self._top / self.unit.readings)
        return (self.grid[0] * best.mean_magnitude,)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        low, high = self._numbers.edges()[0]
        # rounded up by more than dividing it can round down
        top = float(self._top) * (1 + 2.0**-50)
        # with fewer shares a sample is not taken: there is too much noise to draw
        least = min(max(1, math.ceil(top / LARGEST_SCALE)), self.unit.readings)
        source = noise.scalable("samples")
        outputs, at = np.zeros(len(readings), dtype=np.int64), 0
        kernel = suited(sample_the_line, source.words)
        while at < len(readings):
            at, scale = kernel(
                at,
                np.ascontiguousarray(readings[:, 0]),
                state.missing[:, 0],
                state.which,
                state.steps,
                int(low),
                int(high),
                top,
                least,
                self.unit.readings,
                np.array(self.gains),
                source.words,
                state.memory,
                state.memory.view(np.float64),
                outputs,
                state.status,
            )
            if at < len(readings):
                source.settle(at, scale)
        return outputs[:, None]
