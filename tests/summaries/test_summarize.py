"""``tempriv summarize`` and ``tp.summarize``: from a table to a release that can be checked."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.accounting.gaussian_privacy import delta_of, discrete_slack, mu_of_range
from tempriv.data.boundary import public_table
from tempriv.errors import BudgetError, DataError, UsageError
from tempriv.ledger.ledger import Ledger
from tempriv.privacy.units import Contribution, Person, Presence, WholeSeries
from tempriv.summaries.exact import exact_rows
from tempriv.summaries.from_table import Layout, read_strata
from tempriv.summaries.run import SummaryRun
from tempriv.summaries.spec import PeopleSummary
from tempriv.summaries.verify import verify

HOURS, HOUR = 24 * 7, 3_600_000_000
MONDAY = 1_767_571_200_000_000  # 2026-01-05
COLUMNS = {"person": "home", "time": "time", "value": "kWh", "bounds": (0, 5)}


def homes(count, seed=1, keep=1.0):
    """A week of homes: a bump at 19, levels that differ, heating that adds to them."""
    rng = np.random.default_rng(seed)
    hour = np.arange(HOURS) % 24
    shape = 0.4 + 0.8 * np.exp(-((hour - 19) ** 2) / 8)
    levels = np.exp(rng.normal(0, 0.4, count)) * np.where(np.arange(count) % 2, 1.0, 1.5)
    values = (levels[:, None] * shape * rng.uniform(0.7, 1.3, (count, HOURS))).ravel()
    rows = rng.permutation(count * HOURS)
    rows = rows[rng.random(len(rows)) < keep]
    home, step = rows // HOURS, rows % HOURS
    return pa.table(
        {
            "home": pa.array(home),
            "time": pa.array(MONDAY + step * HOUR, pa.timestamp("us")),
            "kWh": pa.array(values[rows]),
            "heating": pa.array(np.where(home % 2, "gas", "pump")),
        }
    )


@pytest.fixture(scope="module")
def table():
    return homes(3000, keep=0.5)


def rows_of(released):
    return {
        (row["group"], row["cell"], row["statistic"]): row for row in released.table.to_pylist()
    }


def test_every_statistic_is_near_what_it_says(table):
    """For groups, at a budget at which noise is small: values are near exact ones, within what
    their intervals allow."""
    statistics = ("mean", "total", "q50", "q90", "peak", "histogram", "share-above=1")
    statistics += ("share-between=0.5:1",)
    released = tp.summarize(
        table,
        **COLUMNS,
        epsilon=8.0,
        statistics=statistics,
        group="heating",
        groups=("gas", "pump"),
        key=tp.Key.from_seed(7),
    )
    spec = PeopleSummary(
        epsilon=8.0, delta=1e-6, bounds=(0, 5), statistics=statistics, groups=("gas", "pump")
    )
    strata = read_strata(table, spec, Layout("home", "time", "kWh", group="heating"))
    exact = exact_rows(spec, strata)
    rows = rows_of(released)
    assert set(exact) == set(rows)
    assert strata.people[0].vectors.shape == (1500, 24)
    missed = [
        key
        for key, row in rows.items()
        if not row["low"] - 1e-9 <= exact[key] <= row["high"] + 1e-9
    ]
    assert len(missed) < 0.1 * len(rows)
    for group in ("gas", "pump"):
        assert rows[group, "all", "mean"]["value"] == pytest.approx(
            exact[group, "all", "mean"], rel=0.05
        )
        assert rows[group, "19", "peak"]["value"] == pytest.approx(
            exact[group, "19", "peak"], abs=0.05
        )
        # hours add up to days
        totals = [rows[group, str(hour), "total"]["value"] for hour in range(24)]
        assert rows[group, "all", "total"]["value"] == pytest.approx(sum(totals))
        assert 0 < rows[group, "19", "mean"]["sampling_error"] < 0.1
    # what people of one group add is not that of the other
    assert rows["pump", "19", "mean"]["value"] > 1.2 * rows["gas", "19", "mean"]["value"]


@pytest.mark.parametrize(
    ("protect", "by", "number", "cells"),
    [
        ("person", "step", "people", 28),
        ("day", "hour-of-week", "days", 168),
        ("reading", "weekday", "readings", 7),
    ],
)
def test_other_records_and_cells(table, protect, by, number, cells):
    more = {"start": "2026-01-05", "end": "2026-01-12", "every": "6h"} if by == "step" else {}
    released = tp.summarize(
        table, **COLUMNS, **more, epsilon=8.0, statistics=["mean", "q50"], by=by, protect=protect
    )
    assert released.guarantee.unit == Presence(protect)
    rows = rows_of(released)
    means = [key for key in rows if key[2] == "mean" and key[1] != "all"]
    assert len(means) >= cells
    values = [rows[key]["value"] for key in means if len(key[1].split(" ")) < 3]
    assert 0.5 < np.mean(values) < 1.2
    counted = sum(row["value"] for key, row in rows.items() if key[2] == number)
    assert counted == pytest.approx(
        {"people": 3000, "days": 3000 * 7, "readings": table.num_rows}[number], rel=0.05
    )
    assert released.about["not_protected"]


def test_what_is_odd_is_handled_and_said():
    """People with few readings, all-zero people, missing hours, readings beyond the bounds."""
    table = pa.table(
        {
            "home": ["a", "a", "b", "c", "c", "d", None],
            "time": pa.array(
                [MONDAY + HOUR * h for h in (0, 1, 5, 0, 30, 2, 3)], pa.timestamp("us")
            ),
            "kWh": [1.0, 3.0, 0.0, 99.0, -7.0, float("nan"), 1.0],
        }
    )
    spec = PeopleSummary(epsilon=1.0, delta=1e-6, bounds=(0, 4), min_readings=1)
    with pytest.raises(DataError, match="1 row without a person.*\n.*1 row without a finite"):
        read_strata(table, spec, Layout("home", "time", "kWh"))
    layout = Layout("home", "time", "kWh", missing="drop")
    (people,) = read_strata(table, spec, layout).people
    # a: 1 and 3, and their average elsewhere; b: zeros; c: moved into the bounds
    expected = np.full((3, 24), [[2.0], [0.0], [2.0]])
    expected[0, :2], expected[2, 0], expected[2, 6] = (1, 3), 4, 0
    assert np.allclose(np.sort(people.vectors.sum(1)), np.sort(expected.sum(1)) * 2**18)
    few = PeopleSummary(epsilon=1.0, delta=1e-6, bounds=(0, 4), min_readings=2)
    assert len(read_strata(table, few, layout).people[0]) == 2
    # nobody at all is a table too
    none = read_strata(table.slice(0, 0), spec, layout)
    run = SummaryRun(table.slice(0, 0), spec, layout, tp.Key.from_seed(1))
    assert len(none.people[0]) == 0
    assert public_table(list(run.batches())).num_rows > 0


def test_a_ledger_is_charged_for_the_person_and_refuses(tmp_path, table):
    with Ledger.create(tmp_path / "ledger") as book:
        book.create_dataset("homes", unit=Presence(), epsilon=2.0, delta=1e-5)
        tp.summarize(table, **COLUMNS, epsilon=1.5, ledger=book, dataset="homes")
        with pytest.raises(BudgetError):
            tp.summarize(table, **COLUMNS, epsilon=1.5, ledger=book, dataset="homes")
        (total,) = book.show("homes").totals
        assert total.spent == pytest.approx(1.5)


def test_a_person_taken_out_is_a_person_replaced_halfway():
    person = Presence()
    assert person.conversion_factor(Person(1, WholeSeries(100))) == 2
    assert person.conversion_factor(Contribution(WholeSeries(100))) == 1
    assert Person(1, WholeSeries(100)).conversion_factor(person) is None
    assert Presence("day").conversion_factor(WholeSeries(100)) is None
    assert Presence("reading").conversion_factor(tp.Event()) == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"statistics": ["mode"]}, "statistics='mode'"),
        ({"by": "fortnight"}, "by='fortnight'"),
        ({"by": "step"}, "needs start, end and every"),
        ({"group": "heating"}, "groups: must be declared"),
        ({"bounds": (5, 0)}, "the lower first"),
        ({"protect": "day", "by": "weekday", "statistics": ["peak"]}, "needs several cells"),
        ({"bins": [1.0]}, "without histogram"),
        ({"delta": 0.0}, "delta=0.0"),
    ],
)
def test_what_cannot_be_meant_is_refused(table, settings, said):
    given = {**COLUMNS, "epsilon": 1.0, **settings}
    with pytest.raises(UsageError, match=said):
        tp.summarize(table, **given)


# the command


def tempriv(folder, *words):
    command = [sys.executable, "-m", "tempriv", *map(str, words)]
    environment = {"XDG_DATA_HOME": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


WORDS = ("summarize", "homes.parquet", "day.csv", "--person", "home", "--time", "time")
WORDS += ("--value", "kWh", "--bounds", "0", "5", "--epsilon", "1")


def test_the_command_releases_charges_reports_and_is_verified(tmp_path, table):
    pyarrow.parquet.write_table(table, tmp_path / "homes.parquet")
    dry = tempriv(tmp_path, *WORDS, "--dry-run", "--people", "300")
    assert "Nothing was released" in dry.stdout
    assert "300 people are few" in dry.stderr
    assert not (tmp_path / "day.csv").exists()
    limit = ("--unit", "presence", "--epsilon", "1.5", "--delta", "1e-5")
    assert tempriv(tmp_path, "budget", "create", "homes.parquet", *limit).returncode == 0
    words = (*WORDS, "--by", "hour-of-day", "--by", "heating=gas,pump", "--report", "day.html")
    done = tempriv(tmp_path, *words, "--private-report", "own.html")
    assert done.returncode == 0, done.stderr
    assert "epsilon 1 of 1.5 at delta 1e-05 spent on whether one person" in done.stdout
    again = tempriv(tmp_path, *WORDS, "--force")
    assert again.returncode == 3
    assert "above the limit" in again.stderr
    released = pyarrow.csv.read_csv(tmp_path / "day.csv")
    assert set(released.column("group").to_pylist()) == {"gas", "pump"}
    page, own = (tmp_path / name for name in ("day.html", "own.html"))
    assert "exact, private" not in page.read_text()
    assert "exact, private" in own.read_text()
    assert own.stat().st_mode & 0o77 == 0
    assert not any(check.wrong for check in verify(tmp_path / "day.csv"))
    about = tmp_path / "day.csv.release.json"
    for change in (
        lambda facts: facts["budget"][0][0].update(mu=0.001),
        lambda facts: facts["mechanism"].update(epsilon=0.5),
        lambda facts: facts.update(not_protected=[]),
    ):
        facts = json.loads(about.read_text())
        change(facts)
        kept = about.read_text()
        about.write_text(json.dumps(facts))
        assert any(check.wrong for check in verify(tmp_path / "day.csv"))
        about.write_text(kept)


# what the guarantee rests on


def test_discrete_noise_is_told_as_gaussian_noise_with_its_slack():
    """The log ratio of a discrete and a rounded Gaussian, computed for a coarse grid."""
    from statistics import NormalDist

    sigma = 64.0
    k = np.arange(-20 * 64, 20 * 64 + 1)
    law = NormalDist(0, sigma)
    discrete = np.exp(-(k**2) / (2 * sigma**2))
    discrete /= discrete.sum()
    middle = np.abs(k) < 7 * 64  # further out doubles lose digits
    rounded = np.array([law.cdf(x + 0.5) - law.cdf(x - 0.5) for x in k[middle].tolist()])
    found = np.abs(np.log(discrete[middle] / rounded)).max()
    slack, mass = discrete_slack(sigma, 1)
    assert found < slack
    assert 2 * law.cdf(-10 * 64) <= mass


def test_a_bounded_range_choice_is_gaussian():
    """The worst choices of a range have two outcomes; all of them keep the stated mu."""
    for log_range in (0.02, 0.1, 1.0, 4.0):
        mu = mu_of_range(log_range)
        for share in np.linspace(-8, 8, 81).tolist():
            p, q = (1 / (1 + np.exp(-(share + s * log_range / 2))) for s in (1, -1))
            for epsilon in np.linspace(0, log_range, 12).tolist():
                lost = max(p - np.exp(epsilon) * q, 0) + max((1 - p) - np.exp(epsilon) * (1 - q), 0)
                assert lost <= delta_of(mu, epsilon) + 1e-12
