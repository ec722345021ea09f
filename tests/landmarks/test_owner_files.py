"""Landmarks and budgets stay with their owner: in a file of theirs, and nowhere else."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import sys

import numpy as np
import pytest

from tempriv.data.series import SeriesTable
from tempriv.errors import StateError, TemprivError
from tempriv.leakage.budgets import budgets_of_release
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import Landmarks
from tempriv.releases.description import owner_path
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.sampling.keys import Key
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile

OVER = Laplace(epsilon=1.0, bounds=(0, 5), grid=2.0**-6)
OWN = ("release.json", "owner.csv", "owner.json")
SCHEMES = {
    "uniform": UniformLandmarks(over=OVER),
    "skip": SkipLandmarks(over=OVER),
    "adaptive": AdaptiveLandmarks(over=OVER),
    "split": SplitLandmarks(over=OVER),
    "bound": CountBoundLandmarks(over=OVER, count=30),
    "drawn bound": CountBoundLandmarks(over=OVER, count_epsilon=1.0),
}
LENGTH = 60


@pytest.fixture
def table(tmp_path):
    """Two homes; every third and every fifth moment matters."""
    rng = np.random.default_rng(5)
    rows = [
        (home, step, f"{rng.uniform(0, 5):.3f}", int(step % every == 0))
        for home, every in (("a", 3), ("b", 5))
        for step in range(LENGTH)
    ]
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("home", "step", "kwh", "mark"), *rows])
    return path


def passage(path, scheme, key=None):
    series = SeriesTable(path, values=("kwh", "mark"), time="step", series="home")
    return ReleaseRun(series, scheme, key or Key.from_seed(3))


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", SCHEMES)
def test_budgets_of_landmarks_and_one_other_are_within_epsilon(table, tmp_path, name):
    out = tmp_path / "out.csv"
    release_file(passage(table, SCHEMES[name]), out)
    owner = owner_path(out)
    assert stat.S_IMODE(owner.stat().st_mode) == 0o600
    private, owned, public = read(table), read(owner), read(out)
    assert [row["landmark"] for row in owned] == [row["mark"] for row in private]
    assert [(row["home"], row["step"]) for row in owned] == [(r["home"], r["step"]) for r in public]
    for home in "ab":
        spent = [(row["landmark"], float(row["epsilon"])) for row in owned if row["home"] == home]
        landmarks = sum(part for mark, part in spent if mark == "1")
        others = max(part for mark, part in spent if mark == "0")
        assert landmarks + others <= 1 + 1e-12
        if name in ("uniform", "split"):
            assert landmarks + others >= 1 - 1e-9  # and nothing is left unused


@pytest.mark.parametrize("name", SCHEMES)
def test_nothing_public_tells_landmarks_or_budgets(table, tmp_path, name):
    out = tmp_path / "out.csv"
    about = release_file(passage(table, SCHEMES[name]), out)
    told = json.dumps(about)
    assert 'landmark": ' not in told and "spent" not in told
    assert set(read(out)[0]) <= {"home", "step", "kwh", "status"}
    assert about["columns"]["values"] == ["kwh"]
    # 20 and 12 landmarks: neither their number nor a part of epsilon by it
    settings = {key: value for key, value in about["mechanism"].items() if key != "over"}
    assert not {20, 12, 21, 13} & {value for value in settings.values() if value is not None}


def test_a_refused_release_leaves_no_landmarks_behind(table, tmp_path):
    before = set(tmp_path.iterdir())
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("m", unit=Landmarks(), epsilon=0.5)
        known = set(tmp_path.iterdir())
        with pytest.raises(TemprivError, match="above"):
            release_file(
                passage(table, SCHEMES["split"], Key.generate()),
                tmp_path / "out.csv",
                ledger=ledger,
                dataset="m",
            )
        assert set(tmp_path.iterdir()) == known
        ledger.create_dataset("n", unit=Landmarks(), epsilon=1.0)
        release_file(
            passage(table, SCHEMES["split"], Key.generate()),
            tmp_path / "out.csv",
            ledger=ledger,
            dataset="n",
        )
        (total,) = ledger.show("n").totals
        assert total.spent == 1.0
    names = {path.name for path in set(tmp_path.iterdir()) - before - known}
    assert names == {"out.csv", *(f"out.csv.{end}" for end in OWN)}


def test_a_failure_while_writing_leaves_no_landmarks_behind(table, tmp_path, monkeypatch):
    before = set(tmp_path.iterdir())

    def fails(self, *given):
        raise OSError("the disk is full")

    monkeypatch.setattr("tempriv.releases.to_file.ReleaseWriter.close", fails)
    with pytest.raises(OSError, match="disk"):
        release_file(passage(table, SCHEMES["skip"]), tmp_path / "out.csv")
    assert set(tmp_path.iterdir()) == before


def test_other_releases_have_no_owner_file(table, tmp_path):
    series = SeriesTable(table, values=("kwh",), time="step", series="home")
    release_file(ReleaseRun(series, OVER, Key.from_seed(1)), tmp_path / "out.csv")
    assert not owner_path(tmp_path / "out.csv").exists()


def test_a_refused_replacement_leaves_both_files_of_the_release_that_stays(table, tmp_path):
    out = tmp_path / "out.csv"
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("m", unit=Landmarks(), epsilon=1.5)
        more = {"ledger": ledger, "dataset": "m"}
        release_file(passage(table, SCHEMES["split"], Key.generate()), out, **more)
        kept = out.read_bytes(), owner_path(out).read_bytes()
        with pytest.raises(TemprivError, match="above"):
            release_file(passage(table, SCHEMES["split"], Key.generate()), out, force=True, **more)
    assert (out.read_bytes(), owner_path(out).read_bytes()) == kept
    assert not list(tmp_path.glob(".*partial*"))


def test_an_interrupted_release_brings_its_owner_file_with_it(table, tmp_path, monkeypatch):
    out = tmp_path / "out.csv"

    def killed(*_):
        raise InterruptedError

    def run(ledger):
        made = passage(table, SCHEMES["split"], Key.generate())
        return release_file(made, out, ledger=ledger, dataset="m", request="same")

    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("m", unit=Landmarks(), epsilon=1.0)
        with monkeypatch.context() as patch:
            patch.setattr("tempriv.releases.to_file.put_in_place", killed)
            with pytest.raises(InterruptedError):
                run(ledger)
        assert not owner_path(out).exists()
        about = run(ledger)
    assert about["finished_interrupted"]
    assert {row["release"] for row in read(owner_path(out))} == {about["release"]}


def test_an_owner_file_belongs_to_one_release(table, tmp_path):
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    for path in (one, other):
        release_file(passage(table, SCHEMES["split"], Key.generate()), path)
    owner_path(one).write_bytes(owner_path(other).read_bytes())
    with pytest.raises(TemprivError, match="does not belong"):
        budgets_of_release(one)


def test_owner_files_are_replaced_only_with_their_release(table, tmp_path):
    out = tmp_path / "out.csv"
    owner_path(out).write_text("mine")
    with pytest.raises(TemprivError, match="force=True"):
        release_file(passage(table, SCHEMES["skip"]), out)
    assert owner_path(out).read_text() == "mine"
    release_file(passage(table, SCHEMES["skip"]), out, force=True)
    assert owner_path(out).read_text() != "mine"
    # a release without landmarks in its place leaves none of them behind
    series = SeriesTable(table, values=("kwh",), time="step", series="home")
    release_file(ReleaseRun(series, OVER, Key.from_seed(1)), out, force=True)
    assert not owner_path(out).exists()


# streams

STREAM = (
    *("stream", "--mechanism", "adaptive-landmarks", "--epsilon", "1", "--bounds", "0", "5"),
    *("--landmarks", "mark", "--count", "15", "--value", "kwh", "--time", "step"),
    *("--series", "home", "--no-ledger", "--key-seed", "4", "--not-private"),
)


@pytest.fixture
def stream(run, monkeypatch, tmp_path):
    def feed(text, *more):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(_readable(tmp_path, text)))
        status, out, err = run(*STREAM, *more)
        assert status == 0, err
        return out, err

    return feed


def _readable(tmp_path, text):
    path = tmp_path / "lines.csv"
    path.write_text(text)
    return path.open("rb")


def test_landmarks_past_the_count_are_passed_over(stream, table):
    """Home a has 20 landmarks of 60 moments, b 12: there is room for 15 each."""
    out, err = stream(table.read_text())
    rows = list(csv.DictReader(io.StringIO(out)))
    assert set(rows[0]) == {"home", "step", "kwh", "status"}
    steps = [int(row["step"]) for row in rows if row["home"] == "a"]
    assert [step for step in range(LENGTH) if step not in steps] == [45, 48, 51, 54, 57]
    assert len([row for row in rows if row["home"] == "b"]) == LENGTH
    assert "5 not released: a landmark past the number that was given" in err


def test_a_stream_that_goes_on_counts_landmarks_of_before(table, tmp_path):
    """Some lines are sent again, at last all of them, those passed over too."""
    head, *lines = table.read_bytes().splitlines(keepends=True)

    def send(folder, parts):
        folder.mkdir()
        for part in parts:
            out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
            shape = RecordFormat("csv", ["kwh", "mark"], "step", "home", None, True, True)
            scheme = AdaptiveLandmarks(over=OVER, count=15)
            flow = StreamPipeline(
                scheme, shape, DescriptorSink(out), StateFile(folder / "state"), 1
            )
            with flow.locked():
                flow.deliver_pending()
                flow.push_text(head + b"".join(part))
                flow.finish()
            os.close(out)
        return (folder / "out.csv").read_bytes(), flow.counts

    whole, _ = send(tmp_path / "one", [lines])
    parts, counts = send(tmp_path / "two", [lines[:47], lines[30:58], lines])
    assert parts == whole
    assert len(whole.splitlines()) == 2 * LENGTH + 1 - 5
    assert counts.unpromised == 0  # of the last run: they were passed over before
    lines[50] = lines[50].replace(b",0\n", b",1\n")
    with pytest.raises(StateError, match="not those"):
        send(tmp_path / "three", [lines, [line.replace(b"a,2,", b"a,2,1") for line in lines]])


def test_marks_of_lines_are_read_as_those_of_tables(stream, table):
    """In doubt a landmark, yes and no are words for it; without any, a line is no reading."""
    head, *lines = table.read_text().splitlines()
    lines[1] = lines[1][:-1]
    lines[2] = lines[2][:-1] + "0.5"
    lines[4] = lines[4][:-1] + "no"
    lines[5] = "a,5,,"  # an hour without a reading
    out, err = stream("\n".join([head, *lines]) + "\n")
    assert "1 not released: not a reading" in err
    steps = [row["step"] for row in csv.DictReader(io.StringIO(out)) if row["home"] == "a"]
    assert "1" not in steps and {"2", "4", "5"} <= set(steps)


def test_a_landmark_without_a_reading_takes_no_part(table, tmp_path):
    """So a stream that is cut there gives the same as one that is not."""
    rows = [b"a,0,,1\n", b"a,1,1,1\n", b"a,2,1,1\n", b"a,3,2,0\n"]
    found = []
    for number, parts in enumerate(([rows], [rows[:1], rows[1:]])):
        folder = tmp_path / str(number)
        folder.mkdir()
        for part in parts:
            out = os.open(folder / "out.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
            shape = RecordFormat("csv", ["kwh", "mark"], "step", "home", None, True, True)
            scheme = AdaptiveLandmarks(over=OVER, count=2)
            flow = StreamPipeline(
                scheme, shape, DescriptorSink(out), StateFile(folder / "state"), 1
            )
            with flow.locked():
                flow.deliver_pending()
                flow.push_text(b"home,step,kwh,mark\n" + b"".join(part))
                flow.finish()
            os.close(out)
        found.append((folder / "out.csv").read_bytes())
    assert found[0] == found[1] and len(found[0].splitlines()) == 5


def test_a_bound_on_readings_never_looks_at_marks(run, monkeypatch, tmp_path):
    """Which lines come out must not tell which readings were called landmarks."""
    words = ["count-bound-landmarks" if w == "adaptive-landmarks" else w for w in STREAM]
    words = ["1" if word == "15" else word for word in words]
    found = []
    for marks in ("110", "100"):
        text = "home,step,kwh,mark\n" + "".join(f"a,{i},1,{m}\n" for i, m in enumerate(marks))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(_readable(tmp_path, text)))
        status, out, err = run(*words)
        assert status == 0, err
        found.append(out)
    assert found[0] == found[1] and len(found[0].splitlines()) == 4


def test_streams_need_a_count(run, table):
    words = [word for word in STREAM if word not in ("--count", "15")]
    status, _, err = run(*words)
    assert status and "whole series" in err


def test_the_loss_stated_is_that_of_the_value_mechanism():
    two = Laplace(epsilon=1.0, bounds=((0, 5), (0, 1)), per_column=True)
    assert UniformLandmarks(over=two).guarantee.loss == Pure(2.0)
