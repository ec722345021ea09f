"""What is protected when readings keep their values and only their times are a secret.

A row of an example ends with its time (``Timestamps``), or with the step that led to it (``Pace``);
a row that is no tuple is that number alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from tempriv.errors import require
from tempriv.privacy.units.order import Example


def _duration(name: str, value: Any) -> None:
    require(
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf,
        f"{name}={value}: must be a time > 0, in the unit of the time column",
    )


def _length(window: Any) -> None:
    require(
        isinstance(window, int) and not isinstance(window, bool) and window >= 1,
        f"window={window}: must be a whole number of readings >= 1",
    )


def _cells(row: Any) -> tuple[Any, ...]:
    return row if isinstance(row, tuple) else (row,)


def _moved(one: Any, other: Any, limits: Sequence[float]) -> bool:
    """Whether two rows have the same values and times at most so far apart, the last ones."""
    a, b = _cells(one), _cells(other)
    values = len(a) - len(limits)
    return a[:values] == b[:values] and all(
        _near(x, y, limit) for x, y, limit in zip(a[values:], b[values:], limits, strict=True)
    )


def _near(one: Any, other: Any, limit: float) -> bool:
    """Whether two times are so close; one that is missing is close to another such only."""
    if one is None or other is None:
        return one is other
    return abs(Fraction(one) - Fraction(other)) <= Fraction(limit)


def _retimed(
    example: Example, rows: range, alphabet: Sequence[Any], limits: Sequence[float]
) -> Iterator[Example]:
    """The example with times from the alphabet in those rows, where they are near enough."""
    choices = []
    for row in rows:
        values = _cells(example[row])[: -len(limits)]
        times = dict.fromkeys(_cells(one)[-len(limits) :] for one in alphabet)
        moved = [values + time for time in times]
        near = [one for one in moved if _moved(example[row], one, limits)]
        choices.append(
            [example[row], *(one if isinstance(example[row], tuple) else one[0] for one in near)]
        )
    seen = {example}
    for rows_there in itertools.product(*choices):
        other = (*example[: rows.start], *rows_there, *example[rows.stop :])
        if other not in seen:
            seen.add(other)
            yield other


@dataclass(frozen=True)
class Timestamps:
    """When the readings in any ``window`` consecutive rows happened, each within ``tau``.

    With one row it is (epsilon, tau)-temporal indistinguishability, with more the neighboring
    stream prefixes of (epsilon, w, tau)-event privacy (Definitions 5, 6 and 7 of the paper on
    sampling periods, "Local Differentially Private Release of Infinite Streams With Temporal
    Relevance"). Values by index are the same, and are not protected.

    >>> list(Timestamps(tau=1.0).neighbors((5.0, 9.0), alphabet=(4.0, 9.0)))
    [(4.0, 9.0)]
    """

    tau: float
    window: int = 1

    def __post_init__(self) -> None:
        _duration("tau", self.tau)
        _length(self.window)

    @property
    def readings(self) -> int:
        return self.window

    @property
    def sentence(self) -> str:
        within = f"within {self.tau:g} of another time"
        if self.window == 1:
            return f"when any single reading happened, {within}"
        return f"when any {self.window} consecutive readings happened, each {within}"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        width = min(self.window, len(example))
        seen = set()
        for start in range(len(example) - width + 1):
            for other in _retimed(example, range(start, start + width), alphabet, (self.tau,)):
                if other not in seen:
                    seen.add(other)
                    yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        return not changed or (
            changed[-1] - changed[0] < self.window
            and all(_moved(one[i], other[i], (self.tau,)) for i in changed)
        )


@dataclass(frozen=True)
class Pace:
    """How fast the readings of one window followed each other: each step within ``tau``.

    Windows are ``aligned``: the first holds rows 1 to ``window``, the next as many after that; the
    step before row 0 is in none. Otherwise a window begins at any row after that. With ``shift``,
    each row also has a shift before its step, by which it was late for its place on the public
    grid; shifts differ by at most so much. Values by index are the same, and are not protected.

    >>> unit = Pace(tau=1.0, window=2)
    >>> unit.are_neighbors(((7, 1.0), (8, 1.0), (9, 1.0)), ((7, 1.0), (8, 2.0), (9, 0.5)))
    True
    >>> unit.are_neighbors(((7, 1.0), (8, 1.0)), ((7, 1.0), (8.1, 1.0)))
    False
    """

    tau: float
    window: int
    shift: float | None = None
    aligned: bool = True

    def __post_init__(self) -> None:
        _duration("tau", self.tau)
        _length(self.window)
        if self.shift is not None:
            _duration("shift", self.shift)
        require(
            isinstance(self.aligned, (bool, int)) and self.aligned in (0, 1),
            f"aligned={self.aligned}: must be True or False",
        )
        # a ledger writes truth values as numbers, so that equal units are one text
        object.__setattr__(self, "aligned", bool(self.aligned))

    @property
    def readings(self) -> int:
        return self.window

    @property
    def limits(self) -> tuple[float, ...]:
        """How far the times at the end of a row may differ."""
        return (self.tau,) if self.shift is None else (self.shift, self.tau)

    @property
    def sentence(self) -> str:
        late = "" if self.shift is None else f", and how late they were within {self.shift:g}"
        what = f"one window of {self.window} readings"
        if not self.aligned:
            what = f"{self.window} readings in a row"
        return f"the pace of any {what} (the time from one to the next within {self.tau:g}{late})"

    def neighbors(self, example: Example, alphabet: Sequence[Hashable]) -> Iterator[Example]:
        seen = set()
        for start in range(1, len(example), self.window if self.aligned else 1):
            rows = range(start, min(start + self.window, len(example)))
            for other in _retimed(example, rows, alphabet, self.limits):
                if other not in seen:
                    seen.add(other)
                    yield other

    def are_neighbors(self, one: Example, other: Example) -> bool:
        if len(one) != len(other):
            return False
        changed = [i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
        if not changed or changed[0] == 0:
            return not changed
        first, last = changed[0] - 1, changed[-1] - 1
        together = first // self.window == last // self.window
        if not self.aligned:
            together = last - first < self.window
        return together and all(_moved(one[i], other[i], self.limits) for i in changed)

    def anywhere(self) -> Pace:
        """As it must be counted over several releases, whose windows may begin at unlike rows."""
        return replace(self, aligned=False)


TIME = (Timestamps, Pace)


def time_steps(have: Any, want: Any) -> int | None:
    """How often neighbors by ``have`` must be chained to reach any by ``want``, one of ``TIME``.

    Other units say nothing of times, which tables publish as they are.

    >>> time_steps(Pace(1.0, window=4), Pace(2.5, window=8))
    6
    >>> time_steps(Pace(1.0, window=4), Pace(1.0, window=4).anywhere())
    2
    """
    if isinstance(have, Timestamps) and isinstance(want, Timestamps):
        return _times(want.tau, have.tau) * -(-want.window // have.window)
    if isinstance(have, Pace) and isinstance(want, Pace):
        if want.shift is not None and have.shift is None:
            return None
        links = _times(want.tau, have.tau)
        if want.shift is not None and have.shift is not None:
            links = max(links, _times(want.shift, have.shift))
        return links * _touched(have, want)
    return None


def _times(want: float, have: float) -> int:
    return math.ceil(Fraction(want) / Fraction(have))


def _touched(have: Pace, want: Pace) -> int:
    """How many windows of the one a window of the other reaches into, at most."""
    if not have.aligned:
        return -(-want.window // have.window)
    if want.aligned and have.window % want.window == 0:
        return 1
    # windows begin at every multiple of what the lengths share, or anywhere
    shared = math.gcd(have.window, want.window) if want.aligned else 1
    return -(-(want.window + have.window - shared) // have.window)
