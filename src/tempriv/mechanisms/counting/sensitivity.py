"""What neighbors change in a column of increments, and what noise is paid with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tempriv.errors import require
from tempriv.mechanisms.numbers import LEAST_SHARE, NumberMechanism
from tempriv.privacy.units import Contribution, Event, Person, Unit, WholeSeries, Window
from tempriv.sampling.distributions import DiscreteGaussian, DiscreteLaplace

Noise = DiscreteLaplace | DiscreteGaussian

WIDEST = 1 << 36


@dataclass(frozen=True)
class Changes:
    """What one person or reading changes in a column of increments.

    Parameters:
        each: the most that one step changes, in grid steps.
        steps: how many steps change, at most.
        window: of how many steps in a row these are.
        total: what all steps change together, in grid steps.
    """

    each: Fraction
    steps: int
    window: int
    total: Fraction


def changes_of(unit: Unit, width: int, grid: float, limit: int | None) -> Changes:
    """What a unit changes, in grid steps.

    Parameters:
        unit: what is protected.
        width: the most that one reading can change when it is replaced, in grid steps.
        grid: of the column.
        limit: how many steps a series has, at most.
    """
    require(
        isinstance(unit, (Event, Window, WholeSeries, Person, Contribution)),
        f"unit={unit!r}: must be Event, Window, WholeSeries or Person, or Contribution for counts",
    )
    covered = unit.each if isinstance(unit, (Person, Contribution)) else unit
    window = covered.readings if limit is None else min(covered.readings, limit)
    if not isinstance(unit, Contribution):
        return Changes(Fraction(width), window, window, Fraction(width) * window)
    each = Fraction(unit.per_step) / Fraction(grid)
    total = min(Fraction(unit.most) / Fraction(grid), each * window)
    return Changes(each, math.ceil(total / each), window, total)


def column_share(mechanism: NumberMechanism) -> Fraction:
    """The part of the budget for a column of a series: people's counts change in one at a time.

    Parameters:
        mechanism: whose columns share it; refused if nothing is left for them.
    """
    parts = 1 if mechanism.unit.counts_people else len(mechanism.bounds)
    share = Fraction(mechanism.budget) / (parts * mechanism.unit.positions_per_person)
    require(
        share > LEAST_SHARE,
        f"{mechanism.budget:g} for {mechanism.unit!r}: must be greater, nothing is left of "
        "it for each column",
    )
    return share


def require_drawable(noise: Noise) -> None:
    """Refuse ``noise`` that is wider than its sampler's tables."""
    deviation = noise.scale if isinstance(noise, DiscreteLaplace) else noise.variance / WIDEST
    require(
        deviation < WIDEST,
        "grid: must be coarser for this much noise, or the budget greater: noise of 2^36 grid "
        "steps and more cannot be drawn",
    )
