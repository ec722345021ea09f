"""Pairs of inputs to attack: a series, and the same series with one thing changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.audit.cases import worst_pairs
from tempriv.data.series import Block, SeriesTable
from tempriv.errors import DataError, require
from tempriv.mechanisms.domains import Locations, OpaqueRows, names_of
from tempriv.mechanisms.perturb import limit_of
from tempriv.mechanisms.retime.interpolation import basis, points
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.units import Person
from tempriv.releases.blocks import whole_series

Floats = npt.NDArray[np.float64]

SECRETS = {
    "value": "a changed value",
    "time": "when one reading was taken",
    "shift": "a common shift in time",
    "pace": "the pace of a window",
    "swap": "which of two readings was first",
}
"""What an alteration makes different, and so what hides it if the two cannot be told apart."""

WHICH = "which of the two it was"
CHANGED_RANGE_SHARE = 0.01  # of the range of the readings: a change of a value
SHIFT_STEPS = 0.1  # of a time step: a change of a time
MIN_READINGS, MAX_READINGS = 12, 200  # readings that are taken of a long series


@dataclass(frozen=True)
class Pair:
    """Two inputs as ``push`` takes them, and in words how they differ; no reading is named."""

    one: Any = field(repr=False)
    other: Any = field(repr=False)
    words: str
    secret: str


def hardest_pair(mechanism: Any) -> Pair:
    """Neighbors by the guarantee of a mechanism that are as far apart as they can be."""
    first, second = (_pushed(mechanism, example) for example in worst_pairs(mechanism)[0])
    return Pair(first, second, "neighbors as far apart as the guarantee covers", WHICH)


def _pushed(mechanism: Any, example: Any) -> Any:
    """An example of a unit as the mechanism takes it: names of categories, degrees of places."""
    if isinstance(mechanism.unit, Person):
        return [_series(mechanism, series) for series in example]
    return _series(mechanism, example)


def _series(mechanism: Any, example: Any) -> Any:
    domain = mechanism.domain
    if isinstance(domain, Locations):
        return domain.degrees(np.array(example, dtype=np.float64))
    if domain.categories is not None:
        rows = np.array(example).reshape(len(example), -1)
        return [[domain.categories[j][int(code)] for j, code in enumerate(row)] for row in rows]
    return np.array(example, dtype=np.float64)


def first_series(source: Any, columns: tuple[str, ...], mechanism: Any, **layout: Any) -> Block:
    """The first series of a table, in order of its times; nothing of it is shown.

    Parameters:
        source: the table.
        columns: those of the values.
        mechanism: what will release it.
        layout: how the table is read.
    """
    domain = mechanism.domain
    clip = domain.bounds is not None and not isinstance(domain, Locations)
    table = SeriesTable(source, values=columns, grid="index", clip=clip, **layout)
    blocks = list(whole_series(table.read(domain.bounds, domain.categories)))
    require(bool(blocks), f"{source}: the table has no rows", DataError)
    return blocks[0].part(0, 1)


def pushed_block(mechanism: Any, block: Block) -> Any:
    """A block of one series as ``push`` takes it.

    Parameters:
        mechanism: what takes it.
        block: of one series.
    """
    if mechanism.domain.categories is not None:
        return names_of(block, mechanism.domain.categories)
    return np.ma.array(block.values, mask=block.missing)


def readings_needed(mechanism: Any) -> int:
    """How many readings of a series show what a mechanism does with a difference in them."""
    window = getattr(mechanism, "window", None) or getattr(mechanism, "block", None) or 1
    wanted = window + 2 if isinstance(mechanism, SamplingPeriod) else max(MIN_READINGS, 2 * window)
    return min(wanted, MAX_READINGS, limit_of(mechanism) or MAX_READINGS)


def altered(mechanism: Any, rows: Any, what: str, by: float | None = None) -> Pair:
    """A series of numbers, a row each, and the same with one thing changed in the middle.

    ``value``: one reading is larger, by a hundredth of the range of all. ``time`` and ``shift``:
    one reading, or all, were taken a tenth of a step later, where a smooth curve through them then
    was. ``pace``: the steps of the first window are longer, by tau. ``swap``: two readings trade
    places. ``by`` asks for another amount.

    Parameters:
        mechanism: what is attacked.
        rows: a series, a row for each reading.
        what: one of ``SECRETS``.
        by: how much is changed.

    >>> mechanism = SamplingPeriod(epsilon=1.0, window=8, tau=1.0, pace="public")
    >>> pair = altered(mechanism, np.arange(10.0)[:, None], "value")
    >>> pair.words, round(float(np.abs(pair.other - pair.one).sum()), 9)
    ('one reading changed by 1 % of their range', 0.09)
    """
    require(what in SECRETS, f"{what}: must be one of {', '.join(SECRETS)}")
    series = np.asarray(rows, dtype=np.float64)
    require(
        series.ndim == 2 and len(series) >= 3,
        "give a row for each of 3 readings or more",
        DataError,
    )
    require(mechanism.domain.categories is None, "categories: give two inputs, they have no middle")
    require(
        by is None or (np.isfinite(by) and by != 0),
        f"by={by}: must be a number other than 0, how much is changed",
    )
    make = {"value": _value, "time": _time, "shift": _shift, "pace": _pace, "swap": _swap}[what]
    changed, difference = make(mechanism, series, by)
    require(
        not np.allclose(series, changed, rtol=1e-12, atol=0),
        "the two inputs are the same: the readings are all alike; take others, or another change",
        DataError,
    )
    return Pair(series, changed, difference, SECRETS[what])


def _columns(mechanism: Any, rows: Floats) -> int:
    """How many columns are values; others are times."""
    return mechanism.columns if isinstance(mechanism, SamplingPeriod) else rows.shape[1]


def _value(mechanism: Any, series: Floats, by: float | None) -> tuple[Floats, str]:
    changed, middle = series.copy(), len(series) // 2
    difference = f"one reading changed by {by or 0:g}"
    if isinstance(mechanism.domain, Locations):
        meters = by or float(mechanism.unit.meters)
        north = mechanism.domain.degrees(np.array([[meters, 0.0]])) - np.array(
            mechanism.domain.origin
        )
        changed[middle] += north[0]
        return changed, f"one place moved by {meters:g} meters"
    if by is None:
        reach = float(np.ptp(series[:, 0]))
        require(reach > 0, "the readings are all equal: say by how much to change one", DataError)
        by, difference = (
            CHANGED_RANGE_SHARE * reach,
            f"one reading changed by {100 * CHANGED_RANGE_SHARE:g} % of their range",
        )
    bounds = mechanism.domain.bounds
    if bounds is None:
        changed[middle, 0] += by
        return changed, difference
    # what is clipped back is no change
    low, high = bounds[0]
    moved = [min(max(series[middle, 0] + side * by, low), high) for side in (1, -1)]
    changed[middle, 0] = max(moved, key=lambda value: abs(value - series[middle, 0]))
    short = abs(changed[middle, 0] - series[middle, 0]) < abs(by) * (1 - 1e-9)
    return changed, difference + (", or as far as the bounds allow" if short else "")


def _time(mechanism: Any, series: Floats, by: float | None) -> tuple[Floats, str]:
    changed, middle = series.copy(), len(series) // 2
    if isinstance(mechanism, NoisyTimes):
        by = mechanism.tau if by is None else by
        changed[middle] = _later(series[middle], by)
        return changed, f"one time later by {by:g}"
    by = SHIFT_STEPS if by is None else by
    columns = _require_curve(mechanism, series)
    changed[middle, :columns] = _curve(series[:, :columns], np.array([middle + by]))[0]
    return changed, f"one reading taken {by:g} of a step later"


def _shift(mechanism: Any, series: Floats, by: float | None) -> tuple[Floats, str]:
    by = SHIFT_STEPS if by is None else by
    columns = _require_curve(mechanism, series)
    changed = series.copy()
    changed[:, :columns] = _curve(
        series[:, :columns], np.arange(len(series), dtype=np.float64) + by
    )
    return changed, f"all readings taken {by:g} of a step later"


def _require_curve(mechanism: Any, rows: Floats) -> int:
    require(
        not isinstance(mechanism.domain, OpaqueRows) and not isinstance(mechanism, NoisyTimes),
        f"{type(mechanism).__name__}: takes no values between others; change a value, or swap two",
    )
    return _columns(mechanism, rows)


def _curve(values: Floats, times: Floats) -> Floats:
    """Readings at other times, by the cosine curve through all."""
    return points(basis("cosine", len(values)), values, times)


def _pace(mechanism: Any, series: Floats, by: float | None) -> tuple[Floats, str]:
    require(
        isinstance(mechanism, SamplingPeriod) and mechanism.times > 0,
        "pace: goes with a sampling period whose steps are a secret column",
    )
    by = mechanism.tau if by is None else by
    changed, window = series.copy(), slice(1, mechanism.window + 1)
    changed[window, -1] = _later(series[window, -1], by)
    return changed, f"every step of a window longer by {by:g}"


def _later(times: Floats, by: float) -> Floats:
    """So much later, and not by a rounding more: a guarantee ends at tau."""
    moved = times + by
    past = [
        abs(Fraction(b) - Fraction(a)) > abs(Fraction(by))
        for a, b in zip(times, moved, strict=True)
    ]
    return np.asarray(np.where(past, np.nextafter(moved, times), moved))


def _swap(mechanism: Any, series: Floats, by: float | None) -> tuple[Floats, str]:
    apart = 1 if by is None else int(by)
    require(
        apart == (by or 1) and 1 <= apart < len(series),
        f"by={by}: must be how many steps they are apart, from 1 to {len(series) - 1}",
    )
    changed = series.copy()
    first = max(0, len(series) // 2 - apart)
    # the nearest ones to the middle that are not alike
    starts = sorted(range(len(series) - apart), key=lambda start: abs(start - first))
    unlike = [start for start in starts if not np.array_equal(series[start], series[start + apart])]
    require(bool(unlike), "the readings are all equal: swapping them changes nothing", DataError)
    changed[[unlike[0], unlike[0] + apart]] = series[[unlike[0] + apart, unlike[0]]]
    steps = "next to each other" if apart == 1 else f"{apart} steps apart"
    return changed, f"two readings {steps} trade places"
