"""Draws the picture and computes the tables of the page on following a trend by few points.

Run it with ``python docs/pictures/pattern.py``, and ``--table`` for the tables. Streams are made up
and noise comes from seeds, so everything comes out the same each time; a release for others must
never be made that way.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from shared import BLUE, GRAY, ORANGE, Panel, homes, save

from tempriv.data.series import RELEASED, Block
from tempriv.mechanisms.adaptive.pattern import PatternLDP, PatternSampling
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.w_event.absorption import BudgetAbsorption
from tempriv.mechanisms.w_event.sample import SampleOnce
from tempriv.mechanisms.w_event.uniform import UniformBudget
from tempriv.privacy.units import Contribution, Event, Unit, Window
from tempriv.sampling.keys import Key


class FixedSampling(PatternSampling):
    """Nothing is important: a sample every w steps, and the line."""


KINDS = (UniformBudget, SampleOnce, BudgetAbsorption, PatternSampling, PatternLDP)
TOP = 100.0
STEPS = 12_000
SEEDS = 5


def corners(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Straight lines from corner to corner, some 200 steps each."""
    at = np.cumsum(rng.exponential(200, steps // 50 + 2))
    return np.interp(np.arange(steps), at - at[0], rng.uniform(0, TOP, len(at)))


def wave(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Rises and falls within 240 steps."""
    return TOP / 2 + 0.4 * TOP * np.sin(2 * np.pi * (np.arange(steps) / 240 + rng.random()))


def growth(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Level, a steep rise or fall within some 60 steps, level again; every 500 steps."""
    levels = rng.uniform(0, TOP, steps // 500 + 2)
    place = np.arange(steps) / 500
    step = place.astype(int)
    rise = 1 / (1 + np.exp(-(place - step - 0.5) * 50))
    return levels[step] + (levels[step + 1] - levels[step]) * rise


def restless(rng: np.random.Generator, steps: int) -> np.ndarray:
    """Another number at every step: no trend at all."""
    return rng.uniform(0, TOP, steps)


def six_homes(rng: np.random.Generator, steps: int) -> np.ndarray:
    """The energy of the homes in the sample, one after the other, 5 kWh as the top."""
    return np.concatenate(list(homes().values())) * (TOP / 5)


STREAMS = (corners, wave, growth, six_homes, restless)


def mechanism_of(kind: type, epsilon: float, unit: Unit) -> Any:
    given: dict[str, Any] = {"epsilon": epsilon, "bounds": (0, TOP)}
    if kind is PatternLDP:
        return kind(**given, window=unit.readings)
    if kind is FixedSampling:
        given["gains"] = (0, 0, 0)
    return kind(**given, unit=unit)


def released(mechanism: Any, readings: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What stands at each step, within the bounds, and with lines drawn between fresh values."""
    stream = mechanism.start(Key.from_seed(seed))
    block = stream.push_block(Block.of(readings[:, None], "series", 0))
    stands = np.clip(block.values[:, 0], 0, TOP)
    if block.status is None:
        return stands, stands
    fresh = np.flatnonzero(block.status == RELEASED)
    return stands, np.interp(np.arange(len(stands)), fresh, stands[fresh])


def errors(kind: type, make: Any, epsilon: float, unit: Unit) -> tuple[float, float]:
    """Mean absolute errors of what stands, and of lines in between."""
    found = []
    for seed in range(SEEDS):
        readings = make(np.random.default_rng(seed), STEPS)
        if isinstance(unit, Contribution):
            readings = np.rint(readings)
        mechanism = mechanism_of(kind, epsilon, unit)
        found.append([np.abs(one - readings).mean() for one in released(mechanism, readings, seed)])
    stands, lines = np.mean(found, axis=0)
    return float(stands), float(lines)


def said(pair: tuple[float, float], best: tuple[float, float]) -> str:
    marks = [
        f"**{x:.1f}**" if x == least else f"{x:.1f}" for x, least in zip(pair, best, strict=True)
    ]
    return marks[0] if pair[0] == pair[1] and marks[0] == marks[1] else " / ".join(marks)


def table(settings: list[tuple[str, float, Unit]], kinds: tuple[type, ...]) -> None:
    """The best that guarantees something is in bold, of what stands and of lines each."""
    print("| stream | guarantee | " + " | ".join(kind.__name__ for kind in kinds) + " |")
    print("|---|---|" + "---:|" * len(kinds))
    for make in STREAMS:
        for name, epsilon, unit in settings:
            found = [errors(kind, make, epsilon, unit) for kind in kinds]
            honest = [one for one, kind in zip(found, kinds, strict=True) if kind is not PatternLDP]
            best = min(one[0] for one in honest), min(one[1] for one in honest)
            cells = " | ".join(said(one, best) for one in found)
            print(f"| {make.__name__.replace('_', ' ')} | {name} | {cells} |", flush=True)


def tables() -> None:
    windows: list[tuple[str, float, Unit]] = [
        ("w 10, epsilon 5", 5.0, Window(10)),
        ("w 10, epsilon 20", 20.0, Window(10)),
        ("w 50, epsilon 20", 20.0, Window(50)),
    ]
    counts: list[tuple[str, float, Unit]] = [
        ("counts, w 50, epsilon 1", 1.0, Contribution(Window(50)))
    ]
    table(windows, KINDS)
    print()
    table(
        [("one reading, epsilon 1", 1.0, Event()), ("one reading, epsilon 5", 5.0, Event())],
        (Laplace, PatternSampling),
    )
    print()
    table(counts, KINDS[:4])
    print()
    table(windows + counts, (FixedSampling, PatternSampling))


def pattern() -> None:
    steps, unit, epsilon = 600, Window(10), 8.0
    readings = corners(np.random.default_rng(3), steps)
    panels = []
    for number, kind in enumerate(KINDS[1:]):
        panel = Panel(
            52 + 362 * (number % 2), 62 + 216 * (number // 2), 304, 150, (0, steps), (0, TOP)
        )
        panel.marks_across(range(0, steps + 1, 150), lambda mark: f"{mark:g}")
        panel.marks_up([0, 25, 50, 75, 100], lambda mark: f"{mark:g}")
        mechanism = mechanism_of(kind, epsilon, unit)
        _, lines = released(mechanism, readings, 4)
        panel.curve([(float(t), float(v)) for t, v in enumerate(lines)], ORANGE, 1.4)
        panel.curve([(float(t), float(v)) for t, v in enumerate(readings)], BLUE, 1.8)
        off = np.abs(lines - readings).mean()
        title = f"{kind.__name__}: {off:.1f} off on average"
        panel.text(panel.left, panel.top - 10, title, anchor="start", size=13, weight="bold")
        if kind is PatternLDP:
            panel.text(panel.left + 296, panel.top + 142, "guarantees nothing", GRAY, "end", 12)
        panels.append(panel)
    first = panels[0]
    first.text(first.left, 22, "A stream of straight lines", anchor="start", size=14, weight="bold")
    first.text(560, 22, "read", BLUE, "end", 14, "bold")
    first.text(720, 22, "released, with lines", ORANGE, "end", 14, "bold")
    panels[2].text(378, 478, "step", anchor="middle", size=12)
    save("pattern.svg", 740, 490, "A trend followed by four schemes", panels)


if __name__ == "__main__":
    pattern()
    if "--table" in sys.argv:
        tables()
