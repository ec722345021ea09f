"""Cases of the budgets over a sliding window, and of samples through a filter."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Contribution, WholeSeries, Window
from tests.conformance.case_checks import Case, Small
from tests.reference import budgets as reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def changes_of(mechanism: Any) -> list[Fraction]:
    """What the noise of each column is measured by: a person's part, or its share of a row."""
    if isinstance(mechanism.unit, Contribution):
        return [Fraction(mechanism.unit.per_step) / Fraction(grid) for grid in mechanism.grid]
    columns = list(zip(mechanism.bounds, mechanism.grid, strict=True))
    return [
        len(columns) * Fraction(round(high / grid) - round(low / grid))
        for (low, high), grid in columns
    ]


def window_of(mechanism: Any) -> tuple[int, Fraction]:
    """The length of the window, and how many rows' worth of change it can hold."""
    unit = mechanism.unit
    if isinstance(unit, Contribution):
        most = unit.per_step * unit.each.length
        total = most if unit.total is None else min(unit.total, most)
        return unit.each.length, Fraction(total) / Fraction(unit.per_step)
    return unit.length, Fraction(unit.length)


def released(mechanism: Any) -> Callable[[Any, list[Any]], Floats]:
    """By definition, from readings and noise."""
    bounds, grids, epsilon = mechanism.bounds, mechanism.grid, mechanism.epsilon
    first = reference.nothing_yet(bounds, grids)

    def through(rows: Any, drawn: list[Any]) -> Floats:
        def release(steps: list[reference.Row]) -> list[reference.Row]:
            if isinstance(mechanism, UniformBudget):
                return reference.uniform(steps, drawn)
            if isinstance(mechanism, SampleOnce):
                return reference.sample(steps, first, window_of(mechanism)[0], drawn)
            return adaptive(mechanism, steps, drawn)[0]

        return reference.values(rows, bounds, grids, release)

    def adaptive(mechanism: Any, steps: list[reference.Row], drawn: list[Any]) -> Any:
        kind = (
            reference.distribution
            if isinstance(mechanism, BudgetDistribution)
            else reference.absorption
        )
        budget = kind(epsilon, window_of(mechanism)[0])
        return reference.adaptive(
            steps, first, changes_of(mechanism), epsilon, budget, drawn[0], drawn[1:]
        )

    return through


def scales(mechanism: Any) -> tuple[Fraction, ...]:
    """Of the laws that are fixed beforehand: by column, or of looking at the distance."""
    changes, epsilon = changes_of(mechanism), Fraction(mechanism.epsilon)
    _, together = window_of(mechanism)
    if isinstance(mechanism, UniformBudget):
        return tuple(change * together / epsilon for change in changes)
    if isinstance(mechanism, SampleOnce):
        return tuple(change / epsilon for change in changes)
    weights = [max(1, round(max(changes) / change)) for change in changes]
    moves = [weight * change for weight, change in zip(weights, changes, strict=True)]
    counted = isinstance(mechanism.unit, Contribution)
    row = max(moves) if counted else sum(moves) / len(moves)
    return (2 * row * together / epsilon,)


