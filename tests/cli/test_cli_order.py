"""Rows moved in time, as typed: what comes out, what is refused, and what is said of it."""

import io
import json
import os
import sys
from pathlib import Path

import polars as pl
import pytest

from tempriv.cli.mechanism_options import MechanismOptions
from tempriv.datasets import METERS
from tempriv.mechanisms import registry
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.releases.meaning import headline_of

METER = ["--time", "time", "--value", "energy_kWh", "--series", "home", "--no-ledger"]
WAYS = {
    "backward": ["--epsilon", "5", "--window", "20"],
    "threshold": ["--epsilon", "5", "--window", "20"],
    "dual-threshold": ["--epsilon", "5", "--window", "20", "--free-slots", "9"],
    "block-shuffle": ["--epsilon", "1", "--block", "24", "--offset", "6"],
    "noisy-order": ["--epsilon", "4", "--window", "10"],
    "forward": ["--epsilon", "5", "--window", "20", "--not-private"],
}
LATE = ["--mechanism", "noisy-order", "--epsilon", "4", "--window", "10", "--latency", "140"]


def test_every_mechanism_that_moves_rows_is_here():
    exact = {kind.command.name for kind in registry.classes() if kind.command.hides == "order"}
    assert exact == set(WAYS)


@pytest.mark.parametrize("name", WAYS)
def test_values_come_out_exact_at_times_that_stay(run, name):
    words = ["--mechanism", name, *WAYS[name], *METER]
    status, out, err = run("release", METERS, "out.csv", *words)
    assert (status, err) == (0, "")
    weak = name in ("backward", "threshold", "dual-threshold")
    promise = "All rows together show" if weak else "Protects whether"
    promise = "Protects nothing" if name == "forward" else promise
    assert f"guarantee {promise}" in out and "time steps" in out
    before, after = pl.read_csv(METERS), pl.read_csv("out.csv")
    keys = ["home", "time"]
    assert after.select(keys).rows() == sorted(before.select(keys).rows())
    assert set(after["status"]) <= {"released", "repeated", "empty"}
    there = after.filter(pl.col("status") == "released").group_by("home", "energy_kWh").len()
    known = before.group_by("home", "energy_kWh").len()
    joined = there.join(known, on=["home", "energy_kWh"], how="left")
    assert joined["len_right"].null_count() == 0, "a value that nobody read"
    assert (joined["len"] <= joined["len_right"]).all(), "a reading twice, not told as repeated"
    if name in ("block-shuffle", "noisy-order"):
        assert set(after["status"]) == {"released"} and after["energy_kWh"].null_count() == 0


@pytest.mark.parametrize("name", [name for name in WAYS if name != "forward"])
def test_a_release_can_be_checked_by_whoever_has_it(run, name):
    assert run("release", METERS, "out.csv", "--mechanism", name, *WAYS[name], *METER)[0] == 0
    status, out, _ = run("verify", "out.csv")
    assert status == 0, out


def test_what_promises_nothing_must_be_asked_for(run):
    words = ["--mechanism", "forward", "--epsilon", "5", "--window", "20", *METER]
    for command in (["release", METERS, "out.csv"], ["release", METERS, "o.csv", "--dry-run"]):
        status, _, err = run(*command, *words)
        assert status == 2 and "Forward guarantees nothing" in err and "--not-private" in err
    assert not Path("out.csv").exists()
    assert run("stream", *words)[0] == 2
    status, out, _ = run("release", METERS, "out.csv", *words, "--not-private")
    assert (status, "Protects nothing" in out) == (0, True)
    status, out, _ = run("verify", "out.csv")
    assert (status, "WRONG       something is guaranteed" in out) == (1, True)


