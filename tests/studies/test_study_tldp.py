"""The study of release orders: a small one on made-up data, and the real one where data are."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tempriv.errors import DataError, UsageError
from tempriv.mechanisms.reorder import analysis
from tempriv.mechanisms.reorder.noisy_order import least_latency
from tempriv.studies import tldp
from tempriv.studies.tldp import costs as tldp_costs
from tempriv.studies.tldp import data, tasks
from tempriv.studies.tldp.experiment import (
    OURS,
    THEIRS,
    TldpSize,
    as_it_comes,
    in_slots,
    latency_of,
    mechanisms,
    release,
    sources,
)
from tempriv.studies.tldp.figures import PICTURES
from tempriv.utility import reorder_costs
from tests.support.reproducing import run
from tests.support.stand_ins import tldp_inputs
from tests.support.statistics import COMPILED

SMALL = TldpSize(
    steps=30_000,
    budgets=(1.0, 8.0),
    windows=(10, 20),
    runs=3,
    segments=48,
    groupings=1,
    attacked=200,
)
TABLES = {
    *("figure-4", "figure-5a", "figure-5b", "figure-5c", "figure-5d"),
    *("figure-6a", "figure-6b", "figure-6c", "figure-7a", "figure-7b", "figure-7c", "figure-7d"),
    *("averages-close-100", "averages-synthetic-10", "averages-synthetic-100"),
    *("table-2", "restored-order"),
}


@pytest.fixture(scope="module")
def made():
    if not COMPILED:
        pytest.skip("some million steps of a mechanism: too long as plain Python")
    return tldp.STUDY.run(tldp_inputs(days=1500, segments=60, steps=60), SMALL)


# parts


def test_every_mechanism_moves_whole_rows():
    rows = np.stack([np.arange(30), 10 * np.arange(30)], axis=1)
    for mechanism in mechanisms(4.0, 5).values():
        moved = release(mechanism, np.repeat(rows[None], 4, axis=0), seed=3)
        assert moved.shape == (4, 30, 2)
        pairs = moved.compressed().reshape(-1, 2)
        assert (10 * pairs[:, 0] == pairs[:, 1]).all() and len(pairs) > 60


def test_series_have_orders_of_their_own_and_runs_are_the_same_again():
    for mechanism in mechanisms(1.0, 6, whole=True).values():
        found = sources(mechanism, 20, 50, seed=1)
        assert len({tuple(one) for one in found.tolist()}) == 20
        assert (found == sources(mechanism, 20, 50, seed=1)).all()
        assert (found != sources(mechanism, 20, 50, seed=2)).any()


def test_what_is_held_back_comes_later():
    found = np.array([[2, 0, 1, 3]])
    assert as_it_comes(found, 2).tolist() == [[-1, -1, 2, 0]]
    assert as_it_comes(found, 9).tolist() == [[-1, -1, -1, -1]]
    assert as_it_comes(found, 0) is found
    (moved,) = in_slots(np.array([5.0, 6.0, 7.0, 8.0]), as_it_comes(found, 2))
    assert moved.tolist() == [None, None, 7.0, 5.0]
    delays = {name: latency_of(one) for name, one in mechanisms(4.0, 5).items()}
    assert [delays[name] for name in THEIRS] == [0, 0, 0]
    assert delays["BlockShuffle"] == 4 and delays["NoisyOrder"] == least_latency(4.0, 5, 1e-6) > 4
    assert latency_of(mechanisms(4.0, 5, whole=True)["NoisyOrder"]) == 0


def test_the_printed_sum_is_right_until_it_cancels():
    for window in range(3, 13):
        for threshold in range(2, window):
            exact = float(analysis.dispatch(window, threshold)[0])
            assert tldp_costs.printed_first(window, threshold) == pytest.approx(exact, abs=1e-9)
    assert tldp_costs.printed_first(50, 2) > 0.01 > 1e-14 > analysis.dispatch(50, 2)[0]


def test_made_up_data_are_the_same_again():
    one, other = (tldp_inputs(days=50, segments=6, steps=10) for _ in range(2))
    assert (one.taxis == other.taxis).all() and (one.stock.close == other.stock.close).all()
    ups = np.diff(one.stock.close, prepend=100.0) > 0
    assert (one.stock.up == ups).all()
    values = data.synthetic(20_000)
    assert values.min() == 0 and values.max() == 100
    # 101 cells of 198: chi-square beyond 200 has probability below 1e-8
    expected = 20_000 / 101
    assert ((np.bincount(values) - expected) ** 2 / expected).sum() < 200


def test_data_that_are_not_there_or_not_as_they_should_be_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"ge.us.csv: no such file; give data a folder"):
        data.read(tmp_path)
    stock = tmp_path / "stock.csv"
    stock.write_text("day,price\n1,2.0\n")
    with pytest.raises(DataError, match="must be a table with columns open and close"):
        data.read_stock(stock)
    stock.write_text("date,open,close\n2020-01-01,2.0,3.0\n")
    with pytest.raises(DataError, match="at least two days"):
        data.read_stock(stock)
    stock.write_text("date,open,close\n2020-01-01,2.0,3.0\n2020-01-02,9.0,2.5\n")
    assert data.read_stock(stock).up.tolist() == [1, 0]
    taxis = tmp_path / "taxis.parquet"
    taxis.write_text("no table")
    with pytest.raises(DataError, match="must be a table with columns segment, step"):
        data.read_taxis(taxis)


# the whole


def test_every_figure_has_its_table_and_every_mechanism_is_in_it(made):
    assert set(made.tables) == TABLES
    for name, table in made.tables.items():
        assert all(len(line) == len(table.columns) for line in table.lines), name
        if "mechanism" in table.columns:
            assert {*THEIRS, *OURS} <= set(table.column("mechanism")), name
    assert set(made.tables["figure-7a"].column("mechanism")) - {*THEIRS, *OURS} == {
        tasks.RESPONSE,
        tasks.CORRECTED,
    }
    assert set(made.tables["table-2"].column("mechanism")) - {*THEIRS, *OURS} == {"Laplace"}


def test_known_costs_stand_in_the_tables(made):
    """k = 20, epsilon 5: 10 for Threshold, 7 for its dual, 15.7 for the baselines."""
    table = made.tables["figure-5d"]
    found = {
        name: table.column("theory", window=20, mechanism=name)[0] for name in (*THEIRS, *OURS)
    }
    assert found["Threshold"] == 10 and found["DualThreshold"] == 7 and found["BlockShuffle"] == 19
    assert found["Backward"] == found["Forward"] == pytest.approx(15.66, abs=5e-3)
    assert found["NoisyOrder"] == least_latency(5.0, 20, 1e-6)
    ranges = made.tables["figure-6c"].where(window=10)[0]
    assert ranges["least_derivable"] == pytest.approx(3.0381, abs=5e-5)
    assert ranges["better_to"] == pytest.approx(10.2)


def test_measured_costs_are_those_of_theory(made):
    """30,000 steps; all costs are within 0.1 windows, five standard errors and more."""
    for name, window in (("figure-5a", 20), ("figure-6a", 10), ("figure-6b", 50)):
        for line in made.tables[name].where():
            assert abs(line["measured"] - line["theory"]) < 0.1 * window, line


def test_statements_that_need_no_data_are_as_said(made):
    rows = {(row.section, row.what): row for row in made.rows}
    assert len(rows) == len(made.rows)
    about_data = ("Counting", "Moving", "Groups")
    for row in made.rows:
        assert row.is_confirmed or row.section.startswith(about_data), row
    assert sum(row.verdict == "does not hold" for row in made.rows) == 7


def test_the_files_and_pictures_come_out(made, pictures, tmp_path):
    written = tldp.STUDY.write(tmp_path / "new", made)
    names = {path.name for path in written}
    assert names == {
        *("tldp.csv", "tldp.md"),
        *(f"{name}.csv" for name in TABLES),
        *(f"{name}.png" for name in PICTURES),
    }
    assert all(path.stat().st_size > 100 for path in written)
    with (tmp_path / "new" / "table-2.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(line["ours"]) for line in read] == made.tables["table-2"].column("ours")
    assert next(line["published"] for line in read if line["mechanism"] == "Laplace") == "0.003"
    assert "Misprints" in (tmp_path / "new" / "tldp.md").read_text()


def test_unit_costs_of_the_tasks_are_those_of_the_paper():
    stock = tldp_inputs(days=200, segments=2, steps=2).stock
    share = stock.up.mean()
    unit = tasks.counting_costs(stock)
    assert unit == reorder_costs.counting_costs(share, 1 - share, 200, 10)
    assert tasks.average_costs(stock).empty == 0


# the command


def test_the_command_says_what_it_needs(tmp_path):
    for arguments, words in (
        (["tldp"], "tldp: needs --data, a folder that holds stocks/ge.us.csv"),
        (["tldp", "--data", str(tmp_path)], "ge.us.csv: no such file; give --data a folder"),
        (["principles", "--full"], "needs neither --data nor --full"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and words in done.stderr and not done.stdout


@pytest.mark.skipif("TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data")
@pytest.mark.skipif(not COMPILED, reason="hours as plain Python")
@pytest.mark.long
def test_the_real_study_is_as_said(tmp_path):
    folder = Path(os.environ["TEMPRIV_DATA"])
    assert len(data.read(folder).stock.close) == 14_058  # as many days as the paper says
    done = run("tldp", "--data", str(folder), "--output", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)) > 50
    assert (tmp_path / "figure-7.png").exists()


@pytest.mark.skipif("TEMPRIV_DATA" not in os.environ, reason="TEMPRIV_DATA names no folder of data")
def test_the_real_data_are_read():
    found = data.read(Path(os.environ["TEMPRIV_DATA"]))
    assert found.stock.close.shape == found.stock.up.shape == (14_058,)
    assert found.taxis.shape == (3000, 300, 2) and not found.made_up
    assert 1000 < np.abs(found.taxis).mean() < 20_000  # meters
