"""Arrow columns and numpy arrays by their buffers: nothing is copied, and pandas is not loaded.

Arrow's own conversions load pandas where it is installed, a third of a second for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

Flags = npt.NDArray[np.bool_]


def to_numpy(column: Any, dtype: Any) -> npt.NDArray[Any]:
    """The numbers of a ``column`` with the layout of ``dtype``; arbitrary where it is null."""
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=dtype)
    width = np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype=dtype, count=len(column), offset=column.offset * width)


def nulls(column: Any) -> Flags:
    """Which entries of a ``column`` are null."""
    bitmap = column.buffers()[0]
    if not column.null_count or bitmap is None:
        return np.zeros(len(column), dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return np.equal(bits[column.offset : column.offset + len(column)], 0)


def from_numpy(values: npt.NDArray[Any], kind: pa.DataType, missing: Flags | None = None) -> Any:
    """A column of a ``kind`` from ``values`` with its layout, null where ``missing``.

    >>> from_numpy(np.array([1.5, 0.0]), pa.float64(), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    bitmap = None
    if missing is not None and missing.any():
        bitmap = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [bitmap, data])


def from_text(texts: Sequence[str]) -> Any:
    """A column of ``texts``.

    >>> from_text(["a", "", "bc"]).to_pylist()
    ['a', '', 'bc']
    """
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def take_text(texts: Sequence[str], which: npt.NDArray[Any], missing: Flags | None = None) -> Any:
    """The ``texts`` by their numbers ``which``, null where ``missing``."""
    return from_text(texts).take(from_numpy(which.astype(np.int64), pa.int64(), missing))


def is_text(kind: pa.DataType) -> bool:
    """Whether a ``kind`` of column is text, however it is laid out."""
    kinds = pa.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def plain(kind: pa.DataType) -> pa.DataType:
    """The kind of the values alone, without the way that they are laid out in memory."""
    if pa.types.is_dictionary(kind):
        return plain(kind.value_type)
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return pa.string() if is_text(kind) else kind


def decoded(column: Any) -> Any:
    """A ``column``, in chunks or not, with the words of its dictionary in its rows.

    >>> decoded(pa.array(["b", "a", "b"]).dictionary_encode()).to_pylist()
    ['b', 'a', 'b']
    """
    if not pa.types.is_dictionary(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        kind = plain(column.type)
        return pa.chunked_array([decoded(chunk).cast(kind) for chunk in column.chunks], kind)
    words = column.dictionary
    # Arrow has no way yet to take from views, or to cast to them
    words = words.cast(plain(words.type)) if str(words.type).endswith("_view") else words
    return words.take(column.indices)


def kind_name(kind: pa.DataType) -> str:
    """What the kind of the values is called, the same in every file; "other" if it has no name.

    >>> kind_name(pa.large_string()), kind_name(pa.list_(pa.int8()))
    ('string', 'other')
    """
    name = str(plain(kind))
    return "other" if kind_named(name) is None else name


def kind_named(name: str) -> pa.DataType | None:
    """The kind that Arrow writes so; None where it is made of others, or is no kind at all.

    >>> kind_named("int64"), kind_named("timestamp[us, tz=UTC]"), kind_named("decimal128(5, 2)")
    (DataType(int64), TimestampType(timestamp[us, tz=UTC]), Decimal128Type(decimal128(5, 2)))
    """
    zoned = re.fullmatch(r"timestamp\[(s|ms|us|ns), tz=([^\]]+)\]", name)
    if zoned:
        return pa.timestamp(zoned[1], zoned[2])
    decimal = re.fullmatch(r"decimal(32|64|128|256)\((\d{1,2}), (-?\d{1,2})\)", name)
    try:
        if decimal:
            return getattr(pa, f"decimal{decimal[1]}")(int(decimal[2]), int(decimal[3]))
        return pa.type_for_alias(name)
    except ValueError:
        return None


def as_floats(column: Any) -> npt.NDArray[np.float64] | None:
    """Numbers as floats, NaN for nulls; None for a column of anything else."""
    kind = plain(column.type)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    floats = decoded(column).cast(kind).cast(pa.float64(), safe=False)
    return np.array(pa.compute.fill_null(floats, np.nan).to_numpy(zero_copy_only=False))


def to_array(column: Any) -> npt.NDArray[Any]:
    """A column as an array, no value changed: whole numbers past what floats tell are objects."""
    kind = plain(column.type)
    column = decoded(column)
    if pa.types.is_integer(kind) and column.null_count:
        ends = pa.compute.min_max(column).as_py()
        if ends["max"] is not None and max(-ends["min"], ends["max"]) > 2**53:
            return np.array(column.to_pylist(), dtype=object)
    return np.asarray(column.cast(kind).to_numpy())
