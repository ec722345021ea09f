"""What the whole output of an order mechanism tells, found by running its code on every outcome."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tempriv.audit import exact
from tempriv.data.series import EMPTY, REPEATED
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.reorder import loss as order_losses
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.privacy.guarantees import Guarantee, Pure
from tempriv.privacy.units.order import BlockSwap, SlotOrigin, Swap
from tests.support.every_outcome import law_of
from tests.support.statistics import COMPILED

long = pytest.mark.long


def said(mechanism):
    if not hasattr(mechanism, "epsilon"):
        return str(mechanism)
    numbers = [str(getattr(mechanism, name, "")) for name in ("window", "block", "threshold")]
    return "-".join([type(mechanism).__name__, *filter(None, numbers), f"{mechanism.epsilon:g}"])


# the two ways to list all outcomes


@pytest.mark.parametrize(
    ("mechanism", "rows"),
    [
        (Backward(epsilon=1.0, window=3), 5),
        (Forward(epsilon=2.0, window=3), 5),
        (Threshold(epsilon=3.5, window=4), 5),
        (Threshold(epsilon=1.0, window=4), 4),
        (DualThreshold(epsilon=3.5, window=4), 5),
        (DualThreshold(epsilon=1.0, window=4), 4),
        (BlockShuffle(epsilon=1.0, block=3, offset=1), 6),
    ],
    ids=said,
)
def test_a_row_at_a_time_and_all_at_once_have_one_distribution(mechanism, rows):
    """The audit's own enumeration and that of these tests, compiled, through the memory."""
    law = law_of(mechanism, rows, absent=mechanism.domain.latency)
    found: dict = {}
    for shown, status, mass in zip(
        law.shown.tolist(), law.status.tolist(), law.mass.tolist(), strict=True
    ):
        key = tuple(shown), tuple(status)
        found[key] = found.get(key, 0.0) + mass
    expected = exact.slot_distribution(mechanism, rows)
    assert found.keys() == expected.keys()
    assert all(math.isclose(found[key], expected[key], rel_tol=1e-9) for key in found)


# the losses that are stated for each distance

EVEN = [(2, 1.0), (3, 0.5), (3, 1.0), (3, 4.0), (4, 1.0), (4, 2.0)]
THRESHOLDS = [
    *(
        (kind, k, c, 20.0)
        for kind in (Threshold, DualThreshold)
        for k in (3, 4, 5)
        for c in range(2, k)
    ),
    *(
        (kind, *more)
        for kind in (Threshold, DualThreshold)
        for more in ((4, 3, 1.0), (4, 3, 0.1), (5, 4, 0.5))
    ),
]


def assert_told(mechanism, distance, *, under_way=False):
    """Rows 0 and ``distance`` trade places, and every slot that either may reach comes out."""
    law = law_of(mechanism, distance + mechanism.window, under_way=under_way)
    assert math.isclose(law.mass.sum(), 1.0, abs_tol=1e-9)
    loss = mechanism.loss_at(distance)
    assert law.told(0, distance) == pytest.approx((loss.epsilon, loss.delta), abs=1e-9)


@pytest.mark.parametrize(("window", "epsilon"), EVEN)
@pytest.mark.parametrize("kind", [Backward, Forward])
def test_the_losses_of_even_lags_are_those_of_every_output(kind, window, epsilon):
    mechanism = kind(epsilon=epsilon, window=window)
    for distance in range(1, window + 2):
        assert_told(mechanism, distance)


@pytest.mark.parametrize("distance", [1, 2, 3, pytest.param(4, marks=long)])
@pytest.mark.parametrize("kind", [Backward, Forward])
def test_the_losses_of_even_lags_in_a_window_of_five(kind, distance):
    assert_told(kind(epsilon=1.0, window=5), distance)


