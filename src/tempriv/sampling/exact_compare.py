"""Comparing random words with real numbers, exactly.

A uniform number is read as its binary digits, 64 at a time. Almost always the first word decides;
when it falls on the threshold itself, more digits of both are computed until they differ. So a
probability such as e^-0.1 is met exactly, with no rounding left over to be argued about.
"""

from __future__ import annotations

import bisect
import decimal
import functools
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.sampling._kernels import cells_and_ties

Words64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

# decimal's exp, ln, sqrt and division are correctly rounded; a formula of a few operations on
# numbers up to 1e9 loses fewer than this many of the computed digits
GUARD_DIGITS = 16


class ExactReal:
    """A real number in [0, 1], known to any precision through a formula over Decimal."""

    def __init__(self, formula: Callable[[], Decimal]):
        self.formula = formula

    def bounds(self, bits: int) -> tuple[int, int]:
        """Integers low <= 2^``bits`` x <= high, as close as the guard digits allow."""
        with decimal.localcontext() as context:
            context.prec = bits * 3 // 10 + 2 * GUARD_DIGITS
            context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
            scaled = self.formula() * (1 << bits)
            error = Decimal(10) ** (scaled.adjusted() + GUARD_DIGITS - context.prec)
            low = (scaled - error).to_integral_value(rounding=decimal.ROUND_FLOOR)
            high = (scaled + error).to_integral_value(rounding=decimal.ROUND_CEILING)
            return max(int(low), 0), min(int(high), 1 << bits)


def decimal_of(value: Fraction) -> Decimal:
    """A fraction, ``value``, at the precision of the current decimal context."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def exp_minus(rate: Fraction) -> ExactReal:
    """e^-rate."""
    return ExactReal(lambda: (-decimal_of(rate)).exp())


def is_below(word: int, more: Callable[[int], int], real: ExactReal) -> bool:
    """Whether a uniform number lies below a real one.

    Parameters:
        word: the first 64 binary digits of the uniform number.
        more: gives the next 64 digits, for a depth from 0, while the two cannot be told apart.
        real: the number it is compared with.
    """
    digits, bits, depth = word, 64, 0
    while True:
        low, high = real.bounds(bits)
        if digits < low:
            return True
        if digits >= high:
            return False
        digits, bits = digits << 64 | more(depth), bits + 64
        depth += 1


class Thresholds:
    """Rising thresholds in (0, 1); a uniform number falls into the cell number of those below it.

    ``floors`` holds the first 64 digits of each cut. A word at a floor, or one above it, is a tie
    and is decided by more digits.
    """

    def __init__(self, reals: Sequence[ExactReal]):
        self.reals = list(reals)
        self.floors = np.array([real.bounds(64)[0] for real in reals], dtype=np.uint64)

    def cells(self, words: Words64, more: Callable[[int, int], int]) -> Integers:
        """The cell of each of the ``words``; ``more(i, depth)`` gives digits of number i."""
        return cells_of([self], np.zeros(len(words), dtype=np.int64), words, more)

    def decide(self, word: int, more: Callable[[int], int]) -> int:
        """The cell of one ``word``, by as many digits as it takes, which ``more(depth)`` gives."""
        # bisecting asks for the same digits again; they are a pure function, so they agree
        below = functools.partial(is_below, word, more)
        return bisect.bisect_left(self.reals, True, key=below)


def cells_of(
    tables: Sequence[Thresholds], which: Integers, words: Words64, more: Callable[[int, int], int]
) -> Integers:
    """The cell of each word in the table that is meant for it.

    Parameters:
        tables: thresholds.
        which: the number of the table of each word.
        words: the first 64 binary digits of uniform numbers.
        more: gives further digits, for a word and a depth from 0.
    """
    floors = np.concatenate([cuts.floors for cuts in tables])
    starts = np.cumsum([0, *(len(cuts.floors) for cuts in tables)])
    cells = np.empty(len(words), dtype=np.int64)
    ties = np.empty(len(words), dtype=np.intp)
    for i in ties[: cells_and_ties(floors, starts, which, words, cells, ties)].tolist():
        cells[i] = tables[which[i]].decide(int(words[i]), functools.partial(more, i))
    return cells
