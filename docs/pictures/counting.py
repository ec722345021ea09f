"""Draws the picture and computes the tables of the page on running counts.

Run it with ``python docs/pictures/counting.py``, and ``--table`` for the tables. Nothing here is
drawn at random: errors are those that the mechanism states.
"""

from __future__ import annotations

import math
import sys

from shared import BLUE, GRAY, ORANGE, Panel, save

from tempriv.mechanisms.counting.matrix_factorization import optimal_mean_error
from tempriv.mechanisms.counting.running_count import RunningCount

GREEN = "#009E73"
DAY, QUARTER = 1440, 15

GAUSSIAN = {"rho": 0.5}
LAPLACE = {"epsilon": 1.0}


def counter(**given: object) -> RunningCount:
    """Of a sensitivity of 1."""
    return RunningCount(bounds=(0, 1), **given)


def by_quarter(mechanism: RunningCount) -> list[tuple[float, float]]:
    """The root mean squared error over each quarter of an hour."""
    points = []
    for start in range(0, DAY, QUARTER):
        squares = [mechanism.error_at(start + i) ** 2 for i in range(1, QUARTER + 1)]
        points.append((start + QUARTER / 2, math.sqrt(sum(squares) / QUARTER)))
    return points


def a_day() -> None:
    panels = []
    sides = (
        (
            "rho = 0.5",
            40,
            [0, 10, 20, 30, 40],
            [
                ("increments", ORANGE, 30.5, {**GAUSSIAN, "method": "increments"}),
                ("without a horizon", GRAY, 11.8, GAUSSIAN),
                ("tree", GREEN, 4.2, {**GAUSSIAN, "horizon": DAY, "method": "tree"}),
                ("square root", BLUE, 0.7, {**GAUSSIAN, "horizon": DAY}),
            ],
        ),
        (
            "epsilon = 1",
            60,
            [0, 20, 40, 60],
            [
                ("increments", ORANGE, 40, {**LAPLACE, "method": "increments"}),
                ("without a horizon", GRAY, 28.5, LAPLACE),
                ("tree", GREEN, 10, {**LAPLACE, "horizon": DAY}),
            ],
        ),
    )
    for number, (name, top, marks, methods) in enumerate(sides):
        panel = Panel(52 + 350 * number, 62, 318, 260, (0, DAY), (0, top))
        panel.marks_across([0, 360, 720, 1080, 1440], lambda mark: f"{mark / 60:g}")
        panel.marks_up(marks, lambda mark: f"{mark:g}")
        for method, color, height, given in methods:
            panel.curve(by_quarter(counter(**given)), color, 2.2)
            at = panel.left + panel.width - 4
            panel.text(at, panel.y(height), method, color, "end", 13, "bold")
        panel.text(panel.left + panel.width / 2, 52, name, size=14, weight="bold")
        panel.text(panel.left + panel.width / 2, 358, "hours of counting", GRAY, size=12)
        panels.append(panel)
    title = "Error of a running count, minute by minute over a day"
    panels[0].text(panels[0].left, 20, title, anchor="start", size=14, weight="bold")
    save("running_count.svg", 740, 372, title, panels)


def tables() -> None:
    print("| method | mean squared error over a day | remembers |\n|---|---:|---:|")
    for name, given in (
        ("noise on every sum", None),
        ("increments", {**GAUSSIAN, "method": "increments"}),
        ("tree of twos", {**GAUSSIAN, "method": "tree", "branching": 2}),
        ("tree, best (of sevens)", {**GAUSSIAN, "method": "tree"}),
        ("square root", GAUSSIAN),
        ("increments, epsilon 1", {**LAPLACE, "method": "increments"}),
        ("tree of twos, epsilon 1", {**LAPLACE, "branching": 2}),
        ("tree, best (of twelves), epsilon 1", LAPLACE),
    ):
        if given is None:
            print(f"| {name} | {DAY} | 1 |")
            continue
        mechanism = counter(horizon=DAY, **given)
        print(f"| {name} | {mechanism.errors[0] ** 2:.4g} | {mechanism.memory_size:,} |")
    if "--optimal" in sys.argv:
        print(f"| best possible factorization | {optimal_mean_error(DAY, 1e-3):.4g} |  |")
    print(
        "\n| steps | rho = 0.5 | epsilon = 1 | square root, horizon known |\n|---|---:|---:|---:|"
    )
    for power in (1, 2, 3, 4, 5, 6, 9, 12):
        steps = 10**power
        both = [f"{counter(**given).error_at(steps):.3g}" for given in (GAUSSIAN, LAPLACE)]
        known = f"{counter(**GAUSSIAN, horizon=steps).error_at(steps):.3g}" if power < 7 else ""
        print(f"| {steps:,} | {both[0]} | {both[1]} | {known} |")
    print("\n| window | square root | tree | increments |\n|---|---:|---:|---:|")
    for start, stop, name in (
        (719, 720, "one minute"),
        (660, 720, "an hour"),
        (480, 1080, "ten hours"),
        (0, 1440, "all"),
    ):
        found = [
            counter(horizon=DAY, **GAUSSIAN, method=m).window_error(start, stop)
            for m in ("square-root", "tree", "increments")
        ]
        print(f"| {name} | " + " | ".join(f"{error:.3g}" for error in found) + " |")


if __name__ == "__main__":
    if "--table" in sys.argv:
        tables()
    else:
        a_day()