@pytest.mark.parametrize(
    ("kind", "window", "threshold", "epsilon"),
    THRESHOLDS,
    ids=lambda one: getattr(one, "__name__", str(one)),
)
def test_the_losses_of_thresholds_are_those_of_every_output(kind, window, threshold, epsilon):
    """Without dropping at epsilon 20, with it below; the state of the past is known throughout."""
    mechanism = kind(epsilon=epsilon, window=window, threshold=threshold)
    assert mechanism.extended == (epsilon < 20)
    if window == 5 and mechanism.extended and not COMPILED:
        pytest.skip("half a minute as plain Python, where smaller windows say as much")
    for distance in range(1, window):
        assert_told(mechanism, distance, under_way=True)
    beyond = law_of(mechanism, 2 * window, under_way=True).told(0, window)
    stated = mechanism.loss_at(window)
    if mechanism.extended:  # both may be dropped, which is not counted on
        assert beyond[1] <= stated.delta == 1.0
    else:
        assert beyond == pytest.approx((stated.epsilon, stated.delta))


@long
@pytest.mark.parametrize("kind", [Threshold, DualThreshold])
@pytest.mark.parametrize(("threshold", "epsilon"), [(2, 20.0), (3, 20.0), (4, 20.0), (5, 1.0)])
def test_the_losses_of_thresholds_in_a_window_of_six(kind, threshold, epsilon):
    mechanism = kind(epsilon=epsilon, window=6, threshold=threshold)
    assert mechanism.extended == (epsilon < 20)
    for distance in range(1, 4 if mechanism.extended else 6):
        assert_told(mechanism, distance, under_way=True)


@pytest.mark.parametrize(
    ("mechanism", "rows"),
    [
        (Backward(epsilon=1.0, window=4), 6),
        (Forward(epsilon=1.0, window=4), 6),
        (Threshold(epsilon=3.5, window=4), 7),
        (Threshold(epsilon=1.0, window=4), 6),
        (DualThreshold(epsilon=3.5, window=4), 7),
        (DualThreshold(epsilon=1.0, window=4), 6),
        (Threshold(epsilon=4.0, window=6), 3),  # shorter than the window
        (DualThreshold(epsilon=2.0, window=6), 3),
        (Forward(epsilon=1.0, window=6), 4),
    ],
    ids=said,
)
def test_where_a_series_begins_and_ends_no_more_is_told(mechanism, rows):
    """Every swap of a whole short series, within the (epsilon, delta) of its distance.

    Outputs of both orders may have a larger ratio there: what is not seen joins outputs.
    """
    law = law_of(mechanism, rows)
    for one, other in itertools.combinations(range(rows), 2):
        loss = mechanism.loss_at(other - one)
        for pair in ((one, other), (other, one)):
            assert law.hockey_stick(*pair, loss.epsilon) <= loss.delta + 1e-12


def test_no_order_mechanism_of_the_paper_hides_a_swap_literally():
    """Definition 2.2: every output must be possible in both orders, and none of them has that."""
    for mechanism in (
        Backward(epsilon=1.0, window=3),
        Forward(epsilon=1.0, window=3),
        Threshold(epsilon=3.5, window=4),
        Threshold(epsilon=1.0, window=4),
    ):
        assert not mechanism.published.holds
        mass, turned = law_of(mechanism, mechanism.window + 1).swapped(0, 1)
        at_once = float(mechanism.probabilities[0])
        assert mass[turned == 0].sum() >= at_once > 0.05


