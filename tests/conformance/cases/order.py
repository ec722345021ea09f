"""Cases of mechanisms that move rows in time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit import exact
from tempriv.data.series import RELEASED
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.distributions import (
    FreeSlotDistribution,
    FreeSlots,
    LagDistribution,
    TieDistribution,
    WindowDistribution,
)
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.sampling import distributions
from tests.conformance.case_checks import Case, Small
from tests.reference import order as reference

Floats = npt.NDArray[np.float64]
Follow = Callable[[int, list[Any]], reference.Sources]
"""Where the rows of so many come out, by definition, from what was drawn."""


@dataclass(frozen=True)
class Moved:
    """Rows in the slots they went to, and what each slot says of itself."""

    rows: Any
    status: list[int]

    @classmethod
    def by(cls, rows: Floats, sources: reference.Sources) -> Moved:
        empty = [source is None for source in sources]
        moved = rows[[0 if source is None else source for source in sources]]
        mask = np.repeat(np.array(empty)[:, None], rows.shape[1], axis=1)
        return cls(np.ma.array(moved, mask=mask), reference.statuses(sources))


def order_case(
    name: str,
    mechanism: Any,
    laws: tuple[Any, ...],
    follow: Follow,
    *smalls: Small,
    columns: int = 1,
    **traits: Any,
) -> Case:
    return Case(
        name=name,
        mechanism=mechanism,
        readings=lambda rng, count: rng.uniform(0, 9, (count, columns)),
        still=(1.5,) * columns,
        released=lambda rows, drawn: Moved.by(rows, follow(len(rows), drawn)),  # type: ignore[arg-type, return-value]
        parameters=laws,
        cost=lambda outcomes, column: np.zeros(len(outcomes)),
        smalls=smalls,
        independent=False,
        **traits,
    )


def rows_of(length: int, tail: float = 1e-6) -> Small:
    """So many rows, all of them different."""
    return Small((0,), length, tail)


def even_lags(mechanism: Any) -> tuple[LagDistribution]:
    """Equation 4: lag 0 is e^(epsilon/2) times likelier than any other."""
    return (LagDistribution(Fraction(mechanism.epsilon) / 2, mechanism.window),)


def threshold_case(name: str, mechanism: Any, *smalls: Small, **traits: Any) -> Case:
    window, free = mechanism.window, mechanism.threshold
    keep = reference.keep(mechanism.epsilon, window, free)
    drops = (distributions.Bernoulli(keep),) if keep < 1 else ()
    moves = reference.dual if isinstance(mechanism, DualThreshold) else reference.threshold

    def follow(count: int, drawn: list[Any]) -> reference.Sources:
        (taken,), places = drawn[0].tolist(), drawn[-1].tolist()
        return moves(taken, places, drawn[1].tolist() if drops else None)

    laws = FreeSlots(window, free), *drops, FreeSlotDistribution(free)
    return order_case(name, mechanism, laws, follow, *smalls, **traits)


def shuffle_case(name: str, mechanism: BlockShuffle, *smalls: Small, **traits: Any) -> Case:
    epsilon, block = Fraction(mechanism.epsilon), mechanism.block
    return order_case(
        name,
        mechanism,
        tuple(distributions.CategoryFlip(epsilon, number) for number in range(2, block + 1)),
        lambda count, drawn: reference.shuffled(
            (drawn[0].tolist() + [0] * count)[:count], block, mechanism.offset
        ),
        *smalls,
        sparse=block,
        **traits,
    )


def key_case(name: str, mechanism: NoisyOrder, *smalls: Small, **traits: Any) -> Case:
    epsilon, window = Fraction(mechanism.epsilon), mechanism.window
    law: Any = distributions.DiscreteLaplace(2 * (window - 1) / epsilon)
    if mechanism.noise == "staircase":
        inner = reference.best_inner(mechanism.epsilon, window)
        law = distributions.Staircase(epsilon / 2, window - 1, inner)
    if mechanism.latency is not None:
        law = WindowDistribution(law, mechanism.latency // 2)
    return order_case(
        name,
        mechanism,
        (law, TieDistribution()),
        lambda count, drawn: reference.sorted_by_key(
            drawn[0].tolist()[:count], drawn[1].tolist()[:count]
        ),
        *smalls,
        tight=False,
        **traits,
    )


CASES: tuple[Case, ...] = (
    order_case(
        "backward",
        (mechanism := Backward(epsilon=2.0, window=3)),
        even_lags(mechanism),
        lambda count, drawn: reference.backward(drawn[0].tolist()),
        rows_of(5),
    ),
    order_case(
        "backward, two columns",
        (mechanism := Backward(epsilon=1.0, window=7)),
        even_lags(mechanism),
        lambda count, drawn: reference.backward(drawn[0].tolist()),
        columns=2,
    ),
    order_case(
        "forward",
        (mechanism := Forward(epsilon=2.0, window=4)),
        even_lags(mechanism),
        lambda count, drawn: reference.forward(drawn[0].tolist()),
        rows_of(4),
        promises=False,
    ),
    threshold_case("threshold", Threshold(epsilon=3.5, window=4), rows_of(6)),
    threshold_case("threshold, seven free", Threshold(epsilon=5.0, window=10)),
    threshold_case("threshold, extended", Threshold(epsilon=1.0, window=5), rows_of(6)),
    threshold_case("threshold, extended, wide", Threshold(epsilon=1.0, window=9)),
    threshold_case("threshold, given", Threshold(epsilon=6.0, window=9, threshold=4), columns=2),
    threshold_case("threshold, long window", Threshold(epsilon=6.0, window=30)),
    threshold_case("dual threshold", DualThreshold(epsilon=3.5, window=4), rows_of(6)),
    threshold_case("dual threshold, extended", DualThreshold(epsilon=1.0, window=5), rows_of(6)),
    threshold_case("dual threshold, long window", DualThreshold(epsilon=7.0, window=30), columns=2),
    shuffle_case("shuffled blocks", BlockShuffle(epsilon=1.5, block=4), rows_of(5), columns=2),
    shuffle_case(
        "shuffled blocks, offset", BlockShuffle(epsilon=0.5, block=3, offset=2), rows_of(5)
    ),
    key_case("noisy order, whole", NoisyOrder(epsilon=6.0, window=2), rows_of(3)),
    key_case(
        "noisy order, whole, three rows",
        NoisyOrder(epsilon=6.0, window=3, noise="laplace"),
        rows_of(3, 1e-4),
    ),
    key_case(
        "noisy order, whole, laplace", NoisyOrder(epsilon=1.0, window=5, noise="laplace"), columns=2
    ),
    key_case("noisy order, whole, wide", NoisyOrder(epsilon=3.0, window=6)),
    key_case(
        "noisy order, latency",
        NoisyOrder(epsilon=2.0, window=2, latency=6, delta=0.05),
        rows_of(3),
    ),
    key_case(
        "noisy order, latency of two",
        NoisyOrder(epsilon=1.5, window=2, latency=2, delta=0.5),
        rows_of(4),
    ),
    key_case(
        "noisy order, latency, laplace",
        NoisyOrder(epsilon=4.0, window=3, latency=31, delta=1e-5, noise="laplace"),
        columns=2,
    ),
)


def slots_have_the_stated_lags(case: Case) -> None:
    """From the first slot on, by enumeration; rows from before the series are none."""
    lags, rows = case.mechanism.probabilities, case.smalls[0].length
    law = exact.slot_distribution(case.mechanism, rows)
    for slot in range(rows):
        found = [0.0] * (slot + 1)
        for (sources, _), mass in law.items():
            if sources[slot] >= 0:
                found[slot - sources[slot]] += mass
        stated = [*lags.tolist(), *[0.0] * rows][: slot + 1]
        assert np.allclose(found, stated, rtol=0, atol=1e-9), f"slot {slot}: {found}"


def every_row_comes_out_once(case: Case) -> None:
    """In all outcomes of two rows, and nothing else does: not where the series has ended either."""
    for sources, status in exact.slot_distribution(case.mechanism, 2, 1e-3):
        assert sorted(sources) == [0, 1], f"{sources} came out"
        assert status == (RELEASED, RELEASED)


def the_budget_is_kept_at_least_delay(case: Case) -> None:
    """Against all thresholds, by Stirling numbers: which is taken, and what it guarantees."""
    mechanism = case.mechanism
    epsilon, window = mechanism.epsilon, mechanism.window
    within, helped = [], []
    for free in range(2, window):
        ways = reference.stirling(window - 2, free - 1)  # p_1, as p_0 and p_(k-1) below
        first = 2 * math.log(reference.stirling(window - 1, free - 1) / ways)
        last = 2 * math.log(reference.stirling(window - 1, free) / ways)
        within += [free] if max(first, last) <= epsilon else []
        helped += [free] if last <= epsilon else []
    best = max if isinstance(mechanism, Threshold) else min
    assert mechanism.threshold == (best(within) if within else min(helped)), "not the best"
    assert mechanism.extended == (not within), "drops readings without need, or not in need"
    assert 2 * mechanism.guarantee.loss.epsilon <= epsilon * (1 + 1e-9), "beyond the budget"
