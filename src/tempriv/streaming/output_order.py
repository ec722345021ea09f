"""Which cells come out, and in which turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tempriv.mechanisms.domains import Integers
from tempriv.streaming._kernels import group
from tempriv.streaming.series_state import SeriesStates
from tempriv.streaming.text_buffer import TextBuffer


@dataclass(frozen=True)
class RecentCells:
    """Cells of a block's series by step: from the block itself, or from the rings before it."""

    places: SeriesStates
    touched: Integers
    starts: Integers
    edges: Integers

    def cells(
        self, columns: Sequence[TextBuffer], first: int, which: Integers, steps: Integers
    ) -> list[TextBuffer]:
        """Columns whose rings are numbered from ``first`` on."""
        here = steps >= self.starts[which]
        inside = (self.edges[which] + steps - self.starts[which])[here]
        before = np.flatnonzero(~here)
        numbers, earlier = self.touched[which[before]], steps[before]
        found = []
        for i, column in enumerate(columns):
            out = TextBuffer.none(len(steps))
            out.at[here], out.lengths[here] = column.at[inside], column.lengths[inside]
            if len(before):
                old = self.places.cells(first + i, numbers, earlier)
                out.at[before], out.lengths[before] = old.at, old.lengths
            found.append(out)
        return found


def grouped(codes: Integers, count: int) -> tuple[Integers, Integers, Integers]:
    """Rows by their codes, as they came; where each code that occurs begins, and how often.

    >>> [found.tolist() for found in grouped(np.array([2, 0, 2]), 3)]
    [[1, 0, 2], [0, 1], [1, 2]]
    """
    edges, order = np.empty(count + 1, np.int64), np.empty(len(codes), np.int64)
    group(codes, edges, order)
    counts = np.diff(edges)
    there = counts > 0
    return order, edges[:-1][there], counts[there]


def output_order(place: Integers, which: Integers, before: Integers, after: Integers) -> Integers:
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
