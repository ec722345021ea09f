"""From a table with a row for each reading to one vector of whole numbers for each record.

Everything is counted and added up in whole numbers, in DuckDB and out of core, so that what a
person's vector is depends on that person's rows alone, to the last bit. Groups, cells and bounds
are declared and never taken from the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from tempriv.data.aggregate import Grid, Moment
from tempriv.data.arrow import to_numpy
from tempriv.data.clock import Clock, describe_step
from tempriv.data.duckdb import NUMBERS, Table, literal, open_table, quoted
from tempriv.errors import DataError, require
from tempriv.summaries.cells import Cells, cells_of, moment_of, ticks_of
from tempriv.summaries.measure import PersonVectors
from tempriv.summaries.spec import PeopleSummary
from tempriv.summaries.vectors import READING_STEPS

Integers = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.int32]
Missing = Literal["refuse", "drop"]


@dataclass(frozen=True)
class Layout:
    """Which columns of a table are what.

    Parameters:
        person: whose reading it is.
        time: when it was; two columns as ``date+hour``.
        value: the reading.
        group: the column with the declared groups, if there are any.
        start: the first moment that counts; with ``step``, where the first step begins.
        end: the first moment that no longer counts.
        every: the length of a step.
        missing: rows without a person, a time, a reading or a group: refuse or drop.
    """

    person: str
    time: str
    value: str
    group: str | None = None
    start: Moment | None = None
    end: Moment | None = None
    every: str | None = None
    missing: Missing = "refuse"

    def __post_init__(self) -> None:
        require(
            self.missing in ("refuse", "drop"),
            f"missing={self.missing!r}: must be one of refuse, drop",
        )
        require(
            (self.start is None) == (self.end is None),
            "start and end: must be given together, or left out",
        )


@dataclass(frozen=True)
class Strata:
    """The vectors of a table, as private as it is: one group of records for each stratum.

    Parameters:
        people: of each stratum, by group and then by part of time.
        labels: the group of each.
        names: the names of the cells of each.
        clock: how the table tells time, for the ledger.
        span: the first and the last tick that count, if they were declared.
        step: the length of a step in ticks, if there are steps.
        how: what was done, in sentences; nothing of it depends on the data.
    """

    people: tuple[PersonVectors, ...] = field(repr=False)
    labels: tuple[str, ...]
    names: tuple[tuple[str, ...], ...]
    clock: str
    span: tuple[int, int] | None
    step: int | None
    how: tuple[str, ...]


def source_of(data: Any) -> Any:
    """A path or an Arrow table, from whatever ``data`` is."""
    if isinstance(data, (str, Path)):
        return Path(data)
    require(
        isinstance(data, pa.Table) or hasattr(data, "__arrow_c_stream__"),
        "data: must be a polars, pandas or Arrow table, or the path of a CSV or Parquet file",
    )
    return data if isinstance(data, pa.Table) else pa.table(data)


def read_strata(data: Any, spec: PeopleSummary, layout: Layout, dry: bool = False) -> Strata:
    """The vectors of all records of a table.

    Parameters:
        data: a CSV or Parquet file, or an Arrow, polars or pandas table, with a row for each
            reading.
        spec: the summary.
        layout: which columns are what.
        dry: look at no row, and give everything but the vectors.

    Guarantees:
        - a record's vector depends on its own rows alone, whatever their order;
        - each record is in one stratum, once.
    """
    require(
        bool(spec.groups) == (layout.group is not None),
        "groups: must be declared, with their column; those that occur in the data would give away "
        "that somebody was there",
    )
    texts = [name for name in (layout.group,) if name is not None and name not in layout.time]
    with open_table(source_of(data), texts) as table:
        table.require_columns([layout.person, layout.value, *texts])
        _require_kinds(table, layout)
        clock = Clock.of(layout.time.split("+"), table)
        grid = _grid(clock, spec, layout)
        rows = _Rows(table, spec, layout, clock, grid)
        cells = rows.cells
        spec.require_cells(len(cells.inner.names))
        if layout.missing == "refuse" and not dry:
            rows.refuse_missing()
        people = rows.empty() if dry else rows.read()
    parts = len(cells.strata.names)
    names = tuple(
        tuple(cells.name(part, cell) for cell in range(len(cells.inner.names)))
        for part in range(parts)
    )
    groups = spec.groups or ("",)
    return Strata(
        people=people,
        labels=tuple(group for group in groups for _ in range(parts)),
        names=names * len(groups),
        clock=clock.name,
        span=None if grid is None else (grid.start, grid.end - 1),
        step=grid.every if grid is not None and spec.by == "step" else None,
        how=_how(spec, layout, clock, grid),
    )


def _require_kinds(table: Table, layout: Layout) -> None:
    require(
        table.types[layout.person] not in {"FLOAT", "DOUBLE", "DECIMAL"},
        f"{table.name}: the person column {layout.person!r} holds fractions; ids must be text or "
        "whole numbers",
        DataError,
    )
    kind = table.types[layout.value]
    require(
        kind in NUMBERS,
        f"{table.name}: column {layout.value!r} holds {kind.lower()}, not numbers",
        DataError,
    )


def _grid(clock: Clock, spec: PeopleSummary, layout: Layout) -> Grid | None:
    if layout.start is None or layout.end is None:
        require(spec.by != "step", "by=step: needs start, end and every")
        require(layout.every is None, f"every={layout.every}: goes with by=step")
        return None
    require(
        (layout.every is not None) == (spec.by == "step"),
        "every: must be given with by=step, and left out otherwise",
    )
    smallest = {"integer": "1", "date": "1d", "datetime": "1us"}[clock.kind]
    return Grid.of(clock, layout.every or smallest, layout.start, layout.end)


class _Rows:
    """The rows of a table as whole numbers, in SQL, and their vectors."""

    def __init__(
        self, table: Table, spec: PeopleSummary, layout: Layout, clock: Clock, grid: Grid | None
    ):
        self.table, self.spec, self.layout, self.grid = table, spec, layout, grid
        self.clock = clock
        self.cells: Cells = cells_of(spec.by, spec.protect, clock, grid, "x")

    @property
    def _value(self) -> str:
        return f"CAST({quoted(self.layout.value)} AS DOUBLE)"

    @property
    def _moment(self) -> str:
        return moment_of(self.clock)

    @property
    def _group(self) -> str:
        if self.layout.group is None:
            return "0"
        listed = ", ".join(literal(name) for name in self.spec.groups)
        column = quoted(self.layout.group)
        # a name that is not listed has no position, in some versions the position 0
        return f"nullif(list_position([{listed}], CAST({column} AS VARCHAR)) - 1, -1)"

    def refuse_missing(self) -> None:
        """Say how many rows lack something."""
        person, value = self.layout.person, self.layout.value
        wanting = {
            f"{quoted(person)} IS NULL": f"without a person in {person!r}",
            f"({self._moment}) IS NULL": "without a time",
            f"coalesce(NOT isfinite({self._value}), true)": f"without a finite number in {value!r}",
        }
        if self.layout.group is not None:
            what = f"without one of the declared groups in {self.layout.group!r}"
            wanting[f"({self._group}) IS NULL"] = what
        counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in wanting)
        (numbers,) = self.table.rows(f"SELECT {counts} FROM {self.table.scan}")
        problems = [
            f"{n} row{'s'[: n != 1]} {what}; leave such rows out by [[missing=drop]]"
            for n, what in zip(numbers, wanting.values(), strict=True)
            if n
        ]
        require(not problems, "\n".join(problems), DataError)

    def _taken(self) -> str:
        """A row for each reading that counts: person, group, time, reading."""
        conditions = ["p IS NOT NULL", "x IS NOT NULL", "isfinite(v)"]
        if self.layout.group is not None:
            conditions.append("g IS NOT NULL")
        if self.grid is not None:
            ticks = ticks_of(self.clock, "x")
            conditions.append(f"{ticks} >= {self.grid.start} AND {ticks} < {self.grid.end}")
        return f"""SELECT p, g, x, v FROM (SELECT {quoted(self.layout.person)} AS p,
            {self._group} AS g, {self._moment} AS x, {self._value} AS v FROM {self.table.scan})
            WHERE {" AND ".join(conditions)}"""

    def _whole(self) -> str:
        """The reading in grid steps above the lower bound, in SQL.

        A whole number in double precision: sums of up to 2^33 of them are exact in any order.
        """
        low, high = (f"CAST('{float(bound)!r}' AS DOUBLE)" for bound in self.spec.bounds)
        clipped = f"greatest(least(v, {high}), {low})"
        return f"round(({clipped} - {low}) / ({high} - {low}) * {READING_STEPS})"

    def _sums(self) -> str:
        """For each record and cell: their numbers, the sum of readings, their count, and shares.

        Each record is in the first of the declared groups that one of its rows names.
        """
        cells = self.cells
        columns = {
            "p": "p",
            "d": f"CAST({cells.period} AS INTEGER)",
            "s": f"CAST({cells.strata.expression} AS SMALLINT)",
            "c": f"CAST({cells.inner.expression} AS SMALLINT)",
        }
        if self.spec.protect != "day":
            del columns["d"], columns["s"]
        sums = ["min(g) AS g"] if self.layout.group is not None else []
        sums += [f"sum({self._whole()}) AS q", "CAST(count(*) AS BIGINT) AS k"]
        sums += [
            f"CAST(count(*) FILTER (WHERE {statistic.condition}) AS BIGINT) AS h{i}"
            for i, statistic in enumerate(self.spec.shares)
        ]
        listed = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
        order = "p, d" if "d" in columns else "p"
        return f"""SELECT * FROM (SELECT {listed}, {", ".join(sums)} FROM ({self._taken()})
            GROUP BY {", ".join(str(i + 1) for i in range(len(columns)))}) ORDER BY {order}"""

    @property
    def _count(self) -> int:
        """How many strata there are."""
        return len(self.spec.groups or ("",)) * len(self.cells.strata.names)

    def empty(self) -> tuple[PersonVectors, ...]:
        """No records in any stratum."""
        none = np.zeros((0, len(self.cells.inner.names)), dtype=np.int32)
        return (PersonVectors(none, (none,) * len(self.spec.shares)),) * self._count

    def read(self) -> tuple[PersonVectors, ...]:
        """The vectors of all records, by stratum."""
        batches = self._readings() if self.spec.protect == "reading" else self._records()
        blocks: list[list[list[Vectors]]] = [[] for _ in range(self._count)]
        for strata, vectors in batches:
            for stratum in np.unique(strata).tolist():
                rows = strata == stratum
                blocks[stratum].append([each[rows] for each in vectors])
        return tuple(map(self._joined, blocks))

    def _records(self) -> Iterator[tuple[Integers, list[Vectors]]]:
        """Batches of whole records: the stratum of each, and its vectors."""
        left: pa.Table | None = None
        for batch in self.table.batches(self._sums()):
            table = pa.Table.from_batches([batch])
            whole = table if left is None else pa.concat_tables([left, table])
            starts = _starts(whole)
            # the last record may go on in the next batch
            left = whole.slice(int(starts[-1]))
            if len(starts) > 1:
                yield self._vectors(whole.slice(0, int(starts[-1])), starts[:-1])
        if left is not None:
            yield self._vectors(left, np.zeros(1, dtype=np.int64))

    def _vectors(self, rows: pa.Table, starts: Integers) -> tuple[Integers, list[Vectors]]:
        """The vectors of records whose first rows are at ``starts``; few readings leave one out."""
        size, cells = len(starts), len(self.cells.inner.names)
        lengths = np.diff(np.append(starts, rows.num_rows))
        places = np.repeat(np.arange(size), lengths)
        cell, total, count = (_whole_column(rows, name) for name in "cqk")
        known = np.zeros((size, cells), dtype=np.bool_)
        known[places, cell] = True
        enough = np.add.reduceat(count, starts) >= self.spec.min_readings
        sums = [total]
        for i in range(len(self.spec.shares)):
            sums.append(READING_STEPS * _whole_column(rows, f"h{i}"))
        vectors = []
        for each in sums:
            full = np.zeros((size, cells), dtype=np.int64)
            full[places, cell] = (2 * each + count) // (2 * count)
            vectors.append(filled(full, known)[enough])
        strata = np.zeros(size, dtype=np.int64)
        if self.layout.group is not None:
            strata += np.minimum.reduceat(_whole_column(rows, "g"), starts)
        strata *= len(self.cells.strata.names)
        if "s" in rows.column_names:
            strata += _whole_column(rows, "s")[starts]
        return strata[enough], vectors

    def _readings(self) -> Iterator[tuple[Integers, list[Vectors]]]:
        """Each row is a record of its own, with one number."""
        group = "g" if self.layout.group is not None else "0"
        parts = len(self.cells.strata.names)
        columns = [
            f"{group} * {parts} + CAST({self.cells.strata.expression} AS BIGINT)",
            self._whole(),
            *(f"({statistic.condition})" for statistic in self.spec.shares),
        ]
        numbers = ", ".join(f"CAST({column} AS INTEGER)" for column in columns)
        for batch in self.table.batches(f"SELECT {numbers} FROM ({self._taken()})"):
            stratum, whole, *shares = (
                to_numpy(column, np.int32).astype(np.int32) for column in batch.columns
            )
            vectors = [whole, *(share * READING_STEPS for share in shares)]
            yield stratum.astype(np.int64), [each.astype(np.int32)[:, None] for each in vectors]

    def _joined(self, blocks: Sequence[Sequence[Vectors]]) -> PersonVectors:
        if not blocks:
            return self.empty()[0]
        whole, *shares = (np.concatenate(each) for each in zip(*blocks, strict=True))
        return PersonVectors(whole, tuple(shares))


def _starts(rows: pa.Table) -> Integers:
    """Where records begin, in rows that are sorted by them."""
    new = np.zeros(rows.num_rows, dtype=np.bool_)
    new[0] = True
    for name in ("p", "d"):
        if name in rows.column_names:
            column = rows.column(name).combine_chunks()
            differs = pa.compute.not_equal(column.slice(1), column.slice(0, rows.num_rows - 1))
            new[1:] |= np.asarray(differs.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.flatnonzero(new)


def _whole_column(rows: pa.Table, name: str) -> Integers:
    """A column of whole numbers, of whatever type."""
    return np.asarray(rows.column(name).combine_chunks().to_numpy(zero_copy_only=False), np.int64)


def filled(vectors: Integers, known: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Cells without a reading take the average of the record's other cells.

    Parameters:
        vectors: a row for each record, zero where there is no reading.
        known: where there is one.
    """
    count = known.sum(axis=1)
    average = (2 * vectors.sum(axis=1) + count) // (2 * np.maximum(count, 1))
    return np.asarray(np.where(known, vectors, average[:, None]).astype(np.int32))


