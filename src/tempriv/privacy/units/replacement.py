"""Units of consecutive readings that are replaced: an event, a window, a series, a person."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tempriv.errors import require
from tempriv.privacy.units.base import (
    ChangeLimits,
    Example,
    Unit,
    replacements,
    require_whole,
)


class Replacement(Unit):
    """So many consecutive readings of one series, each replaced by any other value."""

    @property
    def width(self) -> int:
        return self.readings

    @property
    def during(self) -> str:
        """The steps that are covered, to be read after what happens there."""
        return f"within any {self.readings} consecutive time steps"

    @property
    def covered_steps(self) -> int | None:
        return self.readings

    def over_steps(self, steps: int) -> Replacement:
        """As many consecutive ``steps``, each replaced; itself where steps do not measure it."""
        return self if steps == self.covered_steps else Window(steps)

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        width = min(self.readings, len(example))
        for start in range(len(example) - width + 1):
            yield from replacements(example, range(start, start + width), [alphabet] * width)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return not changed or changed[-1] - changed[0] < self.readings

    def _factor_to_same(self, to: Replacement) -> int | None:
        return self._factor_to(to)

    def _factor_to(self, to: Unit) -> int | None:
        """Windows that hold all that differs, or one for each reading that does.

        Whole series are taken for the windows they hold: true however the guarantee was come by.
        Two readings exchanged are two readings replaced (Theorem 2.3 of Ye et al. 2021).
        """
        if to.about_times:
            return None  # tables publish times as they are
        if to.width is None:
            return to.readings
        return min(math.ceil(to.width / self.readings), to.readings)

    def change_limits(self, steps: int, bounds: tuple[float, float]) -> ChangeLimits:
        """Any reading becomes any other within the ``bounds``, at each of the ``steps``."""
        low, high = bounds
        require(
            math.isfinite(high - low) and low < high,
            f"bounds={low:g} {high:g}: must be two finite numbers, the lower first",
        )
        return ChangeLimits(high - low, Fraction(high - low) * steps, True)


@dataclass(frozen=True)
class Event(Replacement):
    """One reading, replaced by any other value.

    >>> list(Event().neighbors((0, 0), alphabet=(0, 1)))
    [(1, 0), (0, 1)]
    """

    @property
    def readings(self) -> int:
        return 1

    @property
    def during(self) -> str:
        return "at any one time step"

    @property
    def sentence(self) -> str:
        return "any single reading of a series"


@dataclass(frozen=True)
class Window(Replacement):
    """All readings within any ``length`` consecutive steps (w-event privacy), replaced.

    Parameters:
        length: how many consecutive steps, at least 1.

    >>> Window(2).are_neighbors((0, 0, 0), (1, 1, 0))
    True
    >>> Window(2).are_neighbors((0, 0, 0), (1, 0, 1))
    False
    """

    length: int

    def __post_init__(self) -> None:
        require_whole("window", self.length, 1, "steps")

    @property
    def readings(self) -> int:
        return self.length

    @property
    def sentence(self) -> str:
        return f"everything within any {self.length} consecutive time steps of a series"


@dataclass(frozen=True)
class WholeSeries(Replacement):
    """A whole series of at most ``length`` readings, replaced; its length stays public.

    Parameters:
        length: the most readings that a series may have, at least 1.

    >>> WholeSeries(3).are_neighbors((0, 0, 0), (1, 1, 1))
    True
    """

    length: int

    def __post_init__(self) -> None:
        require_whole("length", self.length, 1, "readings")

    @property
    def readings(self) -> int:
        return self.length

    @property
    def during(self) -> str:
        return f"in up to {self.length} time steps"

    @property
    def sentence(self) -> str:
        return f"a whole series of up to {self.length} readings"

    @property
    def covered_steps(self) -> None:
        """A series is replaced whole, whatever its steps are."""

    @property
    def reach(self) -> None:
        """Any: releases of one series add up whatever the time between them."""

    @property
    def max_length(self) -> int:
        return self.length

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        return iter(()) if len(example) > self.length else super()._candidates(example, alphabet)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return not changed or len(example) <= self.length


class PerPerson(Unit):
    """What one person changes: in each series, what ``each`` covers."""

    each: Replacement

    @property
    def reach(self) -> int | None:
        return self.each.reach

    @property
    def covered_steps(self) -> int | None:
        return self.each.covered_steps

    def over_steps(self, steps: int) -> Unit:
        """One person, of whom each series changes over so many ``steps``."""
        return self._with_each(self.each.over_steps(steps))

    @abc.abstractmethod
    def _with_each(self, each: Replacement) -> Unit:
        """The same person, of whom something else is covered in each series."""

    @property
    def max_length(self) -> int | None:
        return self.each.max_length

    @property
    def per_series(self) -> Replacement:
        return self.each


@dataclass(frozen=True)
class Person(PerPerson):
    """One person with at most ``max_series`` series: in each of them, what ``each`` covers.

    Parameters:
        max_series: the most series that one person has, at least 1.
        each: what is covered in each of them: ``Event``, ``Window`` or ``WholeSeries``.

    >>> Person(max_series=2, each=Event()).are_neighbors(((0, 0), (0, 0)), ((1, 0), (0, 1)))
    True
    """

    max_series: int
    each: Replacement

    def __post_init__(self) -> None:
        require_whole("max_series", self.max_series, 1, "series")
        require(
            isinstance(self.each, Replacement),
            f"each={self.each!r}: a person is covered by Event, Window or WholeSeries in each "
            "of their series",
        )

    def _with_each(self, each: Replacement) -> Person:
        return replace(self, each=each)

    def of_person(self, length: int) -> Person:
        """All series of a person, each of that ``length``."""
        return replace(self, each=WholeSeries(length))

    @property
    def readings(self) -> int:
        return self.max_series * self.each.readings

    @property
    def sentence(self) -> str:
        if self.max_series == 1:
            return f"{self.each.sentence}, for a person with one series"
        return (
            f"{self.each.sentence}, in all of one person's series at once (up to "
            f"{self.max_series} series)"
        )

    @property
    def positions_per_person(self) -> int:
        return self.max_series

    @property
    def within_one_series(self) -> bool:
        return self.max_series == 1

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        require(
            len(example) <= self.max_series,
            f"{len(example)} series: this person unit covers at most {self.max_series}",
        )
        return itertools.product(
            *([series, *self.each.neighbors(series, alphabet)] for series in example)
        )

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return len(example) <= self.max_series and all(
            self.each.are_neighbors(example[i], other[i]) for i in changed
        )

    def _factor_to_same(self, to: Person) -> int | None:
        factor = self.each.conversion_factor(to.each)
        if factor is None or self.max_series >= to.max_series:
            return factor
        return factor * to.max_series

    def _factor_to(self, to: Unit) -> int | None:
        return self.each.conversion_factor(to)

    def _factor_from(self, unit: Unit) -> int | None:
        factor = unit.conversion_factor(self.each)
        return None if factor is None else factor * self.max_series

    def change_limits(self, steps: int, bounds: tuple[float, float]) -> ChangeLimits:
        """As in one series: ``steps`` of it change, within the ``bounds``."""
        return self.each.change_limits(steps, bounds)

    def changed_readings(self, length: int) -> int:
        """As many as change in one series of that ``length``."""
        return self.each.changed_readings(length)

    def series_of(self, example: Example) -> tuple[Example, ...]:
        """The ``example`` is the tuple of a person's series."""
        return example

    def example_of(self, series: Sequence[Example]) -> Example:
        """All ``series`` of a person side by side."""
        return tuple(series)
