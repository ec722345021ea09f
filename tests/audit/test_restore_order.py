"""Sorting restores the order of monotone values: the attacks are as strong as they can be."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from tempriv.audit.attacks.order import (
    guess_by_sorting,
    guess_origins,
    known_of,
    monotone_share,
    restore_order,
    try_order,
)
from tempriv.audit.attacks.order_posterior import Known
from tempriv.data.series import EMPTY, RELEASED, REPEATED
from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.mechanisms.value.laplace import Laplace

# plain mechanisms from the paper's words: origins for each slot, -1 for empty; rows of the past
# come out as empty


def response(window, epsilon):
    first = math.exp(epsilon / 2)
    return tuple(x / (window - 1 + first) for x in (first, *[1.0] * (window - 1)))


def backward(length, window, epsilon, rng):
    origins = np.arange(length) - rng.choice(window, length, p=response(window, epsilon))
    return np.maximum(origins, -1)


def forward(length, window, epsilon, rng):
    out = np.full(length + window, -1)
    for i in range(-5 * window, length):
        slot = i + int(rng.choice(window, p=response(window, epsilon)))
        if slot >= 0:
            out[slot] = max(i, -1)
    return out[:length]


def threshold(length, window, free, rng, keep=1.0):
    out = {}
    for i in range(-3000, length):
        empty = [slot for slot in range(i, i + window) if slot not in out]
        if len(empty) == free and i not in out:
            out[i] = i if rng.random() < keep else -1
        else:
            out[int(rng.choice(empty))] = i
    return np.maximum([out.get(slot, -1) for slot in range(length)], -1)


def statuses(origins):
    seen = set()
    found = []
    for origin in origins:
        found.append(EMPTY if origin < 0 else REPEATED if origin in seen else RELEASED)
        seen.add(origin)
    return np.array(found, dtype=np.int8)


def attack(origins, known, values=None):
    origins = np.asarray(origins)
    values = np.arange(len(origins)) ** 1.5 if values is None else values
    released = np.ma.array(values[np.maximum(origins, 0)], mask=origins < 0)
    return restore_order(released, origins, known, status=statuses(origins))


def law_of(origins, window):
    lags = (np.arange(len(origins)) - origins)[origins >= 0]
    return tuple(np.bincount(lags, minlength=window) / len(lags))


# how near to monotone


def test_a_counter_is_monotone_and_noise_is_not():
    rng = np.random.default_rng(1)
    assert monotone_share(np.arange(100)) == monotone_share(-np.arange(100), 10) == 1
    assert monotone_share(np.ones(10)) == 0 and monotone_share([1.0]) == 0
    assert monotone_share(rng.normal(size=20_000), 10) == pytest.approx(0.5, abs=0.02)
    assert monotone_share(np.ma.array([1, 9, 2, 3], mask=[0, 1, 0, 0])) == 1
    times = np.array(["2020-01-01", "2020-01-03", "NaT", "2020-01-05"], dtype="datetime64[D]")
    assert monotone_share(times, 3) == 1


def test_pairs_further_apart_are_looked_at_in_a_window():
    # every second step goes back, and yet nothing at distance 2 or more does
    values = [2, 1, 4, 3, 6, 5, 8, 7]
    assert monotone_share(values) == 4 / 7
    assert monotone_share(values, 3) == (3 + 6) / 13
    with pytest.raises(UsageError, match="window=1: must be a whole number"):
        monotone_share(values, 1)
    with pytest.raises(DataError, match="must be one column of numbers"):
        monotone_share(["a", "b"])


# all that can be restored is restored


@pytest.mark.parametrize("keep", [1.0, 0.6, 0.05])
@pytest.mark.parametrize("free", [2, 5, 9])
def test_threshold_hides_nothing_of_monotone_values(free, keep):
    """Also where rows are dropped: the slot that stays empty names the row that is missing."""
    rng = np.random.default_rng(free)
    origins = threshold(2000, 10, free, rng, keep)
    known = Known(
        probabilities=law_of(origins, 10),
        drop_lag=0 if keep < 1 else None,
        dropped=1 - keep,
        past=9,
    )
    found = attack(origins, known)
    assert found.before < 0.85
    # what is left are rows near the end, where some are still inside
    assert found.informed > 0.985
    # by sorting alone it takes some that are released at once, to see where the series begins
    assert found.sorted > 0.98 or found.before < 0.01
    assert found.slots == int((origins >= 0).sum())


def test_values_may_fall_too():
    origins = threshold(1000, 10, 5, np.random.default_rng(1))
    known = Known(probabilities=law_of(origins, 10), past=9)
    assert attack(origins, known, -np.arange(1000.0)).informed > 0.98


def test_rows_that_stay_within_blocks_or_near_are_sorted_back():
    rng = np.random.default_rng(2)
    blocks = np.concatenate([i + rng.permutation(8) for i in range(0, 400, 8)])
    known = Known(probabilities=(1 / 15,) * 15, least=-7, blocks=(8, 0))
    found = attack(blocks, known)
    assert found.before < 0.3 and found.sorted == found.informed == 1
    near = np.argsort(np.arange(400) + rng.integers(-5, 6, 400), kind="stable")
    found = attack(near, Known(probabilities=(1 / 21,) * 21, least=-10))
    assert found.before < 0.5 and found.sorted == found.informed == 1


def observations(kind, length, window, epsilon):
    """Every outcome: (origins, probability), rows of the past included."""
    law = response(window, epsilon)
    rows = range(-(window - 1), length)
    for lags in itertools.product(
        range(window), repeat=length if kind == "backward" else len(rows)
    ):
        out = [-1] * length
        if kind == "backward":
            out = [max(t - lag, -1) for t, lag in enumerate(lags)]
        else:
            for row, lag in zip(rows, lags, strict=True):
                if 0 <= row + lag < length:
                    out[row + lag] = max(row, -1)
        yield tuple(out), math.prod(law[lag] for lag in lags)


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_nobody_restores_more_than_the_informed(kind, epsilon):
    """Against full enumeration: what is seen is ranks, repeats and gaps; the best guess for each
    slot is the likeliest origin among all outcomes that look the same."""
    length, window = 5, 3
    seen = defaultdict(lambda: defaultdict(float))
    for origins, chance in observations(kind, length, window, epsilon):
        ranks = {o: rank for rank, o in enumerate(sorted(set(origins) - {-1}))}
        seen[tuple(ranks.get(o, -1) for o in origins)][origins] += chance
    known = Known(
        probabilities=response(window, epsilon),
        repeats=kind == "backward",
        overwrites=kind == "forward",
        past=window - 1,
    )
    best = reached = by_sorting = 0.0
    for ranks, outcomes in seen.items():
        if max(ranks) < 0:
            continue
        released = np.ma.array(ranks, mask=[rank < 0 for rank in ranks], dtype=float)
        status = statuses(ranks)
        guessed = guess_origins(released, known, status=status, rising=True)
        sorted_ = guess_by_sorting(released, known, status=status, rising=True)
        for slot in (slot for slot in range(length) if ranks[slot] >= 0):
            weights = defaultdict(float)
            for origins, chance in outcomes.items():
                weights[origins[slot]] += chance
            best += max(weights.values())
            reached += weights[int(guessed[slot])]
            by_sorting += weights[int(sorted_[slot])]
    assert reached == pytest.approx(best, rel=1e-9)
    assert by_sorting <= reached + 1e-12


@pytest.mark.parametrize("epsilon", [1.0, 5.0])
@pytest.mark.parametrize("kind", ["backward", "forward"])
def test_knowing_the_parameters_helps_where_rows_are_missing(kind, epsilon):
    rng = np.random.default_rng(3)
    make = backward if kind == "backward" else forward
    known = Known(
        probabilities=response(10, epsilon),
        repeats=kind == "backward",
        overwrites=kind == "forward",
        past=9,
    )
    found = attack(make(4000, 10, epsilon, rng), known)
    assert found.before + 0.05 < found.sorted <= found.informed + 0.01
    assert found.informed > found.before + 0.1


def test_values_that_tell_no_order_restore_none():
    rng = np.random.default_rng(4)
    origins = threshold(2000, 10, 5, rng)
    known = Known(probabilities=law_of(origins, 10), past=9)
    found = attack(origins, known, rng.normal(size=2000))
    # the law of lags is all that is left: no better than the commonest lag
    assert found.informed < max(known.probabilities) + 0.05 and found.sorted < 0.05


def test_nearly_monotone_values_restore_part():
    rng = np.random.default_rng(5)
    origins = threshold(2000, 10, 5, rng)
    known = Known(probabilities=law_of(origins, 10), past=9)
    shares = [
        attack(origins, known, np.arange(2000) + spread * rng.normal(size=2000)).informed
        for spread in (0.3, 1.0, 3.0)
    ]
    assert 1 > shares[0] > 0.9 > shares[1] > 0.4 > shares[2] > 0.2


def test_what_cannot_be_attacked_is_refused():
    known = Known(probabilities=(0.5, 0.5))
    with pytest.raises(DataError, match="every slot is empty"):
        restore_order(np.ma.array([1.0, 2.0], mask=True), [-1, -1], known)
    with pytest.raises(UsageError, match="3 origins for 2 slots"):
        restore_order([1.0, 2.0], [0, 1, 2], known)
    with pytest.raises(UsageError, match="probabilities"):
        Known(probabilities=())
    assert "sorting restores" in restore_order([1.0, 2.0], [0, 1], known).sentence


# the mechanisms themselves


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 5.0, 10.0])
@pytest.mark.parametrize("kind", [Threshold, DualThreshold])
def test_a_counter_is_restored_whatever_the_budget(kind, epsilon):
    """All but the few rows near the end, of which others are still inside: under 2 % of them."""
    mechanism = kind(epsilon=epsilon, window=10)
    found = try_order(mechanism, np.arange(2000.0))
    assert found.before < 0.85 and found.informed > 0.98


def test_swaps_that_are_hidden_are_no_help_where_values_tell():
    values = np.cumsum(np.arange(600) % 7 + 1)
    for mechanism in (
        BlockShuffle(epsilon=0.5, block=8, offset=3),
        NoisyOrder(epsilon=2.0, window=4, latency=60, delta=0.1),
        NoisyOrder(epsilon=2.0, window=4),
    ):
        found = try_order(mechanism, values)
        assert found.before < 0.4 and found.sorted == found.informed == 1
        assert found.slots == 600


@pytest.mark.parametrize("kind", [Backward, Forward])
def test_missing_rows_leave_something_to_guess(kind):
    found = try_order(kind(epsilon=1.0, window=10), np.arange(2000.0))
    assert found.before + 0.1 < found.sorted < found.informed < 0.7


def test_what_is_known_of_each_mechanism():
    assert known_of(Backward(epsilon=2.0, window=5)).repeats
    assert known_of(Forward(epsilon=2.0, window=5)).overwrites
    assert known_of(Threshold(epsilon=5.0, window=10)).drop_lag is None
    dual = known_of(DualThreshold(epsilon=1.0, window=10))
    assert dual.drop_lag == 9 and 0 < dual.dropped < 1
    block = known_of(BlockShuffle(epsilon=1.0, block=5, offset=2))
    assert block.least == -4 and block.blocks == (5, 2)
    assert sum(block.probabilities) == pytest.approx(1)
    near = known_of(NoisyOrder(epsilon=4.0, window=3, latency=60, delta=0.1))
    assert near.least == -(len(near.probabilities) // 2)
    with pytest.raises(UsageError, match="Laplace: does not move readings in time"):
        known_of(Laplace(epsilon=1.0, bounds=((0, 1),)))


def test_missing_values_are_moved_and_not_sorted():
    values = np.ma.array(np.arange(500.0), mask=np.arange(500) % 5 == 0)
    found = try_order(BlockShuffle(epsilon=1.0, block=5), values)
    assert found.slots == 400


def test_who_knows_more_restores_no_less():
    """Noise far wider than what the likeliest origins reckon with leaves sorting as it is."""
    found = try_order(NoisyOrder(epsilon=1.0, window=200), np.arange(2000.0))
    assert found.sorted == 1.0 and found.informed == 1.0
