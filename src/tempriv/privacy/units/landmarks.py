"""Units of scattered readings: a person's significant moments, or any so many readings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tempriv.errors import UsageError, require
from tempriv.privacy.units.order import Example


def _distance(meters: Any) -> None:
    require(
        meters is None or (isinstance(meters, (int, float)) and 0 < meters < math.inf),
        f"meters={meters}: must be a distance > 0, for locations; or None",
    )


def _within(one: Any, other: Any, meters: float | None) -> bool:
    return meters is None or math.dist(one, other) <= meters


def _replaced(
    example: Example, places: Sequence[int], choices: Sequence[Sequence[Any]]
) -> Iterator[Example]:
    for rows in itertools.product(*choices):
        changed = list(example)
        for place, row in zip(places, rows, strict=True):
            changed[place] = row
        yield tuple(changed)


def _near(of: str, meters: float | None) -> str:
    return of if meters is None else f"{of}, each against places within {meters:g} meters"


@dataclass(frozen=True)
class Landmarks:
    """All landmarks of a series and any one other reading, replaced together.

    Definition 3 of Katsomallos, Tzompanaki and Kotzinos 2022, read as its Theorem 2 needs it: two
    series are the same outside the landmarks and one further step. Landmarks are the given
    ``steps``; or, without any, the rows that say so themselves: the last item of a row is 1 at a
    landmark and 0 elsewhere, and is the same in both series. Which moments are landmarks is not
    protected. With ``meters``, readings are places that differ by at most so much.

    >>> Landmarks(steps=(0, 2)).are_neighbors((5, 5, 5, 5), (1, 5, 2, 3))
    True
    >>> Landmarks(steps=(0, 2)).are_neighbors((5, 5, 5, 5), (1, 4, 2, 3))
    False
    >>> Landmarks().are_neighbors(((5, 1), (5, 0)), ((4, 1), (3, 0)))
    True
    """

    steps: tuple[int, ...] | None = None
    meters: float | None = field(default=None, metadata={"spec_name": "metres"})

    def __post_init__(self) -> None:
        _distance(self.meters)
        if self.steps is None:
            return
        known = isinstance(self.steps, (list, tuple)) and all(
            isinstance(step, int) and not isinstance(step, bool) and step >= 0
            for step in self.steps
        )
        require(known, "steps: must be whole numbers >= 0, counted from the first reading")
        object.__setattr__(self, "steps", tuple(sorted(set(self.steps))))

    @property
    def readings(self) -> int:
        """As many as there are landmarks and one; unknown where rows say themselves."""
        if self.steps is None:
            raise UsageError(f"{self!r}: how many readings it covers depends on the series")
        return len(self.steps) + 1

    @property
    def sentence(self) -> str:
        what = "all landmarks of a series (moments that its owner named, not by looking at these "
        return _near(what + "values) and any one other reading, together", self.meters)

    def _is_landmark(self, step: int, row: Any) -> bool:
        return bool(row[-1]) if self.steps is None else step in self.steps

    def _value(self, row: Any) -> Any:
        return row[:-1] if self.steps is None else row

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        marked = [i for i, row in enumerate(example) if self._is_landmark(i, row)]
        others = [i for i in range(len(example)) if i not in marked]
        seen = {example}
        for extra in [[i] for i in others] or [[]]:
            places = sorted(marked + extra)
            choices = [[a for a in alphabet if self._fits(example[i], a)] for i in places]
            for other in _replaced(example, places, choices):
                if other not in seen:
                    seen.add(other)
                    yield other

    def _fits(self, row: Any, other: Any) -> bool:
        same_mark = self.steps is not None or row[-1] == other[-1]
        return same_mark and _within(self._value(row), self._value(other), self.meters)

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        regular = [i for i in changed if not self._is_landmark(i, one[i])]
        return len(regular) <= 1 and all(self._fits(one[i], other[i]) for i in changed)


@dataclass(frozen=True)
class Readings:
    """Any ``count`` readings of a series, wherever they are, replaced together.

    >>> Readings(2).are_neighbors((5, 5, 5), (1, 5, 2)), Readings(1).are_neighbors((5, 5), (1, 2))
    (True, False)
    """

    count: int
    meters: float | None = field(default=None, metadata={"spec_name": "metres"})

    def __post_init__(self) -> None:
        _distance(self.meters)
        require(
            isinstance(self.count, int) and not isinstance(self.count, bool) and self.count >= 1,
            f"count={self.count}: must be a whole number of readings >= 1",
        )

    @property
    def readings(self) -> int:
        return self.count

    @property
    def sentence(self) -> str:
        many = f"any {self.count} readings of a series together, wherever they are"
        return _near("any single reading of a series" if self.count == 1 else many, self.meters)

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        seen = {example}
        for places in itertools.combinations(range(len(example)), min(self.count, len(example))):
            choices = [[a for a in alphabet if _within(example[i], a, self.meters)] for i in places]
            for other in _replaced(example, places, choices):
                if other not in seen:
                    seen.add(other)
                    yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = [(a, b) for a, b in zip(one, other, strict=True) if a != b]
        return len(changed) <= self.count and all(_within(a, b, self.meters) for a, b in changed)


SCATTERED = (Landmarks, Readings)


def scattered_steps(
    have: Any,
    want: Any,
    steps: Callable[[Any, Any], int | None],
    plain: Callable[[int, float | None], Any],
) -> int | None:
    """How often neighbors by ``have`` must be chained to reach any by ``want``; one is scattered.

    ``steps`` counts chains of any units, and ``plain(count, meters)`` is the unit of so many
    readings in a row. A chain of single readings always leads from one set of them to another.
    """
    if isinstance(want, Landmarks) and not isinstance(have, Landmarks):
        # without steps there may be any number of landmarks
        many = None if want.steps is None else Readings(want.readings, want.meters)
        return None if many is None else steps(have, many)
    if isinstance(want, Landmarks):
        return _among_landmarks(have, want)
    if isinstance(want, Readings):
        if isinstance(have, Readings):
            closer = _closer(have.meters, want.meters)
            return None if closer is None else -(-want.count // have.count) * closer
        one = steps(have, plain(1, want.meters))
        return None if one is None else want.count * one
    return steps(plain(have.count if isinstance(have, Readings) else 1, have.meters), want)


def _among_landmarks(have: Landmarks, want: Landmarks) -> int | None:
    closer = _closer(have.meters, want.meters)
    if closer is None or (have.steps is None) != (want.steps is None):
        return None
    outside = set(want.steps or ()) - set(have.steps or ())
    return closer * (len(outside) + 1 if outside else 1)


def _closer(have: float | None, want: float | None) -> int | None:
    """How many short moves make a long one; a place may be moved anywhere where no limit is."""
    if have is None:
        return 1
    return None if want is None else math.ceil(Fraction(want) / Fraction(have))
