"""A person's significant moments and any one other, protected together: five ways to share epsilon.

Katsomallos, Tzompanaki and Kotzinos 2022: readings of some moments, the landmarks, are to be
protected all together and with any single other reading. Over a mechanism for single values every
reading gets a part of epsilon, so that the parts of all landmarks and of any one other reading add
up to epsilon at most. Rows are value columns and then a mark, 1 at landmarks and 0 elsewhere, which
never comes out. Which moments are landmarks must not depend on the values that are protected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.landmarks.base import (
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
)
from tempriv.mechanisms.landmarks.budget import WHOLE, Over, errors_at, require_drawable, spend
from tempriv.mechanisms.stream import start
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class UniformLandmarks:
    """Gives every reading the same part of epsilon: one of as many as there are landmarks and one.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values;
        - the size of the noise shows how many landmarks there are, and nothing shows which.

    Landmarks of each series are counted, which needs all of it; or bounded by ``count``.

    >>> from tempriv.mechanisms.value.laplace import Laplace
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

    domain = property(form_of)
    require_room = require_room
    could_remember = could_remember
    epsilon = property(epsilon_of)
    memory_size = property(slots_of)
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
            remark="It holds where neighbors are equal outside the landmarks and one further "
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

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        marks = marks_of(state, readings)
        counts, _ = landmarks_of(state, marks, self.count)
        parts = WHOLE // (counts + has_others(state, counts, self))
        return spend(self.over, readings, parts[state.which], marks, noise, state)

    start = start
