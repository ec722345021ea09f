"""A person's significant moments and any one other, protected together: five ways to share epsilon.

Katsomallos, Tzompanaki and Kotzinos 2022: readings of some moments, the landmarks, are to be
protected all together and with any single other reading. Over a mechanism for single values every
reading gets a part of epsilon, so that the parts of all landmarks and of any one other reading add
up to epsilon at most. Rows are value columns and then a mark, 1 at landmarks and 0 elsewhere, which
never comes out. Which moments are landmarks must not depend on the values that are protected.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tempriv.errors import require
from tempriv.guarantees import Published
from tempriv.mechanisms.forms import Integers
from tempriv.mechanisms.landmark_budgets import (
    WHOLE,
    Over,
    errors_at,
    require_drawable,
    spend,
)
from tempriv.mechanisms.landmark_traits import (
    SOURCE,
    complete,
    could_remember,
    counts_first,
    epsilon_of,
    form_of,
    guarantee_of,
    has_others,
    is_causal,
    landmarks_of,
    marks_of,
    require_room,
    slots_of,
    unit_of,
    whole_number,
)
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.stream import start


@dataclass(frozen=True, kw_only=True)
class UniformLandmarks:
    """Gives every reading the same part of epsilon: one of as many as there are landmarks and one.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values;
        - the size of the noise shows how many landmarks there are, and nothing shows which.

    Landmarks of each series are counted, which needs all of it; or bounded by ``count``.

    >>> from tempriv.mechanisms import Laplace
    >>> scheme = UniformLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4)
    >>> scheme.guarantee.loss, round(scheme.errors[0])
    (Pure(epsilon=1.0), 25)
    """

    over: Over
    count: int | None = None
    chosen_from_values: bool = False

    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        complete(self)
        require_drawable(self.over, WHOLE // ((self.count or 0) + 1))

    form = property(form_of)
    require_room = require_room
    could_remember = could_remember
    epsilon = property(epsilon_of)
    slots = property(slots_of)
    unit = property(unit_of)
    guarantee = property(guarantee_of)
    takes_whole = property(counts_first)
    causal = property(is_causal)
    bounded_memory = property(is_causal)

    @property
    def published(self) -> Published:
        return Published(
            claim="A part epsilon / (|L| + 1) for every timestamp gives (epsilon, L)-landmark "
            "privacy",
            source=f"{SOURCE}, Section 3.2, Uniform, by Theorem 2",
            holds=True,
            remark="It holds where neighbours are equal outside the landmarks and one further "
            "timestamp, which is what Definition 3 must say; Theorem 2's proof says the opposite "
            "by a slip. And the landmarks must not depend on the values.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return errors_at(self.over, WHOLE // ((self.count or 0) + 1))

    @property
    def error_name(self) -> str:
        if self.count is not None:
            return str(self.over.error_name)
        return f"{self.over.error_name} in a series without landmarks; with each it grows"

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        marks = marks_of(track, readings)
        counts, _ = landmarks_of(track, marks, self.count)
        parts = WHOLE // (counts + has_others(track, counts, self))
        return spend(self.over, readings, parts[track.which], marks, draw, track)

    start = start


@dataclass(frozen=True, kw_only=True)
class SkipLandmarks:
    """Gives every other reading all of epsilon, and repeats the last release at landmarks.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together (nothing
          of a landmark is used), if the landmarks were not chosen by looking at the values;
        - which moments are landmarks is plain to see: they are the ones that repeat.

    >>> from tempriv.mechanisms import Laplace
    >>> scheme = SkipLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)))
    >>> scheme.guarantee.loss, round(scheme.errors[0])
    (Pure(epsilon=1.0), 5)
    """

    over: Over
    chosen_from_values: bool = False

    causal: ClassVar[bool] = True
    bounded_memory: ClassVar[bool] = True
    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    takes_whole: ClassVar[bool] = False
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        complete(self)
        require_drawable(self.over, WHOLE)

    form = property(form_of)
    require_room = require_room
    could_remember = could_remember
    epsilon = property(epsilon_of)
    slots = property(slots_of)
    unit = property(unit_of)
    guarantee = property(guarantee_of)

    @property
    def published(self) -> Published:
        return Published(
            claim="All of epsilon for every regular timestamp, and the last release again at "
            "landmarks, gives (epsilon, L)-landmark privacy",
            source=f"{SOURCE}, Section 3.2, Skip",
            holds=True,
            remark="It protects the values at landmarks best of all and their times not at all: "
            "exact repeats show them (Example 3.1 of the paper warns of it).",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return errors_at(self.over, WHOLE)

    @property
    def error_name(self) -> str:
        return f"{self.over.error_name}, other than at landmarks, where the last release stands"

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        marks = marks_of(track, readings)
        return spend(self.over, readings, WHOLE * (1 - marks), marks, draw, track)

    start = start


@dataclass(frozen=True, kw_only=True)
class SplitLandmarks:
    """Gives landmarks a small part of epsilon each, and every other reading a larger one.

    With K landmarks and R other readings the parts are epsilon / (K + sqrt R), and sqrt R times
    that: no fixed parts have a lower mean absolute error.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values;
        - landmarks get more noise than other readings, which shows over time which they are.

    Landmarks of each series are counted, which needs all of it; or bounded by ``count``, and then
    ``length`` says about how many readings there will be, which is for accuracy only.

    >>> from tempriv.mechanisms import Laplace
    >>> scheme = SplitLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 1)), count=200, length=1000)
    >>> scheme.guarantee.loss, [round(WHOLE / units, 1) for units in scheme.parts(200, 800)]
    (Pure(epsilon=1.0), [228.3, 8.1])
    """

    over: Over
    count: int | None = None
    length: int | None = None
    chosen_from_values: bool = False

    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        complete(self)
        whole_number("length", self.length, 1)
        require(
            (self.count is None) == (self.length is None),
            "count and length: give both, for a stream, or neither, and they are counted",
        )
        require_drawable(self.over, min(self._stated))

    form = property(form_of)
    require_room = require_room
    could_remember = could_remember
    epsilon = property(epsilon_of)
    slots = property(slots_of)
    unit = property(unit_of)
    guarantee = property(guarantee_of)
    takes_whole = property(counts_first)
    causal = property(is_causal)
    bounded_memory = property(is_causal)

    @staticmethod
    def parts(landmarks: int, others: int) -> tuple[int, int]:
        """The units of a landmark, and of another reading."""
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
    def published(self) -> Published:
        return Published(
            claim="Parts of epsilon with sum at most epsilon over all landmarks and any one other "
            "timestamp give (epsilon, L)-landmark privacy",
            source=f"{SOURCE}, Theorem 2",
            holds=True,
            remark="The paper does not look for the best parts; these minimise the mean absolute "
            "error of Laplace noise, by setting its slope in the parts to zero.",
        )

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
        if self.count is not None:
            return f"{self.over.error_name}, over landmarks and others"
        return f"{self.over.error_name} in a series without landmarks; with each it grows"

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        marks = marks_of(track, readings)
        counts, _ = landmarks_of(track, marks, self.count)
        if self.count is None:
            others = track.counts - counts
        else:
            others = np.full(len(counts), max((self.length or 0) - self.count, 1))
        parts = np.array(
            [self.parts(*pair) for pair in zip(counts.tolist(), others.tolist(), strict=True)],
            dtype=np.int64,
        ).reshape(-1, 2)
        units = np.where(marks == 1, parts[track.which, 0], parts[track.which, 1])
        return spend(self.over, readings, units, marks, draw, track)

    start = start
