"""Looking after a stream: how it stands, stopping it, and copies to begin again from.

Streams that must run by themselves are forked from a process that has everything loaded.
"""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tempriv import Laplace, TemprivError, Threshold, WholeSeries
from tempriv.errors import LedgerError, StateError, UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.streaming import admin
from tempriv.streaming.pipeline import StreamPipeline
from tempriv.streaming.records import RecordFormat
from tempriv.streaming.sinks import DescriptorSink
from tempriv.streaming.state_file import StateFile
from tests.conformance.case_checks import named
from tests.conformance.cases import CASES
from tests.support import killing
from tests.support.kept_streams import HEADER, LAPLACE, Run, mode, places, readings
from tests.support.paths import ROOT


class Keeper:
    """Starts a command in a process of its own and goes on at once."""

    def __init__(self, process, home):
        self.process, self.home = process, home

    def start(self, *words, stdin=None, stdout=None):
        # it has a working directory of its own
        words = [self.home.parent / word if "." in str(word) else word for word in words]
        asked = {"arguments": ["stream", *LAPLACE, *map(str, words)], "home": str(self.home)}
        asked |= {"stdin": stdin and str(stdin), "stdout": stdout and str(stdout)}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        self.child = int(self.process.stdout.readline())
        return self.child

    def ended(self):
        """The status with which it ended; negative: the signal."""
        return int(self.process.stdout.readline())

    @property
    def said(self):
        return (self.home / "errors.txt").read_text()


@pytest.fixture(scope="module")
def process():
    with killing.zygote_process(module="zygote") as process:
        yield process


