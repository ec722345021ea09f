"""What is protected when readings keep their values and only their times are a secret.

A row of an example ends with its time (``Timestamps``), or with the step that led to it (``Pace``);
a row that is no tuple is that number alone. Other units say nothing of times.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from tempriv.errors import require
from tempriv.privacy.units.base import (
    Example,
    Pair,
    Relation,
    Unit,
    cells,
    links,
    power_of_two_below,
    require_whole,
)


def _require_duration(name: str, value: Any) -> None:
    require(
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf,
        f"{name}={value}: must be a time > 0, in the unit of the time column",
    )


def _moved(row: Any, other: Any, limits: Sequence[float]) -> bool:
    """Whether two rows have the same values and times at most so far apart, the last ones."""
    a, b = cells(row), cells(other)
    values = len(a) - len(limits)
    return a[:values] == b[:values] and all(
        _close(x, y, limit) for x, y, limit in zip(a[values:], b[values:], limits, strict=True)
    )


def _close(time: Any, other: Any, limit: float) -> bool:
    """Whether two times are so close; one that is missing is close to another such only."""
    if time is None or other is None:
        return time is other
    return abs(Fraction(time) - Fraction(other)) <= Fraction(limit)


def _far_apart(time: float, limit: float, grid: float) -> tuple[float, float]:
    """Two times from there on that a grid, or a finer one, puts as far apart as it ever does."""
    high = grid * math.ceil((time + limit) / grid)
    low = high - limit
    while Fraction(high) - Fraction(low) > Fraction(limit):
        low = math.nextafter(low, math.inf)
    return low, high


class TimeUnit(Unit):
    """When the readings of a window happened; their values are published as they are."""

    relation: ClassVar[Relation] = "move"
    about_times: ClassVar[bool] = True
    first_row: ClassVar[int] = 0
    """The first row whose time may change."""

    tau: float
    window: int

    def __post_init__(self) -> None:
        _require_duration("tau", self.tau)
        require_whole("window", self.window, 1, "readings")

    @property
    def readings(self) -> int:
        return self.window

    @property
    def limits(self) -> tuple[float, ...]:
        """How far the times at the end of a row may differ."""
        return (self.tau,)

    @property
    def audit_grid(self) -> float:
        return power_of_two_below(self.tau)

    def _windows(self, length: int) -> Iterator[range]:
        """The rows of each window in a series of that length."""
        width = min(self.window, length)
        return (range(start, start + width) for start in range(length - width + 1))

    def _together(self, first: int, last: int) -> bool:
        """Whether two rows lie in one window."""
        return last - first < self.window

    def _candidates(self, example: Example, alphabet: Sequence[Any]) -> Iterator[Example]:
        times = dict.fromkeys(cells(row)[-len(self.limits) :] for row in alphabet)
        for rows in self._windows(len(example)):
            choices = []
            for row in (example[i] for i in rows):
                moved = [cells(row)[: -len(self.limits)] + time for time in times]
                near = [other for other in moved if _moved(row, other, self.limits)]
                choices.append(
                    [row, *(other if isinstance(row, tuple) else other[0] for other in near)]
                )
            for window in itertools.product(*choices):
                yield (*example[: rows.start], *window, *example[rows.stop :])

    def _covers(self, example: Example, other: Example, changed: Sequence[int]) -> bool:
        return not changed or (
            changed[0] >= self.first_row
            and self._together(changed[0], changed[-1])
            and all(_moved(example[i], other[i], self.limits) for i in changed)
        )

    def worst_pairs(self, extremes: Sequence[Hashable], length: int) -> list[Pair]:
        """The times of a window, all as far away as they can be; then of less of it.

        Parameters:
            extremes: a row at its usual time, and one that is late.
            length: how many readings a series has.
        """
        usual, late = extremes
        rows = length - self.first_row
        example = (usual,) * length
        return [
            (example, example[: self.first_row] + (late,) * changed + (usual,) * (rows - changed))
            for changed in dict.fromkeys((min(self.window, rows), 1))
        ]


@dataclass(frozen=True)
class Timestamps(TimeUnit):
    """When the readings in any ``window`` consecutive rows happened, each within ``tau``.

    With one row it is (epsilon, tau)-temporal indistinguishability, with more the neighboring
    stream prefixes of (epsilon, w, tau)-event privacy (Definitions 5, 6 and 7 of the paper on
    sampling periods, "Local Differentially Private Release of Infinite Streams With Temporal
    Relevance"). Values by index are the same, and are not protected.

    Parameters:
        tau: how far a time may be from another, in the unit of the time column.
        window: how many consecutive readings, at least 1.

    >>> list(Timestamps(tau=1.0).neighbors((5.0, 9.0), alphabet=(4.0, 9.0)))
    [(4.0, 9.0)]
    """

    tau: float
    window: int = 1

    @property
    def sentence(self) -> str:
        within = f"within {self.tau:g} of another time"
        if self.window == 1:
            return f"when any single reading happened, {within}"
        return f"when any {self.window} consecutive readings happened, each {within}"

    def of_series(self, length: int) -> Timestamps:
        """The times of all readings of a series of that ``length``, as far as they are covered."""
        return replace(self, window=length)

    def _factor_to_same(self, to: Timestamps) -> int:
        return links(to.tau, self.tau) * -(-to.window // self.window)

    def extreme_rows(self, columns: Sequence[tuple[Any, ...]]) -> tuple[Hashable, ...]:
        """Two times as far apart as the unit covers, whatever the ``columns``."""
        return _far_apart(0.0, self.tau, self.audit_grid)


@dataclass(frozen=True)
class Pace(TimeUnit):
    """How fast the readings of one window followed each other: each step within ``tau``.

    Windows are ``aligned``: the first holds rows 1 to ``window``, the next as many after that; the
    step before row 0 is in none. Otherwise a window begins at any row after that. With ``shift``,
    each row also has a shift before its step, by which it was late for its place on the public
    grid; shifts differ by at most so much. Values by index are the same, and are not protected.

    Parameters:
        tau: how far a step may be from another, in the unit of the time column.
        window: how many readings a window has, at least 1.
        shift: how far a shift may be from another, in the same unit; None: rows have no shift.
        aligned: whether windows follow each other, or begin at any row.

    >>> unit = Pace(tau=1.0, window=2)
    >>> unit.are_neighbors(((7, 1.0), (8, 1.0), (9, 1.0)), ((7, 1.0), (8, 2.0), (9, 0.5)))
    True
    >>> unit.are_neighbors(((7, 1.0), (8, 1.0)), ((7, 1.0), (8.1, 1.0)))
    False
    >>> unit.conversion_factor(unit.unaligned())
    2
    """

    first_row: ClassVar[int] = 1

    tau: float
    window: int
    shift: float | None = None
    aligned: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shift is not None:
            _require_duration("shift", self.shift)
        require(
            isinstance(self.aligned, (bool, int)) and self.aligned in (0, 1),
            f"aligned={self.aligned}: must be True or False",
        )
        # a ledger writes truth values as numbers, so that equal units are one text
        object.__setattr__(self, "aligned", bool(self.aligned))

    @property
    def limits(self) -> tuple[float, ...]:
        return (self.tau,) if self.shift is None else (self.shift, self.tau)

    @property
    def sentence(self) -> str:
        late = "" if self.shift is None else f", and how late they were within {self.shift:g}"
        what = f"one window of {self.window} readings"
        if not self.aligned:
            what = f"{self.window} readings in a row"
        return f"the pace of any {what} (the time from one to the next within {self.tau:g}{late})"

    def _windows(self, length: int) -> Iterator[range]:
        for start in range(1, length, self.window if self.aligned else 1):
            yield range(start, min(start + self.window, length))

    def _together(self, first: int, last: int) -> bool:
        if self.aligned:
            return (first - 1) // self.window == (last - 1) // self.window
        return super()._together(first, last)

    def _factor_to_same(self, to: Pace) -> int | None:
        moves = links(to.tau, self.tau)
        if to.shift is not None:
            if self.shift is None:
                return None
            moves = max(moves, links(to.shift, self.shift))
        return moves * self._windows_touched(to)

    def _windows_touched(self, to: Pace) -> int:
        """How many windows a window of the other reaches into, at most."""
        if not self.aligned:
            return -(-to.window // self.window)
        if to.aligned and self.window % to.window == 0:
            return 1
        # windows begin at every multiple of what the lengths share, or anywhere
        shared = math.gcd(self.window, to.window) if to.aligned else 1
        return -(-(to.window + self.window - shared) // self.window)

    def of_series(self, length: int) -> Pace:
        """The steps of a series of that ``length``, as one window wherever it begins."""
        return replace(self, window=max(length - self.first_row, 1), aligned=False)

    def unaligned(self) -> Pace:
        """As it must be counted over several releases, whose windows may begin at unlike rows."""
        return replace(self, aligned=False)

    @property
    def limit_refusal(self) -> str | None:
        if not self.aligned:
            return None
        return (
            "must be for windows wherever they begin (aligned=False), since those of several "
            "releases begin at unlike readings"
        )

    def audit_lengths(self, most: int) -> range:
        """The readings that a window is made of, up to ``most``."""
        length = min(self.window + 2, most)
        return range(length, length + 1)

    def extreme_rows(self, columns: Sequence[tuple[Any, ...]]) -> tuple[Hashable, ...]:
        """Two rows whose steps are as far apart as the unit covers.

        Parameters:
            columns: usual values, and as the last column the usual step.
        """
        *values, (step,) = columns
        usual = (step,) if self.shift is None else (0.0, step)
        times = [
            _far_apart(time, limit, self.audit_grid)
            for time, limit in zip(usual, self.limits, strict=True)
        ]
        row = tuple(value for (value,) in values)
        return tuple(row + pair for pair in zip(*times, strict=True))
