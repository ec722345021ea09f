"""One pass over a private table: sorted, laid out on its time grid, checked, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_text, nulls, to_numpy
from tempriv.data.clock import Clock
from tempriv.data.duckdb import INTEGERS, NUMBERS, ROW_NUMBER, Table, literal, open_table, quoted
from tempriv.data.grid import InputErrors, TableSummary, TimeGrid, read_calendar
from tempriv.data.series import ONLY_SERIES, Block, Bounds, Categories, Flags, Integers, SeriesTable
from tempriv.errors import DataError, require

if TYPE_CHECKING:
    from tempriv.data.passthrough import PassthroughColumns


@dataclass
class TableReader:
    """An iterator of checked blocks; ``summary`` and ``clock`` are complete once it is exhausted.

    Raises DataError at its end if anything was wrong, so that all problems are counted. No block
    follows the first problem. With a ``passthrough`` values may be of any kind: they are set aside
    there, and blocks have their row numbers in one column instead.

    ``sorted_rows`` are some whole series of a table that somebody else has sorted: ids, times and
    values, in order. Who divided it knows its clock, and has to add up summary and problems.
    """

    series: SeriesTable
    bounds: Bounds | None = None
    categories: Categories | None = None
    rename: Callable[[str], str] | None = None
    passthrough: PassthroughColumns | None = None
    summary: TableSummary = field(default_factory=TableSummary)
    clock: Clock | None = None
    whole_number_ids: bool = False
    problems: InputErrors = field(default_factory=InputErrors)
    sorted_rows: Iterable[pa.RecordBatch] | None = None
    calendar: Integers | None = None
    _width: int = 0

    def __iter__(self) -> Iterator[Block]:
        source, passthrough = self.series.source, self.passthrough
        if self.sorted_rows is not None:
            self._width = len(self.series.values)
            yield from self._blocks(self.sorted_rows)
            return
        if isinstance(source, np.ndarray):
            yield from self._array()
        else:
            texts = () if self.categories is None and passthrough is None else self.series.values
            if passthrough is not None and isinstance(source, pa.Table):
                source = passthrough.hold(source)
            with open_table(source, texts, empty_texts=passthrough is not None) as table:
                yield from self._table(table)
        self.problems.refuse()

    def _look_at(self, block: Block) -> None:
        if self.passthrough is not None:
            self.problems.check_passthrough(block, self.passthrough)
        elif self.categories is not None:
            self.problems.check_categories(block)
        else:
            self.problems.check_numbers(block, None if self.series.clip else self.bounds)

    def _array(self) -> Iterator[Block]:
        """A numpy array is one series, in the order given."""
        array = self.series.source
        if self.passthrough is not None:
            array = self.passthrough.hold_array(array)
        block = Block.of(array, ONLY_SERIES, 0)
        require(len(block) > 0, "the array is empty: there is nothing to release", DataError)
        self._look_at(block)
        self.summary.ids, self.summary.rows, self.summary.step = [ONLY_SERIES], len(block), 1
        self.summary.longest = len(block)
        self.summary.cover(0, len(block) - 1)
        if not self.problems.counts:
            yield block

    def _table(self, table: Table) -> Iterator[Block]:
        series = self.series
        table.require_columns([name for name in (series.series, series.person) if name])
        if self.passthrough is None or not self.passthrough.in_memory:
            table.require_columns(series.values)
        if series.time is not None:
            self.clock = Clock.of(series.time.split("+"), table)
            self.summary.clock = self.clock.kind
        self._check_persons(table)
        if series.calendar is not None:
            self.calendar = read_calendar(series.calendar, self.clock)
        yield from self._blocks(table.batches(self._query(table)))
        require(
            self.summary.rows > 0 or bool(self.problems.counts),
            f"{table.name}: the table has no rows",
            DataError,
        )

    def _blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        spacing = TimeGrid(self.series, self.clock, self.summary, self.problems)
        spacing.calendar = self.calendar
        for batch in batches:
            block = spacing.lay_out(*self._columns(batch))
            self._look_at(block)
            if self.problems.counts:
                if self.passthrough is not None:
                    self.passthrough.forget(self.passthrough.next)
            elif len(block):
                self.summary.rows += len(block)
                yield block
        self.summary.step = spacing.step

    def _columns(self, batch: Any) -> tuple[Any, Integers, npt.NDArray[np.float64], Flags]:
        """Series keys, ticks, values and which of them are missing."""
        keys = batch.column(0)
        self.problems.add("ids", keys.null_count)
        self.problems.add("times", batch.column(1).null_count)
        if keys.null_count or batch.column(1).null_count:
            keep = pa.compute.and_(keys.is_valid(), batch.column(1).is_valid())
            batch = batch.filter(keep)
            keys = batch.column(0)
        ticks = (
            np.zeros(batch.num_rows, dtype=np.int64)
            if self.clock is None
            else self.clock.ticks(batch.column(1))
        )
        columns = batch.columns[2 : 2 + self._width]
        if self.passthrough is not None and not self.passthrough.in_memory:
            numbers = self.passthrough.load(columns)
            return keys, ticks, numbers[:, None], np.zeros((len(numbers), 1), dtype=np.bool_)
        values = np.empty((batch.num_rows, self._width))
        missing = np.zeros(values.shape, dtype=np.bool_)
        for i, column in enumerate(columns):
            values[:, i] = to_numpy(column, np.float64)
            if column.null_count:
                missing[:, i] = nulls(column)
                values[missing[:, i], i] = 0.0
        return keys, ticks, values, missing

    def _query(self, table: Table) -> str:
        identity, relation = self._name_series(table)
        columns = [
            f"{identity} AS s",
            "0 AS t" if self.clock is None else f"{self.clock.expression} AS t",
        ]
        values = self._values(table)
        self._width = len(values)
        columns += [f"{value} AS v{i}" for i, value in enumerate(values)]
        order = ["s", "t"]
        if self.clock is None or self.series.duplicates == "first":
            # which of two rows came first must not depend on the sorting
            row = ROW_NUMBER if ROW_NUMBER in table.types else "row_number() OVER ()"
            columns.append(f"{row} AS r")
            order.append("r")
        return f"SELECT {', '.join(columns)} FROM {relation} ORDER BY {', '.join(order)}"

    def _values(self, table: Table) -> list[str]:
        """The SQL of each value column, or of the number of the row that they are in."""
        if self.passthrough is None:
            return [self._value(table, i) for i in range(len(self.series.values))]
        return self.passthrough.opened(table, self.series.source, self.problems)

    def _value(self, table: Table, number: int) -> str:
        name = self.series.values[number]
        column, kind = quoted(name), table.types[name]
        if self.categories is not None:
            listed = ", ".join(literal(category) for category in self.categories[number])
            code = f"coalesce(list_position([{listed}], CAST({column} AS VARCHAR)), 0) - 1"
            return f"CASE WHEN {column} IS NULL THEN NULL ELSE CAST({code} AS DOUBLE) END"
        require(
            kind in NUMBERS,
            f"{table.name}: column {name!r} holds {kind.lower()}, not numbers; for categories "
            "use randomized-response",
            DataError,
        )
        return f"CAST({column} AS DOUBLE)"

    def _name_series(self, table: Table) -> tuple[str, str]:
        """The id expression, and the relation to read it from.

        Text ids become an enumeration, which sorts as fast as integers. Pseudonyms are sorted as
        such, so that the order of the rows does not tell the order of the names.
        """
        name = self.series.series
        if name is None:
            self.summary.ids = [ONLY_SERIES]
            return "0", table.scan
        column, kind = quoted(name), table.types[name]
        require(
            kind not in {"FLOAT", "DOUBLE", "DECIMAL"},
            f"{table.name}: the series column {name!r} holds fractions; ids must be text or whole "
            "numbers",
            DataError,
        )
        rows = table.rows(
            f"SELECT DISTINCT CAST({column} AS VARCHAR) FROM {table.scan} "
            f"WHERE {column} IS NOT NULL"
        )
        ids = self.summary.ids = [row[0] for row in rows]
        if not ids or (self.rename is None and kind in INTEGERS):
            self.whole_number_ids = True
            return column, table.scan
        shown = ids if self.rename is None else [self.rename(name) for name in ids]
        table.con.register(
            "series_names", pa.table({"id": from_text(ids), "shown": from_text(shown)})
        )
        table.run(
            "CREATE TEMP TYPE series_id AS ENUM (SELECT shown FROM series_names ORDER BY shown)"
        )
        if self.rename is None:
            return f"CAST(CAST({column} AS VARCHAR) AS series_id)", table.scan
        return "series_shown", (
            f"(SELECT rows.*, CAST(names.shown AS series_id) AS series_shown FROM {table.scan} "
            f"AS rows LEFT JOIN series_names AS names ON CAST(rows.{column} AS VARCHAR) = names.id)"
        )

    def _check_persons(self, table: Table) -> None:
        """Every series belongs to one person, and no person has more series than declared."""
        if self.series.person is None or self.series.series is None:
            return
        person, series = quoted(self.series.person), quoted(self.series.series)
        most = self.series.max_series_per_person
        pairs = f"(SELECT DISTINCT {series} AS s, CAST({person} AS VARCHAR) AS p FROM {table.scan})"
        shared = table.rows(
            f"SELECT count(*) FROM (SELECT s FROM {pairs} GROUP BY s "
            "HAVING count(*) > 1 OR count(p) = 0)"
        )[0][0]
        require(
            shared == 0,
            f"{shared} series belong to no person or to several; give each series one person",
            DataError,
        )
        busy = table.rows(
            f"SELECT count(*) FROM (SELECT p FROM {pairs} GROUP BY p HAVING count(*) > {most})"
        )[0][0]
        require(
            busy == 0,
            f"{busy} person{'s have' if busy > 1 else ' has'} more than {most} series; raise "
            "[[max_series_per_person]], or leave out some of their series",
            DataError,
        )
        self.summary.persons = [row[0] for row in table.rows(f"SELECT DISTINCT p FROM {pairs}")]
