"""Values that come out late: from tables with their own times, and as lines that go on."""

from __future__ import annotations

import csv
import io
import itertools
import os
import sys
from collections import defaultdict
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.cli.app import main
from tempriv.data import duckdb
from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, StateError, TemprivError
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.units.replacement import Window
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.releases.verify import verify
from tempriv.sampling.keys import Key
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.support.pipelines import standing_of

PACE = SamplingPeriod(epsilon=1.0, window=4, tau=1.0)
SHIFT = SamplingPeriod(epsilon=1.0, window=3, tau=1.0, shift=0.5, clamp=None)
CURVE = NoisyCurve(epsilon=1.0, bounds=(0, 5), window=6, unit=Window(2))
TIMES = NoisyTimes(epsilon=1.0, tau=2.0)
MECHANISMS = {"pace": PACE, "shift": SHIFT, "curve": CURVE, "times": TIMES}
COLUMNS = {"pace": ["v", "step"], "shift": ["v", "late", "step"], "curve": ["v"], "times": ["step"]}
each = pytest.mark.parametrize("name", MECHANISMS)
# 1, 2 and 3 readings, whole windows and what is left of them, and fewer than a window
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 10, 14, 23, 40)


def readings(length, seed, gaps=True):
    """Values, delays and steps of one series; some are missing."""
    rng = np.random.default_rng(seed)
    rows = np.stack(
        [rng.uniform(0, 5, length), rng.normal(0, 0.4, length), rng.uniform(0.5, 1.6, length)], 1
    )
    return np.ma.array(rows, mask=rng.random(rows.shape) < (0.15 if gaps else 0))


def began(name, i):
    """The first time of a series: anywhere, or a count where times are the secret."""
    return 100 * i if name == "curve" else i % 2


def columns(name, rows):
    return rows[:, [["v", "late", "step"].index(one) for one in COLUMNS[name]]]


def table(name, gaps=True):
    """Series of those lengths in one table, their rows mixed; each begins at another time."""
    parts = []
    for i, length in enumerate(LENGTHS):
        rows = readings(length, i, gaps)
        numbers = [
            pa.array(rows.data[:, c], pa.float64(), mask=np.ma.getmaskarray(rows)[:, c])
            for c in range(3)
        ]
        ids = pa.array([f"s{i:02d}"] * length), pa.array(np.arange(length) + began(name, i))
        parts.append(pa.table([*ids, *numbers], names=["who", "t", "v", "late", "step"]))
    whole = pa.concat_tables(parts)
    return whole.take(pa.array(np.random.default_rng(9).permutation(len(whole))))


def alone(name, i, seed=5):
    """The same series through a stream by itself."""
    stream = MECHANISMS[name].start(Key.from_seed(seed), f"s{i:02d}")
    rows = columns(name, readings(LENGTHS[i], i))
    return np.ma.concatenate([stream.push(rows), stream.finish()])


def assert_is(name, released):
    """Every series at its own times, with the bits that it has by itself."""
    assert [*released.column_names][:2] == ["who", "t"]
    by_series = defaultdict(list)
    for row in released.to_pylist():
        by_series[row["who"]].append(row)
    assert list(by_series) == [f"s{i:02d}" for i in range(len(LENGTHS))]
    for i, length in enumerate(LENGTHS):
        rows, expected = by_series[f"s{i:02d}"], alone(name, i)
        assert [row["t"] for row in rows] == [began(name, i) + t for t in range(length)], (
            "other times"
        )
        found = [[row[column] for column in COLUMNS[name]] for row in rows]
        there = np.ma.array(
            [[0.0 if x is None else x for x in row] for row in found],
            mask=[[x is None for x in row] for row in found],
        )
        assert np.array_equal(np.ma.getmaskarray(there), np.ma.getmaskarray(expected))
        assert np.array_equal(np.ma.filled(there, 0.0), np.ma.filled(expected, 0.0))
        if MECHANISMS[name].has_status:
            inner = ["released"] * (length - 2)
            assert [row["status"] for row in rows] == (
                ["empty", *inner, "empty"] if length > 1 else ["empty"]
            )


# tables


