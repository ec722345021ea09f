"""Noise that is smoothed over groups: more than all mechanisms must do."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.audit import exact
from tempriv.errors import UsageError
from tempriv.mechanisms.adaptive._pegasus_kernels import rounded_down
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, Event, Person, WholeSeries, Window
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import quick, recorded
from tests.conformance.cases import NAMED
from tests.conformance.cases.pegasus import (
    HARD,
    group_law,
    hard_groups_are_hidden,
    loss_of,
    released,
)
from tests.reference.pegasus import deviation
from tests.support.statistics import COMPILED

pytest_plugins = ["tests.support.statistics"]

SMOOTHINGS = ("mean", "median", "james-stein")


def counts(**other):
    return PeGaSus(**{"epsilon": 1.0, "bounds": (0, 500), "unit": Contribution(), **other})


def surely(**other):
    """So little noise that there is none."""
    return counts(**{"epsilon": 1e6, "theta": 10.0, **other})


def through(mechanism, rows, seed=1):
    return np.asarray(mechanism.start(Key.from_seed(seed), "a").push(rows))


# why it holds


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_reading_moves_the_sum_of_distances_by_less_than_twice_as_much(size):
    """2 R (n - 1) / n at most, which is met; in full steps, as tests are made, 2 R at most."""
    met = Fraction(0)
    for group in itertools.product(range(4), repeat=size):
        for value in range(4):
            other, change = (value, *group[1:]), abs(value - group[0])
            one, two = deviation(group), deviation(other)
            assert abs(one - two) <= Fraction(2 * change * (size - 1), size)
            assert abs(math.floor(one) - math.floor(two)) <= 2 * change
            met = max(met, abs(one - two))
    assert met == Fraction(2 * 3 * (size - 1), size)
    assert size < 3 or math.floor(deviation((3, 0, 0))) - math.floor(deviation((2, 0, 0))) == 2


def test_more_readings_move_it_by_no_more_than_each_of_them():
    for group, other in itertools.product(itertools.product((0, 1, 3), repeat=4), repeat=2):
        change = sum(abs(x - y) for x, y in zip(group, other, strict=True))
        assert abs(deviation(group) - deviation(other)) <= 2 * change


def test_it_goes_up_at_one_test_and_down_at_the_next_for_counts_too():
    """So that the cheaper tests for values that all change the same way are not for groups."""
    stream, more = (0, 4, 3, 9), (0, 4, 4, 9)
    up, down = (deviation(more[:n]) - deviation(stream[:n]) for n in (3, 4))
    assert up > 0 > down


UNITS = [
    (Event(), 1),
    (Window(7), 7),
    (Contribution(), 1),
    (Contribution(per_step=3), 3),
    (Contribution(Window(7), per_step=2), 14),
    (Contribution(Window(7), per_step=2, total=5), 5),
]


@pytest.mark.parametrize(("unit", "change"), UNITS, ids=str)
@pytest.mark.parametrize("columns", [1, 3])
def test_noise_and_groups_cost_epsilon_together(unit, change, columns):
    """The threshold of a group moves by 2 R and its last test by twice that, for all it changes."""
    mechanism = PeGaSus(epsilon=0.7, bounds=((0, 4),) * columns, unit=unit, share=0.3)
    counted = isinstance(unit, Contribution)
    cost = Fraction(0)
    for j, one in enumerate(mechanism.plans):
        # a person adds it to one column, whichever; numbers change in all of them
        moved = (change if j == 0 else 0) if counted else change * mechanism.plans[j].group.width
        moved = Fraction(moved) / (Fraction(mechanism.grid[j]) if counted else 1)
        cost += moved / one.noise.scale + 2 * moved / one.limit.scale + 4 * moved / one.test.scale
    assert cost == Fraction(0.7)


@pytest.mark.parametrize("window", [2, 8])
def test_the_form_for_windows_is_the_one_for_events_at_a_part_of_epsilon(window):
    local = PeGaSus(epsilon=4.0, bounds=(0, 5), unit=Window(window))
    assert local.plans == PeGaSus(epsilon=4.0 / window, bounds=(0, 5), grid=local.grid).plans
    assert local.guarantee.loss.epsilon == 4.0 and local.guarantee.unit == Window(window)


# what it costs, exactly


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_two_readings_stay_within_epsilon_however_they_are_smoothed(smoothing):
    """Several noisy readings lead to one output: what a listing left out is held against it."""
    mechanism = replace(NAMED["pegasus, event"].mechanism, epsilon=8.0, smoothing=smoothing)
    laws = {
        one: exact.distribution(mechanism, one, 1e-4) for one in itertools.product((0, 1), repeat=2)
    }
    worst = 0.0
    for one, other in itertools.permutations(laws, 2):
        if mechanism.unit.are_neighbors(one, other):
            unseen = 1 - math.fsum(laws[other].values())
            ratios = (p / (laws[other].get(output, 0) + unseen) for output, p in laws[one].items())
            worst = max(worst, math.log(max(ratios)))
    assert 0.5 * mechanism.epsilon < worst < 0.65 * mechanism.epsilon


def worst_of_groups(mechanism, stream_values, length, tail):
    """The largest loss by groups alone over all streams of these values and their neighbors."""
    streams = list(itertools.product(stream_values, repeat=length))
    laws = {one: group_law(mechanism, one, tail) for one in streams}
    assert all(math.isclose(sum(law.values()), 1, abs_tol=10 * tail) for law in laws.values())
    found = 0.0
    for one in streams:
        for other in mechanism.unit.neighbors(one, stream_values):
            for groups, mass in laws[one].items():
                found = max(found, math.log(mass / laws[other][groups]))
    return found


@pytest.mark.parametrize("longest", [2, 256])
def test_groups_of_five_readings_tell_no_more_than_their_part(longest):
    mechanism = counts(epsilon=16.0, unit=Contribution(per_step=2), share=0.5, longest=longest)
    found = worst_of_groups(mechanism, (0, 2), 5, 1e-5)
    assert 0.05 * 8 < found < 0.4 * 8


def test_a_window_that_ends_a_group_and_begins_the_next_tells_no_more_than_its_part():
    """Its first readings close one group and the others are in another: both are paid for."""
    unit = Contribution(Window(3), per_step=2)
    mechanism = counts(epsilon=48.0, unit=unit, share=0.5)
    found = worst_of_groups(mechanism, (0, 2), 5, 1e-5)
    assert 0.1 * 24 < found < 0.4 * 24


def test_hard_groups_tell_a_good_part_of_what_is_promised():
    case = NAMED["pegasus, hard counts"]
    hard_groups_are_hidden(case)
    losses = [loss_of(case.mechanism, *one) for one in HARD]
    assert 0.4 < max(losses) / (case.mechanism.epsilon * case.mechanism.share) < 0.75


# what it does


GAPPY = ["counts", "calm counts by their median", "numbers in unlike columns"]


@pytest.mark.parametrize("name", GAPPY)
def test_gaps_are_passed_over_as_the_definition_says(name):
    """A group goes on after a missing reading, which takes no part; to the last bit."""
    case = NAMED[f"pegasus, {name}"]
    rows = case.gappy(400 if COMPILED else 150, "gaps in the reference")
    with recorded() as drawn:
        out = case.release(rows, case.key(1))
    expected = case.released(rows, [one.values for one in drawn])
    there = ~np.ma.getmaskarray(rows)
    assert np.array_equal(np.ma.getmaskarray(out), ~there)
    assert np.array_equal(np.asarray(out)[there], expected[there])


def streams(rng, count):
    steps = np.arange(count)
    yield "calm", np.full(count, 77.0)
    yield "Poisson", rng.poisson(40, count).astype(float)
    yield "rising", np.minimum(steps // 3, 500).astype(float)
    yield "two levels", np.where(rng.random(count) < 0.5, 10.0, 90.0)
    yield "one far away", np.where(steps % 50 == 7, 499.0, 100.0)
    yield "any", rng.integers(0, 501, count).astype(float)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("longest", [2, 40])
def test_every_kind_of_stream_comes_out_as_the_definition_says(smoothing, longest, rng):
    for name, stream in streams(rng, 300):
        for theta in (5.0, 150.0, 5000.0):
            mechanism = counts(smoothing=smoothing, longest=longest, theta=theta)
            with recorded() as drawn:
                out = through(mechanism, stream)
            expected = released(mechanism)(stream[:, None], [one.values for one in drawn])
            assert np.array_equal(out, expected[:, 0]), (name, theta)


def test_a_reading_that_fails_stands_alone_and_the_next_begins_a_group():
    rows = np.array([4.0, 6, 5, 50, 51, 53, 90, 20, 20])
    #               a group  alone  a group  alone  a group
    made = [4, 5, 5, 50, 51, 52, 90, 20, 20]
    assert through(surely(), rows).tolist() == made


@pytest.mark.parametrize(
    ("smoothing", "expected"),
    [
        ("mean", [4, 5, 6, 6.5]),
        ("median", [4, 5, 6, 7]),
        ("james-stein", [4, 5.5, 20 / 3, 6.875]),
    ],
)
def test_what_stands_for_a_reading_is_made_of_its_group_so_far(smoothing, expected):
    out = through(surely(smoothing=smoothing, theta=1000.0), np.array([4.0, 6, 8, 8]))
    assert out == pytest.approx(expected, abs=1 / 2048)
    assert ((out * 1024) % 1 == 0).all(), "outputs lie on a grid"


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_it_is_the_same_wherever_the_bounds_are(smoothing, rng):
    rows = rng.poisson(40, 500).astype(float)
    for far in (-(2.0**40), 2.0**40):
        with recorded() as drawn:
            out = through(counts(smoothing=smoothing, bounds=(far, far + 500)), rows + far)
        near = released(counts(smoothing=smoothing))(rows[:, None], [one.values for one in drawn])
        assert np.array_equal(out - far, near[:, 0])


def test_groups_end_at_their_public_length():
    out = through(surely(longest=3, theta=1000.0), np.array([1.0, 2, 3, 7, 8, 9, 9]))
    assert out.tolist() == [1, 1.5, 2, 7, 7.5, 8, 9]


def test_columns_have_groups_of_their_own():
    mechanism = surely(bounds=((0, 500), (0, 500)))
    rows = np.array([[4.0, 80], [6, 20], [5, 21], [60, 23], [60, 22]])
    assert through(mechanism, rows).tolist() == [[4, 80], [5, 20], [5, 21], [60, 22], [60, 22]]


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_nothing_of_a_closed_group_is_remembered(smoothing):
    for rows, kept in (([4.0, 5, 6], False), ([4.0, 5, 90], False), ([4.0, 5], True)):
        stream = surely(longest=3, smoothing=smoothing).start(Key.from_seed(1), "a")
        stream.push(np.array(rows))
        assert stream._memory.any() == kept


def test_a_state_that_says_what_cannot_be_leads_nowhere_else():
    """Whatever numbers it remembers, the kernel stays within its slots."""
    mechanism = counts(smoothing="median", longest=4)
    for junk in (2**40, -(2**40), 4, 10**6):
        stream = mechanism.start(Key.from_seed(1), "a")
        around = np.zeros((3, mechanism.memory_size), dtype=np.int64)
        around[1] = junk
        stream._memory = around[1:2]
        assert np.isfinite(stream.push(np.full(30, 5.0))).all()
        assert not around[[0, 2]].any()


@quick
@given(st.integers(-(2**61), 2**61), st.integers(1, 2**33))
def test_division_is_exact(part, whole):
    assert rounded_down(part, whole) == part // whole


# what it is worth


class Marked:
    """Makes noisy readings of running numbers, which tell groups from each other; the noise of
    groups is numpy's."""

    def __init__(self, rng, readings):
        self.rng, self.readings = rng, readings

    def __call__(self, law, purpose, rows=None):
        return np.arange(len(self.readings)) - self.readings

    def each(self, law, purpose):
        ratio = math.exp(-1 / float(law.scale))
        one, other = (self.rng.geometric(1 - ratio, len(self.readings)) for _ in range(2))
        return one - other


