"""Missing, repeated, empty and late: the formulas against plain simulation, and what was found."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder import shares as reorder_shares
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shares import Shares
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.utility import reorder_costs
from tempriv.utility.reorder_costs import UnitCosts
from tests.support.paths import GOLDEN

EVEN = json.loads((GOLDEN / "order_costs.json").read_text())


@pytest.mark.parametrize("row", EVEN, ids=lambda row: f"{row['window']}-{row['epsilon']}")
def test_the_shares_of_the_reference_come_out(row):
    unseen, delay = row["unseen"], row["delay"]
    back = reorder_shares.backward(row["epsilon"], row["window"])
    assert (back.missing, back.repeated, back.empty) == pytest.approx(
        (unseen, unseen, 0), rel=1e-12
    )
    ahead = reorder_shares.forward(row["epsilon"], row["window"])
    assert (ahead.missing, ahead.repeated, ahead.empty) == pytest.approx(
        (unseen, 0, unseen), rel=1e-12
    )
    assert back.delay == pytest.approx(delay, rel=1e-12) and ahead.delay == back.delay


def chosen(choose, epsilon, window):
    threshold = choose(epsilon, window).threshold
    return threshold, analysis.keep_probability(epsilon, window, threshold)


def prices(window):
    return UnitCosts(missing=window, repeated=window, empty=window, delay=1)


@pytest.mark.parametrize(
    ("window", "epsilon", "late", "soon", "even"),
    [
        # where the dual drops, 18.1 was found with the delay of what is dropped counted as well
        (10, 1.0, 13.1, 13.1, 9.1),
        (20, 5.0, 10, 7, 15.7),
        (50, 6.0, 31, 15, 42.7),
        (200, 16.0, 7, 25, 23.9),
    ],
)
def test_the_costs_that_were_found(window, epsilon, late, soon, even):
    """Of Threshold, the dual, and Backward or Forward, at M = N = E = k and D = 1."""
    cost = prices(window).cost
    assert round(
        cost(reorder_shares.threshold(window, *chosen(analysis.choose_threshold, epsilon, window))),
        1,
    ) == pytest.approx(late)
    assert round(
        cost(reorder_shares.dual(window, *chosen(analysis.choose_dual, epsilon, window))), 1
    ) == pytest.approx(soon)
    for shares in (
        reorder_shares.backward(epsilon, window),
        reorder_shares.forward(epsilon, window),
    ):
        assert round(cost(shares), 1) == pytest.approx(even)


def test_the_lowest_threshold_that_drops_is_not_always_the_cheapest():
    assert analysis.choose_threshold(7.0, 200).threshold == 56
    found = {
        threshold: prices(200).cost(
            reorder_shares.threshold(200, threshold, analysis.keep_probability(7.0, 200, threshold))
        )
        for threshold in (56, 71)
    }
    assert {c: round(cost, 1) for c, cost in found.items()} == {56: 149.1, 71: 145.3}


# simulation: plain loops, from the definitions


def simulate_backward(rng, steps, epsilon, window):
    lags = rng.choice(window, steps, p=even(epsilon, window))
    return [step - lag if step >= lag else -1 for step, lag in enumerate(lags.tolist())]


def simulate_forward(rng, steps, epsilon, window):
    slots = [-1] * (steps + window)
    for step, lag in enumerate(rng.choice(window, steps, p=even(epsilon, window)).tolist()):
        slots[step + lag] = step
    return slots[:steps]


def even(epsilon, window):
    weights = np.array([math.exp(epsilon / 2)] + [1] * (window - 1))
    return weights / weights.sum()


def simulate_threshold(rng, steps, window, threshold, keep):
    """Algorithm 1, with line 9 as in Section IV-E."""
    slots = [-1] * (steps + window)
    taken = [False] * (steps + window)
    for step, uniform in enumerate(rng.random(steps).tolist()):
        free = [slot for slot in range(step, step + window) if not taken[slot]]
        if len(free) <= threshold and free[0] == step:
            taken[step] = True
            if uniform < keep:
                slots[step] = step
        else:
            slot = free[int(uniform * len(free))]
            slots[slot], taken[slot] = step, True
    return slots[:steps]


def simulate_dual(rng, steps, window, threshold, keep):
    slots, pool = [-1] * steps, []
    for step, uniform in enumerate(rng.random(steps).tolist()):
        pool.append(step)
        if len(pool) < threshold:
            continue
        if pool[0] == step - window + 1:
            oldest = pool.pop(0)
            if uniform < keep:
                slots[step] = oldest
        else:
            slots[step] = pool.pop(int(uniform * len(pool)))
    return slots


STEPS, MARGIN, BATCHES = 400_000, 2_000, 96


def batches(sources):
    """The shares of stretches of the series, one row each, counted reading by reading."""
    rows = np.zeros((STEPS, 4))
    rows[:, 0] = 1
    for slot, step in enumerate(sources):
        if step < 0:
            rows[slot, 2] = 1
        elif rows[step, 0]:
            rows[step, 0], rows[step, 3] = 0, slot - step
        else:
            rows[step, 1] += 1
    return rows[MARGIN:-MARGIN].reshape(BATCHES, -1, 4).mean(axis=1)


SIMULATED = {
    "backward": (simulate_backward, reorder_shares.backward, (3.0, 10)),
    "backward, nearly even": (simulate_backward, reorder_shares.backward, (0.5, 4)),
    "forward": (simulate_forward, reorder_shares.forward, (3.0, 10)),
    "forward, window 2": (simulate_forward, reorder_shares.forward, (1.0, 2)),
    "threshold": (simulate_threshold, reorder_shares.threshold, (10, 6, 1.0)),
    "threshold, dropping": (simulate_threshold, reorder_shares.threshold, (10, 8, 0.25)),
    "dual": (simulate_dual, reorder_shares.dual, (10, 4, 1.0)),
    "dual, dropping": (simulate_dual, reorder_shares.dual, (10, 8, 0.25)),
    "dual, smallest": (simulate_dual, reorder_shares.dual, (3, 2, 0.5)),
}


@pytest.mark.parametrize("name", SIMULATED)
def test_simulation_agrees_with_the_shares(name):
    """Within five standard errors of 96 stretches of 4,125 steps: alpha is 3e-6 for each share.

    A deviation of 0.02 in a rate, or of 5 % of the delay, is ten of them, so it is detected.
    """
    simulate, formula, parameters = SIMULATED[name]
    sources = simulate(np.random.default_rng(len(name)), STEPS, *parameters)
    rows = batches(sources)
    means, errors = rows.mean(axis=0), rows.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    shares = formula(*parameters)
    expected = np.array([shares.missing, shares.repeated, shares.empty, shares.delay])
    assert (10 * errors <= [0.02, 0.02, 0.02, 0.05 * shares.delay]).all()
    assert (np.abs(means - expected) <= 5 * errors + 1e-12).all()
    # the function for simulations counts the same
    run = reorder_costs.measured(sources, latency=0, margin=MARGIN)
    assert (run.missing, run.repeated, run.empty, run.delay) == pytest.approx(means, abs=1e-12)


def test_the_test_of_simulation_rejects_the_delay_of_what_is_dropped():
    """c0 - 1, without the steps that dropped readings would have been late by, is refuted."""
    rows = batches(simulate_dual(np.random.default_rng(5), STEPS, 10, 8, 0.25))
    error = rows[:, 3].std(ddof=1) / math.sqrt(BATCHES)
    assert abs(rows[:, 3].mean() - (8 - 1)) > 50 * error


# counting what happened


def test_only_the_first_time_is_late_and_the_rest_are_repeats():
    shares = reorder_costs.measured([-1, 0, 0, 1, 1, 1, 6, 7], latency=0, margin=0)
    assert shares == Shares(missing=4 / 8, repeated=3 / 8, empty=1 / 8, delay=(1 + 2) / 8)


def test_the_latency_is_a_delay_of_all_that_come_out():
    block = [2, 0, 1, 5, 4, 3]
    assert reorder_costs.measured(block, latency=2, margin=0) == Shares(delay=2.0)
    assert reorder_costs.measured(block, latency=2, margin=0) == reorder_shares.block_shuffle(3)
    assert reorder_costs.measured([0, -1, 2], latency=2, margin=0).delay == pytest.approx(2 * 2 / 3)


def test_the_ends_are_left_out():
    """The first slot waits for a reading from before, the last reading for a slot after."""
    late = [-1, 0, 1, 2, 3]
    assert reorder_costs.measured(late, latency=0, margin=1) == Shares(delay=1.0)
    whole = reorder_costs.measured(late, latency=0, margin=0)
    assert (whole.missing, whole.empty) == (0.2, 0.2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: reorder_costs.measured([0, 1], 0, 1),
            "2 slots: too few to leave out 1 at both ends",
        ),
        (lambda: reorder_costs.measured([0, 2], 0, 0), "sources: must be steps from 0 to 1, or -1"),
    ],
)
def test_runs_that_cannot_be_counted_get_one_sentence(call, sentence):
    with pytest.raises(DataError, match=sentence):
        call()


# mechanisms


def test_every_order_mechanism_has_its_shares():
    assert reorder_costs.expected(Backward(epsilon=2.0, window=7)) == reorder_shares.backward(
        2.0, 7
    )
    assert reorder_costs.expected(Forward(epsilon=2.0, window=7)) == reorder_shares.forward(2.0, 7)
    assert reorder_costs.expected(Threshold(epsilon=5.0, window=10)) == Shares(delay=3.0)
    assert reorder_costs.expected(DualThreshold(epsilon=5.0, window=10)) == Shares(delay=3.0)
    assert reorder_costs.expected(BlockShuffle(epsilon=1.0, block=12)) == Shares(delay=11.0)
    stream = NoisyOrder(epsilon=4.0, window=4, latency=60, delta=1e-5)
    assert reorder_costs.expected(stream) == Shares(delay=60.0)
    dropping = reorder_costs.expected(Threshold(epsilon=1.0, window=10))
    assert dropping.missing == dropping.empty > 0.5 and dropping.delay == 2.0
    turned = reorder_costs.expected(DualThreshold(epsilon=1.0, window=10))
    assert turned.missing == dropping.missing and turned.delay == pytest.approx(2.01, abs=0.001)


def test_delays_are_those_of_the_lags():
    """The mean over p_j, whatever is dropped, in the family of Threshold."""
    for mechanism in (Threshold(epsilon=1.0, window=10), DualThreshold(epsilon=1.0, window=10)):
        lags = mechanism.probabilities
        shares = reorder_costs.expected(mechanism)
        assert shares.delay == pytest.approx(float((np.arange(10) * lags).sum()), rel=1e-12)
        assert shares.missing == pytest.approx(1 - lags.sum(), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: reorder_costs.expected(NoisyOrder(epsilon=1.0, window=4)),
            "latency=None: the series is",
        ),
        (
            lambda: reorder_costs.expected("Shuffle"),
            "str: does not move readings",
        ),
        (lambda: reorder_shares.threshold(10, 7, 1.5), "keep=1.5: must be a probability"),
        (lambda: reorder_shares.dual(10, 10), "threshold=10: must be a whole number from 2 to 9"),
        (lambda: reorder_shares.block_shuffle(1), "block=1: must be a number of time steps >= 2"),
        (lambda: reorder_shares.noisy_order(-1), "latency=-1: must be a number of time steps >= 0"),
        (
            lambda: reorder_costs.measured([0], 0, -1),
            "margin=-1: must be a number of time steps >= 0",
        ),
        (
            lambda: UnitCosts(missing=-1, repeated=0, empty=0, delay=0),
            "missing=-1: a cost must be a number >= 0",
        ),
        (lambda: reorder_costs.counting_costs(1.5, 0.2, 10, 5), "share=1.5: must be a share"),
        (
            lambda: reorder_costs.counting_costs(0.5, 0.2, 0, 5),
            "length=0: must be a number of counts",
        ),
        (
            lambda: reorder_costs.average_costs(1.0, 2.0, 10, 5),
            "averaged=5: must be at least the window",
        ),
        (
            lambda: reorder_costs.average_costs(2.0, 3.0, 10, 10),
            "mean_square=3.0: must be at least",
        ),
    ],
)
def test_bad_parameters_get_one_sentence(call, sentence):
    with pytest.raises(UsageError, match=sentence):
        call()


# tasks


def test_unit_costs_of_counting_are_those_of_the_paper():
    """M + N, M + E and D of Section II-D, by what each mechanism pays for them."""
    f, other, length, window = 0.52, 0.48, 14_058, 10
    unit = reorder_costs.counting_costs(f, other, length, window)
    assert unit.missing + unit.repeated == pytest.approx(((f - other) * length / 2) ** 2)
    assert unit.missing + unit.empty == pytest.approx((f * length / 2) ** 2)
    assert unit.delay == pytest.approx((f * (window - 1) / 2) ** 2)
    back, ahead = reorder_shares.backward(2.0, window), reorder_shares.forward(2.0, window)
    assert unit.cost(back) < unit.cost(ahead)  # an empty slot is never made up for


def test_unit_costs_of_averages_are_those_of_the_paper():
    unit = reorder_costs.average_costs(mean=3.0, mean_square=13.0, window=8, averaged=16)
    assert (unit.missing, unit.repeated, unit.empty, unit.delay) == (4.0, 4.0, 0.0, 2.0)
    back, ahead = reorder_shares.backward(2.0, 8), reorder_shares.forward(2.0, 8)
    assert unit.cost(ahead) < unit.cost(back)  # an empty slot is left out of the average


def test_a_kept_fraction_may_be_exact():
    assert reorder_shares.threshold(10, 8, Fraction(1, 4)) == reorder_shares.threshold(10, 8, 0.25)
