"""Compiled loops for curves through the windows of a series. See ``kernels`` for their laws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

Array = Any  # numba takes its types from the calls

TOGETHER = 32
"""Windows worked on side by side: their numbers lie next to each other, as vector units want."""


@njit(cache=True, nogil=True)
def lay_out(
    values: Array, times: Array, counts: Array, starts: Array, further: int, window: int,
    memory: Array, kept_values: Array, pool: Array, pool_times: Array, begins: Array, sizes: Array,
    ends: Array, owners: Array, sums: Array,
) -> int:  # fmt: skip
    """Rows of each series after those it remembers, and the windows of n = window + 2 among them.

    A window begins on the last but one row of the one before. At the end of a series the rows that
    fill none are a shorter window. For each: its first row in the pool, its size, the row of the
    block with which its first point comes out, its series, and the sum of each time over its
    points; a short one counts the last for those that it lacks.

    Memory: n rows of values, n rows of times; what is not in use is zero.
    """
    n = window + 2
    width, clocks = values.shape[1], times.shape[1]
    at, row, found = 0, 0, 0
    for series in range(counts.size):
        real = counts[series] - further
        start = starts[series]
        filled = start if start < 2 else 2 + (start - 2) % window
        own, numbers = memory[series], kept_values[series]
        for i in range(filled):
            for j in range(width):
                pool[at + i, j] = numbers[i * width + j]
            for j in range(clocks):
                pool_times[at + i, j] = own[n * width + i * clocks + j]
        for i in range(real):
            for j in range(width):
                pool[at + filled + i, j] = values[row + i, j]
            for j in range(clocks):
                pool_times[at + filled + i, j] = times[row + i, j]
        total = filled + real
        first = 0
        while first < total:
            size = min(n, total - first)
            if size < n and (further == 0 or size < 3):
                break
            begins[found], sizes[found], owners[found] = at + first, size, series
            ends[found] = row + first + n - 1 - filled
            for j in range(clocks):
                added = np.int64(0)
                for i in range(1, window + 1):
                    added += pool_times[at + first + min(i, size - 2), j]
                sums[found, j] = added
            found += 1
            first += window
        for i in range(n):
            there = first + i < total
            for j in range(width):
                numbers[i * width + j] = pool[at + first + i, j] if there else 0.0
            for j in range(clocks):
                kept = pool_times[at + first + i, j] if there else 0
                own[n * width + i * clocks + j] = kept
        at += total
        row += counts[series]
    return found


@njit(cache=True, nogil=True)
def bring_out(
    counts: Array, starts: Array, window: int, offset: int, width: int, clocks: int,
    memory: Array, kept_values: Array, points: Array, told: Array, status: Array,
) -> None:  # fmt: skip
    """Points of earlier windows that were still to come out, at the rows of this block.

    Memory, from ``offset``: the values of a window's points, then its times; zero once they are
    out.
    """
    row = 0
    for series in range(counts.size):
        out = starts[series] - window - 1  # points of all windows that are out by now
        place = out % window if out > 0 else 0
        own, numbers = memory[series], kept_values[series]
        times = offset + window * width
        i = 0
        while place > 0 and place < window and i < counts[series]:
            for j in range(width):
                points[row + i, j] = numbers[offset + place * width + j]
                numbers[offset + place * width + j] = 0.0
            for j in range(clocks):
                told[row + i, j] = own[times + j]
            status[row + i] = 0
            place += 1
            i += 1
        if place == window:
            for j in range(clocks):
                own[times + j] = 0
        row += counts[series]


@njit(cache=True, nogil=True)
def put_times(
    ends: Array, owners: Array, sizes: Array, stops: Array, window: int, offset: int,
    chosen: Array, memory: Array, told: Array, status: Array,
) -> None:  # fmt: skip
    """The times chosen for each window, at the rows of its points; kept for those to come."""
    for k in range(ends.size):
        last = ends[k] + sizes[k] - 2
        for row in range(ends[k], min(last, stops[owners[k]])):
            status[row] = 0
            for j in range(told.shape[1]):
                told[row, j] = chosen[k, j]
        if last > stops[owners[k]]:
            for j in range(told.shape[1]):
                memory[owners[k], offset + j] = chosen[k, j]


@njit(cache=True, nogil=True)
def bridge(data: Array, one: int) -> None:
    """Straight lines over what is missing (NaN), level at the ends; zeros where nothing is known.

    Over the rows of column ``one``.
    """
    before = -1
    n = data.shape[0]
    for i in range(n + 1):
        if i < n and math.isnan(data[i, one]):
            continue
        for j in range(before + 1, i):
            if before < 0:
                data[j, one] = data[i, one] if i < n else 0.0
            elif i == n:
                data[j, one] = data[before, one]
            else:
                share = (j - before) / (i - before)
                data[j, one] = data[before, one] + share * (data[i, one] - data[before, one])
        before = i


@njit(cache=True, nogil=True)
def _gather(
    pool: Array, begins: Array, low: int, here: int, column: int, gaps: bool, data: Array
) -> None:
    """The readings of some windows side by side, a row for each place in a window."""
    for b in range(here):
        at = begins[low + b]
        for i in range(data.shape[0]):
            data[i, b] = pool[at + i, column]
        if gaps:
            bridge(data, b)


@njit(cache=True, nogil=True)
def _scatter(
    made: Array, pool: Array, begins: Array, ends: Array, owners: Array, stops: Array, low: int,
    here: int, column: int, gaps: bool, offset: int, kept_values: Array, points: Array,
) -> None:  # fmt: skip
    """Points to their rows; what is past the last row of a series' block is kept for later."""
    for b in range(here):
        row, stop = ends[low + b], stops[owners[low + b]]
        for i in range(made.shape[0]):
            point = made[i, b]
            if gaps and math.isnan(pool[begins[low + b] + i + 1, column]):
                point = math.nan
            if row + i < stop:
                points[row + i, column] = point
            else:
                kept_values[owners[low + b], offset + i * pool.shape[1] + column] = point


