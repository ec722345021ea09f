"""Cases of the sparse vector technique."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.privacy.units import Contribution, WholeSeries
from tests.conformance.case_checks import Case, Small
from tests.reference import sparse as reference

Floats = npt.NDArray[np.float64]


def sparse_case(name: str, mechanism: SparseVector, *smalls: Small) -> Case:
    (low, high), grid = mechanism.bounds[0], mechanism.grid[0]
    counts = isinstance(mechanism.unit, Contribution)

    def readings(rng: np.random.Generator, count: int) -> Floats:
        if counts:  # few are at the threshold, so that alerts are not used up at once
            quiet = rng.integers(low, mechanism.threshold, (count, 1)).astype(np.float64)
            return np.where(rng.random((count, 1)) < 0.1, mechanism.threshold, quiet)
        return rng.uniform(low - 1, high + 1, (count, 1))

    change = mechanism.unit.per_step if counts else high - low
    monotone = counts and not mechanism.unit.signed
    return Case(
        name=name,
        mechanism=mechanism,
        readings=readings,
        still=(mechanism.threshold,),
        released=lambda rows, drawn: reference.alerts(
            rows, mechanism.bounds[0], grid, mechanism.threshold, mechanism.most, drawn
        ),
        parameters=reference.scales(
            mechanism.epsilon, change, grid, mechanism.most, mechanism.threshold_share, monotone
        ),
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        tight=False,
        independent=False,
    )


def signed(share: float, most: int) -> SparseVector:
    return SparseVector(
        epsilon=8.0,
        bounds=(0, 4),
        threshold=1,
        most=most,
        threshold_share=share,
        unit=Contribution(WholeSeries(500), signed=True),
    )


CASES: tuple[Case, ...] = (
    sparse_case(
        "alerts, numbers",
        SparseVector(
            epsilon=1.0,
            bounds=(0, 1),
            threshold=1,
            most=2,
            unit=WholeSeries(500),
            threshold_share=0.5,
            grid=1,
        ),
        Small((0, 1, 5.0), 3, 1e-9),
    ),
    sparse_case(
        "alerts, counts",
        SparseVector(
            epsilon=2.0,
            bounds=(0, 9),
            threshold=3,
            most=3,
            threshold_share=0.5,
            unit=Contribution(WholeSeries(500)),
        ),
        Small((2, 3, 4), 3, 1e-9),
    ),
    sparse_case("alerts, signed sums", signed(0.5, 2), Small((0, 1), 3, 1e-9)),
    sparse_case("alerts, one of signed sums", signed(0.25, 1), Small((0, 1), 3, 1e-9)),
)


# streams that are hard to hide: quiet values (Q) above the threshold say that the noisy threshold
# is high, so that alerts (A) are rare; on the other stream the first go up and the second down
HARD = {
    "alerts, signed sums": (("QQQQAQQQQA", 1e-9), ("QQQQQQQQAA", 1e-9)),
    "alerts, one of signed sums": (("QQA", 1e-6), ("QQQQAA", 1e-9)),
}


def loss_of(mechanism: SparseVector, stream: str, tail: float) -> float:
    """Between the two streams, by enumeration."""
    pairs = [{"Q": (3, 4), "A": (1, 0)}[value] for value in stream]
    laws = [exact.distribution(mechanism, one, tail) for one in zip(*pairs, strict=True)]
    compared = exact.Comparison.of(*laws), exact.Comparison.of(*laws[::-1])
    return max(one.pure_loss(mechanism.epsilon) for one in compared)


def hard_streams_are_hidden(case: Case) -> None:
    """To a thousandth: answers sum over thresholds, and far ones are left out."""
    for stream, tail in HARD[case.name]:
        found = loss_of(case.mechanism, stream, tail)
        assert found <= 1.001 * case.mechanism.epsilon, f"{found} on {stream}"
