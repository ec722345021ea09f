"""The pace of a window hidden by reading it again at a noisy one (SWP and SPPA).

Readings are windows of n = w + 2, each beginning on the last but one of the window before; the
middle w are released as the curve through all n has them at a noisy period. Only the noisy period
is bought with the budget: the values lie on a curve that the readings determine.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import (
    NOT_PROTECTED,
    CommandLine,
    Mechanism,
    NoiseSource,
    ReportTexts,
    SeriesState,
)
from tempriv.mechanisms.domains import (
    FINENESS,
    LARGEST,
    Floats,
    Integers,
    positive,
    power_of_two,
    power_of_two_below,
)
from tempriv.mechanisms.options import RESOLUTION, Option, option, pair, shared
from tempriv.mechanisms.retime import analysis
from tempriv.mechanisms.retime.domains import Timed, as_numbers
from tempriv.mechanisms.retime.interpolation import INTERPOLATIONS, Interpolation, Windows, basis
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published, Pure
from tempriv.privacy.units.time import Pace
from tempriv.sampling import distributions

LARGEST_WINDOW = 1 << 14
LARGEST_SCALE = 1 << 40  # of noise, in grid steps
MOST_PERIODS = 1e6
MOST_COLUMNS = 1000
SOURCE = (
    "Local Differentially Private Release of Infinite Streams With Temporal Relevance, WWW 2025 "
    "submission"
)

NOT_PROTECTED_OF_RETIMED = (
    "the values: they lie on the curve through the readings, and whoever knows a few readings can "
    "work out the others; where readings stay the same they are published as they are",
    "when something happened, where values show it: what is read at another moment is another "
    "value",
)
NOT_PROTECTED_OF_TIMES = (
    "which series there are (their ids, or as many pseudonyms), and how many",
    "how many readings there are in each series, and their order",
    "which readings are missing",
)


def require_window(window: Any) -> None:
    require(
        isinstance(window, int) and not isinstance(window, bool) and 1 <= window <= LARGEST_WINDOW,
        f"window={window}: must be a whole number of readings from 1 to {LARGEST_WINDOW:,}",
    )


def time_grid(given: Any, tau: float) -> float:
    """The grid of times: as given, or fine enough to vanish beside tau."""
    if given is None:
        return power_of_two_below(tau / FINENESS)
    power_of_two(given)
    require(given <= tau, f"grid={given:g}: must be at most tau={tau:g}")
    return float(given)


def widest(tau: float, grid: float) -> int:
    """By how many grid steps two times within tau can differ, rounded down to the grid."""
    return math.ceil(Fraction(tau) / Fraction(grid))


@dataclass(frozen=True, kw_only=True)
class SamplingPeriod(Mechanism):
    """Reads every window of a series again at a noisy sampling period.

    A row is its values and then, in the last column, the secret step: the time since the row
    before. The mean step of a window gets noise and is kept within public bounds (``clamp``); the
    curve through the window's values, on a public grid of ``period``, is read at that pace. The
    last column of the output is the noisy step itself. With ``shift`` the column before it says
    how late a row was, which gets half of the budget. With ``pace`` "public" there is no such
    column, and nothing is guaranteed.

    Guarantees:
        - pure epsilon for the steps of any one aligned window, each within tau of another: the
          output depends on them through one noisy number;
        - no value is protected, nor its place in the series: a window of equal values leaves as it
          is.

    >>> taxi = SamplingPeriod(epsilon=1.0, window=8, tau=15.0, period=15.0, columns=2)
    >>> taxi.guarantee.loss, taxi.guarantee.unit
    (Pure(epsilon=1.0), Pace(tau=15.0, window=8, shift=None, aligned=True))
    >>> SamplingPeriod(epsilon=1.0, window=8, tau=1.0).published.holds
    False
    """

    epsilon: float
    window: int = option(
        "--window",
        "Readings whose pace is hidden together.",
        type=int,
        unit="time steps",
    )
    tau: float = option(
        "--tau",
        "Times this close to each other are hard to tell apart (by a factor "
        "e^epsilon); in the unit of the column of times.",
    )
    period: float = option(
        "--period",
        "The public time from one reading to the next; 1 by default.",
        default=1.0,
    )
    interpolation: Interpolation = option(
        "--interpolation",
        "The curve through a window; cosine (default) is nearest.",
        default="cosine",
        type=str,
        metavar="cosine|hermitian|printed",
    )
    clamp: Any = option(
        "--clamp",
        "Public bounds of the noisy period, or none; safe ones by default.",
        default="safe",
        type=str,
        metavar="LOW HIGH",
    )
    columns: int = 1
    shift: float | None = option(
        "--shift",
        "Hide also how late readings were, within this.",
        default=None,
    )
    pace: Literal["column", "public"] = "column"
    grid: Any = shared(RESOLUTION, default=None)

    extra_options = (
        Option(
            flag="--late",
            help="The column that says how late a reading was, with --shift.",
            type=str,
            metavar="COLUMN",
            column=True,
            goes_with="shift",
        ),
        Option(
            flag="--pace",
            help="The column with the secret time since the reading before.",
            type=str,
            metavar="COLUMN",
            column=True,
        ),
    )
    command = CommandLine(
        name="sampling-period",
        hides="pace",
        purpose="numbers read again at a noisy pace; hides how fast readings followed, "
        "and no value",
        example="--epsilon 1 --window 8 --tau 15 --period 15 --pace seconds --value speed",
        units=(),
        on_times="reads values again at a noisy pace",
        rank=20,
    )
    texts = ReportTexts(
        done="they were read again, a window at a time, at a noisy pace from the curve "
        "through the originals; the last column is that pace",
        errors="How far released values are from their place in time, on average, in the "
        "unit of the period",
        besides="How far that moves a value depends on how fast the readings change: "
        "where they stay the same, nothing moves. Errors of one window go together.",
        status="The column “{}” tells values (“released”, also where a reading was "
        "missing) from the first and the last row of a series, where curves have their ends and "
        "nothing comes out (“empty”).",
        outside=False,
    )

    causal: ClassVar[bool] = False
    has_status: ClassVar[bool] = True
    error_name: ClassVar[str] = "mean shift in time, in the unit of the period"
    is_retimed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require_window(self.window)
        for name in ("tau", "period"):
            positive(name, getattr(self, name))
        require(
            1e-100 < self.period < 1e100,
            f"period={self.period}: must be between 1e-100 and 1e100; use another unit of time",
        )
        require(
            1e-100 < self.tau / self.period < MOST_PERIODS,
            f"tau={self.tau}: must be between 1e-100 and a million times the period",
        )
        require(
            self.interpolation in INTERPOLATIONS,
            f"interpolation={self.interpolation!r}: must be one of {', '.join(INTERPOLATIONS)}",
        )
        columns = self.columns
        require(
            isinstance(columns, int) and not isinstance(columns, bool) and 1 <= columns <= 1000,
            f"columns={columns}: must be a whole number of value columns from 1 to {MOST_COLUMNS}",
        )
        require(
            self.pace in ("column", "public"),
            f"pace={self.pace!r}: must be 'column', where the last column holds the steps, or "
            "'public'",
        )
        if self.shift is not None:
            positive("shift", self.shift)
            require(
                self.pace == "column",
                f"shift={self.shift}: must be left out where the pace is public",
            )
        object.__setattr__(self, "clamp", self._clamp())
        object.__setattr__(self, "grid", time_grid(self.grid, self.tau))
        longest = self.period if self.clamp is None else max(self.period, self.clamp[1])
        require(
            Fraction(longest) * self.window / Fraction(self.grid) < LARGEST,
            f"grid={self.grid:g}: must be coarser for windows of {self.window} periods of "
            f"{self.period:g}",
        )
        least, most = self._edges()
        require(
            least <= most,
            f"clamp={self.clamp!r}: must be further apart, no noisy period lies in it; or choose "
            "a finer grid",
        )
        scale = max(law.scale for law in self.laws)
        require(
            scale <= LARGEST_SCALE,
            f"noise of 2^{int(scale).bit_length()} grid steps: choose a coarser grid, or a "
            "greater epsilon",
        )

    def _clamp(self) -> tuple[float, float] | None:
        """Public bounds of the noisy period: safe ones read within the window, and in order."""
        if self.clamp is None:
            return None
        if self.clamp == "safe":
            return self.period / 2, self.period * (self.window + 1) / self.window
        try:
            low, high = (float(edge) for edge in self.clamp)
        except (TypeError, ValueError, OverflowError):
            low, high = math.nan, math.nan
        require(
            0 < low <= high <= MOST_PERIODS * self.period,
            f"clamp={self.clamp!r}: must be 'safe', None, or two times > 0, the lower first, up to "
            "a million periods; a period of 0 would repeat the first reading",
        )
        return low, high

    @classmethod
    def settings_from(cls, given: Mapping[str, Any], columns: int) -> dict[str, Any]:
        """The pace is in a column, or public; a clamp is two numbers, ``safe`` or ``none``."""
        require(
            "pace" in given or "late" not in given,
            "[[late]]: goes with [[pace]], the column with the time since the reading before",
        )
        require(
            ("late" in given) == ("shift" in given),
            "[[shift]] and [[late]] go together: within what to hide how late readings were, and "
            "the column that says it",
        )
        settings = {**super().settings_from(given, columns), "columns": max(columns, 1)}
        if "pace" not in given:
            settings["pace"] = "public"
        if "clamp" in given:
            typed = given["clamp"].strip()
            words = {"none": None, "safe": "safe"}
            settings["clamp"] = words[typed] if typed in words else pair("clamp", typed)
        return settings

    @property
    def times(self) -> int:
        """How many columns of times a row ends with."""
        return 0 if self.pace == "public" else 1 if self.shift is None else 2

    @property
    def domain(self) -> Timed:
        return Timed(self.columns, self.times, self.grid, finer=self.window, latency=self.window)

    @property
    def memory_size(self) -> int:
        width = self.columns + self.times
        return (self.window + 2) * width + self.window * self.columns + self.times

    @property
    def unit(self) -> Pace:
        return Pace(self.tau, self.window, self.shift)

    @functools.cached_property
    def laws(self) -> tuple[distributions.DiscreteLaplace, ...]:
        """Of the noise on the sum of a window's steps, and of its shifts, in grid steps."""
        share = Fraction(self.epsilon) / max(self.times, 1)
        return tuple(
            distributions.DiscreteLaplace(self.window * widest(limit, self.grid) / share)
            for limit in reversed(self.unit.limits)
        )

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.pace == "public":
            return NoGuarantee(
                "the steps between readings are public, and values lie on a curve that the "
                "readings determine"
            )
        return Guarantee(Pure(self.epsilon), self.unit)

    def not_protected(self, about: Mapping[str, Any]) -> list[str]:
        times = NOT_PROTECTED if self.pace == "public" else NOT_PROTECTED_OF_TIMES
        return [*NOT_PROTECTED_OF_RETIMED, *times]

    @property
    def published(self) -> Published:
        return Published(
            claim=f"The stream satisfies (epsilon, w, tau)-event local differential privacy for "
            f"epsilon = {self.epsilon:g}, w = {self.window}, tau = {self.tau:g}",
            source=f"{SOURCE}, Definition 7 and Section 4.6",
            holds=False,
            remark="A window has one noisy number, so its points lie on a curve that the readings "
            "determine: a value changed by 0.01, or one that is another because it was read a "
            "little later, is told apart for certain. The proof bounds each point by itself "
            "(Theorem 4) and does not give the points together; and w consecutive readings reach "
            "into two windows. What holds is about the pace of a window.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        """Over the points of a window whose steps are the public period."""
        off = self._mean_change()
        late = () if self.shift is None else (self._unit * self.laws[1].mean_magnitude,)
        points = off * (self.window + 1) / 2 + sum(late)
        return (points,) * self.columns + (*late, off)[: self.times]

    @property
    def _unit(self) -> float:
        """What one step of the noise changes a mean over a window by."""
        return float(self.grid) / self.window

    def _edges(self) -> tuple[int, int]:
        """The clamp in units of the noise."""
        if self.clamp is None:
            return -(1 << 61), 1 << 61
        low, high = self.clamp
        least = math.ceil(Fraction(low) * self.window / Fraction(self.grid))
        return least, math.floor(Fraction(high) * self.window / Fraction(self.grid))

    @property
    def _public(self) -> int:
        """The sum of a window's steps if each were the public period."""
        return round(Fraction(self.period) * self.window / Fraction(self.grid))

    def _mean_change(self) -> float:
        """The mean distance of a noisy period from the public one, where the steps are that."""
        rate = float(1 / self.laws[0].scale)
        low, high = (edge - self._public for edge in self._edges())
        total = 0.0
        for near, far in ((max(low, 0), high), (max(-high, 0), -low)):
            if far >= 0:
                # the sum of P(noise >= k) for k up to the edge, 1 where all of it is beyond
                total += near
            if far > near and rate < 700:
                reached = math.exp(-rate * near) * -math.expm1(-rate * (far - near))
                total += reached / (2 * math.sinh(rate))
        return total * self._unit

    def expected_mse(self, window_values: Any, step: float | None = None) -> float:
        """The mean squared error of a window's points over the noise, exactly.

        ``window_values`` are its n readings, one column; ``step`` is its own mean step, the public
        period if left out.
        """
        return analysis.expected_mse(self._law(step), self._spread(window_values))

    def mse_bound(self, window_values: Any, step: float | None = None) -> float:
        """A bound of it by the spread of the readings alone (Theorem 5 of the paper, corrected)."""
        return analysis.mse_bound(self._law(step), self._spread(window_values))

    def _law(self, step: float | None) -> analysis.Turns:
        require(
            self.shift is None, "shift: must be left out here; the formulas are for the pace alone"
        )
        center = self.period if step is None else step
        return analysis.Turns(
            # next to no noise, where it would be less than numbers can tell
            scale=max(float(self.laws[0].scale) * self._unit / self.period, 1e-30),
            center=center / self.period - 1,
            low=-math.inf if self.clamp is None else self.clamp[0] / self.period - 1,
            high=math.inf if self.clamp is None else self.clamp[1] / self.period - 1,
        )

    def _spread(self, window_values: Any) -> analysis.Spread:
        values = np.asarray(window_values, dtype=np.float64)
        require(
            values.ndim == 1 and 3 <= len(values) <= self.window + 2,
            f"{values.size} readings: must be those of one window in one column, {self.window + 2}",
        )
        found = basis(self.interpolation, len(values))
        turned = found.waves(np.zeros(1))[0] * (found.coefficients @ values)
        return analysis.Spread(values, turned, found.angle)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        values, times = self._split(readings, state)
        windows = Windows(values, times, state, self.window)
        drawn = [
            noise(law, purpose, windows.ends)
            for law, purpose in zip(self.laws, ("period", "shift"), strict=False)
        ]
        sums = windows.sums[:, -1] if self.times else np.full(len(windows), self._public)
        chosen = np.clip(sums + drawn[0], *self._edges())[:, None]
        firsts: Floats = np.zeros(len(windows))
        if self.shift is not None:
            late = windows.sums[:, 0] + drawn[1]
            firsts = np.asarray(late * (self._unit / self.period), dtype=np.float64)
            chosen = np.stack([late, chosen[:, 0]], axis=1)
        ratios: Floats = np.asarray(chosen[:, -1] * (self._unit / self.period), dtype=np.float64)
        return windows.read(self.interpolation, firsts, ratios, chosen[:, : self.times])

    def _split(self, readings: Integers, state: SeriesState) -> tuple[Floats, Integers]:
        """Values, NaN where missing; and times, where missing the public ones."""
        values = as_numbers(readings[:, : self.columns])
        times = readings[:, self.columns :]
        if state.missing.any():
            values = np.where(state.missing[:, : self.columns], np.nan, values)
            usual = [0, round(Fraction(self.period) / Fraction(self.grid))][2 - self.times :]
            times = np.where(state.missing[:, self.columns :], usual, times)
        return values, np.ascontiguousarray(times)
