"""Draws the picture and computes the tables of the page on streams over a population.

Run it with ``python docs/pictures/population_streams.py``, and ``--table`` for the tables. The
people are made up and everything comes from seeds, so it comes out the same each time.
"""

from __future__ import annotations

import sys

import numpy as np
from shared import BLUE, GRAY, ORANGE, Panel, save

from tempriv.local.streams.protocol import METHODS, StreamPlan
from tempriv.local.streams.simulate import Trial, simulate_grouped
from tempriv.sampling.keys import Key

PEOPLE, STEPS, WINDOW, RUNS = 20_000, 200, 20, 4
EPSILONS = (1.0, 3.0)
KINDS = ("still", "slow", "jumps")


def rates(kind: str) -> np.ndarray:
    """The chance of a one at each step."""
    steps = np.arange(STEPS)
    if kind == "still":
        return np.full(STEPS, 0.1)
    if kind == "slow":
        return 0.1 + 0.05 * np.sin(2 * np.pi * steps / STEPS)
    return np.where(steps // 47 % 2 == 0, 0.05, 0.15)


def people(kind: str, run: int) -> np.ndarray:
    """Everybody's value at every step: drawn anew at each, the same for all methods."""
    drawn = np.random.default_rng(run).random((STEPS, PEOPLE), dtype=np.float32)
    return (drawn < rates(kind)[:, None]).astype(np.uint8)


def trial(method: str, values: np.ndarray, epsilon: float, run: int, **given: bool) -> Trial:
    plan = StreamPlan(method=method, epsilon=epsilon, window=WINDOW, size=2, people=PEOPLE, **given)
    return simulate_grouped(
        plan, lambda step: values[step], STEPS, Key.from_seed(run), f"{run:032x}"
    )


ROWS = [(method, {}) for method in METHODS]
ROWS += [(method, {"counts_sampling": True}) for method in ("LPD", "LPA")]


def tables() -> None:
    found: dict[tuple[float, int, str], list[Trial]] = {}
    for kind in KINDS:
        for run in range(RUNS):
            values = people(kind, run)
            for epsilon in EPSILONS:
                for row, (method, given) in enumerate(ROWS):
                    one = trial(method, values, epsilon, run, **given)
                    found.setdefault((epsilon, row, kind), []).append(one)
    for epsilon in EPSILONS:
        print(f"\nepsilon = {epsilon:g}\n")
        print(f"| method | {' | '.join(KINDS)} | published | answers |")
        print("|---" + 5 * "|---:" + "|")
        for row, (method, given) in enumerate(ROWS):
            cells, trials = [], []
            for kind in KINDS:
                some = found[epsilon, row, kind]
                errors = np.array([1e6 * one.squared_errors.mean() for one in some])
                spread = errors.std(ddof=1) / RUNS**0.5
                cells.append(f"{errors.mean():,.0f} ± {spread:,.0f}")
                trials += some
            name = method + (", sampling counted" if given else "")
            published = 100 * np.mean([one.published.mean() for one in trials])
            answers = np.mean([one.answers for one in trials])
            print(f"| {name} | {' | '.join(cells)} | {published:.0f} % | {answers:.2f} |")


def a_stream_that_jumps() -> None:
    panels, values = [], people("jumps", 0)
    for number, method in enumerate(("LBU", "LBA", "LSP", "LPU", "LPD", "LPA")):
        column, row = number % 3, number // 3
        panel = Panel(52 + 232 * column, 62 + 212 * row, 204, 150, (0, STEPS), (-0.2, 0.4))
        panel.marks_across([0, 50, 100, 150, 200], lambda mark: f"{mark:g}")
        shown = (lambda mark: f"{100 * mark:.0f} %") if column == 0 else (lambda mark: "")
        panel.marks_up([-0.2, 0, 0.2, 0.4], shown)
        found = trial(method, values, 1.0, 0)
        panel.curve(list(enumerate(np.clip(found.releases[:, 1], -0.2, 0.4))), ORANGE, 1.4)
        panel.curve(list(enumerate(found.truth[:, 1])), BLUE, 2.2)
        panel.text(panel.left + 102, panel.top - 8, method, size=14, weight="bold")
        if row == 1:
            panel.text(panel.left + 102, panel.top + 186, "step", GRAY, size=12)
        panels.append(panel)
    title = "A share that jumps; 20,000 people, epsilon 1 in any 20 steps"
    first = panels[0]
    first.text(first.left, 20, title, anchor="start", size=14, weight="bold")
    first.text(638, 20, "true", BLUE, "end", 14, "bold")
    first.text(720, 20, "released", ORANGE, "end", 14, "bold")
    save("population_streams.svg", 740, 472, title, panels)


if __name__ == "__main__":
    if "--table" in sys.argv:
        tables()
    else:
        a_stream_that_jumps()
