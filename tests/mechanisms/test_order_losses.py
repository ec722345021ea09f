"""Losses of order mechanisms: by all their outputs, and between plain bounds for long windows."""

from __future__ import annotations

import functools
import json
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder import loss as order_losses
from tempriv.sampling import distributions
from tests.mechanisms.test_order_theory import free_sets, shuffled
from tests.support.paths import GOLDEN

GOLDEN_FILE = GOLDEN / "order_losses.json"
LOSSES = json.loads(GOLDEN_FILE.read_text())


def compared(one, other):
    """The largest log-ratio on common outputs, and the chance of others under each law."""
    common = one.keys() & other.keys()
    ratios = [abs(math.log(one[output] / other[output])) for output in common]
    return max(ratios, default=0.0), *(
        float(1 - sum(law[output] for output in common)) for law in (one, other)
    )


def moved(distance, step):
    """The names of readings in the other order."""
    return {0: distance, distance: 0}.get(step, step)


def threshold_law(window, threshold, keep, distance, name):
    """Where readings 0 .. distance go, by Algorithm 1 and Section IV-E, as an observer sees it."""
    law = {(free, free, frozenset()): p for free, p in free_sets(window, threshold)}
    for step in range(distance + 1):
        after = defaultdict(Fraction)
        for (start, free, seen), p in law.items():
            if step in free:
                options = [(step, step, keep), (step, None, 1 - keep)]
            else:
                options = [(slot, slot, Fraction(1, threshold)) for slot in free]
            for used, slot, chance in options:
                if chance:
                    left = tuple(s for s in (*free, window + step) if s != used)
                    after[start, left, seen | {(name(step), slot)}] += p * chance
        law = after
    return law


def dual_law(window, threshold, keep, distance, name):
    """What slots 0 .. distance + window - 1 show, from the definition of the pool."""
    law = {}
    for free, p in free_sets(window, threshold):
        pool = tuple(slot - window + 1 for slot in free)  # reading 0 is in it, just arrived
        law[pool, pool, ()] = p
    for step in range(distance + window):
        after = defaultdict(Fraction)
        for (start, pool, seen), p in law.items():
            oldest = step - window + 1
            if oldest in pool:
                options = [(oldest, name(oldest), keep), (oldest, None, 1 - keep)]
            else:
                options = [(reading, name(reading), Fraction(1, threshold)) for reading in pool]
            for used, shown, chance in options:
                if chance:
                    left = tuple(r for r in (*pool, step + 1) if r != used)
                    after[start, left, (*seen, shown)] += p * chance
        law = after
    merged = defaultdict(Fraction)
    for (start, _, seen), p in law.items():
        merged[start, seen] += p
    return merged


SMALL = [(3, 2), (4, 2), (4, 3), (5, 2), (5, 3), (5, 4)]


@pytest.mark.parametrize("keep", [Fraction(1), Fraction(1, 3)])
@pytest.mark.parametrize(("window", "threshold"), SMALL)
def test_the_losses_of_threshold_are_those_of_all_its_outputs(window, threshold, keep):
    for distance in range(1, window):
        laws = [
            threshold_law(window, threshold, keep, distance, name)
            for name in (lambda step: step, functools.partial(moved, distance))
        ]
        loss = order_losses.threshold(window, threshold, keep, distance)
        assert compared(*laws) == pytest.approx((loss.epsilon, loss.delta, loss.delta), abs=1e-12)


@pytest.mark.parametrize("keep", [Fraction(1), Fraction(1, 3)])
@pytest.mark.parametrize(
    ("window", "threshold", "furthest"), [(3, 2, 2), (4, 2, 3), (4, 3, 3), (5, 2, 4), (5, 3, 1)]
)
def test_the_losses_of_the_dual_are_those_of_all_its_outputs(window, threshold, furthest, keep):
    for distance in range(1, furthest + 1):
        laws = [
            dual_law(window, threshold, keep, distance, name)
            for name in (lambda step: step, functools.partial(moved, distance))
        ]
        loss = order_losses.dual(window, threshold, keep, distance)
        assert compared(*laws) == pytest.approx((loss.epsilon, loss.delta, loss.delta), abs=1e-12)


@pytest.mark.parametrize(
    "row", LOSSES["threshold"], ids=lambda r: f"{r['window']}-{r['threshold']}"
)
def test_the_losses_of_threshold_in_the_reference(row):
    for distance, delta in enumerate(row["deltas"], 1):
        loss = order_losses.threshold(row["window"], row["threshold"], row["keep"], distance)
        assert delta is None or loss.delta == pytest.approx(delta, abs=1e-12)
        if distance < row["window"] - 1:
            assert loss.epsilon == pytest.approx(row["epsilon"], abs=1e-11)


