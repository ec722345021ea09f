"""What a Python user has: one call, and a value that says what it guarantees."""

import datetime
import shutil

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import tempriv as tp
from tempriv.datasets import METERS
from tempriv.errors import KeyReuseError, UsageError
from tests.support.paths import ROOT

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5), unit=tp.Event())
FRAME = {"who": ["a", "a", "b"], "t": [0, 1, 0], "v": [1.0, None, 3.0]}


def test_an_array_is_released_as_an_array():
    release = tp.release(np.linspace(0, 5, 100), LAPLACE)
    assert release.values.shape == (100,)
    assert release.guarantee == LAPLACE.guarantee
    assert release.published.holds
    assert release.about["ledger"] is None
    masked = tp.release(np.ma.array([1.0, 2.0], mask=[False, True]), LAPLACE)
    assert np.isnan(masked.values).tolist() == [False, True]
    two = tp.Laplace(epsilon=1.0, bounds=((0, 5), (0, 9)))
    assert tp.release(np.ones((4, 2)), two).values.shape == (4, 2)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table])
def test_a_frame_comes_back_as_the_kind_it_was(kind):
    release = tp.release(kind(FRAME), LAPLACE, values="v", time="t", series="who")
    assert isinstance(release.frame, pa.Table if kind is pa.table else kind)
    assert release.table.column("v").null_count == 1
    assert release.table.column("who").to_pylist() == ["a", "a", "b"]


def test_a_file_is_read_and_written_and_read_again(tmp_path):
    source = tmp_path / "in.csv"
    pl.DataFrame(FRAME).write_csv(source)
    release = tp.release(source, LAPLACE, values="v", time="t", series="who")
    for name in ("out.csv", "out.parquet"):
        path = release.write(tmp_path / name)
        again = tp.read(path)
        assert again.guarantee == release.guarantee
        np.testing.assert_array_equal(again.values, release.values)
        with pytest.raises(tp.TemprivError, match="exists already"):
            release.write(path)
        release.write(path, force=True)


def test_value_columns_default_to_what_is_nothing_else():
    release = tp.release(pl.DataFrame(FRAME), LAPLACE, time="t", series="who")
    assert release.about["columns"]["values"] == ["v"]


def test_a_repr_and_a_notebook_show_the_promise_and_no_private_value():
    private = np.array([3.14159, 2.71828])
    release = tp.release(private, LAPLACE)
    shown = release._repr_html_() + repr(release)
    assert "epsilon = 1" in shown
    assert "Not protected" in shown
    assert "3.14159" not in shown + repr(tp.SeriesTable(private, values=("value",)))


def test_a_plot_is_a_figure():
    days = [datetime.date(2026, 1, d) for d in range(1, 21)]
    release = tp.release(
        pl.DataFrame({"day": days, "v": np.linspace(0, 5, 20)}), LAPLACE, time="day"
    )
    assert isinstance(release.plot(), Figure)


def test_one_key_serves_one_input():
    key = tp.Key.generate()
    tp.release(np.ones(5), LAPLACE, key=key)
    with pytest.raises(KeyReuseError, match="publish their difference"):
        tp.release(np.zeros(5), LAPLACE, key=key)


def test_a_seed_promises_nothing_and_repeats():
    one = tp.release(np.ones(5), LAPLACE, key=tp.Key.from_seed(4))
    two = tp.release(np.ones(5), LAPLACE, key=tp.Key.from_seed(4))
    assert isinstance(one.guarantee, tp.NoGuarantee)
    assert one.values.tolist() == two.values.tolist()


def test_a_release_is_charged_before_it_is_returned(tmp_path):
    with tp.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("meters", unit=tp.Event(), epsilon=1.5)
        release = tp.release(np.ones(5), LAPLACE, ledger=ledger, dataset="meters")
        assert release.about["ledger"]["dataset"] == "meters"
        with pytest.raises(tp.BudgetError):
            tp.release(np.ones(5), LAPLACE, ledger=ledger, dataset="meters")
        assert len(ledger.log("meters")) == 1
        with pytest.raises(UsageError, match="a ledger goes with the name of a dataset"):
            tp.release(np.ones(5), LAPLACE, ledger=ledger)


def test_disjoint_times_and_series_share_a_budget_in_parallel(tmp_path):
    def day(number, who="a"):
        times = [datetime.datetime(2026, 1, number, hour) for hour in range(24)]
        return pl.DataFrame({"who": [who] * 24, "t": times, "v": [1.0] * 24})

    with tp.Ledger.create(tmp_path / "ledger.sqlite") as ledger:
        ledger.create_dataset("meters", unit=tp.Event(), epsilon=1.0)
        options = {"ledger": ledger, "dataset": "meters", "time": "t", "series": "who"}
        for number in (1, 2, 3):
            tp.release(day(number), LAPLACE, **options)
        tp.release(day(1, "b"), LAPLACE, **options)
        assert ledger.show("meters").totals[0].spent == 1.0
        with pytest.raises(tp.BudgetError):
            tp.release(day(2), LAPLACE, **options)


def test_what_is_not_data_is_refused():
    for data in (["a", "b"], 3.0, np.ones((2, 2, 2))):
        with pytest.raises(UsageError, match="data: must be an array of numbers"):
            tp.release(data, LAPLACE)
    with pytest.raises(tp.DataError, match="the array is empty"):
        tp.release(np.zeros(0), LAPLACE)
    with pytest.raises(tp.TemprivError, match="the mechanism is set up for 1"):
        tp.release(np.ones((3, 2)), LAPLACE)
    with pytest.raises(tp.TemprivError, match="agree on persons"):
        person = tp.Laplace(epsilon=1.0, bounds=(0, 5), unit=tp.Person(2, tp.Event()))
        tp.release(np.ones(3), person)


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch):
    shutil.copy(METERS, tmp_path / "meters.csv")
    monkeypatch.chdir(tmp_path)
    readme = ROOT / "README.md"
    code = readme.read_text().split("```python")[1].split("```")[0]
    exec(compile(code, "README.md", "exec"), {})


def test_counts_of_several_groups_are_columns_and_not_series():
    """One person may be in each of the groups, and every series would get the whole budget."""
    table = pl.DataFrame({"room": ["a", "b"], "t": [0, 0], "people": [3, 4]})
    counts = tp.Laplace(epsilon=1.0, bounds=(0, 9), unit=tp.Contribution())
    with pytest.raises(tp.TemprivError, match="columns of one table, not series"):
        tp.release(table, counts, series="room", time="t", values="people")
