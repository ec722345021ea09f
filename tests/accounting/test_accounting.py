"""Composition against enumeration, exact arithmetic and the paper's numbers; what epsilon means."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tempriv.accounting import composition
from tempriv.accounting.composition import (
    advanced,
    advantage,
    basic,
    exact,
    gaussian,
    gaussian_delta,
    gaussian_loss_above,
    gaussian_noise,
    odds_after,
    optimal,
    renyi,
    success_cap,
    tail_bound,
)
from tempriv.accounting.loss_distribution import (
    AnyRelease,
    GaussianRelease,
    LaplaceRelease,
    ResponseRelease,
    loss_distribution,
)
from tempriv.errors import UsageError
from tempriv.privacy.guarantees import Approximate

# the example of the paper: a release every minute of a day, each (0.05, 1e-8)
EPSILON, DELTA, COUNT, SLACK = 0.05, 1e-8, 1440, 1e-7
TARGET = 1.45e-5


# the numbers


def test_the_day_of_the_paper_by_every_method():
    assert basic(EPSILON, DELTA, COUNT).loss == Approximate(72.0, COUNT * DELTA)
    by_advanced = advanced(EPSILON, DELTA, COUNT, SLACK)
    assert by_advanced.epsilon == pytest.approx(14.4642, abs=5e-5)
    assert by_advanced.delta == pytest.approx(TARGET)
    assert optimal(EPSILON, DELTA, COUNT, TARGET).epsilon == pytest.approx(11.1599, abs=5e-5)
    assert optimal(EPSILON, 0.0, COUNT, TARGET).epsilon == pytest.approx(9.191, abs=5e-4)
    laplace = exact({LaplaceRelease(1 / EPSILON): COUNT}, TARGET)
    assert laplace.epsilon == pytest.approx(9.101, abs=5e-4)


def test_the_day_of_the_paper_with_gaussian_noise_of_the_same_promise():
    ratio = gaussian_noise(EPSILON, DELTA)
    assert ratio == pytest.approx(89.08, abs=5e-3)
    assert gaussian(89.08, COUNT, TARGET).epsilon == pytest.approx(1.6289, abs=5e-5)
    classic = renyi({GaussianRelease(89.08): COUNT}, TARGET, conversion="classic")
    assert classic.epsilon == pytest.approx(2.1016, abs=5e-5)
    assert classic.order == pytest.approx(12.081, abs=5e-4)
    assert renyi({GaussianRelease(89.08): COUNT}, TARGET).epsilon == pytest.approx(1.7768, abs=5e-5)


def test_no_epsilon_is_enough_below_the_delta_of_the_releases_themselves():
    floor = -math.expm1(COUNT * math.log1p(-DELTA))
    assert floor == pytest.approx(1.43999e-5, abs=5e-11)
    assert optimal(EPSILON, DELTA, COUNT, floor * 1.0001).epsilon < COUNT * EPSILON
    with pytest.raises(UsageError, match=r"target_delta=1.43e-05: must be at least 1.43999e-05"):
        optimal(EPSILON, DELTA, COUNT, 1.43e-5)


def test_a_thousand_laplace_releases():
    plan = {LaplaceRelease(20.0): 1000}
    assert basic(0.05, 0.0, 1000).epsilon == 50
    assert renyi(plan, 1e-6).epsilon == pytest.approx(8.73, abs=5e-3)
    assert exact(plan, 1e-6).epsilon == pytest.approx(8.20, abs=5e-3)


def test_methods_say_whether_costs_may_be_chosen_as_one_goes():
    chosen = [basic(0.1, 0.0, 3), renyi({LaplaceRelease(9.0): 3}, 1e-6)]
    fixed = [
        advanced(0.1, 0.0, 3, 1e-6),
        optimal(0.1, 0.0, 3, 1e-6),
        gaussian(9.0, 3, 1e-6),
        exact({ResponseRelease(0.1): 3}, 1e-6),
    ]
    assert all(one.adaptive for one in chosen) and not any(one.adaptive for one in fixed)


# optimal composition


def worst_case(ratio: Fraction, delta: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The outcomes of the worst (epsilon, delta) release on two neighbors; ratio is e^epsilon."""
    true, false = ratio / (1 + ratio), 1 / (1 + ratio)
    return [
        (delta, Fraction(0)),
        (Fraction(0), delta),
        ((1 - delta) * true, (1 - delta) * false),
        ((1 - delta) * false, (1 - delta) * true),
    ]


def enumerated_delta(ratio: Fraction, delta: Fraction, count: int, total: Fraction) -> Fraction:
    """The hockey-stick divergence at ln(total), from every outcome of every release."""
    outcomes = worst_case(ratio, delta)
    found = Fraction(0)
    for combination in itertools.product(outcomes, repeat=count):
        here, there = (math.prod(side) for side in zip(*combination, strict=True))
        found += max(Fraction(here) - total * Fraction(there), Fraction(0))
    return found


