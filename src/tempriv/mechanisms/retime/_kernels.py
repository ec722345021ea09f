"""Compiled loops for curves through the windows of a series.

Each also runs as plain Python and gives the same result.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from tempriv.sampling._kernels import Array

TOGETHER = 32
"""Windows worked on side by side: their numbers lie next to each other, as vector units want."""


class SeriesRows(NamedTuple):
    """The series of a block, one after the other.

    Parameters:
        counts: the rows of each series.
        starts: the step of the first row of each.
        memory: a row of whole numbers for each series: n rows of values and n of times, those of
            an unfinished window; then the points of a window that are still to come out, and its
            times. What is not in use is zero.
        kept_values: the same memory as floating-point numbers.
    """

    counts: Array
    starts: Array
    memory: Array
    kept_values: Array


class WindowRows(NamedTuple):
    """Windows of the rows of a block, and where their points go.

    Parameters:
        begins: the first row of each; -1 - i stands for row i of ``heads``.
        sizes: how many rows it has.
        ends: the row of the block with which its first point comes out.
        owners: its series.
        sums: the sum of each time over its points.
        heads: copies of the rows of windows that begin in an earlier block.
    """

    begins: Array
    sizes: Array
    ends: Array
    owners: Array
    sums: Array
    heads: Array


class CurvePoints(NamedTuple):
    """What comes out at each row of a block.

    Parameters:
        values: of the points.
        times: that go with them.
        status: of the row; 0 where there is a point.
    """

    values: Array
    times: Array
    status: Array


class Curves(NamedTuple):
    """Windows of one size whose curves are read.

    Parameters:
        values: the rows of the block.
        heads: copies of rows, as in ``WindowRows``.
        begins: the first row of each window.
        ends: the row with which its first point comes out.
        owners: its series.
        stops: of each series, the row after its last.
        firsts: where its points begin, less a step.
        ratios: how far it is from one to the next.
        gaps: whether any reading of the block is missing.
        offset: where memory begins that points are kept in.
        kept_values: that memory.
        points: where the others go.
    """

    values: Array
    heads: Array
    begins: Array
    ends: Array
    owners: Array
    stops: Array
    firsts: Array
    ratios: Array
    gaps: bool
    offset: int
    kept_values: Array
    points: Array


@njit(cache=True, nogil=True)
def all_within(values: Array, most: float) -> bool:
    """Whether no number is larger than that, nor NaN.

    Parameters:
        values: the numbers.
        most: what their size may be.
    """
    within = 0
    for i in range(values.size):
        within += abs(values[i]) <= most
    return bool(within == values.size)


@njit(cache=True, nogil=True)
def lay_out(
    values: Array,
    times: Array,
    rows: SeriesRows,
    further: int,
    window: int,
    windows: WindowRows,
) -> tuple[int, bool]:
    """The windows of n = window + 2 among the rows of each series, after those it remembers.

    A window begins on the last but one row of the one before. At the end of a series the rows that
    fill none are a shorter window; sums of its times count the last for those that it lacks. Rows
    stay where they are, but for windows that begin on a row remembered: those are copied together
    with the rows that follow.

    Parameters:
        values: of each row.
        times: of each row, on their grid.
        rows: the series, and what is remembered of them.
        further: steps after the end of each series, at which no rows come in.
        window: how many points a window has.
        windows: where they are written.

    Returns:
        How many windows there are, and whether anything is missing.
    """
    counts, starts, memory, kept_values = rows
    begins, sizes, ends, owners, sums, heads = windows
    n = window + 2
    width, clocks = values.shape[1], times.shape[1]
    numbers = values.reshape(-1)
    at, row, number, gaps = 0, 0, 0, False
    for series in range(counts.size):
        real = counts[series] - further
        start = starts[series]
        filled = start if start < 2 else 2 + (start - 2) % window
        own, kept = memory[series], kept_values[series]
        total, before = filled + real, row - filled
        head = min(total, n + window) if filled else 0
        for i in range(head):
            for j in range(width):
                value = kept[i * width + j] if i < filled else values[before + i, j]
                heads[at + i, j] = value
                gaps |= math.isnan(value)
        gaps |= not all_within(numbers[row * width : (row + real) * width], math.inf)
        first = 0
        while first < total:
            size = min(n, total - first)
            if size < n and (further == 0 or size < 3):
                break
            begins[number] = before + first if first >= filled else -1 - at - first
            sizes[number], owners[number] = size, series
            ends[number] = before + first + n - 1
            for j in range(clocks):
                added = np.int64(0)
                for i in range(first + 1, first + window + 1):
                    k = min(i, first + size - 2)
                    added += (
                        own[(n * width + k * clocks) + j] if k < filled else times[before + k, j]
                    )
                sums[number, j] = added
            number += 1
            first += window
        for i in range(n):
            k = first + i
            for j in range(width):
                value = kept[k * width + j] if k < filled else 0.0
                kept[i * width + j] = values[before + k, j] if filled <= k < total else value
            for j in range(clocks):
                time = own[n * width + k * clocks + j] if k < filled else 0
                own[n * width + i * clocks + j] = (
                    times[before + k, j] if filled <= k < total else time
                )
        at += head
        row += counts[series]
    return number, gaps


@njit(cache=True, nogil=True)
def bring_out(rows: SeriesRows, window: int, offset: int, points: CurvePoints) -> None:
    """Points of earlier windows that were still to come out, at the rows of this block.

    Parameters:
        rows: the series, and what is remembered of them.
        window: how many points a window has.
        offset: where points begin in memory.
        points: where they go.
    """
    counts, starts, memory, kept_values = rows
    values, chosen, status = points
    width, clocks = values.shape[1], chosen.shape[1]
    row = 0
    for series in range(counts.size):
        out = starts[series] - window - 1  # points of all windows that are out by now
        place = out % window if out > 0 else 0
        own, numbers = memory[series], kept_values[series]
        times = offset + window * width
        i = 0
        while place > 0 and place < window and i < counts[series]:
            for j in range(width):
                values[row + i, j] = numbers[offset + place * width + j]
                numbers[offset + place * width + j] = 0.0
            for j in range(clocks):
                chosen[row + i, j] = own[times + j]
            status[row + i] = 0
            place += 1
            i += 1
        if place == window:
            for j in range(clocks):
                own[times + j] = 0
        row += counts[series]


@njit(cache=True, nogil=True)
def put_times(
    windows: WindowRows,
    stops: Array,
    chosen: Array,
    memory: Array,
    offset: int,
    points: CurvePoints,
) -> None:
    """The times chosen for each window, at the rows of its points; kept for those to come.

    Parameters:
        windows: the windows.
        stops: of each series, the row after its last.
        chosen: the times of each window.
        memory: of each series.
        offset: where times are kept in it.
        points: where the others go.
    """
    _, sizes, ends, owners, _, _ = windows
    _, times, status = points
    begin = 0
    for k in range(ends.size):
        last = ends[k] + sizes[k] - 2
        stop = min(last, stops[owners[k]])
        if k == 0 or owners[k] != owners[k - 1]:
            begin = ends[k]
        if k == ends.size - 1 or owners[k] != owners[k + 1]:
            status[begin:stop] = 0  # windows of a series follow each other without a gap
        for j in range(times.shape[1]):
            for row in range(ends[k], stop):
                times[row, j] = chosen[k, j]
        if last > stops[owners[k]]:
            for j in range(times.shape[1]):
                memory[owners[k], offset + j] = chosen[k, j]


@njit(cache=True, nogil=True)
def bridge(data: Array, column: int) -> None:
    """Straight lines over what is missing (NaN), level at the ends; zeros where nothing is known.

    Parameters:
        data: readings, changed in place.
        column: which of them to look at.
    """
    before = -1
    n = data.shape[0]
    for i in range(n + 1):
        if i < n and math.isnan(data[i, column]):
            continue
        for j in range(before + 1, i):
            if before < 0:
                data[j, column] = data[i, column] if i < n else 0.0
            elif i == n:
                data[j, column] = data[before, column]
            else:
                share = (j - before) / (i - before)
                data[j, column] = data[before, column] + share * (
                    data[i, column] - data[before, column]
                )
        before = i


@njit(cache=True, nogil=True)
def _gather(curves: Curves, low: int, here: int, column: int, data: Array, absent: Array) -> None:
    """The readings of some windows side by side, a row for each place in a window."""
    values, heads = curves.values, curves.heads
    for b in range(here):
        at = curves.begins[low + b]
        if at < 0:
            for i in range(data.shape[0]):
                data[i, b] = heads[i - 1 - at, column]
        else:
            for i in range(data.shape[0]):
                data[i, b] = values[at + i, column]
        if curves.gaps:
            for i in range(data.shape[0]):
                absent[i, b] = math.isnan(data[i, b])
            bridge(data, b)


@njit(cache=True, nogil=True)
def _scatter(curves: Curves, low: int, here: int, column: int, made: Array, absent: Array) -> None:
    """Points to their rows; what is past the last row of a series' block is kept for later."""
    gaps, offset, kept_values, points = (
        curves.gaps,
        curves.offset,
        curves.kept_values,
        curves.points,
    )
    for b in range(here):
        owner, row = curves.owners[low + b], curves.ends[low + b]
        stop = curves.stops[owner]
        for i in range(made.shape[0]):
            point = math.nan if gaps and absent[i + 1, b] else made[i, b]
            if row + i < stop:
                points[row + i, column] = point
            else:
                kept_values[owner, offset + i * points.shape[1] + column] = point


