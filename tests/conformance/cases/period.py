"""Cases of windows read at a noisy pace, of curves through noisy values, and of noisy times."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.data.series import EMPTY, RELEASED
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.units import Window
from tests.conformance.case_checks import Case, Small
from tests.reference import period as reference
from tests.reference import value

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Told:
    """Points in their rows, masked where there is none, and what each row says of itself."""

    rows: Any
    status: list[int]


def bridged(readings: Sequence[float]) -> list[float]:
    """Straight lines over what is missing (NaN), level at the ends; zeros where nothing is."""
    places = np.arange(len(readings))
    there = ~np.isnan(readings)
    if not there.any():
        return [0.0] * len(readings)
    return [float(one) for one in np.interp(places, places[there], np.array(readings)[there])]


def steps_down(time: float, grid: float) -> int:
    return math.floor(Fraction(time) / Fraction(grid))


def noisy_paces(
    mechanism: SamplingPeriod, rows: Any, drawn: list[Integers]
) -> list[tuple[int, int, tuple[Fraction, ...]]]:
    """First reading, points and told times (a shift, then a period) of each window."""
    w, grid = mechanism.window, mechanism.grid
    usual = [Fraction(0), Fraction(mechanism.period)][2 - mechanism.times :]
    values, gaps = np.ma.getdata(rows), np.ma.getmaskarray(rows)
    found = []
    for first, points in reference.windows(len(rows), w):
        # one draw for each window, where the first of its points comes out
        noise = [int(one[first + w + 1]) for one in drawn]
        told = []
        for clock in range(mechanism.times):
            column = mechanism.columns + clock
            added = 0
            for i in range(1, w + 1):
                row = first + min(i, points)
                if gaps[row, column]:
                    added += round(usual[clock] / Fraction(grid))
                else:
                    added += steps_down(float(values[row, column]), grid)
            told.append(added)
        if not told:
            told = [round(Fraction(mechanism.period) * w / Fraction(grid))]
        told = [one + extra for one, extra in zip(told, reversed(noise), strict=True)]
        mean = [Fraction(one) * Fraction(grid) / w for one in told]
        if mechanism.clamp is not None:
            step = Fraction(grid) / w
            low, high = (Fraction(edge) for edge in mechanism.clamp)
            low = math.ceil(low / step) * step
            mean[-1] = min(max(mean[-1], low), max(low, math.floor(high / step) * step))
        found.append((first, points, tuple(mean)))
    return found


def at_a_noisy_pace(mechanism: SamplingPeriod) -> Callable[[Any, list[Integers]], Told]:
    """By definition, from readings and noise."""
    curve, columns, w = reference.CURVES[mechanism.interpolation], mechanism.columns, 0
    w = mechanism.window

    def released(rows: Any, drawn: list[Integers]) -> Told:
        drawn = [np.concatenate([one, np.zeros(2 * w + 2, dtype=np.int64)]) for one in drawn]
        values = np.where(np.ma.getmaskarray(rows), np.nan, np.ma.getdata(rows))
        out, status = np.full(values.shape, np.nan), [EMPTY] * len(values)
        for first, points, times in noisy_paces(mechanism, rows, drawn):
            late = times[0] if mechanism.shift is not None else Fraction(0)
            for column in range(columns):
                readings = values[first : first + points + 2, column]
                at = curve(bridged(readings.tolist()))
                for i in range(1, points + 1):
                    place = float((late + i * times[-1]) / Fraction(mechanism.period))
                    gone = math.isnan(readings[i])
                    out[first + i, column] = math.nan if gone else at(place)
            for i in range(1, points + 1):
                out[first + i, columns:] = [float(one) for one in times[: mechanism.times]]
                status[first + i] = RELEASED
        return Told(np.ma.masked_invalid(out), status)

    return released


def pace_laws(mechanism: SamplingPeriod) -> tuple[Fraction, ...]:
    """In grid steps, on the sum over a window: what its times can change, over their share."""
    limits = [mechanism.tau] if mechanism.shift is None else [mechanism.tau, mechanism.shift]
    share = Fraction(mechanism.epsilon) / len(limits)
    widest = [math.ceil(Fraction(limit) / Fraction(mechanism.grid)) for limit in limits]
    return tuple(mechanism.window * one / share for one in widest)


def wandering(rng: np.random.Generator, count: int, columns: int) -> Floats:
    return np.cumsum(rng.normal(0, 1.5, (count, columns)), axis=0) + rng.normal(0, 0.3, columns)


def pace_case(name: str, mechanism: SamplingPeriod, *smalls: Small, **traits: Any) -> Case:
    columns, tau, period = mechanism.columns, mechanism.tau, mechanism.period

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Values that wander, and steps on either side of the public one."""
        values = wandering(rng, count, columns)
        steps = period + tau * np.clip(rng.standard_t(2, (count, 1)), -1.5, 1.5)
        shifts = rng.normal(0, mechanism.shift or 1, (count, 1))
        return np.concatenate([values, shifts, steps], axis=1)[
            :, [*range(columns), *([columns, columns + 1][2 - mechanism.times :])]
        ]

    usual = (0.0, period)[2 - mechanism.times :]
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=((1.25,) * columns + usual),
        released=at_a_noisy_pace(mechanism),  # type: ignore[arg-type]
        parameters=pace_laws(mechanism),
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        independent=False,
        sparse=mechanism.window,
        **traits,
    )


