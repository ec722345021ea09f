"""Lines whose values are only moved in time: as they came, once, and going on after a crash."""

import contextlib
import io
import itertools
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from tempriv.cli.app import main
from tempriv.data.series import SeriesTable
from tempriv.errors import StateError, TemprivError
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.sampling.keys import EPOCH, Key
from tempriv.streaming.keys import RECORD_BYTES
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.support.pipelines import standing_of

SHUFFLE = BlockShuffle(epsilon=1.0, block=4, offset=1)
LATE = NoisyOrder(epsilon=4.0, window=3, latency=12, delta=0.5)
ONCE = Threshold(epsilon=5.0, window=6)
MECHANISMS = [
    Backward(epsilon=2.0, window=5),
    Forward(epsilon=2.0, window=5),
    ONCE,
    Threshold(epsilon=1.0, window=6),
    DualThreshold(epsilon=5.0, window=6),
    DualThreshold(epsilon=1.0, window=6),
    SHUFFLE,
    LATE,
]
NAMES = [f"{type(one).__name__}-{one.epsilon:g}" for one in MECHANISMS]
each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)

HEADER = "who,t,v,w,x\n"


def lines_of(steps, whos="abc"):
    """Interleaved series; text with quotes, text without letters, nothing, numbers as spelled."""
    made = []
    for t in range(steps):
        for who in whos:
            if who == "c" and t % 3:
                continue  # one series is slower
            w = ("", '""', f'"{who}, ""{t}"""', "é€")[t % 4]
            made.append(f"{who},{t},{who}{t},{w},{t}.50\n")
    return made


class Running:
    """A stream with its files, as one run of the command would have it."""

    def __init__(self, folder, mechanism, state=True, seed=5, form="csv", values=("v", "w", "x")):
        folder.mkdir(exist_ok=True)
        self.path = folder / "out"
        self.out = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_APPEND)
        record_format = RecordFormat(form, list(values), "t", "who", None, mechanism.has_status)
        place = folder / "state" if state else None
        self.pipeline = StreamPipeline(
            mechanism, record_format, DescriptorSink(self.out), place and StateFile(place), seed
        )

    def send(self, *pieces, header=HEADER):
        with self.pipeline.locked():
            self.pipeline.deliver_pending()
            self.pipeline.push_text(header.encode())
            for piece in pieces:
                self.pipeline.push_text("".join(piece).encode())
            self.pipeline.finish()
        os.close(self.out)
        return self.path.read_text()


def cells(line):
    """Cells of a line, each as text, None where there is nothing, not even quotes."""
    found = re.findall(r'("(?:[^"]|"")*"|[^,]*),', line.rstrip("\n") + ",")
    return [c[1:-1].replace('""', '"') if c.startswith('"') else c or None for c in found]


def by_series(text):
    """The lines of each series in order."""
    found = defaultdict(list)
    for line in text.splitlines(keepends=True)[1:]:
        found[line.split(",")[0]].append(line)
    return found


# what comes out


@each_mechanism
def test_a_stream_gives_the_same_bits_as_a_release(mechanism, tmp_path):
    lines = lines_of(40)
    source, output = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(HEADER + "".join(lines))
    table = SeriesTable(source, values=("v", "w", "x"), time="t", series="who", grid="index")
    release_file(ReleaseRun(table, mechanism, Key.from_seed(5)), output)
    rng = np.random.default_rng(1)
    cuts = [0, *np.sort(rng.choice(len(lines), 9)).tolist(), len(lines)]
    pieces = [lines[a:b] for a, b in itertools.pairwise(cuts)]
    streamed = Running(tmp_path / "s", mechanism, state=False).send(*pieces)
    released = output.read_text()
    assert streamed.splitlines()[0] == released.splitlines()[0] == "who,t,v,w,x,status"
    assert by_series(streamed) == by_series(released)


