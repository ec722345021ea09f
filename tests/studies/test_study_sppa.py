"""The study of sampling periods: a small one on made-up data, and the real one where data are."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.studies import sppa
from tempriv.studies.common import run_mechanism
from tempriv.studies.sppa import cleaning, events, segments
from tempriv.studies.sppa import data as sppa_data
from tempriv.studies.sppa.experiment import (
    CLAMPED,
    ETM,
    MEAN,
    PEGASUS,
    SPPA,
    THEIRS,
    SppaSize,
    errors_of,
    joined,
    sized,
    ways,
    window_mean,
)
from tempriv.studies.sppa.figures import LOOKS, PICTURES
from tempriv.studies.sppa.segmentation import change_f1, changes
from tests.support.reproducing import run
from tests.support.stand_ins import sppa_inputs
from tests.support.statistics import COMPILED

SMALL = SppaSize(
    trips=6,
    segments=6,
    gazes=6,
    frames=120,
    streams=1,
    clustered=1,
    cleaned=8,
    runs=2,
    taus=(0.2, 2.0),
    epsilons=(1.0, 3.0),
    windows=(4, 20),
    budgets=(0.25, 1.0),
)
TABLES = {
    *("figure-1", "figure-1-trips", "interpolations", "figure-4", "figure-5", "figure-6"),
    *("figure-7", "figure-8", "figure-8-curves", "table-1"),
}


@pytest.fixture(scope="module")
def inputs():
    return sppa_inputs(series=8, steps=120)


@pytest.fixture(scope="module")
def made(inputs):
    if not COMPILED:
        pytest.skip("some hundred runs of every mechanism: too long as plain Python")
    return sppa.STUDY.run(inputs, SMALL)


# parts


def test_every_way_releases_a_slot_for_each_reading_and_the_same_again(inputs):
    for data in inputs.all:
        data = data.some(3)
        for name, way in ways(data, 1.0, 8).items():
            found = way.run(data.series, 1)
            assert [one.shape for one in found] == [one.shape for one in data.series], name
            again = way.run(data.series, 1)
            assert all(np.ma.allequal(a, b) for a, b in zip(found, again, strict=True)), name
            other = way.run(data.series, 2)
            same = all(np.ma.allequal(a, b) for a, b in zip(found, other, strict=True))
            assert same == (name == MEAN), name


def test_no_way_changes_what_it_is_given(inputs):
    data = inputs.phone.some(2)
    before = [one.copy() for one in data.series]
    for way in ways(data, 1.0, 8).values():
        way.run(data.series, 1)
    assert all((a == b).all() for a, b in zip(before, data.series, strict=True))


def test_series_have_noise_of_their_own(inputs):
    same = [inputs.porto.series[0]] * 3
    for name in (SPPA, ETM, PEGASUS):
        one, other, _ = ways(inputs.porto, 1.0, 8)[name].run(same, 1)
        assert not np.ma.allequal(one, other), name


def test_what_protects_is_told_by_the_guarantee(inputs):
    made = ways(inputs.gaze, 1.0, 8)
    for name in (SPPA, CLAMPED, MEAN):
        assert made[name].protects.startswith("nothing"), name
    assert made[ETM].protects == "when one slot was read, seen alone"
    assert made[PEGASUS].protects == "any 8 readings in a row"


def test_the_mean_of_a_window_is_in_the_place_of_the_readings_that_a_period_releases():
    series = np.arange(24.0).reshape(12, 2)
    found = window_mean(series, 4)
    assert np.ma.getmaskarray(found)[[0, -1]].all() and not np.ma.getmaskarray(found)[1:-1].any()
    for start, end in ((1, 5), (5, 9), (9, 11)):
        assert (found[start:end] == series[start:end].mean(axis=0)).all()


def test_gaps_are_joined_by_straight_lines():
    held = np.ma.array([[1.0, 0.0], [9.0, 9.0], [5.0, -2.0]], mask=[[0, 0], [1, 1], [0, 0]])
    assert joined(held).tolist() == [[1.0, 0.0], [3.0, -1.0], [5.0, -2.0]]


def printed_window(readings, ratio):
    """Algorithm 1, word for word: the real part of the sum at i T', i = 1 to n - 2."""
    n = len(readings)
    coefficients = np.fft.fft(readings)
    return [
        (sum(coefficients[k] * np.exp(2j * np.pi * k / n * i * ratio) for k in range(n)) / n).real
        for i in range(1, n - 1)
    ]


