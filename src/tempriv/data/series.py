"""Private input, checked: which series, on what time grid, with which values and what missing.

``SeriesTable`` says where the table is and how it is laid out; ``read`` gives it in order of series
and time, checked, in blocks. A table that is not as declared is refused with a sentence for each
problem, counts only; nothing of a table that was refused may be used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

Bounds = tuple[tuple[float, float], ...]
Categories = tuple[tuple[str, ...], ...]

ONLY_SERIES = "series"
"""The id of the one series in a table without an id column."""

STATUS = "status"
"""The column that says which rows are released, repeated or empty."""

RELEASED, REPEATED, EMPTY = 0, 1, 2
STATUSES = ("released", "repeated", "empty")
"""What an output row is: fresh, an earlier one again, or nothing; a missing reading is released."""

if TYPE_CHECKING:
    from tempriv.data.reader import TableReader


def require_columns(exist: Sequence[str], wanted: Sequence[str], source: str) -> None:
    """Say which columns ``exist`` in a ``source`` when one that is ``wanted`` does not."""
    for name in wanted:
        if name in exist:
            continue
        data = any(header[:1].isdigit() or header[:1] in "+-." for header in exist)
        known = "the first line is not a header" if data else f"the columns are {', '.join(exist)}"
        raise DataError(f"{source}: no column {name!r}; {known}")


def within(counts: Integers) -> Integers:
    """Which row of its series each is, for series of ``counts`` rows one after the other.

    >>> within(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    before = np.cumsum(counts) - counts
    return np.asarray(np.arange(int(counts.sum())) - np.repeat(before, counts), dtype=np.int64)


@dataclass
class Block:
    """Consecutive rows of one or more series; ``starts`` counts each series' steps from zero."""

    values: Floats
    missing: Flags
    ids: tuple[str, ...]
    counts: Integers
    starts: Integers
    times: Integers | None = None
    status: npt.NDArray[np.int8] | None = None
    spent: Floats | None = None  # the part of epsilon that went into each row, for its owner

    @classmethod
    def of(cls, values: Any, series: str, start: int) -> Block:
        """One ``series`` of ``values`` from step ``start`` on; masked ones are missing."""
        masked = np.ma.asarray(values)
        require(
            masked.dtype.kind in "iufb" or masked.size == 0,
            "readings: must be real numbers; mask what is missing (numpy.ma)",
            DataError,
        )
        if masked.ndim == 1:
            masked = masked[:, None]
        require(
            masked.ndim == 2,
            "readings: give one value, or one row of values, per time step",
            DataError,
        )
        missing = np.ma.getmaskarray(masked)
        return cls(
            values=np.where(missing, 0.0, masked.data.astype(np.float64)),
            missing=missing,
            ids=(series,),
            counts=np.array([len(masked)], dtype=np.int64),
            starts=np.array([start], dtype=np.int64),
        )

    def part(self, first: int, last: int) -> Block:
        """The series from number ``first`` to before number ``last``."""
        low, high = int(self.counts[:first].sum()), int(self.counts[:last].sum())
        return Block(
            values=self.values[low:high],
            missing=self.missing[low:high],
            ids=self.ids[first:last],
            counts=self.counts[first:last],
            starts=self.starts[first:last],
            times=None if self.times is None else self.times[low:high],
            status=None if self.status is None else self.status[low:high],
            spent=None if self.spent is None else self.spent[low:high],
        )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Block({len(self)} rows of {len(self.ids)} series)"


def together(arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The rows of all ``arrays``; unlike kinds stay as they are instead of becoming alike."""
    if len({array.dtype for array in arrays}) > 1:
        arrays = [array.astype(object) for array in arrays]
    return np.concatenate(arrays)


def joined(blocks: Sequence[Block], series: str, columns: int | None) -> Block:
    """Consecutive ``blocks`` of one ``series`` as one; none of them make ``columns`` empty ones."""
    if not blocks:
        return Block.of(np.zeros((0, columns or 1)), series, 0)
    return Block(
        values=together([block.values for block in blocks]),
        missing=np.concatenate([block.missing for block in blocks]),
        ids=(series,),
        counts=np.array([sum(len(block) for block in blocks)]),
        starts=blocks[0].starts,
        times=None
        if any(block.times is None for block in blocks)
        else np.concatenate([block.times for block in blocks if block.times is not None]),
    )


@dataclass(frozen=True)
class SeriesTable:
    """A private table of series and how to read it.

    Parameters:
        source: a CSV or Parquet file, an Arrow table, or an array, which is one series.
        values: the value columns.
        time: the time column, or two as ``date+hour``; without one, rows count as steps.
        series: the column with the id of each series; without one, all rows are one series.
        person: the column that says whose a series is, with ``max_series_per_person``.
        max_series_per_person: the most series that one person may have.
        grid: ``regular`` steps, the times of a ``calendar``, or ``index``: rows in order,
            whatever their times.
        calendar: a file with one time in each row, for ``grid="calendar"``.
        step: the step of a regular grid, such as ``15min``; the most frequent one by default.
        gaps: what to do about missing steps: ``refuse``, or fill them with empty readings
            (``null``).
        duplicates: what to do about two readings at one time: ``refuse``, or keep the
            ``first``.
        clip: move values outside the bounds to the nearest bound instead of refusing them.

    Guarantees:
        - its repr, and every refusal, shows names and counts, never a value;
        - blocks come in order of series and time, each series on its grid without duplicates.

    >>> import pyarrow
    >>> table = pyarrow.table({"day": [2, 0, 1], "steps": [9.0, 7.0, 8.0]})
    >>> series = SeriesTable(table, values=("steps",), time="day")
    >>> [block.values[:, 0].tolist() for block in series.read()]
    [[7.0, 8.0, 9.0]]
    """

    source: Any
    values: tuple[str, ...]
    time: str | None = None
    series: str | None = None
    person: str | None = None
    max_series_per_person: int | None = None
    grid: Literal["regular", "index", "calendar"] = "regular"
    calendar: Path | None = None
    step: str | None = None
    gaps: Literal["refuse", "null"] = "refuse"
    duplicates: Literal["refuse", "first"] = "refuse"
    clip: bool = False

    def __repr__(self) -> str:
        return f"Series(values={self.values}, time={self.time!r}, series={self.series!r})"

    def __post_init__(self) -> None:
        for name, allowed in (
            ("grid", ("regular", "index", "calendar")),
            ("gaps", ("refuse", "null")),
            ("duplicates", ("refuse", "first")),
        ):
            value = getattr(self, name)
            require(value in allowed, f"{name}={value!r}: must be one of {', '.join(allowed)}")
        require(len(self.values) > 0, "no value column: name at least one")
        require(len(set(self.values)) == len(self.values), "value columns: name each only once")
        for column in (self.series, self.person, *(self.time or "").split("+")):
            require(
                column not in self.values,
                f"column {column!r}: is named as a value; ids and times are published as they are",
            )
        require(
            (self.person is None) == (self.max_series_per_person is None),
            "a person column goes with the largest number of series that a person may have: give "
            "both person and max_series_per_person",
        )
        require(
            self.person is None or self.series is not None,
            "a person column needs a series column too",
        )
        require(
            (self.grid == "calendar") == (self.calendar is not None),
            "a calendar grid goes with a calendar: a file with one time in each row",
        )
        require(self.step is None or self.grid == "regular", "a step goes with a regular grid")
        require(
            self.step is None or isinstance(self.step, str),
            f"step={self.step!r}: must be text, such as '15min', '1h' or '2'",
        )

    def read(
        self,
        bounds: Bounds | None = None,
        categories: Categories | None = None,
        rename: Callable[[str], str] | None = None,
    ) -> TableReader:
        """Blocks in order, checked against what the mechanism declares.

        Raises DataError at the end of the iteration if anything was wrong.

        Parameters:
            bounds: a pair for each column, in which values must lie unless they are clipped.
            categories: the names for each column, whose numbers values become.
            rename: gives every series its pseudonym.
        """
        from tempriv.data.reader import TableReader

        return TableReader(self, bounds, categories, rename)
