"""The unit of answers that people give again and again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tempriv.errors import UsageError
from tempriv.privacy.units.base import Example, Unit, require_whole


@dataclass(frozen=True)
class Answers(Unit):
    """At most ``distinct`` different answers over any number of reports, each replaced by another.

    Two series are neighbors if they change, and come back to an earlier answer, at the same steps:
    when that happens is not protected. One answer is an answer that never changes.

    Parameters:
        distinct: the most different answers that one person gives, at least 1.

    >>> Answers(1).are_neighbors((0, 0, 0), (1, 1, 1)), Answers(1).are_neighbors((0, 0), (0, 1))
    (True, False)
    >>> list(Answers(2).neighbors((0, 1, 0), alphabet=(0, 1)))
    [(1, 0, 1)]
    """

    beyond: ClassVar[str] = "when an answer changes is not protected"

    distinct: int = 1

    def __post_init__(self) -> None:
        require_whole("distinct", self.distinct, 1, "answers")

    @property
    def readings(self) -> int:
        """Any number, so this unit is neither reached by chaining others nor leads to them."""
        raise UsageError(f"{self!r}: a guarantee for it cannot be restated for other units")

    def of_series(self, length: int) -> None:
        """None for any ``length``: when an answer changes is not protected."""

    @property
    def sentence(self) -> str:
        if self.distinct == 1:
            return "an answer that stays the same, over any number of reports"
        return (
            f"up to {self.distinct} different answers, over any number of reports, but not when "
            "they change"
        )

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        pattern = _pattern(example)
        answers = len(set(pattern))
        if answers <= self.distinct:
            for others in itertools.permutations(alphabet, answers):
                yield tuple(others[number] for number in pattern)

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return _pattern(example) == _pattern(other) and len(set(example)) <= self.distinct

    def _factor_to_same(self, to: Answers) -> int | None:
        return 1 if self.distinct >= to.distinct else None

    def _factor_from(self, unit: Unit) -> None:
        """None: any number of readings change, and all of them at once."""

    def changed_readings(self, length: int) -> int:
        """All readings of a series of that ``length``."""
        return length


def _pattern(example: Example) -> list[int]:
    """Which steps have the same answer: answers by the order in which they first appear."""
    numbers: dict[Any, int] = {}
    return [numbers.setdefault(answer, len(numbers)) for answer in example]
