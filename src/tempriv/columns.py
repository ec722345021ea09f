"""Arrow columns and numpy arrays by their buffers: nothing is copied, and pandas is not loaded.

Arrow's own conversions load pandas where it is installed, a third of a second for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]


def to_numpy(column: Any, dtype: Any) -> npt.NDArray[Any]:
    """The numbers of a column whose values have this layout; what stands at nulls is arbitrary."""
    data = column.buffers()[1]
    if data is None:
        return np.zeros(len(column), dtype=dtype)
    width = np.dtype(dtype).itemsize
    return np.frombuffer(data, dtype=dtype, count=len(column), offset=column.offset * width)


def nulls(column: Any) -> Flags:
    """Which entries are null."""
    bitmap = column.buffers()[0]
    if not column.null_count or bitmap is None:
        return np.zeros(len(column), dtype=np.bool_)
    bits = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8), bitorder="little")
    return np.equal(bits[column.offset : column.offset + len(column)], 0)


def from_numpy(values: npt.NDArray[Any], kind: pa.DataType, missing: Flags | None = None) -> Any:
    """A column of numbers, dates or times; ``values`` must have the layout of the kind.

    >>> from_numpy(np.array([1.5, 0.0]), pa.float64(), np.array([False, True])).to_pylist()
    [1.5, None]
    """
    bitmap = None
    if missing is not None and missing.any():
        bitmap = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [bitmap, data])


def from_text(texts: Sequence[str]) -> Any:
    """A column of text.

    >>> from_text(["a", "", "bc"]).to_pylist()
    ['a', '', 'bc']
    """
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def take_text(texts: Sequence[str], which: npt.NDArray[Any], missing: Flags | None = None) -> Any:
    """Text by number, null where missing."""
    return from_text(texts).take(from_numpy(which.astype(np.int64), pa.int64(), missing))
