"""Pictures of the study on sampling periods, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tempriv.report.plots.series import GRAY, INK
from tempriv.studies.common import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    ResultTable,
    Tables,
    label_axes,
    shared_legend,
    subplots,
)
from tempriv.studies.sppa.cleaning import LEADS_AWAY
from tempriv.studies.sppa.errors import SETTINGS
from tempriv.studies.sppa.events import FIXED, MOVING, ORIGINAL, SHOWN
from tempriv.studies.sppa.experiment import (
    CLAMPED,
    COSINE,
    CURVE,
    ETM,
    JOINED,
    MEAN,
    ORDER,
    PATTERN,
    PEGASUS,
    SPPA,
    THEIRS,
)
from tempriv.studies.sppa.segments import BLIND, GENEROUS

# Okabe and Ito's colors; the paper's mechanisms have open marks, ours full ones
LOOKS = {
    SPPA: (BLUE, "o"),
    ETM: (ORANGE, "s"),
    JOINED: (ORANGE, None),
    PEGASUS: (VERMILION, "^"),
    COSINE: (SKY, "v"),
    CLAMPED: (GREEN, "D"),
    CURVE: (PURPLE, "P"),
    ORDER: ("#8C6D31", "*"),
    PATTERN: ("#7B4EA3", "X"),
    MEAN: ("#1f2430", None),
    ORIGINAL: ("#c3c9d3", None),
    BLIND: ("#5b6472", None),
    GENEROUS: (VERMILION, "1"),
}
STYLES: dict[str, str] = {JOINED: "--", MEAN: "--", ORIGINAL: "-", BLIND: ":", GENEROUS: "-."}


def _plot(axis: Any, name: str, across: Any, up: Any, label: str | None = None) -> None:
    color, mark = LOOKS[name]
    # others often lie on these, which show from under them
    under = name in (PEGASUS, ORIGINAL)
    axis.plot(
        across,
        up,
        STYLES.get(name, "-"),
        color=color,
        linewidth=3.0 if under else 1.4,
        marker=mark,
        markersize=8 if under else 5,
        zorder=1.5 if under else 2,
        markerfacecolor="white" if name in THEIRS else color,
        label=label or name,
    )


def _data(table: ResultTable) -> list[str]:
    return table.unique("data")


def figure_1(tables: Tables) -> Any:
    """Distances from the start, released and sorted; and what that restores of every trip."""
    figure, axes = subplots(1, 3, (12.0, 3.9))
    paths = tables["figure-1"]
    for axis, kind in zip(axes, ("leads away", "typical"), strict=False):
        lines = paths.where(trip=kind)
        steps = [line["step"] for line in lines]
        for column, color, style in (
            ("original", INK, "-"),
            ("released", ORANGE, "o"),
            ("sorted", GREEN, "."),
            ("placed", BLUE, "x"),
        ):
            words = {"released": "by ETM", "sorted": "sorted", "placed": "placed by its law"}
            far = [line[column] / 1000 for line in lines]
            fill = "white" if style == "o" else color
            axis.plot(
                steps,
                far,
                style,
                color=color,
                markersize=4.5,
                markerfacecolor=fill,
                label=words.get(column, column),
            )
        title = "a trip that leads away" if kind == "leads away" else "a typical trip"
        label_axes(axis, f"{title}, epsilon 1, w = 8", "step of 15 s", "km from the start")
    every, axis = tables["figure-1-trips"], axes[2]
    for name, color, mark in zip(_data(every), (BLUE, VERMILION), ("o", "x"), strict=True):
        lines = every.where(data=name)
        across = [line["leads_away"] for line in lines]
        up = [line["named"] for line in lines]
        axis.plot(
            across, up, mark, color=color, markersize=3, alpha=0.5, label=name, rasterized=True
        )
    before = float(np.median(every.column("in_place")))
    axis.axhline(before, color=GRAY, linewidth=1, linestyle="--")
    axis.annotate(
        "as released", (0, before), (2, -12), textcoords="offset points", fontsize=9, color=INK
    )
    axis.axvline(LEADS_AWAY, color=GRAY, linewidth=1, linestyle=":")
    axis.set_xlim(0, 1.02)
    axis.set_ylim(0, 1.02)
    label_axes(axis, "slots whose step is named", "share of near pairs that lead away", "share")
    return shared_legend(figure, axes, 6)


def figure_4(tables: Tables) -> Any:
    """Errors against tau; dashed for epsilon 3, small marks for w = 4."""
    table = tables["figure-4"]
    names = _data(table)
    figure, axes = subplots(1, len(names), (13.0, 4.0))
    for axis, data in zip(axes, names, strict=True):
        for name in (SPPA, CLAMPED, MEAN):
            for epsilon, window in SETTINGS:
                if name == MEAN and epsilon > 1:
                    continue  # there is no epsilon in it
                lines = table.where(data=data, mechanism=name, epsilon=epsilon, window=window)
                budget = "" if name == MEAN else f" epsilon {epsilon:g},"
                words = f"{name},{budget} w = {window}"
                color, mark = LOOKS[name]
                axis.plot(
                    [line["tau"] for line in lines],
                    [line["of_window_variance"] for line in lines],
                    "--" if epsilon > 1 else ":" if name == MEAN else "-",
                    color=color,
                    marker=mark,
                    markersize=3 if window == 4 else 6,
                    linewidth=2.4 if name == MEAN and window > 4 else 1.2,
                    markerfacecolor="white" if name in THEIRS else color,
                    label=words,
                )
        axis.set_ylim(bottom=0)
        up = "squared error / variance in windows" if axis is axes[0] else ""
        label_axes(axis, data, "tau, in sampling periods", up)
    return shared_legend(figure, axes, 4)


def _errors(table: ResultTable, across: str, words: str) -> Any:
    names = _data(table)
    figure, axes = subplots(1, len(names), (13.0, 4.6))
    for axis, data in zip(axes, names, strict=True):
        for name in table.unique("mechanism"):
            lines = table.where(data=data, mechanism=name)
            protects = lines[0]["protects"].partition(";")[0]
            if across == "window":
                protects = protects.replace(f" {lines[0]['window']}", " w")
            _plot(
                axis,
                name,
                [line[across] for line in lines],
                [line["of_variance"] for line in lines],
                f"{name} ({protects})",
            )
        axis.axhline(1, color=GRAY, linewidth=0.8)
        axis.set_yscale("log")
        up = "squared error / variance of the series (log)" if axis is axes[0] else ""
        label_axes(axis, data, words, up)
    return shared_legend(figure, axes, 3)


def figure_5(tables: Tables) -> Any:
    """Errors against the budget, with what each mechanism protects."""
    return _errors(tables["figure-5"], "epsilon", "epsilon")


def figure_6(tables: Tables) -> Any:
    """Errors against the window."""
    return _errors(tables["figure-6"], "window", "window w")


def figure_7(tables: Tables) -> Any:
    """Mean velocities between all pairs of steps, a map for each mechanism."""
    table = tables["figure-7"]
    names = _data(table)
    figure, axes = subplots(len(names), len(SHOWN), (13.0, 2.9 * len(names)))
    for row, data in enumerate(names):
        of = axes[row * len(SHOWN) : (row + 1) * len(SHOWN)]
        unit = table.column("unit", data=data)[0]
        most = max(table.column("speed", data=data, mechanism=ORIGINAL))
        for axis, name in zip(of, SHOWN, strict=True):
            lines = table.where(data=data, mechanism=name)
            size = max(line["to"] for line in lines) + 1
            speeds = np.zeros((size, size))
            for line in lines:
                i, j = line["from"], line["to"]
                speeds[i, j] = speeds[j, i] = line["speed"]
            image = axis.imshow(speeds, cmap="Blues", vmin=0, vmax=most, origin="lower")
            axis.grid(visible=False)
            top = max(line["speed"] for line in lines if line["to"] == line["from"] + 1)
            label_axes(axis, f"{name}, up to {top:,.0f}", "step", data if axis is of[0] else "")
        bar = figure.colorbar(image, ax=of, shrink=0.9, extend="max", pad=0.01)
        bar.set_label(unit, fontsize=10, color=INK)
    return figure


def figure_8(tables: Tables) -> Any:
    """True against false positives; the paper's way above, with fixed labels below."""
    curves, areas = tables["figure-8-curves"], tables["figure-8"]
    names = _data(curves)
    figure, axes = subplots(2, len(names), (11.0, 7.6))
    for row, (labels, column) in enumerate(((MOVING, "moving_labels"), (FIXED, "fixed_labels"))):
        for axis, data in zip(axes[row * len(names) :], names, strict=False):
            for name in (SPPA, CLAMPED, ETM, JOINED, ORDER, PEGASUS, MEAN):
                lines = curves.where(data=data, mechanism=name, labels=labels)
                points = sorted((line["false_positives"], line["true_positives"]) for line in lines)
                across, up = zip(*((0.0, 0.0), *points, (1.0, 1.0)), strict=True)
                (area,) = areas.column(column, data=data, mechanism=name)
                color = LOOKS[name][0]
                axis.plot(
                    across,
                    up,
                    STYLES.get(name, "-"),
                    color=color,
                    linewidth=1.6,
                    label=f"{name} {area:.2f}",
                )
            axis.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8, linestyle=":")
            axis.legend(loc="lower right", fontsize=8, frameon=False)
            label_axes(axis, f"{data}, {labels}", "false positives", "true positives")
    return figure


