"""What all landmark schemes have: a domain with marks, a unit, and a count of landmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms.base import NOT_PROTECTED, Description, Mechanism, ReportTexts, SeriesState
from tempriv.mechanisms.domains import LARGEST, Integers
from tempriv.mechanisms.landmarks._kernels import CAME, CERTAIN, SLOTS
from tempriv.mechanisms.landmarks.budget import (
    WHOLE,
    Over,
    errors_at,
    require_drawable,
    require_over,
)
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.mechanisms.options import (
    BOUNDS,
    CATEGORIES,
    METERS,
    ORIGIN,
    PER_COLUMN,
    RESOLUTION,
    Option,
    Settings,
    options_of,
)
from tempriv.mechanisms.value.laplace import Laplace
from tempriv.mechanisms.value.planar_laplace import PlanarLaplace
from tempriv.mechanisms.value.randomized_response import RandomizedResponse
from tempriv.privacy.guarantees import Guarantee, NoGuarantee, Pure
from tempriv.privacy.units import Unit, WithinDistance
from tempriv.privacy.units.landmarks import Landmarks

SOURCE = "Katsomallos, Tzompanaki and Kotzinos 2022"

FROM_VALUES = (
    "the landmarks were chosen by looking at the values that are to be protected, so two series "
    "that differ in values may have unlike landmarks; bound their number instead "
    "(CountBoundLandmarks)"
)
COUNT_OPTION = Option(
    flag="--count",
    help="The most landmarks of a series. A stream needs it; otherwise they are counted.",
    type=int,
)
FROM_VALUES_OPTION = Option(
    flag="--landmarks-from-values",
    help="The moments were chosen by looking at the values. Only count-bound-landmarks guarantees "
    "anything then.",
    type=bool,
)
LANDMARKS_OPTION = Option(
    flag="--landmarks",
    help="The column that is 1 at the moments that matter and 0 elsewhere; it is not released. "
    "tempriv landmarks makes one.",
    type=str,
    metavar="COLUMN",
    required=True,
    column=True,
)
# what is done to each value, to some of them, and how more of it is done
DONE = {
    "numbers": (
        "random noise was added to each of them",
        "random noise was added to some of them",
        "with more of it",
    ),
    "categories": (
        "each of them was kept or exchanged at random",
        "some of them were kept or exchanged at random",
        "and more often exchanged",
    ),
    "places": (
        "each of them was moved at random",
        "some of them were moved at random",
        "and farther",
    ),
}
GROWS = (
    "Each landmark of a series adds to that, and with some of them it may be many times as much. "
    "How many there are is not told here; how much neighboring values differ shows about how far "
    "off they are."
)
NAMED = "landmarks (the moments that the owner named)"


@dataclass(frozen=True, kw_only=True)
class LandmarkMechanism(Mechanism):
    """Shares epsilon over the landmarks of a series and any one other reading.

    Noise is that of ``over``, a mechanism for single values, for a part of its epsilon.

    Parameters:
        over: the mechanism for single values, with all of epsilon.
    """

    over: Over

    extra_options = (
        LANDMARKS_OPTION,
        *(BOUNDS, CATEGORIES, ORIGIN, METERS, RESOLUTION, PER_COLUMN),
    )
    equal_noise: ClassVar[bool] = False
    """Whether all readings of a series have the same noise."""
    tells_landmarks: ClassVar[str] = ""
    """What a release shows of the landmarks, as a thing that is not protected."""

    if TYPE_CHECKING:  # fields of most, and of all

        @property
        def count(self) -> int | None:
            """The most landmarks of a series; None counts them."""

        @property
        def chosen_from_values(self) -> bool:
            """Whether the landmarks were chosen by looking at the values."""

    else:
        count = None  # without a bound, where the scheme needs none

    def __post_init__(self) -> None:
        require_over(self.over)
        require(
            isinstance(self.chosen_from_values, (bool, int)) and self.chosen_from_values in (0, 1),
            f"chosen_from_values={self.chosen_from_values}: must be True or False",
        )
        object.__setattr__(self, "chosen_from_values", bool(self.chosen_from_values))
        require_whole("count", self.count, 0)
        self._check_settings()
        require_drawable(self.over, self.least_units)

    def _check_settings(self) -> None:
        """Refuse what cannot be meant, of the fields that a scheme has of its own."""

    @property
    def least_landmarks(self) -> int:
        """How many landmarks a series counts as having, at the least."""
        return self.count or 0

    @property
    def least_units(self) -> int:
        """The least part of epsilon that a reading has in a series with so many landmarks."""
        return WHOLE // (self.least_landmarks + 1)

    @property
    def errors(self) -> tuple[float, ...]:
        return errors_at(self.over, self.least_units)

    @property
    def error_name(self) -> str:
        if self.grows:
            return f"{self.over.error_name} in a series without landmarks; with each it grows"
        return str(self.over.error_name)

    @property
    def domain(self) -> WithLandmarks:
        return WithLandmarks(self.over.domain)

    @property
    def epsilon(self) -> float:
        """All of it, for the landmarks and any one other reading together."""
        return self.over.epsilon

    @property
    def memory_size(self) -> int:
        return self.over.domain.columns + SLOTS

    @property
    def meters(self) -> float | None:
        """Within which places are protected."""
        unit = self.over.unit
        return unit.meters if isinstance(unit, WithinDistance) else None

    @property
    def unit(self) -> Unit:
        """What is protected."""
        return Landmarks(meters=self.meters)

    @property
    def guarantee(self) -> Guarantee | NoGuarantee:
        if self.chosen_from_values:
            return NoGuarantee(FROM_VALUES)
        return Guarantee(self.over.guarantee.loss, self.unit)

    @property
    def takes_whole(self) -> bool:
        """Without a bound on the number of landmarks all of a series must be there to count."""
        return self.count is None

    @property
    def causal(self) -> bool:
        return not self.takes_whole

    @property
    def bounded_memory(self) -> bool:
        return not self.takes_whole

    @property
    def most_landmarks(self) -> int | None:
        return self.count

    def landmarks_so_far(self, memory: Integers) -> int:
        """How many landmarks of a series ``memory`` counts."""
        return int(memory[0, self.over.domain.columns + CAME])

    @property
    def averaging_factor(self) -> float | None:
        return self.over.averaging_factor if self.equal_noise and not self.grows else None

    @property
    def grows(self) -> bool:
        """Whether stated errors are those of a series without landmarks, as none may count them."""
        return self.takes_whole

    @property
    def report_texts(self) -> ReportTexts:
        texts = super().report_texts
        if not self.grows:
            return texts
        return replace(
            texts,
            band="± expected error without landmarks",
            single="one value, without landmarks",
            scope="in a series without landmarks",
            without="landmarks",
            besides=GROWS,
        )

    @property
    def stated_parts(self) -> tuple[int, int]:
        """The most units of a landmark and of another reading, whatever a series is like."""
        return self.least_units, self.least_units

    def most_units(self, landmarks: int, others: int, units: tuple[int, int]) -> tuple[int, int]:
        """The most units of a landmark and of another reading of a series, over all outputs.

        Parameters:
            landmarks: how many the series has.
            others: how many other readings it has.
            units: the most that was spent on either as it ran; fixed parts are that.
        """
        return units

    @property
    def marks_guarantee(self) -> Guarantee | NoGuarantee | None:
        """What is guaranteed for which moments are landmarks; None: it does not look at marks."""
        return NoGuarantee(f"a release shows {self.tells_landmarks}")

    def reading_epsilon(self) -> float | None:
        if not self.equal_noise or self.count is None:
            return None
        loss = self.over.guarantee.loss
        assert isinstance(loss, Pure)
        return WHOLE // (self.count + 1) * (loss.epsilon / WHOLE)

    @property
    def done(self) -> str:
        each, _, _ = DONE[self.value_kind]
        return f"{each}, all in the same way"

    def not_protected(self, about: Description) -> list[str]:
        """What shows of the landmarks too, whatever else a release says ``about`` itself."""
        return [self.tells_landmarks, *NOT_PROTECTED]

    def require_room(self, block: Block, memory: Integers) -> None:
        """Refuse more landmarks than there are parts for, before anything of a block is used.

        Parameters:
            block: readings, with their marks as the last column.
            memory: what is remembered of each of its series.
        """
        marks = (block.values[:, -1] != 0) & ~block.missing[:, :-1].all(axis=1)
        state = SeriesState(block.counts, block.starts, block.missing, memory)
        if self.most_landmarks is not None:
            landmarks_of(state, marks.astype(np.int64), self.count)

    def could_remember(self, memory: Integers, step: int) -> bool:
        """Whether ``memory`` has landmarks that a ``step`` allows, and parts within epsilon."""
        columns, most = self.over.domain.columns, self.most_landmarks
        begun, came, landmarks, others, reserved, rate = memory[columns:].tolist()
        return (
            begun in (0, 1)
            and 0 <= came <= (step if most is None else min(step, most))
            and min(landmarks, others, reserved) >= 0
            and landmarks + others <= WHOLE
            and reserved <= WHOLE
            and 0 <= rate <= CERTAIN
            and bool((np.abs(memory[:columns]) < LARGEST).all())
        )

    @classmethod
    def build(cls, budget: Mapping[str, float], settings: Settings, unit: Unit | None) -> Mechanism:
        """Over the mechanism for single values whose options were given.

        Parameters:
            budget: epsilon.
            settings: what ``settings_from`` gave.
            unit: places within which are protected, of places.
        """
        kinds: dict[str, type[Over]] = {
            "bounds": Laplace,
            "categories": RandomizedResponse,
            "origin": PlanarLaplace,
        }
        named = [name for name in kinds if name in settings]
        require(
            len(named) == 1,
            "give one of [[bounds]], for numbers, [[categories]], or [[origin]] with [[meters]], "
            "for places",
        )
        over = kinds[named[0]]
        single: Callable[..., Over] = over
        scheme: Callable[..., Mechanism] = cls
        require(
            (over is PlanarLaplace) == (unit is not None),
            "[[origin]] and [[meters]] go together, for places",
        )
        known = {field.name for field in fields(over)}
        for name, option in (("grid", "[[grid|resolution]]"), ("per_column", "[[per_column]]")):
            require(name not in settings or name in known, f"{option}: not with [[{named[0]}]]")
        of_single = {name: settings[name] for name in known if name in settings}
        of_single |= {} if unit is None else {"unit": unit}
        own = {name: value for name, value in settings.items() if name not in known}
        return scheme(over=single(**budget, **of_single), **own)

    @classmethod
    def settings_from(cls, given: Settings, columns: int) -> dict[str, object]:
        """The fields of the scheme, and of the mechanism for single values.

        Parameters:
            given: the options by their names, parsed.
            columns: how many value columns there are.
        """
        own = super().settings_from(given, columns)
        over = {
            option.field: given[option.name]
            for kind in (Laplace, RandomizedResponse, PlanarLaplace)
            for option in options_of(kind)
            if option.field is not None and option.name in given
        }
        PlanarLaplace.require_two_columns(given, columns)
        return {**over, **own}

    @classmethod
    def unit_from(cls, given: Settings) -> Unit | None:
        """Within how many meters places are protected, if options ``given`` say so."""
        return PlanarLaplace.unit_from(given)


def require_whole(name: str, value: object, least: int) -> None:
    """Refuse what is no whole number, or too small.

    Parameters:
        name: of the field.
        value: what it holds; None is allowed.
        least: the least that it may be.
    """
    require(
        value is None
        or (isinstance(value, int) and not isinstance(value, bool) and least <= value < WHOLE),
        f"{name}={value}: must be a whole number >= {least}",
    )


def landmarks_of(
    state: SeriesState, marks: Integers, count: int | None
) -> tuple[Integers, Integers]:
    """How many landmarks each series has, or may have; and how many come after each row.

    Parameters:
        state: where the series of the block stand.
        marks: 1 at landmarks.
        count: the most landmarks of a series, if that is given.
    """
    sums = np.concatenate([[0], np.cumsum(marks)])
    ends = np.cumsum(state.counts)
    here = sums[ends] - sums[ends - state.counts]
    before = state.memory[:, state.memory.shape[1] - SLOTS + CAME]
    counts = here if count is None else np.full(len(here), count, dtype=np.int64)
    require(
        bool((before + here <= counts).all()),
        f"a series has more than {count} landmarks, the number that was given: give a greater one",
        DataError,
    )
    so_far = sums[1:] - np.repeat(sums[ends - state.counts], state.counts)
    return counts, np.asarray((counts - before)[state.which] - so_far)


def marks_of(state: SeriesState, readings: Integers) -> Integers:
    """Which rows are landmarks; one without a reading is none: there is nothing to protect.

    Parameters:
        state: where the series of the block stand.
        readings: on the grid, with marks as the last column.
    """
    there = ~state.missing[:, :-1].all(axis=1)
    return np.asarray(readings[:, -1] * there)


def has_others(state: SeriesState, counts: Integers, count: int | None) -> Integers:
    """1 for series that have other readings than landmarks, 0 for those that have none.

    Parameters:
        state: where the series of the block stand.
        counts: how many landmarks each of them has.
        count: the most landmarks of a series, if that is given: then others may yet come.
    """
    if count is not None:
        return np.ones(len(counts), dtype=np.int64)
    return np.asarray((counts < state.counts) | (counts == 0), dtype=np.int64)
