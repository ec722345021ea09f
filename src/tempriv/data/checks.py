"""What is counted while a private table is read: its size and times, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, SupportsInt

import numpy as np

from tempriv.data.series import Block, Bounds
from tempriv.errors import DataError

if TYPE_CHECKING:
    from tempriv.data.passthrough import PassthroughColumns


@dataclass
class TableSummary:
    """What is public anyway: ids, times, counts. No value is in it."""

    clock: Literal["integer", "date", "datetime", "index"] = "index"
    ids: list[str] = field(default_factory=list)
    persons: list[str] | None = None
    rows: int = 0
    first: int | None = None
    last: int | None = None
    step: int | None = None
    filled: int = 0
    dropped: int = 0
    longest: int = 0

    def cover(self, first: int, last: int) -> None:
        """Take in the ticks from ``first`` to ``last``."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


class InputErrors:
    """What is wrong with a table, counted; one sentence each, with the remedy."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, kind: str, count: SupportsInt) -> None:
        """Count further errors: how many of which ``kind`` by ``count``."""
        if int(count):
            self.counts[kind] = self.counts.get(kind, 0) + int(count)

    def check_numbers(self, block: Block, bounds: Bounds | None) -> None:
        """NaN, infinite and out of ``bounds`` values of a ``block``; missing ones hold 0."""
        if not np.isfinite(block.values).all():
            self.add("nan", np.count_nonzero(np.isnan(block.values)))
            self.add("infinite", np.count_nonzero(np.isinf(block.values)))
        if bounds is not None:
            low, high = np.array(bounds, dtype=np.float64).T
            outside = ~block.missing & ((block.values < low) | (block.values > high))
            self.add("outside", np.count_nonzero(outside & np.isfinite(block.values)))

    def check_categories(self, block: Block) -> None:
        """Values of a ``block`` that are none of the categories came as -1."""
        self.add("categories", np.count_nonzero(~block.missing & (block.values < 0)))

    def check_passthrough(self, block: Block, passthrough: PassthroughColumns) -> None:
        """NaN and infinities among values of a ``block`` that are in ``passthrough``."""
        nan, infinite = passthrough.not_finite(block.values[~block.missing])
        self.add("nan", nan)
        self.add("infinite", infinite)

    def refuse(self, one_each: str = "keep the first of each with [[duplicates=first]]") -> None:
        """``one_each`` is the remedy for duplicates: rows without an order have no first."""
        if self.counts:
            sentences = [self._sentence(kind, n, one_each) for kind, n in self.counts.items()]
            counts: dict[str, Any] = dict(self.counts)
            raise DataError("\n".join(sentences), **counts)

    def _sentence(self, kind: str, n: int, one_each: str) -> str:
        s, are = ("", "is") if n == 1 else ("s", "are")
        return {
            "ids": f"{n} row{s} without a series id: every row needs one",
            "times": f"{n} row{s} without a time: every row needs one",
            "duplicates": f"{n} reading{s} stand{'' if s else 's'} at a time that its series "
            f"already has; {one_each}",
            "gaps": f"{n} gap{s} in the time grid; fill with empty readings by [[gaps=null]], or "
            "take readings in order, whatever their times, by [[grid=index]]",
            "irregular": f"{n} reading{s} {are} off the regular time grid; take readings in order, "
            "whatever their times, by [[grid=index]], or name the grid's step by [[step]]",
            "calendar": f"{n} reading{s} {are} not on a time of the calendar; add the times to the "
            "calendar, or take readings in order by [[grid=index]]",
            "nan": f"{n} value{s} {are} NaN; leave missing values empty (null) instead",
            "infinite": f"{n} value{s} {are} infinite; leave such values empty (null) instead",
            "outside": f"{n} value{s} outside the bounds; give wider [[bounds]], or move such "
            "values to the nearest bound with [[clip=True]]",
            "categories": f"{n} value{s} {are} none of the given categories; name all categories, "
            "with one for everything else if need be",
        }[kind]
