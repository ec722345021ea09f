"""A table as the advisor needs it: the column of a task as numbers, and columns that may betray.

All of it is private, as the table is, unless its owner says that the table is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tempriv.data.duckdb import NUMBERS, Table, literal, open_table, quoted
from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, require
from tempriv.utility.reorder_costs import UnitCosts, average_costs, counting_costs
from tempriv.utility.simulation import Average, Count, Task, TrialReadings
from tempriv.utility.tasks import moving_average

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_ROWS = 1_000_000  # more is not needed to tell mechanisms apart


@dataclass(frozen=True, eq=False)
class AdvisorInput:
    """Readings in order of series and time. ``columns`` are numbers in the order of the values."""

    counts: Integers
    columns: dict[str, Floats]
    task: TrialReadings | None = None
    value: str | None = None
    cut: bool = False

    def __repr__(self) -> str:
        return f"AdvisorInput({int(self.counts.sum())} rows of {len(self.counts)} series)"


def read(
    source: Path,
    columns: Sequence[str],
    *,
    task: str = "none",
    value: str | None = None,
    time: str | None = None,
    series: str | None = None,
    grid: str = "regular",
    step: str | None = None,
    gaps: str = "refuse",
    duplicates: str = "refuse",
) -> AdvisorInput:
    """The columns of a table; the first is that of the task, ``value`` what is counted in it.

    The most frequent value is counted by default. Text and times become the numbers of their
    order, which is all that somebody who sorts them needs.

    Parameters:
        source: the table.
        columns: those to be released.
        task: count, average or none.
        value: what is counted.
        time: the column, or columns joined by +, of times.
        series: the column of ids.
        grid: of times, as for a release.
        step: of the grid.
        gaps: what is done about them.
        duplicates: what is done about them.
    """
    layout: dict[str, Any] = {"time": time, "series": series, "grid": grid, "step": step}
    layout |= {"gaps": gaps, "duplicates": duplicates}
    # refuses what cannot be meant before anything is read
    SeriesTable(source, values=tuple(columns), **layout)
    require(value is None or task == "count", f"value of interest {value}: goes with counting only")
    with open_table(source) as table:
        named = [*(() if time is None else time.split("+")), *([] if series is None else [series])]
        table.require_columns([*columns, *named])
        counted = "counted" + "_" * max(map(len, table.types))  # a name that no column has
        wanted = [f"{quoted(name)} AS {quoted(name)}" for name in dict.fromkeys(named)]
        wanted += [f"{_sortable(table, name)} AS {quoted(name)}" for name in columns]
        if task == "count":
            value = _most_frequent(table, columns[0]) if value is None else value
            wanted.append(f"{_is_value(table, columns[0], value)} AS {quoted(counted)}")
        if task == "average":
            require(
                table.types[columns[0]] in NUMBERS,
                f"{source}: column {columns[0]!r} holds {table.types[columns[0]].lower()}, of "
                "which there is no average; [[task=count]] takes any column",
                DataError,
            )
        batches = list(table.batches(f"SELECT {', '.join(wanted)} FROM {table.scan}"))
    require(bool(batches), f"{source}: the table has no rows", DataError)
    rows = pa.Table.from_batches(batches)
    for name in columns:
        if not pa.types.is_float64(rows.column(name).type):
            position = rows.schema.get_field_index(name)
            rows = rows.set_column(position, name, _ranks(rows.column(name)))
    names = (*columns, counted) if task == "count" else tuple(columns)
    counts, values, cut = _collect(SeriesTable(rows, values=names, **layout))
    named_values = dict(zip(names, values.T, strict=True))
    readings = None
    if task != "none":
        readings = TrialReadings(named_values[counted if task == "count" else columns[0]], counts)
        require(bool(readings.there.any()), f"{source}: column {columns[0]!r} is empty", DataError)
        require(
            task != "count" or bool((readings.values == 1).any()),
            f"{source}: column {columns[0]!r} never has the value that is to be counted; name "
            "another with [[value|value_of_interest]], or none for the most frequent",
            DataError,
        )
    return AdvisorInput(
        counts, {name: named_values[name] for name in columns}, readings, value, cut
    )


def _sortable(table: Table, name: str) -> str:
    """Numbers as such; anything else as text, whose order is that of dates and times too."""
    kind = "DOUBLE" if table.types[name] in NUMBERS else "VARCHAR"
    return f"CAST({quoted(name)} AS {kind})"


def _ranks(column: Any) -> Any:
    ranks = pc.cast(pc.rank(column, tiebreaker="dense"), pa.float64())
    return pc.if_else(pc.is_valid(column.combine_chunks()), ranks, pa.scalar(None, pa.float64()))


def _most_frequent(table: Table, name: str) -> str:
    counts = table.rows(
        f"SELECT CAST({quoted(name)} AS VARCHAR), count(*) FROM {table.scan} "
        f"WHERE {quoted(name)} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 1"
    )
    require(bool(counts), f"{table.name}: column {name!r} is empty", DataError)
    return str(counts[0][0])


def _is_value(table: Table, name: str, value: str) -> str:
    """1 where the column has this value, 0 where it has another."""
    column, kind = quoted(name), table.types[name]
    alike = f"CAST({column} AS VARCHAR) = {literal(value)}"
    if kind == "BOOLEAN":
        alike = f"CAST({column} AS VARCHAR) = {literal(value.lower())}"
    elif kind in NUMBERS:
        try:
            alike = f"CAST({column} AS DOUBLE) = {float(value)!r}::DOUBLE"
        except ValueError:
            require(
                False,
                f"value={value}: must be a number, as column {name!r} holds numbers",
            )
    return f"CASE WHEN {column} IS NULL THEN NULL ELSE CAST({alike} AS DOUBLE) END"


def _collect(laid_out: SeriesTable) -> tuple[Integers, Floats, bool]:
    """All checked; what is past the first million readings is left away."""
    counts: list[int] = []
    parts: list[Floats] = []
    rows, cut = 0, False
    for block in laid_out.read():
        values = np.where(block.missing, np.nan, block.values)
        for series, (count, start) in enumerate(
            zip(block.counts.tolist(), block.starts.tolist(), strict=True)
        ):
            take = min(count, MAX_ROWS - rows)
            cut = cut or take < count
            if take == 0:
                continue
            low = int(block.counts[:series].sum())
            parts.append(values[low : low + take])
            rows += take
            if start > 0:
                counts[-1] += take
            else:
                counts.append(take)
    return np.array(counts, dtype=np.int64), np.concatenate(parts), cut


def papers_costs(task: Task, readings: TrialReadings, window: int) -> UnitCosts:
    """The unit costs of Section II-D for these readings; private like them.

    For counts, what is repeated in the place of the value is anything else. ``costs`` says what is
    wrong with them; besides, empty slots are priced as if errors did not add up.

    Parameters:
        task: a count or an average.
        readings: that it is for.
        window: in time steps.
    """
    if isinstance(task, Count):
        share = float(readings.values[readings.there].mean())
        length = max(1, round(float(readings.counts.mean())))
        return counting_costs(share, 1 - share, length, window)
    assert isinstance(task, Average)
    spreads, weights = [], []
    for low, high in _bounds(readings.counts):
        centered = np.ma.masked_invalid(readings.values[low:high])
        # about the middle, so that squares keep their digits
        centered = centered - centered.mean() if centered.count() else centered
        spread = (
            moving_average(centered**2, task.length) - moving_average(centered, task.length) ** 2
        )
        if spread.count():
            spreads.append(float(spread.mean()))
            weights.append(spread.count())
    mean = float(np.average(spreads, weights=weights))
    return average_costs(0.0, max(mean, 0.0), window, task.length)


def _bounds(counts: Integers) -> list[tuple[int, int]]:
    ends = np.cumsum(counts)
    return list(zip((ends - counts).tolist(), ends.tolist(), strict=True))
