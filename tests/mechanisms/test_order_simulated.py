"""What moving rows costs, in long runs of what is released; and what goes wrong otherwise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.studies.tldp import counterexamples
from tempriv.utility import reorder_costs
from tests.mechanisms.test_order import said, sources
from tests.support.statistics import COMPILED

# errors and costs


@pytest.mark.parametrize("noise", ["staircase", "laplace"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_the_stated_noise_on_times_is_that_of_the_distribution(epsilon, noise):
    mechanism = NoisyOrder(epsilon=epsilon, window=20, noise=noise)
    rate, width = epsilon / 2, 19
    reach = int(60 * width / rate)
    far = np.arange(reach + 1)
    if noise == "laplace":
        weights = np.exp(-rate * far / width)
    else:
        weights = np.exp(-rate * (far // width + (far % width >= mechanism.distribution.inner)))
    mean = 2 * (far * weights).sum() / (2 * weights.sum() - weights[0])
    assert mechanism.errors[0] == pytest.approx(mean, rel=1e-6)


STEPS = 2_000_000 if COMPILED else 40_000
BATCHES = 200
SIMULATED = [
    Backward(epsilon=3.0, window=10),
    Backward(epsilon=0.5, window=4),
    Forward(epsilon=3.0, window=10),
    Forward(epsilon=1.0, window=2),
    Threshold(epsilon=5.0, window=10),
    Threshold(epsilon=1.0, window=10),
    Threshold(epsilon=8.0, window=100),
    DualThreshold(epsilon=5.0, window=10),
    DualThreshold(epsilon=1.0, window=10),
    DualThreshold(epsilon=8.0, window=100),
    BlockShuffle(epsilon=1.0, block=20),
    NoisyOrder(epsilon=4.0, window=4, latency=30, delta=0.01),
]


def shares(mechanism, seed=11):
    """Missing, repeated, empty and delay of each reading or slot, a row for each step."""
    found = sources(mechanism, STEPS, seed)
    rows = np.zeros((STEPS, 4))
    slots = np.flatnonzero(found >= 0)
    first = np.full(STEPS, -1)
    first[found[slots][::-1]] = slots[::-1]  # the last one written is the first slot
    times = np.bincount(found[slots], minlength=STEPS)
    rows[:, 0] = times == 0
    rows[:, 1] = np.maximum(times - 1, 0)
    rows[:, 2] = found < 0
    late = first + mechanism.domain.latency - np.arange(STEPS)
    rows[:, 3] = np.where(times > 0, late, 0)
    return found, rows


@pytest.mark.parametrize(
    "mechanism",
    SIMULATED,
    ids=lambda one: f"{said(one)} {one.window}" if hasattr(one, "window") else said(one),
)
def test_two_million_steps_cost_what_is_expected(mechanism):
    """Within five standard errors of batch means, of the kernels and the randomness that run.

    200 stretches of 9,900 steps each are averaged by themselves: readings depend on each other
    over some windows only, so the 200 means are all but independent, and their spread over the
    root of 200 is the standard error. Alpha is 1e-6 for each share (Student, 199 degrees). At ten
    standard errors, which is detected with certainty, a rate is off by 0.004 and a delay by 3 %.
    """
    found, rows = shares(mechanism)
    margin = STEPS // 200
    batches = rows[margin : STEPS - margin].reshape(BATCHES, -1, 4).mean(axis=1)
    means, errors = batches.mean(axis=0), batches.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    expected = mechanism.expected_shares()
    stated = [expected.missing, expected.repeated, expected.empty, expected.delay]
    assert (np.abs(means - stated) <= 5 * errors + 1e-9).all(), (means, stated, errors)
    if COMPILED:
        assert (10 * errors <= [0.004, 0.004, 0.004, 0.03 * expected.delay]).all()
    again = reorder_costs.measured(found, mechanism.domain.latency, margin)
    assert (again.missing, again.repeated, again.empty, again.delay) == pytest.approx(means)
    out = 1 - means[0]
    if not isinstance(mechanism, (BlockShuffle, NoisyOrder)):
        tolerance = 5 * errors[3] / out + 5 * errors[0] * means[3] / out**2 + 1e-9
        assert abs(mechanism.errors[0] - means[3] / out) <= tolerance
    elif isinstance(mechanism, BlockShuffle):
        moved = np.abs(found - np.arange(STEPS))[margin:-margin].reshape(BATCHES, -1).mean(axis=1)
        error = moved.std(ddof=1) / math.sqrt(BATCHES)
        assert abs(moved.mean() - mechanism.errors[0]) <= 5 * error


@pytest.mark.parametrize("mechanism", SIMULATED[4:10], ids=lambda one: f"{said(one)} {one.window}")
def test_two_million_lags_are_those_stated(mechanism):
    """Each lag's share within five standard errors of batch means."""
    found, _ = shares(mechanism, seed=12)
    lags = np.where(found >= 0, np.arange(STEPS) - found, -1)[STEPS // 200 : -STEPS // 200]
    batches = lags.reshape(BATCHES, -1)
    for lag, stated in enumerate(mechanism.probabilities.tolist()):
        share = (batches == lag).mean(axis=1)
        error = share.std(ddof=1) / math.sqrt(BATCHES)
        # few or none of the rarest: their number is Poisson's
        rare = 8 / math.sqrt(lags.size * max(stated, 1 / lags.size))
        assert abs(share.mean() - stated) <= max(5 * error, rare * stated, 30 / lags.size)


def test_a_cold_start_is_not_stationary_for_long():
    """Algorithm 1 from an empty window: far more than a window until its law is reached."""
    window, free = 50, 17
    taken = np.zeros(4000, dtype=bool)
    rng = np.random.default_rng(3)
    steps = []
    for _ in range(40):
        taken[:] = False
        for step in range(3000):
            open_ = np.flatnonzero(~taken[step : step + window])
            if len(open_) <= free:
                break
            taken[step + rng.choice(open_)] = True
        steps.append(step)
    assert np.mean(steps) > 1.8 * window


# what goes wrong without a threshold (Section IV)


def test_without_collisions_forward_comes_to_have_no_choice():
    found = counterexamples.collision_free(epsilon=1.0, window=3, steps=200)
    first = Forward(epsilon=1.0, window=3).probabilities
    assert found.lags[0] == pytest.approx(first)
    assert list(found.stuck) == sorted(found.stuck) and found.stuck[0] == 0
    assert found.stuck[-1] > 1 - 1e-6 and found.latest[-1] > 1 - 1e-6
    assert all(late >= stuck for late, stuck in zip(found.latest, found.stuck, strict=True))
    assert all(math.fsum(law) == pytest.approx(1) for law in found.lags)
    assert found.epsilon[0] == pytest.approx(1.0) and found.epsilon[-1] > 20
    left = sum(1 - stuck for stuck in found.stuck)
    assert found.expected_steps == pytest.approx(left, rel=1e-4)


@pytest.mark.parametrize(("window", "steps"), [(3, 30), (4, 40)])
def test_the_collapse_is_that_of_a_simulated_series(window, steps):
    """2,000 series: the share at the last lag at each step, five standard errors of a binomial."""
    rng, runs, epsilon = np.random.default_rng(window), 2000, 1.0
    late = np.zeros(steps)
    weights = np.array([math.exp(epsilon / 2)] + [1.0] * (window - 1))
    for _ in range(runs):
        taken = np.zeros(steps + window, dtype=bool)
        for step in range(steps):
            open_ = np.where(taken[step : step + window], 0.0, weights)
            lag = int(np.searchsorted(np.cumsum(open_), rng.random() * open_.sum(), side="right"))
            taken[step + lag] = True
            late[step] += lag == window - 1
    found = np.array(counterexamples.collision_free(epsilon, window, steps).latest)
    error = np.sqrt(found * (1 - found) / runs)
    assert (np.abs(late / runs - found) <= 5 * error + 1e-3).all()


def test_wider_windows_take_longer_to_collapse_and_do():
    expected = [counterexamples.collision_free(1.0, k, 1).expected_steps for k in (2, 3, 5, 8, 10)]
    assert expected == sorted(expected)
    assert expected[1] == pytest.approx(8.77, abs=0.01) and expected[-1] > 1000


def test_ignoring_readings_costs_some_and_tells_more_than_none():
    found = counterexamples.ignore_at(window=10, threshold=5)
    assert found.missing == pytest.approx(found.empty) and 0.2 < found.missing < 0.3
    assert math.fsum(found.lags) == pytest.approx(1 - found.missing)
    assert found.delay == pytest.approx(sum(lag * p for lag, p in enumerate(found.lags)))
    assert list(found.lags) == sorted(found.lags), "what waits longest is likeliest"
    mechanism = Threshold(epsilon=found.epsilon, window=10)
    assert found.dropped == pytest.approx(mechanism.expected_shares().missing)
    assert found.dropped < found.missing


def test_ignoring_beats_dropping_at_small_budgets():
    """What the paper gives up loses fewer readings than its extended mechanism, at one budget."""
    for window in (8, 10, 12):
        low, high = (counterexamples.ignore_at(window, c) for c in (window - 2, 3))
        assert low.epsilon < 0.6 and low.missing < low.dropped
        assert high.epsilon > 3 and high.missing > high.dropped == 0


def test_ignoring_all_but_one_at_a_time_is_even_and_loses_most():
    """c0 = k - 1: the next reading is sent when the last one is out; a share of 2/(k+1) comes."""
    for window in (3, 5, 9):
        found = counterexamples.ignore_at(window, window - 1)
        assert found.lags == pytest.approx([2 / (window + 1) / window] * window)
        assert found.dropped is None and found.epsilon < 1e-9


def test_ignoring_is_that_of_a_simulated_series():
    """200,000 steps, within five standard errors of 100 batch means."""
    rng, window, threshold, steps = np.random.default_rng(5), 6, 3, 200_000
    taken = np.zeros(steps + window, dtype=bool)
    lags = np.full(steps, -1)
    uniforms = rng.random(steps)
    for step in range(steps):
        open_ = np.flatnonzero(~taken[step : step + window])
        if len(open_) > threshold:
            lags[step] = open_[int(uniforms[step] * len(open_))]
            taken[step + lags[step]] = True
    found = counterexamples.ignore_at(window, threshold)
    for lag, stated in [(-1, found.missing), *enumerate(found.lags)]:
        batches = (lags == lag).reshape(100, -1).mean(axis=1)
        assert abs(batches.mean() - stated) <= 5 * batches.std(ddof=1) / 10


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: counterexamples.collision_free(0.0, 3, 5), "epsilon=0.0: must be"),
        (lambda: counterexamples.collision_free(1.0, 1, 5), "window=1: must be a whole number"),
        (lambda: counterexamples.collision_free(1.0, 13, 5), "window=13: must be at most 12"),
        (lambda: counterexamples.collision_free(1.0, 3, 0), "steps=0: must be a number"),
        (lambda: counterexamples.ignore_at(3, 3), "threshold=3: must be a whole number"),
        (lambda: counterexamples.ignore_at(20, 3), "window=20: must be at most 12"),
    ],
)
def test_counterexamples_are_small(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


# choices


@pytest.mark.parametrize("window", [3, 4, 7, 20])
def test_the_chosen_threshold_is_the_best_within_the_budget(window):
    """By trying all of them: least delay without dropping, else the first that dropping helps."""
    known = analysis.budgets(window)
    for epsilon in (0.3, 1.0, 2.0, 3.5, 5.0, 8.0, 12.0):
        within = [c for c in range(2, window) if known.derived[c - 2] <= epsilon]
        late, soon = (kind(epsilon=epsilon, window=window) for kind in (Threshold, DualThreshold))
        assert late.extended == soon.extended == (not within)
        if within:
            assert (late.threshold, soon.threshold) == (max(within), min(within))
            assert late.derived_epsilon <= epsilon
        else:
            assert late.threshold == soon.threshold
            assert late.derived_epsilon == pytest.approx(epsilon, rel=1e-6)
