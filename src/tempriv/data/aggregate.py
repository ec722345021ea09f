"""From a table of events to the series of counts that is released of them (the central model).

What one person adds is bounded as declared: of each person the first events in time are kept, so
many in a time step and so many in all. Which are kept depends on that person's rows alone, so
whoever comes or goes changes the counts by no more than the unit says. Times, categories and
bounds are declared and never taken from the data, which they would give away.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_numpy, to_numpy
from tempriv.data.clock import Clock, describe_step
from tempriv.data.duckdb import NUMBERS, Table, literal, open_table, quoted
from tempriv.data.series import STATUS, Bounds
from tempriv.errors import DataError, require
from tempriv.privacy.units import Contribution, Event, WholeSeries, Window

Integers = npt.NDArray[np.int64]
Moment = str | int | datetime.date

MAX_CELLS = 10**7
MAX_COUNT = 2**31
"""No count is larger, and no sum than that many times the largest value."""

DEFAULT_GRID_STEPS, MAX_GRID_STEPS = 1024, 2**20
"""Grid steps to the largest value of a sum: rounding moves an event by at most a 2048th of it."""

COUNT, TIME = "count", "time"
EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class CountTable:
    """Series of counts, one row for each time step, and what one person can change of them.

    ``table`` is as private as the events. Give ``settings`` to a mechanism: its unit, its bounds
    and its grid.

    Parameters:
        table: the counts as an Arrow table; as private as the events.
        time: its time column.
        columns: its columns of counts.
        step: the length of a time step.
        steps: how many there are.
        unit: what one person can change.
        bounds: the smallest and the largest count of each column.
        grid: what counts are multiples of.
        person: the column of persons that was counted by.
        how: what was done to the events, in sentences.

    >>> visits = pa.table({"who": ["a", "b"], "hour": [0, 2]})
    >>> counted = aggregate(
    ...     visits, person="who", time="hour", every="1", start=0, end=4, max_per_person=1)
    >>> counted.columns, counted.steps, counted.unit.most
    (('count',), 4, 1)
    """

    table: Any = field(repr=False)
    time: str
    columns: tuple[str, ...]
    step: str
    steps: int
    unit: Contribution
    bounds: Bounds
    grid: float
    person: str
    how: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """What a mechanism for these counts needs: its unit, bounds and grid.

        >>> visits = pa.table({"who": ["a", "b"], "hour": [0, 2]})
        >>> counted = aggregate(
        ...     visits, person="who", time="hour", every="1", start=0, end=4, max_per_person=1)
        >>> from tempriv.mechanisms.value.laplace import Laplace
        >>> Laplace(epsilon=1.0, **counted.settings).unit.each
        WholeSeries(length=4)
        """
        return {"unit": self.unit, "bounds": self.bounds, "grid": self.grid}


@dataclass(frozen=True)
class CountCells:
    """What is counted: for each event a whole number, in SQL, and what it means.

    It says which cell the event goes to; or, where values are added up, how many grid steps. An
    event adds between ``low`` and ``high`` to its cell.
    """

    expression: str
    names: tuple[str, ...]
    sentence: str
    wanting: str
    low: float = 0
    high: float = 1
    grid: float = 1
    adds: bool = False

    @property
    def largest(self) -> float:
        """The most that one event can change its cell by."""
        return max(abs(self.low), abs(self.high))

    @property
    def signed(self) -> bool:
        """Whether events can add as well as take away."""
        return self.low < 0 < self.high

    @property
    def bounds(self) -> Bounds:
        """Of any count or sum."""
        pair = (min(self.low, 0) * float(MAX_COUNT), max(self.high, 0) * float(MAX_COUNT))
        return (pair,) * len(self.names)


@dataclass(frozen=True)
class EventLimits:
    """How many events of one person are counted, and for what part of their record that holds."""

    per_person: int | None
    per_step: int | None
    each: Event | Window | None

    def __post_init__(self) -> None:
        for name, limit in (("person", self.per_person), ("step", self.per_step)):
            require(
                limit is None
                or (isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1),
                f"max_per_{name}={limit}: must be a whole number of events >= 1",
            )
        if self.each is None:
            require(
                self.per_person is not None or self.per_step is not None,
                "max_per_person: must be given (or max_per_step), because without a limit one "
                "person could change a count by any number",
            )
            require(
                None in (self.per_person, self.per_step) or self.most_in_a_step <= self._in_all,
                f"max_per_step={self.per_step}: must be at most max_per_person={self.per_person}",
            )
            return
        require(
            isinstance(self.each, (Event, Window)),
            f"each={self.each!r}: must be Event, Window, or None for a person's whole record",
        )
        require(
            self.per_step is not None and self.per_person is None,
            f"each={self.each!r}: must come with max_per_step and without max_per_person; a limit "
            "on the whole record would let events of one step decide which of another are counted",
        )

    @property
    def _in_all(self) -> int:
        return self.per_person or 0

    @property
    def most_in_a_step(self) -> int:
        """The most events of one person that count in a step."""
        return self.per_step or self._in_all

    def unit(self, steps: int, cells: CountCells) -> Contribution:
        """What one person can change of ``cells`` over so many ``steps``."""
        total = None if self.per_person is None else self.per_person * cells.largest
        return Contribution(
            each=WholeSeries(steps) if self.each is None else self.each,
            per_step=self.most_in_a_step * cells.largest,
            total=total,
            signed=cells.signed,
        )


@dataclass(frozen=True)
class Grid:
    """The declared time steps, in ticks of the table's clock."""

    clock: Clock
    start: int
    every: int
    count: int

    @classmethod
    def of(cls, clock: Clock, every: str, start: Moment, end: Moment) -> Grid:
        """Steps of length ``every`` from ``start`` to before ``end``, in ticks of the ``clock``."""
        step = clock.parse_step(every)
        first, last = (moment(clock, name, x) for name, x in (("start", start), ("end", end)))
        require(first < last, f"start={start}, end={end}: the start must be before the end")
        count, rest = divmod(last - first, step)
        require(
            rest == 0,
            f"every={every}: must divide the time from {start} to {end} into whole steps; move "
            "the end, which is the first moment that is no longer counted",
        )
        return cls(clock, first, step, count)

    @property
    def end(self) -> int:
        """The tick after the last step."""
        return self.start + self.every * self.count

    @property
    def expression(self) -> str:
        """The ticks of an event, in SQL."""
        expression = self.clock.expression
        if self.clock.kind == "integer" or self.clock.domain == "datetime UTC":
            return expression
        if self.clock.kind == "date":
            return f"({expression} - DATE '1970-01-01')"
        return f"epoch_us({expression})"

    def column(self) -> tuple[str, Any]:
        """The time column of the counts: the start of each step."""
        ticks = self.start + self.every * np.arange(self.count, dtype=np.int64)
        if len(self.clock.names) == 1:
            (column,) = self.clock.columns(ticks)
            return column
        return TIME, from_numpy(ticks, pa.timestamp("us"))