def pairs_of_lags(window, threshold, distance):
    """By enumeration of states: b at once or later, both where the other order is possible; F F."""
    law = defaultdict(Fraction)
    for free, p in free_sets(window, threshold):
        for slot in (0,) if 0 in free else free:
            left = frozenset({*free, window} - {slot})
            law[left, slot] += p / (1 if slot == 0 else threshold)
    for step in range(1, distance):
        after = defaultdict(Fraction)
        for (free, first), p in law.items():
            slots = (step,) if step in free else free
            for slot in slots:
                after[free - {slot} | {window + step}, first] += p / len(slots)
        law = after
    at_once = later = both = Fraction(0)
    for (free, first), p in law.items():
        near = sum(distance < slot < window for slot in free)
        both += p * (first == 0 and distance in free)
        if first >= distance:
            at_once += p * (distance in free)
            later += p * (distance not in free) * Fraction(near, threshold)
    return at_once, later, both


@pytest.mark.parametrize(
    ("window", "threshold"), [*((k, c) for k in (6, 7) for c in range(2, k)), (9, 4), (9, 6)]
)
def test_counting_free_slots_is_as_good_as_enumerating_states(window, threshold):
    for distance in range(1, min(window - 1, 6)):
        at_once, later, both = pairs_of_lags(window, threshold, distance)
        for keep in (1.0, 0.4):
            common = keep * at_once + later + (1 - keep) ** 2 * both
            loss = order_losses.threshold(window, threshold, keep, distance)
            assert loss.delta == pytest.approx(float(1 - common), abs=1e-13)


