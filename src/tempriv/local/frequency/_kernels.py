"""Compiled loops of frequency oracles: drawing bits, and counting what hashed reports support.

See ``sampling`` for their rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls

PIECES_PER_WORD = 4
"""Bits that are drawn from one word, by 16 of its bits each."""


@njit(cache=True, nogil=True)
def unary_bits(
    keystream: Array,
    values: Array,
    first: int,
    size: int,
    low: int,
    high: int,
    out: Array,
    ties: Array,
) -> int:
    """Draw bits from ``first`` on, four from each word of a row.

    1 with probability 1/2 at the row's value. Elsewhere 1 if 16 bits are below ``low``, 0 if above
    ``high``; what is between is left 0 and listed as row * size + bit.

    Parameters:
        keystream: random words, a row for each report.
        values: the true value of each row.
        size: bits of a report.
        low, high: 16 bits below ``low`` give 1, above ``high`` 0; between them is undecided.
        out: takes the bits.
        ties: takes undecided bits, as row * size + bit; they are left 0.

    Returns:
        how many bits are undecided.
    """
    tied = 0
    mask = np.uint64(0xFFFF)
    shifts = (np.uint64(16), np.uint64(32), np.uint64(48))
    for i in range(keystream.shape[0]):
        for number in range(keystream.shape[1]):
            start = first + PIECES_PER_WORD * number
            last = min(PIECES_PER_WORD, size - start)
            valid = (1 << last) - 1
            word = keystream[i, number]
            true_bit = values[i] - start
            # four at once and no branches, as the bits are random
            first_piece = np.int64(word & mask)
            second_piece = np.int64((word >> shifts[0]) & mask)
            third_piece = np.int64((word >> shifts[1]) & mask)
            fourth_piece = np.int64(word >> shifts[2])
            bits = (
                (first_piece < low)
                | ((second_piece < low) << 1)
                | ((third_piece < low) << 2)
                | ((fourth_piece < low) << 3)
            )
            unsure = (
                (first_piece <= high) | ((second_piece <= high) << 1) | ((third_piece <= high) << 2)
            )
            unsure = (unsure | ((fourth_piece <= high) << 3)) & ~bits & valid
            bits &= valid
            if 0 <= true_bit < PIECES_PER_WORD:
                half = (word >> np.uint64(16 * true_bit + 15)) & np.uint64(1)
                bits = (bits & ~(1 << true_bit)) | ((1 - np.int64(half)) << true_bit)
                unsure &= ~(1 << true_bit)
            out[i, start >> 3] |= np.uint8((bits << (start & 7)) & 0xFF)
            if unsure:
                for j in range(last):
                    if (unsure >> j) & 1:
                        ties[tied] = size * i + start + j
                        tied += 1
    return tied


@njit(cache=True, nogil=True)
def hashed_support(
    multipliers: Array, offsets: Array, lows: Array, highs: Array, prime: int, support: Array
) -> None:
    """Add to each value v the reports with low <= (multiplier v + offset) mod prime < high.

    Parameters:
        multipliers, offsets, lows, highs: of each report.
        prime: of all of them.
        support: of each value, added to.
    """
    for i in range(multipliers.size):
        step = multipliers[i]
        hashed = offsets[i]
        low = lows[i]
        high = highs[i]
        for v in range(support.size):
            support[v] += np.int64((hashed >= low) & (hashed < high))
            hashed += step
            if hashed >= prime:
                hashed -= prime
