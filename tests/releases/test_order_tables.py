"""Tables through mechanisms that move rows in time: every value comes out as it came in."""

import datetime
import decimal
import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import tempriv as tp
from tempriv.data import duckdb
from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, TemprivError
from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.releases.run import ReleaseRun
from tempriv.releases.to_file import release_file
from tempriv.releases.verify import verify
from tempriv.sampling.keys import Key

SHUFFLE = BlockShuffle(epsilon=1.0, block=2)
SORTED = NoisyOrder(epsilon=2.0, window=3)
LATE = NoisyOrder(epsilon=4.0, window=3, latency=20, delta=0.1)
ONCE = Threshold(epsilon=5.0, window=6)
DROPPING = Threshold(epsilon=1.0, window=6)
MECHANISMS = [
    Backward(epsilon=2.0, window=5),
    Forward(epsilon=2.0, window=5),
    ONCE,
    DROPPING,
    DualThreshold(epsilon=5.0, window=6),
    DualThreshold(epsilon=1.0, window=6),
    SHUFFLE,
    BlockShuffle(epsilon=1.0, block=5, offset=2),
    SORTED,
    LATE,
]
ALL_OUT = [SHUFFLE, SORTED, LATE]

TEXTS = ["a", None, "", 'x "q", y', "line\nbreak", "é€😀", " space ", "None", "007", "a\rb"]
ARRAYS = {
    "int8": pa.array([1, None, -3], pa.int8()),
    "int64": pa.array([2**63 - 1, None, -(2**63), 2**53 + 1]),
    "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "float": pa.array([0.1, None, -0.0, 5e-324, 1 / 3, 1e300]),
    "float32": pa.array([1.1, None, 2.5], pa.float32()),
    "float16": pa.array([1.5, None, 2.5], pa.float16()),
    "bool": pa.array([True, None, False]),
    "text": pa.array(TEXTS),
    "large text": pa.array(TEXTS, pa.large_string()),
    "views": pa.array(TEXTS, pa.string_view()),
    "categories": pa.array(["b", None, "a"]).dictionary_encode(),
    "date": pa.array([datetime.date(2026, 1, 31), None, datetime.date(1, 1, 1)]),
    "timestamp": pa.array([1, None, -1], pa.timestamp("us")),
    "nanoseconds": pa.array([1, None, -1], pa.timestamp("ns")),
    "zone": pa.array([1, None, -1], pa.timestamp("us", "Europe/Berlin")),
    "time": pa.array([datetime.time(1, 2, 3, 4), None]),
    "duration": pa.array([1, None, -1], pa.duration("us")),
    "decimal": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(30, 2)),
    "large decimal": pa.array([decimal.Decimal("1" * 48 + ".25"), None], pa.decimal256(50, 2)),
    "nothing": pa.nulls(3),
    "bytes": pa.array([b"\xff\x00", None, b""]),
    "lists": pa.array([[1, None], None, []]),
    "structs": pa.array([{"a": 1}, None]),
}
NOT_IN_CSV = {"bytes", "lists", "structs"}
NOT_THROUGH_DUCKDB = {"large decimal"}
PLAIN = {"large text": pa.string(), "views": pa.string(), "categories": pa.string()}


def repeated(array, rows=40):
    """The array again and again, so that there is something to move."""
    return (
        array.take(pa.array(np.arange(rows) % len(array)))
        if not is_view(array)
        else (repeated(array.cast(pa.string()), rows).cast(array.type))
    )


def is_view(array):
    return pa.types.is_string_view(array.type)


def multiset(*columns):
    """Rows with how often each stands there; -0.0 is another value than 0.0."""
    lists = [column.to_pylist() for column in columns]
    return Counter(map(repr, zip(*lists, strict=True)))


def passage(source, mechanism, seed=None, **layout):
    key = None if seed is None else Key.from_seed(seed)
    values = layout.pop("values", ("v",))
    return ReleaseRun(SeriesTable(source, values=tuple(values), **layout), mechanism, key)


# types


