"""Renyi divergences against their definition, and the conversions against exact Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from tempriv.accounting import renyi
from tempriv.accounting.composition import gaussian_delta
from tempriv.errors import UsageError
from tempriv.privacy.guarantees import Concentrated

ORDERS = [1.01, 1.5, 2.0, 7.3, 40.0]


def integrated(log_density: Callable[[float], float], order: float, points: list[float]) -> float:
    """The divergence between noise and the same noise moved by one, by quadrature."""

    def exponent(x: float) -> float:
        return order * log_density(x) + (1 - order) * log_density(x - 1)

    top = max(map(exponent, points))
    ends = (points[0] - 80, points[-1] + 80)
    found, _ = quad(
        lambda x: math.exp(exponent(x) - top), *ends, points=points, limit=500, epsrel=1e-11
    )
    return (math.log(found) + top) / (order - 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("ratio", [0.7, 3.0])
def test_laplace_and_gaussian_are_the_integrals_of_their_densities(order, ratio):
    laplace = integrated(lambda x: -abs(x) / ratio - math.log(2 * ratio), order, [0.0, 1.0])
    assert renyi.laplace(ratio, order) == pytest.approx(laplace, rel=1e-8)
    scale = math.log(ratio * math.sqrt(2 * math.pi))
    middle = 1 - order  # where the weighted density is largest
    gaussian = integrated(lambda x: -((x / ratio) ** 2) / 2 - scale, order, [middle, 0.0])
    assert renyi.gaussian(ratio, order) == pytest.approx(gaussian, rel=1e-8)


@pytest.mark.parametrize("epsilon", [1e-5, 0.01, 0.4, 1.0, 6.0, 90.0])
@pytest.mark.parametrize("order", [*ORDERS, 5000.0])
def test_no_digits_are_lost_where_little_or_much_is(epsilon, order):
    """With sixty digits beside it; plain logarithms are off by 1e-6 for the smallest of these."""
    with localcontext() as context:
        context.prec, context.Emax = 60, 10**12
        e, a = Decimal(epsilon), Decimal(order)
        for choices in (2, 3, 40):
            chances = (a * e).exp() + ((1 - a) * e).exp() + choices - 2
            expected = (chances / (e.exp() + choices - 1)).ln() / (a - 1)
            assert renyi.response(epsilon, choices, order) == pytest.approx(float(expected), 1e-11)
        near, far = a * ((a - 1) * e).exp(), (a - 1) * (-a * e).exp()
        expected = ((near + far) / (2 * a - 1)).ln() / (a - 1)
    assert renyi.laplace(1 / epsilon, order) == pytest.approx(float(expected), 1e-11)


@settings(derandomize=True)
@given(st.floats(1e-4, 20.0), st.floats(1.0001, 200.0), st.floats(1.0, 5.0))
def test_rho_of_a_pure_promise_falls_as_the_order_grows(epsilon, order, further):
    rhos = [renyi.rho_of_pure(epsilon, one) for one in (1.0, order, order * further)]
    assert epsilon**2 / 2 * (1 + 1e-12) >= rhos[0]
    assert rhos[0] * (1 + 1e-9) >= rhos[1] >= rhos[2] * (1 - 1e-12)


@settings(derandomize=True)
@given(st.floats(1e-9, 50.0), st.just(1.0) | st.floats(1.001, 500.0))
def test_the_epsilon_of_a_rho_has_that_rho(rho, order):
    epsilon = renyi.pure_of_rho(rho, order)
    assert renyi.rho_of_pure(epsilon, order) <= rho
    assert renyi.rho_of_pure(epsilon * (1 + 1e-9), order) > rho * (1 - 1e-12)


@settings(derandomize=True, max_examples=60)
@given(st.floats(1e-3, 60.0), st.floats(-14.0, -0.5).map(lambda power: 10**power))
def test_a_budget_of_rho_is_spent_exactly_and_its_order_is_where(epsilon, delta):
    rho, order = renyi.rho_budget(epsilon, delta)
    assert rho * order + renyi.epsilon_offset(order, delta) == pytest.approx(epsilon, rel=1e-12)
    assert renyi.epsilon_of_rho(rho, delta) == pytest.approx(epsilon, rel=1e-9)
    # less is best converted at an order above it, so a rho that holds there is enough
    for part in (0.1, 0.9, 1.0, 2.0):
        free, held = (renyi.epsilon_of_rho(part * rho, delta, least) for least in (1.0, order))
        assert held >= free * (1 - 1e-9)
        if part <= 1 and delta <= 1e-3:
            assert held == pytest.approx(free, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.05])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 1.0, 9.0])
def test_gaussian_noise_keeps_what_its_rho_says_and_the_sharper_conversion_is_closer(rho, delta):
    epsilon = renyi.epsilon_of_rho(rho, delta)
    classic = Concentrated(rho).epsilon_at(delta)
    assert gaussian_delta(1 / math.sqrt(2 * rho), epsilon) <= delta
    assert epsilon < classic
    _, least = renyi.best_order(
        lambda order: order * rho + renyi.epsilon_offset(order, delta, "classic")
    )
    assert least == pytest.approx(classic, rel=1e-9)


def test_nothing_spent_is_nothing_and_no_bound_stays_none():
    assert renyi.epsilon_of_rho(0.0, 1e-6) == 0.0
    assert renyi.epsilon_of_rho(math.inf, 1e-6) == math.inf
    assert renyi.pure_of_rho(0.0, 3.0) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (math.inf, 1e-6), (1.0, 0.0)])
def test_an_impossible_budget_is_refused(epsilon, delta):
    with pytest.raises(UsageError, match="must be"):
        renyi.rho_budget(epsilon, delta)
