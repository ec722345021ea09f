"""Limits over time as typed: releases at other steps, counts at ever finer ones, and streams."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pytest

DAY = datetime.datetime(2025, 1, 7)
LAPLACE = ["--mechanism", "laplace", "--epsilon", "0.5", "--bounds", "0", "5"]
READINGS = ["--time", "time", "--value", "value", "--dataset", "meters"]


def table(name: str, step: datetime.timedelta, count: int, start: datetime.datetime = DAY) -> str:
    lines = [f"{start + i * step:%Y-%m-%d %H:%M:%S},{i % 5}" for i in range(count)]
    Path(name).write_text("\n".join(["time,value", *lines]) + "\n")
    return name


@pytest.fixture
def visits(run):
    """One visit, late in the evening of January 7."""
    Path("visits.csv").write_text("card,entered\na,2025-01-07 23:50:00\n")

    def count(every, start, *words, end="2025-01-08"):
        return run(
            *("count", "visits.csv", f"{every}.csv", "--person", "card", "--time", "entered"),
            *("--every", every, "--from", start, "--to", end, "--mechanism", "laplace"),
            *("--epsilon", 1, "--dataset", "visits", *words),
        )

    return count


def test_counts_at_ever_finer_steps_of_one_evening_add_up(run, visits):
    """A visit at 23:50 is in all of them, though each begins after the last step of the others."""
    run("budget", "create", "visits", "--epsilon", 1, "--unit", "person", "--per-step", 1)
    assert visits("7d", "2025-01-01", "--max-per-step", 1)[0] == 0
    for every, start in (
        ("1d", "2025-01-02"),
        ("1h", "2025-01-07 01:00"),
        ("15min", "2025-01-07 23:15"),
        ("1min", "2025-01-07 23:46"),
    ):
        status, _, err = visits(every, start, "--max-per-step", 1)
        assert status == 3
        assert "above the limit of epsilon = 1" in err
        assert not Path(f"{every}.csv").exists()


def test_a_cap_on_all_visits_of_a_person_costs_a_limit_on_steps_twice(run, visits):
    """Without the first visit the second one counts, at another step."""
    Path("visits.csv").write_text("card,entered\na,2025-01-07 03:00:00\na,2025-01-07 07:00:00\n")
    run("budget", "create", "visits", "--epsilon", 1.5, "--unit", "person", "--per-step", 1)
    status, _, err = visits("1h", "2025-01-07", "--max-per-person", 1)
    assert status == 3
    assert "this release costs epsilon = 2" in err


def test_a_limit_on_consecutive_steps_speaks_of_those_of_the_first_release(run):
    run("budget", "create", "meters", "--epsilon", 2, "--unit", "window", "--window", 24)
    table("days.csv", datetime.timedelta(days=1), 30)
    table("hours.csv", datetime.timedelta(hours=1), 30 * 24)
    window = ["--unit", "window", "--window", 24]
    assert run("release", "days.csv", "1.csv", *LAPLACE, *READINGS, *window)[0] == 0
    status, _, err = run("release", "hours.csv", "2.csv", *LAPLACE, *READINGS, *window)
    assert status == 3
    # 24 days have 24 times 24 hours
    assert "this release costs epsilon = 12" in err


def test_readings_at_no_known_step_are_refused_beside_hours(run):
    run("budget", "create", "meters", "--epsilon", 2)
    table("hours.csv", datetime.timedelta(hours=1), 24)
    assert run("release", "hours.csv", "1.csv", *LAPLACE, *READINGS)[0] == 0
    status, _, err = run(
        *("release", "hours.csv", "2.csv", *LAPLACE, "--value", "value", "--dataset", "meters")
    )
    assert status == 3
    assert "its first release has steps of 1 hour" in err
    assert "this one readings at no known step" in err
    assert not Path("2.csv").exists()


def test_a_stream_at_a_known_step_adds_up_with_a_table(run, monkeypatch):
    run("budget", "create", "meters", "--epsilon", 1)
    hours = Path(table("hours.csv", datetime.timedelta(hours=1), 24))
    sent = Path("sent.csv")
    sent.write_text(hours.read_text() + "2025-01-08 00:30:00,3\n2025-01-08 01:00:00,4\n")

    def stream(*words):
        with sent.open() as lines:
            monkeypatch.setattr(sys, "stdin", lines)
            return run("stream", *LAPLACE, *READINGS, *words)

    assert run("release", "hours.csv", "1.csv", *LAPLACE, *READINGS)[0] == 0
    assert "readings at no known step" in stream()[2]
    status, out, _ = stream("--step", "1h")
    assert status == 0
    assert len(out.splitlines()) == 1 + 25
    assert "2025-01-08 00:30:00" not in out
    assert stream("--step", "1h")[0] == 3
    assert "must be a whole number with one of" in stream("--step", "soon")[2]
