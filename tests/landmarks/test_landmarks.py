"""Choosing landmarks: every way against its definition, and refusals that tell no value."""

from __future__ import annotations

import doctest
import itertools
import re

import numpy as np
import pytest

from tempriv.errors import DataError, TemprivError, UsageError
from tempriv.landmarks import _kernels, choose
from tempriv.mechanisms import domains
from tests.reference import dummies as reference
from tests.support.paths import DOCS

pytest_plugins = ["tests.support.statistics"]

# from a column

COLUMNS = {
    "whole numbers": [0, 1, 1],
    "numbers": [0.0, 1.0, 1.0],
    "truth": [False, True, True],
    "digits": ["0", "1", " 1 "],
    "words": ["false", "True", "TRUE"],
    "answers": ["no", "yes", "Yes"],
    "mixed": np.array([0, True, "yes"], dtype=object),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_marks(name):
    chosen = choose.from_column(COLUMNS[name])
    assert chosen.marks.dtype == bool
    assert chosen.marks.tolist() == [False, True, True]
    assert chosen.count == 2 and chosen.share == pytest.approx(2 / 3)
    assert not chosen.from_values
    assert choose.from_column(COLUMNS[name], from_values=True).from_values


@pytest.mark.parametrize(
    "column",
    [[1, 2], [1.0, np.nan], ["yes", "4711"], ["yes", ""], [True, None], ["no", float("nan")]],
    ids=["two", "missing number", "another word", "empty", "none", "missing text"],
)
def test_what_is_no_mark_is_refused_without_being_shown(column):
    with pytest.raises(DataError, match="1 of the 2 marks: the first, number 2, is none of 0, 1"):
        choose.from_column(column)
    try:
        choose.from_column(column)
    except DataError as refusal:
        assert "4711" not in str(refusal)


def test_marks_do_not_show_in_a_repr():
    assert repr(choose.from_column([0, 1])) == "Chosen(a column of marks, from_values=False)"
    assert choose.from_column(np.zeros(0, dtype=bool)).share == 0


# at times


def test_times_of_every_kind():
    days = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]")
    cases = [
        ([3, 5, 8, 8], [8, 3]),
        (days, ["2026-01-01", "2026-01-03", "2026-01-04"]),
        (days.astype("datetime64[us]"), days[[0, 2, 3]]),
        (["a", "b", "c", "d"], ["a", "c", "d"]),
    ]
    for times, wanted in cases:
        chosen = choose.at_times(times, wanted)
        assert chosen.marks.tolist() == [True, False, True, True]
        assert not chosen.from_values
    assert not choose.at_times(days, []).marks.any()


def test_a_time_that_the_series_lacks_is_refused():
    with pytest.raises(DataError, match="2 of the 3 chosen times: the first, number 2, is no"):
        choose.at_times([10, 20, 30], [10, 4711, 40])
    for times, chosen in [([1, 2], ["1"]), (np.array(["2026-01-01"], "datetime64[D]"), ["noon"])]:
        with pytest.raises(DataError, match="different kinds"):
            choose.at_times(times, chosen)


# thresholds and names


def test_thresholds_are_strict_and_pass_over_what_is_missing():
    values = [0.54, 0.28, np.nan, 1.12]
    assert choose.below(values, 0.54).marks.tolist() == [False, True, False, False]
    assert choose.above(values, 0.54).marks.tolist() == [False, False, False, True]
    assert choose.below(values, 1).from_values and choose.above(values, 1).from_values
    assert not choose.below(values, 1, from_values=False).from_values
    with pytest.raises(DataError, match="a column of numbers; for names"):
        choose.above(["secret"], 1)
    for threshold in (np.nan, np.inf, "1"):
        with pytest.raises(UsageError, match="must be finite"):
            choose.below(values, threshold)


def test_names_among_others():
    assert choose.among([3, 1, 3], [3]).marks.tolist() == [True, False, True]
    names = np.array(["ann", None, "bob"], dtype=object)
    assert choose.among(names, {"bob"}).marks.tolist() == [False, False, True]
    assert not choose.among([3, 1], []).marks.any()
    assert choose.among([3, 1], [3]).from_values
    with pytest.raises(DataError, match="write them alike"):
        choose.among([3, 1], ["3"])


def test_the_most_frequent_names_come_near_to_a_share(seed):
    rng = np.random.default_rng(seed)
    contacts = rng.geometric(0.2, 1000)
    nested = [choose.most_frequent(contacts, share) for share in (0, 0.2, 0.4, 0.6, 0.8, 1)]
    assert nested[0] == () and set(nested[-1]) == set(contacts.tolist())
    for fewer, more in itertools.pairwise(nested):
        assert more[: len(fewer)] == fewer
    for share, names in zip((0.4, 0.6, 0.8), nested[2:5], strict=True):
        reached = choose.among(contacts, names).share
        others = [nested[-1][: len(names) + step] for step in (-1, 1)]
        nearest = min(abs(choose.among(contacts, other).share - share) for other in others)
        assert abs(reached - share) <= nearest
    with pytest.raises(UsageError, match="share=2"):
        choose.most_frequent(contacts, 2)


# stay points


def walk(rng, steps):
    """Somebody who goes, stops and goes on; some places come twice."""
    speed = rng.choice([0.0, 1e-5, 3e-4], size=(steps, 1))
    moves = speed * rng.normal(size=(steps, 2))
    places = np.array([39.9, 116.4]) + np.cumsum(moves, axis=0)
    return places, np.cumsum(rng.integers(0, 400, steps)).astype(float)


