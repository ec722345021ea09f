"""Landmarks that are not released at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tempriv.mechanisms.base import NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.landmarks.base import (
    SOURCE,
    complete,
    could_remember,
    epsilon_of,
    form_of,
    guarantee_of,
    marks_of,
    require_room,
    slots_of,
    unit_of,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, Over, errors_at, require_drawable, spend
from tempriv.mechanisms.stream import start
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class SkipLandmarks:
    """Gives every other reading all of epsilon, and repeats the last release at landmarks.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together (nothing
          of a landmark is used), if the landmarks were not chosen by looking at the values;
        - which moments are landmarks is plain to see: they are the ones that repeat.

    >>> from tempriv.mechanisms.value.laplace import Laplace
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

    domain = property(form_of)
    require_room = require_room
    could_remember = could_remember
    epsilon = property(epsilon_of)
    memory_size = property(slots_of)
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

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        marks = marks_of(state, readings)
        return spend(self.over, readings, WHOLE * (1 - marks), marks, noise, state)

    start = start