# In the two kernels below numbers that belong together lie TOGETHER apart in one flat array, and
# loops over b begin at a slice of it: so the compiler sees that no index is negative and that no
# numbers overlap, and makes them vector loops. Several terms at a time, for a term alone costs more
# to fetch and to put back than to work out.


@njit(cache=True, nogil=True)
def draw_cosines(curves: Curves, shares: Array, angle: float) -> None:
    """Points of curves through windows of one size: sum_k a_k cos(k angle t).

    t is 0.5 at the first reading. Cosines of readings that mirror each other differ in their sign
    at most, so half of the shares do; sums of cosines by Clenshaw 1955, four terms at a time.

    Parameters:
        curves: the windows, and at which t their curves are read.
        shares: the coefficients a are these times the window's readings.
        angle: that of the slowest cosine.
    """
    firsts, ratios = curves.firsts, curves.ratios
    terms, n = shares.shape
    half, many = (n + 1) // 2, TOGETHER
    data, made = np.zeros((n, many)), np.zeros((n - 2, many))
    absent = np.zeros((n, many), dtype=np.bool_)
    readings, drawn = data.reshape(-1), made.reshape(-1)
    folded, a = np.zeros(2 * half * many), np.zeros(terms * many)  # sums, then differences
    begin = np.zeros(3 * many)  # the cosine at first, the one before, and twice that of a step
    z = np.zeros(3 * many)
    y = np.zeros(2 * many)
    first, cosine = math.nan, math.nan
    for low in range(0, curves.begins.size, many):
        here = min(many, curves.begins.size - low)
        for b in range(here):
            if firsts[low + b] != first:
                first = firsts[low + b]
                cosine = math.cos(angle * first)
            begin[b] = cosine
            begin[many + b] = math.cos(angle * (first - ratios[low + b]))
            begin[2 * many + b] = 2.0 * math.cos(angle * ratios[low + b])
        for column in range(curves.values.shape[1]):
            _gather(curves, low, here, column, data, absent)
            for i in range(half):
                left, right = readings[i * many :], readings[(n - 1 - i) * many :]
                total, gap = folded[i * many :], folded[(half + i) * many :]
                middle = 0.5 if 2 * i == n - 1 else 1.0
                for b in range(many):
                    total[b] = middle * (left[b] + right[b])
                    gap[b] = left[b] - right[b]
            for k in range(terms):
                sums, start = a[k * many :], half * (k & 1)
                x, some = shares[k, 0], folded[start * many :]
                for b in range(many):
                    sums[b] = x * some[b]
                for i in range(1, half - 1, 2):
                    x, x2, some = shares[k, i], shares[k, i + 1], folded[(start + i) * many :]
                    for b in range(many):
                        sums[b] = sums[b] + x * some[b] + x2 * some[many + b]
                if half % 2 == 0:
                    x, some = shares[k, half - 1], folded[(start + half - 1) * many :]
                    for b in range(many):
                        sums[b] += x * some[b]
            z[:] = begin
            for i in range(n - 2):
                last, out = a[(terms - 1) * many :], drawn[i * many :]
                for b in range(many):
                    x = z[b]
                    z[b] = z[2 * many + b] * x - z[many + b]
                    z[many + b] = x
                    y[b] = last[b]
                    y[many + b] = 0.0
                k = terms - 2
                while k > 0 and k % 4:
                    some = a[k * many :]
                    for b in range(many):
                        x = y[b]
                        y[b] = some[b] + 2.0 * z[b] * x - y[many + b]
                        y[many + b] = x
                    k -= 1
                while k > 0:
                    some = a[(k - 3) * many :]
                    for b in range(many):
                        x, twice = y[b], 2.0 * z[b]
                        above = some[3 * many + b] + twice * x - y[many + b]
                        x = some[2 * many + b] + twice * above - x
                        above = some[many + b] + twice * x - above
                        y[b] = some[b] + twice * above - x
                        y[many + b] = above
                    k -= 4
                if terms == 1:
                    out[:many] = last
                else:
                    for b in range(many):
                        out[b] = a[b] + z[b] * y[b] - y[many + b]
            _scatter(curves, low, here, column, made, absent)


