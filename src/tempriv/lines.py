"""Readings as text lines, CSV or JSON: parsed one way and written back the same way.

Times and ids go out as they came in. A value that is no number counts as missing, so that a stream
never stops over a value: stopping would tell.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.releases import csv_line
from tempriv.series import ONLY_SERIES, STATUS, STATUSES, Categories, require_columns


class Tally(Protocol):
    """Counts lines that could not be read."""

    unreadable: int


@dataclass(frozen=True)
class Reading:
    """One line: whose, when (as a tick and as it was written), and what."""

    series: str
    tick: int
    shown: tuple[Any, ...]
    values: tuple[float, ...]
    missing: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"Reading(series={self.series!r})"

    def masked(self) -> Any:
        return np.ma.array([self.values], mask=[self.missing])


def tick_of(parts: Sequence[Any]) -> int:
    """A time as a whole number: an integer, a date, a datetime, or a date and an hour.

    >>> tick_of(["1970-01-02"]), tick_of(["1970-01-01 00:00:01"]), tick_of(["1970-01-01", "1"])
    (1, 1000000, 3600000000)
    """
    first = parts[0]
    if len(parts) == 2:
        day = datetime.date.fromisoformat(str(first))
        hour = str(parts[1])
        if ":" in hour:
            moment = datetime.datetime.combine(day, datetime.time.fromisoformat(hour))
        else:
            moment = datetime.datetime.combine(day, datetime.time(int(hour)))
        return _microseconds(moment)
    if isinstance(first, int) and not isinstance(first, bool):
        return first
    text = str(first).strip()
    if text.lstrip("+-").isdigit():
        return int(text)
    if len(text) == 10:
        return (datetime.date.fromisoformat(text) - datetime.date(1970, 1, 1)).days
    return _microseconds(datetime.datetime.fromisoformat(text))


def _microseconds(moment: datetime.datetime) -> int:
    zone = datetime.UTC if moment.tzinfo else None
    return (moment - datetime.datetime(1970, 1, 1, tzinfo=zone)) // datetime.timedelta(
        microseconds=1
    )


class Lines:
    """The columns of a stream and how its lines are written."""

    def __init__(
        self,
        form: Literal["csv", "jsonl"],
        values: Sequence[str],
        time: str | None,
        series: str | None,
        categories: Categories | None = None,
        has_status: bool = False,
    ):
        self.form = form
        self.values = list(values)
        self.time = [] if time is None else time.split("+")
        self.series = series
        require(
            not has_status or STATUS not in [series, *self.time, *self.values],
            f"column {STATUS!r}: is written by this mechanism; choose another name for yours",
        )
        self.categories = categories
        self.has_status = has_status
        self._columns: list[str] | None = None
        self._arrivals: dict[str, int] = {}

    def layout(self) -> dict[str, Any]:
        """What a saved state must agree with."""
        return {"form": self.form, "values": self.values, "time": self.time, "series": self.series}

    @property
    def shown(self) -> list[str]:
        return ([self.series] if self.series else []) + self.time

    def header(self) -> bytes:
        if self.form == "jsonl":
            return b""
        return csv_line([*self.shown, *self.written])

    @property
    def written(self) -> list[str]:
        return [*self.values, STATUS] if self.has_status else list(self.values)

    def parse(self, text: bytes, tally: Tally) -> Iterator[Reading]:
        """The readings of some whole lines; lines that are none are counted."""
        for record in self._records(text.decode("utf-8", errors="replace"), tally):
            try:
                yield self._reading(record)
            except (ValueError, TypeError, KeyError, OverflowError):
                tally.unreadable += 1

    def _records(self, text: str, tally: Tally) -> Iterator[dict[str, Any]]:
        if self.form == "jsonl":
            for line in filter(str.strip, text.split("\n")):
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError):
                    record = None
                if isinstance(record, dict):
                    yield record
                else:
                    tally.unreadable += 1
            return
        for line in filter(str.strip, text.replace("\r", "").split("\n")):
            # each line by itself: a quote left open must not swallow the lines after it
            try:
                row = next(csv.reader([line], strict=True))
            except csv.Error:
                tally.unreadable += 1
                continue
            if self._columns is None:
                self._columns = [name.strip().lstrip("\ufeff") for name in row]
                require_columns(self._columns, [*self.shown, *self.values], "standard input")
            elif len(row) == len(self._columns):
                yield dict(zip(self._columns, row, strict=True))
            else:
                tally.unreadable += 1

    def _reading(self, record: dict[str, Any]) -> Reading:
        series = ONLY_SERIES if self.series is None else str(record[self.series])
        if self.series is not None and record[self.series] in (None, ""):
            raise ValueError
        if self.time:
            tick = tick_of([record[name] for name in self.time])
        else:
            tick = self._arrivals[series] = self._arrivals.get(series, -1) + 1
        numbers = [self._number(i, record.get(name)) for i, name in enumerate(self.values)]
        return Reading(
            series,
            tick,
            tuple(record[name] for name in self.shown),
            tuple(0.0 if math.isnan(number) else number for number in numbers),
            tuple(math.isnan(number) for number in numbers),
        )

    def _number(self, column: int, value: Any) -> float:
        """NaN stands for missing; an infinite value is as large as can be, to be clipped."""
        if value is None or value == "":
            return math.nan
        if self.categories is not None:
            names = self.categories[column]
            return float(names.index(str(value))) if str(value) in names else -1.0
        try:
            number = float(value)
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        except (ValueError, TypeError):
            return math.nan
        return max(-1e300, min(1e300, number))

    def format(
        self,
        readings: Sequence[Reading],
        values: npt.NDArray[np.float64],
        missing: npt.NDArray[np.bool_],
        status: npt.NDArray[np.int8] | None,
    ) -> bytes:
        lines = []
        statuses: list[tuple[str, ...]] = [()] * len(readings)
        if status is not None:
            statuses = [(STATUSES[one],) for one in status.tolist()]
        rows = zip(readings, values.tolist(), missing.tolist(), statuses, strict=True)
        for reading, row, gone, said in rows:
            shown = [
                None if m else self._show(i, v)
                for i, (v, m) in enumerate(zip(row, gone, strict=True))
            ]
            shown += said
            if self.form == "jsonl":
                names = [*self.shown, *self.written]
                record = dict(zip(names, [*reading.shown, *shown], strict=True))
                lines.append(json.dumps(record).encode() + b"\n")
            else:
                lines.append(csv_line([*reading.shown, *shown]))
        return b"".join(lines)

    def _show(self, column: int, value: float) -> Any:
        return value if self.categories is None else self.categories[column][int(value)]
