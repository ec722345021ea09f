"""What mechanisms for bounded numbers have in common.

Each takes the unit to protect and shares its budget over the readings and columns that the unit
lets differ; on counts (``Contribution``) noise is measured by what one person adds to them.
Readings are put on a public grid first and noise is drawn as exact integers, so released numbers
carry no floating-point trace of the reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

import numpy as np

from tempriv.data.series import Bounds
from tempriv.errors import require
from tempriv.mechanisms.base import Mechanism, NoiseSource, SeriesState
from tempriv.mechanisms.domains import (
    FINENESS,
    Derived,
    Grid,
    Integers,
    Numbers,
    bounds_of,
    grids_of,
    one_budget,
    positive,
    power_of_two_below,
)
from tempriv.mechanisms.options import BOUNDS, RESOLUTION, shared
from tempriv.privacy.guarantees import Concentrated, Guarantee, Loss, Model, NoGuarantee, Pure
from tempriv.privacy.units import Event, Person, Unit, WholeSeries, Window
from tempriv.sampling.distributions import DiscreteLaplace, Distribution, MagnitudeDistribution

if TYPE_CHECKING:
    from tempriv.privacy.units import Contribution

LARGEST_SCALE = 1 << 34  # in grid steps; greater noise would drown whatever the bounds allow
LEAST_SHARE = Fraction(1, 10**100)


class AcceptedUnits(NamedTuple):
    """The units that a mechanism takes.

    Parameters:
        kinds: their classes.
        remedy: what a refusal says that the unit must be, and why.
        counts: whether it takes what a person adds to counts within one of them, too.
    """

    kinds: tuple[type[Unit], ...]
    remedy: str
    counts: bool = True


READINGS = AcceptedUnits(
    (Event, Window, WholeSeries, Person), "Event, Window, WholeSeries or Person", counts=False
)
"""For noise that is measured by what each reading can change."""


@dataclass(frozen=True, kw_only=True)
class NumberMechanism(Mechanism):
    """Bounded numbers, put on a public grid before anything is done to them.

    Defaults are those of a mechanism that adds independent noise to every number. A subclass says
    at least what noise that is (``distributions``), and has a field for its budget: ``epsilon``,
    ``rho``, or both, as ``command.noise`` says.

    Parameters:
        bounds: smallest and largest possible value, for all columns or for each.
        grid: of released values, a power of two, for all columns or for each; fine beside the
            noise by default.
    """

    bounds: Bounds = shared(BOUNDS)
    grid: Grid = shared(RESOLUTION, default=None)

    accepted_units: ClassVar[AcceptedUnits | None] = None
    """Which units it takes, where not all that state their readings."""
    one_column: ClassVar[str | None] = None
    """What is to be done with further columns, where it takes only one."""

    if TYPE_CHECKING:  # fields of some, which a property would stand in the way of

        @property
        def epsilon(self) -> float | None:
            """The budget, for Laplace noise."""

        @property
        def rho(self) -> float | None:
            """The budget, for Gaussian noise."""

        @property
        def per_column(self) -> bool:
            """Whether every column has the whole budget, instead of sharing it."""

        @property
        def distributions(self) -> Sequence[MagnitudeDistribution]:
            """The noise of each column, in steps of its grid."""

    else:
        per_column = False

    def __post_init__(self) -> None:
        self._require_budget()
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        require(
            self.one_column is None or len(self.bounds) == 1,
            f"bounds={self.bounds}: must be one pair, for one column; {self.one_column}",
        )
        if self.accepted_units is not None:
            kinds, remedy, counts = self.accepted_units
            unit = self.unit
            counted = counted_by(unit)
            each = counted.each if counts and counted else unit
            require(isinstance(each, kinds), f"unit={self.unit!r}: must be {remedy}")
        self._require_settings()
        object.__setattr__(self, "grid", self._fitting_grids())
        self._require_noise()

    def _require_budget(self) -> None:
        if self.command.noise == "either":
            one_budget(self.epsilon, self.rho)
        else:
            name = "rho" if self.is_gaussian else "epsilon"
            positive(name, getattr(self, name))

    def _require_settings(self) -> None:
        """Refuse and complete the fields that a subclass has, before there is a grid."""

    def _require_noise(self) -> None:
        """Refuse what cannot be drawn, now that there is a grid."""
        _ = self.distributions

    # the grid

    @property
    def noise_to_range(self) -> float:
        """The size of the noise as a part of the range of values, which grids are fine beside."""
        return 1 / float(self.reading_share)

    def _fitting_grids(self) -> tuple[float, ...]:
        """As given; or fine beside the noise; or, for counts, what a person's part is made of."""
        unit, given = counted_by(self.unit), self.grid
        if unit is None:
            return grids_of(given, self.bounds, self.noise_to_range)
        require(
            not self.per_column,
            "per_column: must be left out for Contribution, which speaks of all columns together",
        )
        if given is None:
            given = 1.0
            if unit.per_step != int(unit.per_step):
                given = power_of_two_below(unit.per_step / FINENESS)
        grids = grids_of(given, self.bounds, self.noise_to_range)
        for grid in grids:
            for name, part in (("per_step", unit.per_step), ("total", unit.total)):
                require(
                    part is None or Fraction(part) % Fraction(grid) == 0,
                    f"{name}={part} of the unit: must be a multiple of the grid {grid:g}, since "
                    "counts are; count in another unit, such as cents",
                )
        return grids

    @property
    def grids(self) -> tuple[float, ...]:
        """The grid of each column."""
        assert isinstance(self.grid, tuple), "as __post_init__ leaves it"
        return self.grid

    @property
    def numbers(self) -> Numbers:
        """The domain of readings."""
        return Numbers(self.bounds, self.grids, self.unit.counts_people)

    @property
    def domain(self) -> Numbers | Derived:
        return self.numbers

    # what noise is measured by

    @property
    def is_gaussian(self) -> bool:
        """Whether its noise is Gaussian, paid with rho, and not Laplace noise, with epsilon."""
        noise = self.command.noise
        return noise == "gaussian" or (noise == "either" and self.epsilon is None)

    @property
    def budget(self) -> float:
        """What noise is paid with."""
        return (self.rho if self.is_gaussian else self.epsilon) or 0.0

    @property
    def reading_share(self) -> Fraction:
        """The part of the budget that falls to one reading in one column.

        All of it for counts, whose noise is measured by all that one person adds to them.
        """
        if counted_by(self.unit):
            return Fraction(self.budget)
        return share_of(self.budget, self.unit, len(self.bounds), self.per_column)

    @property
    def row_changes(self) -> list[Fraction]:
        """What noise is measured by so that a row costs its budget once, in steps of each grid.

        What one person adds is bounded for all columns together. Numbers change each within its
        bounds, and columns that share a budget all do at once.
        """
        if unit := counted_by(self.unit):
            return [Fraction(unit.per_step) / Fraction(grid) for grid in self.grids]
        together = 1 if self.per_column else len(self.bounds)
        return [Fraction(together * width) for width in self.numbers.widths]

    @property
    def changes(self) -> list[Fraction]:
        """The same so that all rows of the unit cost the budget once."""
        if unit := counted_by(self.unit):
            return [Fraction(unit.most) / Fraction(grid) for grid in self.grids]
        return [self.unit.readings * change for change in self.row_changes]

    # what is true of it

    @property
    def loss(self) -> Loss:
        """What the output tells of the unit; columns with budgets of their own add up."""
        total = total_of(self.budget, len(self.bounds), self.per_column)
        return Concentrated(total) if self.is_gaussian else Pure(total)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        return Guarantee(self.loss, self.unit, model_of(self.unit))

    @property
    def errors(self) -> tuple[float, ...]:
        return self._errors_of(self.distributions)

    def _errors_of(self, distributions: Sequence[MagnitudeDistribution]) -> tuple[float, ...]:
        return tuple(
            grid * noise.mean_magnitude
            for grid, noise in zip(self.grids, distributions, strict=True)
        )

    def value_ranges(self, chance: float) -> list[tuple[float, float]] | None:
        """The bounds, and beyond them a grid step and what noise reaches but for a ``chance``."""
        reaches = [getattr(noise, "reach", None) for noise in self._independent_noise]
        if not reaches or None in reaches:
            return None
        return [
            (low - grid * (1 + reach(chance)), high + grid * (1 + reach(chance)))
            for (low, high), grid, reach in zip(self.bounds, self.grids, reaches, strict=True)
            if reach is not None
        ]

    @property
    def _independent_noise(self) -> Sequence[MagnitudeDistribution]:
        """The noise of each column, where a value is a reading and its noise; else none."""
        adds = type(self).perturb is NumberMechanism.perturb and type(self.domain) is Numbers
        return self.distributions if adds else ()

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with independent ``noise``, whatever the ``state``."""
        return readings + independent_noise(self.distributions, noise)


def laplace_noise(changes: Iterable[Fraction], budget: float | Fraction) -> list[DiscreteLaplace]:
    """Laplace noise of scale change / budget for each of some ``changes``.

    Parameters:
        changes: what the noise of each column is measured by, in grid steps.
        budget: epsilon, or the part of it that is for this noise.
    """
    return [DiscreteLaplace(change / Fraction(budget)) for change in changes]


def independent_noise(distributions: Sequence[Distribution], noise: NoiseSource) -> Integers:
    """A draw for every row and column.

    Parameters:
        distributions: that of each column.
        noise: where randomness comes from.
    """
    drawn = [noise(each, f"column {i}") for i, each in enumerate(distributions)]
    return np.stack(drawn, axis=1)


def require_drawable(scales: Iterable[Fraction]) -> None:
    """Refuse Laplace noise that is too wide.

    Parameters:
        scales: of all noise, in grid steps.
    """
    widest = max(scales)
    require(
        widest <= LARGEST_SCALE,
        f"noise of 2^{int(widest).bit_length()} grid steps: the grid is too fine for this "
        "much of it; choose a coarser grid, or a greater epsilon",
    )


def share_of(budget: float, unit: Unit, columns: int, per_column: bool) -> Fraction:
    """The part of a budget that falls to one reading in one column.

    Parameters:
        budget: epsilon or rho.
        unit: what is protected.
        columns: how many value columns there are.
        per_column: whether each has the whole budget.
    """
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


def total_of(budget: float, columns: int, per_column: bool) -> float:
    """What columns cost together that share a budget, or have it each.

    Parameters:
        budget: epsilon or rho.
        columns: how many value columns there are.
        per_column: whether each has the whole budget.
    """
    return budget * columns if per_column else budget


def model_of(unit: Unit) -> Model:
    """Counts have been made of many people's events, so whoever counts is trusted.

    Parameters:
        unit: what is protected.
    """
    return "central" if unit.counts_people else "local"


def counted_by(unit: Unit) -> Contribution | None:
    """The unit if it is about counts of people, None otherwise; does not load what counts are.

    Parameters:
        unit: what is protected.

    Raises:
        ParameterError: it is no unit.
    """
    require(
        isinstance(unit, Unit),
        f"unit={unit!r}: must be Event, Window, WholeSeries, Person or Contribution",
    )
    return cast("Contribution", unit) if unit.counts_people else None
