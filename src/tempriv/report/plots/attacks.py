"""Pictures of attacks: how well two inputs are told apart, and a window that was restored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.audit.attacks.distinguish import TwoCandidates, outward, percent
from tempriv.audit.attacks.reconstruction import Reconstruction
from tempriv.report.plots.series import BLUE, GRAY, INK, new_figure, tidy

ORANGE = "#D55E00"  # Okabe and Ito's
BINS = 41
SURE = 8.0  # scores beyond it are drawn there: e^8 to one
MOST_WINDOWS = 4
BELOW: dict[str, Any] = {
    **{"loc": "outside lower center", "fontsize": 11, "frameon": False, "labelcolor": INK}
}


def plot_candidates(result: TwoCandidates, title: str) -> Any:
    """A matplotlib figure of what the observer made of each input's outputs.

    Parameters:
        result: of the attack.
        title: above the figure.
    """
    figure = new_figure((9.0, 5.0), title)
    axes = figure.subplots()
    finite = np.concatenate([np.clip(scores, -SURE, SURE) for scores in result.scores])
    reach = min(SURE, max(float(np.abs(finite).max(initial=0.0)), 1e-3)) * 1.02
    edges = np.linspace(-reach, reach, BINS)
    named = zip(
        ("where the first input went in", "where the second did"), (BLUE, ORANGE), strict=True
    )
    for scores, (name, color) in zip(result.scores, named, strict=True):
        shares = np.histogram(np.clip(scores, -SURE, SURE), edges)[0] / max(len(scores), 1)
        axes.stairs(shares, edges, fill=True, color=color, alpha=0.25)
        axes.stairs(shares, edges, color=color, linewidth=2, label=name)
    axes.axvline(0, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    says = "what the observer says: the second input  <  0  <  the first input"
    axes.set_xlabel(says, fontsize=12, color=INK)
    axes.set_ylabel("share of runs", fontsize=12, color=INK)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    low, high = outward(result.interval)
    cap = "no guarantee" if result.cap is None else f"guarantee: {percent(result.cap)} % at most"
    right = f"right {percent(result.rate)} % of the time ({low} to {high}), {cap}"
    axes.set_title(right, fontsize=12, color=INK)
    figure.legend(ncols=2, **BELOW)
    tidy(axes)
    return figure


def plot_windows(reconstruction: Reconstruction, title: str) -> Any:
    """Some windows as they were, as released, and as restored; the first column of each.

    Parameters:
        reconstruction: of the attack.
        title: above the figure.
    """
    low, high = outward(reconstruction.success.interval)
    whole = f"restored whole: {percent(reconstruction.success.rate)} % of windows ({low} to {high})"
    figure = new_figure((11.0, 6.4), f"{title}\n{whole}")
    shown = reconstruction.windows[:MOST_WINDOWS]
    across = 1 if len(shown) == 1 else 2
    grid = figure.subplots(-(-len(shown) // across), across, squeeze=False).ravel()
    for axes, window in zip(grid, shown, strict=False):
        truth, places = window.truth[:, 0], np.arange(len(window.truth))
        restored = window.restored.values.reshape(len(truth), -1)[:, 0]
        axes.plot(places, truth, color=BLUE, linewidth=2.2, label="as it was")
        released, cross = window.released[:, 0], {"markersize": 9, "markeredgewidth": 2}
        axes.plot(places[1:-1], released, "s", color=GRAY, markersize=5, label="as released")
        axes.plot(places, restored, "x", color=ORANGE, label="as restored", **cross)
        known = list(window.restored.known)
        axes.plot(known, truth[known], "o", color=INK, markersize=6, label="known to the attacker")
        reach = float(np.ptp(truth)) or 1.0
        # a window that was not restored may be off by any number
        axes.set_ylim(truth.min() - 0.6 * reach, truth.max() + 0.6 * reach)
        axes.set_xlabel("reading of the window", fontsize=11, color=INK)
        axes.set_ylabel("value", fontsize=11, color=INK)
        tidy(axes)
    for axes in grid[len(shown) :]:
        axes.set_axis_off()
    figure.legend(*grid[0].get_legend_handles_labels(), ncols=4, **BELOW)
    return figure