@each
def test_a_table_is_released_with_the_times_of_its_rows(name):
    released = tp.release(
        table(name),
        MECHANISMS[name],
        values=COLUMNS[name],
        time="t",
        series="who",
        key=Key.from_seed(5),
    )
    assert_is(name, released.table)


@each
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_files_of_any_kind_in_blocks_of_any_size(name, ending, size, tmp_path):
    """Series go on from block to block, and their times with them."""
    source, output = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    if ending == "csv":
        pyarrow.csv.write_csv(table(name), source)
    else:
        pyarrow.parquet.write_table(table(name), source)
    layout = {"values": tuple(COLUMNS[name]), "time": "t", "series": "who"}
    with mock.patch.object(duckdb, "BATCH_ROWS", size):
        passage = ReleaseRun(SeriesTable(source, **layout), MECHANISMS[name], Key.from_seed(5))
        release_file(passage, output)
    read = pyarrow.csv.read_csv if ending == "csv" else pyarrow.parquet.read_table
    assert_is(name, read(output))
    bad = {check.what for check in verify(output) if check.wrong}
    assert bad == {"something is guaranteed"}  # for a seeded key


def test_times_of_any_kind_stay_with_curves_of_noisy_values():
    """Here times are public: days, with one that is missing and filled in."""
    days = pa.array([0, 1, 3, 4, 5, 6, 7, 8, 9], pa.int32()).cast(pa.date32())
    source = pa.table({"day": days, "v": [1.0, 2, 3, 4, 3, 2, 1, 2, 3]})
    released = tp.release(source, CURVE, time="day", gaps="null", key=Key.from_seed(1)).table
    assert released["day"].cast(pa.int32()).to_pylist() == list(range(10))
    there = [x is not None for x in released["v"].to_pylist()]
    assert there == [False, True, False, *[True] * 6, False]


@pytest.mark.parametrize("name", ["pace", "shift", "times"])
def test_times_that_tell_the_secret_are_refused(name):
    """Only the number of a reading may stand beside it."""
    mechanism, values = MECHANISMS[name], COLUMNS[name]
    told = table(name, gaps=False)
    seconds = np.array(told["t"].to_pylist()) * 15
    told = told.set_column(1, "t", pa.array(seconds))
    with pytest.raises(DataError, match="would tell what is to be hidden"):
        tp.release(told, mechanism, values=values, time="t", series="who")
    later = table(name).set_column(1, "t", pa.array(np.array(table(name)["t"].to_pylist()) + 7))
    for other, grid in ((later, "regular"), (table(name), "index")):
        with pytest.raises(DataError, match="would tell what is to be hidden"):
            tp.release(other, mechanism, values=values, time="t", series="who", grid=grid)
    released = tp.release(table(name), mechanism, values=values, series="who").table
    assert "t" not in released.column_names


def test_a_report_says_what_is_not_protected():
    about = tp.release(table("pace"), PACE, values=["v", "step"], time="t", series="who").about
    assert any("lie on the curve" in said for said in about["not_protected"])
    assert [one["column"] for one in about["expected_error"]] == ["v", "step"]
    assert about["mechanism"]["window"] == 4


# lines


class Running:
    """A stream with its files, as one run of the command would have it."""

    def __init__(self, folder, name, state=True, seed=5):
        folder.mkdir(exist_ok=True)
        self.path = folder / "out"
        self.out = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        mechanism = MECHANISMS[name]
        self.header = ",".join(["who", "t", *COLUMNS[name]]) + "\n"
        record_format = RecordFormat("csv", COLUMNS[name], "t", "who", None, mechanism.has_status)
        place = folder / "state" if state else None
        self.pipeline = StreamPipeline(
            mechanism, record_format, DescriptorSink(self.out), place and StateFile(place), seed
        )

    def send(self, *pieces):
        with self.pipeline.locked():
            self.pipeline.deliver_pending()
            self.pipeline.push_text(self.header.encode())
            for piece in pieces:
                self.pipeline.push_text("".join(piece).encode())
            self.pipeline.finish()
        os.close(self.out)
        return self.path.read_text()