def moment(clock: Clock, name: str, value: Moment) -> int:
    """The tick of a ``clock`` at the moment ``value``, given for the argument ``name``."""
    problem = f"{name}={value}: must be "
    if clock.kind == "integer":
        whole = isinstance(value, int) or (
            isinstance(value, str) and value.strip().lstrip("+-").isdigit()
        )
        require(whole and not isinstance(value, bool), problem + "a whole number, as the times are")
        return int(value)  # type: ignore[arg-type]
    example = "2026-01-31" + ("" if clock.kind == "date" else " or 2026-01-31 13:00")
    try:
        parsed = datetime.datetime.fromisoformat(str(value))
    except ValueError:
        parsed = None
    require(parsed is not None, problem + f"a time such as {example}")
    assert parsed is not None
    if parsed.tzinfo is not None:
        require(
            clock.domain == "datetime UTC",
            problem + "without a time zone: the times of the table have none",
        )
        parsed = parsed.astimezone(datetime.UTC).replace(tzinfo=None)
    since = parsed - EPOCH
    if clock.kind == "date":
        require(since % datetime.timedelta(days=1) == datetime.timedelta(0), problem + "a date")
        return since.days
    return since // datetime.timedelta(microseconds=1)


def aggregate(
    data: Any,
    *,
    person: str,
    time: str,
    every: str,
    start: Moment | None = None,
    end: Moment | None = None,
    sum: str | None = None,
    bounds: tuple[float, float] | None = None,
    resolution: float | None = None,
    by: str | None = None,
    categories: Sequence[str] | None = None,
    max_per_person: int | None = None,
    max_per_step: int | None = None,
    each: Event | Window | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    dry: bool = False,
) -> CountTable:
    """Count events per time step (or add up a column, or count by category), bounded per person.

    Of each person the first ``max_per_step`` events of a step are kept, and of these the first
    ``max_per_person`` in all. By default a person's whole record is protected. ``each=Event()`` or
    ``Window(w)`` protects any one step of it or any w steps in a row; only ``max_per_step`` counts
    then, since a limit on the whole would tie the steps to each other.

    Parameters:
        data: a CSV or Parquet file, or an Arrow, polars or pandas table, with a row for each
            event.
        person: the column that says whose event it is.
        time: the time column, or two as ``date+hour``.
        every: the length of a time step, such as ``1h``.
        start: when the first step begins.
        end: when the last step ends; events before the start or from the end on are left out.
        sum: a column to add up instead of counting events.
        bounds: the range that values of ``sum`` are moved into.
        resolution: the grid that values of ``sum`` are rounded to, a power of two.
        by: a column whose ``categories`` are counted apart.
        categories: the names to count in ``by``.
        max_per_person: the most events of one person that count.
        max_per_step: the most events of one person that count in one step.
        each: the part of a record that is protected; all of it by default.
        missing: what to do about events without a person, time or value: ``refuse`` or
            ``drop``.
        dry: look at no event, and give all but the counts, which are zero.

    Returns:
        The counts, and what a mechanism needs to know of them.

    Raises:
        UsageError: settings that do not fit together. DataError: events that are incomplete.

    Guarantees:
        - leaving out what the unit covers changes the counts by no more than it says;
        - the order of rows, and rows of others, do not matter to whose events are kept.

    >>> visits = pa.table({"who": ["a", "a", "b"], "hour": [0, 0, 2]})
    >>> counted = aggregate(
    ...     visits, person="who", time="hour", every="1", start=0, end=4, max_per_person=1)
    >>> counted.table.column("count").to_pylist(), counted.unit.most
    ([1, 0, 1, 0], 1)
    """
    require(
        start is not None and end is not None,
        "start and end: must be declared, because the first and last event of the data would give "
        "away when somebody was there",
    )
    assert start is not None and end is not None
    require(missing in ("refuse", "drop"), f"missing={missing!r}: must be one of refuse, drop")
    require(sum is None or by is None, "sum and by: must be one of them, or none for plain counts")
    for name, value, goes_with, companion in (
        ("bounds", bounds, "sum", sum),
        ("resolution", resolution, "sum", sum),
        ("categories", categories, "by", by),
    ):
        require(
            value is None or companion is not None,
            f"{name}={value}: must be left out without {goes_with}",
        )
    limits = EventLimits(max_per_person, max_per_step, each)
    texts = [by] if by is not None and by not in time.split("+") else []
    with open_table(_source(data), texts) as table:
        table.require_columns([name for name in (person, sum, by) if name is not None])
        kind = table.types[person]
        require(
            kind not in {"FLOAT", "DOUBLE", "DECIMAL"},
            f"{table.name}: the person column {person!r} holds fractions; ids must be text or "
            "whole numbers",
            DataError,
        )
        grid = Grid.of(Clock.of(time.split("+"), table), every, start, end)
        cells = _cells(table, sum, bounds, resolution, by, categories)
        require(
            grid.count * len(cells.names) <= MAX_CELLS,
            f"every={every}: must be longer, this makes {grid.count * len(cells.names):,} cells",
        )
        if missing == "refuse" and not dry:
            _refuse_missing(table, person, grid, cells)
        query = None if dry else _query(table, person, grid, cells, limits)
        counts = _counts(table, query, grid, cells)
    when, column = grid.column()
    taken = {when, STATUS}
    for name in cells.names:
        require(name not in taken, f"column {name!r}: choose another name, this one is taken")
        taken.add(name)
    values = [
        from_numpy(column_counts * cells.grid, pa.float64())
        if cells.adds
        else from_numpy(column_counts, pa.int64())
        for column_counts in counts
    ]
    return CountTable(
        table=pa.Table.from_arrays([column, *values], names=[when, *cells.names]),
        time=when,
        columns=cells.names,
        step=every,
        steps=grid.count,
        unit=limits.unit(grid.count, cells),
        bounds=cells.bounds,
        grid=cells.grid,
        person=person,
        how=_how(person, grid, cells, limits, missing == "drop", (start, end)),
    )


