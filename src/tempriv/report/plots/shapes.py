"""Pictures of the shapes that a campaign found."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.errors import DataError, require
from tempriv.local.shapes.sax import curve
from tempriv.local.shapes.simulate import Outcome
from tempriv.report.plots.series import BLUE, GRAY, INK, RULE, new_figure, tidy

POINTS = 240
COLUMNS = 3
MAX_SHAPES = 24


def plot_shapes(outcome: Outcome) -> Any:
    """A matplotlib figure: each shape over time, with its share and 95 % interval.

    Of an estimator it is ``plot_shapes(estimator.outcome_)``.
    """
    shapes, sax = outcome.shapes[:MAX_SHAPES], outcome.plan.sax
    require(len(shapes) > 0, "no shape was found: there is nothing to draw", DataError)
    across = min(COLUMNS, len(shapes))
    down = -(-len(shapes) // across)
    title = f"Shapes of {outcome.plan.people:,} series, epsilon {outcome.plan.epsilon:g} each"
    figure = new_figure((3.4 * across + 0.4, 2.6 * down + 0.7), title)
    panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
    at = (np.arange(POINTS) + 0.5) / POINTS
    for shape, axes in zip(shapes, panels, strict=False):
        axes.plot(at, curve(shape.text, sax, POINTS), color=RULE, linewidth=5)
        axes.plot(at, curve(shape.text, sax, POINTS, line="smooth"), color=BLUE, linewidth=2.2)
        share, low, high = outcome.share(shape)
        name = shape.text + ("" if shape.ends else "…")
        name += "" if shape.label is None else f", {shape.label}".replace("$", r"\$")
        doubt = "\nnot surely there" if outcome.is_sure(shape) is False else ""
        label = f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f}){doubt}"
        axes.set_title(f"{name}\n{label}", fontsize=11, color=INK)
        axes.set_yticks(sax.levels, list(sax.alphabet))
        axes.set_xticks([])
        tidy(axes, "y", 10)
        axes.set_xlabel("time", fontsize=10, color=GRAY, loc="right")
    for axes in panels[len(shapes) :]:
        axes.set_axis_off()
    return figure