# In the two kernels below numbers that belong together lie TOGETHER apart in one array, so that
# loops over b need no proof that arrays do not overlap: the compiler makes them vector loops.


@njit(cache=True, nogil=True)
def draw_cosines(
    pool: Array, begins: Array, ends: Array, owners: Array, stops: Array, firsts: Array,
    ratios: Array, shares: Array, angle: float, gaps: bool, offset: int, kept_values: Array,
    points: Array,
) -> None:  # fmt: skip
    """Points of curves through windows of one size: sum_k a_k cos(k angle t).

    The coefficients a are ``shares`` times the window's readings; t runs from ``firsts`` +
    ``ratios`` in steps of ``ratios``, and is 0.5 at the first reading. Cosines of readings that
    mirror each other differ in their sign at most, so half of the shares do; sums of cosines by
    Clenshaw 1955, two terms at a time.
    """
    terms, n = shares.shape
    half, many = (n + 1) // 2, TOGETHER
    data, a, made = np.zeros((n, many)), np.zeros((terms, many)), np.zeros((n - 2, many))
    folded = np.zeros((2 * half, many))  # sums, then differences
    z = np.zeros(3 * many)  # the cosine here, the one before, and twice that of a step
    y = np.zeros(2 * many)
    for low in range(0, begins.size, many):
        here = min(many, begins.size - low)
        for column in range(pool.shape[1]):
            _gather(pool, begins, low, here, column, gaps, data)
            for i in range(half):
                one, other, total, gap = data[i], data[n - 1 - i], folded[i], folded[half + i]
                middle = 0.5 if 2 * i == n - 1 else 1.0
                for b in range(many):
                    total[b] = middle * (one[b] + other[b])
                    gap[b] = one[b] - other[b]
            for k in range(terms):
                sums, start = a[k], half * (k & 1)
                x, first = shares[k, 0], folded[start]
                for b in range(many):
                    sums[b] = x * first[b]
                for i in range(1, half):
                    x, readings = shares[k, i], folded[start + i]
                    for b in range(many):
                        sums[b] += x * readings[b]
            for b in range(here):
                z[b] = math.cos(angle * firsts[low + b])
                z[many + b] = math.cos(angle * (firsts[low + b] - ratios[low + b]))
                z[2 * many + b] = 2.0 * math.cos(angle * ratios[low + b])
            for i in range(n - 2):
                last, out = a[terms - 1], made[i]
                for b in range(many):
                    x = z[b]
                    z[b] = z[2 * many + b] * x - z[many + b]
                    z[many + b] = x
                    y[b] = last[b]
                    y[many + b] = 0.0
                k = terms - 2
                if terms > 2 and terms % 2 == 1:
                    sums = a[k]
                    for b in range(many):
                        x = y[b]
                        y[b] = sums[b] + 2.0 * z[b] * x
                        y[many + b] = x
                    k -= 1
                while k > 1:
                    sums, further = a[k], a[k - 1]
                    for b in range(many):
                        x, twice = y[b], 2.0 * z[b]
                        above = sums[b] + twice * x - y[many + b]
                        y[b] = further[b] + twice * above - x
                        y[many + b] = above
                    k -= 2
                if terms == 1:
                    out[:] = last
                else:
                    sums = a[0]
                    for b in range(many):
                        out[b] = sums[b] + z[b] * y[b] - y[many + b]
            _scatter(
                made, pool, begins, ends, owners, stops, low, here, column, gaps, offset,
                kept_values, points,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def draw_waves(
    pool: Array, begins: Array, ends: Array, owners: Array, stops: Array, firsts: Array,
    ratios: Array, real: Array, imaginary: Array, angle: float, gaps: bool, offset: int,
    kept_values: Array, points: Array,
) -> None:  # fmt: skip
    """Points of curves through windows of one size: Re sum_k p_k z^k at z = e^(j angle t).

    The coefficients p are ``real`` + j ``imaginary`` times the window's readings; t runs as in
    ``draw_cosines``. Sums by Horner.
    """
    terms, n = real.shape
    many = TOGETHER
    data, made = np.zeros((n, many)), np.zeros((n - 2, many))
    p = np.zeros((terms, 2 * many))
    z = np.zeros(4 * many)  # where the curves are read, and what that turns by
    y = np.zeros(2 * many)
    for low in range(0, begins.size, many):
        here = min(many, begins.size - low)
        for column in range(pool.shape[1]):
            _gather(pool, begins, low, here, column, gaps, data)
            for b in range(here):
                z[b] = math.cos(angle * firsts[low + b])
                z[many + b] = math.sin(angle * firsts[low + b])
                z[2 * many + b] = math.cos(angle * ratios[low + b])
                z[3 * many + b] = math.sin(angle * ratios[low + b])
            for k in range(terms):
                sums = p[k]
                sums[:] = 0.0
                for i in range(n):
                    x, x2, readings = real[k, i], imaginary[k, i], data[i]
                    for b in range(many):
                        sums[b] += x * readings[b]
                        sums[many + b] += x2 * readings[b]
            for i in range(n - 2):
                for b in range(many):
                    x, x2, turn, turn2 = z[b], z[many + b], z[2 * many + b], z[3 * many + b]
                    z[b] = x * turn - x2 * turn2
                    z[many + b] = x * turn2 + x2 * turn
                y[:] = p[terms - 1]
                for k in range(terms - 2, -1, -1):
                    sums = p[k]
                    for b in range(many):
                        x, x2, turn, turn2 = y[b], y[many + b], z[b], z[many + b]
                        y[b] = x * turn - x2 * turn2 + sums[b]
                        y[many + b] = x * turn2 + x2 * turn + sums[many + b]
                made[i] = y[:many]
            _scatter(
                made, pool, begins, ends, owners, stops, low, here, column, gaps, offset,
                kept_values, points,
            )  # fmt: skip
