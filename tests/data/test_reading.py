"""Private tables are read in order, checked, and refused with counts and remedies."""

import datetime
import gzip
import itertools
import os
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, TemprivError


def read(source, values="v", time="t", series=None, bounds=None, categories=None, **rules):
    """(rows of (id, tick, values, missing, step), summary) of a reading."""
    names = (values,) if isinstance(values, str) else values
    reading = SeriesTable(source, values=names, time=time, series=series, **rules).read(
        bounds, categories
    )
    rows = []
    for block in reading:
        steps = np.concatenate(
            [s + np.arange(c) for s, c in zip(block.starts, block.counts, strict=True)]
        )
        ids = np.repeat(np.array(block.ids, dtype=object), block.counts)
        ticks = steps if block.times is None else block.times
        for i, t, v, m, s in zip(ids, ticks, block.values, block.missing, steps, strict=True):
            shown = tuple(None if gone else float(x) for x, gone in zip(v, m, strict=True))
            rows.append((str(i), int(t), shown if len(shown) > 1 else shown[0], int(s)))
    return rows, reading.summary


TABLE = {"who": ["b", "a", "b", "a"], "t": [1, 1, 0, 0], "v": [4.0, 2.0, 3.0, 1.0]}
SORTED = [("a", 0, 1.0, 0), ("a", 1, 2.0, 1), ("b", 0, 3.0, 0), ("b", 1, 4.0, 1)]


@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "csv", "parquet", "tsv"])
def test_every_kind_of_table_gives_the_same_series(kind, tmp_path):
    table = pa.table(TABLE)
    if kind == "polars":
        source = pa.table(pl.DataFrame(TABLE))
    elif kind == "pandas":
        source = pa.table(pd.DataFrame(TABLE))
    elif kind == "parquet":
        source = tmp_path / "t.parquet"
        pyarrow.parquet.write_table(table, source)
    elif kind in ("csv", "tsv"):
        source = tmp_path / f"t.{kind}"
        pl.DataFrame(TABLE).write_csv(source, separator="," if kind == "csv" else "\t")
    else:
        source = table
    assert read(source, series="who")[0] == SORTED


def test_integer_ids_and_no_id_at_all():
    rows, summary = read(pa.table({**TABLE, "who": [2, 1, 2, 1]}), series="who")
    assert [(i, t) for i, t, *_ in rows] == [("1", 0), ("1", 1), ("2", 0), ("2", 1)]
    rows, summary = read(pa.table({"t": [1, 0], "v": [2.0, 1.0]}))
    assert rows == [("series", 0, 1.0, 0), ("series", 1, 2.0, 1)]
    assert (summary.first, summary.last, summary.step, summary.clock) == (0, 1, 1, "integer")


def test_without_a_time_column_rows_stay_in_order():
    rows, summary = read(pa.table({"v": [5.0, 3.0, 4.0]}), time=None)
    assert [v for _, _, v, _ in rows] == [5.0, 3.0, 4.0]
    assert summary.clock == "index"


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("columns", "time", "kind", "step"),
    [
        ({"t": [datetime.date(2026, 1, d) for d in (3, 1, 2)]}, "t", "date", 1),
        ({"t": [datetime.datetime(2026, 1, 1, h) for h in (3, 1, 2)]}, "t", "datetime", HOUR),
        ({"d": [datetime.date(2026, 1, 1)] * 3, "h": [3, 1, 2]}, "d+h", "datetime", HOUR),
        (
            {"d": [datetime.date(2026, 1, 1)] * 3, "h": [datetime.time(h) for h in (3, 1, 2)]},
            "d+h",
            "datetime",
            HOUR,
        ),
    ],
)
def test_times_may_be_dates_datetimes_or_a_date_and_an_hour(columns, time, kind, step):
    rows, summary = read(pa.table({**columns, "v": [3.0, 1.0, 2.0]}), time=time)
    assert [v for _, _, v, _ in rows] == [1.0, 2.0, 3.0]
    assert (summary.clock, summary.step) == (kind, step)


def test_times_with_a_zone_are_read_and_written_as_the_same_moment():
    moments = pa.array([HOUR * 2, HOUR], pa.timestamp("us", "Europe/Berlin"))
    reading = SeriesTable(pa.table({"t": moments, "v": [2.0, 1.0]}), values=("v",), time="t").read()
    (block,) = list(reading)
    assert block.times.tolist() == [HOUR, 2 * HOUR]
    assert str(reading.clock.columns(block.times)[0][1].type) == "timestamp[us, tz=UTC]"


