"""Landmarks that are not released at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.landmarks.base import (
    DONE,
    FROM_VALUES_OPTION,
    NAMED,
    SOURCE,
    LandmarkMechanism,
    marks_of,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, spend
from tempriv.mechanisms.options import shared
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class SkipLandmarks(LandmarkMechanism):
    """Gives every other reading all of epsilon, and repeats the last release at landmarks.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
        chosen_from_values: whether the landmarks were chosen by looking at the values.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together (nothing
          of a landmark is used), if the landmarks were not chosen by looking at the values;
        - which moments are landmarks is plain to see: they are the ones that repeat.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> scheme = SkipLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)))
    >>> scheme.guarantee.loss, round(scheme.errors[0])
    (Pure(epsilon=1.0), 5)
    """

    chosen_from_values: bool = shared(FROM_VALUES_OPTION, default=False)

    command = CommandLine(
        name="skip-landmarks",
        hides="moments",
        purpose="moments that matter are not released at all, and everyone sees which they are",
        example="--epsilon 1 --bounds 0 5 --landmarks at_home --value kwh",
        units=(),
        rank=27,
    )
    published = Published(
        claim="All of epsilon for every regular timestamp, and the last release again at "
        "landmarks, gives (epsilon, L)-landmark privacy",
        source=f"{SOURCE}, Section 3.2, Skip",
        holds=True,
        remark="It protects the values at landmarks best of all and their times not at all: "
        "exact repeats show them (Example 3.1 of the paper warns of it).",
    )
    texts = ReportTexts(
        band="± expected error of a fresh value",
        single="one fresh value",
        scope="for fresh values",
        besides="At landmarks the last fresh value stands again: it is as far off as that one, "
        "and misses what has changed since.",
    )

    takes_whole = False
    tells_landmarks = "which moments are landmarks: they repeat the release before them"

    has_status: ClassVar[bool] = True

    @property
    def stated_parts(self) -> tuple[int, int]:
        return 0, WHOLE

    @property
    def done(self) -> str:
        each, _, _ = DONE[self.value_kind]
        return f"{each}, except at {NAMED}, where the last released value stands again"

    @property
    def error_name(self) -> str:
        return f"{self.over.error_name}, other than at landmarks, where the last release stands"

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with ``noise``; at landmarks the last releases in ``state``."""
        marks = marks_of(state, readings)
        return spend(self.over, readings, WHOLE * (1 - marks), marks, noise, state)