def lines_of(name, lengths=LENGTHS):
    """The readings of the table, interleaved: one of each series in turn, then the next."""
    made = []
    for t in range(max(lengths)):
        for i, length in enumerate(lengths):
            if t < length:
                row = columns(name, readings(length, i))[t]
                cells = ["" if x is np.ma.masked else repr(float(x)) for x in row]
                made.append(f"s{i:02d},{began(name, i) + t},{','.join(cells)}\n")
    return made


def parsed(text, name):
    """Lines as the table that a release would be, in the order of the series."""
    rows = sorted(csv.DictReader(io.StringIO(text)), key=lambda row: row["who"])
    data = {"who": [r["who"] for r in rows], "t": [int(r["t"]) for r in rows]}
    for column in COLUMNS[name]:
        data[column] = [None if r[column] == "" else float(r[column]) for r in rows]
    if MECHANISMS[name].has_status:
        data["status"] = [r["status"] for r in rows]
    return pa.table(data)


@each
def test_interleaved_lines_come_out_as_each_series_alone(name, tmp_path):
    lines = lines_of(name)
    rng = np.random.default_rng(1)
    for number in range(3):
        cuts = [0, *np.sort(rng.choice(len(lines), 9)).tolist(), len(lines)]
        pieces = [lines[a:b] for a, b in itertools.pairwise(cuts)]
        text = Running(tmp_path / str(number), name, state=False).send(*pieces)
        assert_is(name, parsed(text, name))


@pytest.mark.parametrize("name", ["pace", "curve"])
def test_a_line_in_is_the_line_of_an_earlier_reading_out(name, tmp_path):
    running = Running(tmp_path, name, state=False)
    latency, width = MECHANISMS[name].domain.latency, len(COLUMNS[name])
    cells = ",1.0" * width
    with running.pipeline.locked():
        running.pipeline.push_text(running.header.encode())
        for t in range(20):
            running.pipeline.push_text(f"a,{t}{cells}\nb,{t}{cells}\n".encode())
            out = running.path.read_text().splitlines()[1:]
            slots = range(max(0, t + 1 - latency))
            assert [row.split(",")[:2] for row in out] == [[w, str(s)] for s in slots for w in "ab"]
        running.pipeline.finish()
    rest = running.path.read_text().splitlines()[1 + len(out) :]
    slots = range(20 - latency, 20)
    assert [row.split(",")[:2] for row in rest] == [[w, str(s)] for w in "ab" for s in slots]


@each
def test_any_two_runs_write_what_one_run_writes(name, tmp_path):
    lines = lines_of(name, (3, 9, 14))
    whole = Running(tmp_path / "whole", name).send(lines)
    for cut in range(0, len(lines) + 1, 3):
        folder = tmp_path / str(cut)
        Running(folder, name).send(lines[:cut])
        again = max(0, cut - 5)  # some lines are sent again
        assert Running(folder, name).send(lines[again:]) == whole, cut


@pytest.mark.parametrize("name", ["pace", "shift", "curve"])
def test_what_waits_in_the_state_comes_out_later(name, tmp_path):
    lines = lines_of(name, (40,))
    together = Running(tmp_path / "whole", name, state=False).send(lines)
    running = Running(tmp_path / "two", name)
    first = running.send(lines[:25])
    latency = MECHANISMS[name].domain.latency
    assert running.pipeline.counts.waiting == latency
    assert len(first.splitlines()) == 1 + 25 - latency
    rest = Running(tmp_path / "two", name)
    text = rest.send(lines[25:])
    assert together.startswith(text)
    assert len(together.splitlines()) - len(text.splitlines()) == rest.pipeline.counts.waiting


@pytest.mark.parametrize("name", ["pace", "curve"])
def test_what_the_last_commit_was_about_to_write_is_written_once(name, tmp_path):
    lines = lines_of(name, (40, 40))
    whole = Running(tmp_path / "whole", name).send(lines)
    for through in (0, 7, 10**6):
        folder = tmp_path / str(through)
        first = Running(folder, name)
        with first.pipeline.locked():
            first.pipeline.deliver_pending()
            first.pipeline.push_text((first.header + "".join(lines[:50])).encode())
            first.pipeline.sink.write = lambda data: None  # it goes down before the write
            first.pipeline.push_text("".join(lines[50:61]).encode())
        pending = standing_of(folder / "state").pending
        os.write(first.out, pending[:through])  # of which some had got through
        os.close(first.out)
        assert Running(folder, name).send(lines[40:]) == whole