GAPPY = pa.table({"t": [0, 1, 3, 6], "v": [0.0, 1.0, 3.0, 6.0]})


def test_gaps_are_refused_with_their_number_or_filled_with_empty_readings():
    with pytest.raises(DataError, match="2 gaps.*gaps='null'"):
        read(GAPPY)
    rows, summary = read(GAPPY, gaps="null")
    assert [(t, v, s) for _, t, v, s in rows] == [
        (0, 0.0, 0),
        (1, 1.0, 1),
        (2, None, 2),
        (3, 3.0, 3),
        (4, None, 4),
        (5, None, 5),
        (6, 6.0, 6),
    ]
    assert summary.filled == 3


def test_the_index_grid_takes_readings_in_order_whatever_their_times():
    rows, summary = read(GAPPY, grid="index")
    assert [(t, s) for _, t, _, s in rows] == [(0, 0), (1, 1), (3, 2), (6, 3)]
    assert summary.step is None


def test_readings_off_the_grid_are_counted_and_a_step_can_be_named():
    table = pa.table({"t": [0, 10, 20, 25], "v": [0.0] * 4})
    with pytest.raises(DataError, match="1 reading is off the regular time grid.*grid='index'"):
        read(table)
    assert [t for _, t, _, _ in read(table, step="5", gaps="null")[0]] == [0, 5, 10, 15, 20, 25]
    with pytest.raises(TemprivError, match="step='1h': must be a whole number"):
        read(table, step="1h")


