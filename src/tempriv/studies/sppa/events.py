"""Figures 7 and 8 of the paper on sampling periods: velocities, and events seen in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.studies.common import ResultTable, Row, Section, Tables, Verdict
from tempriv.studies.sppa.data import SppaDataset
from tempriv.studies.sppa.experiment import (
    CLAMPED,
    ETM,
    JOINED,
    MEAN,
    NOTHING,
    PEGASUS,
    SPPA,
    THEIRS,
    WINDOW,
    SppaMethod,
    ways,
)
from tempriv.utility.monitoring import as_seen, fixed_label_curve, moving_label_curve, velocities

Floats = npt.NDArray[np.float64]

EPSILON = 1.0
ORIGINAL = "original"
SHOWN = (ORIGINAL, SPPA, CLAMPED, ETM, PEGASUS)
MAP_STEPS = 60  # of a heat map
EVENT_QUANTILE = 0.9  # the part of true velocities that are no event, where labels are fixed
MAX_CURVE_POINTS = 200  # of a curve in a file
MOVING, FIXED = "moving labels", "fixed labels"

# the areas that Section 5.3.2 gives for its taxis (Porto) and its eyes (another data set than ours)
PUBLISHED = {
    "Porto taxis": {SPPA: 0.85, ETM: 0.70, PEGASUS: 0.51},
    "gaze": {SPPA: 0.74, ETM: 0.65, PEGASUS: 0.52},
}


def speed_unit(data: SppaDataset) -> tuple[float, str]:
    """What to multiply units of ``data`` per second by, and what that is called."""
    return (3.6, "km/h") if data.unit == "m" else (1.0, f"{data.unit}s/s")


def typical(data: SppaDataset) -> Floats:
    """Of the series of ``data`` that are long enough, the one whose highest speed is the median."""
    long = [series for series in data.series if len(series) > WINDOW + MAP_STEPS] or list(
        data.series
    )
    tops = [float(velocities(series, data.period).max()) for series in long]
    return long[int(np.argsort(tops, kind="stable")[len(tops) // 2])]


def between_all(values: Floats, period: float) -> Floats:
    """The mean velocity between every two slots; 0 from each to itself.

    Parameters:
        values: a row for each slot.
        period: from one slot to the next.

    >>> between_all(np.array([[0.0], [2.0], [1.0]]), 1.0)[0].tolist()
    [0.0, 2.0, 0.5]
    """
    far = np.linalg.norm(values[:, None] - values[None], axis=2)
    apart = np.abs(np.subtract.outer(np.arange(len(values)), np.arange(len(values))))
    return np.asarray(far / (np.maximum(apart, 1) * period))


def figure_7(data: tuple[SppaDataset, ...]) -> ResultTable:
    """Velocities between all pairs of steps of a typical series of each of ``data``."""
    lines: list[tuple[Any, ...]] = []
    for dataset in data:
        series, (factor, unit) = typical(dataset), speed_unit(dataset)
        methods = ways(dataset, EPSILON, WINDOW)
        methods[ORIGINAL] = SppaMethod(lambda series, seed: list(series), NOTHING)
        for name in SHOWN:
            # by then every mechanism has released something
            seen = as_seen(methods[name].run([series], 7)[0])[WINDOW : WINDOW + MAP_STEPS]
            speeds = factor * between_all(seen, dataset.period)
            for i in range(len(seen)):
                for j in range(i + 1, len(seen)):
                    line = (dataset.name, name, i, j, float(speeds[i, j]), unit)
                    lines.append((*line, methods[name].protects))
    columns = ("data", "mechanism", "from", "to", "speed", "unit", "protects")
    title = f"Mean velocity between all pairs of {MAP_STEPS} steps, epsilon 1, w = {WINDOW}"
    return ResultTable("figure-7", title, columns, tuple(lines))


def _inside(data: SppaDataset, series: Any) -> Floats:
    """Velocities between slots that a sampling period releases, over all series."""
    return np.concatenate([velocities(values, data.period)[1:-1] for values in series])


def figure_8(data: tuple[SppaDataset, ...]) -> tuple[ResultTable, ResultTable]:
    """Areas under the curves of event monitoring on each of ``data``, and the curves themselves."""
    areas: list[tuple[Any, ...]] = []
    points: list[tuple[Any, ...]] = []
    for dataset in data:
        true = _inside(dataset, dataset.series)
        at = float(np.quantile(true, EVENT_QUANTILE))
        factor, unit = speed_unit(dataset)
        for name, way in ways(dataset, EPSILON, WINDOW).items():
            seen = _inside(dataset, way.run(dataset.series, 8))
            curves = {
                MOVING: moving_label_curve(true, seen),
                FIXED: fixed_label_curve(true, seen, at),
            }
            printed = PUBLISHED.get(dataset.name, {}).get(name)
            curve_areas = tuple(curve.area for curve in curves.values())
            top = factor * float(np.nanmax(seen))
            areas.append(
                (dataset.name, name, printed, *curve_areas, factor * at, top, unit, way.protects)
            )
            for kind, curve in curves.items():
                last = len(curve.thresholds) - 1
                some = np.unique(np.linspace(0, last, MAX_CURVE_POINTS).round().astype(int))
                for x, y in zip(
                    curve.false_positives[some], curve.true_positives[some], strict=True
                ):
                    points.append((dataset.name, name, kind, float(x), float(y), way.protects))
    title = f"Areas under the curves of event monitoring, epsilon 1, w = {WINDOW}"
    of_areas = (
        *("data", "mechanism", "published", "moving_labels", "fixed_labels", "event_above"),
        *("highest_speed", "unit", "protects"),
    )
    of_points = ("data", "mechanism", "labels", "false_positives", "true_positives", "protects")
    return (
        ResultTable("figure-8", title, of_areas, tuple(areas)),
        ResultTable("figure-8-curves", title, of_points, tuple(points)),
    )


def tables(data: tuple[SppaDataset, ...]) -> Iterator[ResultTable]:
    """The tables of Figures 7 and 8, from those of ``data`` that are places."""
    moving = tuple(dataset for dataset in data if dataset.columns == 2)
    yield figure_7((moving[0], moving[-1]))
    yield from figure_8(moving)


# statements

AREA_TOLERANCE = 0.07  # of a printed area
# The area of PeGaSus for gazes is not compared: velocities that are nothing but noise are above all
# thresholds or none, and a few steps decide where in between.
AREA_VERDICTS: dict[tuple[str, str], Verdict] = {
    ("Porto taxis", SPPA): "holds",
    ("Porto taxis", ETM): "does not hold",
    ("Porto taxis", PEGASUS): "holds",
    ("gaze", SPPA): "holds",
    ("gaze", ETM): "does not hold",
}


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of events, from ``tables``."""
    section = Section("Event monitoring, epsilon 1, w = 8 (Section 5.3.2, Figs. 7 and 8)")
    table, how = tables["figure-8"], "figure-8.csv"
    for data in table.unique("data"):
        areas = {line["mechanism"]: line for line in table.where(data=data)}
        for column, labels in (("moving_labels", MOVING), ("fixed_labels", FIXED)):
            first, second, third = (float(areas[mechanism][column]) for mechanism in THEIRS)
            what = f"{data}, {labels}: the areas of SPPA, ETM and PeGaSus are in this order"
            yield section.holds(what, 1, float(first > second > third), "1 is yes")
            what = f"{data}, {labels}: the area of SPPA is above that of ETM by"
            yield section.ours(what, first / second - 1, "the paper: up to 0.214")
            for name in (*THEIRS, JOINED, CLAMPED, MEAN):
                what = f"{data}, {labels}: {name}"
                compared = labels == MOVING and (data, name) in AREA_VERDICTS
                printed = areas[name]["published"] if compared else None
                verdict = AREA_VERDICTS[data, name] if compared else "ours"
                yield section.row(what, printed, areas[name][column], verdict, how, AREA_TOLERANCE)
    table, how = tables["figure-7"], "figure-7.csv"
    for data in table.unique("data"):
        unit = table.column("unit", data=data)[0]
        for name in SHOWN:
            lines = table.where(data=data, mechanism=name)
            top = max(line["speed"] for line in lines if line["to"] == line["from"] + 1)
            what = f"{data}, {name}: highest speed from one step to the next, {unit}"
            yield section.ours(what, top, "the series of Fig. 7")