def through_noisy_values(mechanism: NoisyCurve) -> Callable[[Any, list[Integers]], Told]:
    def released(rows: Any, drawn: list[Integers]) -> Told:
        gaps = np.ma.getmaskarray(rows)
        filled = np.where(gaps, mechanism.bounds[0][0], np.ma.getdata(rows))
        noisy = value.numbers(filled, mechanism.bounds, mechanism.grid, drawn)
        noisy[gaps] = np.nan
        out, status = np.full(noisy.shape, np.nan), [EMPTY] * len(noisy)
        for first, points in reference.windows(len(noisy), mechanism.window):
            for column in range(noisy.shape[1]):
                readings = noisy[first : first + points + 2, column].tolist()
                at = reference.cosine(bridged(readings), mechanism.waves)
                for i in range(1, points + 1):
                    out[first + i, column] = math.nan if math.isnan(readings[i]) else at(i)
            status[first + 1 : first + 1 + points] = [RELEASED] * points
        return Told(np.ma.masked_invalid(out), status)

    return released


def curve_case(name: str, mechanism: NoisyCurve, *smalls: Small, **traits: Any) -> Case:
    bounds, grids = mechanism.bounds, mechanism.grid
    readings = getattr(mechanism.unit, "length", 1)

    def wide(rng: np.random.Generator, count: int) -> Floats:
        """Some out of bounds."""
        low, high = np.array(bounds).T
        return rng.uniform(low - (high - low) / 4, high + (high - low) / 4, (count, len(bounds)))

    return Case(
        name=name,
        mechanism=mechanism,
        readings=wide,
        still=tuple(
            grid * round(high / grid) for (_, high), grid in zip(bounds, grids, strict=True)
        ),
        released=through_noisy_values(mechanism),  # type: ignore[arg-type]
        parameters=tuple(
            value.laplace_scales(mechanism.epsilon, bounds, grids, readings * len(bounds))
        ),
        cost=lambda outcomes, column: grids[column] * np.abs(outcomes),
        smalls=smalls,
        independent=False,
        **traits,
    )


def times_case(name: str, mechanism: NoisyTimes, *smalls: Small) -> Case:
    tau, grid = mechanism.tau, mechanism.grid
    widest = math.ceil(Fraction(tau) / Fraction(grid))
    return Case(
        name=name,
        mechanism=mechanism,
        readings=lambda rng, count: np.cumsum(rng.exponential(tau, (count, 1)), axis=0) - 3 * tau,
        still=(5 * grid,),
        released=lambda rows, drawn: np.array(
            [
                [(steps_down(time, grid) + int(moved)) * grid]
                for (time,), moved in zip(rows.tolist(), drawn[0], strict=True)
            ]
        ).reshape(rows.shape),
        parameters=(widest * mechanism.window / Fraction(mechanism.epsilon),),
        cost=lambda outcomes, column: grid * np.abs(outcomes),
        smalls=smalls,
    )


def paces(values: Sequence[float], times: Sequence[float]) -> tuple[tuple[float, float], ...]:
    return tuple((one, time) for one in values for time in times)


TWO_PACES = ((0.0, 1.0), (0.0, 2.0))
RISING = paces((0.0, 3.0), (1.0, 2.0))

