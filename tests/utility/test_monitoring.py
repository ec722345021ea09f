"""Errors of released streams and events seen in them, against definitions written out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.utility.monitoring import (
    as_seen,
    fixed_label_curve,
    moving_label_curve,
    squared_error,
    squared_errors,
    velocities,
)


def random(name):
    return np.random.default_rng(sum(map(ord, name)))


# errors


def test_an_empty_slot_holds_the_last_release():
    released = np.ma.array(
        [[9.0, 9.0], [1.0, 2.0], [8.0, 8.0], [3.0, 4.0]],
        mask=[[1, 1], [0, 0], [0, 1], [0, 0]],
    )
    seen = as_seen(released)
    assert np.isnan(seen[0]).all()
    assert seen[1:].tolist() == [[1.0, 2.0], [1.0, 2.0], [3.0, 4.0]]


def test_errors_are_those_of_the_definition():
    draw = random("errors")
    truth = draw.normal(size=(40, 3)) * [1.0, 10.0, 100.0]
    released = truth + draw.normal(size=truth.shape) * [1.0, 10.0, 100.0]
    found = squared_error(truth, released, window=8)
    squares = (released - truth) ** 2
    assert found.mean == pytest.approx(squares.mean(axis=0).sum())
    assert found.of_variance == pytest.approx((squares.mean(axis=0) / truth.var(axis=0)).mean())
    within = np.mean([truth[i : i + 8].var(axis=0) for i in range(0, 40, 8)], axis=0)
    assert found.of_window_variance == pytest.approx((squares.mean(axis=0) / within).mean())
    assert found.slots == 40


def test_the_mean_of_a_series_has_its_variance_as_error_and_that_of_a_window_the_windows():
    truth = random("mean").normal(size=60).cumsum()
    mean = np.full(60, truth.mean())
    assert squared_error(truth, mean).of_variance == pytest.approx(1)
    windows = np.repeat(truth.reshape(-1, 10).mean(axis=1), 10)
    assert squared_error(truth, windows, window=10).of_window_variance == pytest.approx(1)


def test_units_of_columns_do_not_matter_for_parts_of_variance():
    draw = random("units")
    truth, released = draw.normal(size=(2, 30, 2))
    scale = np.array([1.0, 1000.0])
    one, other = squared_error(truth, released), squared_error(truth * scale, released * scale)
    assert one.of_variance == pytest.approx(other.of_variance)
    assert one.mean != pytest.approx(other.mean)


def test_every_slot_of_a_data_set_counts_the_same():
    short, long = np.zeros(10), np.zeros(30)
    found = squared_errors([short, long], [short + 4.0, long])
    assert found.mean == 4.0 and found.slots == 40 and np.isnan(found.of_variance)


def test_slots_before_the_first_release_and_outside_the_range_do_not_count():
    truth = np.arange(6.0)
    released = np.ma.array([50.0, 50.0, 2.0, 3.0, 5.0, 70.0], mask=[1, 1, 0, 0, 0, 0])
    assert squared_error(truth, released, last=-1).mean == pytest.approx(1 / 3)
    assert squared_error(truth, released, first=3, last=-1).slots == 2


@pytest.mark.parametrize(
    "ask, words",
    [
        (lambda: squared_error([1.0, 2.0], [1.0]), "1 released slots of 1 columns for 2 readings"),
        (lambda: squared_errors([], []), "at least one"),
        (lambda: squared_error([1.0], np.ma.masked_all(1)), "every slot is empty"),
        (lambda: velocities([1.0, 2.0], 0), "period=0: must be > 0"),
        (lambda: moving_label_curve([1.0, 1.0], [1.0, 2.0]), "all true velocities are the same"),
        (lambda: moving_label_curve([1.0], [1.0, 2.0]), "give one for each"),
        (lambda: moving_label_curve([np.nan], [1.0]), "nothing was released"),
        (lambda: moving_label_curve([0.0, 1.0], [1.0, 2.0], points=1), "points=1"),
        (
            lambda: fixed_label_curve([1.0, 2.0], [1.0, 2.0], at=2.0).area,
            "at=2.0: must leave events",
        ),
        (lambda: squared_error([1.0], [1.0], window=1), "window=1"),
    ],
)
def test_what_cannot_be_scored_is_refused(ask, words):
    with pytest.raises((DataError, UsageError), match=words):
        ask()


# events


def test_velocities_are_distances_by_the_period():
    places = random("places").normal(size=(50, 2))
    found = velocities(places, period=15.0)
    for i in range(49):
        x, y = places[i + 1] - places[i]
        assert found[i] == pytest.approx((x * x + y * y) ** 0.5 / 15)
    waiting = np.ma.array(places, mask=np.repeat(np.arange(50) < 2, 2).reshape(50, 2))
    assert np.isnan(velocities(waiting, 1.0)[:2]).all()
    assert not np.isnan(velocities(waiting, 1.0)[2:]).any()


def pairwise(true, released, at):
    """The chance that an event is released faster than another step, pair by pair."""
    score = pairs = 0.0
    for v, seen in zip(true, released, strict=True):
        for w, other in zip(true, released, strict=True):
            if v > at >= w:
                pairs += 1
                score += 1.0 if seen > other else 0.5 if seen == other else 0.0
    return score / pairs


def test_the_fixed_label_area_is_the_chance_of_a_pair_with_ties_half():
    draw = random("pairs")
    for _ in range(20):
        true, released = draw.integers(0, 6, size=(2, 30)).astype(float)
        found = fixed_label_curve(true, released, at=3.0).area
        assert found == pytest.approx(pairwise(true, released, 3.0), abs=1e-12)


def test_a_fixed_label_curve_rises_from_corner_to_corner():
    draw = random("curve")
    true, released = draw.exponential(size=(2, 200))
    curve = fixed_label_curve(true, released, at=1.0)
    assert (np.diff(curve.true_positives) >= 0).all()
    assert (np.diff(curve.false_positives) >= 0).all()
    assert curve.true_positives[-1] == curve.false_positives[-1] == 1
    assert fixed_label_curve(true, 5 * true + 2, at=1.0).area == 1
    assert fixed_label_curve(true, -true, at=1.0).area == 0


def test_the_moving_label_points_are_those_of_the_paper():
    draw = random("moving")
    true, released = draw.exponential(size=(2, 80))
    curve = moving_label_curve(true, released)
    low, high = true.min(), true.max()
    expected = []
    for percent in range(101):
        delta = low + percent / 100 * (high - low)
        positive = [i for i in range(80) if true[i] > delta]
        negative = [i for i in range(80) if not true[i] > delta]
        if positive and negative:
            expected.append(
                (
                    sum(released[i] > delta for i in negative) / len(negative),
                    sum(released[i] > delta for i in positive) / len(positive),
                )
            )
    found = np.stack([curve.false_positives, curve.true_positives], axis=1)
    assert found == pytest.approx(np.array(expected))
    points = sorted([(0.0, 0.0), *expected, (1.0, 1.0)])
    area = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(points))
    assert curve.area == pytest.approx(area)


def test_the_moving_label_area_scores_scale_and_the_fixed_one_order_alone():
    """Ten times as fast is as well ordered; the paper's area takes every step for an event."""
    true = random("scale").exponential(size=400)
    assert fixed_label_curve(true, 10 * true, at=1.0).area == 1
    assert moving_label_curve(true, true).area == 1
    assert moving_label_curve(true, 10 * true).area < 0.95


def test_unrelated_velocities_are_near_the_diagonal_when_labels_are_fixed():
    """20,000 steps, a tenth events: the standard error is 0.007, so 0.045 has odds below 1e-9."""
    draw = random("unrelated")
    true, released = draw.exponential(size=(2, 20_000))
    at = float(np.quantile(true, 0.9))
    assert abs(fixed_label_curve(true, released, at).area - 0.5) < 0.045
