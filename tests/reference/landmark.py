"""The landmark schemes from their definitions.

Katsomallos, Tzompanaki and Kotzinos 2022, Section 3.2: every reading has a part of epsilon, and the
parts of all landmarks and of any one other reading add up to epsilon at most. Nothing here uses the
package. Parts are fractions of epsilon, rounded down to whole units; rows are lists with None for a
missing cell; noise comes as words from which a draw of any scale is made, or as draws with the
parameter of the law that they were drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.reference.budgets import Row, laplace, nothing_yet, on_grid
from tests.reference.value import lattice, meters_per_degree

Floats = npt.NDArray[np.float64]
Parts = list[Fraction]

UNITS = 2**40  # that epsilon is counted in
DIGITS = 6  # of a part that is found as it goes, where each needs a law of its own
CERTAIN = 2**32  # that a sampling rate is counted in


def _down(part: Fraction) -> Fraction:
    return Fraction(math.floor(part * UNITS), UNITS)


# how epsilon is shared


def together(marks: Sequence[bool], bound: int | None) -> int:
    """How many readings count together: all landmarks, and one more if there is any other."""
    if bound is not None:
        return bound + 1
    landmarks = sum(marks)
    return landmarks if landmarks and landmarks == len(marks) else landmarks + 1


def uniform(marks: Sequence[bool], bound: int | None = None) -> Parts:
    return [_down(Fraction(1, together(marks, bound)))] * len(marks)


def skip(marks: Sequence[bool]) -> Parts:
    return [Fraction(0) if mark else Fraction(1) for mark in marks]


def split(marks: Sequence[bool], bound: int | None = None, length: int | None = None) -> Parts:
    """1 / (K + sqrt R) for each of K landmarks, and sqrt R times that for the R others.

    In whole units: the landmark's part is rounded down, and the others get all that is left.
    """
    landmarks = sum(marks) if bound is None else bound
    others = len(marks) - landmarks if length is None else max(length - landmarks, 1)
    if landmarks == 0:
        return [Fraction(1)] * len(marks)
    # the most units u with u (K + sqrt R) <= all of them, that is u^2 R <= (all - u K)^2
    low, high = 0, UNITS // landmarks
    while low < high:
        middle = (low + high + 1) // 2
        fits = middle * middle * others <= (UNITS - middle * landmarks) ** 2
        low, high = (middle, high) if fits else (low, middle - 1)
    rest = Fraction(UNITS - landmarks * low, UNITS) if others else Fraction(0)
    return [Fraction(low, UNITS) if mark else rest for mark in marks]


def margin(epsilon: float, miss: float) -> int:
    """The least s for which |L| + Z + s is |L| or below with probability at most miss."""
    ratio = math.exp(-epsilon)
    s = 0
    while ratio**s / (1 + ratio) > miss:
        s += 1
    return s


def bound_of(marks: Sequence[bool], drawn: int, epsilon: float, miss: float) -> int:
    """|L| and noise, raised so that it is never too small; no more than there are readings."""
    raised = sum(marks) + max(0, drawn + margin(epsilon, miss))
    return min(raised, max(len(marks), 1))


def most_spent(marks: Sequence[bool], parts: Parts) -> Fraction:
    """By all landmarks and the other reading that has most: what the guarantee is about."""
    landmarks = sum((p for p, mark in zip(parts, marks, strict=True) if mark), Fraction(0))
    others = [p for p, mark in zip(parts, marks, strict=True) if not mark]
    return landmarks + max(others, default=Fraction(0))


# what a part of epsilon buys


@dataclass
class Numbers:
    """Laplace noise of scale width / (share part), a share of epsilon for each column."""

    bounds: Sequence[tuple[float, float]]
    grids: Sequence[float]
    share: Fraction
    words: Sequence[Any]

    digits = 64  # one law for parts of any size

    @property
    def origin(self) -> Row:
        return list(nothing_yet(self.bounds, self.grids))

    def steps(self, rows: Any) -> list[Row]:
        return on_grid(rows, self.bounds, self.grids)

    def _scale(self, column: int, part: Fraction) -> Fraction:
        (low, high), grid = self.bounds[column], Fraction(self.grids[column])
        return (round(Fraction(high) / grid) - round(Fraction(low) / grid)) / (self.share * part)

    def noisy(self, i: int, row: Row, part: Fraction) -> Row:
        return [
            None if x is None else x + laplace(self.words[j], i, self._scale(j, part))
            for j, x in enumerate(row)
        ]

    def apart(self, new: Row, last: Row, part: Fraction) -> float:
        """In scales of the noise, the mean over columns."""
        moved = [
            abs(x - last[j]) / self._scale(j, part) for j, x in enumerate(new) if x is not None
        ]
        return float(sum(moved, Fraction(0)) / len(new))

    def values(self, rows: list[Row]) -> Floats:
        return np.array([[x * grid for x, grid in zip(r, self.grids, strict=True)] for r in rows])


Draws = dict[int, tuple[Any, Fraction]]
"""For a row, what was drawn and the parameter of its law."""


@dataclass
class Answers:
    """Randomized response with epsilon share part: categories by number, moved on by a shift."""

    sizes: Sequence[int]
    share: Fraction
    drawn: Sequence[Draws]

    digits = DIGITS

    @property
    def origin(self) -> Row:
        return [0] * len(self.sizes)

    def steps(self, rows: Any) -> list[Row]:
        gaps = np.ma.getmaskarray(rows)
        return [
            [
                None if gap else int(x) if 0 <= x < size else size - 1
                for x, gap, size in zip(row, hidden, self.sizes, strict=True)
            ]
            for row, hidden in zip(np.ma.getdata(rows).tolist(), gaps, strict=True)
        ]

    def noisy(self, i: int, row: Row, part: Fraction) -> Row:
        out: Row = []
        for j, x in enumerate(row):
            shift, epsilon = self.drawn[j][i]
            assert epsilon == self.share * part, f"row {i}: {epsilon} for {self.share * part}"
            out.append(None if x is None else (x + int(shift)) % self.sizes[j])
        return out

    def apart(self, new: Row, last: Row, part: Fraction) -> float:
        """A category is another or it is not; the more a part is worth, the more that says."""
        changed = sum(x != last[j] for j, x in enumerate(new) if x is not None)
        return float(changed * self.share * part / len(new))

    def values(self, rows: list[Row]) -> Floats:
        return np.array(rows, dtype=np.float64)


@dataclass
class Places:
    """Planar Laplace noise at part of the rate; half a place is none."""

    start: tuple[float, float]
    grid: float
    rate: float
    drawn: Sequence[Draws]

    digits = DIGITS

    @property
    def origin(self) -> Row:
        return [0, 0]

    def steps(self, rows: Any) -> list[Row]:
        gaps = np.ma.getmaskarray(rows).any(axis=1)
        found = lattice(np.where(gaps[:, None], 0.0, np.ma.getdata(rows)), self.start, self.grid)
        return [[None, None] if gap else list(x) for x, gap in zip(found, gaps, strict=True)]

    def noisy(self, i: int, row: Row, part: Fraction) -> Row:
        if row[0] is None:
            return row
        moves, rate = self.drawn[0][i]
        assert 0.999 * self.rate * part <= rate <= self.rate * part, f"row {i}: a rate of {rate}"
        return [x + int(move) for x, move in zip(row, moves, strict=True)]

    def apart(self, new: Row, last: Row, part: Fraction) -> float:
        return self.rate * float(part) * math.dist(new, last)

    def values(self, rows: list[Row]) -> Floats:
        scale = np.array(meters_per_degree(self.start))
        return np.round(np.array(self.start) + np.array(rows) * self.grid / scale, 7)


Kind = Numbers | Answers | Places


def marks_of(rows: Any) -> list[bool]:
    """The last column, where there is a reading at all."""
    there = ~np.ma.getmaskarray(rows)[:, :-1].all(axis=1)
    return [bool(mark) for mark in (np.ma.getdata(rows)[:, -1] != 0) & there]


@dataclass
class Released:
    values: Floats
    parts: Parts
    repeated: list[int]


def fixed(kind: Kind, rows: Any, parts: Parts) -> Released:
    """Every reading with noise for its part; the last release again where it has none."""
    last, out, spent, repeated = list(kind.origin), [], [], []
    for i, row in enumerate(kind.steps(rows[:, :-1])):
        there = any(x is not None for x in row)
        if there and parts[i]:
            last = _kept(kind.noisy(i, row, parts[i]), last)
        out.append(list(last))
        spent.append(parts[i] if there else Fraction(0))
        repeated.append(int(there and not parts[i]))
    return Released(kind.values(out), spent, repeated)


def _kept(new: Row, last: Row) -> Row:
    return [old if x is None else x for x, old in zip(new, last, strict=True)]


def _leading(units: int, digits: int) -> int:
    left_out = max(0, units.bit_length() - digits)
    return units >> left_out << left_out


def adaptive(
    kind: Kind,
    rows: Any,
    coins: Sequence[int],
    bound: int | None,
    kappa: float,
    increase: float,
    decrease: float,
    least: float,
) -> Released:
    """Sampled at a rate that rises when releases change and falls when they do not.

    A landmark that is not sampled gives d = res / (m + 1) of its part to every later reading, m
    landmarks being still to come (m instead of m + 1 where all readings are landmarks).
    """
    marks = marks_of(rows)
    count = together(marks, bound)
    others = count - (sum(marks) if bound is None else bound)
    to_come = count - others
    reserved, rate = UNITS // count, CERTAIN
    up, down = (Fraction(round(x * 2**16), 2**16) for x in (increase, decrease))
    last, begun = list(kind.origin), False
    out, parts, repeated = [], [], []
    for i, row in enumerate(kind.steps(rows[:, :-1])):
        there = any(x is not None for x in row)
        to_come -= marks[i]
        part = Fraction(0)
        if there and (not begun or int(coins[i]) < rate):
            part = Fraction(_leading(reserved, kind.digits), UNITS)
            new = kind.noisy(i, row, part)
            if begun and kind.apart(new, last, part) > kappa:
                rate += math.floor((CERTAIN - rate) * up)
            elif begun:
                rate = max(round(least * CERTAIN), rate - math.floor(rate * down))
            last, begun = _kept(new, last), True
        elif marks[i] and to_come + others:
            reserved += reserved // (to_come + others)
        out.append(list(last))
        parts.append(part)
        repeated.append(int(there and not part))
    return Released(kind.values(out), parts, repeated)