@pytest.mark.skipif(not COMPILED, reason="a hundred thousand windows")
def test_sppa_is_as_wrong_as_its_algorithm_says():
    """Windows of 8 at epsilon 1, tau = T_s: the mean of 40 runs against 4,000 windows of a model.

    Both have their own standard error; six of them together have odds below 1e-8.
    """
    draw = np.random.default_rng(5)
    series = np.sin(np.arange(82) / 5)[:, None] + 0.1 * draw.normal(size=(82, 1))
    data = sppa_data.SppaDataset("gaze", (series,) * 25, 1 / 30, ((-2.0, 2.0),), "screen")
    runs = [errors_of(data, ways(data, 1.0, 8)[SPPA], 8, seed)[0] for seed in range(40)]
    errors = []
    for _ in range(400):
        squares = []
        for start in range(0, 80, 8):
            ratio = draw.laplace(1.0, 1.0)
            readings = series[start : start + 10, 0]
            squares.append(np.mean((printed_window(readings, ratio) - readings[1:-1]) ** 2))
        errors.append(np.mean(squares))
    apart = np.mean(runs) - np.mean(errors)
    spread = np.hypot(np.std(runs) / len(runs) ** 0.5, np.std(errors) / len(errors) ** 0.5)
    assert abs(apart) < 6 * spread < 0.1 * np.mean(errors)


def test_sorting_restores_a_trip_that_only_leads_away():
    mechanism = Threshold(epsilon=1.0, window=8)
    straight = np.stack([np.arange(80.0), np.zeros(80)], axis=1) * 100
    found = cleaning.clean(mechanism, straight, 3)
    assert cleaning.in_order(found.sorted_origins) == 1
    assert cleaning.in_order(found.origins) < 0.9
    slots = np.flatnonzero(~np.ma.getmaskarray(found.released)[:, 0])
    named = np.mean(found.guessed == found.origins)
    assert named > 0.5 > np.mean(slots == found.origins)
    # the same places are there, in the same slots
    kept = np.ma.getmaskarray(found.released)
    assert (np.ma.getmaskarray(found.sorted) == kept).all()
    assert sorted(found.sorted.compressed()) == sorted(found.released.compressed())


def test_velocities_between_all_pairs():
    values = np.random.default_rng(1).normal(size=(9, 2))
    found = events.between_all(values, 2.0)
    for i in range(9):
        for j in range(9):
            expected = np.hypot(*(values[i] - values[j])) / (2 * max(1, abs(i - j)))
            assert found[i, j] == pytest.approx(expected)


def test_who_sees_nothing_scores_all_the_same(inputs):
    """Four activities of 120 steps, six parts of 80: each has one with all of its steps, F1 0.8."""
    (labels, blind, _) = segments.blind_scores(inputs.activities[:1])[0]
    when = changes(inputs.activities[0].labels)
    assert labels == pytest.approx(0.8)
    assert blind == change_f1(when, np.arange(1, 6) * 80, segments.TOLERANCE_STEPS)


# data


def test_made_up_data_are_the_same_again():
    one, other = (sppa_inputs(series=3, steps=50) for _ in range(2))
    for a, b in zip(one.all, other.all, strict=True):
        assert all((x == y).all() for x, y in zip(a.series, b.series, strict=True))
    for data in one.all:
        low, high = np.array(data.bounds).T
        every = np.concatenate(data.series)
        assert (every > low).all() and (every < high).all(), data.name


def test_some_of_the_data_are_spread_over_all(inputs):
    few = sized(inputs.gaze, SMALL)
    assert len(few.series) == 6 and all(len(one) == 120 for one in few.series)
    assert (few.series[0] == inputs.gaze.series[0]).all()
    assert (few.series[-1] == inputs.gaze.series[-1]).all()


