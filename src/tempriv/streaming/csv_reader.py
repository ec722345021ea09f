"""Blocks of CSV read column by column; what is out of the ordinary is read line by line instead.

Both ways understand a line alike: the fast one takes blocks without quotes only, and looks at each
kind of cell by the same rules, or leaves the cells that it does not know to those.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from tempriv.data.arrow import nulls, to_numpy
from tempriv.data.series import ONLY_SERIES, Flags
from tempriv.errors import DataError, require
from tempriv.streaming.batch import Batch, batch_from_records
from tempriv.streaming.records import LARGEST_TICK, RecordFormat, split_records, tick_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
LARGEST_VALUE = 1e300


def parse_batch(record_format: RecordFormat, text: bytes) -> Batch:
    """The readings of some whole lines of ``text`` in a ``record_format``."""
    if record_format.syntax == "csv" and record_format.columns is None:
        text = _after_header(record_format, text)
    if not text:
        return batch_from_records([], len(record_format.values), record_format.exact)
    fast = _in_columns(record_format, text) if _is_plain(record_format, text) else None
    if fast is not None:
        return fast
    aside: list[str] = []
    readings = list(record_format.parse(text, aside))
    return batch_from_records(readings, len(record_format.values), record_format.exact, aside)


def _after_header(record_format: RecordFormat, text: bytes) -> bytes:
    """What follows the line of names, which the first line that holds something must be."""
    text = text.removeprefix(b"\xef\xbb\xbf")  # some programs begin a file so
    while text and record_format.columns is None:
        line = split_records(text)[0]
        text = text.removeprefix(line)
        unreadable: list[str] = []
        readings = list(record_format.parse(line, unreadable))
        require(
            not readings and not unreadable,
            "the first line of the input must name its columns, and cannot be read",
            DataError,
        )
    return text


def _is_plain(record_format: RecordFormat, text: bytes) -> bool:
    return (
        record_format.syntax == "csv"
        and len(record_format.columns or ()) > 1
        and bool(record_format.time)
        and not any(special in text for special in (b'"', b"\r", b"\0", b"0x", b"0X"))
    )


def _in_columns(record_format: RecordFormat, text: bytes) -> Batch | None:
    """The readings of a ``text``, if all its lines are ordinary; None, if it has another header."""
    assert record_format.columns is not None
    aside: list[str] = []
    headers: list[str] = []

    def put_aside(row: Any) -> str:
        """Put a ``row`` with another number of cells aside."""
        if row.text.strip():
            aside.append(row.text)
            if record_format.names_columns(row.text.split(",")):
                headers.append(row.text)
        return "skip"

    wanted = [*record_format.shown, *record_format.values]
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            pa.csv.ReadOptions(
                column_names=record_format.columns, use_threads=False, block_size=len(text) + 1
            ),
            pa.csv.ParseOptions(invalid_row_handler=put_aside, quote_char=False),
            pa.csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=list(dict.fromkeys(wanted)),
                strings_can_be_null=True,
                null_values=[""],
            ),
        ).combine_chunks()
    except pa.ArrowInvalid:  # not text, or nothing but lines that are none
        return None
    columns = {name: _whole(table[name]) for name in table.column_names}
    ticks, readable = _ticks([columns[name] for name in record_format.time])
    if headers or _holds_names(record_format, columns, readable):
        return None
    names, codes = _names(record_format, columns, len(ticks), readable)
    cells, values, missing = None, np.zeros((len(ticks), 0)), np.zeros((len(ticks), 0), np.bool_)
    if record_format.exact:
        cells = [columns[name] for name in record_format.values]
    else:
        numbers = [
            _numbers(record_format, i, columns[name]) for i, name in enumerate(record_format.values)
        ]
        if any(column is None for column in numbers):
            return None
        values = np.stack([column for column in numbers if column is not None], axis=1)
        missing = np.isnan(values)
        values[missing] = 0.0
        if record_format.marked and not _mark(columns[record_format.values[-1]], values, missing):
            return None
    shown = [columns[name] for name in record_format.shown]
    if not readable.all():
        rows = np.flatnonzero(~readable).tolist()
        wanted_columns = [columns[name] for name in wanted]
        aside += [
            ",".join(str(column[row].as_py() or "") for column in wanted_columns) for row in rows
        ]
        keep = pa.array(readable)
        shown = [column.filter(keep) for column in shown]
        cells = None if cells is None else [column.filter(keep) for column in cells]
        codes, ticks = codes[readable], ticks[readable]
        values, missing = values[readable], missing[readable]
    return Batch(names, codes, ticks, shown, values, missing, cells, aside)


def _holds_names(record_format: RecordFormat, columns: dict[str, Any], readable: Flags) -> bool:
    """Whether the name of a column stands in the place of a time."""
    if readable.all():
        return False
    rows, names = pa.array(~readable), pa.array(record_format.columns, pa.string())
    cells = [
        pa.compute.utf8_trim_whitespace(columns[name].filter(rows)) for name in record_format.time
    ]
    return any(
        bool(pa.compute.any(pa.compute.is_in(column, value_set=names)).as_py()) for column in cells
    )


def _whole(column: Any) -> Any:
    return column.chunk(0) if column.num_chunks == 1 else pa.array([], pa.string())


def _names(
    record_format: RecordFormat, columns: dict[str, Any], rows: int, readable: Flags
) -> tuple[list[str], Integers]:
    """Which series there are, and the number of each row's; a row without one is unreadable."""
    if record_format.series is None:
        return [ONLY_SERIES], np.zeros(rows, dtype=np.int64)
    column = columns[record_format.series]
    readable &= ~nulls(column)
    if not readable.all():  # who is named in such rows only is nobody yet
        column = pa.compute.if_else(pa.array(readable), column, pa.scalar(None, pa.string()))
    coded = column.dictionary_encode()
    return coded.dictionary.to_pylist(), to_numpy(coded.indices, np.int32).astype(np.int64)


