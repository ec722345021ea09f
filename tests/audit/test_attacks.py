"""Attacks as demonstrations: as strong as they can be, and under what the guarantee allows."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import tempriv as tp
from tempriv.audit.attacks import value
from tempriv.audit.attacks.value import (
    Autoregression,
    Success,
    commonest_is_true,
    denoise,
    longitudinal,
    most_success,
)
from tempriv.errors import TemprivError
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.privacy.guarantees import Approximate, Concentrated, Pure
from tempriv.sampling import distributions
from tests.support.statistics import assert_proportion

FRESH = tp.RandomizedResponse(epsilon=0.8, categories=("no", "yes"))
MEMO = MemoizedResponse(epsilon_forever=1.5, epsilon_instant=1.0, categories=("no", "yes"))


# what a guarantee allows


def test_the_most_success_is_reached_by_randomized_response():
    """The first report is right as often as its guarantee allows, for two answers."""
    for epsilon in (0.1, 1.0, 5.0):
        law = distributions.CategoryFlip(distributions.Fraction(epsilon), 2)
        assert most_success(Pure(epsilon)) == pytest.approx(law.keep)


def test_the_most_success_with_delta_is_reached_too():
    """With probability delta the truth comes out, else a randomized response."""
    epsilon, delta = 0.7, 0.1
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert most_success(Approximate(epsilon, delta)) == pytest.approx(delta + (1 - delta) * kept)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0, 20.0])
def test_the_most_success_by_rho_is_above_that_of_gaussian_noise(rho):
    """A Gaussian of variance 1 / (2 rho) has rho, and is told apart with Phi(sqrt(2 rho) / 2)."""
    reached = stats.norm.cdf(math.sqrt(2 * rho) / 2)
    assert reached <= most_success(Concentrated(rho)) <= 1
    assert most_success(Concentrated(rho)) < 0.5 + 1.35 * (reached - 0.5) + 1e-9


def test_success_has_an_interval_that_holds():
    for p in (0.5, 0.9):
        law = stats.binom.pmf(np.arange(201), 200, p)
        ends = [Success("", k, 200, 0.9).interval for k in range(201)]
        assert sum(m for m, (low, high) in zip(law, ends, strict=True) if low <= p <= high) >= 0.9
    assert Success("", 0, 10, 0.9).interval[0] == 0 and Success("", 10, 10, 0.9).interval[1] == 1
    assert "right in 50.0 % of 4 trials" in Success("x", 2, 4, 0.99).sentence


# one answer, again and again


@pytest.mark.parametrize(
    ("choices", "reports"), [(2, 1), (2, 2), (2, 7), (3, 1), (3, 5), (3, 6), (4, 6), (5, 4)]
)
@pytest.mark.parametrize("keep", [0.25, 0.45, 0.9])
def test_the_commonest_report_is_true_as_often_as_counted(choices, reports, keep):
    other, expected = (1 - keep) / (choices - 1), 0.0
    for seen in itertools.product(range(choices), repeat=reports):
        counts = [seen.count(answer) for answer in range(choices)]
        if counts[0] == max(counts):
            chance = math.prod(keep if report == 0 else other for report in seen)
            expected += chance / counts.count(max(counts))
    assert commonest_is_true(keep, choices, reports) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("choices", [2, 3, 4])
def test_nobody_does_better_than_the_commonest_report(choices):
    """The best guess after each sequence of reports, by its probability under every answer."""
    names = tuple("abcd"[:choices])
    fresh = tp.RandomizedResponse(epsilon=0.8, categories=names)
    memo = MemoizedResponse(epsilon_forever=1.0, epsilon_instant=1.4, categories=names)
    reports = 4
    for mechanism in (fresh, memo):
        best = 0.0
        for seen in itertools.product(range(choices), repeat=reports):
            best += max(_chance(mechanism, seen, truth, choices) for truth in range(choices))
        found = longitudinal(mechanism, (reports,)).success[0]
        assert found == pytest.approx(best / choices, rel=1e-9)


def _chance(mechanism, seen, truth, choices):
    def each(law, answer):
        return math.prod(law.pmf((report - answer) % choices) for report in seen)

    if isinstance(mechanism, MemoizedResponse):
        memo = mechanism.permanent_distribution
        return sum(
            memo.pmf((answer - truth) % choices) * each(mechanism.instant_distribution, answer)
            for answer in range(choices)
        )
    return each(mechanism.distributions[0], truth)


def test_fresh_reports_give_an_unchanging_answer_away():
    found = longitudinal(FRESH, (1, 3, 9, 27, 81, 243))
    assert list(found.success) == sorted(found.success)
    assert found.success[-1] > 1 - 1e-8
    assert all(s <= cap + 1e-12 for s, cap in zip(found.success, found.cap, strict=True))


def test_memoized_reports_never_pass_their_cap():
    found = longitudinal(MEMO, (1, 3, 9, 27, 81, 243))
    cap = math.exp(1.5) / (1 + math.exp(1.5))
    assert list(found.success) == sorted(found.success)
    assert found.cap == pytest.approx((cap,) * 6)
    assert cap - 1e-3 < found.success[-1] <= cap + 1e-12
    alone = longitudinal(replace(MEMO, epsilon_instant=None), (1, 100))
    assert alone.success == pytest.approx((cap, cap))


def test_a_first_report_reaches_the_cap_of_one():
    for choices in (2, 5):
        mechanism = tp.RandomizedResponse(epsilon=1.3, categories=tuple("abcde"[:choices]))
        found = longitudinal(mechanism, (1,))
        assert found.success == pytest.approx(found.cap)


@pytest.mark.parametrize("mechanism", [FRESH, MEMO], ids=["fresh", "memoised"])
def test_simulated_people_are_guessed_as_often_as_computed(mechanism):
    """Alpha 1e-9; detects 15 % off, with 3,000 people."""
    found = longitudinal(mechanism, (1, 4, 15), people=3000, seed=4)
    for success, measured in zip(found.success, found.measured, strict=True):
        assert measured.trials == 3000
        assert_proportion(measured.right, 3000, success, detects=0.15)


def test_a_share_of_the_budget_for_each_report_keeps_the_total():
    """Ten reports that share one epsilon stay under what it allows."""
    year = replace(FRESH, epsilon=1.0, unit=tp.WholeSeries(10))
    found = longitudinal(year, (10,))
    assert found.cap[0] == pytest.approx(most_success(Pure(1.0)))
    assert found.success[0] < found.cap[0]


@pytest.mark.parametrize("count", [0, 1.5])
def test_a_number_of_reports_is_whole(count):
    with pytest.raises(TemprivError, match="whole number >= 1"):
        longitudinal(FRESH, (count,))


# readings that go together

MODEL = Autoregression(mean=5.0, persistence=0.99, spread=0.1)
LAPLACE = tp.Laplace(epsilon=4.0, bounds=(0, 10), unit=tp.WholeSeries(24))
GAUSSIAN = tp.Gaussian(rho=0.5, bounds=(0, 10), unit=tp.WholeSeries(24))
TRIALS = 6000


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_the_promise_for_the_series_holds_and_that_for_a_reading_does_not(mechanism):
    """At 1 - 1e-9: what goes together passes the cap of one reading, never that of all."""
    found = denoise(mechanism, MODEL, (0.0, 10.0), trials=TRIALS, confidence=1 - 1e-9)
    first, kalman, everything = found.observers
    assert found.holds
    assert first.interval[0] <= found.cap_reading < found.cap_series
    assert kalman.interval[0] > found.cap_reading
    assert everything.interval[0] > found.cap_reading
    assert all(one.interval[0] <= found.cap_series for one in found.observers)
    assert found.error_denoised < found.error_released / 3


def test_too_little_noise_is_seen():
    """A tenth of the noise that the guarantee asks for: the cap of the series is passed."""

    class Leaky(tp.Laplace):
        @property
        def distributions(self):
            return [distributions.DiscreteLaplace(law.scale / 10) for law in super().distributions]

    leaky = Leaky(epsilon=1.0, bounds=(0, 10), unit=tp.WholeSeries(24))
    assert not denoise(leaky, MODEL, (0.0, 10.0), trials=TRIALS, confidence=1 - 1e-9).holds


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
def test_one_value_is_told_apart_as_often_as_its_distribution_allows(mechanism):
    """Alpha 1e-9; detects 12 % off. The exact chance is half of 1 plus the total variation."""
    single = replace(mechanism, unit=tp.WholeSeries(1))
    law, (low, high) = single.distributions[0], single.domain.edges()[0]
    reach = range(low - 40 * (high - low), high + 40 * (high - low))
    chance = sum(max(law.pmf(k - low), law.pmf(k - high)) for k in reach) / 2
    found = denoise(single, MODEL, (0.0, 10.0), trials=TRIALS, seed=3)
    for one in found.observers:
        assert_proportion(one.right, TRIALS, float(chance), detects=0.12)


def test_the_filter_computes_the_likelihood_of_the_model():
    """Against the density of the joint normal law of all values."""
    model, variance, start, length = Autoregression(2.0, 0.7, 0.5), 1.3, 4.0, 6
    rng = np.random.default_rng(8)
    released = rng.normal(2, 2, size=(5, length))
    steps = np.arange(length)
    mean = model.mean + (start - model.mean) * model.persistence**steps
    covariance = np.zeros((length, length))
    for i, j in itertools.product(range(length), repeat=2):
        covariance[i, j] = model.spread**2 * sum(
            model.persistence ** (i - s) * model.persistence ** (j - s)
            for s in range(1, min(i, j) + 1)
        )
    law = stats.multivariate_normal(mean, covariance + variance * np.eye(length))
    total, filtered = value._kalman(released, model, start, variance)
    expected = law.logpdf(released) + length / 2 * math.log(2 * math.pi)
    np.testing.assert_allclose(total, expected, rtol=1e-10)
    # the last filtered value is the mean given all released ones
    weights = np.linalg.solve(covariance + variance * np.eye(length), covariance[:, -1])
    np.testing.assert_allclose(filtered[:, -1], mean[-1] + (released - mean) @ weights)


def test_paths_follow_the_model():
    """20,000 paths: mean and variance of the last reading within six standard errors."""
    model = Autoregression(mean=1.0, persistence=0.8, spread=0.5)
    key = tp.Key.from_seed(6).series("test", "paths")
    paths = model.paths(np.full(20_000, 3.0), 5, key)
    assert set(paths[:, 0]) == {3.0}
    mean, variance = 1 + 2 * 0.8**4, 0.25 * sum(0.8 ** (2 * i) for i in range(4))
    last = paths[:, -1]
    assert abs(last.mean() - mean) < 6 * math.sqrt(variance / 20_000)
    assert abs(last.var() / variance - 1) < 6 * math.sqrt(2 / 20_000)


def test_the_same_seed_gives_the_same_numbers():
    one, other = (denoise(LAPLACE, MODEL, (0, 10), trials=200, seed=1) for _ in range(2))
    assert one == other
    assert one != denoise(LAPLACE, MODEL, (0, 10), trials=200, seed=2)


@pytest.mark.parametrize(
    "mechanism",
    [
        tp.Laplace(epsilon=1.0, bounds=(0, 10)),
        tp.Laplace(epsilon=1.0, bounds=((0, 1), (0, 1)), unit=tp.WholeSeries(3)),
        FRESH,
    ],
)
def test_other_mechanisms_are_refused(mechanism):
    with pytest.raises(TemprivError, match="must be Laplace or Gaussian for WholeSeries"):
        denoise(mechanism, MODEL, (0.0, 1.0))


@pytest.mark.parametrize("given", [{"persistence": 1.1}, {"spread": 0.0}])
def test_models_that_cannot_be_meant_are_refused(given):
    with pytest.raises(TemprivError, match=next(iter(given))):
        replace(MODEL, **given)
