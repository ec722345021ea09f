"""Pictures of what many reports give away, as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tempriv.audit.attacks.value import Longitudinal
from tempriv.report.plots.series import BLUE, GRAY, INK, RULE, figure_class

ORANGE = "#D55E00"
COLORS = (ORANGE, BLUE, "#009E73", "#CC79A7")  # Okabe and Ito's


def plot_longitudinal(found: Sequence[tuple[str, Longitudinal]], before: float) -> Any:
    """How often an observer is right, by number of reports, a line for each named response.

    Broken lines are the most that the guarantee for all reports together allows, dots with bars are
    simulated people, and ``before`` is the chance of a guess without any report.
    """
    figure = figure_class()(figsize=(9.0, 5.2), dpi=100, layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.set_xscale("log")
    for color, (name, one) in zip(COLORS, found, strict=False):
        axes.plot(one.reports, one.success, color=color, linewidth=2.2, label=name)
        axes.plot(
            one.reports,
            one.cap,
            color=color,
            linewidth=1.4,
            linestyle=(0, (4, 3)),
            label="most that its guarantee allows",
        )
        if one.measured:
            rates = [each.rate for each in one.measured]
            below = [each.rate - each.interval[0] for each in one.measured]
            above = [each.interval[1] - each.rate for each in one.measured]
            simulated = f"simulated, {100 * one.measured[0].confidence:g} % interval"
            axes.errorbar(
                one.reports,
                rates,
                yerr=(below, above),
                fmt="o",
                color=color,
                markersize=4,
                capsize=3,
                linewidth=1,
                label=simulated,
            )
    axes.axhline(before, color=GRAY, linewidth=1, linestyle=":", label="a guess before any report")
    axes.set_ylim(min(before - 0.05, 0.45), 1.02)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    axes.set_xlabel("reports of an answer that does not change", fontsize=12, color=INK)
    axes.set_ylabel("chance that the observer is right", fontsize=12, color=INK)
    axes.tick_params(labelsize=11, color=GRAY, labelcolor=INK)
    axes.grid(color=RULE, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.set_axisbelow(True)
    figure.legend(loc="outside upper center", ncols=2, fontsize=11, frameon=False, labelcolor=INK)
    return figure
