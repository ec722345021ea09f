"""The section of a report on correlation: what all readings together tell of one, and a picture."""

from __future__ import annotations

from html import escape

import numpy as np

from tempriv.correlation.growth import shown
from tempriv.data.series import ONLY_SERIES
from tempriv.errors import require
from tempriv.leakage.leakage import Leakage, ReadingRef
from tempriv.report.plots.leakage import thinned
from tempriv.report.svg import Frame, number_ticks

MOST_SHOWN = 8  # states of a chain that is printed
POINTS = 400
OF_METHOD = {
    "bridge": "at most",
    "definition5": "by Definition 5 of the landmark paper, which can be too small,",
}


def section(leakage: Leakage, private_page: bool) -> str:
    """The section as HTML; what is private never gets onto a public page."""
    require(
        private_page or not leakage.private,
        "leakage: computed from private data, and this page may be handed out; put it on the "
        "private report",
    )
    chain = leakage.chain
    said = [leakage.sentence, leakage.chances, leakage.forever, *_together(leakage)]
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
    if not chain.private and chain.states <= MOST_SHOWN:
        rows = "\n".join("".join(f"{chance:<9.4g}" for chance in row) for row in chain.forward)
        matrix = f"<pre>{escape(rows)}</pre>"
    paragraphs = "".join(f"<p>{escape(one[:1].upper() + one[1:])}.</p>" for one in said if one)
    return (
        f"<section><h2>Where readings go together</h2>{paragraphs}"
        f"{_figure(leakage, leakage.pictured)}"
        f'<p class="note">{escape(known)}</p>{matrix}</section>'
    )


def _together(leakage: Leakage) -> list[str]:
    found = []
    for method in leakage.methods:
        place = leakage.together(method)
        if place is not None:
            found.append(f"{OF_METHOD[method]} {shown(place.loss)}")
    if not found:
        return [
            f"what landmarks lose together was not found: {leakage.why_not(method)}"
            for method in leakage.methods[:1]
        ]
    apart = shown(leakage.apart)
    return [
        f"all landmarks of a series and any one other reading together lose {' and '.join(found)}; "
        f"it would be {apart} if readings were independent"
    ]


def _figure(leakage: Leakage, place: ReadingRef) -> str:
    style = "private" if leakage.private else "released"
    spending, total = place.leak.spending, place.leak.loss.total
    top = 1.08 * float(total.max()) or 1.0
    length = len(total)
    y_marks = number_ticks(0.0, top, 5)
    left = 14 + 7.2 * max(len(label) for _, label, _ in y_marks)
    wide = max(1.0, 0.01 * length)
    frame = Frame(760, 240, (1 - wide, length + wide), (0.0, top), left, 40)
    floor, end = frame.height - frame.bottom, frame.width - frame.right
    drawn = [_text(0, 14, "loss", "start", "label"), _text(end, 235, "reading", "end", "label")]
    for value, label, _ in y_marks:
        y = frame.down(value)
        drawn.append(f'<path class="rule" d="M{left:.1f} {y:.1f}H{end}"/>')
        drawn.append(_text(left - 8, y + 4, label, "end"))
    for value, label, _ in number_ticks(1.0, float(max(length, 2)), 8, whole=True):
        x = frame.across(value)
        drawn.append(f'<path class="tick" d="M{x:.1f} {floor}v5"/>')
        drawn.append(_text(x, floor + 18, label))
    keys = [(style, "all releases together"), ("bound", "its own release: epsilon")]
    if spending.landmarks is not None and spending.landmarks.any():
        keys.append(("released dot", "landmark"))
        marks = np.flatnonzero(spending.landmarks) + 1.0
        drawn.append(frame.dots(marks, np.full(len(marks), 0.02 * top), 6.0, "released"))
    drawn.append(frame.line(*thinned(total, POINTS), style))
    own = "L".join(frame.points(*thinned(spending.budgets, POINTS)))
    drawn.append(f'<path class="bound" d="M{own}"/>')
    drawn.append(f'<path class="tick" d="M{left:.1f} {floor}H{end}"/>')
    legend = "".join(f'<span><i class="key {name}"></i>{text}</span>' for name, text in keys)
    whose = "every series" if place.everywhere else spending.series
    caption = "" if spending.series == ONLY_SERIES else f"<figcaption>{escape(whose)}</figcaption>"
    svg = (
        f'<svg viewBox="0 0 {frame.width:g} {frame.height:g}" role="img" aria-label="Loss of each '
        f'reading">{"".join(drawn)}</svg>'
    )
    return (
        "<h3>What is told of each reading</h3>"
        f'<p class="legend">{legend}</p><div class="wide"><figure>{caption}{svg}</figure></div>'
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", style: str = "mark") -> str:
    place = f'class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(text)}</text>"