def lengths_of_groups(mechanism, readings, rng):
    """Of those that do not consist of a reading that closed the one before."""
    state = SeriesState.fresh(mechanism, 1, len(readings))
    out = mechanism.perturb(readings[:, None], Marked(rng, readings), state)[:, 0]
    # in a group of n so far, the mean of running numbers is (n - 1) / 2 behind
    behind = np.arange(len(readings)) - out / mechanism.plans[0].group.fineness
    lengths, is_open = [], False
    for size in (np.rint(2 * behind).astype(int) + 1).tolist():
        if is_open and size == 1:
            is_open = False  # it closes the group before it, and stands by itself
            continue
        if not is_open:
            lengths.append(0)
        lengths[-1] = size
        is_open = size < mechanism.longest
    return lengths


ROWS = 200_000 if COMPILED else 20_000


@pytest.mark.parametrize("theta", [25.0, 60.0])
def test_groups_of_a_calm_stream_are_as_long_as_stated(theta, rng):
    """Within 5 standard errors (alpha 6e-7); detects lengths that are off by 7 %."""
    mechanism = counts(theta=theta)
    lengths = lengths_of_groups(mechanism, np.full(ROWS, 7), rng)
    found, error = np.mean(lengths), np.std(lengths) / math.sqrt(len(lengths))
    assert abs(found - mechanism.calm_length) < 5 * error
    assert 5 * error < (0.07 if COMPILED else 0.25) * found


