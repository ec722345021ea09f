"""Protects readings of several homes as a file of them grows, is killed, goes on, and is restored.

Run it with ``python examples/keyed_stream.py``; what it writes is in a folder that is gone at the
end.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tempriv.datasets import METERS

keep = tempfile.TemporaryDirectory()
folder = Path(keep.name)
meters, private = folder / "meters.csv", folder / "private.csv"
home = {**os.environ, "XDG_DATA_HOME": keep.name}  # a ledger of its own
tempriv = [sys.executable, "-m", "tempriv", "stream"]
options = [
    "--mechanism",
    "laplace",
    "--epsilon",
    "1",
    "--bounds",
    "0",
    "5",
    "--time",
    "time",
    "--value",
    "energy_kWh",
    "--series",
    "home",
]
lines = METERS.read_text().splitlines(keepends=True)


def arrive(first: int, last: int) -> None:
    with meters.open("a") as file:
        file.writelines(lines[first:last])


def say(*words: str) -> str:
    """Run one of the commands that look after a stream, and show what it says."""
    print("$ tempriv stream", *words)
    asked = [*tempriv, *words]
    said = subprocess.run(asked, cwd=folder, env=home, capture_output=True, text=True, check=True)
    print(said.stdout)
    return said.stdout


def start(output: str, state: str) -> subprocess.Popen[bytes]:
    """A stream that follows the file for as long as it may."""
    where = ["--input", "meters.csv", "--follow", "--output", output, "--state", state]
    return subprocess.Popen([*tempriv, *options, *where], cwd=folder, env=home)


def wait_for(output: Path, count: int) -> None:
    while not output.exists() or output.read_text().count("\n") < count:
        time.sleep(0.05)


with keep:
    arrive(0, 601)
    stream = start("private.csv", "meters.state")
    wait_for(private, 601)
    say("status", "meters.state")

    arrive(601, 1001)
    stream.kill()  # at any moment, without a warning
    stream.wait()
    stream = start("private.csv", "meters.state")
    wait_for(private, 1001)
    times = [line.rsplit(",", 1)[0] for line in private.read_text().splitlines()]
    print("killed and started again; each reading is there once:", len(times) == len(set(times)))
    print()

    say("backup", "meters.state", "meters.copy")
    arrive(1001, 1201)
    wait_for(private, 1201)
    say("stop", "meters.state")

    # the disk with the state is lost; two hundred readings came after the copy
    for file in folder.glob("meters.state*"):
        file.unlink()
    say("restore", "meters.copy", "meters-2.state")
    again = folder / "private-2.csv"
    stream = start("private-2.csv", "meters-2.state")
    wait_for(again, 201)
    say("stop", "meters-2.state")
    before, after = private.read_text().splitlines()[-200:], again.read_text().splitlines()[1:]
    same = sum(one == other for one, other in zip(before, after, strict=True))
    print(f"of 200 readings that are out twice, {same} have the same value by chance")