def _source(data: Any) -> Any:
    if isinstance(data, (str, Path)):
        return Path(data)
    require(
        isinstance(data, pa.Table) or hasattr(data, "__arrow_c_stream__"),
        "data: must be a polars, pandas or Arrow table, or the path of a CSV or Parquet file",
    )
    return data if isinstance(data, pa.Table) else pa.table(data)


def _cells(
    table: Table,
    sum: str | None,
    bounds: tuple[float, float] | None,
    resolution: float | None,
    by: str | None,
    categories: Sequence[str] | None,
) -> CountCells:
    if sum is not None:
        return _sums(table, sum, bounds, resolution)
    if by is None:
        return CountCells("0", (COUNT,), "events were counted", "")
    names = () if categories is None else tuple(str(name) for name in categories)
    require(
        len(names) > 0 and not isinstance(categories, str),
        f"categories of {by!r}: must be declared, as a list of names; those that occur in the data "
        "would give away that somebody was there",
    )
    require(len(set(names)) == len(names), f"categories={list(names)}: name each only once")
    listed = ", ".join(literal(name) for name in names)
    code = f"list_position([{listed}], CAST({quoted(by)} AS VARCHAR)) - 1"
    return CountCells(
        # a name that is not listed has no position, in some versions the position 0
        f"nullif({code}, -1)",
        names,
        f"events were counted by {by!r}, those of its listed categories",
        f"without one of the categories in {by!r}: name all categories",
    )


