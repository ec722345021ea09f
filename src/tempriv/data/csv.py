"""Rows as lines of CSV, with quotes only where there is need."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

from tempriv.data.arrow import nulls, plain
from tempriv.errors import UsageError


def csv_cell(text: str | None) -> str:
    """A cell of CSV: in quotes where it must be, so that text without letters is not missing.

    >>> [csv_cell(text) for text in ("a", 'a "b", c', "", None)]
    ['a', '"a ""b"", c"', '""', '']
    """
    if text is None:
        return ""
    special = not text or any(mark in text for mark in '",\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def csv_line(cells: Sequence[Any]) -> bytes:
    """One line of CSV from its ``cells``; None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(["" if c is None else c for c in cells])
    return text.getvalue().encode()


def csv_rows(batch: pa.RecordBatch) -> Any:
    """A ``batch`` as CSV, with quotes and fractions of a second only where there is need."""
    columns, plain_text = [], True
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind = plain(column.type)
        column = column.cast(kind) if pa.types.is_dictionary(column.type) else column
        if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
            column = pa.compute.replace_substring_regex(_texts(name, column), r"\.0+(Z?)$", r"\1")
        elif not pa.types.is_primitive(kind):
            column = _texts(name, column)
            if _is_plain(column):
                columns.append(column)
                continue
            special = pa.compute.match_substring_regex(column, '^$|[",\\r\\n]')
            if pa.compute.any(special).as_py():
                plain_text = False
                inside = pa.compute.replace_substring(column, '"', '""')
                quoted = pa.compute.binary_join_element_wise('"', inside, '"', "")
                column = pa.compute.if_else(special, quoted, column)
        columns.append(column)
    if not plain_text:
        cells = [pa.compute.fill_null(column.cast(pa.string()), "") for column in columns]
        lines = pa.compute.binary_join_element_wise(*cells, ",")
        return ("\n".join(lines.to_pylist()) + "\n").encode()
    rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    style = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(rows, sink, style)
    return sink.getvalue()


def _is_plain(column: Any) -> bool:
    """Whether no text of a column can need quotes: far faster than a look at each."""
    if not len(column) or not pa.types.is_string(column.type):
        return False
    _, ends, letters = column.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[column.offset :][: len(column) + 1]
    text = bytes(memoryview(letters or b"")[int(offsets[0]) : int(offsets[-1])])
    empty = (np.diff(offsets) == 0) & ~nulls(column)
    return not (any(mark in text for mark in (b'"', b",", b"\r", b"\n")) or empty.any())


def in_csv(kind: pa.DataType) -> pa.DataType:
    """What cells of this kind are to be read as first, where Arrow cannot read them at once."""
    if pa.types.is_float16(kind):
        return pa.float32()
    return pa.string() if pa.types.is_decimal256(kind) else kind


def _texts(name: str, column: Any) -> Any:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        raise UsageError(
            f"column {name!r} holds {plain(column.type)}, which a CSV file cannot hold: write to "
            ".parquet"
        ) from None