def test_a_seed_must_still_be_asked_for_and_not_private_still_needs_a_reason(run):
    threshold = ["--mechanism", "threshold", *WAYS["threshold"], *METER]
    status, _, err = run("release", METERS, "out.csv", *threshold, "--key-seed", "1")
    assert (status, "--not-private" in err) == (2, True)
    status, _, err = run("release", METERS, "out.csv", *threshold, "--not-private")
    assert (status, "--not-private goes with --key-seed" in err) == (2, True)
    seeded = [*threshold, "--key-seed", "1", "--not-private"]
    assert run("release", METERS, "out.csv", *seeded)[0] == 0
    forward = ["--mechanism", "forward", *WAYS["forward"], *METER, "--key-seed", "1"]
    assert run("release", METERS, "again.csv", *forward)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("threshold --epsilon 5", "--mechanism threshold needs --window"),
        ("block-shuffle --epsilon 5", "--mechanism block-shuffle needs --block"),
        ("threshold --window 20", "give one of --epsilon"),
        ("threshold --epsilon 5 --window 20 --unit event", "--unit event: not for --mechanism"),
        ("threshold --epsilon 5 --window 20 --unit window", "whose own options say what is"),
        (
            "threshold --epsilon 5 --window 20 --bounds 0 5",
            "--bounds: not for --mechanism "
            "threshold, which moves readings in time and keeps their values as they are",
        ),
        (
            "backward --epsilon 5 --window 20 --categories a,b",
            "--categories: not for --mechanism backward, which moves readings in time",
        ),
        ("threshold --epsilon 5 --window 20 --threshold 7", "is --free-slots"),
        ("threshold --epsilon 5 --window 20 --length 9", "--length 9: goes with --unit series"),
        ("threshold --epsilon 5 --window 20 --clip", "--clip: --mechanism threshold has no bounds"),
        ("threshold --target-error 3 --window 20", "--target-error: not for --mechanism threshold"),
        ("threshold --epsilon 5 --window 20 --rho 1", "give one of"),
        (
            "threshold --epsilon 5 --window 20 --delta 1e-6",
            "--delta: for --mechanism gaussian or fourier or running-count or noisy-order only",
        ),
        ("threshold --epsilon 5 --window 20 --resolution 1", "--resolution: not for"),
        ("threshold --epsilon 5 --window 20 --per-column", "--per-column: not for"),
        ("threshold --epsilon 5 --window 20 --block 3", "--block: not for --mechanism threshold"),
        (
            "threshold --epsilon 5 --window 2",
            "--window 2: must be a whole number of time steps >= 3",
        ),
        (
            "backward --epsilon 5 --window 1",
            "--window 1: must be a whole number of time steps >= 2",
        ),
        ("threshold --epsilon 5 --window 20 --free-slots 20", "a whole number from 2 to 19"),
        ("block-shuffle --epsilon 5 --block 9 --offset 9", "--offset 9: must be"),
        ("block-shuffle --epsilon 5 --block 9 --window 9", "--window: not for --mechanism block-"),
        ("noisy-order --epsilon 4 --window 10 --latency 20", "latency=140 would do"),
        ("noisy-order --epsilon 4 --window 10 --delta 1e-6", "--delta 1e-06: goes with --latency"),
        ("noisy-order --epsilon 4 --window 10 --order-noise gaussian", "must be 'staircase' or"),
        ("laplace --epsilon 1 --bounds 0 5 --block 9", "--block: not for --mechanism laplace"),
        ("laplace --epsilon 1 --bounds 0 5 --offset 0", "--offset: not for --mechanism laplace"),
        ("laplace --epsilon 1 --bounds 0 5 --window 9", "--window 9: goes with --unit window only"),
        (
            "sparse-vector --epsilon 1 --bounds 0 5 --threshold 2 --alerts 1 --free-slots 3 --unit "
            "series --length 9",
            "--free-slots: not for --mechanism sparse-vector",
        ),
    ],
)
def test_options_that_cannot_be_meant_get_one_sentence(run, words, said):
    status, _, err = run("release", METERS, "out.csv", "--mechanism", *words.split(), *METER)
    assert status == 2 and said in err, err
    assert err.count("\n") == 1 and not Path("out.csv").exists()


def test_persons_are_refused_since_each_series_is_hidden_by_itself(run):
    words = ["--mechanism", "threshold", *WAYS["threshold"], *METER, "--person", "home"]
    status, _, err = run("release", METERS, "out.csv", *words, "--max-series-per-person", "1")
    assert status == 2 and "--max-series-per-person: not for --mechanism threshold" in err


def test_a_threshold_of_zero_is_a_threshold():
    """Zero was once taken for an option that is not there."""
    words = "--epsilon 1 --bounds -5 5 --threshold 0 --alerts 1 --unit series --length 9 --value x"
    assert MechanismOptions.of_text("sparse-vector", words).make().threshold == 0


