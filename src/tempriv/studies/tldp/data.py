"""The data of the study on release orders: a stock, taxis, and integers drawn at random.

The data sets are not part of this package. ``data`` names a folder with ``stocks/ge.us.csv`` (the
columns date, open and close, one row for each trading day) and
``shenzhen_taxi15s/segments_300pts_15s.parquet`` (segment, step, longitude and latitude).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require
from tempriv.studies.common import read_columns, require_files, to_meters, uniform_integers

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

STOCK = Path("stocks") / "ge.us.csv"
TAXIS = Path("shenzhen_taxi15s") / "segments_300pts_15s.parquet"
FILES = (STOCK, TAXIS)
LARGEST_INTEGER = 100  # of the integers of SyntheticTS (Section V-A)


@dataclass(frozen=True)
class Stock:
    """Daily closes, and whether each is above the one before (the first: above its own opening)."""

    close: Floats
    up: Integers


@dataclass(frozen=True)
class TldpInputs:
    """What the tasks run on."""

    stock: Stock
    taxis: Floats


def read(folder: Path) -> TldpInputs:
    """The real data from their folder, or one sentence that says what is missing."""
    require_files(folder, FILES)
    return TldpInputs(read_stock(folder / STOCK), read_taxis(folder / TAXIS))


def read_stock(path: Path) -> Stock:
    """Daily closes of a stock, from the file at ``path``."""
    opened, close = read_columns(path, ("open", "close"), np.float64)
    require(len(close) >= 2, f"{path}: must have at least two days", DataError)
    before = np.concatenate([opened[:1], close[:-1]])
    return Stock(close, (close > before).astype(np.int64))


def read_taxis(path: Path) -> Floats:
    """Places in meters, (segments, steps, 2), by a plane that touches the middle of all of them.

    Parameters:
        path: the file.
    """
    names = ("segment", "step", "longitude", "latitude")
    segment, step, longitude, latitude = read_columns(path, names, np.float64)
    order = np.lexsort((step, segment))
    counts = np.unique(segment, return_counts=True)[1]
    require(
        len(counts) > 1 and len(set(counts.tolist())) == 1,
        f"{path}: must have at least two segments, all of the same length",
        DataError,
    )
    degrees = np.stack([longitude, latitude], axis=1)[order]
    degrees -= degrees.mean(axis=0)
    return to_meters(degrees, latitude.mean()).reshape(len(counts), -1, 2)


def synthetic(length: int, seed: int = 0) -> Integers:
    """Integers from 0 to 100, each equally likely: the paper's SyntheticTS.

    Parameters:
        length: how many.
        seed: of the random numbers.

    >>> synthetic(5).tolist() == synthetic(6)[:5].tolist(), int(synthetic(1000).max())
    (True, 100)
    """
    return uniform_integers("SyntheticTS", LARGEST_INTEGER + 1, length, seed=seed)
