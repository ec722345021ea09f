"""The section of a report on correlation: what all readings together tell of one, and a picture."""

from __future__ import annotations

from html import escape

import numpy as np

from tempriv.correlation.growth import shown
from tempriv.data.series import ONLY_SERIES
from tempriv.errors import require
from tempriv.leakage.leakage import Leakage, ReadingRef
from tempriv.report.plots.leakage import thinned
from tempriv.report.svg import Frame, label_width, number_ticks, text

MAX_SHOWN_STATES = 8  # states of a chain that is printed
POINTS = 400
OF_METHOD = {
    "bridge": "at most",
    "definition5": "by Definition 5 of the landmark paper, which can be too small,",
}


def section(leakage: Leakage, private_page: bool) -> str:
    """The section as HTML; what is private never gets onto a public page.

    Parameters:
        leakage: that was computed.
        private_page: whether the page is for the owner of the data alone.
    """
    require(
        private_page or not leakage.private,
        "leakage: computed from private data, and this page may be handed out; put it on the "
        "private report",
    )
    chain = leakage.chain
    sentences = [leakage.sentence, leakage.chances, leakage.forever, *_together(leakage)]
    origin = (
        "The chain was estimated from private data, and so is all of this section private."
        if chain.private
        else "The chain was given by the owner of the data."
    )
    known = (
        f"{origin} It has {chain.states} states and says how likely each follows each. These are "
        "upper bounds, for someone who knows this chain and sees everything that was released; if "
        "readings really go together more strongly, more is told."
    )
    matrix = ""
    if not chain.private and chain.states <= MAX_SHOWN_STATES:
        rows = "\n".join("".join(f"{chance:<9.4g}" for chance in row) for row in chain.forward)
        matrix = f"<pre>{escape(rows)}</pre>"
    paragraphs = "".join(
        f"<p>{escape(part[:1].upper() + part[1:])}.</p>" for part in sentences if part
    )
    return (
        f"<section><h2>Where readings go together</h2>{paragraphs}"
        f"{_figure(leakage, leakage.pictured)}"
        f'<p class="note">{escape(known)}</p>{matrix}</section>'
    )


def _together(leakage: Leakage) -> list[str]:
    losses = []
    for method in leakage.methods:
        place = leakage.together(method)
        if place is not None:
            losses.append(f"{OF_METHOD[method]} {shown(place.loss)}")
    if not losses:
        return [
            f"what landmarks lose together was not found: {leakage.why_not(method)}"
            for method in leakage.methods[:1]
        ]
    apart = shown(leakage.apart)
    return [
        f"all landmarks of a series and any one other reading together lose {' and '.join(losses)}"
        f"; it would be {apart} if readings were independent"
    ]


def _figure(leakage: Leakage, place: ReadingRef) -> str:
    style = "private" if leakage.private else "released"
    spending, total = place.leak.spending, place.leak.loss.total
    top = 1.08 * float(total.max()) or 1.0
    length = len(total)
    y_ticks = number_ticks(0.0, top, 5)
    left = label_width(label for _, label, _ in y_ticks)
    wide = max(1.0, 0.01 * length)
    frame = Frame(760, 240, (1 - wide, length + wide), (0.0, top), left, 40)
    x_ticks = number_ticks(1.0, float(max(length, 2)), 8, whole=True)
    drawn = [text(0, 14, "loss", "start", "label"), text(frame.end, 235, "reading", "end", "label")]
    drawn += [frame.y_axis(y_ticks), frame.x_axis(x_ticks)]
    keys = [(style, "all releases together"), ("bound", "its own release: epsilon")]
    if spending.landmarks is not None and spending.landmarks.any():
        keys.append(("released dot", "landmark"))
        marks = np.flatnonzero(spending.landmarks) + 1.0
        drawn.append(frame.dots(marks, np.full(len(marks), 0.02 * top), 6.0, "released"))
    drawn.append(frame.line(*thinned(total, POINTS), style))
    budgets = "L".join(frame.points(*thinned(spending.budgets, POINTS)))
    drawn.append(f'<path class="bound" d="M{budgets}"/>')
    legend = "".join(f'<span><i class="key {name}"></i>{label}</span>' for name, label in keys)
    whose = "every series" if place.everywhere else spending.series
    caption = "" if spending.series == ONLY_SERIES else f"<figcaption>{escape(whose)}</figcaption>"
    svg = frame.svg("Loss of each reading", *drawn)
    return (
        "<h3>What is told of each reading</h3>"
        f'<p class="legend">{legend}</p><div class="wide"><figure>{caption}{svg}</figure></div>'
    )
