"""The made-up tables: the same each time, like what they stand for, and written as files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from tempriv.datasets.files import write_examples
from tempriv.datasets.homes import BOUNDS, DAYS, HOMES, HOURS, homes
from tempriv.datasets.visits import visits
from tempriv.errors import DataError
from tests.support.paths import DOCS

PAGE = (DOCS / "datasets.md").read_text()
DIGESTS = {
    "homes": "ec349857b8c122d7c7e3202201db9637",
    "visits": "8f9651fcb148e8c4ede95b0f5830942f",
}


@pytest.fixture(scope="module")
def home_table() -> pa.Table:
    return homes()


@pytest.fixture(scope="module")
def visit_table() -> pa.Table:
    return visits()


def digest(table: pa.Table) -> str:
    """Of names and values, whatever the version of Arrow writes."""
    state = hashlib.blake2b(digest_size=16)
    for name in table.column_names:
        values = table[name].to_pylist()
        texts = (f"{value:.3f}" if isinstance(value, float) else str(value) for value in values)
        state.update(name.encode() + "\n".join(texts).encode())
    return state.hexdigest()


def test_the_tables_are_the_same_each_time(home_table, visit_table):
    assert {"homes": digest(home_table), "visits": digest(visit_table)} == DIGESTS


def test_homes_are_as_the_page_says(home_table):
    kwh = home_table["kWh"].to_numpy()
    of_home = kwh.reshape(HOMES, DAYS, HOURS)
    assert f"{home_table.num_rows:,} rows" in PAGE
    said = f"the mean is {kwh.mean():.2f} kWh, half of them are below {np.median(kwh):.2f}"
    assert said in PAGE and f"above {np.quantile(kwh, 0.99):.1f}." in PAGE.replace("\n", " ")
    assert kwh.min() >= BOUNDS[0] and kwh.max() == 8.0 < BOUNDS[1]
    average = of_home.mean((0, 1))
    assert average.argmax() == 19 and average[:12].argmax() == 8
    daily = of_home.mean((0, 2))
    assert daily[12:18].min() > np.delete(daily, np.s_[12:18]).max(), "cold days are those above"
    assert 0.05 < (of_home.mean(2) < 0.1).mean() < 0.2, "some homes are left for days"
    totals = np.sort(of_home.mean((1, 2)))
    assert totals[-6:].mean() > 4 * np.median(totals), "a few use very much"
    heating = home_table["heating"].to_numpy(zero_copy_only=False).reshape(HOMES, -1)
    region = home_table["region"].to_numpy(zero_copy_only=False).reshape(HOMES, -1)
    assert all((column == column[:, :1]).all() for column in (heating, region))
    electric = heating[:, 0] == "electric"
    assert of_home[electric].mean() > 1.5 * of_home[~electric].mean()


def test_visits_are_as_the_page_says(visit_table):
    entered, cards = (
        visit_table[name].to_numpy(zero_copy_only=False) for name in ("entered", "card")
    )
    assert f"{visit_table.num_rows:,} rows" in PAGE
    assert (np.diff(entered) >= np.timedelta64(0)).all()
    days = entered.astype("M8[D]")
    times = np.unique(cards, return_counts=True)[1]
    assert len(times) == 5000 and np.median(times) == 2 and times.max() >= 12
    assert len(set(zip(cards, days, strict=True))) == len(cards), "at most one visit a day"
    hours = np.bincount((entered - days).astype(np.int64) // 3600, minlength=24)
    assert hours[12] < 0.6 * min(hours[11], hours[14]) and hours[:7].max() < hours[7] / 10
    weekday = (days.astype(np.int64) - days[0].astype(np.int64)) % 7
    assert np.bincount(weekday)[5:].sum() < 0.1 * len(days)


def test_files_hold_the_tables_and_replace_nothing(tmp_path, home_table):
    folder = tmp_path / "new" / "folder"
    paths = write_examples(folder)
    assert [path.name for path in paths] == ["meters.csv", "homes.csv", "visits.csv"]
    read = pyarrow.csv.read_csv(folder / "homes.csv")
    assert read["kWh"].to_pylist() == home_table["kWh"].to_pylist()
    assert read.column_names == home_table.column_names
    first = (folder / "visits.csv").stat().st_mtime_ns
    write_examples(folder)
    assert (folder / "visits.csv").stat().st_mtime_ns == first
    (folder / "homes.csv").unlink()
    (folder / "visits.csv").write_text("mine")
    with pytest.raises(DataError, match="not the made-up table; choose another folder"):
        write_examples(folder)
    assert (folder / "visits.csv").read_text() == "mine"
    assert not (folder / "homes.csv").exists()
    with pytest.raises(DataError, match="name a folder"):
        write_examples(folder / "visits.csv")


def test_the_command_names_the_files(run):
    status, out, _ = run("datasets", "there")
    assert status == 0
    assert [Path(line.split()[0]).exists() for line in out.splitlines()] == [True] * 3
