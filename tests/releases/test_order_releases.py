"""Releases of moved rows: what they refuse, what they say of themselves, and what is checked."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, TemprivError
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.releases.description import read_about, sidecar_path
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.releases.verify import verify
from tests.releases.test_order_tables import (
    DROPPING,
    LATE,
    MECHANISMS,
    ONCE,
    SHUFFLE,
    SORTED,
    csv_file,
    numbered,
    passage,
)

# refusals


SECRETS = ["4711.25", "Secret-Name", "31415"]


def refusal_of(*arguments, **options):
    with pytest.raises(TemprivError) as refusal:
        tp.release(*arguments, **options)
    said = f"{refusal.value} {refusal.value.__cause__}"
    assert not any(secret in said for secret in SECRETS)
    return str(refusal.value)


def test_nan_and_infinite_values_are_refused_by_their_number(tmp_path):
    table = pa.table({"t": range(4), "v": [4711.25, float("nan"), float("inf"), 1.0]})
    said = refusal_of(table, ONCE, time="t")
    assert "1 value is NaN" in said
    assert "1 value is infinite" in said
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(table, source)
    assert "1 value is NaN" in refusal_of(source, ONCE, time="t")
    spelled = tmp_path / "in.csv"
    spelled.write_text("t,v\n0,4711.25\n1,nan\n2,-inf\n3,1e400\n")
    for output in ("out.csv", "out.parquet"):
        with pytest.raises(DataError, match="2 values are infinite") as refusal:
            release_file(passage(spelled, ONCE, time="t"), tmp_path / output)
        assert "1 value is NaN" in str(refusal.value)
        assert not (tmp_path / output).exists()
    assert "1 value is NaN" in refusal_of(np.array([1.0, np.nan]), ONCE)


def test_a_nan_in_a_row_that_is_dropped_does_not_count():
    table = pa.table({"t": [0, 1, 1], "v": [1.0, 2.0, float("nan")]})
    released = tp.release(table, SHUFFLE, time="t", duplicates="first").table
    assert sorted(released["v"].to_pylist()) == [1.0, 2.0]


def test_refusals_show_no_value(tmp_path):
    table = pa.table({"t": [0, 2], "v": ["Secret-Name", "31415"]})
    assert "1 gap" in refusal_of(pa.table({"t": [0, 1, 3], "v": SECRETS}), ONCE, time="t")
    assert "no column 'x'; the columns are t, v" in refusal_of(table, ONCE, time="t", values="x")
    assert "several kinds" in refusal_of(["Secret-Name", 31415], ONCE)
    assert "several kinds" in refusal_of([31415 * 2**60, 1], ONCE)
    assert "no bounds" in refusal_of(table, ONCE, time="t", clip=True)
    clash = pa.table({"status": ["Secret-Name"]})
    assert "column 'status'" in refusal_of(clash, ONCE)
    twice = pa.Table.from_arrays([pa.array([31415]), pa.array([1])], names=["v", "v"])
    assert "stands in it twice" in refusal_of(twice, ONCE, values="v")
    broken = tmp_path / "in.csv"
    broken.write_text("t,v\n" + "".join(f"{t},a\n" for t in range(200_000)) + "1,Secret-Name,b,c\n")
    assert "cannot be read as a table" in refusal_of(broken, ONCE, time="t", values="v")
    numbers = Laplace(epsilon=1.0, bounds=(0, 1))
    assert "holds varchar, not numbers" in refusal_of(table, numbers, time="t")


# what a release says of itself


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_release_of_moved_rows_verifies(mechanism, ending, tmp_path):
    path = tmp_path / f"out.{ending}"
    release = tp.release(numbered(), mechanism, time="t", series="s")
    release.write(path)
    bad = {check.what for check in verify(path) if check.wrong}
    assert bad == ({"something is guaranteed"} if isinstance(mechanism, Forward) else set())
    again = tp.read(path).write(tmp_path / "again.parquet")
    assert {check.what for check in verify(again) if check.wrong} == bad


def test_what_is_public_is_told():
    def told(mechanism):
        return " | ".join(tp.release(["a", "b"] * 20, mechanism).about["not_protected"])

    for mechanism in MECHANISMS:
        said = told(mechanism)
        assert "all values: they are published exactly as they are" in said
        assert "such as those of a meter that only rises" in said
        assert "which readings are missing" not in said
        assert ("several rows together" in said) == isinstance(mechanism.unit, tp.SlotOrigin)
        assert ("a row marked repeated" in said) == isinstance(mechanism, Backward)
    assert "in which block of 2 time steps" in told(SHUFFLE)
    assert "where it stands or up to 5 steps before" in told(ONCE)
    assert "at most 20 time steps from where" in told(LATE)
    assert "3 or more time steps apart" in told(SORTED)
    assert "time steps from where" not in told(SORTED)
    about = tp.release(pa.table({"a": ["x", "y"] * 9, "b": [1, 2] * 9}), ONCE).about
    errors = [(one["column"], one["error"]) for one in about["expected_error"]]
    assert errors == [("a", ONCE.errors[0]), ("b", ONCE.errors[0])]
    assert about["treatment"] == []


def changed(tmp_path, mechanism, table=None):
    """A release whose rows are changed by hand, and what its check of statuses says then."""
    path = tmp_path / "out.parquet"
    tp.release(numbered() if table is None else table, mechanism, time="t", series="s").write(
        path, force=True
    )
    metadata = pyarrow.parquet.read_schema(path).metadata
    rows = pyarrow.parquet.read_table(path)

    def after(change):
        listed = rows.to_pylist()
        change(listed)
        made = pa.Table.from_pylist(listed, schema=rows.schema).replace_schema_metadata(metadata)
        pyarrow.parquet.write_table(made, path)
        return {check.what for check in verify(path)[1:] if check.wrong}

    assert after(lambda rows: None) == set()
    return after


BAD_STATUS = {"every row says what it is"}


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, SORTED, LATE, DROPPING], ids=repr)
def test_an_empty_row_that_holds_something_or_a_repeated_one_is_caught(mechanism, tmp_path):
    after = changed(tmp_path, mechanism)
    assert after(lambda rows: rows[30].update(status="empty", v="x")) == BAD_STATUS
    assert after(lambda rows: rows[30].update(status="repeated")) == BAD_STATUS
    assert after(lambda rows: rows[30].update(status="late")) == BAD_STATUS


@pytest.mark.parametrize("mechanism", [ONCE, SHUFFLE, SORTED, MECHANISMS[4]], ids=repr)
def test_empty_rows_where_there_can_be_none_are_caught(mechanism, tmp_path):
    def emptied(row):
        row.update(i=None, v=None, w=None, status="empty")

    def filled(row):
        row.update(i=3, v="x", w="x", status="released")

    after = changed(tmp_path, mechanism)
    assert after(lambda rows: emptied(rows[30])) == BAD_STATUS
    first = range(mechanism.window - 1) if hasattr(mechanism, "window") else range(5)
    assert after(lambda rows: [emptied(rows[i]) for i in first]) == BAD_STATUS
    if mechanism.empty_rows[1]:
        assert after(lambda rows: [filled(rows[i]) for i in first]) == BAD_STATUS

        def late(rows):
            filled(next(row for row in rows if row["status"] == "empty"))
            emptied(rows[30])

        assert after(late) == BAD_STATUS


def test_where_a_reading_may_be_dropped_an_empty_row_may_be_anywhere(tmp_path):
    after = changed(tmp_path, DROPPING)
    assert after(lambda rows: rows[30].update(i=None, v=None, w=None, status="empty")) == set()


def test_a_row_called_repeated_must_have_been_there(tmp_path):
    mechanism = Backward(epsilon=0.5, window=4)
    after = changed(tmp_path, mechanism)
    rows = pyarrow.parquet.read_table(tmp_path / "out.parquet").to_pylist()
    again = next(i for i, row in enumerate(rows[:40]) if row["status"] == "repeated")
    assert after(lambda rows: rows[again].update(w="other")) == BAD_STATUS
    fresh = next(i for i in range(20, 40) if rows[i]["status"] == "released")
    assert after(lambda rows: rows[fresh].update(status="repeated")) == BAD_STATUS
    far = rows[again]
    assert after(lambda rows: rows[again + 9].update({**far, "t": rows[again + 9]["t"]})) == (
        BAD_STATUS
    )


def test_the_types_are_part_of_what_is_checked(tmp_path):
    path = tmp_path / "out.csv"
    tp.release(pa.table({"v": ["1", "2", "x"]}), SHUFFLE).write(path)
    beside = sidecar_path(path)
    right = beside.read_text()

    def with_types(types):
        about = json.loads(right)
        about["columns"]["types"] = types
        beside.write_text(json.dumps(about))
        return {check.what for check in verify(path) if check.wrong}

    assert with_types(["string"]) == set()
    assert with_types(["int64"]) == {"the table can be read"}
    assert with_types(["wonder"]) == {"the values have the types that are described"}
    assert with_types([]) == {"the table can be read"}
    about = json.loads(right)
    del about["columns"]["types"]
    beside.write_text(json.dumps(about))
    assert {check.what for check in verify(path) if check.wrong} == {"the table can be read"}


def test_a_release_of_other_mechanisms_has_no_types(tmp_path):
    path = tp.release(np.ones(5), Laplace(epsilon=1.0, bounds=(0, 5))).write(tmp_path / "out.csv")
    assert "types" not in read_about(path)["columns"]
    beside = sidecar_path(path)
    about = json.loads(beside.read_text())
    about["columns"]["types"] = ["double"]
    beside.write_text(json.dumps(about))
    found = {check.what for check in verify(path) if check.wrong}
    assert "the values have the types that are described" in found


def test_those_who_watch_see_numbers_as_numbers_and_all_else_as_text(tmp_path):
    seen = []
    table = pa.table({"v": [1, 2, None], "w": [0.5, None, 1.5]})
    passing = ReleaseRun(
        SeriesTable(table, values=("v", "w")), SHUFFLE, watch=lambda *blocks: seen.append(blocks)
    )
    list(passing.batches())
    private, released = seen[0]
    assert private.values.dtype == np.float64
    assert private.missing.tolist() == [[False, False], [False, True], [True, False]]
    assert sorted(map(repr, released.values.tolist())) == sorted(map(repr, private.values.tolist()))
    source = csv_file(tmp_path / "in.csv", {"v": ["1.50", ""], "w": ["x", "y"]}, rows=2)
    watching = ReleaseRun(
        SeriesTable(source, values=("v", "w"), time="t"),
        SHUFFLE,
        watch=lambda *both: seen.append(both),
    )
    release_file(watching, tmp_path / "out.csv")
    assert seen[1][0].values.tolist() == [[1.5, "x"], [None, "y"]]
