"""Draws the pictures of these pages from the bundled sample, as plain SVG.

Run it with ``python docs/pictures/shared.py``. The sample is made up and the noise comes from a
seed, so the pictures come out the same each time; a release for others must never be made that way.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tempriv.audit.attacks.value import Longitudinal, longitudinal
from tempriv.datasets import METERS
from tempriv.local.frequency.longitudinal import instant_for
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.memoized_response import MemoizedResponse
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.releases import postprocess
from tempriv.releases.run import release
from tempriv.sampling.keys import Key

FOLDER = Path(__file__).parents[1] / "_static"
BLUE, ORANGE, INK, GRAY, RULE = "#0072B2", "#D55E00", "#1f2430", "#5b6472", "#d5d9e0"
HOURS = 24
BOUNDS = (0.0, 5.0)


class Panel:
    """A rectangle with axes; ``x`` and ``y`` turn data into places on the page."""

    def __init__(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        across: tuple[float, float],
        up: tuple[float, float],
    ):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.across, self.up = across, up
        self.parts: list[str] = []

    def x(self, value: float) -> float:
        low, high = self.across
        return self.left + (value - low) / (high - low) * self.width

    def y(self, value: float) -> float:
        low, high = self.up
        return self.top + (high - value) / (high - low) * self.height

    def text(
        self,
        x: float,
        y: float,
        words: str,
        color: str = INK,
        anchor: str = "middle",
        size: int = 13,
        weight: str = "normal",
    ) -> None:
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}" '
            f'font-size="{size}" font-weight="{weight}">{words}</text>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, color: str) -> None:
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"/>'
        )

    def marks_across(self, marks: Sequence[float], show: Callable[[float], str]) -> None:
        for mark in marks:
            self.line(self.x(mark), self.top, self.x(mark), self.top + self.height, RULE)
            self.text(self.x(mark), self.top + self.height + 18, show(mark), GRAY, size=12)

    def marks_up(self, marks: Sequence[float], show: Callable[[float], str]) -> None:
        for mark in marks:
            self.line(self.left, self.y(mark), self.left + self.width, self.y(mark), RULE)
            self.text(self.left - 8, self.y(mark) + 4, show(mark), GRAY, "end", 12)

    def curve(self, points: Sequence[tuple[float, float]], color: str, width: float = 2) -> None:
        path = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}" '
            'stroke-linejoin="round"/>'
        )

    def dot(self, a: float, b: float, color: str, size: float = 3) -> None:
        self.parts.append(
            f'<circle cx="{self.x(a):.1f}" cy="{self.y(b):.1f}" r="{size}" fill="{color}"/>'
        )


def save(name: str, width: int, height: int, title: str, panels: Sequence[Panel]) -> None:
    body = "\n".join(part for panel in panels for part in panel.parts)
    (FOLDER / name).write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="system-ui, sans-serif" role="img">\n'
        f"<title>{title}</title>\n"
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def chance(epsilon: float, before: float) -> float:
    """The chance to be right after odds grew by e^epsilon."""
    odds = before / (1 - before) * math.exp(epsilon)
    return odds / (1 + odds)


def bet() -> None:
    panel = Panel(72, 34, 600, 270, (0, 8), (0, 1))
    panel.marks_across(range(9), lambda mark: f"{mark:g}")
    panel.marks_up([0, 0.25, 0.5, 0.75, 1], lambda mark: f"{100 * mark:.0f} %")
    for before, color, at in ((0.5, BLUE, 2.0), (0.01, ORANGE, 4.0)):
        steps = [i / 20 for i in range(161)]
        panel.curve([(e, chance(e, before)) for e in steps], color, 2.5)
        panel.dot(0, before, color, 4)
        label = "even odds before" if before == 0.5 else "1 in 100 before"
        under = panel.y(chance(at, before)) + 28
        panel.text(panel.x(at) + 10, under, label, color, "start", 14, "bold")
    panel.text(
        panel.left,
        20,
        "The most that a bet can gain from a release: chance to be right",
        anchor="start",
        size=14,
        weight="bold",
    )
    panel.text(372, 346, "epsilon", GRAY)
    save("bet.svg", 700, 360, "Chance of a bet to be right, by epsilon", [panel])


def homes() -> dict[str, np.ndarray]:
    """The sample as one array of readings per home."""
    found: dict[str, list[float]] = {}
    with METERS.open(newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["home"], []).append(float(row["energy_kWh"]))
    return {name: np.array(values) for name, values in found.items()}


def released(values: np.ndarray, epsilon: float, name: str) -> np.ndarray:
    mechanism = Laplace(epsilon=epsilon, bounds=BOUNDS)
    return np.asarray(mechanism.start(Key.from_seed(2), name).push(values))


def before_and_after(
    name: str,
    title: str,
    true: np.ndarray,
    after: Callable[[float], np.ndarray],
    up: tuple[float, float],
    marks: Sequence[float],
) -> None:
    """A day in three panels, one for each epsilon."""
    panels = []
    for number, epsilon in enumerate((1, 5, 25)):
        panel = Panel(52 + 232 * number, 62, 204, 240, (0, 23), up)
        panel.marks_across([0, 6, 12, 18, 23], lambda mark: f"{mark:g}")
        panel.marks_up(marks, (lambda mark: f"{mark:g}") if number == 0 else (lambda mark: ""))
        panel.curve(list(enumerate(after(epsilon))), ORANGE, 1.6)
        panel.curve(list(enumerate(true)), BLUE, 2.4)
        panel.text(panel.left + 102, 52, f"epsilon = {epsilon}", size=14, weight="bold")
        panel.text(panel.left + 102, 338, "hour of the day", GRAY, size=12)
        panels.append(panel)
    first = panels[0]
    first.text(first.left, 20, title, anchor="start", size=14, weight="bold")
    first.text(628, 20, "readings", BLUE, "end", 14, "bold")
    first.text(720, 20, "released", ORANGE, "end", 14, "bold")
    save(f"{name}.svg", 740, 352, title, panels)


def one_day() -> None:
    values = homes()["home-4"]
    before_and_after(
        "one_day",
        "One home, one day, in kWh",
        values[:HOURS],
        lambda epsilon: released(values, epsilon, "home-4")[:HOURS],
        (-12, 20),
        [-10, -5, 0, 5, 10, 15, 20],
    )


def average_day() -> None:
    everyone = homes()

    def average(each: dict[str, np.ndarray]) -> np.ndarray:
        return np.mean([v.reshape(-1, HOURS).mean(axis=0) for v in each.values()], axis=0)

    before_and_after(
        "average_day",
        "The average day of six homes over 28 days, in kWh",
        average(everyone),
        lambda epsilon: average({n: released(v, epsilon, n) for n, v in everyone.items()}),
        (-1, 3),
        [-1, 0, 1, 2, 3],
    )


def one_answer() -> None:
    """Fresh reports and memoized ones: how often an observer is right."""
    counts = [1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 365]
    answers, second = ("no", "yes"), instant_for(0.5, 1.5, 2)
    fresh = longitudinal(
        RandomizedResponse(epsilon=0.5, categories=answers), counts, people=4000, seed=1
    )
    memo = longitudinal(
        MemoizedResponse(epsilon_forever=1.5, epsilon_instant=second, categories=answers),
        counts,
        people=4000,
        seed=2,
    )
    panel = Panel(72, 40, 600, 280, (0, math.log10(365)), (0.5, 1))
    panel.marks_across(
        [math.log10(count) for count in (1, 7, 30, 100, 365)], lambda mark: f"{10**mark:.0f}"
    )
    panel.marks_up([0.5, 0.6, 0.7, 0.8, 0.9, 1], lambda mark: f"{100 * mark:.0f} %")

    def draw(found: Longitudinal, color: str) -> None:
        places = [math.log10(count) for count in found.reports]
        panel.curve(list(zip(places, found.cap, strict=True)), color, 1)
        panel.curve(list(zip(places, found.success, strict=True)), color, 2.5)
        for place, measured in zip(places, found.measured, strict=True):
            panel.dot(place, measured.rate, color, 3.5)

    draw(fresh, ORANGE)
    draw(memo, BLUE)
    panel.text(panel.x(1.62), panel.y(0.92), "fresh each time", ORANGE, "start", 14, "bold")
    panel.text(panel.x(1.7), panel.y(0.765), "memoised", BLUE, "start", 14, "bold")
    panel.text(
        panel.left,
        22,
        "An answer that does not change: how often an observer is right",
        anchor="start",
        size=14,
        weight="bold",
    )
    panel.text(
        372,
        362,
        "reports seen (thin lines: the most that the guarantee allows; dots: simulated)",
        GRAY,
    )
    save("one_answer.svg", 700, 376, "Chance to guess an answer, by the reports seen", [panel])


def smoothed_day() -> None:
    """One home for two days: readings, what is released, and what smoothing makes of that."""
    hours, values = 2 * HOURS, homes()["home-4"]
    noisy = release(values, Laplace(epsilon=10, bounds=BOUNDS), key=Key.from_seed(3))
    calm = postprocess.non_negative(postprocess.smooth(noisy, window=5))
    panel = Panel(72, 40, 600, 270, (0, hours - 1), (-1, 4))
    panel.marks_across(range(0, hours, 6), lambda mark: f"{mark % HOURS:g}")
    panel.marks_up(range(-1, 5), lambda mark: f"{mark:g}")
    for series, color, width in (
        (noisy.values, GRAY, 1.4),
        (calm.values, ORANGE, 2.4),
        (values, BLUE, 2.4),
    ):
        panel.curve(list(enumerate(series[:hours])), color, width)
    panel.text(panel.left, 22, "One home, two days, in kWh", anchor="start", size=14, weight="bold")
    for place, words, color in (
        (420, "readings", BLUE),
        (500, "released", GRAY),
        (672, "smoothed, then ≥ 0", ORANGE),
    ):
        panel.text(place, 22, words, color, "end", 14, "bold")
    panel.text(372, 350, "hour of the day", GRAY)
    save("smoothed_day.svg", 700, 366, "Readings, released and smoothed values", [panel])


if __name__ == "__main__":
    bet()
    one_day()
    average_day()
    one_answer()
    smoothed_day()
