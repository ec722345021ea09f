"""A command that is killed at any moment loses nothing, pays once and never repeats noise."""

import contextlib
import itertools
import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from tempriv.data.series import SeriesTable
from tempriv.datasets import METERS
from tempriv.errors import TemprivError
from tempriv.ledger.ledger import Ledger
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Event
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import ReleaseWriter, release_file
from tempriv.releases.verify import verify
from tests.support import killing
from tests.support.killing import MECHANISMS, Files

COLUMNS = ["--time", "time", "--value", "energy_kWh", "--series", "home"]
LAPLACE = ["--mechanism", "laplace", "--epsilon", "0.01", "--bounds", "0", "5", *COLUMNS]


class Zygote:
    """Starts commands in processes that are quick to make, and kills them."""

    def __init__(self, process, home: Path):
        self.process, self.home = process, home

    def run(self, arguments, stdin=None, stdout=None, kill_after=None):
        """The exit status of a command, killed so many seconds after its start if asked to."""
        asked = {"arguments": arguments, "home": str(self.home), "stdin": stdin, "stdout": stdout}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        killer = None
        if kill_after is not None:
            killer = threading.Timer(kill_after, kill, [child])
            killer.start()
        status = int(self.process.stdout.readline())
        if killer is not None:
            killer.cancel()
        return status


def kill(child):
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


@pytest.fixture(scope="module")
def process():
    with killing.zygote_process(module="zygote") as process:
        yield process


@pytest.fixture
def zygote(process, tmp_path):
    return Zygote(process, tmp_path)


def kills_of_release(zygote, folder, kills):
    """Kill so many releases at random moments, run each again until it is done, look at all."""
    moments = random.Random(str(kills))
    book = folder / "ledger.sqlite"
    with Ledger.create(book) as ledger:
        ledger.create_dataset("meters", unit=Event(), epsilon=1000)
    base = ["release", str(METERS)]
    common = [*LAPLACE, "--ledger", str(book), "--dataset", "meters"]
    usual, number = 9.0, -1
    for number in range(3):
        began = time.perf_counter()
        assert zygote.run([*base, str(folder / f"{number}.csv"), *common]) == 0
        usual = min(usual, time.perf_counter() - began)
    hit = 0
    while hit < kills:
        number += 1
        output = folder / f"{number}.csv"
        status = zygote.run([*base, str(output), *common], kill_after=moments.uniform(0, usual))
        hit += status == -signal.SIGKILL
        before = output.read_bytes() if output.exists() else None
        again = zygote.run([*base, str(output), *common])
        assert again == 0 or before is not None, (folder / "errors.txt").read_text()
        assert before is None or output.read_bytes() == before, "released twice, differently"
    with Ledger.open(book) as ledger:
        log = ledger.log("meters")
        assert len(log) == number + 1, "one charge for each output, no more and no less"
        assert all(entry.state == "done" for entry in log)
        assert ledger.show("meters").totals[0].spent == pytest.approx(0.01 * (number + 1))
        checks = [check for n in range(number + 1) for check in verify(folder / f"{n}.csv", ledger)]
    assert not any(check.wrong for check in checks)
    left = [p.name for p in folder.iterdir() if "partial" in p.name]
    assert left == [], "partial outputs left behind"
    noise = [released(folder / f"{n}.csv") for n in range(number + 1)]
    assert len({values.tobytes() for values in noise}) == number + 1, "noise used twice"


def released(path):
    return pyarrow.csv.read_csv(path).column("energy_kWh").to_numpy()


def kills_of_stream(zygote, folder, kills):
    """Kill a stream again and again while the same readings are sent anew each time."""
    moments = random.Random(str(kills))
    book, state = folder / "ledger.sqlite", folder / "stream.state"
    output, pipe = folder / "out.csv", folder / "pipe"
    os.mkfifo(pipe)
    with Ledger.create(book) as ledger:
        ledger.create_dataset("meters", unit=Event(), epsilon=0.01)
    arguments = [
        "stream",
        *LAPLACE,
        "--ledger",
        str(book),
        "--dataset",
        "meters",
        "--state",
        str(state),
    ]
    lines = METERS.read_bytes().splitlines(keepends=True)
    snapshots, hit, finished = [], 0, False
    while not finished:
        feeder = threading.Thread(target=feed, args=(pipe, lines))
        feeder.start()
        late = hit >= kills
        status = zygote.run(
            arguments,
            stdin=str(pipe),
            stdout=str(output),
            kill_after=None if late else moments.uniform(0, 0.12),
        )
        drain(pipe, feeder)
        hit += status == -signal.SIGKILL
        finished = status == 0
        assert status in (0, -signal.SIGKILL), (folder / "errors.txt").read_text()
        snapshots.append(output.read_bytes())
    final = output.read_bytes()
    for snapshot in snapshots:
        assert final.startswith(snapshot), "something was written twice, differently"
    rows = final.decode().splitlines()
    sent = [line.decode().rsplit(",", 1)[0] for line in lines]
    assert [row.rsplit(",", 1)[0] for row in rows] == sent, "each reading once, in order"
    with Ledger.open(book) as ledger:
        assert len(ledger.log("meters")) == 1, "one charge for the whole stream"
    assert (state.stat().st_mode & 0o777, Path(f"{state}.key").stat().st_mode & 0o777) == (
        0o600,
        0o600,
    )
    return hit


def feed(pipe, lines, size=150):
    """Send the readings in pieces, with pauses that let the stream commit each."""
    with contextlib.suppress(BrokenPipeError), pipe.open("wb", buffering=0) as file:
        for start in range(0, len(lines), size):
            file.write(b"".join(lines[start : start + size]))
            time.sleep(0.025)


