"""One pass over a private table: sorted, laid out on its time grid, checked, in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, SupportsInt

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_numpy, from_text, nulls, to_numpy
from tempriv.data.clock import Clock, describe_step
from tempriv.data.duckdb import INTEGERS, NUMBERS, ROW_NUMBER, Table, literal, open_table, quoted
from tempriv.data.passthrough import NUMBER, PassthroughColumns, as_table
from tempriv.data.series import ONLY_SERIES, Block, Bounds, Categories, Flags, Integers, SeriesTable
from tempriv.errors import DataError, require


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

    def saw(self, first: int, last: int) -> None:
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


class InputErrors:
    """What is wrong with a table, counted; one sentence each, with the remedy."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, kind: str, count: SupportsInt) -> None:
        if int(count):
            self.counts[kind] = self.counts.get(kind, 0) + int(count)

    def look_at_numbers(self, block: Block, bounds: Bounds | None) -> None:
        """NaN, infinities, and values outside the bounds (missing ones hold 0 for now)."""
        if not np.isfinite(block.values).all():
            self.add("nan", np.count_nonzero(np.isnan(block.values)))
            self.add("infinite", np.count_nonzero(np.isinf(block.values)))
        if bounds is not None:
            low, high = np.array(bounds, dtype=np.float64).T
            outside = ~block.missing & ((block.values < low) | (block.values > high))
            self.add("outside", np.count_nonzero(outside & np.isfinite(block.values)))

    def look_at_categories(self, block: Block) -> None:
        """Values that are none of the categories came as -1."""
        self.add("categories", np.count_nonzero(~block.missing & (block.values < 0)))

    def look_at_rows(self, block: Block, cargo: PassthroughColumns) -> None:
        """NaN and infinities among values that are set aside."""
        nan, infinite = cargo.not_finite(block.values[~block.missing])
        self.add("nan", nan)
        self.add("infinite", infinite)

    def refuse(self, one_each: str = "keep the first of each with [[duplicates=first]]") -> None:
        """``one_each`` is the remedy for duplicates: rows without an order have no first."""
        if self.counts:
            told = [self._sentence(kind, n, one_each) for kind, n in self.counts.items()]
            raise DataError("\n".join(told))

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


@dataclass
class TableReader:
    """An iterator of checked blocks; ``facts`` and ``clock`` are complete once it is exhausted.

    Raises DataRefusal at its end if anything was wrong, so that all problems are counted. No block
    follows the first problem. With a ``cargo`` values may be of any kind: they are set aside there,
    and blocks have their row numbers in one column instead.

    ``sorted_rows`` are some whole series of a table that somebody else has sorted: ids, times and
    values, in order. Who divided it knows its clock, and has to add up facts and problems.
    """

    series: SeriesTable
    bounds: Bounds | None = None
    categories: Categories | None = None
    rename: Callable[[str], str] | None = None
    cargo: PassthroughColumns | None = None
    facts: TableSummary = field(default_factory=TableSummary)
    clock: Clock | None = None
    whole_number_ids: bool = False
    problems: InputErrors = field(default_factory=InputErrors)
    sorted_rows: Iterable[pa.RecordBatch] | None = None
    calendar: Integers | None = None
    _width: int = 0

    def __iter__(self) -> Iterator[Block]:
        source, cargo = self.series.source, self.cargo
        if self.sorted_rows is not None:
            self._width = len(self.series.values)
            yield from self._blocks(self.sorted_rows)
            return
        if isinstance(source, np.ndarray):
            yield from self._array()
        else:
            texts = () if self.categories is None and cargo is None else self.series.values
            if cargo is not None and isinstance(source, pa.Table):
                cargo.hold(source)
                numbers = from_numpy(np.arange(source.num_rows), pa.int64())
                source = source.drop_columns(cargo.names).append_column(NUMBER, numbers)
            with open_table(source, texts, empty_texts=cargo is not None) as table:
                yield from self._table(table)
        self.problems.refuse()

    def _look_at(self, block: Block) -> None:
        if self.cargo is not None:
            self.problems.look_at_rows(block, self.cargo)
        elif self.categories is not None:
            self.problems.look_at_categories(block)
        else:
            self.problems.look_at_numbers(block, None if self.series.clip else self.bounds)

    def _array(self) -> Iterator[Block]:
        """A numpy array is one series, in the order given."""
        array = self.series.source
        if self.cargo is not None:
            self.cargo.hold(as_table(array, self.series.values))
            array = np.arange(len(array))
        block = Block.of(array, ONLY_SERIES, 0)
        require(len(block) > 0, "the array is empty: there is nothing to release", DataError)
        self._look_at(block)
        self.facts.ids, self.facts.rows, self.facts.step = [ONLY_SERIES], len(block), 1
        self.facts.longest = len(block)
        self.facts.saw(0, len(block) - 1)
        if not self.problems.counts:
            yield block

    def _table(self, table: Table) -> Iterator[Block]:
        series = self.series
        table.require_columns([name for name in (series.series, series.person) if name])
        if self.cargo is None or not self.cargo.in_memory:
            table.require_columns(series.values)
        if series.time is not None:
            self.clock = Clock.of(series.time.split("+"), table)
            self.facts.clock = self.clock.kind
        self._check_persons(table)
        if series.calendar is not None:
            self.calendar = read_calendar(series.calendar, self.clock)
        yield from self._blocks(table.batches(self._query(table)))
        require(
            self.facts.rows > 0 or bool(self.problems.counts),
            f"{table.name}: the table has no rows",
            DataError,
        )

    def _blocks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
        spacing = TimeGrid(self.series, self.clock, self.facts, self.problems)
        spacing.calendar = self.calendar
        for batch in batches:
            block = spacing.lay_out(*self._columns(batch))
            self._look_at(block)
            if self.problems.counts:
                if self.cargo is not None:
                    self.cargo.forget(self.cargo.next)
            elif len(block):
                self.facts.rows += len(block)
                yield block
        self.facts.step = spacing.step

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
        if self.cargo is not None and not self.cargo.in_memory:
            numbers = self.cargo.load(columns)
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
        if self.cargo is None:
            return [self._value(table, i) for i in range(len(self.series.values))]
        if self.cargo.in_memory:
            return [f"CAST({quoted(NUMBER)} AS DOUBLE)"]
        return self.cargo.opened(table, self.series.source, self.problems)

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
            self.facts.ids = [ONLY_SERIES]
            return "0", table.scan
        column, kind = quoted(name), table.types[name]
        require(
            kind not in {"FLOAT", "DOUBLE", "DECIMAL"},
            f"{table.name}: the series column {name!r} holds fractions; ids must be text or whole "
            "numbers",
            DataError,
        )
        found = table.rows(
            f"SELECT DISTINCT CAST({column} AS VARCHAR) FROM {table.scan} "
            f"WHERE {column} IS NOT NULL"
        )
        ids = self.facts.ids = [row[0] for row in found]
        if not ids or (self.rename is None and kind in INTEGERS):
            self.whole_number_ids = True
            return column, table.scan
        shown = ids if self.rename is None else [self.rename(name) for name in ids]
        table.con.register(
            "series_names", pa.table({"id": from_text(ids), "shown": from_text(shown)})
        )
        table.run("CREATE TYPE series_id AS ENUM (SELECT shown FROM series_names ORDER BY shown)")
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
        person, one = quoted(self.series.person), quoted(self.series.series)
        most = self.series.max_series_per_person
        pairs = f"(SELECT DISTINCT {one} AS s, CAST({person} AS VARCHAR) AS p FROM {table.scan})"
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
        self.facts.persons = [row[0] for row in table.rows(f"SELECT DISTINCT p FROM {pairs}")]


