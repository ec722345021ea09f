"""Geometric variables, P(G >= g) = e^(-g / scale), exactly: by digit tables or by a certified log.

The digits of a geometric variable in a mixed radix are independent. With a fixed scale each digit,
and a sign, is read from a table by 16 bits of one word; the few words that fall on a boundary are
finished with further digits. With a scale for each row the variable is floor(-scale * ln U), where
the floor is taken in floating point only when the margin of error cannot change it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import Decimal, getcontext, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tempriv.errors import require
from tempriv.sampling._kernels import digit_sums, finish_sums, geometric_by_log
from tempriv.sampling.exact_compare import (
    ExactReal,
    Integers,
    Thresholds,
    Words64,
    cells_of,
    decimal_of,
)
from tempriv.sampling.keystream import Keystream

Rows = npt.NDArray[np.intp]

DIGIT_BITS = 16
TOP = 2  # two low digits and the top one
SIGN = 3  # and a sign: 64 bits of a word in all
LEVELS = 4
NO_SIGN = 1 << DIGIT_BITS  # a coin that no 16 bits reach
TOP_REACH = 40  # the top digit's table ends at this multiple of its scale
MAX_TOP_SCALE = 500  # the largest scale of a top digit whose cells still fit the table


class GeometricTable:
    """Digit tables for one scale."""

    def __init__(self, scale: Fraction):
        # fewer cuts leave fewer words undecided: balance the low digits against the top one
        bits = min(range(DIGIT_BITS - 1), key=lambda b: TOP * 2**b + TOP_REACH * scale / 4**b)
        base = 1 << bits
        require(
            scale <= MAX_TOP_SCALE * base**TOP,
            f"scale={float(scale):g} grid steps: the grid is "
            "too fine for this much noise; choose a coarser grid",
        )
        self.shifts = np.array([0, bits, TOP * bits], dtype=np.int64)
        self.cuts = [_low_digit(base**level / scale, base) for level in range(TOP)]
        self.cuts += [_top_digit(scale / base**TOP), _sign(scale)]
        self.tables = np.stack(
            [_first_level(self.cuts[level], level == TOP) for level in range(SIGN)]
        )
        # the sign's cut is irrational, so enough digits tell in which 16-bit cell it lies
        low, high = (bound >> (256 - DIGIT_BITS) for bound in self.cuts[SIGN].reals[0].bounds(256))
        assert low == high or high == NO_SIGN
        self.coin = low

    def sample(self, keystream: Keystream) -> Integers:
        """The variable for each row of a ``keystream``: 48 bits of a word, and more if needed."""
        return self._sample(keystream, NO_SIGN)

    def sample_signed(self, keystream: Keystream) -> Integers:
        """Of either sign, P(k) proportional to e^(-|k| / scale).

        The variable itself with probability 1 / (1 + e^(-1 / scale)), else -1 minus it: zero then
        comes out one way only, and nothing has to be drawn again.

        Parameters:
            keystream: the words of the rows.
        """
        return self._sample(keystream, self.coin)

    def _sample(self, keystream: Keystream, coin: int) -> Integers:
        first = keystream.read()
        sums = np.empty(len(first), dtype=np.int64)
        unsure = np.empty(LEVELS * len(first), dtype=np.intp)
        unsure = unsure[: digit_sums(first, self.tables, self.shifts, coin, sums, unsure)]
        if len(unsure):
            cells = self._cells(unsure, first, keystream)
            finish_sums(first, unsure, cells, self.shifts, coin, sums)
        return sums

    def _cells(self, unsure: Rows, first: Words64, keystream: Keystream) -> Integers:
        """Second pass: digits from their 16 bits and 48 more, or as many as it takes."""
        rows, levels = unsure >> 2, unsure & 3
        more = keystream.read_substreams(rows, levels, LEVELS)
        head = (first[rows] >> (DIGIT_BITS * levels).astype(np.uint64)) << np.uint64(48)

        def after(i: int, depth: int) -> int:
            """A further word of unsure digit ``i``, at a ``depth``."""
            return keystream.substream(int(levels[i])).substream(0).read_one(int(rows[i]), depth)

        cells = cells_of(self.cuts, levels, head | (more >> np.uint64(16)), _leftover(more, after))
        ends = np.flatnonzero((levels == TOP) & (cells == len(self.cuts[TOP].reals)))
        if len(ends):
            cells[ends] += self._beyond(keystream.substream(TOP).rows(rows[ends]))
        return cells

    def _beyond(self, keystream: Keystream) -> Integers:
        """A geometric variable forgets: past the last cut it is that cut plus a fresh one."""
        cuts = self.cuts[TOP]
        keystream = keystream.substream(1)
        fresh = cuts.cells(keystream.read(), keystream.substream(0).read_one)
        again = np.flatnonzero(fresh == len(cuts.reals))
        if len(again):
            fresh[again] += self._beyond(keystream.rows(again))
        return fresh


def _leftover(more: Words64, after: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Digits in order: the 16 of a word that were not used yet, then those that come after."""

    def digits(i: int, depth: int) -> int:
        """The next 64 bits of digit ``i``, at a ``depth``."""
        before = int(more[i]) if depth == 0 else after(i, depth - 1)
        return (before & 0xFFFF) << 48 | after(i, depth) >> 16

    return digits