@each_mechanism
def test_every_line_comes_out_at_its_own_time_with_a_whole_row_of_its_series(mechanism, tmp_path):
    lines = lines_of(60)
    sent = by_series("\n" + "".join(lines))
    got = by_series(Running(tmp_path, mechanism, state=False).send(lines))
    assert got.keys() == sent.keys()
    for who, rows in got.items():
        came = [cells(line) for line in sent[who]]
        assert [cells(row)[:2] for row in rows] == [row[:2] for row in came], "ids and times"
        there = Counter(tuple(row[2:]) for row in came)
        out = Counter(tuple(cells(row)[2:5]) for row in rows if cells(row)[5] == "released")
        assert out <= there, "a row torn apart, of another series, or released twice"
        if mechanism in (SHUFFLE, LATE):
            assert out == there
        for row in rows:
            *_, v, w, x, status = cells(row)
            assert status in ("released", "repeated", "empty")
            assert status != "empty" or (v, w, x) == (None, None, None)


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, LATE], ids=["now", "blocks", "late"])
def test_a_line_in_is_the_line_of_an_earlier_slot_out(mechanism, tmp_path):
    running = Running(tmp_path, mechanism, state=False)
    latency = mechanism.domain.latency
    with running.pipeline.locked():
        running.pipeline.push_text(HEADER.encode())
        for t in range(30):
            running.pipeline.push_text(f"a,{t},x,y,z\nb,{t},x,y,z\n".encode())
            out = running.path.read_text().splitlines()[1:]
            slots = range(max(0, t + 1 - latency))
            assert [row.split(",")[:2] for row in out] == [[w, str(s)] for s in slots for w in "ab"]
        running.pipeline.finish()
    rest = running.path.read_text().splitlines()[1 + len(out) :]
    slots = range(30 - latency, 30)
    assert [row.split(",")[:2] for row in rest] == [[w, str(s)] for w in "ab" for s in slots]
    assert running.pipeline.counts.released == 60


JSON_VALUES = [
    "1.50",
    "-0.0",
    "1e3",
    "12345678901234567890123",
    "0.1234567890123456789",
    '"text"',
    '"\\u00e9 é \\n \\" ,"',
    "true",
    '[1, [2 ,3], {"a":null}]',
    '{"b" : 1.0}',
    "null",
    '""',
    "NaN",
]


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, LATE], ids=["now", "blocks", "late"])
def test_json_values_of_any_kind_go_out_letter_by_letter(mechanism, tmp_path):
    sent = [
        f'{{"who" : 7,"t":{t}, "v": {JSON_VALUES[t % len(JSON_VALUES)]},"other":[],"w":"{t}"}}\n'
        for t in range(50)
    ]
    running = Running(tmp_path, mechanism, state=False, form="jsonl", values=("v", "w"))
    text = running.send(sent, header="\n")
    form = re.compile(r'\{"who": 7, "t": (\d+), "v": (.*), "w": (null|"\d+"), "status": "(.*)"\}')
    rows = [form.fullmatch(line) for line in text.splitlines()]
    assert [int(row[1]) for row in rows] == list(range(50))
    for row in rows:
        if row[4] == "empty":
            assert (row[2], row[3]) == ("null", "null")
        else:
            assert row[2] == JSON_VALUES[int(row[3].strip('"')) % len(JSON_VALUES)]
    left = sum(row[4] == "empty" for row in rows)
    assert len({row[3] for row in rows} - {"null"}) == 50 - left


def test_a_member_that_is_not_there_is_missing(tmp_path):
    running = Running(tmp_path, SHUFFLE, state=False, form="jsonl", values=("v",))
    text = running.send(
        ['{"who": 1, "t": 1}\n', '{"who": 1, "t": 2, "v": 5, "v": 6}\n'], header="\n"
    )
    assert Counter(json.loads(line)["v"] for line in text.splitlines()) == Counter([None, 6])


def test_lines_that_cannot_go_out_as_they_came_are_counted_and_passed_over():
    lines, tally = RecordFormat("csv", ["v"], "t", None), []
    lines.exact = True
    text = b't,v\r\n1,a\r\n2,\xff\n4,c\n5,c,d\n\n6,"a\rb"\nx,1\n3,"b\n7,e\n'
    found = [(reading.tick, reading.values) for reading in lines.parse(text, tally)]
    assert found == [(1, ("a",)), (4, ("c",)), (6, ("a\rb",))]
    assert len(tally) == 4
    lines, tally = RecordFormat("jsonl", ["v"], "t", None), []
    lines.exact = True
    text = b'{"t": 1, "v": "\xff"}\n[1]\n{"t": 2, "v": 1} \n{"t": 3, "v": }\n{}\n'
    assert [reading.values for reading in lines.parse(text, tally)] == [("1",)]
    assert len(tally) == 4


