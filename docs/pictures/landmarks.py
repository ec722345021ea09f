"""Draws the pictures and computes the tables of the pages on landmarks.

Run it with ``python docs/pictures/landmarks.py``, and ``--table`` for the tables. The sample is
made up and noise comes from seeds, so everything comes out the same each time; a release for others
must never be made that way.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
from shared import BLUE, GRAY, INK, ORANGE, Panel, homes, save

from tempriv.audit.attacks.landmarks import landmarks_shown
from tempriv.data.series import Block
from tempriv.mechanisms.landmarks.adaptive import AdaptiveLandmarks
from tempriv.mechanisms.landmarks.count_bound import CountBoundLandmarks
from tempriv.mechanisms.landmarks.skip import SkipLandmarks
from tempriv.mechanisms.landmarks.split import SplitLandmarks
from tempriv.mechanisms.landmarks.uniform import UniformLandmarks
from tempriv.mechanisms.perturb import perturb_block
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.sampling.keys import Key
from tempriv.sampling.keystream import StepRange

GREEN, PURPLE = "#009E73", "#CC79A7"
OVER = Laplace(epsilon=1.0, bounds=(0, 5))
RUNS = 40
WEEK = 168
SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
IN_TABLE = (0.05, 0.2, 0.5, 1.0)
BOUND = 200
SEED = 41  # of a run in which some landmarks are passed over


def evenings(hours: int) -> np.ndarray:
    """18 to 22 o'clock on Fridays and Saturdays; the sample begins on a Monday."""
    hour = np.arange(hours)
    return ((hour // 24 % 7 >= 4) & (hour // 24 % 7 <= 5) & (hour % 24 >= 18)) & (hour % 24 < 22)


def passed(scheme: Any, rows: np.ndarray, runs: int, seed: int = 3) -> Block:
    """The same series so many times, each with noise of its own."""
    key, ids = Key.from_seed(seed), tuple(map(str, range(runs)))
    many = Block(
        values=np.tile(rows, (runs, 1)).astype(float),
        missing=np.zeros((runs * len(rows), rows.shape[1]), dtype=np.bool_),
        ids=ids,
        counts=np.full(runs, len(rows), dtype=np.int64),
        starts=np.zeros(runs, dtype=np.int64),
    )
    return perturb_block(
        scheme, many, [StepRange(key.series("page", i), 0, len(rows)) for i in ids]
    )


def schemes(bound: int) -> list[Any]:
    return [
        UniformLandmarks(over=OVER),
        SkipLandmarks(over=OVER),
        AdaptiveLandmarks(over=OVER),
        SplitLandmarks(over=OVER),
        CountBoundLandmarks(over=OVER, count=bound, chosen_from_values=True),
    ]


def error(scheme: Any, share: float) -> float:
    """The mean absolute error on a home, as a multiple of that of a single protected reading.

    Landmarks are moments drawn at random. Where noise does not depend on readings, it is computed.
    """
    readings = homes()["home-1"]
    length, count = len(readings), round(share * len(readings))
    if isinstance(scheme, UniformLandmarks):
        return float(count + (count < length))
    if isinstance(scheme, SplitLandmarks):
        return (count + math.sqrt(length - count)) ** 2 / length if count < length else length
    if isinstance(scheme, CountBoundLandmarks):
        return float((scheme.count or 0) + 1)
    marks = np.random.default_rng(1).permutation(length) < count
    rows = np.column_stack([readings, marks])
    made = passed(scheme, rows, RUNS).values.reshape(RUNS, length)
    return float(np.abs(made - readings).mean() * OVER.epsilon / 5)


def error_table() -> list[str]:
    """Errors by share of landmarks, as multiples."""
    lines = ["| scheme | " + " | ".join(f"{100 * share:.0f} %" for share in IN_TABLE) + " |"]
    lines.append("|---|" + "---:|" * len(IN_TABLE))
    for scheme in schemes(BOUND):
        name = type(scheme).__name__
        if isinstance(scheme, CountBoundLandmarks):
            name += f", K = {BOUND}"
            enough = [share * len(homes()["home-1"]) <= BOUND for share in IN_TABLE]
        else:
            enough = [True] * len(IN_TABLE)
        cells = [
            f"{error(scheme, share):.3g}" if fits else "–"
            for share, fits in zip(IN_TABLE, enough, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def shown_table() -> list[str]:
    """How many landmarks observers find of a home's evenings, and how often they are right."""
    readings = homes()["home-1"]
    rows = np.column_stack([readings, evenings(len(readings))])
    lines = [
        "| scheme | repeats | size of noise | the same by hour of the week | falling noise | "
        "budgets, if they were published |",
        "|---|" + "---:|" * 5,
    ]
    for scheme in schemes(BOUND):
        once = landmarks_shown(scheme, rows, runs=RUNS, seed=5)
        habit = landmarks_shown(scheme, rows, runs=RUNS, seed=5, period=WEEK)
        guesses = [
            once["repeats"],
            once["size of noise"],
            habit["size of noise"],
            once["falling noise"],
            once["budgets"],
        ]
        cells = [
            f"{100 * one.recall:.0f} / {100 * one.precision:.0f}" if one.named else "–"
            for one in guesses
        ]
        lines.append(f"| {type(scheme).__name__} | {' | '.join(cells)} |")
    return lines


def landmark_budgets() -> None:
    """What every reading gets of epsilon, in a row for each scheme."""
    steps, bound = 48, 12
    marks = np.isin(np.arange(steps), [9, 10, 11, 12, 26, 27, 28, 40])
    readings = homes()["home-1"][18 : 18 + steps]
    rows, panels = np.column_stack([readings, marks]), []
    for number, scheme in enumerate(schemes(bound)):
        spent = passed(scheme, rows, 1, SEED).spent
        assert spent is not None
        most = max(0.2, float(spent.max()))
        most = next(top for top in (0.2, 0.5, 1.0) if most <= top)
        panel = Panel(170, 44 + 74 * number, 540, 48, (-0.7, steps - 0.3), (0, most))
        for step in np.flatnonzero(marks):
            left, right = panel.x(step - 0.5), panel.x(step + 0.5)
            panel.parts.append(
                f'<rect x="{left:.1f}" y="{panel.top}" width="{right - left:.1f}" '
                f'height="{panel.height}" fill="#fbe6d8"/>'
            )
        panel.marks_up([0, most], lambda mark: f"{mark:g}")
        for step, part in enumerate(spent.tolist()):
            if part > 0:
                top, left = panel.y(part), panel.x(step - 0.35)
                panel.parts.append(
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{0.7 * panel.width / steps:.1f}" '
                    f'height="{panel.top + panel.height - top:.1f}" '
                    f'fill="{ORANGE if marks[step] else BLUE}"/>'
                )
        name = type(scheme).__name__.removesuffix("Landmarks")
        panel.text(16, panel.top + 22, name, anchor="start", size=14, weight="bold")
        if isinstance(scheme, CountBoundLandmarks):
            panel.text(16, panel.top + 40, f"K = {bound}", GRAY, "start", 12)
        panels.append(panel)
    first = panels[0]
    first.text(16, 22, "What each reading gets of epsilon", anchor="start", size=14, weight="bold")
    first.text(640, 22, "landmarks", ORANGE, "end", 14, "bold")
    first.text(710, 22, "others", BLUE, "end", 14, "bold")
    panels[-1].text(440, 420, "reading number", GRAY, size=12)
    save("landmark_budgets.svg", 730, 430, "Budgets of five landmark schemes", panels)


def landmark_errors() -> None:
    """The mean error by the share of landmarks; its axis is that of a logarithm."""
    panel = Panel(64, 50, 500, 300, (0, 1), (-1, 3))
    panel.marks_across([0, 0.2, 0.4, 0.6, 0.8, 1], lambda mark: f"{100 * mark:.0f} %")
    panel.marks_up([-1, 0, 1, 2, 3], lambda mark: f"{10**mark:g}")
    colors = [BLUE, INK, GREEN, ORANGE, PURPLE]
    for scheme, color in zip(schemes(BOUND), colors, strict=True):
        shares = SHARES
        name = type(scheme).__name__.removesuffix("Landmarks")
        if isinstance(scheme, CountBoundLandmarks):
            shares, name = (0.0, BOUND / 672), f"CountBound, K = {BOUND}"
        points = [(share, math.log10(error(scheme, share))) for share in shares]
        panel.curve(points, color, 2.5)
        last = {"Uniform": 2.93, "Split": 2.72, "Adaptive": 2.51}.get(name, points[-1][1])
        if isinstance(scheme, CountBoundLandmarks):
            panel.text(panel.x(0.005), panel.y(2.3) - 9, name, color, "start", 13, "bold")
        else:
            panel.text(panel.x(1) + 8, panel.y(last) + 4, name, color, "start", 13, "bold")
    length = len(homes()["home-1"])
    for words, times in (("every reading together", length), ("any single reading", 1)):
        level = math.log10(times)
        panel.parts.append(
            f'<line x1="{panel.left}" y1="{panel.y(level):.1f}" x2="{panel.left + panel.width}" '
            f'y2="{panel.y(level):.1f}" stroke="{GRAY}" stroke-dasharray="5 4"/>'
        )
        below = panel.y(level) + (-7 if times > 1 else 17)
        panel.text(panel.x(0.45), below, f"protecting {words}", GRAY, size=12)
    panel.text(
        16,
        24,
        "Mean error, as a multiple of protecting single readings",
        anchor="start",
        size=14,
        weight="bold",
    )
    panel.text(314, 392, "share of the readings that are landmarks", GRAY, size=12)
    save("landmark_errors.svg", 680, 406, "Errors of five landmark schemes", [panel])


if __name__ == "__main__":
    landmark_budgets()
    landmark_errors()
    if "--table" in sys.argv:
        print("\n".join([*error_table(), "", *shown_table()]))
