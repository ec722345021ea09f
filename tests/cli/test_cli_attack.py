"""``tempriv attack`` as typed: what it says in plain words, what it never says, how it ends."""

from __future__ import annotations

import functools
import json
import stat
import sys

import numpy as np
import pytest

from tempriv.mechanisms.value.laplace import Laplace
from tempriv.sampling import distributions

RUNS = ["--runs", "4000", "--key-seed", "1"]
LAPLACE = ["candidates", "--mechanism", "laplace", "--epsilon", "1", "--bounds", "0", "5"]
PERIOD = [
    "--mechanism",
    "sampling-period",
    "--epsilon",
    "1",
    "--window",
    "8",
    "--tau",
    "1",
    "--resolution",
    "0.0625",
]
SECRETS = [
    3.7193,
    1.2847,
    4.4629,
    2.9051,
    3.3384,
    1.8276,
    2.2093,
    4.0417,
    3.1725,
    2.6638,
    1.5502,
    3.8869,
    2.1146,
    4.7031,
    1.9987,
    3.0574,
    2.4415,
    4.2266,
]


@pytest.fixture
def run(run):
    return functools.partial(run, "attack")


@pytest.fixture
def table(tmp_path):
    def write(name, values=SECRETS):
        path = tmp_path / name
        lines = [f"{hour},{value}" for hour, value in enumerate(values)]
        path.write_text("\n".join(["hour,kwh", *lines]) + "\n")
        return path

    return write


@pytest.fixture
def half_the_noise(monkeypatch):
    noises = Laplace.distributions.fget
    broken = property(
        lambda self: [distributions.DiscreteLaplace(one.scale / 2) for one in noises(self)]
    )
    monkeypatch.setattr(Laplace, "distributions", broken)


@pytest.mark.parametrize(
    ("change", "secret"),
    [
        ("value", "a changed value"),
        ("time", "when one reading was taken"),
        ("shift", "a common shift in time"),
    ],
)
def test_a_noisy_period_is_told_to_hide_nothing_of_values(run, change, secret):
    status, out, err = run("candidates", *PERIOD, "--change", change, *RUNS)
    assert (status, err) == (0, "")  # nothing was guaranteed, so nothing is broken
    assert "An observer is right 100.0 % of the time (99." in out
    assert "a guarantee of epsilon = 1 would keep them below 73.1 %." in out
    assert f"This release does not hide {secret}." in out
    assert "cap       none: the mechanism guarantees nothing" in out


def test_a_claim_about_values_is_broken(run):
    status, out, _ = run("candidates", *PERIOD, "--change", "value", "--claim", "1", *RUNS)
    assert status == 1
    assert "cap       73.1 %" in out and "THE CLAIM IS BROKEN" in out


def test_the_pace_is_hidden_as_promised(run):
    status, out, err = run("candidates", *PERIOD, "--change", "pace", *RUNS)
    assert (status, err) == (0, "")
    assert "SamplingPeriod: every step of a window longer by 1" in out
    assert "cap       73.1 %" in out and "Nothing here contradicts it." in out
    status, out, _ = run("candidates", *PERIOD, *RUNS)
    assert status == 0 and "neighbors as far apart as the guarantee covers" in out
    status, out, _ = run("candidates", *PERIOD, "--change", "pace", "--by", "3", *RUNS)
    assert status == 0 and "cap       none: the two inputs are no neighbors" in out


@pytest.mark.parametrize(
    "words",
    [
        LAPLACE[1:],
        ["--mechanism", "gaussian", "--rho", "0.5", "--bounds", "0", "5"],
        ["--mechanism", "randomized-response", "--epsilon", "1", "--categories", "home,away"],
        [
            "--mechanism",
            "planar-laplace",
            "--epsilon",
            "1",
            "--meters",
            "200",
            "--origin",
            "39.9",
            "116.4",
        ],
        ["--mechanism", "block-shuffle", "--epsilon", "1", "--block", "4"],
        ["--mechanism", "noisy-times", "--epsilon", "1", "--tau", "60"],
        [
            "--mechanism",
            "budget-absorption",
            "--epsilon",
            "1",
            "--bounds",
            "0",
            "5",
            "--unit",
            "window",
            "--window",
            "3",
        ],
    ],
    ids=lambda words: words[1],
)
def test_promises_hold_on_the_hardest_pair(run, words):
    status, out, err = run("candidates", *words, *RUNS)
    assert (status, err) == (0, "")
    assert "Nothing here contradicts it." in out


