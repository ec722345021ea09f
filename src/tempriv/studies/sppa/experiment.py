"""What every part of the study on sampling periods shares: ways to release, and runs of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.mechanisms.adaptive.pattern import PatternSampling
from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.threshold import Threshold
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.privacy.guarantees import NoGuarantee
from tempriv.privacy.units.order import SlotOrigin, Swap
from tempriv.privacy.units.replacement import Event, Window
from tempriv.privacy.units.time import Pace
from tempriv.studies.common import Released, run_mechanism
from tempriv.studies.sppa.data import Bounds, SppaDataset
from tempriv.utility.monitoring import squared_errors

Floats = npt.NDArray[np.float64]

SPPA, ETM, PEGASUS = "SPPA", "ETM", "PeGaSus"
COSINE, CLAMPED = "cosine", "clamped cosine"
CURVE, ORDER, PATTERN, MEAN = "NoisyCurve", "NoisyOrder", "PatternSampling", "window mean"
JOINED = "ETM, gaps joined"
THEIRS = (SPPA, ETM, PEGASUS)
WINDOW = 8
NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class SppaSize:
    """How much of everything: trips, segments, gazes and their frames, streams of a phone.

    ``clustered`` of these are segmented; ``cleaned`` trips are sorted back; errors are means over
    ``runs``.
    """

    trips: int
    segments: int
    gazes: int
    frames: int
    streams: int
    clustered: int
    cleaned: int
    runs: int
    taus: tuple[float, ...] = tuple(round(0.2 * i, 1) for i in range(1, 11))
    epsilons: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
    windows: tuple[int, ...] = (4, 8, 12, 16, 20)
    budgets: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0)  # of Table 1


QUICK = SppaSize(
    trips=200,
    segments=50,
    gazes=24,
    frames=600,
    streams=2,
    clustered=2,
    cleaned=200,
    runs=2,
    budgets=(0.25, 1.0),
)
FULL = SppaSize(
    trips=2000, segments=300, gazes=48, frames=2000, streams=8, clustered=6, cleaned=2000, runs=4
)


def sized(data: SppaDataset, size: SppaSize) -> SppaDataset:
    """As many series of ``data`` as a ``size`` asks for."""
    most, steps = {
        "Porto taxis": (size.trips, None),
        "Shenzhen taxis": (size.segments, None),
        "gaze": (size.gazes, size.frames),
        "phone": (size.streams, None),
    }[data.name]
    return data.some(most, steps)


# how series are released


def column_by_column(
    make: Callable[[int], Any], series: Sequence[Floats], columns: int, seed: int
) -> Released:
    """For mechanisms of one column: each of the columns by one of its own.

    Parameters:
        make: gives the mechanism of a column.
        series: an array of rows for each.
        columns: how many.
        seed: of the random numbers.
    """
    parts = [
        run_mechanism(make(i), [values[:, i : i + 1] for values in series], seed * columns + i)
        for i in range(columns)
    ]
    return [
        np.ma.array(
            np.concatenate([column.data for column in rows], axis=1),
            mask=np.concatenate([np.ma.getmaskarray(column) for column in rows], axis=1),
        )
        for rows in zip(*parts, strict=True)
    ]


def window_mean(series: Floats, window: int) -> Any:
    """The mean of each window in the place of its readings, as the first and last are none's.

    Parameters:
        series: an array of rows.
        window: in time steps.

    >>> window_mean(np.arange(7.0)[:, None], 2).ravel().tolist()
    [None, 1.5, 1.5, 3.5, 3.5, 5.0, None]
    """
    out: Any = np.ma.array(np.zeros_like(series), mask=True)
    inside = series[1:-1]
    starts = np.arange(0, len(inside), window)
    lengths = np.diff(np.append(starts, len(inside)))
    means = np.add.reduceat(inside, starts, axis=0) / lengths[:, None]
    out[1:-1] = np.repeat(means, lengths, axis=0)
    return out


@dataclass(frozen=True)
class SppaMethod:
    """One way to release a data set, and in a few words what that protects."""

    run: Callable[[Sequence[Floats], int], Released]
    protects: str


def protects(mechanism: Any) -> str:
    """The unit of a ``mechanism``'s guarantee in a few words."""
    unit = mechanism.unit
    if isinstance(unit, Pace):
        # the rows of every data set here keep their times, so nothing is left of it
        known = isinstance(mechanism.guarantee, NoGuarantee)
        return "nothing; the pace of a window, were times secret" if known else "pace of a window"
    if isinstance(unit, SlotOrigin):
        return "when one slot was read, seen alone"
    if isinstance(unit, Swap):
        return f"which of two came first, within {unit.window}"
    if isinstance(unit, Window):
        return f"any {unit.readings} readings in a row"
    assert isinstance(unit, Event)
    return "one reading"


def _way(mechanism: Any) -> SppaMethod:
    return SppaMethod(
        lambda series, seed: run_mechanism(mechanism, series, seed), protects(mechanism)
    )


