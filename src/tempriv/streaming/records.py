"""Readings as text lines, CSV or JSON: parsed one way and written back the same way.

Times and ids go out as they came in. A value that is no number counts as missing, so that a stream
never stops over a value: stopping would tell. Where values are only moved in time they are not even
read: whatever stands in a cell, or is written as JSON, goes out as it came.
"""

from __future__ import annotations

import csv
import datetime
import itertools
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_numpy, take_text
from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.series import ONLY_SERIES, STATUS, STATUSES, Categories, Flags, require_columns
from tempriv.errors import DataError, require
from tempriv.streaming._kernels import find_record_ends

TRUTH_WORDS = {
    "true": 1,
    "false": 0,
    "yes": 1,
    "no": 0,
}  # what a table takes for marks beside numbers


LARGEST_TICK = 1 << 61  # times beyond are no times

# what a line that is no reading raises
UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, RecursionError, csv.Error)

OTHER_HEADER = (
    "a line after the first names other columns, or the same in another order: values under it "
    "would be released as times or ids. Give every input one header"
)


@dataclass(frozen=True)
class Record:
    """One line: whose, when (as a tick and as it was written), and what."""

    series: str
    tick: int
    shown: tuple[str, ...]
    values: tuple[Any, ...]
    missing: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"Record(series={self.series!r})"


