"""What every mechanism guarantees and costs, exactly and in many draws."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tempriv.audit import exact
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.reorder.distributions import TieDistribution
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.sampling import distributions
from tests.conformance.case_checks import DRAWS, SIGMAS, Case, Drawn, Floats, Integers, recorded
from tests.reference import value as reference
from tests.support.statistics import ALPHA, COMPILED, assert_cells, cells_detect, counted, joined


def the_promise_holds(case: Case) -> None:
    """Exactly, on small instances; and where the mechanism is tight, no more is guaranteed away."""
    for small in case.smalls:
        if isinstance(case.mechanism.guarantee, NoGuarantee):
            assert not case.promises
            continue
        verdict = exact.audit(case.mechanism, small.alphabet, small.length, small.tail)
        assert verdict.pairs > 0
        assert verdict.holds, f"{verdict.sentence}, {verdict.worst}"
        slack = 1e-6 * verdict.claimed
        assert not case.tight or verdict.found >= verdict.claimed - slack, verdict.sentence


def _outcomes(law: Any) -> tuple[Integers, Floats]:
    found = law.outcomes(1e-12)
    return np.array([k for k, _ in found]), np.array([p for _, p in found])


def _is_fine(law: Any) -> bool:
    """Whether a law has too many outcomes to list."""
    return isinstance(law, distributions.PlanarLattice) and law.rate < 0.05


def _laws(case: Case) -> list[Any]:
    with recorded() as drawn:
        case.release(case.rows(1, "laws"), case.key(16))
    return [one.law for one in drawn]


def stated_errors_are_exact(case: Case) -> None:
    """Against the mean over all outcomes, at 1e-6 of it."""
    if not case.independent or case.marked:
        return  # laws that vary have no single error: see test_landmark_schemes
    if case.mechanism.value_kind == "numbers" and not case.mechanism.command.on_times:
        assert case.mechanism.averaging_factor is not None, "reports would show no averages"
    laws = _laws(case)
    for column, stated in enumerate(case.mechanism.errors):
        law = laws[min(column, len(laws) - 1)]
        if not _is_fine(law):
            outcomes, probabilities = _outcomes(law)
            mean = float(probabilities @ case.cost(outcomes, column))
            assert math.isclose(stated, mean, rel_tol=1e-6), f"{stated} stated, {mean} exactly"


@functools.lru_cache(maxsize=1)
def _long_run(case: Case) -> tuple[Floats, list[Drawn]]:
    rows = np.tile(case.still, (DRAWS * case.sparse, 1))
    with recorded() as drawn:
        return np.asarray(case.release(rows, case.key(17))), drawn


def _by_law(drawn: list[Drawn]) -> Iterator[Drawn]:
    """Draws that were made a part at a time together; less what is drawn once a series."""
    for (law, purpose), many in itertools.groupby(
        sorted(drawn, key=lambda one: (one.purpose, repr(one.law))),
        key=lambda one: (one.law, one.purpose),
    ):
        values = [one.values for one in many]
        if isinstance(law, TieDistribution) or sum(map(len, values)) == 1:
            continue  # see test_order_laws
        yield Drawn(law, purpose, values[0] if len(values) == 1 else np.concatenate(values))


def stated_errors_are_met(case: Case) -> None:
    """By the mean over released values, within five standard errors.

    Rejects a right statement with alpha 6e-7. With 200,000 values it detects, for noise whose
    error spreads as much as its mean (Laplace), errors that are off by 1.6 % (power 0.99).
    """
    if limit_of(case.mechanism) is not None or not case.independent or case.marked:
        return
    released, drawn = _long_run(case)
    # by definition, the reading without noise
    still = case.released(np.array([case.still]), [np.zeros_like(d.values[:1]) for d in drawn])[0]
    for column, stated in enumerate(case.mechanism.errors):
        if isinstance(case.mechanism, RandomizedResponse):
            found = (released[:, column] != still[column]).astype(np.float64)
            spread = math.sqrt(stated * (1 - stated))
        elif isinstance(case.mechanism, PlanarLaplace):
            north, east = reference.meters_per_degree(case.mechanism.origin)
            found = np.hypot(*((released - still) * (north, east)).T)
            spread = float(found.std())
        else:
            found = np.abs(released[:, column] - still[column])
            spread = float(found.std())
        bound = SIGMAS * spread / math.sqrt(len(found))
        assert abs(found.mean() - stated) <= bound, f"{stated} stated, {found.mean()} met"


def samplers_follow_their_laws(case: Case) -> None:
    """The audit enumerates the law's own account of itself; the draws must agree with it.

    Chi-square with alpha 1e-9; detects what ``cells_detect`` says of so many draws: a root mean
    square deviation of a cell's probability of 4 % in 200,000 draws, 18 % in 10,000.
    """
    if limit_of(case.mechanism) is not None or not case.sampled:
        return
    _, drawn = _long_run(case)
    assert drawn, "noise is not drawn from the keyed source"
    for one in _by_law(drawn) if case.moves or case.draws_curves else drawn:
        if one.law is None or _is_fine(one.law):
            continue
        outcomes, probabilities = _outcomes(one.law)
        values = one.values
        if values.ndim == 2:
            # pairs in the order of their first number, then their second
            base = 2 * int(np.abs(values).max() + np.abs(outcomes).max()) + 1
            outcomes, values = (pairs @ np.array([base, 1]) for pairs in (outcomes, values))
        listed = list(zip(outcomes.tolist(), probabilities.tolist(), strict=True))
        edges, masses = joined(listed, len(values), most=30)
        detects = max(cells_detect(len(values), len(masses)), 0.01) * 1.01
        assert detects < (0.05 if COMPILED else 0.25)
        assert_cells(counted(values, edges), masses, detects=detects, alpha=ALPHA)
