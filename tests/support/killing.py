"""Streams that are killed again and again, and what they must have written in the end."""

import contextlib
import csv
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tempriv.errors import TemprivError
from tempriv.streaming.state_file import open_readonly, read_checkpoint
from tests.support.paths import ROOT

COMMON = ["--time", "time", "--value", "kwh", "--series", "home"]
COMMON += ["--key-seed", "7", "--not-private", "--no-ledger"]
MECHANISMS = {
    "laplace": ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5"],
    # moves rows, whose cells are carried as they are
    "threshold": ["--mechanism", "threshold", "--epsilon", "5", "--window", "20"],
    # holds readings back until their window is over
    "curve": ["--mechanism", "noisy-curve", "--epsilon", "5", "--bounds", "0", "5", "--span", "6"],
    # holds back rows and moves them
    "shuffle": ["--mechanism", "block-shuffle", "--epsilon", "1", "--block", "6"],
    "landmarks": [
        *("--mechanism", "split-landmarks", "--epsilon", "1", "--bounds", "0", "5"),
        *("--landmarks", "mark", "--count", "6", "--length", "1000"),
    ],
}


def columns(mechanism: str) -> list[str]:
    return ["home", "time", "kwh"] + ["mark"] * (mechanism == "landmarks")


def readings(mechanism: str, count: int, seed: int = 1) -> list[dict[str, str]]:
    """Interleaved series with readings that are late, twice there or none at all."""
    rng = random.Random(seed)
    clocks = {f"home-{i}": 0 for i in range(12)}
    rows = []
    for _ in range(count):
        home, kind = rng.choice(list(clocks)), rng.random()
        row = {"home": home, "time": str(clocks[home] + 1), "kwh": f"{rng.uniform(0, 5):.3f}"}
        if kind < 0.06:  # late, or at a time that is there
            row["time"] = str(rng.randint(1, max(1, clocks[home])))
        elif kind < 0.08:
            row["time"] = "soon"
        elif kind < 0.1:
            row["home"] = ""
        else:
            row["kwh"] = "" if kind > 0.97 else row["kwh"]
            clocks[home] += 1
        rows.append(row | {"mark": str(int(rng.random() < 0.03))})
    return [{name: row[name] for name in columns(mechanism)} for row in rows]


class Zygote:
    """Starts commands of streams in processes that are quick to make, and ends them."""

    def __init__(self, process: Any, home: Path, redis: bool = False):
        self.process, self.home, self.redis = process, home, redis

    def run(
        self,
        arguments: list[str],
        kill_after: float | None = None,
        until: Callable[[], bool] | None = None,
        die: tuple[str, str, int] | None = None,
        small: int = 1 << 22,
    ) -> int:
        """The exit status of a command: killed after so long, or ended when it has done enough."""
        asked = {"arguments": arguments, "home": str(self.home), "die": die, "small": small}
        self.process.stdin.write(json.dumps(asked | {"redis": self.redis}) + "\n")
        self.process.stdin.flush()
        child = int(self.process.stdout.readline())
        began, answer = time.monotonic(), []
        waiting = threading.Thread(target=lambda: answer.append(self.process.stdout.readline()))
        waiting.start()
        look = began + 0.05
        while waiting.is_alive():
            waiting.join(0.003)
            if not waiting.is_alive():
                break
            now = time.monotonic()
            if kill_after is not None and now - began > kill_after:
                end(child, signal.SIGKILL)
                kill_after = None
            elif until is not None and now > look:
                look = now + 0.05
                if until():
                    end(child, signal.SIGTERM)
                    until = None
        return int(answer[0])

    def complaints(self) -> str:
        file = self.home / "errors.txt"
        return file.read_text()[-3000:] if file.exists() else ""


def end(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, number)


@contextlib.contextmanager
def zygote_process(*words: str, module: str = "stream_zygote") -> Iterator[Any]:
    program = [sys.executable, "-m", f"tests.support.{module}", *words]
    pipe, root = subprocess.PIPE, ROOT
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        yield process


