"""Draws the picture of the page on shapes: what a campaign among made-up series finds.

Run it with ``python docs/pictures/shapes.py``. The noise comes from a seed, so that the picture is
the same each time; shapes for others must never be found that way.
"""

from __future__ import annotations

import numpy as np
from shared import BLUE, GRAY, INK, RULE, Panel, save

from tempriv.local.shapes.plan import ShapesPlan
from tempriv.local.shapes.sax import Sax, curve
from tempriv.local.shapes.simulate import Outcome, simulate

SAX = Sax(symbols=4, segment=10, longest=8)
PEOPLE, WIDTH = 6000, 200


def series() -> list[np.ndarray]:
    """Nights: most people rest early, some late, some wake in between; of many lengths."""
    found = []
    for i in range(PEOPLE):
        at = np.linspace(0, 1, 120 + 10 * (i % 5))
        tremor = 0.1 * np.sin((7 + i % 11) * at + i)
        if i % 10 < 5:
            wave = np.where(at < 0.2, 1.5, np.where(at < 0.6, -1.0, 0.4))
        elif i % 10 < 8:
            wave = np.where(at < 0.5, 1.0, np.where(at < 0.8, -1.2, 0.2))
        else:
            wave = np.where((at > 0.4) & (at < 0.6), 1.4, -0.6)
        found.append(wave + tremor)
    return found


def campaign() -> Outcome:
    plan = ShapesPlan(epsilon=4.0, shapes=3, people=PEOPLE, sax=SAX)
    return simulate(plan, series(), seed=1)


def picture() -> None:
    found = campaign()
    panels = []
    for number, shape in enumerate(found.shapes):
        panel = Panel(40 + 240 * number, 74, WIDTH, 170, (0, WIDTH), (-1.6, 1.6))
        for letter, level in zip(SAX.alphabet, SAX.levels, strict=True):
            y = panel.y(level)
            panel.line(panel.left, y, panel.left + panel.width, y, RULE)
            panel.text(panel.left - 12, y + 5, letter, GRAY, size=13)
        for line, color, width in (("step", RULE, 5.0), ("smooth", BLUE, 2.6)):
            heights = curve(shape.text, SAX, WIDTH, line=line)
            points = [(i + 0.5, height) for i, height in enumerate(heights)]
            panel.curve(points, color, width)
        share, low, high = found.share(shape)
        panel.text(panel.left + WIDTH / 2, 30, shape.text, INK, size=17, weight="bold")
        told = f"{100 * share:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        panel.text(panel.left + WIDTH / 2, 54, told, INK, size=14)
        panel.text(panel.left + WIDTH, 266, "time →", GRAY, "end", 12)
        panels.append(panel)
    save("shapes.svg", 740, 280, "Three frequent shapes with their shares", panels)


if __name__ == "__main__":
    picture()
