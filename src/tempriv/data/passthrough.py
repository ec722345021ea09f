"""Values of any kind, set down by row number while only the numbers pass through a mechanism.

A mechanism that moves whole rows needs none of their values. They stay here, as they came and in
the type they came in, until their rows come out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from tempriv.data.arrow import as_floats, from_numpy, kind_name, plain
from tempriv.data.duckdb import INTEGERS, Table, quoted
from tempriv.data.series import Flags, require_columns
from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]

ROW_COLUMN = "tempriv row number"
TIME_UNITS = ("s", "ms", "us", "ns")

# How values of a CSV file must be spelled to be taken for more than text. Where the type would lose
# anything (a zero in front, the seventh digit of a second, an offset), they stay text.
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
EXACT_PATTERNS = {
    "BOOLEAN": r"true|True|TRUE|false|False|FALSE",
    "BIGINT": r"0|-?[1-9]\d*",
    "DOUBLE": r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?",
    "DATE": r"\d{4}-\d{2}-\d{2}",
    "TIME": _CLOCK,
    "TIMESTAMP": rf"\d{{4}}-\d{{2}}-\d{{2}}[ T]{_CLOCK}",
    "TIMESTAMP WITH TIME ZONE": rf"\d{{4}}-\d{{2}}-\d{{2}}[ T]{_CLOCK}Z",
}
ARROW_TYPES = {
    "BOOLEAN": pa.bool_(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
    "VARCHAR": pa.string(),
}


class PassthroughColumns:
    """The value columns of a table, by row number.

    ``kinds`` are the types that come out. With ``verbatim``, values of a CSV file come out as they
    stand in it, and ``kinds`` tells what they can be read as.

    >>> values = PassthroughColumns(("v",))
    >>> rows = values.hold(pa.table({"v": ["a", None, "b"]}))
    >>> [c.to_pylist() for c in values.unload(np.array([2.0, 0, 1]), np.array([0, 1, 0], bool))]
    [['b', None, None]]
    """

    def __init__(self, names: Sequence[str]):
        self.names = list(names)
        self.kinds: list[pa.DataType] = []
        self.verbatim = False
        self._columns: list[Any] = []  # chunked, from the row with the number ``_first`` on
        self._first = self.next = 0  # the number of the first row here, and of the next to come
        self.in_memory = False
        # rows with a NaN or an infinite value, once for each
        self._nan, self._infinite = np.zeros(0), np.zeros(0)

    def __len__(self) -> int:
        return self.next - self._first

    def hold(self, table: pa.Table) -> pa.Table:
        """The other columns of a ``table`` in memory, and the number of each row, from zero."""
        self._hold(table)
        numbers = from_numpy(np.arange(table.num_rows), pa.int64())
        return table.drop_columns(self.names).append_column(ROW_COLUMN, numbers)

    def hold_array(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The number of each row of an ``array`` of any kind; masked entries are null."""
        self._hold(_as_table(array, self.names))
        return np.arange(len(array))

    def _hold(self, table: pa.Table) -> None:
        for name in self.names:
            require_columns(table.column_names, [name], "the table")
            require(
                table.column_names.count(name) == 1,
                f"the table: column {name!r} stands in it twice",
                DataError,
            )
        columns = [_decoded(table.column(name)).unify_dictionaries() for name in self.names]
        self.kinds = [column.type for column in columns]
        # Arrow has no way yet to take from views
        self._columns = [
            column.cast(plain(column.type)) if str(column.type).endswith("_view") else column
            for column in columns
        ]
        self.next, self.in_memory = table.num_rows, True
        self._look_at(self._columns, 0)

    def load(self, columns: Sequence[Any]) -> Floats:
        """Further rows of ``columns``, as they are read from a file; returns their numbers."""
        kinds = [pa.string()] * len(self.names) if self.verbatim else self.kinds
        added = [
            pa.chunked_array([_exactly(column, kind, name)])
            for column, kind, name in zip(columns, kinds, self.names, strict=True)
        ]
        earlier = self._columns or [
            pa.chunked_array([], added_column.type) for added_column in added
        ]
        self._columns = [
            pa.chunked_array([*old.chunks, *new.chunks], new.type)
            for old, new in zip(earlier, added, strict=True)
        ]
        first, self.next = self.next, self.next + len(added[0])
        self._look_at(added, first)
        return np.arange(first, self.next, dtype=np.float64)

    def _look_at(self, columns: Sequence[Any], first: int) -> None:
        for column in columns:
            if not pa.types.is_floating(column.type):
                continue
            numbers = np.asarray(pa.compute.fill_null(column, 0).to_numpy())
            if not np.isfinite(numbers).all():
                self._nan = np.append(self._nan, first + np.flatnonzero(np.isnan(numbers)))
                infinite = first + np.flatnonzero(np.isinf(numbers))
                self._infinite = np.append(self._infinite, infinite)

    def not_finite(self, numbers: Floats) -> tuple[int, int]:
        """How many values of the rows with these ``numbers`` are NaN, and how many infinite."""
        if not len(self._nan) and not len(self._infinite):
            return 0, 0
        nan, infinite = (np.isin(rows, numbers).sum() for rows in (self._nan, self._infinite))
        return int(nan), int(infinite)

    def unload(self, numbers: Floats, missing: Flags) -> list[Any]:
        """The columns of the rows with these ``numbers``; null where ``missing``."""
        places = from_numpy(numbers.astype(np.int64) - self._first, pa.int64(), missing)
        columns = [_one(column.take(places)) for column in self._columns]
        if self.in_memory:
            columns = [
                column if column.type == kind else column.cast(kind)
                for column, kind in zip(columns, self.kinds, strict=True)
            ]
        return columns

    def shown(self, numbers: Floats, missing: Flags) -> tuple[npt.NDArray[Any], Flags]:
        """The rows with these ``numbers`` for people, and which of their values are ``missing``.

        Numbers are floats; beside columns that hold anything else they are objects, and what is no
        number is text.
        """
        columns = self.unload(numbers, missing)
        gone = np.stack([np.asarray(column.is_null()) for column in columns], axis=1)
        floats = [self._floats(i, column) for i, column in enumerate(columns)]
        known = [value for value in floats if value is not None]
        if len(known) == len(columns):
            return np.stack(known, axis=1), gone
        cells = np.empty((len(numbers), len(columns)), dtype=object)
        for i, (column, numeric) in enumerate(zip(columns, floats, strict=True)):
            texts = (
                [str(value) for value in column.to_pylist()]
                if numeric is None
                else numeric.tolist()
            )
            cells[:, i] = texts
        cells[gone] = None
        return cells, gone

    def _floats(self, number: int, column: Any) -> Floats | None:
        if self.verbatim and self.kinds[number] in (pa.int64(), pa.float64()):
            texts = column.to_pylist()
            return np.array([np.nan if text is None else float(text) for text in texts])
        return as_floats(column)

    def forget(self, before: float) -> None:
        """Let go of rows with numbers ``before`` this: they have come out, or never will."""
        past = min(int(before), self.next) - self._first
        if past > 0 and not self.in_memory:
            self._columns = [column.slice(past) for column in self._columns]
            self._first += past

    @property
    def type_names(self) -> list[str]:
        """The types in words, for the description of a release."""
        return [kind_name(kind) for kind in self.kinds]

    # files

    def opened(self, table: Table, source: Path, problems: Any) -> list[str]:
        """The SQL of each column of a ``table``, or of the number of the row that they are in.

        Parameters:
            table: as it was opened.
            source: its file, unless all rows are here already.
            problems: counts NaN and infinities.
        """
        if self.in_memory:
            return [f"CAST({quoted(ROW_COLUMN)} AS DOUBLE)"]
        if not table.scan.startswith("read_csv"):
            schema = pa.parquet.read_schema(source)
            self.kinds = [plain(schema.field(name).type) for name in self.names]
            return [quoted(name) for name in self.names]
        chosen = self._csv_kinds(table, problems)
        self.kinds = [ARROW_TYPES[chosen[name]] for name in self.names]
        return [_selected(name, chosen[name], self.verbatim) for name in self.names]

    def _csv_kinds(self, table: Table, problems: Any) -> dict[str, str]:
        """The DuckDB types that keep every value of a column exactly; text, if there is none."""
        chosen = dict.fromkeys(self.names, "VARCHAR")
        tries = {
            name: ["BIGINT", "DOUBLE"] if table.guessed[name] in INTEGERS else [table.guessed[name]]
            for name in self.names
        }
        while True:
            kinds = {name: left.pop(0) for name, left in tries.items() if left}
            kinds = {name: kind for name, kind in kinds.items() if kind in EXACT_PATTERNS}
            if not kinds:
                return chosen
            counts = ", ".join(_lost(name, kind) for name, kind in kinds.items())
            totals = table.rows(f"SELECT {counts} FROM {table.scan}")[0]
            for i, (name, kind) in enumerate(kinds.items()):
                lost, nan, infinite = totals[3 * i : 3 * i + 3]
                if lost == 0:
                    if self.verbatim:  # numbers are looked at when they come
                        problems.add("nan", nan)
                        problems.add("infinite", infinite)
                    chosen[name], tries[name] = kind, []


