"""Totals and the rule by which charges are accepted, against plain definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.accounting import renyi
from tempriv.accounting.composition import renyi as composed
from tempriv.accounting.filters import (
    UNBOUNDED_COST,
    Cost,
    Total,
    by_sum,
    by_zcdp,
    cost_of,
    explain_other_unit,
    order_of,
    unlimited_total,
    worst_total,
)
from tempriv.accounting.loss_distribution import AnyRelease, GaussianRelease
from tempriv.privacy.guarantees import (
    Approximate,
    Concentrated,
    Guarantee,
    NoGuarantee,
    Pure,
    rho_for,
)
from tempriv.privacy.units import Event, Person, WholeSeries, Window, WithinDistance
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap

DELTA = 1e-6


def total_of(*losses: Pure | Approximate | Concentrated, limit: float, delta: float) -> Total:
    """All charges on the same data."""
    order = order_of(limit, delta)
    costs = [cost_of(Guarantee(loss=loss, unit=Event()), Event(), order) for loss in losses]
    return worst_total(np.sum(costs, axis=0)[None, :], Event(), limit, delta)


def test_ten_charges_of_a_tenth_fit_a_limit_of_one_and_an_eleventh_does_not():
    assert not total_of(*[Pure(0.1)] * 10, limit=1.0, delta=0.0).exceeded
    assert total_of(*[Pure(0.1)] * 11, limit=1.0, delta=0.0).exceeded


def test_deltas_may_add_up_to_half_of_delta():
    assert not total_of(*[Approximate(0.1, DELTA / 10)] * 5, limit=1.0, delta=DELTA).exceeded
    assert total_of(*[Approximate(0.1, DELTA / 10)] * 6, limit=1.0, delta=DELTA).exceeded


def test_rhos_may_add_up_to_the_one_that_keeps_the_limit_at_half_of_delta():
    rho, _ = renyi.rho_budget(1.0, DELTA / 2)
    assert not total_of(*[Concentrated(rho / 4)] * 4, limit=1.0, delta=DELTA).exceeded
    assert total_of(*[Concentrated(rho / 4)] * 4, Pure(1e-3), limit=1.0, delta=DELTA).exceeded


def test_a_gaussian_release_made_for_a_limit_fits_into_it():
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (5.0, 1e-3)):
        rho = rho_for(epsilon, delta)
        assert not total_of(Concentrated(rho), limit=epsilon, delta=delta).exceeded


def test_many_small_pure_charges_go_further_by_zcdp_than_by_their_sum():
    total = total_of(*[Pure(0.01)] * 300, limit=1.0, delta=DELTA)
    assert total.by_sum == pytest.approx(3.0)
    assert total.spent == total.by_zcdp == pytest.approx(0.7939, abs=1e-4)
    assert not total.exceeded


@pytest.mark.parametrize("loss", [Pure(0.01), Pure(0.1), Concentrated(1e-4)])
def test_what_is_shown_holds_by_the_renyi_divergences_of_the_charges(loss):
    """Against the whole curve of the same charges, computed on its own."""
    kind = GaussianRelease(1 / math.sqrt(2e-4)) if loss == Concentrated(1e-4) else None
    for count in (1, 20, 100):
        plan = {kind or AnyRelease(loss.epsilon): count}
        least = composed(plan, DELTA / 2).epsilon
        shown = total_of(*[loss] * count, limit=1.0, delta=DELTA).by_zcdp
        assert shown is not None
        assert least * (1 - 1e-9) <= shown
        if kind is not None:
            assert shown == pytest.approx(least, rel=1e-9)


def test_a_charge_counts_less_at_the_order_of_its_limit_than_at_all_orders():
    """Between few and many charges, where the sum and epsilon^2/2 say the same."""
    fitting = {}
    for name, order in (("all orders", 1.0), ("its own", order_of(1.0, DELTA))):
        rho = cost_of(Guarantee(loss=Pure(0.05), unit=Event()), Event(), order).rho
        fitting[name] = math.floor(renyi.rho_budget(1.0, DELTA / 2)[0] / rho)
    fitting["sum"] = math.floor(1 / 0.05)
    assert fitting == {"sum": 20, "all orders": 18, "its own": 21}


def test_approximate_charges_pass_by_either_rule_with_their_deltas_within_half():
    many = [Approximate(0.01, DELTA / 1000)] * 300
    total = total_of(*many, limit=1.0, delta=DELTA)
    assert (total.by_sum, total.spent) == (pytest.approx(3.0), total.by_zcdp)
    assert total.spent == total_of(*[Pure(0.01)] * 300, limit=1.0, delta=DELTA).spent
    assert total_of(*many * 2, limit=9.0, delta=DELTA).spent is None, "deltas of 0.6 delta"


def test_gaussian_and_approximate_charges_on_the_same_data_add_up_by_zcdp():
    total = total_of(Concentrated(1e-3), Approximate(0.1, 1e-9), limit=9.0, delta=DELTA)
    assert total.by_sum is None
    rho = 1e-3 + renyi.rho_of_pure(0.1, order_of(9.0, DELTA))
    expected = renyi.epsilon_of_rho(rho, DELTA / 2)
    assert total.spent == total.by_zcdp == pytest.approx(expected, rel=1e-9)


def test_rows_that_others_exceed_in_every_measure_change_nothing():
    generator = np.random.default_rng(3)
    for _ in range(50):
        costs = generator.choice([0.0, 0.1, 0.2, 0.4, np.inf], size=(12, 3))
        costs[:, 1] *= 1e-6
        total = worst_total(costs, Event(), 1.0, DELTA)
        sums, tails = by_sum(costs, DELTA), by_zcdp(costs, DELTA, order_of(1.0, DELTA))
        shown = [math.inf if one is None else one for one in (total.by_sum, total.spent)]
        assert shown == [sums.max(), np.minimum(sums, tails).max()]


def test_a_limit_without_delta_counts_only_sums_of_pure_charges():
    assert total_of(Concentrated(1e-9), limit=1.0, delta=0.0).spent is None
    assert total_of(Approximate(0.1, 1e-12), limit=1.0, delta=0.0).spent is None
    assert total_of(Approximate(0.1, 0.0), Concentrated(0.0), limit=1.0, delta=0.0).spent == 0.1


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
    assert cost_of(Guarantee(loss=Pure(1.0), unit=WithinDistance(5.0)), Event()) == Cost(
        *[math.inf] * 3
    )
    assert cost_of(NoGuarantee("a test"), Event()) == Cost(*[math.inf] * 3)


def test_values_count_twice_for_places_and_places_never_for_values():
    laplace, gaussian = Guarantee(Pure(0.5), Event()), Guarantee(Concentrated(0.1), Event())
    for unit in (Swap(5), BlockSwap(5), SlotOrigin(5)):
        assert cost_of(laplace, unit)[:2] == (1.0, 0.0)
        assert cost_of(gaussian, unit) == Cost(math.inf, 0.0, 0.4)
        assert cost_of(Guarantee(Pure(0.5), Window(5)), unit).epsilon == 0.5
        exact = Guarantee(Pure(0.5), unit)
        assert cost_of(exact, unit).epsilon == 0.5
        for limit in (Event(), Window(3), WholeSeries(9), Person(2, Event()), WithinDistance(5.0)):
            assert cost_of(exact, limit) == UNBOUNDED_COST
            assert "publishes the readings themselves" in explain_other_unit(limit, unit)
    assert cost_of(Guarantee(Pure(0.5), Swap(3)), Swap(6)).epsilon == 2.5
    assert cost_of(Guarantee(Pure(0.5), SlotOrigin(9)), Swap(2)) == UNBOUNDED_COST
    assert cost_of(Guarantee(Pure(0.5), BlockSwap(9)), Swap(2)) == UNBOUNDED_COST
    assert "of which a release that protects whether" in explain_other_unit(Swap(2), SlotOrigin(9))


def test_a_huge_group_costs_all_of_delta_instead_of_failing():
    wide = cost_of(Guarantee(loss=Approximate(1.0, 1e-9), unit=Event()), WholeSeries(5000))
    assert wide.epsilon == 5000
    assert wide.delta == pytest.approx(1.0)


def test_a_total_without_limit_is_shown_at_a_delta_that_suits_its_charges():
    assert unlimited_total(np.array([[1.0, 0.0, 0.5]]), Event()).delta == 0.0
    assert unlimited_total(np.array([[math.inf, 0.0, 0.5]]), Event()).delta == 1e-6
    mixed = unlimited_total(np.array([[1.0, 1e-3, math.inf]]), Event())
    assert (mixed.delta, mixed.spent) == (2e-3, 1.0)
    assert unlimited_total(np.array([[math.inf] * 3]), Event()).spent is None