def readings_of(mechanism: Any) -> Callable[[np.random.Generator, int], Floats]:
    bounds, grid = np.array(mechanism.bounds), np.array(mechanism.grid)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Levels that stay for a while; some out of bounds."""
        low, high = bounds.T
        spread = high - low
        levels = rng.uniform(low - spread / 3, high + spread / 3, (count, len(bounds)))
        stays = rng.random(count) < 0.6
        stays[:1] = False
        values = levels[np.maximum.accumulate(np.where(stays, 0, np.arange(count)))]
        if isinstance(mechanism.unit, Contribution):
            return np.rint(values / grid) * grid
        return values

    return readings


def budget_case(name: str, mechanism: Any, *smalls: Small, tight: bool = True) -> Case:
    grids = mechanism.grid
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings_of(mechanism),
        still=tuple(
            grid * round(high / grid)
            for (_, high), grid in zip(mechanism.bounds, grids, strict=True)
        ),
        released=released(mechanism),
        parameters=scales(mechanism),
        cost=lambda outcomes, column: grids[column] * np.abs(outcomes),
        smalls=smalls,
        tight=tight,
        independent=isinstance(mechanism, UniformBudget),
    )


def fast_case(name: str, mechanism: Fast, *smalls: Small) -> Case:
    change, grid = changes_of(mechanism)[0], mechanism.grid[0]
    together = mechanism.samples * change
    if isinstance(mechanism.unit, Contribution) and mechanism.unit.total is not None:
        together = min(together, Fraction(mechanism.unit.total) / Fraction(grid))
    scale = together / Fraction(mechanism.epsilon)
    arguments = (
        mechanism.samples,
        2 * float(scale) ** 2,
        (mechanism.wander / grid) ** 2,
        float(change),
        mechanism.gains,
        mechanism.set_point,
        mechanism.stretch,
    )
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings_of(mechanism),
        still=tuple(high for _, high in mechanism.bounds),
        released=lambda rows, drawn: reference.values(
            rows,
            mechanism.bounds,
            mechanism.grid,
            lambda steps: reference.fast(steps, *arguments, drawn[0]),
        ),
        parameters=(scale,),
        cost=lambda outcomes, column: np.abs(outcomes),
        smalls=smalls,
        tight=False,
        independent=False,
    )


BITS = (0.0, 1.0)
ONE_IN_TWO = ((0, 0), (0, 1), (1, 0))
COUNTED = Contribution(Window(2))

CASES: tuple[Case, ...] = (
    budget_case(
        "uniform, fine grid",
        UniformBudget(epsilon=4, bounds=(-1, 2), unit=Window(5), grid=2.0**-5),
    ),
    budget_case(
        "uniform, window",
        UniformBudget(epsilon=6.0, bounds=(0, 1), unit=Window(2), grid=1),
        Small(BITS, 3, 1e-4),
    ),
    budget_case(
        "uniform, counts in two cells",
        UniformBudget(
            epsilon=6.0, bounds=((0, 9), (0, 9)), unit=Contribution(Window(3), total=2), grid=1
        ),
        Small(ONE_IN_TWO, 2, 1e-3),
    ),
    budget_case("once, fine grid", SampleOnce(epsilon=1, bounds=(3, 9), unit=Window(7))),
    budget_case(
        "once, window",
        SampleOnce(epsilon=3.0, bounds=(0, 1), unit=Window(2), grid=1),
        Small(BITS, 3, 1e-4),
        Small((*BITS, 7.0), 2, 1e-5),
    ),
    budget_case(
        "once, unlike columns",
        SampleOnce(epsilon=4.0, bounds=((0, 1), (1, 2)), unit=Window(2), grid=(1, 0.5)),
        Small(((0, 1), (1, 2)), 2, 1e-4),
    ),
    budget_case(
        "once, counts in two cells",
        SampleOnce(epsilon=3.0, bounds=((0, 9), (0, 9)), unit=COUNTED),
        Small(ONE_IN_TWO, 2, 1e-3),
    ),
    budget_case(
        "distribution, fine grid",
        BudgetDistribution(epsilon=6, bounds=(-1, 2), unit=Window(5), grid=2.0**-5),
        tight=False,
    ),
    budget_case(
        "distribution, window",
        BudgetDistribution(epsilon=12.0, bounds=(0, 1), unit=Window(2), grid=1),
        Small(BITS, 3, 1e-3),
        tight=False,
    ),
    budget_case(
        "distribution, three steps",
        BudgetDistribution(epsilon=12.0, bounds=(0, 1), unit=Window(3), grid=1),
        Small(BITS, 3, 1e-3),
        tight=False,
    ),
    budget_case(
        "distribution, unlike columns",
        BudgetDistribution(epsilon=30.0, bounds=((0, 1), (1, 2)), unit=Window(2), grid=(1, 0.5)),
        Small(((0, 1), (1, 2)), 2, 1e-2),
        tight=False,
    ),
    budget_case(
        "distribution, counts in two cells",
        BudgetDistribution(epsilon=12.0, bounds=((0, 40), (0, 40)), unit=COUNTED),
        Small(ONE_IN_TWO, 2, 1e-2),
        tight=False,
    ),
    budget_case(
        "absorption, fine grid",
        BudgetAbsorption(epsilon=8, bounds=(-1, 2), unit=Window(5), grid=2.0**-5),
    ),
    budget_case(
        "absorption, window",
        BudgetAbsorption(epsilon=8.0, bounds=(0, 1), unit=Window(2), grid=1),
        Small(BITS, 3, 1e-3),
    ),
    budget_case(
        "absorption, unlike columns",
        BudgetAbsorption(epsilon=20.0, bounds=((0, 1), (1, 2)), unit=Window(2), grid=(1, 0.5)),
        Small(((0, 1), (1, 2)), 2, 1e-2),
        tight=False,
    ),
    budget_case(
        "absorption, counts in two cells",
        BudgetAbsorption(epsilon=8.0, bounds=((0, 40), (0, 40)), unit=COUNTED),
        Small(ONE_IN_TWO, 2, 1e-2),
        tight=False,
    ),
    fast_case(
        "fast, numbers",
        Fast(epsilon=60.0, bounds=(0, 4), samples=20, wander=1, unit=WholeSeries(60)),
    ),
    fast_case(
        "fast, few bits",
        # a wander this large lets samples through as they are: what is enumerated is told apart
        Fast(epsilon=3.0, bounds=(0, 1), samples=2, wander=1e6, unit=WholeSeries(4), grid=1),
        Small(BITS, 3, 1e-3),
    ),
    fast_case(
        "fast, counts",
        Fast(
            epsilon=4.0,
            bounds=(0, 200),
            samples=30,
            wander=5,
            unit=Contribution(WholeSeries(50), total=12),
            gains=(0.5, 0.3, 0.2),
        ),
    ),
    fast_case(
        "fast, few counts",
        Fast(
            epsilon=2.0,
            bounds=(0, 9),
            samples=2,
            wander=1e6,
            unit=Contribution(WholeSeries(3)),
        ),
        Small((0.0, 1.0, 2.0), 3, 1e-4),
    ),
)