CASES: tuple[Case, ...] = (
    pace_case("pace", SamplingPeriod(epsilon=1.0, window=8, tau=1.0, grid=2.0**-4)),
    pace_case(
        "pace, taxis",
        SamplingPeriod(epsilon=2.0, window=5, tau=20.0, period=15.0, columns=2, grid=0.25),
    ),
    pace_case(
        "pace, hermitian",
        SamplingPeriod(epsilon=1.0, window=7, tau=0.3, interpolation="hermitian", clamp=(0.25, 2)),
        sampled=False,
    ),
    pace_case(
        "pace, as printed",
        SamplingPeriod(epsilon=1.0, window=8, tau=1.0, interpolation="printed", clamp=None),
        sampled=False,
    ),
    pace_case(
        "pace, public",
        SamplingPeriod(epsilon=3.0, window=6, tau=2.0, period=2.0, pace="public", clamp=None),
        promises=False,
        sampled=False,
    ),
    pace_case(
        "pace and shift",
        SamplingPeriod(
            epsilon=2.0, window=3, tau=0.5, shift=2.0, columns=2, clamp=None, grid=2.0**-4
        ),
    ),
    pace_case(
        "pace, one reading",
        SamplingPeriod(epsilon=1.0, window=1, tau=0.7, interpolation="printed", grid=2.0**-7),
    ),
    pace_case(
        "pace, long windows",
        SamplingPeriod(epsilon=1.0, window=298, tau=1.0, clamp=None),
        sampled=False,
    ),
    pace_case(
        "pace, few",
        SamplingPeriod(epsilon=3.0, window=2, tau=1.0, grid=1.0, clamp=None),
        Small(RISING, 4, 1e-3),
        Small(TWO_PACES, 5, 1e-2),  # a window, and what is left
    ),
    pace_case(
        "pace, few, clamped",
        SamplingPeriod(epsilon=2.0, window=1, tau=1.0, grid=1.0, clamp=(1.0, 2.0)),
        Small(TWO_PACES, 3, 1e-12),
    ),
    pace_case(
        "pace, off the grid",
        # within 1.5 of each other is within two steps of the grid
        SamplingPeriod(
            epsilon=3.0, window=2, tau=1.5, grid=1.0, clamp=None, interpolation="printed"
        ),
        Small(((0.0, 0.9), (3.0, 2.4)), 4, 1e-4),
    ),
    pace_case(
        "pace, few, two columns",
        SamplingPeriod(epsilon=4.0, window=2, tau=1.0, grid=1.0, columns=2, clamp=None),
        Small(((0.0, 0.0, 1.0), (3.0, 1.0, 2.0)), 4, 1e-2),
    ),
    pace_case(
        "pace and shift, few",
        SamplingPeriod(epsilon=4.0, window=1, tau=1.0, shift=1.0, grid=1.0, clamp=None),
        Small(((0.0, 0.0, 1.0), (3.0, 1.0, 2.0)), 3, 1e-3),
    ),
    curve_case("curve", NoisyCurve(epsilon=1.0, bounds=(0, 5), window=8, grid=2.0**-5)),
    curve_case(
        "curve, window",
        NoisyCurve(
            epsilon=8.0, bounds=((-1, 1), (0, 50)), window=5, unit=Window(4), waves=7, grid=2.0**-4
        ),
        sampled=False,
    ),
    curve_case(
        "curve, few",
        NoisyCurve(epsilon=3.0, bounds=(0, 1), window=1, waves=3, grid=1.0),
    ),
    times_case("times", NoisyTimes(epsilon=1.0, tau=60.0, grid=1.0)),
    times_case(
        "times, one",
        NoisyTimes(epsilon=2.0, tau=1.0, grid=0.5),
        Small((0.0, 0.5, 1.0, 0.9), 2, 1e-3),
    ),
    times_case(
        "times, three",
        NoisyTimes(epsilon=6.0, tau=1.0, window=3, grid=1.0),
        Small((0.0, 1.0), 3, 1e-3),
    ),
)


def curves_tell_no_more_than_noisy_values(case: Case) -> None:
    """The guarantee, exactly, on three bits; and no more is guaranteed away than need be.

    Many ways lead to one point of a curve. What enumeration left out of the second law may all
    be there, so it is counted to it, unlike in ``the_promise_holds``.
    """
    mechanism, bits = case.mechanism, (0.0, 1.0)
    laws = {
        example: exact.distribution(mechanism, example, 2e-3)
        for example in itertools.product(bits, repeat=3)
    }
    worst = 0.0
    for one, law in laws.items():
        for other in mechanism.guarantee.unit.neighbors(one, bits):
            unseen = 1 - math.fsum(laws[other].values())
            for output, mass in law.items():
                worst = max(worst, math.log(mass / (laws[other].get(output, 0.0) + unseen)))
    claimed = mechanism.guarantee.loss.epsilon
    assert worst <= claimed, f"{worst} lost, {claimed} guaranteed"
    assert worst >= 0.9 * claimed, f"{worst} lost, {claimed} guaranteed"