@pytest.mark.parametrize("window", [3, 4, 10, 60, 300])
def test_the_loss_of_neighbors_in_closed_form(window):
    for threshold in {2, (window + 2) // 3, window // 2, window - 1} - {1}:
        p = analysis.dispatch(window, threshold)
        delta = p[0] + p[-1] - (1 - 1 / threshold) * p[1]
        loss = order_losses.threshold(window, threshold, 1, 1)
        assert loss.delta == pytest.approx(delta, rel=1e-12)
        assert loss.epsilon == math.log(threshold)


@pytest.mark.parametrize("threshold", [2, 20, 54, 120, 199])
def test_losses_of_long_windows_lie_between_plain_bounds(threshold):
    window = 200
    p = analysis.dispatch(window, threshold)
    before = 0.0
    for distance in (1, 2, 5, 20, 50, 99, 100, 150, 197, 198, 199):
        early, late = p[:distance].sum(), p[window - distance :].sum()
        delta = order_losses.threshold(window, threshold, 1, distance).delta
        assert max(early, late, before) - 1e-12 <= delta <= min(early + late, 1) + 1e-12
        assert distance < window / 2 or delta >= 0.5  # nothing missing and a delay below k
        before = delta
    assert order_losses.threshold(window, threshold, 1, window) == order_losses.NOTHING
    assert order_losses.threshold(window, threshold, 0.5, window + 7) == order_losses.NOTHING


def forward_losses(epsilon, window, distance, readings, slots):
    """Every way to send readings 0, 1 .. to slots, the last to a slot stays; 0 and d trade."""
    first, other = analysis.even_lags(epsilon, window)
    count = window**readings
    lags = np.arange(count)[:, None] // window ** np.arange(readings) % window
    chances = np.where(lags == 0, first, other).prod(axis=1)
    codes = []
    for name in (lambda step: step, functools.partial(moved, distance)):
        shown = np.zeros((count, slots + window), dtype=np.int64)
        for step in range(readings):
            shown[np.arange(count), step + lags[:, step]] = name(step) + 1
        codes.append(shown[:, :slots] @ (readings + 1) ** np.arange(slots, dtype=np.int64))
    outputs, which = np.unique(np.concatenate(codes), return_inverse=True)
    one, two = (np.bincount(w, chances, len(outputs)) for w in np.split(which, 2))
    common = (one > 0) & (two > 0)
    ratio = np.abs(np.log(one[common] / two[common])).max(initial=0.0)
    return float(ratio), float(one[~common].sum()), float(two[~common].sum())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(
    ("window", "distance"),
    [
        (2, 1),
        (2, 2),
        (3, 1),
        (3, 2),
        (3, 3),
        (3, 4),
        (4, 1),
        (4, 2),
        (4, 3),
        (4, 4),
        (5, 1),
        (5, 3),
    ],
)
def test_the_losses_of_forward_are_those_of_all_its_outputs(window, distance, epsilon):
    """Later readings than the last slot of the second one matter for neither order."""
    reach = distance + window
    loss = order_losses.forward(epsilon, window, distance)
    found = forward_losses(epsilon, window, distance, reach, reach)
    assert found == pytest.approx((loss.epsilon, loss.delta, loss.delta), abs=1e-12)


EVEN = [
    (row["mechanism"], row["window"], row["epsilon"], row["readings"], distance, loss, delta)
    for row in LOSSES["even"]
    for distance, (loss, delta) in enumerate(zip(row["losses"], row["deltas"], strict=True), 1)
]


@pytest.mark.parametrize(
    ("mechanism", "window", "epsilon", "readings", "distance", "loss", "delta"), EVEN
)
def test_the_losses_of_even_lags_in_the_reference(
    mechanism, window, epsilon, readings, distance, loss, delta
):
    """Its series of Forward end soon after the swap: past 3 steps of window, that is another case.

    The two stand in the middle. With fewer than window - 1 readings after them less is
    overwritten; so many readings, with all slots they reach, give the reference's digits.
    """
    later = readings - (readings - distance) // 2
    found = getattr(order_losses, mechanism)(epsilon, window, distance)
    assert found.epsilon == pytest.approx(loss, abs=6e-5)
    if mechanism == "backward" or later >= distance + window:
        assert found.delta == pytest.approx(delta, abs=6e-5)
    else:
        ended = forward_losses(epsilon, window, distance, later, later + window - 1)
        assert ended[:2] == pytest.approx((loss, delta), abs=6e-5)
        assert found.delta < delta - 1e-3


def test_backward_by_enumeration():
    """Slots choose alone, so each takes part in an output with a factor of its own."""
    epsilon, window = 1.3, 3
    p = [*analysis.even_lags(epsilon, window), analysis.even_lags(epsilon, window)[1]]
    for distance in (1, 2, 3):
        laws = []
        for name in (lambda step: step, functools.partial(moved, distance)):
            law = {(): 1.0}
            for slot in range(distance + window):
                law = {
                    (*seen, name(slot - lag)): chance * p[lag]
                    for seen, chance in law.items()
                    for lag in range(window)
                }
            laws.append(law)
        loss = order_losses.backward(epsilon, window, distance)
        assert compared(*laws) == pytest.approx((loss.epsilon, loss.delta, loss.delta), abs=1e-12)


@pytest.mark.parametrize("kind", ["laplace", "staircase"])
def test_two_keys_lose_what_is_stated(kind):
    """All pairs of cut noises, before the swap and after it."""
    epsilon, window, reach = 1.5, 4, 9
    laplace = kind == "laplace"
    law = (
        distributions.DiscreteLaplace(2 * (window - 1) / Fraction(epsilon))
        if laplace
        else distributions.Staircase(Fraction(epsilon) / 2, window - 1, 2)
    )
    masses = np.array([law.pmf(n) for n in range(reach + 1)])
    masses /= 2 * masses.sum() - masses[0]
    span = range(-reach, reach + 1)
    for distance in (1, 2, 3, 4, 18, 19):
        one = {(x, distance + y): masses[abs(x)] * masses[abs(y)] for x in span for y in span}
        two = {(distance + x, y): masses[abs(x)] * masses[abs(y)] for x in span for y in span}
        ratio, delta, other = compared(one, two)
        assert order_losses.cut_noise(masses, distance) == pytest.approx(delta, abs=1e-12)
        assert other == pytest.approx(delta, abs=1e-12)
        stated = order_losses.noisy_order(epsilon, window, distance, kind)
        assert ratio <= stated + 1e-12
        assert distance > 4 or ratio == pytest.approx(stated)  # few outputs are common beyond


def test_a_shuffled_block_loses_epsilon_and_two_blocks_all():
    one, two = shuffled((0, 1, 2, 3), 0.8), shuffled((2, 1, 0, 3), 0.8)
    assert compared(one, two) == pytest.approx((0.8, 0.0, 0.0), abs=1e-12)
    inside = order_losses.block_shuffle(0.8, 4, 2, same_block=True)
    assert (inside.epsilon, inside.delta) == (0.8, 0.0)
    assert order_losses.block_shuffle(0.8, 4, 1, same_block=False) == order_losses.NOTHING
    with pytest.raises(UsageError, match="distance=4: must be less than 4"):
        order_losses.block_shuffle(0.8, 4, 4, same_block=True)
    for distance in range(1, 6):
        apart = sum((offset + distance) // 4 > offset // 4 for offset in range(4)) / 4
        assert order_losses.random_offset(0.8, 4, distance).delta == apart
