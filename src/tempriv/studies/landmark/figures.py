"""Pictures of the study on landmarks, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tempriv.report.plots.series import GRAY, INK
from tempriv.studies import plots
from tempriv.studies.common import ResultTable, Tables
from tempriv.studies.landmark.data import (
    BOUNDED,
    FARTHER,
    HUE,
    INSIDE,
    NAMES,
    SHARES,
    TDRIVE,
    percent,
)
from tempriv.studies.landmark.errors import DRAWN, PARAMETERS, PLAIN, RATIOS, WITH_DUMMIES
from tempriv.studies.landmark.experiment import (
    ADAPTIVE,
    BOUND,
    CONSTANT,
    EPSILON,
    EVENT,
    SKIP,
    SPLIT,
    USER,
)
from tempriv.studies.landmark.experiment import UNIFORM as UNIFORM_SCHEME
from tempriv.studies.landmark.placements import BIMODAL, SKEWED, SMOOTHING, SYMMETRIC, UNIFORM
from tempriv.studies.plots import label_axes, shared_legend, subplots

# Okabe and Ito's colors
BARS = {
    SKIP: plots.ORANGE,
    UNIFORM_SCHEME: plots.SKY,
    ADAPTIVE: plots.BLUE,
    SPLIT: plots.GREEN,
    BOUND: plots.PURPLE,
}
LINES = {EVENT: (INK, "--"), USER: (INK, "-"), CONSTANT: (plots.VERMILION, ":")}
PLACED = {
    SKEWED: (plots.VERMILION, "o"),
    SYMMETRIC: (plots.ORANGE, "s"),
    BIMODAL: (plots.BLUE, "^"),
    UNIFORM: (plots.GREEN, "D"),
}
PERCENT = "share of landmarks, %"
DIAMOND = {"markersize": 4.5, "markeredgecolor": INK}


def _percents(axis: Any, shares: Sequence[float]) -> None:
    axis.set_xticks(range(len(shares)), [f"{100 * share:.0f}" for share in shares])


def _bars(axis: Any, table: ResultTable, data: str, column: str = "error") -> None:
    """Bars for schemes, a diamond where they hide which moments are landmarks."""
    width, places = 0.16, np.arange(len(SHARES))
    for i, (scheme, color) in enumerate(BARS.items()):
        at = places + (i - 2) * width
        errors = table.column(column, data=data, scheme=scheme, hidden=PLAIN)
        axis.bar(at, errors, 0.9 * width, color=color, label=scheme)
        hidden = DRAWN if scheme == BOUND else WITH_DUMMIES
        hidden_errors = table.column(column, data=data, scheme=scheme, hidden=hidden)
        axis.plot(at, hidden_errors, "D", color=color, **DIAMOND)
    label = "with dummies (CountBoundLandmarks: with a drawn bound)"
    axis.plot([], [], "D", color="white", label=label, **DIAMOND)
    for name, (color, style) in LINES.items():
        up = table.column(column, data=data, scheme=name, hidden=PLAIN)
        options = {"color": color, "linestyle": style, "linewidth": 1.3, "label": name}
        axis.step(np.append(places, len(places)) - 0.5, [*up, up[-1]], where="post", **options)
    axis.set_xlim(-0.5, len(places) - 0.5)
    axis.grid(axis="x", visible=False)
    _percents(axis, SHARES)


def _unit(table: ResultTable, data: str) -> str:
    unit = str(table.column("unit", data=data)[0])
    names = {"%": "wrong answers, %", "kWh": "mean absolute error, kWh", "m": "mean distance, m"}
    return names[unit]


def figure_7(tables: Tables) -> Any:
    """Errors of the schemes as the paper runs them, from ``tables``; energy is logarithmic."""
    table = tables["figure-7"]
    figure, axes = subplots(1, 3, (14.0, 4.9))
    for axis, data in zip(axes, NAMES, strict=True):
        _bars(axis, table, data)
        if data == HUE:
            axis.set_yscale("log")
        title = {HUE: f"{data}, noise 1 kWh / epsilon", TDRIVE: f"{data}, noise 1 m / epsilon"}
        label_axes(axis, title.get(data, data), PERCENT, _unit(table, data))
    return shared_legend(figure, axes, 5)


def figure_7_neighbors(tables: Tables) -> Any:
    """The same ``tables`` where readings may change by all that they can."""
    table = tables["figure-7-neighbors"]
    figure, axes = subplots(1, 3, (14.0, 4.9))
    for axis, data, column, title in (
        (axes[0], BOUNDED, "error", "HUE, readings from 0 to 5 kWh"),
        (axes[1], BOUNDED, "clamped", "the same, noise put on the bounds"),
        (axes[2], FARTHER, "error", "T-Drive, places within 200 m"),
    ):
        _bars(axis, table, data, column)
        if column == "error":
            axis.set_yscale("log")
        label_axes(axis, title, PERCENT, _unit(table, data))
    return shared_legend(figure, axes, 5)


def _by_placement(
    axis: Any, table: ResultTable, column: str, shares: Sequence[float], **wanted: Any
) -> None:
    for placement, look in PLACED.items():
        up = [
            table.column(column, placement=placement, share=share, **wanted)[0] for share in shares
        ]
        plots.draw_line(
            axis, range(len(shares)), up, look, hollow=True, linewidth=1.5, label=placement
        )
    _percents(axis, shares)


def figure_8(tables: Tables) -> Any:
    """Distances from landmarks by placement, from ``tables``."""
    figure, axes = subplots(1, 2, (9.0, 3.9))
    for axis, column, title in (
        (axes[0], "to_landmark", "to the nearest landmark"),
        (axes[1], "to_landmark_or_end", "to the nearest landmark or end"),
    ):
        _by_placement(axis, tables["figure-8"], column, INSIDE)
        axis.set_ylim(bottom=0)
        label_axes(axis, title, PERCENT, "mean distance, steps")
    return shared_legend(figure, axes, 4)


def figure_9(tables: Tables) -> Any:
    """From ``tables`` what the paper sums, what holds, and where its conclusion appears."""
    figure, axes = subplots(3, 3, (11.5, 10.0))
    rows = (
        ("definition5", "sum of Definition 5", SHARES),
        ("bridge", "bound that holds", SHARES),
        ("alone", "a_t of one step alone", INSIDE),
    )
    for i, (column, measure, shares) in enumerate(rows):
        for j, (degree, smoothing) in enumerate(SMOOTHING.items()):
            axis = axes[3 * i + j]
            _by_placement(axis, tables["figure-9"], column, shares, correlation=degree)
            if column != "alone":
                axis.axhline(
                    EPSILON,
                    color=GRAY,
                    linewidth=1.2,
                    linestyle="--",
                    label="without correlation",
                )
            axis.set_ylim(bottom=0)
            label_axes(axis, f"{measure}, {degree} (s = {smoothing:g})", PERCENT, "temporal loss")
    return shared_legend(figure, axes, 5)


def figure_10(tables: Tables) -> Any:
    """Distances of sets with dummies by placement, from ``tables``."""
    figure, axes = subplots(1, 2, (9.0, 3.9))
    for axis, metric in zip(axes, ("euclidean", "wasserstein"), strict=True):
        column = "of_largest_possible"
        _by_placement(axis, tables["figure-10"], column, INSIDE, distance=metric)
        axis.set_ylim(0, 0.5)
        label_axes(axis, f"{metric.capitalize()} distance", PERCENT, "part of the largest possible")
    return shared_legend(figure, axes, 4)


def figure_11(tables: Tables) -> Any:
    """Uniform with dummies, from ``tables``: above, sets are scored by distance, below by time."""
    table = tables["figure-11"]
    figure, axes = subplots(2, 3, (13.0, 7.2))
    colors = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")
    for i, score in enumerate(("distance", "temporal")):
        for j, data in enumerate(NAMES):
            axis = axes[3 * i + j]
            for k, (ratio, color) in enumerate(zip(RATIOS, colors, strict=True)):
                lines = table.where(data=data, score=score, ratio=ratio)
                at = [SHARES.index(line["share"]) + 0.2 * (k - 1.5) for line in lines]
                label = f"{percent(ratio)} of epsilon for dummies"
                axis.bar(at, [line["error"] for line in lines], 0.18, color=color, label=label)
            axis.set_xlim(-0.5, len(SHARES) - 0.5)
            axis.grid(axis="x", visible=False)
            _percents(axis, SHARES)
            score_name = "by distance" if score == "distance" else "by nearness in time"
            label_axes(axis, f"{data}, sets scored {score_name}", PERCENT, _unit(table, data))
    return shared_legend(figure, axes, 4)


def parameters(tables: Tables) -> Any:
    """Adaptive against Uniform by parameters that the paper does not tell, from ``tables``."""
    table, shares = tables["adaptive-parameters"], SHARES[1:]
    figure, axes = subplots(1, 3, (13.0, 4.2))
    names = ("kappa", "increase", "decrease", "least")
    marks = zip(PARAMETERS, (*BARS.values(),), ("o", "s", "^", "D", "v"), strict=True)
    for chosen, color, mark in marks:
        for axis, data in zip(axes, NAMES, strict=True):
            settings = dict(zip(names, chosen, strict=True))
            up = [
                table.column("of_uniform", data=data, share=share, **settings)[0]
                for share in shares
            ]
            label = ", ".join(f"{name} {value:g}" for name, value in settings.items())
            look = (color, mark)
            plots.draw_line(axis, range(len(shares)), up, look, hollow=True, label=label)
    for axis, data in zip(axes, NAMES, strict=True):
        axis.axhline(1.0, color=GRAY, linewidth=1.2, linestyle="--")
        _percents(axis, shares)
        label_axes(axis, data, PERCENT, "error as a part of Uniform's")
    axes[0].set_ylim(0.8, 1.2)  # within that is chance
    return shared_legend(figure, axes, 3)


PICTURES: dict[str, Callable[[Tables], Any]] = {
    "figure-7": figure_7,
    "figure-7-neighbors": figure_7_neighbors,
    "figure-8": figure_8,
    "figure-9": figure_9,
    "figure-10": figure_10,
    "figure-11": figure_11,
    "adaptive-parameters": parameters,
}
