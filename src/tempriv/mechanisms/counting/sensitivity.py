"""What neighbors change in a column of increments, and how much noise of a law varies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tempriv.errors import require
from tempriv.privacy.units import Contribution, Event, Person, Unit, WholeSeries, Window
from tempriv.sampling import distributions

Law = distributions.DiscreteLaplace | distributions.DiscreteGaussian

WIDEST = 1 << 36


@dataclass(frozen=True)
class Changes:
    """At most ``steps`` of ``window`` steps in a row, each by ``each``, ``total`` together."""

    each: Fraction
    steps: int
    window: int
    total: Fraction


def changes_of(unit: Unit, width: int, grid: float, limit: int | None) -> Changes:
    """In grid steps; ``width`` is the most that one reading can change when it is replaced."""
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


def require_drawable(law: Law) -> None:
    """Refuse noise that is wider than its sampler's tables."""
    deviation = (
        law.scale if isinstance(law, distributions.DiscreteLaplace) else law.variance / WIDEST
    )
    require(
        deviation < WIDEST,
        "grid: must be coarser for this much noise, or the budget greater: noise of 2^36 grid "
        "steps and more cannot be drawn",
    )


def variance_of(law: Law) -> float:
    """E k^2: of the discrete law, not of the continuous one.

    >>> round(variance_of(distributions.DiscreteLaplace(Fraction(1))), 6)
    1.841347
    """
    if isinstance(law, distributions.DiscreteLaplace):
        half = float(1 / (2 * law.scale))
        return 1 / (2 * math.sinh(half) ** 2) if half < 300 else 0.0
    variance = float(law.variance)
    if variance > 20:
        return variance  # exact to 1e-80 by Poisson summation
    reach = math.ceil(40 * math.sqrt(variance)) + 1
    return 2 * math.fsum(k * k * law.pmf(k) for k in range(1, reach + 1))
