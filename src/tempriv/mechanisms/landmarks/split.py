"""More noise at landmarks than elsewhere."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, ReportTexts, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.landmarks.base import (
    COUNT_OPTION,
    DONE,
    FROM_VALUES_OPTION,
    NAMED,
    SOURCE,
    LandmarkMechanism,
    landmarks_of,
    marks_of,
    require_whole,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, errors_at, spend
from tempriv.mechanisms.options import option, shared
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class SplitLandmarks(LandmarkMechanism):
    """Gives landmarks a small part of epsilon each, and every other reading a larger one.

    With K landmarks and R other readings the parts are epsilon / (K + sqrt R), and sqrt R times
    that: no fixed parts have a lower mean absolute error.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
        count: the most landmarks of a series; None counts them, which needs all of it.
        length: about how many readings a series will have, with ``count``; for accuracy only.
        chosen_from_values: whether the landmarks were chosen by looking at the values.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values;
        - landmarks get more noise than other readings, which shows over time which they are.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> scheme = SplitLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 1)), count=200, length=1000)
    >>> scheme.guarantee.loss, [round(WHOLE / units, 1) for units in scheme.parts(200, 800)]
    (Pure(epsilon=1.0), [228.3, 8.1])
    """

    count: int | None = shared(COUNT_OPTION, default=None)
    length: int | None = option(
        "--length",
        "Readings at most, for --unit series.",
        default=None,
        type=int,
    )
    chosen_from_values: bool = shared(FROM_VALUES_OPTION, default=False)

    command = CommandLine(
        name="split-landmarks",
        hides="moments",
        purpose="moments that matter and any one other, with more noise on those that matter",
        example="--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --length 100 --value kwh",
        units=(),
        rank=24,
    )
    published = Published(
        claim="Parts of epsilon with sum at most epsilon over all landmarks and any one other "
        "timestamp give (epsilon, L)-landmark privacy",
        source=f"{SOURCE}, Theorem 2",
        holds=True,
        remark="The paper does not look for the best parts; these minimize the mean absolute "
        "error of Laplace noise, by setting its slope in the parts to zero.",
    )
    texts = ReportTexts(
        band="± expected error on average",
        single="one value, on average",
        scope="on average over landmarks and others",
        besides="At landmarks errors are larger, elsewhere smaller.",
    )

    tells_landmarks = (
        "which moments are landmarks, as far as their greater noise shows it; and about how many "
        "there are"
    )

    def _check_settings(self) -> None:
        require_whole("length", self.length, 1)
        require(
            (self.count is None) == (self.length is None),
            "count and length: give both, for a stream, or neither, and they are counted",
        )

    @staticmethod
    def parts(landmarks: int, others: int) -> tuple[int, int]:
        """The units of a landmark, and of another reading.

        Parameters:
            landmarks: how many a series has.
            others: how many other readings it has.
        """
        if landmarks == 0:
            return WHOLE, WHOLE
        if others == 0:
            return WHOLE // landmarks, 0
        each = math.floor(WHOLE / (landmarks + math.sqrt(others)))
        return each, WHOLE - landmarks * each

    @property
    def _stated(self) -> tuple[int, int]:
        if self.count is None or self.length is None:
            return WHOLE, WHOLE
        return self.parts(self.count, max(self.length - self.count, 1))

    @property
    def stated_parts(self) -> tuple[int, int]:
        return self._stated

    @property
    def least_units(self) -> int:
        return min(self._stated)

    @property
    def done(self) -> str:
        each, _, more = DONE[self.value_kind]
        return f"{each}, {more} at {NAMED} than elsewhere"

    @property
    def errors(self) -> tuple[float, ...]:
        """The mean over landmarks and others."""
        landmark, other = (errors_at(self.over, units) for units in self._stated)
        if self.count is None or self.length is None:
            return other
        share = min(self.count / self.length, 1.0)
        return tuple(share * a + (1 - share) * b for a, b in zip(landmark, other, strict=True))

    @property
    def error_name(self) -> str:
        named = super().error_name
        return named if self.grows else f"{named}, over landmarks and others"

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with ``noise`` for either part; ``state`` counts what is spent."""
        marks = marks_of(state, readings)
        counts, _ = landmarks_of(state, marks, self.count)
        if self.count is None:
            others = state.counts - counts
        else:
            others = np.full(len(counts), max((self.length or 0) - self.count, 1))
        parts = np.array(
            [self.parts(*pair) for pair in zip(counts.tolist(), others.tolist(), strict=True)],
            dtype=np.int64,
        ).reshape(-1, 2)
        units = np.where(marks == 1, parts[state.which, 0], parts[state.which, 1])
        return spend(self.over, readings, units, marks, noise, state)