@pytest.mark.parametrize("window", [3, 4, 10, 41, 200])
def test_nothing_missing_and_little_delay_cannot_hide_distant_swaps(window):
    """delta >= 1/2 from half a window on, whatever the budget."""
    for threshold in {2, (window + 1) // 2, window - 1}:
        for distance in {-(-window // 2), 3 * window // 4, window - 1}:
            for kind in (order_losses.threshold, order_losses.dual):
                assert kind(window, threshold, 1, distance).delta >= 0.5 - 1e-12


# one slot by itself


FAMILY = [
    Backward(epsilon=1.0, window=3),
    Backward(epsilon=4.0, window=4),
    Threshold(epsilon=3.5, window=3),
    Threshold(epsilon=3.5, window=4),
    Threshold(epsilon=20.0, window=5, threshold=3),
    Threshold(epsilon=1.0, window=4),
    DualThreshold(epsilon=3.5, window=4),
    DualThreshold(epsilon=20.0, window=5, threshold=3),
    DualThreshold(epsilon=1.0, window=4),
]


@pytest.mark.parametrize("mechanism", FAMILY, ids=said)
def test_every_slot_has_the_distribution_of_lags_from_the_first_on(mechanism):
    """Rows from before the series show as none; what is dropped does too."""
    window, lags = mechanism.window, mechanism.probabilities
    rows = 7 if window == 5 else 6
    law = law_of(mechanism, rows)
    for slot in range(rows):
        found = law.slot(slot)
        for step in range(rows):
            lag = slot - step
            expected = lags[lag] if 0 <= lag < window else 0.0
            assert found.get(step, 0.0) == pytest.approx(expected, abs=1e-12)
        early = lags[slot + 1 :].sum()
        assert found.get(-1, 0.0) == pytest.approx(early + 1 - lags.sum(), abs=1e-9)


@pytest.mark.parametrize("mechanism", FAMILY, ids=said)
def test_what_one_slot_tells_is_promised_exactly(mechanism):
    """The odds between any two origins of any slot; the largest of them is the guarantee."""
    promise, window = mechanism.guarantee, mechanism.window
    assert promise.unit == SlotOrigin(window)
    law, most = law_of(mechanism, 2 * window - 1), 0.0
    for slot in range(2 * window - 1):
        found = law.slot(slot)
        origins = [found[step] for step in range(max(0, slot - window + 1), slot + 1)]
        most = max(most, math.log(max(origins) / min(origins)))
    assert most <= promise.loss.epsilon * (1 + 1e-9) + 1e-12
    assert most == pytest.approx(promise.loss.epsilon, rel=1e-8, abs=1e-12)
    if getattr(mechanism, "extended", True):
        assert promise.loss.epsilon <= mechanism.epsilon / 2 * (1 + 1e-11)
        assert promise.loss.epsilon == pytest.approx(mechanism.epsilon / 2, rel=1e-8)
    else:
        assert promise.loss.epsilon == pytest.approx(mechanism.derived_epsilon / 2)


@pytest.mark.parametrize("mechanism", FAMILY, ids=said)
def test_the_audit_finds_the_same(mechanism):
    verdict = exact.audit(mechanism, (0,), 5)
    assert verdict.holds and verdict.found == pytest.approx(verdict.claimed, rel=1e-8)
    hardly = Guarantee(Pure(0.999 * verdict.claimed), mechanism.unit)
    assert verdict.claimed == 0 or not exact.audit(mechanism, (0,), 5, guarantee=hardly).holds


@pytest.mark.parametrize(
    ("window", "epsilon", "really"), [(3, 1.0, 2.8430587481904688), (4, 4.0, 6.8891140812550296)]
)
def test_one_slot_of_forward_tells_more_than_is_claimed(window, epsilon, really):
    """2 ln of the odds, as the paper counts: of what was sent to a slot, the latest stays."""
    law = law_of(Forward(epsilon=epsilon, window=window), 2 * window)
    found = law.slot(2 * window - 1)
    odds = [found[step] for step in range(window, 2 * window)]
    told = 2 * math.log(max(odds) / min(odds))
    assert told == pytest.approx(really, rel=1e-9) and told > epsilon + 1
    assert told == pytest.approx(forward_marginal(epsilon, window))
    claim = Guarantee(Pure(epsilon / 2), SlotOrigin(window))
    verdict = exact.audit(Forward(epsilon=epsilon, window=window), (0,), window, guarantee=claim)
    assert not verdict.holds and 2 * verdict.found == pytest.approx(really)


def forward_marginal(epsilon, window):
    first, other = Forward(epsilon=epsilon, window=window).probabilities[:2]
    return 2 * math.log(first / (other * (1 - first) * (1 - other) ** (window - 2)))


@pytest.mark.parametrize(("epsilon", "really"), [(1.0, 2.91), (5.0, 7.49)])
def test_the_claims_for_forward_in_a_window_of_ten(epsilon, really):
    assert forward_marginal(epsilon, 10) == pytest.approx(really, abs=0.006)


@pytest.mark.parametrize("window", [3, 4])
def test_the_status_of_a_repeated_row_rules_out_its_own_step(window):
    """So the guarantee about one slot is about the row in it without its status."""
    law = law_of(Backward(epsilon=1.0, window=window), 2 * window)
    slot = 2 * window - 1
    repeated = law.status[:, slot] == REPEATED
    assert law.mass[repeated].sum() > 0.1
    assert not (law.shown[repeated, slot] == slot).any()
    new = law.mass[~repeated & (law.shown[:, slot] == slot)].sum()
    assert new == pytest.approx(Backward(epsilon=1.0, window=window).probabilities[0])


# orders that hide a swap


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("block", [2, 3, 4, 5, 6])
def test_a_swap_within_a_block_costs_epsilon_for_every_output(block, epsilon):
    """To the last one, and any two rows of the block: a permutation gains or loses one cycle."""
    mechanism = BlockShuffle(epsilon=epsilon, block=block)
    law = law_of(mechanism, block, absent=mechanism.latency)
    assert len(law.mass) == math.factorial(block)
    for one, other in itertools.combinations(range(block), 2):
        mass, turned = law.swapped(one, other)
        assert (np.abs(np.abs(np.log(mass / turned)) - epsilon) < 1e-9).all()
    for slot in range(block):
        assert law.slot(slot)[slot] == pytest.approx(mechanism.stays)
    verdict = exact.audit(mechanism, (0,), min(block, 5))
    assert verdict.holds and verdict.found == pytest.approx(epsilon)


@pytest.mark.parametrize("offset", [0, 1, 2])
def test_swaps_of_two_blocks_are_not_hidden_at_all(offset):
    mechanism = BlockShuffle(epsilon=1.0, block=3, offset=offset)
    law = law_of(mechanism, 7, absent=2)
    for one, other in itertools.combinations(range(7), 2):
        same = (one - offset) // 3 == (other - offset) // 3
        assert law.told(one, other) == pytest.approx((1.0, 0.0) if same else (0.0, 1.0))
        distance = other - one
        stated = order_losses.block_shuffle(1.0, 3, distance, same_block=same)
        assert law.told(one, other) == pytest.approx((stated.epsilon, stated.delta))
    assert exact.audit(mechanism, (0,), 7).holds
    anything = Guarantee(Pure(1.0), Swap(2))
    assert exact.audit(mechanism, (0,), 7, guarantee=anything).found == math.inf
    larger = Guarantee(Pure(1.0), BlockSwap(6, offset))
    assert not exact.audit(mechanism, (0,), 7, guarantee=larger).holds


@pytest.mark.parametrize("distance", [1, 2, 3])
def test_a_public_random_offset_covers_swaps_anywhere(distance):
    """Over all offsets, each published: outputs of one order only have the stated mass."""
    alone, ratio = 0.0, 0.0
    for offset in range(3):
        law = law_of(BlockShuffle(epsilon=1.0, block=3, offset=offset), 8, absent=2)
        told = law.told(3, 3 + distance)
        ratio, alone = max(ratio, told[0]), alone + told[1] / 3
    stated = BlockShuffle(epsilon=1.0, block=3).anywhere(distance)
    assert (ratio, alone) == pytest.approx((stated.epsilon, stated.delta))


# rows sorted by noisy times


class Orders:
    """Every order of so many rows, and its chance, by each outcome of keys and ties at once."""

    def __init__(self, mechanism, rows, tail):
        listed = mechanism.distribution.outcomes(tail)
        numbers, chances = (np.array(one) for one in zip(*listed, strict=True))
        picks = np.array(list(itertools.product(range(len(listed)), repeat=rows)))
        ties = np.array(list(itertools.permutations(range(rows))))
        self.keys = np.repeat(numbers[picks], len(ties), axis=0)
        self.ties = np.tile(ties, (len(picks), 1))
        self.mass = np.repeat(chances[picks].prod(axis=1), len(ties)) / len(ties)
        self.left_out = max(0.0, 1 - self.mass.sum())
        self.rows = rows
        latency = mechanism.latency or 0
        state = SeriesState.fresh(mechanism, len(self.mass), rows + latency)
        state.missing.reshape(len(self.mass), -1)[:, rows:] = True
        nothing = np.zeros((len(state.missing), 0), dtype=np.int64)
        ages = mechanism.perturb(nothing, self, state).reshape(len(self.mass), -1)
        newest = rows - 1 if mechanism.latency is None else np.arange(rows + latency)
        self.orders = (newest - ages)[:, latency:]

    def __call__(self, law, purpose, rows):
        return {"key": self.keys, "tie": self.ties}[purpose].ravel()

    @property
    def sorted(self):
        """By definition: by key, then by tie."""
        times = self.keys + np.arange(self.rows)
        return np.argsort(times * self.rows + self.ties, axis=1)

    def law(self, orders=None):
        orders = self.orders if orders is None else orders
        found, at = np.unique(orders, axis=0, return_inverse=True)
        masses = np.bincount(at.ravel(), weights=self.mass)
        return dict(zip(map(tuple, found.tolist()), masses.tolist(), strict=True))


def exchanged(order, one, other):
    return tuple({one: other, other: one}.get(step, step) for step in order)


def swaps(rows, window):
    return [
        (one, other)
        for one, other in itertools.permutations(range(rows), 2)
        if abs(one - other) < window
    ]


def worst_loss(law, rows, window, left_out=0.0):
    """At most: whatever was left out is taken to be where it shows most."""
    assert len(law) == math.factorial(rows)
    return max(
        math.log((mass + left_out) / law[exchanged(order, *pair)])
        for order, mass in law.items()
        for pair in swaps(rows, window)
    )


WHOLE = [(2, 2, 1.0), (3, 2, 1.5), (3, 2, 3.0), (3, 3, 3.0), (3, 3, 6.0)]


@pytest.mark.parametrize("noise", ["staircase", "laplace"])
@pytest.mark.parametrize(("rows", "window", "epsilon"), WHOLE)
def test_rows_sorted_by_noisy_times_hide_every_swap(rows, window, epsilon, noise):
    """Keys with all but 1e-5 of their mass each; what is left out counts as if it told most."""
    mechanism = NoisyOrder(epsilon=epsilon, window=window, noise=noise)
    assert mechanism.guarantee == Guarantee(Pure(epsilon), Swap(window))
    found = Orders(mechanism, rows, 1e-5)
    assert (found.orders == found.sorted).all()
    assert found.left_out <= rows * 1e-5
    loss = worst_loss(found.law(), rows, window, found.left_out)
    assert 0.4 * epsilon < loss <= epsilon
    for distance in range(1, rows):
        stated = mechanism.loss_at(distance)
        pairs = [(i, i + distance) for i in range(rows - distance)]
        law = found.law()
        told = max(
            abs(math.log(mass / law[exchanged(order, *pair)]))
            for order, mass in law.items()
            for pair in pairs
        )
        assert stated.delta == 0 and told <= stated.epsilon + 1e-3


@long
@pytest.mark.parametrize(("window", "epsilon"), [(2, 4.0), (3, 8.0)])
def test_four_rows_sorted_by_noisy_times_hide_every_swap(window, epsilon):
    for noise in ("staircase", "laplace"):
        mechanism = NoisyOrder(epsilon=epsilon, window=window, noise=noise)
        found = Orders(mechanism, 4, 1e-5)
        assert worst_loss(found.law(), 4, window, found.left_out) <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "random", "stable"),
    [pytest.param(1.0, 0.747, 1.117, marks=long), (3.0, 2.179, 3.238)],
)
def test_ties_by_arrival_would_break_the_promise(epsilon, random, stable):
    """The numbers that were found for three rows and a window of three, Laplace keys."""
    mechanism = NoisyOrder(epsilon=epsilon, window=3, noise="laplace")
    found = Orders(mechanism, 3, 1e-5 if epsilon > 1 else 1e-3)
    assert worst_loss(found.law(), 3, 3) == pytest.approx(random, abs=2e-3)
    by_arrival = np.argsort(found.keys + np.arange(3), axis=1, kind="stable")
    assert worst_loss(found.law(by_arrival), 3, 3) == pytest.approx(stable, abs=2e-3)
    assert stable > epsilon


CUT = [
    (NoisyOrder(epsilon=2.0, window=2, latency=6, delta=0.05), 3),
    (NoisyOrder(epsilon=2.0, window=2, latency=7, delta=0.05, noise="laplace"), 3),
    (NoisyOrder(epsilon=4.0, window=3, latency=6, delta=0.3), 3),
    (NoisyOrder(epsilon=1.0, window=2, latency=4, delta=0.4), 4),
]


@pytest.mark.parametrize(("mechanism", "rows"), CUT, ids=lambda one: str(one)[:60])
def test_a_stream_is_sorted_like_a_whole_series(mechanism, rows):
    """For every outcome: what comes out early is what cut keys leave no doubt about."""
    found = Orders(mechanism, rows, 1e-12)
    assert (found.orders == found.sorted).all()
    assert found.left_out < 1e-12
    assert np.abs(found.keys).max() == mechanism.latency // 2


@pytest.mark.parametrize(("mechanism", "rows"), CUT, ids=lambda one: str(one)[:60])
def test_a_stream_costs_epsilon_and_delta(mechanism, rows):
    """By the hockey stick of every swap, and delta is not for nothing: without it, it fails."""
    law, window = Orders(mechanism, rows, 1e-12).law(), mechanism.window
    promise = mechanism.guarantee.loss
    assert promise.epsilon == mechanism.epsilon and 0 < promise.delta <= mechanism.delta
    for pair in swaps(rows, window):
        stated = mechanism.loss_at(abs(pair[0] - pair[1]))
        needed = math.fsum(
            max(0.0, mass - math.exp(stated.epsilon) * law.get(exchanged(order, *pair), 0.0))
            for order, mass in law.items()
        )
        assert needed <= stated.delta <= promise.delta


def test_cut_keys_are_not_pure():
    """Two rows further apart than keys move can only come out one way round."""
    mechanism = NoisyOrder(epsilon=4.0, window=3, latency=2, delta=0.99)
    law = Orders(mechanism, 4, 1e-12).law()
    assert any(exchanged(order, 0, 2) not in law for order in law)
    assert mechanism.guarantee.loss.delta > 0.1


def test_the_delta_of_cut_keys_is_exact_for_the_keys():
    """The hockey stick of the two keys that move, before anything is sorted."""
    for mechanism, _ in CUT:
        law, shift = mechanism.distribution, mechanism.window - 1
        reach = mechanism.latency // 2
        one = np.array([law.pmf(k) for k in range(-reach, reach + 1 + shift)])
        other = np.array([law.pmf(k - shift) for k in range(-reach, reach + 1 + shift)])
        first, second = np.outer(one, other[::-1]), np.outer(other, one[::-1])
        needed = np.maximum(first - math.exp(mechanism.epsilon) * second, 0.0).sum()
        stated = mechanism.guarantee.loss.delta
        assert needed <= stated
        alone = first[second == 0].sum()
        assert stated == pytest.approx(alone, rel=1e-9)


def test_empty_slots_are_those_of_the_past():
    """In all outcomes: without dropping, a slot is empty only within a window of the start."""
    for mechanism in (Threshold(epsilon=3.5, window=4), DualThreshold(epsilon=3.5, window=4)):
        law = law_of(mechanism, 7)
        assert (law.status[:, :3] == EMPTY).any(axis=0).all()
        assert not (law.status[:, 3:] == EMPTY).any()
        assert not (law.status == REPEATED).any()