def drain(pipe, feeder):
    """Let a feeder go whose reader was killed before it opened the pipe."""
    while feeder.is_alive():
        with contextlib.suppress(OSError):
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
        feeder.join(0.005)


def test_a_release_killed_at_2_moments_is_whole_paid_once_and_the_same(zygote, tmp_path):
    kills_of_release(zygote, tmp_path, 2)


def test_a_stream_killed_20_times_writes_every_reading_once(zygote, tmp_path):
    assert kills_of_stream(zygote, tmp_path, 20) == 20


@pytest.mark.long
def test_a_release_killed_at_200_moments_is_whole_paid_once_and_the_same(zygote, tmp_path):
    kills_of_release(zygote, tmp_path, 200)


@pytest.mark.long
def test_a_stream_killed_200_times_writes_every_reading_once(zygote, tmp_path):
    assert kills_of_stream(zygote, tmp_path, 200) == 200


@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.long)])
def test_other_data_after_a_kill_get_other_noise(zygote, tmp_path, kills):
    moments = random.Random(7)
    lines = METERS.read_text().splitlines()
    source = tmp_path / "meters.csv"
    seen = []
    for number in range(kills):
        # the same table, one unit higher each time: equal noise would show as equal differences
        changed = [lines[0]]
        for line in lines[1:]:
            head, value = line.rsplit(",", 1)
            changed.append(f"{head},{float(value) * 0.5 + 0.01 * number:.3f}")
        source.write_text("\n".join(changed) + "\n")
        output = tmp_path / f"{number}.csv"
        arguments = ["release", str(source), str(output), *LAPLACE, "--clip"]
        zygote.run(arguments, kill_after=moments.uniform(0, 0.3))
        zygote.run([*arguments, "--force"])
        seen.append(released(output))
    for one in range(len(seen)):
        for other in range(one):
            spread = np.ptp(seen[one] - seen[other])
            assert spread > 1, "the difference of two releases shows the difference of the data"


def test_an_interrupted_release_does_not_replace_another_one(tmp_path, monkeypatch):
    """Paid for and not in place, then another release takes the name: force is asked for."""
    output = tmp_path / "out.csv"

    def run(epsilon, ledger, **more):
        table = SeriesTable(METERS, values=("energy_kWh",), time="time", series="home")
        passage = ReleaseRun(table, Laplace(epsilon=epsilon, bounds=(0, 5)))
        request = f"epsilon {epsilon}"
        return release_file(passage, output, ledger=ledger, dataset="m", request=request, **more)

    def killed(*_):
        raise InterruptedError

    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("m", unit=Event(), epsilon=5)
        with monkeypatch.context() as patch:
            patch.setattr(ReleaseWriter, "publish", killed)
            with pytest.raises(InterruptedError):
                run(1.0, ledger)
        assert [entry.state for entry in ledger.log()] == ["prepared"]
        assert run(2.0, ledger)["mechanism"]["epsilon"] == 2.0
        kept = output.read_bytes()
        with pytest.raises(TemprivError, match="exists already"):
            run(1.0, ledger)
        assert output.read_bytes() == kept
        assert run(1.0, ledger, force=True)["finished_interrupted"]
        assert output.read_bytes() != kept
        assert [entry.state for entry in ledger.log()] == ["done", "done"]
        assert not any(check.wrong for check in verify(output, ledger))


# streams from files to files


POINTS = [
    *itertools.product(["commit", "write"], ["before", "half", "after"], [2]),
    ("aside", "half", 2),
    ("keys", "half", 1),
]
MORE_POINTS = [
    *itertools.product(["aside"], ["before", "after"], [2]),
    *itertools.product(["create", "keys"], ["before", "after"], [1]),
    *itertools.product(["handed_out"], ["before", "after"], [1]),
    *itertools.product(["commit", "write", "aside"], ["before", "half", "after"], [1, 3, 4]),
    *itertools.product(["handed_out"], ["before", "after"], [2, 3]),
]
KINDS = {"whole file": False, "growing file": True}


@pytest.fixture(scope="module")
def stream_process():
    with killing.zygote_process() as process:
        yield process


@pytest.fixture
def streams(stream_process, tmp_path):
    return killing.Zygote(stream_process, tmp_path)


def killed_at_points(streams, folder, mechanism, points):
    rows = killing.readings(mechanism, 800)
    killing.kill_at_points(streams, lambda name: Files(folder / name, mechanism, rows), points)


def test_a_stream_killed_at_the_points_of_a_commit_ends_the_same(streams, tmp_path):
    killed_at_points(streams, tmp_path, "laplace", POINTS)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_stream_killed_at_more_points_ends_the_same(streams, tmp_path, mechanism):
    points = MORE_POINTS if mechanism == "laplace" else POINTS + MORE_POINTS
    killed_at_points(streams, tmp_path, mechanism, points)


def killed_at_random(streams, folder, kind, mechanism, kills, count):
    rows = killing.readings(mechanism, count)
    done = killing.kill_at_random(
        streams,
        lambda name: Files(folder / name, mechanism, rows, KINDS[kind]),
        kills,
        list(MECHANISMS).index(mechanism),
    )
    print(f"{done} kills, {kind}, {mechanism}: nothing lost, nothing twice, no bit different")


@pytest.mark.parametrize(
    ("kind", "mechanism"), [("whole file", "threshold"), ("growing file", "shuffle")]
)
def test_a_stream_killed_at_3_moments_ends_the_same(streams, tmp_path, kind, mechanism):
    killed_at_random(streams, tmp_path, kind, mechanism, 3, 300)


@pytest.mark.long
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_killed_at_20_moments_ends_the_same(streams, tmp_path, kind, mechanism):
    killed_at_random(streams, tmp_path, kind, mechanism, 20, 1500)
