"""What all landmark schemes have: a form with marks, a unit, and a count of landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tempriv.data.series import Block
from tempriv.errors import DataError, require
from tempriv.mechanisms.base import SeriesState
from tempriv.mechanisms.domains import LARGEST, Integers
from tempriv.mechanisms.landmarks._kernels import CAME, CERTAIN, SLOTS
from tempriv.mechanisms.landmarks.budget import WHOLE, most_landmarks, require_over
from tempriv.mechanisms.landmarks.domain import WithLandmarks
from tempriv.privacy.guarantees import Guarantee, NoGuarantee
from tempriv.privacy.units import Unit, WithinDistance
from tempriv.privacy.units.landmarks import Landmarks

SOURCE = "Katsomallos, Tzompanaki and Kotzinos 2022"

FROM_VALUES = (
    "the landmarks were chosen by looking at the values that are to be protected, so two series "
    "that differ in values may have unlike landmarks; bound their number instead "
    "(CountBoundLandmarks)"
)


def whole_number(name: str, value: Any, least: int) -> None:
    require(
        value is None
        or (isinstance(value, int) and not isinstance(value, bool) and least <= value < WHOLE),
        f"{name}={value}: must be a whole number >= {least}",
    )


def complete(scheme: Any) -> None:
    require_over(scheme.over)
    require(
        isinstance(scheme.chosen_from_values, (bool, int)) and scheme.chosen_from_values in (0, 1),
        f"chosen_from_values={scheme.chosen_from_values}: must be True or False",
    )
    object.__setattr__(scheme, "chosen_from_values", bool(scheme.chosen_from_values))
    if hasattr(scheme, "count"):
        whole_number("count", scheme.count, 0)


def form_of(scheme: Any) -> WithLandmarks:
    return WithLandmarks(scheme.over.domain)


def epsilon_of(scheme: Any) -> float:
    epsilon: float = scheme.over.epsilon
    return epsilon


def slots_of(scheme: Any) -> int:
    return int(scheme.over.domain.columns) + SLOTS


def meters_of(scheme: Any) -> float | None:
    unit = scheme.over.unit
    return unit.meters if isinstance(unit, WithinDistance) else None


def unit_of(scheme: Any) -> Unit:
    return Landmarks(meters=meters_of(scheme))


def guarantee_of(scheme: Any) -> Guarantee | NoGuarantee:
    if scheme.chosen_from_values:
        return NoGuarantee(FROM_VALUES)
    return Guarantee(scheme.over.guarantee.loss, scheme.unit)


def counts_first(scheme: Any) -> bool:
    """Without a bound on the number of landmarks all of a series must be there to count them."""
    return scheme.count is None


def is_causal(scheme: Any) -> bool:
    return not scheme.takes_whole


def landmarks_of(
    state: SeriesState, marks: Integers, count: int | None
) -> tuple[Integers, Integers]:
    """How many landmarks each series has, or may have; and how many come after each row."""
    which = state.which
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
    return counts, np.asarray((counts - before)[which] - so_far)


def require_room(scheme: Any, block: Block, memory: Integers) -> None:
    """Refuse more landmarks than there are parts for, before anything of a block is used."""
    marks = (block.values[:, -1] != 0) & ~block.missing[:, :-1].all(axis=1)
    state = SeriesState(block.counts, block.starts, block.missing, memory)
    if most_landmarks(scheme) is not None:
        landmarks_of(state, marks.astype(np.int64), scheme.count)


def could_remember(scheme: Any, memory: Integers, step: int) -> bool:
    """Whether a series can be remembered so; a tampered state must not loosen the guarantee."""
    columns = scheme.over.domain.columns
    begun, came, landmarks, others, reserved, rate = memory[columns:].tolist()
    most = most_landmarks(scheme)
    return (
        begun in (0, 1)
        and 0 <= came <= (step if most is None else min(step, most))
        and min(landmarks, others, reserved) >= 0
        and landmarks + others <= WHOLE
        and reserved <= WHOLE
        and 0 <= rate <= CERTAIN
        and bool((np.abs(memory[:columns]) < LARGEST).all())
    )


def marks_of(state: SeriesState, readings: Integers) -> Integers:
    """A row without a reading is no landmark: there is nothing to protect."""
    there = ~state.missing[:, :-1].all(axis=1)
    return np.asarray(readings[:, -1] * there)


def has_others(state: SeriesState, counts: Integers, scheme: Any) -> Integers:
    """1 for series that have other readings than landmarks, 0 for those that have none."""
    if scheme.count is not None:
        return np.ones(len(counts), dtype=np.int64)
    return np.asarray((counts < state.counts) | (counts == 0), dtype=np.int64)