def _ticks(columns: list[Any]) -> tuple[Integers, Flags]:
    """Times as whole numbers, and which of them are times."""
    if len(columns) == 1:
        fast = _all_alike(columns[0])
        if fast is not None:
            return fast, np.abs(fast) <= LARGEST_TICK
    coded = [column.dictionary_encode() for column in columns]
    codes = [to_numpy(column.indices, np.int32).astype(np.int64) for column in coded]
    missing_time = np.logical_or.reduce([nulls(column.indices) for column in coded])
    key = codes[0] if len(coded) == 1 else codes[0] * len(coded[1].dictionary) + codes[1]
    key = np.where(missing_time, -1, key)  # what stands in the place of nothing is anything
    _, first_rows, key_numbers = np.unique(key, return_index=True, return_inverse=True)
    texts = [column.dictionary.to_pylist() for column in coded]
    tick_of_key = np.full(len(first_rows), LARGEST_TICK + 1)
    for number, row in enumerate(first_rows.tolist()):
        if not missing_time[row]:
            tick_of_key[number] = _tick(
                [t[code[row]] for t, code in zip(texts, codes, strict=True)]
            )
    ticks = tick_of_key[key_numbers] if len(first_rows) else np.zeros(0, dtype=np.int64)
    return ticks, (np.abs(ticks) <= LARGEST_TICK) & ~missing_time


def _tick(parts: list[str]) -> int:
    try:
        tick = tick_of(parts)
    except (ValueError, TypeError, OverflowError):
        return LARGEST_TICK + 1
    return tick if abs(tick) <= LARGEST_TICK else LARGEST_TICK + 1


def _all_alike(column: Any) -> Integers | None:
    """Times that are all whole numbers, all dates or all moments; else None."""
    if column.null_count or not len(column):
        return None
    lengths = pa.compute.min_max(pa.compute.binary_length(column)).as_py()
    try:
        if lengths["min"] == lengths["max"] == 10:
            first = column[0].as_py()
            if first.count("-") == 2:
                return to_numpy(column.cast(pa.date32()), np.int32).astype(np.int64)
        if lengths["min"] >= 16:
            zone = "UTC" if column[0].as_py()[-1] in "Z" else None
            return np.array(to_numpy(column.cast(pa.timestamp("us", zone)), np.int64))
        return np.array(to_numpy(column.cast(pa.int64()), np.int64))
    except pa.ArrowInvalid:
        return None


def _numbers(record_format: RecordFormat, number: int, column: Any) -> Floats | None:
    """A column of values, NaN where missing; by the rules of ``RecordFormat.number``."""
    if record_format.categories is not None:
        names = pa.array(record_format.categories[number], pa.string())
        indices = pa.compute.fill_null(pa.compute.index_in(column, value_set=names), -1)
        values = to_numpy(indices, np.int32).astype(np.float64)
    else:
        try:
            values = np.array(to_numpy(column.cast(pa.float64()), np.float64))
        except pa.ArrowInvalid:
            plain = pa.compute.match_substring_regex(column, NUMBER)
            plain_numbers = pa.compute.if_else(plain, column, pa.scalar(None, pa.string()))
            values = np.array(to_numpy(plain_numbers.cast(pa.float64()), np.float64))
            others = np.flatnonzero(~nulls(column) & nulls(plain_numbers)).tolist()
            values[others] = [record_format.number(number, column[row].as_py()) for row in others]
        np.clip(values, -LARGEST_VALUE, LARGEST_VALUE, out=values)
    values[nulls(column)] = math.nan
    return values


def _mark(column: Any, values: Floats, missing: Flags) -> bool:
    """Marks of landmarks as 0 and 1; False where they are not all plain numbers."""
    empty = missing[:, :-1].all(axis=1)
    missing_landmarks = missing[:, -1]
    plain = pa.compute.all(pa.compute.match_substring_regex(column, NUMBER)).as_py() is not False
    if not plain or (missing_landmarks & ~empty).any():
        return False
    values[:, -1] = values[:, -1] != 0
    missing[:, -1] = False
    return True
