"""A person's significant moments and any one other, protected together: five ways to share epsilon.

Katsomallos, Tzompanaki and Kotzinos 2022: readings of some moments, the landmarks, are to be
protected all together and with any single other reading. Over a mechanism for single values every
reading gets a part of epsilon, so that the parts of all landmarks and of any one other reading add
up to epsilon at most. Rows are value columns and then a mark, 1 at landmarks and 0 elsewhere, which
never comes out. Which moments are landmarks must not depend on the values that are protected.
"""

from __future__ import annotations

from dataclasses import dataclass

from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers
from tempriv.mechanisms.landmarks.base import (
    COUNT_OPTION,
    FROM_VALUES_OPTION,
    SOURCE,
    LandmarkMechanism,
    has_others,
    landmarks_of,
    marks_of,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, spend
from tempriv.mechanisms.options import shared
from tempriv.privacy.guarantees import Published


@dataclass(frozen=True, kw_only=True)
class UniformLandmarks(LandmarkMechanism):
    """Gives every reading the same part of epsilon: one of as many as there are landmarks and one.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
        count: the most landmarks of a series; None counts them, which needs all of it.
        chosen_from_values: whether the landmarks were chosen by looking at the values.

    Guarantees:
        - pure epsilon for all landmarks of a series and any one other reading together, if the
          landmarks were not chosen by looking at the values;
        - the size of the noise shows how many landmarks there are, and nothing shows which.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> scheme = UniformLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4)
    >>> scheme.guarantee.loss, round(scheme.errors[0])
    (Pure(epsilon=1.0), 25)
    """

    count: int | None = shared(COUNT_OPTION, default=None)
    chosen_from_values: bool = shared(FROM_VALUES_OPTION, default=False)

    command = CommandLine(
        name="uniform-landmarks",
        hides="moments",
        purpose="moments that matter and any one other, with equal noise on all readings",
        example="--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        units=(),
        rank=23,
    )
    published = Published(
        claim="A part epsilon / (|L| + 1) for every timestamp gives (epsilon, L)-landmark privacy",
        source=f"{SOURCE}, Section 3.2, Uniform, by Theorem 2",
        holds=True,
        remark="It holds where neighbors are equal outside the landmarks and one further "
        "timestamp, which is what Definition 3 must say; Theorem 2's proof says the opposite "
        "by a slip. And the landmarks must not depend on the values.",
    )

    equal_noise = True

    @property
    def tells_landmarks(self) -> str:  # type: ignore[override]
        if self.count is not None:
            return "the bound on how many landmarks a series has"
        return "about how many landmarks a series has: the size of its noise shows it"

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with ``noise`` for equal parts; ``state`` counts what is spent."""
        marks = marks_of(state, readings)
        counts, _ = landmarks_of(state, marks, self.count)
        parts = WHOLE // (counts + has_others(state, counts, self.count))
        return spend(self.over, readings, parts[state.which], marks, noise, state)
