"""Checks of released rows: whether they are such as a mechanism can give."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.series import EMPTY, REPEATED

Columns = Sequence[pa.ChunkedArray]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


State = Literal["ok", "wrong", "not checked"]


@dataclass(frozen=True)
class Check:
    """One statement about a release, and what came of looking at it.

    Parameters:
        what: the statement that is checked.
        good: whether it holds; None where it was not checked.
        found: what was seen, or why nothing was, for people.

    >>> Check("all rows are there", True, "4 rows").state
    'ok'
    >>> Check("the ledger knows of it", None, "no ledger at hand").state
    'not checked'
    """

    what: str
    good: bool | None
    found: str

    @property
    def state(self) -> State:
        """In words: ``ok``, ``wrong`` or ``not checked``."""
        return "not checked" if self.good is None else "ok" if self.good else "wrong"

    @property
    def wrong(self) -> bool:
        """Whether the statement was checked and does not hold."""
        return self.good is False


@dataclass(frozen=True)
class ReleasedRows:
    """Rows of a released table.

    Parameters:
        columns: the value columns.
        status: of each row, as a code of ``data.series``.
        series: a number for each row, the same for rows of one series.
    """

    columns: Columns
    status: Integers
    series: Integers

    @functools.cached_property
    def numbers(self) -> Floats:
        """The values as numbers, NaN where missing; texts by a number for each different one."""
        return np.stack([_numbers(column) for column in self.columns], axis=1)

    @functools.cached_property
    def firsts(self) -> npt.NDArray[np.bool_]:
        """Which rows are the first of their series."""
        return np.asarray(np.diff(self.series, prepend=-1) != 0)

    @property
    def repeat_the_last(self) -> bool:
        """Whether none is empty, and a repeated one is like the last of its series, if any."""
        known = ~np.isnan(self.numbers)
        repeated = self.status == REPEATED
        if (self.status == EMPTY).any() or not known[repeated].any(axis=1).all():
            return False
        rows = np.arange(len(known))
        start = np.maximum.accumulate(np.where(self.firsts, rows, 0))
        for column, there in zip(self.numbers.T, known.T, strict=True):
            last = np.maximum.accumulate(np.where(there, rows, -1))
            before = np.concatenate(([-1], last[:-1]))
            again = repeated & there & (before >= start)
            if (column[again] != column[before[again]]).any():
                return False
        return True

    @property
    def ends_are_empty(self) -> bool:
        """Whether the first and the last row of each series are empty, and no others."""
        last = np.append(self.firsts[1:], True)[: len(self.firsts)]
        empty = (self.status == EMPTY) == (self.firsts | last)
        return bool(empty.all() and (self.status != REPEATED).all())


def _numbers(column: pa.ChunkedArray) -> Floats:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.where(np.asarray(column.is_null()), np.nan, codes_of(column))
    return np.asarray(column.to_numpy()).astype(np.float64)


def codes_of(column: pa.ChunkedArray) -> Integers:
    """A number for each value, the same for the same; nulls are one of them.

    Parameters:
        column: an Arrow column of any type.
    """
    whole = pa.chunked_array(column).combine_chunks()
    try:
        coded = whole.dictionary_encode(null_encoding="encode")
    except pa.ArrowException:  # values made of others
        texts = [None if value is None else repr(value) for value in whole.to_pylist()]
        return codes_of(pa.array(texts))
    return np.asarray(coded.indices, dtype=np.int64)


Rows = Sequence[Mapping[str, str]]
"""Rows of a release as they were read from CSV."""
COLUMNS_AGREE = "columns that follow from each other agree"
TOLERANCE = 1e-9  # of numbers that were computed again


def rows_check(rows: Rows, expected: Sequence[Mapping[str, float | None]], found: str) -> Check:
    """Whether columns hold what follows from the others.

    Parameters:
        rows: of a release.
        expected: what they should hold in each row, by column; None for an empty cell.
        found: what was compared, for people.
    """
    wrong = Counter(
        column
        for row, numbers in zip(rows, expected, strict=True)
        for column, number in numbers.items()
        if not is_cell(row[column], number)
    )
    if not wrong:
        return Check(COLUMNS_AGREE, True, found)
    unlike = [f"{column} in {times:,} of {len(rows):,} rows" for column, times in wrong.items()]
    return Check(COLUMNS_AGREE, False, f"{found}; not so: {', '.join(unlike)}")


def is_cell(text: str, number: float | None) -> bool:
    """Whether a cell holds a number, up to rounding.

    Parameters:
        text: of the cell.
        number: what it should hold; None for nothing.

    >>> is_cell("0.25", 0.25), is_cell("", None), is_cell("0.3", 0.25)
    (True, True, False)
    """
    if number is None or text == "":
        return number is None and text == ""
    return math.isclose(float(text), number, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
