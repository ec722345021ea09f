"""The unit of counts and sums: what one person adds to them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from tempriv.errors import require
from tempriv.privacy.units.base import ChangeLimits, Example, Relation, cells, links
from tempriv.privacy.units.replacement import Event, PerPerson, Replacement, WholeSeries


@dataclass(frozen=True)
class Contribution(PerPerson):
    """What one person adds to released counts or sums: there, or not there (central model).

    Within what ``each`` covers, a row changes by at most ``per_step`` (all its columns together),
    and everything by at most ``total``. Counts all change the same way; ``signed`` sums need not.

    Parameters:
        each: the steps that one person changes: ``Event``, ``Window`` or ``WholeSeries``.
        per_step: the most that one person adds at one step.
        total: the most that one person adds at all these steps; None: no further limit.
        signed: whether a person may add at one step and take away at another.

    >>> from tempriv.privacy.units import Window
    >>> Contribution(Window(2)).are_neighbors((5, 3, 4), (6, 4, 4))
    True
    >>> Contribution(Window(2)).are_neighbors((5, 3, 4), (6, 2, 4))
    False
    """

    relation: ClassVar[Relation] = "add-or-remove-one"
    counts_people: ClassVar[bool] = True

    each: Replacement = field(default_factory=Event)
    per_step: float = 1
    total: float | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        require(
            isinstance(self.each, Replacement),
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

    def _with_each(self, each: Replacement) -> Contribution:
        return replace(self, each=each)

    @property
    def readings(self) -> int:
        return self.each.readings

    def of_series(self, length: int) -> Contribution:
        """All that one person adds in so many steps, the ``length``."""
        if self.max_length is not None:
            return self
        return replace(self, each=WholeSeries(length), total=None)

    def of_person(self, length: int) -> Contribution:
        """The same: counts are of people, so a series of that ``length`` holds all of them."""
        return self.of_series(length)

    @property
    def limited_across_steps(self) -> bool:
        """Whether what a person adds at one step can keep others of theirs from being counted."""
        return self.total is not None and (
            Fraction(self.total) < Fraction(self.per_step) * self.each.readings
        )

    @property
    def links_when_cut(self) -> int:
        """Two: one category of a step loses what another gains, up to ``per_step`` each.

        Where the limit reaches across steps, conversion has counted both links already.
        """
        return 1 if self.limited_across_steps else 2

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
        limits = f"up to {self.per_step:g} in a step" + (
            "" if self.total is None else f", {self.total:g} in all"
        )
        return f"whether one person's events {self.each.during} are counted ({limits})"

    @property
    def width(self) -> int:
        return self.each.width

    @property
    def within_one_series(self) -> bool:
        return False

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for other in self.each.neighbors(example, alphabet):
            if self.are_neighbors(example, other):
                yield other

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        if not self.each._covers(example, other, changed):
            return False
        changes = [
            [
                Fraction(y) - Fraction(x)
                for x, y in zip(cells(example[i]), cells(other[i]), strict=True)
            ]
            for i in changed
        ]
        rows = [sum(abs(change) for change in row) for row in changes]
        same_way = len({change > 0 for row in changes for change in row if change}) <= 1
        return (
            max(rows, default=0) <= self.per_step
            and sum(rows) <= self.most
            and (self.signed or same_way)
        )

    def _factor_to_same(self, to: Contribution) -> int:
        if self == to:
            return 1
        # what is added can be dealt out evenly over so many parts, in whole grid steps too
        reached = min(to.most, to.per_step * self.readings)
        parts = max(links(to.per_step, self.per_step), links(reached, self.most))
        if self.limited_across_steps and not isinstance(to.each, WholeSeries):
            # without some of a person's events others of theirs are counted, at other steps
            parts = max(parts, 2)
        # what goes up and what goes down are two links where the guarantee is for one way only
        ways = 2 if to.signed and not self.signed else 1
        return parts * (self.each.conversion_factor(to.each) or 0) * ways

    def change_limits(self, steps: int, bounds: tuple[float, float]) -> ChangeLimits:
        """What one person adds at so many ``steps``, whatever the ``bounds`` of a count."""
        largest = Fraction(self.per_step) * steps
        total = largest if self.total is None else min(Fraction(self.total), largest)
        return ChangeLimits(self.per_step, total, self.signed)

    def extreme_rows(self, columns: Sequence[tuple[Any, ...]]) -> tuple[Hashable, ...]:
        """A count, at its threshold if the ``columns`` have one, and one person more or less."""
        points = []
        for low, high, *threshold in columns:
            at = threshold[0] if threshold else low
            near = (at, at + self.per_step, at - self.per_step)
            points.append(tuple(x for x in near if low <= x <= high))
        if len(points) == 1:
            return points[0]
        # a person adds to few of the columns
        rows = [tuple(column[0] for column in points)]
        for i, column in enumerate(points):
            rows += [(*rows[0][:i], point, *rows[0][i + 1 :]) for point in column[1:]]
        return tuple(rows)
