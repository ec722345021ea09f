"""Draws the picture of the page on correlation.

Run it with ``python docs/pictures/correlation.py``. Everything in it is computed, nothing is drawn
at random.
"""

from __future__ import annotations

from shared import BLUE, GRAY, INK, ORANGE, Panel, save

from tempriv.correlation.chain import Chain
from tempriv.correlation.loss import allocate, loss

STEPS = 30
BUDGET = 0.1
TARGET = 1.0
GREEN = "#009E73"
CHAINS = (
    (1.0, BLUE, "stays 66.7 %"),
    (0.1, GREEN, "stays 91.7 %"),
    (0.01, ORANGE, "stays 99.0 %"),
)


def correlation() -> None:
    """The loss of each moment at a constant budget, and the budgets that keep it constant."""
    left = Panel(56, 62, 290, 250, (1, STEPS), (0, 3))
    left.marks_up([0, 1, 2, 3], lambda mark: f"{mark:g}")
    right = Panel(420, 62, 290, 250, (1, STEPS), (0, 0.8))
    right.marks_up([0, 0.2, 0.4, 0.6, 0.8], lambda mark: f"{mark:g}")
    for panel in (left, right):
        panel.marks_across([1, 10, 20, 30], lambda mark: f"{mark:g}")
        panel.text(panel.left + 145, 346, "step", GRAY)
    for smoothing, color, words in CHAINS:
        chain = Chain.smoothed_identity(2, smoothing)
        total = loss(chain, [BUDGET] * STEPS).total
        left.curve(list(enumerate(total, 1)), color, 2.5)
        left.text(left.x(15.5), left.y(total[15]) - 9, words, color, size=13, weight="bold")
        budgets = allocate(chain, TARGET, STEPS)
        for step, budget in enumerate(budgets, 1):
            right.dot(step, budget, color, 3)
        right.text(right.x(15.5), right.y(budgets[15]) - 9, words, color, size=13, weight="bold")
    left.curve([(1, BUDGET), (STEPS, BUDGET)], INK, 1)
    left.text(
        left.left,
        40,
        f"Total loss, epsilon {BUDGET:g} at every step",
        anchor="start",
        size=14,
        weight="bold",
    )
    right.text(
        right.left,
        40,
        f"Budgets that keep the loss at {TARGET:g}",
        anchor="start",
        size=14,
        weight="bold",
    )
    save("correlation.svg", 740, 360, "Loss and budgets under correlation", [left, right])


if __name__ == "__main__":
    correlation()
