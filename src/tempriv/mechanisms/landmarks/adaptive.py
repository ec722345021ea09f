"""Landmarks released where things change, and their budgets handed on where they do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tempriv.errors import require
from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers, positive
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
from tempriv.mechanisms.landmarks.budget import (
    WHOLE,
    Over,
    errors_at,
    require_drawable,
    sample_or_repeat,
)
from tempriv.mechanisms.stream import start
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class AdaptiveLandmarks:
    """Samples a reading where releases have been changing, else repeats the last one.

    Every reading has epsilon / (K + 1) reserved. A landmark that is not sampled hands its part on,
    in equal shares, to as many later readings as count together. A release that is further from
    the one before than ``kappa`` times its noise makes sampling likelier by ``increase`` of what
    lacks to certainty; any other makes it less likely by ``decrease``, but never below ``least``.

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

    over: Over
    count: int | None = None
    kappa: float = 1.0
    increase: float = 0.5
    decrease: float = 0.2
    least: float = 0.1
    chosen_from_values: bool = False

    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = True
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        complete(self)
        positive("kappa", self.kappa)
        for name in ("increase", "decrease", "least"):
            value = getattr(self, name)
            require(
                isinstance(value, (int, float))
                and not isinstance(value, bool)
                and 2.0**-16 <= value <= 1,
                f"{name}={value}: must be > 0 and at most 1",
            )
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
            claim="Handing the part of an approximated landmark on to the next timestamps gives "
            "(epsilon, L)-landmark privacy",
            source=f"{SOURCE}, Section 3.2, Adaptive, by Theorem 2",
            holds=True,
            remark="The paper does not say how it is handed on. Equal shares hold, one for each "
            "landmark to come and one for another timestamp; the whole part for every later "
            "timestamp does not. How sampling changes is not in the paper either.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return errors_at(self.over, WHOLE // ((self.count or 0) + 1))

    @property
    def error_name(self) -> str:
        if self.count is not None:
            return f"{self.over.error_name} of the first release; later ones have no more noise"
        return f"{self.over.error_name} in a series without landmarks; with each it grows"

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        marks = marks_of(state, readings)
        counts, later = landmarks_of(state, marks, self.count)
        others = has_others(state, counts, self)
        return sample_or_repeat(self, readings, marks, counts, later, others, noise, state)

    start = start
