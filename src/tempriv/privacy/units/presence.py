"""The unit of statistics of people: a record of the table is there, or not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.errors import UsageError, require
from tempriv.privacy.units.base import Example, Relation, Unit
from tempriv.privacy.units.replacement import Replacement

RECORDS = {
    "person": "whether one person is in the table, with all of their rows",
    "day": "whether what one person did within one calendar day is in the table",
    "reading": "whether one row is in the table",
}


@dataclass(frozen=True)
class Presence(Unit):
    """One record of a table, added or removed: a person, a person's day, or a single reading.

    An example input is a table: a tuple of records, each as it is.

    Parameters:
        record: ``person`` (all of their rows), ``day`` (all rows of one person within one calendar
            day) or ``reading`` (one row).

    >>> Presence().are_neighbors(("a", "b"), ("a", "b", "c"))
    True
    >>> Presence().are_neighbors(("a", "b"), ("a", "c"))
    False
    """

    relation: ClassVar[Relation] = "add-or-remove-one"
    beyond: ClassVar[str] = "each record is protected by itself, so it grows with their number"

    record: str = "person"

    def __post_init__(self) -> None:
        require(
            self.record in RECORDS,
            f"record={self.record!r}: must be one of {', '.join(RECORDS)}",
        )

    @property
    def readings(self) -> int:
        """Any number, so this unit is not reached by chaining others."""
        raise UsageError(f"{self!r}: a guarantee for readings cannot be restated for it")

    @property
    def sentence(self) -> str:
        return RECORDS[self.record]

    @property
    def within_one_series(self) -> bool:
        return False

    def of_series(self, length: int) -> Presence:
        """All that one person has in the table, whatever its ``length``."""
        return Presence()

    def of_person(self, length: int) -> Presence:
        """The same, whatever its ``length``."""
        return Presence()

    def covers_series(self, length: int | None) -> bool:
        """Whether a record is a whole person, whose series of any ``length`` are in it."""
        return self.record == "person"

    def neighbors(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        """Every table with one record of the example less, or one of the alphabet more.

        Parameters:
            example: the records of a table.
            alphabet: the records that may be added.
        """
        seen = {example}
        for other in self._candidates(example, alphabet):
            if other not in seen:
                seen.add(other)
                yield other

    def are_neighbors(self, example: Example, other: Example) -> bool:
        """Whether one of two tables, ``example`` and ``other``, has one record more."""
        short, long = sorted((example, other), key=len)
        return len(long) == len(short) + 1 and any(
            long[:i] + long[i + 1 :] == short for i in range(len(long))
        )

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for i in range(len(example)):
            yield example[:i] + example[i + 1 :]
        for i in range(len(example) + 1):
            for record in alphabet:
                yield (*example[:i], record, *example[i:])

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        """Tables of one length never are neighbors; ``are_neighbors`` compares the others."""
        return False

    def _factor_to(self, to: Unit) -> int | None:
        """Whatever changes of a record: it is taken out, and put in as it is then."""
        if to.single_rows or self.record == "day":
            return None
        if self.record == "reading":
            return 2 * to.readings if isinstance(to, Replacement) else None
        whole = to.counts_people and to.covered_steps is None
        return 1 if whole else 2

    def _factor_from(self, unit: Unit) -> None:
        """None: others speak of tables with as many rows."""