def test_what_needs_the_whole_series_is_refused_with_a_remedy(tmp_path):
    with pytest.raises(TemprivError, match="use tempriv release on a table, or give it a latency"):
        Running(tmp_path, NoisyOrder(epsilon=1.0, window=3))


# going on


@each_mechanism
def test_any_two_runs_write_what_one_run_writes(mechanism, tmp_path):
    lines = lines_of(12)
    whole = Running(tmp_path / "whole", mechanism).send(lines)
    for cut in range(0, len(lines) + 1, 3):
        folder = tmp_path / str(cut)
        Running(folder, mechanism).send(lines[:cut])
        again = max(0, cut - 5)  # some lines are sent again
        assert Running(folder, mechanism).send(lines[again:]) == whole, cut


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, LATE], ids=["now", "blocks", "late"])
def test_rows_held_back_wait_in_the_state_and_come_out_later(mechanism, tmp_path):
    lines = lines_of(40, "a")
    together = Running(tmp_path / "whole", mechanism, state=False).send(lines)
    running = Running(tmp_path / "two", mechanism)
    first = running.send(lines[:25])
    latency = mechanism.domain.latency
    assert running.pipeline.counts.waiting == latency
    assert len(first.splitlines()) == 1 + 25 - latency
    rest = Running(tmp_path / "two", mechanism)
    text = rest.send(lines[25:])
    assert together.startswith(text)
    assert len(together.splitlines()) - len(text.splitlines()) == rest.pipeline.counts.waiting


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, LATE], ids=["now", "blocks", "late"])
def test_what_the_last_commit_was_about_to_write_is_written_once(mechanism, tmp_path):
    lines = lines_of(40, "ab")
    whole = Running(tmp_path / "whole", mechanism).send(lines)
    for through in (0, 7, 10**6):
        folder = tmp_path / str(through)
        first = Running(folder, mechanism)
        with first.pipeline.locked():
            first.pipeline.deliver_pending()
            first.pipeline.push_text((HEADER + "".join(lines[:50])).encode())
            first.pipeline.sink.write = lambda data: None  # it goes down before the write
            first.pipeline.push_text("".join(lines[50:61]).encode())
        pending = standing_of(folder / "state").pending
        os.write(first.out, pending[:through])  # of which some had got through
        os.close(first.out)
        assert Running(folder, mechanism).send(lines[40:]) == whole


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE], ids=["now", "blocks"])
def test_readings_sent_again_must_be_the_same_letters(mechanism, tmp_path):
    sent = ["a,0,1,x,\n", 'a,1,1.0,"",\n', "a,2,,y,\n"]
    Running(tmp_path, mechanism).send(sent)
    Running(tmp_path, mechanism).send([*sent, "a,3,1,1,1\n"])
    for other in ('a,1,1,"",\n', "a,1,1.0,,\n", 'a,1,"",1.0,\n', "a,1,secret,,\n"):
        with pytest.raises(StateError, match="not those that this stream consumed") as refusal:
            Running(tmp_path, mechanism).send([sent[0], other, sent[2], "a,3,1,1,1\n"])
        assert "secret" not in str(refusal.value)


def test_a_state_of_an_earlier_form_is_refused(tmp_path):
    Running(tmp_path, ONCE).send(lines_of(3))
    state = tmp_path / "state"
    with contextlib.closing(sqlite3.connect(state)) as db:
        db.execute("PRAGMA user_version = 0")
    with pytest.raises(StateError, match="not the state of a stream, or damaged"):
        Running(tmp_path, ONCE).send(lines_of(4))


@each_mechanism
def test_the_state_stays_as_small_as_the_window(mechanism, tmp_path):
    running = Running(tmp_path, mechanism)
    sizes = []
    with running.pipeline.locked():
        running.pipeline.push_text(HEADER.encode())
        for start in range(0, 1000, 100):
            rows = "".join(f"a,{t},{t:05d},text,{t:05d}\n" for t in range(start, start + 100))
            running.pipeline.push_text(rows.encode())
            running.pipeline.finish()
            sizes.append((tmp_path / "state").stat().st_size)
            assert running.pipeline.counts.waiting == mechanism.domain.latency
    assert max(sizes[1:]) < 1.1 * min(sizes[1:]), sizes


