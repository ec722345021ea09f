"""Figures 8, 9 and 10 of the paper on landmarks: where landmarks lie in time, and what that does.

Series have 100 steps and no values: landmarks lie at the beginning (skewed), in the middle
(symmetric), at both ends (bimodal) or anywhere (uniform).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tempriv.correlation.chain import Chain
from tempriv.correlation.landmarks import landmark_loss
from tempriv.correlation.loss import loss
from tempriv.landmarks.dummy_sets import Distance, partitioned, steps_to_nearest
from tempriv.studies.common import (
    ResultTable,
    Row,
    Section,
    Tables,
    Verdict,
    mean_and_error,
    uniform,
)
from tempriv.studies.landmark.data import INSIDE, SHARES
from tempriv.studies.landmark.experiment import EPSILON, LandmarkSize

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

LENGTH = 100
STATES = 2
SMOOTHING = {"weak": 1.0, "moderate": 0.1, "strong": 0.01}
SKEWED, SYMMETRIC, BIMODAL, UNIFORM = "skewed", "symmetric", "bimodal", "uniform"
# centers as parts of the length; the paper's scale is the length "over a constant", which it does
# not tell
CENTERS = {SKEWED: (0.0,), SYMMETRIC: (0.5,), BIMODAL: (0.0, 1.0), UNIFORM: ()}
SCALE = 0.1


def placed(placement: str, landmarks: int, run: int) -> Flags:
    """Landmarks drawn without replacement from a normal curve about each center, or anywhere.

    Parameters:
        placement: its name.
        landmarks: how many.
        run: its number, which decides the draw.

    >>> first, last = np.flatnonzero(placed("skewed", 20, 0))[[0, -1]]
    >>> int(first) < 5, int(last) < 60
    (True, True)
    """
    middles = (np.arange(LENGTH) + 0.5) / LENGTH
    curves = [np.exp(-0.5 * ((middles - at) / SCALE) ** 2) for at in CENTERS[placement]]
    weights = np.sum(curves, axis=0) if curves else np.ones(LENGTH)
    # the first of exponential times with these rates: Efraimidis and Spirakis 2006
    drawn = uniform(f"{placement} {landmarks} {run}", LENGTH) + 2.0**-21
    order = np.argsort(np.log(-np.log(drawn)) - np.log(weights), kind="stable")
    marks = np.zeros(LENGTH, dtype=np.bool_)
    marks[order[:landmarks]] = True
    return marks


def placements(size: LandmarkSize) -> Iterator[tuple[str, float, list[Flags]]]:
    """Placements, shares and sets of a ``size``; of none or all steps there is one set only."""
    for placement, share in itertools.product(CENTERS, SHARES):
        runs = size.placements if share in INSIDE else 1
        landmarks = round(share * LENGTH)
        yield placement, share, [placed(placement, landmarks, run) for run in range(runs)]


# Figure 8


def distances(marks: Flags, edges: bool) -> float | None:
    """Mean steps of regular events to the nearest landmark; or to that or the nearer end.

    A step further than the events that lie between, which the paper counts. None if there is no
    landmark to be near to, or no regular event.

    >>> marks = np.array([False, False, True, False, False, False, True])
    >>> distances(marks, edges=False), distances(marks, edges=True)
    (1.4, 1.2)
    """
    steps = steps_to_nearest(marks)
    if edges:
        ends = np.minimum(np.arange(len(marks)) + 1, len(marks) - np.arange(len(marks)))
        steps = np.where(steps < 0, ends, np.minimum(steps, ends))
    elif not marks.any():
        return None
    regular = steps[~marks]
    return float(regular.mean()) if len(regular) else None


def figure_8(size: LandmarkSize) -> ResultTable:
    """How far regular events are from landmarks, for each placement, in a ``size``."""
    lines: list[tuple[Any, ...]] = []
    for placement, share, sets in placements(size):
        line: list[Any] = [placement, share]
        for edges in (False, True):
            steps = [
                far
                for far in (distances(landmark_set, edges) for landmark_set in sets)
                if far is not None
            ]
            line += mean_and_error(steps) if steps else (None, None)
        lines.append(tuple(line))
    columns = (
        *("placement", "share", "to_landmark", "to_landmark_error"),
        *("to_landmark_or_end", "to_landmark_or_end_error"),
    )
    title = f"mean steps from a regular event to the nearest landmark, {LENGTH} steps"
    return ResultTable("figure-8", title, columns, tuple(lines))


# Figure 9


def budgets_of(marks: Flags) -> Floats:
    """Of Uniform: epsilon over the landmarks and one other reading, if there is one."""
    landmarks = int(np.count_nonzero(marks))
    return np.full(len(marks), EPSILON / (landmarks + (landmarks < len(marks))))


def alone(chain: Chain, marks: Flags) -> Floats:
    """a_t of Definition 5 for each regular step by itself: what leaks between its two neighbors.

    Of the landmarks only those next to it count, and their own loss does not.

    Parameters:
        chain: that readings follow.
        marks: which steps are landmarks.
    """
    spent, losses = budgets_of(marks), []
    edges = [-1, *np.flatnonzero(marks).tolist(), len(marks)]
    if not marks.any():
        return loss(chain, spent).total
    for before, after in itertools.pairwise(edges):
        first, last = max(before, 0), min(after, len(marks) - 1)
        if after - before > 1:
            total = _between(chain, float(spent[0]), last - first + 1)
            losses.append(total[before + 1 - first : after - first])
    return np.concatenate(losses) if losses else np.zeros(0)


@functools.cache
def _between(chain: Chain, epsilon: float, steps: int) -> Floats:
    return loss(chain, np.full(steps, epsilon)).total


def figure_9(size: LandmarkSize) -> ResultTable:
    """The temporal loss of each placement with Uniform budgets, in a ``size``."""
    lines: list[tuple[Any, ...]] = []
    for degree, smoothing in SMOOTHING.items():
        chain = Chain.smoothed_identity(STATES, smoothing)
        for placement, share, sets in placements(size):
            each: dict[str, list[float]] = {name: [] for name in LOSSES}
            for marks in sets:
                inputs = (chain, budgets_of(marks), np.flatnonzero(marks).tolist())
                closed = landmark_loss(*inputs, "definition5").total
                bridge = landmark_loss(*inputs, "bridge").total
                open_ = landmark_loss(*inputs, "definition5", "exclusive").total
                single = alone(chain, marks)
                each["definition5"].append(float(closed.mean()))
                each["definition5_most"].append(float(closed.max()))
                each["definition5_open"].append(float(open_.mean()))
                each["bridge"].append(float(bridge.mean()))
                each["bridge_most"].append(float(bridge.max()))
                if len(single):
                    each["alone"].append(float(single.mean()))
            means = [mean_and_error(losses) if losses else (None, None) for losses in each.values()]
            spread = means[0][1]
            lines.append(
                (degree, smoothing, placement, share, *(m for m, _ in means), spread, EPSILON)
            )
    columns = (
        *("correlation", "s", "placement", "share"),
        *LOSSES,
        *("definition5_error", "without_correlation"),
    )
    title = f"temporal loss of landmarks and any other step, Uniform, {LENGTH} steps, epsilon 1"
    return ResultTable("figure-9", title, columns, tuple(lines))


LOSSES = (
    *("definition5", "definition5_most", "definition5_open", "bridge", "bridge_most", "alone"),
)


# Figure 10


def figure_10(size: LandmarkSize) -> ResultTable:
    """Mean over the sets that Partitioned makes, of 20 to 80 % landmarks, in a ``size``."""
    lines: list[tuple[Any, ...]] = []
    metrics: tuple[Distance, ...] = ("euclidean", "wasserstein")
    for metric in metrics:
        for placement, share, sets in placements(size):
            if share not in INSIDE:
                continue
            options = [partitioned(marks, metric) for marks in sets]
            of_possible, spread = mean_and_error(
                [float(option.normalized.mean()) for option in options]
            )
            of_all = [
                float((option.distances / option.distances.max()).mean()) for option in options
            ]
            lines.append((metric, placement, share, of_possible, spread, mean_and_error(of_all)[0]))
    columns = (
        *("distance", "placement", "share", "of_largest_possible", "standard_error"),
        "of_the_full_set",
    )
    title = f"distance of landmark sets with dummies from the landmarks, {LENGTH} steps"
    return ResultTable("figure-10", title, columns, tuple(lines))


def tables(size: LandmarkSize) -> Iterator[ResultTable]:
    """The tables of Figures 8 to 10, in a ``size``."""
    yield figure_8(size)
    yield figure_9(size)
    yield figure_10(size)


# statements


def rows(tables: Tables) -> Iterator[Row]:
    """Verdicts on what the paper says of placements, from ``tables``."""
    yield from _distances(tables["figure-8"])
    yield from _losses(tables["figure-9"])
    yield from _generated(tables["figure-10"])


def _order(table: ResultTable, column: str, share: float, **wanted: Any) -> list[str]:
    """Placements by a column, the least first."""
    lines = table.where(share=share, **wanted)
    return [line["placement"] for line in sorted(lines, key=lambda line: float(line[column]))]


def _distances(table: ResultTable) -> Iterator[Row]:
    section = Section("Distance from landmarks (Section 4.2.2, Figure 8)")
    for column, name in (
        ("to_landmark", "nearest landmark"),
        ("to_landmark_or_end", "nearest landmark or end"),
    ):
        orders = [_order(table, column, share) for share in INSIDE]
        least = sum(order[0] == UNIFORM for order in orders)
        what = f"{name}, of 20 to 80 %: shares at which uniform has the least distance"
        yield section.holds(what, 4, least, "figure-8.csv")
        most = sum(order[-1] == SKEWED for order in orders)
        what = f"{name}, of 20 to 80 %: shares at which skewed has the greatest"
        yield section.holds(what, 4, most, "figure-8.csv")
        (bimodal,), (symmetric,) = (
            table.column(column, placement=group, share=INSIDE[0]) for group in (BIMODAL, SYMMETRIC)
        )
        what = f"{name}, 20 %: distance of bimodal over that of symmetric"
        yield section.ours(
            what, bimodal / symmetric, "'uniform and bimodal ... limit the distance'"
        )
    # the text counts the ends as landmarks
    below = sum(
        order.index(BIMODAL) < order.index(SYMMETRIC)
        for order in (_order(table, "to_landmark_or_end", share) for share in INSIDE)
    )
    what = "nearest landmark or end, of 20 to 80 %: bimodal has less than symmetric"
    yield section.fails(
        what, 4, below, "both ends are landmarks then, so the middle is far from all"
    )


def _losses(table: ResultTable) -> Iterator[Row]:
    section = Section("Temporal loss by placement (Section 4.2.2, Figure 9)")
    cases = list(itertools.product(("moderate", "strong"), INSIDE))
    for column, name in (
        ("definition5", "Definition 5's sum"),
        ("definition5_open", "Definition 5's sum, open intervals"),
        ("bridge", "bound that holds"),
        ("alone", "a_t alone"),
    ):
        orders = [_order(table, column, share, correlation=degree) for degree, share in cases]
        most = sum(order[-1] == SKEWED for order in orders)
        what = f"{name}, of 8 cases: the placement furthest from landmarks has the greatest loss"
        reversed_ = column != "alone"
        yield section.row(
            what,
            8,
            most,
            "does not hold" if reversed_ else "holds",
            "moderate and strong correlation, 20 to 80 %",
        )
        what = f"{name}, of 8 cases: it has the least loss"
        yield section.row(
            what,
            0,
            sum(order[0] == SKEWED for order in orders),
            "does not hold" if reversed_ else "holds",
            "the opposite",
        )
    for degree in SMOOTHING:
        for column, name in (("definition5", "Definition 5's sum"), ("alone", "a_t alone")):
            wide = [
                max(table.column(column, correlation=degree, share=share))
                - min(table.column(column, correlation=degree, share=share))
                for share in INSIDE
            ]
            what = f"{name}, {degree}: greatest difference between placements"
            yield section.ours(what, max(wide), "'widening the gap' with the correlation")
    for column, name in (("definition5", "Definition 5's sum"), ("alone", "a_t alone")):
        rises = sum(
            table.column(column, correlation="weak", placement=group, share=share)
            < table.column(column, correlation="moderate", placement=group, share=share)
            < table.column(column, correlation="strong", placement=group, share=share)
            for group, share in itertools.product(CENTERS, INSIDE)
        )
        what = f"{name}, of 16 cases: the stronger the correlation, the greater the loss"
        yield section.holds(what, 16, rises, "figure-9.csv")
    section = Section("Landmarks against none (Section 3.3)")
    for degree in SMOOTHING:
        (none,) = table.column("definition5", correlation=degree, placement=UNIFORM, share=0.0)
        (some,) = table.column("definition5", correlation=degree, placement=UNIFORM, share=0.2)
        (held,) = table.column("bridge", correlation=degree, placement=UNIFORM, share=0.2)
        how = "'less than ... without the knowledge of the landmarks'"
        what = f"{degree}, uniform, 20 %: Definition 5's sum, as a part of the loss without any"
        yield section.ours(what, some / none, how)
        what = f"{degree}, uniform, 20 %: bound that holds, as a part of the loss without any"
        yield section.ours(what, held / none, how, at_most=1.0)


def _generated(table: ResultTable) -> Iterator[Row]:
    section = Section("Sets with dummies (Section 4.3.1, Figure 10)")
    how = "parts of the largest distance possible; the paper's divisor is not told"
    euclidean, wasserstein = (
        float(np.mean(table.column("of_largest_possible", distance=metric)))
        for metric in ("euclidean", "wasserstein")
    )
    yield section.holds("Euclidean: mean distance", 0.3, euclidean, how, 0.1)
    yield section.fails("Wasserstein: mean distance", 0.2, wasserstein, how, 0.1)
    verdicts: dict[str, tuple[float, Verdict]] = {
        "euclidean": (0.2, "does not hold"),
        "wasserstein": (0.15, "holds"),
    }
    for metric, (published, verdict) in verdicts.items():
        skewed, bimodal = (
            np.array(table.column("of_largest_possible", distance=metric, placement=group))
            for group in (SKEWED, BIMODAL)
        )
        what = f"{metric.capitalize()}: greatest difference between skewed and bimodal"
        apart = float(np.abs(skewed - bimodal).max())
        yield section.row(what, published, apart, verdict, how, 0.2)
    spreads = [
        max(
            max(part) - min(part)
            for part in (
                table.column("of_largest_possible", distance=metric, share=share)
                for share in INSIDE
            )
        )
        for metric in ("euclidean", "wasserstein")
    ]
    what, steadier = "Euclidean is the more consistent", float(spreads[0] < spreads[1])
    yield section.holds(what, 1, steadier, "greatest difference of placements at a share")
    for metric in ("euclidean", "wasserstein"):
        mean = float(np.mean(table.column("of_the_full_set", distance=metric)))
        what = f"{metric.capitalize()}: mean distance as a part of that of all moments"
        yield section.ours(what, mean, "the other way to divide")
