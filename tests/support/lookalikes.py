"""Tables of series, the same ones in disguise, and others that look like them and are none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.data.series import SeriesTable
from tempriv.ledger.sketches import FreshSketch, RowSketcher

SECRET = bytes(range(32))
HOUR = 3600
FIRST = 1_700_000_000
COLUMNS = ("home", "time", "value")

Rows = list[tuple[str, int, float]]


def walk(random: np.random.Generator, length: int) -> Any:
    """A load that drifts, with a value of three decimals."""
    return np.round(np.abs(np.cumsum(random.normal(0, 0.1, length)) + 2.5), 3)


def rows_of(values: dict[str, Any], start: int = FIRST, step: int = HOUR) -> Rows:
    """Rows of series, each from its values."""
    return [
        (name, start + step * at, float(value))
        for name, series in values.items()
        for at, value in enumerate(series)
    ]


def meters(seed: int, series: int = 8, length: int = 300) -> Rows:
    """Hourly readings of some homes."""
    random = np.random.default_rng(seed)
    return rows_of({f"home{i}": walk(random, length) for i in range(series)})


def table(rows: Rows) -> pa.Table:
    """An Arrow table of rows."""
    names, times, values = zip(*rows, strict=True)
    return pa.table({"home": names, "time": times, "value": values})


def sketch(rows: Rows, secret: bytes = SECRET) -> FreshSketch:
    """The sketch of some rows, as a release makes it."""
    source = SeriesTable(table(rows), values=("value",), time="time", series="home", grid="index")
    sketcher = RowSketcher(secret, 1, None, named=True)
    reading = source.read()
    for block in reading:
        sketcher.see(block, reading.clock.kind)
    return sketcher.finish()


def renamed(rows: Rows) -> Rows:
    """The same rows under other ids."""
    return [(f"meter {name[4:]}-x", time, value) for name, time, value in rows]


def disguises(rows: Rows) -> dict[str, Rows]:
    """The same rows, or some of them, written in other ways."""
    random = np.random.default_rng(0)
    names = sorted({name for name, _, _ in rows})
    some = sorted(random.choice(len(rows), len(rows) // 10, replace=False))
    times = sorted({time for _, time, _ in rows})
    early = set(times[: len(times) // 10])
    return {
        "the same": rows,
        "another order": [rows[i] for i in random.permutation(len(rows))],
        "other ids": renamed(rows),
        "milliseconds": [(name, 1000 * time, value) for name, time, value in rows],
        "other ids and milliseconds": [(n, 1000 * t, v) for n, t, v in renamed(rows)],
        "other times": [(name, (time - FIRST) // HOUR, value) for name, time, value in rows],
        "one series": [row for row in rows if row[0] == names[3]],
        "one series under another id": renamed([row for row in rows if row[0] == names[3]]),
        "a tenth of the rows, any": [rows[i] for i in some],
        "the first tenth of the time": [row for row in rows if row[1] in early],
        "the first tenth, other ids": renamed([row for row in rows if row[1] in early]),
        "single precision": [(name, time, float(np.float32(v))) for name, time, v in rows],
        "beside as many others": rows + renamed(meters(99)),
    }


# what unlike tables have in common with each other, and with the tables of ``originals``


def _pattern(random: np.random.Generator, length: int) -> Any:
    daily = np.sin(np.arange(length) % 24 * 2 * np.pi / 24)
    return np.round(2 + daily + random.normal(0, 0.05), 1)


def _presence(random: np.random.Generator, length: int) -> Any:
    return np.repeat(random.integers(0, 2, length), random.integers(1, 9, length))[:length]


KINDS: dict[str, Any] = {
    "the same grid and ids": walk,
    "small whole numbers": lambda random, n: random.integers(0, 6, n),
    "few whole numbers": lambda random, n: random.poisson(0.3, n),
    "zeros and ones": lambda random, n: random.integers(0, 2, n),
    "presence": _presence,
    "constants": lambda random, n: np.full(n, random.integers(0, 3)),
    "nearly always zero": lambda random, n: np.where(random.random(n) < 0.01, 1.5, 0.0),
    "a daily pattern": _pattern,
    "a tariff of two rates": lambda random, n: np.where(np.arange(n) % 24 < 7, 0.2, 0.3),
    "counters": lambda random, n: np.arange(n) * 0.25 + random.integers(0, 4),
    "temperatures": lambda random, n: np.round(10 + np.cumsum(random.normal(0, 0.2, n)), 1),
    "percentages": lambda random, n: np.round(np.clip(random.normal(50, 15, n), 0, 100)),
    "steps between few levels": lambda random, n: np.repeat(random.integers(0, 4, n), 6)[:n],
}


def unlike(count: int, seed: int) -> Iterator[tuple[str, Rows]]:
    """Tables that nobody made from one another; half of them follow in time."""
    random = np.random.default_rng(seed)
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        series, length = int(random.integers(1, 12)), int(random.integers(48, 720))
        # half of them go on where others end: the next month of the same meters
        start = FIRST + 720 * HOUR * int(random.integers(0, 2))
        values = {f"home{i}": KINDS[kind](random, length) for i in range(series)}
        yield kind, rows_of(values, start)
