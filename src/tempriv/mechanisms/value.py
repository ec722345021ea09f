"""Noise on values: Laplace, Gaussian, randomised response and planar Laplace.

Each takes the unit to protect and shares its budget over the readings and columns that the unit
lets differ; on counts (``Contribution``) noise is measured by what one person adds to them.
Readings are put on a public grid first and noise is drawn as exact integers, so released numbers
carry no floating-point trace of the reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from tempriv import noise
from tempriv.errors import require
from tempriv.guarantees import Concentrated, Guarantee, Loss, Model, Published, Pure
from tempriv.mechanisms.forms import (
    FINENESS,
    Choices,
    Integers,
    Numbers,
    Places,
    bounds_of,
    grids_of,
    positive,
    power_of_two,
    power_of_two_below,
)
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.stream import start
from tempriv.series import Bounds, Categories
from tempriv.units import Contribution, Event, Near, Person, Unit, WholeSeries, Window

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
    return Numbers(mechanism.bounds, mechanism.grid, isinstance(mechanism.unit, Contribution))


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
    return "central" if isinstance(unit, Contribution) else "local"


def change_of(unit: Unit, numbers: Numbers) -> list[Fraction]:
    """How much one row can change in each column, in grid steps."""
    if isinstance(unit, Contribution):
        return [Fraction(unit.per_step) / Fraction(grid) for grid in numbers.grids]
    return [Fraction(width) for width in numbers.widths]


def _promise(mechanism: Any, loss: Loss) -> Guarantee:
    return Guarantee(loss, mechanism.unit, model_of(mechanism.unit))


def _add_noise(mechanism: Any, readings: Integers, draw: Draw, track: Track) -> Integers:
    """Independent noise for every reading and column."""
    drawn = [draw(law, f"column {i}") for i, law in enumerate(mechanism.laws)]
    return readings + np.stack(drawn, axis=1)


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Adds discrete Laplace noise to bounded numbers.

    Guarantees:
        - pure epsilon for the unit, whatever the readings within (or outside) the bounds;
        - columns share epsilon, or with ``per_column`` each has it whole and the total is stated;
        - outputs lie on the public grid.

    >>> hourly = Laplace(epsilon=1.0, bounds=(0, 5))
    >>> print(hourly.guarantee.loss, "|", hourly.unit)
    epsilon = 1 | Event()
    >>> daily = Laplace(epsilon=1.0, bounds=(0, 5), unit=Window(24))
    >>> round(daily.errors[0] / hourly.errors[0], 3)
    24.0
    """

    epsilon: float
    bounds: Bounds
    unit: Unit = field(default_factory=Event)
    per_column: bool = False
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean absolute error"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        object.__setattr__(self, "grid", number_grids(self, 1 / float(self.share)))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        if isinstance(self.unit, Contribution):
            return Fraction(self.epsilon)
        return _share(self.epsilon, self.unit, len(self.bounds), self.per_column)

    form = property(_numbers)

    @property
    def laws(self) -> list[noise.DiscreteLaplace]:
        if isinstance(self.unit, Contribution):
            changes = [Fraction(self.unit.most) / Fraction(grid) for grid in self.grid]
        else:
            changes = [Fraction(width) for width in self.form.widths]
        return [noise.DiscreteLaplace(change / self.share) for change in changes]

    @property
    def guarantee(self) -> Guarantee:
        return _promise(self, Pure(_total(self.epsilon, len(self.bounds), self.per_column)))

    @property
    def published(self) -> Published:
        return Published(
            claim="Laplace noise of scale sensitivity / epsilon is epsilon-differentially private",
            source="Dwork, McSherry, Nissim and Smith 2006, Proposition 1",
            holds=True,
            remark="It holds for real numbers; in floating point the noise's last bits give values "
            "away (Mironov 2012), so whole numbers on a public grid are drawn here.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * law.mean_magnitude for grid, law in zip(self.grid, self.laws, strict=True)
        )

    perturb = _add_noise
    start = start


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Adds discrete Gaussian noise to bounded numbers.

    Guarantees:
        - rho-zCDP (zero-concentrated differential privacy) for the unit;
        - columns share rho, or with ``per_column`` each has it whole and the total is stated;
        - outputs lie on the public grid.

    >>> Gaussian(rho=0.5, bounds=(0, 5), unit=Window(24)).guarantee.loss
    Concentrated(rho=0.5)
    """

    rho: float
    bounds: Bounds
    unit: Unit = field(default_factory=Event)
    per_column: bool = False
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean absolute error"

    def __post_init__(self) -> None:
        positive("rho", self.rho)
        object.__setattr__(self, "bounds", bounds_of(self.bounds))
        scale = 1 / math.sqrt(2 * float(self.share))
        object.__setattr__(self, "grid", number_grids(self, scale))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        if isinstance(self.unit, Contribution):
            return Fraction(self.rho)
        return _share(self.rho, self.unit, len(self.bounds), self.per_column)

    form = property(_numbers)

    @property
    def laws(self) -> list[noise.DiscreteGaussian]:
        if isinstance(self.unit, Contribution):
            squares = [self.unit.square / Fraction(grid) ** 2 for grid in self.grid]
        else:
            squares = [Fraction(width**2) for width in self.form.widths]
        return [noise.DiscreteGaussian(square / (2 * self.share)) for square in squares]

    @property
    def guarantee(self) -> Guarantee:
        rho = _total(self.rho, len(self.bounds), self.per_column)
        return _promise(self, Concentrated(rho))

    @property
    def published(self) -> Published:
        return Published(
            claim="Discrete Gaussian noise of variance sensitivity^2 / (2 rho) is rho-zCDP",
            source="Canonne, Kamath and Steinke 2020, Theorem 4",
            holds=True,
            remark="It holds for whole numbers, which is what the public grid makes of readings.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(
            grid * _mean_magnitude(law) for grid, law in zip(self.grid, self.laws, strict=True)
        )

    perturb = _add_noise
    start = start


def _mean_magnitude(law: noise.DiscreteGaussian) -> float:
    """E |k|: added up, or by Euler and Maclaurin's formula where that is long."""
    variance = float(law.variance)
    if variance > 10_000:
        return math.sqrt(2 * variance / math.pi) * (1 - 1 / (12 * variance))
    reach = math.ceil(40 * math.sqrt(variance)) + 1
    return 2 * math.fsum(k * law.pmf(k) for k in range(1, reach + 1))


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse:
    """Keeps a category with some probability, else gives one of the others.

    Guarantees:
        - pure epsilon for the unit, whatever the categories read;
        - columns share epsilon, or with ``per_column`` each has it whole and the total is stated.

    >>> answer = RandomizedResponse(epsilon=math.log(3), categories=("no", "yes"))
    >>> [round(error, 6) for error in answer.errors]
    [0.25]
    """

    epsilon: float
    categories: Categories
    unit: Unit = field(default_factory=Event)
    per_column: bool = False

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "probability of another category"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        object.__setattr__(self, "categories", categories_of(self.categories))
        _ = self.laws

    @property
    def share(self) -> Fraction:
        return _share(self.epsilon, self.unit, len(self.categories), self.per_column)

    @property
    def form(self) -> Choices:
        return Choices(self.categories)

    @property
    def laws(self) -> list[noise.RandomisedResponse]:
        return [noise.RandomisedResponse(self.share, len(names)) for names in self.categories]

    @property
    def guarantee(self) -> Guarantee:
        epsilon = _total(self.epsilon, len(self.categories), self.per_column)
        return Guarantee(Pure(epsilon), self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="Keeping the truth with probability e^epsilon / (e^epsilon + k - 1) is epsilon-"
            "differentially private, locally",
            source="Kairouz, Oh and Viswanath 2016, k-ary randomised response",
            holds=True,
            remark="For one answer; the budget is shared over the answers that the unit covers.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(1 - law.keep for law in self.laws)

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        return _add_noise(self, readings, draw, track) % self.form.sizes

    start = start


def categories_of(given: Any) -> Categories:
    """A list of categories, or one for each column, as a tuple of tuples of text."""
    require(
        isinstance(given, (list, tuple)) and len(given) > 0,
        f"categories={given!r}: must be a list of names, or such a list for each column",
    )
    if not isinstance(given[0], (list, tuple)):
        given = (given,)
    columns = tuple(tuple(str(name) for name in names) for names in given)
    for names in columns:
        require(len(names) >= 2, f"categories={list(names)}: at least two are needed")
        require(len(set(names)) == len(names), f"categories={list(names)}: name each only once")
    return columns


COARSEST = 512.0
FINEST = 2.0**-14
"""The finest lattice, in metres: floating point misplaces degrees by less than 2e-8 metres."""

ROUNDING = Fraction(1415, 1000)
"""What rounding to the lattice adds to a distance, in steps: sqrt(2), and floating point's part."""


@dataclass(frozen=True, kw_only=True)
class PlanarLaplace:
    """Moves a location at random: P(displacement) falls as e^(-rate * distance), on a lattice.

    Guarantees:
        - pure epsilon between any two locations within ``unit.metres`` of each other in the public
          projection, and in proportion to the distance beyond (geo-indistinguishability);
        - what rounding to the lattice costs is counted in.

    >>> taxi = PlanarLaplace(epsilon=1.0, unit=Near(200), origin=(39.9, 116.4))
    >>> round(taxi.errors[0])
    400
    """

    epsilon: float
    unit: Near
    origin: tuple[float, float]
    grid: Any = None

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    takes_whole: ClassVar[bool] = False
    slots: ClassVar[int] = 0
    horizon: ClassVar[None] = None
    error_name: ClassVar[str] = "mean distance moved in metres"

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        require(
            isinstance(self.unit, Near),
            f"unit={self.unit!r}: locations are protected against others nearby, Near(metres)",
        )
        require(
            isinstance(self.origin, (list, tuple))
            and len(self.origin) == 2
            and all(isinstance(degree, (int, float)) for degree in self.origin)
            and abs(self.origin[0]) <= 85
            and abs(self.origin[1]) <= 180,
            f"origin={self.origin}: must be a latitude (-85 to 85) and a longitude (-180 to 180)",
        )
        object.__setattr__(self, "origin", tuple(float(degree) for degree in self.origin))
        if self.grid is None:
            reach = self.unit.metres * min(1.0, 1 / self.epsilon)
            grid = min(max(FINEST, power_of_two_below(reach / FINENESS)), COARSEST)
            object.__setattr__(self, "grid", grid)
        power_of_two(self.grid)
        require(
            FINEST <= self.grid <= COARSEST,
            f"grid={self.grid:g}: must be from {FINEST:g} to {COARSEST:g} metres",
        )
        require(
            self.law.rate > LEAST_SHARE,
            f"epsilon={self.epsilon:g}: must be greater, or {self.unit!r} nearer",
        )

    @property
    def law(self) -> noise.PlanarLattice:
        """Places within reach of each other end up at most ``ROUNDING`` steps further apart."""
        reach = Fraction(self.unit.metres) / Fraction(self.grid) + ROUNDING
        return noise.PlanarLattice(Fraction(self.epsilon) / reach)

    @property
    def form(self) -> Places:
        return Places(self.origin, self.grid)

    @property
    def guarantee(self) -> Guarantee:
        return Guarantee(Pure(self.epsilon), self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="Planar Laplace noise gives geo-indistinguishability in proportion to distance",
            source="Andrés, Bordenabe, Chatzikokolakis and Palamidessi 2013",
            holds=True,
            remark="It holds in the plane; the published remapping to a grid needs a correction, "
            "here the law is drawn on the lattice itself.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        distance = self.grid * self.law.mean_distance
        return (distance, distance)

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        return readings + draw(self.law, "place")

    start = start