def test_stays_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    shares = []
    for case in range(60):
        places, seconds = walk(rng, int(rng.integers(1, 60)))
        meters, minutes = float(rng.choice([0, 20, 60, 300])), float(rng.choice([0, 5, 15, 40]))
        chosen = choose.stay_points(
            places[:, 0], places[:, 1], seconds, meters=meters, minutes=minutes
        )
        wanted = reference.stays([tuple(p) for p in places.tolist()], seconds, meters, minutes)
        assert chosen.marks.tolist() == wanted, case
        shares.append(chosen.share)
    assert 0.2 < np.mean(shares) < 0.8


def test_a_stay_ends_where_the_next_search_begins():
    """Within 50 m of the first place; the fourth is near the third, but that stay is over."""
    north = np.array([0, 40, 40, 80, 80]) / 111_195
    seconds = np.array([0, 600, 1200, 1800, 2300])
    chosen = choose.stay_points(north, np.zeros(5), seconds, meters=50, minutes=20)
    assert chosen.marks.tolist() == [True, True, True, False, False]
    longer = choose.stay_points(north, np.zeros(5), seconds, meters=50, minutes=20.1)
    assert longer.marks.tolist() == [False, True, True, True, True]
    assert chosen.from_values


def test_distance_is_along_the_great_circle():
    # a degree of longitude at 60 degrees north is half of one at the equator; over the date line
    for latitude, one, other in [(60.0, 0.0, 1.0), (60.0, 179.5, -179.5), (0.0, 0.0, 180.0)]:
        far = reference.great_circle((latitude, one), (latitude, other))
        for meters, expected in [(far * (1 + 1e-9), True), (far * (1 - 1e-6), False)]:
            chosen = choose.stay_points(
                [latitude] * 2, [one, other], [0, 60], meters=meters, minutes=1
            )
            assert chosen.marks.all() == expected
    everywhere = choose.stay_points([90, -90], [0, 0], [0, 60], meters=1e9, minutes=1)
    assert everywhere.marks.all()


def test_the_earth_is_one():
    assert _kernels.EARTH_RADIUS_METERS == domains.EARTH_RADIUS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"latitude": [4711.0, 0]}, "1 of the 2 latitudes: the first, number 1, is beyond a pole"),
        ({"longitude": [0, np.nan]}, "1 of the 2 rows: the first, number 2, lacks a place"),
        ({"seconds": [5, 4]}, "1 of the 2 rows: the first, number 2, is earlier"),
        ({"seconds": [5]}, "columns of one length"),
        ({"meters": -1}, "meters=-1: must be >= 0"),
        ({"minutes": np.nan}, "minutes=nan: must be finite"),
    ],
    ids=["pole", "missing", "backwards", "lengths", "meters", "minutes"],
)
def test_paths_that_cannot_be_meant(changes, sentence):
    path = {"latitude": [0, 0], "longitude": [0, 0], "seconds": [0, 1], "meters": 1, "minutes": 1}
    with pytest.raises(TemprivError, match=sentence) as refused:
        choose.stay_points(**(path | changes))
    assert "4711" not in str(refused.value)


# the owner's list


def test_a_list_of_series_and_times(tmp_path):
    path = tmp_path / "landmarks.csv"
    path.write_text("series,time\n007,20\nann,10\n007,10\n")
    found = choose.read_landmarks(path)
    assert {name: times.tolist() for name, times in found.items()} == {"007": [10, 20], "ann": [10]}
    assert choose.at_times([10, 15, 20], found["007"]).marks.tolist() == [True, False, True]


def test_a_list_of_times_for_every_series(tmp_path):
    path = tmp_path / "landmarks.csv"
    path.write_text("time\n2026-01-02 10:00:00\n2026-01-02 12:00:00\n")
    hours = np.arange("2026-01-02T09", "2026-01-02T13", dtype="datetime64[h]")
    found = choose.read_landmarks(path)
    assert list(found) == [None]
    assert choose.at_times(hours, found[None]).marks.tolist() == [False, True, False, True]
    path.write_text("time\n2026-01-02\n")
    assert choose.read_landmarks(path)[None].dtype == np.dtype("datetime64[D]")
    path.write_text("date,hour\n2026-01-02,10\n2026-01-02,12\n")
    found = choose.read_landmarks(path, time=["date", "hour"])
    assert choose.at_times(hours, found[None]).marks.tolist() == [False, True, False, True]


def test_lists_that_cannot_be_meant(tmp_path):
    path = tmp_path / "landmarks.csv"
    for text, sentence in [
        ("person,time\nann,1\n", "has the columns series and time, or time alone; it has person"),
        ("time\n1\nnoon\n", "holds varchar; times must be whole numbers"),
        ("series,time\nann,1\nbob,\n", "1 of the landmarks lack their time or series"),
        ("series,time\n,1\nbob,2\n", "1 of the landmarks lack their time or series"),
    ]:
        path.write_text(text)
        with pytest.raises(DataError, match=sentence):
            choose.read_landmarks(path)
    path.write_text("series,time\n")
    assert choose.read_landmarks(path) == {}
    with pytest.raises(DataError, match="no such file"):
        choose.read_landmarks(tmp_path / "none.csv")


# the page


def test_every_example_of_the_page_runs_as_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "choosing-landmarks.md").read_text()
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", page, flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, "the page", "the page", 0)
    assert len(test.examples) >= 15
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)