@pytest.mark.parametrize("name", ["pace", "curve"])
def test_readings_sent_again_must_be_the_same(name, tmp_path):
    lines = lines_of(name, (8,))
    Running(tmp_path, name).send(lines[:5])
    Running(tmp_path, name).send(lines[:6])
    other = lines[3].split(",")
    spoilt = ",".join([*other[:2], "4.711", *other[3:]])
    spoilt = spoilt if spoilt.endswith("\n") else spoilt + "\n"
    with pytest.raises(StateError, match="not those that this stream consumed") as refusal:
        Running(tmp_path, name).send([*lines[:3], spoilt, *lines[4:]])
    assert "4.711" not in str(refusal.value)


def test_lines_whose_times_tell_the_secret_are_refused(tmp_path):
    for name, first in itertools.product(("pace", "times"), (0, 1)):
        cells = ",1" * len(COLUMNS[name])
        running = Running(tmp_path / f"{name} {first}", name, state=False)
        with running.pipeline.locked():
            running.pipeline.push_text(running.header.encode())
            running.pipeline.push_text(f"a,{first}{cells}\na,{first + 1}{cells}\n".encode())
            for line in (f"a,{first + 3}{cells}\n", f"b,7{cells}\n"):
                with pytest.raises(TemprivError, match="would tell what is to be hidden"):
                    running.pipeline.push_text(line.encode())
        os.close(running.out)


def test_the_state_stays_as_small_as_a_window(tmp_path):
    running, sizes = Running(tmp_path, "pace"), []
    with running.pipeline.locked():
        running.pipeline.push_text(running.header.encode())
        for start in range(0, 1000, 100):
            rows = "".join(f"a,{t},{t % 7}.5,1.25\n" for t in range(start, start + 100))
            running.pipeline.push_text(rows.encode())
            running.pipeline.finish()
            sizes.append((tmp_path / "state").stat().st_size)
            assert running.pipeline.counts.waiting == PACE.domain.latency
    assert max(sizes[1:]) < 1.1 * min(sizes[1:]), sizes


# the command


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))

    def call(text, *words):
        Path("sent.txt").write_text(text)
        with Path("sent.txt").open() as sent:
            monkeypatch.setattr(sys, "stdin", sent)
            monkeypatch.setattr(sys, "argv", ["tempriv", *words])
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capfd.readouterr()
        return ended.value.code or 0, out, err

    return call


WORDS = [
    "--mechanism",
    "sampling-period",
    "--epsilon",
    "1",
    "--window",
    "4",
    "--tau",
    "1",
    "--pace",
    "step",
    "--value",
    "v",
    "--series",
    "who",
    "--time",
    "t",
    "--no-ledger",
    "--key-seed",
    "5",
    "--not-private",
]


def test_the_command_gives_the_same_bits_and_says_what_it_holds_back(command):
    lines = lines_of("pace")
    text = "who,t,v,step\n" + "".join(lines)
    status, out, err = command(text, "stream", *WORDS)
    assert status == 0, err
    assert_is("pace", parsed(out, "pace"))
    status, part, err = command(text, "stream", *WORDS, "--state", "s")
    assert status == 0
    waiting = sum(min(length, PACE.domain.latency) for length in LENGTHS)
    assert len(part.splitlines()) == 1 + len(lines) - waiting
    assert f"{waiting} held back in the state" in err
    assert set(part.splitlines()) <= set(out.splitlines())


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_releases_tables(command, ending, tmp_path):
    source = tmp_path / "in.csv"
    pyarrow.csv.write_csv(table("pace"), source)
    status, _, err = command("", "release", str(source), f"out.{ending}", *WORDS)
    assert status == 0, err
    read = pyarrow.csv.read_csv if ending == "csv" else pyarrow.parquet.read_table
    assert_is("pace", read(tmp_path / f"out.{ending}"))
