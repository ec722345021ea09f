"""Draws the picture and computes the tables of the page on attacks.

Run it with ``python docs/pictures/attacks.py``, and ``--table`` for the tables. The sample is made
up and noise comes from seeds, so everything comes out the same each time; a release for others must
never be made that way.
"""

from __future__ import annotations

import sys

import numpy as np
from shared import BLUE, GRAY, INK, ORANGE, Panel, homes, save

from tempriv.audit.attacks.distinguish import TwoCandidates, outward, percent, two_candidates
from tempriv.audit.attacks.pairs import altered
from tempriv.audit.attacks.reconstruction import try_windows
from tempriv.audit.attacks.value import most_success
from tempriv.mechanisms.retime.sampling_period import SamplingPeriod
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.privacy.guarantees import Pure
from tempriv.sampling.keys import Key

WINDOW = 8
CHANGES = (
    ("value", "a reading changed by 1 % of the range"),
    ("time", "a reading taken 0.1 steps later"),
    ("shift", "all readings taken 0.1 steps later"),
    ("pace", "all steps of a window longer by tau"),
)


def period(**given: object) -> SamplingPeriod:
    settings = {"epsilon": 1.0, "window": WINDOW, "tau": 1.0, "pace": "public", **given}
    return SamplingPeriod(**settings)  # type: ignore[arg-type]


def told(change: str, **given: object) -> TwoCandidates:
    """How often a change of the first window of the sample is told."""
    rows = homes()["home-1"][: WINDOW + 2, None]
    mechanism = period(**given)
    if change == "pace":
        mechanism = period(**given, pace="column")
        rows = np.concatenate([rows, np.ones_like(rows)], axis=1)
    pair = altered(mechanism, rows, change)
    return two_candidates(mechanism, pair.one, pair.other, key=Key.from_seed(1))


def rates(panel: Panel) -> None:
    found = [(words, told(change)) for change, words in CHANGES]
    laplace = Laplace(epsilon=1.0, bounds=(0, 5))
    found.append(
        (
            "Laplace noise: a reading is 0 or 5",
            two_candidates(laplace, [0.0], [5.0], key=Key.from_seed(1)),
        )
    )
    cap = most_success(Pure(1.0))
    panel.marks_across([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], lambda mark: f"{100 * mark:.0f} %")
    panel.line(panel.x(cap), panel.top - 6, panel.x(cap), panel.top + panel.height, ORANGE)
    panel.text(panel.x(cap), panel.top - 12, "most that epsilon = 1 allows: 73.1 %", ORANGE)
    for place, (words, one) in enumerate(found):
        height = panel.y(len(found) - 0.5 - place)
        panel.text(panel.left - 10, height + 4, words, INK, "end")
        low, high = one.interval
        panel.line(panel.x(low), height, panel.x(high), height, BLUE)
        panel.dot(one.rate, len(found) - 0.5 - place, BLUE, 5)
    panel.text(
        panel.left + panel.width / 2,
        panel.top + panel.height + 40,
        "how often the observer is right",
        GRAY,
        size=12,
    )


def window(panel: Panel) -> None:
    """A window of the sample that was read faster than it came."""
    values = homes()["home-1"]
    found = try_windows(period(clamp=None), values, windows=12, key=Key.from_seed(1))
    one = found.windows[2]
    truth, places = one.truth[:, 0], range(WINDOW + 2)
    panel.marks_across(list(places), lambda mark: f"{mark:g}")
    panel.marks_up([0, 0.5, 1, 1.5, 2], lambda mark: f"{mark:g}")
    panel.curve(list(zip(places, truth, strict=True)), BLUE, 2.2)
    for place, value in enumerate(one.released[:, 0], 1):
        panel.dot(place, value, GRAY, 4)
    for place in places:
        known = place in one.restored.known
        panel.dot(place, one.restored.values[place, 0], INK if known else ORANGE, 5)
    left = panel.left
    for start, words, color in (
        (0, "as it was", BLUE),
        (76, "as released", GRAY),
        (166, "known", INK),
        (220, "restored", ORANGE),
    ):
        panel.text(left + start, panel.top - 12, words, color, "start", 13, "bold")
    panel.text(
        left + panel.width / 2,
        panel.top + panel.height + 40,
        "reading of the window",
        GRAY,
        size=12,
    )


def attacks() -> None:
    left = Panel(280, 74, 240, 220, (0.5, 1.0), (0, 5))
    right = Panel(580, 74, 300, 220, (0, 9), (0, 2.2))
    rates(left)
    window(right)
    left.text(16, 26, "Which of two inputs was it?", anchor="start", size=15, weight="bold")
    right.text(580, 26, "A window, four readings known", anchor="start", size=15, weight="bold")
    save("attack.svg", 900, 350, "Two attacks on a noisy sampling period", [left, right])


def tables() -> None:
    print("| interpolation | clamp | " + " | ".join(name for name, _ in CHANGES) + " |")
    print("|---|---|" + "---:|" * len(CHANGES))
    for interpolation in ("hermitian", "cosine", "printed"):
        for clamp in (None, "safe"):
            given = {"interpolation": interpolation, "clamp": clamp}
            said = [f"{percent(told(change, **given).rate)} %" for change, _ in CHANGES]
            print(f"| {interpolation} | {clamp or 'none'} | " + " | ".join(said) + " |")
    print("\n| interpolation | clamp | restored whole | readings restored |")
    print("|---|---|---:|---:|")
    for interpolation in ("hermitian", "cosine", "printed"):
        for clamp in (None, "safe"):
            mechanism = period(interpolation=interpolation, clamp=clamp)
            found = try_windows(mechanism, homes()["home-1"], windows=1000, key=Key.from_seed(1))
            low, high = outward(found.success.interval)
            whole = f"{percent(found.success.rate)} % ({low} to {high})"
            single = f"{percent(found.share)} %"
            print(f"| {interpolation} | {clamp or 'none'} | {whole} | {single} |")


if __name__ == "__main__":
    attacks()
    if "--table" in sys.argv:
        tables()
