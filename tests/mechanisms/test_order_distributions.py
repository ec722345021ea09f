"""Laws that decide when a row comes out: what they say, what they draw, and the digits in between.

Chi-square tests reject a right law with alpha 1e-9 and state what they detect
(tests.support.statistics).
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from tempriv.errors import UsageError
from tempriv.mechanisms.base import KeyedNoise, SeriesState
from tempriv.mechanisms.reorder import distributions as order_laws
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.distributions import (
    FreeSlotDistribution,
    FreeSlots,
    LagDistribution,
    TieDistribution,
    WindowDistribution,
)
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.sampling import distributions as noise
from tempriv.sampling._kernels import Halves
from tempriv.sampling.exact_compare import ExactReal, Thresholds
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import Keystream, StepRange
from tests.reference import order as reference
from tests.support.scripted import ONES, Scripted, run, split, write
from tests.support.statistics import DRAWS, assert_cells, assert_proportion, joined, stated

pytest_plugins = ["tests.support.statistics"]


def words(count, purpose="laws", seed=0):
    return Keystream([run(seed, count)], purpose)


# what laws say of themselves

LAGS = [
    LagDistribution(Fraction(1), 2),
    LagDistribution(Fraction(1, 2), 5),
    LagDistribution(Fraction(5, 2), 20),
    LagDistribution(Fraction(1, 100), 3),
    LagDistribution(Fraction(8), 4),
]
PLACES = [
    FreeSlotDistribution(2),
    FreeSlotDistribution(3),
    FreeSlotDistribution(8),
    FreeSlotDistribution(54),
    FreeSlotDistribution(1000),
]


@pytest.mark.parametrize("law", LAGS, ids=str)
def test_lag_0_is_likelier_and_all_others_are_alike(law):
    listed = dict(law.outcomes(1e-12))
    assert sorted(listed) == list(range(law.window))
    assert math.fsum(listed.values()) == pytest.approx(1, abs=1e-12)
    assert all(listed[lag] == law.pmf(lag) for lag in listed)
    odds = [math.log(law.pmf(0) / law.pmf(lag)) for lag in range(1, law.window)]
    assert odds == pytest.approx([float(law.epsilon)] * (law.window - 1), rel=1e-11)


@pytest.mark.parametrize("law", PLACES, ids=str)
def test_every_place_is_alike(law):
    assert law.outcomes(1e-12) == [(place, 1 / law.choices) for place in range(law.choices)]
    assert (law.pmf(0), law.pmf(law.choices), law.pmf(-1)) == (1 / law.choices, 0.0, 0.0)


SLOTS = [(k, c) for k in range(2, 9) for c in range(1, k + 1)]


@pytest.mark.parametrize(("window", "free"), SLOTS)
def test_free_slots_have_the_stationary_distribution_of_algorithm_1(window, free):
    """Solved in rationals, state by state."""
    exact = reference.free_slots(window, free)
    listed = dict(FreeSlots(window, free).outcomes(0.0))
    assert listed.keys() == {pattern for pattern, mass in exact.items() if mass}
    for pattern, mass in exact.items():
        assert listed.get(pattern, 0.0) == pytest.approx(float(mass), rel=1e-12)
    assert all(sum(pattern) == window - free and pattern[-1] == 0 for pattern in listed)


def test_free_slots_are_some_of_the_window():
    for free in (0, 5, -1):
        with pytest.raises(UsageError, match=f"free={free}: must be from 1 to 4"):
            FreeSlots(4, free)


@pytest.mark.parametrize(
    "law", [noise.Staircase(Fraction(1, 2), 3, 2), noise.DiscreteLaplace(Fraction(4))], ids=str
)
@pytest.mark.parametrize("reach", [1, 5, 40])
def test_what_is_cut_off_is_shared_out(law, reach):
    cut = WindowDistribution(law, reach)
    listed = dict(cut.outcomes(1e-3))  # there is no tail to leave out
    assert sorted(listed) == list(range(-reach, reach + 1))
    assert math.fsum(listed.values()) == pytest.approx(1, abs=1e-12)
    for k in range(-reach, reach + 1):
        assert listed[k] / listed[0] == pytest.approx(law.pmf(k) / law.pmf(0))
    assert cut.pmf(reach + 1) == cut.pmf(-reach - 1) == 0


# what they draw


def as_cells(sample, outcomes):
    """How often each outcome came up, all of which are listed."""
    return np.bincount(sample, minlength=len(outcomes)), [mass for _, mass in outcomes]


@pytest.mark.parametrize("law", [LAGS[0], LAGS[1], LAGS[2], *PLACES[:4]], ids=str)
def test_lags_and_places_are_drawn_as_they_say(law, seed):
    sample = law.sample(words(DRAWS, seed=seed))
    counts, masses = as_cells(sample, law.outcomes(1e-12))
    assert_cells(counts, masses, detects=stated(0.014))


def test_the_lags_of_a_large_budget_are_drawn_as_they_say(seed):
    """One in fifty is late: the count detects a deviation of 6 % in a million draws."""
    law = LagDistribution(Fraction(5), 4)
    late = int((law.sample(words(DRAWS, seed=seed)) > 0).sum())
    assert_proportion(late, DRAWS, 1 - law.pmf(0), detects=stated(0.0625))


@pytest.mark.parametrize("law", [FreeSlots(4, 2), FreeSlots(5, 3), FreeSlots(6, 2)], ids=str)
def test_free_slots_are_drawn_as_they_say(law, seed):
    draws = DRAWS // 4
    sample = law.sample(words(draws, seed=seed))
    listed = dict(law.outcomes(0.0))
    found, counts = np.unique(sample, axis=0, return_counts=True)
    seen = dict(zip(map(tuple, found.tolist()), counts.tolist(), strict=True))
    assert seen.keys() <= listed.keys()
    likely = [pattern for pattern, mass in listed.items() if mass * draws > 120]
    cells = [seen.get(pattern, 0) for pattern in likely]
    masses = [listed[pattern] for pattern in likely]
    if len(likely) < len(listed):
        cells, masses = [*cells, draws - sum(cells)], [*masses, 1 - math.fsum(masses)]
    if masses[-1] * draws < 120:
        cells, masses = [*cells[:-2], sum(cells[-2:])], [*masses[:-2], sum(masses[-2:])]
    assert_cells(cells, masses, detects=stated(0.03))


@pytest.mark.parametrize(
    "law",
    [
        WindowDistribution(noise.Staircase(Fraction(1, 2), 3, 2), 6),
        WindowDistribution(noise.DiscreteLaplace(Fraction(3)), 2),
        WindowDistribution(noise.Staircase(Fraction(1), 1, 1), 1),
    ],
    ids=str,
)
def test_cut_noise_is_drawn_as_it_says(law, seed):
    draws = DRAWS // 2
    sample = law.sample(words(draws, seed=seed))
    assert np.abs(sample).max() == law.reach
    listed = law.outcomes(0.0)
    counts = np.bincount(sample + law.reach, minlength=2 * law.reach + 1)
    assert_cells(counts, [mass for _, mass in listed], detects=stated(0.02))


def test_ties_put_rows_in_every_order_alike(seed):
    """Rows three by three, all six orders of them; and the first and last bit of a word."""
    draws = DRAWS // 3
    sample = TieDistribution().sample(words(3 * draws, seed=seed)).reshape(draws, 3)
    assert sample.min() >= 0
    order = np.argsort(sample, axis=1) @ np.array([9, 3, 1])
    _, codes = np.unique(order, return_inverse=True)
    high, low = sample[:, 0] >> 62, sample[:, 0] & 1
    assert_cells(np.bincount(codes, minlength=6), [1 / 6] * 6, detects=stated(0.018))
    assert_cells(np.bincount(2 * high + low, minlength=4), [1 / 4] * 4, detects=stated(0.018))


def test_a_draw_for_some_rows_is_that_of_all_rows(rng):
    """A row has its own words, whatever it is drawn together with."""
    rows = np.flatnonzero(rng.random(500) < 0.3)
    for law in (
        LAGS[1],
        PLACES[1],
        TieDistribution(),
        WindowDistribution(noise.DiscreteLaplace(Fraction(3)), 2),
    ):
        whole = law.sample(words(500))
        assert (law.sample(words(500).rows(rows)) == whole[rows]).all()


# where 32 digits do not decide


class HalfScripted(Scripted):
    """Halves of words as well: the first 32 digits of each row."""

    def __init__(self, *given, halves=None, **named):
        super().__init__(*given, **named)
        self.halves = {} if halves is None else halves

    def read_half(self, stream_index=0):
        taken = self.words.read_half(stream_index).copy()
        for row, digits in self.halves.items():
            taken[row] = digits
        return taken


def real_cuts(law, bits):
    """Each boundary between two outcomes as bounds of so many digits, from its formula."""
    with localcontext() as context:
        context.prec = bits // 3 + 40
        if isinstance(law, FreeSlotDistribution):
            cuts = [Decimal(i) / law.choices for i in range(1, law.choices)]
        else:
            rate = Decimal(law.epsilon.numerator) / law.epsilon.denominator
            fall = (-rate).exp()
            cuts = [
                (1 + lag * fall) / (1 + (law.window - 1) * fall) for lag in range(law.window - 1)
            ]
        return [int((cut * (1 << bits)).to_integral_value(rounding="ROUND_FLOOR")) for cut in cuts]


EDGES = (1, 1 << 30, 1 << 64, 1 << 90, 1 << 127, 1 << 128)


@pytest.mark.parametrize(
    "law", [LAGS[0], LAGS[1], LAGS[3], FreeSlotDistribution(3), FreeSlotDistribution(7)], ids=str
)
def test_numbers_that_begin_like_a_boundary_are_decided_by_more_digits(law):
    """Numbers of 192 digits a little below and above each boundary, the first 32 shared."""
    halves, script, expected, shared = {}, {}, [], 0
    for cell, cut in enumerate(real_cuts(law, 192)):
        for number in [cut - edge for edge in EDGES] + [cut + 1 + edge for edge in EDGES]:
            row = len(expected)
            expected.append(cell if number <= cut else cell + 1)
            halves[row] = number >> 160
            shared += number >> 160 == cut >> 160
            first = number >> 96 & ((1 << 64) - 1)  # of which 32 digits are read
            write(script, (0,), 0, row, first)
            for lane, word in enumerate(split(number & ((1 << 128) - 1), 2)):
                write(script, (0, 0), lane, row, word)
    assert shared == len(expected), "all of them are on the edge"
    source = HalfScripted(words(len(expected)), script, halves=halves)
    assert law.sample(source).tolist() == expected
    drawn = law.halves(source)
    unsure = np.empty(len(expected), dtype=np.intp)
    cells = np.empty(len(expected), dtype=np.int64)
    assert order_laws.all_cells(drawn.digits, drawn.floors, cells, unsure) == len(expected)


@pytest.mark.parametrize("above", [0, 1, 1 << 60])
def test_a_boundary_just_above_32_digits_is_not_taken_for_the_number_below(above):
    """The bound of its first 64 digits is one too low, and so is the half that it begins with."""
    begins = 3 << 29
    cut = ExactReal(lambda: (Decimal(begins << 224) + above) / (1 << 256))
    assert cut.bounds(64)[0] >> 32 == begins - 1
    cells = order_laws.EvenCells(Thresholds([cut]))
    assert cells.floors.tolist() == [-1, begins - (above == 0), 1 << 32]


@pytest.mark.parametrize("law", [*LAGS, *PLACES], ids=str)
def test_digits_that_decide_are_never_in_doubt_and_always_right(law, rng):
    """The quick guess against a search among the boundaries, at their edges and at random."""
    cuts = np.array(real_cuts(law, 32), dtype=np.int64)
    near = (cuts[:, None] + np.arange(-2, 3)).ravel()
    digits = np.concatenate([near, rng.integers(0, 1 << 32, 2000), [0, (1 << 32) - 1]])
    digits = np.clip(digits, 0, (1 << 32) - 1)
    halves = dict(enumerate(digits.tolist()))
    drawn = law.halves(HalfScripted(words(len(digits)), {}, halves=halves))
    cells = np.empty(len(digits), dtype=np.int64)
    unsure = np.empty(len(digits), dtype=np.intp)
    count = order_laws.all_cells(drawn.digits, drawn.floors, cells, unsure)
    doubted = np.zeros(len(digits), dtype=bool)
    doubted[unsure[:count]] = True
    assert (cells[~doubted] == np.searchsorted(cuts, digits[~doubted], side="right")).all()
    # a cut of 32 digits and no more is listed as the number below it
    assert not doubted[~np.isin(digits, [*cuts, *(cuts - 1)])].any()
    assert all(doubted[np.isin(digits, [cut, cut - 1])].any() for cut in cuts)


@pytest.mark.parametrize(("window", "free"), [(5, 3), (6, 2), (40, 13)])
def test_free_slots_on_the_edge_are_decided_by_more_digits(window, free):
    """The first slot is free below S(k-1, c0-1) / S(k, c0), exactly."""
    chance = Fraction(reference.stirling(window - 1, free - 1), reference.stirling(window, free))
    bits, script, expected = 192, {}, []
    cut = chance.numerator * (1 << bits) // chance.denominator
    for number in [cut - edge for edge in EDGES] + [cut + 1 + edge for edge in EDGES]:
        row = len(expected)
        expected.append(int(number > cut))
        first, *more = split(number, 3)
        write(script, (), 0, row, first)
        for lane, word in enumerate(more):
            write(script, (0,), lane, row, word)
    source = Scripted(words(len(expected)), script)
    taken = FreeSlots(window, free).sample(source)
    assert taken[:, 0].tolist() == expected
    assert ((0,), 1) in source.taken, "some needed the third word"
    assert (taken.sum(axis=1) == window - free).all() and not taken[:, -1].any()


def test_words_of_slots_are_taken_from_left_to_right():
    """A later slot is decided given those before it: all ones take what can be taken."""
    script = {}
    for place in range(6):
        write(script, (), place, 0, ONES)
        write(script, (), place, 1, 0)
    taken = FreeSlots(6, 3).sample(Scripted(words(2), script))
    assert taken.tolist() == [[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0]]


def test_a_distribution_for_some_windows_is_not_that_of_others():
    """Equal chances of two windows are kept apart; the numbers of one are those it had before."""
    first = FreeSlots(6, 3).outcomes(0.0)
    FreeSlots(7, 3).outcomes(0.0)
    assert FreeSlots(6, 3).outcomes(0.0) == first


def test_cut_noise_is_drawn_again_from_other_words():
    """A number beyond the reach is not clipped to it."""
    law = WindowDistribution(noise.DiscreteLaplace(Fraction(5)), 2)
    full = law.uncut.sample(words(20_000).substream(0))
    cut = law.sample(words(20_000))
    inside = np.abs(full) <= 2
    assert (cut[inside] == full[inside]).all() and np.abs(cut).max() == 2
    assert len(np.unique(cut[~inside])) == 5


# where the kernel is in doubt

MOVERS = [
    Backward(epsilon=1.0, window=5),
    Forward(epsilon=1.0, window=5),
    Threshold(epsilon=3.5, window=5),
    Threshold(epsilon=1.0, window=5),
    DualThreshold(epsilon=3.5, window=5),
    DualThreshold(epsilon=1.0, window=5),
]


def doubting(self, words):
    """Halves that leave the first cell in doubt, whatever its digits."""
    cells = (
        order_laws._lag_cells(self.epsilon, self.window)
        if isinstance(self, LagDistribution)
        else order_laws._place_cells(self.choices)
    )
    floors = cells.floors.copy()
    floors[0] = 1 << 33
    return Halves(words.read_half(0), floors)


@pytest.mark.parametrize("kind", [float, object], ids=["carried", "apart"])
@pytest.mark.parametrize("mechanism", MOVERS, ids=lambda one: f"{type(one).__name__} {one.epsilon}")
def test_where_halves_leave_a_doubt_all_is_drawn_exactly(mechanism, kind):
    """In the first block and in a later one: rows, statuses and what is remembered stay."""
    rows = np.arange(400).astype(kind)
    results = []
    for way in (None, doubting):
        with (
            mock.patch.object(LagDistribution, "halves", way or LagDistribution.halves),
            mock.patch.object(FreeSlotDistribution, "halves", way or FreeSlotDistribution.halves),
        ):
            stream = mechanism.start(Key.from_seed(5), "a")
            out = [np.ma.filled(stream.push(part), -1).tolist() for part in np.split(rows, [150])]
            results.append((out, stream.state()))
    assert results[0] == results[1]


@pytest.mark.parametrize("mechanism", MOVERS, ids=lambda one: f"{type(one).__name__} {one.epsilon}")
def test_halves_decide_as_exact_draws_do(mechanism):
    """The kernel fed with halves, and with numbers drawn with all their digits."""
    keyed = KeyedNoise([StepRange(Key.from_seed(6).series("laws", "a"), 0, 5000)])
    exact = KeyedNoise(keyed.runs)
    exact.each = lambda law, purpose: law.sample(Keystream(keyed.runs, purpose))
    found = []
    for draw in (keyed, exact):
        state = SeriesState.fresh(mechanism, 1, 5000)
        ages = mechanism.perturb(np.zeros((5000, 0), dtype=np.int64), draw, state)
        found.append((ages.tolist(), state.memory.tolist(), state.status.tolist()))
    assert found[0] == found[1]


# equal random words


def test_rows_with_equal_words_are_told_apart_by_more_of_them():
    """Whole series: words are drawn until no two rows of one key agree in all of them."""
    mechanism, calls = NoisyOrder(epsilon=1.0, window=4), itertools.count()
    real = TieDistribution.sample

    def alike(self, words):
        return np.zeros(words.count, dtype=np.int64) if next(calls) < 2 else real(self, words)

    with mock.patch.object(TieDistribution, "sample", alike):
        draw = KeyedNoise([StepRange(Key.from_seed(7).series("laws", "a"), 0, 200)])
        state = SeriesState.fresh(mechanism, 1, 200)
        ages = mechanism.perturb(np.zeros((200, 0), dtype=np.int64), draw, state)[:, 0]
    assert next(calls) == 3
    keys = draw(mechanism.distribution, "key")
    last = real(TieDistribution(), Keystream(draw.runs, "tie 4"))
    assert (199 - ages).tolist() == reference.sorted_by_key(keys.tolist(), last.tolist())


def test_wide_distributions_join_into_cells():
    """The staircase that moves rows least, as it is drawn by the mechanism itself."""
    law = NoisyOrder(epsilon=2.0, window=6).distribution
    draws = DRAWS // 2
    sample = law.sample(words(draws, "staircase"))
    edges, masses = joined(law.outcomes(1e-12), draws, most=30)
    counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(masses))
    assert_cells(counts, masses, detects=stated(0.025))
