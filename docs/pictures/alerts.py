"""Draws the pictures of the pages on sparse-vector, fast and audits, from made-up counts.

Run it with ``python docs/pictures/alerts.py``. Counts and noise come from seeds, so that the
pictures come out the same each time; a release for others must never be made that way.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from shared import BLUE, GRAY, ORANGE, Panel, save

from tempriv.audit import statistical
from tempriv.mechanisms.adaptive.fast import Fast
from tempriv.mechanisms.sparse_vector import SparseVector
from tempriv.privacy.guarantees import Pure
from tempriv.privacy.units import Contribution, WholeSeries
from tempriv.sampling import distributions
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

HOURS = 168


def people() -> np.ndarray:
    """How many people are in a building in each hour of a week."""
    hours = np.arange(HOURS)
    day = np.exp(-(((hours % 24) - 13.5) ** 2) / 18)
    busy = np.array([0.7, 0.75, 1.0, 0.72, 0.95, 0.2, 0.15])[hours // 24]
    return np.random.default_rng(4).poisson(10 + 400 * day * busy).astype(np.float64)


def week(panel: Panel, marks: list[float]) -> None:
    panel.marks_across([24 * day for day in range(7)], lambda mark: "MTWTFSS"[int(mark) // 24])
    panel.marks_up(marks, lambda mark: f"{mark:g}")
    panel.text(372, panel.top + panel.height + 40, "day of the week", GRAY, size=12)


def title(panel: Panel, words: str, *labels: tuple[str, str]) -> None:
    panel.text(panel.left, 20, words, anchor="start", size=14, weight="bold")
    for i, (label, color) in enumerate(reversed(labels)):
        panel.text(692 - 100 * i, 20, label, color, "end", 14, "bold")


def alerts() -> None:
    counted, threshold = people(), 380
    alarm = SparseVector(
        epsilon=1.0,
        bounds=(0, 1000),
        threshold=threshold,
        most=8,
        unit=Contribution(WholeSeries(HOURS)),
    )
    said = np.ma.asarray(alarm.start(Key.from_seed(5)).push(counted))
    panel = Panel(72, 40, 620, 230, (0, HOURS), (0, 500))
    week(panel, [0, 100, 200, 300, 400, 500])
    panel.curve([(0, threshold), (HOURS, threshold)], GRAY, 1)
    panel.curve([(float(h), float(v)) for h, v in enumerate(counted)], BLUE, 1.8)
    for hour in np.flatnonzero(said.filled(0) == 1).tolist():
        panel.dot(hour, counted[hour], ORANGE, 5)
    last = int(np.flatnonzero(~np.ma.getmaskarray(said))[-1])
    if last < HOURS - 1:
        panel.line(panel.x(last), panel.top, panel.x(last), panel.top + panel.height, ORANGE)
        panel.text(panel.x(last) + 6, panel.top + 14, "silent from here", ORANGE, "start", 12)
    title(
        panel,
        "More than 380 people? Eight alerts, epsilon 1",
        ("counted", BLUE),
        ("alerts", ORANGE),
    )
    save("alerts.svg", 720, 320, "Counts of a week and the alerts about them", [panel])


def guests() -> np.ndarray:
    """How many guests a hotel has in each hour of a week: calm, but for two days."""
    hours = np.arange(HOURS)
    arrive, leave = (1 / (1 + np.exp(-(hours - at) / 6)) for at in (56, 128))
    return np.random.default_rng(4).poisson(120 + 280 * (arrive - leave)).astype(np.float64)


def samples() -> None:
    counted = guests()
    panel = Panel(72, 40, 620, 230, (0, HOURS), (-50, 500))
    week(panel, [0, 100, 200, 300, 400, 500])
    for most, color in ((24, GRAY), (72, ORANGE)):
        mechanism = Fast(
            epsilon=1.0,
            bounds=(0, 1000),
            samples=most,
            wander=10,
            unit=Contribution(WholeSeries(HOURS), total=10),
        )
        made = np.asarray(mechanism.start(Key.from_seed(3)).push(counted))
        shown = [(float(h), float(np.clip(v, -50, 500))) for h, v in enumerate(made)]
        panel.curve(shown, color, 1.6)
    panel.curve([(float(h), float(v)) for h, v in enumerate(counted)], BLUE, 1.8)
    title(
        panel,
        "Guests of a hotel, epsilon 1",
        ("counted", BLUE),
        ("24 samples", GRAY),
        ("72 samples", ORANGE),
    )
    save("samples.svg", 720, 320, "Counts of a week and what is made of samples of it", [panel])


def laplace(part: Fraction) -> object:
    """Laplace noise with a part of the scale that epsilon 1 takes."""
    law = distributions.DiscreteLaplace(Fraction(1000) * part)

    def run(example: tuple, runs: int, key: object) -> np.ndarray:
        drawn = distributions.draw(law, [StepRange(key, 0, runs)], "noise")  # type: ignore[arg-type]
        return (1000 * example[0] + drawn).reshape(runs, 1, 1)

    return run


def bounds() -> None:
    sizes = [1000 * 2**i for i in range(13)]
    panel = Panel(72, 40, 620, 230, (3, math.log10(sizes[-1])), (0.6, 1.1))
    panel.marks_across([3, 4, 5, 6], lambda mark: f"{10**mark:,.0f}")
    panel.marks_up([0.6, 0.7, 0.8, 0.9, 1.0, 1.1], lambda mark: f"{mark:g}")
    panel.curve([(3, 1), (math.log10(sizes[-1]), 1)], GRAY, 1.5)
    for part, color in ((Fraction(1), BLUE), (Fraction(95, 100), ORANGE)):
        points = []
        for runs in sizes:
            verdict = statistical.audit(
                laplace(part), Pure(1.0), [((0,), (1,))], runs=runs, key=Key.from_seed(1)
            )
            points.append((math.log10(runs), max(verdict.found, 0.6)))
        panel.curve(points, color, 2)
        for a, b in points:
            panel.dot(a, b, color)
    panel.text(372, panel.top + panel.height + 40, "runs", GRAY, size=12)
    panel.text(panel.x(3.05), panel.y(1) - 6, "claimed", GRAY, "start", 12)
    title(panel, "Epsilon at least, 99.9 % sure", ("the right noise", BLUE), ("5 % less", ORANGE))
    save("bounds.svg", 720, 320, "Lower bounds on epsilon by the number of runs", [panel])


if __name__ == "__main__":
    alerts()
    samples()
    bounds()
