"""Compiled loops that turn series of numbers into sequences of symbols (see ``kernels``).

Floating point is sums, products, quotients and square roots in a fixed order: the same bits on any
machine, one series at a time or many.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

Array = Any  # numba takes its types from the calls

NONE_REFUSED = -1  # no series was refused
# Squares between these neither overflow nor underflow; others are computed from numbers near 1.
LEAST_SQUARES, MOST_SQUARES = 1e-250, 1e300
LARGEST = 1.7976931348623157e308
MOST_DOUBLINGS = 1000


@njit(cache=True, nogil=True)
def moments(own: Array, segment: int, scale: float, sums: Array) -> tuple[float, float]:
    """The sum of a series and of its squares, and into ``sums`` the sum of each segment.

    All are of differences to the first value: those of a constant series are zero exactly, and a
    level far above the changes costs no digits. The first value lies within sqrt(length) standard
    deviations of the mean, so the squares about it are at most ``length`` times those about the
    mean: taking the difference of the two later costs digits of the length at most.
    """
    first = own[0] * scale
    total, squares = 0.0, 0.0
    for k in range((own.size + segment - 1) // segment):
        part, square = 0.0, 0.0
        for i in range(k * segment, min((k + 1) * segment, own.size)):
            off = own[i] * scale - first
            part += off
            square += off * off
        sums[k] = part
        total += part
        squares += square
    return total, squares


@njit(cache=True, nogil=True)
def squares_about(own: Array, scale: float, mean: float) -> float:
    """Squares of the differences to the first value, about their mean."""
    first, squares = own[0] * scale, 0.0
    for i in range(own.size):
        off = own[i] * scale - first - mean
        squares += off * off
    return squares


@njit(cache=True, nogil=True)
def scale_of(own: Array) -> float:
    """A power of two that brings the largest value near 1; 0 if a value is not a finite number."""
    largest = 0.0
    for i in range(own.size):
        size = abs(own[i])
        if not size <= LARGEST:
            return 0.0
        largest = max(largest, size)
    _, exponent = math.frexp(largest)
    return math.ldexp(1.0, min(-exponent, MOST_DOUBLINGS))


@njit(cache=True, nogil=True)
def put_levels(
    edges: Array, total: float, spread: float, length: int, count: int, levels: Array
) -> None:
    """What ``count`` values must sum to so that their z-scored mean reaches each edge.

    The quotient comes last: of whole numbers it is exact, so a mean on an edge at 0 is seen there.
    """
    middle = total * count / length
    for i in range(edges.size):
        levels[i] = middle + edges[i] * (spread * count)


@njit(cache=True, nogil=True)
def put_codes(
    values: Array,
    offsets: Array,
    edges: Array,
    segment: int,
    partial: bool,
    compressed: bool,
    bits: int,
    longest: int,
    sums: Array,
    levels: Array,
    codes: Array,
) -> int:
    """The code of each series, which lies between two offsets: a 1, then ``bits`` for a symbol.

    A symbol is the number of edges that the mean of its segment reaches. ``partial`` says whether
    a last segment that is cut short has a symbol too; compressed, a symbol that stands already is
    not written again.

    Returns ``NONE_REFUSED``, or the first series with a value that is not a finite number.
    """
    resting = 0  # the symbol of a mean at the mean of its series
    for i in range(edges.size):
        if edges[i] <= 0.0:
            resting += 1
    for row in range(codes.size):
        own = values[offsets[row] : offsets[row + 1]]
        length = own.size
        total, squares = moments(own, segment, 1.0, sums)
        rest = squares - total * (total / length)
        if not LEAST_SQUARES < rest < MOST_SQUARES:
            scale = scale_of(own)
            if scale == 0.0:
                return row
            total, _ = moments(own, segment, scale, sums)
            rest = squares_about(own, scale, total / length)
        spread = math.sqrt(rest / length)
        put_levels(edges, total, spread, length, segment, levels)
        code, written, last = 1, 0, -1
        for k in range((length + segment - 1) // segment):
            if written == longest:
                break
            count = min(segment, length - k * segment)
            if count < segment:
                if not partial:
                    break
                put_levels(edges, total, spread, length, count, levels)
            symbol = resting
            if rest > 0.0:
                symbol = 0
                for i in range(levels.size):
                    if sums[k] >= levels[i]:
                        symbol += 1
            if compressed and symbol == last:
                continue
            code = (code << bits) | symbol
            written += 1
            last = symbol
        codes[row] = code
    return NONE_REFUSED
