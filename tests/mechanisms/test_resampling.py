"""Curves through windows: their points by any way of working them out, and where they come out."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tempriv.data.series import EMPTY, RELEASED, Block
from tempriv.mechanisms import late
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.retime import interpolation as resampling
from tempriv.mechanisms.retime._kernels import TOGETHER, bridge
from tempriv.mechanisms.retime.interpolation import (
    INTERPOLATIONS,
    MAX_DIRECT_READINGS,
    Windows,
    basis,
    chirp_points,
    points,
)
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.stream import resume
from tempriv.sampling.keys import Key
from tests.conformance.case_checks import quick, same
from tests.conformance.cases.period import bridged
from tests.reference import period as reference

pytest_plugins = ["tests.support.statistics"]

each = pytest.mark.parametrize("interpolation", INTERPOLATIONS)


# one curve


@each
@pytest.mark.parametrize("n", [3, 4, 5, 8, 13])
def test_a_curve_is_the_one_of_its_definition(interpolation, n, rng):
    readings = rng.normal(size=n)
    at = reference.CURVES[interpolation](readings.tolist())
    times = np.concatenate([np.arange(n), rng.uniform(-2 * n, 2 * n, 30)])
    expected = [at(t) for t in times.tolist()]
    found = points(basis(interpolation, n), readings, times)
    assert np.allclose(found, expected, rtol=0, atol=1e-11)
    assert np.allclose(found[:n], readings, rtol=0, atol=1e-12), "it misses a reading"


@pytest.mark.parametrize("n", [3, 4, 10])
def test_fewer_waves_are_the_slowest_ones(n, rng):
    readings, times = rng.normal(size=n), np.linspace(0, n - 1, 7)
    for waves in range(1, n + 1):
        at = reference.cosine(readings.tolist(), waves)
        found = points(basis("cosine", n, waves), readings, times)
        assert np.allclose(found, [at(t) for t in times.tolist()], rtol=0, atol=1e-12)
    assert np.allclose(points(basis("cosine", n, 1), readings, times), readings.mean())
    # of a window shorter than asked for, all of them
    assert basis("cosine", n, n + 7).coefficients.shape == (n, n)


def test_the_printed_curve_is_no_interpolation():
    """Half way between two readings it is half the sum of all turns: the mean of the window."""
    readings = np.array([0.0, 0, 0, 9, 0, 0])
    half = np.array([0.5, 1.5, 3.5])
    assert np.allclose(points(basis("printed", 6), readings, half), readings.mean(), atol=1e-12)
    assert points(basis("cosine", 6), readings, np.array([2.5]))[0] > 3


@each
@pytest.mark.parametrize("n", [3, 4, 17, MAX_DIRECT_READINGS + 1, 700])
def test_chirps_are_the_points_by_definition(interpolation, n, rng):
    readings = rng.normal(size=n)
    for first, ratio in itertools.product((0.0, 0.4, -3.0), (1e-6, 0.5, 1.0, 1.13, -0.7, 40.0)):
        times = first + ratio * np.arange(1, n - 1)
        expected = points(basis(interpolation, n), readings, times)
        found = chirp_points(basis(interpolation, n), readings, first, ratio)
        assert np.allclose(found, expected, rtol=0, atol=1e-10)


# many windows


def alone(interpolation, rows, firsts, ratios, waves=None):
    """The points of windows, each of which is a series by itself."""
    count, n = rows.shape
    window = n - 2
    mechanism = SamplingPeriod(epsilon=1.0, window=window, tau=1.0, pace="public")
    state = SeriesState.fresh(mechanism, count, n + window, window)
    values = np.full((count, n + window, 1), np.nan)
    values[:, :n, 0] = rows
    windows = Windows(values.reshape(-1, 1), np.zeros((values.size, 0), np.int64), state, window)
    assert len(windows) == count
    found = windows.read(interpolation, firsts, ratios, windows.sums, waves).view(np.float64)
    return found.reshape(count, n + window)[:, window + 1 : -1]


@each
@pytest.mark.parametrize(
    "n", [3, 4, 5, 10, 11, 40, MAX_DIRECT_READINGS, MAX_DIRECT_READINGS + 1, 300]
)
def test_kernels_agree_with_the_definition(interpolation, n, rng):
    """To a billionth of the readings; recurrences of cosines lose most for long windows."""
    count = 2 * TOGETHER + 3 if n < 50 else 6
    rows = rng.normal(size=(count, n)) + rng.normal(0, 9, (count, 1))
    firsts = rng.choice([0.0, 0.3, -2.0], count)
    ratios = rng.choice([1e-4, 0.03, 0.5, 1.0, n / (n - 2), 1.7, -0.4, 9.0], count)
    found = alone(interpolation, rows, firsts, ratios)
    for row, first, ratio, made in zip(rows, firsts, ratios, found, strict=True):
        expected = points(basis(interpolation, n), row, first + ratio * np.arange(1, n - 1))
        most = (1e-10 if n < 50 else 1e-8) * np.abs(row).max()
        assert np.abs(made - expected).max() <= most


@each
@pytest.mark.parametrize("n", [3, 10, MAX_DIRECT_READINGS + 2])
def test_bits_do_not_depend_on_what_is_worked_on_together(interpolation, n, rng):
    count = 2 * TOGETHER + 3
    rows, ratios = rng.normal(size=(count, n)), rng.uniform(0.1, 2, count)
    firsts = rng.normal(size=count)
    whole = alone(interpolation, rows, firsts, ratios)
    for some in (slice(0, 1), slice(5, 9), slice(TOGETHER - 1, count), slice(None, None, -1)):
        # side by side, as they always are: else kernels would be compiled for this alone
        parts = (np.ascontiguousarray(each[some]) for each in (rows, firsts, ratios))
        found = alone(interpolation, *parts)
        assert found.tobytes() == np.ascontiguousarray(whole[some]).tobytes()


def test_waves_are_left_out_of_short_windows_too(rng):
    for waves in (1, 2, 3, 7):
        rows = rng.normal(size=(5, 7))
        found = alone("cosine", rows, np.zeros(5), np.ones(5), waves)
        expected = [[reference.cosine(row, waves)(i) for i in range(1, 6)] for row in rows.tolist()]
        assert np.allclose(found, expected, rtol=0, atol=1e-12)


# gaps


@quick
@given(st.lists(st.none() | st.floats(-1e6, 1e6), min_size=1, max_size=12))
def test_gaps_are_bridged_by_straight_lines(readings):
    data = np.array([[np.nan if one is None else one] for one in readings])
    expected = bridged(data[:, 0].tolist())
    bridge(data, 0)
    assert np.allclose(data[:, 0], expected, rtol=1e-12, atol=1e-9)


@each
def test_a_gap_changes_no_other_window(interpolation, rng):
    rows = rng.normal(size=(5, 9))
    torn = rows.copy()
    torn[2, [0, 3, 4]] = np.nan
    whole = alone(interpolation, rows, np.zeros(5), np.ones(5))
    found = alone(interpolation, torn, np.zeros(5), np.ones(5))
    assert np.array_equal(np.delete(found, 2, 0), np.delete(whole, 2, 0))
    assert np.isnan(found[2, [2, 3]]).all() and not np.isnan(np.delete(found[2], [2, 3])).any()
    over = np.array(bridged(torn[2].tolist()))
    expected = points(basis(interpolation, 9), over, np.arange(1.0, 8))
    assert np.allclose(np.delete(found[2], [2, 3]), np.delete(expected, [2, 3]), atol=1e-12)


# where points come out


def layout(length, window):
    """Which window the point of each row belongs to; None at both ends."""
    found = [None] * length
    for number, (first, count) in enumerate(reference.windows(length, window)):
        found[first + 1 : first + 1 + count] = [number] * count
    return found


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_every_reading_but_the_first_and_the_last_is_a_point_of_one_window(window):
    """Of N readings there are (N - 2) // w windows, and one more of what is left over."""
    mechanism = SamplingPeriod(epsilon=1.0, window=window, tau=1.0, clamp=None)
    for length in range(30):
        numbers = [i // window for i in range(length - 2)]
        assert layout(length, window) == ([None, *numbers, None] if length > 1 else [None] * length)
        rows = np.stack([np.arange(length) % 7.0, np.ones(length)], axis=1)
        stream = mechanism.start(Key.from_seed(length), "a")
        late, rest = stream.push(rows), stream.finish()
        assert len(late) == max(0, length - window), "a row comes out with the one w steps later"
        assert len(late) + len(rest) == length
        told = [
            *np.ma.filled(late, np.nan)[:, 1].tolist(),
            *np.ma.filled(rest, np.nan)[:, 1].tolist(),
        ]
        assert all(map(math.isnan, told[:1] + told[-1:]))
        # one time for a window, and hardly ever the same for two on so fine a grid
        assert len(set(zip(numbers, told[1:-1], strict=True))) == len(set(numbers))
        assert len(set(told[1:-1])) >= len(set(numbers)) - 1


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_what_is_remembered_is_no_more_than_what_can_still_matter(window):
    """Zeros wherever nothing is waiting, so that equal pasts are equal states."""
    mechanism = SamplingPeriod(epsilon=1.0, window=window, tau=1.0, columns=2)
    rows = np.random.default_rng(window).normal(1, 0.1, (40, 3))
    stream = mechanism.start(Key.from_seed(1), "a")
    n, width = window + 2, 3
    for step in range(1, 40):
        stream.push(rows[step - 1 : step])
        memory = stream._memory[0]
        filled = step if step < 2 else 2 + (step - 2) % window
        values = memory[: 2 * n].view(np.float64).reshape(n, 2)
        assert np.array_equal(values[:filled], rows[step - filled : step, :2])
        assert not values[filled:].any()
        times = memory[2 * n : 3 * n]
        assert not times[filled:].any() and times[:filled].all()
        waiting = memory[width * n : width * n + 2 * window].view(np.float64).reshape(window, 2)
        out = step - window - 1  # points that are out, counted over all windows
        place = out % window if out > 0 else 0
        there = range(place, window) if place else range(0)
        assert [bool(row.any()) for row in waiting] == [i in there for i in range(window)]
        assert bool(memory[-1]) == bool(place)


@pytest.mark.parametrize(
    "mechanism",
    [
        SamplingPeriod(epsilon=1.0, window=3, tau=1.0, columns=2),
        SamplingPeriod(
            epsilon=1.0, window=MAX_DIRECT_READINGS + 20, tau=1.0, pace="public", clamp=None
        ),
        SamplingPeriod(epsilon=1.0, window=1, tau=1.0, shift=1.0, interpolation="hermitian"),
        NoisyCurve(epsilon=1.0, bounds=(0, 5), window=5),
    ],
    ids=["two columns", "chirps", "shift", "curve"],
)
def test_long_series_in_many_cuts_and_states(mechanism, rng):
    """More windows than are worked on together, chirps among them; gaps in values and times."""
    count = 700
    rows = np.abs(rng.normal(1, 0.3, (count, mechanism.domain.columns)))
    rows = np.ma.array(rows, mask=rng.random(rows.shape) < 0.1)
    whole_stream = mechanism.start(Key.from_seed(1), "a")
    whole = np.ma.concatenate([whole_stream.push(rows), whole_stream.finish()])
    assert len(whole) == count
    for cuts in ([1, 2, 3, 180, 181, 182, 183, 400], [350], sorted(rng.integers(0, 700, 9))):
        key = Key.from_seed(1)
        stream, parts = mechanism.start(key, "a"), []
        for low, high in itertools.pairwise([0, *cuts, count]):
            parts.append(stream.push(rows[low:high]))
            stream = resume(mechanism, stream.state(), key)
        parts.append(stream.finish())
        assert same(np.ma.concatenate([part for part in parts if len(part)]), whole)


def test_a_long_series_in_one_block_is_worked_on_in_parts_with_the_same_bits(rng):
    mechanism = SamplingPeriod(epsilon=1.0, window=5, tau=1.0, columns=2)
    rows = rng.normal(1, 0.2, (997, 3))

    def made():
        stream = mechanism.start(Key.from_seed(1), "a")
        parts = [stream.push(rows[:10]), stream.push(rows[10:]), stream.finish()]
        return np.ma.concatenate(parts)

    whole = made()
    for size in (1, 7, 64, 987, 988):
        with mock.patch.object(late, "PART", size):
            assert same(made(), whole), f"parts of {size}"


def test_status_and_gaps_of_short_series():
    for window, length in itertools.product((1, 2, 5), range(1, 8)):
        mechanism = SamplingPeriod(epsilon=1.0, window=window, tau=1.0, pace="public")
        stream = mechanism.start(Key.from_seed(3), "a")
        values = np.arange(length, dtype=np.float64)
        blocks = stream.push_block(Block.of(values, "a", 0)), stream.finish_block()
        status = np.concatenate([block.status for block in blocks]).tolist()
        inner = [RELEASED] * (length - 2)
        assert status == ([EMPTY, *inner, EMPTY] if length > 1 else [EMPTY])
        made = np.concatenate([block.values for block in blocks])
        assert not made[np.array(status) == EMPTY].any()


def test_the_choice_of_the_way_is_made_by_the_readings_of_a_window(rng):
    rows = rng.normal(size=(2, MAX_DIRECT_READINGS + 1))
    with mock.patch.object(resampling, "chirp_points", side_effect=chirp_points) as used:
        alone("cosine", rows, np.zeros(2), np.ones(2))
        assert used.call_count == 2
        alone("cosine", rows[:, :MAX_DIRECT_READINGS], np.zeros(2), np.ones(2))
        assert used.call_count == 2
