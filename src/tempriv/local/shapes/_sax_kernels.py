"""Compiled loops that turn series of numbers into sequences of symbols.

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
LARGEST_FLOAT = 1.7976931348623157e308
MOST_DOUBLINGS = 1000


@njit(cache=True, nogil=True)
def moments(values: Array, segment: int, scale: float, sums: Array) -> tuple[float, float]:
    """The sum of a series and of its squares, and into ``sums`` the sum of each segment.

    All are of differences to the first value: those of a constant series are zero exactly, and a
    level far above the changes costs no digits. The first value lies within sqrt(length) standard
    deviations of the mean, so the squares about it are at most ``length`` times those about the
    mean: taking the difference of the two later costs digits of the length at most.

    Parameters:
        values: of the series.
        segment: values to a segment.
        scale: by which values are multiplied first.
    """
    first = values[0] * scale
    total, squares = 0.0, 0.0
    for k in range((values.size + segment - 1) // segment):
        part, square = 0.0, 0.0
        for i in range(k * segment, min((k + 1) * segment, values.size)):
            off = values[i] * scale - first
            part += off
            square += off * off
        sums[k] = part
        total += part
        squares += square
    return total, squares


@njit(cache=True, nogil=True)
def squares_about(values: Array, scale: float, mean: float) -> float:
    """Squares of the differences to the first of the scaled ``values``, about their ``mean``.

    Parameters:
        scale: by which values are multiplied first.
    """
    first, squares = values[0] * scale, 0.0
    for i in range(values.size):
        off = values[i] * scale - first - mean
        squares += off * off
    return squares


@njit(cache=True, nogil=True)
def scale_of(values: Array) -> float:
    """A power of two that brings the largest of ``values`` near 1; 0 if one is not finite."""
    largest = 0.0
    for i in range(values.size):
        size = abs(values[i])
        if not size <= LARGEST_FLOAT:
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

    Parameters:
        edges: in standard deviations.
        total: sum of all values of the series.
        spread: standard deviation of the series.
        length: how many values the series has.
        levels: takes the sums.
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

    Parameters:
        values: of all series, end to end.
        offsets: where each series begins, and the end.
        edges: between the cells, in standard deviations.
        segment: values to a symbol.
        longest: symbols of a code at most.
        sums, levels: working space.
        codes: takes the codes.
    """
    resting = 0  # the symbol of a mean at the mean of its series
    for i in range(edges.size):
        if edges[i] <= 0.0:
            resting += 1
    for row in range(codes.size):
        readings = values[offsets[row] : offsets[row + 1]]
        length = readings.size
        total, squares = moments(readings, segment, 1.0, sums)
        squares_about_mean = squares - total * (total / length)
        if not LEAST_SQUARES < squares_about_mean < MOST_SQUARES:
            scale = scale_of(readings)
            if scale == 0.0:
                return row
            total, _ = moments(readings, segment, scale, sums)
            squares_about_mean = squares_about(readings, scale, total / length)
        spread = math.sqrt(squares_about_mean / length)
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
            if squares_about_mean > 0.0:
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
