"""Cases of the streams that follow a trend by few points."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.mechanisms.adaptive.pattern import PatternLDP, PatternSampling
from tempriv.privacy.units import Contribution, Event, Window
from tests.conformance.case_checks import Case, Small
from tests.reference import budgets, pattern

Floats = npt.NDArray[np.float64]


def readings_of(mechanism: Any) -> Callable[[np.random.Generator, int], Floats]:
    (low, high), grid = mechanism.bounds[0], mechanism.grid[0]

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Lines from corner to corner, some of them out of bounds."""
        span = high - low
        corners = np.cumsum(rng.integers(1, 9, count + 1))
        heights = rng.uniform(low - span / 4, high + span / 4, count + 1)
        values = np.interp(np.arange(count), corners - corners[0], heights)[:, None]
        if isinstance(mechanism.unit, Contribution):
            return np.rint(values / grid) * grid
        return values

    return readings


def on_grid(mechanism: Any, rows: Any) -> list[int | None]:
    return [row[0] for row in budgets.on_grid(rows, mechanism.bounds, mechanism.grid)]


def sent(mechanism: PatternLDP, rows: Any, words: Any) -> tuple[list[int], list[int], Any]:
    """By definition: what stands at each step, the steps that are sent, their budgets."""
    deviation = mechanism.spread / mechanism.grid[0]
    return pattern.breaks(
        on_grid(mechanism, rows),
        mechanism.epsilon,
        mechanism.window,
        deviation,
        mechanism.tolerance * deviation,
        mechanism.gains,
        mechanism.reach,
        words,
    )


def sampled(mechanism: PatternSampling, rows: Any, words: Any) -> tuple[list[int], dict[int, int]]:
    """By definition: what stands at each step, and what the samples take."""
    low, high = (round(edge / mechanism.grid[0]) for edge in mechanism.bounds[0])
    counted = isinstance(mechanism.unit, Contribution)
    change = Fraction(mechanism.unit.per_step / mechanism.grid[0]) if counted else high - low
    each = mechanism.unit.each if counted else mechanism.unit
    return pattern.samples_along(
        on_grid(mechanism, rows),
        low,
        high,
        change / Fraction(mechanism.epsilon),
        1 if isinstance(each, Event) else each.length,
        mechanism.gains,
        words,
    )


def pattern_case(name: str, mechanism: Any, *smalls: Small) -> Case:
    grid, out = mechanism.grid[0], mechanism.domain.grids[0]
    definition: Any = sent if isinstance(mechanism, PatternLDP) else sampled
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings_of(mechanism),
        still=(grid * round(mechanism.bounds[0][1] / grid),),
        released=lambda rows, drawn: (
            out * np.array(definition(mechanism, rows, drawn[0])[0], dtype=np.float64)[:, None]
        ),
        parameters=(),
        cost=lambda outcomes, column: grid * np.abs(outcomes),
        smalls=smalls,
        independent=False,
        promises=not isinstance(mechanism, PatternLDP),
    )


BITS = (0.0, 1.0)

CASES: tuple[Case, ...] = (
    pattern_case("breaks", PatternLDP(epsilon=1.0, bounds=(0, 60), window=12)),
    pattern_case(
        "breaks, other settings",
        PatternLDP(
            epsilon=20.0,
            bounds=(-2, 1),
            window=3,
            tolerance=0.1,
            gains=(0.5, 0.3, 0.4),
            reach=(2.0, 1.5),
            spread=0.25,
            grid=2.0**-6,
        ),
    ),
    pattern_case("breaks, one step", PatternLDP(epsilon=3.0, bounds=(0, 8), window=1, grid=1.0)),
    pattern_case("line, numbers", PatternSampling(epsilon=8.0, bounds=(-1, 2), unit=Window(7))),
    pattern_case(
        "line, important",
        PatternSampling(epsilon=200.0, bounds=(0, 50), unit=Window(20), gains=(0.9, 0.1, 0.2)),
    ),
    pattern_case(
        "line, event",
        PatternSampling(epsilon=3.0, bounds=(0, 1), grid=0.5),
        Small((*BITS, 7.0), 2, 1e-5),
    ),
    pattern_case(
        "line, window",
        PatternSampling(epsilon=3.0, bounds=(0, 1), unit=Window(2), grid=0.5),
        Small(BITS, 4, 1e-4),
    ),
    pattern_case(
        "line, three steps",
        PatternSampling(epsilon=3.0, bounds=(0, 1), unit=Window(3), grid=1),
        Small(BITS, 4, 1e-4),
    ),
    pattern_case(
        "line, eager",
        PatternSampling(epsilon=5.0, bounds=(0, 1), unit=Window(2), gains=(1e6, 0, 0), grid=1),
        Small(BITS, 4, 1e-3),
    ),
    pattern_case(
        "line, soon again",
        # after its second sample every next one is taken as soon as the window lets it: the last
        # two of six steps are a window with two samples in it
        PatternSampling(epsilon=5.0, bounds=(0, 1), unit=Window(2), gains=(1e6, 0, 0), grid=1),
        Small(BITS, 6, 2e-2),
    ),
    pattern_case(
        "line, counts",
        PatternSampling(epsilon=1.0, bounds=(0, 300), unit=Contribution(Window(9))),
    ),
    pattern_case(
        "line, few counts",
        PatternSampling(epsilon=2.0, bounds=(0, 9), unit=Contribution(Window(2))),
        Small((*BITS, 2.0), 3, 1e-4),
    ),
)


def loss_of(mechanism: Any, one: Any, other: Any, tail: float) -> float:
    """Between two inputs, the larger of both ways, by enumeration."""
    laws = [exact.distribution(mechanism, example, tail) for example in (one, other)]
    compared = exact.Comparison.of(*laws), exact.Comparison.of(*laws[::-1])
    return max(found.pure_loss(mechanism.epsilon) for found in compared)
