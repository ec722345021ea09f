"""Draws the picture of the page on Fourier perturbation, from made-up counts.

Run it with ``python docs/pictures/waves.py``. Counts and noise come from seeds, so that the picture
comes out the same each time; a release for others must never be made that way.
"""

from __future__ import annotations

import numpy as np
from shared import BLUE, GRAY, ORANGE, Panel, save

from tempriv.mechanisms.fourier import FourierPerturbation
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.units import Contribution, WholeSeries
from tempriv.sampling.keys import Key

HOURS = 168
UNIT = Contribution(WholeSeries(HOURS))
BOUNDS = (0, 5000)
KEPT = 34


def people() -> np.ndarray:
    """How many people are in a building in each hour of a week."""
    hours = np.arange(HOURS)
    day = np.exp(-(((hours % 24) - 13.5) ** 2) / 18)
    weekend = np.where(hours // 24 >= 5, 0.25, 1.0)
    return np.random.default_rng(4).poisson(40 + 1500 * day * weekend).astype(np.float64)


def waves(count: int) -> FourierPerturbation:
    return FourierPerturbation(epsilon=1.0, bounds=BOUNDS, coefficients=count, unit=UNIT)


def released(mechanism: object, counts: np.ndarray, seed: int) -> np.ndarray:
    stream = mechanism.start(Key.from_seed(seed), "people")
    parts = [np.asarray(stream.push(counts)).reshape(-1), stream.finish().reshape(-1)]
    return np.concatenate(parts)


def dropped(counts: np.ndarray, kept: int) -> float:
    """The root mean squared error of what the waves that are left out hold."""
    near = FourierPerturbation(epsilon=1e9, bounds=BOUNDS, coefficients=kept, unit=UNIT)
    return float(np.sqrt(np.mean((released(near, counts, 1) - counts) ** 2)))


def a_week() -> Panel:
    counts = people()
    panel = Panel(52, 62, 360, 240, (0, HOURS), (-500, 2000))
    panel.marks_across(range(0, HOURS + 1, 24), lambda mark: "MTWTFSS "[int(mark // 24)])
    panel.marks_up([-500, 0, 500, 1000, 1500, 2000], lambda mark: f"{mark:,g}")
    plain = Laplace(epsilon=1.0, bounds=BOUNDS, unit=UNIT)
    panel.curve(list(enumerate(released(plain, counts, 2))), GRAY, 1)
    panel.curve(list(enumerate(released(waves(KEPT), counts, 3))), ORANGE, 2)
    panel.curve(list(enumerate(counts)), BLUE, 1.6)
    panel.text(
        52,
        20,
        "People in a building, epsilon 1 for a whole week",
        anchor="start",
        size=14,
        weight="bold",
    )
    for place, words, color in (
        (52, "counted", BLUE),
        (120, "laplace", GRAY),
        (186, f"{KEPT} waves", ORANGE),
    ):
        panel.text(place, 44, words, color, "start", 13, "bold")
    panel.text(232, 346, "day of the week", GRAY)
    return panel


def errors() -> Panel:
    counts = people()
    kept = list(range(2, HOURS + 1, 4))
    noise = [waves(count).errors[0] for count in kept]
    held = [dropped(counts, count) for count in kept]
    both = [float(np.hypot(*pair)) for pair in zip(noise, held, strict=True)]
    panel = Panel(468, 62, 220, 240, (0, HOURS), (0, 500))
    panel.marks_across([0, 42, 84, 126, 168], lambda mark: f"{mark:g}")
    panel.marks_up([0, 100, 200, 300, 400, 500], lambda mark: f"{mark:g}")
    for series, color, width in ((noise, GRAY, 1.6), (held, BLUE, 1.6), (both, ORANGE, 2.4)):
        panel.curve(list(zip(kept, series, strict=True)), color, width)
    for place, words, color in (
        (468, "noise", GRAY),
        (516, "dropped", BLUE),
        (584, "together", ORANGE),
    ):
        panel.text(place, 44, words, color, "start", 13, "bold")
    panel.text(578, 346, "number of waves kept", GRAY)
    panel.text(468, 20, "Error of a count", anchor="start", size=14, weight="bold")
    return panel


if __name__ == "__main__":
    save(
        "waves.svg",
        720,
        360,
        "A week of counts by its waves, and their errors",
        [a_week(), errors()],
    )
