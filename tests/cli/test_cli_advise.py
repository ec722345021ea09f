"""``tempriv advise`` as typed: what it says, what stays private, and what it refuses."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from tempriv.cli.advise import PAPERS_COSTS
from tempriv.datasets import METERS
from tempriv.errors import DataError, UsageError
from tempriv.utility.advisor import AdviceRequest, advise
from tempriv.utility.inputs import MAX_ROWS, papers_costs, read
from tempriv.utility.reorder_costs import average_costs, counting_costs
from tempriv.utility.simulation import Average, Count, TrialReadings

BUDGET = ["--hide", "when", "--epsilon", "5", "--window", "10"]
BY_HAND = ["--missing-cost", "10", "--repeated-cost", "10", "--empty-cost", "10"]
ROOMS = ["--value", "room", "--time", "minute"]


@pytest.fixture
def run(run):
    """A command beside a table of a day."""
    rng = np.random.default_rng(5)
    lines = ["minute,room,pulse,meter,note"]
    for i in range(600):
        room = "hall" if rng.random() < 0.6 else "lab"
        lines.append(f"{i},{room},{70 + 8 * rng.normal():.2f},{i * 3 + 17.625},note-{i:05}")
    Path("day.csv").write_text("\n".join(lines) + "\n")
    return run


# what is said


def test_advice_from_unit_costs_alone_may_be_published(run):
    status, out, err = run("advise", *BUDGET, *BY_HAND)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "public: computed from unit costs alone"
    assert "by unit costs; cost of a reading in steps of delay" in lines[1]
    assert (
        "  why       DualThreshold is first, level with Threshold, because nothing is lost" in out
    )
    assert "swaps     BlockShuffle (block = 10) is the cheapest for swaps inside a block of 10" in (
        out
    )
    assert "swaps     NoisyOrder (latency = 112) is the cheapest for any swap up to 9 steps" in out
    assert "paper     its own strategy takes Threshold (7 free slots): cost 3.00" in out
    assert "The same epsilon is not the same protection" in out
    assert lines[-1] == (
        "  release   tempriv release INPUT.csv OUTPUT.csv --mechanism dual-threshold --epsilon 5 "
        "--window 10 --free-slots 4 --value COLUMN"
    )
    told = json.loads(run("advise", *BUDGET, *BY_HAND, "--json")[1])
    assert told["private"] is False
    assert told["unit_costs"] == {
        "is": "UnitCosts",
        "missing": 10,
        "repeated": 10,
        "empty": 10,
        "delay": 1,
    }
    assert [one["mechanism"]["is"] for one in told["offers"]][:2] == ["DualThreshold", "Threshold"]
    assert told["cheapest_with_swap_promise"] == "BlockShuffle"
    assert told["cheapest_with_promise_for_any_swap"] == "NoisyOrder"
    protects = {one["mechanism"]["is"]: one["protects"] for one in told["offers"]}
    assert protects == {
        "Backward": "SlotOrigin",
        "Forward": "nothing",
        "Threshold": "SlotOrigin",
        "DualThreshold": "SlotOrigin",
        "BlockShuffle": "BlockSwap",
        "NoisyOrder": "Swap",
    }


def test_the_unit_of_costs_is_named(run):
    words = [*BY_HAND, "--delay-cost", "2.5"]
    out = run("advise", *BUDGET, *words)[1]
    assert "cost of a reading in costs, 2.5 for a step of delay" in out


@pytest.mark.parametrize("task", ["count", "average"])
def test_advice_from_private_data_says_so_first(run, task):
    value = "room" if task == "count" else "pulse"
    words = ["advise", "day.csv", *BUDGET, "--task", task, "--value", value, "--time", "minute"]
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "private: computed from the data, do not publish"
    assert "tried on 600 readings of 1 series, 100 times" in out.splitlines()[1]
    assert "CHANGED instead of moved" in out
    assert "epsilon = 2.5 for any single reading, so epsilon = 5 for any swap" in out
    told = json.loads(run(*words, "--json")[1])
    assert told["private"] is True and told["task"] == task
    costs = [one["cost"] for one in told["offers"]]
    assert costs == sorted(costs) and all(one["standard_error"] > 0 for one in told["offers"])
    assert told["value_of_interest"] == ("hall" if task == "count" else None)
    changed = told["values_changed_instead"]
    assert changed["guarantee"]["loss"] == {"is": "Pure", "epsilon": 2.5}
    assert changed["error"] > costs[0]
    assert told["warnings"] == []


def test_a_public_sample_is_read_instead_of_the_table(run):
    words = ["advise", "not-there.csv", *BUDGET, "--task", "count", *ROOMS]
    status, out, _ = run(*words, "--public-sample", "day.csv")
    assert status == 0
    assert out.splitlines()[0] == "public: computed from day.csv alone"
    assert "tempriv release not-there.csv OUTPUT.csv" in out
    assert json.loads(run(*words, "--public-sample", "day.csv", "--json")[1])["private"] is False


def test_the_table_is_left_alone_unless_columns_are_named(run):
    status, out, _ = run("advise", "not-there.csv", *BUDGET, *BY_HAND)
    assert status == 0 and out.startswith("public: ")
    assert "INPUT was not looked at" in out
    status, out, _ = run("advise", "day.csv", *BUDGET, *BY_HAND, "--value", "pulse")
    assert status == 0 and out.startswith("private: ")


@pytest.mark.parametrize("column", ["meter", "note"])
def test_columns_that_betray_the_order_are_named(run, column):
    words = ["advise", "day.csv", *BUDGET, "--task", "count", *ROOMS, "--value", column]
    status, out, _ = run(*words)
    assert status == 0
    warnings = [line for line in out.splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert f"column {column!r} betray their order: sorting restores 9" in warnings[0]
    found = json.loads(run(*words, "--json")[1])["warnings"]
    assert found[0]["column"] == column and found[0]["restored"] > 0.9


def test_what_promises_nothing_is_not_what_to_release(run):
    words = ["advise", "--epsilon", "12", "--window", "5", "--missing-cost", "1"]
    out = run(*words, "--repeated-cost", "100", "--empty-cost", "0")[1]
    assert "why       Forward is first" in out and "Protects nothing" in out
    assert "so take   " in out and "the cheapest that guarantees anything" in out
    assert "--mechanism forward" not in out.splitlines()[-1]


def test_the_papers_unit_costs_can_be_asked_for(run):
    words = ["advise", "day.csv", *BUDGET, "--task", "count", *ROOMS, "--unit-costs", "paper"]
    status, out, _ = run(*words)
    assert status == 0 and PAPERS_COSTS in out and "by the paper's unit costs" in out
    told = json.loads(run(*words, "--json")[1])
    share = np.mean(
        [line.split(",")[1] == "hall" for line in Path("day.csv").read_text().splitlines()[1:]]
    )
    wanted = counting_costs(float(share), 1 - float(share), 600, 10)
    assert told["unit_costs"]["delay"] == pytest.approx(wanted.delay)
    assert told["unit_costs"]["repeated"] == pytest.approx(wanted.repeated)
    assert told["offers"][0]["standard_error"] == 0


@pytest.mark.parametrize("seen", ["stream", "file"])
def test_every_command_that_is_printed_runs(run, seen):
    """On the bundled sample, as it stands in the advice."""
    words = ["--epsilon", "3", "--window", "6", "--task", "average", "--value", "energy_kWh"]
    layout = ["--time", "time", "--series", "home", "--as", seen]
    told = json.loads(run("advise", METERS, *words, *layout, "--json")[1])
    assert len(told["offers"]) == 6
    for offer in told["offers"]:
        typed = shlex.split(offer["command"])
        assert typed[:4] == ["tempriv", "release", str(METERS), "OUTPUT.csv"]
        status, _, err = run(*typed[1:], "--force", "--no-ledger")
        assert (status, err) == (0, "")
        made = json.loads(Path("OUTPUT.csv.release.json").read_text())["mechanism"]
        assert made == offer["mechanism"]


def test_help_has_an_example(run):
    status, out, _ = run("advise", "--help")
    assert status == 0 and "tempriv advise pulse.csv --hide when --epsilon 5" in out


# pictures


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_picture_of_private_advice_is_private(run, ending):
    file = Path(f"advice.{ending}")
    status, out, _ = run("advise", *BUDGET, *BY_HAND, "--plot", file)
    assert status == 0 and f"Picture: {file}" in out
    assert file.stat().st_mode & 0o044
    public = file.read_bytes()
    assert run("advise", *BUDGET, *BY_HAND, "--plot", file)[0] == 1  # it is there already
    words = ["advise", "day.csv", *BUDGET, "--task", "count", *ROOMS]
    status, _, _ = run(*words, "--plot", file, "--force")
    assert status == 0 and file.stat().st_mode & 0o077 == 0
    private = file.read_bytes()
    assert private != public
    if ending == "svg":
        assert b"PRIVATE" in private and b"PRIVATE" not in public
        assert b"hides any swap within the window" in public
        assert b"DualThreshold: 3.00" in public


# refusals


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("advise gone.csv --task count --value room", "gone.csv: no such file"),
        ("advise day.csv --task count --value rooms", "day.csv: no column 'rooms'; the columns"),
        ("advise day.csv --task average --value room", "column 'room' holds varchar, of which"),
        ("advise day.csv --task count", "--task count needs --value"),
        ("advise day.csv", "there is nothing to compute costs from: give --missing-cost"),
        ("advise --task count --value room", "give INPUT or --public-sample"),
        ("advise day.csv --task mode --value room", "--task mode: must be count, average or none"),
        ("advise day.csv --hide what", "--hide what: must be when"),
        ("advise --missing-cost 1", "--repeated-cost is missing: unit costs go together"),
        (
            "advise --missing-cost 1 --repeated-cost 1 --empty-cost nan",
            "--empty-cost nan: a cost must be a number >= 0",
        ),
        ("advise day.csv --task count --value room --delay-cost 2", "--missing-cost is missing"),
        (
            "advise day.csv --task count --value room --missing-cost 1 --repeated-cost 1 "
            "--empty-cost 1",
            "--task count finds its own costs",
        ),
        (
            "advise day.csv --task count --value room --window 2",
            "--window 2: must be a whole number",
        ),
        (
            "advise day.csv --task count --value room --window 700",
            "--window 700: is longer than every series",
        ),
        ("advise day.csv --task count --value room --epsilon 0", "--epsilon 0: must be a number"),
        ("advise day.csv --task count --value room --as tape", "--as tape: must be stream or file"),
        (
            "advise day.csv --task count --value room --as file --latency 9",
            "--latency: goes with --as stream",
        ),
        (
            "advise day.csv --task count --value room --as file --delta 0.1",
            "--delta: goes with --as stream",
        ),
        (
            "advise day.csv --task average --value pulse --value-of-interest 3",
            "--value-of-interest: goes with --task count",
        ),
        (
            "advise day.csv --task count --value room --average-over 3",
            "--average-over: goes with --task average",
        ),
        (
            "advise day.csv --task average --value pulse --average-over 0",
            "--average-over 0: must be a whole number of steps >= 1",
        ),
        (
            "advise day.csv --task count --value room --bounds 0 3",
            "--bounds: goes with --task average",
        ),
        (
            "advise --missing-cost 1 --repeated-cost 1 --empty-cost 1 --unit-costs paper",
            "--unit-costs paper: goes with --task count or average",
        ),
        (
            "advise day.csv --task count --value room --unit-costs ours",
            "--unit-costs ours: must be paper",
        ),
        (
            "advise day.csv --task average --value pulse --average-over 5 --unit-costs paper",
            "--average-over 5: must be at least the window",
        ),
        (
            "advise day.csv --task count --value pulse --value-of-interest x",
            "--value-of-interest x: must be a number",
        ),
        (
            "advise day.csv --task count --value room --value-of-interest attic",
            "column 'room' never has the value that is to be counted",
        ),
        (
            "advise day.csv --task count --value room --delta 0",
            "--delta 0: must be between 0 and",
        ),
        ("advise day.csv --task count --value room --latency 1", "--latency 1: must be a whole"),
        ("advise day.csv --task count --value room --grid moon", "--grid moon: must be regular or"),
        ("advise day.csv --task count --value room --plot a.gif", "a.gif: a picture ends in .png"),
        (
            "advise day.csv --task count --value minute --time minute",
            "column 'minute': is named as a value",
        ),
    ],
)
def test_what_cannot_be_answered_gets_one_sentence(run, words, sentence):
    typed = shlex.split(words)
    typed += [] if "--epsilon" in typed else ["--epsilon", "5"]
    typed += [] if "--window" in typed else ["--window", "10"]
    status, out, err = run(*typed)
    assert status in (1, 2) and out == ""
    assert sentence in err and err.count("\n") == 1
    # nothing of the table: the first meter reading, the only note of it
    assert "17.625" not in err and "note-" not in err and "hall" not in err


# reading


def write(name: str, columns: dict) -> Path:
    file = Path(name)
    pa.parquet.write_table(pa.table(columns), file)
    return file


def test_readings_come_in_order_of_series_and_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(
        "a.parquet",
        {
            "who": ["b", "a", "b", "a", "a"],
            "at": [1, 2, 0, 0, 1],
            "on": pa.array([True, False, None, True, True]),
            "when": pa.array(["2026-01-02", "2026-03-01", None, "2025-12-31", "2026-02-01"]),
        },
    )
    found = read(file, ["on", "when"], task="count", value="TRUE", time="at", series="who")
    assert found.counts.tolist() == [3, 2]
    assert found.task.values.tolist()[:3] == [1.0, 1.0, 0.0]
    assert np.isnan(found.task.values[3]) and found.task.values[4] == 1.0
    # text goes by its order, and what is missing is missing
    assert found.columns["when"][:3].tolist() == [1.0, 3.0, 4.0]
    assert np.isnan(found.columns["when"][3]) and found.columns["when"][4] == 2.0
    assert "2026" not in repr(found)
    with_gaps = write("b.parquet", {"at": [0, 1, 4], "v": [1.5, 2.5, 3.5]})
    with pytest.raises(DataError, match="gaps='null'"):
        read(with_gaps, ["v"], task="average", time="at")
    found = read(with_gaps, ["v"], task="average", time="at", gaps="null")
    assert found.counts.tolist() == [5] and np.isnan(found.task.values[2:4]).all()


def test_the_most_frequent_value_is_counted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write("a.parquet", {"v": [1.5, 2.0, 2.0, None], "w": ["b", "b", "a", "a"]})
    found = read(file, ["v"], task="count")
    assert found.value == "2.0" and found.task.values[:3].tolist() == [0.0, 1.0, 1.0]
    assert read(file, ["v"], task="count", value="2").task.values[1] == 1.0
    assert read(file, ["w"], task="count").value == "a"  # of as many, the first by name
    empty = write("b.parquet", {"v": pa.array([None, None], pa.float64())})
    with pytest.raises(DataError, match="column 'v' is empty"):
        read(empty, ["v"], task="count")
    with pytest.raises(DataError, match="column 'v' is empty"):
        read(empty, ["v"], task="average")
    with pytest.raises(UsageError, match="goes with counting only"):
        read(file, ["v"], task="average", value="2")


def test_a_million_readings_are_enough(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = MAX_ROWS + 1000
    file = write("a.parquet", {"s": np.arange(rows) // 400_000, "v": np.zeros(rows)})
    found = read(file, ["v"], task="average", series="s")
    assert found.cut and found.counts.tolist() == [400_000, 400_000, 200_000]
    assert len(found.task) == MAX_ROWS


def test_of_very_many_series_some_are_tried(tmp_path, monkeypatch):
    """Noise is set up for each of them, so 20,000 would take minutes."""
    monkeypatch.chdir(tmp_path)
    rows = np.arange(20_000)
    file = write("a.parquet", {"s": rows // 10, "v": np.random.default_rng(1).normal(size=20_000)})
    question = AdviceRequest(
        epsilon=3.0, window=5, task="average", source=file, columns=("v",), layout={"series": "s"}
    )
    answer = advise(question)
    assert answer.how == "tried on 2,000 readings of 200 series, 8 times"
    assert answer.private and answer.heading.startswith("private: ")


def test_a_column_that_never_changes_has_no_noise_to_compare_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    question = AdviceRequest(
        epsilon=3.0,
        window=5,
        task="average",
        columns=("v",),
        source=write("a.parquet", {"v": [7.0] * 60}),
    )
    assert advise(question).alternative is None
    given = advise(replace(question, bounds=(0.0, 10.0))).alternative
    assert given.mechanism.bounds == ((0.0, 10.0),) and given.error > 0


def test_the_papers_costs_are_those_of_its_section():
    rng = np.random.default_rng(3)
    walk = TrialReadings(np.cumsum(rng.normal(size=900)) + 1e6, np.array([500, 400]))
    spreads = []
    for part in (walk.values[:500], walk.values[500:]):
        spreads += [np.var(part[max(0, at - 11) : at + 1]) for at in range(len(part))]
    found = papers_costs(Average(12), walk, 10)
    assert found.missing == pytest.approx(np.mean(spreads), rel=1e-6)
    assert found == average_costs(0.0, found.missing, 10, 12)
    flags = TrialReadings((rng.random(300) < 0.25).astype(float), np.array([200, 100]))
    share = flags.values.mean()
    assert papers_costs(Count(), flags, 8) == counting_costs(share, 1 - share, 150, 8)
