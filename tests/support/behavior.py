"""The safety net: what the program puts out with fixed seeds, as one digest for each case.

Behavior must not change when code is moved or renamed. Everything here is driven through the
command line in this process, or through public names (``import tempriv as tp``). The few internal
names that are needed stand in ``INTERNALS``, so that moving one is a change of one line here.

    python -m tests.support.behavior --record FILE      # write the digests
    python -m tests.support.behavior --compare FILE     # status 1, with the cases that differ
    python -m tests.support.behavior --show CASE        # what is digested, to find a difference

Digested are released tables as they are, and machine-readable facts: numbers (to 12 digits),
specs, checksums. Left out are sentences (any text with a space in it), times of day, versions,
paths and random ids.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import re
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

INTERNALS = {
    "encode": "tempriv.privacy.serialization:encode",
    "digest": "tempriv.privacy.serialization:digest",
    "make_app": "tempriv.collect.server.app:make_app",
    "ServerLimits": "tempriv.collect.server.rate_limits:RateLimits",
    "Fleet": "tempriv.collect.simulation.fleet:Fleet",
    "Traffic": "tempriv.collect.simulation.traffic:Traffic",
    "Faults": "tempriv.collect.simulation.faults:Faults",
    "Client": "tempriv.collect:Client",
    "StreamPlan": "tempriv.local.streams.protocol:StreamPlan",
    "try_stream": "tempriv.local.streams.simulate:simulate_grouped",
    "ShapeClusterer": "tempriv.local.shapes.estimators:ShapeClusterer",
    "ShapeClassifier": "tempriv.local.shapes.estimators:ShapeClassifier",
    "file_of": "tempriv.data.files:file_identity",
    "ReleaseRun": "tempriv.releases.run:ReleaseRun",
}
"""Where internal names live; the only place to change when they move."""

PUBLIC: dict[str, str] = {
    "Near": "WithinDistance",
    "Series": "SeriesTable",
    "Counted": "CountTable",
    "Refusal": "TemprivError",
}
"""Public names as they were in 0.8.0 to what they are called now, where that differs."""

KEYS: dict[str, dict[str, str]] = {
    "advise": {"neighbors_swapped": "neighbours_swapped"},
    "attack": {"guarantee": "promise"},
}
"""For each command, keys of JSON that it prints, as they are called now, to those of 0.8.0."""

LEFT_OUT = {
    *("tempriv", "created", "finished_at", "opened", "closed", "begun", "recorded", "at", "saved"),
    *("age", "files", "process", "file", "seconds", "took", "path", "ledger", "receipt"),
    *("campaign_url", "started", "finished", "version"),
    *("meaning", "protects_little"),  # since 0.9.0
}
"""Keys whose values differ from run to run, or are names of files."""

TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d")


def internal(name: str) -> Any:
    module, _, attribute = INTERNALS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def public(name: str) -> Any:
    return getattr(importlib.import_module("tempriv"), PUBLIC.get(name, name))


def pass_time(app: Any) -> None:
    """Let the service do what is due by its clock."""
    service = app.state.service
    service.store.submit(service.tick).result()


# what is digested


def facts(value: Any, digits: int = 12) -> Any:
    """The machine-readable part: sentences and whatever differs between runs are left out."""
    if isinstance(value, dict):
        return {
            key: facts(item, digits)
            for key, item in sorted(value.items())
            if key not in LEFT_OUT and not _is_prose(item) and not _is_state_file(key, item)
        }
    if isinstance(value, (list, tuple)):
        return [facts(item, digits) for item in value if not _is_prose(item)]
    if isinstance(value, np.ndarray | np.generic):
        return facts(value.tolist(), digits)
    if isinstance(value, float):
        # the last bits of a computed number depend on the processor; released tables are exact
        return float(f"{value:.{digits}g}")
    return value


def keys_of_0_8_0(command: str, value: Any) -> Any:
    """What a ``command`` printed as JSON, with the keys that it had in 0.8.0."""
    if isinstance(value, dict):
        names = KEYS.get(command, {})
        return {names.get(key, key): keys_of_0_8_0(command, item) for key, item in value.items()}
    if isinstance(value, list):
        return [keys_of_0_8_0(command, item) for item in value]
    return value


def _is_state_file(key: str, value: Any) -> bool:
    return key == "state" and isinstance(value, str) and "/" in value


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and " " in value and not TIME.match(value)


def fingerprint(value: Any) -> str:
    """Floats by their shortest exact form, so that a bit that differs is seen."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# running commands


@cache
def entry() -> Callable[[], None]:
    found: Callable[[], None] = entry_points(group="console_scripts")["tempriv"].load()
    return found


def run(*words: Any) -> tuple[int, str, str]:
    """A command in this process: its status, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["tempriv", *map(str, words)]
    status: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            entry()()
    except SystemExit as ended:
        status = ended.code or 0
    finally:
        sys.argv = before
    return int(status), out.getvalue(), err.getvalue()


def done(*words: Any, status: int = 0) -> str:
    """What a command printed; an unexpected status is an error of the case."""
    found, out, err = run(*words)
    if found != status:
        raise AssertionError(f"status {found}: tempriv {' '.join(map(str, words))}\n{err}{out}")
    return out


def told(*words: Any, status: int = 0) -> Any:
    return facts(json.loads(done(*words, "--json", status=status)))


def table_of(path: Path) -> Any:
    """All cells of a released table: the bytes of a CSV file, the values of a Parquet file."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        rows = [[str(cell) for cell in column.to_pylist()] for column in table.columns]
        return [table.column_names, [str(kind) for kind in table.schema.types], rows]
    return path.read_text()


def description_of(path: Path) -> Any:
    about = json.loads(path.with_name(path.name + ".release.json").read_text())
    if path.suffix == ".parquet":
        about.pop("output")  # its bytes also depend on the library that writes them
    return facts(in_first_format(about))


SINCE_FORMAT_1 = ("evidence", "signature", "meaning")
"""What descriptions have since format 2, the one of 0.8.0 being format 1."""


def in_first_format(about: dict[str, Any]) -> dict[str, Any]:
    """A description as format 1 had it: with the fields that it had, which must stay the same."""
    about = {name: item for name, item in about.items() if name not in SINCE_FORMAT_1}
    return {**about, "format": 1} if about.get("format") == 2 else about


def release_of(path: Path) -> Any:
    """Everything that a release of 0.8.0 consists of, also what stays with its owner."""
    found = {"table": table_of(path), "about": description_of(path)}
    for beside in sorted(path.parent.glob(f"{path.name}.owner.csv")):
        found[beside.name] = beside.read_text()
    return found


# inputs: arithmetic, so that no generator of random numbers has a say

HOURS = [datetime(2026, 1, 5) + timedelta(hours=i) for i in range(400)]


def draw(*place: int) -> float:
    """From 0 to 1, the same for the same place, without a pattern that one would see."""
    word = hashlib.sha256(repr(place).encode()).digest()
    return int.from_bytes(word[:6], "big") / (1 << 48)


