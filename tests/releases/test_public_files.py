"""Nothing public depends on private data: other data, the same drawn outcome, the same bytes.

Two tables differ in all that a unit covers: every value, its spelling, the order of rows that are
moved, which readings are landmarks. What the mechanism draws for the first is what it draws for the
second. Then all that a recipient can see must be equal: the released file, its description with the
receipt of the ledger, the report, what the command prints and its exit status.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tempriv.ledger import ledger as ledger_module
from tempriv.mechanisms import registry
from tempriv.releases import run as run_module
from tempriv.sampling import keys
from tests.support import behavior

FIRST = {name: next(iter(variants)) for name, variants in behavior.RELEASES.items()}
COUNTS = ("laplace/person", "laplace/by", "laplace/sum", "running-count/person", "fast/person")
MORE = {
    ("count-bound-landmarks", "drawn"),
    *((name, "categories") for name in behavior.RELEASES if name.endswith("-landmarks")),
    ("laplace", "clip"),
    ("gaussian", "columns"),
}
CASES = [
    pytest.param(name, options, id=f"{name}-{variant}")
    for name, variants in behavior.RELEASES.items()
    for variant, options in variants.items()
    if variant == FIRST[name] or (name, variant) in MORE
]
# a row stands for its value, and where the values are times, for when it was
MOVED = ("kwh", "room")


def other_values(rows: list[dict[str, str]]) -> None:
    """Other values within the same bounds, spelled in other ways: whole numbers, long, short."""
    for i, row in enumerate(rows):
        number = 5 * behavior.draw(80, i)
        row["kwh"] = (f"{number:.0f}", f"{number:.15g}", f"{number:e}")[i % 3]
        row["heat"] = str(int(30 * behavior.draw(81, i)))
        row["people"] = str(int(100 * behavior.draw(82, i)))
        row["lat"] = str(39.9 + behavior.draw(83, i) / 50)
        row["lon"] = f"{116.4 + behavior.draw(84, i) / 50:.3f}"
        row["presence"] = ("home", "away")[int(2 * behavior.draw(85, i))]
        row["room"] = ("bath", "hall", "kitchen")[int(3 * behavior.draw(86, i))]
        row["seconds"] = str(int(row["seconds"]) + int(20 * behavior.draw(87, i)))
    marks = [row["mark"] for row in rows]
    for row, mark in zip(rows, marks[7:] + marks[:7], strict=True):
        row["mark"] = mark


def moved_rows(rows: list[dict[str, str]]) -> Any:
    """Rows of one series trade their values; where each of them, as it is read, stands then."""
    homes = sorted({row["home"] for row in rows})
    places = [[i for i, row in enumerate(rows) if row["home"] == home] for home in homes]
    came_from = list(range(len(rows)))
    for place in places:
        for first in range(0, len(place) - 5, 6):
            block = place[first : first + 6]
            for i, source in zip(block, reversed(block), strict=True):
                came_from[i] = source
    values = [{name: row[name] for name in MOVED} for row in rows]
    for i, row in enumerate(rows):
        row.update(values[came_from[i]])
    by_series = sorted(range(len(rows)), key=lambda i: (rows[i]["home"], i))
    position = {row: i for i, row in enumerate(by_series)}
    stands = np.empty(len(rows))
    for i, source in enumerate(came_from):
        stands[position[source]] = position[i]
    return stands


class Outcome:
    """What a mechanism drew for one table, to be drawn again for another."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []
        self.stands: Any = None

    def record(self, perturb: Any) -> Any:
        def recorded(*arguments: Any) -> Any:
            self.blocks.append(perturb(*arguments))
            return self.blocks[-1]

        return recorded

    def repeat(self, perturb: Any) -> Any:
        """The private blocks pass through the mechanism too: it may refuse or keep something."""
        drawn = iter(self.blocks)

        def repeated(*arguments: Any) -> Any:
            spent = perturb(*arguments).spent
            block = replace(next(drawn), spent=spent)
            if self.stands is not None:
                numbers = np.where(block.missing, 0, block.values).astype(np.int64)
                block = replace(block, values=np.where(block.missing, 0.0, self.stands[numbers]))
            return block

        return repeated


class Noon(datetime.datetime):
    """A clock that stands still: times of day are public, and in all files."""

    @classmethod
    def now(cls, tz: Any = None) -> datetime.datetime:
        return cls(2026, 1, 1, 12, tzinfo=tz)


def counted_bytes() -> Any:
    """In place of the operating system's, so that ids and keys of two runs are the same."""
    number = itertools.count()

    def urandom(size: int) -> bytes:
        return hashlib.shake_256(str(next(number)).encode()).digest(size)

    return urandom


