"""Limits on landmarks as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LANDMARKS = ["--landmarks", "landmark", "--time", "step", "--value", "kwh", "--bounds", "0", "5"]


@pytest.fixture
def marked(run):
    """Forty readings, four of them landmarks."""
    rows = "".join(f"{step},{step % 5},{int(step % 10 == 3)}\n" for step in range(40))
    Path("meter.csv").write_text(f"step,kwh,home\n{rows}")
    run("landmarks", "meter.csv", "marked.csv", "--column", "home", "--time", "step")

    def release(output, mechanism, epsilon, *words):
        return run(
            *("release", "marked.csv", output, "--mechanism", mechanism, "--epsilon", epsilon),
            *(*LANDMARKS, "--dataset", "meter", *words),
        )

    return release


def test_landmarks_and_one_other_have_a_limit_beside_that_of_single_readings(run, marked):
    assert run("budget", "create", "meter", "--epsilon", 6, "--unit", "landmarks")[0] == 0
    assert run("budget", "create", "meter", "--epsilon", 1.5)[0] == 0
    status, out, _ = marked("one.csv", "uniform-landmarks", 5)
    assert status == 0
    assert "epsilon 5 of 6 spent on all landmarks" in out
    assert "epsilon 1 of 1.5 spent on any single reading" in out
    about = json.loads(Path("one.csv.release.json").read_text())
    assert about["ledger"]["totals"] == []
    status, _, err = marked("two.csv", "uniform-landmarks", 2)
    assert status == 3
    assert "above the limit of epsilon = 6" in err
    assert not Path("two.csv").exists()


def test_bounds_drawn_again_and_again_pass_their_limit(run, marked):
    run("budget", "create", "meter", "--epsilon", 0.9, "--delta", 1e-4, "--unit", "moment")
    drawn = ("count-bound-landmarks", 1, "--count-epsilon", 0.4)
    assert marked("one.csv", *drawn)[0] == 0
    assert marked("two.csv", *drawn)[0] == 0
    status, _, err = marked("three.csv", *drawn)
    assert status == 3
    assert "whether any one moment of a series is a landmark" in err


@pytest.mark.parametrize("words", [("--unit", "moment", "--window", 3), ("--meters", 5)])
def test_options_that_do_not_go_with_a_unit_are_refused(run, words):
    assert run("budget", "create", "meter", "--epsilon", 1, *words)[0] == 2