def test_a_broken_promise_ends_with_a_status(run, half_the_noise):
    status, out, _ = run(*LAPLACE, *RUNS)
    assert status == 1
    assert "THE GUARANTEE IS BROKEN." in out


def test_an_order_is_given_away_by_all_rows_and_not_by_one(run):
    words = [
        "candidates",
        "--mechanism",
        "threshold",
        "--epsilon",
        "4",
        "--window",
        "4",
        "--change",
        "swap",
        *RUNS,
    ]
    status, out, _ = run(*words)
    assert status == 0
    assert "two readings next to each other trade places" in out
    assert "This release does not hide which of two readings was first." in out
    assert "one output row seen by itself" in out
    status, out, _ = run(*words, "--row", "6")
    assert status == 0 and "Nothing here contradicts it." in out


def test_machines_read_the_same(run):
    status, out, _ = run(*LAPLACE, *RUNS, "--confidence", "0.99", "--json")
    found = json.loads(out)
    assert status == 0 and found["holds"]
    assert found["trials"] == 4000 and found["right"] / 4000 == found["rate"]
    assert found["interval"][0] < found["rate"] < found["interval"][1]
    assert found["cap"] == pytest.approx(0.731, abs=1e-3) == found["budget_would_cap"]
    assert found["advantage"] == pytest.approx(2 * found["rate"] - 1)
    assert found["confidence"] == 0.99 and not found["private"]
    assert found["guarantee"]["loss"] == {"is": "Pure", "epsilon": 1.0}
    status, out, _ = run("candidates", *PERIOD, "--change", "value", *RUNS, "--json")
    found = json.loads(out)
    assert (
        found["cap"] is None
        and found["rate"] > 0.99
        and "guarantees nothing" in found["why_no_cap"]
    )
    status, out, _ = run("window", *PERIOD, "--windows", "5", "--key-seed", "1", "--json")
    found = json.loads(out)
    assert (found["known"], found["readings"], found["windows"]) == (4, 10, 5)
    assert 0 <= found["restored_share"] <= 1 and "Whoever knows 4" in found["verdict"]


def test_a_seed_gives_the_same_numbers_again(run):
    words = [*LAPLACE, "--runs", "1000", "--json"]
    assert run(*words, "--key-seed", 1) == run(*words, "--key-seed", 1)
    assert len({run(*words, "--key-seed", seed) for seed in range(4)}) > 1
    assert len({run(*words) for _ in range(4)}) > 1


def test_windows_of_the_sample_are_restored(run):
    status, out, err = run("window", *PERIOD, "--clamp", "none", "--windows", "20", "--key-seed", 1)
    assert (status, err) == (0, "")
    assert "20 windows of 10 readings, 4 known" in out
    assert "Whoever knows 4 of the 10 readings of a window restores all others in" in out
    assert "private" not in out


# what is in a file stays in it


def hides_all(text):
    return not any(str(value) in text for value in SECRETS)


def test_a_table_of_ones_own_is_attacked_and_never_shown(run, table):
    source = ["--value", "kwh", "--time", "hour"]
    status, out, err = run(
        "candidates", table("own.csv"), *PERIOD, *source, "--change", "value", *RUNS
    )
    assert (status, err) == (0, "")
    assert "one reading changed by 1 % of their range" in out and hides_all(out)
    assert "mind      computed from the readings themselves" in out
    status, out, err = run("window", table("own.csv"), *PERIOD, *source, "--windows", "4")
    assert (status, err) == (0, "") and hides_all(out) and "mind" in out
    out = run(
        "candidates", table("own.csv"), *PERIOD, *source, "--change", "shift", *RUNS, "--json"
    )[1]
    assert hides_all(out) and json.loads(out)["private"]


