"""Pictures of the study on release orders, each drawn from its tables alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tempriv.report.plots.series import GRAY, INK
from tempriv.studies import plots
from tempriv.studies.common import ResultTable, Tables
from tempriv.studies.plots import label_axes, shared_legend, subplots
from tempriv.studies.tldp.experiment import OURS, THEIRS
from tempriv.studies.tldp.tasks import CORRECTED, LATER, LIVE, RESPONSE

# Okabe and Ito's colors; the paper's mechanisms have open marks, ours full ones
LOOKS = {
    "Backward": (plots.ORANGE, "o"),
    "Forward": (plots.SKY, "s"),
    "Threshold": (plots.BLUE, "^"),
    "DualThreshold": (plots.GREEN, "v"),
    "BlockShuffle": (plots.VERMILION, "D"),
    "NoisyOrder": (plots.PURPLE, "P"),
    RESPONSE: ("#5b6472", "x"),
    CORRECTED: ("#1f2430", "+"),
    "Laplace": ("#1f2430", "x"),
}
COST = "cost of a reading (log)"


def _curve(
    axis: Any, name: str, across: Sequence[float], up: Sequence[float], dots: Sequence[float] | None
) -> None:
    """Theory as a line and what was measured as marks on it, or marks joined by a line."""
    color = LOOKS[name][0]
    # Backward and Forward often cost the same: the first shows from under the second
    under = name == "Backward" and dots is not None
    width, size, hollow = 3.0 if under else 1.4, 8 if under else 5, name in THEIRS
    options: dict[str, Any] = {"hollow": hollow, "markersize": size, "label": name}
    if dots is None:
        plots.draw_line(axis, across, up, LOOKS[name], linewidth=width, **options)
    else:
        axis.plot(across, up, color=color, linewidth=width)
        every = 1 if len(across) <= 20 else 2
        plots.draw_line(axis, across, dots, LOOKS[name], "none", markevery=every, **options)


def _curves(axis: Any, table: ResultTable, across: str, names: Iterable[str]) -> None:
    for name in names:
        lines = table.where(mechanism=name)
        at, theory, measured = (
            [line[column] for line in lines] for column in (across, "theory", "measured")
        )
        _curve(axis, name, at, theory, measured)
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
    """Derived budgets, from ``tables``: the larger of a curve that rises and one that falls."""
    table = tables["figure-4"]
    figure, axes = subplots(1, 3, (9.6, 3.4))
    for axis, window in zip(axes, (10, 20, 50), strict=True):
        lines = table.where(window=window)
        across = [line["threshold"] for line in lines]
        for column, color, label in (
            ("from_last", plots.VERMILION, "2 ln(p_last / p_1)"),
            ("from_p0", plots.BLUE, "2 ln(p_0 / p_1)"),
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
        at = least["threshold"], least["derived_epsilon"]
        arrow = {"arrowstyle": "-", "color": GRAY, "linewidth": 0.8}
        plots.annotate(axis, f"{at[1]:.2f} at {at[0]}", at, (0, 22), ha="left", arrowprops=arrow)
        axis.set_ylim(-1.5, 2.2 * max(line["from_p0"] for line in lines))
        label_axes(axis, f"k = {window}", "threshold c0", "derived epsilon" if window == 10 else "")
    return shared_legend(figure, axes, 2)


def figure_5(tables: Tables) -> Any:
    """Costs at epsilon 5 against unit costs and against the window, from ``tables``."""
    figure, axes = subplots(2, 2, (9.6, 7.2))
    names = (*THEIRS, *OURS)
    for axis, letter, what in zip(axes, "abc", ("missing", "repeated", "empty"), strict=False):
        _curves(axis, tables[f"figure-5{letter}"], "ratio", names)
        title, across = f"({letter}) k = 20, others cost k", f"cost of one {what}, in windows"
        label_axes(axis, title, across, COST)
    _curves(axes[3], tables["figure-5d"], "window", names)
    axes[3].set_xscale("log")
    windows = sorted(set(tables["figure-5d"].column("window")))
    axes[3].set_xticks(windows, [str(window) for window in windows])
    axes[3].minorticks_off()
    label_axes(axes[3], "(d) all cost k", "window k (log)", COST)
    for axis in axes:
        axis.set_yscale("log")
    return shared_legend(figure, axes, 6)


def figure_6(tables: Tables) -> Any:
    """Costs against the budget, and the ranges of budgets, from ``tables``."""
    figure, axes = subplots(1, 3, (11.0, 4.2))
    for axis, letter, window in zip(axes, "ab", (10, 50), strict=False):
        table = tables[f"figure-6{letter}"]
        _curves(axis, table, "epsilon", (*THEIRS, *OURS))
        axis.set_yscale("log")
        label_axes(axis, f"({letter}) k = {window}, all cost k", "epsilon", COST)
    axis, lines = axes[2], tables["figure-6c"].where()
    for place, line in enumerate(lines):
        most = min(line["most_derivable"], 24.0)
        for low, high, color, height, label in (
            (line["better_from"], line["better_to"], "#b9d9ee", 0.7, "Threshold beats baselines"),
            (line["least_derivable"], most, plots.BLUE, 0.4, "Threshold derives"),
            (line["dual_best_from"], line["dual_best_to"], plots.GREEN, 0.12, "DualThreshold best"),
        ):
            axis.barh(place, high - low, height, low, color=color, label=label)
        if line["most_derivable"] > most:
            text = f"to {line['most_derivable']:.0f}"
            plots.annotate(axis, text, (most, place), (3, 0), va="center", fontsize=8)
    axis.set_yticks(range(len(lines)), [str(line["window"]) for line in lines])
    axis.set_xlim(0, 28)
    label_axes(axis, "(c) ranges of budgets", "epsilon", "window k")
    return shared_legend(figure, axes, 5)


def figure_7(tables: Tables) -> Any:
    """Errors of counts and averages, and whether unit costs predict them, from ``tables``."""
    figure, axes = subplots(2, 2, (9.6, 7.6))
    for axis, name, letter, baselines, up in (
        (axes[0], "figure-7a", "a", (RESPONSE, CORRECTED), "squared error of the count (log)"),
        (axes[2], "figure-7c", "c", ("Laplace",), "squared error of the average (log)"),
    ):
        table = tables[name]
        for mechanism in (*THEIRS, *OURS, *baselines):
            lines = table.where(mechanism=mechanism, seen=LIVE)
            across = [line["epsilon"] for line in lines]
            _curve(axis, mechanism, across, [line["squared_error"] for line in lines], None)
            later = table.where(mechanism=mechanism, seen=LATER)
            if later:
                errors = [line["squared_error"] for line in later]
                axis.plot(across, errors, color=LOOKS[mechanism][0], linewidth=1, linestyle="--")
        axis.set_yscale("log")
        task = "running count of up-days" if letter == "a" else "average over 10 days"
        label_axes(axis, f"({letter}) {task}", f"epsilon (dashed: {LATER})", up)
    for axis, letter, baseline in ((axes[1], "b", "Backward"), (axes[3], "d", "Forward")):
        lines = tables[f"figure-7{letter}"].where()
        across = [line["epsilon"] for line in lines]
        for column, style, mark in (("predicted", "--", "o"), ("measured", "-", ".")):
            ratios = [line[column] for line in lines]
            label = f"ratio, {column}"
            axis.plot(across, ratios, style, color=INK, marker=mark, linewidth=1.2, label=label)
        axis.axhline(0, color=plots.VERMILION, linewidth=1, linestyle=":")
        above, along = "above: Threshold is better", ("axes fraction", "data")
        plots.annotate(axis, above, (0.98, 0), (0, 3), ha="right", xycoords=along)
        axis.margins(y=0.12)
        title = f"({letter}) {baseline} against Threshold"
        label_axes(axis, title, "epsilon", "log10 of error ratio")
    return shared_legend(figure, axes, 4)


def table_2(tables: Tables) -> Any:
    """How much of the groups is kept, from ``tables``."""
    table = tables["table-2"]
    figure, (axis,) = subplots(1, 1, (8.0, 4.4))
    for name in (*THEIRS, *OURS, "Laplace"):
        lines = table.where(mechanism=name)
        across = [line["epsilon"] for line in lines]
        _curve(axis, name, across, [line["ours"] for line in lines], None)
        printed = [line["published"] for line in lines if line["published"] is not None]
        if printed:
            label = f"{name}, as printed"
            axis.plot(across, printed, ":", color=LOOKS[name][0], linewidth=1.8, label=label)
    axis.set_ylim(-0.03, 1.05)
    label_axes(axis, table.title, "epsilon", "normalized mutual information")
    return shared_legend(figure, [axis], 4)


def restored_order(tables: Tables) -> Any:
    """Of a counter: steps that stand in place, and that sorting puts back, from ``tables``."""
    table = tables["restored-order"]
    figure, axes = subplots(1, 2, (9.6, 3.6))
    names = (*THEIRS, *OURS)[::-1]
    for axis, kind, title in (
        (axes[0], "counter", "values that only rise"),
        (axes[1], "close", "closes of a stock"),
    ):
        for place, name in enumerate(names):
            line = table.where(mechanism=name, values=kind, epsilon=1.0)[0]
            plots.draw_span(axis, (line["before"], line["informed"]), place, LOOKS[name][0])
        axis.set_yticks(range(len(names)), names)
        axis.set_xlim(-0.03, 1.03)
        shares = "share of steps in place (open), restored (full)"
        label_axes(axis, f"{title}, k = 10, epsilon 1", shares, "")
    return figure


PICTURES: dict[str, Callable[[Tables], Any]] = {
    "figure-4": figure_4,
    "figure-5": figure_5,
    "figure-6": figure_6,
    "figure-7": figure_7,
    "table-2": table_2,
    "restored-order": restored_order,
}