def public_side(
    folder: Path, words: list[str], patch: pytest.MonkeyPatch
) -> Iterator[tuple[str, bytes]]:
    """All that someone else could see after a command was run in a ``folder``."""
    patch.chdir(folder)
    patch.setenv("XDG_DATA_HOME", str(folder / "home"))
    patch.setattr(keys.os, "urandom", counted_bytes())
    patch.setattr(run_module, "datetime", Noon)
    patch.setattr(ledger_module, "datetime", Noon)
    private = {path.name for path in folder.iterdir()}
    status, out, err = behavior.run(*words)
    yield "exit status", str(status).encode()
    # what is left of the budget is the owner's: it can tell how many landmarks there are
    printed = [line for line in out.splitlines() if not line.startswith("  budget ")]
    yield "standard output", "\n".join(printed).encode()
    yield "standard error", err.encode()
    for path in sorted(folder.iterdir()):
        if path.name not in private and path.name != "home" and ".owner" not in path.name:
            yield path.name, path.read_bytes()


def rewrite(table: Path, change: Any) -> Any:
    """Change the rows of a CSV file; gives what ``change`` gives."""
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = list(rows[0])
    found = change(rows)
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return found


def differing(
    words: list[str], table: str, change: Any, tmp_path: Path, drawn_again: bool = True
) -> list[str]:
    """Which public files of two private tables differ, though the mechanism drew the same."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        behavior.write_inputs(folder)
    outcome = Outcome()
    outcome.stands = rewrite(folders[1] / table, change)
    perturb = run_module.perturb_block
    seen = []
    for folder, forced in zip(folders, (outcome.record, outcome.repeat), strict=True):
        with pytest.MonkeyPatch.context() as patch:
            if drawn_again:
                patch.setattr(run_module, "perturb_block", forced(perturb))
            seen.append(dict(public_side(folder, words, patch)))
    first, second = seen
    assert first["exit status"] == b"0", first["standard error"].decode()
    out = words[2]
    assert {out, f"{out}.release.json", "report.html"} <= first.keys() == second.keys()
    return [what for what in first if first[what] != second[what]]


def releasing(name: str, options: tuple[Any, ...]) -> list[str]:
    """A command that releases a table, with a report."""
    end = "parquet" if name in ("gaussian", "block-shuffle") else "csv"
    words = ["release", "all.csv", f"out.{end}", *behavior.words_of(name, options)]
    unsafe = name in behavior.PROMISES_NOTHING and "--pace" not in options
    marked = "--landmarks" in options and name != "count-bound-landmarks"
    words += [*["--not-private"] * unsafe, *["--landmarks-given"] * marked]
    return [*words, "--report", "report.html"]


@pytest.mark.parametrize(("name", "options"), CASES)
def test_public_files_are_those_of_other_private_data(name, options, tmp_path):
    moves = ".reorder." in registry.find(name).__module__
    change = moved_rows if moves else other_values
    assert differing(releasing(name, options), "all.csv", change, tmp_path) == []


def other_people(rows: list[dict[str, str]]) -> None:
    """Some people leave, others come, and those who stay came at other times."""
    kept = [row for row in rows if int(row["badge"][1:]) % 3]
    for i, row in enumerate(kept):
        row["entered"] = f"2026-01-0{5 + i % 2} {i % 24:02}:00:00"
        row["kind"] = ("in", "out")[i % 2]
        row["amount"] = f"{4 * behavior.draw(90, i):.3f}"
    newcomers = [{**row, "badge": row["badge"] + "x"} for row in kept[:50]]
    rows[:] = [*kept, *newcomers]


@pytest.mark.parametrize("name", COUNTS)
def test_public_files_of_counts_are_those_of_other_people(name, tmp_path):
    words = ["count", "events.csv", "out.csv", *behavior.WEEK, *behavior.COUNTS[name]]
    words = [*map(str, words), "--report", "report.html"]
    assert differing(words, "events.csv", other_people, tmp_path) == []


LAPLACE = (releasing("laplace", behavior.RELEASES["laplace"]["event"]), "all.csv", other_values)


def test_what_is_drawn_differs_by_itself(tmp_path):
    """The two tables are far apart: only the same outcome makes their files the same."""
    assert "out.csv" in differing(*LAPLACE, tmp_path, drawn_again=False)


def test_a_description_of_the_private_table_is_found(tmp_path, monkeypatch):
    about, runs = run_module.ReleaseRun.about, run_module.ReleaseRun._runs
    largest: list[float] = []

    def seeing(self: Any, private: Any) -> Any:
        largest[:] = [float(np.nanmax(private.values))]
        return runs(self, private)

    def telling(self: Any, *statements: Any) -> dict[str, Any]:
        return {**about(self, *statements), "treatment": [f"the largest reading was {largest[0]}"]}

    monkeypatch.setattr(run_module.ReleaseRun, "_runs", seeing)
    monkeypatch.setattr(run_module.ReleaseRun, "about", telling)
    assert "out.csv.release.json" in differing(*LAPLACE, tmp_path)


def test_a_message_about_the_private_table_is_found(tmp_path, monkeypatch):
    perturb = run_module.perturb_block

    def warning(mechanism: Any, block: Any, *rest: Any) -> Any:
        print(f"tempriv: {int((block.values > 4).sum())} readings are near the bound")
        return perturb(mechanism, block, *rest)

    monkeypatch.setattr(run_module, "perturb_block", warning)
    assert "standard output" in differing(*LAPLACE, tmp_path)