def table_1(tables: Tables) -> Any:
    """F1 scores against the budget: of labels with what is printed, and of changes."""
    table = tables["table-1"]
    figure, axes = subplots(1, 3, (12.0, 4.4))
    for axis, column, title in (
        (axes[0], "labels", "F1 of labels, TICC (dotted: printed)"),
        (axes[1], "changes", "F1 of changes, TICC"),
        (axes[2], "changes_by_ruptures", "F1 of changes, ruptures"),
    ):
        for name in table.unique("mechanism"):
            lines = table.where(mechanism=name)
            across = [line["epsilon"] for line in lines]
            _plot(axis, name, across, [line[column] for line in lines])
            printed = [line["published"] for line in lines]
            if column == "labels" and printed[0] is not None:
                axis.plot(across, printed, ":", color=LOOKS[name][0], linewidth=1.8)
        axis.set_ylim(0, 1)
        label_axes(axis, title, "epsilon", "")
    return shared_legend(figure, axes, 5)


def interpolations(tables: Tables) -> Any:
    """Errors of curves within public bounds (full) and without (open), beside the mean."""
    table = tables["interpolations"]
    names = _data(table)
    figure, axes = subplots(1, len(names), (12.0, 3.2))
    kinds = ("printed", "hermitian", "cosine")
    for axis, data in zip(axes, names, strict=True):
        for epsilon, color, apart in ((1.0, VERMILION, 0.12), (3.0, BLUE, -0.12)):
            for place, kind in enumerate(kinds):
                errors = [
                    table.column("of_window_variance", data=data, epsilon=epsilon, mechanism=name)[
                        0
                    ]
                    for name in (kind, f"{kind}, clamped")
                ]
                heights = [place + apart] * 2
                axis.plot(errors, heights, color=color, linewidth=1.5)
                axis.plot(
                    errors[0],
                    heights[0],
                    "o",
                    color=color,
                    markerfacecolor="white",
                    label=f"epsilon {epsilon:g}",
                )
                axis.plot(
                    errors[1], heights[1], "o", color=color, label=f"epsilon {epsilon:g}, clamped"
                )
        (mean,) = table.column("of_window_variance", data=data, epsilon=1.0, mechanism=MEAN)
        axis.axvline(mean, color=INK, linewidth=1.2, linestyle="--", label=MEAN)
        axis.set_yticks(range(len(kinds)), kinds if axis is axes[0] else [""] * len(kinds))
        axis.set_ylim(-0.5, len(kinds) - 0.5)
        axis.set_xlim(0, 1.6)
        axis.set_xticks((0.0, 0.5, 1.0, 1.5))
        label_axes(axis, data, "squared error / variance in windows", "")
    return shared_legend(figure, axes, 5)


PICTURES: dict[str, Callable[[Tables], Any]] = {
    "figure-1": figure_1,
    "interpolations": interpolations,
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "figure-8": figure_8,
    "table-1": table_1,
}
