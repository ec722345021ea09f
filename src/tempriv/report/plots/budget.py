"""A picture of a plan: the noise of each release, or what all add up to, by method."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from tempriv.accounting.planning import MethodResult, Noise
from tempriv.errors import extra_packages
from tempriv.report.plots.series import BLUE, GRAY, INK, RULE, shown

# Okabe and Ito's colors
LINES = {
    ("sum", Noise.ANY_PURE): INK,
    ("advanced composition", Noise.ANY_PURE): "#E69F00",
    ("ledger", Noise.ANY_PURE): BLUE,
    ("exact", Noise.GAUSSIAN): "#009E73",
}
COLORS = {Noise.ANY_PURE: BLUE, Noise.LAPLACE: "#CC79A7", Noise.GAUSSIAN: "#009E73"}
POINTS = 20


def plot_plan(
    ways: Sequence[MethodResult],
    count: int,
    quick: Callable[[int], Sequence[MethodResult]],
    title: str,
    inverse: bool = False,
) -> Any:
    """A matplotlib figure of a plan.

    Parameters:
        ways: what each method allows.
        count: how many releases are planned.
        quick: gives ``ways`` for another number of releases.
        title: of the figure.
        inverse: show the epsilon of all together instead of the noise of each.
    """
    with extra_packages("plots", "plots"):
        from matplotlib.figure import Figure

    def value(way: MethodResult) -> float:
        return way.total if inverse else way.deviation

    what = (
        "epsilon of all releases together"
        if inverse
        else "noise of each release\n(standard deviation / sensitivity)"
    )
    figure = Figure(figsize=(11.5, 5.2), dpi=100, layout="constrained", facecolor="white")
    figure.suptitle(title, fontsize=13, color=INK)
    left, right = figure.subplots(1, 2, width_ratios=(1.05, 1))
    _lines(left, count, quick, value, what)
    _dots(right, ways, value, what)
    return figure


def drawn(figure: Any, form: str) -> bytes:
    """The ``figure`` as a file of a ``form``, png, svg or pdf, without a date."""
    import matplotlib

    # text stays text in SVG, so that it is small and can be searched
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "tempriv", "font.family": "sans-serif"}
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with matplotlib.rc_context(settings):
        figure.savefig(image := io.BytesIO(), format=form, dpi=150, metadata=undated)
    return image.getvalue()


def _lines(
    axes: Any,
    count: int,
    quick: Callable[[int], Sequence[MethodResult]],
    value: Callable[[MethodResult], float],
    what: str,
) -> None:
    counts = sorted({round(count ** (i / (POINTS - 1))) for i in range(POINTS)})
    answered = [{(way.method, way.noise): value(way) for way in quick(number)} for number in counts]
    for key, color in LINES.items():
        if key in answered[0]:
            values = [answers[key] for answers in answered]
            axes.plot(counts, values, color=color, linewidth=2, label=", ".join(key))
            axes.plot(counts[-1], values[-1], "o", color=color, markersize=6)
    axes.axvline(count, color=GRAY, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("number of releases", fontsize=12, color=INK)
    axes.set_ylabel(what, fontsize=12, color=INK)
    axes.grid(color=RULE, linewidth=0.8)
    axes.legend(fontsize=11, frameon=False, labelcolor=INK, loc="upper left")
    _tidy(axes)


def _dots(
    axes: Any, ways: Sequence[MethodResult], value: Callable[[MethodResult], float], what: str
) -> None:
    ordered = sorted(ways, key=value)
    names = [f"{way.method}, {way.noise}" for way in ordered]
    places = range(len(ordered))
    for place, way in zip(places, ordered, strict=True):
        color = COLORS[way.noise]
        axes.plot(
            value(way),
            place,
            "o",
            markersize=9,
            color=color,
            markeredgewidth=2,
            markerfacecolor=color if way.adaptive else "white",
        )
        axes.annotate(
            shown(value(way)),
            (value(way), place),
            xytext=(10, 0),
            va="center",
            textcoords="offset points",
            fontsize=11,
            color=INK,
        )
    axes.set_yticks(places, names)
    axes.set_ylim(-0.7, len(ordered) - 0.3)
    axes.set_xscale("log")
    least, most = value(ordered[0]), value(ordered[-1])
    axes.set_xlim(least / 1.3, most * (most / least) ** 0.25 * 1.5)
    axes.set_xlabel(what, fontsize=12, color=INK)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    for filled, label in (
        (True, "costs may be chosen as you go"),
        (False, "plan fixed in advance"),
    ):
        axes.plot(
            [],
            [],
            "o",
            markersize=9,
            color=GRAY,
            markeredgewidth=2,
            label=label,
            markerfacecolor=GRAY if filled else "white",
        )
    axes.legend(
        fontsize=11,
        frameon=False,
        labelcolor=INK,
        ncols=2,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        handletextpad=0.2,
    )
    _tidy(axes)


def _tidy(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: shown(value, 1)))
            axis.set_minor_formatter(NullFormatter())
    axes.tick_params(labelsize=11, color=GRAY, labelcolor=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.set_axisbelow(True)
