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
    words: Array, tables: Array, shifts: Array, coin: int, sums: Array, unsure: Array
) -> int:
    """Add up the digits that 16 bits each decide; the top 16 bits, if above the coin, say minus.

    Minus stands for -1 - sum. Lists row * 4 + level for digits (level 3: the sign) that 16 bits do
    not decide; the sum of such a row is left unfinished and without its sign.
    """
    found = 0
    mask = np.uint64(0xFFFF)
    for i in range(words.size):
        word = words[i]
        first = tables[0, word & mask]
        second = tables[1, (word >> np.uint64(16)) & mask]
        third = tables[2, (word >> np.uint64(32)) & mask]
        toss = np.int64(word >> np.uint64(48))
        minus = np.int64(toss > coin)
        if (first | second | third) < 0 or toss == coin:
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
            if toss == coin:
                unsure[found] = 4 * i + 3
                found += 1
        total = np.int64(first) + (np.int64(second) << shifts[1]) + (np.int64(third) << shifts[2])
        sums[i] = total ^ -minus
    return found


@njit(cache=True, nogil=True)
def finish_sums(
    words: Array, unsure: Array, cells: Array, shifts: Array, coin: int, sums: Array
) -> None:
    """Put the digits that were looked up, and then the sign, into the sums left unfinished."""
    at = 0
    while at < unsure.size:
        i = unsure[at] >> 2
        minus = np.int64(np.int64(words[i] >> np.uint64(48)) > coin)
        total = sums[i]
        while at < unsure.size and unsure[at] >> 2 == i:
            level = unsure[at] & 3
            if level == 3:
                minus = cells[at]
            else:
                total += cells[at] << shifts[level]
            at += 1
        sums[i] = total ^ -minus


@njit(cache=True, nogil=True)
def cells_and_ties(
    floors: Array, starts: Array, tables: Array, words: Array, cells: Array, ties: Array
) -> int:
    """Count the cuts at or below each word; list the words too close to a cut to tell.

    ``floors`` holds several tables of cuts one after the other; table t begins at ``starts[t]``.
    """
    found = 0
    for i in range(words.size):
        word = words[i]
        begin = starts[tables[i]]
        low = begin
        high = starts[tables[i] + 1]
        while low < high:
            middle = (low + high) >> 1
            if floors[middle] <= word:
                low = middle + 1
            else:
                high = middle
        cells[i] = low - begin
        # a cut lies in [floor, floor + 2)
        if low > begin and word - floors[low - 1] <= np.uint64(1):
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
