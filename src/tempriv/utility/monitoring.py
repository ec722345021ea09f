"""How wrong released streams are, and whether an event is still seen in them.

The tasks are those of "Local Differentially Private Release of Infinite Streams With Temporal
Relevance" (2025), Sections 5.3.1 and 5.3.2. A released series is a masked array with a slot for
each time step. An empty slot holds what was released last, since a consumer has nothing newer;
slots before the first release are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.errors import DataError, require

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

THRESHOLDS = 101  # 0 to 100 %, as the paper's


def as_seen(released: Any) -> Floats:
    """Rows of numbers, empty slots filled with the last release; NaN before the first one.

    A slot is empty where any of its columns is masked.

    Parameters:
        released: an array of rows, empty slots masked.

    >>> as_seen(np.ma.array([0.0, 2.0, 0.0, 5.0], mask=[1, 0, 1, 0])).ravel().tolist()
    [nan, 2.0, 2.0, 5.0]
    """
    released = np.ma.asarray(released)
    rows = released.reshape(len(released), -1)
    filled = ~np.ma.getmaskarray(rows).any(axis=1)
    last = np.maximum.accumulate(np.where(filled, np.arange(len(rows)), -1))
    values = np.asarray(rows.data, dtype=np.float64)[np.maximum(last, 0)]
    values[last < 0] = np.nan
    return values


def _pair(private: Any, released: Any) -> tuple[Floats, Floats]:
    truth = np.asarray(private, dtype=np.float64)
    truth = truth.reshape(len(truth), -1)
    seen = as_seen(released)
    require(
        truth.shape == seen.shape,
        f"{seen.shape[0]} released slots of {seen.shape[1]} columns for {truth.shape[0]} readings "
        f"of {truth.shape[1]}: give one slot for each reading",
        DataError,
    )
    return truth, seen


# how wrong values are


@dataclass(frozen=True)
class SquaredError:
    """The mean squared error of a slot, and the same as a part of what the readings vary.

    ``mean`` is in squared units, summed over the columns (for places: the squared distance).
    ``of_variance`` divides by the variance about the mean of the series, ``of_window_variance`` by
    that within windows; each is a mean over the columns that vary, so units do not matter.
    """

    mean: float
    of_variance: float
    of_window_variance: float
    slots: int


def squared_error(
    private: Any, released: Any, *, window: int = 10, first: int = 0, last: int | None = None
) -> SquaredError:
    """Of one series; ``first`` and ``last`` say which slots count, as in a slice.

    Parameters:
        private: readings, a row each.
        released: an array of rows, empty slots masked.
        window: in readings, of variances within windows.
        first: slot that counts.
        last: slot, which does not count any more.

    >>> found = squared_error([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 2.0], window=2)
    >>> found.mean, found.of_variance, found.of_window_variance
    (1.0, 0.8, 4.0)
    """
    return squared_errors([private], [released], window=window, first=first, last=last)


def squared_errors(
    private: Sequence[Any],
    released: Sequence[Any],
    *,
    window: int = 10,
    first: int = 0,
    last: int | None = None,
) -> SquaredError:
    """Of a data set: every slot of every series counts the same.

    Variances are those about the mean of each series, and of consecutive parts of ``window``
    readings of it (a shorter rest is left out).

    Parameters:
        private: the readings of each series.
        released: the same as they came out.
        window: in readings, of variances within windows.
        first: slot of each that counts.
        last: slot of each, which does not count any more.
    """
    require(
        isinstance(window, int) and window >= 2,
        f"window={window}: must be a whole number of readings >= 2",
    )
    require(
        len(private) == len(released) > 0,
        f"{len(released)} released series for {len(private)}: give one for each, and at least one",
        DataError,
    )
    columns = _pair(private[0], released[0])[0].shape[1]
    squares, about, within = (np.zeros(columns) for _ in range(3))
    slots = readings = in_windows = 0
    for truth_series, released_series in zip(private, released, strict=True):
        truth, seen = _pair(truth_series, released_series)
        errors = (seen - truth)[first:last]
        errors = errors[~np.isnan(errors[:, 0])]
        squares += np.square(errors).sum(axis=0)
        slots += len(errors)
        about += np.square(truth - truth.mean(axis=0)).sum(axis=0)
        readings += len(truth)
        whole = len(truth) // window * window
        parts = truth[:whole].reshape(-1, window, columns)
        within += np.square(parts - parts.mean(axis=1, keepdims=True)).sum(axis=(0, 1))
        in_windows += whole
    require(slots > 0, "every slot is empty: nothing was released", DataError)
    mean = squares / slots
    return SquaredError(
        mean=float(mean.sum()),
        of_variance=_part(mean, about / max(1, readings)),
        of_window_variance=_part(mean, within / max(1, in_windows)),
        slots=slots,
    )


def _part(mean: Floats, variance: Floats) -> float:
    """Columns that never vary say nothing of it."""
    varies = variance > 0
    return float(np.mean(mean[varies] / variance[varies])) if varies.any() else float("nan")


# events


def velocities(values: Any, period: float) -> Floats:
    """How fast each slot moves on to the next: |d_(i+1) - d_i| / T_s, one fewer than slots.

    In units of the columns for each unit of the period. NaN where nothing is released yet.

    Parameters:
        values: a row for each slot.
        period: from one slot to the next.

    >>> velocities([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]], period=2.0).tolist()
    [2.5, 0.0]
    """
    require(period > 0, f"period={period}: must be > 0")
    return np.asarray(np.linalg.norm(np.diff(as_seen(values), axis=0), axis=1) / period)


@dataclass(frozen=True, eq=False)
class Curve:
    """True against false positive rates, and the area below, from corner to corner."""

    thresholds: Floats
    false_positives: Floats
    true_positives: Floats
    area: float


def _known(true: Any, released: Any) -> tuple[Floats, Floats]:
    truth, output = (np.asarray(part, np.float64).ravel() for part in (true, released))
    require(
        truth.shape == output.shape,
        f"{len(output)} released velocities for {len(truth)} true ones: give one for each",
        DataError,
    )
    both = ~(np.isnan(truth) | np.isnan(output))
    require(bool(both.any()), "no velocity is known both ways: nothing was released", DataError)
    return truth[both], output[both]


def _area(false: Floats, true: Floats) -> float:
    order = np.lexsort((true, false))
    across = np.concatenate([[0.0], false[order], [1.0]])
    up = np.concatenate([[0.0], true[order], [1.0]])
    return float(np.sum(np.diff(across) * (up[1:] + up[:-1]) / 2))


def moving_label_curve(true: Any, released: Any, points: int = THRESHOLDS) -> Curve:
    """Section 5.3.2: for thresholds from the least to the largest true velocity, what is above?

    The same threshold decides what is an event and what is taken for one, so the labels move along
    the curve: it is no ROC curve, and its area is no probability. Thresholds with no event, or with
    nothing but events, have no rates and are left out. The corners are added, and points are
    joined from left to right; the paper does not say how it does either.

    Parameters:
        true: velocities.
        released: velocities as they came out.
        points: how many thresholds.

    >>> moving_label_curve([1.0, 2.0, 4.0], [1.0, 2.0, 4.0]).area
    1.0
    """
    require(
        isinstance(points, int) and points >= 2,
        f"points={points}: must be a whole number of thresholds >= 2",
    )
    v, seen = _known(true, released)
    low, high = v.min(), v.max()
    rates = []
    for part in np.linspace(0.0, 1.0, points):
        delta = part * (high - low) + low
        event, taken = v > delta, seen > delta
        if 0 < event.sum() < len(event):
            rates.append((delta, np.mean(taken[~event]), np.mean(taken[event])))
    require(bool(rates), "all true velocities are the same: there are no events to tell", DataError)
    deltas, false, hits = (np.array(column) for column in zip(*rates, strict=True))
    return Curve(deltas, false, hits, _area(false, hits))


def fixed_label_curve(true: Any, released: Any, at: float) -> Curve:
    """A proper ROC curve: events are true velocities above ``at``, thresholds are on the others.

    Equal velocities pass a threshold together, so a constant release is the diagonal.

    Parameters:
        true: velocities.
        released: velocities as they came out.
        at: the velocity above which there is an event.

    >>> fixed_label_curve([0.0, 1.0, 5.0, 6.0], [0.0, 2.0, 1.0, 9.0], at=3.0).area
    0.75
    """
    v, seen = _known(true, released)
    event = v > at
    events, others = int(event.sum()), int((~event).sum())
    require(
        events > 0 and others > 0,
        f"at={at}: must leave events above and others below; choose a percentile of the velocities",
    )
    order = np.argsort(-seen, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(seen[order]) != 0, True))
    hits = np.cumsum(event[order])[ends] / events
    false = np.cumsum(~event[order])[ends] / others
    return Curve(seen[order][ends], false, hits, _area(false, hits))
