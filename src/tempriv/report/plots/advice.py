"""A picture of advice: what each order mechanism costs at every epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.report.plots.series import BLUE, GRAY, INK, new_figure, shown, tidy
from tempriv.utility.advisor import Ranking
from tempriv.utility.reorder_costs import OrderMechanism

# Okabe and Ito's colors; what is dashed guarantees nothing about swaps, what is dotted nothing
DASHED, DOTTED = (0, (5, 2)), (0, (1, 1.2))
LINES: dict[type[OrderMechanism], tuple[str, Any, float, str]] = {
    Backward: ("#E69F00", DASHED, 3.2, "one row alone"),
    Forward: ("#CC79A7", DOTTED, 2.0, "nothing"),
    Threshold: (BLUE, DASHED, 2.6, "one row alone"),
    DualThreshold: ("#009E73", (2, (3, 1.5)), 1.8, "one row alone"),
    BlockShuffle: ("#D55E00", "solid", 2.0, "swaps inside a block"),
    NoisyOrder: (INK, "solid", 2.0, "any swap within the window"),
}


def plot_advice(
    ranking: Ranking,
    epsilons: Sequence[float],
    costs: Mapping[type[OrderMechanism], Sequence[float]],
    title: str,
) -> Any:
    """A matplotlib figure of costs against epsilon, with the epsilon of the advice marked.

    Parameters:
        ranking: the advice.
        epsilons: the budgets.
        costs: of each kind of mechanism, one for each budget.
        title: of the figure.
    """
    figure = new_figure((10.5, 5.2), title)
    axes = figure.subplots()
    for kind, (color, style, width, hides) in LINES.items():
        values = np.asarray(costs[kind], dtype=np.float64)
        if not np.isfinite(values).any():
            continue
        label = f"{kind.__name__}\n(hides {hides})"
        axes.plot(epsilons, values, color=color, linestyle=style, linewidth=width, label=label)
    axes.axvline(ranking.epsilon, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    first = ranking.first
    for recommendation in ranking.recommendations:
        color, size = LINES[type(recommendation.mechanism)][0], 9 if recommendation is first else 5
        point = ranking.epsilon, recommendation.cost
        axes.plot(*point, "o", color=color, zorder=4, markersize=size)
    axes.annotate(
        f"{first.name}: {shown(first.cost)}",
        (ranking.epsilon, first.cost),
        color=INK,
        xytext=(-10, -14),
        textcoords="offset points",
        fontsize=11,
        ha="right",
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
    axes.set_xscale("log")
    finite = [cost for curve in costs.values() for cost in curve if np.isfinite(cost)]
    if finite and min(finite) > 0:
        axes.set_yscale("log")
    axes.set_xlabel("epsilon (not the same protection for each)", fontsize=12, color=INK)
    axes.set_ylabel(f"predicted cost of a reading\n({ranking.unit})", fontsize=12, color=INK)
    axes.margins(x=0.02)
    _tidy(axes)
    axes.legend(
        fontsize=10,
        frameon=False,
        labelcolor=INK,
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        labelspacing=1.0,
        handlelength=3.2,
    )
    return figure


def _tidy(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            low, high = sorted(axis.get_view_interval())
            if high < 200 * low:
                axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, 1)))
            axis.set_minor_formatter(NullFormatter())
    tidy(axes)
