"""Compiled loops. Each also runs as plain Python (NUMBA_DISABLE_JIT=1) and gives the same result.

No random numbers are made here: words come in as arrays. No fastmath.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls


@njit(cache=True, nogil=True)
def digit_sums(
    words: Array, tables: Array, shifts: Array, signed: bool, sums: Array, unsure: Array
) -> int:
    """Add up the digits that 16 bits each decide; if signed, bit 63 is a minus sign.

    Lists row * 4 + level for digits that 16 bits do not decide (their row is left without a sign),
    and row * 4 + 3 for a zero with a minus sign.
    """
    found = 0
    mask = np.uint64(0xFFFF)
    for i in range(words.size):
        word = words[i]
        first = tables[0, word & mask]
        second = tables[1, (word >> np.uint64(16)) & mask]
        third = tables[2, (word >> np.uint64(32)) & mask]
        minus = np.int64(word >> np.uint64(63)) if signed else np.int64(0)
        if (first | second | third) < 0:
            minus = np.int64(0)
            if first < 0:
                unsure[found] = 4 * i
                found += 1
                first = np.int16(0)
            if second < 0:
                unsure[found] = 4 * i + 1
                found += 1
                second = np.int16(0)
            if third < 0:
                unsure[found] = 4 * i + 2
                found += 1
                third = np.int16(0)
        total = np.int64(first) + (np.int64(second) << shifts[1]) + (np.int64(third) << shifts[2])
        if minus & (total == 0):
            unsure[found] = 4 * i + 3
            found += 1
        sums[i] = (total ^ -minus) + minus
    return found


@njit(cache=True, nogil=True)
def cells_and_ties(floors: Array, words: Array, cells: Array, ties: Array) -> int:
    """Count the cuts at or below each word; list the words too close to a cut to tell."""
    found = 0
    for i in range(words.size):
        word = words[i]
        low = 0
        high = floors.size
        while low < high:
            middle = (low + high) >> 1
            if floors[middle] <= word:
                low = middle + 1
            else:
                high = middle
        cells[i] = low
        # a cut lies in [floor, floor + 2)
        if low > 0 and word - floors[low - 1] <= np.uint64(1):
            ties[found] = i
            found += 1
    return found


@njit(cache=True, nogil=True)
def geometric_by_log(words: Array, scales: Array, out: Array, unsure: Array) -> int:
    """floor(-scale * ln U) for U in (word, word + 1) / 2^63; list those not certain.

    The margin is a thousand times the error of the logarithm, so the floor is exact where it is
    taken, on any machine.
    """
    found = 0
    for i in range(words.size):
        word = float(words[i] >> np.uint64(1))
        x = -scales[i] * math.log((word + 0.5) * 2.0**-63)
        margin = scales[i] * (1.0 / (word + 0.25) + 2.0**-42 * 44.0)
        low = math.floor(x - margin)
        # a word of zeros leaves U without a lower bound
        if low != math.floor(x + margin) or low < 0 or word == 0.0:
            unsure[found] = i
            found += 1
        else:
            out[i] = low
    return found
