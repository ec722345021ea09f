"""Cases of Fourier perturbation."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.fourier import FourierPerturbation
from tempriv.mechanisms.perturb import limit_of
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window
from tests.conformance.case_checks import Case, Small
from tests.reference import fourier as reference
from tests.reference.value import steps as grid_steps

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def _parameter(m: FourierPerturbation, column: int, bits: int) -> Fraction:
    """Of the law of one column, for series of full length."""
    length, columns, unit = limit_of(m), 1, m.unit
    grid, parts = Fraction(m.grid[column]), len(m.bounds)
    each = unit.each if isinstance(unit, (Person, Contribution)) else unit
    window = min({Event: 1}.get(type(each)) or each.length, length)
    if isinstance(unit, Contribution):
        by, columns, parts = Fraction(unit.per_step) / grid, len(m.bounds), 1
        total = by * window if unit.total is None else min(Fraction(unit.total) / grid, by * window)
    else:
        low, high = (grid_steps(edge, m.grid[column]) for edge in m.bounds[column])
        by = Fraction(high - low)
        total = by * window
    parts *= unit.max_series if isinstance(unit, Person) else 1
    l1, l2 = reference.norms(length, m.coefficients, bits, window, by, total, columns)
    return l1 / (Fraction(m.epsilon) / parts) if m.epsilon else l2 / (2 * Fraction(m.rho) / parts)


def fourier_case(name: str, m: FourierPerturbation, *smalls: Small, tight: bool = True) -> Case:
    counts, bits = isinstance(m.unit, Contribution), m._bits
    edges = [
        [grid_steps(edge, grid) for edge in pair]
        for pair, grid in zip(m.bounds, m.grid, strict=True)
    ]
    middles = [min(max(0, low), high) if counts else (low + high) // 2 for low, high in edges]

    def readings(rng: np.random.Generator, count: int) -> Floats:
        low, high = np.array(m.bounds).T
        if counts:
            return rng.integers(low, high + 1, (count, len(m.bounds))).astype(np.float64)
        return rng.uniform(low - 1, high + 1, (count, len(m.bounds)))

    def released(values: Floats, drawn: list[Integers]) -> Floats:
        columns = [
            reference.smoothed(
                values[:, c].tolist(),
                m.bounds[c],
                m.grid[c],
                middles[c],
                m.coefficients,
                bits,
                m._steps[c],
                drawn[c].tolist(),
            )
            for c in range(len(m.bounds))
        ]
        return np.array(columns).T

    return Case(
        name=name,
        mechanism=m,
        readings=readings,
        still=tuple(low for low, _ in m.bounds),
        released=released,
        parameters=tuple(_parameter(m, c, bits) for c in range(len(m.bounds))),
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        tight=tight,
        independent=False,
    )


BITS = (0.0, 1.0)
COUNTS = (0, 1, 2)


def tiny(**given: object) -> FourierPerturbation:
    """Two waves over three bits, in small whole numbers."""
    return FourierPerturbation(
        **{"bounds": (0, 1), "grid": 1, "coefficients": 2, "horizon": 3, "bits": 1, **given}
    )


CASES: tuple[Case, ...] = (
    fourier_case(
        "waves",
        FourierPerturbation(epsilon=1.0, bounds=(0, 5), coefficients=7, horizon=100),
    ),
    fourier_case(
        "waves, gaussian, whole series",
        FourierPerturbation(rho=0.5, bounds=(-2, 7.3), coefficients=6, unit=WholeSeries(60)),
    ),
    fourier_case(
        "waves, two columns",
        FourierPerturbation(
            epsilon=1.0, bounds=((0, 5), (0, 1)), coefficients=5, horizon=40, bits=9, unit=Window(6)
        ),
    ),
    fourier_case(
        "waves, people",
        FourierPerturbation(
            epsilon=1.0, bounds=(0, 1000), coefficients=9, unit=Contribution(WholeSeries(80), 2, 10)
        ),
    ),
    fourier_case(
        "waves, event",
        tiny(epsilon=2.0),
        Small(BITS, 3, 1e-4),
        Small((-3.0, 0.0, 1.0), 2, 1e-3),
    ),
    fourier_case(
        "waves, short series",
        tiny(epsilon=4.0, horizon=8, bits=2),
        Small(BITS, 2, 1e-4),
    ),
    fourier_case(
        "waves, whole series",
        tiny(epsilon=4.0, horizon=None, unit=WholeSeries(3)),
        Small(BITS, 3, 1e-3),
        Small((-3.0, 0.0, 1.0), 2, 1e-3),
        tight=False,
    ),
    fourier_case(
        "waves, window",
        tiny(epsilon=3.0, unit=Window(2)),
        Small(BITS, 3, 1e-3),
        tight=False,
    ),
    fourier_case(
        "waves, gaussian, event",
        tiny(rho=0.5),
        Small(BITS, 3, 1e-13),
    ),
    fourier_case(
        "waves, gaussian, window",
        tiny(rho=2.0, horizon=4, unit=Window(2)),
        Small(BITS, 3, 1e-13),
        tight=False,
    ),
    fourier_case(
        "waves, person",
        tiny(epsilon=4.0, unit=Person(2, Event())),
        Small(BITS, 1, 1e-4),
        tight=False,
    ),
    fourier_case(
        "waves, counts",
        tiny(epsilon=3.0, bounds=(0, 9), unit=Contribution(WholeSeries(3), total=2)),
        Small(COUNTS, 3, 1e-3),
        tight=False,
    ),
    fourier_case(
        "waves, counts in two columns",
        tiny(
            epsilon=3.0,
            bounds=((0, 9), (0, 9)),
            grid=(1, 1),
            unit=Contribution(WholeSeries(3), total=1),
        ),
        Small(((0, 0), (0, 1), (1, 0)), 2, 5e-2),
    ),
)