def test_a_calendar_says_which_times_exist(tmp_path):
    days = tmp_path / "days.csv"
    days.write_text("day\n2026-01-02\n2026-01-05\n2026-01-06\n2026-01-07\n")
    times = [datetime.date(2026, 1, d) for d in (2, 5, 7)]
    table = pa.table({"t": times, "v": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match="1 gap in the time grid"):
        read(table, grid="calendar", calendar=days)
    rows, _ = read(table, grid="calendar", calendar=days, gaps="null")
    assert [v for _, _, v, _ in rows] == [1.0, 2.0, None, 3.0]
    off = pa.table({"t": [*times, datetime.date(2026, 1, 8)], "v": [1.0] * 4})
    with pytest.raises(DataError, match="1 reading is not on a time of the calendar"):
        read(off, grid="calendar", calendar=days, gaps="null")
    with pytest.raises(DataError, match="calendar holds date times, the table integer"):
        read(GAPPY, grid="calendar", calendar=days)


def test_duplicates_are_refused_with_their_number_or_the_first_is_kept():
    table = pa.table({"t": [1, 0, 1, 1], "v": [1.0, 0.0, 7.0, 8.0]})
    with pytest.raises(DataError, match="2 readings stand.*duplicates='first'"):
        read(table)
    rows, summary = read(table, duplicates="first")
    assert [(t, v) for _, t, v, _ in rows] == [(0, 0.0), (1, 1.0)]
    assert summary.dropped == 2


def test_values_outside_the_bounds_are_counted_but_never_shown():
    table = pa.table({"t": [0, 1, 2], "v": [1.0, 777.25, -3.5]})
    with pytest.raises(DataError, match="2 values outside the bounds.*clip=True") as refusal:
        read(table, bounds=((0.0, 5.0),))
    assert "777" not in str(refusal.value)
    assert "3.5" not in str(refusal.value)
    assert len(read(table, bounds=((0.0, 5.0),), clip=True)[0]) == 3


def test_nan_and_infinity_are_refused_and_nulls_stay_missing():
    table = pa.table({"t": [0, 1, 2], "v": pa.array([1.0, float("nan"), float("inf")])})
    with pytest.raises(DataError, match="1 value is NaN") as refusal:
        read(table)
    assert "1 value is infinite" in str(refusal.value)
    rows, _ = read(pa.table({"t": [0, 1], "v": [None, 2.0]}))
    assert [v for _, _, v, _ in rows] == [None, 2.0]


def test_categories_become_numbers_and_unknown_ones_are_counted():
    table = pa.table({"t": [0, 1, 2], "v": ["b", None, "a"]})
    assert [v for _, _, v, _ in read(table, categories=(("a", "b"),))[0]] == [1.0, None, 0.0]
    with pytest.raises(DataError, match="1 value is none of the given categories") as refusal:
        read(table, categories=(("a", "c"),))
    assert "'b'" not in str(refusal.value)


def test_categories_of_a_csv_file_are_taken_as_they_stand(tmp_path):
    """DuckDB takes yes and no for truth values, 01 for a number, and would spell them anew."""
    path = tmp_path / "answers.csv"
    path.write_text("t,said,code,day\n0,yes,01,2024-1-5\n1,no,1,2024-1-5\n2,,1,2024-1-5\n")
    names = (("no", "yes"), ("1", "01"), ("2024-1-5",))
    rows, _ = read(path, values=("said", "code", "day"), categories=names)
    assert [values for _, _, values, _ in rows] == [(1, 1, 0), (0, 0, 0), (None, 0, 0)]


def test_rows_without_an_id_or_a_time_are_refused():
    table = pa.table({"who": ["a", None], "t": [0, 1], "v": [1.0, 2.0]})
    with pytest.raises(DataError, match="1 row without a series id"):
        read(table, series="who")
    with pytest.raises(DataError, match="1 row without a time"):
        read(pa.table({"t": [0, None], "v": [1.0, 2.0]}))


@pytest.mark.parametrize(
    ("table", "rules", "sentence"),
    [
        ({"t": [0], "v": [1.0]}, {"values": "x"}, "no column 'x'; the columns are t, v"),
        ({"t": [0], "v": ["a"]}, {}, "column 'v' holds varchar, not numbers"),
        ({"t": ["soon"], "v": [1.0]}, {}, "time column 't' holds varchar"),
        ({"t": [0.5], "v": [1.0]}, {}, "time column 't' holds double"),
        ({"t": [0], "v": [1.0], "w": [0.5]}, {"series": "w"}, "holds fractions"),
        ({"t": [0], "v": [1.0]}, {"gaps": "guess"}, "gaps='guess': must be one of"),
        ({"t": [0], "v": [1.0]}, {"values": ("v", "v")}, "name each only once"),
        ({"t": [0], "v": [1.0]}, {"values": ()}, "no value column"),
        ({"t": [0], "v": [1.0]}, {"grid": "calendar"}, "a calendar grid goes with a calendar"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_remedy(table, rules, sentence):
    with pytest.raises(TemprivError, match=sentence):
        read(pa.table(table), **rules)


def test_an_empty_table_is_refused(tmp_path):
    with pytest.raises(DataError, match="no rows"):
        read(pa.table({"t": pa.array([], pa.int64()), "v": pa.array([], pa.float64())}))
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(DataError, match="empty"):
        read(empty)
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match=r"\.csv or \.parquet"):
        read(__import__("pathlib").Path(__file__))


def test_a_gap_of_centuries_is_taken_for_a_wrong_time():
    times = [0, 1, 10**9]
    with pytest.raises(DataError, match="filling the gaps would add"):
        read(pa.table({"t": times, "v": [0.0] * 3}), gaps="null")


def test_persons_have_few_enough_series_and_series_one_person():
    table = {"who": ["a", "b", "c"], "p": ["x", "x", "y"], "t": [0, 0, 0], "v": [1.0, 2.0, 3.0]}
    rules = {"series": "who", "person": "p"}
    _, summary = read(pa.table(table), **rules, max_series_per_person=2)
    assert sorted(summary.persons) == ["x", "y"]
    with pytest.raises(DataError, match="1 person has more than 1 series"):
        read(pa.table(table), **rules, max_series_per_person=1)
    shared = {**table, "who": ["a", "a", "c"], "p": ["x", "y", "y"], "t": [0, 1, 0]}
    with pytest.raises(DataError, match="1 series belong to no person or to several"):
        read(pa.table(shared), **rules, max_series_per_person=2)
    with pytest.raises(TemprivError, match="give both person and max_series_per_person"):
        read(pa.table(table), series="who", person="p")


def test_series_may_span_batches(monkeypatch):
    from tempriv.data import duckdb

    monkeypatch.setattr(duckdb, "BATCH_ROWS", 2048)
    n = 3000
    table = pa.table(
        {"who": ["a"] * n + ["b"] * n, "t": [*range(n), *range(n)], "v": np.arange(2.0 * n)}
    )
    rows, summary = read(table, series="who")
    assert [s for *_, s in rows] == [*range(n), *range(n)]
    assert summary.rows == 2 * n
    late = pa.table({"t": [*range(n), n + 7], "v": np.zeros(n + 1)})
    assert [s for *_, s in read(late, gaps="null")[0]] == list(range(n + 8))


def test_data_are_never_taken_for_column_names(tmp_path):
    source = tmp_path / "ragged.csv"
    source.write_text("t,v\n1,2,3\n4711,815,42\n7,8,9\n")
    with pytest.raises(DataError) as refusal:
        read(source, values="w")
    assert "4711" not in str(refusal.value)


def test_decimals_and_compressed_files_are_numbers_too(tmp_path):
    from decimal import Decimal

    table = pa.table({"t": [0, 1], "v": pa.array([Decimal("1.25"), None], pa.decimal128(5, 2))})
    assert [v for _, _, v, _ in read(table)[0]] == [1.25, None]
    source = tmp_path / "t.csv.gz"
    source.write_bytes(gzip.compress(b"t,v\n1,2.5\n0,1.5\n"))
    assert [v for _, _, v, _ in read(source)[0]] == [1.5, 2.5]


def test_a_malformed_file_is_refused_without_a_word_of_its_content(tmp_path):
    source = tmp_path / "bad.csv"
    good = "".join(f"{i},1.5\n" for i in range(200_000))
    source.write_text(f"t,v\n{good}secret-4711,1,2,3\n")
    with pytest.raises(DataError) as refusal:
        read(source)
    assert "secret" not in str(refusal.value)
    assert "4711" not in str(refusal.value)
    broken = tmp_path / "bad.parquet"
    broken.write_bytes(b"PAR1 this is no parquet file PAR1")
    with pytest.raises(DataError, match="cannot be read as a table"):
        read(broken)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.binary(max_size=300), ending=st.sampled_from(["csv", "parquet"]))
def test_arbitrary_bytes_are_read_or_refused(data, ending, tmp_path):
    source = tmp_path / f"any.{ending}"
    source.write_bytes(data)
    try:
        read(source)
    except TemprivError:
        return


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", 'é,"', ""]),
            st.integers(-3, 12),
            st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
        ),
        max_size=25,
    ),
    grid=st.sampled_from(["regular", "index"]),
    gaps=st.sampled_from(["refuse", "null"]),
    duplicates=st.sampled_from(["refuse", "first"]),
)
def test_any_table_is_in_order_on_its_grid_or_refused(rows, grid, gaps, duplicates):
    columns = list(zip(*rows, strict=True)) if rows else ([], [], [])
    table = pa.table(
        {
            "who": pa.array(columns[0], pa.string()),
            "t": pa.array(columns[1], pa.int64()),
            "v": pa.array(columns[2], pa.float64()),
        }
    )
    try:
        found, summary = read(table, series="who", grid=grid, gaps=gaps, duplicates=duplicates)
    except DataError:
        return
    assert len(found) == summary.rows == len(rows) + summary.filled - summary.dropped
    for (i, t, _, s), (j, u, _, r) in itertools.pairwise(found):
        if i == j:
            assert r == s + 1
            assert u > t
            assert grid == "index" or u - t == summary.step
        else:
            assert i < j
            assert r == 0