def _bounded_way(mechanism: Any, bounds: Bounds) -> SppaMethod:
    """Noise beyond the public bounds is put on them, which costs nothing."""
    low, high = np.array(bounds).T

    def run(series: Sequence[Floats], seed: int) -> Released:
        """Release ``series`` by a ``seed``."""
        released = run_mechanism(mechanism, series, seed)
        return [np.ma.array(np.clip(part.data, low, high), mask=part.mask) for part in released]

    return SppaMethod(run, protects(mechanism))


def joined(released: Any) -> Any:
    """Straight lines over empty slots; before the first release and after the last its value.

    Parameters:
        released: an array of rows, empty slots masked.

    >>> joined(np.ma.array([[0.0], [4.0], [0.0], [0.0], [7.0]], mask=[[1], [0], [1], [1], [0]]))
    array([[4.],
           [4.],
           [5.],
           [6.],
           [7.]])
    """
    filled = np.flatnonzero(~np.ma.getmaskarray(released).any(axis=1))
    every = np.arange(len(released))
    columns = [np.interp(every, filled, column) for column in released.data[filled].T]
    return np.stack(columns, axis=1)


def period_of(
    data: SppaDataset, epsilon: float, window: int, tau: float, interpolation: Any, clamp: Any
) -> SamplingPeriod:
    """As the paper's experiments: readings come at a known period, tau is a multiple of it.

    Parameters:
        data: the data set.
        epsilon: the budget.
        window: in time steps.
        tau: the scale of the noise, in periods.
        interpolation: the curve.
        clamp: bounds of the noisy period.
    """
    return SamplingPeriod(
        epsilon=epsilon,
        window=window,
        tau=tau * data.period,
        period=data.period,
        interpolation=interpolation,
        clamp=clamp,
        columns=data.columns,
        pace="public",
    )


def interpolations(
    data: SppaDataset, epsilon: float, window: int, tau: float = 1.0
) -> dict[str, SppaMethod]:
    """Every curve, as far as the noise goes and within safe bounds.

    Parameters:
        data: the data set.
        epsilon: the budget.
        window: in time steps.
        tau: the scale of the noise, in periods.
    """
    return {
        f"{kind}{suffix}": _way(period_of(data, epsilon, window, tau, kind, clamp))
        for suffix, clamp in (("", None), (", clamped", "safe"))
        for kind in ("printed", "hermitian", "cosine")
    }


def sampling_ways(
    data: SppaDataset, epsilon: float, window: int, tau: float = 1.0
) -> dict[str, SppaMethod]:
    """The paper's curve as printed (its real part), ours, and ours within safe bounds.

    Parameters:
        data: the data set.
        epsilon: the budget.
        window: in time steps.
        tau: the scale of the noise, in periods.
    """
    return {
        SPPA: _way(period_of(data, epsilon, window, tau, "printed", None)),
        COSINE: _way(period_of(data, epsilon, window, tau, "cosine", None)),
        CLAMPED: _way(period_of(data, epsilon, window, tau, "cosine", "safe")),
    }


def mean_way(window: int) -> SppaMethod:
    """The mean of each window, which protects nothing.

    Parameters:
        window: in readings.
    """
    return SppaMethod(
        lambda series, seed: [window_mean(values, window) for values in series], NOTHING
    )


def ways(data: SppaDataset, epsilon: float, window: int) -> dict[str, SppaMethod]:
    """The paper's three at tau = T_s, ours, and the mean of each window; the same epsilon for all.

    What protects values does so for ``window`` readings in a row, with the columns sharing epsilon,
    as "local w-event" says.

    Parameters:
        data: the data set.
        epsilon: the budget.
        window: in readings.
    """
    unit = Window(window)

    def sampled(column: int) -> PatternSampling:
        """The mechanism for one ``column``."""
        bounds = (data.bounds[column],)
        return PatternSampling(epsilon=epsilon / data.columns, bounds=bounds, unit=unit)

    pattern = SppaMethod(
        lambda series, seed: column_by_column(sampled, series, data.columns, seed),
        protects(sampled(0)),
    )
    moved = _way(Threshold(epsilon=epsilon, window=window))
    return {
        **sampling_ways(data, epsilon, window),
        ETM: moved,
        JOINED: SppaMethod(
            lambda *inputs: [joined(values) for values in moved.run(*inputs)], moved.protects
        ),
        ORDER: _way(NoisyOrder(epsilon=epsilon, window=window)),
        PEGASUS: _bounded_way(PeGaSus(epsilon=epsilon, bounds=data.bounds, unit=unit), data.bounds),
        CURVE: _bounded_way(
            NoisyCurve(epsilon=epsilon, bounds=data.bounds, window=window, unit=unit), data.bounds
        ),
        PATTERN: pattern,
        MEAN: mean_way(window),
    }


# how wrong they are

ERRORS = ("mse", "of_variance", "of_window_variance")


def errors_of(
    data: SppaDataset, way: SppaMethod, window: int, seed: int
) -> tuple[float, float, float]:
    """Over the slots that a sampling period releases: all but the first and the last.

    Parameters:
        data: the data set.
        way: to release it.
        window: in time steps.
        seed: of the random numbers.
    """
    errors = squared_errors(
        data.series, way.run(data.series, seed), window=window + 2, first=1, last=-1
    )
    return errors.mean, errors.of_variance, errors.of_window_variance
