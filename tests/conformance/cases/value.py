"""Cases of the mechanisms that put noise on values."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.value.gaussian import Gaussian
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.units import (
    Contribution,
    Event,
    Person,
    Unit,
    WholeSeries,
    Window,
    WithinDistance,
)
from tests.conformance.case_checks import Case, Small
from tests.reference import value as reference

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def _parts(unit: Unit, columns: int, per_column: bool) -> int:
    """Over how many numbers a budget is shared, counted by hand."""
    each = unit.each if isinstance(unit, Person) else unit
    readings = {Event: 1}.get(type(each)) or each.length
    persons = unit.max_series if isinstance(unit, Person) else 1
    return readings * persons * (1 if per_column else columns)


def number_case(name: str, mechanism: Laplace | Gaussian, *smalls: Small) -> Case:
    bounds, grids = mechanism.bounds, mechanism.grid
    parts = _parts(mechanism.unit, len(bounds), mechanism.per_column)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Half of them out of bounds."""
        low, high = np.array(bounds).T
        return rng.uniform(low - (high - low) / 2, high + (high - low) / 2, (count, len(bounds)))

    if isinstance(mechanism, Laplace):
        parameters = reference.laplace_scales(mechanism.epsilon, bounds, grids, parts)
    else:
        parameters = reference.gaussian_variances(mechanism.rho, bounds, grids, parts)
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=tuple(
            g * reference.snapped((low + high) / 2, (low, high), g)
            for (low, high), g in zip(bounds, grids, strict=True)
        ),
        released=lambda rows, drawn: reference.numbers(rows, bounds, grids, drawn),
        parameters=tuple(parameters),
        cost=lambda outcomes, column: grids[column] * np.abs(outcomes),
        smalls=smalls,
    )


def count_case(name: str, mechanism: Laplace | Gaussian, *smalls: Small) -> Case:
    """Noise on counts: by what one person adds, whatever the bounds."""
    bounds, grids, unit = mechanism.bounds, mechanism.grid, mechanism.unit
    if isinstance(mechanism, Laplace):
        parameters = reference.laplace_for(mechanism.epsilon, grids, unit.most)
    else:
        full, rest = divmod(unit.most, unit.per_step)
        square = full * Fraction(unit.per_step) ** 2 + Fraction(rest) ** 2
        parameters = reference.gaussian_for(mechanism.rho, grids, square)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Some of them out of bounds."""
        low, high = np.array(bounds).T
        return rng.integers(low - 2, high + 3, (count, len(bounds))).astype(np.float64)

    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=tuple(low for low, _ in bounds),
        released=lambda rows, drawn: reference.numbers(rows, bounds, grids, drawn),
        parameters=tuple(parameters),
        cost=lambda outcomes, column: grids[column] * np.abs(outcomes),
        smalls=smalls,
    )


def answer_case(name: str, mechanism: RandomizedResponse, *smalls: Small) -> Case:
    sizes = [len(names) for names in mechanism.categories]
    parts = _parts(mechanism.unit, len(sizes), mechanism.per_column)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Category numbers, some of them none."""
        return rng.integers(-1, np.array(sizes) + 1, (count, len(sizes))).astype(np.float64)

    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=tuple(float(size - 1) for size in sizes),
        released=lambda rows, drawn: reference.answers(rows, sizes, drawn),
        parameters=(Fraction(mechanism.epsilon) / parts,) * len(sizes),
        cost=lambda outcomes, column: (outcomes != 0).astype(np.float64),
        smalls=smalls,
    )


def place_case(name: str, mechanism: PlanarLaplace, *smalls: Small) -> Case:
    origin, grid = mechanism.origin, mechanism.grid

    def readings(rng: np.random.Generator, count: int) -> Floats:
        """Nearby, with some far away or no place on Earth."""
        near = np.array(origin) + rng.normal(0.0, 0.1, (count, 2))
        far = rng.uniform((-120.0, -240.0), (120.0, 240.0), (count, 2))
        return np.where(rng.random((count, 1)) < 0.8, near, far)

    rate = reference.planar_rate(mechanism.epsilon, mechanism.unit.meters, grid)
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=origin,
        released=lambda rows, drawn: reference.places(rows, origin, grid, drawn),
        parameters=(rate,),
        cost=lambda outcomes, column: grid * np.hypot(*outcomes.T),
        smalls=smalls,
        tight=False,
    )


