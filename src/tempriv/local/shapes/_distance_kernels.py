"""Compiled loops over pairs of symbol sequences, many sequences side by side (see ``kernels``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls

BATCH_SEQUENCES = 128  # sequences; their tables for 15 symbols stay in the nearest cache


@njit(cache=True, nogil=True)
def put_warped(
    sequences: Array,
    lengths: Array,
    candidates: Array,
    sizes: Array,
    symbols: int,
    prefix: bool,
    found: Array,
) -> None:
    """The DTW distance of each candidate (row) to each sequence (column), in ``found``.

    ``sequences`` has a column for each sequence, ``candidates`` a row for each. The tables of
    ``BATCH_SEQUENCES`` sequences are filled in step, so that a cell of all of them is one run over
    neighboring memory, in numbers of 16 bits: 63 symbols of 26 letters differ by 3,150 at most
    along a path. A prefix of a sequence has its distance in the same table.
    """
    places = sequences.shape[0]
    gaps = np.empty((symbols, places, BATCH_SEQUENCES), dtype=np.int16)
    table = np.empty((2, places, BATCH_SEQUENCES), dtype=np.int16)  # two rows of each in turn
    for begin in range(0, lengths.size, BATCH_SEQUENCES):
        width = min(BATCH_SEQUENCES, lengths.size - begin)
        deepest = 0
        for lane in range(width):
            deepest = max(deepest, lengths[begin + lane])
        for symbol in range(symbols):
            for j in range(deepest):
                for lane in range(width):
                    gaps[symbol, j, lane] = abs(symbol - sequences[j, begin + lane])
        for row in range(sizes.size):
            size = sizes[row]
            depth = min(deepest, size) if prefix else deepest
            new = 0
            for i in range(size):
                old, new = new, 1 - new
                own = candidates[row, i]
                for j in range(depth):
                    if i > 0 and j > 0:
                        for lane in range(width):
                            # all three are read in any case: so the loop has no branches
                            above, left = table[old, j, lane], table[new, j - 1, lane]
                            corner = table[old, j - 1, lane]
                            best = above if above < left else left
                            best = best if best < corner else corner
                            table[new, j, lane] = best + gaps[own, j, lane]
                    elif i > 0:  # at an edge a path has one way only
                        for lane in range(width):
                            table[new, j, lane] = table[old, j, lane] + gaps[own, j, lane]
                    elif j > 0:
                        for lane in range(width):
                            table[new, j, lane] = table[new, j - 1, lane] + gaps[own, j, lane]
                    else:
                        for lane in range(width):
                            table[new, j, lane] = gaps[own, j, lane]
            for lane in range(width):
                length = lengths[begin + lane]
                if prefix:
                    length = min(length, size)
                if size > 0 and length > 0:
                    found[row, begin + lane] = table[new, length - 1, lane]
                else:
                    # nothing goes with nothing but nothing
                    found[row, begin + lane] = 0.0 if size == length else math.inf
