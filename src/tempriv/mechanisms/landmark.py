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
from typing import Any, ClassVar

import numpy as np

from tempriv import landmark_counts
from tempriv.errors import DataRefusal, require
from tempriv.guarantees import Guarantee, NoGuarantee, Published
from tempriv.kernels_landmark import CAME, SLOTS
from tempriv.mechanisms.forms import Integers, positive
from tempriv.mechanisms.forms_marked import Marked
from tempriv.mechanisms.landmark_budgets import (
    WHOLE,
    Over,
    errors_at,
    require_drawable,
    require_over,
    sample_or_repeat,
    spend,
)
from tempriv.mechanisms.protocol import Draw, Track
from tempriv.mechanisms.stream import start
from tempriv.units import Landmarks, Near, Readings, Unit

SOURCE = "Katsomallos, Tzompanaki and Kotzinos 2022"

FROM_VALUES = (
    "the landmarks were chosen by looking at the values that are to be protected, so two series "
    "that differ in values may have unlike landmarks; bound their number instead "
    "(CountBoundLandmarks)"
)


def _whole_number(name: str, value: Any, least: int) -> None:
    require(
        value is None
        or (isinstance(value, int) and not isinstance(value, bool) and least <= value < WHOLE),
        f"{name}={value}: must be a whole number >= {least}",
    )


def _set_up(scheme: Any) -> None:
    require_over(scheme.over)
    require(
        isinstance(scheme.chosen_from_values, (bool, int)) and scheme.chosen_from_values in (0, 1),
        f"chosen_from_values={scheme.chosen_from_values}: must be True or False",
    )
    object.__setattr__(scheme, "chosen_from_values", bool(scheme.chosen_from_values))
    if hasattr(scheme, "count"):
        _whole_number("count", scheme.count, 0)


def _form(scheme: Any) -> Marked:
    return Marked(scheme.over.form)


def _epsilon(scheme: Any) -> float:
    epsilon: float = scheme.over.epsilon
    return epsilon


def _slots(scheme: Any) -> int:
    return int(scheme.over.form.columns) + SLOTS


def _metres(scheme: Any) -> float | None:
    unit = scheme.over.unit
    return unit.metres if isinstance(unit, Near) else None


def _unit(scheme: Any) -> Unit:
    return Landmarks(metres=_metres(scheme))


def _guarantee(scheme: Any) -> Guarantee | NoGuarantee:
    if scheme.chosen_from_values:
        return NoGuarantee(FROM_VALUES)
    return Guarantee(scheme.over.guarantee.loss, scheme.unit)


def _counts_first(scheme: Any) -> bool:
    """Without a bound on the number of landmarks all of a series must be there to count them."""
    return scheme.count is None


def _is_causal(scheme: Any) -> bool:
    return not scheme.takes_whole


def landmarks_of(track: Track, marks: Integers, count: int | None) -> tuple[Integers, Integers]:
    """How many landmarks each series has, or may have; and how many come after each row."""
    which = track.which
    sums = np.concatenate([[0], np.cumsum(marks)])
    ends = np.cumsum(track.counts)
    here = sums[ends] - sums[ends - track.counts]
    before = track.memory[:, track.memory.shape[1] - SLOTS + CAME]
    counts = here if count is None else np.full(len(here), count, dtype=np.int64)
    require(
        bool((before + here <= counts).all()),
        f"a series has more than {count} landmarks, the number that was given: give a greater one",
        DataRefusal,
    )
    so_far = sums[1:] - np.repeat(sums[ends - track.counts], track.counts)
    return counts, np.asarray((counts - before)[which] - so_far)


def _marks(track: Track, readings: Integers) -> Integers:
    """A row without a reading is no landmark: there is nothing to protect."""
    there = ~track.missing[:, :-1].all(axis=1)
    return np.asarray(readings[:, -1] * there)