def test_options_reach_the_fields():
    made = MechanismOptions.of_text(
        "threshold", "--epsilon 12 --window 20 --free-slots 15 --value x"
    ).make()
    assert made == Threshold(epsilon=12.0, window=20, threshold=15)
    words = "--epsilon 4 --window 10 --latency 200 --delta 1e-5 --order-noise laplace --value x"
    late = NoisyOrder(epsilon=4.0, window=10, latency=200, delta=1e-5, noise="laplace")
    assert MechanismOptions.of_text("noisy-order", words).make() == late
    assert (
        MechanismOptions.of_text("block-shuffle", "--epsilon 1 --block 24 --offset 0 --value x")
        .make()
        .offset
        == 0
    )


@pytest.mark.parametrize("name", WAYS)
def test_the_guide_shows_the_true_promise_the_claim_and_what_all_rows_tell(run, name):
    status, out, _ = run("mechanisms", name)
    made = MechanismOptions.of_text(name, registry.find(name).command.example).make()
    assert status == 0
    assert headline_of(made) in out and made.published.sentence in out
    assert "What all rows together tell of two readings that trade places" in out
    told = json.loads(run("mechanisms", name, "--json")[1])[name]
    assert ("--not-private" in out) == isinstance(made.guarantee, NoGuarantee)
    losses = {one["distance"]: (one["epsilon"], one["delta"]) for one in told["losses"]}
    if name == "block-shuffle":
        assert list(losses.values()) == [(1.0, 0.0), (0.0, 1.0)] and "--offset at random" in out
        return
    span = made.unit.span
    assert {1, 2, span, span + 1} <= set(losses)
    for distance, (epsilon, delta) in losses.items():
        loss = made.loss_at(distance)
        assert (loss.epsilon, loss.delta) == (epsilon, delta)
        assert f"{distance:<24}  {epsilon:>8.4g}  {delta:>8.3g}" in out


def test_a_dry_run_says_what_it_would_cost_and_writes_nothing(run):
    words = ["--mechanism", "threshold", *WAYS["threshold"], *METER, "--dry-run"]
    status, out, _ = run("release", METERS, "out.csv", *words)
    made = Threshold(epsilon=5.0, window=20)
    assert status == 0 and f"epsilon = {made.derived_epsilon / 2:.4g}" in out
    Path("two.csv").write_text("day,a,b\n1,2,x\n2,3,y\n")
    words = ["--mechanism", "threshold", *WAYS["threshold"], "--time", "day", "--value", "a"]
    status, out, _ = run("release", "two.csv", "out.csv", *words, "--value", "b", "--dry-run")
    assert status == 0 and out.count("mean delay") == 1, "rows are moved whole"
    assert not Path("out.csv").exists()


def streamed(run, monkeypatch, text, *words):
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    monkeypatch.setattr(sys, "stdin", os.fdopen(reading))
    return run("stream", *words)


def test_a_stream_moves_text_and_gives_what_is_left_at_its_end(run, monkeypatch):
    text = "time,door\n" + "".join(f"{i},{'open' if i % 3 else 'shut'}\n" for i in range(100))
    words = ["--mechanism", "block-shuffle", "--epsilon", "1", "--block", "8"]
    words += ["--time", "time", "--value", "door", "--no-ledger"]
    status, out, err = streamed(run, monkeypatch, text, *words)
    assert (status, err) == (0, "")
    found = pl.read_csv(io.StringIO(out))
    assert found.columns == ["time", "door", "status"] and found["time"].to_list() == [*range(100)]
    assert found["door"].value_counts(sort=True).rows() == [("open", 66), ("shut", 34)]


def test_a_stream_of_noisy_times_needs_a_latency(run, monkeypatch):
    text = "time,n\n" + "".join(f"{i},{i}\n" for i in range(400))
    where = ["--time", "time", "--value", "n", "--no-ledger"]
    whole = ["--mechanism", "noisy-order", *WAYS["noisy-order"]]
    status, _, err = streamed(run, monkeypatch, text, *whole, *where)
    assert (status, "give it a latency" in err) == (2, True), err
    status, out, _ = streamed(run, monkeypatch, text, *LATE, *where)
    values = pl.read_csv(io.StringIO(out))["n"].to_list()
    assert status == 0 and sorted(values) == [*range(400)] != values


def test_help_has_the_options_of_the_mechanism_that_is_named(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    plain = run("release", "--help")[1]
    assert "--free-slots" not in plain and "--mechanism NAME --help" in plain
    assert len(plain.splitlines()) <= 60
    own = run("release", "--mechanism", "threshold", "--help")[1]
    assert "--free-slots" in own and "--theta" not in own and "Options of threshold" in own
