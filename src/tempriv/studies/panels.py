"""Figures of a study: panels with a grid, words about them, and one legend for all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tempriv.report.plots.series import GRAY, INK, RULE


def panels(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    from tempriv.report.plots.series import figure_class

    figure = figure_class()(figsize=size, layout="constrained", facecolor="white")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color=RULE, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.tick_params(labelsize=9, color=GRAY, labelcolor=INK)
    return figure, axes


def describe(axis: Any, title: str, across: str, up: str) -> None:
    axis.set_title(title, loc="left", fontsize=10.5, color=INK)
    axis.set_xlabel(across, fontsize=10, color=INK)
    axis.set_ylabel(up, fontsize=10, color=INK)


def legend(figure: Any, axes: Iterable[Any], columns: int) -> None:
    """One for all panels, above them."""
    found: dict[str, Any] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    figure.legend(
        found.values(),
        found.keys(),
        loc="outside upper center",
        ncols=columns,
        frameon=False,
        fontsize=10,
    )
