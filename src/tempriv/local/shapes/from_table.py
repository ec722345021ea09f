"""People's series out of a table, for a campaign on one machine: a row each, or a row a reading."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tempriv.data.arrow import nulls, to_numpy
from tempriv.data.duckdb import NUMBERS, ROW_NUMBER, Table, open_table, quoted
from tempriv.data.series import SeriesTable
from tempriv.errors import DataError, require
from tempriv.ledger.scope import Scope


@dataclass(frozen=True)
class People:
    """Series, the label of each if asked for, and whom to charge."""

    series: Any = field(repr=False)
    labels: list[str] | None = field(repr=False)
    scope: Scope

    def __len__(self) -> int:
        return len(self.series)


def from_wide(
    source: Path, *, prefix: str = "t", series: str | None = None, label: str | None = None
) -> People:
    """Read a row for each person: readings in columns such as t0, t1 and so on, by number.

    Missing readings at the end of a row make a shorter series; elsewhere they are refused.

    Parameters:
        source: the table.
        prefix: of the names of the columns.
        series: column of ids, if there is one.
        label: column of labels, if there is one.
    """
    texts = [name for name in (series, label) if name is not None]
    # ids as readings have them elsewhere, labels as they stand
    with open_table(source, () if label is None else (label,)) as table:
        table.require_columns(texts)
        columns = _numbered(table, prefix, texts)
        first = table.rows(f"SELECT 1 FROM {table.scan} LIMIT 1")
        require(bool(first), f"{source}: the table has no rows", DataError)
        _require_numbers(table, columns)
        numbers = [f"CAST({quoted(name)} AS DOUBLE)" for name in columns]
        names = [f"CAST({quoted(name)} AS VARCHAR)" for name in texts]
        query = f"SELECT {', '.join(names + numbers)} FROM {table.scan}"
        rows: list[Any] = []
        entries: list[list[str | None]] = [[] for _ in texts]
        for batch in table.batches(query):
            for column_entries, column in zip(entries, batch.columns, strict=False):
                column_entries += column.to_pylist()
            rows.append(_matrix(batch.columns[len(texts) :], batch.num_rows))
    by_column = {
        name: _complete(column_entries, name)
        for name, column_entries in zip(texts, entries, strict=True)
    }
    members = None if series is None else by_column[series]
    require(
        members is None or len(set(members)) == len(members),
        f"{source}: an id in {series!r} stands in several rows; must be a row for each series",
        DataError,
    )
    matrix = np.concatenate(rows)
    return People(
        _without_ends(matrix, source),
        None if label is None else by_column[label],
        _scope(series, members, matrix.shape[1]),
    )


def _numbered(table: Table, prefix: str, texts: Sequence[str]) -> list[str]:
    """The columns that are the prefix and a number, by that number."""
    form = re.compile(re.escape(prefix) + r"(\d+)")
    matches = {name: form.fullmatch(name) for name in table.types if name not in texts}
    by_number = {int(match[1]): name for name, match in matches.items() if match is not None}
    numbers = sorted(by_number)
    first_columns = ", ".join([name for name in table.types if name != ROW_NUMBER][:8])
    require(
        bool(numbers),
        f"{table.name}: no column is called {prefix}0, {prefix}1 and so on; the first are "
        f"{first_columns}; say what their names begin with by [[prefix]], or for a row for each "
        "reading give [[series]], [[time]] and [[value]]",
        DataError,
    )
    gap = numbers[-1] - numbers[0] + 1 != len(numbers)
    gap = gap or sum(match is not None for match in matches.values()) != len(numbers)
    require(
        not gap,
        f"{table.name}: columns {prefix}{numbers[0]} to {prefix}{numbers[-1]} must all be there, "
        "each once",
        DataError,
    )
    return [by_number[number] for number in numbers]


def _require_numbers(table: Table, columns: Sequence[str]) -> None:
    for name in columns:
        kind = table.types[name]
        require(
            kind in NUMBERS or kind == '"NULL"',
            f"{table.name}: column {name!r} holds {kind.lower()}, not numbers",
            DataError,
        )


def _matrix(columns: Sequence[Any], rows: int) -> Any:
    matrix = np.empty((rows, len(columns)))
    for i, column in enumerate(columns):
        matrix[:, i] = to_numpy(column, np.float64)
        if column.null_count:
            matrix[nulls(column), i] = np.nan
    return matrix


def _complete(entries: list[str | None], name: str) -> list[str]:
    missing = sum(entry is None for entry in entries)
    require(
        missing == 0,
        f"{missing} rows without an entry in {name!r}: every row needs one",
        DataError,
    )
    return [str(entry) for entry in entries]


def _without_ends(matrix: Any, source: Path) -> Any:
    """A matrix if rows are full; a list, if some end early."""
    present = np.isfinite(matrix)
    if present.all():
        return matrix
    lengths = present.sum(axis=1)
    require(
        bool((present == (np.arange(matrix.shape[1]) < lengths[:, None])).all()),
        f"{source}: a reading is missing or infinite before the end of its row; fill it in",
        DataError,
    )
    require(bool((lengths > 0).all()), f"{source}: a row has no reading at all", DataError)
    return [row[:length] for row, length in zip(matrix, lengths.tolist(), strict=True)]


def from_long(
    source: Path, *, series: str, time: str | None, value: str, label: str | None = None
) -> People:
    """Read a row for each reading, in order of time.

    Parameters:
        source: the table.
        series: column of ids.
        time: column of times; rows are in order without one.
        value: column of readings.
        label: column of labels, if there is one.
    """
    with open_table(source, ()) as table:
        table.require_columns([series, value])
        _require_numbers(table, [value])
    table_of_readings = SeriesTable(source, values=(value,), time=time, series=series, grid="index")
    reading = table_of_readings.read()
    by_id: dict[str, list[Any]] = {}
    try:
        for block in reading:
            require(
                not block.missing.any(),
                f"{source}: {value!r} is missing in a row; fill it in, or leave the row out",
                DataError,
            )
            parts = np.split(block.values[:, 0], np.cumsum(block.counts)[:-1])
            for name, part in zip(block.ids, parts, strict=True):
                by_id.setdefault(name, []).append(part)
    except DataError:
        # the remedy that reading knows is an option of other commands
        twice = reading.problems.counts.get("duplicates", 0)
        require(
            not twice,
            f"{source}: a series has several readings at one time, {twice} more than one each; "
            "leave one of each in the table, or say by [[series]] whose they are",
            DataError,
        )
        raise
    members = list(by_id)
    rows = [np.concatenate(parts) for parts in by_id.values()]
    labels = None if label is None else _labels(source, series, label, members)
    return People(rows, labels, _scope(series, members, max(map(len, rows))))


def _labels(source: Path, series: str, label: str, members: list[str]) -> list[str]:
    with open_table(source, (label,)) as table:
        table.require_columns([label])
        query = (
            f"SELECT CAST({quoted(series)} AS VARCHAR), min(CAST({quoted(label)} AS VARCHAR)), "
            f"count(DISTINCT CAST({quoted(label)} AS VARCHAR)) FROM {table.scan} GROUP BY 1"
        )
        by_series = {name: (entry, different) for name, entry, different in table.rows(query)}
    wrong = sum(by_series.get(name, (None, 0))[1] != 1 for name in members)
    require(
        wrong == 0,
        f"{source}: {wrong} series have no label in {label!r}, or several; must be one for each",
        DataError,
    )
    return [by_series[name][0] for name in members]


def _scope(series: str | None, members: Sequence[str] | None, longest: int) -> Scope:
    """A whole series is charged, whenever its readings were."""
    kind = "series" if series is None else f"series {series}"
    return Scope(kind=kind, members=members, clock="index", longest=longest)
