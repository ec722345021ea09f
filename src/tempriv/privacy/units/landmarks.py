"""Units of landmarks: a person's significant moments, which they are, or any so many readings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from tempriv.errors import UsageError, require
from tempriv.privacy.units.base import Example, Unit, links, replacements, require_whole
from tempriv.privacy.units.distance import WithinDistance
from tempriv.privacy.units.replacement import Event, Window


class ScatteredUnit(Unit):
    """Readings wherever they are, replaced together; places within ``meters`` if that is set."""

    scattered: ClassVar[bool] = True

    meters: float | None

    def __post_init__(self) -> None:
        require(
            self.meters is None
            or (isinstance(self.meters, (int, float)) and 0 < self.meters < math.inf),
            f"meters={self.meters}: must be a distance > 0, for locations; or None",
        )

    def of_series(self, length: int) -> Unit | None:
        """All readings of a series of that ``length``; places as far from another as is covered."""
        return super().of_series(length) if self.meters is None else Readings(length, self.meters)

    def covers_series(self, length: int | None) -> bool:
        """Whether that ``length`` of a series is covered; places further away never are."""
        return self.meters is None and super().covers_series(length)

    def _within(self, reading: Any, other: Any) -> bool:
        return self.meters is None or math.dist(reading, other) <= self.meters

    def _described(self, readings: str) -> str:
        if self.meters is None:
            return readings
        return f"{readings}, each against places within {self.meters:g} meters"

    @property
    def single(self) -> Unit:
        """One reading, or place, by itself."""
        return Event() if self.meters is None else WithinDistance(self.meters)

    def _consecutive(self, count: int) -> Unit:
        """The unit of so many readings in a row, any of which this unit covers."""
        return Window(count) if self.meters is None else WithinDistance(self.meters)

    def _moves(self, to: ScatteredUnit) -> int | None:
        """How many short moves make a long one; a place may be moved anywhere where no limit is."""
        if self.meters is None:
            return 1
        return None if to.meters is None else links(to.meters, self.meters)


@dataclass(frozen=True)
class Landmarks(ScatteredUnit):
    """All landmarks of a series and any one other reading, replaced together.

    Definition 3 of Katsomallos, Tzompanaki and Kotzinos 2022, read as its Theorem 2 needs it: two
    series are the same outside the landmarks and one further step. Landmarks are the given
    ``steps``; or, without any, the rows that say so themselves: the last item of a row is 1 at a
    landmark and 0 elsewhere, and is the same in both series. Which moments are landmarks is not
    protected. With ``meters``, readings are places that differ by at most so much.

    Parameters:
        steps: the landmarks, counted from the first reading; None: rows say so themselves.
        meters: how far a place may be from another, in meters; None: any reading for any other.

    >>> Landmarks(steps=(0, 2)).are_neighbors((5, 5, 5, 5), (1, 5, 2, 3))
    True
    >>> Landmarks(steps=(0, 2)).are_neighbors((5, 5, 5, 5), (1, 4, 2, 3))
    False
    >>> Landmarks().are_neighbors(((5, 1), (5, 0)), ((4, 1), (3, 0)))
    True
    """

    names_landmarks: ClassVar[bool] = True

    steps: tuple[int, ...] | None = None
    meters: float | None = field(default=None, metadata={"spec_name": "metres"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is None:
            return
        whole = isinstance(self.steps, (list, tuple)) and all(
            isinstance(step, int) and not isinstance(step, bool) and step >= 0
            for step in self.steps
        )
        require(whole, "steps: must be whole numbers >= 0, counted from the first reading")
        object.__setattr__(self, "steps", tuple(sorted(set(self.steps))))

    @property
    def readings(self) -> int:
        """As many as there are landmarks and one; unknown where rows say themselves."""
        if self.steps is None:
            raise UsageError(f"{self!r}: how many readings it covers depends on the series")
        return len(self.steps) + 1

    @property
    def sentence(self) -> str:
        return self._described(
            "all landmarks of a series (moments that its owner named, not by looking at these "
            "values) and any one other reading, together"
        )

    def _is_landmark(self, step: int, row: Any) -> bool:
        return bool(row[-1]) if self.steps is None else step in self.steps

    def _fits(self, row: Any, other: Any) -> bool:
        if self.steps is not None:
            return self._within(row, other)
        return row[-1] == other[-1] and self._within(row[:-1], other[:-1])

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        marked = [i for i, row in enumerate(example) if self._is_landmark(i, row)]
        others = [i for i in range(len(example)) if i not in marked]
        for extra in [[i] for i in others] or [[]]:
            places = sorted(marked + extra)
            choices = [[a for a in alphabet if self._fits(example[i], a)] for i in places]
            yield from replacements(example, places, choices)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        regular = [i for i in changed if not self._is_landmark(i, example[i])]
        return len(regular) <= 1 and all(self._fits(example[i], other[i]) for i in changed)

    def _factor_to_same(self, to: Landmarks) -> int | None:
        moves = self._moves(to)
        if moves is None or (self.steps is None) != (to.steps is None):
            return None
        outside = set(to.steps or ()) - set(self.steps or ())
        return moves * (len(outside) + 1)

    def _factor_from(self, unit: Unit) -> int | None:
        # without steps there may be any number of landmarks
        if self.steps is None:
            return None
        return unit.conversion_factor(Readings(self.readings, self.meters))

    def _factor_to(self, to: Unit) -> int | None:
        return self._consecutive(1).conversion_factor(to)

    def unaligned(self) -> Unit:
        """One reading: releases may have unlike landmarks."""
        return self.single

    @property
    def limit_refusal(self) -> str | None:
        if self.steps is None:
            return None
        return (
            "must be Landmarks() without steps: a limit speaks of the landmarks that releases name"
        )

    def changed_readings(self, length: int) -> int:
        """All readings of a series of that ``length`` may be landmarks."""
        return length

    def replaced_steps(self, landmarks: Sequence[int]) -> list[int]:
        """All ``landmarks`` and the first other reading."""
        regular = [step for step, landmark in enumerate(landmarks) if not landmark]
        return [step for step, landmark in enumerate(landmarks) if landmark] + regular[:1]


@dataclass(frozen=True)
class Readings(ScatteredUnit):
    """Any ``count`` readings of a series, wherever they are, replaced together.

    Parameters:
        count: how many readings, at least 1.
        meters: how far a place may be from another, in meters; None: any reading for any other.

    >>> Readings(2).are_neighbors((5, 5, 5), (1, 5, 2)), Readings(1).are_neighbors((5, 5), (1, 2))
    (True, False)
    """

    count: int
    meters: float | None = field(default=None, metadata={"spec_name": "metres"})

    def __post_init__(self) -> None:
        super().__post_init__()
        require_whole("count", self.count, 1, "readings")

    @property
    def readings(self) -> int:
        return self.count

    @property
    def covered_steps(self) -> int:
        """Each of the readings is one step."""
        return 1

    def over_steps(self, steps: int) -> Unit | None:
        """So many ``steps`` in place of each reading; places may only move within one step."""
        if self.meters is None:
            return replace(self, count=self.count * steps)
        return super().over_steps(steps)

    @property
    def sentence(self) -> str:
        if self.count == 1:
            return self._described("any single reading of a series")
        return self._described(f"any {self.count} readings of a series together, wherever they are")

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for places in itertools.combinations(range(len(example)), min(self.count, len(example))):
            choices = [[a for a in alphabet if self._within(example[i], a)] for i in places]
            yield from replacements(example, places, choices)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return len(changed) <= self.count and all(
            self._within(example[i], other[i]) for i in changed
        )

    def _factor_to_same(self, to: Readings) -> int | None:
        moves = self._moves(to)
        return None if moves is None else -(-to.count // self.count) * moves

    def _factor_from(self, unit: Unit) -> int | None:
        """A chain of single readings always leads from one set of them to another."""
        factor = unit.conversion_factor(self._consecutive(1))
        return None if factor is None else self.count * factor

    def _factor_to(self, to: Unit) -> int | None:
        return self._consecutive(self.count).conversion_factor(to)


@dataclass(frozen=True)
class MarkedMoment(Unit):
    """Whether any one moment of a series is a landmark; all readings are the same.

    The last item of a row is 1 at a landmark and 0 elsewhere, as for ``Landmarks()``.

    >>> MarkedMoment().are_neighbors(((5, 1), (5, 0)), ((5, 0), (5, 0)))
    True
    >>> MarkedMoment().are_neighbors(((5, 1), (5, 0)), ((4, 0), (5, 0)))
    False
    """

    about_marks: ClassVar[bool] = True

    @property
    def readings(self) -> int:
        return 1

    @property
    def width(self) -> int:
        return 1

    @property
    def sentence(self) -> str:
        return "whether any one moment of a series is a landmark"

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for i, row in enumerate(example):
            yield (*example[:i], (*row[:-1], 1 - row[-1]), *example[i + 1 :])

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return len(changed) <= 1 and all(example[i][:-1] == other[i][:-1] for i in changed)
