"""Sequences that stand for many, beside all choices there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tempriv.errors import TemprivError
from tempriv.local.shapes import medoids as module
from tempriv.local.shapes.medoids import medoids


def cost(apart, weights, chosen):
    return float(weights @ apart[:, list(chosen)].min(axis=1))


def places(rows, seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, 2))
    return np.linalg.norm(points[:, None] - points, axis=2), rng.random(rows)


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_of_all_choices_is_taken(count, seed):
    apart, weights = places(9, seed)
    best = min(cost(apart, weights, one) for one in itertools.combinations(range(9), count))
    chosen = medoids(apart, weights, count)
    assert len(set(chosen.tolist())) == count
    assert cost(apart, weights, chosen) == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_exchanging_is_never_worse_than_any_single_exchange(seed, monkeypatch):
    apart, weights = places(14, seed)
    exact = cost(apart, weights, medoids(apart, weights, 3))
    monkeypatch.setattr(module, "MOST_COMBINATIONS", 0)
    chosen = medoids(apart, weights, 3).tolist()
    assert chosen == sorted(set(chosen)) and len(chosen) == 3
    found = cost(apart, weights, chosen)
    for place, new in itertools.product(range(3), range(14)):
        other = [*chosen[:place], new, *chosen[place + 1 :]]
        assert cost(apart, weights, other) >= found * (1 - 1e-9)
    assert exact * (1 - 1e-12) <= found <= 1.1 * exact


def test_many_rows_are_exchanged_in_a_moment():
    apart, weights = places(120, 1)
    chosen = medoids(apart, weights, 6)  # far more choices than are tried
    assert len(set(chosen.tolist())) == 6
    found = cost(apart, weights, chosen)
    for place, new in itertools.product(range(6), range(120)):
        other = [*chosen[:place], new, *chosen[place + 1 :]]
        assert cost(apart, weights, other) >= found * (1 - 1e-9)


def test_weights_decide():
    apart = np.abs(np.subtract.outer([0.0, 1.0, 10.0], [0.0, 1.0, 10.0]))
    assert medoids(apart, np.array([1.0, 1.0, 0.1]), 1).tolist() == [1]
    assert medoids(apart, np.array([1.0, 1.0, 30.0]), 1).tolist() == [2]
    assert medoids(apart, np.array([0.0, 1.0, 1.0]), 2).tolist() == [1, 2]


@pytest.mark.parametrize("most", [0, 30_000])
def test_of_equal_ones_the_first_is_taken_and_nothing_is_chosen_twice(most, monkeypatch):
    monkeypatch.setattr(module, "MOST_COMBINATIONS", most)
    assert medoids(np.zeros((4, 4)), np.ones(4), 2).tolist() == [0, 1]
    assert medoids(np.ones((4, 4)), np.zeros(4), 3).tolist() == [0, 1, 2]
    assert medoids(np.ones((2, 2)), np.ones(2), 5).tolist() == [0, 1]


def test_nothing_to_choose_from():
    for apart, count in ((np.zeros((0, 0)), 1), (np.zeros((2, 2)), 0)):
        with pytest.raises(TemprivError, match="choose from"):
            medoids(apart, np.ones(len(apart)), count)
