"""The pace of a window hidden by reading it again at a noisy one (SWP and SPPA).

Readings are windows of n = w + 2, each beginning on the last but one of the window before; the
middle w are released as the curve through all n has them at a noisy period. Only the noisy period
is bought with the budget: the values lie on a curve that the readings determine.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.mechanisms.base import (
    NOT_PROTECTED,
    CommandLine,
    Description,
    NoiseSource,
    ReportTexts,
    SeriesState,
)
from tempriv.mechanisms.domains import LARGEST, Floats, Integers, positive
from tempriv.mechanisms.options import RESOLUTION, Option, Settings, option, pair, shared
from tempriv.mechanisms.retime import analysis
from tempriv.mechanisms.retime.base import (
    NOT_PROTECTED_OF_TIMES,
    SOURCE,
    STATUS_OF_CURVES,
    RetimeMechanism,
    require_drawable,
    require_window,
    time_grid,
    widest,
)
from tempriv.mechanisms.retime.domains import Timed, as_numbers
from tempriv.mechanisms.retime.interpolation import INTERPOLATIONS, Interpolation, Windows, basis
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Published
from tempriv.privacy.units.time import Pace
from tempriv.sampling.distributions import DiscreteLaplace

MAX_PERIODS = 1e6  # of tau, and of a noisy period
MAX_COLUMNS = 1000

NOT_PROTECTED_OF_RETIMED = (
    "the values: they lie on the curve through the readings, and whoever knows a few readings can "
    "work out the others; where readings stay the same they are published as they are",
    "when something happened, where values show it: what is read at another moment is another "
    "value",
)


@dataclass(frozen=True, kw_only=True)
class SamplingPeriod(RetimeMechanism):
    """Reads every window of a series again at a noisy sampling period.

    A row is its values and then, in the last column, the secret step: the time since the row
    before. The mean step of a window gets noise and is kept within public bounds (``clamp``); the
    curve through the window's values, on a public grid of ``period``, is read at that pace. The
    last column of the output is the noisy step itself. With ``shift`` the column before it says
    how late a row was, which gets half of the budget. With ``pace`` "public" there is no such
    column, and nothing is guaranteed.

    Parameters:
        epsilon: the budget for the steps of a window.
        window: how many readings have their pace hidden together.
        tau: within how much of each other steps are hidden, in the unit of the column of times.
        period: the public time from one reading to the next, in that unit.
        interpolation: the curve through a window: ``cosine``, ``hermitian`` or ``printed``.
        clamp: public bounds of the noisy period, in that unit; None sets none, and ``safe`` those
            within which a curve is read inside its window.
        columns: how many value columns there are.
        shift: within how much it is hidden how late readings were, in that unit; None has no
            column for it.
        pace: ``column`` if the last column holds the steps, ``public`` if they are known.
        grid: the public grid of times, a power of two in that unit; fine by default.

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
    clamp: tuple[float, float] | Literal["safe"] | None = option(
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
    grid: float | None = shared(RESOLUTION, default=None)

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
        status=STATUS_OF_CURVES,
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
            1e-100 < self.tau / self.period < MAX_PERIODS,
            f"tau={self.tau}: must be between 1e-100 and a million times the period",
        )
        require(
            self.interpolation in INTERPOLATIONS,
            f"interpolation={self.interpolation!r}: must be one of {', '.join(INTERPOLATIONS)}",
        )
        columns = self.columns
        require(
            isinstance(columns, int)
            and not isinstance(columns, bool)
            and 1 <= columns <= MAX_COLUMNS,
            f"columns={columns}: must be a whole number of value columns from 1 to {MAX_COLUMNS}",
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
        object.__setattr__(self, "clamp", self._settled_clamp())
        object.__setattr__(self, "grid", time_grid(self.grid, self.tau))
        longest = max((self.period, *(self.period_bounds or ())))
        require(
            self._grid_steps(longest) * self.window < LARGEST,
            f"grid={self.grid:g}: must be coarser for windows of {self.window} periods of "
            f"{self.period:g}",
        )
        least, most = self._edges()
        require(
            least <= most,
            f"clamp={self.clamp!r}: must be further apart, no noisy period lies in it; or choose "
            "a finer grid",
        )
        require_drawable(max(noise.scale for noise in self.distributions))

    @property
    def time_step(self) -> float:
        """The public grid of times, once it is settled."""
        assert self.grid is not None
        return self.grid

    def _grid_steps(self, time: float) -> Fraction:
        return Fraction(time) / Fraction(self.time_step)

    @property
    def period_bounds(self) -> tuple[float, float] | None:
        """Public bounds of the noisy period, once they are settled."""
        assert not isinstance(self.clamp, str)
        return self.clamp

    def _settled_clamp(self) -> tuple[float, float] | None:
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
            0 < low <= high <= MAX_PERIODS * self.period,
            f"clamp={self.clamp!r}: must be 'safe', None, or two times > 0, the lower first, up to "
            "a million periods; a period of 0 would repeat the first reading",
        )
        return low, high

    @classmethod
    def settings_from(cls, given: Settings, columns: int) -> dict[str, object]:
        """The pace is in a column, or public; a clamp is two numbers, ``safe`` or ``none``.

        Parameters:
            given: the options by their names, parsed.
            columns: how many value columns there are.
        """
        require(
            "pace" in given or "late" not in given,
            "[[late]]: goes with [[pace]], the column with the time since the reading before",
        )
        require(
            ("late" in given) == ("shift" in given),
            "[[shift]] and [[late]] go together: within what to hide how late readings were, and "
            "the column that says it",
        )
        settings: dict[str, object] = super().settings_from(given, columns)
        settings["columns"] = max(columns, 1)
        if "pace" not in given:
            settings["pace"] = "public"
        if "clamp" in given:
            typed = str(given["clamp"]).strip()
            words = {"none": None, "safe": "safe"}
            settings["clamp"] = words[typed] if typed in words else pair("clamp", typed)
        return settings

    @property
    def times(self) -> int:
        """How many columns of times a row ends with."""
        return 0 if self.pace == "public" else 1 if self.shift is None else 2

    @property
    def domain(self) -> Timed:
        return Timed(
            self.columns, self.times, self.time_step, finer=self.window, latency=self.window
        )

    @property
    def memory_size(self) -> int:
        width = self.columns + self.times
        return (self.window + 2) * width + self.window * self.columns + self.times

    @property
    def unit(self) -> Pace:
        """What is protected."""
        return Pace(self.tau, self.window, self.shift)

    @functools.cached_property
    def distributions(self) -> tuple[DiscreteLaplace, ...]:
        """Of the noise on the sum of a window's steps, and of its shifts, in grid steps."""
        share = Fraction(self.epsilon) / max(self.times, 1)
        return tuple(
            DiscreteLaplace(self.window * widest(limit, self.time_step) / share)
            for limit in reversed(self.unit.limits)
        )

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.pace == "public":
            return NoGuarantee(
                "the steps between readings are public, and values lie on a curve that the "
                "readings determine"
            )
        return super().guarantee

    def not_protected(self, about: Description) -> list[str]:
        """All but the pace, whatever else a release says ``about`` itself."""
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
        late = () if self.shift is None else (self._unit * self.distributions[1].mean_magnitude,)
        points = off * (self.window + 1) / 2 + sum(late)
        return (points,) * self.columns + (*late, off)[: self.times]

    @property
    def _unit(self) -> float:
        """What one step of the noise changes a mean over a window by."""
        return self.time_step / self.window

    def _edges(self) -> tuple[int, int]:
        """The clamp in units of the noise."""
        if self.period_bounds is None:
            return -(1 << 61), 1 << 61
        low, high = (self._grid_steps(edge) * self.window for edge in self.period_bounds)
        return math.ceil(low), math.floor(high)

    @property
    def _public(self) -> int:
        """The sum of a window's steps if each were the public period."""
        return round(self._grid_steps(self.period) * self.window)

    def _mean_change(self) -> float:
        """The mean distance of a noisy period from the public one, where the steps are that."""
        rate = float(1 / self.distributions[0].scale)
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

    def expected_mse(self, window_values: npt.ArrayLike, step: float | None = None) -> float:
        """The mean squared error of a window's points over the noise, exactly.

        Parameters:
            window_values: its n readings, one column.
            step: its own mean step, in the unit of times; the public period if left out.
        """
        return analysis.expected_mse(self._pace_distribution(step), self._curve(window_values))

    def mse_bound(self, window_values: npt.ArrayLike, step: float | None = None) -> float:
        """A bound of it by the spread of the readings alone (Theorem 5 of the paper, corrected).

        Parameters:
            window_values: its n readings, one column.
            step: its own mean step, in the unit of times; the public period if left out.
        """
        return analysis.mse_bound(self._pace_distribution(step), self._curve(window_values))

    def _pace_distribution(self, step: float | None) -> analysis.PaceDistribution:
        require(
            self.shift is None, "shift: must be left out here; the formulas are for the pace alone"
        )
        center = self.period if step is None else step
        low, high = self.period_bounds or (-math.inf, math.inf)
        return analysis.PaceDistribution(
            # next to no noise, where it would be less than numbers can tell
            scale=max(float(self.distributions[0].scale) * self._unit / self.period, 1e-30),
            center=center / self.period - 1,
            low=low / self.period - 1,
            high=high / self.period - 1,
        )

    def _curve(self, window_values: npt.ArrayLike) -> analysis.WindowCurve:
        values = np.asarray(window_values, dtype=np.float64)
        require(
            values.ndim == 1 and 3 <= len(values) <= self.window + 2,
            f"{values.size} readings: must be those of one window in one column, {self.window + 2}",
        )
        curve = basis(self.interpolation, len(values))
        turned = curve.waves(np.zeros(1))[0] * (curve.coefficients @ values)
        return analysis.WindowCurve(values, turned, curve.angle)

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Points of curves through ``readings`` at paces with ``noise``, by ``state``."""
        values, times = self._split(readings, state)
        windows = Windows(values, times, state, self.window)
        drawn = [
            noise(distribution, purpose, windows.ends)
            for distribution, purpose in zip(self.distributions, ("period", "shift"), strict=False)
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
            usual = [0, round(self._grid_steps(self.period))][2 - self.times :]
            times = np.where(state.missing[:, self.columns :], usual, times)
        return values, np.ascontiguousarray(times)