@pytest.fixture
def keeper(process, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Keeper(process, home)


def until(condition, seconds=30):
    began = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() < began + seconds, "waited in vain"
        time.sleep(0.02)
    return found


def released(state):
    """How many readings a stream says it has released, once it says anything."""
    try:
        return admin.status(Path(state)).counts.get("released", 0)
    except TemprivError:
        return 0


# looking


def test_status_says_how_a_stream_stands_and_touches_nothing(run, tmp_path):
    odd = "a,1,9\na,3,1\nnothing\n"
    Path("in.csv").write_text(HEADER + readings(0, 4) + odd)
    words = [*LAPLACE, "--input", "in.csv", "--output", "out.csv", "--state", "s.state"]
    assert run("stream", *words)[0] == 0
    before = {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir() if p.is_file()
    }
    status, out, err = run("stream", "status", "s.state")
    assert (status, err) == (0, "")
    for words in (
        "s.state: not running",
        "Protects any single reading of a series: epsilon = 1",
        "series      2",
        "released    8 readings",
        "put aside   3 readings",
        "1 too late",
        "1 at a time that was there already",
        "1 not readable",
        "held back   0 readings",
        f"read up to byte {Path('in.csv').stat().st_size:,}",
        f"at byte {Path('out.csv').stat().st_size:,}",
        " s ago (commit",
        "s.state.key",
        "charged to  in.csv",
    ):
        assert words in out, words
    told = json.loads(run("stream", "status", "s.state", "--json")[1])
    assert (told["process"], told["series"], told["counts"]["released"]) == (None, 2, 8)
    assert told["files"]["s.state"] == Path("s.state").stat().st_size
    assert 0 <= told["age"] < 60
    after = {
        p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in tmp_path.iterdir() if p.is_file()
    }
    assert after == before


def test_what_is_no_state_is_refused_with_a_sentence(run, tmp_path):
    Path("table.csv").write_text(HEADER)
    Path("empty.state").write_bytes(b"")
    with contextlib.closing(sqlite3.connect("other.sqlite")) as other:
        other.execute("CREATE TABLE about (name, value)")
    for name, sentence in (
        ("none", "no such state"),
        ("table.csv", "not the state of a stream"),
        ("empty.state", "not the state"),
        ("other.sqlite", "not the state"),
        (".", "no such state"),
    ):
        for words in (["status", name], ["backup", name, "copy"], ["restore", name, "new"]):
            status, out, err = run("stream", *words)
            assert (status, out, sentence in err) == (1, "", True), (words, err)
    left = {"home", "table.csv", "empty.state", "other.sqlite"}
    assert {p.name for p in tmp_path.iterdir()} - {"home"} == left - {"home"}


def test_a_stream_is_never_begun_in_a_file_that_is_something_else(run):
    with contextlib.closing(sqlite3.connect("mine.sqlite")) as other:
        other.execute("CREATE TABLE mine (one)")
    kept = Path("mine.sqlite").read_bytes()
    Path("in.csv").write_text(HEADER + readings(0, 3))
    words = ["--input", "in.csv", "--output", "out.csv", "--state", "mine.sqlite"]
    status, _, err = run("stream", *LAPLACE, *words)
    assert (status, "not the state of a stream" in err) == (1, True)
    assert Path("mine.sqlite").read_bytes() == kept


@pytest.mark.parametrize("command", ["status", "stop", "backup", "restore"])
def test_every_command_shows_an_example(run, command):
    status, out, _ = run("stream", command, "--help")
    assert status == 0
    assert "Example" in out
    assert f"tempriv stream {command} " in out


# running and stopping


def test_a_running_stream_is_looked_at_copied_and_stopped(keeper, run, tmp_path):
    Path("in.csv").write_text(HEADER + readings(0, 50))
    words = ["--input", "in.csv", "--follow", "--output", "out.csv", "--state", "s.state"]
    child = keeper.start(*words)
    until(lambda: released("s.state") == 100)
    told = json.loads(run("stream", "status", "s.state", "--json")[1])
    assert (told["process"], told["counts"]["released"]) == (child, 100)
    assert f"running, process {child}" in run("stream", "status", "s.state")[1]

    # another one on the same state is refused, and told how to stop it
    status, _, err = run("stream", *LAPLACE, *words)
    assert (status, "tempriv stream stop s.state" in err) == (1, True)
    status, _, err = run("stream", "restore", "s.state", "n.state")
    assert (status, "is running, so nothing is lost" in err) == (1, True)

    # copies at any moment are whole, and it does not wait for them
    for number in range(5):
        with Path("in.csv").open("a") as file:
            file.write(readings(50 + 10 * number, 60 + 10 * number))
        assert run("stream", "backup", "s.state", f"{number}.copy")[0] == 0
    until(lambda: released("s.state") == 200)
    for number in range(5):
        assert admin._load_snapshot(Path(f"{number}.copy")).pipeline.series.names == ["a", "b"]

    status, out, err = run("stream", "stop", "s.state")
    assert (status, keeper.ended()) == (0, 0), err
    assert f"process {child} ended" in out
    assert "200 readings released" in out
    assert "everything that was saved is out" in out
    assert places(Path("out.csv").read_text()) == places(HEADER + readings(0, 100))
    assert admin.status(Path("s.state")).process is None
    status, _, err = run("stream", "stop", "s.state")
    assert (status, "no stream is running on this state" in err) == (1, True)
    assert not Path("s.state-wal").exists(), "everything is in the one file"


def test_a_stream_that_is_asked_to_stop_ends_after_its_block_and_goes_on(keeper, tmp_path):
    """A source that never pauses does not keep it from stopping, nor from releasing."""
    pipe, out, state = tmp_path / "pipe", tmp_path / "out.csv", tmp_path / "s.state"
    os.mkfifo(pipe)
    sent = [HEADER, *readings(0, 4000).splitlines(keepends=True)]
    gone = threading.Event()

    def send():
        with contextlib.suppress(BrokenPipeError), pipe.open("w", buffering=1) as file:
            for line in sent:
                file.write(line)
                if gone.wait(0.004):
                    return

    sender = threading.Thread(target=send)
    sender.start()
    child = keeper.start("--state", state, stdin=pipe, stdout=out)
    until(lambda: released(state) > 40)
    os.kill(child, signal.SIGTERM)
    assert keeper.ended() == 0, keeper.said
    gone.set()
    sender.join()
    look, lines = admin.status(state), places(out.read_text())
    assert look.everything_out
    assert len(lines) == 1 + look.counts["released"]
    assert lines == places("".join(sent))[: len(lines)]
    rest = tmp_path / "again.csv"
    rest.write_text("".join(sent[: len(lines) + 100]))
    keeper.start("--state", state, stdin=rest, stdout=out)
    assert keeper.ended() == 0
    assert places(out.read_text()) == places(rest.read_text())
    assert not (tmp_path / "s.state.aside.jsonl").read_bytes(), "sent again is not put aside"


def test_a_stream_that_nobody_reads_ends_when_asked_twice_and_loses_nothing(keeper, run, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    Path("in.csv").write_text(HEADER + readings(0, 20_000))
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        keeper.start("--input", "in.csv", "--state", "s.state", stdout=pipe)
        until(lambda: released("s.state") == 40_000)
        status, _, err = run("stream", "stop", "s.state", "--wait", "0.3")
        assert (status, "is still busy after 0.3 s" in err) == (1, True)
        status, out, err = run("stream", "stop", "s.state", "--wait", "30")
        assert (status, keeper.ended()) == (0, 1), err
        assert "may not be out; the same command hands it out first" in out
        assert "interrupted" in keeper.said
    finally:
        os.close(reader)
    assert "may not be out yet" in run("stream", "status", "s.state")[1]
    run("stream", *LAPLACE, "--input", "in.csv", "--output", "out.csv", "--state", "s.state")
    assert places(Path("out.csv").read_text()) == places(Path("in.csv").read_text())


def test_a_process_that_only_has_the_number_is_left_alone(tmp_path, monkeypatch):
    """The lock may have been written in another container: its number means nothing here."""
    Run(tmp_path).send(readings(0, 3))
    here = tmp_path / "state"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as innocent:
        monkeypatch.setattr(admin, "running_process", lambda path: innocent.pid)
        with pytest.raises(LedgerError, match="where this command cannot reach it"):
            admin.stop(here, 1)
        assert innocent.poll() is None
        innocent.stdin.close()


# copies


@pytest.mark.parametrize("way", ["cp over it", "mv of a copy", "rm and cp"])
def test_an_old_state_with_its_old_keys_is_refused(tmp_path, way):
    Run(tmp_path).send(readings(0, 5))
    old = {name: tmp_path / f"{name}.old" for name in ("state", "state.key")}
    for name, copy in old.items():
        shutil.copy2(tmp_path / name, copy)
    Run(tmp_path).send(readings(5, 9))
    out = (tmp_path / "out.csv").read_bytes()
    for name, copy in old.items():
        if way == "mv of a copy":
            copy.rename(tmp_path / name)
            continue
        if way == "rm and cp":
            (tmp_path / name).unlink()
        shutil.copy(copy, tmp_path / name)
    with pytest.raises(StateError, match="the same noise") as refused:
        Run(tmp_path).send(readings(5, 9).replace(",1", ",4"))
    assert f"tempriv stream restore {tmp_path / 'state'}" in str(refused.value)
    assert (tmp_path / "out.csv").read_bytes() == out


def test_a_restored_stream_goes_on_with_other_noise_and_a_charge_of_its_own(run, tmp_path):
    first = HEADER + readings(0, 30)
    Path("in.csv").write_text(first)
    words = [*LAPLACE, "--input", "in.csv"]
    with Ledger.create(tmp_path / "book.sqlite") as book:
        book.ensure_dataset("meters")
    charged = ["--ledger", "book.sqlite", "--dataset", "meters"]
    old = ["--output", "out.csv", "--state", "s.state"]
    assert run("stream", *words, *charged, *old)[0] == 0
    status, out, _ = run("stream", "backup", "s.state", "s.copy")
    assert (status, "2 series" in out, mode("s.copy")) == (0, True, 0o600)
    Path("in.csv").write_text(first + readings(30, 40))
    assert run("stream", *words, *charged, *old)[0] == 0
    for file in tmp_path.glob("s.state*"):
        file.unlink()  # the disk is lost

    status, out, err = run("stream", *words, *charged, "--output", "x.csv", "--state", "s.copy")
    assert (status, "tempriv stream restore s.copy" in err) == (1, True), "a copy is no state"
    status, out, _ = run("stream", "restore", "s.copy", "n.state")
    assert status == 0
    for sentence in ("nothing of it is released again", "released a second time", "charged"):
        assert sentence in out
    assert (mode("n.state"), mode("n.state.key")) == (0o600, 0o600)
    Path("in.csv").write_text(first + readings(30, 50))
    new = ["--output", "new.csv", "--state", "n.state"]
    # by the same name in the ledger, also if it is not said again
    status, _, err = run("stream", *words, "--ledger", "book.sqlite", *new)
    assert status == 0, err
    before, after = Path("out.csv").read_text(), Path("new.csv").read_text()
    assert places(after) == ["who,t", *places(readings(30, 50))], "what came after the copy"
    values = [
        [line.rsplit(",", 1)[1] for line in text.splitlines()[1:]] for text in (before, after)
    ]
    assert values[0][60:] != values[1][:20], "the same noise on what is out twice"
    # the readings of both begin alike, so the noise of the first steps would show
    assert values[0][:40] != values[1], "the noise of the old steps"
    with Ledger.open(tmp_path / "book.sqlite") as book:
        log = book.log("meters")
        assert len(log) == 2
        assert book.show("meters").totals[0].spent == pytest.approx(2)
    assert "restored    from a copy" in run("stream", "status", "n.state")[1]
    Path("in.csv").write_text(first + readings(30, 60))
    assert run("stream", *words, "--ledger", "book.sqlite", *new)[0] == 0, "and it goes on"
    assert places(Path("new.csv").read_text())[1:] == places(readings(30, 60))
    with Ledger.open(tmp_path / "book.sqlite") as book:
        assert len(book.log("meters")) == 2, "going on spends nothing"


def test_a_restored_stream_knows_what_is_sent_again(tmp_path):
    """Nothing at or before the copy; then its own readings, which must be the same."""
    Run(tmp_path).send(readings(0, 10))
    admin.restore(tmp_path / "state", tmp_path / "new")
    to = {"state": "new", "out": "new.csv"}
    pipeline = Run(tmp_path, **to).send(readings(0, 15) + "c,3,1\n")
    assert (pipeline.counts.released, pipeline.counts.put_aside) == (11, 20)
    pipeline = Run(tmp_path, **to).send(readings(0, 20))
    assert (pipeline.counts.released, pipeline.counts.again, pipeline.counts.put_aside) == (
        10,
        10,
        20,
    )
    with pytest.raises(StateError, match="not those that this stream consumed"):
        Run(tmp_path, **to).send(readings(0, 20).replace("a,12,2", "a,12,3"))
    lines = (tmp_path / "new.csv").read_text()
    assert places(lines) == [
        "who,t",
        *places(readings(10, 15)),
        "c,3",
        *places(readings(15, 20)),
    ]


def test_each_series_of_a_restored_stream_begins_again(tmp_path):
    """Its guarantee is one of its own: of so many readings, and with nothing remembered."""
    three = WholeSeries(3)
    promised = Laplace(epsilon=1.0, bounds=(0, 5), unit=three)
    pipeline = Run(tmp_path, promised).send(readings(0, 5))
    assert (pipeline.counts.released, pipeline.counts.beyond) == (6, 4)
    admin.restore(tmp_path / "state", tmp_path / "new")
    pipeline = Run(tmp_path, promised, state="new", out="new.csv").send(readings(0, 10))
    assert (pipeline.counts.released, pipeline.counts.beyond, pipeline.counts.late) == (6, 4, 8)


def test_a_copy_holds_no_key_no_reading_and_nothing_that_was_held_back(tmp_path):
    moved = Threshold(epsilon=1.0, window=6)
    words = [f"reading-number-{t}" for t in range(40)]
    Run(tmp_path, moved).send("".join(f"a,{t},{word}\n" for t, word in enumerate(words)))
    state, copy = tmp_path / "state", tmp_path / "copy"
    assert any(word.encode() in state.read_bytes() for word in words)
    told = admin.back_up(state, copy)
    admin.restore(copy, tmp_path / "new")
    assert told.series == 1
    for file in (copy, tmp_path / "new"):
        assert b"reading-number" not in file.read_bytes()
    keys = (tmp_path / "state.key").read_bytes()
    for at in range(0, len(keys), 128):
        secret = keys[at + 10 : at + 42]
        for file in tmp_path.glob("*"):
            assert file.name == "state.key" or secret not in file.read_bytes()
    assert not (tmp_path / "copy.key").exists()
    assert not list(tmp_path.glob("*.partial*"))
    # the restored one needs nothing of what it does not know
    pipeline = Run(tmp_path, moved, state="new", out="new.csv").send(
        "".join(f"a,{t},{word}\n" for t, word in enumerate(words * 2))
    )
    assert pipeline.counts.released == 40
    lines = (tmp_path / "new.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in lines] == [str(t) for t in range(40, 80)]


@pytest.mark.parametrize(
    "case", [c for c in CASES if not c.mechanism.takes_whole], ids=lambda c: c.name
)
def test_every_mechanism_begins_again_as_it_began(tmp_path, case):
    """The same readings after a copy: as many come out as if nothing had been before."""
    mechanism, form = case.mechanism, case.mechanism.domain
    rows = case.rows(9, "copies")
    cells = rows if form.categories is None else named(rows, form.categories)
    columns = [f"c{i}" for i in range(case.columns)]

    def text(first):
        lines = [f"a,{first + i}," + ",".join(map(str, row)) for i, row in enumerate(cells)]
        return "\n".join([",".join(["who", "t", *columns]), *lines, ""]).encode()

    def send(state, first):
        out = os.open(tmp_path / f"{state}.csv", os.O_CREAT | os.O_RDWR | os.O_APPEND)
        record_format = RecordFormat(
            "csv", columns, "t", "who", form.categories, mechanism.has_status, case.marked
        )
        pipeline = StreamPipeline(
            mechanism, record_format, DescriptorSink(out), StateFile(tmp_path / state)
        )
        with pipeline.locked():
            pipeline.deliver_pending()
            pipeline.push_text(text(first))
        os.close(out)
        return pipeline.counts

    first = send("old", 0)
    assert first.released + first.waiting > 0
    admin.back_up(tmp_path / "old", tmp_path / "copy")
    admin.restore(tmp_path / "copy", tmp_path / "new")
    assert send("new", len(rows)) == first
    before, after = (tmp_path / "old.csv").read_text(), (tmp_path / "new.csv").read_text()
    assert len(before.splitlines()) == len(after.splitlines())


def test_copies_replace_nothing_and_are_whole_or_not_there(tmp_path, monkeypatch):
    Run(tmp_path).send(readings(0, 5))
    state = tmp_path / "state"
    for name in ("copy", "copy-wal", "copy.key", "copy.lock"):
        (tmp_path / name).write_bytes(b"mine")
        for make in (admin.back_up, admin.restore):
            with pytest.raises(UsageError, match=f"{name}: exists already"):
                make(state, tmp_path / "copy")
        assert (tmp_path / name).read_bytes() == b"mine"
        (tmp_path / name).unlink()
    with pytest.raises(UsageError, match="no such directory"):
        admin.back_up(state, tmp_path / "none" / "copy")
    before = sorted(p.name for p in tmp_path.iterdir())
    monkeypatch.setattr(StateFile, "_save", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    for make in (admin.back_up, admin.restore):
        with pytest.raises(OSError, match="disk full"):
            make(state, tmp_path / "copy")
        assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_an_experiment_is_not_restored(tmp_path):
    """Noise from a seed would be the same again, on other readings."""
    Run(tmp_path, seed=5).send(readings(0, 5))
    with pytest.raises(UsageError, match="key_seed 5"):
        admin.restore(tmp_path / "state", tmp_path / "new")
    assert not (tmp_path / "new.key").exists()


def test_a_copy_of_a_copy_is_a_copy(tmp_path):
    Run(tmp_path).send(readings(0, 5))
    first = admin.back_up(tmp_path / "state", tmp_path / "one")
    second = admin.back_up(tmp_path / "one", tmp_path / "two")
    assert first == second
    admin.restore(tmp_path / "two", tmp_path / "new")
    pipeline = Run(tmp_path, state="new", out="new.csv").send(readings(3, 7))
    assert (pipeline.counts.released, pipeline.counts.put_aside) == (4, 4)


def test_steps_of_many_series_survive_a_copy(tmp_path):
    """More than a shard, in any order: every last time is the one of its own series."""
    many = [f"s{i:03d}" for i in range(700)]
    rng = np.random.default_rng(4)
    lasts = rng.integers(1, 50, len(many))
    rows = [f"{who},{t},1\n" for who, last in zip(many, lasts, strict=True) for t in (0, last)]
    Run(tmp_path).send("".join(rows))
    admin.back_up(tmp_path / "state", tmp_path / "copy")
    admin.restore(tmp_path / "copy", tmp_path / "new")
    here = "".join(f"{who},{last},1\n" for who, last in zip(many, lasts, strict=True))
    later = "".join(f"{who},{last + 1},1\n" for who, last in zip(many, lasts, strict=True))
    pipeline = Run(tmp_path, state="new", out="new.csv").send(here, later)
    assert (pipeline.counts.released, pipeline.counts.repeated) == (700, 700)


@pytest.mark.long
def test_the_example_runs():
    program = ROOT / "examples" / "keyed_stream.py"
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert "each reading is there once: True" in said.stdout
    assert "have the same value by chance" in said.stdout
    assert said.stderr == ""