RATIOS = [Fraction(101, 100), Fraction(3, 2), Fraction(3), Fraction(20)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000)])
@pytest.mark.parametrize("target", [Fraction(1, 90), Fraction(1, 8), Fraction(1, 2)])
def test_optimal_is_the_least_epsilon_of_the_worst_case_by_enumeration(count, ratio, delta, target):
    epsilon = math.log(ratio)
    found = optimal(epsilon, float(delta), count, float(target)).epsilon
    assert enumerated_delta(ratio, delta, count, Fraction(math.exp(found + 1e-12))) <= target
    if found > 1e-9:
        assert enumerated_delta(ratio, delta, count, Fraction(math.exp(found - 1e-9))) > target


def decimal_delta(epsilon: float, count: int, total: float) -> Decimal:
    """The same divergence for many pure releases, with sixty digits."""
    with localcontext() as context:
        context.prec = 60
        e, true = Decimal(epsilon), Decimal(epsilon).exp() / (1 + Decimal(epsilon).exp())
        found, limit = Decimal(0), Decimal(total)
        chance = true**count
        for answers in range(count, -1, -1):
            loss = (2 * answers - count) * e
            if loss <= limit:
                break
            found += chance * (1 - (limit - loss).exp())
            chance *= Decimal(answers) / Decimal(count - answers + 1) * (-e).exp()
        return found


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 1440), (0.003, 10_080), (1.0, 3000)])
@pytest.mark.parametrize("target", [1e-12, 1e-6])
def test_optimal_stays_exact_for_thousands_of_releases(epsilon, count, target):
    found = optimal(epsilon, 0.0, count, target).epsilon
    assert decimal_delta(epsilon, count, found) <= target
    assert decimal_delta(epsilon, count, found - 1e-9) > target


def test_privacy_loss_distributions_agree_with_optimal_composition():
    for delta in (0.0, DELTA):
        plan = {AnyRelease(EPSILON, delta): COUNT}
        by_formula = optimal(EPSILON, delta, COUNT, TARGET).epsilon
        by_losses = loss_distribution(plan).get_epsilon_for_delta(TARGET)
        assert by_losses == pytest.approx(by_formula, abs=1.5e-7)
        # what floating point may have lost of delta is put back
        assert 0 <= exact(plan, TARGET).epsilon - by_formula <= 1e-5


@settings(derandomize=True, deadline=None)
@given(
    st.floats(1e-3, 1.0),
    st.integers(1, 400),
    st.sampled_from([1e-9, 1e-4, 0.1]),
    st.sampled_from([0.0, 1e-12]),
)
def test_optimal_is_never_above_the_other_ways_to_add(epsilon, count, slack, delta):
    target = count * delta + slack
    best = optimal(epsilon, delta, count, target).epsilon
    assert best <= basic(epsilon, delta, count).epsilon
    assert best <= advanced(epsilon, delta, count, slack).epsilon
    if delta == 0:
        assert best <= renyi({AnyRelease(epsilon): count}, target).epsilon * (1 + 1e-9)


def test_epsilon_zero_and_ends_of_delta():
    assert optimal(0.0, 0.0, 9, 1e-6).epsilon == 0.0
    assert optimal(2.0, 0.0, 3, 0.0).epsilon == 6.0
    assert optimal(1.0, 0.0, 5, 0.99).epsilon < 1e-9


# Gaussian noise


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0, 40.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.2])
@pytest.mark.parametrize("count", [1, 7, 1440])
def test_gaussian_noise_is_the_least_that_keeps_a_promise(epsilon, delta, count):
    ratio = gaussian_noise(epsilon, delta, count)
    assert gaussian_delta(ratio, epsilon, count) == pytest.approx(delta, rel=1e-6)
    assert gaussian_delta(ratio * 0.999, epsilon, count) > delta
    assert gaussian(ratio, count, delta).epsilon == pytest.approx(epsilon, rel=1e-9)


def test_gaussian_delta_is_the_hockey_stick_of_its_densities():
    x = np.linspace(-30, 30, 600_001)
    width = x[1] - x[0]
    for ratio, epsilon in ((1.0, 0.5), (2.0, 1.0), (0.5, 3.0)):
        here, there = (
            np.exp(-(((x - shift) / ratio) ** 2) / 2) / (ratio * math.sqrt(2 * math.pi))
            for shift in (0, 1)
        )
        summed = np.maximum(here - math.exp(epsilon) * there, 0).sum() * width
        assert gaussian_delta(ratio, epsilon) == pytest.approx(summed, rel=1e-6)


def test_so_many_releases_are_one_of_so_many_times_the_information():
    assert gaussian_delta(6.0, 1.0, count=36) == pytest.approx(gaussian_delta(1.0, 1.0), rel=1e-12)
    mixed = exact({GaussianRelease(6.0): 18, GaussianRelease(3.0): 9}, 1e-5).epsilon
    assert mixed == pytest.approx(gaussian(math.sqrt(1 / 1.5), 1, 1e-5).epsilon, rel=1e-12)


# what an epsilon means