def _reached(rate: Fraction) -> Decimal:
    return 1 - (-decimal_of(rate)).exp()


def _low_digit(rate: Fraction, base: int) -> Thresholds:
    """P(digit < i) = (1 - r^i) / (1 - r^base) with r = e^-rate."""

    @functools.cache
    def whole(precision: int) -> Decimal:
        """1 - r^base, which all cuts share, at the ``precision`` of the decimal context."""
        return _reached(rate * base)

    def formula(i: int) -> Decimal:
        """P(digit < ``i``)."""
        return _reached(rate * i) / whole(getcontext().prec)

    return Thresholds([ExactReal(functools.partial(formula, i)) for i in range(1, base)])


def _top_digit(scale: Fraction) -> Thresholds:
    """P(digit < i) = 1 - e^(-i / scale), up to a cell beyond which it starts anew."""
    cells = math.ceil(TOP_REACH * scale) + 1
    return Thresholds(
        [ExactReal(functools.partial(_reached, i / scale)) for i in range(1, cells + 1)]
    )


def _sign(scale: Fraction) -> Thresholds:
    """One cut: plus below 1 / (1 + e^(-1 / scale))."""
    return Thresholds([ExactReal(lambda: 1 / (1 + (-decimal_of(1 / scale)).exp()))])


def _first_level(cuts: Thresholds, open_ended: bool) -> npt.NDArray[np.int16]:
    """The cell for each value of the leading 16 bits, -1 where these do not decide."""
    low = np.arange(1 << DIGIT_BITS, dtype=np.uint64) << np.uint64(64 - DIGIT_BITS)
    high = low + np.uint64((1 << (64 - DIGIT_BITS)) - 1)
    # a cut lies in [floor, floor + 2), so it makes the word after its floor unsure too
    first = np.searchsorted(cuts.floors, np.maximum(low, 1) - np.uint64(1), side="left")
    last = np.searchsorted(cuts.floors, high, side="right")
    sure = first == last
    if open_ended:
        sure &= last < len(cuts.floors)
    return np.where(sure, first, -1).astype(np.int16)


@functools.lru_cache(maxsize=64)
def geometric_table(scale: Fraction) -> GeometricTable:
    """The tables of a ``scale``, kept: they take hundredths of a second to build, and repeat."""
    return GeometricTable(scale)


def geometric_varying_signed(
    scales: npt.NDArray[np.float64], keystream: Keystream
) -> tuple[Integers, Rows]:
    """As ``sample_signed``, each row with its own scale: 63 bits of a word and one for the sign.

    Parameters:
        scales: of each row.
        keystream: the words of the rows.
    """
    first = keystream.read()
    out = np.empty(len(first), dtype=np.int64)
    unsure = np.empty(len(first), dtype=np.intp)
    for i in unsure[: geometric_by_log(first, scales, out, unsure)].tolist():
        more = functools.partial(keystream.substream(0).read_one, i)
        out[i] = floor_of_log(int(first[i]) >> 1, 63, Fraction(float(scales[i])), more)
    minus = (first & np.uint64(1)).astype(np.bool_)
    return np.where(minus, -out, out), np.flatnonzero(minus & (out == 0))


def floor_of_log(digits: int, bits: int, scale: Fraction, more: Callable[[int], int]) -> int:
    """floor(-scale * ln U), reading digits of U until the floor is certain.

    Parameters:
        digits: the first binary digits of U.
        bits: how many these are.
        scale: the factor.
        more: gives the next 64 digits, for a depth from 0.
    """
    depth = 0
    while True:
        # operators on Decimal round to the context in force, so it must be this one
        with localcontext(prec=bits // 3 + 60) as context:
            lowest = Decimal(digits) / Decimal(1 << bits)
            highest = Decimal(digits + 1) / Decimal(1 << bits)
            if digits:
                factor = decimal_of(scale)
                most = -lowest.ln() * factor
                least = -highest.ln() * factor
                error = Decimal(10) ** (most.adjusted() - context.prec + 20)
                if math.floor(most + error) == math.floor(least - error) >= 0:
                    return math.floor(most)
                if most + error < 1 and least - error < 0:
                    # highest may be 1 exactly, whose logarithm is 0: the floor is 0 all the same
                    return 0
        digits, bits = digits << 64 | more(depth), bits + 64
        depth += 1