def _lost(name: str, kind: str) -> str:
    """SQL that counts values which a type would change, those that are NaN, and infinite ones."""
    text = f"trim({quoted(name)})"
    value = f"TRY_CAST({text} AS {_cast(kind)})"
    exact = f"regexp_full_match({text}, '{EXACT_PATTERNS[kind]}') AND {value} IS NOT NULL"
    if kind != "DOUBLE":
        return f"count(*) FILTER ({text} <> '' AND NOT ({exact})), 0, 0"
    nan, infinite = (f"coalesce({of}({value}), FALSE)" for of in ("isnan", "isinf"))
    again = f"CAST({value} AS VARCHAR)"
    # fifteen digits always fit, and what is spelled the same again has lost none
    exact = (
        f"CASE WHEN NOT ({exact}) THEN FALSE "
        f"WHEN length({text}) <= 15 AND NOT contains(lower({text}), 'e') THEN TRUE "
        f"WHEN {text} = {again} THEN TRUE ELSE {_digits(text)} = {_digits(again)} END"
    )
    finite = f"NOT {nan} AND NOT {infinite}"
    return (
        f"count(*) FILTER ({text} <> '' AND {finite} AND NOT ({exact})), "
        f"count(*) FILTER ({nan}), count(*) FILTER ({infinite})"
    )


