"""The data of the study on sampling periods: taxis of two cities, gazes, and a phone's sensors.

The data sets are not part of this package. ``data`` names a folder with the four files below.
Places become meters on a plane that touches the earth at a public center of the city. Bounds are
what somebody would know without the data: a square about the city, the screen and a quarter
around it, what the sensors of a phone in a walker's pocket reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.studies.common import read_columns, require_files, to_meters
from tempriv.utility.monitoring import velocities

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

PORTO = Path("porto") / "porto_trips_points.csv"
SHENZHEN = Path("shenzhen_taxi15s") / "segments_300pts_15s.parquet"
GAZE = Path("gaze") / "desktop_activity_gaze_30hz.parquet"
PHONE = Path("har") / "uci_har_windows.parquet"
FILES = (PORTO, SHENZHEN, GAZE, PHONE)

CENTERS = {PORTO: (-8.6110, 41.1496), SHENZHEN: (114.0579, 22.5431)}  # longitude, latitude
SENSORS = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
PERIOD_SECONDS = 15.0  # seconds between two places of a taxi
MIN_TRIP_POINTS = 40  # points of a trip: two windows of 20 fit
MAX_SPEED = 200 / 3.6  # meters a second: trips with faster steps have lost or wrong places
STANDING, ROUNDS = 5, 2  # a round of the phone data begins with it; everybody goes through two
ROUNDING = 2e-3  # rounding of the phone's numbers

Bounds = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class SppaDataset:
    """Series of rows of numbers, a reading every ``period`` seconds, and public bounds."""

    name: str
    series: tuple[Floats, ...]
    period: float
    bounds: Bounds
    unit: str

    @property
    def columns(self) -> int:
        return len(self.bounds)

    @property
    def rows(self) -> int:
        return sum(map(len, self.series))

    def some(self, most: int, steps: int | None = None) -> SppaDataset:
        """At most so many of the series, evenly spread over all, and steps from each's start."""
        if len(self.series) <= most:
            taken = self.series
        else:
            places = np.linspace(0, len(self.series) - 1, most).round().astype(int)
            taken = tuple(self.series[i] for i in dict.fromkeys(places.tolist()))
        cut = tuple(series[:steps] for series in taken)
        return SppaDataset(self.name, cut, self.period, self.bounds, self.unit)


@dataclass(frozen=True, eq=False)
class Activities:
    """What a phone measured, and what its owner did at each step."""

    values: Floats
    labels: Integers


@dataclass(frozen=True, eq=False)
class SppaInputs:
    """What the study runs on."""

    porto: SppaDataset
    shenzhen: SppaDataset
    gaze: SppaDataset
    phone: SppaDataset
    activities: tuple[Activities, ...]

    @property
    def all(self) -> tuple[SppaDataset, ...]:
        return self.porto, self.shenzhen, self.gaze, self.phone


def _porto(series: tuple[Floats, ...]) -> SppaDataset:
    return SppaDataset("Porto taxis", series, PERIOD_SECONDS, ((-20e3, 20e3),) * 2, "m")


def _shenzhen(series: tuple[Floats, ...]) -> SppaDataset:
    return SppaDataset("Shenzhen taxis", series, PERIOD_SECONDS, ((-40e3, 40e3),) * 2, "m")


def _gaze(series: tuple[Floats, ...]) -> SppaDataset:
    return SppaDataset("gaze", series, 1 / 30, ((-0.25, 1.25),) * 2, "screen")


def _phone(activities: tuple[Activities, ...]) -> SppaDataset:
    bounds = ((-2.0, 2.0),) * 3 + ((-5.0, 5.0),) * 3
    series = tuple(stream.values for stream in activities)
    return SppaDataset("phone", series, 1 / 50, bounds, "g and rad/s")


# the real ones


def read(folder: Path) -> SppaInputs:
    """The real data from their folder, or one sentence that says what is missing."""
    require_files(folder, FILES)
    activities = read_phone(folder / PHONE)
    return SppaInputs(
        _porto(read_places(folder / PORTO, "trip", CENTERS[PORTO], MIN_TRIP_POINTS)),
        _shenzhen(read_places(folder / SHENZHEN, "segment", CENTERS[SHENZHEN], MIN_TRIP_POINTS)),
        _gaze(read_gaze(folder / GAZE)),
        _phone(activities),
        activities,
    )


def _series(rows: Floats, *keys: npt.NDArray[Any], step: npt.NDArray[Any]) -> list[Floats]:
    """Rows with the same keys, in the order of their steps."""
    order = np.lexsort((step, *keys))
    names = np.stack([np.unique(key, return_inverse=True)[1][order] for key in keys])
    starts = np.flatnonzero((np.diff(names, axis=1) != 0).any(axis=0)) + 1
    return np.split(rows[order], starts)


def read_places(
    path: Path, each: str, center: tuple[float, float], shortest: int
) -> tuple[Floats, ...]:
    """Trips in meters east and north of the center: those with enough points and no jump.

    Parameters:
        path: the file.
        each: the column that tells trips apart.
        center: its longitude and latitude in degrees.
        shortest: how many points a trip has at least.
    """
    names = (each, "step", "longitude", "latitude")
    key, step, longitude, latitude = read_columns(path, names)
    degrees = np.stack([longitude, latitude], axis=1).astype(np.float64) - center
    meters = to_meters(degrees, center[1])
    trips = tuple(
        trip
        for trip in _series(meters, key, step=step)
        if len(trip) >= shortest and velocities(trip, PERIOD_SECONDS).max() <= MAX_SPEED
    )
    require(
        len(trips) > 0,
        f"{path}: must have a {each} of {shortest} points or more, none faster than 200 km/h",
        DataError,
    )
    return trips


def read_gaze(path: Path) -> tuple[Floats, ...]:
    """Where on the screen, a series for each person and activity, from the file at ``path``."""
    names = ("subject", "activity", "frame", "gaze_x", "gaze_y")
    subject, activity, frame, across, down = read_columns(path, names)
    rows = np.stack([across, down], axis=1).astype(np.float64)
    return tuple(_series(rows, activity.astype(str), subject.astype(str), step=frame))


def read_phone(path: Path) -> tuple[Activities, ...]:
    """Windows of one activity each, joined as in the file: a stream for each person.

    A window that repeats the second half of the one before goes on where that ended; others are
    put behind it as they are: the file has no more. A round of the six activities begins with
    standing, after walking of some sort; everybody goes through two, so each activity returns.

    Parameters:
        path: the file.
    """
    window, step, activity, *sensors = read_columns(path, ("window", "t", "activity", *SENSORS))
    order = np.lexsort((step, window))
    starts = np.flatnonzero(np.diff(window[order])) + 1
    rows = np.split(np.stack(sensors, axis=1).astype(np.float64)[order], starts)
    labels = activity[order][np.concatenate([[0], starts])].astype(np.int64)
    rounds = 0
    streams: list[tuple[list[Floats], list[Integers]]] = []
    for i, (label, new) in enumerate(zip(labels.tolist(), rows, strict=True)):
        if not i or (label == STANDING and labels[i - 1] < 4):
            if rounds % ROUNDS == 0:
                streams.append(([], []))
            rounds += 1
        half = len(new) // 2
        if i and labels[i - 1] == label and len(rows[i - 1]) == len(new):
            repeats = bool(np.allclose(rows[i - 1][half:], new[:half], rtol=0, atol=ROUNDING))
            new = new[half:] if repeats else new
        values, done = streams[-1]
        values.append(new)
        done.append(np.full(len(new), label))
    return tuple(Activities(np.concatenate(v), np.concatenate(a)) for v, a in streams)
