"""Table 1 of the paper on sampling periods: what clustering still finds out about activities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.studies.common import ResultTable, Row, Section, Tables, standard_error
from tempriv.studies.sppa.data import Activities, SppaDataset, SppaInputs
from tempriv.studies.sppa.experiment import (
    CLAMPED,
    ETM,
    MEAN,
    NOTHING,
    ORDER,
    PATTERN,
    PEGASUS,
    SPPA,
    WINDOW,
    SppaMethod,
    SppaSize,
    mean_way,
    ways,
)
from tempriv.studies.sppa.segmentation import change_f1, changes, cut, label_f1
from tempriv.studies.sppa.ticc import Clustering
from tempriv.utility.monitoring import as_seen

Floats = npt.NDArray[np.float64]

ORIGINAL, BLIND = "original", "six equal parts"
GENEROUS = "PeGaSus, 192 times epsilon"
GENEROUS_FACTOR = (
    8 * 6 * 4
)  # epsilon for each reading alone, each column alone, and a change by 1 of 4 g
SHOWN = (PEGASUS, GENEROUS, ETM, SPPA, CLAMPED, ORDER, PATTERN)
PUBLISHED = {
    ORIGINAL: dict.fromkeys((0.25, 0.5, 0.75, 1.0), 0.813),
    PEGASUS: {0.25: 0.740, 0.5: 0.744, 0.75: 0.764, 1.0: 0.810},
    ETM: {0.25: 0.674, 0.5: 0.723, 0.75: 0.725, 1.0: 0.744},
    SPPA: {0.25: 0.582, 0.5: 0.634, 0.75: 0.640, 1.0: 0.706},
}
ACTIVITIES = 6
TOLERANCE_STEPS = 64  # steps, 1.3 seconds; activities last ten and more
GRID_STEPS = 64  # of binary segmentation
# chosen on the true streams; differences below the floor are no other activity
CLUSTERING = Clustering(clusters=ACTIVITIES, window=3, switching=50.0, floor=0.3)


def filled(released: Any) -> Floats:
    """As seen, with the first release in the place of slots before it.

    Parameters:
        released: an array of rows, empty slots masked.
    """
    seen = as_seen(released)
    first = int(np.argmax(~np.isnan(seen[:, 0])))
    seen[:first] = seen[first]
    return seen


def scored(truth: Activities, labels: Any, cuts: Any) -> tuple[float, float, float]:
    """F1 of ``labels`` and their changes, and of ``cuts``, against the ``truth``."""
    when = changes(truth.labels)
    return (
        label_f1(truth.labels, labels),
        change_f1(when, changes(labels), TOLERANCE_STEPS),
        change_f1(when, cuts, TOLERANCE_STEPS),
    )


def scores(streams: Sequence[Any], truth: tuple[Activities, ...]) -> Floats:
    """For each stream: F1 of labels and of changes by TICC, of changes by binary segmentation.

    The adversary is told how many activities there are, and for the last how many changes.

    Parameters:
        streams: as they were released.
        truth: streams and their activities.
    """
    rows = []
    for stream, activities in zip(streams, truth, strict=True):
        values = filled(stream)
        cuts = cut(values, len(changes(activities.labels)), grid=GRID_STEPS)
        rows.append(scored(activities, CLUSTERING.of(values).labels, cuts))
    return np.array(rows)


def blind_scores(truth: tuple[Activities, ...]) -> Floats:
    """Of somebody who sees nothing, and cuts the time into equal parts.

    Parameters:
        truth: streams and their activities.
    """
    rows = []
    for activities in truth:
        steps, number = np.arange(len(activities.labels)), len(changes(activities.labels)) + 1
        cuts = changes(steps * number // len(steps))
        rows.append(scored(activities, steps * ACTIVITIES // len(steps), cuts))
    return np.array(rows)


def table_1(
    phone: SppaDataset, truth: tuple[Activities, ...], budgets: tuple[float, ...]
) -> ResultTable:
    """F1 scores of what clustering finds in each release.

    Parameters:
        phone: the data set.
        truth: streams and their activities.
        budgets: the epsilons.
    """
    series = [activities.values for activities in truth]
    lines: list[tuple[Any, ...]] = []

    def add(epsilon: float, name: str, each: Floats, protects: str) -> None:
        """Add a line: ``epsilon``, ``name``, ``each`` score's mean, what it ``protects``."""
        published = PUBLISHED.get(name, {}).get(epsilon)
        means = map(float, each.mean(axis=0))
        lines.append((epsilon, name, published, *means, standard_error(each[:, 0]), protects))

    same = {
        ORIGINAL: (scores(series, truth), NOTHING),
        MEAN: (scores(mean_way(WINDOW).run(series, 0), truth), NOTHING),
        BLIND: (blind_scores(truth), "everything: nothing is released"),
    }
    for epsilon in budgets:
        for name, (each, protects) in same.items():
            add(epsilon, name, each, protects)
        made = ways(phone, epsilon, WINDOW)
        made[GENEROUS] = SppaMethod(
            ways(phone, GENEROUS_FACTOR * epsilon, WINDOW)[PEGASUS].run,
            "a change of 1 in one number",
        )
        for name in SHOWN:
            add(epsilon, name, scores(made[name].run(series, 9), truth), made[name].protects)
    columns = (
        *("epsilon", "mechanism", "published", "labels", "changes", "changes_by_ruptures"),
        *("standard_error", "protects"),
    )
    title = f"F1 of activities and of their changes, {len(truth)} streams of a phone, w = {WINDOW}"
    return ResultTable("table-1", title, columns, tuple(lines))


