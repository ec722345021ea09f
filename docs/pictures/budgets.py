"""Draws the pictures and computes the table of the page on budgets over a window.

Run it with ``python docs/pictures/budgets.py``, and ``--table`` for the table. Streams are made up
and noise comes from seeds, so everything comes out the same each time; a release for others must
never be made that way.
"""

from __future__ import annotations

import sys

import numpy as np
from shared import BLUE, ORANGE, Panel, save

from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.distribution import BudgetDistribution
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Contribution, Window
from tempriv.sampling.keys import Key

KINDS = (UniformBudget, SampleOnce, BudgetDistribution, BudgetAbsorption)
STEPS = 20_000
SEEDS = 5


def rarely(rng: np.random.Generator, steps: int, cells: int) -> np.ndarray:
    """Stays the same, then jumps, on average every 200 steps."""
    levels = rng.integers(0, 400, (steps, cells))
    stays = rng.random(steps) >= 1 / 200
    stays[0] = False
    return levels[np.maximum.accumulate(np.where(stays, 0, np.arange(steps)))].astype(float)


def wave(rng: np.random.Generator, steps: int, cells: int) -> np.ndarray:
    """Rises and falls within 120 steps, every cell at another time."""
    phase = np.arange(steps)[:, None] / 120 + np.arange(cells) / cells
    return np.rint(200 + 150 * np.sin(2 * np.pi * phase) + rng.normal(0, 5, (steps, cells)))


def restless(rng: np.random.Generator, steps: int, cells: int) -> np.ndarray:
    """Another number at every step."""
    return rng.integers(0, 400, (steps, cells)).astype(float)


def released(kind: type, counts: np.ndarray, window: int, epsilon: float, seed: int) -> np.ndarray:
    bounds = ((0, 400),) * counts.shape[1]
    mechanism = kind(epsilon=epsilon, bounds=bounds, unit=Contribution(Window(window)))
    return np.asarray(mechanism.start(Key.from_seed(seed)).push(counts))


def error(kind: type, make: object, cells: int, window: int, epsilon: float) -> float:
    """The mean absolute error of a cell."""
    found = []
    for seed in range(SEEDS):
        counts = make(np.random.default_rng(seed), STEPS, cells)  # type: ignore[operator]
        made = released(kind, counts, window, epsilon, seed)
        found.append(np.abs(np.clip(made, 0, 400) - counts).mean())
    return float(np.mean(found))


def table() -> None:
    print("| stream, w | " + " | ".join(kind.__name__ for kind in KINDS) + " |")
    print("|---|" + "---:|" * len(KINDS))
    for make in (rarely, wave, restless):
        for cells in (1, 20):
            for window in (10, 100):
                errors = [error(kind, make, cells, window, 1.0) for kind in KINDS]
                best = min(errors)
                said = [f"**{e:.1f}**" if e == best else f"{e:.1f}" for e in errors]
                name = f"{make.__name__}, {cells} cell{'s' * (cells > 1)}, {window}"
                print(f"| {name} | " + " | ".join(said) + " |")


def four_schemes() -> None:
    steps, window, epsilon = 240, 24, 1.0
    hours = np.arange(steps)
    inside = np.clip(np.sin((hours % 24 - 7) / 11 * np.pi), 0, 1) * (hours % 24 > 7)
    people = np.rint(260 * inside * (1 - 0.8 * (hours // 24 % 7 > 4)))[:, None]
    panels = []
    for number, kind in enumerate(KINDS):
        panel = Panel(
            52 + 362 * (number % 2), 62 + 216 * (number // 2), 304, 150, (0, steps), (-100, 400)
        )
        panel.marks_across(range(0, steps + 1, 48), lambda mark: f"{mark:g}")
        panel.marks_up([-100, 0, 100, 200, 300, 400], lambda mark: f"{mark:g}")
        made = released(kind, people, window, epsilon, 2)[:, 0]
        shown = [(float(h), float(np.clip(v, -100, 400))) for h, v in enumerate(made)]
        panel.curve(shown, ORANGE, 1.4)
        panel.curve([(float(h), float(v)) for h, v in enumerate(people[:, 0])], BLUE, 1.8)
        off = np.abs(made - people[:, 0]).mean()
        title = f"{kind.__name__}: {off:.0f} off on average"
        panel.text(panel.left, panel.top - 10, title, anchor="start", size=13, weight="bold")
        panels.append(panel)
    first = panels[0]
    first.text(
        first.left, 22, "People in a building, hour by hour", anchor="start", size=14, weight="bold"
    )
    first.text(628, 22, "counted", BLUE, "end", 14, "bold")
    first.text(720, 22, "released", ORANGE, "end", 14, "bold")
    panels[2].text(378, 478, "hour", anchor="middle", size=12)
    save("four_schemes.svg", 740, 490, "Four ways to spend a budget over a window", panels)


if __name__ == "__main__":
    four_schemes()
    if "--table" in sys.argv:
        table()
