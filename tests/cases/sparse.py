"""Cases of the sparse vector technique."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms import SparseVector
from tempriv.units import Contribution, WholeSeries
from tests.conformance import Case, Small
from tests.reference import sparse as reference

Floats = npt.NDArray[np.float64]


def sparse_case(name: str, mechanism: SparseVector, *smalls: Small) -> Case:
    (low, high), grid = mechanism.bounds[0], mechanism.grid[0]
    counts = isinstance(mechanism.unit, Contribution)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        if counts:
            return rng.integers(low, high + 1, (count, 1)).astype(np.float64)
        return rng.uniform(low - 1, high + 1, (count, 1))

    change = mechanism.unit.per_step if counts else high - low
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=(mechanism.threshold,),
        released=lambda rows, drawn: reference.alerts(
            rows, mechanism.bounds[0], grid, mechanism.threshold, mechanism.most, drawn
        ),
        parameters=reference.scales(
            mechanism.epsilon, change, grid, mechanism.most, mechanism.threshold_share, counts
        ),
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        tight=False,
        independent=False,
    )


CASES: tuple[Case, ...] = (
    sparse_case(
        "alerts, numbers",
        SparseVector(epsilon=1.0, bounds=(0, 1), threshold=1, most=2, grid=1, threshold_share=0.5),
        Small((0, 1, 5.0), 3, 1e-9),
    ),
    sparse_case(
        "alerts, counts",
        SparseVector(
            epsilon=2.0,
            bounds=(0, 9),
            threshold=3,
            most=10**6,
            threshold_share=0.5,
            unit=Contribution(WholeSeries(10**9)),
        ),
        Small((2, 3, 4), 3, 1e-9),
    ),
)
