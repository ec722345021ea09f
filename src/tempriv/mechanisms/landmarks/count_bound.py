"""Landmarks protected by a bound on their number, public or drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tempriv.errors import require
from tempriv.mechanisms.base import CommandLine, NoiseSource, SeriesState
from tempriv.mechanisms.domains import Integers, positive
from tempriv.mechanisms.landmarks import private_count
from tempriv.mechanisms.landmarks.base import (
    COUNT_OPTION,
    FROM_VALUES_OPTION,
    SOURCE,
    LandmarkMechanism,
    landmarks_of,
    marks_of,
)
from tempriv.mechanisms.landmarks.budget import WHOLE, spend
from tempriv.mechanisms.options import option, shared
from tempriv.privacy.guarantees import Approximate, Guarantee, NoGuarantee, Published
from tempriv.privacy.units import Unit
from tempriv.privacy.units.landmarks import MarkedMoment, Readings

MIN_COUNT_EPSILON, MAX_COUNT_EPSILON = 2.0**-20, 20
DEFAULT_MISS = 1e-6


@dataclass(frozen=True, kw_only=True)
class CountBoundLandmarks(LandmarkMechanism):
    """Gives every reading the same part of epsilon, by a bound on the number of landmarks.

    The bound is public (``count``); or it is drawn for each series: its number of landmarks and
    noise for ``count_epsilon``, raised so that it is never too small.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
        count: a public bound on the number of landmarks.
        count_epsilon: instead of it, the budget for drawing one.
        miss: the chance, at most, that a drawn bound shows the number itself.
        chosen_from_values: whether the landmarks were chosen by looking at the values.

    Guarantees:
        - with ``count``: pure epsilon for any count + 1 readings of a series together, wherever
          they are, so that it does not matter how landmarks were chosen. Marks are not looked at:
          if there are more of them, not all are covered together;
        - with ``count_epsilon``: pure epsilon for all landmarks and any one other reading, if they
          were not chosen by looking at the values; and for how many there are, one more or less,
          what ``count_loss`` says.

    >>> from tempriv.mechanisms.value.laplace import Laplace
    >>> scheme = CountBoundLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4)
    >>> scheme.guarantee.unit, round(scheme.errors[0])
    (Readings(count=5, meters=None), 25)
    """

    count: int | None = shared(COUNT_OPTION, default=None)
    count_epsilon: float | None = option(
        "--count-epsilon",
        "A budget for drawing a bound, which hides how many landmarks there are.",
        default=None,
    )
    miss: float = option(
        "--miss",
        "With --count-epsilon: the chance that the bound shows the number itself; 1e-6 by default.",
        default=DEFAULT_MISS,
    )
    chosen_from_values: bool = shared(FROM_VALUES_OPTION, default=False)

    command = CommandLine(
        name="count-bound-landmarks",
        hides="moments",
        purpose="any so many readings together, so that it does not matter how they were chosen",
        example="--epsilon 1 --bounds 0 5 --landmarks at_home --count 20 --value kwh",
        units=(),
        rank=25,
    )
    published = Published(
        claim="A part epsilon / (|L| + 1) for every timestamp gives (epsilon, L)-landmark privacy",
        source=f"{SOURCE}, Section 3.2, Uniform",
        holds=True,
        remark="The paper shares by the number of landmarks itself, which the noise then "
        "shows; a bound in its place shows the bound only.",
    )

    equal_noise = True

    def _check_settings(self) -> None:
        require(
            (self.count is None) != (self.count_epsilon is None),
            "count and count_epsilon: give one of them, a public bound on the number of landmarks "
            "or a budget for drawing one",
        )
        if self.count_epsilon is not None:
            positive("count_epsilon", self.count_epsilon)
            require(
                MIN_COUNT_EPSILON <= self.count_epsilon <= MAX_COUNT_EPSILON,
                f"count_epsilon={self.count_epsilon:g}: must be from {MIN_COUNT_EPSILON:g}, "
                f"below which a bound is as good as none, to {MAX_COUNT_EPSILON}, above which it "
                "hides nothing",
            )
        require(
            isinstance(self.miss, (int, float)) and 1e-300 < self.miss < 1,
            f"miss={self.miss}: must be a probability > 0 and < 1, such as 1e-6",
        )
        require(
            self.count_epsilon is not None or self.miss == DEFAULT_MISS,
            f"miss={self.miss:g}: goes with count_epsilon; a public bound misses nothing",
        )

    @property
    def margin(self) -> int:
        """How much is added to the number of landmarks beside noise: ``miss`` bounds the delta."""
        if self.count_epsilon is None:
            return 0
        least = private_count.margin(self.count_epsilon, self.miss)
        while private_count.delta(self.count_epsilon, least) > self.miss:
            least += 1
        return least

    @property
    def least_landmarks(self) -> int:
        return self.margin if self.count is None else self.count

    @property
    def count_loss(self) -> tuple[float, float] | None:
        """(epsilon, delta) of the bound for one landmark more or less; None of a public one."""
        if self.count_epsilon is None:
            return None
        return self.count_epsilon, private_count.delta(self.count_epsilon, self.margin)

    @property
    def unit(self) -> Unit:
        """What is protected."""
        if self.count is None:
            return super().unit
        return Readings(self.count + 1, self.meters)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.count is None:
            return super().guarantee
        return Guarantee(self.over.guarantee.loss, self.unit)

    @property
    def most_landmarks(self) -> int | None:
        """Any so many readings are protected, whichever are called landmarks."""
        return None

    @property
    def marks_guarantee(self) -> Guarantee | NoGuarantee | None:
        if self.count_loss is None:
            return None
        return Guarantee(Approximate(*self.count_loss), MarkedMoment())

    @property
    def tells_landmarks(self) -> str:  # type: ignore[override]
        if self.count_epsilon is None:
            return "the bound on how many landmarks a series has"
        return (
            "how many landmarks a series has, but for one more or less: epsilon = "
            f"{self.count_epsilon:g}, delta at most {self.miss:g}, for this release; a ledger adds "
            "up what several tell"
        )

    def beyond_guarantee(self) -> list[str]:
        if self.count_loss is None:
            return []
        epsilon, delta = self.count_loss
        return [
            "How many landmarks there are: the noise shows a bound that was drawn at random. One "
            f"landmark more or less is hidden in it with epsilon = {epsilon:g} and delta = "
            f"{delta:.2g}."
        ]

    def perturb(self, readings: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """The ``readings`` with ``noise`` for equal parts; ``state`` counts what is spent."""
        if self.count is not None:
            # any count + 1 readings are protected: marks, which may tell of values, are not read
            units = np.full(len(readings), WHOLE // (self.count + 1), dtype=np.int64)
            return spend(self.over, readings, units, np.zeros_like(units), noise, state)
        marks = marks_of(state, readings)
        counts, _ = landmarks_of(state, marks, None)
        bounds = self._drawn_bounds(counts, noise, state)
        units = (WHOLE // (bounds + 1))[state.which]
        return spend(self.over, readings, units, marks, noise, state)

    def _drawn_bounds(self, counts: Integers, noise: NoiseSource, state: SeriesState) -> Integers:
        """One for each series, by noise of its first row; a length is public, so is no less."""
        firsts = (np.cumsum(state.counts) - state.counts)[state.counts > 0]
        drawn = np.zeros(len(counts), dtype=np.int64)
        assert self.count_epsilon is not None
        distribution = private_count.noise_of_count(self.count_epsilon)
        drawn[state.counts > 0] = noise(distribution, "count", firsts)
        raised = counts + np.maximum(0, drawn + self.margin)
        return np.asarray(np.minimum(raised, np.maximum(state.counts, 1)))