def test_groups_hardly_see_anything_where_a_reading_may_be_any_other(rng):
    """Up and down at every step: groups of counts are short then, those of numbers are not."""
    local = PeGaSus(epsilon=1.0, bounds=(0, 5))
    readings = np.tile([0, local.plans[0].group.width], ROWS // 2)
    assert np.mean(lengths_of_groups(local, readings, rng)) > 0.8 * local.calm_length
    counted = counts()
    readings = np.tile([0, 500], ROWS // 2)
    assert np.mean(lengths_of_groups(counted, readings, rng)) < 0.4 * counted.calm_length


def test_calm_groups_end_at_the_latest_where_they_must():
    assert counts(theta=1e9).calm_length == 256.0
    assert counts(theta=1e9, longest=7).calm_length == 7.0
    assert 1 < counts(theta=1e-9).calm_length < 5


def test_calm_streams_gain_and_restless_ones_lose(rng):
    """Beside Laplace noise for all of epsilon; errors of many readings, fixed seeds."""
    plain = Laplace(epsilon=1.0, bounds=(0, 500), unit=Contribution())
    rows = 20_000 if COMPILED else 4000
    calm, restless = np.full(rows, 100.0), rng.integers(0, 500, rows).astype(float)

    def error(mechanism, stream):
        return np.abs(through(mechanism, stream) - stream).mean()

    for smoothing in SMOOTHINGS:
        published, patient = (counts(smoothing=smoothing, theta=x) for x in (None, 150.0))
        assert error(patient, calm) < 0.4 * error(plain, calm)
        assert error(patient, calm) < 0.5 * error(published, calm) < 0.5 * error(plain, calm)
        assert error(plain, restless) < error(published, restless)


# refusals


@pytest.mark.parametrize("unit", [WholeSeries(9), Contribution(WholeSeries(9)), Person(2, Event())])
def test_units_with_an_end_are_refused(unit):
    with pytest.raises(UsageError, match=r"must be Event\(\) or Window\(w\)"):
        counts(unit=unit)


@pytest.mark.parametrize(
    "given",
    [
        {"theta": 1e19},
        {"epsilon": 1e-11},
        {"unit": Contribution(Window(10**12))},
        {"unit": Event(), "grid": 2.0**-42},
        {"bounds": (2**45, 2**45 + 500)},
        {"smoothing": "james-stein", "longest": 2**16, "unit": Event(), "grid": 2.0**-18},
    ],
)
def test_what_does_not_fit_into_whole_numbers_is_refused(given):
    with pytest.raises(UsageError, match="choose a coarser grid, shorter groups"):
        counts(**given)
