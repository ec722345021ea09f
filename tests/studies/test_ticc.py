"""Clustering of streams against plain definitions on small problems, and scores of segments."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.studies.sppa import ticc
from tempriv.studies.sppa.segmentation import change_f1, changes, cut, label_f1
from tempriv.studies.sppa.ticc import (
    Clustering,
    cheapest_path,
    lasso_objective,
    merged_pieces,
    stacked,
    toeplitz_lasso,
    toeplitz_mean,
)


def random(name):
    return np.random.default_rng(sum(map(ord, name)))


def covariance(name, size):
    rows = random(name).normal(size=(4 * size, size))
    return rows.T @ rows / len(rows)


def blocks(matrix, window):
    columns = len(matrix) // window
    return {
        (i, j): matrix[i * columns : (i + 1) * columns, j * columns : (j + 1) * columns]
        for i in range(window)
        for j in range(window)
    }


# the path


def test_the_path_is_the_cheapest_of_all():
    draw = random("path")
    for _ in range(60):
        steps, clusters = int(draw.integers(1, 7)), int(draw.integers(1, 4))
        costs = draw.normal(size=(steps, clusters))
        switching = float(draw.exponential())

        def price(path, costs=costs, switching=switching):
            turns = sum(a != b for a, b in itertools.pairwise(path))
            return sum(costs[t, k] for t, k in enumerate(path)) + switching * turns

        found = cheapest_path(costs, switching)
        every = itertools.product(range(clusters), repeat=steps)
        assert price(found) == pytest.approx(min(map(price, every)))


# the gaussians


@pytest.mark.parametrize("window, columns", [(1, 3), (2, 2), (3, 2), (4, 1)])
def test_the_mean_is_block_toeplitz_and_nearer_than_any_other(window, columns):
    size = window * columns
    matrix = random("toeplitz").normal(size=(size, size))
    found = toeplitz_mean(matrix, window)
    parts = blocks(found, window)
    for i, j in parts:
        np.testing.assert_allclose(parts[i, j], parts[j, i].T)
        if i and j:
            np.testing.assert_allclose(parts[i, j], parts[i - 1, j - 1])
    np.testing.assert_allclose(toeplitz_mean(found, window), found)
    # what was taken off is at right angles to every block Toeplitz matrix
    for seed in range(5):
        other = np.random.default_rng(seed).normal(size=(size, size))
        assert np.sum((matrix - found) * toeplitz_mean(other, window)) == pytest.approx(0, abs=1e-9)


def test_without_a_penalty_and_structure_it_is_the_inverse():
    given = covariance("inverse", 4)
    found = toeplitz_lasso(given, 1, penalty=0.0)
    np.testing.assert_allclose(found, np.linalg.inv(given), rtol=2e-3)


def gradient_descent(given, window, penalty):
    """The same problem by another way: small steps, each shrunk and made block Toeplitz."""
    found, step = toeplitz_mean(np.eye(len(given)), window), 1.0
    best = lasso_objective(found, given, penalty)
    for _ in range(20_000):
        slope = toeplitz_mean(given - np.linalg.inv(found), window)
        moved = found - step * slope
        moved = np.sign(moved) * np.maximum(np.abs(moved) - step * penalty, 0)
        value = lasso_objective(moved, given, penalty)
        if value < best:
            found, best, step = moved, value, step * 1.2
        else:
            step /= 2
        if step < 1e-14:
            break
    return found, best


@pytest.mark.parametrize("window, columns, penalty", [(1, 4, 0.1), (2, 2, 0.05), (3, 2, 0.3)])
def test_the_lasso_is_the_least_of_its_objective(window, columns, penalty):
    given = covariance(f"lasso {window}", window * columns)
    found = toeplitz_lasso(given, window, penalty)
    other, best = gradient_descent(given, window, penalty)
    assert lasso_objective(found, given, penalty) == pytest.approx(best, abs=1e-4)
    np.testing.assert_allclose(found, other, atol=0.02)
    np.testing.assert_allclose(toeplitz_mean(found, window), found, atol=1e-12)
    # a start elsewhere ends in the same place
    again = toeplitz_lasso(given, window, penalty, start=3 * np.eye(len(given)))
    np.testing.assert_allclose(again, found, atol=0.02)


def test_a_large_penalty_leaves_the_diagonal_alone():
    given = covariance("sparse", 4)
    found = toeplitz_lasso(given, 2, penalty=10.0)
    assert np.count_nonzero(found) == 4
    # 1 / (mean variance + penalty) for both readings of a window
    expected = 1 / (np.diag(given).reshape(2, 2).mean(axis=0) + 10)
    np.testing.assert_allclose(np.diag(found), np.tile(expected, 2), rtol=1e-3)


def test_no_matrix_that_is_not_positive_has_an_objective():
    assert lasso_objective(np.diag([1.0, -1.0, -1.0]), np.eye(3), 0.1) == np.inf


def test_costs_are_log_likelihoods():
    draw = random("costs")
    inverse = np.linalg.inv(covariance("costs", 3))
    mean, rows = draw.normal(size=3), draw.normal(size=(5, 3))
    found = ticc.Gaussians(mean[None], inverse[None]).costs(rows, floor=0.0)[:, 0]
    for row, cost in zip(rows, found, strict=True):
        density = np.sqrt(np.linalg.det(inverse / (2 * np.pi))) * np.exp(
            -(row - mean) @ inverse @ (row - mean) / 2
        )
        assert cost == pytest.approx(-np.log(density))


# the whole


def swinging(name, stretch=300):
    """Three ways of moving in turn: they differ in how columns and steps go together alone."""
    draw = random(name)
    ways = [
        lambda n: draw.normal(size=(n, 2)),
        lambda n: np.repeat(draw.normal(size=(n, 1)), 2, axis=1) + 0.2 * draw.normal(size=(n, 2)),
        lambda n: (
            np.convolve(draw.normal(size=n + 1), [1, 1], "valid")[:, None] * [1, -1]
            + 0.2 * draw.normal(size=(n, 2))
        ),
    ]
    order = [0, 1, 2, 0, 2, 1]
    values = np.concatenate([ways[k](stretch) for k in order])
    return values, np.repeat(order, stretch)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_known_clusters_are_found_again(window):
    values, truth = swinging("known")
    found = Clustering(clusters=3, window=window, switching=40.0).of(values)
    assert len(found.labels) == len(values)
    assert label_f1(truth, found.labels) > 0.97
    # windows across a change may look like a third way for some steps
    assert change_f1(changes(truth), changes(found.labels), tolerance=20) > 0.8


def test_the_objective_never_rises_and_ends_where_nothing_changes():
    values, _ = swinging("objective")
    for sparsity, switching in ((0.1, 0.0), (5.0, 10.0), (50.0, 200.0)):
        made = Clustering(clusters=4, window=2, sparsity=sparsity, switching=switching)
        found = made.of(values)
        assert (np.diff(found.objectives) <= 1e-9 * abs(found.objectives[0])).all()
        assert 2 < len(found.objectives) < 2 * made.rounds


def test_the_objective_is_that_of_its_definition():
    values = random("definition").normal(size=(60, 1))
    made = Clustering(clusters=2, window=2, sparsity=0.7, switching=3.0, floor=0.05)
    windows = stacked(values, 2)
    path = np.repeat([0, 1], [30, 29])
    gaussians = made.fit_gaussians(windows, path, None)
    total = 3.0 + 0.7 * sum(abs(entry) for entry in gaussians.inverses.ravel())
    for row, k in zip(windows, path, strict=True):
        apart, inverse = row - gaussians.means[k], gaussians.inverses[k]
        total += (apart @ inverse @ apart + 0.05 * np.trace(inverse)) / 2
        total += np.log(2 * np.pi) - np.log(np.linalg.det(inverse)) / 2
    assert made.objective(windows, path, gaussians) == pytest.approx(total)
    for inverse in gaussians.inverses:
        np.testing.assert_allclose(toeplitz_mean(inverse, 2), inverse, atol=1e-9)


def test_dear_changes_leave_one_cluster_and_free_ones_many():
    values, _ = swinging("dear")
    dear = Clustering(clusters=3, window=1, switching=1e6).of(values)
    free = Clustering(clusters=3, window=1, switching=0.0).of(values)
    assert len(changes(dear.labels)) == 0
    assert len(changes(free.labels)) > 200


def test_units_do_not_matter_and_a_stream_that_repeats_itself_has_clusters_too():
    values, truth = swinging("units")
    made = Clustering(clusters=3, window=2, switching=20.0)
    assert (made.of(values).labels == made.of(values * [1, 1000] + [5, 0]).labels).all()
    # eight equal readings in a row, as the mean of each window gives them
    held = np.repeat(values.reshape(-1, 4, 2).mean(axis=1), 4, axis=0)
    assert 0 < label_f1(truth, made.of(held).labels) <= 1
    assert set(made.of(np.zeros((100, 2))).labels.tolist()) <= {0, 1, 2}


def test_pieces_that_are_alike_are_merged():
    """Forty pieces, eight to a stretch."""
    draw = random("pieces")
    values = np.concatenate([draw.normal(k % 2 * 8, 1, size=(120, 2)) for k in range(5)])
    assert label_f1(np.repeat([0, 1, 0, 1, 0], 120), merged_pieces(values, 2, 0.01)) == 1


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"clusters": 0}, "clusters=0: must be a whole number >= 1"),
        ({"clusters": 2, "window": 0}, "window=0"),
        ({"clusters": 2, "switching": -1.0}, "switching=-1.0: must be >= 0"),
        ({"clusters": 2, "floor": 0.0}, "floor=0.0: must be > 0"),
    ],
)
def test_wrong_parameters_are_refused(wrong, words):
    with pytest.raises(UsageError, match=words):
        Clustering(**wrong)


def test_too_short_a_stream_is_refused():
    with pytest.raises(DataError, match="7 readings: must be at least 8 for 2 clusters"):
        Clustering(clusters=2, window=2).of(np.zeros(7))


# scores


def test_labels_are_matched_in_the_best_of_all_ways():
    draw = random("labels")
    for _ in range(20):
        true, found = draw.integers(0, 4, size=(2, 60))

        def one(label, cluster, true=true, found=found):
            both = np.sum((true == label) & (found == cluster))
            return 2 * both / (np.sum(true == label) + np.sum(found == cluster))

        best = max(
            np.mean([one(label, cluster) for label, cluster in enumerate(order)])
            for order in itertools.permutations(range(4))
        )
        assert label_f1(true, found) == pytest.approx(best)


def test_more_clusters_than_labels_or_fewer():
    assert label_f1([0, 0, 0, 0], [1, 2, 3, 3]) == pytest.approx(2 / 3)
    assert label_f1([1, 2, 3, 3], [0, 0, 0, 0]) == pytest.approx(2 / 3 / 3)
    with pytest.raises(DataError, match="give one for each step"):
        label_f1([1], [1, 2])


def most_met(true, found, tolerance):
    """The largest number of pairs within the tolerance, by trying all."""
    if not true:
        return 0
    first, *rest = true
    best = most_met(rest, found, tolerance)
    for i, other in enumerate(found):
        if abs(first - other) <= tolerance:
            best = max(best, 1 + most_met(rest, found[:i] + found[i + 1 :], tolerance))
    return best


def test_as_many_changes_meet_as_can():
    draw = random("changes")
    for _ in range(200):
        true, found = (
            sorted(draw.integers(0, 30, size=n).tolist()) for n in draw.integers(0, 6, 2)
        )
        total = len(true) + len(found)
        expected = 2 * most_met(true, found, 3) / total if total else 1.0
        assert change_f1(true, found, 3) == pytest.approx(expected)
    with pytest.raises(UsageError, match="tolerance=-1"):
        change_f1([1], [1], -1)


# a kept library beside it


def test_changes_of_mean_and_of_spread_are_cut():
    draw = random("cut")
    values = np.concatenate(
        [draw.normal(0, 1, (320, 2)), draw.normal(0, 4, (320, 2)), draw.normal(5, 4, (320, 2))]
    )
    assert change_f1([320, 640], cut(values, 2), tolerance=16) == 1
    with pytest.raises(UsageError, match="number=99: must be from 1 to 14"):
        cut(values, 99)


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(TemprivError, match=r"pip install 'tempriv\[studies\]'"):
        cut(np.zeros(500), 1)
