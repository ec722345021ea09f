"""Pictures of what releases tell when readings are correlated."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tempriv.correlation.growth import shown
from tempriv.data.series import ONLY_SERIES
from tempriv.leakage.budgets import Floats
from tempriv.leakage.leakage import Leakage, SeriesLeakage, independent_loss
from tempriv.report.plots.series import BLUE, GRAY, INK, new_figure, tidy

# Okabe and Ito's, with the blue of all pictures
ORANGE, GREEN, PURPLE = "#D55E00", "#009E73", "#CC79A7"
RED = "#b00020"  # as on private reports
MAX_POINTS = 1500
MAX_DOTTED_READINGS = 60  # so many readings are drawn as dots too
PRIVATE = "PRIVATE: computed from private data, do not hand out"
WAYS = {
    "bridge": ("sound bound", PURPLE, "-"),
    "exact": ("exact", PURPLE, "-"),
    "definition5": ("Definition 5, no upper bound", GRAY, "--"),
}


def thinned(losses: Floats, most: int = MAX_POINTS) -> tuple[Floats, Floats]:
    """At most so many places and the largest loss of each stretch, with both ends as they are.

    Parameters:
        losses: one for each reading.
        most: how many are kept.

    >>> places, highest = thinned(np.array([1.0, 5.0, 2.0, 3.0, 1.0, 1.0]), 4)
    >>> places.tolist(), highest.tolist()
    ([1.0, 2.0, 4.0, 6.0], [1.0, 5.0, 3.0, 1.0])
    """
    length = len(losses)
    if length <= most:
        return np.arange(1.0, length + 1), losses
    edges = np.linspace(1, length - 1, most - 1).astype(np.int64)
    firsts = edges[:-1]
    highest = np.maximum.reduceat(losses[: length - 1], firsts)
    places = firsts + (np.diff(edges) - 1) // 2
    ends = losses[0], losses[-1]
    return (
        np.concatenate([[1.0], places + 1.0, [float(length)]]),
        np.concatenate([ends[:1], highest, ends[1:]]),
    )


def plot_leakage(leakage: Leakage) -> Any:
    """A matplotlib figure of the series that loses most: each reading, and landmarks together.

    Parameters:
        leakage: that was computed.
    """
    place = leakage.pictured
    leak = place.leak
    joint = bool(leak.together)
    size = (9.5, 7.6 if joint else 5.0)
    which = "" if leak.spending.series == ONLY_SERIES else f" of {leak.spending.series}"
    which = " of every series" if place.everywhere else which
    title = f"What all releases together tell of each reading{which}".replace("$", r"\$")
    figure = new_figure(size, title, 14)
    if leakage.private:
        room = 0.3 / size[1]
        figure.get_layout_engine().set(rect=(0, room, 1, 1 - room))
        figure.text(0.5, room / 3, PRIVATE, ha="center", fontsize=12, color=RED, weight="bold")
    panels = figure.subplots(2 if joint else 1, 1, squeeze=False, sharex=True)[:, 0]
    _each(panels[0], leakage, leak)
    if joint:
        _together(panels[1], leakage, leak)
    many = -(-len(leak.spending.budgets) // MAX_POINTS)
    of_many = f" (the largest loss of every {many:,} or so)" if many > 1 else ""
    panels[-1].set_xlabel(f"reading{of_many}", fontsize=12, color=INK)
    return figure


def _each(axes: Any, leakage: Leakage, leak: SeriesLeakage) -> None:
    spent, loss = leak.spending.budgets, leak.loss
    few = "o" if len(spent) <= MAX_DOTTED_READINGS else None
    for losses, color, width, label in (
        (loss.backward, BLUE, 1.4, "by releases up to it"),
        (loss.forward, GREEN, 1.4, "by releases from it on"),
        (
            loss.total,
            ORANGE,
            2.4,
            f"by all of them: {shown(loss.total.max())} at most",
        ),
    ):
        axes.plot(
            *thinned(losses), color=color, linewidth=width, label=label, marker=few, markersize=4
        )
    where = "mid" if len(spent) <= MAX_POINTS else "post"
    axes.step(
        *thinned(spent), where=where, color=INK, linewidth=1.2, label="by its own release: epsilon"
    )
    highest = float(loss.total.max())
    if leakage.limit is not None and math.isfinite(leakage.limit):
        axes.axhline(
            leakage.limit,
            color=GRAY,
            linewidth=1,
            linestyle=(0, (4, 3)),
            label=f"limit for endless series: {shown(leakage.limit)}",
        )
        highest = max(highest, leakage.limit)
    axes.set_ylim(0, highest * 1.08 or 1.0)
    axes.set_ylabel("loss", fontsize=12, color=INK)
    _tidy(axes)


def _together(axes: Any, leakage: Leakage, leak: SeriesLeakage) -> None:
    marks = leak.spending.landmarks
    assert marks is not None
    highest = 0.0
    for method, loss in leak.together.items():
        name, color, style = WAYS[method]
        label = f"{name}: {shown(loss.maximum)} at most"
        axes.plot(*thinned(loss.total), color=color, linewidth=2, linestyle=style, label=label)
        highest = max(highest, loss.maximum)
    apart = independent_loss(leak.spending)
    axes.axhline(apart, color=INK, linewidth=1.2, label=f"uncorrelated: {shown(apart)}")
    top = max(highest, apart) * 1.08 or 1.0
    places = np.flatnonzero(marks) + 1.0
    axes.vlines(places, 0, 0.05 * top, color=BLUE, linewidth=1.5, label="landmarks")
    axes.set_ylim(0, top)
    axes.set_ylabel("loss of all landmarks\nand this reading", fontsize=12, color=INK)
    _tidy(axes)


def _tidy(axes: Any) -> None:
    axes.margins(x=0.01)
    tidy(axes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3,
        fontsize=10.5,
        frameon=False,
        labelcolor=INK,
        borderaxespad=0.2,
    )