MOST_FILLED = 10
"""Gaps may make a table this many times longer; past that the times are more likely wrong."""


class TimeGrid:
    """Lays rows out on the time grid: drops duplicates, fills gaps, numbers the steps."""

    def __init__(
        self, series: SeriesTable, clock: Clock | None, facts: TableSummary, problems: InputErrors
    ):
        self.series, self.clock, self.facts, self.problems = series, clock, facts, problems
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
        """The rows of one batch; a series may go on from the batch before."""
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
                self.facts.dropped += int(np.count_nonzero(twice))
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
            self.facts.saw(int(ticks.min()), int(ticks.max()))
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
        self.facts.longest = max(self.facts.longest, int((starts + counts).max()))
        self.open = (ids[-1], int(ticks[-1]), int(starts[-1] + counts[-1]))
        if self.clock is None:
            self.facts.saw(0, int((starts + counts).max()) - 1)
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
                self.step = _usual(lag[~new])
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
            filled <= MOST_FILLED * len(width) + 100_000,
            f"filling the gaps would add {filled} rows to {len(width)}; check the times, or take "
            "readings in order by [[grid=index]]",
            DataError,
        )
        self.facts.filled += filled
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


def _usual(lags: Integers) -> int | None:
    """The most frequent step between two readings of a series."""
    if not len(lags):
        return None
    steps, counts = np.unique(lags[lags > 0], return_counts=True)
    return int(steps[np.argmax(counts)]) if len(steps) else None


def read_calendar(path: Path, clock: Clock | None) -> Integers:
    """The first column of a file, as rising ticks."""
    if clock is None:
        raise DataError("a calendar grid needs a time column")
    with open_table(path) as table:
        name = next(iter(table.types))
        own = Clock.of([name], table)
        require(
            own.kind == clock.kind,
            f"{path}: the calendar holds {own.kind} times, the table {clock.kind} times",
            DataError,
        )
        query = f"SELECT DISTINCT {own.expression} AS t FROM {table.scan} ORDER BY t"
        parts = [own.ticks(batch.column(0)) for batch in table.batches(query)]
    return np.concatenate(parts)


def describe_times(facts: TableSummary) -> str:
    """The grid in words."""
    if facts.clock == "index":
        return "readings in order"
    return "no fixed step" if facts.step is None else describe_step(facts.clock, facts.step)
