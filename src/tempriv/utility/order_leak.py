"""Whether the values of a column tell their own order, so that moving them in time hides nothing.

Looked for in stretches of some windows each, since a column that rises for a while and then falls
gives itself away as one that always rises does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tempriv.audit.attacks.order import monotone_share, try_order
from tempriv.mechanisms.reorder.noisy_order import NoisyOrder

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MIN_MONOTONE_SHARE = 0.7  # below this, sorting mixes up more than it restores
MIN_GAIN = 0.05  # by how much more must be restored than stands in place anyway
MAX_ROWS = 5000
STRETCH_WINDOWS, MIN_STRETCH_ROWS = 10, 200  # of a stretch


@dataclass(frozen=True)
class OrderLeak:
    """What sorting a column restores of the times that a mechanism was to hide.

    ``before`` is the share of released rows that stand at their own time anyway, ``restored`` the
    share whose time is known after sorting, ``in_order`` the share of near pairs that stand in the
    same order.
    """

    spec_name: ClassVar[str] = "Betrayal"

    column: str
    in_order: float
    before: float
    restored: float

    @property
    def is_telling(self) -> bool:
        """Whether sorting restores more than stands in place anyway."""
        return self.restored > self.before + MIN_GAIN

    @property
    def sentence(self) -> str:
        return (
            f"the values of column {self.column!r} betray their order: sorting restores "
            f"{100 * self.restored:.0f} % of the times, of which {100 * self.before:.0f} % stand "
            "in place without it; do not release this column, or change its values instead"
        )


def find_order_leaks(mechanism: Any, column: str, values: Floats, counts: Integers) -> OrderLeak:
    """Release stretches of a column by a known seed, and sort what comes out.

    Private: it is computed from the values. Sorting is tried where a stretch is near monotone, by
    somebody who knows the parameters and by somebody who does not; the better of both counts.

    Parameters:
        mechanism: that moves rows.
        column: its name.
        values: of all series, one after another.
        counts: how many rows each series has.

    >>> from tempriv.mechanisms.reorder.threshold import Threshold
    >>> meter = np.arange(1000.0)
    >>> moved = Threshold(epsilon=5.0, window=10)
    >>> find_order_leaks(moved, "meter", meter, np.array([1000])).is_telling
    True
    """
    if isinstance(mechanism, NoisyOrder):
        mechanism = replace(mechanism, latency=None, delta=None)  # the same order, in less time
    window = int(getattr(mechanism, "window", None) or mechanism.block)
    measured = []
    for stretch in stretches(values, counts, max(MIN_STRETCH_ROWS, STRETCH_WINDOWS * window)):
        in_order = monotone_share(np.ma.masked_invalid(stretch), window)
        attack = try_order(mechanism, np.ma.masked_invalid(stretch), seed=1)
        sorting = in_order >= MIN_MONOTONE_SHARE
        gained = max(attack.sorted, attack.informed, attack.before) if sorting else attack.before
        measured.append((in_order, attack.before, gained))
    if not measured:
        return OrderLeak(column, 0.0, 0.0, 0.0)
    means = [float(mean) for mean in np.mean(measured, axis=0)]
    return OrderLeak(column, *means)


def stretches(values: Floats, counts: Integers, length: int) -> Iterator[Floats]:
    """Some parts of so many rows, or of what a shorter series has, spread evenly over all.

    Parameters:
        values: of all series, one after another.
        counts: how many rows each series has.
        length: of a part.

    >>> [part.tolist() for part in stretches(np.arange(7.0), np.array([4, 3]), 3)]
    [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]
    """
    ends = np.cumsum(counts)
    places = [
        (low, min(low + length, end))
        for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)
        for low in range(start, max(start + 1, end - length + 1), length)
    ]
    most = max(1, MAX_ROWS // length)
    chosen = np.linspace(0, len(places) - 1, min(most, len(places))).round().astype(int)
    for low, high in (places[place] for place in chosen):
        part = values[low:high]
        # nothing can be sorted where next to nothing is
        if np.count_nonzero(~np.isnan(part)) >= 3:
            yield part
