"""Pictures of the study on shapes, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tempriv.local.shapes.sax import Sax, curve
from tempriv.report.plots.series import GRAY, INK
from tempriv.studies import plots
from tempriv.studies.common import ResultTable, Tables
from tempriv.studies.plots import label_axes, shared_legend, subplots
from tempriv.studies.privshape.experiment import (
    AS_RUN,
    AUTOMATIC,
    BASELINE,
    COARSE_EPSILONS,
    COMPARED,
    FIRST,
    NEAREST,
    PUBLISHED,
    REPAIRED,
    RULES,
    SWEPT,
)

# Okabe and Ito's colors
LOOKS = {
    BASELINE: (plots.ORANGE, "s", "-"),
    PUBLISHED: (plots.VERMILION, "o", "-"),
    NEAREST: (plots.SKY, "^", "-"),
    AUTOMATIC: (plots.BLUE, "D", "-"),
    FIRST: (INK, "", "--"),
    AS_RUN: (plots.PURPLE, "v", ":"),
    REPAIRED: (plots.PURPLE, "v", "-"),
}
TOP = 1.04  # of axes that show shares
TWICE = "bars: two standard errors"


def _line(
    axis: Any, across: Any, lines: list[dict[str, Any]], name: str, column: str = "score"
) -> None:
    plots.draw_means(axis, across, lines, column, LOOKS[name], name)


def _by_epsilon(
    axis: Any, table: ResultTable, names: Sequence[str], column: str = "score", **wanted: Any
) -> None:
    for k, name in enumerate(names):
        lines = table.where(method=name, **wanted)
        # side by side: some are the same
        beside = 0.012 * (k - (len(names) - 1) / 2)
        _line(axis, [_across(line) + beside for line in lines], lines, name, column)
    _epsilons(axis, table)


def _across(line: dict[str, Any]) -> float:
    """Roots of epsilon: room for small ones, and for all the large ones of the paper."""
    return float(np.sqrt(line["epsilon"]))


def _epsilons(axis: Any, table: ResultTable) -> None:
    ticks = [tick for tick in COARSE_EPSILONS if tick in table.column("epsilon")]
    axis.set_xticks(np.sqrt(ticks), [f"{tick:g}" for tick in ticks])


def figure_11(tables: Tables) -> Any:
    """Accuracy and recovery on Trace by epsilon, from ``tables``."""
    figure, axes = subplots(1, 2, (10.5, 4.8), top=TOP)
    _by_epsilon(axes[0], tables["figure-11"], tuple(LOOKS))
    _by_epsilon(axes[1], tables["figure-11"], COMPARED, "recovered")
    label_axes(axes[0], f"Trace: accuracy ({TWICE})", "epsilon", "test series told right")
    label_axes(axes[1], "Trace: shape recovery", "epsilon", "class modes found exactly")
    return shared_legend(figure, axes, 4)


def figure_9(tables: Tables) -> Any:
    """Adjusted Rand index and recovery on Symbols by epsilon, from ``tables``."""
    figure, axes = subplots(1, 2, (10.5, 4.8))
    _by_epsilon(axes[0], tables["figure-9"], tuple(LOOKS))
    _by_epsilon(axes[1], tables["figure-9"], COMPARED, "recovered")
    label_axes(axes[0], f"Symbols: clusters ({TWICE})", "epsilon", "adjusted Rand index")
    label_axes(axes[1], "Symbols: shape recovery", "epsilon", "class modes found exactly")
    axes[0].set_ylim(-0.04, 0.8)
    axes[1].set_ylim(-0.02, 1.04)
    return shared_legend(figure, axes, 4)


def ties(tables: Tables) -> Any:
    """Accuracy by each rule, and the share of series with a tie, from ``tables``."""
    table = tables["ties"]
    figure, axes = subplots(1, 1, (6.4, 4.2), top=TOP)
    for rule, color, mark in zip(
        RULES, (plots.BLUE, plots.SKY, plots.ORANGE, plots.VERMILION), "Do^s", strict=True
    ):
        lines = table.where(rule=rule)
        roots = [_across(line) for line in lines]
        plots.draw_means(axes[0], roots, lines, "score", (color, mark, "-"), rule)
    shares = [line["tied"] for line in table.where(rule=RULES[0])]
    axes[0].plot(roots, shares, ":", color=GRAY, label="test series with a tie")
    _epsilons(axes[0], table)
    title = "PrivShape on Trace: the same shapes, read by other rules"
    label_axes(axes[0], title, "epsilon", "test series told right")
    return shared_legend(figure, axes, 3)


def _shapes(table: ResultTable) -> Any:
    """A row of panels for each method, a panel for each class: its mode in gray behind."""
    methods = table.unique("method")
    labels = table.unique("label")
    figure, axes = subplots(len(methods), len(labels), (2.1 * len(labels) + 1, 1.5 * len(methods)))
    for i, method in enumerate(methods):
        for j, label in enumerate(labels):
            axis = axes[i * len(labels) + j]
            (line,) = table.where(method=method, label=label)
            sax = Sax(symbols=line["symbols"], segment=line["segment"], longest=15)
            for text, color, wide in ((line["mode"], GRAY, 5.0), (line["shape"], None, 1.6)):
                options = {"color": color or LOOKS[method][0], "alpha": 0.35 if color else 1.0}
                axis.plot(curve(text, sax, 200, line="smooth"), linewidth=wide, **options)
            axis.set_xticks([])
            axis.set_ylim(-2, 2)
            axis.set_title(line["shape"], fontsize=8.5, color=INK, loc="left")
            if j == 0:
                axis.set_ylabel(method.replace(", ", ",\n"), fontsize=9, color=INK)
            if i == len(methods) - 1:
                axis.set_xlabel(f"class {label}: {line['mode']}", fontsize=8.5, color=INK)
    return figure


def figures_16_17(tables: Tables) -> Any:
    """Accuracy on waves by the number of points, from ``tables``."""
    table = tables["figures-16-17"]
    figure, axes = subplots(1, 2, (10.0, 4.0), top=TOP)
    for axis, number, title in (
        (axes[0], 16, "the same shape in more points"),
        (axes[1], 17, "more of the shape"),
    ):
        for k, name in enumerate((*COMPARED, REPAIRED)):
            lines = table.where(figure=number, method=name)
            _line(axis, [line["points"] + 15 * (k - 2) for line in lines], lines, name)
        label_axes(axis, f"Waves: {title}", "points", "accuracy, epsilon 4")
    return shared_legend(figure, axes, 5)


def figure_18(tables: Tables) -> Any:
    """Accuracy and recovery without parts of SAX, from ``tables``."""
    table = tables["figure-18"]
    forms = table.unique("form")
    figure, axes = subplots(2, len(forms), (11.5, 6.6), top=TOP)
    for j, form in enumerate(forms):
        for i, (column, measure) in enumerate(
            (("score", "accuracy"), ("recovered", "class modes found exactly"))
        ):
            axis = axes[i * len(forms) + j]
            _by_epsilon(axis, table, SWEPT, column, form=form)
            label_axes(axis, f"Trace, {form}", "epsilon", measure)
    return shared_legend(figure, axes, 3)


def figures_13_14(tables: Tables) -> Any:
    """Scores by the number of symbols and by the segment, from ``tables``."""
    table = tables["figures-13-14"]
    figure, axes = subplots(2, 2, (10.0, 7.2), top=TOP)
    for i, (data, up) in enumerate((("Symbols", "adjusted Rand index"), ("Trace", "accuracy"))):
        for j, (varied, across) in enumerate((("symbols", "symbols t"), ("segment", "segment w"))):
            axis = axes[2 * i + j]
            for name in SWEPT:
                lines = table.where(data=data, varied=varied, method=name)
                _line(axis, [line["value"] for line in lines], lines, name)
            axis.set_xticks(sorted({line["value"] for line in lines}))
            label_axes(axis, f"{data}, epsilon 4", across, up)
    return shared_legend(figure, axes, 3)


def figure_15(tables: Tables) -> Any:
    """Scores by the distance, from ``tables``."""
    table = tables["figure-15"]
    figure, axes = subplots(1, 2, (10.0, 4.0), top=TOP)
    for axis, data, up in (
        (axes[0], "Symbols", "adjusted Rand index"),
        (axes[1], "Trace", "accuracy"),
    ):
        kinds = table.unique("distance")
        for k, (name, epsilon) in enumerate(
            (name, epsilon) for name in SWEPT for epsilon in (1.0, 4.0)
        ):
            lines = table.where(data=data, method=name, epsilon=epsilon)
            axis.bar(
                np.arange(len(kinds)) + 0.14 * (k - 2.5),
                [line["score"] for line in lines],
                0.13,
                yerr=2 * np.nan_to_num([line["score_error"] for line in lines]),
                color=LOOKS[name][0],
                alpha=0.5 if epsilon == 1.0 else 1.0,
                error_kw={"linewidth": 0.9, "ecolor": GRAY},
                label=f"{name}, epsilon {epsilon:g}",
            )
        axis.set_xticks(range(len(kinds)), kinds)
        axis.grid(axis="x", visible=False)
        label_axes(axis, data, "distance", up)
    return shared_legend(figure, axes, 3)


def users(tables: Tables) -> Any:
    """Scores by the number of people, from ``tables``."""
    table = tables["users"]
    figure, axes = subplots(1, 2, (10.0, 4.0), top=TOP)
    for axis, column, up in (
        (axes[0], "score", "accuracy"),
        (axes[1], "recovered", "class modes found exactly"),
    ):
        for name in SWEPT:
            lines = table.where(method=name)
            _line(axis, [line["people"] for line in lines], lines, name, column)
        label_axes(axis, "Trace, epsilon 1", "people", up)
    return shared_legend(figure, axes, 3)


def theorem_4(tables: Tables) -> Any:
    """Candidates at each level, measured and at worst, from ``tables``."""
    table = tables["theorem-4"]
    figure, axes = subplots(1, 2, (10.0, 4.2))
    for axis, data in zip(axes, ("Symbols", "Trace"), strict=True):
        lines = table.where(data=data)
        levels = [line["level"] for line in lines]
        for column, color, style, label in (
            ("worst_baseline", LOOKS[BASELINE][0], ":", "baseline, worst case t (t - 1)^(l - 1)"),
            ("baseline", LOOKS[BASELINE][0], "-", "baseline, measured"),
            ("worst_published", LOOKS[PUBLISHED][0], ":", "PrivShape, worst case c k (t - 1)"),
            ("published", LOOKS[PUBLISHED][0], "-", "PrivShape, measured"),
        ):
            counts = [line[column] for line in lines]
            plots.draw_line(axis, levels, counts, (color, "o"), style, markersize=4, label=label)
        axis.set_yscale("log")
        axis.set_xticks(levels)
        label_axes(axis, f"{data}, epsilon 4", "level of the tree", "candidates")
    return shared_legend(figure, axes, 2)


PICTURES: dict[str, Callable[[Tables], Any]] = {
    "figure-8": lambda tables: _shapes(tables["table-3"]),
    "figure-9": figure_9,
    "figure-10": lambda tables: _shapes(tables["table-4"]),
    "figure-11": figure_11,
    "figure-12": lambda tables: _shapes(tables["figure-12"]),
    "figures-13-14": figures_13_14,
    "figure-15": figure_15,
    "figures-16-17": figures_16_17,
    "figure-18": figure_18,
    "ties": ties,
    "users": users,
    "theorem-4": theorem_4,
}
