"""The time grid: rows at their steps, gaps filled, duplicates dropped; problems are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsInt

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import to_numpy
from tempriv.data.clock import Clock, describe_step
from tempriv.data.duckdb import open_table
from tempriv.data.series import ONLY_SERIES, Block, Bounds, Flags, Integers, SeriesTable
from tempriv.errors import DataError, require

if TYPE_CHECKING:
    from tempriv.data.passthrough import PassthroughColumns

MAX_FILL_RATIO = 10
"""Gaps may make a table this many times longer; past that the times are more likely wrong."""


@dataclass
class TableSummary:
    """What is public anyway: ids, times, counts. No value is in it."""

    clock: Literal["integer", "date", "datetime", "index"] = "index"
    ids: list[str] = field(default_factory=list)
    persons: list[str] | None = None
    rows: int = 0
    first: int | None = None
    last: int | None = None
    step: int | None = None
    filled: int = 0
    dropped: int = 0
    longest: int = 0

    def cover(self, first: int, last: int) -> None:
        """Take in the ticks from ``first`` to ``last``."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


class InputErrors:
    """What is wrong with a table, counted; one sentence each, with the remedy."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, kind: str, count: SupportsInt) -> None:
        """Count further errors: how many of which ``kind`` by ``count``."""
        if int(count):
            self.counts[kind] = self.counts.get(kind, 0) + int(count)

    def check_numbers(self, block: Block, bounds: Bounds | None) -> None:
        """NaN, infinite and out of ``bounds`` values of a ``block``; missing ones hold 0."""
        if not np.isfinite(block.values).all():
            self.add("nan", np.count_nonzero(np.isnan(block.values)))
            self.add("infinite", np.count_nonzero(np.isinf(block.values)))
        if bounds is not None:
            low, high = np.array(bounds, dtype=np.float64).T
            outside = ~block.missing & ((block.values < low) | (block.values > high))
            self.add("outside", np.count_nonzero(outside & np.isfinite(block.values)))

    def check_categories(self, block: Block) -> None:
        """Values of a ``block`` that are none of the categories came as -1."""
        self.add("categories", np.count_nonzero(~block.missing & (block.values < 0)))

    def check_passthrough(self, block: Block, passthrough: PassthroughColumns) -> None:
        """NaN and infinities among values of a ``block`` that are in ``passthrough``."""
        nan, infinite = passthrough.not_finite(block.values[~block.missing])
        self.add("nan", nan)
        self.add("infinite", infinite)

    def refuse(self, one_each: str = "keep the first of each with [[duplicates=first]]") -> None:
        """``one_each`` is the remedy for duplicates: rows without an order have no first."""
        if self.counts:
            sentences = [self._sentence(kind, n, one_each) for kind, n in self.counts.items()]
            counts: dict[str, Any] = dict(self.counts)
            raise DataError("\n".join(sentences), **counts)

    def _sentence(self, kind: str, n: int, one_each: str) -> str:
        s, are = ("", "is") if n == 1 else ("s", "are")
        return {
            "ids": f"{n} row{s} without a series id: every row needs one",
            "times": f"{n} row{s} without a time: every row needs one",
            "duplicates": f"{n} reading{s} stand{'' if s else 's'} at a time that its series "
            f"already has; {one_each}",
            "gaps": f"{n} gap{s} in the time grid; fill with empty readings by [[gaps=null]], or "
            "take readings in order, whatever their times, by [[grid=index]]",
            "irregular": f"{n} reading{s} {are} off the regular time grid; take readings in order, "
            "whatever their times, by [[grid=index]], or name the grid's step by [[step]]",
            "calendar": f"{n} reading{s} {are} not on a time of the calendar; add the times to the "
            "calendar, or take readings in order by [[grid=index]]",
            "nan": f"{n} value{s} {are} NaN; leave missing values empty (null) instead",
            "infinite": f"{n} value{s} {are} infinite; leave such values empty (null) instead",
            "outside": f"{n} value{s} outside the bounds; give wider [[bounds]], or move such "
            "values to the nearest bound with [[clip=True]]",
            "categories": f"{n} value{s} {are} none of the given categories; name all categories, "
            "with one for everything else if need be",
        }[kind]


class TimeGrid:
    """Lays rows out on the time grid: drops duplicates, fills gaps, numbers the steps."""

    def __init__(
        self, series: SeriesTable, clock: Clock | None, summary: TableSummary, problems: InputErrors
    ):
        self.series, self.clock, self.summary, self.problems = series, clock, summary, problems
        self.calendar: Integers | None = None
        self.step: int | None = None
        if clock is None:
            self.step = 1
        elif series.step is not None:
            self.step = clock.parse_step(series.step)
        # of the series that the last batch ended with: key, last tick, next step
        self.open: tuple[Any, int, int] = (None, 0, 0)

    def lay_out(
        self, keys: Any, ticks: Integers, values: npt.NDArray[np.float64], missing: Flags
    ) -> Block:
        """The rows of one batch; a series may go on from the batch before.

        Parameters:
            keys: the series of each row, sorted.
            ticks: its time.
            values: its values.
            missing: which of them are missing.
        """
        codes, name = _codes(keys)
        if self.series.series is None:
            name = _only_series
        if not len(codes):
            return Block(values, missing, (), _none(), _none(), ticks)
        new = np.empty(len(codes), dtype=np.bool_)
        new[0] = name(codes[0]) != self.open[0]
        np.not_equal(codes[1:], codes[:-1], out=new[1:])
        lag = np.diff(ticks, prepend=self.open[1])
        if self.clock is not None:
            twice = ~new & (lag == 0)
            if twice.any():
                if self.series.duplicates == "refuse":
                    self.problems.add("duplicates", np.count_nonzero(twice))
                self.summary.dropped += int(np.count_nonzero(twice))
                keep = ~twice
                codes, ticks, values, missing = (
                    codes[keep],
                    ticks[keep],
                    values[keep],
                    missing[keep],
                )
                new, lag = new[keep], lag[keep]
                if not len(codes):
                    return Block(values, missing, (), _none(), _none(), ticks)
            self.summary.cover(int(ticks.min()), int(ticks.max()))
        width = self._steps(ticks, new, lag)
        if width is not None:
            codes, ticks, values, missing, new = self._fill(
                codes, ticks, values, missing, new, width
            )
        edges = np.flatnonzero(new)
        if not new[0]:
            edges = np.concatenate(([0], edges))
        counts = np.diff(edges, append=len(codes))
        starts = np.zeros(len(edges), dtype=np.int64)
        if not new[0]:
            starts[0] = self.open[2]
        ids = tuple(name(code) for code in codes[edges].tolist())
        self.summary.longest = max(self.summary.longest, int((starts + counts).max()))
        self.open = (ids[-1], int(ticks[-1]), int(starts[-1] + counts[-1]))
        if self.clock is None:
            self.summary.cover(0, int((starts + counts).max()) - 1)
        return Block(values, missing, ids, counts, starts, None if self.clock is None else ticks)

    def _steps(self, ticks: Integers, new: Flags, lag: Integers) -> Integers | None:
        """How many steps each row lies after the one before it; None when all are one."""
        if self.clock is None or self.series.grid == "index":
            return None
        if self.calendar is not None:
            place = np.searchsorted(self.calendar, ticks)
            known = self.calendar[np.minimum(place, len(self.calendar) - 1)] == ticks
            self.problems.add("calendar", np.count_nonzero(~known))
            before = np.searchsorted(self.calendar, ticks - lag)
            width = np.where(new, 1, place - before)
        else:
            if self.step is None:
                self.step = _usual_step(lag[~new])
            if self.step is None:
                return None
            lag = np.where(new, self.step, lag)
            width = lag // self.step
            if (width == 1).all() and (lag == self.step).all():
                return None
            self.problems.add("irregular", np.count_nonzero(width * self.step != lag))
        gaps = np.count_nonzero(width > 1)
        if self.series.gaps == "refuse" and not self.problems.counts.get("irregular"):
            self.problems.add("gaps", gaps)
        return width if gaps and not self.problems.counts else None

    def _fill(
        self, codes: Any, ticks: Integers, values: Any, missing: Flags, new: Flags, width: Integers
    ) -> tuple[Any, Integers, Any, Flags, Flags]:
        """Put a row without values at every step that has none."""
        filled = int(width.sum()) - len(width)
        require(
            filled <= MAX_FILL_RATIO * len(width) + 100_000,
            f"filling the gaps would add {filled} rows to {len(width)}; check the times, or take "
            "readings in order by [[grid=index]]",
            DataError,
        )
        self.summary.filled += filled
        last = np.cumsum(width) - 1  # where each row that exists goes
        source = np.repeat(np.arange(len(width)), width)
        behind = last[source] - np.arange(len(source))
        gone = behind > 0
        if self.calendar is not None:
            laid = self.calendar[np.searchsorted(self.calendar, ticks)[source] - behind]
        else:
            laid = ticks[source] - behind * (self.step or 1)
        values, missing = values[source], missing[source]
        values[gone], missing[gone] = 0.0, True
        first = np.zeros(len(source), dtype=np.bool_)
        first[last[new]] = True
        return codes[source], laid, values, missing, first


def _only_series(code: Any) -> str:
    return ONLY_SERIES


def _none() -> Integers:
    return np.zeros(0, dtype=np.int64)


def _codes(keys: Any) -> tuple[npt.NDArray[Any], Callable[[Any], str]]:
    """Series keys as integers, and how to name one."""
    if pa.types.is_dictionary(keys.type):
        names = keys.dictionary.to_pylist()
        return _integers(keys.indices), lambda code: str(names[code])
    return _integers(keys), str


def _integers(column: Any) -> npt.NDArray[Any]:
    return to_numpy(column, str(column.type))  # Arrow and numpy name integers alike


def _usual_step(lags: Integers) -> int | None:
    """The most frequent step between two readings of a series."""
    if not len(lags):
        return None
    steps, counts = np.unique(lags[lags > 0], return_counts=True)
    return int(steps[np.argmax(counts)]) if len(steps) else None


def read_calendar(path: Path, clock: Clock | None) -> Integers:
    """The first column of the file at ``path`` as rising ticks of a ``clock``."""
    if clock is None:
        raise DataError("a calendar grid needs a time column")
    with open_table(path) as table:
        name = next(iter(table.types))
        calendar = Clock.of([name], table)
        require(
            calendar.kind == clock.kind,
            f"{path}: the calendar holds {calendar.kind} times, the table {clock.kind} times",
            DataError,
        )
        query = f"SELECT DISTINCT {calendar.expression} AS t FROM {table.scan} ORDER BY t"
        parts = [calendar.ticks(batch.column(0)) for batch in table.batches(query)]
    return np.concatenate(parts)


def describe_times(summary: TableSummary) -> str:
    """The time grid of a table with this ``summary``, in words."""
    if summary.clock == "index":
        return "readings in order"
    return "no fixed step" if summary.step is None else describe_step(summary.clock, summary.step)
