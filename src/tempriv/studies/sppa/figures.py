"""Pictures of the study on sampling periods, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tempriv.report.plots.series import GRAY, INK
from tempriv.studies import plots
from tempriv.studies.common import ResultTable, Tables
from tempriv.studies.plots import label_axes, shared_legend, subplots
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
    SPPA: (plots.BLUE, "o"),
    ETM: (plots.ORANGE, "s"),
    JOINED: (plots.ORANGE, None),
    PEGASUS: (plots.VERMILION, "^"),
    COSINE: (plots.SKY, "v"),
    CLAMPED: (plots.GREEN, "D"),
    CURVE: (plots.PURPLE, "P"),
    ORDER: ("#8C6D31", "*"),
    PATTERN: ("#7B4EA3", "X"),
    MEAN: ("#1f2430", None),
    ORIGINAL: ("#c3c9d3", None),
    BLIND: ("#5b6472", None),
    GENEROUS: (plots.VERMILION, "1"),
}
PART = "of_window_variance"
STYLES: dict[str, str] = {JOINED: "--", MEAN: "--", ORIGINAL: "-", BLIND: ":", GENEROUS: "-."}


def _plot(axis: Any, name: str, across: Any, up: Any, label: str | None = None) -> None:
    # others often lie on these, which show from under them
    sizes = {"linewidth": 1.4, "markersize": 5, "zorder": 2.0}
    if name in (PEGASUS, ORIGINAL):
        sizes = {"linewidth": 3.0, "markersize": 8, "zorder": 1.5}
    style, hollow = STYLES.get(name, "-"), name in THEIRS
    plots.draw_line(
        axis, across, up, LOOKS[name], style, hollow=hollow, label=label or name, **sizes
    )


def _data(table: ResultTable) -> list[str]:
    return table.unique("data")


def figure_1(tables: Tables) -> Any:
    """Distances from the start, released and sorted, and what that restores, from ``tables``."""
    figure, axes = subplots(1, 3, (12.0, 3.9))
    paths = tables["figure-1"]
    for axis, kind in zip(axes, ("leads away", "typical"), strict=False):
        lines = paths.where(trip=kind)
        steps = [line["step"] for line in lines]
        for column, color, style in (
            ("original", INK, "-"),
            ("released", plots.ORANGE, "o"),
            ("sorted", plots.GREEN, "."),
            ("placed", plots.BLUE, "x"),
        ):
            labels = {
                "released": "by ETM",
                "sorted": "sorted",
                "placed": "placed by its noise",
            }
            kilometers = [line[column] / 1000 for line in lines]
            fill = "white" if style == "o" else color
            options = {"markerfacecolor": fill, "label": labels.get(column, column)}
            axis.plot(steps, kilometers, style, color=color, markersize=4.5, **options)
        title = "a trip that leads away" if kind == "leads away" else "a typical trip"
        label_axes(axis, f"{title}, epsilon 1, w = 8", "step of 15 s", "km from the start")
    every, axis = tables["figure-1-trips"], axes[2]
    for name, color, mark in zip(
        _data(every), (plots.BLUE, plots.VERMILION), ("o", "x"), strict=True
    ):
        lines = every.where(data=name)
        across = [line["leads_away"] for line in lines]
        up = [line["named"] for line in lines]
        points = {"markersize": 3, "alpha": 0.5, "label": name, "rasterized": True}
        axis.plot(across, up, mark, color=color, **points)
    before = float(np.median(every.column("in_place")))
    axis.axhline(before, color=GRAY, linewidth=1, linestyle="--")
    plots.annotate(axis, "as released", (0, before), (2, -12))
    axis.axvline(LEADS_AWAY, color=GRAY, linewidth=1, linestyle=":")
    axis.set_xlim(0, 1.02)
    axis.set_ylim(0, 1.02)
    label_axes(axis, "slots whose step is named", "share of near pairs that lead away", "share")
    return shared_legend(figure, axes, 6)


def figure_4(tables: Tables) -> Any:
    """Errors against tau, from ``tables``; dashed for epsilon 3, small marks for w = 4."""
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
                label = f"{name},{budget} w = {window}"
                plots.draw_line(
                    axis,
                    [line["tau"] for line in lines],
                    [line[PART] for line in lines],
                    LOOKS[name],
                    "--" if epsilon > 1 else ":" if name == MEAN else "-",
                    hollow=name in THEIRS,
                    markersize=3 if window == 4 else 6,
                    linewidth=2.4 if name == MEAN and window > 4 else 1.2,
                    label=label,
                )
        axis.set_ylim(bottom=0)
        up = "squared error / variance in windows" if axis is axes[0] else ""
        label_axes(axis, data, "tau, in sampling periods", up)
    return shared_legend(figure, axes, 4)


def _errors(table: ResultTable, across: str, title: str) -> Any:
    names = _data(table)
    figure, axes = subplots(1, len(names), (13.0, 4.6))
    for axis, data in zip(axes, names, strict=True):
        for name in table.unique("mechanism"):
            lines = table.where(data=data, mechanism=name)
            protects = lines[0]["protects"].partition(";")[0]
            if across == "window":
                protects = protects.replace(f" {lines[0]['window']}", " w")
            errors = [line["of_variance"] for line in lines]
            _plot(axis, name, [line[across] for line in lines], errors, f"{name} ({protects})")
        axis.axhline(1, color=GRAY, linewidth=0.8)
        axis.set_yscale("log")
        up = "squared error / variance of the series (log)" if axis is axes[0] else ""
        label_axes(axis, data, title, up)
    return shared_legend(figure, axes, 3)


def figure_5(tables: Tables) -> Any:
    """Errors against the budget, with what each mechanism protects, from ``tables``."""
    return _errors(tables["figure-5"], "epsilon", "epsilon")


def figure_6(tables: Tables) -> Any:
    """Errors against the window, from ``tables``."""
    return _errors(tables["figure-6"], "window", "window w")


def figure_7(tables: Tables) -> Any:
    """Mean velocities between all pairs of steps from ``tables``, a map for each mechanism."""
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
    """True against false positives, from ``tables``; above the paper's way, below fixed labels."""
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
                look, label = (LOOKS[name][0], None), f"{name} {area:.2f}"
                style = STYLES.get(name, "-")
                plots.draw_line(axis, across, up, look, style, linewidth=1.6, label=label)
            axis.plot([0, 1], [0, 1], color=GRAY, linewidth=0.8, linestyle=":")
            axis.legend(loc="lower right", fontsize=8, frameon=False)
            label_axes(axis, f"{data}, {labels}", "false positives", "true positives")
    return figure


def table_1(tables: Tables) -> Any:
    """F1 scores against the budget, from ``tables``: of labels with what is printed, of changes."""
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
    """Errors of curves in bounds (full) and not (open), beside the mean, from ``tables``."""
    table = tables["interpolations"]
    names = _data(table)
    figure, axes = subplots(1, len(names), (12.0, 3.2))
    kinds = ("printed", "hermitian", "cosine")
    for axis, data in zip(axes, names, strict=True):
        for epsilon, color, apart in ((1.0, plots.VERMILION, 0.12), (3.0, plots.BLUE, -0.12)):
            for place, kind in enumerate(kinds):
                errors = [
                    table.number(PART, data=data, epsilon=epsilon, mechanism=name)
                    for name in (kind, f"{kind}, clamped")
                ]
                label = f"epsilon {epsilon:g}"
                plots.draw_span(axis, errors, place + apart, color, (label, f"{label}, clamped"))
        mean = table.number(PART, data=data, epsilon=1.0, mechanism=MEAN)
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