@njit(cache=True, nogil=True)
def draw_waves(curves: Curves, real: Array, imaginary: Array, angle: float) -> None:
    """Points of curves through windows of one size: Re sum_k p_k z^k at z = e^(j angle t).

    Sums by Horner.

    Parameters:
        curves: the windows, and at which t their curves are read.
        real: the coefficients p are these times the window's readings,
        imaginary: and j times these.
        angle: that of the slowest wave.
    """
    firsts, ratios = curves.firsts, curves.ratios
    terms, n = real.shape
    many = TOGETHER
    data, made = np.zeros((n, many)), np.zeros((n - 2, many))
    absent = np.zeros((n, many), dtype=np.bool_)
    readings, drawn = data.reshape(-1), made.reshape(-1)
    p = np.zeros(terms * 2 * many)
    begin = np.zeros(4 * many)  # where the curves are read at first, and what that turns by
    z = np.zeros(4 * many)
    y = np.zeros(2 * many)
    first, cosine, sine = math.nan, math.nan, math.nan
    for low in range(0, curves.begins.size, many):
        here = min(many, curves.begins.size - low)
        for b in range(here):
            if firsts[low + b] != first:
                first = firsts[low + b]
                cosine, sine = math.cos(angle * first), math.sin(angle * first)
            begin[b], begin[many + b] = cosine, sine
            begin[2 * many + b] = math.cos(angle * ratios[low + b])
            begin[3 * many + b] = math.sin(angle * ratios[low + b])
        for column in range(curves.values.shape[1]):
            _gather(curves, low, here, column, data, absent)
            for k in range(terms):
                sums = p[k * 2 * many :]
                sums[: 2 * many] = 0.0
                for i in range(0, n - 1, 2):
                    some, x, x2 = readings[i * many :], real[k, i], imaginary[k, i]
                    next_x, next_x2 = real[k, i + 1], imaginary[k, i + 1]
                    for b in range(many):
                        sums[b] = sums[b] + x * some[b] + next_x * some[many + b]
                        sums[many + b] = sums[many + b] + x2 * some[b] + next_x2 * some[many + b]
                if n % 2:
                    some, x, x2 = readings[(n - 1) * many :], real[k, n - 1], imaginary[k, n - 1]
                    for b in range(many):
                        sums[b] += x * some[b]
                        sums[many + b] += x2 * some[b]
            z[:] = begin
            for i in range(n - 2):
                last, out = p[(terms - 1) * 2 * many :], drawn[i * many :]
                for b in range(many):
                    x, x2, turn, turn2 = z[b], z[many + b], z[2 * many + b], z[3 * many + b]
                    z[b] = x * turn - x2 * turn2
                    z[many + b] = x * turn2 + x2 * turn
                    y[b] = last[b]
                    y[many + b] = last[many + b]
                k = terms - 1
                if k % 2:
                    k -= 1
                    some = p[k * 2 * many :]
                    for b in range(many):
                        x, x2, turn, turn2 = y[b], y[many + b], z[b], z[many + b]
                        y[b] = x * turn - x2 * turn2 + some[b]
                        y[many + b] = x * turn2 + x2 * turn + some[many + b]
                while k > 0:
                    k -= 2
                    some = p[k * 2 * many :]
                    for b in range(many):
                        x, x2, turn, turn2 = y[b], y[many + b], z[b], z[many + b]
                        above = x * turn - x2 * turn2 + some[2 * many + b]
                        above2 = x * turn2 + x2 * turn + some[3 * many + b]
                        y[b] = above * turn - above2 * turn2 + some[b]
                        y[many + b] = above * turn2 + above2 * turn + some[many + b]
                out[:many] = y[:many]
            _scatter(curves, low, here, column, made, absent)
