"""Which cells come out, and in which turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tempriv.mechanisms.forms import Integers
from tempriv.streaming.places import Places


@dataclass(frozen=True)
class Earlier:
    """Cells of a block's series by step: from the block itself, or from the rings before it."""

    places: Places
    touched: Integers
    starts: Integers
    edges: Integers

    def cells(
        self, columns: Sequence[Any], first: int, which: Integers, steps: Integers
    ) -> list[Any]:
        """Columns whose rings are numbered from ``first`` on."""
        here = steps >= self.starts[which]
        inside = (self.edges[which] + steps - self.starts[which])[here]
        numbers, earlier = self.touched[which[~here]], steps[~here]
        found = []
        for i, column in enumerate(columns):
            out = np.empty(len(steps), dtype=object)
            out[here] = column[inside]
            if len(earlier):
                out[~here] = self.places.cells(first + i, numbers, earlier)
            found.append(out)
        return found


def texts_of(column: Any, order: Integers) -> Any:
    """Text of some rows as objects."""
    return np.array(column.take(pa.array(order)).to_pylist(), dtype=object)


def in_turn(place: Integers, which: Integers, before: Integers, after: Integers) -> Integers:
    """Released rows as their lines came in: with each line of a series comes its next slot.

    ``place`` has for each line, as it came, its place among all sorted by the series that ``which``
    says, with so many lines ``before`` and so many rows ``after``; the first lines of a series may
    bring none.
    """
    one = which[place]
    late = before - after
    nth = place - (np.cumsum(before) - before)[one] - late[one]
    rows = (np.cumsum(after) - after)[one] + nth
    return np.asarray(rows[nth >= 0], dtype=np.int64)