def _sums(
    table: Table, name: str, bounds: tuple[float, float] | None, resolution: float | None
) -> CountCells:
    kind = table.types[name]
    require(
        kind in NUMBERS,
        f"{table.name}: column {name!r} holds {kind.lower()}, not numbers",
        DataError,
    )
    require(
        bounds is not None
        and len(bounds) == 2
        and all(isinstance(edge, (int, float)) and abs(edge) < 1e150 for edge in bounds)
        and bounds[0] < bounds[1],
        f"bounds={bounds}: must be declared for a sum, the smallest and the largest value of one "
        "event, from what you know of them and not from the data",
    )
    assert bounds is not None
    largest = max(abs(edge) for edge in bounds)
    grid = math.ldexp(1.0, math.frexp(largest / DEFAULT_GRID_STEPS)[1] - 1)
    if resolution is not None:
        grid = resolution
        require(
            isinstance(grid, (int, float)) and 0 < grid < math.inf and math.frexp(grid)[0] == 0.5,
            f"resolution={resolution}: must be a power of two, such as 0.25",
        )
    low, high = (round(edge / grid) for edge in bounds)
    require(
        low < high and largest / grid <= MAX_GRID_STEPS,
        f"resolution={resolution}: must be {'finer' if low == high else 'coarser'} for the bounds "
        f"{bounds[0]:g} {bounds[1]:g}",
    )
    value = f"CAST({quoted(name)} AS DOUBLE)"
    clipped = f"greatest(least({value}, {_number(high * grid)}), {_number(low * grid)})"
    return CountCells(
        # least and greatest pass over nulls, so a missing value would count as a bound
        f"CASE WHEN {value} IS NULL OR isnan({value}) THEN NULL "
        f"ELSE CAST(round({clipped} / {_number(grid)}) AS BIGINT) END",
        (name,),
        f"values of {name!r} were added up, each moved into {low * grid:g} to {high * grid:g} and "
        f"rounded to a multiple of {grid:g}",
        f"without a value in {name!r}",
        low * grid,
        high * grid,
        grid,
        True,
    )


