"""The distributions that decide when a row comes out: exact, and fast where 32 bits decide.

Half a word is read as the first digits of a uniform number. Where a boundary between two outcomes
begins with the same digits, more of them are drawn.
"""

from __future__ import annotations

import decimal
import functools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

import numpy as np

from tempriv.errors import require
from tempriv.sampling._kernels import Halves, all_cells
from tempriv.sampling.distributions import CategoryFlip, UniformChoice, until_accepted
from tempriv.sampling.exact_compare import ExactReal, Integers, Thresholds, decimal_of, is_below
from tempriv.sampling.geometric import Rows
from tempriv.sampling.keystream import Keystream

HALF_WORD_BITS = 32
CUT_BITS = 256


class EvenCells:
    """Which cell of some cuts a uniform number falls into; all cells but the first are alike.

    Parameters:
        cuts: between the cells.
    """

    def __init__(self, cuts: Thresholds):
        self.cuts = cuts
        # of many digits: where a bound of 64 ends in ones, the cut may begin like the next half
        floors = [real.bounds(CUT_BITS)[0] >> CUT_BITS - HALF_WORD_BITS for real in cuts.reals]
        self.floors = np.array([-1, *floors, 1 << HALF_WORD_BITS], dtype=np.int64)

    def halves(self, keystream: Keystream) -> Halves:
        """For a kernel that asks row by row; if any number was unsure, draw them all instead.

        Parameters:
            keystream: the words of the rows.
        """
        return Halves(keystream.read_half(0), self.floors)

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        halves = self.halves(keystream)
        cells = np.empty(keystream.count, dtype=np.int64)
        unsure = np.empty(keystream.count, dtype=np.intp)
        unsure = unsure[: all_cells(halves.digits, self.floors, cells, unsure)]
        if len(unsure):
            more = keystream.rows(unsure).substream(0)
            first = halves.digits[unsure].astype(np.uint64) << np.uint64(HALF_WORD_BITS)
            digits = first | more.read() >> np.uint64(HALF_WORD_BITS)
            cells[unsure] = self.cuts.cells(digits, more.substream(0).read_one)
        return cells


@functools.lru_cache(maxsize=64)
def _lag_cells(epsilon: Fraction, choices: int) -> EvenCells:
    @functools.cache
    def _fall_and_mass(digits: int) -> tuple[Decimal, Decimal]:
        fall = (-decimal_of(epsilon)).exp()
        return fall, 1 + (choices - 1) * fall

    def _below(lag: int) -> ExactReal:
        def formula() -> Decimal:
            fall, mass = _fall_and_mass(decimal.getcontext().prec)
            return (1 + lag * fall) / mass

        return ExactReal(formula)

    return EvenCells(Thresholds([_below(lag) for lag in range(choices - 1)]))


@functools.lru_cache(maxsize=64)
def _place_cells(choices: int) -> EvenCells:
    def _below(place: int) -> ExactReal:
        return ExactReal(lambda: Decimal(place) / choices)

    return EvenCells(Thresholds([_below(place) for place in range(1, choices)]))


@dataclass(frozen=True)
class LagDistribution:
    """How many steps back, from 0 to ``window`` - 1: 0 is e^epsilon times likelier than any other.

    Parameters:
        epsilon: the log of these odds.
        window: how many lags there are.

    >>> lags = LagDistribution(Fraction(1), 3)
    >>> round(math.log(lags.pmf(0) / lags.pmf(2)), 12)
    1.0
    """

    epsilon: Fraction
    window: int

    @property
    def _flip(self) -> CategoryFlip:
        return CategoryFlip(self.epsilon, self.window)

    def pmf(self, lag: int) -> float:
        """The probability of a ``lag``."""
        return self._flip.pmf(lag)

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return self._flip.outcomes(tail)

    def halves(self, keystream: Keystream) -> Halves:
        """The first digits of each draw from a ``keystream``, for a kernel that asks row by row."""
        return _lag_cells(self.epsilon, self.window).halves(keystream)

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return _lag_cells(self.epsilon, self.window).sample(keystream)