def test_two_files_are_told_apart(run, table):
    other = [*SECRETS[:3], SECRETS[3] + 1, *SECRETS[4:]]
    one, two = table("one.csv"), table("two.csv", other)
    words = [*LAPLACE, "--one", one, "--other", two, "--value", "kwh", *RUNS]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert "two inputs, one.csv and two.csv" in out and "cap       73.1 %" in out
    assert hides_all(out)
    far = table("far.csv", [0.0] * len(SECRETS))
    status, out, _ = run(*LAPLACE, "--one", one, "--other", far, "--value", "kwh", *RUNS)
    assert status == 0 and "cap       none: the two inputs are no neighbors" in out


def test_two_files_of_categories(run, tmp_path):
    for name, places in (("a", ["home", "away", "home"]), ("b", ["home", "home", "home"])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["place", *places]) + "\n")
    status, out, err = run(
        "candidates",
        "--mechanism",
        "randomized-response",
        "--epsilon",
        "1",
        "--categories",
        "home,away",
        "--one",
        "a.csv",
        "--other",
        "b.csv",
        "--value",
        "place",
        *RUNS,
    )
    assert (status, err) == (0, "")
    assert "Nothing here contradicts it." in out


def test_a_secret_column_of_steps_is_read(run, tmp_path):
    rng = np.random.default_rng(1)
    rows = [f"{value:.4f},{step:.4f}" for value, step in rng.uniform(1, 2, (12, 2))]
    (tmp_path / "paced.csv").write_text("\n".join(["kwh,step", *rows]) + "\n")
    words = ["candidates", "paced.csv", *PERIOD, "--value", "kwh", "--pace", "step"]
    status, out, _ = run(*words, "--change", "pace", *RUNS)
    assert status == 0 and "cap       73.1 %" in out
    status, out, _ = run(*words, "--change", "value", *RUNS)
    assert status == 0 and "This release does not hide a changed value." in out
    status, out, _ = run("window", *words[1:], "--windows", "3", "--known", "2")
    assert status == 0 and "knows 2 of the 10" in out


# pictures


def test_pictures_are_drawn_and_not_replaced_unasked(run, table, tmp_path):
    status, out, _ = run(*LAPLACE, *RUNS, "--plot", "scores.png")
    assert status == 0 and "Picture: scores.png" in out
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")
    assert stat.S_IMODE((tmp_path / "scores.png").stat().st_mode) & 0o044
    status, _, err = run(*LAPLACE, *RUNS, "--plot", "scores.png")
    assert status == 1 and "exists already" in err
    own = ["window", table("own.csv"), *PERIOD, "--value", "kwh", "--windows", "2"]
    assert run(*own, "--plot", "own.svg")[0] == 0
    assert (tmp_path / "own.svg").read_bytes().startswith(b"<?xml")
    # it shows readings
    assert stat.S_IMODE((tmp_path / "own.svg").stat().st_mode) == 0o600
    assert run(*own, "--plot", "own.svg", "--force")[0] == 0


