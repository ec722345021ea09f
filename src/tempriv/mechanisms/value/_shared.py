"""Noise on values: Laplace, Gaussian, randomized response and planar Laplace.

Each takes the unit to protect and shares its budget over the readings and columns that the unit
lets differ; on counts (``Contribution``) noise is measured by what one person adds to them.
Readings are put on a public grid first and noise is drawn as exact integers, so released numbers
carry no floating-point trace of the reading.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import (
    FINENESS,
    Integers,
    Numbers,
    grids_of,
    power_of_two_below,
)
from tempriv.privacy.guarantees import Guarantee, Loss, Model
from tempriv.privacy.units import (
    Contribution,
    Event,
    Person,
    Unit,
    WholeSeries,
    Window,
)

LEAST_SHARE = Fraction(1, 10**100)


def _share(budget: float, unit: Unit, columns: int, per_column: bool) -> Fraction:
    """The part of a budget that falls to one reading in one column."""
    require(
        isinstance(unit, (Event, Window, WholeSeries, Person)),
        f"unit={unit!r}: must be Event, Window, WholeSeries or Person",
    )
    share = Fraction(budget) / (unit.readings * (1 if per_column else columns))
    require(
        share > LEAST_SHARE,
        f"{budget:g} for {unit!r}: must be greater, nothing is left of it for each reading",
    )
    return share


def _total(budget: float, columns: int, per_column: bool) -> float:
    return budget * columns if per_column else budget


def _numbers(mechanism: Any) -> Numbers:
    return Numbers(mechanism.bounds, mechanism.grid, mechanism.unit.counts_people)


def number_grids(mechanism: Any, scale_to_range: float) -> tuple[float, ...]:
    """The grids as given; or fine beside the noise; or, for counts, what a person's part is of."""
    unit, given = mechanism.unit, mechanism.grid
    if isinstance(unit, Contribution):
        require(
            not mechanism.per_column,
            "per_column: must be left out for Contribution, which speaks of all columns together",
        )
        if given is None:
            given = 1.0 if unit.per_step == int(unit.per_step) else unit.per_step / FINENESS
            given = given if given == 1.0 else power_of_two_below(given)
        grids = grids_of(given, mechanism.bounds, scale_to_range)
        for grid in grids:
            for name, part in (("per_step", unit.per_step), ("total", unit.total)):
                require(
                    part is None or Fraction(part) % Fraction(grid) == 0,
                    f"{name}={part} of the unit: must be a multiple of the grid {grid:g}, since "
                    "counts are; count in another unit, such as cents",
                )
        return grids
    return grids_of(given, mechanism.bounds, scale_to_range)


def model_of(unit: Unit) -> Model:
    """Counts have been made of many people's events, so whoever counts is trusted."""
    return "central" if unit.counts_people else "local"


def change_of(unit: Unit, numbers: Numbers) -> list[Fraction]:
    """How much one row can change in each column, in grid steps."""
    if isinstance(unit, Contribution):
        return [Fraction(unit.per_step) / Fraction(grid) for grid in numbers.grids]
    return [Fraction(width) for width in numbers.widths]


def _promise(mechanism: Any, loss: Loss) -> Guarantee:
    return Guarantee(loss, mechanism.unit, model_of(mechanism.unit))


def _add_noise(
    mechanism: Any, readings: Integers, noise: NoiseSource, state: SeriesState
) -> Integers:
    """Independent noise for every reading and column."""
    drawn = [noise(law, f"column {i}") for i, law in enumerate(mechanism.laws)]
    return readings + np.stack(drawn, axis=1)
