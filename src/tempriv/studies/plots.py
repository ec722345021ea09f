"""What the figures of all studies share: colors, panels, lines with marks, labels and legends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tempriv.report.plots.series import GRAY, INK, RULE, figure_class

# Okabe and Ito's colors
ORANGE, SKY, GREEN, BLUE = "#E69F00", "#56B4E9", "#009E73", "#0072B2"
VERMILION, PURPLE = "#D55E00", "#CC79A7"

MANY_POINTS = 10  # from so many on a line has small marks

Lines = Sequence[Mapping[str, Any]]
"""Lines of a table, by the names of its columns."""


def subplots(
    rows: int, columns: int, size: tuple[float, float], *, top: float | None = None
) -> tuple[Any, list[Any]]:
    """A figure with a grid of panels, and these row by row.

    Parameters:
        rows: of panels.
        columns: of panels.
        size: width and height in inches.
        top: where all vertical axes end that begin at 0; as the data have it by default.
    """
    figure = figure_class()(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color=RULE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9, color=GRAY, labelcolor=INK)
        if top is not None:
            axis.set_ylim(0, top)
    return figure, axes


def draw_line(
    axis: Any,
    across: Sequence[float],
    up: Sequence[float | None],
    look: tuple[str, str | None],
    style: str = "-",
    *,
    hollow: bool = False,
    **options: Any,
) -> None:
    """A line with marks at its points.

    Parameters:
        axis: the panel.
        across: where the points are.
        up: how high they are; None leaves a gap.
        look: the color, and the mark.
        style: of the line.
        hollow: whether marks are open.
        options: further ones of matplotlib's ``plot``.
    """
    color, mark = look
    options = {"markersize": 6, "markerfacecolor": "white" if hollow else color, **options}
    heights = [np.nan if height is None else height for height in up]
    axis.plot(across, heights, linestyle=style, color=color, marker=mark, **options)


def draw_span(
    axis: Any,
    ends: Sequence[float],
    height: float,
    color: str,
    labels: tuple[str | None, str | None] = (None, None),
) -> None:
    """A level line from an open mark to a full one.

    Parameters:
        axis: the panel.
        ends: where the two marks stand.
        height: of the line.
        color: of all of it.
        labels: of the two marks in a legend.
    """
    axis.plot(ends, [height] * 2, color=color, linewidth=1.5)
    axis.plot(ends[0], height, "o", color=color, markerfacecolor="white", label=labels[0])
    axis.plot(ends[1], height, "o", color=color, label=labels[1])


def draw_means(
    axis: Any,
    across: Sequence[float],
    lines: Lines,
    column: str,
    look: tuple[str, str, str],
    label: str,
) -> None:
    """Means with bars of two standard errors, joined by a line.

    Parameters:
        axis: the panel.
        across: where the means stand.
        lines: of a table with the column and its standard error.
        column: the means; their errors are in the column of this name and ``_error``.
        look: the color, the mark, and the style of the line.
        label: in the legend.
    """
    color, mark, style = look
    errors = np.array([line[f"{column}_error"] for line in lines], dtype=float)
    axis.errorbar(
        across,
        np.array([line[column] for line in lines], dtype=float),
        yerr=2 * np.nan_to_num(errors),
        color=color,
        marker=mark or None,
        linestyle=style,
        markerfacecolor="white",
        markersize=5.5 if len(lines) < MANY_POINTS else 4.0,
        linewidth=1.4,
        capsize=2,
        label=label,
    )


def annotate(
    axis: Any, text: str, at: tuple[Any, Any], offset: tuple[float, float], **options: Any
) -> None:
    """A remark beside a point of a panel.

    Parameters:
        axis: the panel.
        text: the remark.
        at: the point.
        offset: of the remark from it, in points.
        options: further ones of matplotlib's ``annotate``.
    """
    options = {"fontsize": 9, **options}
    axis.annotate(text, at, offset, textcoords="offset points", color=INK, **options)


def label_axes(axis: Any, title: str, across: str, up: str) -> None:
    """Say what a panel shows.

    Parameters:
        axis: the panel.
        title: above it.
        across: what its horizontal axis shows.
        up: what its vertical axis shows.
    """
    axis.set_title(title, loc="left", fontsize=10.5, color=INK)
    axis.set_xlabel(across, fontsize=10, color=INK)
    axis.set_ylabel(up, fontsize=10, color=INK)


def shared_legend(figure: Any, axes: Iterable[Any], columns: int) -> Any:
    """One legend for all panels, above them.

    Parameters:
        figure: that holds the panels.
        axes: the panels.
        columns: of the legend.

    Returns:
        The figure, which is then complete.
    """
    handles: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=10,
    )
    return figure
