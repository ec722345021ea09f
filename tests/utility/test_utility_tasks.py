"""Counting, averaging and grouping released series: the plain definitions come out."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.utility.tasks import (
    average_error,
    count_error,
    distances,
    k_medoids,
    moving_average,
    mutual_information,
    running_count,
)


def with_gaps(values, rng, share):
    return np.ma.array(values, mask=rng.random(len(values)) < share)


# counts


def test_the_running_count_is_the_plain_one():
    rng = np.random.default_rng(1)
    values = with_gaps(rng.integers(0, 3, 200), rng, 0.3)
    plain = [
        sum(1 for v in values[: t + 1] if v is not np.ma.masked and v == 1) for t in range(200)
    ]
    assert running_count(values, 1).tolist() == plain
    words = np.ma.array(["up", "down", "up"], mask=[False, False, True])
    assert running_count(words, "up").tolist() == [1, 1, 1]


def test_empty_slots_count_nothing_and_repeated_ones_again():
    private = [1, 0, 1, 0]
    assert count_error(private, private, 1) == 0
    # one up-day is lost for good: one too few from there on
    assert count_error(private, np.ma.array(private, mask=[1, 0, 0, 0]), 1) == 1
    # one is repeated: one too many from there on
    assert count_error(private, [1, 1, 1, 0], 1) == 3 / 4
    # one comes a step late
    assert count_error([1, 0, 0, 0], [0, 1, 0, 0], 1) == 1 / 4


def test_another_number_of_slots_is_refused():
    with pytest.raises(DataError, match="3 released slots for 4 readings"):
        count_error([1, 2, 3, 4], [1, 2, 3], 1)
    with pytest.raises(DataError, match="3 released slots for 4 readings"):
        average_error([1, 2, 3, 4], [1, 2, 3], 2)


# averages


@pytest.mark.parametrize("length", [1, 2, 7, 500])
def test_the_moving_average_is_the_plain_one(length):
    rng = np.random.default_rng(2)
    values = with_gaps(1e6 + rng.normal(size=300), rng, 0.4)
    found = moving_average(values, length)
    for t in range(300):
        held = values[max(0, t - length + 1) : t + 1].compressed()
        if len(held):
            assert found[t] == pytest.approx(held.mean(), rel=1e-14)
        else:
            assert found[t] is np.ma.masked


def test_a_window_without_values_keeps_the_last_average():
    released = np.ma.array([0.0, 4.0, 0.0, 0.0, 8.0], mask=[1, 0, 1, 1, 0])
    # nothing has come out at the first step; 4 stands in at the third and fourth
    assert average_error([1.0, 4.0, 5.0, 6.0, 8.0], released, 1) == (0 + 1 + 4 + 0) / 4
    with pytest.raises(DataError, match="every slot is empty"):
        average_error([1.0, 2.0], np.ma.array([1.0, 2.0], mask=True), 2)
    with pytest.raises(UsageError, match="length=0: must be a whole number"):
        moving_average([1.0], 0)


# groups


def plain_distance(one, other):
    """Over the slots that both hold."""
    squares = [
        float(((a - b) ** 2).sum())
        for a, b in zip(one, other, strict=True)
        if not (np.ma.getmaskarray(a).any() or np.ma.getmaskarray(b).any())
    ]
    return math.sqrt(sum(squares) / len(squares))


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_distances_are_the_plain_ones(share):
    rng = np.random.default_rng(3)
    series = np.ma.array(
        114 + rng.normal(size=(12, 30, 2)), mask=np.repeat(rng.random((12, 30, 1)) < share, 2, 2)
    )
    found = distances(series)
    for i, j in itertools.combinations(range(12), 2):
        assert found[i, j] == found[j, i] == pytest.approx(plain_distance(series[i], series[j]))
    assert (np.diag(found) == 0).all()


def test_series_without_a_slot_in_common_are_refused():
    series = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [1, 0]])
    with pytest.raises(DataError, match="no slot in common"):
        distances(series)


def plain_park_and_jun(table, groups):
    """Steps 1 to 3 of Park and Jun (2009), with loops."""
    n = len(table)
    v = [sum(table[i][j] / sum(table[i]) for i in range(n)) for j in range(n)]
    medoids = sorted(sorted(range(n), key=lambda j: (v[j], j))[:groups])

    def assign(medoids):
        labels = [min(range(groups), key=lambda g: (row[medoids[g]], g)) for row in table]
        return labels, sum(row[medoids[g]] for row, g in zip(table, labels, strict=True))

    labels, total = assign(medoids)
    while True:
        moved = []
        for g in range(groups):
            members = [i for i in range(n) if labels[i] == g]
            moved.append(min(members, key=lambda m: (sum(table[i][m] for i in members), m)))
        new = assign(sorted(moved))
        if new[1] >= total:
            return labels, total
        labels, total = new


@pytest.mark.parametrize("seed", range(5))
def test_k_medoids_is_the_published_algorithm(seed):
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(40, 2)) + 4 * rng.integers(0, 3, (40, 1))
    table = distances(places[:, None, :])
    found = k_medoids(table, 3)
    labels, total = plain_park_and_jun(table.tolist(), 3)
    assert found.labels.tolist() == labels
    assert found.distance == pytest.approx(total)
    assert found.labels[list(found.medoids)].tolist() == [0, 1, 2]


def test_clear_groups_are_found():
    rng = np.random.default_rng(5)
    truth = np.repeat([0, 1, 2], 50)
    places = 10.0 * truth[:, None] + rng.normal(size=(150, 1))
    assert mutual_information(truth, k_medoids(distances(places), 3).labels) == 1.0


def test_equal_items_do_not_trouble_k_medoids():
    found = k_medoids(np.zeros((5, 5)), 3)
    assert found.labels.tolist() == [0] * 5 and found.distance == 0
    with pytest.raises(UsageError, match="groups=6: must be a whole number from 1 to the 5"):
        k_medoids(np.zeros((5, 5)), 6)
    with pytest.raises(UsageError, match="must be a square"):
        k_medoids(np.zeros((5, 4)), 2)


def test_mutual_information_by_hand():
    one, other = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1]
    # joint 1/3, 1/6, 1/2; margins 1/2, 1/2 and 1/3, 2/3
    shared = (1 / 3) * math.log((1 / 3) / (1 / 6)) + (1 / 6) * math.log((1 / 6) / (1 / 3))
    shared += (1 / 2) * math.log((1 / 2) / (1 / 3))
    entropies = math.log(2), -(1 / 3) * math.log(1 / 3) - (2 / 3) * math.log(2 / 3)
    assert mutual_information(one, other) == pytest.approx(2 * shared / sum(entropies), rel=1e-12)
    assert mutual_information(one, other) == mutual_information(other, one)
    assert mutual_information([7, 7], [3, 3]) == 1.0
    with pytest.raises(UsageError, match="of the same items"):
        mutual_information([1, 2], [1, 2, 3])


def test_unrelated_groups_share_about_as_much_as_said():
    """(g - 1)^2 / (2 n) nats on average; 200 pairs have a standard error of about 2 %."""
    rng = np.random.default_rng(6)
    n, g = 3000, 6
    found = [
        mutual_information(rng.integers(0, g, n), rng.integers(0, g, n)) * math.log(g)
        for _ in range(200)
    ]
    assert np.mean(found) == pytest.approx((g - 1) ** 2 / (2 * n), rel=0.12)


def test_three_thousand_trajectories_take_seconds():
    rng = np.random.default_rng(7)
    series = np.cumsum(rng.normal(size=(3000, 120, 2)), axis=1)
    began = time.perf_counter()
    k_medoids(distances(series), 6)
    assert time.perf_counter() - began < 20
