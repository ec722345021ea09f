"""Draws the pictures of the pages on the pace of readings, from a made-up runner.

Run it with ``python docs/pictures/period.py``; ``--runs FILE`` writes the runner's table, and
``--table`` prints the numbers of the pages. Runs and noise come from seeds, so everything comes out
the same each time; a release for others must never be made that way.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from shared import BLUE, GRAY, ORANGE, Panel, homes, save

from tempriv.audit.attacks.distinguish import two_candidates
from tempriv.mechanisms.retime.interpolation import basis, points
from tempriv.mechanisms.retime.noisy_curve import NoisyCurve
from tempriv.mechanisms.retime.noisy_times import NoisyTimes
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.sampling.keys import Key

MARKS = 42
WINDOW, PERIOD, TAU = 8, 30.0, 5.0
N = WINDOW + 2
SPAN, BOUNDS = 22, (0.0, 5.0)
INTERPOLATIONS = ("printed", "hermitian", "cosine")


def runs() -> dict[str, np.ndarray]:
    """Three runs of one runner: pulse at every 100 m, and seconds since the mark before."""
    found = {}
    for number in range(3):
        chance = np.random.default_rng(number)
        mark = np.arange(MARKS)
        climb = np.exp(-(((mark - 22 - 2 * number) / 5.0) ** 2))
        pulse = 150 - 38 * np.exp(-mark / 6) + 18 * climb + 0.16 * number * mark
        seconds = 28 + 1.5 * number + 7 * climb + chance.normal(0, 0.8, MARKS)
        pulse = np.round(pulse + chance.normal(0, 1, MARKS))
        found[f"run-{number + 1}"] = np.stack([pulse, np.round(seconds, 1)], axis=1)
    return found


def clock(run: np.ndarray) -> np.ndarray:
    """Seconds since the first mark."""
    return np.concatenate([[0.0], np.cumsum(run[1:, 1])])


def write_runs(path: Path) -> None:
    lines = ["run,mark,pulse,seconds,clock"]
    for name, run in runs().items():
        for mark, ((pulse, seconds), at) in enumerate(zip(run, clock(run), strict=True)):
            lines.append(f"{name},{mark},{pulse:.0f},{seconds:.1f},{at:.1f}")
    path.write_text("\n".join(lines) + "\n")


def paced(epsilon: float = 1.0, tau: float = TAU, **others: Any) -> SamplingPeriod:
    return SamplingPeriod(epsilon=epsilon, window=WINDOW, tau=tau, period=PERIOD, **others)


def released(mechanism: Any, rows: np.ndarray, seed: int) -> np.ndarray:
    """What comes out of a whole series, NaN where a row is empty."""
    stream = mechanism.start(Key.from_seed(seed), "run")
    parts = [np.ma.asarray(part, dtype=float) for part in (stream.push(rows), stream.finish())]
    width = mechanism.domain.columns
    return np.concatenate([part.filled(np.nan).reshape(-1, width) for part in parts])


def windows() -> list[np.ndarray]:
    """The pulse in each window of all runs, n readings each."""
    starts = range(0, MARKS - N + 1, WINDOW)
    return [run[start : start + N, 0] for run in runs().values() for start in starts]


# pictures


def one_window(panel: Panel, told: float, words: str) -> None:
    """Readings of a window, the curve through them, and what is read off it at another pace."""
    pulse = runs()["run-1"][16 : 16 + N, 0]
    found = basis("cosine", N)
    panel.marks_across(range(N), lambda mark: f"{mark:g}")
    panel.marks_up([145, 150, 155, 160, 165, 170], lambda mark: f"{mark:g}")
    fine = np.linspace(0, N - 1, 200)
    panel.curve(list(zip(fine, points(found, pulse, fine), strict=True)), BLUE, 1.4)
    places = np.arange(1, WINDOW + 1)
    read = points(found, pulse, places * told / PERIOD)
    for place, value in zip(places, read, strict=True):
        at = place * told / PERIOD
        panel.line(panel.x(at), panel.y(value), panel.x(place), panel.y(value), ORANGE)
        panel.dot(place, value, ORANGE, 4)
    for place, value in enumerate(pulse):
        panel.dot(place, value, BLUE, 3.4)
    panel.text(panel.left, 54, words, anchor="start", size=13, weight="bold")
    panel.text(
        panel.left + panel.width / 2, 326, "number of the reading in its window", GRAY, size=12
    )


def sampling_period() -> None:
    panels = []
    for number, (told, words) in enumerate(
        (
            (24.0, "noisy period 24 s: read too early"),
            (33.0, "noisy period 33 s: read too late"),
        )
    ):
        panel = Panel(52 + 352 * number, 66, 316, 220, (-0.3, N - 0.7), (144, 170))
        one_window(panel, told, words)
        panels.append(panel)
    first = panels[0]
    first.text(
        52,
        22,
        "Pulse in one window of a run, public period 30 s",
        anchor="start",
        size=14,
        weight="bold",
    )
    first.text(530, 22, "readings", BLUE, "end", 14, "bold")
    first.text(720, 22, "released in their place", ORANGE, "end", 14, "bold")
    save("sampling_period.svg", 740, 342, "A window read again at two noisy periods", panels)


def told_pace() -> None:
    """What two mechanisms tell of one run: its steps, and its times."""
    run = runs()["run-2"]
    left = Panel(52, 66, 300, 230, (0, MARKS - 1), (15, 45))
    left.marks_across([0, 10, 20, 30, 41], lambda mark: f"{mark:g}")
    left.marks_up([15, 20, 25, 30, 35, 40, 45], lambda mark: f"{mark:g}")
    left.curve(list(enumerate(run[:, 1])), BLUE, 2)
    told = released(paced(clamp=(15, 45)), run, 4)[:, 1]
    for start in range(1, MARKS - 1, WINDOW):
        left.curve([(start, told[start]), (start + WINDOW - 1, told[start])], ORANGE, 3)
    left.text(
        52, 54, "sampling-period: seconds from mark to mark", anchor="start", size=13, weight="bold"
    )
    right = Panel(420, 66, 300, 230, (0, 10), (0, 300))
    right.marks_across(range(0, 11, 2), lambda mark: f"{mark:g}")
    right.marks_up([0, 60, 120, 180, 240, 300], lambda mark: f"{mark:g}")
    true = clock(run)
    noisy = released(NoisyTimes(epsilon=1.0, tau=TAU), true, 4)[:, 0]
    right.curve(list(enumerate(true[:11])), BLUE, 2)
    for mark in range(11):
        right.dot(mark, max(noisy[mark], 0), ORANGE, 4)
    right.text(
        420, 54, "noisy-times: seconds since the start", anchor="start", size=13, weight="bold"
    )
    for panel in (left, right):
        panel.text(panel.left + 150, 336, "mark, every 100 m", GRAY, size=12)
    left.text(52, 22, "One run, epsilon 1 within 5 seconds", anchor="start", size=14, weight="bold")
    left.text(628, 22, "in truth", BLUE, "end", 14, "bold")
    left.text(720, 22, "released", ORANGE, "end", 14, "bold")
    save("told_pace.svg", 740, 350, "What is released of the pace of a run", [left, right])


def kinds() -> dict[str, np.ndarray]:
    """A smooth series, that of the six homes one after the other, and a rough one."""
    hours = np.arange(20_002)
    return {
        "smooth": 2.5 + 2 * np.sin(2 * math.pi * hours / 48),
        "homes": np.concatenate(list(homes().values())),
        "rough": np.random.default_rng(1).uniform(*BOUNDS, len(hours)),
    }


def off(mechanism: Any, values: np.ndarray) -> float:
    """The mean absolute error of what is released."""
    return float(np.nanmean(np.abs(released(mechanism, values, 1)[:, 0] - values)))


def curve_of(epsilon: float, waves: int | None) -> NoisyCurve:
    return NoisyCurve(epsilon=epsilon, bounds=BOUNDS, window=SPAN, waves=waves)


def noisy_curve() -> None:
    hours = 4 * SPAN + 2
    series = kinds()
    values = series["smooth"][:hours]
    left = Panel(52, 66, 380, 230, (0, hours - 1), (-2, 7))
    left.marks_across(range(1, hours, SPAN), lambda mark: f"{mark:g}")
    left.marks_up(range(-2, 8), lambda mark: f"{mark:g}")
    noisy = released(Laplace(epsilon=5.0, bounds=BOUNDS), values, 2)[:, 0]
    left.curve(list(enumerate(np.clip(noisy, -2, 7))), GRAY, 1)
    left.curve(list(enumerate(values)), BLUE, 2)
    calm = released(curve_of(5.0, 4), values, 2)[:, 0]
    left.curve([(i, v) for i, v in enumerate(calm) if not math.isnan(v)], ORANGE, 2)
    left.text(
        52,
        22,
        "Epsilon 5 for any single reading, bounds 0 and 5",
        anchor="start",
        size=14,
        weight="bold",
    )
    for place, words, color in (
        (52, "readings", BLUE),
        (128, "laplace", GRAY),
        (196, "noisy-curve, 4 waves", ORANGE),
    ):
        left.text(place, 50, words, color, "start", 13, "bold")
    left.text(242, 336, "number of the reading (a line where a window begins)", GRAY, size=12)
    right = Panel(492, 66, 220, 230, (1, SPAN + 2), (0, 1.4))
    right.marks_across([1, 4, 8, 12, 16, 20, 24], lambda mark: f"{mark:g}")
    right.marks_up([0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4], lambda mark: f"{mark:g}")
    plain = Laplace(epsilon=5.0, bounds=BOUNDS).errors[0]
    right.curve([(1, plain), (SPAN + 2, plain)], GRAY, 1.4)
    kept = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 22, 24)
    for name, color, where, height in (("smooth", BLUE, 5.5, 0.36), ("rough", ORANGE, 8, 1.24)):
        errors = [off(curve_of(5.0, waves), series[name]) for waves in kept]
        right.curve(list(zip(kept, errors, strict=True)), color, 2.4)
        right.text(right.x(where), right.y(height), name, color, "start", 13, "bold")
    right.text(right.x(1.4), right.y(1.03), "laplace", GRAY, "start", 13, "bold")
    right.text(492, 50, "mean absolute error", anchor="start", size=13, weight="bold")
    right.text(602, 336, "waves kept, of 24", GRAY, size=12)
    save("noisy_curve.svg", 740, 350, "A smooth curve through noisy values", [left, right])


def noisy_times() -> None:
    """Where the times of some readings go, hidden one by one and four at a time."""
    true = clock(runs()["run-2"])
    last = float(true[12])
    panels = []
    for number, (window, words) in enumerate(
        (
            (1, "window 1: the time of any single reading, epsilon 1 within 5 s"),
            (4, "window 4: the times of any four in a row, together"),
        )
    ):
        panel = Panel(76, 66 + 156 * number, 632, 92, (-10, last), (0, 1))
        panel.text(76, panel.top - 18, words, anchor="start", size=13, weight="bold")
        panel.text(66, panel.y(1) + 4, "read", GRAY, "end", 12)
        panel.text(66, panel.y(0) + 4, "released", GRAY, "end", 12)
        told = released(NoisyTimes(epsilon=1.0, tau=TAU, window=window), true, 3)[:, 0]
        for at, noisy in zip(true[:13], told[:13], strict=True):
            place = min(max(noisy, -10), last)
            panel.line(panel.x(at), panel.y(1), panel.x(place), panel.y(0), BLUE)
            panel.dot(at, 1, BLUE, 3.5)
            if place == noisy:
                panel.dot(place, 0, BLUE, 3.5)
        panels.append(panel)
    panels[0].text(
        76, 20, "Times of the first marks of a run", anchor="start", size=14, weight="bold"
    )
    panels[1].text(
        392,
        344,
        f"seconds since the start, 0 to {last:.0f}; what goes beyond is not shown",
        GRAY,
        size=12,
    )
    save("noisy_times.svg", 740, 352, "Where the times of readings go", panels)


# tables


def row(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |")


def tells() -> None:
    """How often who knows two inputs names the right one; what changed is in the first cell."""
    window = runs()["run-1"][:N]
    curve = basis("cosine", N)

    def changed(column: int, rows: slice, by: float) -> np.ndarray:
        other = window.copy()
        other[rows, column] += by
        return other

    def taken_later(rows: slice) -> np.ndarray:
        """As if readings had been taken a tenth of a period later: values from the curve there."""
        other = window.copy()
        other[rows, 0] = points(curve, window[:, 0], np.arange(N) + 0.1)[rows]
        return other

    middle = slice(1, N - 1)
    nudged = changed(1, slice(3, 4), 3.0)
    nudged[4, 1] -= 3.0
    for words, other in (
        ("every step 5 s longer", changed(1, middle, TAU)),
        ("one reading 3 s later, its value the same", nudged),
        ("one value changed by 0.01", changed(0, slice(4, 5), 0.01)),
        ("one reading taken 3 s later", taken_later(slice(4, 5))),
        ("all readings taken 3 s later", taken_later(middle)),
    ):
        found = two_candidates(paced(), window, other, runs=20_000, key=Key.from_seed(1))
        cap = "none" if found.cap is None else f"{100 * found.cap:.1f} %"
        row(words, f"{100 * found.rate:.1f} %", cap)
    published = paced(1.0, PERIOD, interpolation="printed", clamp=None, pace="public")
    for words, other in (
        ("as published: one value changed by 0.01", changed(0, slice(4, 5), 0.01)),
        ("as published: one reading taken 3 s later", taken_later(slice(4, 5))),
        ("as published: all readings taken 3 s later", taken_later(middle)),
    ):
        pair = window[:, 0], other[:, 0]
        found = two_candidates(published, *pair, runs=6000, key=Key.from_seed(1))
        row(words, f"{100 * found.rate:.2f} %", "none")


def errors() -> None:
    """Mean squared errors of the pulse, beside what the mean of each window has."""
    plain = float(np.mean([one[1:-1].var() for one in windows()]))
    for tau in (TAU, PERIOD):
        for epsilon in (1.0, 3.0):
            cells = []
            for clamp in (None, "safe"):
                for kind in INTERPOLATIONS:
                    made = paced(epsilon, tau, interpolation=kind, clamp=clamp)
                    found = np.mean([made.expected_mse(one) for one in windows()])
                    cells.append(f"{found:.1f}")
            row(f"{tau:g}, {epsilon:g}", *cells, f"{plain:.1f}")


def theorem_5() -> None:
    """The printed formula, the bound, the exact error, and a simulation."""
    pulse = windows()[0]
    i, k = np.arange(1, WINDOW + 1)[:, None], np.arange(1, N)[None, :]
    for tau in (TAU, PERIOD):
        made = paced(1.0, tau, interpolation="printed", clamp=None, pace="public")
        waves = 2 / (1 + (N * PERIOD / (2 * math.pi * i * k * tau)) ** 2)
        printed = float((pulse**2).sum() * waves.sum() / (N * WINDOW))
        runs_of = [released(made, pulse, seed)[1:-1, 0] for seed in range(4000)]
        drawn = [float(np.mean((one - pulse[1:-1]) ** 2)) for one in runs_of]
        row(
            f"{tau:g}",
            f"{printed:,.0f}",
            f"{made.mse_bound(pulse):,.0f}",
            f"{made.expected_mse(pulse):.1f}",
            f"{np.mean(drawn):.1f} ± {np.std(drawn) / len(drawn) ** 0.5:.1f}",
        )


def curves() -> None:
    for name, values in kinds().items():
        for epsilon in (1.0, 5.0, 25.0):
            noisy = off(Laplace(epsilon=epsilon, bounds=BOUNDS), values)
            made = [off(curve_of(epsilon, waves), values) for waves in (1, 2, 4, 8, 12, 24)]
            row(f"{name}, {epsilon:g}", f"{noisy:.2f}", *(f"{one:.2f}" for one in made))


def times() -> None:
    """Noise on a time; neighbors out of order; the mean pace that a straight line finds."""
    true = clock(runs()["run-2"])
    marks = np.arange(MARKS) - np.arange(MARKS).mean()
    for window in (1, 4, 8, 42):
        made = NoisyTimes(epsilon=1.0, tau=TAU, window=window)
        told = [released(made, true, seed)[:, 0] for seed in range(400)]
        turned = np.mean([np.mean(np.diff(one) < 0) for one in told])
        slopes = [float(marks @ one / (marks @ marks)) for one in told]
        row(window, f"{made.errors[0]:.0f}", f"{100 * turned:.1f} %", f"{np.std(slopes):.2f}")


def clamped() -> None:
    """Of the noisy period: how often below zero, and how often read past the last reading."""
    for tau in (TAU, 15.0, PERIOD):
        for epsilon in (1.0, 3.0):
            rate = epsilon * PERIOD / tau
            below, beyond = 0.5 * math.exp(-rate), 0.5 * math.exp(-rate / WINDOW)
            made = paced(epsilon, tau, clamp=None)
            steps = np.stack([np.zeros(8 * 20_000 + 2), np.full(8 * 20_000 + 2, PERIOD)], axis=1)
            drawn = released(made, steps, 3)[1:-1:WINDOW, 1]
            seen = float(np.mean(drawn < 0)), float(np.mean(WINDOW * drawn > PERIOD * (N - 1)))
            cells = [f"{100 * share:.2g} %" for share in (below, seen[0], beyond, seen[1])]
            row(f"{tau:g}, {epsilon:g}", *cells)


if __name__ == "__main__":
    if "--runs" in sys.argv:
        write_runs(Path(sys.argv[sys.argv.index("--runs") + 1]))
    elif "--table" in sys.argv:
        for table in (tells, errors, theorem_5, curves, times, clamped):
            print(table.__name__)
            table()
    else:
        sampling_period()
        told_pace()
        noisy_curve()
        noisy_times()