def test_the_sentence_of_the_paper_is_wrong_and_the_corrected_one_is_right():
    """ "With probability 1 - delta the loss lies within epsilon": not so for Gaussian noise."""
    ratio = gaussian_noise(1.0, 1e-5)
    assert gaussian_loss_above(ratio, 1.0) == pytest.approx(1.61e-4, abs=5e-7)
    for margin in (0.001, 0.1, 0.5, 2.0):
        assert gaussian_loss_above(ratio, 1.0 + margin) <= tail_bound(1e-5, margin)


def test_the_tail_bound_is_reached():
    """By a release whose loss is epsilon + margin with just that probability, and else negative."""
    epsilon, delta, margin = 1.0, 1e-3, 0.5
    chance = tail_bound(delta, margin)
    here = np.array([chance, 1 - chance])
    there = np.array([chance * math.exp(-epsilon - margin), 0.0])
    there[1] = 1 - there[0]
    assert here[0] - math.exp(epsilon) * there[0] == pytest.approx(delta)
    assert np.log(here[0] / there[0]) == pytest.approx(epsilon + margin)


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 50)])
@pytest.mark.parametrize("ratio", RATIOS)
def test_the_advantage_is_the_total_variation_of_the_worst_case(ratio, delta):
    variation = sum(abs(a - b) for a, b in worst_case(ratio, delta)) / 2
    found = advantage(math.log(ratio), float(delta))
    assert found == pytest.approx(float(variation), rel=1e-12)
    formula = (ratio - 1 + 2 * delta) / (ratio + 1)
    assert formula == variation
    # whoever guesses the likelier neighbor is right just so often
    right = sum(max(a, b) for a, b in worst_case(ratio, delta)) / 2
    assert success_cap(math.log(ratio), float(delta)) == pytest.approx(float(right), rel=1e-12)


def test_odds_move_by_at_most_the_factor_and_randomized_response_gets_there():
    epsilon, prior = math.log(4), Fraction(1, 9)
    low, high = odds_after(float(prior), epsilon)
    after = [prior * a / b for a, b in worst_case(Fraction(4), Fraction(0)) if b]
    assert (min(after), max(after)) == (pytest.approx(low), pytest.approx(high))


# refusals


def wrong_calls() -> Iterator[tuple[str, object]]:
    plan = {LaplaceRelease(1.0): 1}
    yield "epsilon=-1: must be", lambda: basic(-1, 0.0, 1)
    yield "epsilon=nan: must be", lambda: optimal(math.nan, 0.0, 1, 0.1)
    yield "delta=1.0: must be", lambda: basic(1.0, 1.0, 1)
    yield "count=0: must be", lambda: advanced(1.0, 0.0, 0, 0.1)
    yield "count=1.5: must be", lambda: optimal(1.0, 0.0, 1.5, 0.1)  # type: ignore[arg-type]
    yield "slack=0: must be", lambda: advanced(1.0, 0.0, 1, 0)
    yield "delta=0: must be", lambda: renyi(plan, 0)
    yield "delta=0.0: must be", lambda: gaussian(1.0, 1, 0.0)
    yield "order=1.0: must be > 1", lambda: renyi(plan, 0.1, order=1.0)
    yield "conversion='best': must be", lambda: renyi(plan, 0.1, conversion="best")  # type: ignore[arg-type]
    yield "name at least one release", lambda: exact({}, 0.1)
    yield "noise_ratio=0: must be", lambda: LaplaceRelease(0)
    yield "noise_ratio=inf: must be", lambda: GaussianRelease(math.inf)
    yield "choices=1: must be", lambda: ResponseRelease(1.0, choices=1)
    yield "has no Renyi divergence", lambda: renyi({AnyRelease(1.0, 1e-9): 2}, 0.1)
    yield "too small for 2 releases", lambda: exact({LaplaceRelease(1.0): 2}, 1e-14)
    yield "gives? everything away", lambda: exact({AnyRelease(1.0, 0.1): 2}, 0.1)
    yield "margin=0: must be", lambda: tail_bound(0.1, 0)
    yield "odds=0: must be", lambda: odds_after(0, 1.0)


@pytest.mark.parametrize(("sentence", "call"), list(wrong_calls()), ids=lambda one: str(one)[:20])
def test_what_cannot_be_meant_is_refused(sentence, call):
    with pytest.raises(UsageError, match=sentence):
        call()


def test_a_given_order_is_used():
    plan = {GaussianRelease(89.08): COUNT}
    best = renyi(plan, TARGET)
    assert best.order is not None
    assert renyi(plan, TARGET, order=best.order).epsilon == pytest.approx(best.epsilon)
    assert renyi(plan, TARGET, order=2 * best.order).epsilon > best.epsilon


def test_an_epsilon_past_the_largest_float_is_no_error():
    assert advanced(800.0, 0.0, 2, 1e-6).epsilon == math.inf
    assert gaussian_delta(1e-3, 800.0) == pytest.approx(1.0)
    assert composition.odds_after(1.0, 1e4)[1] > 1e300
