"""``tempriv count`` as typed, the options of every mechanism, and limits for what people add."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.cli._options import join_pairs
from tempriv.cli.mechanism_options import MechanismOptions
from tempriv.data.aggregate import aggregate
from tempriv.datasets import METERS
from tempriv.errors import UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.ledger.scope import Scope
from tempriv.mechanisms import registry
from tempriv.mechanisms.base import NOT_PROTECTED, NOT_PROTECTED_OF_COUNTS
from tempriv.mechanisms.options import options_of
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window

TWO_DAYS = [
    "--person",
    "card",
    "--time",
    "entered",
    "--every",
    "1h",
    "--from",
    "2026-03-02",
    "--to",
    "2026-03-04",
]
LIMITS = ["--max-per-step", "1", "--max-per-person", "5"]
LAPLACE = ["--mechanism", "laplace", "--epsilon", "1"]
UNIT = Contribution(WholeSeries(48), 1, 5)
SAID = (
    "whether one person's events in up to 48 time steps are counted (up to 1 in a step, 5 in all)"
)


@pytest.fixture
def run(run):
    """A command beside a table of visits."""
    rng = np.random.default_rng(2)
    start = datetime.datetime(2026, 3, 2)
    lines = ["card,entered,minutes,room"]
    for _ in range(400):
        at = start + datetime.timedelta(seconds=int(rng.integers(0, 3 * 86400)))
        room = "hall" if rng.random() < 0.5 else "lab"
        lines.append(f"c{rng.integers(0, 60)},{at},{rng.exponential(30):.1f},{room}")
    Path("visits.csv").write_text("\n".join(lines) + "\n")
    return run


def test_counts_come_with_a_promise_that_can_be_checked(run):
    status, out, err = run(
        "count",
        "visits.csv",
        "out.csv",
        *TWO_DAYS,
        *LIMITS,
        *LAPLACE,
        "--report",
        "out.html",
        "--private-report",
        "own.html",
    )
    assert (status, err) == (0, "")
    assert "Released counts of 48 time steps to out.csv" in out
    assert f"Protects {SAID}: epsilon = 1. It holds against anyone but the data owner." in out
    assert "count: 4.967 (mean absolute error)" in out
    assert "declared, not taken from the data" in out
    status, checked, _ = run("verify", "out.csv")
    assert status == 0 and "WRONG" not in checked
    about = json.loads(Path("out.csv.release.json").read_text())
    assert about["guarantee"]["model"] == "central"
    assert about["not_protected"] == list(NOT_PROTECTED_OF_COUNTS)
    assert about["columns"] == {
        "series": None,
        "ids": "text",
        "time": ["entered"],
        "values": ["count"],
    }
    assert "at most 1 in a time step, 5 in all" in about["treatment"][1]
    lines = Path("out.csv").read_text().splitlines()
    assert lines[0] == "entered,count" and len(lines) == 49
    assert lines[1].startswith("2026-03-02 00:00:00,")
    page = Path("out.html").read_text()
    assert "Suppose someone bets on whether one person" in page and "2147483648 to" not in page


def test_the_same_counts_in_python(run):
    """The command is the two calls: count, then release; under one seed, to the bit."""
    seed = ["--key-seed", "3", "--not-private", "--no-ledger"]
    assert run("count", "visits.csv", "out.csv", *TWO_DAYS, *LIMITS, *LAPLACE, *seed)[0] == 0
    counted = aggregate(
        "visits.csv",
        person="card",
        time="entered",
        every="1h",
        start="2026-03-02",
        end="2026-03-04",
        max_per_step=1,
        max_per_person=5,
    )
    released = tp.release(
        counted, Laplace(epsilon=1.0, **counted.settings), key=tp.Key.from_seed(3)
    )
    assert np.array_equal(released.values, tp.read("out.csv").values)
    assert released.about["not_protected"] == list(NOT_PROTECTED_OF_COUNTS)
    as_table = tp.release(counted.table, Laplace(epsilon=1.0, **counted.settings), time="entered")
    assert as_table.about["not_protected"] == list(NOT_PROTECTED)


def test_a_mechanism_for_less_than_was_bounded_is_refused(run):
    counted = aggregate(
        "visits.csv",
        person="card",
        time="entered",
        every="1h",
        start="2026-03-02",
        end="2026-03-04",
        max_per_step=1,
        max_per_person=5,
    )
    for unit in (
        Contribution(WholeSeries(48), 1, 4),
        Contribution(Window(24)),
        Contribution(WholeSeries(47), 1, 5),
    ):
        narrow = Laplace(epsilon=1.0, bounds=counted.bounds, unit=unit)
        with pytest.raises(UsageError, match="must cover what the counts were bounded for"):
            tp.release(counted, narrow)
    for unit in (Contribution(WholeSeries(48), 2, 9), Contribution(WholeSeries(60), 1)):
        tp.release(counted, Laplace(epsilon=1.0, bounds=counted.bounds, unit=unit))
    with pytest.raises(UsageError, match="must be released as they are"):
        tp.release(counted, Laplace(epsilon=1.0, **counted.settings), values="count")


COUNTING = [k.command.name for k in registry.classes() if k.command.count_example]


@pytest.mark.parametrize("name", COUNTING)
def test_every_mechanism_for_counts(run, name):
    """As the guide says it; the release can be verified."""
    words = join_pairs(registry.find(name).command.count_example.split())
    status, out, err = run(
        "count", "visits.csv", "out.parquet", *TWO_DAYS, "--mechanism", name, *words, "--no-ledger"
    )
    assert (status, err) == (0, ""), err
    assert "Protects whether one person's events" in out
    status, checked, _ = run("verify", "out.parquet")
    assert status == 0, checked
    assert pyarrow.parquet.read_table("out.parquet").num_rows == 48


def test_sums_and_histograms(run):
    words = ["--sum", "minutes", "--bounds", "0", "60", "--resolution", "0.25"]
    status, out, err = run("count", "visits.csv", "sum.csv", *TWO_DAYS, *LIMITS, *LAPLACE, *words)
    assert (status, err) == (0, "")
    assert "up to 60 in a step, 300 in all" in out
    values = tp.read("sum.csv").values
    assert (values / 0.25 == np.rint(values / 0.25)).all()
    status, out, err = run(
        "count",
        "visits.csv",
        "rooms.csv",
        *TWO_DAYS,
        *LIMITS,
        *LAPLACE,
        "--by",
        "room",
        "--categories",
        "lab,hall",
    )
    assert status == 0 and "WARNING: dataset 'visits.csv' has no limit" in err
    assert Path("rooms.csv").read_text().startswith("entered,lab,hall\n")
    assert "lab: 4.967" in out and "hall: 4.967" in out
    assert run("verify", "rooms.csv")[0] == run("verify", "sum.csv")[0] == 0


def test_categories_are_counted_as_they_stand_in_the_file(run):
    """Also those that look like truth values."""
    lines = ["card,entered,said", *(f"c{i},2026-03-02 0{i}:00:00,yes" for i in range(4))]
    Path("said.csv").write_text("\n".join([*lines, "c5,2026-03-02 01:00:00,no"]) + "\n")
    words = ["--by", "said", "--categories", "no,yes", "--mechanism", "laplace"]
    status, _, err = run(
        "count",
        "said.csv",
        "out.csv",
        *TWO_DAYS,
        *LIMITS,
        *words,
        "--epsilon",
        "500",
        "--accept-weak",
    )
    assert (status, err) == (0, "")
    assert tp.read("out.csv").values.sum(axis=0).round().tolist() == [1, 4]


def test_a_dry_run_counts_nothing_and_a_target_finds_the_budget(run):
    status, out, _ = run("count", "visits.csv", "o.csv", *TWO_DAYS, *LIMITS, *LAPLACE, "--dry-run")
    assert status == 0 and f"cost      epsilon = 1, for {SAID}" in out
    assert not Path("o.csv").exists()
    target = ["--mechanism", "laplace", "--target-error", "10", "--dry-run", "--json"]
    found = json.loads(run("count", "visits.csv", "o.csv", *TWO_DAYS, *LIMITS, *target)[1])
    assert found["mechanism"]["epsilon"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*LIMITS, *LAPLACE, "--from", "2026-03-02"], "--from and --to must be declared"),
        ([*TWO_DAYS, *LAPLACE], "max_per_person: must be given"),
        ([*TWO_DAYS, *LAPLACE, *LIMITS, "--unit", "event"], "without max_per_person"),
        ([*TWO_DAYS, *LAPLACE, *LIMITS, "--unit", "series"], "--mechanism laplace needs --unit"),
        ([*TWO_DAYS, *LAPLACE, *LIMITS, "--window", "3"], "--window 3: goes with --unit window"),
        ([*TWO_DAYS, *LAPLACE, "--max-per-step", "1", "--unit", "window"], "needs --window"),
        ([*TWO_DAYS, *LIMITS, "--mechanism", "magic"], "--mechanism magic: must be one of"),
        ([*TWO_DAYS, *LIMITS, "--mechanism", "planar-laplace"], "not for counts"),
        (
            [*TWO_DAYS, *LIMITS, "--mechanism", "uniform-budget", "--epsilon", "1"],
            "needs --unit event or --unit window",
        ),
        ([*TWO_DAYS, *LIMITS, *LAPLACE, "--threshold", "3"], "--threshold: not for --mechanism"),
        ([*TWO_DAYS, *LIMITS, *LAPLACE, "--by", "room"], "must be declared"),
        ([*TWO_DAYS, *LIMITS, *LAPLACE, "--sum", "minutes"], "must be declared for a sum"),
        ([*TWO_DAYS, *LIMITS, *LAPLACE, "--key-seed", "3"], "--not-private"),
        ([*TWO_DAYS, *LIMITS, "--mechanism", "laplace"], "give one of --epsilon"),
    ],
)
def test_what_cannot_be_meant_is_said(run, words, said):
    base = ["--person", "card", "--time", "entered", "--every", "1h"]
    words = words if "--person" in words else [*base, *words]
    status, _, err = run("count", "visits.csv", "out.csv", *words)
    assert status == 2 and said in err, err
    assert not Path("out.csv").exists()


def test_tables_that_do_not_fit(run):
    Path("visits.csv").write_text("card,entered\nc1,2026-03-02 10:00:00\n,2026-03-02 11:00:00\n")
    words = [*TWO_DAYS, *LIMITS, *LAPLACE]
    status, _, err = run("count", "visits.csv", "out.csv", *words)
    assert status == 1 and "1 row without a person in 'card'; leave such rows out" in err
    assert run("count", "visits.csv", "out.csv", *words, "--missing", "drop")[0] == 0
    assert run("count", "absent.csv", "out.csv", *words)[0] == 1
    assert run("count", "visits.csv", "visits.csv", *words, "--force")[0] == 2


# limits


def test_charges_for_people_add_up(run):
    status, out, _ = run(
        "budget",
        "create",
        "visits",
        "--epsilon",
        "2",
        "--unit",
        "person",
        "--length",
        "48",
        "--per-step",
        "1",
        "--total",
        "5",
    )
    assert (status, f"epsilon 0 of 2 spent on {SAID}" in out) == (0, True)
    words = [*TWO_DAYS, *LIMITS, *LAPLACE, "--dataset", "visits"]
    assert "epsilon 1 of 2 spent" in run("count", "visits.csv", "1.csv", *words)[1]
    assert "epsilon 2 of 2 spent" in run("count", "visits.csv", "2.csv", *words)[1]
    status, _, err = run("count", "visits.csv", "3.csv", *words)
    assert status == 3 and f"spent on {SAID} from epsilon = 2 to epsilon = 3" in err
    assert not Path("3.csv").exists()
    assert run("verify", "2.csv", "--ledger", Path("home/tempriv/ledger.sqlite"))[0] == 0
    with Ledger.open(Path("home/tempriv/ledger.sqlite")) as ledger:
        entry = ledger.log()[0]
    assert entry.kind == "person card" and entry.members is None
    assert entry.end - entry.start == 47 * 3600 * 10**6
    assert entry.guarantee.unit == UNIT


def test_what_people_may_add_twice_costs_twice(run):
    run(
        "budget",
        "create",
        "v",
        "--epsilon",
        "3",
        "--unit",
        "person",
        "--length",
        "48",
        "--total",
        "10",
    )
    words = [*TWO_DAYS, *LIMITS, *LAPLACE, "--dataset", "v"]
    assert "epsilon 2 of 3 spent" in run("count", "visits.csv", "1.csv", *words)[1]


def test_single_steps_of_different_days_do_not_add_up(run):
    run("budget", "create", "v", "--epsilon", "1", "--unit", "person")
    day = [*TWO_DAYS[:6], "--max-per-step", "1", *LAPLACE, "--unit", "event", "--dataset", "v"]
    for first in (2, 3):
        dates = ["--from", f"2026-03-0{first}", "--to", f"2026-03-0{first + 1}"]
        status, out, _ = run("count", "visits.csv", f"{first}.csv", *day, *dates)
        assert status == 0 and "epsilon 1 of 1 spent" in out
    assert run("count", "visits.csv", "again.csv", *day, *dates)[0] == 3


def test_a_promise_for_less_is_charged_for_more(tmp_path):
    """By hand: an event-level release costs a limit on ten steps ten times."""
    with Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("d", unit=Contribution(WholeSeries(10)), epsilon=5.0)
        scope = Scope(kind="person who", members=None, start=0, end=9, step=1)
        promise = tp.Guarantee(tp.Pure(0.5), Contribution(Event()), "central")
        receipt = ledger.charge("d", promise, scope, "first")
        assert receipt.totals[0].spent == 5.0
        with pytest.raises(tp.BudgetError):
            ledger.charge("d", promise, scope, "second")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--per-step", "1"], "--per-step: goes with --unit person only"),
        (["--total", "1"], "--total: goes with --unit person only"),
        (["--signed"], "--signed: goes with --unit person only"),
        (["--unit", "person", "--window", "2", "--length", "2"], "give one of them, or none"),
        (["--unit", "person", "--meters", "2"], "--meters goes with --unit near"),
        (["--unit", "person", "--max-series-per-person", "2"], "not for --unit person"),
        (["--unit", "person", "--per-step", "3", "--total", "2"], "--total 2: "),
    ],
)
def test_limits_that_cannot_be_meant(run, words, said):
    status, _, err = run("budget", "create", "visits", "--epsilon", "1", *words)
    assert status == 2 and said in err, err


# the options of every mechanism


@pytest.mark.parametrize("name", registry.names())
def test_the_example_makes_what_it_says(name):
    example = MechanismOptions.of_text(name, registry.find(name).command.example).make()
    assert type(example) is registry.find(name)
    assert example.guarantee.sentence


def made(words):
    words = words if "--value" in words else f"{words} --value x"
    return MechanismOptions.of_text(words.split()[0], " ".join(words.split()[1:])).make()


def test_options_reach_the_fields():
    alarm = made("sparse-vector --epsilon 2 --bounds 0 9 --threshold 4 --alerts 3 --resolution 1")
    assert (alarm.epsilon, alarm.threshold, alarm.most, alarm.grid) == (2, 4, 3, (1.0,))
    sums = made("running-count --rho 0.5 --bounds 0 1 --horizon 64 --method tree")
    assert (sums.rho, sums.epsilon, sums.horizon, sums.method) == (0.5, None, 64, "tree")
    assert made("running-count --epsilon 0.5 --bounds 0 1 --horizon 64").epsilon == 0.5
    both = made("fourier --epsilon 1 --delta 1e-6 --bounds 0 1 --coefficients 3 --horizon 9")
    assert both.epsilon is None and 0 < both.rho < 1
    kept = made("memoized-response --epsilon 2 --categories a,b")
    assert (kept.epsilon_forever, kept.epsilon_instant) == (2, None)
    assert made("fast --epsilon 1 --bounds 0 9 --samples 3 --wander 2 --unit series --length 9")
    assert made("laplace --epsilon 1 --bounds 0 9").unit == Event()
    assert made("uniform-budget --epsilon 1 --bounds 0 9").unit == Event()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fast --epsilon 1 --bounds 0 9 --samples 3 --wander 2", "--unit series --length N"),
        ("sparse-vector --epsilon 1 --bounds 0 9 --threshold 4", "needs --alerts"),
        ("laplace --epsilon 1 --bounds 0 9 --coefficients 3", "--coefficients: not for"),
        ("laplace --epsilon 1 --bounds 0 9 --delta 1e-6", "--delta: for --mechanism gaussian or"),
        ("running-count --rho 1 --delta 1e-6 --bounds 0 9", "--delta goes with --epsilon"),
        ("gaussian --epsilon 1 --bounds 0 9", "needs --delta"),
        ("budget-absorption --epsilon 1 --bounds 0 9 --unit series --length 3", "--unit event or"),
        ("laplace --epsilon 1 --bounds 0 9 --window 3", "goes with --unit window only"),
        ("laplace --epsilon 1 --bounds 0 9 --unit month", "--unit month: must be event"),
        ("planar-laplace --epsilon 1 --origin 0 0 --meters 5 --value a", "two value columns"),
    ],
)
def test_options_that_do_not_go_together(words, said):
    with pytest.raises(UsageError) as refusal:
        made(words)
    assert said in str(refusal.value), str(refusal.value)


@pytest.mark.parametrize("name", registry.names())
def test_every_option_has_a_flag_a_sentence_and_its_own_name(name):
    options = options_of(registry.find(name))
    assert len({option.flag for option in options}) == len(options)
    for option in options:
        assert option.flag.startswith("--") and option.help.endswith((".", ")"))


@pytest.mark.parametrize("name", ["running-count", "budget-distribution", "fourier"])
def test_values_of_devices_go_through_too(run, name):
    """The same names for tempriv release."""
    words = join_pairs(
        registry.find(name)
        .command.example.replace("--value kwh", "")
        .replace("--value people", "")
        .replace("--length 168", "--length 672")
        .split()
    )
    status, _, err = run(
        "release",
        METERS,
        "out.csv",
        "--mechanism",
        name,
        *words,
        "--time",
        "time",
        "--value",
        "energy_kWh",
        "--series",
        "home",
        "--no-ledger",
        "--clip",
    )
    assert (status, err) == (0, "")
    assert run("verify", "out.csv")[0] == 0