@dataclass(frozen=True)
class FreeSlotDistribution:
    """One of so many places, 0 .. choices - 1, each equally likely.

    Parameters:
        choices: how many there are.
    """

    choices: int

    def pmf(self, place: int) -> float:
        """The probability of a ``place``."""
        return UniformChoice(self.choices).pmf(place)

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities, leaving out at most ``tail``."""
        return UniformChoice(self.choices).outcomes(tail)

    def halves(self, keystream: Keystream) -> Halves:
        """The first digits of each draw from a ``keystream``, for a kernel that asks row by row."""
        return _place_cells(self.choices).halves(keystream)

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return _place_cells(self.choices).sample(keystream)


class Stirling:
    """Ratios of Stirling numbers of the second kind, q(n, r) = S(n, r - 1) / S(n, r).

    By q(n, r) = q(n-1, r) (r-1 + q(n-1, r-1)) / (r + q(n-1, r)): all terms are positive, so no
    digits are lost. Computed at the precision of the decimal context at hand.

    Parameters:
        slots: how many there are at first.
        free: how many of them are free.
    """

    def __init__(self, slots: int, free: int):
        # before a draw with n slots and r free ones left, n - r of ``taken`` are still to come
        self.free, taken = free, slots - free
        self._rows: list[list[Decimal]] = [[], [Decimal(0)] * (taken + 1)]
        for r in range(2, free + 1):
            row, left = [Decimal(r * (r - 1)) / 2], self._rows[r - 1]
            for extra in range(1, taken + 1):
                before = row[-1]  # q(r + extra - 1, r), beside q(r + extra - 1, r - 1)
                row.append(before * (r - 1 + left[extra]) / (r + before))
            self._rows.append(row)

    def first_is_free(self, slots: int, free: int) -> Decimal:
        """The probability that of ``slots``, of which so many are ``free``, the first is free."""
        if slots == free:
            return Decimal(1)
        ratio = self._rows[free][slots - 1 - free]
        return ratio / (free + ratio)


@functools.lru_cache(maxsize=16)
def _stirling(slots: int, free: int, digits: int) -> Stirling:
    return Stirling(slots, free)


@functools.lru_cache(maxsize=1 << 16)
def _first_free(slots: int, free: int, left: int, free_left: int) -> tuple[ExactReal, int, int]:
    """As a real number, and its first 64 digits from below and above."""

    def formula() -> Decimal:
        digits = decimal.getcontext().prec
        return _stirling(slots, free, digits).first_is_free(left, free_left)

    real = ExactReal(formula)
    return real, *real.bounds(64)


@dataclass(frozen=True)
class FreeSlots:
    """Which of ``window`` coming slots are taken (1) when the Threshold mechanism is under way.

    ``free`` of them are not; a pattern weighs the product, over taken slots, of the number of free
    ones to the right. Drawn from left to right.

    Parameters:
        window: how many slots there are.
        free: how many are not taken.
    """

    window: int
    free: int

    def __post_init__(self) -> None:
        require(1 <= self.free <= self.window, f"free={self.free}: must be from 1 to {self.window}")

    def outcomes(self, tail: float) -> list[tuple[tuple[int, ...], float]]:
        """Patterns and their probabilities; all of them, whatever the ``tail``."""
        patterns: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
        for place in range(self.window):
            longer = []
            for pattern, mass in patterns:
                real, _, _ = self._first_free(place, self.free - place + sum(pattern))
                empty = float(real.formula())
                longer += [((*pattern, 0), mass * empty), ((*pattern, 1), mass * (1 - empty))]
            patterns = [(pattern, mass) for pattern, mass in longer if mass > 0]
        return patterns

    def _first_free(self, place: int, free: int) -> tuple[ExactReal, int, int]:
        return _first_free(self.window, self.free, self.window - place, free)

    def sample(self, keystream: Keystream) -> Integers:
        """One pattern for each row of a ``keystream``."""
        taken = np.zeros((keystream.count, self.window), dtype=np.int64)
        left = np.full(keystream.count, self.free)
        lanes = keystream.read_streams(self.window)
        for place in range(self.window):
            drawn = lanes[:, place]
            for free in np.unique(left).tolist():
                if free == self.window - place:
                    continue  # all that are left
                real, low, high = self._first_free(place, free)
                own = np.flatnonzero(left == free)
                taken[own, place] = drawn[own] >= np.uint64(low)
                for row in own[(drawn[own] >= np.uint64(low)) & (drawn[own] <= np.uint64(high))]:
                    more = functools.partial(keystream.substream(place).read_one, int(row))
                    taken[row, place] = not is_below(int(drawn[row]), more, real)
            left -= 1 - taken[:, place]
        return taken


class NumberDistribution(Protocol):
    """A distribution over whole numbers."""

    def pmf(self, k: int, /) -> float:
        """The probability of a number, ``k``."""

    def sample(self, keystream: Keystream, /) -> Integers:
        """One draw for each row of a ``keystream``."""


@dataclass(frozen=True)
class WindowDistribution:
    """Whole numbers, cut off beyond ``reach`` on either side and drawn again there.

    Parameters:
        uncut: their distribution before.
        reach: how large they may be.
    """

    uncut: NumberDistribution
    reach: int

    @functools.cached_property
    def _mass(self) -> float:
        return math.fsum(self.uncut.pmf(k) for k in range(-self.reach, self.reach + 1))

    def pmf(self, k: int) -> float:
        """The probability of ``k``."""
        return float(self.uncut.pmf(k)) / self._mass if abs(k) <= self.reach else 0.0

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Outcomes and their probabilities; all of them, whatever the ``tail``."""
        return [(k, self.pmf(k)) for k in range(-self.reach, self.reach + 1)]

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""

        def _draw(substream: Keystream, rows: Rows) -> tuple[Integers, Rows]:
            value = self.uncut.sample(substream)
            return value, np.flatnonzero(np.abs(value) > self.reach)

        return until_accepted(keystream, _draw)


@dataclass(frozen=True)
class TieDistribution:
    """Numbers whose order is random, every order of any rows equally likely: 63 random bits.

    An audit lists the orders themselves; what equal bits would add is 2^-63 for each pair.
    """

    def outcomes(self, tail: float) -> list[tuple[int, float]]:
        """Refused, whatever the ``tail``: there are too many."""
        raise NotImplementedError("the order of rows is listed for all of them together")

    def sample(self, keystream: Keystream) -> Integers:
        """One draw for each row of a ``keystream``."""
        return (keystream.read() >> np.uint64(1)).astype(np.int64)
