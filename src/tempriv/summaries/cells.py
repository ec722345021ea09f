"""The cells that people's readings are averaged in: hours, weekdays, months, or declared steps.

A record is what is protected: a person, a person's day, or one reading. Where it lies within one
of several disjoint parts of time (a day lies in one weekday), these are strata that are measured
apart, at no cost to each other, since a record is in one of them; other cells are within a record.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tempriv.data.aggregate import Grid
from tempriv.data.clock import DAY, Clock
from tempriv.errors import require

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
HOURS = tuple(str(hour) for hour in range(24))
BY = ("hour-of-day", "weekday", "hour-of-week", "month", "step")
PROTECT = ("person", "day", "reading")


@dataclass(frozen=True)
class Axis:
    """Numbered parts of time, with a name and a SQL expression for the number of a moment."""

    names: tuple[str, ...]
    expression: str


NONE = Axis(("",), "0")


@dataclass(frozen=True)
class Cells:
    """How time is divided, for a unit that is protected.

    Parameters:
        strata: parts of time that a record lies in one of.
        inner: cells within a record.
        period: the SQL expression that tells a person's records apart by time.
    """

    strata: Axis
    inner: Axis
    period: str

    def name(self, stratum: int, cell: int) -> str:
        """What a cell is called."""
        return " ".join(
            part for part in (self.strata.names[stratum], self.inner.names[cell]) if part
        )


def moment_of(clock: Clock) -> str:
    """A row's time as a timestamp, a date or a whole number, in SQL."""
    if clock.domain == "datetime UTC":
        return f"make_timestamp({clock.expression})"
    return clock.expression


def ticks_of(clock: Clock, moment: str) -> str:
    """The ticks of a ``moment``, in SQL."""
    if clock.kind == "integer":
        return moment
    return _day(moment) if clock.kind == "date" else f"epoch_us({moment})"


def _day(moment: str) -> str:
    """The number of the day since 1970-01-01, in SQL."""
    return f"(CAST({moment} AS DATE) - DATE '1970-01-01')"


def cells_of(by: str, protect: str, clock: Clock, grid: Grid | None, moment: str) -> Cells:
    """The cells of a summary.

    Parameters:
        by: one of ``BY``.
        protect: one of ``PROTECT``.
        clock: of the table.
        grid: the declared steps, for ``step``.
        moment: the SQL expression of a row's time.
    """
    require(
        by == "step" or clock.kind != "integer",
        f"by={by}: needs dates or datetimes; whole numbers as times have no hours and weekdays, so "
        "take by=step with start, end and every",
    )
    require(
        clock.kind == "datetime" or by not in ("hour-of-day", "hour-of-week"),
        f"by={by}: needs times of day, and the times are dates",
    )
    require(
        protect != "day" or clock.kind != "integer",
        "protect=day: needs dates or datetimes; whole numbers as times have no days",
    )
    period = _day(moment) if protect == "day" else "0"
    if by == "step":
        axes = _step(protect, clock, grid, ticks_of(clock, moment))
    else:
        axes = _calendar(by, moment)
    if protect == "person":
        return Cells(NONE, _product(*axes), period)
    if protect == "day":
        return Cells(*axes, period)
    return Cells(_product(*axes), NONE, period)


def _calendar(by: str, moment: str) -> tuple[Axis, Axis]:
    """What a day decides, and what the time of day decides."""
    hour = Axis(HOURS, f"extract('hour' FROM {moment})")
    weekday = Axis(WEEKDAYS, f"isodow({moment}) - 1")
    month = Axis(MONTHS, f"extract('month' FROM {moment}) - 1")
    return {
        "hour-of-day": (NONE, hour),
        "weekday": (weekday, NONE),
        "hour-of-week": (weekday, hour),
        "month": (month, NONE),
    }[by]


def _step(protect: str, clock: Clock, grid: Grid | None, ticks: str) -> tuple[Axis, Axis]:
    """Days and the steps of a day; or all steps, where days do not matter or hold no steps."""
    require(
        grid is not None,
        "by=step: needs start, end and every; the first and last row would give away when somebody "
        "was there",
    )
    assert grid is not None
    names = tuple(_moment(clock, grid.start + i * grid.every) for i in range(grid.count))
    number = f"({ticks} - {grid.start}) // {grid.every}"
    length = 1 if clock.kind == "date" else DAY
    if protect != "day" or grid.every % length == 0:
        require(
            protect != "day" or grid.start % length == 0,
            "start: must be the beginning of a day with protect=day",
        )
        return Axis(names, number), NONE
    require(
        length % grid.every == 0
        and grid.start % length == 0
        and grid.count * grid.every % length == 0,
        "every: must divide a day into whole steps, or be whole days, from the beginning of a day "
        "to that of another, with protect=day",
    )
    each = length // grid.every
    days = tuple(name.split(" ")[0] for name in names[::each])
    return (
        Axis(days, f"({ticks} - {grid.start}) // {length}"),
        Axis(tuple(_time_of_day(i * grid.every) for i in range(each)), f"({number}) % {each}"),
    )


def _product(first: Axis, second: Axis) -> Axis:
    """Every part of one with every part of the other."""
    if len(first.names) == 1 or len(second.names) == 1:
        return second if len(first.names) == 1 else first
    names = tuple(f"{a} {b}" for a in first.names for b in second.names)
    return Axis(names, f"({first.expression}) * {len(second.names)} + {second.expression}")


def _moment(clock: Clock, tick: int) -> str:
    if clock.kind == "integer":
        return str(tick)
    length = (
        datetime.timedelta(days=1) if clock.kind == "date" else datetime.timedelta(microseconds=1)
    )
    when = datetime.datetime(1970, 1, 1) + tick * length
    return when.date().isoformat() if clock.kind == "date" else when.isoformat(sep=" ")


def _time_of_day(microseconds: int) -> str:
    return (datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=microseconds)).strftime(
        "%H:%M" if microseconds % (60 * 10**6) == 0 else "%H:%M:%S"
    )


def bins_of(edges: Sequence[float], bounds: tuple[float, float]) -> tuple[str, ...]:
    """The names of the bins between ``edges``, within ``bounds``.

    >>> bins_of((1.0, 2.5), (0, 5))
    ('0 to 1', '1 to 2.5', '2.5 to 5')
    """
    ends = [bounds[0], *edges, bounds[1]]
    return tuple(f"{a:g} to {b:g}" for a, b in itertools.pairwise(ends))