def write(path: Path, header: str, rows: list[list[Any]]) -> None:
    lines = [header, *(",".join("" if cell is None else str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def write_inputs(folder: Path) -> None:
    """All tables that the cases read."""
    homes = ["a", "b", "c"]
    numbers: list[list[Any]] = []
    for step in range(60):
        for i, home in enumerate(homes):
            level = 2.5 + 2 * math.sin((step + 3 * i) / 5) + draw(1, step, i) / 4
            heat = 20 + 5 * math.cos(step / 7) + draw(2, step, i)
            people = int(40 + 30 * math.sin(step / 9) + 5 * draw(3, step, i))
            owner = "p" if home == "c" else "q"
            mark = int(draw(4, step, i) < 0.15)
            place = 39.9 + draw(5, step, i) / 50, 116.4 + draw(6, step, i) / 50
            presence = "home" if draw(7, step // 5, i) < 0.6 else "away"
            room = ("bath", "hall", "kitchen")[int(3 * draw(8, step // 3, i))]
            numbers.append(
                [
                    *(home, HOURS[step], f"{level:.3f}", f"{heat:.2f}", people, owner, mark),
                    *(f"{place[0]:.6f}", f"{place[1]:.6f}", presence, room),
                    *(f"{10 + 5 * draw(9, step, i):.2f}", f"{draw(10, step, i):.2f}"),
                    *(step * 30 + int(9 * draw(11, step, i)), step),
                ]
            )
    header = "home,time,kwh,heat,people,owner,mark,lat,lon,presence,room,pace,late,seconds,n"
    write(folder / "all.csv", header, numbers)
    gaps = [list(row) for i, row in enumerate(numbers) if i % 17 != 5]
    for i, row in enumerate(gaps):
        if i % 11 == 3:
            row[2] = None
        if i % 13 == 4:
            row[9] = None
        if i % 19 == 6:
            row[7] = row[8] = None
    write(folder / "gaps.csv", header, gaps)
    one = [row for row in numbers if row[0] == "a"]
    write(folder / "one.csv", header, one)
    events = []
    for i in range(400):
        when = HOURS[0] + timedelta(minutes=int(60 * 24 * 2 * draw(20, i)))
        kind = ("in", "out")[int(2 * draw(21, i))]
        events.append([f"p{int(40 * draw(22, i))}", when, kind, f"{4 * draw(23, i):.2f}"])
    write(folder / "events.csv", "badge,entered,kind,amount", events)
    people = []
    for i in range(240):
        turn = (i % 3) * 2.0
        series = [math.sin(turn + t / 6) + draw(30, i, t) / 3 for t in range(36)]
        people.append([("x", "y")[i % 2], *(f"{value:.3f}" for value in series)])
    write(folder / "people.csv", "group," + ",".join(f"t{t}" for t in range(36)), people)
    long = [
        [f"p{i}", t, row[1 + t]] for i, row in enumerate(people[:80]) for t in range(len(row) - 1)
    ]
    write(folder / "long.csv", "who,when,value", long)
    (folder / "chain.json").write_text("[[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]\n")
    write(folder / "budgets.csv", "epsilon", [[0.1 + (i % 3) / 10] for i in range(40)])
    write(folder / "times.csv", "home,time", [["a", HOURS[20]], ["b", HOURS[7]], ["b", HOURS[30]]])
    write(folder / "calendar.csv", "time", [[HOURS[step]] for step in range(60)])
    split = [i for i, row in enumerate(numbers) if row[1] == HOURS[35]][1]
    write(folder / "first.csv", header, numbers[:split])
    write(folder / "rest.csv", header, numbers[split:])
    odd = [list(row) for row in numbers[:60]]
    odd[10][2], odd[11][2], odd[12][2], odd[14][9] = "99", "-7", "what", "moon"
    odd[20], odd[21], odd[30][1] = odd[21], odd[20], "no time"
    write(folder / "odd.csv", header, [*odd, odd[5], *odd[58:60]])


# cases

Case = Callable[[Path], Any]
CASES: dict[str, Case] = {}


def case(name: str, made: Case) -> None:
    assert name not in CASES, name
    CASES[name] = made


SEEDED = ("--key-seed", "7", "--not-private")
FREE = (*SEEDED, "--no-ledger", "--force")
COLUMNS = ("--time", "time", "--series", "home")
KWH, TWO = ("--value", "kwh"), ("--value", "kwh", "--value", "heat")
ANSWER, PLACE = ("--value", "presence"), ("--value", "lat", "--value", "lon")
BOUNDS, BOUNDS_2 = ("--bounds", "0", "5"), ("--bounds", "0", "5", "--bounds", "0", "30")
SHARED, WHOLE = ("--unit", "window", "--window", "6"), ("--unit", "series", "--length", "60")
EVENT = ("--unit", "event")
HOME_AWAY = ("--categories", "home,away")
REORDER_BATCHES = ("--origin", "39.9", "116.4", "--metres", "200")
PEOPLE = ("--value", "people", "--bounds", "0", "100")
MARKED = ("--landmarks", "mark")
AT_MOST = (*MARKED, "--count", "20")
ROW = (*KWH, "--value", "room")

# of each mechanism: the options by variant; None instead of a status if it can also be streamed
RELEASES: dict[str, dict[str, tuple[Any, ...]]] = {
    "laplace": {
        "event": (1, *KWH, *BOUNDS),
        "window": (2, *KWH, *BOUNDS, *SHARED),
        "series": (30, *KWH, *BOUNDS, *WHOLE),
        "person": (2, *KWH, *BOUNDS, "--person", "owner", "--max-series-per-person", "2"),
        "person-window": (
            *(3, *KWH, *BOUNDS, *SHARED, "--person", "owner"),
            *("--max-series-per-person", "2"),
        ),
        "columns": (1, *TWO, *BOUNDS_2),
        "per-column": (1, *TWO, *BOUNDS_2, "--per-column"),
        "coarse": (1, *KWH, *BOUNDS, "--resolution", "0.5"),
        "whole-numbers": (0.5, *PEOPLE, "--resolution", "1"),
        "clip": (1, *KWH, "--bounds", "1", "3", "--clip"),
        "pseudonyms": (1, *KWH, *BOUNDS, "--pseudonyms"),
        "index": (1, *KWH, *BOUNDS, "--grid", "index"),
        "calendar": (1, *KWH, *BOUNDS, "--grid", "calendar", "calendar.csv"),
    },
    "gaussian": {
        "event": (1, *KWH, *BOUNDS, "--delta", "1e-6"),
        "window": (1, *KWH, *BOUNDS, "--delta", "1e-6", *SHARED),
        "series": (1, *KWH, *BOUNDS, "--delta", "1e-5", *WHOLE),
        "columns": (1, *TWO, *BOUNDS_2, "--delta", "1e-6"),
        "per-column": (1, *TWO, *BOUNDS_2, "--delta", "1e-6", "--per-column"),
        "rho": (None, *KWH, *BOUNDS, "--rho", "0.5"),
    },
    "randomized-response": {
        "event": (1, *ANSWER, *HOME_AWAY),
        "window": (3, *ANSWER, *HOME_AWAY, *SHARED),
        "series": (20, *ANSWER, *HOME_AWAY, *WHOLE),
        "columns": (
            *(2, *ANSWER, "--value", "room", *HOME_AWAY),
            *("--categories", "bath,hall,kitchen"),
        ),
        "per-column": (
            *(1, *ANSWER, "--value", "room", *HOME_AWAY),
            *("--categories", "bath,hall,kitchen", "--per-column"),
        ),
    },
    "memoized-response": {
        "plain": (2, *ANSWER, *HOME_AWAY),
        "instant": (2, *ANSWER, *HOME_AWAY, "--epsilon-instant", "1"),
    },
    "planar-laplace": {
        "near": (1, *PLACE, *REORDER_BATCHES),
        "coarse": (1, *PLACE, *REORDER_BATCHES, "--resolution", "4"),
    },
    "sparse-vector": {
        "series": (5, *PEOPLE, "--threshold", "50", "--alerts", "3", *WHOLE),
    },
    "running-count": {
        "event": (1, *PEOPLE, "--horizon", "64"),
        "tree": (1, *PEOPLE, "--horizon", "64", "--method", "tree"),
        "square-root": (
            *(None, "--rho", "0.5", *PEOPLE),
            *("--horizon", "64", "--method", "square-root"),
        ),
        "increments": (1, *PEOPLE, "--horizon", "64", "--method", "increments"),
        "window": (1, *PEOPLE, "--horizon", "64", *SHARED),
        "series": (1, *PEOPLE, *WHOLE, "--delta", "1e-6"),
    },
    **{
        name: {
            "window": (6, *PEOPLE, *SHARED),
            "event": (1, *PEOPLE, *EVENT),
            "columns": (6, *TWO, *BOUNDS_2, *SHARED),
        }
        for name in ("uniform-budget", "sample-once", "budget-distribution", "budget-absorption")
    },
    "fast": {"series": (5, *PEOPLE, "--samples", "12", "--wander", "2", *WHOLE)},
    "pegasus": {
        "event": (2, *KWH, *BOUNDS),
        "median": (2, *KWH, *BOUNDS, "--smoothing", "median", "--theta", "9", *EVENT),
        "james-stein": (2, *PEOPLE, "--smoothing", "james-stein", "--grouping-share", "0.3"),
        "window": (4, *KWH, *BOUNDS, *SHARED, "--longest-group", "8"),
    },
    "pattern-sampling": {
        "window": (6, *PEOPLE, *SHARED),
        "event": (2, *PEOPLE, *EVENT),
    },
    "pattern-ldp": {
        "plain": (4, *PEOPLE, "--window", "6"),
        "tuned": (4, *PEOPLE, "--window", "6", "--tolerance", "0.5", "--spread", "9"),
    },
    "fourier": {
        "series": (5, *KWH, *BOUNDS, "--coefficients", "9", *WHOLE),
        "gaussian": (2, *KWH, *BOUNDS, "--delta", "1e-6", "--coefficients", "9", *WHOLE),
        "event": (1, *KWH, *BOUNDS, "--coefficients", "9", "--horizon", "60"),
    },
    "backward": {"rows": (1, *ROW, "--window", "6")},
    "forward": {"rows": (1, *ROW, "--window", "6")},
    "threshold": {
        "rows": (2, *ROW, "--window", "6"),
        "slots": (4, *ROW, "--window", "6", "--free-slots", "3"),
    },
    "dual-threshold": {
        "rows": (2, *ROW, "--window", "6"),
        "slots": (4, *ROW, "--window", "6", "--free-slots", "3"),
    },
    "block-shuffle": {
        "rows": (1, *ROW, "--block", "12"),
        "offset": (0.5, *ROW, "--block", "12", "--offset", "5"),
    },
    "noisy-order": {
        "rows": (1, *ROW, "--window", "6"),
        "laplace": (1, *ROW, "--window", "6", "--order-noise", "laplace"),
        "latency": (2, *ROW, "--window", "6", "--latency", "40", "--delta", "0.2"),
    },
    "sampling-period": {
        "plain": (1, *KWH, "--window", "8", "--tau", "1"),
        "pace": (1, *KWH, "--window", "5", "--tau", "5", "--period", "15", "--pace", "pace"),
        "shift": (
            *(1, *TWO, "--window", "5", "--tau", "5", "--period", "15", "--pace", "pace"),
            *("--shift", "2", "--late", "late"),
        ),
        "hermitian": (1, *KWH, "--window", "8", "--tau", "1", "--interpolation", "hermitian"),
        "printed": (
            *(1, *KWH, "--window", "8", "--tau", "1", "--interpolation", "printed"),
            *("--clamp", "none"),
        ),
    },
    "noisy-curve": {
        "event": (1, *KWH, *BOUNDS, "--span", "8"),
        "window": (3, *KWH, *BOUNDS, "--span", "8", "--waves", "4", *SHARED),
    },
    "noisy-times": {
        "one": (1, "--value", "seconds", "--tau", "60"),
        "window": (3, "--value", "seconds", "--tau", "60", "--window", "4"),
    },
    **{
        name: {
            "numbers": (5, *KWH, *BOUNDS, *given),
            "columns": (5, *TWO, *BOUNDS_2, *given),
            "categories": (5, *ANSWER, *HOME_AWAY, *given),
            "places": (5, *PLACE, *REORDER_BATCHES, *given),
            **more,
        }
        for name, given, more in (
            ("uniform-landmarks", AT_MOST, {"counted": (5, *KWH, *BOUNDS, *MARKED)}),
            ("skip-landmarks", MARKED, {}),
            (
                "adaptive-landmarks",
                AT_MOST,
                {
                    "tuned": (
                        *(5, *KWH, *BOUNDS, *AT_MOST, "--kappa", "0.5", "--increase", "0.7"),
                        *("--decrease", "0.3", "--least", "0.2"),
                    )
                },
            ),
            (
                "split-landmarks",
                (*AT_MOST, "--length", "60"),
                {"counted": (5, *KWH, *BOUNDS, *MARKED)},
            ),
            (
                "count-bound-landmarks",
                AT_MOST,
                {
                    "drawn": (
                        *(5, *KWH, *BOUNDS, *MARKED, "--count-epsilon", "0.5", "--miss", "1e-4"),
                    ),
                    "from-values": (5, *KWH, *BOUNDS, *AT_MOST, "--landmarks-from-values"),
                },
            ),
        )
    },
}
WITHOUT_TIMES = ("sampling-period", "noisy-times")  # their secret is when; rows are in order
PROMISES_NOTHING = ("forward", "pattern-ldp", "sampling-period")
MISSING = {
    *("laplace", "gaussian", "randomized-response", "memoized-response", "planar-laplace"),
    *("sparse-vector", "running-count", "uniform-budget", "sample-once", "budget-distribution"),
    *("budget-absorption", "fast", "pegasus", "pattern-sampling", "pattern-ldp", "fourier"),
    *("backward", "forward", "threshold", "dual-threshold", "block-shuffle", "noisy-order"),
    *("noisy-curve", "uniform-landmarks", "adaptive-landmarks", "split-landmarks"),
}


def words_of(mechanism: str, options: tuple[Any, ...], columns: bool = True) -> list[str]:
    epsilon, *others = options
    words = ["--mechanism", mechanism, *(() if epsilon is None else ("--epsilon", epsilon))]
    if mechanism not in WITHOUT_TIMES:
        words += COLUMNS if columns else ()
    else:
        words += ("--series", "home") if columns else ()
    return [str(word) for word in (*words, *others)]


def given_marks(mechanism: str, options: tuple[Any, ...]) -> list[str]:
    """That no value decided on the landmarks has to be said since 0.8.0, where no note says it."""
    decided = "--landmarks-from-values" in options or mechanism == "count-bound-landmarks"
    return ["--landmarks-given"] * ("--landmarks" in options and not decided)


def add_releases() -> None:
    for mechanism, variants in RELEASES.items():
        for variant, options in variants.items():
            add_release(f"release/{mechanism}/{variant}", mechanism, options)
        first = next(iter(variants.values()))
        if mechanism in MISSING:
            add_release(f"release/{mechanism}/missing", mechanism, first, "gaps.csv", "--gaps null")
    laplace = RELEASES["laplace"]["event"]
    add_release("release/laplace/parquet", "laplace", laplace, end=".parquet")
    rows = RELEASES["block-shuffle"]["rows"]
    add_release("release/block-shuffle/parquet", "block-shuffle", rows, end=".parquet")
    for mechanism in ("laplace", "randomized-response", "planar-laplace"):
        options = (None, *next(iter(RELEASES[mechanism].values()))[1:], "--target-error")
        error = {"laplace": "0.7", "randomized-response": "0.2", "planar-laplace": "300"}[mechanism]
        add_release(f"release/{mechanism}/target-error", mechanism, (*options, error))


def add_release(
    name: str,
    mechanism: str,
    options: tuple[Any, ...],
    source: str = "all.csv",
    more: str = "",
    end: str = ".csv",
) -> None:
    words = [*words_of(mechanism, options), *more.split(), *given_marks(mechanism, options)]

    def released(folder: Path) -> Any:
        out = folder / f"{name.replace('/', '-')}{end}"
        planned = told("release", source, out, *words, "--dry-run", "--no-ledger", *unsafe)
        done("release", source, out, *words, *FREE)
        return {"planned": planned, **release_of(out), "checked": checks_of(out)}

    nothing = mechanism in PROMISES_NOTHING and "--pace" not in options
    unsafe = ("--not-private",) if nothing else ()
    case(name, released)


def checks_of(path: Path) -> Any:
    """Which checks of a release hold; a seeded one promises nothing, so one of them fails."""
    if path.stem in UNCHECKED:
        return None
    _, out, _ = run("verify", path, "--no-ledger", "--json")
    return facts(checks_of_0_8_0(json.loads(out)))


def checks_of_0_8_0(listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that 0.8.0 made; what it did not look at, it called good."""
    known = [
        {**check, "good": check["good"] is not False} for check in listed if check["what"] in CHECKS
    ]
    return [{name: check[name] for name in ("is", "what", "good", "found")} for check in known]


CHECKS = {
    *("the file has the checksum of its description", "the description can be read"),
    *("the guarantee follows from the mechanism", "something is guaranteed"),
    "the published claim is as this version of tempriv has it",
    "what the guarantee means, the expected error and what is not protected are told right",
    *("the table can be read", "the number of rows is as described"),
    *("the number of series is as described", "the columns fit the mechanism"),
    *("every value lies on the public grid", "every place lies on the lattice"),
    *("every value is one of the categories", "every alert is 0 or 1"),
    *("the values have the types that are described", "every row says what it is"),
    *("the file carries the same description inside", "what was done afterwards is told right"),
    "the ledger knows of it",
}
"""Checks of 0.8.0, some of which are worded otherwise since."""


UNCHECKED = ("release-skip-landmarks-categories", "release-adaptive-landmarks-categories")
"""Of these ``verify`` of 0.8.0 ended with an error of its own, so their digests have no checks."""


# streams


def add_streams() -> None:
    for mechanism, variants in RELEASES.items():
        for variant, options in variants.items():
            if {"--person", "--pseudonyms", "--grid", "--clip"} & set(map(str, options)):
                continue
            add_stream(f"stream/{mechanism}/{variant}", mechanism, options)
    laplace, response = RELEASES["laplace"]["event"], RELEASES["randomized-response"]["event"]
    add_stream("stream/laplace/odd", "laplace", laplace, parts=("odd.csv",))
    add_stream("stream/randomized-response/odd", "randomized-response", response, ("odd.csv",))
    add_stream("stream/threshold/odd", "threshold", RELEASES["threshold"]["rows"], ("odd.csv",))
    case("stream/laplace/jsonl", json_lines)
    case("stream/laplace/stateless", stateless)


def add_stream(
    name: str,
    mechanism: str,
    options: tuple[Any, ...],
    parts: tuple[str, ...] = ("first.csv", "rest.csv"),
) -> None:
    """Stopped after a part of the input, and gone on with from its state."""
    words = words_of(mechanism, options)
    if mechanism in WITHOUT_TIMES:
        words += ["--time", "n"]

    def streamed(folder: Path) -> Any:
        base = folder / name.replace("/", "-")
        grown, out, state = (base.with_suffix(f".{end}") for end in ("in.csv", "out.csv", "state"))
        grown.write_text("")
        found: dict[str, Any] = {"mechanism": mechanism}
        for i, part in enumerate(parts):
            lines = Path(part).read_text().splitlines(keepends=True)
            with grown.open("a") as file:
                file.writelines(lines[min(i, 1) :])
            ran = ("--input", grown, "--output", out, "--state", state, "--dataset", "x")
            status, _, _ = run("stream", *words, *ran, *SEEDED, "--no-ledger")
            found[f"run {i}"] = status
            if status:
                return found  # for one that needs a whole series, say
            found[f"output {i}"] = out.read_text()
            found[f"status {i}"] = told("stream", "status", state)
        beside = state.with_name(state.name + ".aside.jsonl")
        found["aside"] = [sorted(json.loads(line)) for line in beside.read_text().splitlines()]
        return found

    case(name, streamed)


def json_lines(folder: Path) -> Any:
    source, out = folder / "in.jsonl", folder / "out.jsonl"
    lines = [
        json.dumps({"home": "ab"[i % 2], "time": i // 2, "kwh": None if i % 7 == 3 else i / 9})
        for i in range(40)
    ]
    source.write_text("\n".join(lines) + "\n")
    words = words_of("laplace", RELEASES["laplace"]["event"])
    ran = ("--format", "jsonl", "--input", source, "--output", out, "--state", folder / "j.state")
    done("stream", *words, *ran, *SEEDED, "--no-ledger")
    return out.read_text()


def stateless(folder: Path) -> Any:
    out = folder / "stateless.csv"
    words = words_of("laplace", RELEASES["laplace"]["event"])
    done("stream", *words, "--input", "all.csv", "--output", out, *SEEDED, "--no-ledger")
    return out.read_text()


# counts of people

WEEK = (
    *("--person", "badge", "--time", "entered", "--every", "1h"),
    *("--from", "2026-01-05", "--to", "2026-01-07"),
)
PER_PERSON = ("--max-per-step", "1", "--max-per-person", "5")
COUNTS: dict[str, tuple[str, ...]] = {
    "laplace/person": ("--mechanism", "laplace", "--epsilon", "1", *PER_PERSON),
    "laplace/event": ("--mechanism", "laplace", "--epsilon", "1", "--max-per-step", "2", *EVENT),
    "laplace/window": (
        *("--mechanism", "laplace", "--epsilon", "1", "--max-per-step", "1", *SHARED),
    ),
    "laplace/by": (
        *("--mechanism", "laplace", "--epsilon", "1", *PER_PERSON),
        *("--by", "kind", "--categories", "in,out"),
    ),
    "laplace/sum": (
        *("--mechanism", "laplace", "--epsilon", "1", *PER_PERSON),
        *("--sum", "amount", "--bounds", "0", "4"),
    ),
    "gaussian/person": (
        *("--mechanism", "gaussian", "--epsilon", "1", "--delta", "1e-6", *PER_PERSON),
    ),
    "sparse-vector/person": (
        *("--mechanism", "sparse-vector", "--epsilon", "2", *PER_PERSON),
        *("--threshold", "9", "--alerts", "2"),
    ),
    "running-count/person": (
        *("--mechanism", "running-count", "--epsilon", "1", "--delta", "1e-6", *PER_PERSON),
    ),
    **{
        f"{name}/window": (
            *("--mechanism", name, "--epsilon", "2", "--max-per-step", "1", *SHARED),
        )
        for name in (
            *("uniform-budget", "sample-once", "budget-distribution", "budget-absorption"),
            *("pegasus", "pattern-sampling"),
        )
    },
    "fast/person": (
        *("--mechanism", "fast", "--epsilon", "2", *PER_PERSON, "--samples", "9", "--wander", "2"),
    ),
    "fourier/person": (
        *("--mechanism", "fourier", "--epsilon", "2", *PER_PERSON, "--coefficients", "9"),
    ),
}


def add_counts() -> None:
    for name, words in COUNTS.items():
        add_count(f"count/{name}", words)


def add_count(name: str, words: tuple[str, ...]) -> None:
    def counted(folder: Path) -> Any:
        out = folder / f"{name.replace('/', '-')}.csv"
        planned = told("count", "events.csv", out, *WEEK, *words, "--dry-run", "--no-ledger")
        done("count", "events.csv", out, *WEEK, *words, *FREE)
        return {"planned": planned, **release_of(out), "checked": checks_of(out)}

    case(name, counted)


# what is done with releases

AFTER = {
    "smooth": ("--smooth", "5"),
    "weight": ("--smooth-weight", "0.3"),
    "monotone": ("--monotone",),
    "non-negative": ("--non-negative",),
    "round": ("--round", "0.5"),
    "all": ("--smooth", "3", "--non-negative", "--round", "0.25"),
    "column": ("--round", "1", "--column", "heat"),
    "total": ("--total", "heat", "--part", "kwh"),
    "series": ("--total", "a"),
}


def released_before(folder: Path, name: str, mechanism: str, variant: str) -> Path:
    out = folder / f"{name}.csv"
    if not out.exists():
        options = RELEASES[mechanism][variant]
        words = [*words_of(mechanism, options), *given_marks(mechanism, options)]
        done("release", "all.csv", out, *words, *FREE)
    return out


def add_after() -> None:
    for name, words in AFTER.items():

        def straightened(folder: Path, name: str = name, words: tuple[str, ...] = words) -> Any:
            before = released_before(folder, "after-before", "laplace", "columns")
            out = folder / f"after-{name}.csv"
            done("after", before, out, *words, "--force")
            return {**release_of(out), "checked": checks_of(out)}

        case(f"after/{name}", straightened)


def add_leakage() -> None:
    def budgets(folder: Path) -> Any:
        words = ("--budgets", "budgets.csv", "--chain", "chain.json")
        out = folder / "leak.csv"
        found = told("leakage", *words, "--target", "1", "--output", out, "--force")
        return [found, out.read_text()]

    def estimated(folder: Path) -> Any:
        before = released_before(folder, "leak-before", "laplace", "event")
        kept, out = folder / "kept.json", folder / "leak2.csv"
        words = ("--from", "all.csv", "--states", "3", "--save-chain", kept, "--output", out)
        found = told("leakage", before, *words, "--force")
        return [found, facts(json.loads(kept.read_text())), out.read_text()]

    def of_landmarks(method: str) -> Case:
        def found(folder: Path) -> Any:
            before = released_before(folder, "leak-marks", "split-landmarks", "counted")
            words = ("--chain", "chain.json", "--method", method)
            status, out, _ = run("leakage", before, *words, "--json")
            return [status, facts(json.loads(out)) if status == 0 else None]

        return found

    def of_places(folder: Path) -> Any:
        before = released_before(folder, "leak-places", "planar-laplace", "near")
        return told("leakage", before, "--chain", "chain.json", "--across", "900")

    case("leakage/budgets", budgets)
    case("leakage/estimated", estimated)
    case("leakage/places", of_places)
    for method in ("bridge", "definition5"):
        case(f"leakage/landmarks-{method}", of_landmarks(method))


MARKS = {
    "column": ("--column", "mark"),
    "times": ("--times", "times.csv"),
    "below": ("--of", "kwh", "--below", "1"),
    "above": ("--of", "kwh", "--above", "4"),
    "among": ("--of", "room", "--among", "bath,hall"),
    "stays": ("--stays", "900", "90", "--latitude", "lat", "--longitude", "lon"),
    **{
        f"dummies-{name}": (
            *("--column", "mark", "--dummies", name, "--dummy-epsilon", "1"),
            *(("--recall", "0.8") if name == "randomized" else ()),
        )
        for name in ("randomized", "partitioned", "heuristic", "optimal")
    },
}


def add_landmarks() -> None:
    for name, words in MARKS.items():

        def marked(folder: Path, name: str = name, words: tuple[str, ...] = words) -> Any:
            out = folder / f"marked-{name}.csv"
            seeded = SEEDED if name.startswith("dummies") else ()
            status, printed, _ = run(
                *("landmarks", "all.csv", out, *words, *COLUMNS, *seeded),
                *("--mark", "moment", "--force", "--json"),
            )
            return [status, facts(json.loads(printed)) if status == 0 else None]\
                + ([out.read_text()] if out.exists() else [])  # fmt: skip

        case(f"landmarks/{name}", marked)


# judging mechanisms

AUDITS: dict[str, tuple[str, str]] = {
    "laplace": ("laplace", "--epsilon 1 --bounds 0 5"),
    "laplace-window": ("laplace", "--epsilon 4 --bounds 0 1 --unit window --window 2"),
    "laplace-series": ("laplace", "--epsilon 4 --bounds 0 1 --unit series --length 2"),
    "gaussian": ("gaussian", "--rho 0.5 --bounds 0 5"),
    "randomized-response": ("randomized-response", "--epsilon 1 --categories a,b,c"),
    "randomized-response-window": (
        "randomized-response",
        "--epsilon 2 --categories a,b --unit window --window 2",
    ),
    "memoized-response": ("memoized-response", "--epsilon 2 --categories a,b"),
    "memoized-instant": (
        "memoized-response",
        "--epsilon 2 --epsilon-instant 1 --categories a,b",
    ),
    "planar-laplace": ("planar-laplace", "--epsilon 1 --origin 39.9 116.4 --metres 200"),
    "sparse-vector": (
        "sparse-vector",
        "--epsilon 2 --bounds 0 2 --threshold 1 --alerts 1 --unit series --length 2",
    ),
    "running-count": ("running-count", "--epsilon 2 --bounds 0 1 --horizon 4"),
    "uniform-budget": ("uniform-budget", "--epsilon 2 --bounds 0 1 --unit window --window 2"),
    "sample-once": ("sample-once", "--epsilon 2 --bounds 0 1 --unit window --window 2"),
    "backward": ("backward", "--epsilon 1 --window 3"),
    "threshold": ("threshold", "--epsilon 2 --window 3"),
    "dual-threshold": ("dual-threshold", "--epsilon 2 --window 3"),
    "block-shuffle": ("block-shuffle", "--epsilon 1 --block 3"),
    "noisy-times": ("noisy-times", "--epsilon 1 --tau 2"),
    "uniform-landmarks": ("uniform-landmarks", "--epsilon 2 --bounds 0 1 --count 1 --steps 2"),
    "split-landmarks": (
        "split-landmarks",
        "--epsilon 2 --bounds 0 1 --count 1 --steps 2 --length 2",
    ),
    "count-bound-landmarks": (
        "count-bound-landmarks",
        "--epsilon 2 --bounds 0 1 --count 1 --steps 2",
    ),
    "skip-landmarks": ("skip-landmarks", "--epsilon 2 --bounds 0 1 --steps 2"),
}


def add_audits() -> None:
    for name, (mechanism, words) in AUDITS.items():

        def audited(folder: Path, mechanism: str = mechanism, words: str = words) -> Any:
            status, out, _ = run("audit", mechanism, *words.split(), "--json")
            found = json.loads(out) if out.strip().startswith("{") else {}
            exact = found.get("method") == "exact"  # others draw from the operating system
            return [status if exact else None, facts(found) if exact else found.get("method")]

        case(f"audit/{name}", audited)


ADVICE = {
    "costs": "--missing-cost 5 --repeated-cost 1 --empty-cost 2 --epsilon 2 --window 6",
    "costs-file": "--missing-cost 5 --repeated-cost 1 --empty-cost 0.5 --delay-cost 0.2 "
    "--epsilon 1 --window 8 --as file",
    "count": "one.csv --task count --epsilon 2 --window 5 --time time --value room "
    "--value-of-interest bath",
    "average": "one.csv --task average --epsilon 2 --window 5 --time time --value kwh "
    "--average-over 4",
    "paper": "one.csv --task count --unit-costs paper --epsilon 2 --window 5 --time time "
    "--value room",
}
ATTACKS = {
    "candidates-laplace": "candidates --mechanism laplace --epsilon 1 --bounds 0 5 --runs 600",
    "candidates-value": "candidates --mechanism sampling-period --epsilon 1 --window 8 --tau 1 "
    "--change value --runs 600",
    "candidates-pace": "candidates --mechanism sampling-period --epsilon 1 --window 8 --tau 1 "
    "--change pace --runs 600",
    "candidates-swap": "candidates --mechanism noisy-order --epsilon 1 --window 6 --change swap "
    "--runs 600",
    "candidates-times": "candidates --mechanism noisy-times --epsilon 1 --tau 60 --change time "
    "--runs 600",
    "window": "window --mechanism sampling-period --epsilon 1 --window 8 --tau 1 --clamp none "
    "--interpolation hermitian --windows 20",
}


def add_judging() -> None:
    def quiet(*words: str) -> Case:
        def found(folder: Path) -> Any:
            status, out, _ = run(*words, "--json")
            printed = keys_of_0_8_0(words[0], json.loads(out)) if out.strip() else None
            return [status, facts(printed)]

        return found

    for name, words in ADVICE.items():
        case(f"advise/{name}", quiet("advise", *words.split()))
    for name, words in ATTACKS.items():
        case(f"attack/{name}", quiet("attack", *words.split(), "--key-seed", "7"))
    for name in RELEASES:
        case(f"mechanisms/{name}", mechanism_told(name))


def mechanism_told(name: str) -> Case:
    def found(folder: Path) -> Any:
        about = json.loads(done("mechanisms", name, "--json"))
        about = about.get(name, about)
        return facts({key: about.get(key) for key in ("guarantee", "published", "example")})

    return found


# budgets


def add_budgets() -> None:
    plans = {
        "each": "--releases 100 --each 0.05 --delta 1e-6",
        "epsilon": "--releases 1440 --per day --within week --epsilon 1 --delta 1e-6",
        "pure": "--releases 30 --epsilon 2",
        "within": "--releases 24 --per day --within week --each 0.01 --delta 1e-7",
    }
    for name, words in plans.items():

        def planned(folder: Path, words: str = words) -> Any:
            status, out, _ = run("budget", "plan", *words.split(), "--json")
            # found by a search over Fourier transforms, which agree to fewer digits
            return [status, facts(json.loads(out), digits=6) if status == 0 else None]

        case(f"budget/plan-{name}", planned)
    case("budget/ledger", charged)


def charged(folder: Path) -> Any:
    """Limits of several units and none, charges of several kinds, and some that are refused."""
    # 0.8.0 took equal rows under two names for different data
    with mock.patch.object(internal("ReleaseRun"), "sketch_for", lambda run, ledger: None):
        return _charged(folder)


def _charged(folder: Path) -> Any:
    limits = {
        "events": "--epsilon 3",
        "windows": "--epsilon 90 --delta 1e-5 --unit window --window 24",
        "streams": "--epsilon 90 --delta 1e-5 --unit window --window 24",
        "wholes": "--epsilon 99 --delta 1e-5 --unit series --length 60",
        "swaps": "--epsilon 3 --unit swap --window 6",
        "visits": "--epsilon 2 --unit person --length 48 --per-step 1 --total 5",
    }
    for name, words in limits.items():
        done("budget", "create", name, *words.split())
    found: list[Any] = []
    charges: list[tuple[str, str, str]] = [
        *(("events", "laplace", "event"), ("events", "laplace", "window")),
        *(("windows", "laplace", "event"), ("windows", "gaussian", "event")),
        *(("wholes", "gaussian", "series"), ("wholes", "laplace", "event")),
        *(("swaps", "noisy-order", "rows"), ("", "laplace", "event")),
        ("events", "randomized-response", "event"),
    ]
    for i, (dataset, mechanism, variant) in enumerate(charges):
        words = words_of(mechanism, RELEASES[mechanism][variant])
        out = folder / f"paid-{i}.csv"
        named = ("--dataset", dataset) if dataset else ()
        status, _, _ = run("release", "all.csv", out, *words, *named)
        found.append(status)
        if status == 0:
            done("verify", out)
    words = (*WEEK, *COUNTS["laplace/person"], "--dataset", "visits")
    found.append(run("count", "events.csv", folder / "paid-c.csv", *words)[0])
    found.append(run("count", "events.csv", folder / "paid-d.csv", *words)[0])
    found.append(run("count", "events.csv", folder / "paid-e.csv", *words)[0])
    words = words_of("laplace", RELEASES["laplace"]["event"])
    files = ("--input", "all.csv", "--output", folder / "paid-s.csv", "--state", folder / "p.state")
    found.append(run("stream", *words, *files, "--dataset", "streams")[0])
    shown = told("budget", "show")
    logged = run("budget", "log", "--json")
    kept = [] if logged[0] else [_charge(one) for one in json.loads(logged[1])]
    return [found, shown, kept]


def _charge(one: dict[str, Any]) -> Any:
    return facts({key: item for key, item in one.items() if key not in ("note", "release_id")})


# shapes


SHAPES = {
    "plain": "people.csv --epsilon 6 --shapes 2 --segment 6 --longest 6 --symbols 3",
    "labels": "people.csv --epsilon 6 --label group --labels x,y --segment 6 --longest 6",
    "dtw": "people.csv --epsilon 6 --shapes 3 --segment 4 --distance dtw --readings 36",
    "euclidean": "people.csv --epsilon 6 --shapes 3 --segment 4 --distance euclidean",
    "long": "long.csv --series who --time when --value value --epsilon 6 --shapes 2 --segment 6",
    "one-shot": "people.csv --epsilon 6 --shapes 2 --segment 9 --method one-shot",
    "published": "people.csv --epsilon 6 --shapes 2 --segment 6 --method published",
    "nearest": "people.csv --epsilon 6 --shapes 2 --segment 6 --method nearest",
}


def add_shapes() -> None:
    for name, words in SHAPES.items():

        def shaped(folder: Path, name: str = name, words: str = words) -> Any:
            out, kept = folder / f"shapes-{name}.csv", folder / f"shapes-{name}.json"
            found = told("shapes", *words.split(), "--output", out, *FREE)
            done("shapes", *words.split(), "--output", kept, *FREE)
            return [found, table_of(out), facts(json.loads(kept.read_text()))]

        case(f"shapes/{name}", shaped)
    case("shapes/clusterer", clustered)
    case("shapes/classifier", classified)
    for method in ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA"):
        case(f"population/{method}", tried(method))


def people_series() -> tuple[np.ndarray[Any, Any], list[str]]:
    rows = [line.split(",") for line in Path("people.csv").read_text().splitlines()[1:]]
    return np.array([[float(cell) for cell in row[1:]] for row in rows]), [row[0] for row in rows]


def clustered(folder: Path) -> Any:
    rows, _ = people_series()
    given = {"n_shapes": 2, "symbols": 3, "longest": 6, "random_state": 1, "epsilon": 6.0}
    found = internal("ShapeClusterer")(**given).fit(rows)
    return facts(np.asarray(found.predict(rows)))


def classified(folder: Path) -> Any:
    rows, groups = people_series()
    given = {"symbols": 3, "longest": 6, "random_state": 1, "epsilon": 6.0}
    found = internal("ShapeClassifier")(**given).fit(rows, groups)
    return facts(np.asarray(found.predict(rows)))


def tried(method: str) -> Case:
    def found(folder: Path) -> Any:
        plan = internal("StreamPlan")(method=method, epsilon=1.0, window=4, size=3, people=600)
        values = np.array([int(3 * draw(40, i)) for i in range(600)])
        key = public("Key").from_seed(7)
        trial = internal("try_stream")(plan, lambda step: (values + step // 4) % 3, 12, key)
        return facts([trial.releases, trial.published, trial.answers])

    return found


# specs: noise depends on their digests


def specs() -> dict[str, Any]:
    """An example of every mechanism, with every kind of unit that it goes with."""
    tp: Any = type("Public", (), {"__getattr__": lambda self, name: public(name)})()
    day, whole, event = tp.Window(24), tp.WholeSeries(60), tp.Event()
    laplace = tp.Laplace(epsilon=1.0, bounds=(0, 5))
    answers = tp.RandomizedResponse(epsilon=1.0, categories=("a", "b", "c"))
    places = tp.PlanarLaplace(epsilon=1.0, unit=tp.Near(200), origin=(39.9, 116.4))
    people = tp.Contribution(whole, per_step=2, total=5)
    given = {"epsilon": 1.0, "bounds": (0, 5)}
    found: dict[str, Any] = {
        "unit/event": event,
        "unit/window": day,
        "unit/series": whole,
        "unit/person": tp.Person(2, day),
        "unit/contribution": tp.Contribution(),
        "unit/contribution-window": tp.Contribution(day, per_step=2, total=3),
        "unit/contribution-signed": tp.Contribution(whole, total=2, signed=True),
        "unit/near": tp.Near(200),
        "unit/answers": tp.Answers(2),
        "unit/swap": tp.Swap(6),
        "unit/block-swap": tp.BlockSwap(24),
        "unit/slot-origin": tp.SlotOrigin(6),
        "unit/timestamps": tp.Timestamps(60.0, 3),
        "unit/pace": tp.Pace(1.0, 8),
        "unit/landmarks": tp.Landmarks((0, 7)),
        "unit/readings": tp.Readings(21),
        "laplace/event": laplace,
        "laplace/window": tp.Laplace(**given, unit=day),
        "laplace/series": tp.Laplace(**given, unit=whole),
        "laplace/person": tp.Laplace(**given, unit=tp.Person(2, day)),
        "laplace/people": tp.Laplace(epsilon=1.0, bounds=(0, 9), unit=people),
        "laplace/columns": tp.Laplace(epsilon=1.0, bounds=((0, 1), (-1, 2)), grid=2.0**-6),
        "laplace/per-column": tp.Laplace(epsilon=1.0, bounds=((0, 1), (-1, 2)), per_column=True),
        "gaussian/event": tp.Gaussian(rho=0.5, bounds=(0, 5)),
        "gaussian/window": tp.Gaussian(rho=0.5, bounds=(0, 5), unit=day),
        "gaussian/people": tp.Gaussian(rho=0.5, bounds=(0, 9), unit=people),
        "response/event": answers,
        "response/window": tp.RandomizedResponse(epsilon=1.0, categories=("a", "b"), unit=day),
        "response/columns": tp.RandomizedResponse(
            epsilon=1.0, categories=(("a", "b"), ("x", "y", "z"))
        ),
        "memoized/plain": tp.MemoizedResponse(epsilon_forever=2.0, categories=("a", "b")),
        "memoized/instant": tp.MemoizedResponse(
            epsilon_forever=2.0, epsilon_instant=1.0, categories=("a", "b")
        ),
        "planar/near": places,
        "sparse/series": tp.SparseVector(**given, threshold=2, most=3, unit=whole),
        "count/event": tp.RunningCount(**given, horizon=64, unit=event),
        "count/tree": tp.RunningCount(**given, horizon=64, method="tree", unit=event),
        "count/rho": tp.RunningCount(rho=0.5, bounds=(0, 1), horizon=64, unit=people),
        "uniform/window": tp.UniformBudget(**given, unit=day),
        "sample-once/window": tp.SampleOnce(**given, unit=day),
        "distribution/window": tp.BudgetDistribution(**given, unit=day),
        "absorption/window": tp.BudgetAbsorption(**given, unit=day),
        "fast/series": tp.Fast(**given, samples=9, wander=2.0, unit=whole),
        "pegasus/event": tp.PeGaSus(**given, unit=event),
        "pegasus/tuned": tp.PeGaSus(**given, unit=day, theta=9.0, smoothing="median", share=0.3),
        "pattern-sampling/window": tp.PatternSampling(**given, unit=day),
        "pattern-ldp/plain": tp.PatternLDP(**given, window=24),
        "fourier/series": tp.FourierPerturbation(**given, coefficients=9, unit=whole),
        "fourier/rho": tp.FourierPerturbation(
            rho=0.5, bounds=(0, 5), coefficients=9, horizon=60, unit=event
        ),
        "backward": tp.Backward(epsilon=1.0, window=6),
        "forward": tp.Forward(epsilon=1.0, window=6),
        "threshold": tp.Threshold(epsilon=2.0, window=6),
        "threshold/slots": tp.Threshold(epsilon=4.0, window=6, threshold=3),
        "dual-threshold": tp.DualThreshold(epsilon=2.0, window=6),
        "block-shuffle": tp.BlockShuffle(epsilon=1.0, block=24),
        "block-shuffle/offset": tp.BlockShuffle(epsilon=1.0, block=24, offset=5),
        "noisy-order": tp.NoisyOrder(epsilon=1.0, window=6),
        "noisy-order/latency": tp.NoisyOrder(epsilon=1.0, window=6, latency=40, delta=0.2),
        "period": tp.SamplingPeriod(epsilon=1.0, window=8, tau=1.0),
        "period/shift": tp.SamplingPeriod(
            epsilon=1.0, window=8, tau=5.0, period=15.0, shift=2.0, columns=2
        ),
        "period/printed": tp.SamplingPeriod(
            epsilon=1.0, window=8, tau=1.0, interpolation="printed", clamp=None
        ),
        "curve/event": tp.NoisyCurve(**given, window=8),
        "curve/window": tp.NoisyCurve(**given, window=8, waves=4, unit=day),
        "times": tp.NoisyTimes(epsilon=1.0, tau=60.0),
        "times/window": tp.NoisyTimes(epsilon=1.0, tau=60.0, window=3),
        **{
            f"{name}/{kind}": getattr(tp, name)(over=over, **more)
            for name, more in (
                ("UniformLandmarks", {"count": 20}),
                ("SkipLandmarks", {}),
                ("AdaptiveLandmarks", {"count": 20}),
                ("SplitLandmarks", {"count": 20, "length": 60}),
                ("CountBoundLandmarks", {"count": 20}),
            )
            for kind, over in (("numbers", laplace), ("answers", answers), ("places", places))
        },
        "count-bound/drawn": tp.CountBoundLandmarks(over=laplace, count_epsilon=0.5),
        "adaptive/tuned": tp.AdaptiveLandmarks(
            over=laplace, count=20, kappa=0.5, increase=0.7, decrease=0.3, least=0.2
        ),
        "loss/pure": tp.Pure(1.0),
        "loss/approximate": tp.Approximate(1.0, 1e-6),
        "loss/concentrated": tp.Concentrated(0.5),
    }
    return found


def add_specs() -> None:
    case("spec/all", all_specs)
    case("spec/guarantees", all_guarantees)


def all_specs(folder: Path) -> Any:
    """What a spec is called in files, and the digest that noise depends on."""
    encode, digest = internal("encode"), internal("digest")
    return {name: [encode(one), digest(one)] for name, one in specs().items()}


def all_guarantees(folder: Path) -> Any:
    encode, found = internal("encode"), {}
    for name, one in specs().items():
        if hasattr(one, "guarantee"):
            found[name] = facts([encode(one.guarantee), encode(one.published)])
    return found


# Python


def add_python() -> None:
    case("python/release", released_in_python)
    case("python/stream", streamed_in_python)
    case("python/aggregate", aggregated)
    case("python/sensitivity", sensitivities)


def released_in_python(folder: Path) -> Any:
    release, key, found = public("release"), public("Key").from_seed, {}
    values = np.array([2.5 + 2 * math.sin(i / 5) for i in range(60)])
    mechanism = public("Laplace")(epsilon=1.0, bounds=(0, 5))
    found["array"] = release(values, mechanism, key=key(7)).values
    frame = release("all.csv", mechanism, values="kwh", time="time", series="home", key=key(7))
    found["file"], found["ids"] = frame.values, sorted(set(frame.frame["home"].to_pylist()))
    masked = np.ma.masked_array(values, values > 4)
    found["masked"] = np.ma.filled(release(masked, mechanism, key=key(7)).values, -1.0)
    count = public("RunningCount")(epsilon=1.0, bounds=(0, 5), horizon=60, unit=public("Event")())
    sums = release(values, count, key=key(7))
    found["sums"], found["window"] = sums.values, public("window_sum")(sums, 3, 9)
    return facts(found)


def readings_for(name: str) -> list[Any]:
    """Readings that fit a spec, by its name."""
    numbers = [2.5 + 2 * math.sin(i / 5) for i in range(60)]
    marks = [float(i % 9 == 2) for i in range(60)]
    names = ["abc"[i // 7 % 2] for i in range(60)]
    places = [[39.9 + draw(50, i) / 50, 116.4 + draw(51, i) / 50] for i in range(60)]
    family, _, variant = name.partition("/")
    if "Landmarks" in family or family in ("count-bound", "adaptive"):
        if variant == "places":
            return [[*place, mark] for place, mark in zip(places, marks, strict=True)]
        values: list[Any] = names if variant == "answers" else numbers
        return [[value, mark] for value, mark in zip(values, marks, strict=True)]
    if family in ("response", "memoized"):
        return [[one, "xyz"[i % 3]] for i, one in enumerate(names)] if "columns" in name else names
    if family == "planar":
        return list(places)
    if family in ("backward", "forward", "threshold", "dual-threshold", "block-shuffle"):
        return [f"row {i}" for i in range(60)]
    if family == "noisy-order":
        return [f"row {i}" for i in range(60)]
    if family == "period":
        more = [0.5, 0.5, 14.0] if "shift" in name else [1.25]
        return [[value, *more] for value in numbers]
    if family == "laplace" and "column" in name:
        return [[value / 5, value / 3] for value in numbers]
    return list(numbers)


def streamed_in_python(folder: Path) -> Any:
    """Block by block, and gone on with from what a stream remembers."""
    found: dict[str, Any] = {}
    for name, one in specs().items():
        if not hasattr(one, "guarantee"):
            continue
        key, readings = public("Key").from_seed(7), readings_for(name)
        try:
            running = one.start(key, "a")
            out = [running.push(readings[:10]), running.push(readings[10:11])]
            state = running.state()
            again = public("resume")(one, state, key)
            out += [again.push(readings[11:]), again.finish()]
        except public("Refusal"):
            found[name] = "refused"  # that is behavior too
            continue
        kept = hashlib.sha256(state).hexdigest()
        found[name] = [kept, *(repr(np.ma.asarray(part).tolist()) for part in out)]
    return found


def aggregated(folder: Path) -> Any:
    counted = public("aggregate")(
        "events.csv", person="badge", time="entered", every="1h", start="2026-01-05",
        end="2026-01-07", max_per_step=1, max_per_person=5,
    )  # fmt: skip
    mechanism = public("Laplace")(epsilon=1.0, **counted.settings)
    columns = {"values": list(counted.columns), "time": counted.time}
    found = public("release")(counted.table, mechanism, **columns, key=public("Key").from_seed(7))
    return facts([found.values, internal("encode")(counted.unit)])


def sensitivities(folder: Path) -> Any:
    one, sensitivity, found = specs(), public("sensitivity"), {}
    for name in ("unit/event", "unit/window", "unit/series", "unit/contribution-window"):
        for query in (np.cumsum, np.eye(12)):
            told = sensitivity(query, one[name], 12, bounds=(0, 5), or_bound=True)
            found[f"{name} {callable(query)}"] = [told.l1, told.l2]
    return facts(found)


# collecting

BEGUN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


class Clock:
    """Time passes when a case says so."""

    def __init__(self, now: datetime = BEGUN) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now


class Service:
    """A collection service in this process, with a clock of its own, and an admin at it."""

    def __init__(self, http: Any, home: Path, clock: Clock) -> None:
        self.http, self.home, self.clock = http, home, clock

    @property
    def token(self) -> str:
        return (self.home / "admin.token").read_text().strip()

    def call(self, method: str, path: str, token: str | None = None, **given: Any) -> Any:
        headers = {"authorization": f"Bearer {token or self.token}"}
        found = self.http.request(method, path, headers=headers, **given)
        if found.status_code >= 400:
            raise AssertionError(f"{method} {path}: {found.status_code} {found.text}")
        return found

    def get(self, path: str, token: str | None = None) -> Any:
        return self.call("GET", path, token).json()

    def post(self, path: str, **given: Any) -> Any:
        return self.call("POST", path, json=given).json()

    def tick(self, seconds: float = 0.0) -> None:
        self.clock.now += timedelta(seconds=seconds)
        pass_time(self.http.app)

    def close_question(self, campaign: str) -> None:
        """Go on with what has come in."""
        question = self.get(f"/v1/campaigns/{campaign}/question")["question"]
        if question is not None:
            self.post(f"/v1/campaigns/{campaign}/close-question", question=question["id"])

    def traffic(self, fleet: Any, faults: Any = None) -> Any:
        """Made-up devices that answer it; their noise follows from the seed of the fleet."""
        return internal("Traffic")(
            fleet, "http://testserver", self.token, faults=faults, batch=50, connections=1,
            http=self.http, wait=lambda seconds: self.tick(60.0),
        )  # fmt: skip

    def results(self, campaign: str) -> Any:
        """The machine-readable part of what came out, and the release as a table."""
        told = facts(self.get(f"/v1/campaigns/{campaign}/result"))
        packed = self.call("GET", f"/v1/campaigns/{campaign}/release").content
        with zipfile.ZipFile(io.BytesIO(packed)) as parts:
            texts = {name: parts.read(name).decode() for name in sorted(parts.namelist())}
        tables = {name: text for name, text in texts.items() if name.endswith(".csv")}
        about = {
            name: facts(in_first_format(json.loads(text)))
            for name, text in texts.items()
            if name.endswith(".json")
        }
        return [told, tables, about]


@contextlib.contextmanager
def serving(home: Path, clock: Clock | None = None) -> Iterator[Service]:
    from fastapi.testclient import TestClient

    clock = clock or Clock()
    home.mkdir(exist_ok=True)
    most = {"device_rate": 1e6, "staff_rate": 1e6, "address_rate": 1e6, "failures": 10**6}
    app = internal("make_app")(
        f"sqlite:///{home}/collect.db", home=home, clock=clock, ticking=False,
        limits=internal("ServerLimits")(**most),
    )  # fmt: skip
    with TestClient(app, raise_server_exceptions=False) as http:
        yield Service(http, home, clock)


def campaign_of(kind: str, /, *given: Any, **plan: Any) -> dict[str, Any]:
    people, epsilon = given
    return {
        "kind": kind, "title": "Trial", "asks": "What?", "epsilon": epsilon, "people": people,
        "plan": plan, "nonce": hashlib.md5(repr(plan).encode()).hexdigest(),
    }  # fmt: skip


def shapes_campaign(people: int, method: str, labels: tuple[str, ...] = ()) -> dict[str, Any]:
    plan = {"epsilon": 4.0, "people": people, "shapes": 2, "method": method, "readings": 240}
    sax = {
        "symbols": 3, "segment": 10, "compressed": True, "partial": "keep", "longest": 6,
        "values": None,
    }  # fmt: skip
    more = {"low": 1, "breadth": 3, "least": 20, "shares": [0.02, 0.08, 0.7, 0.2]}
    plan |= {"sax": sax, "distance": "levenshtein", "labels": list(labels), **more}
    return campaign_of("shapes", people, 4.0, **plan)


def stream_campaign(people: int, method: str, **more: Any) -> dict[str, Any]:
    plan = {"method": method, "window": 2, "every": 60.0, "steps": 5, "oracle": "automatic"} | more
    return campaign_of("stream", people, 1.0, categories=["home", "away", "off"], **plan)


def frequency_campaign(people: int, oracle: str) -> dict[str, Any]:
    names = [f"c{i}" for i in range(6)]
    return campaign_of("frequency", people, 1.0, categories=names, oracle=oracle)


def upload_campaign(people: int, mechanism: str) -> dict[str, Any]:
    plan = {"mechanism": internal("encode")(specs()[mechanism]), "readings": 6}
    return campaign_of("upload", people, 1.0, **plan)


CAMPAIGNS: dict[str, Callable[[int], dict[str, Any]]] = {
    **{
        f"frequency/{oracle}": lambda people, oracle=oracle: frequency_campaign(people, oracle)
        for oracle in ("automatic", "grr", "oue", "olh", "hadamard")
    },
    **{
        f"shapes/{method}": lambda people, method=method: shapes_campaign(people, method)
        for method in ("one-shot", "nearest", "published")
    },
    "shapes/labels": lambda people: shapes_campaign(people, "nearest", ("x", "y")),
    **{
        f"stream/{method}": lambda people, method=method: stream_campaign(people, method)
        for method in ("LBU", "LSP", "LBD", "LBA", "LPU", "LPD", "LPA")
    },
    **{
        f"upload/{name}": lambda people, name=name: upload_campaign(people, name)
        for name in ("laplace/event", "laplace/series", "laplace/window")
    },
}


def add_campaigns() -> None:
    for name, campaign in CAMPAIGNS.items():
        case(f"collect/{name}", collected(campaign))
    case("collect/faults", collected(CAMPAIGNS["frequency/grr"], faults=True))
    case("collect/device", a_device)


def collected(campaign: Callable[[int], dict[str, Any]], faults: bool = False) -> Case:
    """A campaign from its beginning to its result, with made-up devices over a network."""

    def found(folder: Path) -> Any:
        with tempfile.TemporaryDirectory(dir=folder) as home, serving(Path(home)) as service:
            wrong = {"seed": 5, "loss": 0.2, "duplicate": 0.2, "reorder": True, "delay": True}
            fleet = internal("Fleet").from_seed(7)
            traffic = service.traffic(fleet, internal("Faults")(**wrong) if faults else None)
            traffic.enroll(150)
            given = campaign(150)
            previewed = service.post("/v1/campaigns/preview", **given)
            made = service.post("/v1/campaigns", **given)
            service.tick()
            summary = traffic.run(made["id"])
            tallies = [
                [one.question, one.taken, one.there_already, one.late, one.refused, one.unsent]
                for one in summary.tallies
            ]
            return [facts(previewed), made["id"], facts(made), tallies, service.results(made["id"])]

    return found


def a_device(folder: Path) -> Any:
    """One device answers campaigns of every kind; the system's randomness is a constant here."""
    found: dict[str, Any] = {}
    for kind in ("frequency/grr", "shapes/one-shot", "stream/LBU", "upload/laplace/event"):
        with (
            mock.patch("os.urandom", lambda size: b"\x11" * size),
            tempfile.TemporaryDirectory(dir=folder) as home,
            serving(Path(home)) as service,
        ):
            people = 40 if kind.startswith("shapes") else 1
            made = service.post("/v1/campaigns", **CAMPAIGNS[kind](people))
            enrolment = service.post("/v1/enrolments", count=1)["tokens"][0]
            service.tick()
            sent: list[Any] = []

            def note(request: Any, sent: list[Any] = sent) -> None:
                if request.url.path.endswith("/answers"):
                    sent.append(json.loads(request.content))

            service.http.event_hooks["request"] = [note]
            with device(service, Path(home) / "device", enrolment) as client:
                for _ in range(6):
                    client.run_once()
                    service.tick(60.0)
                    if kind.startswith("shapes"):  # by its lot it is asked a later question
                        service.close_question(made["id"])
                spent = client.spent()
            answers = [[one["question"], base64.b64decode(one["answer"]).hex()] for one in sent]
            found[kind] = [made["id"], spent, answers]
    return found


def network_fault() -> Exception:
    """What a device meets when its server is away."""
    import httpx

    return httpx.ConnectError("away")


@contextlib.contextmanager
def device(service: Service, home: Path, enrolment: str | None = None) -> Iterator[Any]:
    client = internal("Client")(
        "http://testserver", home, enrollment=enrolment, most_epsilon=8.0, limit=40.0,
        kinds=("frequency", "shapes", "stream", "upload"), clock=service.clock,
        http=service.http, plain=True,
    )  # fmt: skip
    with client:
        client.hold(series=[float(3 + i % 7) for i in range(24)], label="x", category="c1")
        client.observe("home")
        yield client


for _add in (
    *(add_specs, add_releases, add_streams, add_counts, add_after, add_leakage, add_landmarks),
    *(add_audits, add_judging, add_budgets, add_shapes, add_python, add_campaigns),
):
    _add()


# running all of it


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder with the inputs, as the working directory; nothing of the user is touched."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_inputs(folder)
        home = {"XDG_DATA_HOME": str(folder / "home"), "COLUMNS": "100"}
        (folder / "out").mkdir()
        with mock.patch.dict(os.environ, home):
            os.environ.pop("TEMPRIV_TOKEN", None)
            os.chdir(folder)
            try:
                yield folder / "out"
            finally:
                os.chdir(before)


def chosen(prefixes: list[str]) -> list[str]:
    return [name for name in CASES if not prefixes or name.startswith(tuple(prefixes))]


def digests(
    names: list[str], progress: Callable[[str, float], None] = lambda name, seconds: None
) -> dict[str, str]:
    """The digest of each case; one that fails says how, and so differs."""
    found = {}
    with workplace() as folder:
        for name in names:
            begun = time.monotonic()
            try:
                found[name] = fingerprint(CASES[name](folder))
            except Exception as problem:
                found[name] = f"{type(problem).__name__}: {problem}"[:1000]
            progress(name, time.monotonic() - begun)
    return found


def differing(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    return [
        f"{name}: {found[name] if ':' in found[name] else 'differs'}"
        if name in expected
        else f"{name}: is new"
        for name in found
        if expected.get(name) != found[name]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="Digests of what the program puts out.")
    parser.add_argument("--only", action="append", default=[], metavar="PREFIX")
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--show", metavar="CASE", help="print what is digested")
    given = parser.parse_args()
    if given.show:
        with workplace() as folder:
            print(json.dumps(CASES[given.show](folder), indent=1, sort_keys=True))
        return 0
    names, begun = chosen(given.only), time.monotonic()
    record, compare = (
        path and path.resolve() for path in (given.record, given.compare)
    )  # the working directory changes meanwhile
    slow: list[tuple[float, str]] = []

    def progress(name: str, seconds: float) -> None:
        slow.append((seconds, name))
        if sys.stderr.isatty():
            print(f"{len(slow)}/{len(names)} {seconds:6.2f} s  {name}", file=sys.stderr)

    found = digests(names, progress)
    print(f"{len(found)} cases in {time.monotonic() - begun:.1f} s", file=sys.stderr)
    failed = [f"{name}: {digest}" for name, digest in found.items() if ":" in digest]
    if record:
        record.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if os.environ.get("BEHAVIOR_SLOWEST"):
        for seconds, name in sorted(slow, reverse=True)[:20]:
            print(f"{seconds:6.2f} s  {name}", file=sys.stderr)
    if not compare:
        print("\n".join(failed))
        return int(bool(failed))
    expected = json.loads(compare.read_text())
    wrong = differing(expected, found)
    if not given.only:
        wrong += [f"{name}: is gone" for name in expected if name not in found]
    print("\n".join(wrong) or f"{len(found)} cases, all as they were")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
