"""Compiled loops over pairs of symbol sequences, many sequences side by side."""

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
    distances: Array,
) -> None:
    """Put the DTW distance of each candidate (row) to each sequence (column) into ``distances``.

    ``sequences`` has a column for each sequence, ``candidates`` a row for each. The tables of
    ``BATCH_SEQUENCES`` sequences are filled in step, so that a cell of all of them is one run over
    neighboring memory, in numbers of 16 bits: 63 symbols of 26 letters differ by 3,150 at most
    along a path. A prefix of a sequence has its distance in the same table.

    Parameters:
        lengths: of each sequence.
        sizes: of each candidate.
        symbols: letters of the alphabet.
        prefix: whether a sequence is cut to the length of a candidate.
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
            row_after = 0
            for i in range(size):
                row_before, row_after = row_after, 1 - row_after
                symbol_here = candidates[row, i]
                for j in range(depth):
                    if i > 0 and j > 0:
                        for lane in range(width):
                            # all three are read in any case: so the loop has no branches
                            above, left = table[row_before, j, lane], table[row_after, j - 1, lane]
                            corner = table[row_before, j - 1, lane]
                            best = above if above < left else left
                            best = best if best < corner else corner
                            table[row_after, j, lane] = best + gaps[symbol_here, j, lane]
                    elif i > 0:  # at an edge a path has one way only
                        for lane in range(width):
                            table[row_after, j, lane] = (
                                table[row_before, j, lane] + gaps[symbol_here, j, lane]
                            )
                    elif j > 0:
                        for lane in range(width):
                            table[row_after, j, lane] = (
                                table[row_after, j - 1, lane] + gaps[symbol_here, j, lane]
                            )
                    else:
                        for lane in range(width):
                            table[row_after, j, lane] = gaps[symbol_here, j, lane]
            for lane in range(width):
                length = lengths[begin + lane]
                if prefix:
                    length = min(length, size)
                if size > 0 and length > 0:
                    distances[row, begin + lane] = table[row_after, length - 1, lane]
                else:
                    # nothing goes with nothing but nothing
                    distances[row, begin + lane] = 0.0 if size == length else math.inf
