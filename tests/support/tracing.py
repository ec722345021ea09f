"""Which functions of the package run, in the order of their first calls.

``python -m tests.support.tracing release FOLDER`` prints them as JSON for a release; ``stream``
for a stream and ``answer`` for one answer to a campaign, from the device to the result. ``modules``
prints how many modules of the package a release loads.
docs/architecture.md names the stations of these paths and tests/test_docs.py compares.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "tempriv"
SAMPLE = SOURCE / "datasets" / "meters.csv"
COLUMNS = ["--time", "time", "--value", "energy_kWh", "--series", "home"]
LAPLACE = ["--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5"]

Calls = dict[tuple[str, str], None]


@contextmanager
def traced() -> Iterator[Calls]:
    """Collects (file below the package, qualified name) of functions as they are first called.

    Threads that start meanwhile are traced too.
    """
    calls: Calls = {}
    prefix = f"{SOURCE}/"

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(prefix):
            file = frame.f_code.co_filename.removeprefix(prefix)
            calls.setdefault((file, frame.f_code.co_qualname))

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def run_command(folder: Path, *arguments: str) -> Calls:
    """The functions that one command calls, with a ledger in the folder."""
    from tempriv.cli.app import main

    os.environ["XDG_DATA_HOME"] = str(folder)
    sys.argv = ["tempriv", *arguments]
    with traced() as calls:
        try:
            main()
        except SystemExit as end:
            assert not end.code, arguments
    return calls


def release(folder: Path) -> Calls:
    """A release of the bundled table."""
    files = [str(SAMPLE), str(folder / "private.csv")]
    return run_command(folder, "release", *files, *LAPLACE, *COLUMNS)


def stream(folder: Path) -> Calls:
    """A stream of the bundled table, line by line."""
    source = folder / "meters.csv"
    shutil.copy(SAMPLE, source)
    files = ["--input", str(source), "--output", str(folder / "out.csv")]
    state = ["--state", str(folder / "meters.state")]
    return run_command(folder, "stream", *files, *state, *LAPLACE, *COLUMNS)


def answer(folder: Path) -> Calls:
    """One device answers a campaign about categories, which ends with it."""
    from tempriv.collect import Client
    from tests.support.collecting import categories, serving
    from tests.support.devices import ALL_KINDS, URL

    (folder / "server").mkdir()
    with traced() as calls, serving(folder / "server") as service:
        reply = service.http.post("/v1/enrolments", json={"count": 1}, headers=service.admin)
        with Client(
            URL,
            folder / "device",
            enrollment=reply.json()["tokens"][0],
            clock=service.clock,
            http=service.http,
            kinds=ALL_KINDS,
            most_epsilon=4.0,
        ) as client:
            client.hold(category="gas")
            client.run_once()  # enrolls
            campaign = service.begin(categories(people=1))["id"]
            calls.clear()
            assert client.run_once().taken == 1
            service.tick()
            service.get(f"/v1/campaigns/{campaign}/result")
    return calls


PATHS: dict[str, Callable[[Path], Calls]] = {
    "release": release,
    "stream": stream,
    "answer": answer,
}


def modules(folder: Path) -> int:
    """How many modules of the package a release loads."""
    release(folder)
    return sum(name.partition(".")[0] == "tempriv" for name in sys.modules)


if __name__ == "__main__":
    if sys.argv[1] == "modules":
        print(modules(Path(sys.argv[2])))
        sys.exit()
    print(json.dumps(list(PATHS[sys.argv[1]](Path(sys.argv[2])))))
