"""What is done with a release afterwards: the steps do what they say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv.errors import DataError, TemprivError
from tempriv.releases import postprocess
from tempriv.releases.postprocess.consistency import ColumnTotals, WindowTotals
from tempriv.releases.postprocess.steps import Monotone, NonNegative, RoundTo, Smooth
from tempriv.releases.release import Release

pytest_plugins = ["tests.support.statistics"]


def released(values, *names, series=None, time=None, errors=None):
    """A release that holds exactly these values, as if the noise had made them."""
    values = np.atleast_2d(np.array(values, dtype=float))
    names = names or tuple(f"value_{i}" if len(values) > 1 else "value" for i in range(len(values)))
    mechanism = tp.Laplace(epsilon=1.0, bounds=((0, 5),) * len(names))
    frame = {name: np.ones(values.shape[1]) for name in names}
    layout = {}
    if series is not None:
        frame["who"], layout["series"] = series, "who"
        frame["day"], layout["time"] = time, "day"
    made = tp.release(pl.DataFrame(frame), mechanism, values=names, **layout)
    table = made.table
    if series is not None:  # releases are in order of series and time
        order = np.lexsort((time, series))
        values = values[:, order]
    for name, column in zip(names, values, strict=True):
        nulls = np.isnan(column)
        table = table.set_column(table.column_names.index(name), name, pa.array(column, mask=nulls))
    about = dict(made.about)
    if errors is not None:
        about["expected_error"] = [
            {**one, "error": error}
            for one, error in zip(about["expected_error"], errors, strict=True)
        ]
    return Release(about, table)


def column(release, name="value"):
    return release.table.column(name).to_numpy()


NAN = np.nan
ALL = [
    Smooth(window=3),
    Smooth(weight=0.25),
    RoundTo(step=0.5),
    NonNegative(),
    Monotone(),
    Monotone(decreasing=True),
]


# what the steps do


@pytest.mark.parametrize("window", [2, 3, 5, 24, 100])
def test_a_moving_average_is_that_of_the_steps_about_each(rng, window):
    values = rng.integers(-50, 50, size=40) / 4
    values[[3, 4, 17]] = NAN
    out = column(postprocess.smooth(released(values), window=window))
    for t in range(40):
        near = values[max(t - window // 2, 0) : t + (window - 1) // 2 + 1]
        expected = NAN if np.isnan(values[t]) else np.nanmean(near)
        assert out[t] == pytest.approx(expected, nan_ok=True)


def test_a_constant_is_not_changed_by_averaging():
    out = column(postprocess.smooth(released(np.full(1000, 0.3)), window=7))
    np.testing.assert_allclose(out, 0.3, rtol=1e-12)
    exact = column(postprocess.smooth(released(np.full(1000, 0.375)), window=7))
    assert set(exact) == {0.375}


def test_exponential_smoothing_forgets_at_its_weight(rng):
    values = rng.normal(size=30)
    values[10] = NAN
    out = column(postprocess.smooth(released(values), weight=0.25))
    state = values[0]
    for t in range(1, 30):
        if t != 10:
            state = 0.25 * values[t] + 0.75 * state
            assert out[t] == pytest.approx(state)
    assert np.isnan(out[10])


@pytest.mark.parametrize("step", [0.5, 0.1, 0.3, 2, 10.0])
def test_rounding_gives_the_nearest_multiple_as_it_is_written(rng, step):
    values = rng.normal(0, 20, size=200)
    out = column(postprocess.round_to(released(values), step))
    assert (np.abs(out - values) <= step / 2 * (1 + 1e-9)).all()
    for number in out:
        assert len(repr(float(number)).partition(".")[2]) <= 2, "a trace of binary fractions"
        assert number / step == pytest.approx(round(number / step), abs=1e-9)
    assert not np.signbit(column(postprocess.round_to(released([-0.01, -0.01]), 1.0))).any()


def test_nothing_stays_below_zero(rng):
    values = rng.normal(size=50)
    out = column(postprocess.non_negative(released(values)))
    np.testing.assert_array_equal(out, np.maximum(values, 0))


def test_the_nearest_rising_series_is_found(rng):
    """Against the formula of minima over maxima of averages."""
    values = rng.normal(size=25).cumsum() / 3
    out = column(postprocess.monotone(released(values)))
    n = len(values)
    for t in range(n):
        best = max(min(values[s : e + 1].mean() for e in range(t, n)) for s in range(t + 1))
        assert out[t] == pytest.approx(best)
    assert (np.diff(out) >= 0).all()
    falling = column(postprocess.monotone(released(values), decreasing=True))
    np.testing.assert_allclose(falling, -column(postprocess.monotone(released(-values))))


def test_rising_series_leave_what_rises_and_what_is_missing():
    out = column(postprocess.monotone(released([1, NAN, 3, 2, NAN, 5])))
    np.testing.assert_allclose(out, [1, NAN, 2.5, 2.5, NAN, 5])
    assert np.isnan(column(postprocess.monotone(released([NAN, NAN, 1.0])))[:2]).all()


def test_every_series_is_worked_on_by_itself():
    """Rows of two series, one after the other: neither sees the other."""
    series, time = ["b"] * 3 + ["a"] * 3, [0, 1, 2] * 2
    both = released([9, 9, 9, 3, 2, 1], series=series, time=time)
    np.testing.assert_allclose(column(postprocess.smooth(both, window=3)), [2.5, 2, 1.5, 9, 9, 9])
    np.testing.assert_allclose(column(postprocess.monotone(both)), [2, 2, 2, 9, 9, 9])


def test_interleaved_rows_are_told_apart():
    whole = released([1, 3, 5, 20, 20, 20], series=list("aaabbb"), time=[0, 1, 2] * 2)
    mixed = Release(whole.about, whole.table.take([0, 3, 1, 4, 2, 5]))
    out = column(postprocess.smooth(mixed, window=3))
    np.testing.assert_allclose(out, [2, 20, 3, 20, 4, 20])


def test_only_the_named_columns_change():
    two = released([[-1, 2], [-3, 4]], "a", "b")
    out = postprocess.non_negative(two, columns=["b"])
    assert column(out, "a").tolist() == [-1, 2] and column(out, "b").tolist() == [0, 4]
    assert out.about["after"][0]["sentence"].startswith("b: ")
    with pytest.raises(DataError, match="no value column 'c'; there are a, b"):
        postprocess.non_negative(two, columns=["c"])


# totals


def nearest(values, weights, constraint):
    """The weighted least squares projection onto constraint @ x = 0, by the normal equations."""
    spread = np.diag(1 / np.asarray(weights, float))
    gain = spread @ constraint.T @ np.linalg.pinv(constraint @ spread @ constraint.T)
    return values - gain @ constraint @ values


def test_columns_add_up_and_move_as_little_as_their_noise_allows(rng):
    values, errors = rng.normal(size=(4, 30)), [1.0, 2.0, 0.5, 3.0]
    given = released(values, "x", "y", "z", "all", errors=errors)
    out = postprocess.consistent_totals(given, "all", parts=["x", "y", "z"])
    got = np.stack([column(out, name) for name in ("x", "y", "z", "all")])
    np.testing.assert_allclose(got[:3].sum(axis=0), got[3])
    weights = 1 / np.array(errors) ** 2
    for t in range(30):
        expected = nearest(values[:, t], weights, np.array([[1, 1, 1, -1.0]]))
        np.testing.assert_allclose(got[:, t], expected, atol=1e-12)


def test_a_row_with_a_gap_is_left_alone():
    given = released([[1, NAN], [2, 2], [9, 9]], "x", "y", "all")
    out = postprocess.consistent_totals(given, "all", parts=["x", "y"])
    assert column(out, "y").tolist() == [4, 2] and column(out, "all").tolist() == [7, 9]
    assert np.isnan(column(out, "x")[1])


def test_series_add_up_at_every_time_they_share(rng):
    names = np.repeat(["all", "east", "west"], 5)
    times = np.tile(np.arange(5), 3)
    values = rng.normal(size=15)
    values[7] = NAN  # east, third step
    out = postprocess.consistent_totals(released(values, series=names, time=times), "all")
    got = column(out).reshape(3, 5)
    square = values.reshape(3, 5)
    for t in range(5):
        expected = nearest(square[:, t], np.ones(3), np.array([[-1.0, 1, 1]]))
        np.testing.assert_allclose(got[:, t], square[:, t] if t == 2 else expected)
    with pytest.raises(DataError, match="no series 'north'"):
        postprocess.consistent_totals(released(values, series=names, time=times), "north")


def test_series_are_matched_by_time_and_not_by_row():
    names, times = ["all", "all", "east", "east"], [0, 1, 1, 2]
    given = released([10.0, 4, 2, 7], series=names, time=times)
    out = postprocess.consistent_totals(given, "all")
    assert column(out).tolist() == [10, 3, 3, 7]


@pytest.mark.parametrize("every", [1, 3, 4])
def test_window_sums_are_those_of_their_parts(rng, every):
    """Sums in every row, overlapping; or at the end of each window; or with gaps between."""
    n, window, errors = 17, 3, [1.0, 2.0]
    part, total = rng.normal(size=n), rng.normal(size=n) * 3
    part[8] = NAN
    stands = np.arange(n) % every == window - 1 if every > 1 else np.arange(n) >= window - 1
    total[~stands] = NAN
    given = released([part, total], "hour", "three", errors=errors)
    out = postprocess.consistent_totals(given, "three", parts=["hour"], window=window)
    got_part, got_total = column(out, "hour"), column(out, "three")
    rows, ends = [], []
    for t in range(window - 1, n):
        if stands[t] and not np.isnan(part[t - window + 1 : t + 1]).any():
            row = np.zeros(2 * n)
            row[t - window + 1 : t + 1], row[n + t] = 1, -1
            rows.append(row)
            ends.append(t)
            assert got_total[t] == pytest.approx(got_part[t - window + 1 : t + 1].sum())
    assert rows
    stacked = np.nan_to_num(np.concatenate([part, total]))
    weights = np.repeat([1 / errors[0] ** 2, 1 / errors[1] ** 2], n)
    expected = nearest(stacked, weights, np.array(rows))
    there = ~np.isnan(part)
    np.testing.assert_allclose(got_part[there], expected[:n][there], atol=1e-9)
    np.testing.assert_allclose(got_total[ends], expected[n:][ends], atol=1e-9)
    others = np.setdiff1d(np.flatnonzero(stands), ends)
    np.testing.assert_array_equal(got_total[others], total[others])
    assert np.isnan(got_part[8]) and np.isnan(got_total[~stands]).all()


def test_totals_make_parts_more_precise():
    """Four parts and a total of the same noise: the mean square error of parts falls to 4/5."""
    rng = np.random.default_rng(5)
    noisy = rng.normal(size=(5, 4000))  # the truth is zero everywhere
    given = released(noisy, "a", "b", "c", "d", "all")
    out = postprocess.consistent_totals(given, "all", parts=list("abcd"))
    gain = np.mean([column(out, name) ** 2 for name in "abcd"]) / np.mean(noisy[:4] ** 2)
    assert gain == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Smooth(), "give one of them"),
        (lambda: Smooth(window=3, weight=0.5), "give one of them"),
        (lambda: Smooth(window=1), "window=1: must be a whole number"),
        (lambda: Smooth(weight=1.0), "weight=1.0: must be between"),
        (lambda: RoundTo(step=0.0), "step=0.0: must be > 0"),
        (lambda: RoundTo(step=NAN), "step=nan"),
        (lambda: Monotone(decreasing=1), "decreasing=1"),
        (lambda: ColumnTotals(total="a", parts=("a", "b")), "other than the total"),
        (lambda: ColumnTotals(total="a", parts=()), "at least one"),
        (lambda: ColumnTotals(total="a", parts=("b", "b")), "only once"),
        (lambda: WindowTotals(total="a", part="a", window=2), "two columns"),
        (lambda: WindowTotals(total="a", part="b", window=1), "window=1"),
        (lambda: postprocess.totals("a", None, 3), "window: goes with"),
        (lambda: postprocess.totals("a", ["b", "c"], 3), "window: goes with one column"),
    ],
)
def test_steps_that_cannot_be_meant_are_refused(make, sentence):
    with pytest.raises(TemprivError, match=sentence):
        make()
