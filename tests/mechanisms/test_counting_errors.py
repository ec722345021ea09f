"""Errors of running sums as they are stated: from the noise, from simulation, and as was found."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow
import pytest
from scipy import optimize, stats

from tempriv.data.series import Block
from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.counting import matrix_factorization
from tempriv.mechanisms.counting import tree as counting_tree
from tempriv.mechanisms.counting.matrix_factorization import (
    changed_square,
    factors,
    optimal_mean_error,
)
from tempriv.mechanisms.counting.running_count import RunningCount, window_sum
from tempriv.mechanisms.counting.tree import Epochs
from tempriv.mechanisms.perturb import perturb_block
from tempriv.privacy import serialization
from tempriv.releases.run import release
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange
from tests.reference import counting as reference
from tests.support.statistics import COMPILED, assert_proportion

pytest_plugins = ["tests.support.statistics"]

# the findings: running counts of a day in minutes, one reading protected, noise of variance 1 on
# a sensitivity of 1 (Gaussian) or epsilon 1 (Laplace), mean squared error over the day
DAY = 1440
FOUND = [
    ({"rho": 0.5, "method": "increments"}, 720.5),
    ({"rho": 0.5, "method": "tree", "branching": 2}, 55.64),
    ({"rho": 0.5, "method": "square-root"}, 10.358),
    ({"epsilon": 1.0, "method": "increments"}, 1441),
    ({"epsilon": 1.0, "method": "tree", "branching": 2}, 1224),
    ({"epsilon": 1.0, "method": "tree", "branching": 12}, 279),
]


@pytest.mark.parametrize(("how", "error"), FOUND)
def test_the_errors_of_a_day_come_out(how, error):
    mechanism = RunningCount(bounds=(0, 1), horizon=DAY, **how)
    assert math.isclose(mechanism.errors[0] ** 2, error, rel_tol=0.001)
    assert math.isclose(
        np.mean([mechanism.error_at(n) ** 2 for n in range(1, DAY + 1)]), error, rel_tol=0.001
    )


# errors


def loadings(mechanism, steps):
    """How the noise of each step goes into each released sum, from the definitions."""
    plan = mechanism.plans[0]
    matrix = np.zeros((steps, steps))
    for s in range(steps):
        impulse = [int(t == s) for t in range(steps)]
        if mechanism.method_used == "square-root":
            column = reference.coefficients(steps, plan.bits)
            matrix[:, s] = [
                float(v) for v in reference.square_root_sums([0] * steps, column, impulse)
            ]
        else:
            endless = isinstance(plan, Epochs)
            nodes = reference.epoch_nodes_of if endless else reference.nodes_of
            for count in range(1, steps + 1):
                matrix[count - 1, s] = any(n[1] == s + 1 for n in nodes(count, plan.branching))
    return matrix


def noise_variances(mechanism, steps):
    plan = mechanism.plans[0]
    if isinstance(plan, Epochs):
        return np.array(
            [
                plan.noises[reference.epoch_of(n, plan.branching)][
                    reference.is_end(n, plan.branching)
                ].mean_square
                for n in range(1, steps + 1)
            ]
        )
    return np.full(steps, plan.noise.mean_square)


METHODS = [
    {"rho": 0.5, "horizon": 40},
    {"rho": 0.5, "horizon": 40, "method": "tree"},
    {"epsilon": 1.0, "horizon": 40, "branching": 2},
    {"epsilon": 1.0, "horizon": 40, "branching": 5},
    {"epsilon": 1.0, "method": "increments"},
    {"epsilon": 1.0, "branching": 2},
    {"epsilon": 1.0, "branching": 3},
    {"rho": 1.0, "branching": 5},
]


@pytest.mark.parametrize("how", METHODS)
def test_stated_errors_follow_from_the_noise(how):
    """Of every sum and of every window, from where each draw goes."""
    steps = 40
    mechanism = RunningCount(bounds=(0, 1), grid=0.125, **how)
    matrix, variances = loadings(mechanism, steps), noise_variances(mechanism, steps)
    sums = np.vstack([np.zeros(steps), matrix])
    for start, stop in itertools.combinations(range(steps + 1), 2):
        expected = math.sqrt(float(((sums[stop] - sums[start]) ** 2) @ variances)) * 0.125
        assert math.isclose(mechanism.window_error(start, stop), expected, rel_tol=1e-9)
    at = [mechanism.error_at(count) for count in range(1, steps + 1)]
    assert at == [mechanism.window_error(0, count) for count in range(1, steps + 1)]
    if "horizon" in how:
        assert math.isclose(mechanism.errors[0] ** 2, np.mean(np.square(at)), rel_tol=1e-9)


@pytest.mark.parametrize("how", [g for g in METHODS if "horizon" not in g])
def test_the_error_of_an_endless_stream_is_a_mean_over_its_first_steps(how, monkeypatch):
    for steps in (1, 5, 27, 1000):
        monkeypatch.setattr(counting_tree, "LOOKED_AT", steps)
        mechanism = RunningCount(bounds=(0, 1), grid=0.125, **how)
        squares = [mechanism.error_at(count) ** 2 for count in range(1, steps + 1)]
        assert math.isclose(mechanism.errors[0] ** 2, np.mean(squares), rel_tol=1e-9)


def many_series(mechanism, series, steps, seed):
    """Released sums of so many series of zeros, a row each."""
    key, digest = Key.from_seed(seed), serialization.digest(mechanism)
    names = tuple(str(i) for i in range(series))
    block = Block(
        values=np.zeros((series * steps, 1)),
        missing=np.zeros((series * steps, 1), dtype=np.bool_),
        ids=names,
        counts=np.full(series, steps),
        starts=np.zeros(series, dtype=np.int64),
    )
    runs = [StepRange(key.series(digest, name), 0, steps) for name in names]
    return perturb_block(mechanism, block, runs).values.reshape(series, steps)


def assert_mean_square(squares, draws, expected, freedom, detects):
    """A mean of squares of Gaussian noise with so many degrees of freedom a draw.

    As chi-square by its first two moments; alpha 1e-9, and ``detects`` (a relative deviation of the
    mean square) is rejected with probability 0.99, above and below.
    """
    law = stats.chi2(draws * freedom)
    low, high = law.ppf(0.5e-9) / (draws * freedom), law.isf(0.5e-9) / (draws * freedom)
    assert law.sf(high * draws * freedom / (1 + detects)) >= 0.99, "cannot be detected"
    assert law.cdf(low * draws * freedom / (1 - detects)) >= 0.99, "cannot be detected"
    assert low <= squares / expected <= high


def test_the_square_root_errs_as_stated(seed):
    """Of the last of 40 sums and of a window; detects errors that are off by 5 %."""
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), horizon=40)
    series = 20_000 if COMPILED else 4_000
    detects = 0.1 if COMPILED else 0.23
    out = many_series(mechanism, series, 40, seed)
    for start, stop in ((0, 40), (0, 1), (20, 30)):
        sums = out[:, stop - 1] - (out[:, start - 1] if start else 0.0)
        stated = mechanism.window_error(start, stop) ** 2
        assert_mean_square(np.mean(sums**2), series, stated, 1, detects)


def test_a_simulated_day_errs_as_was_found(seed):
    """The mean over the day; detects a mean squared error that is off by a quarter."""
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), horizon=DAY)
    series = 400 if COMPILED else 40
    out = many_series(mechanism, series, DAY, seed)
    expected, freedom = day_law()
    assert math.isclose(expected, 10.358, rel_tol=0.01)
    detects = 0.25 if COMPILED else 0.9
    assert_mean_square(np.mean(out**2), series, expected, freedom, detects)


def day_law():
    """Mean squared error over a day, and how many squares of one Gaussian it is as good as."""
    found = factors(DAY, matrix_factorization.default_bits(DAY))
    back = np.zeros((DAY, DAY))
    for s in range(DAY):
        back[s:, s] = found.back[: DAY - s]
    gram = back.T @ back
    scale = changed_square(DAY, matrix_factorization.default_bits(DAY), 1)
    expected = scale * float(np.trace(gram)) / DAY
    return expected, float(np.trace(gram)) ** 2 / float((gram**2).sum())


@pytest.mark.long
def test_many_simulated_days_err_as_was_found(seed):
    """Within 1 % of 10.358, four standard errors; detects one that is off by 2.3 %."""
    expected, freedom = day_law()
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), horizon=DAY)
    squares, series, parts = 0.0, 1000, 20
    for part in range(parts):
        squares += float(np.mean(many_series(mechanism, series, DAY, seed + part) ** 2)) / parts
    assert_mean_square(squares, series * parts, expected, freedom, 0.023)
    assert math.isclose(squares, 10.358, rel_tol=0.01)


def convolved(law, count):
    """The exact law of a sum of draws: numbers from -reach to reach."""
    listed = dict(law.outcomes(1e-15))
    reach = max(listed)
    one = np.array([listed.get(k, 0.0) for k in range(-reach, reach + 1)])
    total = np.array([1.0])
    for _ in range(count):
        total = np.convolve(total, one)
    return total


def test_a_twelve_ary_day_errs_as_stated(seed):
    """How often the last sum errs by more than its deviation, against the exact law of its nodes.

    Exact binomial test with alpha 1e-9; detects a frequency that is off by a fifth.
    """
    mechanism = RunningCount(epsilon=1.0, bounds=(0, 1), grid=0.25, horizon=DAY, branching=12)
    plan = mechanism.plans[0]
    nodes = sum(counting_tree.digits(DAY, 12))
    assert nodes == 10 and plan.noise.scale == 12
    series = 5000 if COMPILED else 1000
    law = convolved(plan.noise, nodes)
    middle = len(law) // 2
    variance = float(law @ (np.arange(len(law)) - middle) ** 2)
    assert math.isclose(variance * 0.25**2, mechanism.error_at(DAY) ** 2, rel_tol=1e-6)
    reach = math.floor(math.sqrt(variance))
    beyond = 1.0 - float(law[middle - reach : middle + reach + 1].sum())
    errors = many_series(mechanism, series, DAY, seed)[:, -1] / 0.25
    count = int((np.abs(errors) > reach).sum())
    assert_proportion(count, series, beyond, detects=0.2 if COMPILED else 0.5)


# windows


def test_window_sums_are_differences():
    sums = np.array([1.0, 3.0, 6.0, 10.0])
    assert [window_sum(sums, 0, 4), window_sum(sums, 1, 3), window_sum(sums, 3, 4)] == [10, 5, 4]
    both = np.stack([sums, 2 * sums], axis=1)
    assert window_sum(both, 1, 3).tolist() == [5.0, 10.0]
    made = release(np.ones(50), RunningCount(rho=0.5, bounds=(0, 1), horizon=50))
    assert window_sum(made, 10, 20) == made.values[19] - made.values[9]
    for start, stop in ((-1, 2), (2, 2), (0, 5), (3, 1), (0.5, 2)):
        with pytest.raises(UsageError, match=f"steps {start} to {stop}: "):
            window_sum(sums, start, stop)
    gaps = np.ma.array(sums, mask=[False, True, False, False])
    assert window_sum(gaps, 1, 3) == 5.0
    with pytest.raises(DataError, match="missing"):
        window_sum(gaps, 2, 3)
    table = pyarrow.table({"id": ["a", "b"], "x": [1.0, 0.0]})
    two = release(table, RunningCount(rho=0.5, bounds=(0, 1), horizon=5), values="x", series="id")
    with pytest.raises(UsageError, match="one series"):
        window_sum(two, 0, 1)


def test_errors_of_steps_that_do_not_exist_are_refused():
    mechanism = RunningCount(rho=0.5, bounds=(0, 1), horizon=50)
    for start, stop in ((0, 51), (-1, 3), (3, 3)):
        with pytest.raises(UsageError, match="whole numbers"):
            mechanism.window_error(start, stop)
    with pytest.raises(UsageError):
        mechanism.error_at(0)


# optimal


def test_the_optimal_factorization_of_small_series():
    """1, (3 + sqrt 5) / 4, and the best that a general search finds."""
    assert math.isclose(optimal_mean_error(1), 1.0, rel_tol=1e-6)
    assert math.isclose(optimal_mean_error(2), (3 + math.sqrt(5)) / 4, rel_tol=1e-6)
    for horizon in (3, 4):
        ones = np.tril(np.ones((horizon, horizon)))
        places = np.tril_indices(horizon)

        def error(numbers, ones=ones, places=places, horizon=horizon):
            strategy = np.zeros((horizon, horizon))
            strategy[places] = numbers
            strategy /= np.sqrt((strategy**2).sum(axis=0))
            return float((np.linalg.solve(strategy.T, ones.T) ** 2).sum()) / horizon

        start = ones[places] * np.where(places[0] == places[1], 1.0, 0.4)
        found = optimize.minimize(error, start, options={"gtol": 1e-9})
        assert math.isclose(optimal_mean_error(horizon), found.fun, rel_tol=1e-5)


def test_nothing_beats_the_optimal_factorization():
    for horizon in (8, 60):
        best = optimal_mean_error(horizon, 1e-4)
        root = RunningCount(rho=0.5, bounds=(0, 1), horizon=horizon).errors[0] ** 2
        tree = RunningCount(rho=0.5, bounds=(0, 1), horizon=horizon, method="tree").errors[0] ** 2
        assert best < root < tree and root < 1.15 * best


@pytest.mark.long
def test_the_optimal_factorization_of_a_day():
    assert math.isclose(optimal_mean_error(DAY, 1e-3), 9.376, rel_tol=1e-3)
