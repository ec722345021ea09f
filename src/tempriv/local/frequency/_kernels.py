"""Compiled loops of frequency oracles: drawing bits, and counting what hashed reports support.

See ``kernels`` for their laws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls

PIECES = 4
"""Bits that are drawn from one word, by 16 of its bits each."""


@njit(cache=True, nogil=True)
def unary_bits(
    words: Array, values: Array, first: int, size: int, low: int, high: int, out: Array, ties: Array
) -> int:
    """Bits from ``first`` on, four from each word of a row.

    1 with probability 1/2 at the row's value. Elsewhere 1 if 16 bits are below ``low``, 0 if above
    ``high``; what is between is left 0 and listed as row * size + bit.
    """
    found = 0
    mask = np.uint64(0xFFFF)
    shifts = (np.uint64(16), np.uint64(32), np.uint64(48))
    for i in range(words.shape[0]):
        for number in range(words.shape[1]):
            start = first + PIECES * number
            last = min(PIECES, size - start)
            there = (1 << last) - 1
            word = words[i, number]
            own = values[i] - start
            # four at once and no branches, as the bits are random
            one = np.int64(word & mask)
            two = np.int64((word >> shifts[0]) & mask)
            three = np.int64((word >> shifts[1]) & mask)
            four = np.int64(word >> shifts[2])
            bits = (one < low) | ((two < low) << 1) | ((three < low) << 2) | ((four < low) << 3)
            unsure = (one <= high) | ((two <= high) << 1) | ((three <= high) << 2)
            unsure = (unsure | ((four <= high) << 3)) & ~bits & there
            bits &= there
            if 0 <= own < PIECES:
                half = (word >> np.uint64(16 * own + 15)) & np.uint64(1)
                bits = (bits & ~(1 << own)) | ((1 - np.int64(half)) << own)
                unsure &= ~(1 << own)
            out[i, start >> 3] |= np.uint8((bits << (start & 7)) & 0xFF)
            if unsure:
                for j in range(last):
                    if (unsure >> j) & 1:
                        ties[found] = size * i + start + j
                        found += 1
    return found


@njit(cache=True, nogil=True)
def hashed_support(
    multipliers: Array, offsets: Array, lows: Array, highs: Array, prime: int, support: Array
) -> None:
    """Add to each value v the reports with low <= (multiplier v + offset) mod prime < high."""
    for i in range(multipliers.size):
        step = multipliers[i]
        place = offsets[i]
        low = lows[i]
        high = highs[i]
        for v in range(support.size):
            support[v] += np.int64((place >= low) & (place < high))
            place += step
            if place >= prime:
                place -= prime
