"""The unit of locations: one of them, moved a little."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from tempriv.errors import require
from tempriv.privacy.units.base import Example, Unit, links, power_of_two_below
from tempriv.privacy.units.replacement import Event

if TYPE_CHECKING:
    from tempriv.privacy.units.landmarks import Readings

MAX_GRID_METERS = 512.0  # of the grid on which audits put locations


@dataclass(frozen=True)
class WithinDistance(Unit):
    """One location, moved by at most ``meters`` in the public projection (x and y in meters).

    Parameters:
        meters: the distance up to which two locations must look alike, in meters.

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

    def of_series(self, length: int) -> Readings:
        """All places of a series of that ``length``, each as far from another as is covered."""
        from tempriv.privacy.units.landmarks import Readings

        return Readings(length, self.meters)

    def covers_series(self, length: int | None) -> bool:
        """No ``length`` of a series is covered: places further away are not."""
        return False

    @property
    def width(self) -> int:
        return 1

    @property
    def covered_steps(self) -> int:
        return 1

    @property
    def sentence(self) -> str:
        return f"any single location against any other within {self.meters:g} meters of it"

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        for other in Event().neighbors(example, alphabet):
            if self.are_neighbors(example, other):
                yield other

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return len(changed) <= 1 and all(
            math.dist(example[i], other[i]) <= self.meters for i in changed
        )

    def _factor_to_same(self, to: WithinDistance) -> int:
        return links(to.meters, self.meters)

    @property
    def audit_grid(self) -> float:
        return min(power_of_two_below(self.meters), MAX_GRID_METERS)

    def extreme_rows(self, columns: Sequence[tuple[Any, ...]]) -> tuple[Hashable, ...]:
        """A location and three as far away as can be, whatever the ``columns``."""
        half = self.meters * math.sqrt(0.5) * (1 - 1e-12)
        return ((0.0, 0.0), (self.meters, 0.0), (0.0, self.meters), (half, half))
