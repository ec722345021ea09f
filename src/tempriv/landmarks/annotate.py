"""A private copy of a table with one more column: 1 at landmarks, 0 elsewhere.

The copy is as private as the table, and so is what lies beside it: how the landmarks were chosen.
Whoever releases the copy learns from that whether the values decided, for then hardly anything can
be guaranteed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tempriv.data.arrow import from_numpy, to_numpy
from tempriv.data.clock import DAY, SECOND, Clock
from tempriv.data.csv import csv_line, csv_rows
from tempriv.data.duckdb import NUMBERS, ROW_NUMBER, Table, header, is_csv, open_table, quoted
from tempriv.data.files import is_dead, private_file, sync_directory
from tempriv.data.series import ONLY_SERIES
from tempriv.errors import DataError, UsageError, require
from tempriv.landmarks import choose
from tempriv.landmarks.choose import Chosen, Flags, Times
from tempriv.landmarks.provenance import LandmarkProvenance, provenance_of, write_provenance

COLUMN = "landmark"
PARTIAL_SUFFIX = ".marking.partial"

Integers = npt.NDArray[np.int64]
Column = npt.NDArray[np.float64] | npt.NDArray[np.object_]
"""Numbers, NaN where missing; or texts, empty where missing."""


@dataclass(frozen=True)
class Hiding:
    """Marks to go on with in place of the landmarks of a series, and what is true of them.

    Parameters:
        marks: makes them of the landmarks and the id of a series.
        sentence: what they tell of which moments are landmarks.
        recall: the chance that a landmark has one, where they are drawn.
        epsilon: of whether any one moment is a landmark; None: nothing is guaranteed.
        draw: names the draw.
    """

    marks: Callable[[Flags, str], Flags]
    sentence: str
    recall: float | None = None
    epsilon: float | None = None
    draw: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How landmarks are chosen; just one of the ways.

    Parameters:
        column: by a column of marks.
        times: by a file with their times.
        of: the column of values for the next three.
        below: where values are less.
        above: where values are greater.
        among: where values are one of these names.
        stays: where someone stayed, within so many meters for so many minutes.
        places: the columns of latitude and longitude for that.
    """

    column: str | None = None
    times: Path | None = None
    of: str | None = None
    below: float | None = None
    above: float | None = None
    among: tuple[str, ...] | None = None
    stays: tuple[float, float] | None = None
    places: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        ways = ("column", "times", "below", "above", "among", "stays")
        rules = [way for way in ways if getattr(self, way) is not None]
        require(
            len(rules) == 1,
            "say in one way which moments are landmarks: [[column]], [[times]], [[below]], "
            "[[above]], [[among]] or [[stays]]",
        )
        of_values = rules[0] in ("below", "above", "among")
        require(
            of_values == (self.of is not None),
            f"[[{rules[0]}]] {'needs' if of_values else 'goes without'} [[of]], a column of values",
        )
        require(
            (rules[0] == "stays") == (self.places is not None),
            "[[stays]] goes with [[latitude]] and [[longitude]], two columns",
        )

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that decide."""
        if self.places is not None:
            return self.places
        return tuple(name for name in (self.column, self.of) if name is not None)

    @property
    def looks_at(self) -> tuple[str, ...]:
        """Columns of values that decide: these cannot be protected by fixed landmarks."""
        return self.reads if self.column is None else ()


@dataclass(frozen=True)
class AnnotatedTable:
    """What was done, in numbers.

    Parameters:
        rows: of the table.
        series: how many there are.
        landmarks: how many were chosen.
        marks: how many rows have a mark.
        most: the most marks of one series.
        how: the landmarks were chosen, as a phrase.
        looked_at: the columns of values that decided.
    """

    rows: int
    series: int
    landmarks: int
    marks: int
    most: int
    how: str
    looked_at: tuple[str, ...]


def mark_table(
    source: Path,
    output: Path,
    rule: Rule,
    *,
    time: str | None = None,
    series: str | None = None,
    name: str = COLUMN,
    hiding: Hiding | None = None,
    force: bool = False,
) -> AnnotatedTable:
    """Write the copy, for its owner's eyes only; it appears whole or not at all.

    Parameters:
        source: a CSV file.
        output: the copy, a new file.
        rule: which moments are landmarks.
        time: the time column.
        series: the column of series ids.
        name: the column of marks that is added.
        hiding: how landmarks are hidden among dummies, if they are.
        force: replace a file that exists.

    Guarantees:
        - rows, their order and their spelling are those of the table;
        - no message quotes a value.
    """
    _refuse_output(source, output, name, force)
    require(
        time is not None or (rule.times is None and rule.stays is None),
        "[[times]] and [[stays]] need [[time]], the column of times",
    )
    before = provenance_of(source)
    # marks that are read off a column of marks are as they were made
    inherited = before[rule.column].looked_at if rule.column in before else ()
    looked = (*rule.looks_at, *inherited)
    remove_stale(output)
    texts = [column for column in (series, rule.of if rule.among is not None else None) if column]
    with open_table(source, texts) as table:
        rows, ids, ticks, columns, clock = _read(table, rule, time, series)
    chosen_times = None
    if rule.times is not None and clock is not None:
        chosen_times = choose.read_landmarks(
            rule.times, time=clock.names, series=series or "series"
        )
    marks = np.zeros(len(rows), dtype=np.bool_)
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1])) if len(ids) else np.zeros(0, int)
    total, most, how = 0, 0, ""
    known = {str(ids[start]) for start in starts}
    strangers = 0 if chosen_times is None else len({*chosen_times} - known - {None})
    require(
        strangers == 0,
        f"{strangers} series of the list of landmarks are not in the table; their landmarks would "
        "not be protected",
        DataError,
    )
    for start, end in zip(starts, [*starts[1:], len(ids)], strict=True):
        part = slice(start, end)
        whose = str(ids[start])
        own = [column[part] for column in columns]
        chosen = _chosen(rule, own, ticks[part], clock, chosen_times, whose)
        how = chosen.how
        total += chosen.count
        hidden = chosen.marks if hiding is None else hiding.marks(chosen.marks, whose)
        most = max(most, int(np.count_nonzero(hidden)))
        marks[rows[part]] = hidden
    note = LandmarkProvenance(how, looked)
    if hiding is not None:
        hidden_by = (hiding.recall, hiding.sentence, hiding.epsilon, hiding.draw)
        note = LandmarkProvenance(how, looked, *hidden_by)
    done = AnnotatedTable(
        rows=len(rows),
        series=len(starts),
        landmarks=total,
        marks=int(np.count_nonzero(marks)),
        most=most,
        how=how,
        looked_at=looked,
    )
    _write(source, output, name, marks, {**before, name: note})
    return done


def _refuse_output(source: Path, output: Path, name: str, force: bool) -> None:
    require(source.exists(), f"{source}: no such file", DataError)
    kinds = (".csv",) if is_csv(source) else (".parquet",)
    require(
        output.suffix.lower() in kinds,
        f"{output}: the copy of {source.name} must end in {kinds[0]}",
        UsageError,
    )
    require(output.parent.is_dir(), f"{output.parent}: no such directory", UsageError)
    require(source.resolve() != output.resolve(), f"{output}: is the input, which stays as it is")
    require(
        force or not output.exists(),
        f"{output}: exists already; choose another name, or replace it with [[force=True]]",
    )
    require(
        name not in header(source),
        f"{source}: has a column {name!r} already; choose another name with [[name|mark]]",
    )


def _read(
    table: Table, rule: Rule, time: str | None, series: str | None
) -> tuple[Integers, npt.NDArray[np.object_], Integers, list[Column], Clock | None]:
    """Row numbers, series, times and the columns that decide, in order of series and time."""
    table.require_columns([*rule.reads, *([series] if series else [])])
    clock = None if time is None else Clock.of(time.split("+"), table)
    row = ROW_NUMBER if ROW_NUMBER in table.types else "row_number() OVER () - 1"
    whose = "NULL" if series is None else f"CAST({quoted(series)} AS VARCHAR)"
    when = "0" if clock is None else clock.expression
    picked = []
    for column in rule.reads:
        numbers = rule.column is None and rule.among is None
        require(
            not numbers or table.types[column] in NUMBERS,
            f"{table.name}: column {column!r} must hold numbers",
            DataError,
        )
        picked.append(f"CAST({quoted(column)} AS {'DOUBLE' if numbers else 'VARCHAR'})")
    columns = ", ".join(f"{column} AS v{i}" for i, column in enumerate(picked))
    query = (
        f"SELECT {row} AS r, {whose} AS s, {when} AS t{', ' if picked else ''}{columns} "
        f"FROM {table.scan} ORDER BY s, t, r"
    )
    result = pa.Table.from_batches(list(table.batches(query)))
    require(result.num_rows > 0, f"{table.name}: the table has no rows", DataError)
    for i, what in ((1, "series id"), (2, "time")):
        lacking = result.column(i).null_count if (i, series) != (1, None) else 0
        require(lacking == 0, f"{lacking} rows without a {what}: every row needs one", DataError)
    ids = np.array(result.column(1).to_pylist(), dtype=object)
    if series is None:
        ids[:] = ONLY_SERIES
    ticks = np.zeros(len(ids), dtype=np.int64)
    if clock is not None:
        ticks = clock.ticks(result.column(2).combine_chunks())
    values = [_values(result.column(3 + i).combine_chunks()) for i in range(len(picked))]
    return to_numpy(result.column(0).combine_chunks(), np.int64), ids, ticks, values, clock


def _values(column: pa.Array) -> Column:
    if pa.types.is_string(column.type):
        return np.array(["" if v is None else v for v in column.to_pylist()], dtype=object)
    return np.array([np.nan if v is None else v for v in column.to_pylist()], dtype=np.float64)


def _chosen(
    rule: Rule,
    columns: Sequence[Column],
    ticks: Integers,
    clock: Clock | None,
    times: dict[str | None, Times] | None,
    whose: str,
) -> Chosen:
    """The landmarks of one series."""
    if times is not None and clock is not None:
        kind = {"date": "datetime64[D]", "datetime": "datetime64[us]"}.get(clock.kind, "int64")
        wanted = times.get(None, times.get(whose, np.zeros(0, dtype=kind)))
        return choose.at_times(ticks.view(kind), wanted)
    if rule.column is not None:
        return choose.from_column(columns[0])
    if rule.below is not None:
        return choose.below(columns[0], rule.below)
    if rule.above is not None:
        return choose.above(columns[0], rule.above)
    if rule.among is not None:
        return choose.among(columns[0], rule.among)
    assert rule.stays is not None and clock is not None
    seconds = ticks * {"date": DAY / SECOND, "datetime": 1 / SECOND}.get(clock.kind, 1.0)
    meters, minutes = rule.stays
    north, east = columns
    return choose.stay_points(north, east, seconds, meters=meters, minutes=minutes)


def remove_stale(output: Path) -> None:
    """Remove what killed runs left of copies at ``output``: it is as private as the table."""
    for left in output.parent.glob(f".{output.name}.*{PARTIAL_SUFFIX}"):
        if is_dead(left.name.removesuffix(PARTIAL_SUFFIX).rpartition(".")[2]):
            left.unlink(missing_ok=True)


def _write(
    source: Path, output: Path, name: str, marks: Flags, notes: dict[str, LandmarkProvenance]
) -> None:
    """The table as it is, and the marks; aside first, and the note about them before them."""
    partial = output.with_name(f".{output.name}.{os.getpid()}{PARTIAL_SUFFIX}")
    try:
        if is_csv(source):
            _write_csv(source, partial, name, marks)
        else:
            _write_parquet(source, partial, name, marks)
        write_provenance(output, notes, partial, source)
        partial.replace(output)
        sync_directory(output.parent)
    finally:
        partial.unlink(missing_ok=True)


def _write_csv(source: Path, partial: Path, name: str, marks: Flags) -> None:
    at = 0
    with (
        open_table(source, texts=header(source), empty_texts=True) as table,
        private_file(partial) as file,
    ):
        file.write(csv_line([*header(source), name]))
        for batch in table.batches(f"SELECT * FROM {table.scan}"):
            column = from_numpy(marks[at : at + batch.num_rows].astype(np.int64), pa.int64())
            file.write(csv_rows(batch.append_column(name, column)))
            at += batch.num_rows
        file.flush()
        os.fsync(file.fileno())
    assert at == len(marks)


def _write_parquet(source: Path, partial: Path, name: str, marks: Flags) -> None:
    import pyarrow.parquet

    whole = pyarrow.parquet.read_table(source)
    whole = whole.append_column(name, from_numpy(marks.astype(np.int64), pa.int64()))
    with private_file(partial) as file:
        pyarrow.parquet.write_table(whole, file)
        file.flush()
        os.fsync(file.fileno())
