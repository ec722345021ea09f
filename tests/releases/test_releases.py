"""Released files: put in place whole, read back as they were, refused when they are none."""

import json
import os
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tempriv as tp
from tempriv.data.files import write_durably
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.privacy.units import WholeSeries, Window
from tempriv.releases.description import REQUIRED_FIELDS, read_about, sidecar_path
from tempriv.releases.to_file import remove_stale_partials
from tempriv.releases.verify import verify

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5))


@pytest.fixture
def written(tmp_path):
    return tp.release(np.ones(20), LAPLACE).write(tmp_path / "out.csv")


def test_a_description_has_everything_that_is_needed_to_judge_it(written):
    about = read_about(written)
    assert REQUIRED_FIELDS.keys() <= about.keys()
    assert about["treatment"] == []
    assert not any(check.wrong for check in verify(written))


def test_a_release_can_be_written_again_in_another_form(written, tmp_path):
    again = tp.read(written).write(tmp_path / "again.parquet")
    back = tp.read(again).write(tmp_path / "back.csv")
    for path in (again, back):
        assert not any(check.wrong for check in verify(path)), path
    assert np.array_equal(tp.read(back).values, tp.read(written).values)


def test_the_treatment_of_a_table_is_told(tmp_path):
    table = {"t": [0, 1, 1, 3], "v": [1.0, 2.0, 9.0, 3.0]}
    import polars as pl

    release = tp.release(
        pl.DataFrame(table), LAPLACE, time="t", gaps="null", duplicates="first", clip=True
    )
    assert release.about["treatment"] == [
        "1 time steps without a reading were added as missing",
        "of several readings at one time the first was kept",
        "readings outside the bounds, if any, were moved to the nearest bound",
    ]


@pytest.mark.parametrize("key", [*REQUIRED_FIELDS, "ledger", "format"])
def test_a_description_that_lacks_something_is_refused(written, key):
    beside = sidecar_path(written)
    about = json.loads(beside.read_text())
    del about[key]
    beside.write_text(json.dumps(about))
    with pytest.raises(tp.TemprivError, match="not the description of a release"):
        read_about(written)


def test_a_description_of_another_version_says_so(written):
    beside = sidecar_path(written)
    beside.write_text(beside.read_text().replace('"format": 2', '"format": 7'))
    with pytest.raises(tp.TemprivError, match="written in format 7"):
        read_about(written)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.one_of(
        st.binary(max_size=100),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from([*REQUIRED_FIELDS, "format", "ledger", "is"]), inner
                )
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_arbitrary_descriptions_are_refused(written, text):
    sidecar_path(written).write_bytes(text)
    with pytest.raises(tp.TemprivError):
        read_about(written)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    key=st.sampled_from(list(REQUIRED_FIELDS)),
    value=st.text(max_size=8) | st.integers() | st.none(),
)
def test_a_changed_description_fails_a_check_or_is_refused(written, key, value):
    beside = sidecar_path(written)
    right = beside.read_bytes()
    about = json.loads(right)
    changed = {**about, key: {"is": value} if isinstance(about[key], dict) else value}
    beside.write_text(json.dumps(changed))
    try:
        found = verify(written)
    except tp.TemprivError:
        return
    finally:
        beside.write_bytes(right)
    told_only = {"release", "times"}  # nothing in the file to compare these with
    assert changed == about or key in told_only or any(check.wrong for check in found)


