"""Released files: put in place whole, read back as they were, refused when they are none."""

import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tempriv as tp
from tempriv.files import write_durably
from tempriv.releases import SHAPE, read_about, remove_stale_partials, sidecar_of
from tempriv.verify import verify

LAPLACE = tp.Laplace(epsilon=1.0, bounds=(0, 5))


@pytest.fixture
def written(tmp_path):
    return tp.release(np.ones(20), LAPLACE).write(tmp_path / "out.csv")


def test_a_description_has_everything_that_is_needed_to_judge_it(written):
    about = read_about(written)
    assert SHAPE.keys() <= about.keys()
    assert about["treatment"] == []
    assert all(check.good for check in verify(written))


def test_a_release_can_be_written_again_in_another_form(written, tmp_path):
    again = tp.read(written).write(tmp_path / "again.parquet")
    back = tp.read(again).write(tmp_path / "back.csv")
    for path in (again, back):
        assert all(check.good for check in verify(path)), path
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


@pytest.mark.parametrize("key", [*SHAPE, "ledger", "format"])
def test_a_description_that_lacks_something_is_refused(written, key):
    beside = sidecar_of(written)
    about = json.loads(beside.read_text())
    del about[key]
    beside.write_text(json.dumps(about))
    with pytest.raises(tp.Refusal, match="not the description of a release"):
        read_about(written)


def test_a_description_of_another_version_says_so(written):
    beside = sidecar_of(written)
    beside.write_text(beside.read_text().replace('"format": 1', '"format": 7'))
    with pytest.raises(tp.Refusal, match="written in format 7"):
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
                | st.dictionaries(st.sampled_from([*SHAPE, "format", "ledger", "is"]), inner)
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
def test_arbitrary_descriptions_are_refused(written, text):
    sidecar_of(written).write_bytes(text)
    with pytest.raises(tp.Refusal):
        read_about(written)


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(list(SHAPE)), value=st.text(max_size=8) | st.integers() | st.none())
def test_a_changed_description_fails_a_check_or_is_refused(written, key, value):
    beside = sidecar_of(written)
    right = beside.read_bytes()
    about = json.loads(right)
    changed = {**about, key: {"is": value} if isinstance(about[key], dict) else value}
    beside.write_text(json.dumps(changed))
    try:
        found = verify(written)
    except tp.Refusal:
        return
    finally:
        beside.write_bytes(right)
    told_only = {"release", "times"}  # nothing in the file to compare these with
    assert changed == about or key in told_only or not all(check.good for check in found)


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
