"""The sparse vector technique: what it loses on the worst streams, how it halts, how it errs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.data.series import EMPTY, RELEASED, Block
from tempriv.errors import UsageError
from tempriv.mechanisms.sparse_vector import WRONG, SparseVector, _beyond
from tempriv.mechanisms.stream import resume
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window
from tempriv.sampling.keys import Key
from tempriv.studies.principles.sparse_vector import log_probability, sparse_vector_loss
from tests.conformance.cases import NAMED
from tests.conformance.cases.sparse import loss_of

pytest_plugins = ["tests.support.statistics"]

SIGNED = NAMED["alerts, signed sums"].mechanism
ONE = NAMED["alerts, one of signed sums"].mechanism


# by quadrature, for continuous noise


def test_the_split_is_tight():
    assert sparse_vector_loss(0.5, 0.25, 2) == pytest.approx(1.0, abs=5e-5)


def test_half_the_noise_is_too_little_for_values_that_change_both_ways():
    assert sparse_vector_loss(0.5, 0.25, 2, factor=1.0) == pytest.approx(1.5, abs=5e-5)


def test_half_the_noise_is_enough_for_values_that_change_the_same_way():
    assert sparse_vector_loss(0.5, 0.25, 2, factor=1.0, monotone=True) == pytest.approx(
        1.0, abs=5e-5
    )
    assert sparse_vector_loss(0.5, 0.25, 2, monotone=True) == pytest.approx(0.75, abs=5e-5)


def test_quiet_values_bring_the_loss_up_to_the_promise():
    losses = [sparse_vector_loss(0.5, 0.25, 2, quiet=quiet) for quiet in (0, 1, 2, 4, 8, 16)]
    assert losses == sorted(losses) and losses[0] < 0.25 and losses[-1] > 0.99999


@pytest.mark.parametrize("value", [-3.0, 0.0, 0.7, 12.0])
def test_the_quadrature_agrees_with_the_closed_form_for_one_value(value):
    found = math.exp(log_probability(np.array([value]), np.array([True]), 2.0, 3.0))
    below = _beyond(abs(value), 2.0, 3.0)
    assert found == pytest.approx(1 - below if value > 0 else below, rel=1e-9)


def test_answers_have_probabilities_that_add_up_to_one():
    values = np.array([0.3, -1.0, 2.5])
    total = sum(
        math.exp(log_probability(values, np.array([a, b, c], dtype=bool), 0.7, 1.3))
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
    )
    assert total == pytest.approx(1.0, rel=1e-9)


def test_no_stream_loses_more_than_promised(rng):
    """100 random pairs, of values that move by up to 1 either way."""
    for _ in range(100):
        length = int(rng.integers(3, 25))
        alerts = np.zeros(length, dtype=bool)
        alerts[rng.choice(length, size=2, replace=False)] = True
        one = rng.uniform(-5, 20, length)
        other = one + rng.choice([-1.0, 0.0, 1.0], length)
        first, second = (log_probability(v, alerts, 2.0, 8.0) for v in (one, other))
        assert abs(first - second) <= 1 + 1e-9


# by enumeration, of what runs


def test_enumeration_comes_to_the_promise_on_hard_streams():
    assert loss_of(SIGNED, "QQQQQQQQAA", 1e-12) == pytest.approx(8, abs=1e-3)
    assert loss_of(ONE, "QQQQA", 1e-9) == pytest.approx(8, abs=1e-3)


def test_counts_with_half_the_noise_come_to_the_promise_too():
    """Quiet counts go up by one, those that alert stay: the same way for all."""
    mechanism = replace(SIGNED, unit=Contribution(WholeSeries(500)))
    assert mechanism.distributions[1].scale * 2 == SIGNED.distributions[1].scale
    one, other = (3,) * 8 + (1, 1), (4,) * 8 + (1, 1)
    assert mechanism.unit.are_neighbors(one, other)
    laws = [exact.distribution(mechanism, example, 1e-12) for example in (one, other)]
    assert exact.Comparison.of(*laws).pure_loss(8.0) == pytest.approx(8, abs=1e-2)
    # all up, alerts too, is what is hidden best: the threshold could have been as much higher
    laws = [exact.distribution(mechanism, (x,) * 10, 1e-12) for x in (3, 4)]
    assert exact.Comparison.of(*laws).pure_loss(8.0) < 4.001


@pytest.mark.parametrize(
    "name", ["alerts, numbers", pytest.param("alerts, counts", marks=pytest.mark.long)]
)
def test_short_streams_lose_a_part(name):
    case = NAMED[name]
    (small,) = case.smalls
    verdict = exact.audit(case.mechanism, small.alphabet, small.length, small.tail)
    assert verdict.holds and 0.05 * verdict.claimed < verdict.found < verdict.claimed


# halting


def test_after_the_last_alert_nothing_comes_out_for_good():
    mechanism = SparseVector(
        epsilon=1e6, bounds=(0, 9), threshold=5, most=2, unit=Contribution(WholeSeries(100))
    )
    rows = np.array([[1.0], [7.0], [2.0], [5.0], [9.0], [0.0]])
    stream = mechanism.start(Key.from_seed(1), "a")
    out = stream.push_block(Block.of(rows, "a", 0))
    assert out.values[:4, 0].tolist() == [0, 1, 0, 1]
    assert out.status.tolist() == [RELEASED] * 4 + [EMPTY] * 2
    assert out.missing[:, 0].tolist() == [False] * 4 + [True] * 2
    again = resume(mechanism, stream.state(), Key.from_seed(1))
    late = again.push_block(Block.of(rows, "a", 6))
    assert late.status.tolist() == [EMPTY] * 6 and late.missing.all()


def test_a_missing_value_is_no_alert_and_costs_none():
    mechanism = SparseVector(
        epsilon=1e6, bounds=(0, 9), threshold=5, most=1, unit=Contribution(WholeSeries(100))
    )
    rows = np.ma.array([[9.0], [9.0], [9.0]], mask=[[True], [False], [False]])
    out = mechanism.start(Key.from_seed(1), "a").push_block(Block.of(rows, "a", 0))
    assert out.status.tolist() == [RELEASED, RELEASED, EMPTY]
    assert out.values[1, 0] == 1


# thresholds and errors


def test_a_threshold_between_two_counts_is_the_upper_one():
    for threshold, alerts in ((4.5, [0, 1]), (5, [0, 1]), (4, [1, 1])):
        mechanism = SparseVector(
            epsilon=1e6,
            bounds=(0, 9),
            threshold=threshold,
            most=9,
            unit=Contribution(WholeSeries(100)),
        )
        out = mechanism.start(Key.from_seed(1), "a").push([4.0, 5.0])
        assert out.tolist() == alerts


@pytest.mark.parametrize("name", ["alerts, counts", "alerts, signed sums"])
def test_the_stated_distance_is_where_one_answer_in_twenty_is_wrong(name):
    """Exactly, over both laws; the statement is for continuous noise, a grid step is finer."""
    mechanism = replace(NAMED[name].mechanism, most=2, epsilon=0.5)
    once, each = mechanism.distributions
    reach = math.ceil(60 * float(once.scale + each.scale))
    ks = np.arange(-reach, reach + 1)
    first, second = (np.array([law.pmf(int(k)) for k in ks]) for law in (once, each))
    summed = np.convolve(first, second)
    distance = mechanism.errors[0] / mechanism.grid[0]
    places = np.arange(-2 * reach, 2 * reach + 1)
    wrong = [summed[places > d].sum() for d in (math.floor(distance), math.floor(distance) + 1)]
    assert wrong[1] <= WRONG * 1.02 and wrong[0] >= WRONG * 0.98


@pytest.mark.parametrize("unit", [WholeSeries(100), Contribution(WholeSeries(100))])
@pytest.mark.parametrize("most", [1, 3, 10])
def test_no_other_split_errs_less(unit, most):
    """By more than a thousandth."""
    default = SparseVector(epsilon=1.0, bounds=(0, 99), threshold=9, most=most, unit=unit)
    shares = np.linspace(0.03, 0.9, 60).tolist()
    others = [replace(default, threshold_share=share).errors[0] for share in shares]
    assert default.errors[0] <= 1.001 * min(others)


def test_only_whole_series_of_one_column():
    for unit in (Event(), Window(3), Contribution(Window(3))):
        with pytest.raises(UsageError, match="must be WholeSeries"):
            SparseVector(epsilon=1.0, bounds=(0, 9), threshold=5, most=1, unit=unit)
    with pytest.raises(UsageError, match="watch each by itself"):
        SparseVector(epsilon=1.0, bounds=((0, 9), (0, 9)), threshold=5, most=1)