def test_a_file_is_replaced_in_one_step_and_failure_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "state"
    write_durably(path, b"old")
    monkeypatch.setattr(os, "fsync", lambda descriptor: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_durably(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


def test_partials_of_dead_runs_are_cleared_and_those_of_others_kept(tmp_path):
    output = tmp_path / "out.csv"
    dead, alive = (
        tmp_path / ".out.csv.99999999.abc.partial",
        tmp_path / (f".out.csv.{os.getpid()}.abc.partial"),
    )
    paid = tmp_path / ".out.csv.99999998.def.partial"
    for path in (dead, alive, paid):
        path.write_text("")
    for name in (
        ".out.csv.release.json.99999999.partial",
        "..out.csv.99999999.abc.partial.release.json.99999999.partial",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / ".other.csv.99999999.abc.partial").write_text("")
    remove_stale_partials(output, keep=[paid])
    (tmp_path / ".other.csv.99999999.abc.partial").unlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([alive.name, paid.name])


# statuses


# with hardly any noise, so that readings of 5 are the alerts
ALARM = SparseVector(epsilon=900.0, bounds=(0, 5), threshold=3, most=2, unit=WholeSeries(6))
STEADY = SampleOnce(epsilon=1.0, bounds=(0, 5), unit=Window(3))


def statuses(mechanism, path):
    """Two series of six readings, with one missing; those of an alarm end early."""
    table = pa.table({"s": ["a"] * 6 + ["b"] * 6, "v": [0.0, 5, 0, None, 5, 0, 0, 5, 0, 0, 0, 5]})
    return tp.release(table, mechanism, values="v", series="s", accept_weak=True).write(path)


def change(path, row, **cells):
    table = pyarrow.csv.read_csv(path).to_pylist()
    table[row].update(cells)
    pyarrow.csv.write_csv(pa.Table.from_pylist(table), path)


def bad(path):
    return [check.what for check in verify(path)[1:] if check.wrong]  # the first is the checksum


@pytest.mark.parametrize("mechanism", [ALARM, STEADY])
def test_statuses_fit_the_values_beside_them(mechanism, tmp_path):
    path = statuses(mechanism, tmp_path / "out.csv")
    checks = {check.what: check for check in verify(path)}
    assert not any(check.wrong for check in checks.values()), checks
    told = tp.read(path).table.column("status").to_pylist()
    found = ", ".join(f"{told.count(word)} {word}" for word in ("released", "repeated", "empty"))
    assert checks["every row says what it is"].found == found
    assert {"empty", "repeated"} & set(told)


@pytest.mark.parametrize(
    ("mechanism", "row", "cells"),
    [
        (ALARM, 0, {"status": "fine"}),
        (ALARM, 0, {"status": "repeated"}),
        (ALARM, 0, {"status": "empty"}),
        (ALARM, 3, {"status": "empty"}),  # a missing reading
        (ALARM, 5, {"status": "released"}),  # after the last alert
        (ALARM, 5, {"v": 0.0}),
        (STEADY, 1, {"status": "empty"}),
        (STEADY, 1, {"v": 1024.0}),  # no longer what it repeats
        (STEADY, 3, {"status": "repeated"}),  # a missing reading
    ],
)
def test_a_changed_status_is_caught(mechanism, row, cells, tmp_path):
    path = statuses(mechanism, tmp_path / "out.csv")
    assert bad(path) == []
    change(path, row, **cells)
    assert bad(path) == ["every row says what it is"]


def test_alerts_are_bits_and_statuses_are_not_left_out(tmp_path):
    path = statuses(ALARM, tmp_path / "out.csv")
    change(path, 0, v=2.0)
    assert bad(path) == ["every alert is 0 or 1"]
    beside = sidecar_path(path)
    about = json.loads(beside.read_text())
    del about["columns"]["status"]
    beside.write_text(json.dumps(about))
    assert bad(path) == ["every row says what it is"]


def test_a_column_without_any_value_still_holds_numbers(tmp_path):
    table = pa.table({"t": range(4), "v": pa.array([None] * 4, pa.float64())})
    release = tp.release(table, LAPLACE, values="v", time="t")
    for ending in ("csv", "parquet"):
        values = tp.read(release.write(tmp_path / f"out.{ending}")).values
        assert values.dtype == np.float64 and np.isnan(values).all()


@pytest.mark.parametrize("scheme", [tp.SkipLandmarks, tp.AdaptiveLandmarks])
def test_repeated_categories_are_verified(scheme, tmp_path):
    """Text cannot be compared as numbers; what is repeated has to be the category before it."""
    over = tp.RandomizedResponse(epsilon=9.0, categories=("a", "b", "c"))
    options = {"count": 3} if scheme is tp.AdaptiveLandmarks else {}
    table = pa.table({"v": list("abcabcabcabc"), "landmark": [0, 1] * 2 + [0] * 7 + [1]})
    release = tp.release(table, scheme(over=over, **options), values=["v", "landmark"])
    assert not any(check.wrong for check in verify(release.write(tmp_path / "out.csv")))
    statuses, words = (release.table.column(name).to_pylist() for name in ("status", "v"))
    if scheme is tp.SkipLandmarks:
        row = statuses.index("repeated")
        words[row] = "a" if words[row] != "a" else "b"
        changed = replace(release, table=release.table.set_column(0, "v", pa.array(words)))
        checks = verify(changed.write(tmp_path / "changed.csv"))
        assert {check.what for check in checks if check.wrong} == {"every row says what it is"}
