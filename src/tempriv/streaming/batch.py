"""Readings of many series in columns, as they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.series import Flags
from tempriv.streaming.records import Record

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Some readings in the order they came, and lines that are none.

    ``codes`` number the ``names``. ``shown`` are ids and times as they are written. Values are
    numbers, some of them missing; or ``cells``, where they are only carried.
    """

    names: list[str]
    codes: Integers
    ticks: Integers
    shown: list[Any]
    values: npt.NDArray[np.float64]
    missing: Flags
    cells: list[Any] | None
    unreadable: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"Batch({len(self)} readings of {len(self.names)} series)"

    def written(self, row: int, columns: Sequence[str]) -> dict[str, Any]:
        """The reading in a ``row`` by ``columns``, for the file of what was put aside."""
        entries: list[Any] = [column[row].as_py() for column in self.shown]
        if self.cells is not None:
            entries += [column[row].as_py() for column in self.cells]
        else:
            readings = zip(self.values[row].tolist(), self.missing[row].tolist(), strict=True)
            entries += [None if is_missing else value for value, is_missing in readings]
        return dict(zip(columns, entries, strict=True))


def batch_from_records(
    readings: Sequence[Record], width: int, exact: bool, unreadable: Sequence[str] = ()
) -> Batch:
    """A batch of readings that were parsed one by one.

    Parameters:
        readings: as they came.
        width: values of each.
        exact: whether values are carried as they are written.
        unreadable: lines that are no readings.
    """
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(reading.series, len(numbers)) for reading in readings]
    shape = (len(readings), 0 if exact else width)
    values, missing = np.zeros(shape), np.zeros(shape, dtype=np.bool_)
    cells = None
    if exact:
        columns = zip(*(reading.values for reading in readings), strict=True)
        cells = [pa.array(column, pa.string()) for column in columns]
        cells = cells or [pa.array([], pa.string())] * width
    elif readings:
        values[:] = [reading.values for reading in readings]
        missing[:] = [reading.missing for reading in readings]
    shown = [
        pa.array([_text(text) for text in column], pa.string())
        for column in zip(*(reading.shown for reading in readings), strict=True)
    ]
    return Batch(
        names=list(numbers),
        codes=np.array(codes, dtype=np.int64),
        ticks=np.array([reading.tick for reading in readings], dtype=np.int64),
        shown=shown,
        values=values,
        missing=missing,
        cells=cells,
        unreadable=unreadable,
    )


def _text(entry: Any) -> str | None:
    return entry if entry is None or isinstance(entry, str) else str(entry)