# how it is asked


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["candidates", "--mechanism", "stuff", "--epsilon", "1"], "--mechanism stuff: must be"),
        (["candidates", "--mechanism", "laplace", "--bounds", "0", "5"], "give the budget: --eps"),
        (["candidates", "--mechanism", "gaussian", "--bounds", "0", "5"], "--epsilon or --rho"),
        ([*LAPLACE, "--one", "a.csv"], "--one and --other go together"),
        ([*LAPLACE, "--one", "a.csv", "--other", "b.csv"], "need --value"),
        ([*LAPLACE, "--one", "a", "--other", "b", "--change", "value"], "leave out --one"),
        ([*LAPLACE, "in.csv"], "INPUT: goes with --change"),
        ([*LAPLACE, "--by", "1"], "--by: goes with --change"),
        ([*LAPLACE, "--steps", "9"], "--steps: goes with --change"),
        ([*LAPLACE, "--value", "kwh"], "--value: goes with INPUT"),
        ([*LAPLACE, "--change", "value", "--value", "kwh"], "--value: goes with INPUT"),
        ([*LAPLACE, "--change", "value", "in.csv"], "INPUT needs --value"),
        ([*LAPLACE, "--change", "weather"], "must be one of value, time, shift, pace, swap"),
        ([*LAPLACE, "--change", "pace"], "--change pace: for --mechanism sampling-period"),
        ([*LAPLACE, "--change", "value", "--steps", "2"], "--steps 2: must be 3 or more"),
        ([*LAPLACE, "--runs", "9"], "--runs 9: must be a whole number, 600 or more"),
        ([*LAPLACE, "--confidence", "2"], "--confidence 2"),
        ([*LAPLACE, "--row", "7"], "--row 7"),
        ([*LAPLACE, "--claim", "-1"], "--claim -1: "),
        (
            ["candidates", "--mechanism", "forward", "--epsilon", "1", "--window", "3"],
            "guarantees nothing, so there are no neighbors",
        ),
        (
            [
                "candidates",
                "--mechanism",
                "randomized-response",
                "--epsilon",
                "1",
                "--categories",
                "a,b",
                "--change",
                "value",
            ],
            "of categories give two inputs",
        ),
        (["window", *LAPLACE[1:]], "must be sampling-period"),
        (["window", *PERIOD, "--known", "3"], "3 known readings: must be 4 or more"),
        (["window", *PERIOD, "--known", "11"], "--known 11"),
        ([*LAPLACE, "--plot", "scores.txt"], "a picture ends in"),
    ],
    ids=lambda words: str(words)[-60:],
)
def test_what_cannot_be_meant_is_refused(run, words, sentence):
    status, out, err = run(*words)
    assert status == 2 and out == ""
    assert sentence in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--value", "kwh"], "no-such.csv: no such file"),
        (["--value", "kwh", "--steps", "50"], "no such file"),
    ],
)
def test_a_file_that_is_not_there_is_refused(run, words, sentence):
    status, out, err = run(*LAPLACE, "no-such.csv", "--change", "value", *words)
    assert status == 1 and out == "" and sentence in err


def test_tables_that_cannot_be_attacked_are_refused(run, table, tmp_path):
    words = ["--value", "kwh", "--change", "value"]
    status, _, err = run(*LAPLACE, table("own.csv"), *words, "--steps", "50")
    assert status == 1 and "there are only 18 readings" in err
    status, _, err = run(*LAPLACE, table("own.csv"), "--value", "volts", "--change", "value")
    assert status == 1 and "no column 'volts'" in err
    (tmp_path / "gaps.csv").write_text("kwh,at\n1.5,1\n,2\n2.5,3\n3.5,4\n")
    status, _, err = run(*LAPLACE, "gaps.csv", *words)
    assert status == 1 and "readings are missing" in err
    status, _, err = run(*LAPLACE, table("equal.csv", [2.0] * 9), *words)
    assert status == 1 and "all equal" in err


def test_help_shows_how_to_ask(run):
    assert "candidates" in run()[1] and "window" in run()[1]
    for command, words in (
        ("candidates", ("--one", "--other", "--change", "--claim", "--runs", "--plot", "--json")),
        ("window", ("--known", "--windows", "--within", "--plot", "--json")),
    ):
        status, out, _ = run(command, "--help")
        assert status == 0 and "Example" in out and f"tempriv attack {command}" in out
        assert all(word in out for word in words)


def test_progress_is_shown_on_a_terminal_only(run, monkeypatch):
    words = ["window", *PERIOD, "--windows", "2"]
    assert run(*words)[2] == ""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True, raising=False)
    assert run(*words)[2] != ""
