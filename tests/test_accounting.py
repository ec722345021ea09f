"""Totals and the rule by which charges are accepted, against plain definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.accounting import Cost, Total, cost_of, unlimited, worst
from tempriv.guarantees import Approximate, Concentrated, Guarantee, NoGuarantee, Pure, rho_for
from tempriv.units import Event, Near, WholeSeries, Window

DELTA = 1e-6


def total_of(*losses: Pure | Approximate | Concentrated, limit: float, delta: float) -> Total:
    """All charges on the same data."""
    costs = [cost_of(Guarantee(loss=loss, unit=Event()), Event()) for loss in losses]
    return worst(np.sum(costs, axis=0)[None, :], Event(), limit, delta)


def test_ten_charges_of_a_tenth_fit_a_limit_of_one_and_an_eleventh_does_not():
    assert not total_of(*[Pure(0.1)] * 10, limit=1.0, delta=0.0).exceeded
    assert total_of(*[Pure(0.1)] * 11, limit=1.0, delta=0.0).exceeded


def test_deltas_may_add_up_to_half_of_delta():
    assert not total_of(*[Approximate(0.1, DELTA / 10)] * 5, limit=1.0, delta=DELTA).exceeded
    assert total_of(*[Approximate(0.1, DELTA / 10)] * 6, limit=1.0, delta=DELTA).exceeded


def test_rhos_may_add_up_to_the_one_whose_tail_bound_at_half_of_delta_is_the_limit():
    rho = rho_for(1.0, DELTA / 2)
    assert not total_of(*[Concentrated(rho / 4)] * 4, limit=1.0, delta=DELTA).exceeded
    assert total_of(*[Concentrated(rho / 4)] * 4, Pure(1e-3), limit=1.0, delta=DELTA).exceeded


def test_many_small_pure_charges_go_further_by_zcdp_than_by_their_sum():
    total = total_of(*[Pure(0.01)] * 300, limit=1.0, delta=DELTA)
    assert total.by_sum == pytest.approx(3.0)
    assert (
        total.spent
        == total.by_zcdp
        == pytest.approx(0.015 + 2 * math.sqrt(0.015 * math.log(2 / DELTA)))
    )
    assert not total.exceeded


def test_a_limit_without_delta_counts_only_sums_of_pure_charges():
    assert total_of(Concentrated(1e-9), limit=1.0, delta=0.0).spent is None
    assert total_of(Approximate(0.1, 1e-12), limit=1.0, delta=0.0).spent is None
    assert total_of(Approximate(0.1, 0.0), Concentrated(0.0), limit=1.0, delta=0.0).spent == 0.1


def test_zcdp_and_approximate_charges_on_the_same_data_have_no_total():
    total = total_of(Concentrated(1e-6), Approximate(0.1, 1e-9), limit=9.0, delta=DELTA)
    assert (total.by_sum, total.by_zcdp, total.spent, total.remaining) == (None, None, None, 0.0)


@settings(derandomize=True)
@given(
    st.lists(st.floats(1e-3, 0.2), max_size=20),
    st.sampled_from([0.0, 1e-9, 1e-3]),
    st.floats(0.1, 5.0),
)
def test_what_remains_is_the_largest_pure_charge_that_is_accepted(epsilons, delta, limit):
    losses = [Pure(epsilon) for epsilon in epsilons]
    left = total_of(Pure(0.0), *losses, limit=limit, delta=delta).remaining
    assert left is not None
    if not total_of(Pure(0.0), *losses, limit=limit, delta=delta).exceeded:
        assert not total_of(*losses, Pure(left), limit=limit, delta=delta).exceeded
    assert total_of(*losses, Pure(left * 1.001 + 1e-6), limit=limit, delta=delta).exceeded


def test_charges_are_restated_for_the_unit_of_the_limit():
    hourly = Guarantee(loss=Concentrated(0.5), unit=Event())
    assert cost_of(hourly, Window(3)) == Cost(math.inf, 0.0, 4.5)
    assert cost_of(Guarantee(loss=Pure(1.0), unit=Near(5.0)), Event()) == Cost(*[math.inf] * 3)
    assert cost_of(NoGuarantee("a test"), Event()) == Cost(*[math.inf] * 3)


def test_a_huge_group_costs_all_of_delta_instead_of_failing():
    wide = cost_of(Guarantee(loss=Approximate(1.0, 1e-9), unit=Event()), WholeSeries(5000))
    assert wide.epsilon == 5000
    assert wide.delta == pytest.approx(1.0)


def test_a_total_without_limit_is_shown_at_a_delta_that_suits_its_charges():
    assert unlimited(np.array([[1.0, 0.0, 0.5]]), Event()).delta == 0.0
    assert unlimited(np.array([[math.inf, 0.0, 0.5]]), Event()).delta == 1e-6
    mixed = unlimited(np.array([[1.0, 1e-3, math.inf]]), Event())
    assert (mixed.delta, mixed.spent) == (2e-3, 1.0)
    assert unlimited(np.array([[math.inf] * 3]), Event()).spent is None