def _pairs(*numbers: float) -> tuple[tuple[float, float], ...]:
    return tuple(itertools.product(numbers, repeat=2))


BITS = (-3.0, 0.0, 1.0)
BEIJING = (39.9, 116.4)
POLE = (90 - BEIJING[0]) * reference.meters_per_degree(BEIJING)[0]
# within 2.4 meters of each other, yet further apart on a lattice of 1 meter
CORNERS = ((0.49, 0.49), (2.51, 1.6), (0.0, 0.0), (-0.51, -0.51), (1.2, 0.6), (1.51, 2.51))
NORTH = ((POLE, 0.0), (POLE - 0.4, 0.0), (POLE + 2.0, 1.5), (POLE + 1e7, 0.0))

CASES: tuple[Case, ...] = (
    number_case("laplace, fine grid", Laplace(epsilon=1.0, bounds=(0, 5))),
    number_case(
        "laplace, two fine grids",
        Laplace(epsilon=1.0, bounds=((0, 1), (-1, 2)), grid=2.0**-6),
    ),
    number_case(
        "laplace, event",
        Laplace(epsilon=1.5, bounds=(0, 3), grid=1),
        Small((-7.0, 0.0, 1.4, 3.0, 1e300), 1, 1e-9),
        Small((-7.0, 1.0, 9.0), 2, 1e-3),
    ),
    number_case(
        "laplace, off the grid",
        Laplace(epsilon=2.0, bounds=(-1.3, 2.3), grid=0.5),
        Small((-2.0, -1.3, 0.3, 2.3, 2.26), 1, 1e-9),
    ),
    number_case(
        "laplace, window",
        Laplace(epsilon=6.0, bounds=(0, 1), grid=1, unit=Window(2)),
        Small(BITS[1:], 3, 1e-4),
        Small(BITS, 2, 1e-6),
    ),
    number_case(
        "laplace, whole series",
        Laplace(epsilon=6.0, bounds=(0, 1), grid=1, unit=WholeSeries(3)),
        Small(BITS[1:], 3, 1e-3),
    ),
    number_case(
        "laplace, long series",
        Laplace(epsilon=9.0, bounds=(0, 1), grid=0.25, unit=WholeSeries(60)),
    ),
    number_case(
        "laplace, person",
        Laplace(epsilon=6.0, bounds=(0, 1), grid=1, unit=Person(2, Event())),
        Small(BITS, 1, 1e-6),
        Small(BITS[1:], 2, 1e-2),
    ),
    number_case(
        "laplace, two columns",
        Laplace(epsilon=4.0, bounds=((0, 1), (0, 1)), grid=1),
        Small(_pairs(*BITS), 1, 1e-6),
    ),
    number_case(
        "laplace, unlike columns, window",
        Laplace(epsilon=16.0, bounds=((0, 2), (-1, 0)), grid=(1, 0.5), unit=Window(2)),
        Small(((-1.0, -9.0), (2.0, 0.0), (1.0, -0.4)), 2, 1e-2),
    ),
    number_case(
        "laplace, per column",
        Laplace(epsilon=2.0, bounds=((0, 1), (0, 2)), grid=1, per_column=True),
        Small(_pairs(-1.0, 0.0, 2.0), 1, 1e-6),
    ),
    number_case("gaussian, fine grid", Gaussian(rho=0.5, bounds=(0, 5))),
    number_case(
        "gaussian, event",
        Gaussian(rho=0.5, bounds=(0, 2), grid=1),
        Small((-7.0, 0.0, 1.0, 9.0), 1, 1e-13),
        Small((-7.0, 9.0), 2, 1e-13),
    ),
    number_case(
        "gaussian, calibrated",
        Gaussian(epsilon=3.0, delta=0.05, bounds=(0, 1), grid=1),
        Small((-7.0, 9.0), 1, 1e-13),
    ),
    number_case(
        "gaussian, calibrated, window",
        Gaussian(epsilon=3.0, delta=0.05, bounds=(0, 1), grid=1, unit=Window(2)),
        Small((-7.0, 9.0), 2, 1e-13),
    ),
    number_case(
        "gaussian, window",
        Gaussian(rho=2.0, bounds=(0, 1), grid=1, unit=Window(2)),
        Small(BITS[1:], 3, 1e-13),
        Small(BITS, 2, 1e-13),
    ),
    number_case(
        "gaussian, whole series",
        Gaussian(rho=3.0, bounds=(0, 1), grid=1, unit=WholeSeries(3)),
        Small((-3.0, 1.0), 3, 1e-13),
    ),
    number_case(
        "gaussian, person",
        Gaussian(rho=1.0, bounds=(0, 1), grid=1, unit=Person(2, Event())),
        Small(BITS, 1, 1e-13),
    ),
    number_case(
        "gaussian, two columns",
        Gaussian(rho=1.0, bounds=((0, 1), (-0.5, 0.5)), grid=(1, 0.5)),
        Small(_pairs(-3.0, 0.0, 1.0), 1, 1e-13),
    ),
    number_case(
        "gaussian, per column",
        Gaussian(rho=0.5, bounds=((0, 1), (0, 1)), grid=1, per_column=True),
        Small(_pairs(*BITS), 1, 1e-13),
    ),
    count_case(
        "laplace, counts",
        Laplace(epsilon=2.0, bounds=(0, 9), unit=Contribution()),
        Small((0, 1, 2, 12.0), 1, 1e-9),
        Small((3, 4), 2, 1e-6),
    ),
    count_case(
        "laplace, counts in a window",
        Laplace(epsilon=8.0, bounds=(0, 3), unit=Contribution(Window(2), per_step=2, total=3)),
        Small((0, 1, 2), 2, 1e-5),
    ),
    count_case(
        "laplace, histogram",
        Laplace(epsilon=1.0, bounds=((0, 9), (0, 9)), unit=Contribution()),
        Small(_pairs(0, 1), 1, 1e-4),
    ),
    count_case(
        "gaussian, counts",
        Gaussian(rho=3.0, bounds=(0, 9), unit=Contribution(WholeSeries(3), total=2, signed=True)),
        Small((0, 1), 3, 1e-13),
    ),
    count_case(
        "gaussian, histogram",
        Gaussian(rho=2.0, bounds=((0, 3), (0, 3)), unit=Contribution(Event(), per_step=2)),
        Small(((0, 0), (2, 0), (0, 2), (1, 1)), 1, 1e-13),
    ),
    answer_case(
        "response, event",
        RandomizedResponse(epsilon=1.0, categories=("a", "b", "c")),
        Small((0, 1, 2, 3, -1, 0.5), 1),
        Small((0, 1, 2), 3),
    ),
    answer_case(
        "response, window",
        RandomizedResponse(epsilon=2.0, categories=("a", "b", "c"), unit=Window(2)),
        Small((0, 1, 2, 9), 3),
    ),
    answer_case(
        "response, whole series",
        RandomizedResponse(epsilon=3.0, categories=("a", "b"), unit=WholeSeries(4)),
        Small((0, 1, -1), 4),
    ),
    answer_case(
        "response, person",
        RandomizedResponse(epsilon=2.0, categories=("a", "b"), unit=Person(2, Window(2))),
        Small((0, 1), 3),
    ),
    answer_case(
        "response, two columns",
        RandomizedResponse(epsilon=1.0, categories=(("a", "b"), ("x", "y", "z")), unit=Window(2)),
        Small(((0, 0), (1, 2), (5, 1)), 2),
    ),
    answer_case(
        "response, per column",
        RandomizedResponse(epsilon=1.0, categories=(("a", "b"), ("x", "y")), per_column=True),
        Small(((0, 0), (0, 1), (1, 0), (7, 7)), 2),
    ),
    place_case(
        "places, fine grid", PlanarLaplace(epsilon=1.0, unit=WithinDistance(200), origin=BEIJING)
    ),
    place_case(
        "places",
        PlanarLaplace(epsilon=4.0, unit=WithinDistance(2.4), origin=BEIJING, grid=1),
        Small(CORNERS, 1, 1e-6),
        Small(NORTH, 1, 1e-6),
    ),
    place_case(
        "places, two readings",
        PlanarLaplace(epsilon=14.0, unit=WithinDistance(2.4), origin=(-33.9, 179.9), grid=1.0),
        Small(CORNERS[:3], 2, 1e-2),
    ),
)
