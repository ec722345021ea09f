"""Draws the picture and computes the tables of the page on PeGaSus.

Run it with ``python docs/pictures/pegasus.py``, and ``--table`` for the tables. Streams are made up
and noise comes from seeds, so everything comes out the same each time; a release for others must
never be made that way.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from budgets import rarely, restless, wave
from shared import BLUE, ORANGE, Panel, save

from tempriv.mechanisms.adaptive.pegasus import PeGaSus
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, Event, Window
from tempriv.sampling.keys import Key

STEPS = 20_000
SEEDS = 3
LIMIT = (0, 400)


def drawn(mechanism: Any, stream: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(mechanism.start(Key.from_seed(seed)).push(stream))


def error(mechanism: Any, make: Any) -> float:
    """The mean absolute error of a reading."""
    found = []
    for seed in range(SEEDS):
        stream = make(np.random.default_rng(seed), STEPS, 1)[:, 0]
        found.append(np.abs(drawn(mechanism, stream, seed) - stream).mean())
    return float(np.mean(found))


def compared(unit: Any, epsilon: float) -> list[tuple[str, Any]]:
    given: dict[str, Any] = {"epsilon": epsilon, "bounds": LIMIT, "unit": unit}
    change = 1 if isinstance(unit, Contribution) else LIMIT[1] * unit.readings
    times = [(5, "mean"), (5, "median"), (5, "james-stein"), (20, "mean"), (40, "mean")]
    made = [
        (f"{k} × , {kind}", PeGaSus(**given, smoothing=kind, theta=k * change / (0.2 * epsilon)))
        for k, kind in times
    ]
    return [("laplace", Laplace(**given)), *made]


def errors() -> None:
    heads: list[str] = []
    for unit, epsilon in (
        (Contribution(), 1.0),
        (Contribution(), 0.1),
        (Event(), 10.0),
        (Window(8), 10.0),
    ):
        columns = compared(unit, epsilon)
        if not heads:
            heads = [name for name, _ in columns]
            print("| unit, epsilon, stream | " + " | ".join(heads) + " |")
            print("|---|" + "---:|" * len(heads))
        for make in (rarely, wave, restless):
            found = [error(mechanism, make) for _, mechanism in columns]
            said = [f"**{e:.3g}**" if e == min(found) else f"{e:.3g}" for e in found]
            name = type(unit).__name__ if unit != Window(8) else "Window(8)"
            print(f"| {name}, {epsilon:g}, {make.__name__} | " + " | ".join(said) + " |")


def lengths() -> None:
    print("\n| theta, in change / epsilon_g | " + " | ".join(map(str, THETAS)) + " |")
    print("|---|" + "---:|" * len(THETAS))
    made = [PeGaSus(epsilon=1.0, bounds=LIMIT, unit=Contribution(), theta=k / 0.2) for k in THETAS]
    print("| readings | " + " | ".join(f"{one.calm_length:.3g}" for one in made) + " |")


THETAS = (5, 10, 20, 30, 40, 60)


def calm_groups() -> None:
    """Guests of a hotel, every five minutes: calm for hours, but for breakfast and evening."""
    steps, epsilon = 288, 0.1
    levels = ((84, 240), (24, 160), (72, 60), (36, 130), (72, 230))
    people = np.concatenate([np.full(count, float(level)) for count, level in levels])
    given: dict[str, Any] = {"epsilon": epsilon, "bounds": LIMIT, "unit": Contribution()}
    shown = {
        "laplace": Laplace(**given),
        "pegasus as published": PeGaSus(**given),
        "pegasus, theta four times that": PeGaSus(**given, theta=20 / (0.2 * epsilon)),
    }
    panels = []
    for number, (name, mechanism) in enumerate(shown.items()):
        panel = Panel(52, 62 + 176 * number, 668, 116, (0, steps), (-50, 350))
        panel.marks_across(range(0, steps + 1, 48), lambda mark: f"{mark / 12:g}")
        panel.marks_up([0, 100, 200, 300], lambda mark: f"{mark:g}")
        made = drawn(mechanism, people, 3)
        off = np.abs(made - people).mean()
        points = [(float(h), float(np.clip(v, -50, 350))) for h, v in enumerate(made)]
        panel.curve([(float(h), float(v)) for h, v in enumerate(people)], BLUE, 2.2)
        panel.curve(points, ORANGE, 1.4)
        title = f"{name}: {off:.1f} off on average"
        panel.text(panel.left, panel.top - 10, title, anchor="start", size=13, weight="bold")
        panels.append(panel)
    first = panels[0]
    first.text(
        first.left,
        22,
        f"Guests of a hotel, every five minutes, epsilon {epsilon:g}",
        anchor="start",
        size=14,
        weight="bold",
    )
    first.text(628, 22, "counted", BLUE, "end", 14, "bold")
    first.text(720, 22, "released", ORANGE, "end", 14, "bold")
    panels[2].text(386, 570, "hour of the day", anchor="middle", size=12)
    save("calm_groups.svg", 740, 584, "Noisy counts, and the same smoothed over groups", panels)


if __name__ == "__main__":
    calm_groups()
    if "--table" in sys.argv:
        errors()
        lengths()
