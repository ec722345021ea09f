"""Landmarks released where things change, and their budgets handed on where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers, positive
from tempriv.mechanisms.landmarks.base import (
    COUNT_OPTION,
    DONE,
    FROM_VALUES_OPTION,
    SOURCE,
    LandmarkMechanism,
    has_others,
    landmarks_of,
    marks_of,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, sample_or_repeat
from tempriv.mechanisms.options import option, shared
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class AdaptiveLandmarks(LandmarkMechanism):
    """Samples a reading where releases have been changing, else repeats the last one.

    Every reading has epsilon / (K + 1) reserved. A landmark that is not sampled hands its part on,
    in equal shares, to as many later readings as count together. A release that is further from
    the one before than ``kappa`` times its noise makes sampling likelier by ``increase`` of what
    lacks to certainty; any other makes it less likely by ``decrease``, but never below ``least``.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
        count: the most landmarks of a series; None counts them, which needs all of it.
        kappa: how many times its noise a release must be from the last one to count as a change.
        increase: the part of what lacks to certainty that sampling becomes likelier by.
        decrease: the part of its chance that it becomes less likely by.
        least: the least chance of sampling a reading.
        chosen_from_values: whether the landmarks were chosen by looking at the values.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values; on every path, which is checked as it
          runs;
        - whether a reading is repeated does not depend on its mark; that noise becomes less as
          landmarks are passed over shows a little of when they were, and about how many.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> scheme = AdaptiveLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4)
    >>> scheme.guarantee.loss, round(scheme.errors[0])
    (Pure(epsilon=1.0), 25)
    """

    count: int | None = shared(COUNT_OPTION, default=None)
    kappa: float = option(
        "--kappa",
        "A release further from the last than so many times its noise counts as a "
        "change; 1 by default.",
        default=1.0,
    )
    increase: float = option(
        "--increase",
        "After a change sampling becomes likelier by this part of what lacks to "
        "certainty; 0.5 by default.",
        default=0.5,
    )
    decrease: float = option(
        "--decrease",
        "Without a change sampling becomes less likely by this part; 0.2 by default.",
        default=0.2,
    )
    least: float = option(
        "--least",
        "The least chance of sampling a reading; 0.1 by default.",
        default=0.1,
    )
    chosen_from_values: bool = shared(FROM_VALUES_OPTION, default=False)

    command = CommandLine(
        name="adaptive-landmarks",
        hides="moments",
        purpose="moments that matter and any one other, released only where things change",
        example="--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        units=(),
        rank=26,
    )
    published = Published(
        claim="Handing the part of an approximated landmark on to the next timestamps gives "
        "(epsilon, L)-landmark privacy",
        source=f"{SOURCE}, Section 3.2, Adaptive, by Theorem 2",
        holds=True,
        remark="The paper does not say how it is handed on. Equal shares hold, one for each "
        "landmark to come and one for another timestamp; the whole part for every later "
        "timestamp does not. How sampling changes is not in the paper either.",
    )
    texts = ReportTexts(
        band="± expected error of the first value",
        single="the first value",
        scope="for the first value of a series",
        besides="Later values have no more noise than the first. A repeated one is as far off as "
        "the one that it repeats, and misses what has changed since. Averages over repeated values "
        "are no better than one of them.",
    )

    tells_landmarks = (
        "about how many landmarks a series has, and a little of when they were: noise becomes "
        "less as they are passed over"
    )

    has_status: ClassVar[bool] = True

    def _check_settings(self) -> None:
        positive("kappa", self.kappa)
        for name in ("increase", "decrease", "least"):
            value = getattr(self, name)
            require(
                isinstance(value, (int, float))
                and not isinstance(value, bool)
                and 2.0**-16 <= value <= 1,
                f"{name}={value}: must be > 0 and at most 1",
            )

    @property
    def stated_parts(self) -> tuple[int, int]:
        most = self.count or 0
        return self.most_units(most, 1, (0, 0))

    def most_units(self, landmarks: int, others: int, units: tuple[int, int]) -> tuple[int, int]:
        """As if all earlier landmarks were passed over, so that it is no matter which were.

        With P parts, after j of them every later reading has at most 1 / (P - j) of all: they have
        P - j such parts together, and parts that were handed on are rounded down. What was spent
        is told by outputs; to charge that would let a refusal tell of them, too.

        Parameters:
            landmarks: how many the series has.
            others: how many other readings it has.
            units: the most that was spent on either, which is not used.
        """
        counted = landmarks if self.count is None else self.count
        parts = counted + int(self.count is not None or others > 0 or landmarks == 0)
        at_landmarks = WHOLE // (parts - max(landmarks - 1, 0)) if landmarks else 0
        return at_landmarks, WHOLE // (parts - landmarks) if others else 0

    @property
    def done(self) -> str:
        _, some, _ = DONE[self.value_kind]
        return f"{some}, and the others repeat the last of these"

    @property
    def error_name(self) -> str:
        named = super().error_name
        return (
            named if self.grows else f"{named} of the first release; later ones have no more noise"
        )

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """Sampled ``readings`` with ``noise``; the last releases in ``state`` for the others."""
        marks = marks_of(state, readings)
        counts, later = landmarks_of(state, marks, self.count)
        others = has_others(state, counts, self.count)
        return sample_or_repeat(self, readings, marks, counts, later, others, noise, state)