def _number(value: float) -> str:
    """A number in SQL, to the last bit."""
    return f"CAST('{value!r}' AS DOUBLE)"


def _refuse_missing(table: Table, person: str, grid: Grid, cells: CountCells) -> None:
    wanting = {
        f"{quoted(person)} IS NULL": f"without a person in {person!r}",
        f"{grid.expression} IS NULL": "without a time",
    }
    if cells.wanting:
        wanting[f"({cells.expression}) IS NULL"] = cells.wanting
    counts = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in wanting)
    (numbers,) = table.rows(f"SELECT {counts} FROM {table.scan}")
    problems = [
        f"{n} row{'s'[: n != 1]} {what}; leave such rows out by [[missing=drop]]"
        for n, what in zip(numbers, wanting.values(), strict=True)
        if n
    ]
    require(not problems, "\n".join(problems), DataError)


def _query(table: Table, person: str, grid: Grid, cells: CountCells, limits: EventLimits) -> str:
    """Events that tie in time and in what they add are alike, so no order of rows is needed."""
    step = f"(t - {grid.start}) // {grid.every}"
    kept = f"""SELECT {quoted(person)} AS p, {grid.expression} AS t, {cells.expression} AS v
        FROM {table.scan}"""
    kept = f"""SELECT p, t, {step} AS b, v FROM ({kept})
        WHERE p IS NOT NULL AND t >= {grid.start} AND t < {grid.end} AND v IS NOT NULL"""
    if limits.per_step is not None:
        kept = _first(kept, "p, b", limits.per_step)
    if limits.per_person is not None:
        kept = _first(kept, "p", limits.per_person)
    cell, added, group = ("0", "sum(v)", "b") if cells.adds else ("v", "count(*)", "b, v")
    most = MAX_COUNT * round(cells.largest / cells.grid)
    columns = ("b", cell, f"least(greatest({added}, -{most}), {most})")
    numbers = ", ".join(f"CAST({column} AS BIGINT)" for column in columns)
    return f"SELECT {numbers} FROM ({kept}) GROUP BY {group}"


def _first(rows: str, group: str, most: int) -> str:
    return f"""SELECT * FROM ({rows})
        QUALIFY row_number() OVER (PARTITION BY {group} ORDER BY t, v) <= {most}"""


def _counts(table: Table, query: str | None, grid: Grid, cells: CountCells) -> Integers:
    """A row of whole numbers for each cell; steps in which nothing happened have 0."""
    counts = np.zeros((len(cells.names), grid.count), dtype=np.int64)
    for batch in () if query is None else table.batches(query):
        step, cell, number = (to_numpy(batch.column(i), np.int64) for i in range(3))
        counts[cell, step] = number
    return counts


def _how(
    person: str,
    grid: Grid,
    cells: CountCells,
    limits: EventLimits,
    drops: bool,
    span: tuple[Any, Any],
) -> tuple[str, ...]:
    """What was done, for the description of a release; nothing of it depends on the data."""
    in_step = None if limits.per_step is None else f"{limits.per_step} in a time step"
    in_all = None if limits.per_person is None else f"{limits.per_person} in all"
    width = describe_step(grid.clock.kind, grid.every)
    sentences = [
        f"{cells.sentence}, in time steps of {width} from {span[0]} up to {span[1]}; events at "
        "other times were left out",
        f"of each person ({person!r}) the first events in time were counted, at most "
        + ", ".join(limit for limit in (in_step, in_all) if limit),
    ]
    if drops:
        sentences.append("rows without a person, a time or what is counted, if any, were left out")
    return tuple(sentences)
