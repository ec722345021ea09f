"""What is done with a release afterwards: it does what it says, sees nothing else, and says so."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv import after, spec
from tempriv.after.steps import Monotone, NonNegative, RoundTo, Smooth
from tempriv.after.sums import ColumnTotals, SeriesTotals, WindowTotals
from tempriv.errors import DataRefusal, Refusal
from tempriv.releases import Release, read, sidecar_of
from tempriv.report import page
from tempriv.report_samples import PublicSample
from tempriv.verify import verify

pytest_plugins = ["tests.statistics"]

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5))


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
    out = column(after.smooth(released(values), window=window))
    for t in range(40):
        near = values[max(t - window // 2, 0) : t + (window - 1) // 2 + 1]
        expected = NAN if np.isnan(values[t]) else np.nanmean(near)
        assert out[t] == pytest.approx(expected, nan_ok=True)


def test_a_constant_is_not_changed_by_averaging():
    out = column(after.smooth(released(np.full(1000, 0.3)), window=7))
    np.testing.assert_allclose(out, 0.3, rtol=1e-12)
    exact = column(after.smooth(released(np.full(1000, 0.375)), window=7))
    assert set(exact) == {0.375}


def test_exponential_smoothing_forgets_at_its_weight(rng):
    values = rng.normal(size=30)
    values[10] = NAN
    out = column(after.smooth(released(values), weight=0.25))
    state = values[0]
    for t in range(1, 30):
        if t != 10:
            state = 0.25 * values[t] + 0.75 * state
            assert out[t] == pytest.approx(state)
    assert np.isnan(out[10])


@pytest.mark.parametrize("step", [0.5, 0.1, 0.3, 2, 10.0])
def test_rounding_gives_the_nearest_multiple_as_it_is_written(rng, step):
    values = rng.normal(0, 20, size=200)
    out = column(after.round_to(released(values), step))
    assert (np.abs(out - values) <= step / 2 * (1 + 1e-9)).all()
    for number in out:
        assert len(repr(float(number)).partition(".")[2]) <= 2, "a trace of binary fractions"
        assert number / step == pytest.approx(round(number / step), abs=1e-9)
    assert not np.signbit(column(after.round_to(released([-0.01, -0.01]), 1.0))).any()


def test_nothing_stays_below_zero(rng):
    values = rng.normal(size=50)
    out = column(after.non_negative(released(values)))
    np.testing.assert_array_equal(out, np.maximum(values, 0))


def test_the_nearest_rising_series_is_found(rng):
    """Against the formula of minima over maxima of averages."""
    values = rng.normal(size=25).cumsum() / 3
    out = column(after.monotone(released(values)))
    n = len(values)
    for t in range(n):
        best = max(min(values[s : e + 1].mean() for e in range(t, n)) for s in range(t + 1))
        assert out[t] == pytest.approx(best)
    assert (np.diff(out) >= 0).all()
    falling = column(after.monotone(released(values), decreasing=True))
    np.testing.assert_allclose(falling, -column(after.monotone(released(-values))))


def test_rising_series_leave_what_rises_and_what_is_missing():
    out = column(after.monotone(released([1, NAN, 3, 2, NAN, 5])))
    np.testing.assert_allclose(out, [1, NAN, 2.5, 2.5, NAN, 5])
    assert np.isnan(column(after.monotone(released([NAN, NAN, 1.0])))[:2]).all()


def test_every_series_is_worked_on_by_itself():
    """Rows of two series, one after the other: neither sees the other."""
    series, time = ["b"] * 3 + ["a"] * 3, [0, 1, 2] * 2
    both = released([9, 9, 9, 3, 2, 1], series=series, time=time)
    np.testing.assert_allclose(column(after.smooth(both, window=3)), [2.5, 2, 1.5, 9, 9, 9])
    np.testing.assert_allclose(column(after.monotone(both)), [2, 2, 2, 9, 9, 9])


def test_interleaved_rows_are_told_apart():
    whole = released([1, 3, 5, 20, 20, 20], series=list("aaabbb"), time=[0, 1, 2] * 2)
    mixed = Release(whole.about, whole.table.take([0, 3, 1, 4, 2, 5]))
    out = column(after.smooth(mixed, window=3))
    np.testing.assert_allclose(out, [2, 20, 3, 20, 4, 20])


def test_only_the_named_columns_change():
    two = released([[-1, 2], [-3, 4]], "a", "b")
    out = after.non_negative(two, columns=["b"])
    assert column(out, "a").tolist() == [-1, 2] and column(out, "b").tolist() == [0, 4]
    assert out.about["after"][0]["sentence"].startswith("b: ")
    with pytest.raises(DataRefusal, match="no value column 'c'; there are a, b"):
        after.non_negative(two, columns=["c"])


# totals


def nearest(values, weights, constraint):
    """The weighted least squares projection onto constraint @ x = 0, by the normal equations."""
    spread = np.diag(1 / np.asarray(weights, float))
    gain = spread @ constraint.T @ np.linalg.pinv(constraint @ spread @ constraint.T)
    return values - gain @ constraint @ values


def test_columns_add_up_and_move_as_little_as_their_noise_allows(rng):
    values, errors = rng.normal(size=(4, 30)), [1.0, 2.0, 0.5, 3.0]
    given = released(values, "x", "y", "z", "all", errors=errors)
    out = after.consistent_totals(given, "all", parts=["x", "y", "z"])
    got = np.stack([column(out, name) for name in ("x", "y", "z", "all")])
    np.testing.assert_allclose(got[:3].sum(axis=0), got[3])
    weights = 1 / np.array(errors) ** 2
    for t in range(30):
        expected = nearest(values[:, t], weights, np.array([[1, 1, 1, -1.0]]))
        np.testing.assert_allclose(got[:, t], expected, atol=1e-12)


def test_a_row_with_a_gap_is_left_alone():
    given = released([[1, NAN], [2, 2], [9, 9]], "x", "y", "all")
    out = after.consistent_totals(given, "all", parts=["x", "y"])
    assert column(out, "y").tolist() == [4, 2] and column(out, "all").tolist() == [7, 9]
    assert np.isnan(column(out, "x")[1])


def test_series_add_up_at_every_time_they_share(rng):
    names = np.repeat(["all", "east", "west"], 5)
    times = np.tile(np.arange(5), 3)
    values = rng.normal(size=15)
    values[7] = NAN  # east, third step
    out = after.consistent_totals(released(values, series=names, time=times), "all")
    got = column(out).reshape(3, 5)
    square = values.reshape(3, 5)
    for t in range(5):
        expected = nearest(square[:, t], np.ones(3), np.array([[-1.0, 1, 1]]))
        np.testing.assert_allclose(got[:, t], square[:, t] if t == 2 else expected)
    with pytest.raises(DataRefusal, match="no series 'north'"):
        after.consistent_totals(released(values, series=names, time=times), "north")


def test_series_are_matched_by_time_and_not_by_row():
    names, times = ["all", "all", "east", "east"], [0, 1, 1, 2]
    given = released([10.0, 4, 2, 7], series=names, time=times)
    out = after.consistent_totals(given, "all")
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
    out = after.consistent_totals(given, "three", parts=["hour"], window=window)
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
    out = after.consistent_totals(given, "all", parts=list("abcd"))
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
        (lambda: after.totals("a", None, 3), "window: goes with"),
        (lambda: after.totals("a", ["b", "c"], 3), "window: goes with one column"),
    ],
)
def test_steps_that_cannot_be_meant_are_refused(make, sentence):
    with pytest.raises(Refusal, match=sentence):
        make()


# what a release says of them


@pytest.mark.parametrize("step", ALL, ids=repr)
def test_the_promise_the_id_and_the_receipt_stay(step, tmp_path):
    with tp.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("d", unit=tp.Event(), epsilon=5.0)
        before = tp.release(np.arange(20) % 5, LAPLACE, ledger=ledger, dataset="d")
        out = after.apply(before, [step])
        for key in before.about:
            assert out.about[key] == before.about[key], key
        assert out.guarantee == before.guarantee
        assert out.about["ledger"] is not None
        path = out.write(tmp_path / "out.csv")
        assert all(check.good for check in verify(path, ledger))
        assert ledger.show("d").charges == 1


def test_the_release_before_is_not_touched():
    before = released([3.3, -1.2, 2.0])
    kept, about = column(before).copy(), json.dumps(before.about)
    after.apply(before, ALL)
    np.testing.assert_array_equal(column(before), kept)
    assert json.dumps(before.about) == about


def test_steps_are_listed_in_order_with_the_sentence_on_budgets():
    out = after.round_to(after.non_negative(after.smooth(released([1.0, 2, 3]), window=3)), 0.5)
    kinds = [entry["step"]["is"] for entry in out.about["after"]]
    assert kinds == ["Smooth", "NonNegative", "RoundTo"]
    assert "no budget is won back" in out.about["after_note"]
    assert after.steps_of(out.about) == [Smooth(window=3), NonNegative(), RoundTo(step=0.5)]
    together = after.apply(released([1.0, 2, 3]), after.steps_of(out.about))
    np.testing.assert_array_equal(column(together), column(out))


@pytest.mark.parametrize(
    "step",
    [
        *ALL,
        Smooth(window=3, columns=["a"]),
        ColumnTotals(total="a", parts=["b", "c"]),
        SeriesTotals(total="all", columns=["a"]),
        WindowTotals(total="day", part="hour", window=24),
    ],
    ids=repr,
)
def test_a_step_survives_json(step):
    assert spec.decode(json.loads(json.dumps(spec.encode(step))), after.STEPS) == step


def test_functions_take_nothing_but_a_release_and_public_settings():
    """What is private cannot be handed in: no table, no series, no mechanism, no key."""
    for function in (after.smooth, after.round_to, after.non_negative, after.monotone,
                     after.consistent_totals):  # fmt: skip
        first, *others = inspect.signature(function).parameters.values()
        assert (first.name, first.annotation) == ("release", "Release")
        simple = "int float bool str None Sequence[str] |"
        assert all(set(str(p.annotation).split()) <= set(simple.split()) for p in others)


def test_the_same_release_gives_the_same_bits_whatever_was_private():
    """Two private tables, one release: what comes after cannot tell them apart."""
    outs = []
    for private in (np.zeros(30), np.full(30, 5.0)):
        made = tp.release(private, LAPLACE)
        same = released(np.arange(30.0)).table
        out = after.apply(Release(made.about, same), ALL[:4])
        outs.append(out.table)
    assert outs[0].equals(outs[1])


@pytest.mark.parametrize("kind", ["categories", "places"])
def test_only_numbers_are_worked_on(kind):
    if kind == "categories":
        mechanism = tp.RandomizedResponse(epsilon=1.0, categories=("a", "b"))
        release = tp.release(pl.DataFrame({"x": ["a", "b"]}), mechanism, values="x")
    else:
        mechanism = tp.PlanarLaplace(epsilon=1.0, unit=tp.Near(200), origin=(39.9, 116.4))
        table = pl.DataFrame({"lat": [39.9], "lon": [116.4]})
        release = tp.release(table, mechanism, values=("lat", "lon"))
    with pytest.raises(DataRefusal, match="only releases of numbers"):
        after.smooth(release, window=3)


@pytest.mark.parametrize("column", [["a", "b", "c"], [1, 2, 3]], ids=["text", "numbers"])
def test_exact_values_have_no_noise_to_work_on(column):
    mechanism = tp.BlockShuffle(epsilon=1.0, block=3)
    release = tp.release(pl.DataFrame({"x": column}), mechanism, values="x")
    with pytest.raises(DataRefusal, match="hold exact values"):
        after.smooth(release, window=3)


# files


@pytest.fixture
def files(tmp_path):
    """A release of two series, and what was made of it."""
    hours = np.datetime64("2024-01-01", "us") + np.arange(12) * np.timedelta64(1, "h")
    frame = pl.DataFrame(
        {
            "who": np.repeat(["007", "8"], 12),
            "at": np.tile(hours, 2),
            "kwh": [None if i % 7 == 3 else i % 5 for i in range(24)],
        }
    )
    before = tp.release(frame, LAPLACE, values="kwh", time="at", series="who")
    first = before.write(tmp_path / "before.csv")
    out = after.apply(read(first), [Smooth(window=3), NonNegative(), RoundTo(step=0.1)])
    return first, out.write(tmp_path / "after.csv"), out.write(tmp_path / "after.parquet")


def test_a_file_is_verified_by_doing_the_steps_again(files):
    for path in files[1:]:
        checks = verify(path)
        assert all(check.good for check in checks)
        told = next(check for check in checks if "afterwards" in check.what)
        assert told.found == "3 steps, repeated, with the same values"


def test_without_the_file_before_nothing_is_repeated_and_that_is_said(files):
    first, path, _ = files
    first.write_text(first.read_text() + "x")  # another file than the one that it was made of
    told = next(check for check in verify(path) if "afterwards" in check.what)
    assert told.good and "not at hand" in told.found


def test_everything_but_the_values_stays_as_it_was(files):
    first, path, _ = files
    rows = [[line.split(",")[:2] for line in p.read_text().splitlines()] for p in (first, path)]
    assert rows[0] == rows[1]
    missing = [[line.endswith(",") for line in p.read_text().splitlines()] for p in (first, path)]
    assert missing[0] == missing[1] and sum(missing[0]) == 3


def rewrite(path, change):
    """Change the description, as someone would who wants it to say something else."""
    beside = sidecar_of(path)
    about = json.loads(beside.read_text())
    change(about)
    beside.write_text(json.dumps(about))


@pytest.mark.parametrize(
    "change",
    [
        lambda about: about["after"].pop(),
        lambda about: about["after"].clear(),
        lambda about: about["after"][0].update(sentence="nothing was done"),
        lambda about: about["after"][0]["step"].update(window=5),
        lambda about: about["after"][0]["step"].update({"is": "Sharpen"}),
        lambda about: about["after"][0].pop("step"),
        lambda about: about.update(after="smoothed"),
        lambda about: about.update(after_note="budget was won back"),
        lambda about: about.pop("after"),
        lambda about: about.update(expected_error=[]),
    ],
)
def test_a_description_that_tells_something_else_fails(files, change):
    _, path, _ = files
    rewrite(path, change)
    try:
        checks = verify(path)
    except Refusal:
        return
    assert not all(check.good for check in checks)


def test_values_that_the_steps_do_not_give_fail(files):
    """Even where whoever changed them wrote a fitting checksum."""
    from tempriv.releases import checksum

    _, path, _ = files
    path.write_text(re.sub(r",([\d.]+)$", r",9\1", path.read_text(), count=1, flags=re.MULTILINE))
    rewrite(path, lambda about: about["output"].update(blake2b=checksum(path)))
    told = next(check for check in verify(path) if "afterwards" in check.what)
    assert not told.good and "OTHER values" in told.found


def test_steps_on_steps_are_repeated_from_the_first_file(files, tmp_path):
    again = after.monotone(read(files[1])).write(tmp_path / "again.csv")
    told = next(check for check in verify(again) if "afterwards" in check.what)
    assert told.found == "4 steps, repeated, with the same values"


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        (pl.Date, pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 6), eager=True)),
        (pl.Int64, pl.Series(range(6))),
        (
            pl.Datetime("us", "UTC"),
            pl.datetime_range(
                pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 1, 5), "1h", time_zone="UTC",
                eager=True,
            ),
        ),
    ],
)  # fmt: skip
def test_times_of_every_kind_come_through(tmp_path, column_type, values):
    frame = pl.DataFrame({"at": values.cast(column_type), "v": np.ones(6)})
    first = tp.release(frame, LAPLACE, values="v", time="at").write(tmp_path / "before.csv")
    path = after.smooth(read(first), window=2).write(tmp_path / "after.csv")
    times = [[line.split(",")[0] for line in p.read_text().splitlines()] for p in (first, path)]
    assert times[0] == times[1]
    assert all(check.good for check in verify(path))


def test_the_report_lists_what_was_done(files):
    release = read(files[1])
    text = page(release.about, PublicSample.of(release))
    for entry in release.about["after"]:
        assert entry["sentence"][1:] in text
    assert "no budget is won back" in text and "errors of the noise alone" in text
    before = read(files[0])
    plain = page(before.about, PublicSample.of(before))
    assert "afterwards" not in plain and "errors of the noise alone" not in plain


# the command


@pytest.fixture
def run(run, files):
    """A command beside the releases that it is given."""
    return run


def test_the_command_does_its_steps_in_the_order_of_its_options(run, tmp_path):
    status, out, err = run("after", "before.csv", "calm.csv", "--round", "0.5", "--non-negative",
                           "--smooth", "3", "--monotone")  # fmt: skip
    assert (status, err) == (0, "")
    assert "epsilon = 1" in out and "no budget is won back" in out
    about = json.loads(Path("calm.csv.release.json").read_text())
    kinds = [entry["step"]["is"] for entry in about["after"]]
    assert kinds == ["Smooth", "Monotone", "NonNegative", "RoundTo"]
    assert run("verify", "calm.csv")[0] == 0
    expected = after.apply(read("before.csv"), after.steps_of(about))
    np.testing.assert_array_equal(read("calm.csv").values, expected.values)
    status, out, _ = run("after", "calm.csv", "more.csv", "--smooth-weight", "0.5", "--json")
    assert (status, len(json.loads(out)["after"])) == (0, 5)


def test_the_command_makes_totals_add_up(run):
    status, _, _ = run("after", "before.csv", "sum.csv", "--total", "8")
    assert status == 0
    values = pl.read_csv("sum.csv", schema_overrides={"who": pl.String}).pivot("who", index="at")
    full = values.drop_nulls()
    np.testing.assert_allclose(full["007"], full["8"])


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["before.csv", "out.csv"], 2, "nothing to do: give --smooth"),
        (["before.csv", "before.csv", "--monotone"], 2, "is the input"),
        (["before.csv", "after.csv", "--monotone"], 1, "exists already"),
        (["before.csv", "out.txt", "--monotone"], 2, "must end in .csv or .parquet"),
        (["none.csv", "out.csv", "--monotone"], 1, "no such file"),
        (["bare.csv", "out.csv", "--monotone"], 1, "missing; a release is a file with this one"),
        (["edited.csv", "out.csv", "--monotone"], 1, "was changed since it was released"),
        (["before.csv", "out.csv", "--part", "x"], 2, "go with --total"),
        (["before.csv", "out.csv", "--smooth", "1"], 2, "window=1: must be"),
        (["before.csv", "out.csv", "--smooth", "3", "--smooth-weight", "0.5"], 2, "one of them"),
        (["before.csv", "out.csv", "--monotone", "--column", "x"], 1, "no value column 'x'"),
        (["before.csv", "out.csv", "--total", "x", "--part", "kwh"], 1, "no value column 'x'"),
    ],
)
def test_what_the_command_refuses(run, words, status, sentence):
    Path("bare.csv").write_text("at,v\n0,1\n")
    edited = Path("before.csv").read_text().replace(".", ".0", 1)
    Path("edited.csv").write_text(edited)
    Path("edited.csv.release.json").write_bytes(Path("before.csv.release.json").read_bytes())
    ended, _, err = run("after", *words)
    assert (ended, sentence in err) == (status, True), err
    assert not Path("out.csv").exists()


def test_an_existing_output_is_replaced_by_force(run):
    assert run("after", "before.csv", "after.csv", "--monotone", "--force")[0] == 0
    assert run("verify", "after.csv")[0] == 0