def _are_all(track: Track, counts: Integers, scheme: Any) -> Integers:
    """1 for series that have other readings than landmarks, 0 for those that have none."""
    if scheme.count is not None:
        return np.ones(len(counts), dtype=np.int64)
    return np.asarray((counts < track.counts) | (counts == 0), dtype=np.int64)


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
        _set_up(self)
        require_drawable(self.over, WHOLE // ((self.count or 0) + 1))

    form = property(_form)
    epsilon = property(_epsilon)
    slots = property(_slots)
    unit = property(_unit)
    guarantee = property(_guarantee)
    takes_whole = property(_counts_first)
    causal = property(_is_causal)
    bounded_memory = property(_is_causal)

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
        marks = _marks(track, readings)
        counts, _ = landmarks_of(track, marks, self.count)
        parts = WHOLE // (counts + _are_all(track, counts, self))
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
        _set_up(self)
        require_drawable(self.over, WHOLE)

    form = property(_form)
    epsilon = property(_epsilon)
    slots = property(_slots)
    unit = property(_unit)
    guarantee = property(_guarantee)

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
        marks = _marks(track, readings)
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
        _set_up(self)
        _whole_number("length", self.length, 1)
        require(
            (self.count is None) == (self.length is None),
            "count and length: give both, for a stream, or neither, and they are counted",
        )
        require_drawable(self.over, min(self._stated))

    form = property(_form)
    epsilon = property(_epsilon)
    slots = property(_slots)
    unit = property(_unit)
    guarantee = property(_guarantee)
    takes_whole = property(_counts_first)
    causal = property(_is_causal)
    bounded_memory = property(_is_causal)

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
        marks = _marks(track, readings)
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


@dataclass(frozen=True, kw_only=True)
class CountBoundLandmarks:
    """Gives every reading the same part of epsilon, by a bound on the number of landmarks.

    The bound is public (``count``); or it is drawn for each series: its number of landmarks and
    noise for ``count_epsilon``, raised so that it is never too small.

    Guarantees:
        - with ``count``: pure epsilon for any count + 1 readings of a series together, wherever
          they are, so that it does not matter how landmarks were chosen; marks are only counted,
          and what comes out does not depend on them;
        - with ``count_epsilon``: pure epsilon for all landmarks and any one other reading, if they
          were not chosen by looking at the values; and for how many there are, one more or less,
          what ``count_loss`` says.

    >>> from tempriv.mechanisms import Laplace
    >>> scheme = CountBoundLandmarks(over=Laplace(epsilon=1.0, bounds=(0, 5)), count=4)
    >>> scheme.guarantee.unit, round(scheme.errors[0])
    (Readings(count=5, metres=None), 25)
    """

    over: Over
    count: int | None = None
    count_epsilon: float | None = None
    miss: float = 1e-6
    chosen_from_values: bool = False

    accepts_null: ClassVar[bool] = True
    has_status: ClassVar[bool] = False
    horizon: ClassVar[None] = None

    def __post_init__(self) -> None:
        _set_up(self)
        require(
            (self.count is None) != (self.count_epsilon is None),
            "count and count_epsilon: give one of them, a public bound on the number of landmarks "
            "or a budget for drawing one",
        )
        if self.count_epsilon is not None:
            positive("count_epsilon", self.count_epsilon)
            require(
                self.count_epsilon <= 20,
                f"count_epsilon={self.count_epsilon:g}: must be at most 20; such a bound hides "
                "nothing",
            )
        require(
            isinstance(self.miss, (int, float)) and 1e-300 < self.miss < 1,
            f"miss={self.miss}: must be a probability > 0 and < 1, such as 1e-6",
        )
        require_drawable(self.over, WHOLE // (self._least_bound + 1))

    form = property(_form)
    epsilon = property(_epsilon)
    slots = property(_slots)
    takes_whole = property(_counts_first)
    causal = property(_is_causal)
    bounded_memory = property(_is_causal)

    @property
    def margin(self) -> int:
        """How much is added to the number of landmarks beside noise."""
        if self.count_epsilon is None:
            return 0
        return landmark_counts.margin(self.count_epsilon, self.miss)

    @property
    def _least_bound(self) -> int:
        return self.margin if self.count is None else self.count

    @property
    def count_loss(self) -> tuple[float, float] | None:
        """(epsilon, delta) of the bound for one landmark more or less; None of a public one."""
        if self.count_epsilon is None:
            return None
        return self.count_epsilon, landmark_counts.delta(self.count_epsilon, self.margin)

    @property
    def unit(self) -> Unit:
        if self.count is None:
            return _unit(self)
        return Readings(self.count + 1, _metres(self))

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.count is None:
            return _guarantee(self)
        return Guarantee(self.over.guarantee.loss, self.unit)

    @property
    def published(self) -> Published:
        return Published(
            claim="A part epsilon / (|L| + 1) for every timestamp gives (epsilon, L)-landmark "
            "privacy",
            source=f"{SOURCE}, Section 3.2, Uniform",
            holds=True,
            remark="The paper shares by the number of landmarks itself, which the noise then "
            "shows; a bound in its place shows the bound only.",
        )

    @property
    def errors(self) -> tuple[float, ...]:
        return errors_at(self.over, WHOLE // (self._least_bound + 1))

    @property
    def error_name(self) -> str:
        if self.count is not None:
            return str(self.over.error_name)
        return f"{self.over.error_name} in a series without landmarks; with each it grows"

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        marks = _marks(track, readings)
        if self.count is not None:
            if not self.chosen_from_values:
                landmarks_of(track, marks, self.count)
            else:
                # it protects any count + 1 readings, so more marks than that break no promise
                marks = np.zeros_like(marks)
            units = np.full(len(marks), WHOLE // (self.count + 1), dtype=np.int64)
            return spend(self.over, readings, units, marks, draw, track)
        counts, _ = landmarks_of(track, marks, None)
        bounds = self._drawn_bounds(counts, draw, track)
        units = (WHOLE // (bounds + 1))[track.which]
        return spend(self.over, readings, units, marks, draw, track)

    def _drawn_bounds(self, counts: Integers, draw: Draw, track: Track) -> Integers:
        """One for each series, by noise of its first row; a length is public, so is no less."""
        firsts = (np.cumsum(track.counts) - track.counts)[track.counts > 0]
        drawn = np.zeros(len(counts), dtype=np.int64)
        assert self.count_epsilon is not None
        law = landmark_counts.law(self.count_epsilon)
        drawn[track.counts > 0] = draw(law, "count", firsts)
        raised = counts + np.maximum(0, drawn + self.margin)
        return np.asarray(np.minimum(raised, np.maximum(track.counts, 1)))

    start = start


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
        - repeats show some of the landmarks: more of them are repeated with unequal budgets after.

    >>> from tempriv.mechanisms import Laplace
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
        _set_up(self)
        positive("kappa", self.kappa)
        for name in ("increase", "decrease", "least"):
            value = getattr(self, name)
            require(
                isinstance(value, (int, float)) and 2.0**-16 <= value <= 1,
                f"{name}={value}: must be > 0 and at most 1",
            )
        require_drawable(self.over, WHOLE // ((self.count or 0) + 1))

    form = property(_form)
    epsilon = property(_epsilon)
    slots = property(_slots)
    unit = property(_unit)
    guarantee = property(_guarantee)
    takes_whole = property(_counts_first)
    causal = property(_is_causal)
    bounded_memory = property(_is_causal)

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
        first = f"{self.over.error_name} of the first release; later ones have less noise"
        if self.count is not None:
            return first
        return f"{first}; in a series without landmarks, with each it grows"

    def perturb(self, readings: Integers, draw: Draw, track: Track) -> Integers:
        marks = _marks(track, readings)
        counts, later = landmarks_of(track, marks, self.count)
        others = _are_all(track, counts, self)
        return sample_or_repeat(self, readings, marks, counts, later, others, draw, track)

    start = start