def _as_table(array: npt.NDArray[Any], names: Sequence[str]) -> pa.Table:
    masked = np.ma.asarray(array)
    masked = masked[:, None] if masked.ndim == 1 else masked
    missing = np.ma.getmaskarray(masked)
    try:
        columns = [
            pa.array(masked.data[:, i], mask=missing[:, i], from_pandas=False)
            for i in range(masked.shape[1])
        ]
    except (pa.ArrowException, TypeError, OverflowError):
        raise DataError(
            "the array holds readings of several kinds, or of one that is not known here; give "
            "each kind a column of a table"
        ) from None
    return pa.table(columns, names=list(names))


def _cast(kind: str) -> str:
    # text with a Z is in UTC, which DuckDB reads without knowing of zones
    return "TIMESTAMP" if kind == "TIMESTAMP WITH TIME ZONE" else kind


def _digits(text: str) -> str:
    """The digits of a number that count, in SQL."""
    bare = f"replace(regexp_replace({text}, '[eE].*$|^[+-]', '', 'g'), '.', '')"
    return f"rtrim(ltrim({bare}, '0'), '0')"


def _selected(name: str, kind: str, verbatim: bool) -> str:
    if kind == "VARCHAR":
        return quoted(name)
    # an empty cell in quotes is no number
    cell = f"nullif({quoted(name)}, '')"
    return cell if verbatim else f"CAST(trim({cell}) AS {_cast(kind)})"


def _decoded(column: Any) -> Any:
    """A column row by row, where Arrow keeps runs of equal values: it cannot take from these."""
    if not pa.types.is_run_end_encoded(column.type):
        return column
    chunks = [pa.compute.run_end_decode(chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def _one(column: Any) -> Any:
    """A column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _exactly(column: Any, kind: pa.DataType, name: str) -> Any:
    """The column in the type that it has in its file, if DuckDB has lost nothing of it."""
    if column.type == kind:
        return column
    rounded = pa.types.is_floating(column.type) and not pa.types.is_floating(kind)
    units = [getattr(each, "unit", None) for each in (column.type, kind)]
    if units[0] in TIME_UNITS and units[1] in TIME_UNITS:
        rounded = rounded or TIME_UNITS.index(units[0]) < TIME_UNITS.index(units[1])
    try:
        if not rounded:
            return column.cast(kind)
    except pa.ArrowException:
        pass
    raise DataError(
        f"column {name!r} holds {kind}, which cannot be read without loss; write it to the file as "
        "text"
    )
