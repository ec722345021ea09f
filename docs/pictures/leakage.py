"""Draws the picture of the page on leakage, from the bundled sample.

Run it with ``python docs/pictures/leakage.py``. Everything in it is computed, nothing is drawn at
random.
"""

from __future__ import annotations

import numpy as np
from shared import BLUE, BOUNDS, GRAY, INK, ORANGE, Panel, homes, save

from tempriv.correlation.chain import Chain, equal_width, states_of
from tempriv.correlation.growth import shown
from tempriv.correlation.landmarks import landmark_loss
from tempriv.correlation.loss import loss

STEPS = 48
EPSILON = 1.0
STATES = 4
GREEN = "#009E73"
LANDMARKS = (19, 20, 43, 44)


def chain() -> Chain:
    edges = equal_width(*BOUNDS, STATES)
    found = [states_of(readings, edges) for readings in homes().values()]
    return Chain.estimate(found, STATES, private=False)  # the sample is made up


def schemes() -> list[tuple[str, np.ndarray]]:
    """What each reading spends if landmarks and any one other share epsilon in three ways."""
    marked = np.zeros(STEPS, dtype=bool)
    marked[list(LANDMARKS)] = True
    count, rest = len(LANDMARKS), STEPS - len(LANDMARKS)
    part = EPSILON / (count + np.sqrt(rest))
    return [
        ("uniform", np.full(STEPS, EPSILON / (count + 1))),
        ("split", np.where(marked, part, np.sqrt(rest) * part)),
        ("skip", np.where(marked, 0.0, EPSILON)),
    ]


def leakage() -> None:
    """What is told of each of 48 readings; what landmarks lose by three schemes."""
    known = chain()
    left = Panel(44, 62, 350, 250, (1, STEPS), (0, 4))
    left.marks_up([0, 1, 2, 3, 4], lambda mark: f"{mark:g}")
    left.marks_across([1, 12, 24, 36, 48], lambda mark: f"{mark:g}")
    found = loss(known, np.full(STEPS, EPSILON))
    for losses, color, width in (
        (found.backward, BLUE, 2),
        (found.forward, GREEN, 2),
        (found.total, ORANGE, 3),
        (np.full(STEPS, EPSILON), INK, 1.5),
    ):
        left.curve(list(enumerate(losses, 1)), color, width)
    middle = left.x(24.5)
    for height, words, color in (
        (found.total[24], "by all releases", ORANGE),
        (EPSILON, "by its own release: epsilon", INK),
    ):
        left.text(middle, left.y(height) - 9, words, color, size=13, weight="bold")
    under = left.y(found.backward[24]) + 19
    left.text(middle - 4, under, "by those up to it", BLUE, "end", 13, "bold")
    left.text(middle + 4, under, "by those from it on", GREEN, "start", 13, "bold")
    left.text(left.left, 40, "What is told of each reading", anchor="start", size=14, weight="bold")
    left.text(left.left + 175, 346, "reading", GRAY)

    right = Panel(470, 62, 250, 250, (0, 3), (0, 10))
    right.marks_up([0, 2, 4, 6, 8, 10], lambda mark: f"{mark:g}")
    for number, (name, budgets) in enumerate(schemes()):
        joint = landmark_loss(known, budgets, LANDMARKS).maximum
        for at, height, color in ((0.22, EPSILON, INK), (0.56, joint, ORANGE)):
            x, top = right.x(number + at), right.y(height)
            right.parts.append(
                f'<rect x="{x:.1f}" y="{top:.1f}" width="24" height="{right.y(0) - top:.1f}" '
                f'fill="{color}"/>'
            )
            right.text(x + 12, top - 6, shown(height, 3), color, size=13, weight="bold")
        right.text(right.x(number + 0.5) + 4, 330, name, GRAY)
    right.text(
        right.left, 40, "Landmarks and another reading", anchor="start", size=14, weight="bold"
    )
    right.text(right.left + 125, 346, "guaranteed, and told under this chain", GRAY, size=12)
    save("leakage.svg", 740, 360, "What releases tell when readings go together", [left, right])


if __name__ == "__main__":
    leakage()
