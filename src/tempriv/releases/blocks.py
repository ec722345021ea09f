"""Blocks cut as a mechanism can take them: no series in pieces, or not too many at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tempriv.data.grid import TableSummary
from tempriv.data.series import Block, SeriesTable, joined
from tempriv.errors import DataError, require
from tempriv.mechanisms.base import Mechanism
from tempriv.privacy import units
from tempriv.privacy.guarantees import Guarantee

MAX_REMEMBERED_NUMBERS = 1 << 22
"""How many numbers may be remembered at a time, of the series of a block together."""


def whole_series(blocks: Iterable[Block]) -> Iterator[Block]:
    """No series cut between two blocks, for mechanisms that need all of it."""
    held: list[Block] = []
    for block in blocks:
        if not block.ids:
            continue
        name, width = block.ids[0], block.values.shape[1]
        goes_on = bool(held) and held[0].ids[0] == name
        if held and not goes_on:
            yield joined(held, held[0].ids[0], width)
            held = []
        first, last = (1 if goes_on else 0), len(block.ids) - 1
        if goes_on:
            held.append(block.part(0, 1))
            if last > 0:
                yield joined(held, name, width)
                held = []
        if last > first:
            yield block.part(first, last)
        if last >= first:
            held.append(block.part(last, last + 1))
    if held:
        yield joined(held, held[0].ids[0], held[0].values.shape[1])


def limit_series(blocks: Iterable[Block], slots: int) -> Iterator[Block]:
    """The ``blocks`` cut so that what is remembered of their series, ``slots`` each, fits."""
    most = max(1, MAX_REMEMBERED_NUMBERS // max(1, slots))
    for block in blocks:
        for first in range(0, len(block.ids), most):
            yield block.part(first, first + most)


def with_ends(blocks: Iterable[Block]) -> Iterator[tuple[Block, bool]]:
    """The ``blocks`` cut where a series goes on in the next; and whether all series end there."""
    some = (block for block in blocks if block.ids)
    current = next(some, None)
    while current is not None:
        following = next(some, None)
        last = len(current.ids) - 1
        goes_on = following is not None and following.starts[0] > 0
        if goes_on and last > 0:
            yield current.part(0, last), True
            current = current.part(last, last + 1)
        yield current, not goes_on
        current = following


COUNT_STARTS = (0, 1)
"""What a count of readings begins with."""

TELLS = "is published as it is, and would tell what is to be hidden"


def require_long_enough(unit: units.Unit, longest: int) -> None:
    """Refuse a ``unit`` whose window even the ``longest`` series does not fill."""
    if unit.about_order and unit.width is not None:
        name = "block" if unit.blocks is not None else "window"
        require(
            longest >= unit.width,
            f"the longest series has {longest} reading{'s'[: longest != 1]}, fewer than the "
            f"{name} of {unit.width}: take a smaller {name}",
            DataError,
        )


def hides_times(mechanism: Mechanism) -> bool:
    """Whether times are the secret of a ``mechanism``, so that none may stand beside values."""
    guarantee = mechanism.guarantee
    return isinstance(guarantee, Guarantee) and guarantee.unit.about_times


class TimeDisclosure:
    """Whether the times of a table tell more than how many readings there are.

    Times are published as they are; where they are the secret, only a count may stand there.
    """

    def __init__(self, series: SeriesTable):
        self.series, self._from_the_start = series, True

    def see(self, block: Block) -> None:
        """Note whether every series of a ``block`` counts from 0 or 1."""
        if block.times is not None:
            begun = (block.starts == 0) & (block.counts > 0)
            first = (np.cumsum(block.counts) - block.counts)[begun]
            self._from_the_start &= bool(np.isin(block.times[first], COUNT_STARTS).all())

    def refuse(self, summary: TableSummary) -> None:
        """Refuse a table with this ``summary`` whose times are more than a count."""
        count = summary.clock == "integer" and summary.step in (None, 1) and not summary.filled
        regular = self.series.grid == "regular"
        require(
            self.series.time is None or (count and regular and self._from_the_start),
            f"the time column {self.series.time!r} {TELLS}: leave it out, or give the number of "
            "the reading (0, 1, 2, ...) instead",
            DataError,
        )
