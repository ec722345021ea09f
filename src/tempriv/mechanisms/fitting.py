"""Whether a table that was read to its end is one that a mechanism can keep its promise for."""

from __future__ import annotations

import numpy as np

from tempriv import units
from tempriv.errors import DataRefusal, require
from tempriv.guarantees import Guarantee
from tempriv.mechanisms.protocol import Mechanism
from tempriv.reading import Facts
from tempriv.series import Block, Series

FIRST = (0, 1)
"""What a count of readings begins with."""

TELLS = "is published as it is, and would tell what is to be hidden"


def require_long_enough(unit: units.Unit, longest: int) -> None:
    """Rows cannot be moved about within a window that no series fills."""
    if isinstance(unit, units.ORDER):
        name = "block" if isinstance(unit, units.BlockSwap) else "window"
        require(
            longest > unit.span,
            f"the longest series has {longest} reading{'s'[: longest != 1]}, fewer than the "
            f"{name} of {unit.span + 1}: take a smaller {name}",
            DataRefusal,
        )


def hides_times(mechanism: Mechanism) -> bool:
    """Whether times are the secret, so that none may stand beside the values."""
    promise = mechanism.guarantee
    return isinstance(promise, Guarantee) and isinstance(promise.unit, units.TIME)


class TimesTold:
    """Whether the times of a table tell more than how many readings there are.

    Times are published as they are; where they are the secret, only a count may stand there.
    """

    def __init__(self, series: Series):
        self.series, self._from_the_start = series, True

    def see(self, block: Block) -> None:
        """Every series counts from 0 or 1: where it stands on a clock would tell when it was."""
        if block.times is not None:
            begun = (block.starts == 0) & (block.counts > 0)
            first = (np.cumsum(block.counts) - block.counts)[begun]
            self._from_the_start &= bool(np.isin(block.times[first], FIRST).all())

    def refuse(self, facts: Facts) -> None:
        count = facts.clock == "integer" and facts.step in (None, 1) and not facts.filled
        regular = self.series.grid == "regular"
        require(
            self.series.time is None or (count and regular and self._from_the_start),
            f"the time column {self.series.time!r} {TELLS}: leave it out, or give the number of "
            "the reading (0, 1, 2, ...) instead",
            DataRefusal,
        )