class Files:
    """A stream from a file to a file; with ``follow`` the input is written meanwhile."""

    def __init__(self, folder: Path, mechanism: str, rows: list[dict[str, str]], follow=False):
        folder.mkdir()
        self.folder, self.mechanism, self.rows, self.follow = folder, mechanism, rows, follow
        self.source, self.target = folder / "in.csv", folder / "out.csv"
        self.state = folder / "stream.state"
        self.small = 3000
        self._sent = 0
        self.source.write_text(",".join(columns(mechanism)) + "\n")
        if not follow:
            self.send(len(rows))

    def arguments(self) -> list[str]:
        words = [*MECHANISMS[self.mechanism], *COMMON, "--state", str(self.state)]
        words += ["--input", str(self.source), "--output", str(self.target)]
        return ["stream", *words, *["--follow"] * self.follow]

    def send(self, count: int) -> None:
        rows = self.rows[self._sent : self._sent + count]
        text = "".join(",".join(row.values()) + "\n" for row in rows)
        half = len(text) // 2  # a line is not always there all at once
        with self.source.open("a") as file:
            for part in (text[:half], text[half:]):
                file.write(part)
                file.flush()
        self._sent += len(rows)

    @property
    def all_sent(self) -> bool:
        return self._sent == len(self.rows)

    def standing(self) -> Any:
        if not self.state.exists():
            return None
        with contextlib.suppress(TemprivError, Exception), open_readonly(self.state) as db:
            return read_checkpoint(db, self.state)

    def consumed(self) -> bool:
        """Whether all was committed."""
        found = self.standing()
        if not self.all_sent or found is None or found.input is None:
            return False
        return bool(found.input["offset"] == self.source.stat().st_size)

    def until(self) -> Callable[[], bool] | None:
        """When the stream is to be ended from outside: all is committed, and this run was there."""
        if not self.follow:
            return None
        before = self.standing()
        begun = 0 if before is None else before.commit
        return lambda: self.consumed() and self.standing().commit > begun

    def output(self) -> list[list[str]]:
        with self.target.open(newline="") as file:
            return list(csv.reader(file))[1:]

    def aside(self) -> list[str]:
        """Lines that were put aside; their order within a block depends on where it was cut."""
        text = Path(f"{self.state}.aside.jsonl").read_text()
        assert not text or text.endswith("\n")
        return sorted(text.splitlines())

    def result(self) -> tuple[list[list[str]], list[str]]:
        return self.output(), self.aside()


def run_to_the_end(zygote: Zygote, world: Any, moments: Iterator[float]) -> int:
    """Kill a stream at these moments after each of its starts until it is done; the kills."""
    kills = 0
    producer = threading.Thread(target=produce, args=(world,))
    producer.start()
    while True:
        status = zygote.run(
            world.arguments(),
            kill_after=next(moments, None),
            until=world.until(),
            small=world.small,
        )
        assert status in (0, -signal.SIGKILL), zygote.complaints()
        kills += status != 0
        if status == 0:
            producer.join()
            assert world.consumed(), "ended without an error before its end"
            return kills


def produce(world: Any) -> None:
    rng = random.Random(3)
    while not world.all_sent:
        world.send(rng.randint(1, 60))
        time.sleep(rng.uniform(0, 0.02))


def kill_at_random(zygote: Zygote, make: Callable[[str], Any], wanted: int, seed: int) -> int:
    """Kill streams so often at random moments; each must end as one that nobody disturbed."""
    reference = make("reference")
    began = time.monotonic()
    assert run_to_the_end(zygote, reference, iter(())) == 0
    usual = time.monotonic() - began
    expected = reference.result()
    assert expected[0] and expected[1]
    rng, kills, number = random.Random(seed), 0, 0
    while kills < wanted:
        left = wanted - kills
        moments = (rng.uniform(0.005, 0.9 * usual) for _ in range(min(left, 12)))
        world = make(f"killed-{number}")
        kills += run_to_the_end(zygote, world, moments)
        number += 1
        assert world.result() == expected, f"after {kills} kills something is different"
    return kills


def kill_at_points(zygote: Zygote, make: Callable[[str], Any], points: Any) -> None:
    """Kill streams at certain points; each must end as one that nobody disturbed."""
    reference = make("reference")
    assert run_to_the_end(zygote, reference, iter(())) == 0
    expected = reference.result()
    for point, when, call in points:
        world = make(f"{point}-{when}-{call}")
        world.send(len(world.rows))
        status = zygote.run(
            world.arguments(), die=(point, when, call), small=world.small, until=world.until()
        )
        assert status == -signal.SIGKILL, f"{point} was not reached: {zygote.complaints()}"
        run_to_the_end(zygote, world, iter(()))
        assert world.result() == expected, f"killed {when} {point} {call}"
