"""Draws the picture of the page on SAX: one movement at two speeds, and the shape of both.

Run it with ``python docs/pictures/sax.py``. The series are made up of sines; nothing is drawn at
random.
"""

from __future__ import annotations

import numpy as np
from shared import BLUE, GRAY, INK, ORANGE, RULE, Panel, save

from tempriv.local.shapes.sax import Sax, curve

SAX = Sax(symbols=4, segment=10)
GREEN = "#009E73"
TINTS = ("#eef2f6", "#f7f9fb")


def movement(pace: np.ndarray) -> np.ndarray:
    """Up, down below where it began, and back: the same way at any pace, with a little tremor."""
    wave = np.sin(2 * np.pi * pace) + 0.5 * np.sin(4 * np.pi * pace)
    return wave + 0.06 * np.sin(70 * pace)


def series() -> tuple[np.ndarray, np.ndarray]:
    """A steady pace over 120 moments, and a hesitant one over 200."""
    steady, hesitant = np.linspace(0, 1, 120), np.linspace(0, 1, 200)
    return movement(steady), movement(hesitant**1.3)


def cells(panel: Panel) -> None:
    """Bands with their letters at the right."""
    low, high = panel.up
    ends = [low, *SAX.edges, high]
    for i, letter in enumerate(SAX.alphabet):
        top, bottom = panel.y(ends[i + 1]), panel.y(ends[i])
        panel.parts.append(
            f'<rect x="{panel.left:.1f}" y="{top:.1f}" width="{panel.width:.1f}" '
            f'height="{bottom - top:.1f}" fill="{TINTS[i % 2]}"/>'
        )
        panel.text(
            panel.left + panel.width + 10,
            (top + bottom) / 2 + 5,
            letter,
            GRAY,
            size=14,
            weight="bold",
        )
    for edge in SAX.edges:
        panel.line(panel.left, panel.y(edge), panel.left + panel.width, panel.y(edge), RULE)


def steps(panel: Panel, heights: np.ndarray, color: str, width: float) -> None:
    """A line that goes level for each moment."""
    points = [(i + side, height) for i, height in enumerate(heights) for side in (0, 1)]
    panel.curve(points, color, width)


def one_shape() -> None:
    panels = []
    up = (-2.2, 2.2)
    for number, (values, color, name) in enumerate(
        zip(series(), (BLUE, GREEN), ("at a steady pace", "slow at first, then fast"), strict=True)
    ):
        panel = Panel(40 + 240 * number, 62, 190, 230, (0, len(values)), up)
        cells(panel)
        panel.marks_up([-2, -1, 0, 1, 2] if number == 0 else [], lambda mark: f"{mark:g}")
        scored = (values - values.mean()) / values.std()
        panel.curve([(i + 0.5, value) for i, value in enumerate(scored)], color, 1.8)
        whole = [scored[i : i + SAX.segment].mean() for i in range(0, len(scored), SAX.segment)]
        steps(panel, np.repeat(whole, SAX.segment), INK, 1.4)
        panel.text(panel.left, 40, name, color, "start", 14, "bold")
        panel.text(panel.left + 95, 314, f"{len(values)} moments", GRAY, size=12)
        text = SAX.sequences([values]).texts()[0]
        panel.text(panel.left + 95, 338, text, INK, size=16, weight="bold")
        panels.append(panel)
    (shape,) = set(SAX.sequences(list(series())).texts())
    panel = Panel(520, 62, 190, 230, (0, 190), up)
    cells(panel)
    steps(panel, curve(shape, SAX, 190), RULE, 4)
    smooth = curve(shape, SAX, 190, line="smooth")
    panel.curve([(i + 0.5, value) for i, value in enumerate(smooth)], ORANGE, 3)
    panel.text(panel.left, 40, "the shape of both", ORANGE, "start", 14, "bold")
    panel.text(panel.left + 95, 314, "no time but the order", GRAY, size=12)
    panel.text(panel.left + 95, 338, shape, INK, size=16, weight="bold")
    save("sax.svg", 740, 356, "Two series that have one shape", [*panels, panel])


if __name__ == "__main__":
    one_shape()
