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
        """One reading as its columns, for the file of what was put aside."""
        told: list[Any] = [column[row].as_py() for column in self.shown]
        if self.cells is not None:
            told += [column[row].as_py() for column in self.cells]
        else:
            there = zip(self.values[row].tolist(), self.missing[row].tolist(), strict=True)
            told += [None if gone else value for value, gone in there]
        return dict(zip(columns, told, strict=True))


def batch_from_records(
    readings: Sequence[Record], width: int, exact: bool, unreadable: Sequence[str] = ()
) -> Batch:
    """Readings that were parsed one by one; ``width`` values each."""
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
        pa.array([_text(one) for one in column], pa.string())
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


def _text(one: Any) -> str | None:
    return one if one is None or isinstance(one, str) else str(one)
