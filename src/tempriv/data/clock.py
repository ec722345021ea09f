"""Times as whole ticks: plain integers, days for dates, microseconds for datetimes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_numpy, to_numpy
from tempriv.data.duckdb import INTEGERS, Table, quoted
from tempriv.errors import DataError, require

Integers = npt.NDArray[np.int64]

SECOND = 1_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
UNIT_MICROSECONDS = {"us": 1, "ms": 1000, "s": SECOND, "min": 60 * SECOND, "h": HOUR, "d": DAY}

Kind = Literal["integer", "date", "datetime"]


@dataclass(frozen=True)
class Clock:
    """How a table tells time: one column, or a date with an hour or a time of day beside it."""

    names: tuple[str, ...]
    kind: Kind
    expression: str
    domain: str

    @classmethod
    def of(cls, names: Sequence[str], table: Table) -> Clock:
        """The clock of the time columns ``names`` of a ``table``; other text is refused."""
        table.require_columns(names)
        require(len(names) <= 2, f"time={'+'.join(names)}: at most a date and a time of day")
        types = [table.types[name] for name in names]
        columns = [quoted(name) for name in names]
        if len(names) == 2:
            require(
                types[0] == "DATE" and (types[1] in INTEGERS or types[1] == "TIME"),
                f"{table.name}: time {'+'.join(names)} must be a date and an hour (0 to 23) or a "
                f"time of day, not {types[0].lower()} and {types[1].lower()}",
                DataError,
            )
            clock_part = columns[1] if types[1] == "TIME" else f"to_hours({columns[1]})"
            form = "date+time" if types[1] == "TIME" else "date+hour"
            return cls(tuple(names), "datetime", f"{columns[0]} + {clock_part}", form)
        kind = types[0]
        if kind in INTEGERS:
            return cls(tuple(names), "integer", f"CAST({columns[0]} AS BIGINT)", "integer")
        if kind == "DATE":
            return cls(tuple(names), "date", columns[0], "date")
        if kind == "TIMESTAMP":
            return cls(tuple(names), "datetime", columns[0], "datetime")
        if kind == "TIMESTAMP WITH TIME ZONE":
            return cls(tuple(names), "datetime", f"epoch_us({columns[0]})", "datetime UTC")
        if kind.startswith("TIMESTAMP"):
            return cls(tuple(names), "datetime", f"CAST({columns[0]} AS TIMESTAMP)", "datetime")
        raise DataError(
            f"{table.name}: time column {names[0]!r} holds {kind.lower()}; times must be whole "
            "numbers, dates such as 2026-01-31, or datetimes such as 2026-01-31 13:00:00"
        )

    @property
    def name(self) -> str:
        """Tells times that can be compared from times that cannot: its form and its columns."""
        zone = " UTC" if self.domain.endswith("UTC") else ""
        return f"{self.kind}{zone} {'+'.join(self.names)}"

    def ticks(self, column: Any) -> Integers:
        """An Arrow column of this clock's expression as integers."""
        layout = np.int32 if pa.types.is_date32(column.type) else np.int64
        return to_numpy(column, layout).astype(np.int64)

    def columns(self, ticks: Integers) -> list[tuple[str, Any]]:
        """The time columns of the output for these ``ticks``, in the form of the input."""
        first = self.names[0]
        if self.domain == "integer":
            return [(first, from_numpy(ticks, pa.int64()))]
        if self.domain == "date":
            return [(first, from_numpy(ticks.astype(np.int32), pa.date32()))]
        if self.domain.startswith("datetime"):
            zone = "UTC" if self.domain.endswith("UTC") else None
            return [(first, from_numpy(ticks, pa.timestamp("us", zone)))]
        days = from_numpy((ticks // DAY).astype(np.int32), pa.date32())
        if self.domain == "date+hour":
            return [(first, days), (self.names[1], from_numpy(ticks % DAY // HOUR, pa.int64()))]
        return [(first, days), (self.names[1], from_numpy(ticks % DAY, pa.time64("us")))]

    def parse_step(self, text: str) -> int:
        """The ticks of a step given as ``text``: 15min, 1h, 1d, or a plain number."""
        match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
        unit = match[2] if match else ""
        known = {"integer": [""], "date": ["d"], "datetime": list(UNIT_MICROSECONDS)}[self.kind]
        require(
            match is not None and int(match[1]) > 0 and unit in known,
            f"step={text!r}: must be a whole number"
            + (f" with one of {', '.join(known)}, such as 1{known[-1]}" if known != [""] else ""),
        )
        assert match is not None
        return int(match[1]) * (UNIT_MICROSECONDS[unit] if self.kind == "datetime" else 1)


def describe_step(kind: str, step: int) -> str:
    """A ``step`` of a ``kind`` of clock, for people.

    >>> describe_step("datetime", HOUR), describe_step("date", 7), describe_step("integer", 5)
    ('1 hour', '7 days', '5 time units')
    """
    if kind == "datetime":
        for name, length in (
            ("day", DAY),
            ("hour", HOUR),
            ("minute", 60 * SECOND),
            ("second", SECOND),
            ("microsecond", 1),
        ):
            if step % length == 0:
                step, unit = step // length, name
                break
    else:
        unit = "day" if kind == "date" else "time unit"
    return f"{step} {unit}{'' if step == 1 else 's'}"


def describe_tick(kind: str, tick: int) -> str:
    """The moment of a ``tick`` of a ``kind`` of clock, for people."""
    kind = kind.split(" ")[0]
    if kind == "date":
        return str(np.datetime64(tick, "D"))
    if kind == "datetime":
        return str(np.datetime64(tick, "us").astype("datetime64[s]")).replace("T", " ")
    return str(tick)
