"""Draws the pictures of the pages on choosing landmarks and on dummy landmarks.

Run it with ``python docs/pictures/dummies.py``, and ``--table`` for their tables. Paths and
landmarks are made up and marks come from seeds, so everything comes out the same each time; a
release for others must never be made that way.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from shared import BLUE, GRAY, INK, ORANGE, RULE, Panel, homes, save

from tempriv.landmarks import choose
from tempriv.landmarks.dummies import DummyLandmarks, RandomizedMarks
from tempriv.mechanisms.landmarks.private_count import delta, margin
from tempriv.sampling.keys import Key

MOMENTS = 100
BUDGETS = (0.01, 0.1, 0.5, 1.0, 4.0)
RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99)
DEGREE = 111_195  # meters


def a_walk() -> tuple[np.ndarray, np.ndarray]:
    """Meters east and north, every two minutes: home, a shop, a long visit, and back."""
    rng = np.random.default_rng(4)
    corners = np.array([[0, 0], [900, 350], [900, 350], [1500, 1100], [1500, 1100], [0, 0]])
    steps = (12, 8, 14, 26, 16)
    parts = [
        np.linspace(one, other, count, endpoint=False)
        for one, other, count in zip(corners[:-1], corners[1:], steps, strict=True)
    ]
    path = np.concatenate([np.zeros((18, 2)), *parts])
    path += rng.normal(0, 22, path.shape)
    return path, 120.0 * np.arange(len(path))


def chosen() -> None:
    """Landmarks by a threshold on values, and by stays of a path."""
    values = homes()["home-4"][: 3 * 24]
    marks = choose.below(values, 0.3).marks
    left = Panel(52, 62, 380, 240, (0, len(values) - 1), (0, 3))
    left.marks_across([0, 24, 48, 71], lambda mark: f"{mark:g}")
    left.marks_up([0, 1, 2, 3], lambda mark: f"{mark:g}")
    left.curve(list(enumerate(values)), BLUE, 1.8)
    for hour in np.flatnonzero(marks):
        left.dot(hour, values[hour], ORANGE, 3.6)
    left.text(left.left, 20, "Two series and their landmarks", INK, "start", 14, "bold")
    left.text(712, 20, "landmarks", ORANGE, "end", 14, "bold")
    left.text(620, 20, "readings", BLUE, "end", 14, "bold")
    left.text(left.left + 190, 50, "values below 0.3 kWh")
    left.text(left.left + 190, 338, "hour", GRAY, size=12)

    path, seconds = a_walk()
    stays = choose.stay_points(
        path[:, 1] / DEGREE, path[:, 0] / DEGREE, seconds, meters=100, minutes=15
    )
    right = Panel(492, 62, 220, 240, (-150, 1700), (-150, 1250))
    right.marks_across([0, 500, 1000, 1500], lambda mark: f"{mark:g}")
    right.marks_up([0, 400, 800, 1200], lambda mark: f"{mark:g}")
    right.curve([(x, y) for x, y in path], BLUE, 1.2)
    for (x, y), mark in zip(path, stays.marks, strict=True):
        right.dot(x, y, ORANGE if mark else BLUE, 3.4 if mark else 2)
    right.text(right.left + 110, 50, "stays: within 100 m for 15 minutes")
    right.text(right.left + 110, 338, "meters", GRAY, size=12)
    save("landmarks_chosen.svg", 740, 352, "Landmarks by a threshold and by stays", [left, right])


def twenty() -> np.ndarray:
    """Landmarks anywhere among 100 moments."""
    return np.isin(np.arange(MOMENTS), np.random.default_rng(1).choice(MOMENTS, 20, replace=False))


def strip(panel: Panel, row: int, label: str, marks: np.ndarray, true: np.ndarray) -> None:
    """One line of moments: landmarks, dummies, landmarks without a mark."""
    top, height = panel.top + 34 * row, 20
    width = panel.width / MOMENTS
    for t in range(MOMENTS):
        color = (ORANGE if true[t] else BLUE) if marks[t] else "#ffffff"
        edge = ORANGE if true[t] else RULE
        panel.parts.append(
            f'<rect x="{panel.left + t * width:.1f}" y="{top}" width="{width - 1:.1f}" '
            f'height="{height}" fill="{color}" stroke="{edge}" stroke-width="0.8"/>'
        )
    panel.text(panel.left - 8, top + 14, label, INK, "end", 12)


def hidden() -> None:
    """What either way shows, and what it costs."""
    true = twenty()
    top = Panel(150, 40, 570, 100, (0, MOMENTS), (0, 1))
    published = DummyLandmarks(epsilon=0.1, score="distance")
    marking = RandomizedMarks(epsilon=1.0, recall=0.9)
    strip(top, 0, "true landmarks", true, true)
    strip(top, 1, "with dummies", published.select(true, Key.from_seed(3), "a").marks, true)
    strip(top, 2, "randomized marks", marking.select(true, Key.from_seed(3), "a").marks, true)
    top.text(20, 24, "100 moments, 20 landmarks", INK, "start", 14, "bold")
    top.text(300, 24, "landmarks", ORANGE, "start", 14, "bold")
    top.text(392, 24, "dummies", BLUE, "start", 14, "bold")
    top.text(720, 24, "empty orange frame: a landmark missed", GRAY, "end", 12)

    places = [-2 + i / 20 for i in range(53)]
    left = Panel(62, 216, 290, 210, (-2, 0.6), (0, 1))
    left.marks_across([-2, -1, 0, math.log10(4)], lambda mark: f"{10**mark:g}")
    left.marks_up([0, 0.25, 0.5, 0.75, 1], lambda mark: f"{100 * mark:.0f} %")
    for score, color, at in (("count", ORANGE, 0.84), ("temporal", BLUE, 0.43)):
        hiding = [DummyLandmarks(epsilon=10**x, score=score) for x in places]  # type: ignore[arg-type]
        shown = [one.exposed(true) for one in hiding]
        left.curve(list(zip(places, shown, strict=True)), color, 2.5)
        left.text(left.x(-1.95), left.y(at), f"score={score}", color, "start", 13, "bold")
    left.text(left.left - 40, 200, "dummies: moments shown to be none", INK, "start", 13, "bold")
    left.text(left.left + 145, 462, "epsilon of the selection", GRAY, size=12)

    right = Panel(430, 216, 290, 210, (-2, 0.6), (0, 1))
    right.marks_across([-2, -1, 0, math.log10(4)], lambda mark: f"{10**mark:g}")
    right.marks_up([0, 0.25, 0.5, 0.75, 1], lambda mark: f"{100 * mark:.0f} %")
    for recall, color in ((0.95, ORANGE), (0.8, BLUE)):
        rates = [RandomizedMarks(epsilon=10**x, recall=recall).rate for x in places]
        right.curve(list(zip(places, rates, strict=True)), color, 2.5)
        under = right.y(recall - 0.08)
        right.text(right.x(-1.95), under, f"recall {recall:g}", color, "start", 13, "bold")
    right.text(right.left - 40, 200, "randomized: other moments marked", INK, "start", 13, "bold")
    right.text(right.left + 145, 462, "epsilon for each moment", GRAY, size=12)
    save("dummies.svg", 740, 476, "Dummy landmarks and randomized marks", [top, left, right])


def tables() -> None:
    true = twenty()
    print("| score | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in BUDGETS) + " |")
    for score in ("temporal", "count", "distance"):
        shown = [
            DummyLandmarks(epsilon=epsilon, score=score).exposed(true)  # type: ignore[arg-type]
            for epsilon in BUDGETS
        ]
        print(f"| {score} | " + " | ".join(f"{100 * part:.1f} %" for part in shown) + " |")
    print("| recall | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in BUDGETS[1:]) + " |")
    for recall in RECALLS:
        rates = [RandomizedMarks(epsilon=epsilon, recall=recall).rate for epsilon in BUDGETS[1:]]
        print(f"| {recall:g} | " + " | ".join(f"{100 * rate:.1f} %" for rate in rates) + " |")
    print("| epsilon | margin, miss 1e-3 | delta | margin, miss 1e-6 | delta |")
    for epsilon in (0.05, 0.1, 0.5, 1.0):
        cells = []
        for miss in (1e-3, 1e-6):
            least = margin(epsilon, miss)
            cells += [f"{least}", f"{delta(epsilon, least):.2e}"]
        print(f"| {epsilon:g} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if "--table" in sys.argv:
        tables()
    else:
        chosen()
        hidden()