@pytest.mark.parametrize("mechanism", ALL_OUT, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("name", ARRAYS)
def test_values_of_every_type_come_out_exactly_and_in_their_type(name, mechanism):
    column = repeated(ARRAYS[name])
    table = pa.table({"t": range(len(column)), "v": column})
    released = tp.release(table, mechanism, time="t", key=Key.from_seed(5)).table
    assert released.schema.field("v").type == column.type
    assert multiset(released["v"]) == multiset(column)
    assert released["v"].to_pylist() != column.to_pylist() or name == "nothing"
    assert set(released["status"].to_pylist()) == {"released"}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("name", ARRAYS)
def test_a_written_release_reads_back_with_the_same_values_and_types(name, ending, tmp_path):
    column = repeated(ARRAYS[name])
    release = tp.release(pa.table({"t": range(len(column)), "v": column}), SHUFFLE, time="t")
    path = tmp_path / f"out.{ending}"
    if ending == "csv" and name in NOT_IN_CSV:
        with pytest.raises(TemprivError, match=r"which a CSV file cannot hold: write to \.parquet"):
            release.write(path)
        assert not list(tmp_path.iterdir())
        return
    back = tp.read(release.write(path)).table
    assert back["v"].to_pylist() == release.table["v"].to_pylist()
    if name != "lists":  # Parquet calls their items by another name
        assert back.schema.field("v").type == PLAIN.get(name, column.type)
    assert [check.what for check in verify(path) if check.wrong] == []


@pytest.mark.parametrize("name", ARRAYS)
def test_values_of_a_parquet_file_come_out_exactly(name, tmp_path):
    column = repeated(ARRAYS[name])
    source, output = tmp_path / "in.parquet", tmp_path / "out.parquet"
    pyarrow.parquet.write_table(pa.table({"t": range(len(column)), "v": column}), source)
    if name in NOT_THROUGH_DUCKDB:
        with pytest.raises(DataError, match="cannot be read without loss") as refusal:
            release_file(passage(source, SHUFFLE, time="t"), output)
        assert "1111" not in str(refusal.value)
        return
    release_file(passage(source, SHUFFLE, time="t"), output)
    released = tp.read(output).table
    assert multiset(released["v"]) == multiset(column)
    assert [check.what for check in verify(output) if check.wrong] == []


def test_old_timestamps_whose_nanoseconds_would_be_lost_are_refused(tmp_path):
    source = tmp_path / "in.parquet"
    table = pa.table({"t": range(3), "v": pa.array([1, 2, 3], pa.timestamp("ns"))})
    pyarrow.parquet.write_table(table, source, use_deprecated_int96_timestamps=True)
    with pytest.raises(DataError, match="column 'v' holds timestamp.*write it to the file as"):
        tp.release(source, SHUFFLE, time="t", values="v")


CSV_CELLS = {
    # name: (cells as they stand in the file, the type in which they lose nothing)
    "whole": (["5", "-7", "0", "", "9007199254740993"], "int64"),
    "zip": (["00501", "90210", "10001"], "string"),
    "huge": (["12345678901234567890", "1", "2"], "string"),
    "price": (["12.50", "1e3", ".5", "-0.0", "", "0.1"], "double"),
    "digits": (["0.1234567890123456789", "1.5"], "string"),
    "doubles": (["0.1234567890123456", "1.7976931348623157e308", "5e-324"], "double"),
    "tiny": (["1e-400", "1.5"], "string"),
    "text": (['"a, ""b"""', "é€😀", '""', "", "x", '"two\nlines"', "007", "nan"], "string"),
    "said": (["true", "False", "TRUE", ""], "bool"),
    "yes": (["yes", "no"], "string"),
    "day": (["2026-01-31", "", "1999-12-31"], "date32[day]"),
    "short day": (["2026-1-5", "2026-1-6"], "string"),
    "moment": (["2026-01-31T13:00:00", "2026-01-31 13:00:00.5", ""], "timestamp[us]"),
    "fine": (["2026-01-31 13:00:00.1234567", "2026-01-31 13:00:00"], "string"),
    "utc": (["2026-01-31T13:00:00Z", "2026-02-01 00:00:00.25Z"], "timestamp[us, tz=UTC]"),
    "offset": (["2026-01-31T13:00:00+02:00", "2026-01-31T13:00:00Z"], "string"),
    "clock": (["13:00:00", "07:30:05"], "time64[us]"),
}


def csv_file(path, columns, rows=40):
    """Cells again and again, one column for each list; ids of rows are their times."""
    lines = [",".join(["t", *columns])]
    for i in range(rows):
        lines.append(",".join([str(i), *(cells[i % len(cells)] for cells in columns.values())]))
    path.write_text("\n".join(lines) + "\n")
    return path


def cells(path):
    """Rows of a CSV file: each cell as text, None where there is nothing, not even quotes."""
    rows, row = [], []
    for raw, end in re.findall(r'("(?:[^"]|"")*"|[^,\n]*)(,|\n)', path.read_text()):
        quoted = raw.startswith('"')
        row.append(raw[1:-1].replace('""', '"') if quoted else raw or None)
        if end == "\n":
            rows.append(tuple(row))
            row = []
    return rows[1:]


@pytest.mark.parametrize("mechanism", [*ALL_OUT, ONCE], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("name", CSV_CELLS)
def test_cells_of_a_csv_file_come_out_as_they_stand(name, mechanism, tmp_path):
    spelled, kind = CSV_CELLS[name]
    source = csv_file(tmp_path / "in.csv", {"v": spelled})
    output = tmp_path / "out.csv"
    about = release_file(passage(source, mechanism, time="t"), output)
    before, after = cells(source), cells(output)
    assert [row[0] for row in after] == [row[0] for row in before]
    came = Counter(row[1] for row in after if row[2] != "empty")
    went = Counter(row[1] for row in before)
    assert came == went if mechanism is not ONCE else came <= went
    assert about["columns"]["types"] == [kind]
    assert [check.what for check in verify(output) if check.wrong] == []
    assert str(tp.read(output).table.schema.field("v").type) == kind


@pytest.mark.parametrize("name", CSV_CELLS)
def test_a_csv_file_gets_types_that_lose_nothing(name, tmp_path):
    spelled, kind = CSV_CELLS[name]
    source = csv_file(tmp_path / "in.csv", {"v": spelled})
    released = tp.release(source, SHUFFLE, time="t", values="v").table["v"]
    assert str(released.type) == kind
    texts = Counter(row[1] for row in cells(source))
    if kind == "string":
        assert Counter(released.to_pylist()) == texts
    elif kind in ("int64", "double"):
        number = int if kind == "int64" else float
        values = Counter(repr(number(text)) for text in texts.elements() if text is not None)
        assert Counter(map(repr, released.drop_null().to_pylist())) == values
    else:
        spelled_again = [str(value) for value in released.drop_null().to_pylist()]
        assert {text.lower().replace("t", " ")[:16] for text in spelled_again} == {
            text.lower().replace("t", " ")[:16] for text in texts if text is not None
        }
    assert released.null_count == texts[None]


@pytest.mark.parametrize("last", ["n/a", "007", "99999999999999999999"])
def test_a_type_is_not_guessed_from_the_first_rows_alone(last, tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("t,v\n" + "".join(f"{t},{t}\n" for t in range(120_000)) + f"120000,{last}\n")
    released = tp.release(source, SHUFFLE, time="t", values="v").table
    assert released.schema.field("v").type == pa.string()
    assert set(released["v"].to_pylist()) == {*map(str, range(120_000)), last}


def test_a_number_in_quotes_that_holds_nothing_is_missing(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text('"t","v"\n"0","1"\n"1",""\n"2","3"\n')
    released = tp.release(source, SHUFFLE, time="t", values="v").table
    assert Counter(released["v"].to_pylist()) == Counter([1, None, 3])


# rows


def numbered(counts=(40, 1, 17, 2, 60)):
    """Several series; every column tells the row, so that a row torn apart shows."""
    ids = [f"s{i}" for i, n in enumerate(counts) for _ in range(n)]
    times = [t for n in counts for t in range(n)]
    names = [f"{i}:{t}" for i, t in zip(ids, times, strict=True)]
    odd = [None if t % 2 else name for t, name in zip(times, names, strict=True)]
    return pa.table({"s": ids, "t": times, "i": range(len(ids)), "v": names, "w": odd})


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_rows_are_moved_whole_and_stay_in_their_series(mechanism):
    table = numbered()
    released = tp.release(table, mechanism, time="t", series="s").table
    assert released.select(["s", "t"]).equals(table.select(["s", "t"]))
    there = {row["i"]: row for row in table.to_pylist()}
    origins = []
    for row in released.to_pylist():
        if row["status"] == "empty":
            assert (row["i"], row["v"], row["w"]) == (None, None, None)
            continue
        origin = there[row["i"]]
        assert [origin[name] for name in ("s", "v", "w")] == [row[name] for name in ("s", "v", "w")]
        if mechanism not in ALL_OUT and mechanism.domain.latency == 0:
            assert 0 <= row["t"] - origin["t"] < mechanism.window
        if row["status"] == "released":
            origins.append(row["i"])
    assert len(set(origins)) == len(origins), "a row released twice that is not called repeated"
    if isinstance(mechanism, (BlockShuffle, NoisyOrder)):
        assert sorted(origins) == sorted(there)
    _, empty = mechanism.empty_rows
    if isinstance(mechanism, (Threshold, DualThreshold)) and empty is not None:
        pairs = zip(released["s"].to_pylist(), released["status"].to_pylist(), strict=True)
        statuses = Counter(pairs)
        assert [statuses[f"s{i}", "released"] for i in (0, 2, 4)] == [
            n - empty for n in (40, 17, 60)
        ]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_any_cutting_into_blocks_and_any_source_gives_the_same_bits(
    mechanism, tmp_path, monkeypatch
):
    table = numbered((5000, 1, 3, 2047, 1, 4097, 700))
    shuffled = table.take(pa.array(np.random.default_rng(3).permutation(table.num_rows)))
    layout = {"time": "t", "series": "s", "values": ["i", "v", "w"]}

    def released(source):
        return tp.release(source, mechanism, key=Key.from_seed(7), **layout).table

    whole = released(table)
    assert released(shuffled).equals(whole)
    source, spelled = tmp_path / "in.parquet", tmp_path / "in.csv"
    pyarrow.parquet.write_table(shuffled, source)
    pl.from_arrow(shuffled).write_csv(spelled)
    assert released(source).equals(whole)
    monkeypatch.setattr(duckdb, "BATCH_ROWS", 2048)
    for cut in (shuffled, source, spelled):
        assert released(cut).equals(whole)


def test_what_is_set_aside_of_a_long_file_is_a_batch_and_a_window(tmp_path, monkeypatch):
    source = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table({"t": range(50_000), "v": range(50_000)}), source)
    monkeypatch.setattr(duckdb, "BATCH_ROWS", 2048)
    for mechanism in (ONCE, SHUFFLE, LATE):
        passing = passage(source, mechanism, time="t")
        held = [len(passing.passthrough) for _ in passing.batches()]
        assert len(held) > 20
        assert max(held) <= 2 * 2048 + mechanism.domain.reach


def test_gaps_are_rows_too_and_duplicates_are_dropped_first():
    table = pa.table({"t": [0, 1, 1, 4, 5], "v": ["a", "b", "c", "d", None]})
    released = tp.release(table, SHUFFLE, time="t", gaps="null", duplicates="first")
    assert released.table["t"].to_pylist() == [0, 1, 2, 3, 4, 5]
    assert Counter(released.table["v"].to_pylist()) == Counter(["a", "b", "d", None, None, None])
    assert set(released.table["status"].to_pylist()) == {"released"}
    assert released.about["treatment"] == [
        "2 time steps without a reading were added as missing",
        "of several readings at one time the first was kept",
    ]
    with pytest.raises(DataError, match="1 gap"):
        tp.release(table, SHUFFLE, time="t", duplicates="first")


@pytest.mark.parametrize("window", [3, 6])
def test_series_shorter_than_the_window_come_out_as_far_as_they_do(window):
    """Beside one that is long enough; if none is, the table is refused."""
    long = ["z"] * window
    table = pa.table(
        {"s": ["a", "b", *("c" for _ in long)], "t": [0, 0, *range(window)], "v": ["x", "y", *long]}
    )
    for epsilon in (0.5, 9.0):
        released = tp.release(
            table, Threshold(epsilon=epsilon, window=window), series="s", time="t"
        )
        rows = released.table.to_pylist()
        own = {"a": "x", "b": "y", "c": "z"}
        assert all(row["v"] in (None, own[row["s"]]) for row in rows)


# frames and arrays


def test_a_polars_frame_comes_back_as_one_with_the_same_types():
    frame = pl.DataFrame(
        {
            "t": range(20),
            "i": [2**60 + i for i in range(20)],
            "s": [f"x{i}" for i in range(20)],
            "c": pl.Series(["u", "v"] * 10, dtype=pl.Categorical),
            "l": [[i] for i in range(20)],
            "d": [datetime.date(2026, 1, 1 + i) for i in range(20)],
        }
    )
    released = tp.release(frame, ONCE, time="t").frame
    assert isinstance(released, pl.DataFrame)
    # categories of polars are those of the process, and would tell in which order they came in
    kinds = {
        **frame.schema,
        "c": pl.Enum(released["c"].cast(pl.String).drop_nulls().unique(maintain_order=True)),
    }
    assert released.schema == {**kinds, "status": pl.String}


def test_a_pandas_frame_keeps_large_numbers_beside_empty_rows():
    frame = pd.DataFrame(
        {
            "t": range(20),
            "i": [2**60 + i for i in range(20)],
            "u": np.arange(20, dtype=np.uint8),
            "b": [True, False] * 10,
            "d": pd.date_range("2026-01-01", periods=20),
        }
    )
    released = tp.release(frame, ONCE, time="t").frame
    assert isinstance(released, pd.DataFrame)
    assert [str(kind) for kind in released.dtypes[:4]] == ["int64", "Int64", "UInt8", "boolean"]
    assert released["d"].dtype == frame["d"].dtype
    assert set(released["i"].dropna()) <= {2**60 + i for i in range(20)}
    assert released["i"].isna().sum() == ONCE.window - ONCE.threshold


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (np.arange(8), "int64"),
        (["a", "b", None, "c"], "string"),
        ([2**60, 1, None], "int64"),
        ([True, False, None], "bool"),
        ([1.5, None, 2.0], "double"),
        (np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[s]"), "timestamp[s]"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), "int64"),
    ],
)
def test_arrays_and_lists_of_any_kind(data, kind):
    released = tp.release(data, SHUFFLE)
    assert str(released.table.schema.field("value").type) == kind
    expected = data.tolist() if hasattr(data, "tolist") else data
    assert Counter(map(repr, released.table["value"].to_pylist())) == Counter(map(repr, expected))


def test_values_as_an_array_are_exact():
    large = [2**60 + 1, None, 3]
    assert set(tp.release(large, SHUFFLE).values.tolist()) == set(large)
    small = tp.release([1, None, 3], SHUFFLE).values
    assert small.dtype == np.float64
    mixed = tp.release(pa.table({"i": [2**60 + 1, 2], "f": [0.5, 1.5]}), SHUFFLE).values
    assert sorted(map(tuple, mixed.tolist())) == [(2, 1.5), (2**60 + 1, 0.5)]
    named = pa.table({"c": pa.array(["b", None, "a"]).dictionary_encode()})
    assert set(tp.release(named, SHUFFLE).values.tolist()) == {"a", "b", None}


def test_words_that_did_not_come_out_are_not_in_the_dictionary_either():
    words = [f"word {i}" for i in range(200)]
    table = pa.table({"v": pa.array(words).dictionary_encode()})
    column = tp.release(table, DROPPING).table["v"]
    assert column.null_count > 50
    assert set(column.combine_chunks().dictionary.to_pylist()) == {*column.to_pylist()} - {None}
