"""What a report says of landmark schemes: what was done, what errors are about, what is left open.

How many landmarks a series has is not told, and where it decides on the noise, errors are those of
a series without any.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tempriv.mechanisms import registry
from tempriv.privacy.guarantees import Guarantee
from tempriv.privacy.serialization import KIND
from tempriv.privacy.units import Window
from tempriv.privacy.units.landmarks import Landmarks, Readings
from tempriv.report.plots.series import About, kind_of

EQUAL = ("UniformLandmarks", "CountBoundLandmarks")  # the same noise for all readings of a series
SCHEMES = (*EQUAL, "SkipLandmarks", "AdaptiveLandmarks", "SplitLandmarks")
NAMED = "landmarks (the moments that the owner named)"
# each of them, some of them, and how the more is done
TO = {
    "numbers": (
        "random noise was added to each of them",
        "random noise was added to some of them",
        "with more of it",
    ),
    "categories": (
        "each of them was kept or exchanged at random",
        "some of them were kept or exchanged at random",
        "and more often exchanged",
    ),
    "places": (
        "each of them was moved at random",
        "some of them were moved at random",
        "and farther",
    ),
}
# what a stated error is about: in a table, and in a sentence
ABOUT = {
    "SkipLandmarks": ("one fresh value", "for fresh values"),
    "AdaptiveLandmarks": ("the first value", "for the first value of a series"),
    "SplitLandmarks": ("one value, on average", "on average over landmarks and others"),
}
WITHOUT = ("one value, without landmarks", "in a series without landmarks")
BESIDES = {
    "SkipLandmarks": "At landmarks the last fresh value stands again: it is as far off as that "
    "one, and misses what has changed since.",
    "AdaptiveLandmarks": "Later values have no more noise than the first. A repeated one is as far "
    "off as the one that it repeats, and misses what has changed since. Averages over repeated "
    "values are no better than one of them.",
    "SplitLandmarks": "At landmarks errors are larger, elsewhere smaller.",
}
GROWS = (
    "Each landmark of a series adds to that, and with some of them it may be many times as much. "
    "How many there are is not told here; how much neighboring values differ shows about how far "
    "off they are."
)


def is_scheme(about: About) -> bool:
    return about["mechanism"][KIND] in SCHEMES


def done(about: About) -> str:
    """What was done to the values."""
    name, (each, some, more) = about["mechanism"][KIND], TO[kind_of(about)]
    return {
        "SkipLandmarks": f"{each}, except at {NAMED}, where the last released value stands again",
        "AdaptiveLandmarks": f"{some}, and the others repeat the last of these",
        "SplitLandmarks": f"{each}, {more} at {NAMED} than elsewhere",
    }.get(name, f"{each}, all in the same way")


def grows(about: About) -> bool:
    """Whether stated errors are those of a series without landmarks, as nobody may count them."""
    made = about["mechanism"]
    return is_scheme(about) and made[KIND] != "SkipLandmarks" and made["count"] is None


def is_uneven(about: About) -> bool:
    """Whether landmarks change how far values are off."""
    return is_scheme(about) and (about["mechanism"][KIND] not in EQUAL or grows(about))


def stated_for(about: About) -> tuple[str, str]:
    """Which values a stated error is about: in the head of a table, and in a sentence."""
    return WITHOUT if grows(about) else ABOUT[about["mechanism"][KIND]]


def besides(about: About) -> str:
    """What has to be said beside stated errors."""
    return GROWS if grows(about) else BESIDES[about["mechanism"][KIND]]


def beyond(about: About, guarantee: Guarantee) -> list[str]:
    """What can be told from more than the guarantee covers, and how weak it is there."""
    unit, said = guarantee.unit, list[str]()
    if not isinstance(unit, (Landmarks, Readings)):
        return said
    less: Any
    if unit.meters is not None:
        far = replace(unit, meters=10 * unit.meters)
        less = guarantee.for_unit(far)
        said.append(f"The wider area: places {far.meters:,.0f} meters apart have only {less.loss}.")
    else:
        covered, many = "landmarks and one other reading", 24
        if isinstance(unit, Readings):
            covered, many = f"{unit.count} readings", max(24, 10 * unit.count)
        less = guarantee.for_unit(Window(many))
        said.append(
            f"Habits, averages, trends: the guarantee covers {covered}, not what many readings "
            f"show together. For any {many} readings in a row it is only {less.loss}."
        )
    said.append(
        "Readings that go together: where one reading lets you guess its neighbors, their "
        "released values together tell more about it than its own does."
    )
    made = registry.decode(about["mechanism"])
    lost = getattr(made, "count_loss", None)
    if lost is not None:
        said.append(
            "How many landmarks there are: the noise shows a bound that was drawn at random. One "
            f"landmark more or less is hidden in it with epsilon = {lost[0]:g} and delta = "
            f"{lost[1]:.2g}."
        )
    return said
