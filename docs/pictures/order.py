"""Draws the pictures of the pages on moving readings in time.

Run it with ``python docs/pictures/order.py``, and ``--table`` for the numbers in their tables.
Noise comes from seeds, so everything comes out the same each time; a release for others must never
be made that way.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from shared import BLUE, GRAY, HOURS, ORANGE, RULE, Panel, homes, save

from tempriv.mechanisms.reorder.backward_forward import Backward, Forward
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder, least_latency
from tempriv.mechanisms.reorder.shuffle import BlockShuffle
from tempriv.mechanisms.reorder.threshold import DualThreshold, Threshold
from tempriv.sampling.keys import Key
from tempriv.utility.reorder_costs import expected

GREEN = "#009E73"
KINDS = ("staircase", "laplace")
STEPS = 36


def moved(mechanism: Any, values: np.ndarray, seed: int) -> list[float | None]:
    """What comes out in each slot of a whole series."""
    stream = mechanism.start(Key.from_seed(seed), "series")
    out = [*np.ma.asarray(stream.push(values)).tolist()]
    return out + [row[0] for row in np.ma.asarray(stream.finish()).tolist()]


def ways(panel: Panel, mechanism: Any, title: str, seed: int) -> None:
    """Each reading above, the slot it goes to below; what never comes out is left open."""
    sources = moved(mechanism, np.arange(STEPS + 20), seed)[:STEPS]
    panel.text(panel.left, panel.top - 18, title, anchor="start", size=13, weight="bold")
    low, high = panel.y(0), panel.y(1)
    panel.text(panel.left - 10, high + 4, "read", GRAY, "end", 12)
    panel.text(panel.left - 10, low + 4, "released", GRAY, "end", 12)
    seen: set[int] = set()
    for slot, step in enumerate(sources):
        if step is None:
            continue
        if step < STEPS:
            color = ORANGE if step in seen else BLUE
            panel.line(panel.x(step), high, panel.x(slot), low, color)
        seen.add(int(step))
    for place in range(STEPS):
        panel.dot(place, 1, BLUE if place in seen else RULE, 3.5)
        panel.dot(place, 0, RULE if sources[place] is None else BLUE, 3.5)


def two(name: str, title: str, rows: list[tuple[Any, str, int]], note: str) -> None:
    panels = []
    for number, (mechanism, words, seed) in enumerate(rows):
        panel = Panel(76, 66 + 156 * number, 632, 92, (0, STEPS - 1), (0, 1))
        ways(panel, mechanism, words, seed)
        panels.append(panel)
    panels[0].text(76, 20, title, anchor="start", size=14, weight="bold")
    height = 40 + 156 * len(rows)
    panels[-1].text(392, height - 8, note, GRAY, size=12)
    save(f"{name}.svg", 740, height, title, panels)


def lags() -> None:
    """How late readings come out: the law of each mechanism at one budget."""
    window, epsilon = 20, 5.0
    laws = (
        ("threshold", Threshold(epsilon=epsilon, window=window), BLUE),
        ("dual-threshold", DualThreshold(epsilon=epsilon, window=window), GREEN),
        ("backward, forward", Backward(epsilon=epsilon, window=window), ORANGE),
    )
    panels = []
    for number, (name, mechanism, color) in enumerate(laws):
        panel = Panel(60 + 228 * number, 66, 196, 190, (-1, window), (0, 0.42))
        panel.marks_across([0, 5, 10, 15, 19], lambda mark: f"{mark:g}")
        show = (lambda mark: f"{100 * mark:.0f} %") if number == 0 else (lambda mark: "")
        panel.marks_up([0, 0.1, 0.2, 0.3, 0.4], show)
        for lag, chance in enumerate(mechanism.probabilities):
            top, wide = panel.y(chance), panel.x(0.76) - panel.x(0)
            panel.parts.append(
                f'<rect x="{panel.x(lag - 0.38):.1f}" y="{top:.1f}" width="{wide:.1f}" '
                f'height="{panel.y(0) - top:.1f}" fill="{color}"/>'
            )
        panel.text(panel.left + 98, 54, name, color, size=14, weight="bold")
        panels.append(panel)
    first = panels[0]
    first.text(
        60,
        20,
        "How many steps late, as it is drawn: window 20, epsilon 5",
        anchor="start",
        size=14,
        weight="bold",
    )
    panels[1].text(panels[1].left + 98, 296, "time steps", GRAY)
    save("lags.svg", 740, 310, "How late readings come out", panels)


def told() -> None:
    """The chance that a whole output shows for certain which of two readings was first."""
    window = 20
    panel = Panel(72, 40, 600, 270, (1, 19), (0, 1))
    panel.marks_across([1, 4, 7, 10, 13, 16, 19], lambda mark: f"{mark:g}")
    panel.marks_up([0, 0.25, 0.5, 0.75, 1], lambda mark: f"{100 * mark:.0f} %")
    lines = (
        ("threshold", Threshold(epsilon=5.0, window=window), BLUE, 8.3, 0.79),
        ("backward", Backward(epsilon=5.0, window=window), ORANGE, 16.2, 0.845),
        ("forward", Forward(epsilon=5.0, window=window), GRAY, 16.2, 0.645),
    )
    for name, mechanism, color, at, height in lines:
        panel.curve([(d, mechanism.loss_at(d).delta) for d in range(1, window)], color, 2.5)
        panel.text(panel.x(at), panel.y(height), name, color, "start", 14, "bold")
    panel.curve([(1, 0.004), (19, 0.004)], GREEN, 3)
    panel.text(
        panel.x(1.3),
        panel.y(0.03),
        "block-shuffle in a block, noisy-order",
        GREEN,
        "start",
        14,
        "bold",
    )
    panel.text(
        72,
        22,
        "Chance that all rows together show for certain which of two was first",
        anchor="start",
        size=14,
        weight="bold",
    )
    panel.text(
        372, 350, "time steps between the two readings (window or block 20, epsilon 5)", GRAY
    )
    save("told.svg", 700, 366, "Chance of a certain order, by distance", [panel])


def a_day() -> None:
    """One day of one home, its hours moved in three ways."""
    values = homes()["home-4"][: 3 * HOURS]
    rows = (
        ("threshold, window 6", Threshold(epsilon=4.0, window=6)),
        ("block-shuffle, 24 hours", BlockShuffle(epsilon=1.0, block=HOURS)),
        ("noisy-order, window 4", NoisyOrder(epsilon=4.0, window=4)),
    )
    panels = []
    for number, (name, mechanism) in enumerate(rows):
        panel = Panel(52 + 232 * number, 62, 204, 220, (0, 23), (0, 3))
        panel.marks_across([0, 6, 12, 18, 23], lambda mark: f"{mark:g}")
        show = (lambda mark: f"{mark:g}") if number == 0 else (lambda mark: "")
        panel.marks_up([0, 1, 2, 3], show)
        out = moved(mechanism, values, 4)[HOURS : 2 * HOURS]
        panel.curve(list(enumerate(values[HOURS : 2 * HOURS])), BLUE, 2.2)
        panel.curve([(i, v) for i, v in enumerate(out) if v is not None], ORANGE, 1.6)
        for i, value in enumerate(out):
            if value is not None:
                panel.dot(i, value, ORANGE, 2.4)
        panel.text(panel.left + 102, 52, name, size=14, weight="bold")
        panel.text(panel.left + 102, 318, "hour of the day", GRAY, size=12)
        panels.append(panel)
    first = panels[0]
    first.text(52, 20, "One home, one day, in kWh", anchor="start", size=14, weight="bold")
    first.text(628, 20, "readings", BLUE, "end", 14, "bold")
    first.text(720, 20, "released", ORANGE, "end", 14, "bold")
    save("moved_day.svg", 740, 332, "One day with its hours moved", panels)


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def late(mechanism: Any) -> str:
    lost = expected(mechanism).missing
    return f"{mechanism.errors[0]:.1f}" + (f", {100 * lost:.0f} % lost" if lost else "")


def tables() -> None:
    """What the pages say in numbers."""
    kinds = (Backward, Forward, Threshold, DualThreshold)
    for distance in (1, 2, 5, 10, 15, 19):
        losses = [kind(epsilon=5.0, window=20).loss_at(distance) for kind in kinds]
        row(distance, *(f"{100 * one.delta:.0f} %, {one.epsilon:.2f}" for one in losses))
    for window, epsilon in ((10, 1.0), (20, 5.0), (50, 6.0), (200, 8.0), (200, 16.0)):
        made = [
            kind(epsilon=epsilon, window=window) for kind in (Threshold, DualThreshold, Backward)
        ]
        block = BlockShuffle(epsilon=epsilon, block=window)
        noisy = NoisyOrder(epsilon=epsilon, window=window)
        moved_by = [f"{one.errors[0]:.1f}" for one in (block, noisy)]
        row(f"{window}, {epsilon:g}", *map(late, made), *moved_by)
    for window, epsilon in ((4, 4.0), (10, 1.0), (10, 4.0), (10, 8.0), (20, 4.0), (20, 8.0)):
        pair = [NoisyOrder(epsilon=epsilon, window=window, noise=one) for one in KINDS]
        errors = [f"{one.errors[0]:.1f}" for one in pair]
        row(f"{window}, {epsilon:g}", *errors, least_latency(epsilon, window, 1e-6))
    for block in (4, 12, 24, 168):
        made = [BlockShuffle(epsilon=epsilon, block=block) for epsilon in (0.5, 1.0, 2.0, 4.0)]
        row(block, *(f"{100 * one.stays:.0f} %, {one.errors[0]:.1f}" for one in made))


if __name__ == "__main__":
    if "--table" in sys.argv:
        tables()
        sys.exit()
    two(
        "moved_threshold",
        "Where readings go: window 10, epsilon 5",
        [
            (Threshold(epsilon=5.0, window=10), "threshold: every reading chooses a free slot", 5),
            (
                DualThreshold(epsilon=5.0, window=10),
                "dual-threshold: every slot chooses a reading",
                5,
            ),
        ],
        "gray below: empty at the start; gray above: released later than is shown",
    )
    two(
        "moved_blocks",
        "Where readings go: blocks of 12",
        [
            (BlockShuffle(epsilon=1.0, block=12), "epsilon 1", 3),
            (BlockShuffle(epsilon=3.0, block=12), "epsilon 3", 6),
        ],
        "every reading stays in its block",
    )
    two(
        "moved_noisy",
        "Where readings go: window 6",
        [
            (NoisyOrder(epsilon=2.0, window=6), "epsilon 2", 3),
            (NoisyOrder(epsilon=8.0, window=6), "epsilon 8", 3),
        ],
        "gray: read here and released after the last slot shown",
    )
    two(
        "moved_baselines",
        "Where readings go: window 6, epsilon 4",
        [
            (
                Backward(epsilon=4.0, window=6),
                "backward: some come out again (orange), some never",
                3,
            ),
            (Forward(epsilon=4.0, window=6), "forward: some are lost, as many slots stay empty", 3),
        ],
        "gray above: never released; gray below: empty",
    )
    lags()
    told()
    a_day()
