"""What is protected: executable definitions of who or what may differ between two inputs.

An example input is a tuple of readings in time order (for ``Person``, a tuple of such series).
``neighbors`` enumerates every input that the unit says must look alike; audits run on it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Protocol, runtime_checkable

from tempriv.errors import UsageError, require
from tempriv.privacy.units.landmarks import SCATTERED, Landmarks, Readings, scattered_steps
from tempriv.privacy.units.order import ORDER, BlockSwap, Example, SlotOrigin, Swap
from tempriv.privacy.units.time import TIME, Pace, Timestamps, time_steps

__all__ = [
    "ALL",
    "ORDER",
    "SCATTERED",
    "TIME",
    "Answers",
    "BlockSwap",
    "Contribution",
    "Event",
    "Example",
    "Landmarks",
    "Pace",
    "Person",
    "Readings",
    "SlotOrigin",
    "Swap",
    "Timestamps",
    "Unit",
    "WholeSeries",
    "Window",
    "WithinDistance",
    "conversion_factor",
]


@runtime_checkable
class Unit(Protocol):
    """The relation between two inputs that a guarantee speaks of."""

    @property
    def readings(self) -> int:
        """How many readings at most differ between two neighbors."""

    @property
    def sentence(self) -> str:
        """What is protected, to be read after the word 'protects'."""

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        """Every neighbor of the example whose readings are in the alphabet."""

    def are_neighbors(self, one: Example, other: Example) -> bool:
        """Whether the unit covers the difference between two inputs."""


def _replacements(
    example: Example, places: Sequence[int], alphabet: Sequence[Hashable]
) -> Iterator[Example]:
    """The example with every combination of other values at the given places."""
    for values in itertools.product(alphabet, repeat=len(places)):
        changed = list(example)
        for place, value in zip(places, values, strict=True):
            changed[place] = value
        if tuple(changed) != example:
            yield tuple(changed)


def _differences(one: Example, other: Example) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


@dataclass(frozen=True)
class Event:
    """One reading, replaced by any other value.

    >>> list(Event().neighbors((0, 0), alphabet=(0, 1)))
    [(1, 0), (0, 1)]
    """

    @property
    def readings(self) -> int:
        return 1

    @property
    def sentence(self) -> str:
        return "any single reading of a series"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        return Window(1).neighbors(example, alphabet)

    def are_neighbors(self, one: Example, other: Example) -> bool:
        return Window(1).are_neighbors(one, other)


@dataclass(frozen=True)
class Window:
    """All readings within any ``length`` consecutive steps (w-event privacy), replaced.

    >>> Window(2).are_neighbors((0, 0, 0), (1, 1, 0))
    True
    >>> Window(2).are_neighbors((0, 0, 0), (1, 0, 1))
    False
    """

    length: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.length, int) and self.length >= 1,
            f"window={self.length}: must be a whole number of steps >= 1",
        )

    @property
    def readings(self) -> int:
        return self.length

    @property
    def sentence(self) -> str:
        return f"everything within any {self.length} consecutive time steps of a series"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        width = min(self.length, len(example))
        seen = {example}
        for start in range(len(example) - width + 1):
            for other in _replacements(example, range(start, start + width), alphabet):
                if other not in seen:
                    seen.add(other)
                    yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = _differences(one, other)
        return not changed or changed[-1] - changed[0] < self.length


@dataclass(frozen=True)
class WholeSeries:
    """A whole series of at most ``length`` readings, replaced; its length stays public.

    >>> WholeSeries(3).are_neighbors((0, 0, 0), (1, 1, 1))
    True
    """

    length: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.length, int) and self.length >= 1,
            f"length={self.length}: must be a whole number of readings >= 1",
        )

    @property
    def readings(self) -> int:
        return self.length

    @property
    def sentence(self) -> str:
        return f"a whole series of up to {self.length} readings"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        if len(example) > self.length:
            return iter(())
        return Window(self.length).neighbors(example, alphabet)

    def are_neighbors(self, one: Example, other: Example) -> bool:
        return one == other or len(one) == len(other) <= self.length


@dataclass(frozen=True)
class Person:
    """One person with at most ``max_series`` series: in each of them, what ``each`` covers.

    >>> Person(max_series=2, each=Event()).are_neighbors(((0, 0), (0, 0)), ((1, 0), (0, 1)))
    True
    """

    max_series: int
    each: Event | Window | WholeSeries

    def __post_init__(self) -> None:
        require(
            isinstance(self.max_series, int) and self.max_series >= 1,
            f"max_series={self.max_series}: must be a whole number of series >= 1",
        )
        require(
            isinstance(self.each, (Event, Window, WholeSeries)),
            f"each={self.each!r}: a person is covered by Event, Window or WholeSeries in each "
            "of their series",
        )

    @property
    def readings(self) -> int:
        return self.max_series * self.each.readings

    @property
    def sentence(self) -> str:
        if self.max_series == 1:
            return f"{self.each.sentence}, for a person with one series"
        return f"{self.each.sentence}, in all of one person's series at once (up to " + (
            f"{self.max_series} series)"
        )

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        """The example is one tuple of readings per series of this one person."""
        require(
            len(example) <= self.max_series,
            f"{len(example)} series: this person unit covers at most {self.max_series}",
        )
        choices = [[one, *self.each.neighbors(one, alphabet)] for one in example]
        for other in itertools.product(*choices):
            if other != example:
                yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        return len(one) == len(other) <= self.max_series and all(
            self.each.are_neighbors(a, b) for a, b in zip(one, other, strict=True)
        )


@dataclass(frozen=True)
class Contribution:
    """What one person adds to released counts or sums: there, or not there (central model).

    Within what ``each`` covers, a row changes by at most ``per_step`` (all its columns together),
    and everything by at most ``total``. Counts all change the same way; ``signed`` sums need not.

    >>> Contribution(Window(2)).are_neighbors((5, 3, 4), (6, 4, 4))
    True
    >>> Contribution(Window(2)).are_neighbors((5, 3, 4), (6, 2, 4))
    False
    """

    each: Event | Window | WholeSeries = field(default_factory=Event)
    per_step: float = 1
    total: float | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        require(
            isinstance(self.each, (Event, Window, WholeSeries)),
            f"each={self.each!r}: must be Event, Window or WholeSeries",
        )
        for name, value in (("per_step", self.per_step), ("total", self.total)):
            require(
                (value is None and name == "total")
                or (isinstance(value, (int, float)) and 0 < value < math.inf),
                f"{name}={value}: must be a number > 0, the most that one person adds",
            )
        require(
            self.total is None or self.total >= self.per_step,
            f"total={self.total}: must be at least per_step={self.per_step}",
        )
        require(
            isinstance(self.signed, (bool, int)) and self.signed in (0, 1),
            f"signed={self.signed}: must be True or False",
        )
        # a ledger writes truth values as numbers, so that equal units are one text
        object.__setattr__(self, "signed", bool(self.signed))

    @property
    def readings(self) -> int:
        return self.each.readings

    @property
    def most(self) -> float:
        """How much everything changes together, at most (the L1 norm)."""
        largest = self.per_step * self.each.readings
        if Fraction(largest) < Fraction(self.per_step) * self.each.readings:
            largest = math.nextafter(largest, math.inf)  # a product of floats may be rounded down
        return largest if self.total is None else min(self.total, largest)

    @property
    def square(self) -> Fraction:
        """The same by the square of the L2 norm: few steps, each changed as much as can be."""
        full, rest = divmod(Fraction(self.most), Fraction(self.per_step))
        return full * Fraction(self.per_step) ** 2 + rest**2

    @property
    def sentence(self) -> str:
        where = {
            Event: "at any one time step",
            Window: f"within any {self.readings} consecutive time steps",
            WholeSeries: f"in up to {self.readings} time steps",
        }[type(self.each)]
        limits = f"up to {self.per_step:g} in a step" + (
            "" if self.total is None else f", {self.total:g} in all"
        )
        return f"whether one person's events {where} are counted ({limits})"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        for other in self.each.neighbors(example, alphabet):
            if self.are_neighbors(example, other):
                yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if not self.each.are_neighbors(one, other):
            return False
        changes = [
            [Fraction(y) - Fraction(x) for x, y in zip(_cells(a), _cells(b), strict=True)]
            for a, b in zip(one, other, strict=True)
        ]
        rows = [sum(abs(change) for change in row) for row in changes]
        same_way = len({change > 0 for row in changes for change in row if change}) <= 1
        return (
            max(rows, default=0) <= self.per_step
            and sum(rows) <= self.most
            and (self.signed or same_way)
        )


def _cells(row: Any) -> tuple[Any, ...]:
    return row if isinstance(row, tuple) else (row,)


@dataclass(frozen=True)
class Answers:
    """At most ``distinct`` different answers over any number of reports, each replaced by another.

    Two series are neighbors if they change, and come back to an earlier answer, at the same steps:
    when that happens is not protected. One answer is an answer that never changes.

    >>> Answers(1).are_neighbors((0, 0, 0), (1, 1, 1)), Answers(1).are_neighbors((0, 0), (0, 1))
    (True, False)
    >>> list(Answers(2).neighbors((0, 1, 0), alphabet=(0, 1)))
    [(1, 0, 1)]
    """

    distinct: int = 1

    def __post_init__(self) -> None:
        require(
            isinstance(self.distinct, int) and self.distinct >= 1,
            f"distinct={self.distinct}: must be a whole number of answers >= 1",
        )

    @property
    def readings(self) -> int:
        """Any number, so this unit is neither reached by chaining others nor leads to them."""
        raise UsageError(f"{self!r}: a guarantee for it cannot be restated for other units")

    @property
    def sentence(self) -> str:
        if self.distinct == 1:
            return "an answer that stays the same, over any number of reports"
        return (
            f"up to {self.distinct} different answers, over any number of reports, but not when "
            "they change"
        )

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        pattern = _pattern(example)
        known = len(set(pattern))
        if known > self.distinct:
            return
        for answers in itertools.permutations(alphabet, known):
            other = tuple(answers[number] for number in pattern)
            if other != example:
                yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        return _pattern(one) == _pattern(other) and len(set(one)) <= self.distinct


def _pattern(example: Example) -> list[int]:
    """Which steps have the same answer: answers by the order in which they first appear."""
    seen: dict[Any, int] = {}
    return [seen.setdefault(answer, len(seen)) for answer in example]


@dataclass(frozen=True)
class WithinDistance:
    """One location, moved by at most ``meters`` in the public projection (x and y in meters).

    >>> WithinDistance(5.0).are_neighbors(((0.0, 0.0),), ((3.0, 4.0),))
    True
    """

    spec_name: ClassVar[str] = "Near"

    meters: float = field(metadata={"spec_name": "metres"})

    def __post_init__(self) -> None:
        require(
            isinstance(self.meters, (int, float)) and 0 < self.meters < math.inf,
            f"meters={self.meters}: must be a distance > 0",
        )

    @property
    def readings(self) -> int:
        return 1

    @property
    def sentence(self) -> str:
        return f"any single location against any other within {self.meters:g} meters of it"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        for other in Event().neighbors(example, alphabet):
            if self.are_neighbors(example, other):
                yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = _differences(one, other)
        return not changed or (
            len(changed) == 1 and math.dist(one[changed[0]], other[changed[0]]) <= self.meters
        )


ALL: tuple[type, ...] = (
    *(Event, Window, WholeSeries, Person, Contribution, Answers, WithinDistance),
    *ORDER,
    *TIME,
    *SCATTERED,
)


def conversion_factor(have: Unit, want: Unit) -> int | None:
    """How many times neighbors by ``have`` must be chained to reach any neighbor by ``want``.

    None when no chain does, so that what cannot be converted is refused and never ignored.

    >>> conversion_factor(Event(), Window(24)), conversion_factor(Window(24), Event())
    (24, 1)
    >>> conversion_factor(WithinDistance(100.0), Event()) is None
    True
    """
    if isinstance(have, TIME) or isinstance(want, TIME):
        return time_steps(have, want)
    if isinstance(have, Answers) and isinstance(want, Answers):
        return 1 if have.distinct >= want.distinct else None
    if isinstance(have, Answers) or isinstance(want, Answers):
        return None  # any number of readings change, and all of them at once
    if isinstance(want, Person):
        if isinstance(have, Person) and have.max_series >= want.max_series:
            return conversion_factor(have.each, want.each)
        one = conversion_factor(have.each if isinstance(have, Person) else have, want.each)
        return None if one is None else one * want.max_series
    if isinstance(have, Person):
        return conversion_factor(have.each, want)
    if isinstance(have, SCATTERED) or isinstance(want, SCATTERED):
        return scattered_steps(have, want, conversion_factor, _in_a_row)
    if isinstance(want, (Swap, BlockSwap, SlotOrigin)):
        return _steps_to_order(have, want)
    if isinstance(have, ORDER):
        return None  # a value may be replaced by one that is nowhere near
    if isinstance(want, Contribution):
        return _steps_to_contribution(have, want)
    if isinstance(have, Contribution):
        return None  # a reading may be replaced by any other, a count only by a near one
    if isinstance(have, WithinDistance):
        if not isinstance(want, WithinDistance):
            return None
        return math.ceil(Fraction(want.meters) / Fraction(have.meters))
    if isinstance(want, WithinDistance):
        return 1
    # whole series are taken for the windows they hold: true however the guarantee was come by
    return math.ceil(want.readings / have.readings)


def _in_a_row(count: int, meters: float | None) -> Unit:
    return Window(count) if meters is None else WithinDistance(meters)


def _steps_to_contribution(have: Unit, want: Contribution) -> int | None:
    """A reading that may be replaced by any other covers whatever a person adds to it."""
    if isinstance(have, WithinDistance):
        return None
    if not isinstance(have, Contribution):
        return conversion_factor(have, want.each)
    # what is added can be dealt out evenly over so many parts, in whole grid steps too
    reached = min(want.most, want.per_step * have.readings)
    links = max(
        math.ceil(Fraction(want.per_step) / Fraction(have.per_step)),
        math.ceil(Fraction(reached) / Fraction(have.most)),
    ) * (conversion_factor(have.each, want.each) or 0)
    # what goes up and what goes down are two links where the guarantee is for one way only
    return links * (2 if want.signed and not have.signed else 1)


def _steps_to_order(have: Unit, want: Swap | BlockSwap | SlotOrigin) -> int | None:
    """Two readings that trade places are two readings replaced (Theorem 2.3 of Ye et al. 2021).

    A guarantee for one output row by itself never becomes one for the whole output.
    """
    if isinstance(have, SlotOrigin):
        covered = isinstance(want, SlotOrigin) and want.window <= have.window
        return 1 if covered else None
    if isinstance(have, BlockSwap):
        # no chain of swaps leaves a block
        return 1 if isinstance(want, BlockSwap) and have.covers(want) else None
    if isinstance(have, Swap):
        # there by short swaps, and back again for what was carried along
        return 2 * -(-want.span // have.span) - 1
    if isinstance(have, (Event, Window, WholeSeries)):
        return 1 if have.readings > want.span else 2
    return None
