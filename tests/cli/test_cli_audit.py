"""``tempriv audit`` as typed: which way it goes, what it says, and how it ends."""

from __future__ import annotations

import functools
import json
import sys

import pytest

from tempriv.mechanisms.value.laplace import Laplace
from tempriv.sampling import distributions
from tests.support.statistics import COMPILED

LAPLACE = ["laplace", "--epsilon", "1", "--bounds", "0", "5"]
CLEARER = ["laplace", "--epsilon", "3", "--bounds", "0", "5"]  # fewer outcomes to list
GAUSSIAN = ["gaussian", "--rho", "0.5", "--bounds", "0", "5"]
RESPONSE = ["randomized-response", "--epsilon", "1", "--categories", "home,away,asleep"]
PLACES = ["planar-laplace", "--epsilon", "1", "--meters", "200", "--origin", "39.9", "116.4"]
RUNS = ["--statistical", "--runs", 100_000 if COMPILED else 8_000, "--key-seed", "1"]


@pytest.fixture
def run(run):
    return functools.partial(run, "audit")


@pytest.fixture
def half_the_noise(monkeypatch):
    noises = Laplace.distributions.fget
    broken = property(
        lambda self: [distributions.DiscreteLaplace(one.scale / 2) for one in noises(self)]
    )
    monkeypatch.setattr(Laplace, "distributions", broken)


@pytest.mark.parametrize(
    ("words", "loss", "grid"),
    [
        (LAPLACE, "epsilon = 1", "on a grid of 4 instead of 0.00390625"),
        (GAUSSIAN, "rho = 0.5", "on a grid of 4 instead of"),
        (RESPONSE, "epsilon = 1", "every outcome of 1 reading enumerated"),
        (PLACES, "epsilon = 0.6", "on a grid of 128 instead of 0.125"),
        ([*CLEARER, "--unit", "window", "--window", "2"], "epsilon = 3", "of 2 readings"),
        ([*LAPLACE, "--resolution", "1"], "epsilon = 1", "every outcome of 1 reading enumerated"),
        ([*CLEARER, "--bounds", "0", "1"], "epsilon = 3", "on a grid of 4, 1 instead of"),
        ([*RESPONSE, "--max-series-per-person", "2"], "epsilon = 1", "of 1 reading enumerated"),
    ],
    ids=lambda words: str(words)[:60],
)
def test_small_cases_are_enumerated(run, words, loss, grid):
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "exact" in out and grid in out
    assert f"bound     {loss}" in out
    assert "verdict   holds on this case" in out


@pytest.mark.parametrize("words", [LAPLACE, GAUSSIAN, RESPONSE, PLACES], ids=lambda words: words[0])
def test_others_and_on_demand_all_are_run_many_times(run, words):
    status, out, err = run(*words, *RUNS)
    assert (status, err) == (0, "")
    assert f"lower bound on the loss from {RUNS[2]:,} runs" in out
    assert "at least 0." in out and "with confidence 99.9 %" in out
    assert "verdict   consistent with the claim" in out


def test_what_is_too_large_to_enumerate_is_run(run):
    status, out, err = run(*LAPLACE, "--unit", "window", "--window", "24", *RUNS[1:])
    assert (status, err) == (0, "")
    assert f"from {RUNS[2]:,} runs" in out
    assert "worst     24 times" in out


def test_a_broken_claim_ends_with_a_status(run, half_the_noise):
    status, out, _ = run(*LAPLACE)
    assert status == 1
    assert "bound     epsilon = 2, over 2 neighboring pairs" in out
    assert "verdict   CLAIM BROKEN\n" in out
    status, out, _ = run(*LAPLACE, *RUNS)
    assert status == 1
    assert "verdict   CLAIM BROKEN (p-value" in out


def test_machines_read_the_same(run, half_the_noise):
    status, out, _ = run(*LAPLACE, "--json")
    found = json.loads(out)
    assert status == 1
    assert found["method"] == "exact" and found["found"] == pytest.approx(2)
    assert (found["claimed"], found["measure"], found["holds"]) == (1, "epsilon", False)
    assert found["claim"]["loss"] == {"is": "Pure", "epsilon": 1.0}
    status, out, _ = run(*LAPLACE, *RUNS, "--confidence", "0.99", "--json")
    found = json.loads(out)
    assert found["method"] == "statistical" and not found["holds"]
    assert 1 < found["found"] <= 2 and found["p_value"] < 0.01
    assert (found["runs"], found["confidence"]) == (RUNS[2], 0.99)
    assert found["worst"] == [[0.0], [5.0]]


def test_a_seed_gives_the_same_numbers_again(run):
    words = [*RESPONSE, "--json", *RUNS[:3]]
    assert run(*words, "--key-seed", 1) == run(*words, "--key-seed", 1)
    assert run(*words, "--key-seed", 1) != run(*words, "--key-seed", 2)
    assert run(*words) != run(*words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["stuff"], "stuff: must be one of laplace, gaussian"),
        (["laplace"], "give the budget to audit: --epsilon"),
        (["gaussian"], "--epsilon or --rho"),
        (["laplace", "--epsilon", "1"], "needs --bounds"),
        ([*LAPLACE, "--runs", "5000"], "--runs: goes with --statistical"),
        ([*LAPLACE, "--confidence", "0.9"], "--confidence: goes with --statistical"),
        ([*LAPLACE, "--key-seed", "1"], "--key-seed: goes with --statistical"),
        ([*LAPLACE, "--steps", "0"], "--steps 0: must be >= 1"),
        ([*LAPLACE, "--statistical", "--runs", "10"], "--runs 10: must be at least 1000"),
        ([*LAPLACE, "--statistical", "--confidence", "2"], "--confidence 2: must be"),
        (
            ["laplace", "--epsilon", "30", "--bounds", "0", "5", "--statistical"],
            "1,000,000 runs cannot show a loss above",
        ),
    ],
    ids=lambda words: str(words)[:60],
)
def test_what_cannot_be_meant_is_refused(run, words, sentence):
    status, out, err = run(*words)
    assert status == 2 and out == ""
    assert sentence in err


def test_nothing_is_asked_about_a_table(run):
    status, out, _ = run("--help")
    assert status == 0
    for absent in ("--value", "--time", "--series ", "--mechanism"):
        assert absent not in out
    for there in ("--epsilon", "--statistical", "--runs", "--confidence", "--key-seed", "--json"):
        assert there in out
    status, _, _ = run(*LAPLACE, "--value", "kwh")
    assert status == 2


def test_progress_is_shown_on_a_terminal_only(run, monkeypatch):
    assert run(*LAPLACE, *RUNS)[2] == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    assert "runs" in run(*LAPLACE, *RUNS)[2]
    assert "enumerating" in run(*LAPLACE)[2]