SPILL = """
import sys
from pathlib import Path
from tempriv.data import duckdb
from tempriv.data.series import SeriesTable
duckdb.MEMORY_LIMIT = "60MB"
table = SeriesTable(Path(sys.argv[1]), values=("v",), time="t", series="who")
blocks = iter(table.read())
next(blocks)
print("spilling", flush=True)
sys.stdin.readline()
blocks.close()
print("left", flush=True)
sys.stdin.readline()
for number, block in enumerate(table.read()):
    print(number, flush=True)
    sys.stdin.readline()
"""


SECRET = 1234.56789


def test_a_killed_run_leaves_no_spilled_rows_behind(tmp_path):
    """What does not fit in memory is spilled encrypted, and gone when read, or after kill -9."""
    n = 4_000_000
    names = pa.array(["somebody-0815"] * (n // 2) + ["somebody-4711"] * (n // 2))
    order = np.random.default_rng(1).permutation(n)
    source = tmp_path / "large.parquet"
    table = pa.table({"who": names, "t": np.arange(n) % (n // 2), "v": np.full(n, SECRET)}).take(
        order
    )
    pyarrow.parquet.write_table(table, source)
    spills = tmp_path / "spills"
    spills.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", SPILL, str(source)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(spills)},
    )

    def go_on_until(line):
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == line

    assert process.stdout.readline() == b"spilling\n"
    assert any(file.is_file() for file in spills.rglob("*")), "nothing was spilled"
    go_on_until(b"left\n")
    assert not any(file.is_file() for file in spills.rglob("*")), "the process goes on without it"
    go_on_until(b"0\n")
    (folder,) = spills.iterdir()
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert sum(sizes) > 1_000_000, "nothing was spilled, so nothing was shown"
    secret = np.float64(SECRET).tobytes()
    assert all(secret not in file.read_bytes() for file in folder.iterdir())
    process.kill()
    process.wait()
    for _ in range(500):
        if not any(spills.iterdir()):
            break
        time.sleep(0.02)
    assert list(spills.iterdir()) == []