@pytest.mark.long
def test_a_stream_goes_on_past_the_erasure_of_old_keys(tmp_path):
    lines = [f"a,{t},{t},{t},{t}\n" for t in range(EPOCH + 30)]
    whole = Running(tmp_path / "whole", SHUFFLE, state=False).send(lines)
    Running(tmp_path / "two", SHUFFLE).send(lines[: EPOCH + 2])
    record = (tmp_path / "two" / "state.key").read_bytes()[RECORD_BYTES:]
    assert int.from_bytes(record[2:10], "big") == 1, "the epoch of the only series"
    text = Running(tmp_path / "two", SHUFFLE).send(lines[EPOCH + 2 :])
    assert whole.startswith(text)
    assert len(text.splitlines()) == 1 + len(lines) - SHUFFLE.latency


# the command


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))

    def call(text, *words):
        Path("sent.txt").write_text(text)
        with Path("sent.txt").open() as sent:
            monkeypatch.setattr(sys, "stdin", sent)
            monkeypatch.setattr(sys, "argv", ["tempriv", "stream", *words])
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capfd.readouterr()
        return ended.value.code or 0, out, err

    return call


def test_the_command_says_what_it_holds_back(command):
    words = [
        "--mechanism",
        "block-shuffle",
        "--epsilon",
        "1",
        "--block",
        "4",
        "--time",
        "t",
        "--value",
        "v",
        "--no-ledger",
    ]
    text = "t,v\n" + "".join(f"{t},{'' if t == 3 else f'v{t}'}\n" for t in range(10))
    status, out, err = command(text, *words)
    assert (status, err) == (0, "")
    rows = [line.split(",") for line in out.splitlines()[1:]]
    assert [row[0] for row in rows] == [str(t) for t in range(10)]
    assert Counter(row[1] for row in rows) == Counter("" if t == 3 else f"v{t}" for t in range(10))
    status, out, err = command(text, *words, "--state", "s")
    assert status == 0
    assert len(out.splitlines()) == 1 + 10 - 3
    assert "3 held back in the state" in err
    assert io.StringIO(out).readline() == "t,v,status\n"


def test_a_stream_that_is_killed_again_and_again_writes_what_one_run_writes(tmp_path):
    """Six kills at moments from a fixed seed; each run is sent everything from the start."""
    rows = [f"{who},{t},{who}{t}\n" for t in range(3000) for who in "ab"]
    words = [
        "-m",
        "tempriv",
        "stream",
        "--mechanism",
        "block-shuffle",
        "--epsilon",
        "1",
        "--block",
        "5",
        "--time",
        "t",
        "--value",
        "v",
        "--series",
        "who",
        "--no-ledger",
        "--key-seed",
        "3",
        "--not-private",
        "--state",
    ]
    environment = os.environ | {"XDG_DATA_HOME": str(tmp_path / "home")}

    def run(state, output, pause=None):
        """Lines in small pieces, so that there are many commits; killed after a pause if asked."""
        with (tmp_path / output).open("ab") as out:
            process = subprocess.Popen(
                [sys.executable, *words, str(tmp_path / state)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(b"who,t,v\n")
                for i in range(0, len(rows), 100):
                    process.stdin.write("".join(rows[i : i + 100]).encode())
                    process.stdin.flush()
                    if pause is not None:
                        time.sleep(0.03)
                        if (tmp_path / output).stat().st_size > pause:
                            process.kill()
                process.stdin.close()
            return process.wait()

    assert run("one.state", "one.csv") == 0
    whole = (tmp_path / "one.csv").read_bytes()
    assert len(whole.splitlines()) == 1 + 6000 - 2 * 4
    moments = np.sort(np.random.default_rng(4).choice(len(whole) * 3 // 4, 6))
    kills = [run("two.state", "two.csv", pause) for pause in moments.tolist()]
    assert kills.count(-signal.SIGKILL) >= 4, "too few runs were killed under way"
    assert run("two.state", "two.csv") == 0
    assert (tmp_path / "two.csv").read_bytes() == whole