def _how(spec: PeopleSummary, layout: Layout, clock: Clock, grid: Grid | None) -> tuple[str, ...]:
    """What was done, for the description of a release."""
    low, high = spec.bounds
    record = {
        "person": f"each person ({layout.person!r}) became one vector",
        "day": f"each calendar day of a person ({layout.person!r}) became one vector",
        "reading": "each row became one number",
    }[spec.protect]
    sentences = [
        f"{record}, with the average of {layout.value!r} in each cell of {spec.by}; readings were "
        f"moved into {low:g} to {high:g} first",
    ]
    if spec.protect != "reading":
        sentences.append(
            f"a {spec.protect} with readings in some cells only has the average of these in the "
            "others"
            + (
                f"; those with fewer than {spec.min_readings} readings were left out"
                if spec.min_readings > 1
                else ""
            )
        )
    if layout.group is not None:
        sentences.append(
            f"a {spec.protect} with rows in several of the declared groups ({layout.group!r}) "
            "counts in the first of them"
        )
    if grid is not None:
        sentences.append(f"rows before {layout.start} or from {layout.end} on were left out")
    if spec.by == "step" and grid is not None:
        sentences.append(f"steps are of {describe_step(clock.kind, grid.every)}")
    if clock.domain == "datetime UTC":
        sentences.append("hours and days are those of UTC")
    if layout.missing == "drop":
        sentences.append(
            "rows without a person, a time, a finite reading or a declared group, if any, were "
            "left out"
        )
    return tuple(sentences)
