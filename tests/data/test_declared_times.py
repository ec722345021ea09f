"""Where times are the secret, nothing beside the values may tell them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tempriv as tp
from tempriv.audit import exact
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.units import Contribution
from tempriv.privacy.units.time import Pace, Timestamps

PACED = SamplingPeriod(epsilon=1.0, window=2, tau=1.0)
TOLD = "is published as it is, and would tell what is to be hidden"


def released(times: Any, mechanism: Any = PACED, **layout: Any) -> Any:
    table = {"n": times, "x": np.arange(4.0), "step": np.ones(4)}
    return tp.release(pa.table(table), mechanism, values=("x", "step"), time="n", **layout)


@pytest.mark.parametrize("times", [[0, 1, 2, 3], [1, 2, 3, 4]])
def test_a_count_of_readings_may_stand_beside_a_secret_pace(times: Any) -> None:
    assert len(released(times).table) == 4


@pytest.mark.parametrize(
    ("times", "layout"),
    [
        ([0, 20, 40, 60], {}),
        ([50, 51, 52, 53], {}),
        ([1_700_000_000 + i for i in range(4)], {}),
        ([0, 1, 2, 4], {"grid": "index"}),
        ([0, 1, 2, 4], {"gaps": "null"}),
        (np.arange("2026-03-01", "2026-03-05", dtype="datetime64[D]"), {}),
    ],
)
def test_times_that_tell_the_pace_are_refused(times: Any, layout: Any) -> None:
    with pytest.raises(tp.TemprivError, match=TOLD):
        released(times, **layout)


def test_each_series_counts_from_its_start() -> None:
    table = pa.table(
        {"id": ["a"] * 3 + ["b"] * 3, "n": [0, 1, 2, 5, 6, 7], "x": np.ones(6), "s": np.ones(6)}
    )
    with pytest.raises(tp.TemprivError, match=TOLD):
        tp.release(table, PACED, values=("x", "s"), time="n", series="id")


def test_where_nothing_is_promised_times_may_be_told() -> None:
    public = SamplingPeriod(epsilon=1.0, window=2, tau=1.0, pace="public")
    table = pa.table({"n": [0, 20, 40, 60], "x": np.arange(4.0)})
    found = tp.release(table, public, values=("x",), time="n")
    assert any("the times of readings" in one for one in found.about["not_protected"])


def test_secret_columns_are_named() -> None:
    with pytest.raises(tp.TemprivError, match="must be named where times are the secret"):
        tp.release(pa.table({"step": np.ones(4), "x": np.arange(4.0)}), PACED)


@pytest.mark.parametrize("first", ["2024-01-01", "17"])
def test_streams_take_a_count_only(run: Any, monkeypatch: Any, tmp_path: Path, first: str) -> None:
    (tmp_path / "lines.csv").write_text(f"n,x,s\n{first},1,1\n")
    words = "stream --mechanism sampling-period --epsilon 1 --tau 1 --window 2 --no-ledger "
    words += "--value x --pace s --time n"
    with (tmp_path / "lines.csv").open() as sent:
        monkeypatch.setattr(sys, "stdin", sent)
        status, out, err = run(*words.split())
    assert status != 0 and TOLD in err and first not in out


def test_a_missing_time_is_near_a_missing_one_only() -> None:
    unit = Pace(1.0, 2)
    missing = ((1, 1.0), (1, None))
    assert not unit.are_neighbors(missing, ((1, 1.0), (1, 1.5)))
    assert unit.are_neighbors(missing, missing)


def test_counts_of_people_have_no_curve() -> None:
    with pytest.raises(tp.TemprivError, match="take PeGaSus or Laplace"):
        NoisyCurve(epsilon=1.0, bounds=(0, 100), window=2, unit=Contribution())


def test_an_audit_without_neighbors_is_none() -> None:
    with pytest.raises(tp.TemprivError, match="no two of these inputs are neighbors"):
        exact.audit(NoisyTimes(epsilon=1.0, tau=1.0, grid=1.0), (0.0, 5.0), 1)


def test_times_of_today_in_milliseconds_are_not_clipped() -> None:
    when = np.array([1.7e12, 1.7e12 + 1000, 1.7e12 + 2500])
    found = np.asarray(NoisyTimes(epsilon=5.0, tau=1.0).start(tp.Key.generate()).push(when))
    assert np.abs(found - when).max() < 50


def test_a_reading_moved_over_the_edge_of_two_windows_is_no_neighbor() -> None:
    one = ((1, 5.0),) * 5
    moved = ((1, 5.0), (1, 5.0), (1, 6.0), (1, 4.0), (1, 5.0))
    assert not Pace(1.0, 2).are_neighbors(one, moved)
    assert Pace(1.0, 2, aligned=False).are_neighbors(one, moved)
    assert not Timestamps(1.0).are_neighbors((1.0, 2.0), (1.0, 4.0))
