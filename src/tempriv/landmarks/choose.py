"""Choosing landmarks: which moments of one series matter, as one mark for each row.

Every function returns a ``Chosen``. It says whether the marks were worked out from the values that
are to be protected: then another series, which must be indistinguishable, has other landmarks, and
no guarantee that takes the landmarks as fixed and known holds (only one by a bound on their
number).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tempriv.data.clock import Clock
from tempriv.data.duckdb import open_table, quoted
from tempriv.errors import DataError, require
from tempriv.landmarks._kernels import EARTH_RADIUS_METERS, mark_stays

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64] | npt.NDArray[np.datetime64]

MARK_WORDS = {"0": False, "1": True, "false": False, "true": True, "no": False, "yes": True}


@dataclass(frozen=True, eq=False)
class Chosen:
    """Marks of the rows of one series, and where they came from; the marks show in no repr.

    Parameters:
        marks: one flag for each row.
        from_values: whether the protected values decided.
        how: one phrase for a report.

    >>> chosen = below([0.3, 0.6], 0.5)
    >>> chosen, chosen.count, chosen.share
    (Chosen(values below 0.5, from_values=True), 1, 0.5)
    """

    marks: Flags
    from_values: bool
    how: str

    @property
    def count(self) -> int:
        """How many rows are landmarks."""
        return int(np.count_nonzero(self.marks))

    @property
    def share(self) -> float:
        """Of all rows, from 0 to 1."""
        return self.count / len(self.marks) if len(self.marks) else 0.0

    def __repr__(self) -> str:
        return f"Chosen({self.how}, from_values={self.from_values})"


def from_column(values: npt.ArrayLike, *, from_values: bool = False) -> Chosen:
    """Take a column of marks: 0 and 1, true and false, or yes and no.

    Say ``from_values=True`` if the column was computed from the values that are to be protected.

    Parameters:
        values: the column.
        from_values: whether they are computed from what is to be protected.

    Raises:
        DataError: a row is none of these.

    >>> from_column(["no", "Yes", "no"]).marks.tolist()
    [False, True, False]
    """
    column = np.asarray(values)
    require(column.ndim == 1, "landmarks: must be one column of marks", DataError)
    if column.dtype.kind in "biuf":
        wrong = (column != 0) & (column != 1)
        marks = column == 1
    else:
        listed = [_spelled(value) for value in column.tolist()]
        known = {text: MARK_WORDS.get(text) for text in set(listed)}
        flags = [known[text] for text in listed]
        wrong = np.array([mark is None for mark in flags], dtype=np.bool_)
        marks = np.array([mark is True for mark in flags], dtype=np.bool_)
    _refuse(wrong, "marks", "is none of 0, 1, true, false, yes, no", "give every row one of these")
    return Chosen(marks, from_values, "a column of marks")


def _spelled(value: object) -> str:
    if isinstance(value, str):
        return value.strip().lower()
    # 1.0 and True are marks too; anything else is in no list of words
    return "1" if value == 1 else "0" if value == 0 else ""


def _refuse(wrong: Flags, things: str, trouble: str, remedy: str) -> None:
    """Positions may be told, values may not."""
    count = int(np.count_nonzero(wrong))
    if count:
        raise DataError(
            f"{count} of the {len(wrong)} {things}: the first, number {int(np.argmax(wrong)) + 1}, "
            f"{trouble}; {remedy}"
        )


def at_times(times: npt.ArrayLike, chosen: npt.ArrayLike) -> Chosen:
    """Mark the rows at the chosen times.

    Each must be a time of the series: one that is passed over would be left without protection.

    Parameters:
        times: the time of each row: whole numbers, dates or datetimes.
        chosen: the times of landmarks, of the same kind.

    Raises:
        DataError: a chosen time is none of the series.

    >>> at_times([10, 20, 30, 40], [20, 40]).marks.tolist()
    [False, True, False, True]
    """
    clock, wanted = np.asarray(times), np.asarray(chosen)
    if len(wanted) == 0:
        return Chosen(np.zeros(len(clock), dtype=np.bool_), False, "a list of times")
    if clock.dtype.kind == "M" and wanted.dtype.kind in "UO":
        try:
            wanted = wanted.astype("datetime64[us]")
        except (ValueError, TypeError):
            wanted = np.zeros(0)  # no times at all
    alike = {"i": "number", "u": "number", "f": "number", "O": "text", "U": "text", "M": "time"}
    kinds = {alike.get(array.dtype.kind, array.dtype.kind) for array in (clock, wanted)}
    require(
        len(kinds) == 1 and len(wanted) == len(np.asarray(chosen)),
        "the chosen times and the times of the series are of different kinds; write them alike, "
        "all as whole numbers, dates or datetimes",
        DataError,
    )
    absent = ~np.isin(wanted, clock)
    _refuse(
        absent,
        "chosen times",
        "is no time of this series",
        "give times as they stand in the series, for a landmark that is passed over is not "
        "protected",
    )
    return Chosen(np.isin(clock, wanted), False, "a list of times")


def below(values: npt.ArrayLike, threshold: float, *, from_values: bool = True) -> Chosen:
    """Mark readings less than a threshold; a missing reading is no landmark.

    Parameters:
        values: numbers, NaN where missing.
        threshold: in the unit of the values.
        from_values: whether they are computed from what is to be protected.

    >>> below([0.3, 0.6, float("nan")], 0.5).marks.tolist()
    [True, False, False]
    """
    numbers = _numbers(values)
    _finite("threshold", threshold)
    return Chosen(numbers < threshold, from_values, f"values below {threshold:g}")


def above(values: npt.ArrayLike, threshold: float, *, from_values: bool = True) -> Chosen:
    """Mark readings greater than a threshold; a missing reading is no landmark.

    Parameters:
        values: numbers, NaN where missing.
        threshold: in the unit of the values.
        from_values: whether they are computed from what is to be protected.

    >>> above([0.3, 0.6], 0.5).marks.tolist()
    [False, True]
    """
    numbers = _numbers(values)
    _finite("threshold", threshold)
    return Chosen(numbers > threshold, from_values, f"values above {threshold:g}")


def _finite(name: str, value: object) -> None:
    require(
        isinstance(value, (int, float)) and math.isfinite(value), f"{name}={value}: must be finite"
    )


def _numbers(values: npt.ArrayLike) -> Floats:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            "a threshold needs a column of numbers; for names, choose with among()"
        ) from None
    require(numbers.ndim == 1, "a threshold needs one column of numbers", DataError)
    return numbers


def among(values: npt.ArrayLike, names: Iterable[object], *, from_values: bool = True) -> Chosen:
    """Mark rows whose entry is one of some names, such as a set of contacts.

    Parameters:
        values: the entry of each row.
        names: the names, of the same kind.
        from_values: whether they are computed from what is to be protected.

    >>> among([7, 3, 7, 5], {7, 5}).marks.tolist()
    [True, False, True, True]
    """
    column, wanted = np.asarray(values), np.array(list(names))
    how = f"entries among {len(wanted)} names"
    if len(wanted) == 0:
        return Chosen(np.zeros(len(column), dtype=np.bool_), from_values, how)
    text = {array.dtype.kind in "UO" for array in (column, wanted)}
    require(
        len(text) == 1,
        "the names are text and the column numbers, or the other way round; write them alike",
        DataError,
    )
    if text == {True}:
        listed = set(wanted.tolist())
        marks = np.fromiter((value in listed for value in column.tolist()), np.bool_, len(column))
    else:
        marks = np.isin(column, wanted)
    return Chosen(marks, from_values, how)


def most_frequent(values: npt.ArrayLike, share: float) -> tuple[object, ...]:
    """The most frequent names, as many as bring their part of the rows nearest to the share.

    Nested: those of a smaller share come first. Of equally frequent names the lesser comes first.
    They are read off the values, so they are as private as those.

    Parameters:
        values: the entry of each row.
        share: of the rows, from 0 to 1.

    >>> most_frequent(["a", "b", "a", "c", "a", "b"], 0.8)
    ('a', 'b')
    """
    require(0 <= share <= 1, f"share={share}: must be from 0 to 1")
    column = np.asarray(values)
    names, counts = np.unique(column, return_counts=True)
    order = np.lexsort((np.arange(len(names)), -counts))
    reached = np.concatenate([[0], np.cumsum(counts[order])]) / max(len(column), 1)
    many = int(np.argmin(np.abs(reached - share)))
    return tuple(names[order[:many]].tolist())


def stay_points(
    latitude: npt.ArrayLike,
    longitude: npt.ArrayLike,
    seconds: npt.ArrayLike,
    *,
    meters: float,
    minutes: float,
    from_values: bool = True,
) -> Chosen:
    """Mark where someone stayed: places near the first of a stretch, for long enough.

    The method of Li et al. 2008 ("Mining user similarity based on location history"): from a place
    on, those that follow within the distance are one stretch. If it lasts from its first to its
    last place, all of it is marked and the search goes on behind it; otherwise from the next place.
    Distances are along the great circle.

    Parameters:
        latitude: degrees north, one for each row.
        longitude: degrees east.
        seconds: the time of each row, rising.
        meters: how far from the first place.
        minutes: how long at least.
        from_values: whether they are computed from what is to be protected.

    >>> east = [116.30, 116.3001, 116.3001, 116.40]
    >>> stay_points([39.9] * 4, east, [0, 900, 1800, 2400], meters=100, minutes=30).marks.tolist()
    [True, True, True, False]
    """
    places = [np.asarray(column, dtype=np.float64) for column in (latitude, longitude, seconds)]
    north, east, clock = places
    require(
        north.ndim == 1 and north.shape == east.shape == clock.shape,
        "latitude, longitude and seconds must be columns of one length",
        DataError,
    )
    for name, value in (("meters", meters), ("minutes", minutes)):
        _finite(name, value)
        require(value >= 0, f"{name}={value}: must be >= 0")
    whole = np.isfinite(north) & np.isfinite(east) & np.isfinite(clock)
    _refuse(~whole, "rows", "lacks a place or a time", "leave such rows out or fill them in")
    on_earth = np.abs(north) <= 90
    _refuse(~on_earth, "latitudes", "is beyond a pole", "give degrees, latitude before longitude")
    backwards = np.diff(clock, prepend=clock[:1]) < 0
    _refuse(backwards, "rows", "is earlier than the row before", "sort the rows by time")
    phi, theta = np.radians(north), np.radians(east)
    points = np.stack(
        [np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi)], axis=1
    )
    # a chord is compared: it rises with the distance along the surface, and costs no arc sine
    half = min(meters / (2 * EARTH_RADIUS_METERS), math.pi / 2)
    marks = np.zeros(len(clock), dtype=np.bool_)
    mark_stays(points, clock, 4 * math.sin(half) ** 2, 60.0 * minutes, marks)
    return Chosen(marks, from_values, f"stays within {meters:g} m for {minutes:g} minutes or more")


def read_landmarks(
    path: str | Path, *, time: str | Sequence[str] = "time", series: str = "series"
) -> dict[str | None, Times]:
    """Read the owner's list of landmarks: columns (series, time), or time alone for every series.

    Parameters:
        path: a CSV or Parquet file.
        time: its time column, or a date and an hour beside it.
        series: its column of series ids.

    Returns:
        The times by the name of the series, or under None, as ``at_times`` takes them.
    """
    path = Path(path)
    names = [time] if isinstance(time, str) else list(time)
    with open_table(path, texts=[series]) as table:
        columns = list(table.types)
        require(
            set(columns) in ({*names}, {*names, series}),
            f"{path}: a list of landmarks has the columns {series} and {'+'.join(names)}, or "
            f"{'+'.join(names)} alone; it has {', '.join(columns)}",
            DataError,
        )
        if table.rows(f"SELECT count(*) FROM {table.scan}")[0][0] == 0:
            return {}
        clock = Clock.of(names, table)
        key = f"CAST({quoted(series)} AS VARCHAR)" if series in columns else "NULL"
        missing = f"{clock.expression} IS NULL" + (
            f" OR {quoted(series)} IS NULL" if series in columns else ""
        )
        empty = table.rows(f"SELECT count(*) FROM {table.scan} WHERE {missing}")[0][0]
        require(
            empty == 0,
            f"{path}: {empty} of the landmarks lack their time or series; fill them in or delete "
            "those rows",
            DataError,
        )
        query = f"SELECT {key} AS s, {clock.expression} AS t FROM {table.scan} ORDER BY s, t"
        times: dict[str | None, list[npt.NDArray[np.int64]]] = {}
        for batch in table.batches(query):
            ticks = clock.ticks(batch.column(1))
            owners = np.array(batch.column(0).to_pylist(), dtype=object)
            ends = [*np.flatnonzero(owners[1:] != owners[:-1]) + 1, len(owners)]
            for first, end in itertools.pairwise([0, *ends]):
                times.setdefault(owners[first], []).append(ticks[first:end])
    unit = {"date": "datetime64[D]", "datetime": "datetime64[us]"}.get(clock.kind, "int64")
    return {owner: np.concatenate(parts).view(unit) for owner, parts in times.items()}
