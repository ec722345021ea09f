"""The time grid: rows at their steps, gaps filled, duplicates dropped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import to_numpy
from tempriv.data.checks import (
    InputErrors,
    TableSummary,
)
from tempriv.data.clock import Clock, describe_step
from tempriv.data.duckdb import open_table
from tempriv.data.series import ONLY_SERIES, Block, Flags, Integers, SeriesTable
from tempriv.errors import DataError, require

MAX_FILL_RATIO = 10
"""Gaps may make a table this many times longer; past that the times are more likely wrong."""


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