def test_data_that_are_not_there_or_not_as_they_should_be_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"porto_trips_points.csv: no such file; give data"):
        sppa_data.read(tmp_path)
    places = tmp_path / "places.csv"
    places.write_text("trip,longitude\n1,2.0\n")
    with pytest.raises(DataError, match="must be a table with columns trip, step, longitude"):
        sppa_data.read_places(places, "trip", (0.0, 0.0), 2)
    broken = tmp_path / "gaze.parquet"
    broken.write_text("no table")
    with pytest.raises(DataError, match="must be a table with columns subject, activity"):
        sppa_data.read_gaze(broken)


def test_places_become_meters_and_jumps_are_left_out(tmp_path):
    path = tmp_path / "places.csv"
    degree = np.degrees(1 / 6_371_008.8)  # of latitude, a meter
    rows = ["trip,step,longitude,latitude"]
    rows += [f"1,{i},10.0,{60 + 100 * i * degree}" for i in (2, 0, 1)]  # in no order
    rows += [f"2,{i},10.0,{60 + 900 * i * degree}" for i in range(3)]  # 216 km/h
    rows += [f"3,{i},{10 + 100 * i * degree},60.0" for i in range(3)]
    rows += ["4,0,10.0,60.0"]
    path.write_text("\n".join(rows))
    north, east = sppa_data.read_places(path, "trip", (10.0, 60.0), 3)
    np.testing.assert_allclose(north, [[0, 0], [0, 100], [0, 200]], atol=0.01)
    np.testing.assert_allclose(east, [[0, 0], [50, 0], [100, 0]], atol=0.01)
    with pytest.raises(DataError, match="a trip of 4 points or more, none faster than 200 km/h"):
        sppa_data.read_places(path, "trip", (10.0, 60.0), 4)


def test_windows_of_a_phone_are_joined_and_halves_that_repeat_are_not_there_twice(tmp_path):
    """Two rounds are a person; the second window of each goes on in the middle of the first."""
    draw = np.random.default_rng(2)
    long = draw.normal(size=(4, 24, 6))
    activities = [5, 5, 1, 5, 5, 1, 5, 5, 1]
    windows = []
    for k in range(3):
        windows += [long[k][:16], long[k][8:24], draw.normal(size=(16, 6))]
    table = {
        "window": np.repeat(np.arange(9), 16),
        "t": np.tile(np.arange(16), 9),
        "activity": np.repeat(activities, 16),
        **{
            name: np.concatenate(windows)[:, i].astype(np.float32)
            for i, name in enumerate(sppa_data.SENSORS)
        },
    }
    path = tmp_path / "phone.parquet"
    pa.parquet.write_table(pa.table(table), path)
    first, second = sppa_data.read_phone(path)
    assert first.labels.tolist() == [5] * 24 + [1] * 16 + [5] * 24 + [1] * 16
    assert second.labels.tolist() == [5] * 24 + [1] * 16
    np.testing.assert_allclose(first.values[:24], long[0], atol=1e-6)


# the whole


def test_every_figure_has_its_table_and_every_line_says_what_is_protected(made):
    assert set(made.tables) == TABLES
    for name, table in made.tables.items():
        assert len(table.lines) > 0
        assert all(len(line) == len(table.columns) for line in table.lines), name
        if name != "figure-1":
            assert all(table.column("protects")), name
        if "mechanism" in table.columns and name not in ("interpolations", "figure-4"):
            assert set(THEIRS) <= set(table.column("mechanism")), name
            assert set(table.column("mechanism")) <= set(LOOKS), name
    for name in ("interpolations", "figure-4", "figure-5", "figure-6", "figure-8", "table-1"):
        assert MEAN in made.tables[name].column("mechanism"), name


def test_the_printed_numbers_stand_in_the_tables(made):
    table = made.tables["table-1"]
    assert table.column("published", mechanism=SPPA) == [0.582, 0.706]
    assert table.column("published", mechanism=PEGASUS) == [0.740, 0.810]
    table = made.tables["figure-8"]
    assert table.column("published", data="gaze", mechanism=ETM) == [0.65]
    assert table.column("published", data="Shenzhen taxis", mechanism=ETM) == [None]


