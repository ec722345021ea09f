"""Pictures of attacks: how well two inputs are told apart, and a window that was restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.audit.attacks.distinguish import TwoCandidates, outward, percent
from tempriv.audit.attacks.reconstruction import Reconstruction
from tempriv.report.plots.series import BLUE, GRAY, INK, RULE, figure_class

ORANGE = "#D55E00"  # Okabe and Ito's
BINS = 41
SURE = 8.0  # scores beyond it are drawn there: e^8 to one
MOST_WINDOWS = 4


def plot_candidates(found: TwoCandidates, title: str) -> Any:
    """A matplotlib figure of what the observer made of each input's outputs."""
    figure = figure_class()(figsize=(9.0, 5.0), dpi=100, layout="constrained", facecolor="white")
    figure.suptitle(title, fontsize=13, color=INK)
    axes = figure.subplots()
    finite = np.concatenate([np.clip(one, -SURE, SURE) for one in found.scores])
    reach = min(SURE, max(float(np.abs(finite).max(initial=0.0)), 1e-3)) * 1.02
    edges = np.linspace(-reach, reach, BINS)
    named = zip(
        ("where the first input went in", "where the second did"), (BLUE, ORANGE), strict=True
    )
    for scores, (name, color) in zip(found.scores, named, strict=True):
        shares = np.histogram(np.clip(scores, -SURE, SURE), edges)[0] / max(len(scores), 1)
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.25)
        axes.stairs(shares, edges, color=color, linewidth=2, label=name)
    axes.axvline(0, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    says = "what the observer says: the second input  <  0  <  the first input"
    axes.set_xlabel(says, fontsize=12, color=INK)
    axes.set_ylabel("share of runs", fontsize=12, color=INK)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    low, high = outward(found.interval)
    cap = "no guarantee" if found.cap is None else f"guarantee: {percent(found.cap)} % at most"
    axes.set_title(
        f"right {percent(found.rate)} % of the time ({low} to {high}), {cap}",
        fontsize=12,
        color=INK,
    )
    figure.legend(loc="outside lower center", ncols=2, fontsize=11, frameon=False, labelcolor=INK)
    _tidy(axes)
    return figure


def plot_windows(found: Reconstruction, title: str) -> Any:
    """Some windows as they were, as released, and as restored; the first column of each."""
    figure = figure_class()(figsize=(11.0, 6.4), dpi=100, layout="constrained", facecolor="white")
    low, high = outward(found.success.interval)
    whole = f"restored whole: {percent(found.success.rate)} % of windows ({low} to {high})"
    figure.suptitle(f"{title}\n{whole}", fontsize=13, color=INK)
    shown = found.windows[:MOST_WINDOWS]
    across = 1 if len(shown) == 1 else 2
    grid = figure.subplots(-(-len(shown) // across), across, squeeze=False).ravel()
    for axes, one in zip(grid, shown, strict=False):
        truth, places = one.truth[:, 0], np.arange(len(one.truth))
        restored = one.restored.values.reshape(len(truth), -1)[:, 0]
        axes.plot(places, truth, color=BLUE, linewidth=2.2, label="as it was")
        axes.plot(
            places[1:-1], one.released[:, 0], "s", color=GRAY, markersize=5, label="as released"
        )
        axes.plot(
            places,
            restored,
            "x",
            color=ORANGE,
            markersize=9,
            markeredgewidth=2,
            label="as restored",
        )
        known = list(one.restored.known)
        axes.plot(known, truth[known], "o", color=INK, markersize=6, label="known to the attacker")
        reach = float(np.ptp(truth)) or 1.0
        # a window that was not restored may be off by any number
        axes.set_ylim(truth.min() - 0.6 * reach, truth.max() + 0.6 * reach)
        axes.set_xlabel("reading of the window", fontsize=11, color=INK)
        _tidy(axes)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=4,
        fontsize=11,
        frameon=False,
        labelcolor=INK,
    )
    return figure


def _tidy(axes: Any) -> None:
    axes.tick_params(labelsize=11, color=GRAY, labelcolor=INK)
    axes.grid(color=RULE, linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.set_axisbelow(True)
