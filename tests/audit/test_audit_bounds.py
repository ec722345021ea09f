"""Bounds from counts: exactly how often they are wrong, by adding up every outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from tempriv.audit import confidence
from tempriv.audit.confidence import ORDERS, Score, epsilon_at_least, rho_of_event, rho_of_score

ALPHAS = (0.3, 0.05, 1e-3)


def outcomes(trials, p):
    return stats.binom(trials, p).pmf(np.arange(trials + 1))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("p", [0.001, 0.03, 0.2, 0.5, 0.9, 0.999])
def test_an_interval_is_wrong_no_more_often_than_it_says(alpha, p):
    trials = 40
    low = confidence.at_least(np.arange(trials + 1), trials, alpha)
    high = confidence.at_most(np.arange(trials + 1), trials, alpha)
    assert outcomes(trials, p)[low > p].sum() <= alpha
    assert outcomes(trials, p)[high < p].sum() <= alpha


def test_an_interval_is_as_short_as_exact_intervals_are():
    """At its end the count that was seen, or a more extreme one, has probability alpha."""
    for hits, trials, alpha in itertools.product((1, 7, 39), (40, 1_000), ALPHAS):
        low = float(confidence.at_least(hits, trials, alpha))
        assert stats.binom(trials, low).sf(hits - 1) == pytest.approx(alpha, rel=1e-6)
    assert confidence.at_least(0, 40, 0.05) == 0
    assert confidence.at_least(40, 40, 0.05) == pytest.approx(0.05 ** (1 / 40))
    assert confidence.at_most(40, 40, 0.05) == 1


def games(runs, hit, miss):
    """Every number of hits and misses in so many runs, with its probability."""
    both = outcomes(runs, hit + miss)
    for named in range(runs + 1):
        right = outcomes(named, hit / (hit + miss))
        for hits in range(named + 1):
            yield hits, named - hits, both[named] * right[hits]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("epsilon", "delta", "hit"),
    [(1.0, 0.0, 0.5), (1.0, 0.0, 0.1), (0.1, 0.0, 0.5), (3.0, 0.0, 0.9), (1.0, 0.1, 0.4)],
)
def test_an_epsilon_is_too_large_no_more_often_than_it_says(epsilon, delta, hit, alpha):
    miss = (hit - delta) / math.exp(epsilon)
    runs = 40
    hits, misses, chances = map(np.array, zip(*games(runs, hit, miss), strict=True))
    found = epsilon_at_least(hits, misses, (runs, runs), delta, alpha)
    wrong = chances[found > epsilon + 1e-9].sum()
    assert wrong <= alpha
    if hit == 0.5 and alpha > 0.01:  # otherwise 40 runs have too few outcomes
        assert wrong > alpha / 20  # the chance is used: the bound is not far too small


def divergence(p, q):
    """The largest Renyi divergence of a coin, divided by its order, over the orders tried."""
    terms = [ORDERS * math.log(a) + (1 - ORDERS) * math.log(b) for a, b in ((p, q), (1 - p, 1 - q))]
    return float((np.logaddexp(*terms) / (ORDERS - 1) / ORDERS).max())


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.9, 0.1), (0.1, 0.01), (0.3, 0.3)])
def test_a_rho_is_too_large_no_more_often_than_it_says(p, q, alpha):
    trials = 40, 30
    counts = [np.arange(n + 1) for n in trials]
    found = rho_of_event(counts[0][:, None], counts[1][None, :], trials, alpha)
    chances = np.outer(outcomes(trials[0], p), outcomes(trials[1], q))
    assert chances[found > divergence(p, q) + 1e-12].sum() <= alpha


def curve(epsilon, rho):
    """The delta of rho-zCDP (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    a = ORDERS
    logs = (a - 1) * (a * rho - epsilon) - np.log(a - 1) + a * np.log1p(-1 / a)
    return min(1.0, math.exp(float(logs.min())))


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.2), (0.02, 1e-4), (0.9, 0.3), (1e-3, 1e-9)])
def test_no_point_of_the_curve_of_epsilon_and_delta_shows_more(p, q):
    """The rho at which the curve just allows the event is no larger than the one found."""
    many = 10**15
    found = float(rho_of_event(p * many, q * many, (many, many), 0.5))
    assert found == pytest.approx(divergence(p, q), rel=1e-3)
    for epsilon in np.linspace(0, 12, 49):
        assert p - math.exp(epsilon) * q <= curve(epsilon, found) + 1e-9


def test_the_curve_of_epsilon_and_delta_hardly_sees_a_smaller_deviation():
    """At rho 0.5 a deviation 5 % too small crosses it below a delta of 2e-8: scores are needed."""

    def delta(epsilon, deviation):
        tails = [stats.norm.logcdf(s / (2 * deviation) - epsilon * deviation) for s in (1, -1)]
        return math.exp(tails[0]) - math.exp(epsilon + tails[1])

    crossed = [e for e in np.linspace(0.1, 12, 120) if delta(e, 0.95) > curve(e, 0.5)]
    assert 1e-8 < delta(min(crossed), 0.95) < 2.5e-8
    assert all(delta(e, 1.0) < curve(e, 0.5) for e in np.linspace(0.1, 12, 120))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.97])
def test_a_mean_is_too_large_no_more_often_than_it_says(p, alpha):
    trials, values = 300, np.array([-2.0, 5.0])
    mean = -2 + 7 * p
    counts = [np.array([trials - k, k]) for k in range(trials + 1)]
    found = np.array([confidence.mean_at_least(values, one, alpha) for one in counts])
    assert outcomes(trials, p)[found > mean].sum() <= alpha


def law(center, cells=81):
    values = np.exp(-((np.linspace(-4, 5, cells) - center) ** 2) / 2)
    return values / values.sum()


def test_a_score_shows_the_divergence_and_never_more():
    p, q = law(1.0), law(0.0)
    truth = float(p @ np.log(p / q))
    runs = 1e12
    ones, others = (np.rint(runs * one).astype(np.int64) for one in (p, q))
    ratio = np.log(p / q)
    assert rho_of_score(Score.of(ratio, ones, others), ones, others, 0.01) == pytest.approx(
        truth, rel=1e-4
    )
    for wrong in (0.5 * ratio, 2 * ratio, np.clip(ratio, -0.5, 0.5), -ratio, ratio**2):
        assert rho_of_score(Score.of(wrong, ones, others), ones, others, 0.01) < 0.99 * truth
    for mean, scale in ((0.0, 1.0), (truth, 3.0), (5.0, 0.2)):
        assert rho_of_score(Score(ratio, mean, scale), ones, others, 0.01) <= truth


def test_a_score_is_too_large_no_more_often_than_it_says():
    """Both laws over two cells, every outcome of 60 runs with a coin for the input."""
    p, q, alpha, runs = 0.7, 0.4, 0.3, 60
    truth = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    score = Score(np.log([p / q, (1 - p) / (1 - q)]), truth, 1.0)
    coins, wrong = outcomes(runs, 0.5), 0.0
    for sides in range(runs + 1):
        first, second = outcomes(sides, p), outcomes(runs - sides, q)
        for i, j in itertools.product(range(sides + 1), range(runs - sides + 1)):
            counts = np.array([i, sides - i]), np.array([j, runs - sides - j])
            if rho_of_score(score, *counts, alpha) > truth:
                wrong += coins[sides] * first[i] * second[j]
    assert wrong <= alpha