def tables(inputs: SppaInputs, size: SppaSize) -> Iterator[ResultTable]:
    """Table 1 from some streams of ``inputs``, as many as a ``size`` says."""
    places = np.linspace(0, len(inputs.activities) - 1, size.clustered).round().astype(int)
    chosen = tuple(inputs.activities[i] for i in dict.fromkeys(places.tolist()))
    yield table_1(inputs.phone, chosen, size.budgets)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of activities, from ``tables``."""
    section = Section("Activities from a phone (Section 5.3.3, Table 1)")
    table, how = tables["table-1"], "table-1.csv"

    def of(name: str, column: str = "labels") -> Floats:
        """The values of a ``column`` for a method's ``name``, by budget."""
        return np.array(table.column(column, mechanism=name))

    # "the F1 score of true data is the highest, followed by ... PeGaSus and ETM, and SPPA ..."
    right = (of(ORIGINAL) > of(PEGASUS)) & (of(PEGASUS) > of(ETM)) & (of(ETM) > of(SPPA))
    what = "share of budgets with the scores of original, PeGaSus, ETM, SPPA falling in this order"
    yield section.fails(what, 1, float(right.mean()), how)
    lowest = np.min([of(series) for series in (ORIGINAL, ETM, SPPA)], axis=0)
    what = "share of budgets at which PeGaSus has the lowest score of them"
    yield section.fails(what, 0, float((of(PEGASUS) < lowest).mean()), how)
    what = "original: F1 of labels"
    yield section.fails(
        what,
        0.813,
        of(ORIGINAL)[0],
        "the paper does not say how it joins windows, nor its parameters",
        0.05,
    )
    for name in (SPPA, ETM, CLAMPED):
        kept = float((of(name) / of(ORIGINAL)).min())
        what = f"{name}: part of the original's score that is left, at least"
        yield section.ours(what, kept, "epsilon 0.25 to 1")
    kept = float((of(PEGASUS) / of(ORIGINAL)).max())
    what = "PeGaSus: part of the original's score that is left, at most"
    yield section.ours(what, kept, "any 8 readings of 6 columns share epsilon")
    for name in (ORIGINAL, MEAN, BLIND, *SHOWN):
        what = f"{name}, epsilon 1: F1 of labels"
        yield section.ours(what, of(name)[-1], how)
        what = f"{name}, epsilon 1: F1 of changes, within {TOLERANCE_STEPS} steps"
        yield section.ours(what, of(name, "changes")[-1], how)
        yield section.ours(
            f"{what}, by ruptures",
            of(name, "changes_by_ruptures")[-1],
            "binary segmentation, number of changes known",
        )