def tick_of(parts: Sequence[Any]) -> int:
    """A time in one or two ``parts`` as a whole number: an integer, a date, a datetime, or a date
    and an hour.

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


CELL = re.compile(r'("(?:[^"]|"")*"|[^,"][^,]*|),')
SPACE = re.compile(r"[ \t\n\r]*")
DECODER = json.JSONDecoder()


def cells_of(line: str) -> list[str | None]:
    """The cells of a ``line`` of CSV; one without anything, not even quotes, is None.

    >>> cells_of('a,,"","b ""c"", d"')
    ['a', None, '', 'b "c", d']
    """
    cells = next(csv.reader([line], strict=True))
    if "" not in cells:
        return [*cells]
    written = CELL.findall(line + ",")
    return [cell or (cell if raw else None) for cell, raw in zip(cells, written, strict=True)]


def members_of(line: str) -> dict[str, tuple[Any, str]]:
    """The members of the JSON object in a ``line``, each with the letters that it is written with.

    >>> members_of('{"t": 1, "v": 1.50, "w": [ 1,"\\\\u00e9"]}')
    {'t': (1, '1'), 'v': (1.5, '1.50'), 'w': ([1, 'é'], '[ 1,"\\\\u00e9"]')}
    """
    if not isinstance(json.loads(line), dict):
        raise ValueError

    def past_space(at: int) -> int:
        """The first place from ``at`` on that is no space."""
        spaces = SPACE.match(line, at)
        return at if spaces is None else spaces.end()

    members: dict[str, tuple[Any, str]] = {}
    at = past_space(past_space(0) + 1)  # after the brace
    while line[at] != "}":
        name, at = DECODER.raw_decode(line, at)
        at = past_space(past_space(at) + 1)  # after the colon
        value, end = DECODER.raw_decode(line, at)
        members[name] = (value, line[at:end])
        at = past_space(end)
        at = past_space(at + 1) if line[at] == "," else at
    return members


def split_records(text: bytes) -> list[bytes]:
    """The records of CSV in a ``text``, the last of which may be open; quotes hold line breaks.

    >>> split_records(b'a,1\\n"b\\nc",2\\n')
    [b'a,1\\n', b'"b\\nc",2\\n']
    """
    ends = _record_ends(text)
    edges = [0, *ends.tolist(), len(text)]
    return [text[first:last] for first, last in itertools.pairwise(edges) if first < last]


def _record_ends(text: bytes | bytearray) -> npt.NDArray[np.int64]:
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = np.empty(text.count(b"\n"), dtype=np.int64)
    return ends[: find_record_ends(letters, ends)]


class RecordFormat:
    """The columns of a stream and how its lines are written.

    With ``exact`` values are carried as they are written. If ``marked``, the last of the values is
    0 or 1 in every line and is not written.
    """

    def __init__(
        self,
        form: Literal["csv", "jsonl"],
        values: Sequence[str],
        time: str | None,
        series: str | None,
        categories: Categories | None = None,
        has_status: bool = False,
        marked: bool = False,
    ):
        self.syntax = form
        self.values = list(values)
        self.time = [] if time is None else time.split("+")
        self.series = series
        require(
            not has_status or STATUS not in [series, *self.time, *self.values],
            f"column {STATUS!r}: is written by this mechanism; choose another name for yours",
        )
        self.categories = categories
        self.has_status = has_status
        self.marked = marked
        self.exact = False
        self.columns: list[str] | None = None
        self._arrivals: dict[str, int] = {}

    def layout(self) -> dict[str, Any]:
        """What a saved state must agree with."""
        return {
            "form": self.syntax,
            "values": self.values,
            "time": self.time,
            "series": self.series,
        }

    @property
    def shown(self) -> list[str]:
        return ([self.series] if self.series else []) + self.time

    def header(self) -> bytes:
        if self.syntax == "jsonl":
            return b""
        return csv_line([*self.shown, *self.written])

    @property
    def written(self) -> list[str]:
        columns = self.values[:-1] if self.marked else self.values
        return [*columns, STATUS] if self.has_status else list(columns)

    def whole_records(self, text: bytes | bytearray) -> int:
        """How many bytes of a ``text`` are whole records; the rest waits for what comes."""
        if self.syntax == "csv" and b'"' in text:
            ends = _record_ends(text)
            return int(ends[-1]) if len(ends) else 0
        return text.rfind(b"\n") + 1

    def names_columns(self, cells: Sequence[str | None]) -> bool:
        """Whether the ``cells`` of a line name the columns that are read."""
        names = {(cell or "").strip().lstrip("\ufeff") for cell in cells}
        return names.issuperset([*self.shown, *self.values])

    def parse(self, text: bytes, unreadable: list[str]) -> Iterator[Record]:
        """The readings of whole records of ``text``; what is none goes to ``unreadable``.

        Parameters:
            text: that begins with a record.
            unreadable: takes what is no reading.

        Raises:
            DataError: a line names the columns in another order.
        """
        for line in self._texts(text, unreadable):
            try:
                cells = self._members(line) if self.syntax == "jsonl" else self._cells(line)
            except UNREADABLE:
                unreadable.append(line)
                continue
            if self.syntax == "csv" and self._is_header(cells):
                continue
            try:
                if self.syntax == "csv":
                    cells = dict(zip(self.columns or (), cells, strict=True))
                reading = self.reading(cells)
            except UNREADABLE:
                self._refuse_name_as_time(cells)
                unreadable.append(line)
            else:
                yield reading

    def _is_header(self, cells: Sequence[str | None]) -> bool:
        """Whether a line of ``cells`` is the header, perhaps once more; another one is refused."""
        if self.columns is None:
            self.take_header([cell or "" for cell in cells])
            return True
        if not self.names_columns(cells) or self._is_category(cells):
            return False
        same = [(cell or "").strip().lstrip("\ufeff") for cell in cells] == self.columns
        require(same, OTHER_HEADER, DataError)
        return True

    def _refuse_name_as_time(self, cells: Any) -> None:
        """Refuse a line that is no reading, with the name of a column in the place of its time."""
        if self.syntax == "csv" and isinstance(cells, dict):
            times = {str(cells[name] or "").strip() for name in self.time}
            require(not times.intersection(self.columns or ()), OTHER_HEADER, DataError)

    def _is_category(self, cells: Sequence[str | None]) -> bool:
        """Whether the only column is read and its name is a category as well."""
        return len(cells) == 1 and self.categories is not None and cells[0] in self.categories[0]

    def _texts(self, text: bytes, unreadable: list[str]) -> Iterator[str]:
        """Records that hold something."""
        for record in split_records(text) if self.syntax == "csv" else text.split(b"\n"):
            line = record.removesuffix(b"\n").rstrip(b"\r")
            try:
                decoded = line.decode(errors="strict" if self.exact else "replace")
            except UnicodeDecodeError:  # nothing that could go out as it came
                unreadable.append(line.decode(errors="replace"))
                continue
            if decoded.strip():
                yield decoded

    def take_header(self, names: Sequence[Any]) -> None:
        """Take the ``names`` of the columns from the first line."""
        columns = [str(name).strip().lstrip("\ufeff") for name in names]
        wanted = [*self.shown, *self.values]
        require_columns(columns, wanted, "the input")
        twice = sorted({name for name in wanted if columns.count(name) > 1})
        require(not twice, f"the input has several columns {', '.join(twice)}", DataError)
        self.columns = columns

    def _members(self, line: str) -> Any:
        """A JSON object; values that are carried by how they are written."""
        if not self.exact:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError
            return record
        members = members_of(line)
        values = {name: raw for name, (value, raw) in members.items() if value is not None}
        return {name: value for name, (value, _) in members.items()} | {
            name: values.get(name) for name in self.values
        }

    def _cells(self, line: str) -> Any:
        return cells_of(line) if self.exact else next(csv.reader([line], strict=True))

    def reading(self, record: dict[str, Any]) -> Record:
        """The reading in a ``record``, the cells of a line by the names of their columns."""
        series = ONLY_SERIES if self.series is None else str(record[self.series])
        if self.series is not None and record[self.series] in (None, ""):
            raise ValueError
        series.encode()  # half a letter, as JSON can write it, names nobody
        if self.time:
            tick = tick_of([record[name] for name in self.time])
        else:
            tick = self._arrivals[series] = self._arrivals.get(series, -1) + 1
        if abs(tick) > LARGEST_TICK:
            raise ValueError
        written = json.dumps if self.syntax == "jsonl" else str
        shown = tuple(written(record[name]) for name in self.shown)
        if self.exact:
            values = tuple(record.get(name) for name in self.values)
            return Record(series, tick, shown, values, tuple(value is None for value in values))
        numbers = [self.number(i, record.get(name)) for i, name in enumerate(self.values)]
        if self.marked:
            empty = all(math.isnan(number) for number in numbers[:-1])
            numbers[-1] = self._mark(record.get(self.values[-1]), empty)
        return Record(
            series,
            tick,
            shown,
            tuple(0.0 if math.isnan(number) else number for number in numbers),
            tuple(math.isnan(number) for number in numbers),
        )

    def _mark(self, value: Any, empty: bool) -> float:
        """1 at landmarks; in doubt it is one, and without a reading it is none."""
        if empty and value in (None, ""):
            return 0.0
        word = str(value).strip().lower()
        return float(TRUTH_WORDS[word]) if word in TRUTH_WORDS else float(float(word) != 0)

    def number(self, column: int, value: Any) -> float:
        """The number in a ``column`` for a ``value``; NaN is missing, infinite values are clipped
        later.
        """
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
        return number if math.isnan(number) else max(-1e300, min(1e300, number))

    def format(
        self,
        slots: Sequence[Any],
        values: npt.NDArray[Any],
        missing: Flags,
        status: npt.NDArray[np.int8] | None,
        cells: Sequence[Any] | None = None,
    ) -> bytes:
        """Write released rows as lines.

        Values that are carried are ``cells``, columns of text.

        Parameters:
            slots: columns of ids and times.
            values: of the rows.
            missing: which of the values are none.
            status: of the rows, if the mechanism has one.
            cells: columns of text in place of values, where these are carried.
        """
        columns = list(cells or ())
        if cells is None:
            columns += [self._column(i, values[:, i], missing[:, i]) for i in range(len(values.T))]
        columns = [*slots, *columns]
        if status is not None:
            columns.append(take_text(STATUSES, status.astype(np.int64)))
        names = [*self.shown, *self.written]
        if not columns or not len(columns[0]):
            return b""
        if self.syntax == "csv":
            return bytes(csv_rows(pa.RecordBatch.from_arrays(columns, names=names)))
        raw = len(slots) + (0 if cells is None else len(cells))  # are JSON already
        json_columns = [
            [_as_json(cell, number < raw) for cell in column.to_pylist()]
            for number, column in enumerate(columns)
        ]
        heads = [json.dumps(name) + ": " for name in names]
        rows = (
            ", ".join(head + cell for head, cell in zip(heads, row, strict=True))
            for row in zip(*json_columns, strict=True)
        )
        return "".join(f"{{{row}}}\n" for row in rows).encode()

    def _column(self, column: int, values: npt.NDArray[Any], missing: Flags) -> Any:
        if self.categories is None:
            return from_numpy(values, pa.float64(), missing)
        return take_text(self.categories[column], values, missing)


def _as_json(cell: Any, raw: bool) -> str:
    if raw:
        return "null" if cell is None else str(cell)
    return json.dumps(cell)