def test_statements_that_need_no_data_are_as_said(made):
    rows = {(row.section, row.what): row for row in made.rows}
    assert len(rows) == len(made.rows) > 100
    for row in made.rows:
        if row.section.startswith("Trends") and "tau" in row.what:
            assert row.is_confirmed, row
    # bounds help on any data
    table = made.tables["interpolations"]
    for data in dict.fromkeys(table.column("data")):
        (free,) = table.column("mse", data=data, epsilon=1.0, mechanism="cosine")
        (clamped,) = table.column("mse", data=data, epsilon=1.0, mechanism="cosine, clamped")
        assert clamped < free


def test_the_files_and_pictures_come_out(made, pictures, tmp_path):
    written = sppa.STUDY.write(tmp_path / "new", made)
    assert {path.name for path in written} == {
        *("sppa.csv", "sppa.md"),
        *(f"{name}.csv" for name in TABLES),
        *(f"{name}.png" for name in PICTURES),
    }
    assert all(path.stat().st_size > 100 for path in written)
    with (tmp_path / "new" / "table-1.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(line["labels"]) for line in read] == made.tables["table-1"].column("labels")
    assert "ranks nothing" in (tmp_path / "new" / "sppa.md").read_text()


def test_progress_is_told(inputs):
    told = []
    empty = replace(sppa.STUDY, tables=lambda inputs, size: iter(()), rows=lambda tables: ())
    empty.run(inputs, SMALL, told.append)
    assert told == ["first table"]


# the command


def test_the_command_says_what_it_needs(tmp_path):
    for arguments, words in (
        (["sppa"], "sppa: needs --data, a folder that holds porto/porto_trips_points.csv"),
        (["sppa", "--data", str(tmp_path)], "porto_trips_points.csv: no such file; give --data"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and words in done.stderr and not done.stdout


@pytest.mark.skipif("TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data")
@pytest.mark.skipif(not COMPILED, reason="hours as plain Python")
@pytest.mark.long
def test_the_real_study_is_as_said(tmp_path):
    folder = Path(os.environ["TEMPRIV_DATA"])
    done = run("sppa", "--data", str(folder), "--output", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) > 100
    assert (tmp_path / "figure-7.png").exists()


@pytest.mark.skipif("TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data")
def test_the_real_data_are_read():
    found = sppa_data.read(Path(os.environ["TEMPRIV_DATA"]))
    assert len(found.porto.series) > 1000 and len(found.shenzhen.series) > 2000
    assert len(found.gaze.series) == 48 and len(found.activities) == 21
    for data in found.all:
        low, high = np.array(data.bounds).T
        every = np.concatenate(data.series)
        outside = ((every < low) | (every > high)).any(axis=1).mean()
        assert outside < 0.01, data.name
    assert all(set(one.labels.tolist()) == {1, 2, 3, 4, 5, 6} for one in found.activities)


@pytest.mark.skipif("TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data")
@pytest.mark.skipif(not COMPILED, reason="half a million readings")
def test_on_real_taxis_a_clamped_cosine_beats_the_window_mean_and_the_printed_curve():
    """Epsilon 1 and 3, both cities. Ratios are 0.6 and less, their standard errors below 0.02."""
    found = sppa_data.read(Path(os.environ["TEMPRIV_DATA"]))
    for data in (found.porto.some(300), found.shenzhen.some(60)):
        for epsilon in (1.0, 3.0):
            made = ways(data, epsilon, 8)
            clamped, mean, printed = (
                np.mean([errors_of(data, made[name], 8, seed)[0] for seed in range(3)])
                for name in (CLAMPED, MEAN, SPPA)
            )
            assert clamped < 0.8 * mean and clamped < 0.8 * printed
            # the mean protects as little, and is nearer to the truth than SPPA as printed
            assert epsilon > 1 or mean < printed


def test_rows_that_are_moved_are_rows_of_the_input(inputs):
    series = [np.column_stack([one, np.arange(len(one))]) for one in inputs.porto.series[:3]]
    for moved, one in zip(
        run_mechanism(Threshold(epsilon=4.0, window=8), series, 1), series, strict=True
    ):
        rows = moved.compressed().reshape(-1, 3)
        assert (one[rows[:, 2].astype(int)] == rows).all() and len(rows) > 60
