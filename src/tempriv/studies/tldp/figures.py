"""Pictures of the study on release orders, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

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
from tempriv.studies.tldp.experiment import OURS, THEIRS
from tempriv.studies.tldp.tasks import CORRECTED, LATER, LIVE, RESPONSE

# Okabe and Ito's colors; the paper's mechanisms have open marks, ours full ones
LOOKS = {
    "Backward": (ORANGE, "o"),
    "Forward": (SKY, "s"),
    "Threshold": (BLUE, "^"),
    "DualThreshold": (GREEN, "v"),
    "BlockShuffle": (VERMILION, "D"),
    "NoisyOrder": (PURPLE, "P"),
    RESPONSE: ("#5b6472", "x"),
    CORRECTED: ("#1f2430", "+"),
    "Laplace": ("#1f2430", "x"),
}


def _curve(
    axis: Any, name: str, across: Sequence[float], up: Sequence[float], dots: Sequence[float] | None
) -> None:
    """Theory as a line and what was measured as marks on it, or marks joined by a line."""
    color, mark = LOOKS[name]
    # Backward and Forward often cost the same: the first shows from under the second
    under = name == "Backward" and dots is not None
    style = {"color": color, "linewidth": 3.0 if under else 1.4, "label": name}
    marks = {"marker": mark, "markersize": 8 if under else 5, "markeredgecolor": color}
    marks["markerfacecolor"] = "white" if name in THEIRS else color
    if dots is None:
        axis.plot(across, up, **style, **marks)
    else:
        style.pop("label")
        axis.plot(across, up, **style)
        every = 1 if len(across) <= 20 else 2
        axis.plot(across, dots, linestyle="none", label=name, markevery=every, **marks)


def _curves(axis: Any, table: ResultTable, across: str, names: Iterable[str]) -> None:
    for name in names:
        lines = table.where(mechanism=name)
        _curve(
            axis,
            name,
            [line[across] for line in lines],
            [line["theory"] for line in lines],
            [line["measured"] for line in lines],
        )
        dropping = [line for line in lines if line.get("extended") == "yes"]
        if dropping:
            # where readings are dropped, as in the paper: the line is broken
            axis.plot(
                [line[across] for line in dropping],
                [line["theory"] for line in dropping],
                color="white",
                linewidth=1.6,
                linestyle=(0, (1.5, 2.5)),
            )


def figure_4(tables: Tables) -> Any:
    """Derived budgets: the larger of two curves, of which one rises and one falls."""
    table = tables["figure-4"]
    figure, axes = subplots(1, 3, (9.6, 3.4))
    for axis, window in zip(axes, (10, 20, 50), strict=True):
        lines = table.where(window=window)
        across = [line["threshold"] for line in lines]
        for column, color, label in (
            ("from_last", VERMILION, "2 ln(p_last / p_1)"),
            ("from_p0", BLUE, "2 ln(p_0 / p_1)"),
        ):
            up = [line[column] for line in lines]
            axis.plot(across, up, color=color, linewidth=1, linestyle=":")
            rules = [line["derived_epsilon"] == line[column] for line in lines]
            # the part of the curve that decides
            axis.plot(
                [x for x, holds in zip(across, rules, strict=True) if holds],
                [y for y, holds in zip(up, rules, strict=True) if holds],
                color=color,
                linewidth=2,
                label=label,
                marker="." if window < 50 else None,
            )
        least = min(lines, key=lambda line: float(line["derived_epsilon"]))
        axis.annotate(
            f"{least['derived_epsilon']:.2f} at {least['threshold']}",
            (least["threshold"], least["derived_epsilon"]),
            (0, 22),
            textcoords="offset points",
            ha="left",
            fontsize=9,
            color=INK,
            arrowprops={"arrowstyle": "-", "color": GRAY, "linewidth": 0.8},
        )
        axis.set_ylim(-1.5, 2.2 * max(line["from_p0"] for line in lines))
        label_axes(axis, f"k = {window}", "threshold c0", "derived epsilon" if window == 10 else "")
    return shared_legend(figure, axes, 2)


def figure_5(tables: Tables) -> Any:
    """Costs at epsilon 5, against unit costs and against the window."""
    figure, axes = subplots(2, 2, (9.6, 7.2))
    names = (*THEIRS, *OURS)
    for axis, letter, what in zip(axes, "abc", ("missing", "repeated", "empty"), strict=False):
        _curves(axis, tables[f"figure-5{letter}"], "ratio", names)
        label_axes(
            axis,
            f"({letter}) k = 20, others cost k",
            f"cost of one {what}, in windows",
            "cost of a reading (log)",
        )
    _curves(axes[3], tables["figure-5d"], "window", names)
    axes[3].set_xscale("log")
    windows = sorted(set(tables["figure-5d"].column("window")))
    axes[3].set_xticks(windows, [str(window) for window in windows])
    axes[3].minorticks_off()
    label_axes(axes[3], "(d) all cost k", "window k (log)", "cost of a reading (log)")
    for axis in axes:
        axis.set_yscale("log")
    return shared_legend(figure, axes, 6)


def figure_6(tables: Tables) -> Any:
    """Costs against the budget, and the ranges of budgets."""
    figure, axes = subplots(1, 3, (11.0, 4.2))
    for axis, letter, window in zip(axes, "ab", (10, 50), strict=False):
        table = tables[f"figure-6{letter}"]
        _curves(axis, table, "epsilon", (*THEIRS, *OURS))
        axis.set_yscale("log")
        label_axes(
            axis, f"({letter}) k = {window}, all cost k", "epsilon", "cost of a reading (log)"
        )
    axis, lines = axes[2], tables["figure-6c"].where()
    for place, line in enumerate(lines):
        most = min(line["most_derivable"], 24.0)
        for low, high, color, height, label in (
            (line["better_from"], line["better_to"], "#b9d9ee", 0.7, "Threshold beats baselines"),
            (line["least_derivable"], most, BLUE, 0.4, "Threshold derives"),
            (line["dual_best_from"], line["dual_best_to"], GREEN, 0.12, "DualThreshold best"),
        ):
            axis.barh(place, high - low, height, low, color=color, label=label)
        if line["most_derivable"] > most:
            axis.annotate(
                f"to {line['most_derivable']:.0f}",
                (most, place),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
                color=INK,
            )
    axis.set_yticks(range(len(lines)), [str(line["window"]) for line in lines])
    axis.set_xlim(0, 28)
    label_axes(axis, "(c) ranges of budgets", "epsilon", "window k")
    return shared_legend(figure, axes, 5)


def figure_7(tables: Tables) -> Any:
    """Errors of counts and averages, and whether unit costs predict which is better."""
    figure, axes = subplots(2, 2, (9.6, 7.6))
    for axis, name, letter, baselines, up in (
        (axes[0], "figure-7a", "a", (RESPONSE, CORRECTED), "squared error of the count (log)"),
        (axes[2], "figure-7c", "c", ("Laplace",), "squared error of the average (log)"),
    ):
        table = tables[name]
        for one in (*THEIRS, *OURS, *baselines):
            lines = table.where(mechanism=one, seen=LIVE)
            across = [line["epsilon"] for line in lines]
            _curve(axis, one, across, [line["squared_error"] for line in lines], None)
            later = table.where(mechanism=one, seen=LATER)
            if later:
                errors = [line["squared_error"] for line in later]
                axis.plot(across, errors, color=LOOKS[one][0], linewidth=1, linestyle="--")
        axis.set_yscale("log")
        task = "running count of up-days" if letter == "a" else "average over 10 days"
        label_axes(axis, f"({letter}) {task}", f"epsilon (dashed: {LATER})", up)
    for axis, letter, baseline in ((axes[1], "b", "Backward"), (axes[3], "d", "Forward")):
        lines = tables[f"figure-7{letter}"].where()
        across = [line["epsilon"] for line in lines]
        for column, style, mark in (("predicted", "--", "o"), ("measured", "-", ".")):
            ratios = [line[column] for line in lines]
            words = f"ratio, {column}"
            axis.plot(across, ratios, style, color=INK, marker=mark, linewidth=1.2, label=words)
        axis.axhline(0, color=VERMILION, linewidth=1, linestyle=":")
        axis.annotate(
            "above: Threshold is better",
            (0.98, 0),
            (0, 3),
            ha="right",
            fontsize=9,
            color=INK,
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
        )
        axis.margins(y=0.12)
        label_axes(
            axis, f"({letter}) {baseline} against Threshold", "epsilon", "log10 of error ratio"
        )
    return shared_legend(figure, axes, 4)


def table_2(tables: Tables) -> Any:
    """How much of the groups is kept."""
    table = tables["table-2"]
    figure, (axis,) = subplots(1, 1, (8.0, 4.4))
    for name in (*THEIRS, *OURS, "Laplace"):
        lines = table.where(mechanism=name)
        across = [line["epsilon"] for line in lines]
        _curve(axis, name, across, [line["ours"] for line in lines], None)
        printed = [line["published"] for line in lines if line["published"] is not None]
        if printed:
            words = f"{name}, as printed"
            axis.plot(across, printed, ":", color=LOOKS[name][0], linewidth=1.8, label=words)
    axis.set_ylim(-0.03, 1.05)
    label_axes(axis, table.title, "epsilon", "normalized mutual information")
    return shared_legend(figure, [axis], 4)


def restored_order(tables: Tables) -> Any:
    """Of a counter: how many steps stand where they were, and how many sorting puts back."""
    table = tables["restored-order"]
    figure, axes = subplots(1, 2, (9.6, 3.6))
    names = (*THEIRS, *OURS)[::-1]
    for axis, kind, title in (
        (axes[0], "counter", "values that only rise"),
        (axes[1], "close", "closes of a stock"),
    ):
        for place, name in enumerate(names):
            line = table.where(mechanism=name, values=kind, epsilon=1.0)[0]
            color = LOOKS[name][0]
            axis.plot([line["before"], line["informed"]], [place] * 2, color=color, linewidth=1.5)
            axis.plot(line["before"], place, "o", markerfacecolor="white", color=color)
            axis.plot(line["informed"], place, "o", color=color)
        axis.set_yticks(range(len(names)), names)
        axis.set_xlim(-0.03, 1.03)
        label_axes(
            axis,
            f"{title}, k = 10, epsilon 1",
            "share of steps in place (open), restored (full)",
            "",
        )
    return figure


PICTURES: dict[str, Callable[[Tables], Any]] = {
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "table-2": table_2,
    "restored-order": restored_order,
}
